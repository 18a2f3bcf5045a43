"""A duplicate tournament: every two of any agents on the same boards, and what follows from it.

A match is `experiments.evaluate`: so many boards, each played twice with the sides crossed, and the boards are the same
in all matches. From the matches follow the pay-off matrix in points a deal, the shares won and tied, a rating for every
side (`experiments.ratings`) and the mixture of sides that none of them beats (`experiments.nash`).

The folder: `duplicate.json` says what was asked for, `matches/` has a file a match, written whole as soon as it was
played. Going on plays what is missing, and agents that come later bring only their own matches. At the end there are
`table.json`, `table.csv`, `matrix.png` and a file of TensorBoard events.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Agent, Decisions, make_agent
from domino_env.rules import Rules, get_rules
from experiments.evaluate import Result, evaluate
from experiments.files import locked, read_record, write_whole
from experiments.nash import mixture
from experiments.ratings import rate
from experiments.tournament import ANOTHER, networks, same_networks, squads_of

BOARDS = 1000
HEAD, TABLE, SHEET, PICTURE, MATCHES = "duplicate.json", "table.json", "table.csv", "matrix.png", "matches"
_KIND, _VERSION = "domino duplicate tournament", 1
#: Of each matrix: what the row reads where it was the first side, what where it was the second, and with which sign.
_CELLS = {
    **{"points": ("points", "points", -1), "low": ("low", "high", -1), "high": ("high", "low", -1)},
    **{"win": ("win", "loss", 1), "tie": ("tie", "tie", 1)},
    **{"boards_won": ("boards_won", "boards_lost", 1), "boards_tied": ("boards_tied", "boards_tied", 1)},
}
_FIGURES = (*_CELLS, "loss", "boards_lost")

Ints = npt.NDArray[np.int64]
Pair = tuple[str, str]  # agents of the two partners
Show = Callable[[int, int], None]

# -- what is asked for ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """A duplicate tournament before it is played; :func:`plan` makes one that can be."""

    sides: dict[str, Pair]
    rules: Rules
    boards: int
    seed: int
    networks: dict[str, str]  # SHA-256 of every network that plays or is read, by the folder that was named

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as `duplicate.json` has it."""
        return {
            "record": _KIND,
            "version": _VERSION,
            "rules": self.rules.name,
            "rule_overrides": self.rules.overrides(),
            "boards": self.boards,
            "seed": self.seed,
            "sides": {name: [*pair] for name, pair in self.sides.items()},
            "networks": self.networks,
        }


