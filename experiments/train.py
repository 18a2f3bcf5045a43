"""`domino train`: a run from its config to what it wins, or on from where it stopped.

A run is a folder, complete in itself: config.yaml, TensorBoard events, checkpoints, result.json, curve.png. Training
has a deadline in CPU time (or in updates); evaluations do not count. Ctrl-C at any moment saves and ends with exit
code 130.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json as json_module
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from agents import checkpoint
from agents.algorithms import BaseTrainer, RunConfig, config_class, make_trainer
from agents.base import decide
from agents.checkpoint import CheckpointError
from agents.search import load as load_search
from agents.search.losses import check as check_solver
from domino_env.deals import Streams
from domino_env.engine import make_engine
from domino_env.rules import describe_rules
from domino_env.words import rates
from experiments import config as configs
from experiments.config import ConfigError
from experiments.curve import draw_curve
from experiments.evaluate import Result, evaluate
from experiments.files import write_whole
from experiments.metrics import Metrics, opponent_tag, run_folder
from experiments.signals import handled

#: Seeds of the duplicate boards: those of the end are never looked at on the way.
WAY_BOARDS, END_BOARDS = 1, 2

#: Figures of an update that are arrays; they are logged at evaluations.
HISTOGRAMS = ("policy/entropy",)

#: Deals that the policy plays against itself at an evaluation, to be looked at.
SAMPLE_DEALS = 256


def train(
    config_path: str | Path | None, overrides: Sequence[str], resume: str | Path | None = None, *, json: bool = False
) -> dict[str, Any]:
    """Train a run to its end and evaluate it.

    Args:
        config_path: a YAML file; None: the defaults of the algorithm. A resumed run keeps its own config.
        overrides: "key=value" words over it.
        resume: a run folder or one of its checkpoints to go on from, in its own folder.
        json: print nothing on standard output.

    Returns:
        run, updates, decisions, seconds (of training, by the clock), evaluations (each as of `domino evaluate --json`).

    Raises:
        ConfigError, CheckpointError: the config or the checkpoint cannot be used, or nothing can be saved.
        KeyboardInterrupt: Ctrl-C, after saving.
    """
    if resume is None:
        config = load_config(config_path, overrides)
        found = None
    else:
        found = checkpoint.resume(resume, lambda error: print(f"refused: {error}", file=sys.stderr))
        config = _resumed(found, overrides)
    trainer = make_trainer(config)
    try:
        if found is None:
            if config.start is not None:
                checkpoint.begin(trainer, config.start)
            name = trainer.config.algorithm if config_path is None else Path(config_path).stem
            run = _Run(_new_folder(config, name), trainer)
        else:
            _restore(trainer, found)
            run = _Run(_old_folder(config, found), trainer)
            print(f"resuming {run.folder} after update {trainer.updates}", file=sys.stderr)
    except BaseException:
        trainer.close()
        raise
    try:
        write_whole(run.folder / "config.yaml", configs.dump(config))
        with Metrics(run.folder, purge_step=trainer.decisions + 1 if resume else None) as metrics:
            if resume is None:
                metrics.text("config", configs.dump(config))
            with run.interruptible():
                _train(run, metrics)
            result = _finish(run, metrics)
    except OSError as error:  # of the log or the result; a checkpoint's own is a CheckpointError
        where = run.saved or "nothing was saved"
        raise CheckpointError(f"{run.folder} cannot be written: {error.strerror or error}; saved: {where}") from error
    except KeyboardInterrupt:
        if run.busy:  # impatient: the parameters are those of half an update, so the last checkpoint stands
            raise
        run.save()
        print(f"interrupted; saved {run.saved}; go on with: domino train --resume {run.folder}", file=sys.stderr)
        raise
    finally:
        trainer.close()
    if not json:
        _show(result)
    return result


def load_config(path: str | Path | None, overrides: Sequence[str]) -> RunConfig:
    """The config of a run, of the class that its `algorithm` names; ppo where it names none.

    Raises:
        ConfigError, OSError: as `experiments.config.load`.
    """
    said, source = configs.peek(path, overrides, "algorithm", "ppo")
    try:
        cls = config_class(said)
    except ValueError as error:
        raise ConfigError(f"{source}: {error}") from None
    return configs.load(path, overrides, cls)


def _new_folder(config: RunConfig, name: str) -> Path:
    try:
        return run_folder(config.runs_dir, name, config.seed)
    except OSError as error:
        why = f"no run can be written there: {error.strerror}; it must be a folder, or one that can be made"
        raise ConfigError(f"runs_dir={config.runs_dir}: {why}") from None


def _old_folder(config: RunConfig, found: checkpoint.Checkpoint) -> Path:
    """The folder of a run as its start called it; in full where it was moved or we are elsewhere."""
    folder = Path(config.runs_dir) / found.run.name
    return folder if folder.is_dir() and folder.samefile(found.run) else found.run


def _resumed(found: checkpoint.Checkpoint, overrides: Sequence[str]) -> RunConfig:
    """The config that a checkpoint was trained by, with `overrides` over it."""
    saved = found.state.get("config")
    try:
        cls = config_class(found.state.get("algorithm"))
    except ValueError as error:
        raise CheckpointError(f"{found.folder}: {error}") from None
    if not isinstance(saved, dict):
        raise CheckpointError(f"{found.folder} does not say by what config it was trained")
    if hasattr(cls, "choices"):
        # What a run is without that was begun before they were there.
        saved = {"choices": False, "alternatives": False} | saved
    if hasattr(cls, "deaf"):
        saved = {"deaf": 0.0} | saved
    config = configs.load(None, overrides, cls, saved=saved, source=str(found.folder / "state.json"))
    now = configs.as_dict(config)
    for key in config.FIXED:
        if now[key] != saved.get(key, now[key]):
            given, kept = (str(one).lower() if isinstance(one, bool) else one for one in (now[key], saved[key]))
            raise ConfigError(f"{key}={given} cannot be changed on resume; {found.run} has {kept}")
    return config


def _restore(trainer: BaseTrainer, found: checkpoint.Checkpoint) -> None:
    if found.rules != trainer.rules:
        raise CheckpointError(f"{found.folder} was trained for other rules than {trainer.rules.name}")
    checkpoint.fill(trainer.model(), found.model, str(found.folder))
    checkpoint.fill(trainer.optimizer(), found.optimizer, str(found.folder))
    try:
        trainer.restore(found.state["counters"], found.memory)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{found.folder}: its counters are not complete: {error}") from None


class _Run:
    """A run folder, its trainer, and what becomes of a Ctrl-C."""

    def __init__(self, folder: Path, trainer: BaseTrainer) -> None:
        self.folder = folder
        self.trainer = trainer
        self.saved: Path | None = None  # the newest checkpoint
        self._saved_updates = -1
        self.busy = False  # an update may be half done: a signal only sets `stop`
        self.stop = False

    @cached_property
    def loss_boards(self) -> int:
        """Boards of an evaluation whose moves are held against double-dummy; says so once where Numba is missing."""
        boards = self.trainer.config.dd_loss_boards
        if boards:
            try:
                check_solver(self.trainer.rules)
            except ValueError:  # another game
                return 0
            except ImportError as error:
                print(f"no eval/…/dd_loss_per_deal: {error}", file=sys.stderr)
                return 0
        return boards

    @cached_property
    def signal_deals(self) -> int:
        """Deals of an evaluation that are asked what moves tell the partner; says so once where Numba is missing."""
        if self.trainer.config.signal_deals:
            try:
                load_search("reading")
            except ImportError as error:
                print(f"no signaling/…: {error}", file=sys.stderr)
                return 0
        return int(self.trainer.config.signal_deals)

    def save(self) -> None:
        """Saves a checkpoint, unless this update has one."""
        trainer = self.trainer
        if self._saved_updates == trainer.updates:
            return
        config = trainer.config
        state = {
            "algorithm": config.algorithm,
            "config": configs.as_dict(config),
            "rules": describe_rules(trainer.rules),
            "policy": trainer.describe(),
            "counters": trainer.counters(),
            # All chance of update n follows from these two numbers: no generator has a state of its own.
            "generators": {"seed": config.seed, "update": trainer.updates},
            "versions": {name: _version(name) for name in ("domino-lab", "torch", "numpy")},
        }
        self.saved = checkpoint.save(
            self.folder / "checkpoints",
            trainer.updates,
            trainer.model(),
            trainer.optimizer(),
            state,
            config.keep_checkpoints,
            trainer.memory(),
        )
        self._saved_updates = trainer.updates

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Ctrl-C and the polite kill wait for the end of the update that runs; a second Ctrl-C does not wait."""

        def handle(number: int, frame: FrameType | None) -> None:
            if not self.busy or self.stop:
                raise KeyboardInterrupt
            self.stop = True

        with handled(handle, signal.SIGINT, signal.SIGTERM):
            yield

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """What is done in it is done whole; a Ctrl-C meanwhile takes effect at its end. After an error `busy` stays."""
        self.busy = True
        yield
        self.busy = False
        if self.stop:
            raise KeyboardInterrupt


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "source"


