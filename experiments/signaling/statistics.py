"""Figures with intervals, where the decisions of a deal hang together and the pairs of a seed do, too.

Deals (or boards) are the units: decisions of one deal are not independent, and an interval over them as if they were is
too narrow (signals of 240 positions of 40 deals once looked 2.3 standard errors away from nothing). Where something is
said of training, seeds are the units, never the pairs that share them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from experiments.bootstrap import ENOUGH, seed_interval

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
POWER = 0.8
DRAWS = 10_000
ESS = 200.0  # effective worlds below which a sampled belief gives no figure
_ROUNDING = 1e-12  # what is left of nothing, as a part of the figure
#: Seeds -> of 100 intervals of `over_nodes`, those that hold the truth: see there.
_HELD = {
    3: (62, 50, 58), 4: (80, 75, 77), 5: (85, 79, 81), 6: (85, 80, 82), 7: (88, 84, 85), 8: (88, 84, 85),
    10: (90, 87, 88), 12: (91, 89, 90), 15: (92, 90, 91), 20: (93, 92, 92),
}  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval; nan where there is too little to say anything."""

    mean: float
    low: float
    high: float
    error: float  # standard error
    units: int  # deals, boards or seeds that it rests on
    count: int  # decisions

    def covers(self, value: float) -> bool:
        """Whether the value lies in the interval; never where there is none."""
        return self.low <= value <= self.high

    @property
    def told(self) -> bool:
        """Whether there is an interval, and it excludes 0."""
        return not math.isnan(self.error) and not self.covers(0.0)

    def to_dict(self) -> dict[str, float | int | None]:
        """For JSON; null where there is no figure."""
        figures = {name: finite(getattr(self, name)) for name in ("mean", "low", "high", "error")}
        return figures | {"units": self.units, "count": self.count}

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "–"
        return f"{self.mean:+.3f}" + ("" if math.isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]")


NOTHING = Estimate(math.nan, math.nan, math.nan, math.nan, 0, 0)


def finite(value: float) -> float | None:
    """A figure for JSON: None where there is none, nor an end of it."""
    return float(value) if math.isfinite(value) else None


def clustered(values: npt.NDArray[Any], unit: npt.NDArray[Any], weights: npt.NDArray[Any] | None = None) -> Estimate:
    """The mean over decisions, with an interval over deals.

    Numbers of decisions differ from deal to deal, so the mean is a ratio of sums over deals, see `ratio`.

    Args:
        values: (M,); unit: (M,) number of the deal, in any order; weights: (M,) >= 0, None: all alike.
    Returns:
        An estimate without interval where there are fewer than two deals, and `NOTHING` where there is nothing.
    """
    values = np.asarray(values, np.float64)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    return ratio(weights * values, weights, unit)


def ratio(part: npt.NDArray[Any], whole: npt.NDArray[Any], unit: npt.NDArray[Any]) -> Estimate:
    """The sum of one thing over the sum of another, with the error of a ratio whose units are deals.

    The error is that of the linearised ratio (Cochran 1977, 6.4), and the interval is Student's t over the deals.

    Args:
        part, whole: (M,); unit: (M,) number of the deal, in any order.
    Returns:
        An estimate without interval where there are fewer than two deals, and `NOTHING` where the whole is not above 0.
    """
    _, which = np.unique(unit, return_inverse=True)
    sums, sizes = np.bincount(which, part), np.bincount(which, whole)
    n, total = len(sums), float(sizes.sum())
    if not total > 0:
        return NOTHING
    mean = float(sums.sum() / total)
    if n < 2:
        return Estimate(mean, math.nan, math.nan, math.nan, n, len(part))
    error = float(np.sqrt(n / (n - 1) * ((sums - mean * sizes) ** 2).sum()) / total)
    margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    return Estimate(mean, mean - margin, mean + margin, error, n, len(part))


