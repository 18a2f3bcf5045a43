"""`domino compare`: learning curves of several runs, grouped, as one picture and as TensorBoard scalars.

A group is the runs of one config, or those that agree in a key of their configs; a run that is alone is a group too.
Its curve is the mean over its runs. The band around it is the 95 % interval over runs, by the bootstrap over seeds
(`experiments.bootstrap`); of a run alone, the interval over boards of its own evaluations. Runs are evaluated at
moments of their own, so between two evaluations a run counts as the line between them, and a group's curve goes from
where all its runs have begun to where the first of them ends.
"""

from __future__ import annotations

import difflib
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from domino_env.rules import get_rules
from experiments import sweep
from experiments.bootstrap import coarse, seed_interval
from experiments.curve import Curve, Floats, read_curves
from experiments.files import write_whole
from experiments.metrics import Metrics

AXES = {"decisions": "decisions learned, millions", "minutes": "minutes of training"}
#: Okabe and Ito's colours, which the colour-blind can tell apart; without the yellow, too light for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", ":")
_RUN = re.compile(r"(.+)-\d+-\d{8}-\d{6}(\.\d+)?")  # <config>-<seed>-<time>


@dataclass(frozen=True)
class Band:
    """The curve of a group against one opponent, at G places of the axis."""

    x: Floats  # (G,) decisions, or minutes
    mean: Floats  # (G,) points a deal, mean over runs
    low: Floats  # (G,) 95 % interval; see the head of this file
    high: Floats  # (G,)
    runs: int


@dataclass(frozen=True)
class Group:
    """Runs that are one line in the picture."""

    name: str
    runs: tuple[Path, ...]
    curves: tuple[Mapping[str, Curve], ...]  # of each run, by opponent

    def band(self, opponent: str, x: str = "decisions") -> Band | None:
        """The group's curve over this axis; None where no run has met the opponent, or they have no place in common.

        Args:
            x: "decisions" or "minutes".
        """
        lines = [_line(one[opponent], x) for one in self.curves if opponent in one]
        lines = [line for line in lines if len(line[0])]
        if not lines:
            return None
        if len(lines) == 1:
            return Band(*lines[0], runs=1)
        begin, end = max(line[0][0] for line in lines), min(line[0][-1] for line in lines)
        places = np.unique(np.concatenate([line[0] for line in lines]))
        places = places[(places >= begin) & (places <= end)]
        if not len(places):
            return None
        points = np.stack([np.interp(places, line[0], line[1]) for line in lines])
        return Band(places, points.mean(axis=0), *seed_interval(points), runs=len(lines))


