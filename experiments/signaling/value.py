"""What reading the others' moves is worth in points a deal: a square of four matches on the same boards.

J(x, y) is what team A wins a deal from team B, where x says whether A's members read each other's moves and y whether B
reads A's. From the four cells follow, board by board,

    partner value   V(y) = J(1, y) - J(0, y)   what A wins by reading its partner,
    exposure        E(x) = J(x, 0) - J(x, 1)   what A loses by being read by B,
    net             J(1, 1) - J(0, 0) = V(1) - E(0) = V(0) - E(1),
    interaction     J(1, 1) - J(1, 0) - J(0, 1) + J(0, 0) = V(1) - V(0) = E(0) - E(1).

Two ways to take the reading away answer two questions. Of one player at test time: what its reading is worth as it
plays. Of players that were trained without it: what a world in which nobody reads comes to (`worlds`).

What is taken away decides what the figures mean. A searching player may read seat by seat (`reads=opponents` for x = 0,
`reads=partner` for y = 0), and then they are what they are called. A network without any history is deaf to all seats
at once: V is then the value of all that A reads and E that of all that B reads, its own partner included; and if both
teams are that same network, the square has one figure only (`Square.notes` says so).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from domino_env.rules import Rules, get_rules
from experiments.bootstrap import coarse
from experiments.evaluate import Side
from experiments.files import write_whole
from experiments.signaling.matches import BOARDS, Matches, Show, lacking_line, side_name
from experiments.signaling.statistics import Estimate, over_seeds, over_units

Floats = npt.NDArray[np.float64]

#: Of each figure what it is in words, and how often it counts J(x, y), as [x][y].
FIGURES: dict[str, tuple[str, list[list[int]]]] = {
    "partner_0": ("partner value, opponents do not read", [[-1, 0], [1, 0]]),
    "partner_1": ("partner value, opponents read", [[0, -1], [0, 1]]),
    "exposure_0": ("exposure, partners do not read", [[1, -1], [0, 0]]),
    "exposure_1": ("exposure, partners read", [[0, 0], [1, -1]]),
    "net": ("net of reading and being read", [[-1, 0], [0, 1]]),
    "interaction": ("interaction", [[1, -1], [-1, 1]]),
}
CELLS = ((0, 0), (0, 1), (1, 0), (1, 1))
SYMMETRIC = (
    "both teams are the same players in every cell: net and interaction are 0 by symmetry, and the partner value is "
    "the exposure; to tell them apart, take reading away seat by seat, or give the teams different players"
)


@dataclass(frozen=True)
class Square:
    """The four cells over the same boards."""

    sides: dict[str, str]  # who played: hear_a, deaf_a, hear_b, deaf_b
    rules: str
    seed: int
    values: Floats = field(repr=False)  # (2, 2, boards) points a deal of team A, [x, y, board]
    claim: float | None = None  # points a deal that shall be seen

    @property
    def boards(self) -> int:
        """Boards of each cell."""
        return self.values.shape[2]

    def each(self, figure: str) -> Floats:
        """(boards,) a figure of `FIGURES`, board by board."""
        if figure not in FIGURES:
            raise ValueError(f"figure {figure!r} is unknown; choose from {', '.join(FIGURES)}")
        return np.tensordot(np.array(FIGURES[figure][1], np.float64), self.values, axes=2)

    def estimate(self, figure: str) -> Estimate:
        """A figure of `FIGURES`, points a deal, with its interval over paired boards."""
        return over_units(self.each(figure))

    def cell(self, x: int, y: int) -> Estimate:
        """J(x, y), points a deal."""
        return over_units(self.values[x, y])

    @property
    def notes(self) -> list[str]:
        """What to bear in mind: that the square has one figure only, or a team does not read whom it shall not hear,
        and where boards are too few for the claim."""
        said = []
        for team, whom, figure in (("a", "its partner", "partner value"), ("b", "its opponents", "exposure")):
            if self.sides.get(f"hear_{team}", team) == self.sides.get(f"deaf_{team}"):
                said.append(
                    f"team {team.upper()} does not read {whom}: without ears for them it is itself, so the {figure} is "
                    "0 by what it is"
                )
        if _symmetric(self.values) and len(said) < 2:
            said.append(SYMMETRIC)
        for name, (words, _) in FIGURES.items():
            said += lacking_line(words, self.each(name), self.claim)
        return said

    def rows(self) -> list[tuple[str, Estimate]]:
        """Cells and figures in words."""
        cells = [(f"J({x}, {y})", self.cell(x, y)) for x, y in CELLS]
        return cells + [(words, self.estimate(name)) for name, (words, _) in FIGURES.items()]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: sides, rules, seed, boards, claim, cells (by "xy"), figures (by name), notes."""
        return {
            "sides": dict(self.sides),
            "rules": self.rules,
            "seed": self.seed,
            "boards": self.boards,
            "claim": self.claim,
            "cells": {f"{x}{y}": self.cell(x, y).to_dict() for x, y in CELLS},
            "figures": {name: self.estimate(name).to_dict() for name in FIGURES},
            "notes": self.notes,
        }

    def draw(self, axes: Any) -> None:
        """Draw the figures with their intervals on matplotlib axes."""
        _bars(axes, [(words, self.estimate(name)) for name, (words, _) in FIGURES.items()])
        axes.set_xlabel(f"points a deal, 95 % over {self.boards:,} boards")