def over_units(values: npt.NDArray[Any]) -> Estimate:
    """The mean of one figure a unit (board or deal), Student's t: (n,)."""
    return clustered(values, np.arange(len(values)))


def share(came: npt.NDArray[Any], unit: npt.NDArray[Any]) -> Estimate:
    """How often something was so, with an interval in 0..1 that has a width where it always was, or never.

    The interval is that of Clopper and Pearson with as many independent answers as the spread over deals makes of them
    (Korn and Graubard 1998); where all came alike there is no spread, and the deals count.

    Args:
        came: (M,) whether it was so; unit: (M,) number of the deal, in any order.
    Returns:
        An estimate without interval where there are fewer than two deals, and `NOTHING` where there is nothing.
    """
    plain = clustered(came, unit)
    p, n = plain.mean, float(plain.units)
    if plain.units < 2:
        return plain
    if plain.error > 0:
        half = (1 + CONFIDENCE) / 2
        n = p * (1 - p) / plain.error**2
        n = min(n * float(stats.t.ppf(half, plain.count - 1) / stats.t.ppf(half, plain.units - 1)) ** 2, plain.count)
    tail, yes = (1 - CONFIDENCE) / 2, p * n
    low = 0.0 if yes <= 0 else float(stats.beta.ppf(tail, yes, n - yes + 1))
    high = 1.0 if yes >= n else float(stats.beta.ppf(1 - tail, yes + 1, n - yes))
    return Estimate(p, low, high, plain.error, plain.units, plain.count)


def over_seeds(values: npt.NDArray[Any]) -> Estimate:
    """The mean of one figure a seed, with the interval of the seed bootstrap; one seed has none."""
    values = np.asarray(values, np.float64)
    if len(values) < 2:
        mean = float(values[0]) if len(values) else math.nan
        return Estimate(mean, math.nan, math.nan, math.nan, len(values), len(values))
    low, high = seed_interval(values)
    error = float(values.std(ddof=1) / math.sqrt(len(values)))
    return Estimate(float(values.mean()), float(low), float(high), error, len(values), len(values))


