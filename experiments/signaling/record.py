"""Decisions of deals that some players played: what all saw before each, who held what, and what was done.

Deals are the duplicate boards of a seed, chance is keyed on (seed, deal, ply): the same table plays the same deals
however many there are, and another table plays them with the same luck.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Agent, decide, make_agent
from agents.search.position import PUBLIC, Position, position_at
from agents.search.reading import Model
from domino_env.deals import Streams, boards
from domino_env.engine import make_engine
from domino_env.rules import Rules, get_rules

Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]
Bits = npt.NDArray[np.uint64]

_PLIES = 1 << 10  # room for the plies of a deal in the number of a random stream
_BATCH = 4096  # deals played at once


@dataclass(frozen=True)
class Moments:
    """M decisions with more than one legal move, ordered by deal and ply."""

    position: Position  # (M,) as the public sees it, before the decision
    hands: Masks  # (M, seats) what each seat held
    legal: Bits  # (M,) bit a for action a
    action: Ints  # (M,) what was done
    deal: Ints  # (M,) number of the deal: decisions of one deal hang together
    ply: Ints  # (M,) actions before it

    def __len__(self) -> int:
        return len(self.action)

    @property
    def seat(self) -> Ints:
        """(M,) who decided."""
        return self.position.to_move

    @property
    def tiles(self) -> Ints:
        """(M,) tiles on the line before the decision."""
        return np.bitwise_count(self.position.played).sum(axis=1, dtype=np.int64)

    @property
    def number(self) -> Ints:
        """(M,) of the decision, whatever others there are: for its random streams."""
        return _number(self.deal, self.ply)

    def take(self, rows: npt.NDArray[Any]) -> Moments:
        """Only these (indices or a bool mask)."""
        return Moments(
            self.position.take(rows),
            self.hands[rows],
            self.legal[rows],
            self.action[rows],
            self.deal[rows],
            self.ply[rows],
        )

    def seen_by(self, place: int) -> Position:
        """As the seat sees them that sits `place` seats clockwise from who decides: 0 itself, 2 its partner."""
        return self.viewed((self.seat + place) % self.position.rules.seats)

    def viewed(self, viewer: Ints) -> Position:
        """The positions as given seats see them, -1 for the public: (M,)."""
        own = np.where(viewer < 0, np.uint32(0), self.hands[np.arange(len(self)), viewer]).astype(np.uint32)
        rest = {name: getattr(self.position, name) for name in _SHARED}
        return Position(self.position.rules, viewer.astype(np.int64), own, **rest)

    def hand(self, place: int = 0) -> Masks:
        """(M,) what the seat `place` seats clockwise from who decides held."""
        return self.hands[np.arange(len(self)), (self.seat + place) % self.position.rules.seats]


_SHARED = ("played", "voids", "sizes", "ends", "leader", "to_move", "events")


@dataclass(frozen=True)
class Record:
    """What came of D deals."""

    table: tuple[Agent, ...]  # who sat in each seat
    seed: int
    moments: Moments
    points: npt.NDArray[np.float64]  # (D, seats) rewards of each deal (S9)
    turns: int = 0  # of all deals, with those that leave no choice; 0: not counted


def _number(deal: Ints, ply: Ints) -> Ints:
    return deal * _PLIES + ply


def seated(players: str | Agent | Sequence[str | Agent], rules: str | Rules) -> tuple[Agent, ...]:
    """Agents for all seats: one plays everywhere, two are the even and the odd seats, or one a seat.

    Raises:
        ValueError: another number of them, an unknown name, or an agent that does not play this game.
    """
    return tuple(_each_seat(players, get_rules(rules), make_agent))


def models_of(players: Model | Sequence[Model], rules: Rules) -> list[Model]:
    """A model for each seat: players as of `seated`, or in their place "uniform", "rules" or None.

    Raises:
        ValueError: as of `seated`.
    """

    def made(player: Model, game: Rules) -> Model:
        return player if player is None or player in ("uniform", "rules") else make_agent(player, game)

    return _each_seat(players, rules, made)


def _each_seat(players: Any, game: Rules, make: Callable[[Any, Rules], Any]) -> list[Any]:
    given = list(players) if isinstance(players, Sequence) and not isinstance(players, str) else [players]
    if len(given) not in (1, 2, game.seats):
        raise ValueError(f"a table of {game.name} has 1 player, 2 or {game.seats}, not {len(given)}")
    made = [make(player, game) for player in given]
    return [made[seat % len(made)] for seat in range(game.seats)]


def play(
    players: str | Agent | Sequence[str | Agent],
    rules: str | Rules = "sport_book",
    deals: int = 1000,
    seed: int = 0,
    *,
    tiles: Collection[int] | None = None,
    each: int | None = None,
    start: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Record:
    """Play deals and note decisions.

    Args:
        players: as of `seated`.
        rules: a game on an open line with one tile a turn.
        deals: how many, numbers start .. start + deals - 1 of the seed.
        tiles: decisions with so many tiles on the line are noted; None: all.
        each: at most so many decisions of a deal, drawn among those of `tiles`; None: all.
        progress: called with (deals played, deals), by the tiles that were laid of those of a batch.

    Raises:
        ValueError: players or rules that cannot be, or numbers out of range.
    """
    game = get_rules(rules)
    if game.rows or game.chains:
        raise ValueError(f"signals are measured in games with one tile a turn on an open line, not in {game.name}")
    if deals < 1 or (each is not None and each < 1):
        raise ValueError(f"deals={deals!r} and each={each!r} must be at least 1")
    table = seated(players, game)
    parts: list[Moments] = []
    points, turns = np.zeros((deals, game.seats)), 0
    for begin in range(0, deals, _BATCH):
        count = min(_BATCH, deals - begin)

        def show(done: float, begin: int = begin) -> None:
            if progress is not None:
                progress(begin + int(done), deals)

        part, points[begin : begin + count], taken = _play(table, game, seed, start + begin, count, tiles, show)
        parts.append(part)
        turns += taken
    moments = joined(parts)
    if each is not None and len(moments):
        draw = np.random.default_rng([seed, 5]).random(len(moments))
        order = np.lexsort([draw, moments.deal])
        first = np.searchsorted(moments.deal[order], moments.deal[order])
        moments = moments.take(np.sort(order[np.arange(len(order)) - first < each]))
    return Record(table, seed, moments, points, turns)


def _play(
    table: tuple[Agent, ...],
    game: Rules,
    seed: int,
    start: int,
    count: int,
    tiles: Collection[int] | None,
    show: Callable[[float], None],
) -> tuple[Moments, npt.NDArray[np.float64], int]:
    """Play deals start .. start + count - 1; their decisions, their rewards, and the number of turns."""
    engine: Any = make_engine(game, count, seed=0)
    engine.deal(*boards(game, seed, start, count))
    points, turns = np.zeros((count, game.seats)), 0
    live = np.arange(count)
    names = {id(agent): agent for agent in table}
    parts: list[tuple[Any, ...]] = []
    while len(live):
        turns += len(live)
        legal = engine.legal_bits()
        actions = engine.legal().argmax(axis=1).astype(np.int64)
        mover, plies = engine.to_move(), engine.plies()
        free = engine.legal_count() > 1
        streams = chance_of(seed, start + live, plies)
        for key, agent in names.items():
            mine = np.array([id(one) == key for one in table])
            rows = np.flatnonzero(free & mine[mover])
            if len(rows):
                question = decide(engine, agent, streams, rows, start + live)
                actions[rows] = agent.act(question)
        noted = free
        if tiles is not None:
            laid = np.bitwise_count(engine.played()).sum(axis=1)
            noted = free & np.isin(laid, list(tiles))
        rows = np.flatnonzero(noted)
        parts.append(
            (
                position_at(engine, PUBLIC).take(rows),
                engine.hands()[rows],
                legal[rows],
                actions[rows],
                start + live[rows],
                plies[rows],
            )
        )
        reward, done = engine.step(actions, autoreset=False)
        if done.any():
            points[live[done]] = reward[done]
            live = live[~done]
            if len(live):
                engine = engine.take(~done)
        left = int(np.bitwise_count(engine.hands()).sum()) if len(live) else 0
        show(count - left / (game.seats * game.hand_size))
    moments = joined([Moments(*part) for part in parts])
    return moments.take(np.lexsort([moments.ply, moments.deal])), points, turns


def chance_of(seed: int, deal: Ints, ply: Ints) -> Streams:
    """The chance with which a record's decisions were made: a player that is asked again with it plays the same."""
    return Streams.of(seed, _number(deal, ply))


def joined(parts: Sequence[Moments]) -> Moments:
    """All of them, one after the other; of at least one part."""
    positions = [part.position for part in parts]
    fields: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in positions]) for name in ("viewer", "own", *_SHARED)
    }
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("hands", "legal", "action", "deal", "ply")
    }
    return Moments(Position(rules=positions[0].rules, **fields), **arrays)
