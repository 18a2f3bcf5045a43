"""Players without learning: random, greedy, double_first, and club, which follows the maxims of good pair play.

The first three play every game; club plays those with one tile a turn on an open line. Rule players of the others are
in `counter.py` (blitz) and `memory.py` (the blind games).

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

from agents.base import Decisions, one_hot, register_agent
from domino_env.observation import Layout, layout_of
from domino_env.rules import PRESETS, Rules
from domino_env.tiles import DRAW, HIGH, LOW, NUM_SUITS, NUM_TILES, PASS, PIPS, SUIT_MASK, tiles_of

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

    def probabilities(self, batch: Decisions) -> npt.NDArray[np.float64]:
        """(N, actions) float64: one over the number of legal actions; 0 for illegal ones."""
        legal = (batch.mask != 0).astype(np.float64)
        return legal / legal.sum(axis=1, keepdims=True)


class Preference:
    """Lays the first legal action in a fixed order of all actions.

    It lays while it can, in blitz too (B3), and turns the next tile where a blind game allows it (R6). There, after a
    tile that did not match (R5), it declines: a drawn tile is one more to be rid of.
    """

    def __init__(self, name: str, values: npt.NDArray[Any]) -> None:
        """`values` (28,) is the worth of each tile, the largest laid first; of equals the lower action id is laid."""
        self.name = name
        least = values.min()
        last = [least - 2, least - 1, least - 3]  # pass, turn, draw
        self._order = np.argsort(-np.concatenate([values, values, last]), kind="stable")

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64: the preferred legal action of each row."""
        order = self._order[self._order < batch.mask.shape[1]]
        first = batch.mask[:, order].view(bool).argmax(axis=1)
        return order[first]

    def probabilities(self, batch: Decisions) -> npt.NDArray[np.float64]:
        """(N, actions) float64: 1 for what `act` answers, which is certain; else 0."""
        return one_hot(self.act(batch), batch.mask.shape[1])


_DOUBLE = LOW == HIGH


def greedy() -> Preference:
    """The heaviest tile; of equal tiles a double, then the lower tile, then the left end."""
    return Preference("greedy", 2 * PIPS.astype(np.int64) + _DOUBLE)


def double_first() -> Preference:
    """Doubles before all others, else the heaviest tile; then the lower tile, then the left end."""
    return Preference("double_first", PIPS.astype(np.int64) + 100 * _DOUBLE)


# name: (weight, what the maxim says). A weight is points of worth for one unit of the maxim's column in `Club.columns`.
MAXIMS: dict[str, tuple[float, str]] = {
    "keep_long": (0.2, "leave open the suits you still hold many tiles of"),
    "stay_in_play": (1.15, "leave yourself a tile for the new ends"),
    "keep_variety": (0.3, "keep many different suits in the hand"),
    "repeat_partner": (0.75, "open the suit that the partner opened"),
    "spare_partner": (0.45, "do not close the suit that the partner opened"),
    "cut_opponents": (0.4, "close the suit that an opponent opened"),
    "starve_opponents": (0.45, "do not open a suit that an opponent opened"),
    "play_heavy": (1.0, "lay heavy tiles early"),
    "play_doubles": (1.75, "lay doubles while they can be laid"),
    "stop_next": (6.0, "leave ends that make the next opponent pass"),
    "stop_right": (1.6, "leave ends that make the other opponent pass"),
    "serve_partner": (0.6, "leave ends that the partner can play on"),
    "hold_end": (1.4, "open or hold an end that only you can still play on"),
    "guard_doubles": (0.7, "leave open the suits of your own doubles"),
    "cut_doubles": (0.2, "cut off a double that an opponent holds"),
    "close_light": (4.5, "close the line when your pair is the lighter, and only then"),
}

_NO_SUIT = NUM_SUITS  # the end of an empty line
_TILES = np.array([tiles_of(mask) for mask in SUIT_MASK])  # (7, 7) the tiles of each suit, the double among them
_TILE = np.full((NUM_SUITS + 1, NUM_SUITS + 1), 0)  # tile of two suits
_TILE[LOW, HIGH] = _TILE[HIGH, LOW] = np.arange(NUM_TILES)
_DOUBLES = np.append(_TILE[np.arange(NUM_SUITS), np.arange(NUM_SUITS)], 0)  # (8,) the double of each suit
_TINY = np.float32(1e-9)
_LOW, _HIGH, _PIPS = LOW.astype(np.int64), HIGH.astype(np.int64), PIPS.astype(np.float32)


