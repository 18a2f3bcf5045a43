"""`domino sweep`: several settings, each with several seeds, trained and measured alike, and one table of them.

A sweep is a folder: `configs/` holds the whole config of every variant as it was when the sweep began, `runs/` a run of
each variant and seed, `evaluations/` what finished runs did against further players, `logs/` what runs side by side had
to say, and `table.*` the outcome. Runs, matches and best responses are the jobs of `domino train`, `domino evaluate`
and `domino exploit`, and could be typed by hand. Running the same sweep again goes on: what is finished is left alone,
what was broken off is resumed, and a job that failed is tried again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from agents.algorithms import MAX_SEED, RunConfig
from agents.base import make_agent
from agents.search import load as load_search
from domino_env.rules import Rules
from experiments import config as configs
from experiments.config import ConfigError
from experiments.evaluate import evaluate
from experiments.exploit import exploit
from experiments.files import locked, write_whole
from experiments.signals import handled
from experiments.train import load_config, train

Say = Callable[[str], None]
Show = Callable[[int, int], None]  # of how much is done, and how much there is
#: Called with what is being done; shows how far it is, or yields None.
Watch = Callable[[str], contextlib.AbstractContextManager[Show | None]]

_FILE, _KIND, _VERSION = "sweep.json", "domino sweep", 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=,+-]{0,99}")
_OWN = ("seed", "runs_dir")  # keys of a run that the sweep sets
#: Beside whom none is written to a folder; its runs hold the lock too, should they outlive us.
_ANOTHER = "another sweep, or by runs of one that was killed; wait for them, or write elsewhere by --out"

# -- what is asked for ------------------------------------------------------------------------------------------------


@dataclass
class Evaluation:
    """What every finished run is measured by."""

    opponents: list[str] = field(default_factory=list)  # further players
    boards: int = 1000  # duplicate boards of a match
    seed: int = 3  # of these boards; a run's own evaluations have those of seeds 1 and 2
    best_response: int = 0  # boards, of the same seed, on which a search plays for what it can win from it; 0: none

    def __post_init__(self) -> None:
        """Raises ValueError(key, why), as configs do."""
        if self.boards < 2:
            raise ValueError("boards", f"must be at least 2, for an interval, got {self.boards}")
        if self.seed < 0:
            raise ValueError("seed", f"must not be negative, got {self.seed}")
        if self.best_response < 0 or self.best_response == 1:
            raise ValueError("best_response", f"must be at least 2 boards, or 0 for none, got {self.best_response}")
        for name in self.opponents:
            if self.opponents.count(name) > 1:
                raise ValueError("opponents", f"each is named once, {name} is not")


@dataclass
class _Asked:
    """A sweep as its YAML has it."""

    config: str | None = None  # a YAML of `domino train`, or the name of a shipped one
    settings: dict[str, Any] = field(default_factory=dict)  # laid over the config of every variant
    # name -> a config, where it is another one, and settings over it
    variants: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)  # key -> values: every variant with every combination
    seeds: list[int] = field(default_factory=lambda: [1, 2, 3])
    evaluate: Evaluation = field(default_factory=Evaluation)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ValueError("seeds", f"must be one or more whole numbers from 0, each once, got {self.seeds}")
        if max(self.seeds) > MAX_SEED:
            raise ValueError("seeds", f"must be at most {MAX_SEED}, got {max(self.seeds)}")
        for key, values in self.grid.items():
            if not values:
                raise ValueError(f"grid.{key}", "must be one value or more")


@dataclass
class _AskedVariant:
    config: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """One setting of a sweep."""

    name: str
    config: RunConfig  # its seed and runs_dir mean nothing
    source: Path  # the YAML it comes from


@dataclass(frozen=True)
class Plan:
    """A sweep that can be run."""

    name: str
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    evaluate: Evaluation

    @property
    def rules(self) -> Rules:
        """The game, which is the same for all."""
        return self.variants[0].config.get_rules()

    @property
    def measures(self) -> int:
        """Jobs that follow a training."""
        return len(self.evaluate.opponents) + (self.evaluate.best_response > 0)


def shipped() -> list[str]:
    """Names of the sweeps that come along, sorted."""
    return sorted({file.stem for folder in configs.SHIPPED for file in (folder / "sweeps").glob("*.yaml")})


def find(path: str | Path) -> Path:
    """The file meant by `path`: that file, or the shipped sweep of that name (`seeds`, `configs/sweeps/seeds.yaml`)."""
    path = Path(path)
    if path.is_file():
        return path
    if path.parent in (Path("."), Path("sweeps"), Path("configs/sweeps")) and path.suffix in ("", ".yaml"):
        for folder in configs.SHIPPED:
            if (file := folder / "sweeps" / f"{path.stem}.yaml").is_file():
                return file
    raise ConfigError(f"no sweep file {path}; shipped sweeps: {', '.join(shipped()) or 'none'}")


def plan(path: str | Path, words: Sequence[str] = ()) -> Plan:
    """What to run, from a YAML file and `key=value` words.

    Args:
        path: the file, as of `find`.
        words: over what the file says; keys of the sweep (`seeds=[1,2]`, `evaluate.boards=200`), or of the runs
            (`total_minutes=1`), which then hold for every variant.

    Raises:
        ConfigError: a mistake in the sweep or in the config of any variant; nothing has been run.
        OSError: a file cannot be read.
    """
    path = Path(path)
    own = [word for word in words if word.partition("=")[0].partition(".")[0].strip() in _Asked.__dataclass_fields__]
    asked = configs.load(path, own, _Asked)
    variants = [
        _variant(name, config, {**asked.settings, **settings}, [word for word in words if word not in own], asked, path)
        for name, config, settings in _combinations(asked, path)
    ]
    for i, one in enumerate(variants):
        for other in variants[:i]:
            if other.name == one.name or _settings(other.config) == _settings(one.config):
                raise ConfigError(f"{path}: variants {other.name} and {one.name} are the same")
            if other.config.get_rules() != one.config.get_rules():
                games = f"{other.config.get_rules().title} and {one.config.get_rules().title}"
                raise ConfigError(f"{path}: {other.name} and {one.name} play {games}; a sweep is of one game")
    rules = variants[0].config.get_rules()
    for name in asked.evaluate.opponents:
        try:
            make_agent(name, rules)
        except ValueError as error:
            raise ConfigError(f"{path}: evaluate.opponents: {error}") from None
    if asked.evaluate.best_response:
        try:
            load_search("solver").check(rules)
        except ValueError as error:
            raise ConfigError(f"{path}: evaluate.best_response: {error}") from None
    return Plan(path.stem, tuple(variants), tuple(asked.seeds), asked.evaluate)


def _combinations(asked: _Asked, path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, config and settings of every variant, those of the grid multiplied out."""
    bases: list[tuple[str, str | None, dict[str, Any]]] = []
    for name, written in asked.variants.items():
        one = configs.load(None, [], _AskedVariant, saved=written or {}, source=f"{path}: variant {name}")
        bases.append((name, one.config or asked.config, one.settings))
    for name, config, settings in bases or [("", asked.config, {})]:
        if config is None:
            who = f"variant {name} names no config, and the sweep" if name else "the sweep"
            raise ConfigError(f'{path}: {who} has no key "config"; name a YAML of domino train')
        for values in itertools.product(*asked.grid.values()):
            point = dict(zip(asked.grid, values))
            said = ",".join([name] * bool(name) + [f"{key}={_short(value)}" for key, value in point.items()])
            yield said or Path(config).stem, config, {**settings, **point}


