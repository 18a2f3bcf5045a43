"""The learning curve of a run as a picture, from the run's own TensorBoard events."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.files import write_whole
from experiments.metrics import opponent_tag

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """What a run reached against one opponent, at each of its E evaluations."""

    decisions: Floats  # (E,) learned from until then
    minutes: Floats  # (E,) of training by the clock until then; nan where the run did not log them
    points: Floats  # (E,) points a deal
    low: Floats  # (E,) 95 % interval over boards
    high: Floats  # (E,)


def read_curves(run: str | Path) -> dict[str, Curve]:
    """The curves of a run by opponent, sorted; of a run that went on, what came after its checkpoint counts.

    Raises:
        ValueError: a folder without evaluations.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()["scalars"]
    opponents = sorted(re.findall(r"^eval/(.+)/points_per_deal$", "\n".join(tags), re.MULTILINE))
    if not opponents:
        raise ValueError(f"{run} holds no evaluations to draw; give the folder of a run that was evaluated")
    clock = "time/total_minutes"
    minutes = {one.step: one.value for one in events.Scalars(clock)} if clock in tags else {}
    curves = {}
    for opponent in opponents:
        # A resumed run evaluates again at its end, at a step that may be there already: the last counts.
        figures = [
            {one.step: one.value for one in events.Scalars(opponent_tag(opponent, what))}
            for what in ("points_per_deal", "points_per_deal_low", "points_per_deal_high")
        ]
        steps = sorted(step for step in figures[0] if all(step in figure for figure in figures))
        curves[opponent] = Curve(
            np.array(steps, dtype=np.float64),
            np.array([minutes.get(step, np.nan) for step in steps]),
            *(np.array([figure[step] for step in steps]) for figure in figures),
        )
    return curves


def draw_curve(run: str | Path, out: str | Path | None = None) -> Path:
    """Draw points a deal over each opponent against decisions learned, with 95 % bands, as PNG.

    Args:
        run: a run folder with TensorBoard events.
        out: the picture; None: ``curve.png`` in the run folder.

    Returns:
        where the picture lies.

    Raises:
        ValueError: a folder without evaluations.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    run = Path(run)
    out = run / "curve.png" if out is None else Path(out)
    curves = read_curves(run)
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for opponent, curve in curves.items():
        decisions = curve.decisions / 1e6
        (line,) = axes.plot(decisions, curve.points, marker="o", markersize=3, label=f"over {opponent}")
        axes.fill_between(decisions, curve.low, curve.high, color=line.get_color(), alpha=0.15)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("decisions learned, millions")
    axes.set_ylabel("points a deal, duplicate boards")
    axes.set_title(run.name, fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return write_whole(out, picture.getvalue())