def over_nodes(
    matrix: npt.NDArray[Any], figure: Callable[[Floats], float], draws: int = DRAWS, seed: int = 0
) -> Estimate:
    """A figure of a matrix of seeds against seeds, with an interval that resamples the seeds, not the pairs.

    Pairs that share a seed hang together: an interval over pairs is three to five times too narrow. Seeds are drawn
    with replacement, rows and columns alike; a seed that was drawn twice meets itself there, and such places off the
    diagonal are made nan, as is what the figure has to leave out (percentile interval).

    Few seeds make it too narrow. Where what each wins with itself and what it brings to a pair scatter normally, apart
    from each other, and a pair wins the sum of what its two bring, of 100 intervals so many hold the truth (20,000
    trials of each, 1,000 draws; `held`):

        seeds                          3   4   5   6   7   8  10  12  15  20  30
        mean of the diagonal          62  80  85  85  88  88  90  91  92  93  93
        mean off it                   50  75  79  80  84  84  87  89  90  92  92
        difference of the two         58  77  81  82  85  85  88  90  91  92  93

    The last hangs on how the two go together: where what a seed wins with itself is twice what it brings, but for
    chance, 91 hold with three seeds, 98 with five, 96 with eight.

    Args:
        matrix: (n, n) or (n, n, …), n >= 3 seeds; figure: of such a matrix, which may have nan off the diagonal.
    """
    n = len(matrix)
    if n < 3:
        raise ValueError(f"an interval over the seeds of a matrix needs three or more, not {n}")
    rng, found = np.random.default_rng(seed), list[float]()
    for _ in range(draws):
        chosen = rng.integers(n, size=n)
        if len(np.unique(chosen)) < 2:
            continue
        again = matrix[np.ix_(chosen, chosen)].astype(np.float64)
        same = (chosen[:, None] == chosen) & ~np.eye(n, dtype=np.bool_)
        again[same] = np.nan
        found.append(figure(again))
    low, high = np.quantile(found, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(
        float(figure(np.asarray(matrix, np.float64))), float(low), float(high), float(np.std(found, ddof=1)), n, n * n
    )


def held(nodes: int) -> tuple[int, int, int] | None:
    """How many of 100 intervals of `over_nodes` hold the truth, about: see there.

    Returns:
        Of the mean of the diagonal, of the mean off it, and of their difference; None where there are so many seeds
        that there is nothing to say, or too few for an interval.
    """
    if not 3 <= nodes < ENOUGH:
        return None
    return _HELD[max(measured for measured in _HELD if measured <= nodes)]


def mantel(one: npt.NDArray[Any], other: npt.NDArray[Any], draws: int = DRAWS, seed: int = 0) -> tuple[float, float]:
    """Whether two matrices over the same seeds go together (Mantel 1967): Spearman's correlation off the diagonal.

    Returns:
        The correlation, and how often seeds that are shuffled in one of the two correlate at least as strongly, as a
        two-sided p.
    """
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    n = len(one)
    if n < 3 or one.shape != (n, n) or other.shape != (n, n):
        raise ValueError(f"two square matrices over three seeds or more are needed, not {one.shape} and {other.shape}")
    off = ~np.eye(n, dtype=np.bool_)

    # Shuffled seeds have the same distances, and so each its rank: ranks are made once.
    ranks, theirs = np.zeros((n, n)), stats.rankdata(other[off])
    ranks[off] = stats.rankdata(one[off])

    def together(matrix: Floats) -> float:
        return float(np.corrcoef(matrix[off], theirs)[0, 1])

    true, rng, as_strong = together(ranks), np.random.default_rng(seed), 0
    for _ in range(draws):
        order = rng.permutation(n)
        as_strong += abs(together(ranks[np.ix_(order, order)])) >= abs(true) - 1e-12
    return true, (as_strong + 1) / (draws + 1)


def plot(axes: Any, places: npt.NDArray[Any], values: Sequence[Estimate], label: str) -> None:
    """Draw estimates as points with their intervals, on axes of matplotlib."""
    spread = np.nan_to_num([[one.mean - one.low, one.high - one.mean] for one in values]).T.clip(0)
    axes.errorbar(places, [one.mean for one in values], spread, marker="o", markersize=4, capsize=2, label=label)


def discoveries(p: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """p-values adjusted for their number: below 0.05, at most one in twenty of those found is false (Benjamini and
    Hochberg 1995). nan stays nan and does not count."""
    p = np.asarray(p, np.float64)
    out, there = np.full(p.shape, np.nan), ~np.isnan(p)
    if there.any():
        out[there] = stats.false_discovery_control(p[there])
    return out


def p_value(estimate: Estimate, value: float = 0.0) -> float:
    """Two-sided p of the mean being `value`, Student's t over its units; nan where there is no error.

    Where all units are alike there is no spread to measure by. Then it is how seldom as many would fall on one side of
    `value` by chance alone, 2 / 2^units (the sign test); 1 where they are `value`.
    """
    if math.isnan(estimate.error):
        return math.nan
    apart, rounding = abs(estimate.mean - value), _ROUNDING * max(1.0, abs(estimate.mean), abs(value))
    if estimate.error <= rounding:
        return 1.0 if apart <= rounding else 2.0 ** (1 - estimate.units)
    return float(2 * stats.t.sf(apart / estimate.error, estimate.units - 1))


def boards_needed(deviation: float, difference: float) -> int:
    """Boards for a difference to be seen in 80 of 100 cases at 5 %: 7.85 (deviation / difference)^2."""
    if not difference > 0 or not deviation > 0:
        raise ValueError(f"deviation={deviation!r} and difference={difference!r} must be above 0")
    quantiles = stats.norm.ppf((1 + CONFIDENCE) / 2) + stats.norm.ppf(POWER)
    return math.ceil(float((quantiles * deviation / difference) ** 2))