def _short(value: Any) -> str:
    """A value as a name may hold it."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return re.sub(r"[^A-Za-z0-9._=,+-]+", "", text)


def _variant(
    name: str, config: str, settings: Mapping[str, Any], words: Sequence[str], asked: _Asked, path: Path
) -> Variant:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{path}: variant {name!r} must be named by at most 100 of letters, digits and ._=,+-")
    given = [f"{key}={json.dumps(value)}" for key, value in settings.items()] + list(words)  # JSON is YAML
    for word in given:
        if (key := word.partition("=")[0].strip()) in _OWN:
            said = {"seed": 'the key "seeds"', "runs_dir": "--out"}[key]
            raise ConfigError(f"{path}: variant {name}: {word}: {key} is set by the sweep; use {said}")
    try:
        source = configs.find(config)
        return Variant(name, load_config(source, [*given, f"seed={asked.seeds[0]}"]), source)
    except ConfigError as error:
        raise ConfigError(f"{path}: variant {name}: {error}") from None


def _settings(config: RunConfig) -> dict[str, Any]:
    """What makes a variant: its config without what the sweep sets."""
    return {key: value for key, value in configs.as_dict(config).items() if key not in _OWN}


# -- the folder -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What there is of one variant with one seed."""

    variant: str
    seed: int
    folder: Path | None = None  # None: nothing yet that one could go on from
    result: dict[str, Any] | None = None  # its result.json, once it is finished
    matches: tuple[dict[str, Any], ...] = ()  # against further players, each as of `domino evaluate --json`
    cpu_seconds: float | None = None  # of training, all threads together; None where its checkpoint does not say
    response: dict[str, Any] | None = None  # what was won from it, as of `experiments.exploit.Response.to_dict`

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.variant}, seed {self.seed}"