def plan(words: Sequence[str], rules: str | Rules = "sport_book", boards: int = BOARDS, seed: int = 0) -> Plan:
    """What to play.

    Args:
        words: sides, at least two: an agent ("club", "pimc-30", the folder of a run or of a checkpoint), two partners
            ("mixed=club+greedy"), each with a name of its own before a sign = where that is wanted.
        rules: the game; boards: of each match, at least 2; seed: of deals and chance.
    Raises:
        ValueError: fewer than two sides, a name twice, an agent that does not exist or does not play the game, or
            numbers out of range.
        ImportError: what an agent needs is not installed.
    """
    game = get_rules(rules)
    for key, value, least in (("boards", boards, 2), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{key}={value!r} must be a whole number >= {least}")
    sides: dict[str, Pair] = {}
    for name, squad in squads_of(list(words)).items():
        if len(squad) > 1:
            raise ValueError(f"pairs: {name!r} is a team of two pairs; here the boards are the same for all anyway")
        if squad[0][0] != squad[0][1] and game.seats < 4:
            raise ValueError(f"pairs: {name!r} has two partners, and {game.name} has {game.seats} seats")
        sides[name] = squad[0]
    if len(sides) < 2:
        raise ValueError(f"a tournament has two sides or more, not {', '.join(sides) or 'none'}")
    agents = sorted({agent for pair in sides.values() for agent in pair})
    for agent in agents:
        make_agent(agent, game)
    return Plan(sides, game, boards, seed, networks(agents))


# -- a match ----------------------------------------------------------------------------------------------------------


class Timed:
    """An agent whose decisions are counted and timed."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.name = agent, agent.name
        self.decisions, self.seconds, self.cpu_seconds = 0, 0.0, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)

    def act(self, batch: Decisions) -> Ints:
        """What the agent answers."""
        began, used = time.perf_counter(), time.process_time()
        answer = self.agent.act(batch)
        self.seconds += time.perf_counter() - began
        self.cpu_seconds += time.process_time() - used
        self.decisions += len(batch)
        return answer


Spent = list[float]  # decisions, CPU seconds


def meet(
    a: Pair, b: Pair, rules: str | Rules, boards: int, seed: int, progress: Show | None = None
) -> tuple[Result, tuple[Spent, Spent]]:
    """A match, and what each side spent on it. The agents are made anew: nothing is left of what they played before."""
    made = [[Timed(make_agent(name, rules)) for name in dict.fromkeys(pair)] for pair in (a, b)]
    first, second = (one[0] if len(one) == 1 else (one[0], one[1]) for one in made)
    result = evaluate(first, second, rules, boards, seed, progress=progress)
    spent = [[sum(agent.decisions for agent in one), sum(agent.cpu_seconds for agent in one)] for one in made]
    return result, (spent[0], spent[1])


def matrices(
    players: Sequence[str], matches: Mapping[tuple[str, str], Mapping[str, float]], keys: Iterable[str]
) -> dict[str, list[list[float | None]]]:
    """(n, n) of each figure of the row against the column, None where they have not met, from figures of matches."""
    place = {name: i for i, name in enumerate(players)}
    cells: dict[str, list[list[float | None]]] = {key: [[None] * len(place) for _ in place] for key in keys}
    for (a, b), figures in matches.items():
        i, j = place[a], place[b]
        for key, table in cells.items():
            own, other, sign = _CELLS[key]
            table[i][j], table[j][i] = figures[own], sign * figures[other]
    return cells


def cpu_ms_per_move(players: Sequence[str], spent: Iterable[Mapping[str, Sequence[float]]]) -> dict[str, float]:
    """CPU milliseconds a decision of each player, from what it spent on each match."""
    total = {name: np.zeros(2) for name in players}
    for one in spent:
        for name, figures in one.items():
            total[name] += figures
    return {name: round(1000 * float(seconds) / max(int(moves), 1), 5) for name, (moves, seconds) in total.items()}


def _record(names: tuple[str, str], result: Result, spent: tuple[Spent, Spent]) -> dict[str, Any]:
    """A match as its file has it."""
    boards = {"boards_won": result.values > 0, "boards_tied": result.values == 0, "boards_lost": result.values < 0}
    return {
        "sides": [*names],
        **{"points": result.points_per_deal, "low": result.low, "high": result.high},
        **{"win": result.win, "tie": result.tie, "loss": result.loss},
        **{key: float(which.mean()) for key, which in boards.items()},
        "spent": dict(zip(names, spent)),
        "values": result.values.tolist(),
    }


# -- the folder -------------------------------------------------------------------------------------------------------


def load(folder: str | Path) -> Plan:
    """What was asked for in the folder of a duplicate tournament.

    Raises:
        ValueError: there is none in it, or one that cannot be read.
        OSError: the file cannot be read.
    """
    path = Path(folder) / HEAD
    if not path.is_file():
        raise ValueError(f"{folder} holds no duplicate tournament: there is no {HEAD} in it")
    data = read_record(path, _KIND, _VERSION)
    try:
        sides = {str(name): (str(first), str(second)) for name, (first, second) in data["sides"].items()}
        found = {str(folder): str(digest) for folder, digest in data["networks"].items()}
        game = get_rules(data["rules"], **data["rule_overrides"])
        return Plan(sides, game, int(data["boards"]), int(data["seed"]), found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def holds(folder: str | Path) -> bool:
    """Whether there is a duplicate tournament in this folder."""
    return (Path(folder) / HEAD).is_file()


def _claim(folder: Path, asked: Plan) -> None:
    """See that what the folder holds, if anything, is this tournament, or this one with fewer players."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; a tournament is written to a folder")
    if not (folder / HEAD).is_file():
        if folder.exists() and any(not one.name.startswith(f".{HEAD}") for one in folder.iterdir()):
            raise ValueError(f"{folder} is not empty and holds no duplicate tournament; write elsewhere")
        return
    there = load(folder)
    for key, old, new in (
        ("rules", there.rules.title, asked.rules.title),
        ("boards", there.boards, asked.boards),
        ("seed", there.seed, asked.seed),
        *((name, "+".join(pair), "+".join(asked.sides.get(name, pair))) for name, pair in there.sides.items()),
    ):
        if old != new:
            raise ValueError(f"{folder} holds another tournament, with {key}={old}, not {key}={new}; write elsewhere")
    if missing := [name for name in there.sides if name not in asked.sides]:
        raise ValueError(f"{folder} holds a tournament with {missing[0]} too; name it again, or write elsewhere")
    same_networks(folder, there.networks, asked.networks)


