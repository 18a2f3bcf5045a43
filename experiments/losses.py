"""Where the moves of two players cost points against double-dummy: figures, and a picture.

A loss is that of `agents.search.losses`. It is split by the tiles on the line before the move (lead: none; early: 1 to
11; late: 12 and more) and by seat, in leading order. On duplicate boards the values of the leads cancel: what A wins on
them is exactly what B loses more.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from agents.search.losses import Moves, joined, move_losses
from domino_env.rules import Rules
from experiments.files import write_whole

LATE = 12  # tiles on the line from which on a move is late; a deal has 22 lays on the average
PHASES = {"lead": slice(0, 1), "early": slice(1, LATE), "late": slice(LATE, None)}
PLACES = ("leader", "second", "partner", "fourth")  # in leading order
_AT_ONCE = 64  # boards that are solved together: so often progress is shown
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Losses:
    """Losses of sides A and B on duplicate boards.

    On a board each side has every place once, at one of the two tables.
    """

    cost: npt.NDArray[np.int64]  # (2, boards, seats, tiles dealt) points lost by side, place, and tiles on the line

    @property
    def boards(self) -> int:
        """Boards whose moves were solved."""
        return self.cost.shape[1]

    def side(self, which: int) -> dict[str, float]:
        """Mean points that a side (0: A, 1: B) loses a deal; NaN where there are no boards.

        Returns:
            per_deal; low and high, its 95 % interval over boards (Student's t), NaN where there is one board; lead,
            early and late, which add up to it; and each place, over the deals in which the side had it: half of all, so
            the places add up to twice per_deal.
        """
        cost = self.cost[which]
        if not self.boards:
            return dict.fromkeys(["per_deal", "low", "high", *PHASES, *PLACES[: cost.shape[1]]], float("nan"))
        each = cost.sum(axis=(1, 2)) / 2  # of a board, a deal
        mean, margin = float(each.mean()), float("nan")
        if self.boards > 1:
            quantile = float(stats.t.ppf((1 + _CONFIDENCE) / 2, self.boards - 1))
            margin = quantile * float(each.std(ddof=1)) / self.boards**0.5
        figures = {"per_deal": mean, "low": mean - margin, "high": mean + margin}
        figures |= {name: float(cost[:, :, tiles].sum() / (2 * self.boards)) for name, tiles in PHASES.items()}
        places = cost.sum(axis=2).mean(axis=0)
        return figures | {name: float(place) for name, place in zip(PLACES, places)}

    def to_dict(self) -> dict[str, Any]:
        """The keys of `domino evaluate --losses N --json`; dd_loss_per_deal is that of side A."""
        a, b = self.side(0), self.side(1)
        return {"dd_loss_per_deal": a["per_deal"], "dd_losses": {"boards": self.boards, "a": a, "b": b}}


def count_losses(
    parts: Sequence[Moves],
    boards: npt.NDArray[np.bool_],
    rules: Rules,
    progress: Callable[[int, int], None] | None = None,
) -> Losses:
    """Solves the moves of duplicate boards.

    Args:
        parts: moves whose deal is number 2 * board + table; at table 0 side A has the even seats, at table 1 the odd.
        boards: (n,) bool, which of the boards 0 .. n - 1, of which the moves are, count.
        rules: a game of the solver.
        progress: called with (boards solved, n) now and then.
    """
    cost = np.zeros((2, len(boards), rules.seats, rules.seats * rules.hand_size), np.int64)
    if parts:
        moves = joined(parts)
        moves = moves.take(boards[moves.deal // 2])
        for start in range(0, len(boards), _AT_ONCE):
            some = moves.take((moves.deal // 2 >= start) & (moves.deal // 2 < start + _AT_ONCE))
            side = (some.seat + some.deal) % 2
            laid = cost.shape[3] - np.bitwise_count(some.hands).sum(axis=1, dtype=np.int64)
            np.add.at(cost, (side, some.deal // 2, some.place, laid), move_losses(some, rules))
            if progress is not None:
                progress(min(start + _AT_ONCE, len(boards)), len(boards))
    return Losses(cost[:, boards])


def draw_losses(losses: Losses, names: tuple[str, str], out: str | Path) -> Path:
    """Draw where two sides lose points, as PNG: seats in leading order against tiles on the line, A beside B.

    A cell is the mean loss a deal of that seat while so many tiles lay, over the deals in which the side had the seat.
    A column has as many tiles as there are seats, so that every seat comes to lay once in it unless someone passes.

    Args:
        losses: of at least one board; names: of sides A and B.
        out: the picture.

    Raises:
        ValueError: no boards; OSError: it cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not losses.boards:
        raise ValueError("no losses to draw: there is no board without a forfeited deal")
    _, boards, seats, tiles = losses.cost.shape
    cells = losses.cost.reshape(2, boards, seats, tiles // seats, seats).sum(axis=4).mean(axis=1)
    rounds = cells.shape[2]
    most = max(float(cells.max()), 1e-9)
    figure = Figure(figsize=(3.2 + 1.3 * rounds, 1.6 + 0.55 * seats), layout="constrained")
    FigureCanvasAgg(figure)
    plots = figure.subplots(1, 2, sharey=True)
    image = None
    for which, axes in enumerate(plots):
        image = axes.imshow(cells[which], cmap="YlOrRd", vmin=0, vmax=most, aspect="auto")
        for place in range(seats):
            for column in range(rounds):
                value = float(cells[which, place, column])
                shade = "white" if value > 0.6 * most else "black"
                axes.text(column, place, f"{value:.2f}", ha="center", va="center", fontsize=8, color=shade)
        side = losses.side(which)
        name = names[which] if len(names[which]) <= 48 else f"…{names[which][-47:]}"
        interval = f" ({side['low']:.2f} to {side['high']:.2f}, 95 %)" if boards > 1 else ""
        axes.set_title(f"{'AB'[which]}: {name}\n{side['per_deal']:.2f} points lost a deal{interval}", fontsize=9)
        first = np.arange(rounds) * seats
        labels = [f"{one}-{one + seats - 1}" if seats > 1 else f"{one}" for one in first]
        axes.set_xticks(range(rounds), labels)
        axes.set_yticks(range(seats), PLACES[:seats])
        axes.set_xlabel("tiles on the line before the move")
    assert image is not None
    figure.colorbar(image, ax=plots, label="points lost a deal in that seat", fraction=0.05, pad=0.01)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return write_whole(out, picture.getvalue())
