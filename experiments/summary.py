"""The outcome of a sweep: one table over its seeds, as figures, as CSV and as Markdown.

A figure of a variant is its mean over seeds, with a 95 % interval by the bootstrap over seeds
(`experiments.bootstrap`). Every run meets an opponent on the same duplicate boards, so the difference between two
variants, seed by seed, is free of what the boards would have given to both: it is told beside, over the first variant.
What a best response wins is a lower bound (`experiments.exploit`), found by whoever searches best against that run; it
is not held against the first variant, for one that is searched less well is not less exploitable.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bootstrap import EXACT, coarse, seed_interval
from experiments.files import write_whole
from experiments.sweep import Plan, Run, match_of, response_of

_Boards = tuple[int, int]  # how many duplicate boards, and of what seed


def summarize(plan: Plan, runs: Sequence[Run]) -> dict[str, Any]:
    """The table of a sweep, as plain data.

    Opponents are the further players of the plan; where it names none, those that the runs met at their own end.

    Returns:
        sweep, rules, seeds, opponents, best_response (boards that it plays, 0: none was asked for), first (the variant
        the others are held against), notes, variants: a list of {name, config, algorithm, seeds (those that are
        finished), unfinished, runs, decisions, minutes (of training, by the clock), cpu_minutes (all threads),
        decisions_per_second (means over seeds), points: {opponent: {boards, boards_seed, mean, low, high, by_seed,
        over_first: {mean, low, high, seeds} or None}}, best_response: {boards, boards_seed, mean, low, high, by_seed,
        searchers} or None}. Of one seed low and high are None.
    """
    met = {
        variant.name: {run.seed: _met(plan, run) for run in runs if run.variant == variant.name and run.result}
        for variant in plan.variants
    }
    opponents = plan.evaluate.opponents or [
        *dict.fromkeys(name for seeds in met.values() for figures in seeds.values() for name in figures)
    ]
    first = plan.variants[0].name
    variants = []
    for variant in plan.variants:
        own = [run for run in runs if run.variant == variant.name]
        points = {
            name: _points(met[variant.name], None if variant.name == first else met[first], name) for name in opponents
        }
        variants.append(
            {
                "name": variant.name,
                "config": variant.source.stem,
                "algorithm": getattr(variant.config, "algorithm", None),
                **_costs(own),
                "points": {name: figures for name, figures in points.items() if figures is not None},
                "best_response": _response(plan, own),
            }
        )
    table = {
        "sweep": plan.name,
        "rules": plan.rules.title,
        "seeds": list(plan.seeds),
        "opponents": opponents,
        "best_response": plan.evaluate.best_response,
        "first": first,
        "variants": variants,
    }
    return {**table, "notes": _notes(table)}


def _met(plan: Plan, run: Run) -> dict[str, tuple[float, _Boards]]:
    """Points a deal of a finished run by opponent, and the boards they are from."""
    assert run.result is not None
    if plan.evaluate.opponents:
        found = [match_of(plan, run, name) for name in plan.evaluate.opponents]
    else:
        found = list(run.result["evaluations"])
    return {one["b"]: (float(one["points_per_deal"]), (one["boards"], one["seed"])) for one in found if one is not None}


def _points(
    met: Mapping[int, Mapping[str, tuple[float, _Boards]]],
    first: Mapping[int, Mapping[str, tuple[float, _Boards]]] | None,
    opponent: str,
) -> dict[str, Any] | None:
    """Figures of a variant against one opponent; None where none of its runs has met it."""
    mine = {seed: figures[opponent] for seed, figures in met.items() if opponent in figures}
    if not mine:
        return None
    boards, boards_seed = next(iter(mine.values()))[1]
    over = None
    if first is not None:
        theirs = {seed: figures[opponent] for seed, figures in first.items() if opponent in figures}
        pairs = [(mine[s][0], theirs[s][0]) for s in mine if s in theirs and mine[s][1] == theirs[s][1]]
        over = {**_mean([a - b for a, b in pairs]), "seeds": len(pairs)} if pairs else None
    by_seed = {seed: value for seed, (value, _) in mine.items()}
    means = _mean(list(by_seed.values()))
    return {"boards": boards, "boards_seed": boards_seed, **means, "by_seed": by_seed, "over_first": over}


def _response(plan: Plan, runs: Sequence[Run]) -> dict[str, Any] | None:
    """What a search wins from the runs of a variant; None where it has met none of them."""
    met = {run.seed: found for run in runs if run.result and (found := response_of(plan, run)) is not None}
    if not met:
        return None
    by_seed = {seed: float(found["points_per_deal"]) for seed, found in met.items()}
    searchers = sorted({re.split("[:-]", found["response"])[0] for found in met.values()})
    boards = {"boards": plan.evaluate.best_response, "boards_seed": plan.evaluate.seed}
    return {**boards, **_mean(list(by_seed.values())), "by_seed": by_seed, "searchers": searchers}


def _mean(values: Sequence[float]) -> dict[str, float | None]:
    low, high = map(float, seed_interval(values)) if len(values) > 1 else (None, None)
    return {"mean": float(np.mean(values)), "low": low, "high": high}


def _costs(runs: Sequence[Run]) -> dict[str, Any]:
    """Which runs are finished, and means over them."""
    results = [run.result for run in runs if run.result is not None]

    def mean(values: Sequence[float]) -> float | None:
        return float(np.mean(values)) if values else None

    return {
        "seeds": [run.seed for run in runs if run.result is not None],
        "unfinished": [run.seed for run in runs if run.result is None],
        "runs": [str(run.folder) for run in runs if run.result is not None],
        "decisions": mean([one["decisions"] for one in results]),
        "minutes": mean([one["seconds"] / 60 for one in results]),
        "cpu_minutes": mean([run.cpu_seconds / 60 for run in runs if run.cpu_seconds is not None]),
        "decisions_per_second": mean([one["decisions"] / max(one["seconds"], 1e-9) for one in results]),
    }


def _notes(table: Mapping[str, Any]) -> list[str]:
    """What must be said beside the figures."""
    boards = sorted(
        {
            (name, figures["boards"], figures["boards_seed"])
            for variant in table["variants"]
            for name, figures in variant["points"].items()
        }
    )
    kinds = {one[1:] for one in boards}
    where = ""
    if len(kinds) == 1:
        where = ", {:,} of seed {}".format(*kinds.pop())
    elif boards:
        where = " (" + "; ".join(f"{name}: {count:,} boards of seed {seed}" for name, count, seed in boards) + ")"
    met = [
        (variant, f"against {name}", figures)
        for variant in table["variants"]
        for name, figures in (*variant["points"].items(), ("a best response", variant["best_response"]))
        if figures is not None
    ]
    counts = sorted({len(figures["by_seed"]) for _, _, figures in met})
    how = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else "no"
    drawn = "all draws counted" if not counts or counts[-1] <= EXACT else "drawn by chance where there are many"
    notes = [
        f"Points a deal of {table['rules']}, duplicate boards{where}: mean over {how} seed{'s' * (counts != [1])}",
    ]
    if counts and counts[-1] > 1:
        notes[0] += f", with the 95 % interval of the bootstrap over seeds, {drawn}"
    pairs = {over["seeds"] for _, _, figures in met if (over := figures.get("over_first"))}
    notes += [text for count in sorted({*counts, *pairs}) if (text := coarse(count))]
    if table["best_response"]:
        notes.append(_about_responses(table))
    for variant, whom, figures in met:
        if missing := [seed for seed in variant["seeds"] if seed not in figures["by_seed"]]:
            notes.append(f"not played: {variant['name']}, seed {', '.join(map(str, missing))}, {whom}")
    unfinished = {variant["name"]: variant["unfinished"] for variant in table["variants"] if variant["unfinished"]}
    notes += [f"not finished: {name}, seed {', '.join(map(str, seeds))}" for name, seeds in unfinished.items()]
    return notes


def _about_responses(table: Mapping[str, Any]) -> str:
    """What a best response is, and who searched for it: bounds by different searches are not alike sharp."""
    by: dict[str, list[str]] = {}
    for variant in table["variants"]:
        if found := variant["best_response"]:
            by.setdefault(" or ".join(found["searchers"]), []).append(variant["name"])
    boards = f"{table['best_response']:,} boards"
    text = f"Best response: points a deal that a search wins from the run on {boards}, a lower bound; more is worse"
    if len(by) > 1:
        who = "; ".join(f"{searcher} against {', '.join(names)}" for searcher, names in by.items())
        return f"{text}; searched by {who}, which are not alike sharp"
    return f"{text}; searched by {next(iter(by))}" if by else text


# -- written ----------------------------------------------------------------------------------------------------------


def rows(table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the table for people."""
    head = [
        "variant",
        "seeds",
        *(f"over {name}" for name in table["opponents"]),
        *(["best response wins"] if table["best_response"] else []),
        "decisions/s",
        "decisions",
        "minutes",
        "CPU minutes",
    ]
    body = []
    for variant in table["variants"]:
        figures = [_cell(variant["points"].get(name)) for name in table["opponents"]]
        figures += [_cell(variant["best_response"])] if table["best_response"] else []
        costs = ["-", "-", "-", "-"]
        if variant["seeds"]:
            costs = [
                f"{variant['decisions_per_second']:,.0f}",
                _count(variant["decisions"]),
                f"{variant['minutes']:.1f}",
                "-" if variant["cpu_minutes"] is None else f"{variant['cpu_minutes']:.1f}",
            ]
        body.append([variant["name"], str(len(variant["seeds"])), *figures, *costs])
    return head, body


