"""What one viewer knows of some tables, as arrays; the tables as it may imagine them; and their past.

A viewer is a seat, which knows its own hand, or the public (-1), which knows none. All that follows from what everyone
has seen (S3: passes are public) is here; what follows for the hidden hands is worked out in `beliefs.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from domino_env.decisions import Decisions
from domino_env.engine import make_engine
from domino_env.line import LineEngine
from domino_env.observation import layout_of, unpack
from domino_env.rules import PRESETS, Rules
from domino_env.tiles import ALL_TILES, NUM_SUITS, NUM_TILES, PASS, mask_of

Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]

PUBLIC = -1  # the viewer who sees no hand
_NO_SUIT = NUM_SUITS  # the ends of an empty line in an event
_SIX_SIX, _ONE_ONE = 27, 7


@dataclass(frozen=True)
class Position:
    """What one viewer knows of each of N tables of a game on an open line, all seats absolute."""

    rules: Rules
    viewer: Ints  # (N,) seat whose hand is known, -1 for the public
    own: Masks  # (N,) the viewer's hand now, 0 for the public
    played: Masks  # (N, seats) laid by each seat
    voids: npt.NDArray[np.uint8]  # (N, seats) bit k: the seat passed while suit k was an end
    sizes: Ints  # (N, seats) tiles that each seat holds now
    ends: Ints  # (N, 2) open suits left and right, -1 before the lead
    leader: Ints  # (N,)
    to_move: Ints  # (N,)
    # (N, T) public events, oldest first, -1 padded: seat << 12 | left << 9 | right << 6 | action, the seat absolute,
    # and the ends before the action (7 and 7 on an empty line); None where nobody told them
    events: Ints | None = None

    def __len__(self) -> int:
        return len(self.viewer)

    def take(self, rows: npt.NDArray[Any]) -> Position:
        """The same on only these rows (indices, which may repeat, or a bool mask)."""
        return dataclasses.replace(
            self,
            **{
                field.name: value[rows]
                for field in dataclasses.fields(self)
                if field.name != "rules" and (value := getattr(self, field.name)) is not None
            },
        )

    @cached_property
    def hidden(self) -> Masks:
        """(N,) the tiles of the set that lie neither on the line nor in the viewer's hand."""
        deck = np.uint32(mask_of(self.rules.tiles))
        return deck & ~(np.bitwise_or.reduce(self.played, axis=1) | self.own)

    @cached_property
    def plies(self) -> Ints:
        """(N,) actions so far; without events the least number that agrees with the tiles laid and who is to move."""
        if self.events is not None:
            return (self.events >= 0).sum(axis=1)
        laid = np.bitwise_count(self.played).sum(axis=1, dtype=np.int64)
        return laid + (self.to_move - self.leader - laid) % self.rules.seats

    @cached_property
    def lead_tile(self) -> Ints:
        """(N,) the tile that was led, -1 before the lead; without events -1 everywhere."""
        if self.events is None or not self.events.shape[1]:
            return np.full(len(self), -1)
        first = self.events[:, 0]
        return np.where(first >= 0, (first & 63) % NUM_TILES, -1)


def _check(rules: Rules) -> None:
    if rules.rows:
        games = ", ".join(name for name, one in PRESETS.items() if not one.rows)
        raise ValueError(f"beliefs and search are for games on an open line ({games}), not for {rules.name}")


