"""`domino export`: decisions of self-play in Parquet, for others to learn from.

Deals and chance are keyed on (seed, number of the deal), so the rows are the same however the work is cut up: a part
that was lost is played again. A folder holds parts of whole deals and a manifest.json; both are written whole.
`agents.dataset` says what a row is and reads it back.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Agent, decide, folder_of, make_agent
from agents.dataset import (
    FORMAT,
    MANIFEST,
    NO_VALUE,
    DataError,
    Rows,
    batches,
    describe_rules,
    read,
    read_manifest,
    schema_of,
    to_parquet,
)
from agents.search import load
from domino_env.deals import Streams, boards as deals_of
from domino_env.engine import Engine, make_engine
from domino_env.line import select_bit
from domino_env.rules import Rules, get_rules
from experiments.files import write_whole

__all__ = ["DataError", "PlayError", "batches", "export", "imitate", "play", "read"]

Ints = npt.NDArray[np.int64]
Player = str | Agent

PART = 8192  # deals of a part: about 100,000 decisions
PART_SOLVED = 2048  # with values: about a minute's work on two cores
BATCH = 4096  # deals that are played at once
BATCH_SOLVED = 256  # with values, that progress be seen
_HINTS = 8  # a part of a slow agent has so many times the deals that it wants to be asked at once
_PLIES = 1 << 10  # room for the plies of a deal in the number of a random stream
_ROWS_A_DEAL = 12  # a first guess, so that a small export does not play a whole batch


class PlayError(RuntimeError):
    """An agent raised, or answered with something that cannot be played."""


# -- playing ---------------------------------------------------------------------------------------------------------


def play(
    agents: Sequence[Agent],
    rules: Rules,
    seed: int,
    start: int,
    count: int,
    *,
    forced: bool = False,
    values: bool = False,
) -> Rows:
    """Plays deals `start` .. `start + count - 1` of a seed to their end.

    Args:
        agents: k players; seat s is agent s % k.
        forced: also the moves of a mover that has but one; nobody is asked for them.
        values: also what every action is worth with all hands open.

    Returns:
        The columns of `agents.dataset.columns_of`, in the order of (deal, ply), and no `values` unless asked for.

    Raises:
        PlayError: an agent fails.
    """
    engine: Engine = make_engine(rules, count, seed=0)
    engine.deal(*deals_of(rules, seed, start, count))
    solve = load("solver").solve if values else None
    results, outcome = np.zeros((count, rules.seats), np.int16), np.zeros(count, np.uint8)
    leader = engine.leader().astype(np.uint8)
    live = np.arange(count)
    plies: list[Rows] = []
    while len(live):
        actions, choice = _decide(engine, agents, seed, start + live)
        rows = np.arange(len(live)) if forced else np.flatnonzero(choice)
        plies.append(_rows(engine, rows, live, actions, len(agents)))
        if solve is not None:
            plies[-1]["values"] = _worths(engine, rows, solve)
        rewards, done = engine.step(actions, autoreset=False)
        if done.any():
            over = engine.finished
            results[live[over.rows]], outcome[live[over.rows]] = rewards[over.rows], over.outcome
            live = live[~done]
            if len(live):
                engine = engine.take(~done)
    whole = {name: np.concatenate([ply[name] for ply in plies]) for name in plies[0]}
    deal = whole["deal"]
    order = np.lexsort((whole["ply"], deal))
    whole |= {"leader": leader[deal], "result": results[deal, whole["seat"]], "outcome": outcome[deal]}
    whole["deal"] = deal + start
    return {name: array[order] for name, array in whole.items()}


def _rows(engine: Engine, rows: Ints, live: Ints, actions: Ints, players: int) -> Rows:
    """What is known of these decisions before they are played; `deal` is the place among the deals of the call."""
    seat = engine.to_move()[rows].astype(np.uint8)
    return {
        "deal": live[rows],
        "ply": engine.plies()[rows].astype(np.int16),
        "seat": seat,
        "player": seat % np.uint8(players),
        "obs": engine.observe(packed=True)[rows],
        "mask": engine.legal_bits()[rows],
        "action": actions[rows].astype(np.uint8),
        "hands": engine.hands()[rows].astype(np.uint32),
    }


def _worths(engine: Engine, rows: Ints, solve: Callable[..., npt.NDArray[np.int32]]) -> npt.NDArray[np.int16]:
    """(n, actions) double-dummy values of these rows, NO_VALUE for illegal actions."""
    values = solve(engine.hands()[rows], engine.ends()[rows], engine.to_move()[rows], engine.rules)
    legal = engine.legal()[rows] != 0  # a lead that the rules bind (K1, K2) is narrower than the solver takes it
    return np.where(legal, values, NO_VALUE).astype(np.int16)


def _decide(engine: Engine, agents: Sequence[Agent], seed: int, deals: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """One action for every row, and which rows had a choice."""
    bits = engine.legal_bits()
    actions = select_bit(bits, np.zeros(len(bits), np.uint8)).astype(np.int64)
    choice = engine.legal_count() > 1
    asked = choice | engine.peeks()  # a blind player sees its own row then, and may remember it (R9)
    streams = Streams.of(seed, deals * _PLIES + engine.plies())
    who = np.where(asked, engine.to_move() % len(agents), -1)
    for i, agent in enumerate(agents):
        rows = np.flatnonzero(who == i)
        if len(rows):
            actions[rows] = _ask(agent, engine, streams, rows, deals)
    return actions, choice


def _ask(agent: Agent, engine: Engine, streams: Streams, rows: Ints, deals: Ints) -> Ints:
    """The agent's answers for some rows; PlayError for what cannot be played."""
    question = decide(engine, agent, streams, rows, deals)
    where = f"agent {agent.name}, deal {int(deals[rows[0]])}"
    try:
        answer = np.asarray(agent.act(question))
    except Exception as error:  # an agent is someone else's code: whatever it raises is reported with its place
        more = f" or one of the {len(rows) - 1} after it" if len(rows) > 1 else ""
        raise PlayError(f"{where}{more}: {type(error).__name__}: {error}") from error
    if answer.shape != (len(rows),) or answer.dtype.kind not in "iu":
        got = f"{answer.dtype} of shape {answer.shape}"
        raise PlayError(f"{where}: answered {got} instead of one whole number for each of {len(rows)} rows")
    answer = answer.astype(np.int64)
    known = (answer >= 0) & (answer < engine.rules.num_actions)
    wrong = ~known
    wrong[known] = question.mask[known, answer[known]] == 0
    if wrong.any():
        j = int(wrong.argmax())
        legal = " ".join(engine.rules.action_name(int(action)) for action in np.flatnonzero(question.mask[j]))
        said = engine.rules.action_name(int(answer[j])) if known[j] else answer[j]
        deal, seat = int(deals[rows[j]]), int(question.seat[j])
        raise PlayError(f"agent {agent.name}, deal {deal}, seat {seat}: answered {said}, legal are {legal}")
    return answer