def _line(curve: Curve, x: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Places, points, low and high of one run; evaluations whose place is not known are left out."""
    places = curve.minutes if x == "minutes" else curve.decisions
    known = np.isfinite(places)
    return places[known], curve.points[known], curve.low[known], curve.high[known]


@dataclass(frozen=True)
class Comparison:
    """Groups of runs of one game."""

    by: str  # "config", or a key
    rules: str
    groups: tuple[Group, ...]

    @property
    def opponents(self) -> list[str]:
        """All that any run has met, sorted."""
        return sorted({name for group in self.groups for curves in group.curves for name in curves})

    def to_dict(self, x: str = "decisions") -> dict[str, Any]:
        """Plain data: what `domino compare --json` prints.

        by, rules, x, opponents, groups: a list of {name, runs, curves: {opponent: {x, mean, low, high, runs}}}, and
        notes: what must be said of the bands.
        """
        groups = []
        for group in self.groups:
            bands = {name: group.band(name, x) for name in self.opponents}
            curves = {
                name: {
                    **{key: getattr(band, key).tolist() for key in ("x", "mean", "low", "high")},
                    "runs": band.runs,
                }
                for name, band in bands.items()
                if band is not None
            }
            groups.append({"name": group.name, "runs": [str(run) for run in group.runs], "curves": curves})
        head = {"by": self.by, "rules": self.rules, "x": x, "opponents": self.opponents}
        return {**head, "groups": groups, "notes": self.notes(x)}

    def notes(self, x: str = "decisions") -> list[str]:
        """Which bands over runs are too narrow, by how many runs they are of."""
        bands = [group.band(name, x) for group in self.groups for name in self.opponents]
        counts = sorted({band.runs for band in bands if band is not None and band.runs > 1})
        return [text for count in counts if (text := coarse(count))]


# -- reading ----------------------------------------------------------------------------------------------------------


def read_runs(runs: Sequence[str | Path], by: str | None = None) -> Comparison:
    """The curves of runs, grouped.

    Args:
        runs: folders of runs, or of sweeps, which stand for all their finished runs.
        by: a key of the runs' configs, dotted where it is nested; None: by the config's name, that is by variant in a
            sweep.

    Raises:
        ValueError: a folder that is no run, or that holds no evaluations; runs of different games; an unknown key.
    """
    folders = [*dict.fromkeys(folder for one in runs for folder in _folders(Path(one)))]
    if not folders:
        raise ValueError("nothing to compare: name one run or more, or the folder of a sweep")
    settings = {folder: _settings(folder) for folder in folders}
    games = {folder: _game(folder, config) for folder, config in settings.items()}
    first = folders[0]
    for folder in folders:
        if games[folder] != games[first]:
            raise ValueError(
                f"runs of different rules cannot be compared: {first} plays {games[first]}, "
                f"{folder} plays {games[folder]}"
            )
    if by is not None and not any(by in config for config in settings.values()):
        known = sorted({key for config in settings.values() for key in config})
        near = difflib.get_close_matches(by, known, 1, 0.6)
        said = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known)}"
        raise ValueError(f'--by {by}: no run has the key "{by}"; {said}')
    groups: dict[str, list[Path]] = {}
    order = folders
    if by is not None and all(isinstance(config.get(by), int | float) for config in settings.values()):
        order = sorted(folders, key=lambda folder: float(settings[folder][by]))
    for folder in order:
        groups.setdefault(_group(folder, settings[folder], by), []).append(folder)
    if len(groups) > len(COLOURS) * len(STYLES):
        raise ValueError(f"{len(groups)} groups are more than {len(COLOURS) * len(STYLES)} that can be told apart")
    curves = {folder: read_curves(folder) for folder in folders}
    return Comparison(
        by or "config",
        games[first],
        tuple(Group(name, tuple(own), tuple(curves[one] for one in own)) for name, own in groups.items()),
    )


def _folders(folder: Path) -> list[Path]:
    """The run that a folder is, or the finished runs of the sweep that it is."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder; name the folder of a run or of a sweep")
    if not sweep.is_sweep(folder):
        return [folder]
    runs = [run.folder for run in sweep.runs_of(folder) if run.folder is not None and run.result is not None]
    if not runs:
        raise ValueError(f"{folder}: no run of this sweep is finished yet")
    return runs


def _settings(run: Path) -> dict[str, Any]:
    """The config of a run with dotted keys."""
    file = run / "config.yaml"
    if not file.is_file():
        raise ValueError(f"{run} is no run: it has no config.yaml; name a folder that domino train made")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        content = None
    if not isinstance(content, dict) or "rules" not in content:
        raise ValueError(f"{run} is no run: its config.yaml is not that of a run")
    flat: dict[str, Any] = {}
    for key, value in content.items():
        flat[key] = value
        if isinstance(value, dict):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
    return flat


def _game(run: Path, config: Mapping[str, Any]) -> str:
    try:
        return get_rules(config["rules"], **(config.get("rule_overrides") or {})).title
    except (ValueError, TypeError) as error:
        raise ValueError(f"{run}: its rules are not known here: {error}") from None


def _group(run: Path, config: Mapping[str, Any], by: str | None) -> str:
    if by is None:
        named = _RUN.fullmatch(run.resolve().name)
        return named[1] if named else run.resolve().name
    value = config.get(by, "none")
    return f"{by}={value:g}" if isinstance(value, float) else f"{by}={value}"


# -- the picture ------------------------------------------------------------------------------------------------------


def draw_comparison(
    runs: Sequence[str | Path], out: str | Path = "compare.png", by: str | None = None, x: str = "decisions"
) -> Path:
    """Draw the learning curves of several runs, a panel an opponent, as PNG.

    Args:
        runs, by: as of `read_runs`.
        out: the picture.
        x: "decisions" or "minutes" (of training, by the clock).

    Returns:
        where the picture lies.

    Raises:
        ValueError: as of `read_runs`, another axis, or nothing to draw.
        OSError: it cannot be written.
    """
    return draw(read_runs(runs, by), out, x)