def position_of(batch: Decisions) -> Position:
    """What the asked seats know: decoded from their observations, and their histories where these are given.

    Raises:
        ValueError: a blind game, or observations of another game.
    """
    rules = PRESETS["sport_book"] if batch.rules is None else batch.rules
    _check(rules)
    layout, seats, n = layout_of(rules), rules.seats, len(batch)
    if batch.obs.ndim != 2 or batch.obs.shape[1] != layout.size:
        raise ValueError(f"observations of {rules.name} are (N, {layout.size}), not {batch.obs.shape}")
    around = (np.arange(seats) - batch.seat[:, None]) % seats  # of each absolute seat: how far clockwise it sits

    def of(name: str) -> npt.NDArray[np.uint8]:
        return batch.obs[:, layout.slices[name]]

    def masks(name: str) -> Masks:
        data = np.zeros((n, 4), np.uint8)
        packed = np.packbits(of(name), axis=1, bitorder="little")
        data[:, : packed.shape[1]] = packed
        return data.view("<u4")[:, 0].astype(np.uint32)

    def each(part: str) -> list[str]:
        return [name for name in layout.slices if name.startswith(part)]

    def absolute(relative: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        return np.take_along_axis(np.stack(relative, axis=1), around, axis=1)

    ends = np.stack([of("end_left"), of("end_right")], axis=1)
    events = None
    if batch.history is not None:
        history = batch.history.astype(np.int64)
        who = (history >> 12) + batch.seat[:, None]
        events = np.where(history >= 0, who % seats << 12 | history & 0xFFF, -1)
    return Position(
        rules=rules,
        viewer=batch.seat.astype(np.int64),
        own=masks("hand"),
        played=absolute([masks(name) for name in each("played_")]),
        voids=absolute([masks(name) for name in each("passed_")]).astype(np.uint8),
        sizes=absolute([of(name).sum(axis=1, dtype=np.int64) for name in each("size_")]),
        ends=np.where(ends.any(axis=2), ends.argmax(axis=2), -1),
        leader=(batch.seat + of("leader").argmax(axis=1)) % seats,
        to_move=batch.seat.astype(np.int64),
        events=events,
    )


def position_at(engine: LineEngine, viewer: int | npt.NDArray[Any] | None = None) -> Position:
    """What a viewer knows of the tables of an engine.

    Args:
        engine: N rows of a game on an open line, none of them over.
        viewer: a seat, -1 for the public, one a row (N,), or None for the mover of each row.
    """
    _check(engine.rules)
    n = engine.num_envs
    seat = engine.to_move() if viewer is None else np.broadcast_to(np.asarray(viewer, np.int64), n).copy()
    hands, past = engine.hands(), engine.history(0).astype(np.int64)
    own = np.where(seat < 0, np.uint32(0), hands[np.arange(n), seat])
    return Position(
        rules=engine.rules,
        viewer=seat,
        own=own.astype(np.uint32),
        played=engine.played(),
        voids=engine.passed().astype(np.uint8),
        sizes=np.bitwise_count(hands).astype(np.int64),
        ends=engine.ends().astype(np.int64),
        leader=engine.leader(),
        to_move=engine.to_move(),
        events=past,
    )


def imagine(position: Position, rows: npt.NDArray[Any], hands: Masks) -> LineEngine:
    """The tables as they would be if these were the hands.

    Args:
        position: of a game with one tile a turn.
        rows: (n,) row numbers of the position; a row may stand several times.
        hands: (n, seats) uint32, what each seat holds now.
    Returns:
        an engine of n rows, row j like table ``rows[j]``; it must be stepped with ``autoreset=False``. Its histories
        hold the past where the position has events.
    """
    past = position.events
    return LineEngine.standing(
        position.rules,
        hands,
        position.played[rows],
        position.voids[rows],
        position.ends[rows],
        position.leader[rows],
        position.plies[rows],
        None if past is None else past[rows],
    )


@dataclass(frozen=True)
class Ply:
    """One past action of some tables, and the tables as they stood before it."""

    number: int  # 0 is the lead
    rows: Ints  # (n,) row numbers of the position
    seat: Ints  # (n,) who acted
    action: Ints  # (n,)
    later: Masks  # (n,) tiles that this seat laid with this action or after it: it held them too
    chosen: npt.NDArray[np.bool_]  # (n,) False: the rules bound the leader to the tile (K1, K2, B2)
    engine: LineEngine  # n rows before the action, with the hands that were imagined; valid until the next ply is asked

    def ask(self, places: npt.NDArray[Any], hands: Masks, history: bool = False) -> Decisions:
        """The question that was put to the seats of this ply, if what they hold now were these hands.

        Args:
            places: (q,) places in ``rows``, which may repeat; hands: (q,) uint32 what the seat holds now.
            history: the agent needs the public events.
        """
        obs, legal = self.engine.suppose(places, hands | self.later[places])
        bits = np.unpackbits(legal.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        past = self.engine.history()[places] if history else None
        mask = bits[:, : self.engine.num_actions].astype(np.int8)
        return Decisions(unpack(obs), mask, self.seat[places], past, rules=self.engine.rules)


def past(position: Position, hands: Masks) -> Iterator[Ply]:
    """Every past ply of the tables, oldest first; at each only the tables that had it.

    Args:
        position: with events.
        hands: (N, seats) uint32 hands that can be; any will do, they only keep the engine's rules.
    Raises:
        ValueError: a position without events, or hands that do not fit them.
    """
    rules, events = position.rules, position.events
    if events is None:
        raise ValueError("the past of a position without events is not known")
    plies = position.plies
    rows = np.argsort(-plies, kind="stable")
    rows = rows[plies[rows] > 0]
    if not len(rows):
        return
    engine: Any = make_engine(rules, len(rows), seed=0)
    engine.deal((hands | position.played)[rows], position.leader[rows])
    for number in range(int(plies.max())):
        going = int((plies[rows] > number).sum())
        if going < len(rows):
            rows = rows[:going]
            engine = engine.take(np.arange(going))
        event = events[rows, number]
        seat, action = event >> 12, event & 63
        here = np.arange(len(rows))
        later = position.played[rows, seat] & ~engine.played()[here, seat]
        chosen = np.ones(len(rows), np.bool_)
        if number == 0:
            tile = action % NUM_TILES
            bound = {"double_six": tile == _SIX_SIX, "winner": tile == _ONE_ONE, "low": tile >= 0}.get(rules.lead)
            chosen = chosen if bound is None else ~bound
        yield Ply(number, rows, seat, action, later, chosen, engine)
        passes = np.flatnonzero(action == PASS)
        if len(passes):
            engine.allow_pass(passes)  # a wrong pass that a judge let stand (J3) is a pass
        _, done = engine.step(action, autoreset=False)
        if done.any():
            raise ValueError(f"row {rows[int(done.argmax())]}: the hands end the deal at ply {number}")


def dealt(position: Position) -> Masks:
    """(N,) what the viewer was dealt: its hand and what it has laid; 0 for the public."""
    seat = np.maximum(position.viewer, 0)
    laid = position.played[np.arange(len(position)), seat]
    return np.where(position.viewer < 0, np.uint32(0), position.own | laid) & np.uint32(ALL_TILES)
