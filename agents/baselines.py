"""Players without learning: random, greedy, double_first, and club, which follows the maxims of good pair play.

They answer whole batches by arrays, and draw chance only as `batch.rng.random(len(batch))`, one number a decision, so
that an answer depends on its row alone and never on the rows beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Decisions, register_agent
from domino_env.tiles import HIGH, LOW, NUM_SUITS, NUM_TILES, PASS, PIPS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class Random:
    """A uniformly random legal action."""

    name = "random"

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64: the k-th legal action, k drawn uniformly with one number of `batch.rng` a row."""
        if batch.rng is None:
            raise ValueError("the random player needs batch.rng")
        count = np.cumsum(batch.mask, axis=1, dtype=np.uint8)
        legal = count[:, -1]
        drawn = np.minimum((batch.rng.random(len(batch)) * legal).astype(np.uint8), legal - 1)
        return (count > drawn[:, None]).argmax(axis=1)


class Preference:
    """Lays the first legal action in a fixed order of all actions."""

    def __init__(self, name: str, values: npt.NDArray[Any]) -> None:
        """`values` (28,) is the worth of each tile, the largest laid first; of equals the lower action id is laid."""
        self.name = name
        self._order = np.argsort(-np.concatenate([values, values, [values.min() - 1]]), kind="stable")

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64: the preferred legal action of each row."""
        first = batch.mask[:, self._order].view(bool).argmax(axis=1)
        return self._order[first]


_DOUBLE = LOW == HIGH


def greedy() -> Preference:
    """The heaviest tile; of equal tiles a double, then the lower tile, then the left end."""
    return Preference("greedy", 2 * PIPS.astype(np.int64) + _DOUBLE)


def double_first() -> Preference:
    """Doubles before all others, else the heaviest tile; then the lower tile, then the left end."""
    return Preference("double_first", PIPS.astype(np.int64) + 100 * _DOUBLE)


# name: (weight, what the maxim says). A weight is points of worth for one unit of the maxim's column in `Club.columns`.
MAXIMS: dict[str, tuple[float, str]] = {
    "keep_long": (0.5, "leave open the suits you still hold many tiles of"),
    "stay_in_play": (2.0, "leave yourself a tile for the new ends"),
    "keep_variety": (0.5, "keep many different suits in the hand"),
    "repeat_partner": (0.5, "open the suit that the partner opened"),
    "spare_partner": (0.5, "do not close the suit that the partner opened"),
    "cut_opponents": (0.5, "close the suit that an opponent opened"),
    "starve_opponents": (0.5, "do not open a suit that an opponent opened"),
    "play_heavy": (0.5, "lay heavy tiles early"),
    "play_doubles": (1.0, "lay doubles while they can be laid"),
    "stop_next": (4.0, "leave ends that make the next opponent pass"),
    "stop_right": (1.0, "leave ends that make the other opponent pass"),
    "serve_partner": (2.0, "leave ends that the partner can play on"),
    "hold_end": (1.0, "open or hold an end that only you can still play on"),
    "guard_doubles": (0.5, "leave open the suits of your own doubles"),
    "cut_doubles": (1.0, "cut off a double that an opponent holds"),
    "close_light": (5.0, "close the line when your pair is the lighter, and only then"),
}

_NO_SUIT = NUM_SUITS  # the end of an empty line
_IN_SUIT = np.array([(LOW == s) | (HIGH == s) for s in range(NUM_SUITS)])  # (7, 28)
_TILES = np.array([np.flatnonzero(row) for row in _IN_SUIT])  # (7, 7) the tiles of each suit, the double among them
_TILE = np.full((NUM_SUITS + 1, NUM_SUITS + 1), 0)  # tile of two suits
_TILE[LOW, HIGH] = _TILE[HIGH, LOW] = np.arange(NUM_TILES)
_DOUBLES = _TILE[np.arange(NUM_SUITS), np.arange(NUM_SUITS)]
_LOW, _HIGH, _PIPS = LOW.astype(np.int64), HIGH.astype(np.int64), PIPS.astype(np.float32)


@dataclass
class _View:
    """What a club player reads off its observation; seats are relative, 0 = itself, 1 = the next to play."""

    hand: npt.NDArray[np.bool_]  # (N, 28)
    unseen: npt.NDArray[np.bool_]  # (N, 28) tiles of the set that lie neither in the hand nor on the line
    passed: npt.NDArray[np.bool_]  # (N, seats, 7) suits a seat has passed on: it holds none
    size: Floats  # (N, seats) tiles in each hand
    ends: Ints  # (N, 2) suits of the open ends, 7 before the lead
    opened: Floats  # (N, seats, 8) how often each seat has opened a suit; the last column is 0


def _end(bits: npt.NDArray[np.uint8]) -> Ints:
    return np.where(bits.any(axis=1), bits.argmax(axis=1), _NO_SUIT)


def _opened(history: npt.NDArray[np.int16] | None, rows: int, seats: int) -> Floats:
    """(rows, seats, 8) float32: how often each seat laid a tile whose outer half is the suit, from public events."""
    if history is None or not history.size:
        return np.zeros((rows, seats, NUM_SUITS + 1), dtype=np.float32)
    used = history[:, : int((history >= 0).sum(axis=1).max(initial=0))]
    row, ply = np.nonzero(used >= 0)
    event = used[row, ply].astype(np.int64)
    action = event & 63
    lay = action < PASS
    row, event, action = row[lay], event[lay], action[lay]
    tile = action % NUM_TILES
    covered = np.where(action < NUM_TILES, event >> 9, event >> 6) & 7
    lead = covered == _NO_SUIT  # a lead opens both its halves
    outer = np.where(lead, _LOW[tile], _LOW[tile] + _HIGH[tile] - covered)
    place = (row * seats + (event >> 12)) * (NUM_SUITS + 1)
    both = np.concatenate([place + outer, (place + _HIGH[tile])[lead & (_LOW[tile] != _HIGH[tile])]])
    shape = (rows, seats, NUM_SUITS + 1)
    return np.bincount(both, minlength=math.prod(shape)).reshape(shape).astype(np.float32)


def _view(batch: Decisions) -> _View:
    slices = layout_of(batch).slices
    obs = batch.obs
    seats = [name.removeprefix("played_") for name in slices if name.startswith("played_")]
    seats.sort(key=lambda seat: slices[f"size_{seat}"].start)
    hand = obs[:, slices["hand"]].view(bool)
    seen = hand.copy()
    for seat in seats:
        seen |= obs[:, slices[f"played_{seat}"]].view(bool)
    top = NUM_SUITS - 1 if batch.rules is None else batch.rules.max_pip
    return _View(
        hand=hand,
        unseen=~seen & (HIGH <= top),
        passed=np.stack([obs[:, slices[f"passed_{seat}"]].view(bool) for seat in seats], axis=1),
        size=np.stack([obs[:, slices[f"size_{seat}"]].sum(axis=1, dtype=np.float32) for seat in seats], axis=1),
        ends=np.stack([_end(obs[:, slices["end_left"]]), _end(obs[:, slices["end_right"]])], axis=1),
        opened=_opened(batch.history, len(batch), len(seats)),
    )


def _chances(view: _View) -> Floats:
    """(N, seats, 28) float32: the chance that a tile lies in each other seat's hand; the own seat's are 0.

    Every unseen tile is shared out among the hands that may hold it, by their sizes, then the shares are scaled once to the
    sizes. Tiles that nobody was dealt count as one more hand.
    """
    unseen = view.unseen
    may = unseen[:, None] & ~(view.passed[:, :, _LOW] | view.passed[:, :, _HIGH])
    may[:, 0] = unseen  # the own place stands for what nobody was dealt
    size = view.size.copy()
    size[:, 0] = np.maximum(unseen.sum(axis=1, dtype=np.float32) - size[:, 1:].sum(axis=1), 0)
    share = may * size[:, :, None]
    for _ in range(2):
        total = share.sum(axis=1, keepdims=True)
        share /= np.where(total > 0, total, 1)
        got = share.sum(axis=2, keepdims=True)
        share *= size[:, :, None] / np.where(got > 0, got, 1)
    share[:, 0] = 0
    return np.minimum(share, 1, out=share)


class Club:
    """Follows the maxims of good pair play; each is a weight, 0 switches it off ("club:repeat_partner=0")."""

    name = "club"
    needs_history = True

    def __init__(self, **weights: float) -> None:
        """Weights by maxim, see `MAXIMS`; those left out keep their default. ValueError for an unknown maxim or no number."""
        for name, value in weights.items():
            if name not in MAXIMS:
                raise ValueError(f"club has no maxim {name!r}; maxims are {', '.join(MAXIMS)}")
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ValueError(f"the weight of {name} must be a finite number, not {value!r}")
        self.weights = {name: float(weights.get(name, weight)) for name, (weight, _) in MAXIMS.items()}

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64: the lay of the highest worth; of equals the lower action id; a pass where there is no lay."""
        rows, actions, columns = self.columns(batch)
        worth = np.zeros(len(rows), dtype=np.float32)
        for name, weight in self.weights.items():
            if weight:
                worth += np.float32(weight) * columns[name]
        answer = np.full(len(batch), PASS, dtype=np.int64)
        if len(rows):
            first = np.flatnonzero(np.diff(rows, prepend=-1))  # rows ascend: where each row's lays begin
            best = np.maximum.reduceat(worth, first)
            runs = np.diff(first, append=len(rows))
            chosen = np.where(worth == np.repeat(best, runs), actions, PASS)
            answer[rows[first]] = np.minimum.reduceat(chosen, first)
        return answer

    def columns(self, batch: Decisions) -> tuple[Ints, Ints, dict[str, Floats]]:
        """What each maxim says of each legal lay.

        Returns:
            rows (M,) ascending and actions (M,) of all legal lays, and for every maxim its (M,) float32 column.
        """
        view = _view(batch)
        seats = view.size.shape[1]
        pairs = seats == 4 and (batch.rules is None or batch.rules.pairs)
        rows, actions = np.nonzero(batch.mask[:, :PASS])
        tile = actions % NUM_TILES
        side = actions // NUM_TILES
        covered, other = view.ends[rows, side], view.ends[rows, 1 - side]
        lead = covered == _NO_SUIT
        opens = np.where(lead, _LOW[tile], _LOW[tile] + _HIGH[tile] - covered)
        other = np.where(lead, _HIGH[tile], other)
        both = np.stack([opens, other], axis=1)
        equal = opens == other
        joint = _TILE[opens, other]  # the tile that fits both new ends

        def per_suit(tiles: npt.NDArray[Any]) -> npt.NDArray[Any]:
            """(N, 28) -> (N, 8) counts by suit; the last column, no suit, is 0."""
            counts = np.zeros((len(tiles), NUM_SUITS + 1), dtype=np.float32)
            counts[:, :NUM_SUITS] = tiles[:, _TILES].sum(axis=2, dtype=np.float32)
            return counts

        chance = _chances(view)
        lacks = np.ones((len(batch), seats, NUM_SUITS + 1), dtype=np.float32)  # chance that a seat holds none of a suit
        lacks[:, :, :NUM_SUITS] = np.multiply.reduce((1 - chance)[:, :, _TILES], axis=3)

        def stuck(seat: int) -> Floats:
            """(M,) chance that the seat has no tile for the new ends."""
            one, two = lacks[rows, seat, opens], lacks[rows, seat, other]
            shared = 1 - chance[rows, seat, joint]
            return np.where(equal | (shared <= 0), np.minimum(one, two), one * two / np.where(shared > 0, shared, 1))

        hand, unseen = per_suit(view.hand), per_suit(view.unseen)

        def left_of(suit: Ints) -> Floats:
            """(M,) own tiles of a suit after the lay."""
            return hand[rows, suit] - ((_LOW[tile] == suit) | (_HIGH[tile] == suit))

        fit_one, fit_two = left_of(opens), left_of(other)
        fits = np.where(equal, fit_one, fit_one + fit_two - (view.hand[rows, joint] & (joint != tile)))
        variety = (hand[rows, :NUM_SUITS] > 0).sum(axis=1, dtype=np.float32)
        variety -= hand[rows, _LOW[tile]] == 1
        variety -= (hand[rows, _HIGH[tile]] == 1) & ~_DOUBLE[tile]

        nothing = np.zeros(len(rows), dtype=np.float32)
        partner = 2 if pairs else None
        opponents = [1, 3] if pairs else list(range(1, seats))
        foes = view.opened[:, opponents].sum(axis=1)
        friend = view.opened[:, 2] if pairs else np.zeros_like(foes)
        stops = {seat: stuck(seat) for seat in range(1, seats)}

        # Pips that the others hold, as expected, against those of the own side once the tile is laid.
        pips = (chance * _PIPS).sum(axis=2)
        own = (view.hand * _PIPS).sum(axis=1)[rows] - _PIPS[tile]
        if pairs:
            lighter = pips[rows, 1] + pips[rows, 3] - pips[rows, 2] - own
        else:
            lighter = pips[rows, 1:].min(axis=1) - own
        closed = (fits == 0).astype(np.float32)
        for chance_stuck in stops.values():
            closed = closed * chance_stuck

        # A double is cut off where the covered suit has no other tile left than its double.
        double = _DOUBLES[np.minimum(covered, NUM_SUITS - 1)]
        last = ~lead & (hand[rows, covered] == 1) & (unseen[rows, covered] == 1) & view.unseen[rows, double]
        holder = chance[rows, :, double]
        holder = holder[:, opponents].sum(axis=1) - (holder[:, 2] if pairs else 0)

        own_double = np.zeros((len(batch), NUM_SUITS + 1), dtype=np.float32)
        own_double[:, :NUM_SUITS] = view.hand[:, _DOUBLES]
        doubles = own_double[rows, opens] * (_DOUBLES[np.minimum(opens, 6)] != tile)
        doubles = doubles + np.where(equal, 0, own_double[rows, other] * (_DOUBLES[np.minimum(other, 6)] != tile))

        held = (unseen[rows, opens] == 0) & (fit_one > 0)
        held = held.astype(np.float32) + ((unseen[rows, other] == 0) & (fit_two > 0) & ~equal)
        heavy = _PIPS[tile] / 6

        return (
            rows,
            actions,
            {
                "keep_long": fits,
                "stay_in_play": -(fits == 0).astype(np.float32),
                "keep_variety": variety,
                "repeat_partner": friend[rows, opens],
                "spare_partner": -friend[rows, covered],
                "cut_opponents": foes[rows, covered],
                "starve_opponents": -foes[rows, opens],
                "play_heavy": heavy,
                "play_doubles": _DOUBLE[tile].astype(np.float32),
                "stop_next": stops[1],
                "stop_right": stops[seats - 1] if seats > 2 else nothing,
                "serve_partner": -stops[2] if pairs else nothing,
                "hold_end": held,
                "guard_doubles": doubles,
                "cut_doubles": last * holder,
                "close_light": closed * lighter / 10,
            },
        )