def _train(run: _Run, metrics: Metrics) -> None:
    """Updates until the deadline, with checkpoints and evaluations on the way."""
    trainer, config = run.trainer, run.trainer.config
    last_save = last_look = trainer.elapsed
    with _bar() as (bar, console):
        task = bar.add_task("training", total=1.0, figures="")
        while trainer.progress < 1:
            cpu, wall = time.process_time(), time.perf_counter()
            with run.undisturbed():
                figures = trainer.update()
                step = trainer.decisions
                histograms = {tag: figures.pop(tag) for tag in HISTOGRAMS if tag in figures}
                metrics.scalars(figures, step)  # type: ignore[arg-type]
                trainer.spend(time.process_time() - cpu, time.perf_counter() - wall)
                metrics.scalar("charts/SPS", trainer.decisions / trainer.seconds, step)
                metrics.scalar("time/total_minutes", trainer.seconds / 60, step)
                due = trainer.elapsed - last_save >= config.checkpoint_every and trainer.progress < 1
                if due:
                    last_save = trainer.elapsed
                    try:
                        run.save()
                    except CheckpointError as error:  # there may be room next time; at the end it is an error
                        console.print(f"warning: {error}", style="red", highlight=False)
            rate = f"{trainer.decisions / trainer.seconds:,.0f} decisions/s"
            bar.update(task, completed=trainer.progress, figures=rate)
            if trainer.elapsed - last_look >= config.evaluate_every and trainer.progress < 1:
                last_look = trainer.elapsed
                for tag, values in histograms.items():
                    metrics.histogram(tag, values, step)
                said = _look(run, metrics)
                console.print(f"{trainer.seconds / 60:6.1f} min  {rate}  {said}", highlight=False)
        with run.undisturbed():
            run.save()