def is_sweep(folder: str | Path) -> bool:
    """Whether a folder is that of a sweep."""
    return (Path(folder) / _FILE).is_file()


def runs_of(folder: str | Path) -> list[Run]:
    """The runs of a sweep's folder, begun or not, in the order of its table.

    Raises:
        ValueError: the folder is that of no sweep.
    """
    folder = Path(folder)
    head = _head(folder)
    return [find_run(folder, name, seed) for name in head["variants"] for seed in head["seeds"]]


def _head(folder: Path) -> dict[str, Any]:
    try:
        head = json.loads((folder / _FILE).read_bytes())
        if (head["kind"], head["version"]) != (_KIND, _VERSION):
            raise ValueError
        return {"variants": [str(name) for name in head["variants"]], "seeds": [int(seed) for seed in head["seeds"]]}
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{folder} is no {_KIND} of version {_VERSION}") from None


def find_run(folder: str | Path, variant: str, seed: int) -> Run:
    """What there is of a variant with a seed: the finished run, or else the newest that one can go on from."""
    folder = Path(folder)
    stem = re.compile(rf"{re.escape(variant)}-{seed}-\d{{8}}-\d{{6}}(\.\d+)?")
    there = folder / "runs"
    found = sorted(one for one in there.iterdir() if stem.fullmatch(one.name)) if there.is_dir() else []
    for run in reversed(found):
        if (result := _result(run)) is not None:
            matches, response = _measured(folder, variant, seed, run, result)
            return Run(variant, seed, run, result, matches, _cpu_seconds(run), response)
    begun = [run for run in found if (run / "checkpoints" / "latest").exists()]
    return Run(variant, seed, begun[-1] if begun else None)


