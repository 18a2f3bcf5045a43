"""What one viewer knows of some tables, as arrays; the tables as it may imagine them; and their past.

A viewer is a seat, which knows its own hand, or the public (-1), which knows none. All that follows from what everyone
has seen (S3: passes are public) is here; what follows for the hidden hands is worked out in `beliefs.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
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
from domino_env.tiles import (
    HIGH,
    LOW,
    NUM_SUITS,
    NUM_TILES,
    PASS,
    PIPS,
    SUIT_MASK,
    action_name,
    is_whole,
    mask_of,
    tile_name,
    tiles_of,
)

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
        past = self.engine.history()[places] if history else None
        return Decisions(unpack(obs), mask_of_bits(legal), self.seat[places], past, rules=self.engine.rules)


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
        chosen = np.ones(len(rows), np.bool_) if number else ~bound(rules, action)
        yield Ply(number, rows, seat, action, later, chosen, engine)
        passes = np.flatnonzero(action == PASS)
        if len(passes):
            engine.allow_pass(passes)  # a wrong pass that a judge let stand (J3) is a pass
        _, done = engine.step(action, autoreset=False)
        if done.any():
            raise ValueError(f"row {rows[int(done.argmax())]}: the hands end the deal at ply {number}")


def bound(rules: Rules, action: Ints) -> npt.NDArray[np.bool_]:
    """Whether the rules bound the leader to the tile of a deal's first action (K1, K2, B2): (n,) of (n,) actions."""
    tile = action % NUM_TILES
    named = {"double_six": tile == _SIX_SIX, "winner": tile == _ONE_ONE, "low": tile >= 0}
    return named.get(rules.lead, np.zeros(len(action), np.bool_)) & (action < PASS)