@dataclass
class _View:
    """What a club player reads off its observation; seats are relative, 0 = itself, 1 = the next to play.

    The rows come last, so that a sum over tiles is a sum of long arrays.
    """

    hand: npt.NDArray[np.bool_]  # (28, N)
    unseen: npt.NDArray[np.bool_]  # (28, N) tiles of the set that lie neither in the hand nor on the line
    passed: npt.NDArray[np.bool_]  # (seats, 7, N) suits a seat has passed on: it holds none
    size: Floats  # (seats, N) tiles in each hand
    ends: Ints  # (2, N) suits of the open ends, 7 before the lead
    opened: Floats  # (seats, 8, N) how often each seat has opened a suit; the last suit, none, is 0


@cache
def _layout(rules: Rules, part: str = "played_") -> tuple[Layout, tuple[str, ...]]:
    """The layout of a game and its names for the seats, clockwise from the own one; `part` is a slice that each has."""
    layout = layout_of(rules)
    return layout, tuple(name.removeprefix(part) for name in layout.slices if name.startswith(part))


def _opened(history: npt.NDArray[np.int16] | None, rows: int, seats: int) -> Floats:
    """(seats, 8, rows) float32: how often each seat laid a tile whose outer half is the suit, from public events."""
    shape = (seats, NUM_SUITS + 1, rows)
    if history is None or not len(history):
        return np.zeros(shape, dtype=np.float32)
    past = history[:, : int((history >= 0).any(axis=0).sum())]
    row, ply = np.nonzero((past >= 0) & (past & 63 != PASS))
    event = past[row, ply].astype(np.int64)
    tile, covered = (event & 63) % NUM_TILES, (event >> np.where(event & 63 < NUM_TILES, 9, 6)) & 7
    low, high = _LOW[tile], _HIGH[tile]
    lead = covered == _NO_SUIT  # a lead opens both its halves
    first = np.where(lead, low, low + high - covered)
    seat = (event >> 12) * (NUM_SUITS + 1)
    twice = np.flatnonzero(lead & (low != high))
    place = np.concatenate([(seat + first) * rows + row, ((seat + high) * rows + row)[twice]])
    return np.bincount(place, minlength=math.prod(shape)).reshape(shape).astype(np.float32)


def _view(batch: Decisions, rules: Rules) -> _View:
    layout, seats = _layout(rules)
    if batch.obs.ndim != 2 or batch.obs.shape[1] != layout.size:
        raise ValueError(f"observations of {rules.name} are (N, {layout.size}), not {batch.obs.shape}")
    obs = np.ascontiguousarray(batch.obs.T).view(bool)

    def of(name: str) -> npt.NDArray[np.bool_]:
        return obs[layout.slices[name]]

    seen = of("hand").copy()
    for seat in seats:
        seen |= of(f"played_{seat}")
    ends = [of("end_left"), of("end_right")]
    return _View(
        hand=of("hand"),
        unseen=~seen & (rules.max_pip >= HIGH)[:, None],
        passed=np.stack([of(f"passed_{seat}") for seat in seats]),
        size=np.stack([of(f"size_{seat}").sum(axis=0, dtype=np.float32) for seat in seats]),
        ends=np.stack([np.where(end.any(axis=0), end.argmax(axis=0), _NO_SUIT) for end in ends]),
        opened=_opened(batch.history, len(batch), len(seats)),
    )


def _total(parts: npt.NDArray[Any]) -> Floats:
    """The sum over the first axis, added up in order: `sum(axis=0)` rounds differently at other batch sizes."""
    total = parts[0].astype(np.float32)
    for part in parts[1:]:
        total += part
    return total


def _by_suit(tiles: npt.NDArray[np.bool_]) -> Floats:
    """(28, N) -> (8, N) float32 counts by suit; the last suit, none, has 0."""
    counts = np.zeros((NUM_SUITS + 1, tiles.shape[1]), dtype=np.float32)
    for suit, members in enumerate(_TILES):
        counts[suit] = tiles[members].sum(axis=0, dtype=np.float32)
    return counts