def square(
    hear_a: Side,
    deaf_a: Side,
    hear_b: Side,
    deaf_b: Side,
    rules: str | Rules = "sport_book",
    boards: int = BOARDS,
    seed: int = 0,
    *,
    claim: float | None = None,
    folder: str | Path | None = None,
    progress: Show | None = None,
) -> Square:
    """Play the four cells of a square on the same boards.

    Args:
        hear_a, deaf_a: team A with x = 1 and with x = 0; hear_b, deaf_b: team B with y = 1 and with y = 0. Each an
            agent, or a tuple of two partners.
        rules: a game of pairs; boards: of each cell; seed: of deals and chance.
        claim: size of an effect that shall be seen, points a deal: `Square.notes` then says where it takes more boards.
        folder: matches are kept there, and those that are there are not played again.
        progress: called with (boards played, boards of all four).
    Raises:
        ValueError: a game without pairs, a claim that is not above 0, and what `Matches.play_all` refuses.
        AgentError: a player failed.
    """
    table = Matches(_paired(rules), boards, seed, folder)
    _check_claim(claim)
    teams_a, teams_b = (deaf_a, hear_a), (deaf_b, hear_b)
    played = table.play_all([(teams_a[x], teams_b[y]) for x, y in CELLS], progress)
    values = np.stack([one.values for one in played]).reshape(2, 2, table.boards)
    sides = {"hear_a": hear_a, "deaf_a": deaf_a, "hear_b": hear_b, "deaf_b": deaf_b}
    names = {role: side_name(side) for role, side in sides.items()}
    return Square(names, table.rules.title, table.seed, values, claim)