def mask_of_bits(legal: npt.NDArray[np.uint64]) -> npt.NDArray[np.int8]:
    """(n,) legal actions as bits -> (n, 57) int8 masks as agents are given them."""
    bits = np.unpackbits(legal.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return bits[:, : PASS + 1].astype(np.int8)


def position_from(
    rules: Rules,
    leader: int,
    moves: Sequence[int],
    viewer: int,
    own: Sequence[int] = (),
    movers: Sequence[int | None] = (),
) -> Position:
    """What a seat at one table knows, from plain data: a table of one row, in the midst of a deal.

    Args:
        rules: of a game on an open line.
        leader: seat.
        moves: actions of the deal, oldest first. On an empty line, and where both ends are equal, left and right are
            the same.
        viewer: seat whose hand is known, or -1.
        own: tile numbers of its hand, as it was dealt or as it is now: their number tells.
        movers: who made the first, the second … move, None where nobody says it; seats follow from the moves.
    Raises:
        ValueError: a deal that is over, or what cannot be; one line names the contradiction. Moves count from 1.
    """
    _check(rules)
    for name, seat, first in (("leader", leader, 0), ("viewer", viewer, PUBLIC)):
        if not is_whole(seat) or not first <= seat < rules.seats:
            raise ValueError(f"{name}={seat!r} must be a seat of {rules.name}, {first}..{rules.seats - 1}")
    story = _Story(rules, int(leader))
    for number, action in enumerate(moves):
        story.add(action, movers[number] if number < len(movers) else None)
    if story.ended:
        raise ValueError(f"the deal is over: {story.ended}")
    hand = story.own_hand(int(viewer), own) if viewer >= 0 else 0
    story.check_lead(int(viewer), hand)
    laid = np.array([[mask_of(tiles) for tiles in story.laid]], np.uint32)
    position = Position(
        rules=rules,
        viewer=np.array([viewer], np.int64),
        own=np.array([hand], np.uint32),
        played=laid,
        voids=np.array([[mask_of(suits) for suits in story.voids]], np.uint8),
        sizes=rules.hand_size - np.bitwise_count(laid).astype(np.int64),
        ends=np.array([story.ends], np.int64),
        leader=np.array([leader], np.int64),
        to_move=np.array([story.mover], np.int64),
        events=np.array([story.events], np.int64).reshape(1, -1),
    )
    _check_room(position)
    return position


class _Story:
    """The moves of one deal, played with the eyes of who sees no hand."""

    def __init__(self, rules: Rules, leader: int) -> None:
        self.rules, self.leader, self.mover = rules, leader, leader
        self.ends = (-1, -1)
        self.events: list[int] = []
        self.laid: list[list[int]] = [[] for _ in range(rules.seats)]  # tiles in the order in which each seat laid them
        self.voids: list[set[int]] = [set() for _ in range(rules.seats)]
        self.at: dict[int, tuple[int, int]] = {}  # tile -> number of the move and seat that laid it
        self.passes: list[tuple[int, int, tuple[int, int]]] = []  # number of the move, seat, ends
        self.run = 0  # tiles of the turn that goes on (B3)
        self.grown = -1  # chain="one": the end that this turn grows
        self.silent = 0  # passes since the last lay
        self.ended = ""  # how the deal ended

    def add(self, action: int, said: int | None) -> None:
        """The next move."""
        number = len(self.events) + 1
        if not is_whole(action) or not 0 <= action <= PASS:
            raise ValueError(f"move {number}: action {action!r} does not exist; actions are 0..{PASS}")
        name = action_name(action)
        if self.ended:
            raise ValueError(f"move {number}, {name}, comes after the end of the deal: {self.ended}")
        if said is not None and said != self.mover:
            raise ValueError(f"move {number}, {name}, is of seat {self.mover}, whose turn it is, not of seat {said}")
        left, right = self.ends
        empty = left < 0
        alike = empty or (left == right and not self.rules.labelled_ends and self.grown < 0)
        if alike and action != PASS:
            action %= NUM_TILES
        before = _NO_SUIT << 3 | _NO_SUIT if empty else left << 3 | right
        self.events.append(self.mover << 12 | before << 6 | action)
        if action == PASS:
            self._pass(number)
        else:
            self._lay(number, action)

    def _pass(self, number: int) -> None:
        seat, stops = self.mover, self.run > 0
        self.mover, self.run, self.grown = (seat + 1) % self.rules.seats, 0, -1
        if stops:
            return
        if self.ends[0] < 0:
            raise ValueError(f"move 1 is a wrong pass: seat {seat} leads and can lay any tile")
        self.voids[seat] |= {*self.ends}
        self.passes.append((number, seat, self.ends))
        self.silent += 1
        if self.silent == self.rules.seats:
            raise ValueError(f"move {number}: all seats have passed; a block ends the deal without passes (S5)")

    def _lay(self, number: int, action: int) -> None:
        seat, tile, side = self.mover, action % NUM_TILES, action // NUM_TILES
        name, rules = tile_name(tile), self.rules
        if tile not in rules.tiles:
            raise ValueError(f"move {number}: tile {name} is not in the double-{rules.max_pip} set of {rules.name}")
        if tile in self.at:
            before, who = self.at[tile]
            raise ValueError(f"move {number}: tile {name} lies there twice; seat {who} laid it at move {before}")
        halves = int(LOW[tile]), int(HIGH[tile])
        if self.ends[0] < 0:
            self.ends = halves
        else:
            end = self.ends[side]
            if end not in halves:
                where = ("left", "right")[side]
                raise ValueError(f"move {number}: {name} does not match the {where} end, which is {end}")
            if self.grown >= 0 and side != self.grown:
                raise ValueError(f"move {number}: this turn goes on at the {('left', 'right')[self.grown]} end only")
            if rules.chain == "one":
                self.grown = side
            new = sum(halves) - end
            self.ends = (new, self.ends[1]) if side == 0 else (self.ends[0], new)
        for then, who, ends in self.passes:
            if who == seat and (open_ := [suit for suit in ends if suit in halves]):
                raise ValueError(
                    f"move {then} is a wrong pass: seat {seat} passed while {_both(ends)}, and lays {name}, which has "
                    f"{_words(sorted({*open_}), 'and')}, at move {number}"
                )
        self.at[tile] = number, seat
        self.laid[seat].append(tile)
        self.silent = 0
        rest = mask_of(rules.tiles) & ~mask_of(self.at)
        if len(self.laid[seat]) == rules.hand_size:
            self.ended = f"seat {seat} went out with move {number}"
        elif not rest & int(SUIT_MASK[self.ends[0]] | SUIT_MASK[self.ends[1]]):
            self.ended = f"move {number} blocked the line, no tile is left that matches an end"
        if rules.chains:
            self.run += 1
        else:
            self.mover = (seat + 1) % rules.seats

    def own_hand(self, viewer: int, own: Sequence[int]) -> int:
        """The viewer's hand now, as a mask."""
        rules, laid = self.rules, self.laid[viewer]
        size, left = rules.hand_size, rules.hand_size - len(laid)
        for number, tile in enumerate(own):
            name = tile_name(tile)
            if tile not in rules.tiles:
                raise ValueError(f"hand: tile {name} is not in the double-{rules.max_pip} set of {rules.name}")
            if tile in own[:number]:
                raise ValueError(f"hand: tile {name} stands there twice")
            if tile in self.at and self.at[tile][1] != viewer:
                raise ValueError(f"hand: tile {name} was laid by seat {self.at[tile][1]} at move {self.at[tile][0]}")
        if len(own) not in (size, left):
            still = "" if size == left else f", and {left} are left of it now"
            raise ValueError(f"hand: seat {viewer} was dealt {size} tiles{still}; {len(own)} are given")
        if len(own) == size:
            if missing := [tile for tile in laid if tile not in own]:
                name, (number, _) = tile_name(missing[0]), self.at[missing[0]]
                raise ValueError(
                    f"hand: seat {viewer} laid {name} at move {number}, and the {size} tiles it was dealt lack it"
                )
        elif both := [tile for tile in laid if tile in own]:
            name, (number, _) = tile_name(both[0]), self.at[both[0]]
            raise ValueError(f"hand: {name} was laid at move {number}, and is among the {left} tiles left now")
        now = [tile for tile in own if tile not in laid]
        for number, seat, ends in self.passes:
            fits = [tile_name(tile) for tile in now if LOW[tile] in ends or HIGH[tile] in ends]
            if seat == viewer and fits:
                raise ValueError(
                    f"move {number} is a wrong pass: seat {seat} passed while {_both(ends)}, and holds {fits[0]}"
                )
        return mask_of(now)

    def check_lead(self, viewer: int, hand: int) -> None:
        """B2: no tile that was dealt is lower than the one that led."""
        if self.rules.lead != "low" or not self.events:
            return
        lead = (self.events[0] & 63) % NUM_TILES
        for tile in [*self.at, *tiles_of(hand)]:
            if (PIPS[tile], LOW[tile]) < (PIPS[lead], LOW[lead]):
                who = self.at[tile][1] if tile in self.at else viewer
                raise ValueError(
                    f"move 1: seat {self.leader} leads {tile_name(lead)}, but seat {who} was dealt {tile_name(tile)}, "
                    "and the lowest tile leads (B2)"
                )


def _both(ends: tuple[int, int]) -> str:
    return f"{ends[0]} was at both ends" if ends[0] == ends[1] else f"{ends[0]} and {ends[1]} were the ends"


def _words(items: Sequence[Any], last: str) -> str:
    texts = [str(item) for item in items]
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}" if len(texts) > 1 else texts[0]


