"""Checkpoints: folders that hold all that a bit-equal resume needs, and nothing that can run code.

`<run>/checkpoints/<updates>/` holds `model.safetensors`, `optimizer.safetensors` and `state.json` (config, rules,
counters, sums over all three files). It is written under another name beside its place, forced to the disk and
renamed, so that a crash, a full disk or a power cut leaves the earlier ones as they were; `latest` is a link to the
newest, swapped at once. Loading looks at sums, versions, names and shapes, and says in one line what is wrong.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from agents.algorithms import BaseTrainer
from agents.deafness import check_heard
from agents.networks import NETWORKS, RECURRENT, CentralCritic, Critic, Policy, input_bits, make_actor
from domino_env.rules import Rules, get_rules

FORMAT = 1  # of the folder; moves when an older version could not read it
LATEST = "latest"
_TENSORS = ("model.safetensors", "optimizer.safetensors")
_MEMORY = "memory.safetensors"  # only where there is something in it
_STATE = "state.json"
_SHAPING = (
    "algorithm", "network", "hidden", "state", "critic_hidden", "words", "choices", "advantage", "owner_coef",
)  # settings that the shape of the networks hangs on  # fmt: skip


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, or could not be written; the text says which and why, in one line."""


@dataclass
class Checkpoint:
    """The contents of a checkpoint folder."""

    folder: Path
    model: dict[str, Tensor]  # parameters, "actor.…" and "critic.…"
    optimizer: dict[str, Tensor]
    state: dict[str, Any]  # plain data
    memory: dict[str, Tensor]  # what else its run goes on from; empty where there is nothing, or where not asked for

    @property
    def run(self) -> Path:
        """The run folder it lies in."""
        return self.folder.parent.parent

    @property
    def rules(self) -> Rules:
        """The game it was trained for; CheckpointError where this version knows none like it."""
        said = self.state.get("rules")
        if not isinstance(said, dict) or not {"name", "overrides", "fields"} <= said.keys():
            raise CheckpointError(f"{self.folder}: {_STATE} does not say for what rules it was trained")
        try:
            rules = get_rules(said["name"], **said["overrides"])
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{self.folder}: its rules are not known here: {error}") from None
        known = said["fields"]
        if isinstance(known, dict) and known.get("chain") == "one" and not rules.chains:
            known = known | {"chain": "none"}  # what one tile a turn was called before there was blitz
        if dataclasses.asdict(rules) != known:
            raise CheckpointError(f"{self.folder}: the preset {said['name']!r} has changed since this was trained")
        policy = self.state.get("policy")
        if rules.labelled_ends and not (isinstance(policy, dict) and policy.get("labels")):
            raise CheckpointError(
                f"{self.folder} was trained when networks were not told labelled ends apart; train it again"
            )
        return rules


# -- writing ---------------------------------------------------------------------------------------------------------


