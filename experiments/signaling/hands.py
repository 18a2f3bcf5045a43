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
from agents.search.position import PUBLIC, Position
from agents.search.reading import (
    ExactBelief,
    Model,
    ReadBelief,
    SampledBelief,
    SplitBelief,
    log_factors,
    policy_belief,
)
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


def pieces(moments: Moments, places: Sequence[int], worlds: int) -> Iterator[Ints]:
    """All decisions, those of one seat at a time, and of them few, those with few hands first: (n,) numbers each.

    Args:
        places: of all who observe them, clockwise from who decides, `PUBLIC` the public; worlds: of a sampled belief.
    """
    size = _sizes(moments, places, worlds)
    for seat in range(moments.position.rules.seats):
        mine = np.flatnonzero(moments.seat == seat)
        mine = mine[np.argsort(size[mine], kind="stable")]
        upto = np.cumsum(size[mine]) - size[mine]
        yield from (rows for rows in np.split(mine, np.flatnonzero(np.diff(upto // _HANDS)) + 1) if len(rows))


def _sizes(moments: Moments, places: Sequence[int], worlds: int) -> Ints:
    """(M,) about how many hands all observers of each decision together look at."""
    position, line = moments.position, np.arange(len(moments))
    hidden, own = np.bitwise_count(position.hidden).astype(np.int64), position.sizes[line, moments.seat]
    out = np.zeros(len(moments), np.int64)
    for place in places:
        seen = 0 if place == PUBLIC else position.sizes[line, (moments.seat + place) % position.rules.seats]
        pairs = zip((hidden - seen).tolist(), own.tolist())
        out += np.array([comb(tiles, held) if tiles <= _DENSE else worlds for tiles, held in pairs], np.int64)
    return out


def hands_of(belief: ReadBelief, seat: Ints) -> tuple[Ints, Masks, Floats]:
    """What one seat a row may hold, and how likely: (K,) row, ascending, hands, and weights.

    Of a sampled belief it is a list of worlds, in which hands stand several times.

    Raises:
        ValueError: a belief of another kind, or one in parts.
    """
    if isinstance(belief, ExactBelief):
        return belief.hand_lists(seat)
    if isinstance(belief, SampledBelief):
        n, worlds = belief.hands.shape[:2]
        return np.repeat(np.arange(n), worlds), belief.hands[np.arange(n), :, seat].ravel(), belief.weights.ravel()
    raise ValueError(f"{type(belief).__name__} lists no hands: ask agents.search.reading.policy_belief for a belief")


def each_part(belief: ReadBelief) -> Sequence[tuple[Ints, ReadBelief]]:
    """Rows and beliefs that are exact or sampled throughout."""
    return belief.parts if isinstance(belief, SplitBelief) else [(np.arange(len(belief)), belief)]


def put_in(row: Ints, weight: Floats, log: Floats, n: int) -> tuple[Floats, Floats]:
    """A belief with one more factor put in.

    Args:
        row: (K,) in 0 .. n - 1; weight: (K,) >= 0, what is believed without the factor; log: (K,) ln of it.
    Returns:
        (K,) probabilities, nan in rows that it rules out, and (n,) ln of the sums by which they were divided.
    """
    told, top = np.where(weight > 0, log, -np.inf), np.full(n, -np.inf)
    np.maximum.at(top, row, told)
    top[np.isinf(top)] = 0
    mass = weight * np.exp(told - top[row])
    total = np.bincount(row, mass, minlength=n)
    with np.errstate(divide="ignore", invalid="ignore"):
        return mass / total[row], np.log(total) + top


def factor(position: Position, seat: int, model: Model, row: Ints, hand: Masks, floor: float) -> Floats:
    """(K,) ln of how well each hand explains what the seat has done, by one model of it."""
    models: list[Model] = [None] * position.rules.seats
    models[seat] = model
    return log_factors(position, models, row, np.full(len(row), seat), hand, floor)


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
        for rows, part in each_part(belief):
            at = np.full(len(rows), seat)
            row, hands, others = hands_of(part, at)
            by_rules = np.full(len(row), len(rows) / len(row))
            if isinstance(part, ExactBelief):
                by_rules = hands_of(ExactBelief(part.position, [None] * rules.seats), at)[2]
                exact[mine[rows]] = True
            names, back = np.unique(row << 32 | hands.astype(np.int64), return_inverse=True)
            each = names >> 32, (names & 0xFFFFFFFF).astype(np.uint32)  # of worlds, too, every hand once
            true, other = (factor(part.position, seat, model, *each, floor)[back] for model in (table[seat], reference))
            parts.append((mine[rows][row], hands, by_rules, others, true, other))
    row, hand, by_rules, others, true, other = (np.concatenate(part) for part in zip(*parts))
    order = np.argsort(row, kind="stable")
    row, hand, by_rules, others = row[order], hand[order], by_rules[order], others[order]
    (by_true, total), (by_reference, _) = (put_in(row, others, log[order], n) for log in (true, other))
    known &= np.isfinite(total)
    by_true = np.where(known[row], by_true, by_rules)
    return HandLists(row, hand, by_rules, by_true, np.nan_to_num(by_reference), exact, known)


def said(moments: Moments, lists: HandLists, table: Sequence[Model], floor: float = 0.0) -> tuple[Floats, Bits]:
    """What the deciders would do with each hand of the lists.

    Args:
        table: a model for each seat, as of `answers`.

    Returns:
        (K, actions) float64 and (K,) uint64, as of `answers`.
    """
    return by_seat(moments.position, table, lists.row, lists.hand, floor)


def by_seat(
    position: Position, table: Sequence[Model], row: Ints, hand: Masks, floor: float = 0.0
) -> tuple[Floats, Bits]:
    """What movers would do with these hands, each as who sits in its seat: `answers` of a table."""
    out, legal = np.zeros((len(row), position.rules.num_actions)), np.zeros(len(row), np.uint64)
    seat = position.to_move[row]
    for model in {id(model): model for model in table}.values():
        mine = np.flatnonzero(np.isin(seat, [number for number, one in enumerate(table) if one is model]))
        if len(mine):
            out[mine], legal[mine] = answers(position, model, row[mine], hand[mine], floor)
    return out, legal
