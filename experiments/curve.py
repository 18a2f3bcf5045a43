"""The learning curve of a run as a picture, from the run's own TensorBoard events."""

from __future__ import annotations

import io
import re
from pathlib import Path

from experiments.files import write_whole
from experiments.metrics import opponent_tag


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
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = Path(run)
    out = run / "curve.png" if out is None else Path(out)
    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()["scalars"]
    opponents = sorted(re.findall(r"^eval/(.+)/points_per_deal$", "\n".join(tags), re.MULTILINE))
    if not opponents:
        raise ValueError(f"{run} holds no evaluations to draw; give the folder of a run that was evaluated")
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for opponent in opponents:
        middle, low, high = (
            events.Scalars(opponent_tag(opponent, what))
            for what in ("points_per_deal", "points_per_deal_low", "points_per_deal_high")
        )
        decisions = [one.step / 1e6 for one in middle]
        points = [one.value for one in middle]
        (line,) = axes.plot(decisions, points, marker="o", markersize=3, label=f"over {opponent}")
        axes.fill_between(
            decisions, [one.value for one in low], [one.value for one in high], color=line.get_color(), alpha=0.15
        )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("decisions learned, millions")
    axes.set_ylabel("points a deal, duplicate boards")
    axes.set_title(run.name, fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return write_whole(out, picture.getvalue())