def _chances(view: _View) -> Floats:
    """(seats, 28, N) float32: the chance that a tile lies in each other seat's hand; the own seat's are 0.

    Every unseen tile is shared out among the hands that may hold it, by their sizes; then the shares are scaled to the
    sizes, twice. Tiles that nobody was dealt count as one more hand.
    """
    may = view.unseen & ~(view.passed[:, _LOW] | view.passed[:, _HIGH])
    may[0] = view.unseen  # the own place stands for what nobody was dealt
    size = view.size.copy()
    size[0] = np.maximum(view.unseen.sum(axis=0, dtype=np.float32) - _total(size[1:]), 0)
    share = may * size[:, None]
    for _ in range(2):
        share /= np.maximum(_total(share), _TINY)
        share *= (size / np.maximum(_total(share.swapaxes(0, 1)), _TINY))[:, None]
    share[0] = 0
    return np.minimum(share, 1, out=share)


def _lacks(chance: Floats) -> Floats:
    """(seats, 8, N) float32: the chance that a seat holds no tile of a suit, by `_chances`; the last suit, none, 1."""
    seats, _, rows = chance.shape
    missing = 1 - chance
    lacks = np.ones((seats, NUM_SUITS + 1, rows), dtype=np.float32)
    for suit, members in enumerate(_TILES):
        for tile in members:
            lacks[:, suit] *= missing[:, tile]
    return lacks


def checked_weights(
    player: str, kind: str, known: dict[str, tuple[float, str]], given: dict[str, float]
) -> dict[str, float]:
    """All weights of a player, those that are not given at their default.

    Args:
        player: its name; kind: what it calls a weight, for the errors.
        known: name -> (default, what it says).
        given: name -> weight.
    Raises:
        ValueError: an unknown name, or a weight that is no finite number.
    """
    for name in given:
        if name not in known:
            raise ValueError(f"{player} has no {kind} {name!r}; {kind}s are {', '.join(known)}")
        value: Any = given[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"the weight of {name} must be a finite number, not {value!r}")
    return {name: float(given.get(name, weight)) for name, (weight, _) in known.items()}


def weigh(worth: Floats, weights: dict[str, float], columns: dict[str, Floats]) -> Floats:
    """`worth` (M,) and the weighted columns (M,) of the rules, added up in the order of the weights."""
    for name, weight in weights.items():
        if weight:
            worth += np.float32(weight) * columns[name]
    return worth


def best_action(count: int, rows: Ints, actions: Ints, worth: Floats) -> Ints:
    """(count,) the action of the highest worth of each row, of equals the lowest id; PASS where a row has none.

    Args:
        rows: (M,) ascending; actions: (M,) and worth: (M,) of each.
    """
    answer = np.full(count, PASS, dtype=np.int64)
    if len(rows):
        first = np.flatnonzero(np.diff(rows, prepend=-1))  # where each row's actions begin
        best = np.maximum.reduceat(worth, first)
        runs = np.diff(first, append=len(rows))
        chosen = np.where(worth == np.repeat(best, runs), actions, DRAW + 1)
        answer[rows[first]] = np.minimum.reduceat(chosen, first)
    return answer