def check_axis(x: str) -> None:
    """Refuses, by a ValueError, what the curves cannot go along."""
    if x not in AXES:
        raise ValueError(f"x={x!r} is unknown; choose from {', '.join(AXES)}")


def draw(comparison: Comparison, out: str | Path, x: str = "decisions") -> Path:
    """Draw what has been read; see `draw_comparison`."""
    picture = io.BytesIO()
    _figure(comparison, x).savefig(picture, format="png", dpi=130)
    return write_whole(out, picture.getvalue())


def _figure(comparison: Comparison, x: str) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    check_axis(x)
    opponents = comparison.opponents
    columns = min(3, len(opponents))
    lines = math.ceil(len(opponents) / columns)
    figure = Figure(figsize=(max(5.2, 3.9 * columns), 3.5 * lines + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(lines, columns, sharex=True, squeeze=False)
    handles: dict[str, Any] = {}
    for axes, opponent in zip(grid.flat, opponents):
        axes.axhline(0, color="0.45", linewidth=0.8, zorder=1)
        for i, group in enumerate(comparison.groups):
            if (band := group.band(opponent, x)) is None:
                continue
            colour, style = COLOURS[i % len(COLOURS)], STYLES[i // len(COLOURS)]
            places = band.x / 1e6 if x == "decisions" else band.x
            marker = {"marker": "o", "markersize": 4} if len(places) < 4 else {}
            (line,) = axes.plot(places, band.mean, color=colour, linestyle=style, linewidth=1.8, **marker)
            axes.fill_between(places, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
            handles.setdefault(f"{group.name} ({len(group.runs)} run{'s' * (len(group.runs) > 1)})", line)
        axes.set_title(f"over {opponent}", fontsize=11)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        axes.set_xlabel(AXES[x])
        axes.tick_params(labelbottom=True)
    grid[0, 0].set_xlim(left=0)  # of all panels, and last: from here on no panel widens it
    for axes in grid.flat[len(opponents) :]:
        axes.set_visible(False)
    if not handles:
        raise ValueError(f"nothing to draw: no group's runs have a stretch of {x} in common")
    figure.supylabel("points a deal, duplicate boards", fontsize=10)
    figure.suptitle("\n".join([_title(comparison), *comparison.notes(x)[:1]]), fontsize=9, color="0.3")
    longest = max(map(len, handles), default=1)
    across = max(1, int(figure.get_figwidth() / (0.085 * (longest + 7))))  # inches a letter
    across = math.ceil(len(handles) / math.ceil(len(handles) / across))  # lines of one length
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=across, frameon=False)
    return figure


def _title(comparison: Comparison) -> str:
    alone = {len(group.runs) == 1 for group in comparison.groups}
    bands = {
        (False,): "over runs (bootstrap)",
        (True,): "over the boards of each evaluation",
        (False, True): "over runs (bootstrap); of a group of one run, over boards",
    }
    return f"{comparison.rules}: mean over the runs of a group; band: 95 % {bands[tuple(sorted(alone))]}"


# -- TensorBoard ------------------------------------------------------------------------------------------------------


def write_scalars(comparison: Comparison, folder: str | Path) -> Path:
    """The same curves for TensorBoard, over decisions: a run a group in `folder`, which it shows in one chart.

    What an earlier comparison wrote there is replaced.
    """
    folder = Path(folder)
    for old in folder.glob("*/events.out.tfevents.*"):
        old.unlink()
    for group in comparison.groups:
        own = folder / re.sub(r"[^A-Za-z0-9._=,+-]+", "_", group.name)
        own.mkdir(parents=True, exist_ok=True)
        with Metrics(own) as metrics:
            for opponent in comparison.opponents:
                if (band := group.band(opponent)) is None:
                    continue
                for end, values in (("", band.mean), ("_low", band.low), ("_high", band.high)):
                    for step, value in zip(band.x, values):
                        metrics.scalar(f"compare/{opponent}/points_per_deal{end}", value, int(step))
    return folder