def _result(run: Path) -> dict[str, Any] | None:
    """The result of a run; None where it has not come to its end."""
    try:
        result = json.loads((run / "result.json").read_bytes())
        return dict(result) if {"updates", "decisions", "seconds", "evaluations"} <= result.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def _cpu_seconds(run: Path) -> float | None:
    try:
        state = json.loads((run / "checkpoints" / "latest" / "state.json").read_bytes())
        return float(state["counters"]["cpu_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _evaluations(folder: Path, variant: str, seed: int) -> Path:
    return folder / "evaluations" / f"{variant}-{seed}.json"


def _measured(
    folder: Path, variant: str, seed: int, run: Path, result: Mapping[str, Any]
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any] | None]:
    """Matches and best response of a run in the state that its result tells of; those of an earlier state are none."""
    needs = {"boards", "seed", "points_per_deal"}
    try:
        kept = json.loads(_evaluations(folder, variant, seed).read_bytes())
        if (kept["run"], kept["updates"]) != (run.name, result["updates"]):
            return (), None
        matches = tuple(dict(one) for one in kept["matches"] if {"b", *needs} <= one.keys())
        response = kept.get("best_response")
        return matches, dict(response) if response and {"response", *needs} <= response.keys() else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return (), None


def match_of(plan: Plan, run: Run, opponent: str) -> dict[str, Any] | None:
    """What a run did against a further player; None where it has not met it on the boards that are asked for."""
    wanted = (opponent, plan.evaluate.boards, plan.evaluate.seed)
    return next((one for one in run.matches if (one["b"], one["boards"], one["seed"]) == wanted), None)


def response_of(plan: Plan, run: Run) -> dict[str, Any] | None:
    """What a search won from a run; None where it has not played on the boards that are asked for."""
    found, asked = run.response, plan.evaluate
    return found if found and (found["boards"], found["seed"]) == (asked.best_response, asked.seed) else None


def _claim(folder: Path, plan: Plan) -> None:
    """Sees that a folder is free, or holds this sweep, perhaps with other seeds, variants or players."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; a sweep is written to a folder")
    if not is_sweep(folder):
        if folder.is_dir() and any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty and holds no sweep; write elsewhere by --out")
        return
    _head(folder)
    for variant in plan.variants:
        file = folder / "configs" / f"{variant.name}.yaml"
        if not file.is_file():
            continue
        there, asked = _settings(load_config(file, [])), _settings(variant.config)
        for key in {**there, **asked}:
            if there.get(key) != asked.get(key):
                raise ConfigError(
                    f"{folder} holds another sweep: its {variant.name} has {key}={there.get(key)}, not "
                    f"{asked.get(key)}; write elsewhere by --out"
                )


# -- jobs -------------------------------------------------------------------------------------------------------------


class _Job(Protocol):
    """A run or a match: a `domino` command of its own, or the same in this process."""

    @property
    def run(self) -> Run: ...

    @property
    def title(self) -> str: ...

    def words(self) -> list[str]:
        """What to type after `domino`; it prints one JSON object."""
        ...

    def here(self, watch: Watch) -> dict[str, Any]:
        """The same object, made here."""
        ...


@dataclass(frozen=True)
class _Training:
    folder: Path
    run: Run

    @property
    def title(self) -> str:
        return self.run.title

    def _given(self) -> tuple[Path | None, list[str], Path | None]:
        """Config, words, and the run to go on with."""
        if self.run.folder is not None:
            return None, [], self.run.folder
        file = self.folder / "configs" / f"{self.run.variant}.yaml"
        return file, [f"seed={self.run.seed}", f"runs_dir={json.dumps(str(self.folder / 'runs'))}"], None

    def words(self) -> list[str]:
        file, words, resume = self._given()
        return ["train", *([str(file)] if file else []), *words, *(["--resume", str(resume)] if resume else [])]

    def here(self, watch: Watch) -> dict[str, Any]:
        return train(*self._given(), json=True)  # it shows how far it is by itself


@dataclass(frozen=True)
class _Playing:
    run: Run
    plan: Plan
    opponent: str

    @property
    def title(self) -> str:
        return f"{self.run.title} against {self.opponent}"

    def words(self) -> list[str]:
        asked = self.plan.evaluate
        numbers = ["--boards", str(asked.boards), "--seed", str(asked.seed)]
        return ["evaluate", str(self.run.folder), self.opponent, "--rules", self.plan.rules.title, *numbers]

    def here(self, watch: Watch) -> dict[str, Any]:
        asked = self.plan.evaluate
        with watch(f"{self.title}, boards") as show:
            result = evaluate(
                str(self.run.folder), self.opponent, self.plan.rules, asked.boards, asked.seed, progress=show
            )
        return result.to_dict()


@dataclass(frozen=True)
class _Responding:
    """As `experiments.exploit.best_response_loss`."""

    run: Run
    plan: Plan

    @property
    def title(self) -> str:
        return f"{self.run.title}: best response"

    def words(self) -> list[str]:
        asked = self.plan.evaluate
        numbers = ["--boards", str(asked.best_response), "--seed", str(asked.seed)]
        return ["exploit", str(self.run.folder), "--no-train", "--rules", self.plan.rules.title, *numbers]

    def here(self, watch: Watch) -> dict[str, Any]:
        asked, folder = self.plan.evaluate, str(self.run.folder)
        with watch(f"{self.title}, boards") as show:
            return exploit(
                folder, self.plan.rules, boards=asked.best_response, seed=asked.seed, trains=False, progress=show
            )


class _Sweep:
    """The jobs of a sweep, what has become of them, and what follows from each."""

    def __init__(self, plan: Plan, folder: Path, say: Say) -> None:
        self.plan, self.folder, self.say = plan, folder, say
        self.failures: dict[str, str] = {}
        self.todo: deque[_Job] = deque()
        runs = [find_run(folder, variant.name, seed) for variant in plan.variants for seed in plan.seeds]
        self.total = len(runs) * (1 + plan.measures)
        for run in runs:
            if run.result is None:
                self.todo.append(_Training(folder, run))
        for run in runs:
            if run.result is not None:
                self.todo += self._open(run)
        self.left = len(self.todo) + sum(isinstance(job, _Training) for job in self.todo) * plan.measures

    def _open(self, run: Run) -> list[_Job]:
        """What a finished run has not been measured by."""
        jobs: list[_Job] = [
            _Playing(run, self.plan, name)
            for name in self.plan.evaluate.opponents
            if match_of(self.plan, run, name) is None
        ]
        if self.plan.evaluate.best_response and response_of(self.plan, run) is None:
            jobs.append(_Responding(run, self.plan))
        return jobs

    def done(self, job: _Job, answer: dict[str, Any]) -> None:
        """Keeps what a job has found, and adds what can now be done."""
        self.left -= 1
        run = find_run(self.folder, job.run.variant, job.run.seed)  # as it stands now
        if isinstance(job, _Playing):
            others = [one for one in run.matches if one["b"] != job.opponent]
            self._keep(run, [*others, answer], run.response)
            self.say(f"{job.title}: {answer['points_per_deal']:+.2f} points a deal")
        elif isinstance(job, _Responding):
            found = answer["bound"]
            self._keep(run, run.matches, found)
            self.say(f"{job.title}: it wins {found['points_per_deal']:+.2f} points a deal")
        else:
            points = ", ".join(f"{one['points_per_deal']:+.2f} over {one['b']}" for one in answer["evaluations"])
            self.say(f"{job.title}: trained{', ' if points else ''}{points}")
            self.todo += self._open(run)

    def _keep(self, run: Run, matches: Sequence[dict[str, Any]], response: dict[str, Any] | None) -> None:
        """Writes what a finished run was measured by."""
        assert run.folder is not None and run.result is not None
        kept = {"run": run.folder.name, "updates": run.result["updates"], "matches": [*matches]}
        file = _evaluations(self.folder, run.variant, run.seed)
        file.parent.mkdir(exist_ok=True)
        write_whole(file, json.dumps({**kept, "best_response": response}, indent=1) + "\n")

    def failed(self, job: _Job, why: str) -> None:
        """Notes it; the others go on."""
        self.left -= 1 + (self.plan.measures if isinstance(job, _Training) else 0)
        self.failures[job.title] = " ".join(why.split())
        self.say(f"failed: {job.title}: {self.failures[job.title]}")


def _one_by_one(sweep: _Sweep, watch: Watch) -> None:
    """All jobs in this process."""
    while sweep.todo:
        job = sweep.todo.popleft()
        sweep.say(f"{sweep.total - sweep.left + 1} of {sweep.total}: {job.title}")
        try:
            answer = job.here(watch)
        except (ValueError, OSError) as error:  # in words for people
            sweep.failed(job, str(error) or type(error).__name__)
        except Exception as error:  # a fault of ours, or of an agent, in one job is none of the others'
            sweep.failed(job, f"{type(error).__name__}: {error}")
        else:
            sweep.done(job, answer)


def _side_by_side(sweep: _Sweep, jobs: int, lock: int, show: Show) -> None:
    """As many jobs at once, each a process of its own."""
    running: dict[subprocess.Popen[bytes], tuple[_Job, Path, int]] = {}
    logs = sweep.folder / "logs"
    logs.mkdir(exist_ok=True)
    try:
        while sweep.todo or running:
            show(sweep.total - sweep.left, sweep.total)
            while sweep.todo and len(running) < jobs:
                job = sweep.todo.popleft()
                log = logs / f"{job.run.variant}-{job.run.seed}.log"
                begin = log.stat().st_size if log.exists() else 0
                running[_start(job, log, lock)] = job, log, begin
            for process in [one for one in running if one.poll() is not None]:
                job, log, begin = running.pop(process)
                assert process.stdout is not None
                with process.stdout as pipe:
                    said = pipe.read()
                if process.returncode == 0:
                    sweep.done(job, json.loads(said))
                else:
                    sweep.failed(job, _last_words(log, begin, process.returncode))
            time.sleep(0.1)
    except BaseException:
        _stop(list(running), sweep.say)
        raise


def _start(job: _Job, log: Path, lock: int) -> subprocess.Popen[bytes]:
    """The command of a job: one line of JSON on its standard output, all else to the log.

    It is in a session of its own, so that a Ctrl-C at the terminal reaches it through us alone, and once.
    """
    places = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}
    command = [sys.executable, "-P", "-m", "experiments.cli", *job.words(), "--json"]
    with log.open("ab") as errors:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
            pass_fds=(lock,),
        )


def _last_words(log: Path, begin: int, code: int) -> str:
    """Why a process failed: the last line it wrote, without the name of the command."""
    lines = log.read_bytes()[begin:].decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return last.removeprefix("domino: ") if last and code > 0 else f"ended by {how}; see {log}"


def _stop(running: Sequence[subprocess.Popen[bytes]], say: Say) -> None:
    """Ends the runs as Ctrl-C does: each saves. A second Ctrl-C does not wait for that, a third kills."""
    if running:
        say(f"stopping {len(running)} at work; training runs save what they have")
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
        for process in running:
            process.send_signal(number)
        try:
            for process in running:
                process.wait()
            break
        except KeyboardInterrupt:
            continue
    for process in running:
        if process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def _polite() -> Iterator[None]:
    """The polite kill is a Ctrl-C."""

    def handle(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with handled(handle, signal.SIGTERM):
        yield


# -- a whole sweep ----------------------------------------------------------------------------------------------------


def run(
    plan: Plan,
    folder: str | Path,
    jobs: int = 1,
    say: Say = lambda line: None,
    watch: Watch = lambda what: contextlib.nullcontext(),
) -> dict[str, Any]:
    """Run a sweep to its end, or go on with it.

    Args:
        plan: as of `plan`.
        folder: where it is written; a new one, or one that holds this sweep. Other seeds, variants or players than
            before may be asked for: what there is counts.
        jobs: runs and matches at a time; 1: in this process, else each in one of its own.
        say: is told in one line what has finished and what has failed.
        watch: shows how far it is, as `experiments.cli` does at a terminal.

    Returns:
        The table, as of `experiments.summary.summarize`; it is in the folder as table.json, table.csv and table.md too.

    Raises:
        ValueError: bad numbers; a folder that holds something else, or that is being written.
        KeyboardInterrupt: Ctrl-C, after every run has saved.
        OSError: it cannot be written.
    """
    from experiments.summary import summarize, write_tables

    folder = Path(folder)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 1 <= jobs <= 1024:
        raise ValueError(f"jobs={jobs!r} must be a whole number in 1..1024")
    _claim(folder, plan)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, _ANOTHER) as lock, _polite():
        _claim(folder, plan)
        _write_head(folder, plan)
        sweep = _Sweep(plan, folder, say)
        if jobs == 1:
            _one_by_one(sweep, watch)
        else:
            with watch("runs and matches") as show:
                _side_by_side(sweep, jobs, lock, show or (lambda done, total: None))
        runs = [find_run(folder, variant.name, seed) for variant in plan.variants for seed in plan.seeds]
        table = {"folder": str(folder), **summarize(plan, runs), "failures": sweep.failures}
        write_tables(table, folder)
    return table


def _write_head(folder: Path, plan: Plan) -> None:
    """What was asked for, and the config of each variant, whole."""
    head = {
        "kind": _KIND,
        "version": _VERSION,
        "name": plan.name,
        "variants": [variant.name for variant in plan.variants],
        "seeds": list(plan.seeds),
        "evaluate": configs.as_dict(plan.evaluate),
    }
    write_whole(folder / _FILE, json.dumps(head, indent=1) + "\n")
    (folder / "configs").mkdir(exist_ok=True)
    (folder / "runs").mkdir(exist_ok=True)
    for variant in plan.variants:
        file = folder / "configs" / f"{variant.name}.yaml"
        if not file.is_file():
            write_whole(file, f"# {variant.name}: from {variant.source}\n{configs.dump(variant.config)}")