def differences(table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the differences over the first variant; no rows where there are none."""
    head = [f"variant minus {table['first']}", "pairs of seeds", *(f"over {name}" for name in table["opponents"])]
    body = []
    for variant in table["variants"]:
        over = {name: figures["over_first"] for name, figures in variant["points"].items() if figures["over_first"]}
        if over:
            pairs = sorted({one["seeds"] for one in over.values()})
            cells = [_cell(over.get(name)) for name in table["opponents"]]
            body.append([variant["name"], " to ".join(map(str, {pairs[0]: 0, pairs[-1]: 0})), *cells])
    return head, body


def _cell(figures: Mapping[str, Any] | None) -> str:
    if figures is None:
        return "-"
    interval = "" if figures["low"] is None else f" [{figures['low']:.2f}, {figures['high']:.2f}]"
    return f"{figures['mean']:+.2f}{interval}"


def _count(number: float) -> str:
    return f"{number / 1e6:,.2f} million" if number >= 1e5 else f"{number:,.0f}"


def markdown(table: Mapping[str, Any]) -> str:
    """The table as it can stand in a README."""
    parts = [_markdown(*rows(table)), "\n".join(f"{note}." for note in table["notes"])]
    head, body = differences(table)
    if body:
        parts += [_markdown(head, body), f"Seed by seed over `{table['first']}`, on the same boards."]
    return "\n\n".join(parts) + "\n"


def _markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    named = [[f"`{cells[0]}`", *cells[1:]] for cells in body]
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, named)])


def _csv(table: Mapping[str, Any]) -> str:
    """A line a variant and opponent; what a best response wins stands in each line of its variant."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    costs = ("decisions", "minutes", "cpu_minutes", "decisions_per_second")
    points = ("boards", "boards_seed", "mean", "low", "high")
    over = ("mean", "low", "high", "seeds")
    ends = [*(f"over_first_{key}" for key in over), *(f"best_response_{key}" for key in points)]
    writer.writerow(["variant", "algorithm", "seeds", *costs, "opponent", *points, *ends])
    for variant in table["variants"]:
        about = [variant["name"], variant["algorithm"], len(variant["seeds"]), *(variant[key] for key in costs)]
        for name, figures in (variant["points"] or {"": {}}).items():
            first, response = figures.get("over_first") or {}, variant["best_response"] or {}
            row = [*about, name, *(figures.get(key) for key in points), *(first.get(key) for key in over)]
            writer.writerow([*row, *(response.get(key) for key in points)])
    return text.getvalue()


def write_tables(table: Mapping[str, Any], folder: str | Path) -> None:
    """Writes table.json, table.csv and table.md into a folder, each whole."""
    folder = Path(folder)
    write_whole(folder / "table.json", json.dumps(table, indent=1) + "\n")
    write_whole(folder / "table.csv", _csv(table))
    write_whole(folder / "table.md", markdown(table))