def _matches(folder: Path, asked: Plan) -> dict[tuple[str, str], dict[str, Any]]:
    """The matches that were played. Raises ``ValueError`` for one that does not hold."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted((folder / MATCHES).glob("*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            a, b = data["sides"]
            numbers = [*data["values"], *(data[key] for key in _FIGURES), *data["spent"][a], *data["spent"][b]]
            whole = len(data["values"]) == asked.boards and all(map(math.isfinite, numbers)) and a != b
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no match of this tournament: {error}") from None
        if not whole or not {a, b} <= set(asked.sides) or {(a, b), (b, a)} & set(found):
            raise ValueError(f"{path} is no match of this tournament; remove it, and it is played again")
        found[a, b] = data
    return found


def run(asked: Plan, folder: str | Path, progress: Show | None = None) -> dict[str, Any]:
    """Play a duplicate tournament to its end, or go on with it, and write its tables.

    Args:
        asked: what to play.
        folder: where it is written; a new one, or one that holds this tournament, or it with fewer players.
        progress: called with boards played and boards in all.
    Returns:
        :func:`report`, and the folder.
    Raises:
        ValueError: a folder that holds something else or is being written, a match that does not hold, a network that
            is no longer what it was.
        AgentError: an agent failed; the matches before are kept.
        OSError: it cannot be written.
    """
    folder = Path(folder)
    _claim(folder, asked)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, ANOTHER):
        _claim(folder, asked)
        (folder / MATCHES).mkdir(exist_ok=True)
        for left in (*folder.glob(".*.part"), *(folder / MATCHES).glob(".*.part")):  # of a run that was killed
            left.unlink()
        matches = _matches(folder, asked)
        write_whole(folder / HEAD, json.dumps(asked.as_dict(), ensure_ascii=False, indent=1) + "\n")
        _play(asked, folder, matches, progress or (lambda done, total: None))
        result = report(asked, matches)
        _write(result, folder)
    return {**result, "folder": str(folder)}


def _play(asked: Plan, folder: Path, matches: dict[tuple[str, str], dict[str, Any]], progress: Show) -> None:
    """Play what is missing in `matches`, and put it there and on the disk."""
    met = {frozenset(pair) for pair in matches}
    missing = [pair for pair in combinations(asked.sides, 2) if frozenset(pair) not in met]
    total = math.comb(len(asked.sides), 2) * asked.boards
    for names in missing:
        done = len(matches) * asked.boards
        progress(done, total)
        agents = {agent for name in names for agent in asked.sides[name]}
        same_networks(folder, asked.networks, networks(agents))  # a run that goes on meanwhile changes it

        def show(boards: int, _: int, done: int = done) -> None:
            progress(done + boards, total)

        a, b = (asked.sides[name] for name in names)
        matches[names] = _record(names, *meet(a, b, asked.rules, asked.boards, asked.seed, show))
        paths = (folder / MATCHES / f"match-{number:04}.json" for number in count(1))
        path = next(path for path in paths if not path.exists())
        write_whole(path, json.dumps(matches[names], ensure_ascii=False) + "\n")


# -- what follows from the matches ------------------------------------------------------------------------------------


def report(asked: Plan, matches: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[str, Any]:
    """All figures of a tournament whose matches are played: what `domino tournament --duplicate --json` prints.

    Returns:
        players: names as they were asked for, which is the order of rows and columns of the matrices (n, n), None on
        the diagonal: points (a deal, of the row against the column), low, high (95 % interval over boards), win, tie
        (shares of the deals), boards_won, boards_tied (shares of the boards); ratings: by player rating, low, high;
        ranking: players, the best rated first; nash: mixture (share by player), against (points a deal of each player
        against it), value, unique; means: points a deal of each player over the others; cpu_ms_per_move: by player;
        sides: agents of each player; boards (of each match), rules, seed.
    """
    names = list(asked.sides)
    cells = matrices(names, matches, _CELLS)
    meetings = [(a, b, one["values"]) for (a, b), one in matches.items()]
    ratings = rate(names, meetings, shared=True, seed=asked.seed)
    points = np.array(cells["points"], np.float64)
    nash = mixture(np.nan_to_num(points))
    return {
        "players": names,
        **{key: cells[key] for key in ("points", "low", "high")},
        "ratings": ratings,
        "boards": asked.boards,
        "ranking": sorted(names, key=lambda name: -(ratings[name]["rating"] or 0)),
        "means": dict(zip(names, np.nanmean(points, axis=1).tolist())),
        "nash": {
            "mixture": dict(zip(names, nash.weights.tolist())),
            "against": dict(zip(names, nash.against.tolist())),
            "value": nash.value,
            "unique": nash.unique,
        },
        **{key: cells[key] for key in ("win", "tie", "boards_won", "boards_tied")},
        "cpu_ms_per_move": cpu_ms_per_move(names, (one["spent"] for one in matches.values())),
        "sides": {name: [*pair] for name, pair in asked.sides.items()},
        "rules": asked.rules.title,
        "seed": asked.seed,
    }


def _write(result: Mapping[str, Any], folder: Path) -> None:
    """The tables, the picture and the events."""
    from PIL import Image

    from experiments.metrics import Metrics, rating_tag

    write_whole(folder / TABLE, json.dumps(result, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    write_whole(folder / SHEET, _sheet(result))
    picture = _png(result)
    write_whole(folder / PICTURE, picture)
    for old in folder.glob("events.out.tfevents.*"):  # of the table before: one folder, one table
        old.unlink()
    with Metrics(folder) as metrics:
        ratings = {rating_tag(name): one["rating"] for name, one in result["ratings"].items()}
        metrics.scalars(ratings, result["boards"])
        pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
        metrics.image("tournament/matrix", pixels, result["boards"])


def _sheet(result: Mapping[str, Any]) -> str:
    """The table as CSV: a row a player, the best rated first."""
    players, ranking = result["players"], result["ranking"]
    head = ["place", "player", "rating", "rating_low", "rating_high", "points", "nash", "against_nash"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    over = [f"{what} {name}" for name in ranking for what in ("over", "low over", "high over")]
    writer.writerow([*head, "cpu_ms_per_move", *over])
    for place, name in enumerate(ranking, 1):
        one, nash, i = result["ratings"][name], result["nash"], players.index(name)
        row = [one["rating"], one["low"], one["high"], result["means"][name]]
        row += [nash["mixture"][name], nash["against"][name], result["cpu_ms_per_move"][name]]
        row += [result[key][i][players.index(other)] for other in ranking for key in ("points", "low", "high")]
        writer.writerow([place, name, *("" if value is None else f"{value:.6g}" for value in row)])
    return text.getvalue()


# -- the picture ------------------------------------------------------------------------------------------------------


def draw_matrix(result: Mapping[str, Any], path: str | Path) -> Path:
    """Draw the pay-off matrix as PNG: rows and columns by rating, orange where the row wins and purple where it loses.

    Args:
        result: as :func:`report`, `experiments.tournament` and `experiments.strength.search` give it: players, points,
            low, high, boards, rules and seed, and ratings where there are any.
        path: where the picture goes.
    Returns:
        the path.
    """
    return write_whole(path, _png(result))


def _png(result: Mapping[str, Any]) -> bytes:
    picture = io.BytesIO()
    _figure(result).savefig(picture, format="png", dpi=120)
    return picture.getvalue()


def _figure(result: Mapping[str, Any]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names, ratings = result["players"], result.get("ratings", {})
    order = sorted(range(len(names)), key=lambda i: -((ratings.get(names[i]) or {}).get("rating") or 0))
    points, low, high = (np.array(result[key], np.float64)[np.ix_(order, order)] for key in ("points", "low", "high"))
    shown = labels([names[i] for i in order])
    most = max(float(np.nanmax(np.abs(points), initial=0)), 1.0)
    size = len(order)
    longest = max(map(len, shown))
    width, height = 0.82 * size + 0.1 * longest + 2.4, 0.66 * size + 0.06 * longest + 1.4
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    image = axes.imshow(np.nan_to_num(points), cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto")
    colors = image.to_rgba(np.nan_to_num(points))
    for i, j in zip(*np.nonzero(np.isfinite(points))):
        ink = _ink(colors[i, j])
        half = (high[i, j] - low[i, j]) / 2
        number = f"{points[i, j]:+.2f}".replace("-", "−")
        axes.text(j, i - 0.1, number, ha="center", va="center", color=ink, fontsize=10)
        if np.isfinite(half):
            axes.text(j, i + 0.2, f"±{half:.2f}", ha="center", va="center", color=ink, fontsize=7.5)
    for i in range(size):
        axes.text(i, i, "–", ha="center", va="center", color="0.45")
    rated = [(ratings.get(names[i]) or {}).get("rating") for i in order]
    axes.set_yticks(range(size), [name if one is None else f"{name}  {one:.0f}" for name, one in zip(shown, rated)])
    axes.set_xticks(range(size), shown, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_xticks(np.arange(size - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(size - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    played = f"{result['rules']}, {result['boards']:,} boards, seed {result['seed']}"
    axes.set_title(f"points a deal of the row over the column, ± half of the 95 % interval\n{played}", fontsize=9)
    figure.colorbar(image, ax=axes, pad=0.02).outline.set_visible(False)
    return figure


def _ink(color: Any) -> str:
    """Black or white, whichever stands out more on this colour (WCAG 2: relative luminance)."""
    light = np.asarray(color, np.float64)[:3]
    linear = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
    return "black" if linear @ (0.2126, 0.7152, 0.0722) > 0.179 else "white"


def labels(names: Sequence[str], most: int = 26) -> list[str]:
    """Names short enough for a picture, and still different: of a folder the run, of a long name its two ends."""
    short = ["".join(map(_tail, re.split("([=,+:])", name))) for name in names]
    half = most // 2
    short = [name if len(name) <= most else f"{name[:half]}…{name[1 - half :]}" for name in short]
    return [name if short.count(name) == 1 else f"{name} ({i})" for i, name in enumerate(short, 1)]


def _tail(word: str) -> str:
    """Of a path the run, and the checkpoint where it is not the newest."""
    parts = [part for part in word.split("/") if part not in ("", "checkpoints", "latest")]
    return "/".join(parts[-2:] if len(parts) > 1 and parts[-1].isdigit() else parts[-1:])