# -- exporting -------------------------------------------------------------------------------------------------------


def export(
    agents: Player | Sequence[Player],
    folder: str | Path,
    decisions: int = 1_000_000,
    rules: str | Rules = "sport_book",
    seed: int = 0,
    *,
    values: bool = False,
    forced: bool = False,
    sample: bool = False,
    part_deals: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Plays deals and writes their decisions into a folder, or goes on with it where the same call was broken off.

    Args:
        agents: one or more, see `make_agent`; seat s is agent s % their number, so two are a pair against a pair.
        folder: new, empty, or begun by the same call.
        decisions: at least so many rows: the deal in which they are reached is the last, and is whole.
        rules: the game; seed: of deals and chance, a whole number >= 0.
        values: also the double-dummy values of all legal actions; needs Numba, and a game that the solver plays.
        forced: also decisions with one legal action.
        sample: networks play by their probabilities instead of their likeliest action.
        part_deals: deals of a part; None: 8192, fewer with values and for slow agents. After a kill the part that was
            being made is played again.
        progress: called with (rows written, decisions) after each batch of deals.

    Returns:
        folder, rows, deals, parts, bytes, columns, rules, agents, seed; of this call new_rows, seconds and
        decisions_per_second (0 where there was nothing left to do).

    Raises:
        ValueError: what cannot be played or is out of range; a folder of something else (DataError).
        PlayError: an agent fails.
        ImportError: values without Numba.
    """
    game = get_rules(rules)
    numbers: list[tuple[str, Any, int]] = [("decisions", decisions, 1), ("seed", seed, 0)]
    numbers += [] if part_deals is None else [("part_deals", part_deals, 1)]
    for name, value, least in numbers:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name}={value!r} must be a whole number >= {least}")
    named = [agents] if isinstance(agents, str) or not isinstance(agents, Sequence) else list(agents)
    if not named or game.seats % len(named):
        counts = ", ".join(str(k) for k in range(1, game.seats + 1) if game.seats % k == 0)
        raise ValueError(f"{len(named)} agents do not sit evenly at {game.seats} seats; name {counts}")
    if values:
        load("solver").check(game)
    players = [make_agent(one, game) for one in named]
    if sample:
        players = _sampling(players)
    hints = [hint for agent in players if (hint := getattr(agent, "batch_hint", None))]
    batch = min([BATCH_SOLVED if values else BATCH, *hints])
    if part_deals is None:
        part_deals = min([PART_SOLVED if values else PART, *(_HINTS * hint for hint in hints)])
    command = {
        "agents": [one if isinstance(one, str) else one.name for one in named],
        "checkpoints": [_sum(one) for one in named],
        "rules": describe_rules(game),
        "seed": int(seed),
        "decisions": int(decisions),
        "values": values,
        "forced": forced,
        "sample": sample,
        "part_deals": int(part_deals),
    }
    target = _Target(Path(folder), command)

    def asked(start: int, count: int) -> Rows:
        return play(players, game, int(seed), start, count, forced=forced, values=values)

    begun = time.perf_counter()
    new = target.fill(asked, batch, progress)
    seconds = time.perf_counter() - begun
    parts = target.manifest["parts"]
    return {
        "folder": str(folder),
        "rows": target.manifest["rows"],
        "deals": target.manifest["deals"],
        "parts": len(parts),
        "bytes": sum(part["bytes"] for part in parts),
        "columns": target.schema.names,
        "rules": game.title,
        "agents": command["agents"],
        "seed": command["seed"],
        "new_rows": new,
        "seconds": seconds if new else 0.0,
        "decisions_per_second": new / seconds if new else 0.0,
    }


def _sampling(players: Sequence[Agent]) -> list[Agent]:
    """The players, where they can by their probabilities."""
    if not any(hasattr(agent, "sample") for agent in players):
        names = ", ".join(agent.name for agent in players)
        raise ValueError(f"--sample is for networks, and {names} is none; leave it out")
    sampling: list[Any] = [copy.copy(agent) for agent in players]
    for agent in sampling:
        if hasattr(agent, "sample"):
            agent.sample = True
    return sampling


def _sum(agent: Player) -> str | None:
    """Which network a folder's name stands for now: `latest` moves on; None for an agent that is no folder."""
    if (folder := folder_of(agent)) is None:
        return None
    from agents.checkpoint import load as load_checkpoint, resolve  # torch is only needed here

    return str(load_checkpoint(resolve(folder)).state["sha256"]["model.safetensors"])


def _versions() -> dict[str, str]:
    versions = {}
    for name in ("domino-lab", "numpy", "pyarrow"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "source"
    return versions


class _Target:
    """The folder of an export: what lies in it is checked, what is missing is made."""

    def __init__(self, folder: Path, command: dict[str, Any]) -> None:
        """DataError for a folder of something else."""
        self.folder, self.command = folder, command
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder} is a file; --out names a folder")
        if (folder / MANIFEST).exists():
            self.manifest = read_manifest(folder)
            self._same(self.manifest["command"])
        else:
            if folder.exists() and any(not _unfinished(path) for path in folder.iterdir()):
                raise DataError(f"{folder} holds other files and no {MANIFEST}; name a new folder")
            self.manifest = {"format": FORMAT, "command": command, "versions": _versions()}
            self.manifest |= {"parts": [], "rows": 0, "deals": 0, "complete": False}
        said = {key: command[key] for key in ("rules", "seed", "agents", "values", "forced", "sample")}
        rules = get_rules(command["rules"]["name"], **command["rules"]["overrides"])
        self.schema = schema_of(rules, command["values"], {**said, "versions": self.manifest["versions"]})

    def _same(self, before: dict[str, Any]) -> None:
        for key, value in self.command.items():
            if before.get(key) != value:
                old, new = before.get(key), value
                if key == "rules":
                    old, new = ({"name": one["name"], **one["overrides"]} for one in (old or value, new))
                raise DataError(
                    f"{self.folder} was begun with {key}={json.dumps(old)}, not {json.dumps(new)}; "
                    "give the same words to go on, or name a new folder"
                )

    def fill(
        self, play: Callable[[int, int], Rows], batch: int, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Makes the parts that are missing, damaged or not yet begun; returns how many rows they have."""
        for path in self.folder.iterdir() if self.folder.exists() else ():
            if _unfinished(path):  # of one that was killed
                path.unlink()
        before, wanted, size = self.manifest["parts"], self.command["decisions"], self.command["part_deals"]
        rows, new, number = 0, 0, 0
        parts: list[dict[str, Any]] = []
        while rows < wanted:
            part = before[number] if number < len(before) else None
            if part is None or not self._whole(part):
                if part is not None:
                    print(f"{self.folder / part['file']} is missing or damaged: played again", file=sys.stderr)
                show = None if progress is None else partial(_shown, progress, rows, wanted)
                played, deals = _deals(play, number * size, size, wanted - rows, batch, show)
                part = self._write(number, played, deals)
                new += part["rows"]
                self._note([*parts, part, *before[number + 1 :]])
            parts.append(part)
            rows, number = rows + part["rows"], number + 1
        if not self.manifest["complete"]:
            self._note(parts, complete=True)
        return new

    def _whole(self, part: dict[str, Any]) -> bool:
        try:
            return hashlib.sha256((self.folder / part["file"]).read_bytes()).hexdigest() == part["sha256"]
        except OSError:
            return False

    def _write(self, number: int, rows: Rows, deals: int) -> dict[str, Any]:
        content = to_parquet(rows, self.schema)
        name = f"part-{number:05d}.parquet"
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / name, content)
        return {
            "file": name,
            "rows": len(rows["deal"]),
            "first_deal": number * self.command["part_deals"],
            "deals": deals,
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }

    def _note(self, parts: Sequence[dict[str, Any]], complete: bool = False) -> None:
        self.manifest |= {
            "parts": list(parts),
            "rows": sum(part["rows"] for part in parts),
            "deals": sum(part["deals"] for part in parts),
            "complete": complete,
        }
        write_whole(self.folder / MANIFEST, json.dumps(self.manifest, indent=1) + "\n")


def _unfinished(path: Path) -> bool:
    """Whether it is a file that `write_whole` had not finished."""
    return path.name.startswith((".part-", f".{MANIFEST}.")) and path.suffix == ".part"


def _shown(progress: Callable[[int, int], None], before: int, wanted: int, rows: int) -> None:
    progress(min(before + rows, wanted), wanted)


def _deals(
    play: Callable[[int, int], Rows],
    first: int,
    deals: int,
    wanted: int,
    batch: int,
    progress: Callable[[int], None] | None,
) -> tuple[Rows, int]:
    """Deals from `first` on, at most `deals`, up to the one in which `wanted` rows are reached; and how many deals."""
    played: list[Rows] = []
    rows = done = 0
    while done < deals and rows < wanted:
        guess = int(1.1 * (wanted - rows) / (rows / done if rows else _ROWS_A_DEAL)) + 8
        count = min(batch, deals - done, guess)
        part = play(first + done, count)
        ends = np.cumsum(np.bincount(part["deal"] - (first + done), minlength=count))  # rows up to each deal's end
        last = int(np.searchsorted(ends, wanted - rows))
        if last < count:  # reached
            part = {name: array[: ends[last]] for name, array in part.items()}
        played.append(part)
        rows, done = rows + len(part["deal"]), done + min(last + 1, count)
        if progress is not None:
            progress(rows)
    if not rows:
        raise ValueError(f"in {deals} deals nobody had a choice: there are no decisions to export")
    return {name: np.concatenate([part[name] for part in played]) for name in played[0]}, done


# -- learning from it ------------------------------------------------------------------------------------------------


def imitate(folder: str | Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Trains a network to play as the rows of a data set do: `domino train configs/imitation.yaml data=FOLDER`.

    Args:
        overrides: further "key=value" words, see `agents.imitation.ImitationConfig`; the rules are those of the data.

    Returns:
        What `experiments.train.train` returns: the run's folder, and what the network wins.
    """
    from experiments.train import train

    said = read_manifest(folder)["command"]["rules"]
    words = ["algorithm=imitation", f"data={json.dumps(str(folder))}", f"rules={said['name']}"]
    words += [f"rule_overrides={json.dumps(said['overrides'])}"]
    return train(None, [*words, *overrides], json=True)