@contextlib.contextmanager
def _bar() -> Iterator[tuple[Progress, Console]]:
    """A progress bar on standard error, drawn only at a terminal, and where lines can be printed above it."""
    console = Console(stderr=True, soft_wrap=True, markup=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %  {task.fields[figures]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar, console


def _look(run: _Run, metrics: Metrics) -> str:
    """Evaluates on the way: boards, weights, a drawn deal. Returns what to print."""
    trainer, config, step = run.trainer, run.trainer.config, run.trainer.decisions
    begin = time.perf_counter()
    results = [_evaluate(run, name, config.evaluate_boards, WAY_BOARDS) for name in config.opponents]
    for result in results:
        _log(metrics, result, step)
    for name, tensor in trainer.model().items():
        metrics.histogram(f"weights/{name}", tensor, step)
    _log_deals(run, metrics)
    _log_signals(run, metrics, WAY_BOARDS)
    metrics.scalar("time/evaluation_seconds", time.perf_counter() - begin, step)
    metrics.flush()
    return "  ".join(f"{r.points_per_deal:+.2f} over {r.b}" for r in results)


def _evaluate(run: _Run, opponent: str, boards: int, seed: int) -> Result:
    policy, rules = run.trainer.policy(run.folder.name), run.trainer.rules
    return evaluate(policy, opponent, rules=rules, boards=boards, seed=seed, losses=run.loss_boards)


def _log(metrics: Metrics, result: Result, step: int) -> None:
    metrics.scalar(opponent_tag(result.b), result.points_per_deal, step)
    metrics.scalar(opponent_tag(result.b, "points_per_deal_low"), result.low, step)
    metrics.scalar(opponent_tag(result.b, "points_per_deal_high"), result.high, step)
    if result.losses is not None:
        metrics.scalar(opponent_tag(result.b, "dd_loss_per_deal"), result.losses.side(0)["per_deal"], step)


def _log_deals(run: _Run, metrics: Metrics) -> None:
    """Deals that the present policy plays against itself: the first is drawn, in all of them the words are counted."""
    from domino_env import render

    trainer = run.trainer
    first, histories = sample_deals(trainer, trainer.updates, SAMPLE_DEALS)
    metrics.image("deal", render.rgb(first), trainer.decisions)
    words = rates(histories, trainer.rules)
    metrics.scalars({f"words/{name}": value for name, value in words.items()}, trainer.decisions)


def _log_signals(run: _Run, metrics: Metrics, seed: int) -> None:
    """What late moves of the present policy tell its partner, where that is asked for."""
    if run.signal_deals:
        from experiments.signaling.watching import watch  # it needs the extra search

        metrics.scalars(watch(run.trainer.policy(), run.signal_deals, seed), run.trainer.decisions)


def sample_deals(trainer: BaseTrainer, number: int, deals: int) -> tuple[dict[str, Any], np.ndarray]:
    """Deals that the present policy plays against itself; the first is the same however many there are.

    Args:
        number: seed of the deals; deals: how many, at least 1.

    Returns:
        The snapshot of the first one at its end, and the histories of all in the order in which they end:
        (deals, T) int16, as seat 0 sees them.
    """
    policy = trainer.policy()
    engine = make_engine(trainer.rules, deals, seed=number)
    streams = Streams.of(number, np.arange(deals))
    live = np.arange(deals)
    histories: list[np.ndarray] = []
    first: dict[str, Any] = {}
    while len(live):
        _, done = engine.step(policy.act(decide(engine, policy, streams)), autoreset=False)
        if done.any():
            if done[0] and live[0] == 0:
                first = engine.snapshot(0)
            histories.append(engine.take(done).history(0))
            live, streams = live[~done], streams.take(~done)
            if len(live):
                engine = engine.take(~done)
    return first, np.concatenate(histories)


def _finish(run: _Run, metrics: Metrics) -> dict[str, Any]:
    """The evaluation at the end, on boards that nothing was tuned on."""
    trainer, config = run.trainer, run.trainer.config
    begin = time.perf_counter()
    results = [_evaluate(run, name, config.eval_boards, END_BOARDS) for name in config.opponents]
    for one in results:
        _log(metrics, one, trainer.decisions)
    for name, tensor in trainer.model().items():
        metrics.histogram(f"weights/{name}", tensor, trainer.decisions)
    _log_deals(run, metrics)
    _log_signals(run, metrics, END_BOARDS)
    metrics.scalar("time/evaluation_seconds", time.perf_counter() - begin, trainer.decisions)
    metrics.hparams(configs.flat(config), {opponent_tag(one.b): one.points_per_deal for one in results})
    result = {
        "run": str(run.folder),
        "updates": trainer.updates,
        "decisions": trainer.decisions,
        "seconds": trainer.seconds,
        "evaluations": [one.to_dict() for one in results],
    }
    write_whole(run.folder / "result.json", json_module.dumps(result, indent=1) + "\n")
    if results:
        metrics.flush()
        draw_curve(run.folder)
    return result


def _show(result: dict[str, Any]) -> None:
    out = Console() if sys.stdout.isatty() else Console(width=120)
    table = Table("opponent", "points a deal", "95 %", "wins", title=escape(result["run"]))
    for one in result["evaluations"]:
        table.add_row(
            escape(one["b"]),
            f"{one['points_per_deal']:+.2f}",
            f"{one['low']:+.2f} to {one['high']:+.2f}",
            f"{one['win']:.1%}",
        )
    if result["evaluations"]:
        out.print(table)
    out.print(
        f"{result['decisions']:,} decisions in {result['seconds']:,.0f} s of training: "
        f"{result['decisions'] / max(result['seconds'], 1e-9):,.0f} a second. "
        f"It plays as an agent: {result['run']}/checkpoints/latest",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