def _check_room(position: Position) -> None:
    """Whether the hidden tiles have room in the hands, given what the seats passed on."""
    rules, viewer, hidden = position.rules, int(position.viewer[0]), int(position.hidden[0])
    others = [seat for seat in range(rules.seats) if seat != viewer]
    may, sizes = {}, position.sizes[0].tolist()
    for seat in others:
        lacks = [int(SUIT_MASK[suit]) for suit in range(NUM_SUITS) if int(position.voids[0, seat]) >> suit & 1]
        may[seat] = hidden & ~int(np.bitwise_or.reduce(np.array(lacks, np.int64), initial=0))
    for number in range(1, 1 << len(others)):
        seats = [seat for i, seat in enumerate(others) if number >> i & 1]
        fit, held = 0, sum(sizes[seat] for seat in seats)
        for seat in seats:
            fit |= may[seat]
        if fit.bit_count() >= held:
            continue
        nobody = [tile_name(tile) for tile in tiles_of(hidden & ~fit)]
        if len(seats) == len(others) and not rules.leftover:
            raise ValueError(f"nobody can hold {_words(nobody, 'or')}: all others have passed on a suit of it")
        who = f"seat {seats[0]} holds" if len(seats) == 1 else f"seats {_words(seats, 'and')} hold"
        only = f"only {fit.bit_count()}" if fit else "none"
        raise ValueError(
            f"{who} {held} tiles, but {only} of the {hidden.bit_count()} hidden ones can be there after the passes"
        )
