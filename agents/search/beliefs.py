"""What a viewer may believe about hidden hands, and the belief that follows from the rules alone, exactly.

By the rules alone every deal of the hidden tiles that fits what is public and the viewer's own hand is as likely as any
other: the shuffle is uniform, and nothing is read from what a seat chose to lay. A deal fits where

1. the seats hold as many tiles as they do, and the tiles that nobody was dealt are as many as the game leaves over;
2. no seat holds a suit that was open when it passed (S3);
3. the tile that leads is where the rules want it (K1: before the lead, 6-6 is with the leader; B2: no tile below the
   one that led was dealt, and before the lead the leader holds the lowest);
4. some hand can play on the open ends, as the deal goes on (S5, B4);
5. no hand, with what its seat has laid, would have been dealt again (S4), where that clause was in force.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.search.counting import count_rows, sample_rows, weighted
from agents.search.kernels import cores
from agents.search.position import Position
from domino_env.deals import struck
from domino_env.tiles import LOW, NUM_SUITS, NUM_TILES, PIPS, SUIT_MASK, mask_of

Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.uint32]

_SIX_SIX = np.uint32(1 << NUM_TILES - 1)
_TILES = np.arange(NUM_TILES, dtype=np.uint32)
# By tile, and at 28 for "no tile":
_BIT = np.append(np.uint32(1) << _TILES, np.uint32(0))
_RANK = np.append(PIPS.astype(np.int64) * 8 + LOW, 1 << 10)  # B2: by pips, then by the smaller suit
_BELOW = np.array([*(mask_of(np.flatnonzero(rank > _RANK)) for rank in _RANK[:NUM_TILES]), 0], np.uint32)
_LOWEST_FIRST = _RANK[:NUM_TILES].argsort()
_VOID = np.array(  # suits as bits -> all their tiles
    [np.bitwise_or.reduce(SUIT_MASK[[k for k in range(NUM_SUITS) if bits >> k & 1]], initial=0) for bits in range(128)],
    np.uint32,
)
_SPREAD = 20_000  # worlds or rows from which on several threads are worth it


class Belief(ABC):
    """A probability over the hidden hands of N positions."""

    def __init__(self, position: Position) -> None:
        """A belief about these positions; `ess` is infinite until a belief that is sampled says otherwise."""
        self.position = position
        self.ess: Floats = np.full(len(position), np.inf)  # (N,) effective number of samples; inf where exact

    def __len__(self) -> int:
        return len(self.position)

    @abstractmethod
    def marginals(self) -> Floats:
        """P(group holds tile): (N, seats + 1, 28) float64; the last group: nobody was dealt it.

        The viewer's own row is 0 or 1, and tiles on the line are with nobody.
        """

    @abstractmethod
    def holds(self) -> Floats:
        """P(seat holds at least one tile of suit k): (N, seats, 7) float64; the viewer's own row is 0 or 1."""

    @abstractmethod
    def entropy(self) -> Floats:
        """Entropy of the hidden hands in bits: (N,) float64."""

    @abstractmethod
    def log2_probability(self, hands: Masks) -> Floats:
        """log2 of the probability of these hands.

        Args:
            hands: (N, seats) uint32 masks, the viewer's own included.
        Returns:
            (N,) float64, -inf where they cannot be.
        """

    @abstractmethod
    def sample(self, worlds: int, keys: npt.NDArray[np.uint64], start: int = 0) -> Masks:
        """Independent hands drawn from the belief.

        Args:
            worlds: how many of each position; keys: (N,) uint64, the random stream of each row.
            start: number of the first; world number w of a key is the same however many are asked for.
        Returns:
            (N, worlds, seats) uint32 masks, the viewer's own hand included.
        """

    def own_marginals(self) -> Floats:
        """What is known for certain: (N, seats + 1, 28) float64, the viewer's own hand and else 0."""
        out = np.zeros((len(self), self.position.rules.seats + 1, NUM_TILES))
        rows = np.flatnonzero(self.position.viewer >= 0)
        out[rows, self.position.viewer[rows]] = self.position.own[rows, None] >> _TILES & 1
        return out

    def _hands(self, hands: Masks) -> Masks:
        hands = np.asarray(hands)
        expected = (len(self), self.position.rules.seats)
        if hands.shape != expected or hands.dtype.kind not in "iu":
            raise ValueError(f"hands must be {expected} masks of tiles, not {hands.dtype} {hands.shape}")
        return hands.astype(np.uint32)

    def _keys(self, worlds: int, keys: npt.NDArray[np.uint64], start: int) -> npt.NDArray[np.uint64]:
        if worlds < 1 or start < 0:
            raise ValueError(f"worlds={worlds!r} must be at least 1 and start={start!r} at least 0")
        keys = np.asarray(keys)
        if keys.shape != (len(self),) or keys.dtype != np.uint64:
            raise ValueError(f"keys must be ({len(self)},) uint64, not {keys.dtype} {keys.shape}")
        return keys


