"""counter: a rule player of blitz, which counts the tiles and looks at all that it can lay in its turn.

For every way in which its turn may go on, the tiles that are left and the two ends, it weighs what it keeps, what the
others can do there by the tiles that are out and by their passes, and what the deal would cost; then it lays the first
tile of the best way, or stops. It answers whole batches by arrays, and an answer depends on its row alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from agents.base import Decisions, one_hot, register_agent
from agents.baselines import (
    _HIGH,
    _LOW,
    _NO_SUIT,
    _PIPS,
    _TILE,
    Floats,
    Ints,
    _by_suit,
    _chances,
    _lacks,
    _total,
    _view,
    best_action,
    checked_weights,
    weigh,
)
from agents.lines import NO_TILE, Ends, lay, lay_left, lay_right, lines_of, one_line
from domino_env.rules import Rules
from domino_env.tiles import NUM_SUITS, NUM_TILES, PASS, SUIT_MASK, pips_of

# name: (weight, what the rule says). A weight is points of worth for one unit of the rule's column in `Counter.plans`.
RULES: dict[str, tuple[float, str]] = {
    "lay_pips": (6.0, "get rid of pips"),
    "lay_tiles": (1.0, "get rid of tiles"),
    "stop": (0.0, "stop now rather than go on"),
    "keep_fits": (0.5, "keep tiles that match the ends"),
    "stay_in_play": (1.0, "keep one at least"),
    "keep_variety": (0.3, "keep many different suits"),
    "no_dead_tiles": (1.0, "keep no tile that nothing can ever match any more"),
    "hold_end": (1.0, "hold an end that nobody else can play on"),
    "stop_next": (2.0, "leave ends that make the next seat pass"),
    "stop_others": (1.0, "the same for the other seats"),
    "serve_partner": (1.0, "leave ends that the partner can play on"),
    "close_light": (3.0, "close the line when the own hand is the lightest, and only then"),
}
_SURE = 1000.0  # worth of going out
_SUITS = np.append(SUIT_MASK, np.uint32(0))  # (8,) tiles of each suit, the last is none


class Counter:
    """Counts tiles in blitz and plans its whole turn; each rule is a weight, 0 switches it off ("counter:stop=0.5")."""

    name = "counter"

    def __init__(self, **weights: float) -> None:
        """Take weights by rule, see `RULES`; those left out keep their default.

        Raises:
            ValueError: an unknown rule, or a weight that is no finite number.
        """
        self.weights = checked_weights("counter", "rule", RULES, weights)

    def check(self, rules: Rules) -> None:
        """Refuse a game in which a turn is one tile, or hands lie hidden, by a ValueError."""
        if not rules.chains:
            raise ValueError(f"counter plays games with several tiles a turn (blitz), not {rules.name}")

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64: the action that begins the best plan; of equals the lower id."""
        rows, actions, which, columns = self.plans(batch)
        worth = weigh(np.float32(_SURE) * columns["out"], self.weights, columns)
        best = np.full(len(rows), -np.inf, np.float32)  # of an action without a plan: a pass before the lead
        first = np.flatnonzero(np.diff(which, prepend=-1))
        if len(first):
            best[which[first]] = np.maximum.reduceat(worth, first)
        return best_action(len(batch), rows, actions, best)

    def probabilities(self, batch: Decisions) -> npt.NDArray[np.float64]:
        """(N, actions) float64: 1 for what `act` answers, which is certain; else 0."""
        return one_hot(self.act(batch), batch.mask.shape[1])

    def plans(self, batch: Decisions) -> tuple[Ints, Ints, Ints, dict[str, Floats]]:
        """All that can come of a turn: which tiles may be left in the end, and where the ends lie.

        Returns:
            rows (M,) ascending and actions (M,) of all legal actions; action (P,) ascending, 0..M - 1, that each plan
            begins with; and for every rule its (P,) float32 column, with "out" beside them for plans that go out.
        """
        rules = batch.rules
        if rules is None:
            raise ValueError("the counter player needs batch.rules")
        self.check(rules)
        seats = rules.seats
        view = _view(batch, rules)
        rows, actions = np.nonzero(batch.mask)
        held = _masks(view.hand)
        lays = actions < PASS
        tile = np.where(lays, actions % NUM_TILES, 0)
        left, right = view.ends[:, rows]
        lead = lays & (left == _NO_SUIT)
        at_left, at_right = lays & ~lead & (actions < NUM_TILES), lays & (actions >= NUM_TILES)
        pips = _PIPS[tile].astype(np.int64)
        left = np.where(lead, _LOW[tile], np.where(at_left, pips - left, left))
        right = np.where(lead, _HIGH[tile], np.where(at_right, pips - right, right))
        rest = held[rows] ^ np.where(lays, np.uint32(1) << tile.astype(np.uint32), np.uint32(0))
        plan, rest, left, right = _go_on(rest, left, right, lays, lead | at_left, lead | at_right, rules)

        rows_of = rows[plan]
        pair = _TILE[left, right]
        equal = left == right
        unseen, chance = _by_suit(view.unseen), _chances(view)
        stuck = _stuck_on(chance)
        fits = np.bitwise_count(rest & (_SUITS[left] | _SUITS[right])).astype(np.float32)
        variety, alive = np.zeros(len(plan), np.float32), np.zeros(len(plan), np.uint32)
        for suit in range(NUM_SUITS):
            mine = np.bitwise_count(rest & _SUITS[suit])
            variety += mine > 0
            can = (unseen[suit, rows_of] > 0) | (mine > 1) | (left == suit) | (right == suit)
            alive |= can * _SUITS[suit]
        alone = ((unseen[left, rows_of] == 0) & (rest & _SUITS[left] != 0)).astype(np.float32)
        alone += (unseen[right, rows_of] == 0) & (rest & _SUITS[right] != 0) & ~equal

        opponents = [1, 3] if rules.pairs else list(range(1, seats))
        passes = stuck[:, pair, rows_of]  # (seats, P)
        closed = (fits == 0).astype(np.float32)
        for seat in range(1, seats):
            closed *= passes[seat]
        heavy = _total(chance.swapaxes(0, 1) * _PIPS[:, None, None])  # (seats, N) pips that each seat may hold
        theirs = heavy[1] + heavy[3] - heavy[2] if rules.pairs else heavy[1:].min(axis=0)
        own = pips_of(rest).astype(np.float32)
        nothing = np.zeros(len(plan), np.float32)
        return (
            rows,
            actions,
            plan,
            {
                "out": (rest == 0).astype(np.float32),
                "lay_pips": -own / 6,
                "lay_tiles": -np.bitwise_count(rest).astype(np.float32),
                "stop": (~lays[plan]).astype(np.float32),
                "keep_fits": fits,
                "stay_in_play": -(fits == 0).astype(np.float32),
                "keep_variety": variety,
                "no_dead_tiles": -np.bitwise_count(rest & ~alive).astype(np.float32),
                "hold_end": alone,
                "stop_next": passes[1],
                "stop_others": _total(passes[opponents[1:]]) / (len(opponents) - 1),
                "serve_partner": -passes[2] if rules.pairs else nothing,
                "close_light": closed * (theirs[rows_of] - own) / 10,
            },
        )


