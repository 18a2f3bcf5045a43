"""What an observer thinks that who decides may hold: hand by hand, by the rules, by a reference, and by who plays.

The likelihood of a hand is a factor of its own in the belief (`agents.search.reading`), so one sum over all deals, with
the decider's factor left out, serves for every way to take the decider: its factor is put in afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import cast

import numpy as np
import numpy.typing as npt

from agents.search.asking import answers
from agents.search.position import Position
from agents.search.reading import ExactBelief, Model, SplitBelief, log_factors, policy_belief
from domino_env.deals import row_keys
from experiments.signaling.record import Moments

Bits = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]

WORLDS = 4000  # of a sampled belief
_HANDS = 1 << 15  # looked at together
_DENSE = 20  # hidden tiles up to which a belief may be exact
_SALT = 6  # the family of random streams of these beliefs


@dataclass(frozen=True)
class HandLists:
    """Beliefs of one observer about the deciders of N decisions; hands as before the decision."""

    row: Ints  # (K,) decision, ascending; each has entries
    hand: Masks  # (K,); sampled, the same hand may stand several times
    rules: Floats  # (K,) probability by the rules alone, of each decision 1 in all
    true: Floats  # (K,) by how all play
    reference: Floats  # (K,) the same, but the decider taken for the reference; all 0 where that cannot have played so
    exact: Bools  # (N,) over all deals; else over sampled worlds
    known: Bools  # (N,) some deal explains the moves by how all play; where none does, `true` is `rules`

    @property
    def first(self) -> Ints:
        """(N,) where the entries of each decision begin."""
        return np.flatnonzero(np.diff(self.row, prepend=-1))

    def sums(self, values: npt.NDArray[np.float64]) -> Floats:
        """Sums over the entries of each decision: (K, …) -> (N, …)."""
        return cast(Floats, np.add.reduceat(values, self.first, axis=0))

    def scaled(self, weight: Floats) -> Floats:
        """The weights divided by their sum over each decision; 0 where that is 0."""
        total = self.sums(weight)[self.row]
        return np.divide(weight, total, out=np.zeros(len(weight)), where=total > 0)

    def divergence(self, one: Floats, other: Floats) -> Floats:
        """KL(one || other) in bits: (N,), infinite where the other rules out what the one does not."""
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(one > 0, one * (np.log2(one) - np.log2(other)), 0.0)
        return np.maximum(self.sums(terms), 0.0)

    def worlds(self, weight: Floats) -> Floats:
        """How many independent worlds a belief is worth (Kong 1992): (N,), infinite where it is exact."""
        square = self.sums(weight**2)
        with np.errstate(divide="ignore"):
            return np.where(self.exact, np.inf, 1 / square)


def chunks(moments: Moments, place: int = 2, worlds: int = WORLDS) -> Iterator[Ints]:
    """All decisions, so few at a time that all hands of their lists can be looked at together: (n,) numbers each.

    Args:
        place, worlds: as of `hand_lists`.
    """
    position, line = moments.position, np.arange(len(moments))
    own, seen = (position.sizes[line, (moments.seat + far) % position.rules.seats] for far in (0, place))
    hidden = np.bitwise_count(position.hidden).astype(np.int64) - seen
    pairs = zip(hidden.tolist(), own.tolist())
    size = np.array([comb(tiles, held) if tiles <= _DENSE else worlds for tiles, held in pairs], np.int64)
    yield from pieces(moments, size)


def pieces(moments: Moments, size: Ints) -> Iterator[Ints]:
    """All decisions, those of one seat at a time, and of them few, those with few hands first: (n,) numbers each.

    Args:
        size: (M,) about how many hands are looked at for each.
    """
    for seat in range(moments.position.rules.seats):
        mine = np.flatnonzero(moments.seat == seat)
        mine = mine[np.argsort(size[mine], kind="stable")]
        upto = np.cumsum(size[mine]) - size[mine]
        yield from (rows for rows in np.split(mine, np.flatnonzero(np.diff(upto // _HANDS)) + 1) if len(rows))


def hand_lists(
    moments: Moments,
    table: Sequence[Model],
    reference: Model,
    place: int = 2,
    *,
    floor: float = 0.0,
    worlds: int = WORLDS,
    seed: int = 0,
) -> HandLists:
    """Beliefs about who decides.

    Args:
        moments: N decisions, at least one.
        table: who plays in each seat, as agents that can be asked.
        reference: for whom the decider may be taken, see `policy_belief`.
        place: where the observer sits, 1 to 3 seats clockwise from the decider.
        floor: mixes every player's move with a random one.
        worlds: of each belief that is sampled, as not all deals can be summed over; seed: of these.

    Raises:
        ValueError: models that cannot be asked, or a place of no other seat.
    """
    rules, n = moments.position.rules, len(moments)
    if not 1 <= place < rules.seats:
        raise ValueError(f"place={place!r} must be of another seat, 1..{rules.seats - 1} clockwise")
    keys = row_keys(seed, moments.number, salt=_SALT)
    exact, known = np.zeros(n, np.bool_), np.ones(n, np.bool_)
    parts: list[tuple[Ints, Masks, Floats, Floats, Floats, Floats]] = []
    for seat in range(rules.seats):
        mine = np.flatnonzero(moments.seat == seat)
        if not len(mine):
            continue
        seen = moments.take(mine).seen_by(place)
        models = [None if other == seat else model for other, model in enumerate(table)]
        belief = policy_belief(seen, models, candidates=worlds, keys=keys[mine], floor=floor)
        known[mine] = ~belief.fell_back
        for rows, part in belief.parts if isinstance(belief, SplitBelief) else [(np.arange(len(mine)), belief)]:
            if isinstance(part, ExactBelief):
                at = np.full(len(rows), seat)
                row, hands, others = part.hand_lists(at)
                by_rules = ExactBelief(part.position, [None] * rules.seats).hand_lists(at)[2]
                exact[mine[rows]] = True
            else:
                drawn: Masks = part.hands[:, :, seat]  # type: ignore[attr-defined]
                row, hands = np.repeat(np.arange(len(rows)), drawn.shape[1]), drawn.ravel()
                others = part.weights.ravel()  # type: ignore[attr-defined]
                by_rules = np.full(len(row), 1 / drawn.shape[1])
            true, other = (
                _log_factor(part.position, seat, model, row, hands, floor, rules.seats)
                for model in (table[seat], reference)
            )
            parts.append((mine[rows][row], hands, by_rules, others, true, other))
    row, hand, by_rules, others, true, other = (np.concatenate(part) for part in zip(*parts))
    order = np.argsort(row, kind="stable")
    row, hand, by_rules, others = row[order], hand[order], by_rules[order], others[order]
    lists = HandLists(row, hand, by_rules, by_rules, by_rules, exact, known)
    by_true, by_reference = (_put_in(lists, others, log[order]) for log in (true, other))
    known &= lists.sums(by_true) > 0
    by_true = np.where(known[row], by_true, by_rules)
    return HandLists(row, hand, by_rules, by_true, by_reference, exact, known)


def _log_factor(
    position: Position, seat: int, model: Model, row: Ints, hands: Masks, floor: float, seats: int
) -> Floats:
    """(K,) ln of how well each hand explains what the seat has done, by one model of it."""
    models: list[Model] = [None] * seats
    models[seat] = model
    names, back = np.unique(row << 32 | hands.astype(np.int64), return_inverse=True)
    which, masks = names >> 32, (names & 0xFFFFFFFF).astype(np.uint32)
    found = log_factors(position, models, which, np.full(len(which), seat), masks, floor)
    return found[back]


def _put_in(lists: HandLists, others: Floats, log: Floats) -> Floats:
    """The belief with the decider's factor in it."""
    held = np.where(others > 0, log, -np.inf)
    top = np.maximum.reduceat(held, lists.first)
    top[np.isinf(top)] = 0
    return lists.scaled(others * np.exp(held - top[lists.row]))


def said(moments: Moments, lists: HandLists, table: Sequence[Model], floor: float = 0.0) -> tuple[Floats, Bits]:
    """What the deciders would do with each hand of the lists.

    Args:
        table: a model for each seat, as of `answers`.

    Returns:
        (K, actions) float64 and (K,) uint64, as of `answers`.
    """
    out = np.zeros((len(lists.row), moments.position.rules.num_actions))
    legal = np.zeros(len(lists.row), np.uint64)
    seat = moments.seat[lists.row]
    for model in {id(model): model for model in table}.values():
        mine = np.flatnonzero(np.isin(seat, [number for number, one in enumerate(table) if one is model]))
        if len(mine):
            out[mine], legal[mine] = answers(moments.position, model, lists.row[mine], lists.hand[mine], floor)
    return out, legal
