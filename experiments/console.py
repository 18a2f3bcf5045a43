"""What commands share at the terminal: tables, JSON on standard output, progress on standard error, names of games."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from domino_env import Rules


def asked_rules(text: str) -> Rules:
    """The rules of a text such as evaluations show: a preset's name, then FIELD=VALUE for what differs."""
    from domino_env import get_rules

    name, *words = text.split() or [""]
    fields: dict[str, Any] = {}
    for word in words:
        field, sign, value = word.partition("=")
        if not sign or not value or field in fields:
            raise ValueError(f"--rules {text!r}: after the preset's name write FIELD=VALUE, each once; not {word!r}")
        plain: dict[str, Any] = {"true": True, "false": False}
        if field == "match_to":  # of the others, chain has a choice of this name
            plain["none"] = None
        fields[field] = int(value) if re.fullmatch(r"-?[0-9]{1,9}", value) else plain.get(value.lower(), value)
    return get_rules(name, **fields)


def output() -> Console:
    """Standard output; wide enough for its tables where it is no terminal."""
    return Console() if sys.stdout.isatty() else Console(width=120)


def print_json(result: dict[str, Any]) -> None:
    """One JSON object on standard output; a figure that is not finite is null."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): clean(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [clean(item) for item in value]
        if hasattr(value, "tolist"):  # NumPy
            return clean(value.tolist())
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return str(value) if isinstance(value, Path) else value

    print(json.dumps(clean(result), allow_nan=False))


@contextlib.contextmanager
def stdout_kept(as_json: bool) -> Iterator[None]:
    """Where JSON is asked for, whatever else would be printed meanwhile goes to standard error."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar with rate and estimate on standard error, only at a terminal; yields show(done, total)."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    # A slow player takes minutes for a batch: the estimate looks back over some of them.
    options: dict[str, Any] = {"console": Console(stderr=True), "transient": True, "speed_estimate_period": 600}
    with Progress(*columns, TimeRemainingColumn(), **options) as bar:
        task = bar.add_task(what, total=None, rate="")

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:,.0f}/s" if speed else "")

        yield show


@contextlib.contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done, only at a terminal; yields say(text)."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    with Console(stderr=True).status("") as status:
        yield status.update