def world_marginals(position: Position, rows: npt.NDArray[Any], hands: Masks, weights: Floats) -> tuple[Floats, Floats]:
    """Marginals and holds by weighted hands, as `Belief.marginals` and `Belief.holds` give them.

    Args:
        rows: (M,) row of the position of each world; hands: (M, seats) uint32; weights: (M,) >= 0, not all 0 in a row;
        they need not add up to 1.
    Returns:
        (N, seats + 1, 28) and (N, seats, 7) float64.
    """
    n, seats = len(position), position.rules.seats
    tiles, suits = np.zeros((n, seats, NUM_TILES)), np.zeros((n, seats, NUM_SUITS))
    rows = np.ascontiguousarray(rows, np.int64)
    weights = np.ascontiguousarray(weights, np.float64)
    weighted(rows, np.ascontiguousarray(hands, np.uint32), weights, tiles, suits)
    total = np.bincount(rows, weights, minlength=n)
    if not (total > 0).all():
        raise ValueError(f"the worlds of row {int((total > 0).argmin())} have no weight")
    tiles /= total[:, None, None]
    suits /= total[:, None, None]
    hidden = position.hidden[:, None] >> _TILES & 1
    rest = np.maximum(hidden - (tiles * hidden[:, None]).sum(axis=1), 0)
    return np.concatenate([tiles, rest[:, None]], axis=1), suits


class _Cases:
    """The hidden tiles of N positions as counting problems: one for most rows, several where the lead is to come (B2).

    Exactly one case of a row is true. Each has for every group which tiles it may hold and how many it holds.
    """

    def __init__(self, position: Position) -> None:
        rules, n = position.rules, len(position)
        groups = rules.seats + 1
        line = np.arange(n)
        hidden, viewer, played = position.hidden, position.viewer, position.played
        sizes = np.empty((n, groups), np.int64)
        sizes[:, :-1], sizes[:, -1] = position.sizes, rules.leftover
        seen = np.flatnonzero(viewer >= 0)
        sizes[seen, viewer[seen]] = 0
        may = np.empty((n, groups), np.uint32)
        may[:, :-1], may[:, -1] = hidden[:, None] & ~_VOID[position.voids & 127], hidden
        lead = position.ends[:, 0] < 0  # the lead is to come
        self.row = line
        if rules.lead == "double_six":
            # A leader who was given, and does not hold 6-6, may lead anything; the others see that if they hold it.
            bound = np.flatnonzero(lead & (viewer != position.leader) & (hidden & _SIX_SIX != 0))
            others = np.arange(groups) != position.leader[bound, None]
            may[bound] &= ~(_SIX_SIX * others.astype(np.uint32))
        elif rules.lead == "low":
            may, sizes = self._lowest(position, may, sizes, lead)
        self.may, self.sizes = may.astype(np.int64), np.ascontiguousarray(sizes)
        self.hidden = hidden[self.row].astype(np.int64)
        self.played = np.zeros((len(self.row), groups), np.int64)
        self.played[:, :-1] = played[self.row]
        self.reach = self._reach(position)[self.row]
        self.first = np.searchsorted(self.row, np.arange(n + 1))

    def _lowest(
        self, position: Position, may: Masks, sizes: npt.NDArray[np.int64], before: npt.NDArray[np.bool_]
    ) -> tuple[Masks, npt.NDArray[np.int64]]:
        """B2: what is lower than the tile that leads was dealt to nobody; a case for each tile that may lead."""
        rules = position.rules
        on_line = np.bitwise_or.reduce(position.played, axis=1)
        known = on_line | position.own
        # After the lead it is the lowest on the line, before it the lowest of the leader's hand.
        lowest = _lowest_of(np.where(before, position.own, on_line))
        told = ~before | (position.viewer == position.leader)
        fits = told & (known & _BELOW[lowest] == 0)
        rows, tiles = [np.flatnonzero(fits)], [lowest[fits]]
        # Else the leader holds one of the lowest hidden tiles, lower than all that the viewer holds.
        left, bound = np.where(told, np.uint32(0), position.hidden), _RANK[_lowest_of(known)]
        for _ in range(rules.leftover + 1):
            tile = _lowest_of(left)
            some = np.flatnonzero((left != 0) & (_RANK[tile] < bound))
            rows.append(some)
            tiles.append(tile[some])
            left = left & ~_BIT[tile]
        row, tile = np.concatenate(rows), np.concatenate(tiles)
        order = np.argsort(row, kind="stable")
        self.row, tile = row[order], tile[order]
        may, sizes = may[self.row], sizes[self.row]
        may[:, :-1] &= ~_BELOW[tile][:, None]
        held = np.flatnonzero(before[self.row] & (position.viewer[self.row] != position.leader[self.row]))
        others = np.arange(rules.seats + 1) != position.leader[self.row[held], None]
        may[held] &= ~(_BIT[tile[held], None] * others.astype(np.uint32))
        return may, sizes

    def _reach(self, position: Position) -> npt.NDArray[np.int64]:
        """(N,) the tiles of which some hidden hand holds one (S5); 0 where the viewer's own hand can play on."""
        ends = position.ends
        suits = np.where(ends >= 0, np.int64(1) << np.maximum(ends, 0), 0)
        reach = _VOID[suits[:, 0] | suits[:, 1]]
        return np.where(reach & position.own != 0, 0, reach).astype(np.int64)

    def arguments(self, redeal: npt.NDArray[np.bool_]) -> tuple[Any, ...]:
        """What the compiled loops take; redeal: (N,) whether S4 was in force."""
        return self.may, self.sizes, self.hidden, self.played, redeal[self.row], self.reach

    def add(self, values: Floats, n: int) -> Floats:
        """Sums over the cases of each row: (N, ...)."""
        if len(self.row) == n and (self.row == np.arange(n)).all():
            return values
        out = np.zeros((n, *values.shape[1:]))
        np.add.at(out, self.row, values)
        return out


