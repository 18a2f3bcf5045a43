"""Whether players that were trained apart understand each other: partners of different seeds against fixed opponents.

J[i, j] is what a pair of partner i and partner j wins a deal from a fixed pool, on the same boards for all pairs. What
a pair of one training wins more than pairs of different trainings is the part of its strength that is a private
agreement: gap = mean of J[i, i] - mean of J[i, j]. Opponents are fixed, or their skill in reading would be in it.

Trainings are the units. An interval over pairs, which share them, is three to five times too narrow; here trainings
are drawn again, and a training that was drawn twice is not its own partner of another seed. Beside it stands the
interval over boards, which all pairs share: it says how well these very trainings are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from domino_env.rules import Rules
from experiments.duplicate import labels
from experiments.evaluate import Player, Side
from experiments.signaling.matches import BOARDS, Matches, Show, players_of, said, side_name
from experiments.signaling.statistics import DRAWS, Estimate, finite, held, mantel, over_nodes, over_units

Floats = npt.NDArray[np.float64]
#: How far what a player's moves say is from what they would say if each of others had made them: bits, one an other.
Distances = Callable[[Player, Sequence[Player]], "Sequence[float | Estimate]"]

POOL = ("greedy", "club")


@dataclass(frozen=True)
class Method:
    """Trainings of one method: points a deal, and where not said otherwise with intervals over trainings."""

    name: str
    self_play: Estimate
    cross_play: Estimate
    gap: Estimate
    self_play_over_boards: Estimate  # of these trainings, boards as units; and so
    cross_play_over_boards: Estimate
    gap_over_boards: Estimate
    middle: float  # mean of the middle half of all pairs of different trainings
    worst: str  # the training whose partners of other trainings do worst with it
    worst_points: float  # what they win

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: value.to_dict() if isinstance(value, Estimate) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class CrossPlay:
    """Pairs of all trainings against the pool."""

    players: tuple[str, ...]  # (n,) the trainings, in the order of rows and columns
    method: tuple[str, ...]  # (n,) the method of each
    pool: tuple[str, ...]
    rules: str
    seed: int
    values: Floats = field(repr=False)  # (n, n, pool, boards) points a deal of the pair, symmetric
    distances: Floats | None = None  # (n, n) bits, [i, j] of i's play read as j's; 0 on the diagonal
    draws: int = DRAWS

    @property
    def boards(self) -> int:
        """Boards of each match."""
        return self.values.shape[3]

    @property
    def points(self) -> Floats:
        """(n, n) mean over the pool and the boards."""
        return self.values.mean(axis=(2, 3))

    @property
    def gaps(self) -> Floats:
        """(n, n) what two lose when each leaves its own partner: (J[i, i] + J[j, j]) / 2 - J[i, j]."""
        points = self.points
        own = np.diagonal(points)
        return (own[:, None] + own) / 2 - points

    def rows_of(self, method: str) -> npt.NDArray[np.int64]:
        """Rows of the trainings of a method."""
        return np.flatnonzero(np.array(self.method) == method)

    @property
    def methods(self) -> list[Method]:
        """What is to be said of each method."""
        return [self._of(name) for name in dict.fromkeys(self.method)]

    def _of(self, name: str) -> Method:
        rows = self.rows_of(name)
        points, off = self.points[np.ix_(rows, rows)], ~np.eye(len(rows), dtype=np.bool_)
        board = self.values[np.ix_(rows, rows)].mean(axis=2)  # (k, k, boards)
        first = board[0, 0]  # as in `_gap`
        own, others = np.diagonal(board - first).mean(axis=1), (board - first)[off].mean(axis=0)
        with_others = np.where(off, points, 0).sum(axis=1) / (len(rows) - 1)
        worst = int(with_others.argmin())
        return Method(
            name,
            _over(points, _own, self.draws),
            _over(points, _others, self.draws),
            _over(points, _gap, self.draws),
            over_units(first + own),
            over_units(first + others),
            over_units(own - others),
            float(stats.trim_mean(points[np.triu_indices(len(rows), 1)], 0.25)),
            self.players[rows[worst]],
            float(with_others[worst]),
        )

    @property
    def notes(self) -> list[str]:
        """How often intervals over so few trainings hold the truth, a line for each number of them."""
        lines = []
        for count in sorted({len(self.rows_of(name)) for name in self.method}):
            if count < 3:
                lines.append(f"{count} trainings give no interval over trainings; three would")
            elif cases := held(count):
                own, others, gap = cases
                lines.append(
                    f"{count} trainings: intervals over trainings are too narrow; of 100 about {own} hold the truth "
                    f"for partners of one training, {others} for partners of different ones, {gap} for the gap"
                )
        return lines

    @property
    def differences(self) -> dict[str, Estimate]:
        """Gap of one method less that of another, for every two of them; "one - other"."""
        return {f"{a.name} - {b.name}": difference(a.gap, b.gap) for a, b in combinations(self.methods, 2)}

    @property
    def between(self) -> dict[str, Estimate]:
        """What pairs of partners of two methods win, for every two of them; "one x other". Over boards, of these
        trainings."""
        found = {}
        for a, b in combinations(dict.fromkeys(self.method), 2):
            cells = self.values[np.ix_(self.rows_of(a), self.rows_of(b))]
            found[f"{a} x {b}"] = over_units(cells.mean(axis=(0, 1, 2)))
        return found

    @property
    def agreement(self) -> dict[str, dict[str, float | None]]:
        """Whether trainings that mean different things by their moves lose more together: `mantel` of distances (mean
        of both directions) and gaps, by method and over "all"; of three trainings or more, none without distances."""
        if self.distances is None:
            return {}
        both, found = (self.distances + self.distances.T) / 2, {}
        groups = {name: self.rows_of(name) for name in dict.fromkeys(self.method)}
        if len(groups) > 1:
            groups["all"] = np.arange(len(self.players))
        for name, rows in groups.items():
            cell = np.ix_(rows, rows)
            r, p = _mantel(both[cell], self.gaps[cell], self.draws)
            found[name] = {"correlation": finite(r), "p": finite(p)}
        return found

    def to_dict(self) -> dict[str, Any]:
        """For JSON: players, method (of each), pool, rules, seed, boards; points, gaps and distances, (n, n), null
        where there is none; points against each of the pool; methods, differences, between, agreement, notes."""
        return {
            "players": list(self.players),
            "method": list(self.method),
            "pool": list(self.pool),
            "rules": self.rules,
            "seed": self.seed,
            "boards": self.boards,
            "points": self.points.tolist(),
            "against": {name: self.values[:, :, i].mean(axis=2).tolist() for i, name in enumerate(self.pool)},
            "gaps": self.gaps.tolist(),
            "distances": None
            if self.distances is None
            else [[finite(one) for one in row] for row in self.distances.tolist()],
            "methods": [one.to_dict() for one in self.methods],
            "differences": {name: one.to_dict() for name, one in self.differences.items()},
            "between": {name: one.to_dict() for name, one in self.between.items()},
            "agreement": self.agreement,
            "notes": self.notes,
        }

    def rows(self) -> list[tuple[str, Estimate]]:
        """Figures in words."""
        found = []
        for one in self.methods:
            found += [
                (f"{one.name}: partners of one training", one.self_play),
                (f"{one.name}: partners of one training, over boards", one.self_play_over_boards),
                (f"{one.name}: partners of different trainings", one.cross_play),
                (f"{one.name}: partners of different trainings, over boards", one.cross_play_over_boards),
                (f"{one.name}: gap", one.gap),
                (f"{one.name}: gap, over boards", one.gap_over_boards),
            ]
        found += [(f"gap {name}", one) for name, one in self.differences.items()]
        return found + [(f"partners {name}, over boards", one) for name, one in self.between.items()]

    def draw(self, axes: Any, what: str = "points") -> None:
        """Draw a heat map on matplotlib axes.

        Args:
            what: "points" (a deal), "gaps" or "distances".
        Raises:
            ValueError: anything else, or distances that are not there.
        """
        kinds = {"points": (self.points, "PuOr_r", "points a deal against the pool")}
        kinds["gaps"] = (self.gaps, "YlOrRd", "points a deal lost by leaving one's partner")
        if self.distances is not None:
            kinds["distances"] = (self.distances, "YlGnBu", "bits between what moves mean, row's play read as column's")
        if what not in kinds:
            raise ValueError(f"there is no picture of {what!r}; choose from {', '.join(kinds)}")
        table, colors, title = kinds[what]
        most = max(1e-9, float(np.nanmax(np.abs(table))))
        image = axes.imshow(table, cmap=colors, vmin=-most if what == "points" else 0, vmax=most)
        size, names = len(table), labels(self.players)
        for i, j in np.ndindex(table.shape):
            light = float(np.dot(image.to_rgba(table)[i, j][:3], (0.3, 0.59, 0.11)))
            ink = "black" if light > 0.5 else "white"
            axes.text(j, i, f"{table[i, j]:.2f}".replace("-", "−"), ha="center", va="center", color=ink, fontsize=8)
        axes.set_xticks(range(size), names, rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(size), names)
        edges = [i - 0.5 for i in range(1, size) if self.method[i] != self.method[i - 1]]
        for edge in edges:
            axes.axhline(edge, color="0.2", linewidth=1.2)
            axes.axvline(edge, color="0.2", linewidth=1.2)
        axes.set_title(title, fontsize=9)

    def draw_agreement(self, axes: Any) -> None:
        """Draw gaps over distances on matplotlib axes, a point two trainings of one method."""
        if self.distances is None:
            raise ValueError("there are no distances to draw")
        both = (self.distances + self.distances.T) / 2
        for name in dict.fromkeys(self.method):
            pairs = np.array(list(combinations(self.rows_of(name), 2)))
            axes.plot(both[pairs[:, 0], pairs[:, 1]], self.gaps[pairs[:, 0], pairs[:, 1]], "o", label=name)
        axes.set_xlabel("bits between what moves mean")
        axes.set_ylabel("points a deal lost together")
        axes.axhline(0, color="0.3", linewidth=0.8)
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)


def cross_play(
    methods: Mapping[str, Sequence[Player]] | Sequence[Player],
    pool: Sequence[Side] = POOL,
    rules: str | Rules = "sport_book",
    boards: int = BOARDS,
    seed: int = 0,
    *,
    distances: Distances | npt.NDArray[Any] | None = None,
    folder: str | Path | None = None,
    draws: int = DRAWS,
    progress: Show | None = None,
) -> CrossPlay:
    """Every two trainings as partners against every opponent of a pool.

    Who of the two sits at the lower seat is left to the order of the trainings: leaders rotate over the boards, so that
    it makes no difference but that of chance.

    Args:
        methods: trainings of each method by its name, two or more each; a plain sequence is one method.
        pool: opponents, fixed, each alike in the mean; none a training, which wins 0 against itself by symmetry.
        rules: a game of pairs for four; boards: of each match; seed: of deals and chance.
        distances: between what moves mean, (n, n), or a function that gives a row of it, see `Distances`: it plays what
            a training plays, and reads it as each of the others.
        folder: matches are kept there, and those that are there are not played again.
        draws: of the bootstrap over trainings, and of the shuffles of `mantel`.
        progress: called with (boards played, boards of all matches); distances to be found count as much again.
    Raises:
        ValueError: fewer than two trainings of a method, one that is named twice or is in the pool, an empty pool,
            distances of another shape, and what `Matches.play_all` refuses.
        AgentError: a player failed; the matches before are kept in the folder.
    """
    table = Matches(rules, boards, seed, folder)
    if not table.rules.pairs or table.rules.seats != 4:
        raise ValueError(f"cross-play is of two partners against two, and {table.rules.name} is no game of pairs")
    named = dict(methods) if isinstance(methods, Mapping) else {"all": list(methods)}
    for name, trainings in named.items():
        if isinstance(trainings, str) or len(trainings) < 2:
            raise ValueError(f"cross-play needs two trainings or more of a method, and {name} has {trainings!r}")
    if not named or not pool or isinstance(pool, str):
        raise ValueError("cross-play needs a method and a list of opponents, at least one of each")
    players = [player for trainings in named.values() for player in trainings]
    names = [said(player) for player in players]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"each training counts once, or its spread looks smaller than it is; twice: {twice[0]}")
    opponents = {said(player) for side in pool for player in players_of(side)}
    if both := [name for name in names if name in opponents]:
        raise ValueError(
            f"a training is no opponent of itself, where it wins 0 by symmetry; in the pool, too: {', '.join(both)}"
        )
    n = len(players)
    given = None if distances is None or callable(distances) else _given(distances, n)
    cells = [(i, j) for i in range(n) for j in range(i, n)]
    asked: list[tuple[Side, Side]] = [((players[i], players[j]), side) for i, j in cells for side in pool]
    matches, total = len(asked) * table.boards, len(asked) * table.boards * (2 if callable(distances) else 1)

    def show(done: int, _: int) -> None:
        if progress is not None:
            progress(done, total)

    played = iter(table.play_all(asked, show))
    values = np.empty((n, n, len(pool), table.boards))
    for i, j in cells:
        for k in range(len(pool)):
            values[i, j, k] = values[j, i, k] = next(played).values
    far = given
    if callable(distances):
        far = distances_of(players, distances, lambda row, rows: show(matches + matches * row // rows, total))
    method = tuple(name for name, trainings in named.items() for _ in trainings)
    sides = tuple(map(side_name, pool))
    return CrossPlay(tuple(names), method, sides, table.rules.title, table.seed, values, far, draws)


def distances_of(players: Sequence[Player], distances: Distances, progress: Show | None = None) -> Floats:
    """(n, n) distance of every two players in either order, 0 on the diagonal.

    progress: called with (rows found, all).
    Raises:
        ValueError: a row of another length.
    """
    n = len(players)
    found = np.zeros((n, n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        row = distances(players[i], [players[j] for j in others])
        if len(row) != len(others):
            raise ValueError(f"distances of {said(players[i])} to {len(others)} others are so many, not {len(row)}")
        found[i, others] = [one.mean if isinstance(one, Estimate) else float(one) for one in row]
        if progress is not None:
            progress(i + 1, n)
    return found


def difference(one: Estimate, other: Estimate) -> Estimate:
    """One figure less another that is independent of it, with an interval from theirs.

    Each end is as far from the difference as the two ends that it comes from are from their means together, by
    Pythagoras, so that lopsided intervals stay lopsided (Zou and Donner 2008).
    """
    mean = one.mean - other.mean
    return Estimate(
        mean,
        mean - math.hypot(one.mean - one.low, other.high - other.mean),
        mean + math.hypot(one.high - one.mean, other.mean - other.low),
        math.hypot(one.error, other.error),
        one.units + other.units,
        one.count + other.count,
    )


def _own(points: Floats) -> float:
    return float(np.diagonal(points).mean())


def _others(points: Floats) -> float:
    return float(np.nanmean(points[~np.eye(len(points), dtype=np.bool_)]))


def _gap(points: Floats) -> float:
    points = points - points[0, 0]  # so that no rounding makes a gap of trainings that are alike
    return _own(points) - _others(points)


def _over(points: Floats, figure: Callable[[Floats], float], draws: int) -> Estimate:
    """A figure over trainings; two of them give no interval."""
    if len(points) < 3:
        return Estimate(figure(points), math.nan, math.nan, math.nan, len(points), points.size)
    return over_nodes(points, figure, draws)


def _mantel(one: Floats, other: Floats, draws: int) -> tuple[float, float]:
    """Nan where there are too few, one of the two is the same everywhere, or a distance is not known."""
    off = ~np.eye(len(one), dtype=np.bool_)
    if len(one) < 3 or np.isnan(one[off]).any() or np.ptp(one[off]) == 0 or np.ptp(other[off]) == 0:
        return math.nan, math.nan
    return mantel(one, other, draws)


def _given(distances: Any, n: int) -> Floats:
    table = np.asarray(distances, np.float64)
    if table.shape != (n, n) or not np.isfinite(table).all():
        raise ValueError(f"distances of {n} trainings are a finite ({n}, {n}) matrix, not one of {table.shape}")
    return table
