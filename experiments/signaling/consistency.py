"""Whether kinds of moves mean what they mean: by counts, in all contexts, and to all who were trained alike.

Bits. For a kind of move m and a meaning Y the mutual information I(m; Y | class) is counted over the decisions in which
the mover could choose: m is whether it made a move of the kind, Y whether the meaning was true of its hand. It is the
speaker consistency of Lowe, Foerster, Boureau, Pineau and Dauphin 2019 (arXiv 1903.05168), sum of p(m, Y) log p(m, Y) /
(p(m) p(Y)), within classes of contexts. Y speaks of the suits that the move of the kind touches: of that which was
made, or, where none was, of one drawn among those that could have been. Else both sides would speak of different
suits, and what the rules say of these would look like a message. Left out are decisions in which what lies on the line,
the mover's passes and the partner's own hand settle Y anyway.

Classes are coarse: the quarter of the game, by tiles on the line; whose suit Y speaks of, the partner's, an opponent's,
or nobody else's; and the share of the mover's legal moves that are of the kind. The last is the chance by which random
play makes such a move. It is the same all over a class, so random play tells nothing here, however much is told by what
is legal. What is public and yet not in the class is not taken out: where it bears on the choice and on Y, it counts.

Counts tell too much where they are few, by about half the degrees of freedom over their number, and Miller and Madow
(1955) take that off: every entropy gets (cells that are not empty - 1) / 2N nats more. Where classes have few decisions
that is too little, so bits are to be read beside those of chance: of shuffling what was done within classes, from which
the p-value comes, too. Decisions of one deal hang together, so they move together: what was done in a deal's
decisions of a class goes as a block, in its order, to another deal with as many decisions of the class. What the blocks
of one deal in different classes have to do with each other is lost; it matters little, since classes add up by bits,
which have no sign: their mean stays right, and their spread is wrong only by the square of a product of correlations.

Stability. In context c, which is the class without the chances, the lift L_c is that of the table of conventions, and
w_c its share of the sum of P_rules. Then L = sum of w_c L_c is the lift over all contexts, and

    stability = 1 - Var / total,  Var = sum of w_c (L_c - L)^2,  total = sum of w_c (L_c - 1)^2 = Var + (L - 1)^2.

Total is how far the move is from saying nothing, which is a lift of 1, in the contexts one by one; Var is what they do
not share of it. So 1 is the same lift everywhere, and 0 a message that is undone elsewhere. Total is not the spread
over decisions: that is wide, for beliefs differ, and beside it nearly all would be stable. What chance alone adds to
both, from the errors over deals, is taken off; there is no figure where total is no more than chance.

Agreement. Spearman's correlation of the lifts of two trainings over the cells that have numbers in both, and its mean
over all pairs. Trainings are the units (see `cross_play`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from agents.search.position import mask_of_bits
from domino_env.rules import Rules
from domino_env.tiles import NUM_SUITS, NUM_TILES, SUIT_MASK
from experiments.duplicate import labels
from experiments.signaling.conventions import ANY, LEAST, LEVEL, MEANINGS, Conventions, Judged
from experiments.signaling.moves import MOVES, Situation, kinds, made, open_to, situation, touched
from experiments.signaling.record import Moments
from experiments.signaling.statistics import DRAWS, NOTHING, Estimate, clustered, discoveries, finite, over_nodes, ratio

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]
Suits = npt.NDArray[np.uint8]

QUARTERS = ("first", "second", "third", "last")
WHOSE = ("partner's suit", "opponent's suit", "nobody else's suit")
CELLS = 10  # that two tables have in common: fewer give no correlation
_PART = 4  # a context has a lift of its own with this part of the decisions that a cell needs
_TINY = 1e-9  # of bits, of lifts

# -- bits -----------------------------------------------------------------------------------------------------------


class Told(NamedTuple):
    """What M decisions tell by what was done."""

    bits: Estimate  # I, the bias taken off
    chance: float  # its mean where what was done is shuffled: near 0 where classes have many decisions
    shift: float  # how much more often Y is so where it was done than elsewhere in the class, -1 to 1
    p: float  # how often shuffled decisions tell as much


def told(done: npt.NDArray[Any], so: npt.NDArray[Any], group: Ints, unit: Ints, draws: int, seed: Any = 0) -> Told:
    """Mutual information, within classes, of what was done and what is so.

    The interval is that of the mean over deals of log p(m, Y) / (p(m) p(Y)): right where much is told, and too narrow
    near 0. Whether anything is told says p.

    Args:
        done, so: (M,) bool, m and Y; group: (M,) class; unit: (M,) deal, at most 62 decisions of it in a class.
        draws: shuffles; seed: of these, as of `numpy.random.default_rng`.
    Returns:
        `NOTHING` and nan where there are no decisions.
    """
    if not len(done):
        return Told(NOTHING, math.nan, math.nan, math.nan)
    done, so = np.asarray(done, np.int64), np.asarray(so, np.int64)
    _, group = np.unique(group, return_inverse=True)
    table = np.bincount(group * 4 + done * 2 + so, minlength=4 * (int(group.max()) + 1)).reshape(-1, 2, 2)
    whole, does, true = table.sum(axis=(1, 2)), table[:, 1].sum(axis=1), table[:, :, 1].sum(axis=1)

    # Within its class a shuffle leaves only one number open: in how many decisions it was done and is so.
    by_both = _bits(whole, does, true) / len(done)
    line = np.arange(len(table))
    now = float(by_both[line, table[:, 1, 1]].sum())
    chance = by_both[line, _shuffled(done, so, group, unit, draws, np.random.default_rng(seed))].sum(axis=1)

    product = table.sum(axis=2)[group, done] * table.sum(axis=1)[group, so]
    counted = clustered(np.log2(table[group, done, so] * whole[group] / product), unit)
    bias = now - counted.mean
    bits = dataclasses.replace(counted, mean=now, low=counted.low + bias, high=counted.high + bias)
    both, weight = table[:, 1, 1] - does * true / whole, float((does * (whole - does) / whole).sum())
    shift = float(both.sum()) / weight if weight > 0 else math.nan
    p = (1 + int((chance >= now - _TINY).sum())) / (draws + 1)
    return Told(bits, float(chance.mean()), shift, p)


def _bits(whole: Ints, does: Ints, true: Ints) -> Floats:
    """Bits of all decisions of a class together, the bias taken off, by how often both hold.

    Args:
        whole, does, true: (C,) decisions of each class, those in which it was done, those in which it is so.
    Returns:
        (C, most + 1), nan where so many cannot be.
    """
    both = np.arange(int(np.minimum(does, true).max()) + 1)
    does, true, whole = does[:, None], true[:, None], whole[:, None]
    cells = np.stack(np.broadcast_arrays(both, does - both, true - both, whole - does - true + both))
    sides = np.stack([does, whole - does]), np.stack([true, whole - true])
    there, cells = (cells >= 0).all(axis=0), np.maximum(cells, 0)
    nats = special.xlogy(cells, cells).sum(axis=0) + special.xlogy(whole, whole)
    nats = nats - sum(special.xlogy(side, side).sum(axis=0) for side in sides)
    extra = sum((side > 0).sum(axis=0) for side in sides) - (cells > 0).sum(axis=0) - 1
    out: Floats = np.where(there, (nats + extra / 2) / math.log(2), np.nan)
    return out


def _shuffled(done: Ints, so: Ints, group: Ints, unit: Ints, draws: int, rng: np.random.Generator) -> Ints:
    """(draws, classes) in how many decisions of a class it was done and is so, where blocks of deals are shuffled.

    How often each block of what was done meets each block of what is so is a random table with the margins kept.
    """
    order = np.lexsort([unit, group])
    done, so, group, unit = done[order], so[order], group[order], unit[order]
    first = np.append(True, (np.diff(group) != 0) | (np.diff(unit) != 0))
    begin, block = np.flatnonzero(first), np.cumsum(first) - 1
    size, place = np.bincount(block), np.arange(len(done)) - begin[block]
    does, true = (np.add.reduceat(bits << place, begin) for bits in (done, so))  # a block's decisions as bits
    out = np.zeros((draws, int(group.max()) + 1), np.int64)
    _, alike = np.unique(np.stack([group[begin], size], axis=1), axis=0, return_inverse=True)
    for number in range(int(alike.max()) + 1):
        rows = np.flatnonzero(alike == number)
        (ours, count), (theirs, other) = (np.unique(part[rows], return_counts=True) for part in (does, true))
        meet = np.bitwise_count(ours[:, None] & theirs).astype(np.int64)
        if min(meet.shape) == 1:  # nothing to shuffle, and SciPy 1.17 draws rubbish
            out[:, group[begin[rows[0]]]] += (np.minimum(count[:, None], other) * meet).sum()
            continue
        tables = stats.random_table(count, other).rvs(draws, random_state=rng)
        out[:, group[begin[rows[0]]]] += np.tensordot(tables, meet, 2)
    return out


# -- contexts -------------------------------------------------------------------------------------------------------


def _contexts(moments: Moments, s: Situation, suits: Suits) -> Ints:
    """(M,) number of the context, public: quarter of the game * 3 + whose the suits are."""
    mine, theirs = s.suits(2)[:, 0], (s.suits(1) | s.suits(3))[:, 0]
    whose = np.where(suits & mine != 0, 0, np.where(suits & theirs != 0, 1, 2))
    return moments.tiles * len(QUARTERS) // moments.position.rules.num_tiles * len(WHOSE) + whose


def _name(context: int) -> str:
    quarter, whose = divmod(context, len(WHOSE))
    return f"{QUARTERS[quarter]} quarter, {WHOSE[whose]}"


def _possible(moments: Moments) -> Masks:
    """(M,) tiles that the mover may hold for all that its partner sees: not laid, not its own, of no suit passed on."""
    voids = moments.position.voids[np.arange(len(moments)), moments.seat]
    lacks = np.where(voids[:, None] >> np.arange(NUM_SUITS) & 1 != 0, SUIT_MASK, np.uint32(0))
    return moments.seen_by(2).hidden & ~np.bitwise_or.reduce(lacks, axis=1)


# -- stability ------------------------------------------------------------------------------------------------------


def stability(lifts: Sequence[Estimate], weights: Sequence[float]) -> float:
    """The share, 0 to 1, of what lifts are from 1 that is common to all contexts; see the module.

    Errors of contexts count as independent, though a deal may have decisions in several.

    Args:
        lifts: one a context; weights: their shares, of any sum.
    Returns:
        nan for fewer than two contexts, and where the lifts are 1 but for chance (chi-squared, 5 %).
    """
    if len(lifts) < 2:
        return math.nan
    lift, error = (np.array([getattr(one, name) for one in lifts]) for name in ("mean", "error"))
    w = np.asarray(weights, np.float64) / np.sum(weights)
    away = np.where(np.abs(lift - 1) > _TINY, lift - 1, 0.0)
    far = np.divide(away, error, out=np.where(away == 0, 0.0, np.inf), where=error > 0)
    if not stats.chi2.sf((far**2).sum(), len(lifts)) < LEVEL:
        return math.nan
    apart = (w * (lift - w @ lift) ** 2).sum() - (w * (1 - w) * error**2).sum()
    total = (w * away**2).sum() - (w * error**2).sum()
    return float(np.clip(1 - max(apart, 0.0) / total, 0.0, 1.0)) if total > 0 else math.nan


def _lifts(judged: Judged, number: int, was: Bools, context: Ints, least: int) -> tuple[dict[str, Estimate], float]:
    """The lifts of a meaning by context, and their stability; none where there are too few decisions in all."""
    true, rules = judged.true[:, number], judged.rules[:, number]
    some = np.flatnonzero(was & judged.open(number))
    if len(some) < least:
        return {}, math.nan
    found, weights = dict[str, Estimate](), list[float]()
    for one in np.unique(context[some]).tolist():
        rows = some[context[some] == one]
        lift = ratio(true[rows], rules[rows], judged.moments.deal[rows])
        if len(rows) >= max(2, least // _PART) and not math.isnan(lift.error):
            found[_name(one)] = lift
            weights.append(float(rules[rows].sum()))
    return found, stability(list(found.values()), weights)


# -- the table ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Link:
    """How a kind of move and a meaning go together."""

    kind: str
    meaning: str
    count: int  # decisions in which the mover could choose and the meaning was open
    bits: Estimate  # I, a decision
    chance: float  # the same where what was done is shuffled
    shift: float  # how much more often the meaning is true where the move was made, in the mean over classes
    p: float  # of so many bits by shuffling
    lifts: dict[str, Estimate]  # by context, those with decisions enough
    stability: float  # of these
    adjusted: float = math.nan  # p adjusted for all links of the table

    @property
    def beyond(self) -> float:
        """Bits beyond chance."""
        return self.bits.mean - self.chance

    @property
    def found(self) -> bool:
        """Whether the choice tells this, at 5 % false discoveries in the table."""
        return self.adjusted < LEVEL

    def to_dict(self) -> dict[str, Any]:
        """For JSON; null where there is no figure."""
        plain = {name: getattr(self, name) for name in ("kind", "meaning", "count", "found")}
        figures = {name: finite(getattr(self, name)) for name in _FIGURES}
        lifts = {name: one.to_dict() for name, one in self.lifts.items()}
        return plain | figures | {"bits": self.bits.to_dict(), "lifts": lifts}


_FIGURES = ("chance", "beyond", "shift", "p", "adjusted", "stability")


@dataclass(frozen=True)
class Consistency:
    """All kinds of moves and all meanings."""

    rules: Rules
    decisions: int  # measured
    deals: int  # with such a decision
    least: int  # decisions below which there is no number
    draws: int  # shuffles
    links: tuple[Link, ...]

    def link(self, kind: str, meaning: str) -> Link:
        """One of them."""
        return next(one for one in self.links if (one.kind, one.meaning) == (kind, meaning))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: getattr(self, name) for name in ("decisions", "deals", "least", "draws")}
        return {"rules": self.rules.title, **plain, "links": [one.to_dict() for one in self.links]}

    @property
    def ranked(self) -> list[Link]:
        """Those that have a number, what tells most first."""
        numbers = [one for one in self.links if not (math.isnan(one.p) and math.isnan(one.stability))]
        return sorted(numbers, key=lambda one: -np.nan_to_num(one.beyond, nan=-1.0))

    def rows(self) -> list[dict[str, str]]:
        """In words: one dictionary for each of `ranked`, with the same keys."""
        return [
            {
                "move": MOVES[one.kind].text,
                "meaning": one.meaning.replace("_", " "),
                "decisions": f"{one.count:,}",
                "bits": f"{one.bits}{'*' if one.found else ''}",
                "beyond chance": _said(one.beyond, "+.3f"),
                "p": _said(one.p, ".4f"),
                "more often": _said(one.shift, "+.0%"),
                "stability": _said(one.stability, ".2f"),
                "contexts": f"{len(one.lifts)}",
            }
            for one in self.ranked
        ]

    def draw(self, axes: Any) -> None:
        """Draw the bits beyond chance on matplotlib axes: kinds down, meanings across, stars where they are found; blue
        where the meaning is true more often after the move, red where less often."""
        size = (len(MOVES), len(MEANINGS))
        shifts = np.array([one.shift for one in self.links]).reshape(size)
        axes.imshow(np.clip(shifts, -0.5, 0.5), cmap="RdBu", vmin=-0.5, vmax=0.5, aspect="auto")
        for (down, across), one in zip(np.ndindex(size), self.links):
            if not math.isnan(one.p):
                words = f"{one.beyond:.3f}{'*' if one.found else ''}".replace("-", "−")
                ink = "white" if abs(one.shift) > 0.35 else "black"
                axes.text(across, down, words, ha="center", va="center", color=ink, fontsize=8)
        axes.set_xticks(range(size[1]), [one.name.replace("_", " ") for one in MEANINGS], rotation=30, ha="right")
        axes.set_yticks(range(size[0]), [kind.text for kind in MOVES.values()])
        axes.set_title("bits beyond chance that the choice of the move tells (* at 5 % false discoveries)", fontsize=9)


def consistency(judged: Judged, *, least: int = LEAST, draws: int = DRAWS, seed: int = 0) -> Consistency:
    """What choices of kinds of moves tell, by counts, and whether their lifts are the same in all contexts.

    Args:
        judged: decisions, and what partners believe of their movers; bits need no belief, and count all of them.
        least: decisions below which there is no number, at least 2; contexts need a quarter of them.
        draws: shuffles; seed: of these, and of the moves that stand for those that were not made.

    Raises:
        ValueError: no decision, `least` or `draws` that cannot be, or a game without partners.
    """
    if least < 2 or draws < 1:
        raise ValueError(f"least={least!r} must be at least 2 and draws={draws!r} at least 1")
    moments = judged.moments
    if not len(moments):
        raise ValueError("no decision to look at")
    s = situation(moments)
    legal = mask_of_bits(moments.legal) != 0
    possible = _possible(moments)
    links: list[Link] = []
    for number, (name, which) in enumerate(kinds(s).items()):
        was, could = made(which, moments.action), open_to(which, moments.legal)
        may = which & legal[:, : which.shape[1]]
        drawn = np.where(may, np.random.default_rng([seed, number]).random(may.shape), -1.0).argmax(axis=1)
        move = np.where(was, moments.action, np.where(could, drawn, 0))  # 0: nobody looks there
        share = may.sum(axis=1) / legal.sum(axis=1)
        tile = np.uint32(1) << (move % NUM_TILES).astype(np.uint32)
        rest, room, touches = moments.hand() & ~tile, possible & ~tile, touched(s, move)
        for at, meaning in enumerate(MEANINGS):
            suits = getattr(touches, meaning.suits)
            so, settled = (
                meaning.true(rest, suits),
                meaning.true(room, suits) == meaning.true(np.zeros_like(room), suits),
            )
            context = _contexts(moments, s, suits)
            lifts, stable = _lifts(judged, at, was, context, least)
            rows = np.flatnonzero(could & (suits != 0) & ~settled)
            said = Told(NOTHING, math.nan, math.nan, math.nan)
            if len(rows) >= least:
                _, group = np.unique(np.stack([context[rows], share[rows]], axis=1), axis=0, return_inverse=True)
                said = told(was[rows], so[rows], group, moments.deal[rows], draws, [seed, number, at])
            links.append(Link(name, meaning.name, len(rows), *said, lifts=lifts, stability=stable))
    adjusted = discoveries(np.array([one.p for one in links]))
    links = [dataclasses.replace(one, adjusted=float(p)) for one, p in zip(links, adjusted)]
    return Consistency(moments.position.rules, len(moments), len(np.unique(moments.deal)), least, draws, tuple(links))


# -- agreement ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agreement:
    """Whether the lifts of trainings go together."""

    players: tuple[str, ...]  # (n,)
    figure: str  # of the cells
    matrix: Floats  # (n, n) Spearman's correlation; nan where two have too few cells in common
    cells: Ints  # (n, n) with numbers in both
    mean: Estimate  # over pairs, the interval over trainings; units are these

    def to_dict(self) -> dict[str, Any]:
        """For JSON; null where there is no figure."""
        return {
            "players": list(self.players),
            "figure": self.figure,
            "matrix": [[finite(one) for one in row] for row in self.matrix.tolist()],
            "cells": self.cells.tolist(),
            "mean": self.mean.to_dict(),
        }

    def rows(self) -> list[dict[str, str]]:
        """The matrix in words: one dictionary a training, with the same keys."""
        names = labels(self.players)
        return [
            {"training": name, **{other: _said(one, "+.2f") for other, one in zip(names, row)}}
            for name, row in zip(names, self.matrix.tolist())
        ]

    def draw(self, axes: Any) -> None:
        """Draw a heat map on matplotlib axes."""
        names = labels(self.players)
        axes.imshow(self.matrix, cmap="RdBu", vmin=-1, vmax=1)
        for (i, j), one in np.ndenumerate(self.matrix):
            ink = "white" if abs(one) > 0.7 else "black"
            axes.text(j, i, _said(one, ".2f").replace("-", "−"), ha="center", va="center", color=ink, fontsize=8)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(names)), names)
        axes.set_title("rank correlation of what moves say", fontsize=9)


def agreement(
    tables: Sequence[Conventions],
    names: Sequence[str] | None = None,
    *,
    figure: str = "lift",
    draws: int = DRAWS,
    seed: int = 0,
) -> Agreement:
    """Whether trainings mean the same by their moves, by the ranks of their lifts.

    A part of it is no agreement: some kinds of moves say by their nature more than others, whoever makes them.
    "over_reference" leaves out what the reference says, too; it should be one for all, or the deaf twin of each.

    Args:
        tables: one a training, of the same game; best of the same deals and decisions.
        names: of the trainings, None: of the players at each table.
        figure: of the cells: "lift", "over_reference" or "alone".
        draws: of the bootstrap over trainings; seed: of these.
    Returns:
        Correlations, nan where two tables have fewer than `CELLS` cells in common or one has the same in all; the mean
        over pairs that have one, with an interval where there are three trainings or more and no pair is without.

    Raises:
        ValueError: fewer than two trainings, one that stands twice, tables of different games, or another figure.
    """
    figures = ("lift", "over_reference", "alone")
    if figure not in figures:
        raise ValueError(f"there is no agreement on {figure!r}; choose from {', '.join(figures)}")
    if len(tables) < 2:
        raise ValueError(f"agreement is between two trainings or more, not {len(tables)}")
    called = [" and ".join(dict.fromkeys(one.players)) for one in tables] if names is None else list(names)
    if len(called) != len(tables):
        raise ValueError(f"{len(tables)} tables have as many names, not {len(called)}")
    if twice := [name for name in called if called.count(name) > 1]:
        raise ValueError(f"each training counts once, or its spread looks smaller than it is; twice: {twice[0]}")
    if len(games := list(dict.fromkeys(one.rules.title for one in tables))) > 1:
        raise ValueError(f"lifts of different games are not to be compared: {', '.join(games)}")
    values = np.array(
        [[getattr(cell, figure).mean for row in one.table if row.kind != ANY for cell in row.cells] for one in tables]
    )
    n, there = len(tables), ~np.isnan(values)
    matrix, cells = np.eye(n), there.astype(np.int64) @ there.T.astype(np.int64)
    for i, j in combinations(range(n), 2):
        both = there[i] & there[j]
        matrix[i, j] = matrix[j, i] = _spearman(values[i, both], values[j, both])
    off = ~np.eye(n, dtype=np.bool_)
    if n > 2 and not np.isnan(matrix).any():
        mean = over_nodes(matrix, _others, draws, seed)
    else:
        known = not np.isnan(matrix[off]).all()
        mean = dataclasses.replace(NOTHING, mean=_others(matrix) if known else math.nan, units=n, count=n * n)
    return Agreement(tuple(called), figure, matrix, cells, mean)


def _others(matrix: Floats) -> float:
    return float(np.nanmean(matrix[~np.eye(len(matrix), dtype=np.bool_)]))


def _spearman(one: Floats, other: Floats) -> float:
    if len(one) < CELLS or np.ptp(one) == 0 or np.ptp(other) == 0:
        return math.nan
    return float(stats.spearmanr(one, other).statistic)


def _said(value: float, how: str) -> str:
    return "–" if math.isnan(value) else format(value, how)