def _lowest_of(masks: Masks) -> npt.NDArray[np.int64]:
    """Number of the lowest tile of each mask (B2): (n,), 28 where there is none."""
    held = masks[:, None] >> _LOWEST_FIRST.astype(np.uint32) & 1
    return np.where(masks != 0, _LOWEST_FIRST[held.argmax(axis=1)], NUM_TILES)


class RulesBelief(Belief):
    """By the rules alone: every deal that fits what is known is as likely as any other. Exact."""

    def __init__(self, position: Position, redeal: bool | None = None) -> None:
        """Count the deals.

        Args:
            position: N positions of a game on an open line.
            redeal: whether struck hands were dealt again (S4); None: as the rules of the game say. It is taken for
                off in the rows in which what is known shows that it was (a struck hand was dealt, or must have been):
                their deals were given.

        Raises:
            ValueError: a blind game, a deal that is over, or a row that no deal fits.
        """
        super().__init__(position)
        rules = position.rules
        if rules.rows:
            raise ValueError(f"beliefs are for games on an open line, not for {rules.name}")
        asked = rules.redeal if redeal is None else redeal
        if asked and (rules.kind != "line" or rules.hand_size > 7):
            raise ValueError(f"redeal=True is for line games with hands of 7 tiles or fewer, not for {rules.name}")
        _check_open(position)
        n = len(position)
        self.cases = _Cases(position)
        self.redeal = np.full(n, asked)  # (N,) whether S4 is counted on
        if asked:
            self.redeal &= ~struck(self._dealt(position.own))
        self._base = self._count("total", np.zeros(n, bool), free=True)  # of each case: the weights of the sampler
        self._total = self._sum(self._count("total", self.redeal))
        off = np.flatnonzero(self.redeal & ~(self._total > 0))
        if len(off):
            self.redeal[off] = False
            self._total = self._sum(self._count("total", self.redeal))
        if not (self._total > 0).all():
            raise ValueError(f"no deal fits what row {int((self._total > 0).argmin())} says")

    def _dealt(self, own: Masks) -> Masks:
        """(N, seats) what each seat is known to have been dealt."""
        dealt = self.position.played.copy()
        rows = np.flatnonzero(self.position.viewer >= 0)
        dealt[rows, self.position.viewer[rows]] |= own[rows]
        return dealt

    def _sum(self, values: Floats) -> Floats:
        return self.cases.add(values, len(self))

    def _count(self, what: str, redeal: npt.NDArray[np.bool_], free: bool = False) -> Floats:
        """Numbers of deals of each case: in all ("total"), by who holds what tile or who lacks what suit; free: any."""
        m, seats = len(self.cases.row), self.position.rules.seats
        shapes = {"total": (m,), "marginals": (m, seats + 1, NUM_TILES), "lacks": (m, seats, NUM_SUITS)}
        outs = {name: np.empty(shape if name == what else (0, *shape[1:])) for name, shape in shapes.items()}
        *arguments, reach = self.cases.arguments(redeal)
        work = m * {"total": 1, "marginals": 5, "lacks": 20}[what]
        spread(count_rows, m, work, *arguments, np.zeros_like(reach) if free else reach, *outs.values())
        return outs[what]

    def total(self) -> Floats:
        """Number of deals of the hidden tiles that fit: (N,) float64, exact below 2 ** 53."""
        return self._total.copy()

    def entropy(self) -> Floats:
        """log2 of the number of deals that fit: (N,) float64 bits."""
        return np.log2(self._total)

    def marginals(self) -> Floats:
        """P(group holds tile): (N, seats + 1, 28) float64, exact; the last group: nobody was dealt it."""
        counts = self._sum(self._count("marginals", self.redeal))
        return self.own_marginals() + np.clip(counts / self._total[:, None, None], 0, 1)

    def holds(self) -> Floats:
        """P(seat holds at least one tile of suit k): (N, seats, 7) float64, exact."""
        position = self.position
        counts = self._sum(self._count("lacks", self.redeal))
        out = np.clip(1 - counts / self._total[:, None, None], 0, 1)
        rows = np.flatnonzero(position.viewer >= 0)
        out[rows, position.viewer[rows]] = position.own[rows, None] & SUIT_MASK != 0
        return out

    def log2_probability(self, hands: Masks) -> Floats:
        """Minus the entropy where the hands fit, else -inf: (N,) float64. Hands as of `Belief.log2_probability`."""
        return np.where(self.fits(self._hands(hands)), -np.log2(self._total), -np.inf)

    def fits(self, hands: Masks) -> npt.NDArray[np.bool_]:
        """Whether these hands fit what is known: (N,) bool, from (N, seats) uint32 masks, the viewer's own included."""
        hands, position, cases = self._hands(hands), self.position, self.cases
        rows = np.flatnonzero(position.viewer >= 0)
        fine = np.ones(len(self), bool)
        fine[rows] = hands[rows, position.viewer[rows]] == position.own[rows]
        others = hands.copy()
        others[rows, position.viewer[rows]] = 0
        held = np.bitwise_or.reduce(others, axis=1)
        rest = position.hidden & ~held
        fine &= (np.bitwise_count(hands) == position.sizes).all(axis=1)
        fine &= np.bitwise_count(held) == np.bitwise_count(others).sum(axis=1)
        fine &= np.bitwise_count(rest) == position.rules.leftover
        groups = np.concatenate([others, rest[:, None]], axis=1)[cases.row].astype(np.int64)
        one = (groups & ~cases.may == 0).all(axis=1)
        one &= (cases.reach == 0) | (groups[:, :-1] & cases.reach[:, None] != 0).any(axis=1)
        if self.redeal.any():
            fine &= ~(self.redeal & struck(np.where(fine[:, None], hands | position.played, np.uint32(0))))
        return fine & (np.bincount(cases.row, one, minlength=len(self)) > 0)

    def sample(self, worlds: int, keys: npt.NDArray[np.uint64], start: int = 0) -> Masks:
        """Independent deals, each that fits as likely as any other; as of `Belief.sample`."""
        keys, cases, position = self._keys(worlds, keys, start), self.cases, self.position
        n, seats = len(self), position.rules.seats
        drawn = np.empty((n, worlds, seats + 1), np.int64)
        # What rejects no world need not be looked at.
        binds = (self._sum(self._base) != self._total) | (self._total >= 2.0**53)
        *arguments, reach = cases.arguments(self.redeal & binds)
        arguments.append(np.where(binds[cases.row], reach, 0))
        spread(sample_rows, n, n * worlds, cases.first, self._base, *arguments, keys, start, drawn)
        hands = drawn[:, :, :seats].astype(np.uint32)
        rows = np.flatnonzero(position.viewer >= 0)
        hands[rows, :, position.viewer[rows]] = position.own[rows, None]
        return hands


def _check_open(position: Position) -> None:
    """Refuse rows whose deal is seen to be over, by a ValueError."""
    out = position.sizes == 0
    if out.any():
        row = int(out.any(axis=1).argmax())
        raise ValueError(f"the deal of row {row} is over: seat {int(out[row].argmax())} holds no tile")
    ends = np.maximum(position.ends, 0)
    fit = SUIT_MASK[ends[:, 0]] | SUIT_MASK[ends[:, 1]]
    blocked = (position.ends[:, 0] >= 0) & ((position.hidden | position.own) & fit == 0)
    if blocked.any():
        raise ValueError(f"the deal of row {int(blocked.argmax())} is over: no tile matches an end")


def spread(loop: Callable[..., None], rows: int, work: int, *arguments: Any) -> None:
    """Run a compiled loop over all rows, on all cores where there is much to do; the result does not depend on them."""
    workers = cores()
    parts = min(rows, 4 * workers) if workers > 1 and work >= _SPREAD else 1
    if parts < 2:
        loop(0, rows, *arguments)
        return
    bounds = np.linspace(0, rows, parts + 1).astype(int).tolist()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda begin, end: loop(begin, end, *arguments), bounds[:-1], bounds[1:]))