def _masks(tiles: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """(28, N) -> (N,) masks."""
    masks = np.zeros(tiles.shape[1], np.uint32)
    for tile, holds in enumerate(tiles):
        masks |= holds * np.uint32(1 << tile)
    return masks


def _stuck_on(chance: Floats) -> Floats:
    """(seats, 28, N) the chance that a seat has no tile for two ends, by the tile that fits both."""
    lacks = _lacks(chance)
    low, high = lacks[:, _LOW], lacks[:, _HIGH]
    rest = 1 - chance
    apart = (_LOW != _HIGH)[:, None] & (rest > 0)
    return np.where(apart, low * high / np.where(apart, rest, 1), np.minimum(low, high))


def _go_on(
    rest: npt.NDArray[np.uint32],
    left: Ints,
    right: Ints,
    more: npt.NDArray[np.bool_],
    grows_left: npt.NDArray[np.bool_],
    grows_right: npt.NDArray[np.bool_],
    rules: Rules,
) -> tuple[Ints, npt.NDArray[np.uint32], Ints, Ints]:
    """All positions in which a turn may end (B3), from M positions on.

    Args:
        rest: (M,) masks of the hand; left, right: (M,) the ends; more: (M,) whether the turn goes on at all.
        grows_left, grows_right: (M,) ends that the turn may grow with `chain="one"`.
    Returns:
        position (P,) ascending that each comes from, and its rest, left and right.
    """
    # The tiles that may follow, the lowest first.
    remain = np.where(more, rest, np.uint32(0))
    most = int(np.bitwise_count(remain).max(initial=0))
    bits, tiles = np.zeros((most, len(rest)), np.uint32), np.full((most, len(rest)), NO_TILE)
    for k in range(most):
        bits[k] = remain & (~remain + np.uint32(1))
        tiles[k] = np.where(bits[k] > 0, np.bitwise_count(bits[k] - np.uint32(1)), NO_TILE)
        remain ^= bits[k]
    start = one_line(left, right)
    if rules.chain == "both":
        sets = _ways(start, tiles, lay)
    else:
        sets = _ways(np.where(grows_left, start, np.uint64(0)), tiles, lay_left)
        sets |= _ways(np.where(grows_right, start, np.uint64(0)), tiles, lay_right)
        sets[0] = start
    laid, position = np.nonzero(sets)
    found, left, right = lines_of(sets[laid, position])
    laid, position = laid[found], position[found]
    order = np.argsort(position, kind="stable")
    laid, position, left, right = laid[order], position[order], left[order], right[order]
    rest = rest[position]
    for k in range(most):
        rest = rest ^ bits[k, position] * (laid >> k & 1).astype(np.uint32)
    return position, rest, left, right


def _ways(start: Ends, tiles: Ints, move: Callable[[Ends, Ints], Ends]) -> Ends:
    """Where the ends may lie when some tiles have been laid, in whichever order.

    Args:
        start: (M,) sets of ends; tiles: (K, M); move: lays a tile.
    Returns:
        (2 ** K, M) sets of ends, by which of the K tiles are laid: bit k of the first index for tile k.
    """
    sets = np.zeros((1 << len(tiles), len(start)), np.uint64)
    sets[0] = start
    for laid in range(len(sets)):
        some = np.flatnonzero(sets[laid])
        for k in range(len(tiles)) if len(some) else ():
            if not laid >> k & 1:
                sets[laid | 1 << k, some] |= move(sets[laid, some], tiles[k, some])
    return sets


register_agent("counter", Counter)