class Club:
    """Follows the maxims of good pair play; each is a weight, 0 switches it off ("club:repeat_partner=0")."""

    name = "club"
    needs_history = True

    def __init__(self, **weights: float) -> None:
        """Take weights by maxim, see `MAXIMS`; those left out keep their default.

        Raises:
            ValueError: an unknown maxim, or a weight that is no finite number.
        """
        self.weights = checked_weights("club", "maxim", MAXIMS, weights)

    def check(self, rules: Rules) -> None:
        """Refuse a game with several tiles a turn, or without an open hand, by a ValueError."""
        if rules.chains or rules.rows:
            games = ", ".join(name for name, one in PRESETS.items() if not one.chains and not one.rows)
            raise ValueError(f"club plays games with one tile a turn on an open line ({games}), not {rules.name}")

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64: the lay of the highest worth; of equals the lower action id; a pass where there is no lay."""
        rows, actions, columns = self.columns(batch)
        worth = weigh(np.zeros(len(rows), dtype=np.float32), self.weights, columns)
        return best_action(len(batch), rows, actions, worth)

    def probabilities(self, batch: Decisions) -> npt.NDArray[np.float64]:
        """(N, actions) float64: 1 for what `act` answers, which is certain; else 0."""
        return one_hot(self.act(batch), batch.mask.shape[1])

    def columns(self, batch: Decisions) -> tuple[Ints, Ints, dict[str, Floats]]:
        """What each maxim says of each legal lay.

        Returns:
            rows (M,) ascending and actions (M,) of all legal lays, and for every maxim its (M,) float32 column.
        """
        rules = PRESETS["sport_book"] if batch.rules is None else batch.rules
        self.check(rules)
        seats, pairs = rules.seats, rules.pairs
        opponents = [1, 3] if pairs else list(range(1, seats))
        view = _view(batch, rules)
        hand, unseen, chance = _by_suit(view.hand), _by_suit(view.unseen), _chances(view)
        lacks = _lacks(chance)
        foes = _total(view.opened[opponents])
        friend = view.opened[2] if pairs else np.zeros_like(foes)

        rows, actions = np.nonzero(batch.mask[:, :PASS])
        tile, side = actions % NUM_TILES, actions // NUM_TILES
        low, high = _LOW[tile], _HIGH[tile]
        covers, keeps = view.ends[side, rows], view.ends[1 - side, rows]
        lead = covers == _NO_SUIT
        opens = np.where(lead, low, low + high - covers)
        keeps = np.where(lead, high, keeps)  # a lead opens both its halves
        equal = opens == keeps
        joint = _TILE[opens, keeps]  # the tile that fits both new ends

        # What is left in the own hand.
        fit_opens = hand[opens, rows] - ((low == opens) | (high == opens))
        fit_keeps = hand[keeps, rows] - ((low == keeps) | (high == keeps))
        fits = np.where(equal, fit_opens, fit_opens + fit_keeps - (view.hand[joint, rows] & (joint != tile)))
        variety = (hand > 0).sum(axis=0, dtype=np.float32)[rows]
        variety -= hand[low, rows] == 1
        variety -= (hand[high, rows] == 1) & ~_DOUBLE[tile]
        doubles = view.hand[_DOUBLES[opens], rows] & (_DOUBLES[opens] != tile)
        doubles = doubles + (view.hand[_DOUBLES[keeps], rows] & (_DOUBLES[keeps] != tile) & ~equal).astype(np.float32)
        alone = ((unseen[opens, rows] == 0) & (fit_opens > 0)).astype(np.float32)
        alone += (unseen[keeps, rows] == 0) & (fit_keeps > 0) & ~equal

        # What the others can do about the new ends; a closed line is one that nobody can.
        stuck = {seat: _stuck(lacks[seat], chance[seat], rows, opens, keeps, joint) for seat in range(1, seats)}
        closed = (fits == 0).astype(np.float32)
        for one in stuck.values():
            closed *= one
        pips = _total(chance.swapaxes(0, 1) * _PIPS[:, None, None])
        if pairs:
            theirs = pips[1] + pips[3] - pips[2]
        else:
            theirs = pips[1:].min(axis=0)
        own = _total(view.hand * _PIPS[:, None])
        lighter = (theirs - own)[rows] + _PIPS[tile]

        # A double is cut off where the covered suit has no other tile left than its double.
        double = _DOUBLES[covers]
        cut = ~lead & (hand[covers, rows] == 1) & (unseen[covers, rows] == 1) & view.unseen[double, rows]
        holders = _total(chance[opponents]) - (chance[2] if pairs else 0)

        nothing = np.zeros(len(rows), dtype=np.float32)
        return (
            rows,
            actions,
            {
                "keep_long": fits,
                "stay_in_play": -(fits == 0).astype(np.float32),
                "keep_variety": variety,
                "repeat_partner": friend[opens, rows],
                "spare_partner": -friend[covers, rows],
                "cut_opponents": foes[covers, rows],
                "starve_opponents": -foes[opens, rows],
                "play_heavy": _PIPS[tile] / 6,
                "play_doubles": _DOUBLE[tile].astype(np.float32),
                "stop_next": stuck[1],
                "stop_right": stuck[seats - 1] if seats > 2 else nothing,
                "serve_partner": -stuck[2] if pairs else nothing,
                "hold_end": alone,
                "guard_doubles": doubles,
                "cut_doubles": cut * holders[double, rows],
                "close_light": closed * lighter / 10,
            },
        )


def _stuck(lacks: Floats, chance: Floats, rows: Ints, one: Ints, two: Ints, joint: Ints) -> Floats:
    """(M,) chance that a seat has no tile for two ends; `joint` is the tile that fits both and is counted once."""
    first, second, rest = lacks[one, rows], lacks[two, rows], 1 - chance[joint, rows]
    apart = (one != two) & (rest > 0)
    return np.where(apart, first * second / np.where(apart, rest, 1), np.minimum(first, second))


register_agent("random", Random)
register_agent("greedy", greedy)
register_agent("double_first", double_first)
register_agent("club", Club)