def save(
    checkpoints: str | Path,
    updates: int,
    model: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    state: Mapping[str, Any],
    keep: int = 3,
    memory: Mapping[str, Tensor] | None = None,
) -> Path:
    """Writes `<checkpoints>/<updates>/`, points `latest` at it, and removes all but the newest `keep` up to it.

    Raises:
        CheckpointError: it could not be written (a full disk); what was there before is there still.
    """
    checkpoints = Path(checkpoints)
    final = checkpoints / f"{updates:08d}"
    unfinished = checkpoints / f".{final.name}.{uuid.uuid4().hex[:8]}"
    try:
        unfinished.mkdir(parents=True)
        sums = {}
        files = dict(zip(_TENSORS, (model, optimizer), strict=True)) | ({_MEMORY: memory} if memory else {})
        for name, tensors in files.items():
            data = safetensors.torch.save({key: value.detach().cpu().clone() for key, value in tensors.items()})
            sums[name] = hashlib.sha256(data).hexdigest()
            _write(unfinished / name, data)
        whole = {"format": FORMAT, **state, "sha256": sums}
        whole["sha256"][_STATE] = _sum(whole)
        _write(unfinished / _STATE, (json.dumps(whole, indent=1) + "\n").encode())
        _sync(unfinished)
        _replace(unfinished, final)
        _point(checkpoints / LATEST, final.name)
        _sync(checkpoints)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise CheckpointError(
            f"{final} could not be saved ({error.strerror}); earlier checkpoints are intact"
        ) from error
    for old in [folder for folder in _folders(checkpoints) if folder.name <= final.name][:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def _write(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Forces the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace(source: Path, target: Path) -> None:
    """Renames a folder, over one that may be there (a resume after a damaged checkpoint saves it anew)."""
    if target.exists():
        gone = source.with_name(source.name + ".old")
        target.rename(gone)
        source.rename(target)
        shutil.rmtree(gone, ignore_errors=True)
    else:
        source.rename(target)


def _point(link: Path, target: str) -> None:
    """Makes `link` a link to `target` in one step."""
    unfinished = link.with_name(f".{link.name}.{uuid.uuid4().hex[:8]}")
    unfinished.symlink_to(target, target_is_directory=True)
    try:
        unfinished.replace(link)
    except OSError:
        unfinished.unlink()
        raise


def _sum(state: Mapping[str, Any]) -> str:
    """The sum over state.json, which stands in it: over all the rest in one fixed spelling."""
    sums = {key: value for key, value in state["sha256"].items() if key != _STATE}
    return hashlib.sha256(json.dumps({**state, "sha256": sums}, sort_keys=True).encode()).hexdigest()


# -- reading ---------------------------------------------------------------------------------------------------------


def load(folder: str | Path) -> Checkpoint:
    """Reads one checkpoint folder and checks it.

    Raises:
        CheckpointError: it is no checkpoint, incomplete, damaged, edited, or of another version.
    """
    folder = Path(folder).resolve()
    if not (folder / _STATE).is_file():
        raise CheckpointError(f"{folder} is not a checkpoint: it has no {_STATE}")
    try:
        state = json.loads((folder / _STATE).read_bytes())
        version, sums = state["format"], state["sha256"]
        intact = sums[_STATE] == _sum(state)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CheckpointError(f"{folder}: {_STATE} is damaged") from None
    if version != FORMAT:
        raise CheckpointError(f"{folder} has format {version!r}; this version reads format {FORMAT}")
    if not intact:
        raise CheckpointError(f"{folder}: {_STATE} was damaged or edited: its sum is another")
    contents = {_MEMORY: dict[str, Tensor]()}
    for name in (*_TENSORS, *([_MEMORY] if _MEMORY in sums else [])):
        try:
            data = (folder / name).read_bytes()
        except OSError as error:
            raise CheckpointError(f"{folder}: {name} cannot be read: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != sums.get(name):
            raise CheckpointError(f"{folder}: {name} was damaged or edited: its sum is not the one in {_STATE}")
        try:
            contents[name] = safetensors.torch.load(data)
        except SafetensorError as error:
            raise CheckpointError(f"{folder}: {name} cannot be read: {error}") from None
    return Checkpoint(folder, contents[_TENSORS[0]], contents[_TENSORS[1]], state, contents[_MEMORY])


def resolve(path: str | Path) -> Path:
    """The checkpoint folder that is meant: a checkpoint itself, or the newest of a run or of its folder of checkpoints.

    Raises:
        CheckpointError: there is none.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(f"{path} does not exist")
    if (path / _STATE).exists() or path.name.isdigit():
        return path.resolve()
    for checkpoints in (path / "checkpoints", path):
        if (checkpoints / LATEST).exists():
            return (checkpoints / LATEST).resolve()
        if folders := _folders(checkpoints):
            return folders[-1].resolve()
    raise CheckpointError(f"{path} is neither a run nor a checkpoint: it has no {_STATE} and no checkpoints in it")


def resume(path: str | Path, refused: Callable[[CheckpointError], None]) -> Checkpoint:
    """The checkpoint that is meant, or the newest before it that can be used.

    Args:
        path: a run, or one of its checkpoints.
        refused: is told what is wrong with each that cannot be used.

    Raises:
        CheckpointError: none can be used.
    """
    wanted = resolve(path)
    candidates = [wanted, *(f for f in reversed(_folders(wanted.parent)) if f.name < wanted.name)]
    for folder in candidates:
        try:
            return load(folder)
        except CheckpointError as error:
            refused(error)
    raise CheckpointError(f"{path} has no checkpoint that can be used; refused: {len(candidates)}")


def _folders(checkpoints: Path) -> list[Path]:
    """Checkpoint folders, oldest first."""
    if not checkpoints.is_dir():
        return []
    return sorted(f for f in checkpoints.iterdir() if f.name.isdigit() and f.is_dir() and not f.is_symlink())


def fill(into: Mapping[str, Tensor], tensors: Mapping[str, Tensor], where: str) -> None:
    """Copies `tensors` into those of the same names.

    Raises:
        CheckpointError: a name that is missing or not known, or another shape or type; nothing is copied then.
    """
    for name in sorted(into.keys() - tensors.keys()):
        raise CheckpointError(f"{where}: {name} is missing")
    for name in sorted(tensors.keys() - into.keys()):
        raise CheckpointError(f"{where}: {name} is not known to this network")
    for name, target in into.items():
        source = tensors[name]
        if source.shape != target.shape or source.dtype != target.dtype:
            raise CheckpointError(
                f"{where}: {name} is {source.dtype} {tuple(source.shape)}, "
                f"expected {target.dtype} {tuple(target.shape)}"
            )
    with torch.no_grad():
        for name, target in into.items():
            target.copy_(tensors[name])


def begin(trainer: BaseTrainer, folder: str | Path) -> None:
    """Makes the parameters of another run the first ones of this; optimisers and counters begin anew.

    Raises:
        CheckpointError: the checkpoint cannot be used, is of other rules, or its networks are others.
    """
    checkpoint, _ = _of_game(folder, trainer.rules)
    said = checkpoint.state.get("config")
    scale = getattr(trainer.config, "reward_scale", None)
    theirs = said.get("reward_scale", scale) if isinstance(said, dict) else scale
    if theirs != scale:  # what its critic says would be in another unit
        raise CheckpointError(f"start={folder} has reward_scale={theirs}, this run {scale}; they must be the same")
    try:
        fill(trainer.model(), checkpoint.model, str(folder))
    except CheckpointError:
        if not (others := _others(trainer, checkpoint)):
            raise
        raise CheckpointError(f"start={folder} has other networks than this run: {others}") from None
    trainer.refresh()


def _others(trainer: BaseTrainer, checkpoint: Checkpoint) -> str:
    """The settings by which the networks of a checkpoint differ from those of a run, in words; empty for none."""
    said, state = checkpoint.state.get("config"), checkpoint.state
    there = {"choices": False, **(said if isinstance(said, dict) else {}), "algorithm": state.get("algorithm")}
    here = {key: getattr(trainer.config, key) for key in _SHAPING if hasattr(trainer.config, key)}
    parts = [
        f"{key}={json.dumps(there[key])} there, {json.dumps(value)} here"
        for key, value in here.items()
        if key in there and there[key] != value
    ]
    return "; ".join(parts)


def slim(folder: str | Path, out: str | Path, critic: bool = True) -> Path:
    """Writes the networks of a checkpoint, without optimisers and memory, as a checkpoint that plays: `out`.

    Args:
        critic: all networks; else the actor alone, which plays and is read, but judges nothing.

    Raises:
        CheckpointError: there is none, it cannot be used, or `out` cannot be written.
    """
    found, out = load(resolve(folder)), Path(out)
    state = {key: value for key, value in found.state.items() if key not in ("format", "sha256")}
    # The config names folders of the machine that trained it.
    state["config"] = {key: value for key, value in state["config"].items() if key not in ("runs_dir", "start")}
    unfinished = out.with_name(f".{out.name}.{uuid.uuid4().hex[:8]}")
    try:
        model = {name: one for name, one in found.model.items() if critic or name.startswith("actor.")}
        save(unfinished, 0, model, {}, state)
        for name in (*_TENSORS, _STATE):
            out.mkdir(parents=True, exist_ok=True)
            (unfinished / LATEST / name).replace(out / name)
    except OSError as error:
        raise CheckpointError(f"{out} could not be written: {error.strerror}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return out


def load_policy(
    folder: str | Path, rules: str | Rules | None = None, *, sample: bool = False, deaf: bool | None = None
) -> Policy:
    """The agent that was saved.

    Args:
        folder: a checkpoint, or a run, of which the newest is taken.
        rules: the game it is to play; None: the one it was trained for.
        sample: play by the probabilities; else always the likeliest action, which is the stronger.
        deaf: whether it hears nothing of what others chose; None: only if it never did while it was trained.

    Raises:
        CheckpointError: the checkpoint cannot be used, is of other rules, or is to play deaf or hearing and has never
            learned that.
    """
    checkpoint, trained = _of_game(folder, rules)
    said = checkpoint.state.get("policy")
    if not isinstance(said, dict):
        raise CheckpointError(f"{folder}: {_STATE} does not say what network it holds")
    if said.get("network") not in NETWORKS:
        raise CheckpointError(f"{folder}: network {said.get('network')!r} is not known; known: {', '.join(NETWORKS)}")
    words, choices = said.get("words", False), said.get("choices", False)
    for key, flag in (("words", words), ("choices", choices)):
        if not isinstance(flag, bool):
            raise CheckpointError(f"{folder}: {_STATE} says {key}={flag!r}; it is true or false")
    for key, number in (("bits", input_bits(trained, words, choices)), ("actions", trained.num_actions)):
        if said.get(key) != number:
            raise CheckpointError(f"{folder}: its network has {said.get(key)} {key}, this version has {number}")
    hidden = said.get("hidden")
    if not _are_widths(hidden):
        raise CheckpointError(f"{folder}: its network has widths {hidden!r}; they are a list of whole numbers above 0")
    state = said.get("state", 0)
    if said["network"] in RECURRENT and not _are_widths([state]):
        raise CheckpointError(f"{folder}: its memory has width {state!r}; it is a whole number above 0")
    temperature = said.get("temperature", 1.0)
    if not _is_scale(temperature):
        raise CheckpointError(f"{folder}: {_STATE} says temperature={temperature!r}; it is a number above 0")
    chance = said.get("deaf", 0.0)
    if isinstance(chance, bool) or not isinstance(chance, int | float) or not 0 <= chance <= 1:
        raise CheckpointError(f"{folder}: {_STATE} says deaf={chance!r}; it is a number in 0..1")
    deaf = chance == 1 if deaf is None else deaf
    try:
        check_heard(str(folder), chance, deaf)
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    try:
        actor = make_actor(said["network"], trained, hidden, torch.Generator(), words, state, choices)
    except ValueError as error:
        raise CheckpointError(f"{folder}: {error}") from None
    ours = {f"actor.{name}": tensor for name, tensor in actor.state_dict().items()}
    beside = "actor.owners."  # the head of agents/owner.py, which plays no part at the table
    fill(
        ours,
        {n: t for n, t in checkpoint.model.items() if n.startswith("actor.") and not n.startswith(beside)},
        str(folder),
    )
    return Policy(
        actor.requires_grad_(False),
        trained,
        str(folder),
        sample=sample,
        words=words,
        choices=choices,
        temperature=float(temperature),
        deaf=deaf,
        deafness=float(chance),
    )


def load_critic(folder: str | Path, rules: str | Rules | None = None) -> CentralCritic:
    """The critic that was saved beside the agent: it sees all hands and says what a position is worth.

    Args:
        folder: a checkpoint, or a run, of which the newest is taken.
        rules: the game it is to judge; None: the one it was trained for.

    Raises:
        CheckpointError: the checkpoint cannot be used, is of other rules, or has no critic that sees all hands and no
            words of the game.
    """
    checkpoint, trained = _of_game(folder, rules)
    config = checkpoint.state.get("config")
    if not isinstance(config, dict):
        raise CheckpointError(f"{folder}: {_STATE} does not say how its critic was trained")
    if "advantage" not in config:
        raise CheckpointError(
            f"{folder} has no critic that sees all hands: runs of {checkpoint.state.get('algorithm')} have no critic"
        )
    if config["advantage"] != "deal":
        raise CheckpointError(
            f"{folder} has no critic that sees all hands: it was trained with "
            f"advantage={config.get('advantage')!r}, that needs 'deal'"
        )
    if config.get("words", False) is not False:
        raise CheckpointError(f"{folder}: its critic reads the words of the game, which imagined tables do not have")
    hidden, scale = config.get("critic_hidden"), config.get("reward_scale")
    if not _are_widths(hidden):
        raise CheckpointError(f"{folder}: its critic has widths {hidden!r}; they are a list of whole numbers above 0")
    if not _is_scale(scale):
        raise CheckpointError(f"{folder}: {_STATE} says reward_scale={scale!r}; it is a number above 0")
    network = Critic(CentralCritic.inputs(trained), hidden, torch.Generator())
    ours = {f"critic.{name}": tensor for name, tensor in network.state_dict().items()}
    fill(ours, {name: t for name, t in checkpoint.model.items() if name.startswith("critic.")}, str(folder))
    return CentralCritic(network.requires_grad_(False), trained, float(scale), str(folder))


def _of_game(folder: str | Path, rules: str | Rules | None) -> tuple[Checkpoint, Rules]:
    """The checkpoint that is meant and the game it was trained for; CheckpointError where another one is wanted."""
    checkpoint = load(resolve(folder))
    trained = checkpoint.rules
    if rules is not None and (wanted := get_rules(rules)) != trained:
        raise CheckpointError(f"{folder} was trained for {trained.title}, not for {wanted.title}")
    return checkpoint, trained


def _is_scale(number: Any) -> TypeGuard[float]:
    return not isinstance(number, bool) and isinstance(number, int | float) and 0 < number < math.inf


def _are_widths(hidden: Any) -> TypeGuard[list[int]]:
    return isinstance(hidden, list) and bool(hidden) and all(type(width) is int and width > 0 for width in hidden)