@dataclass(frozen=True)
class Worlds:
    """Squares of several trainings."""

    squares: tuple[Square, ...]  # one a training, each on boards of its own

    def estimate(self, figure: str) -> Estimate:
        """A figure of `FIGURES` over trainings, points a deal.

        Each training has boards of its own, so that the spread of their figures has that of the boards in it, and the
        bootstrap over trainings is one over both.
        """
        return over_seeds(np.array([one.each(figure).mean() for one in self.squares]))

    def spread(self, figure: str) -> float:
        """Standard deviation of a figure from training to training, without what chance of the boards adds; of two or
        more trainings, 0 where the boards explain all of it."""
        each = [one.estimate(figure) for one in self.squares]
        if len(each) < 2:
            return float("nan")
        between = float(np.var([one.mean for one in each], ddof=1)) - float(np.mean([one.error**2 for one in each]))
        return max(between, 0.0) ** 0.5

    @property
    def notes(self) -> list[str]:
        """What to bear in mind of so few trainings, and what all squares have in common."""
        said = [coarse(len(self.squares))]
        said += [note for note in self.squares[0].notes if all(note in one.notes for one in self.squares)]
        return [note for note in said if note]

    def rows(self) -> list[tuple[str, Estimate]]:
        """Figures in words."""
        return [(words, self.estimate(name)) for name, (words, _) in FIGURES.items()]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: figures over trainings (each with `spread`), squares, notes."""
        figures: dict[str, Any] = {}
        for name in FIGURES:
            spread = self.spread(name)
            figures[name] = self.estimate(name).to_dict() | {"spread": spread if spread == spread else None}
        return {"figures": figures, "squares": [one.to_dict() for one in self.squares], "notes": self.notes}

    def draw(self, axes: Any) -> None:
        """Draw the figures with their intervals on matplotlib axes, and those of each training as points."""
        rows = self.rows()
        _bars(axes, rows)
        for place, name in enumerate(FIGURES):
            each = [one.each(name).mean() for one in self.squares]
            axes.plot(each, [place] * len(each), "|", color="0.4", markersize=9)
        axes.set_xlabel(f"points a deal, 95 % over {len(self.squares)} trainings")


def worlds(
    hear_a: Sequence[Side],
    deaf_a: Sequence[Side],
    hear_b: Sequence[Side],
    deaf_b: Sequence[Side],
    rules: str | Rules = "sport_book",
    boards: int = BOARDS,
    seed: int = 0,
    *,
    folder: str | Path | None = None,
    progress: Show | None = None,
) -> Worlds:
    """The square of retrained players, over trainings and boards.

    Args:
        hear_a, deaf_a, hear_b, deaf_b: as of `square`, one a training: players that were trained reading, and trained
            without. Team B may be of the same training, of another one, or the same fixed player each time: who was
            trained beside A has learned to read A.
        rules, folder: as of `square`; boards: of each cell of each training; seed: training i has the boards of
            seed + i.
        progress: called with (boards played, boards of all).
    Raises:
        ValueError: lists of different lengths, or empty; else as of `square`.
        AgentError: a player failed.
    """
    sizes = [len(hear_a), len(deaf_a), len(hear_b), len(deaf_b)]
    if len(set(sizes)) > 1 or not sizes[0]:
        raise ValueError(f"worlds need as many players of each of the four kinds, at least one, not {sizes}")
    done, found = 0, list[Square]()
    total = 4 * boards * sizes[0]

    def show(now: int, _: int) -> None:
        if progress is not None:
            progress(done + now, total)

    for i, players in enumerate(zip(hear_a, deaf_a, hear_b, deaf_b)):
        found.append(square(*players, rules, boards, seed + i, folder=folder, progress=show))
        done += 4 * boards
    return Worlds(tuple(found))


def _paired(rules: str | Rules) -> Rules:
    game = get_rules(rules)
    if not game.pairs:
        raise ValueError(f"partners are needed to read a partner's moves, and in {game.name} there are none")
    return game


def _check_claim(claim: float | None) -> None:
    if claim is not None and not 0 < claim < float("inf"):
        raise ValueError(f"claim={claim!r} must be points above 0")


def _symmetric(values: Floats) -> bool:
    """Whether the teams are alike in every cell: (2, 2, boards)."""
    return not values[0, 0].any() and not values[1, 1].any() and bool((values[0, 1] == -values[1, 0]).all())


def draw_values(found: Square | Worlds, out: str | Path) -> Path:
    """The figures as a PNG picture. Raises ``OSError`` where it cannot be written."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    FigureCanvasAgg(figure)
    found.draw(figure.subplots())
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return write_whole(out, picture.getvalue())


def _bars(axes: Any, rows: Sequence[tuple[str, Estimate]]) -> None:
    """Means with intervals, one below the other."""
    for place, (_, one) in enumerate(rows):
        color = "C1" if one.told else "0.6"
        axes.plot([one.low, one.high], [place, place], color=color, linewidth=2)
        axes.plot([one.mean], [place], "o", color=color)
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [words for words, _ in rows])
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
