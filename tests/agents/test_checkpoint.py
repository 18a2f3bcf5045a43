"""Checkpoint folders: whole or not at all, checked when read, nothing in them runs."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import checkpoint, make_agent
from agents.base import decide
from agents.checkpoint import CheckpointError, fill, load, load_policy, resolve, resume, save, slim
from agents.networks import input_bits, make_actor
from domino_env import get_rules, make_engine
from domino_env.decisions import Decisions
from domino_env.observation import layout_of
from domino_env.rules import describe_rules

RULES = get_rules("sport_book")
FILES = ["model.safetensors", "optimizer.safetensors", "state.json"]


def contents(size: int = 8, **changes: Any) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], dict[str, Any]]:
    """What a small trainer would save."""
    layout = layout_of(RULES)
    actor = make_actor("mlp", RULES, [size], torch.Generator().manual_seed(1))
    model = {f"actor.{name}": tensor for name, tensor in actor.state_dict().items()}
    state = {
        "algorithm": "ppo",
        "config": {"seed": 1, "runs_dir": "runs"},
        "rules": describe_rules(RULES),
        "policy": {"network": "mlp", "hidden": [size], "bits": layout.size, "actions": 57},
        "counters": {"updates": 3},
    }
    return model, {name: tensor + 1 for name, tensor in model.items()}, {**state, **changes}


def written(folder: Path, updates: int = 3, keep: int = 3, **changes: Any) -> Path:
    return save(folder / "checkpoints", updates, *contents(**changes), keep=keep)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    model, optimizer, state = contents()
    folder = save(tmp_path / "checkpoints", 12, model, optimizer, state)
    assert names(folder) == FILES and names(tmp_path / "checkpoints") == ["00000012", "latest"]
    for path in (folder, tmp_path / "checkpoints" / "latest"):
        got = load(path)
        assert got.folder == folder and got.run == tmp_path and got.rules == RULES
        for ours, theirs in ((model, got.model), (optimizer, got.optimizer)):
            assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
        assert {**got.state, **state} == got.state and got.state["format"] == 1


def test_latest_moves_and_only_the_newest_stay(tmp_path: Path) -> None:
    for updates in (2, 10, 100, 1000):
        written(tmp_path, updates, keep=2)
        assert (tmp_path / "checkpoints" / "latest").resolve().name == f"{updates:08d}"
    assert names(tmp_path / "checkpoints") == ["00000100", "00001000", "latest"]


def test_a_checkpoint_of_the_same_number_is_written_anew(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "model.safetensors").write_bytes(b"")
    written(tmp_path)
    assert load(folder).state["counters"] == {"updates": 3}
    assert names(tmp_path / "checkpoints") == ["00000003", "latest"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["empty", "half", "last byte", "longer", "one bit", "gone"])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, name: str, how: str) -> None:
    file = written(tmp_path) / name
    data = bytearray(file.read_bytes())
    if how == "gone":
        file.unlink()
    else:
        middle = len(data) // 2
        changed = {
            "empty": b"", "half": data[:middle], "last byte": data[:-2], "longer": data + b"}",
            "one bit": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        }[how]  # fmt: skip
        file.write_bytes(changed)
    with pytest.raises(CheckpointError) as caught:
        load(file.parent)
    text = str(caught.value)
    assert str(file.parent) in text and name in text and "\n" not in text


def test_an_edited_state_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path) / "state.json"
    for edit in ({"counters": {"updates": 4}}, {"config": {"seed": 2}}, {"extra": 1}):
        state = json.loads(file.read_text())
        file.write_text(json.dumps(state | edit))
        with pytest.raises(CheckpointError, match="edited"):
            load(file.parent)
        file.write_text(json.dumps(state))
    load(file.parent)  # another spelling of the same is no edit
    for text in ("[1, 2]", "{", "[" * 100_000, '{"format": 1, "sha256": 3}'):
        file.write_text(text)
        with pytest.raises(CheckpointError, match="is damaged"):
            load(file.parent)


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    folder = written(tmp_path)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="format 2; this version reads format 1"):
        load(folder)


@pytest.mark.parametrize("what", ["nothing", "a file", "an empty folder", "another folder"])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x"
    if what == "a file":
        path.write_text("x")
    elif what != "nothing":
        path.mkdir()
    if what == "another folder":
        (path / "notes.txt").write_text("x")
    for function in (resolve, load, load_policy):
        with pytest.raises(CheckpointError, match="x"):
            function(path)


def test_a_run_its_checkpoints_and_each_of_them_can_be_named(tmp_path: Path) -> None:
    old, new = written(tmp_path, 3), written(tmp_path, 5)
    for path in (tmp_path, tmp_path / "checkpoints", tmp_path / "checkpoints" / "latest", new):
        assert resolve(path) == new
    assert resolve(old) == old
    (tmp_path / "checkpoints" / "latest").unlink()
    assert resolve(tmp_path) == new


def test_resume_takes_the_one_before_a_damaged_one(tmp_path: Path) -> None:
    folders = [written(tmp_path, updates) for updates in (3, 5, 8)]
    refused: list[CheckpointError] = []
    assert resume(tmp_path, refused.append).folder == folders[2] and not refused
    (folders[2] / "model.safetensors").write_bytes(b"half")
    for path in (tmp_path, folders[2], tmp_path / "checkpoints" / "latest"):
        refused.clear()
        assert resume(path, refused.append).folder == folders[1]
        assert [str(folders[2]) in str(error) for error in refused] == [True]
    (folders[1] / "state.json").unlink()
    assert resume(tmp_path, refused.append).folder == folders[0]
    shutil.rmtree(folders[0] / "optimizer.safetensors", ignore_errors=True)
    (folders[0] / "optimizer.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="no checkpoint that can be used; refused: 3"):
        resume(tmp_path, refused.append)


def test_fill_checks_names_shapes_and_types() -> None:
    ours = {"a": torch.zeros(2), "b": torch.zeros(3)}
    fill(ours, {"a": torch.ones(2), "b": torch.ones(3)}, "here")
    assert ours["a"].tolist() == [1, 1]
    cases = [
        ({"a": torch.ones(2)}, "here: b is missing"),
        ({"a": torch.ones(2), "b": torch.ones(3), "c": torch.ones(1)}, "here: c is not known"),
        ({"a": torch.zeros(2), "b": torch.ones(4)}, r"here: b is torch.float32 \(4,\), expected torch.float32 \(3,\)"),
        ({"a": torch.zeros(2), "b": torch.ones(3).double()}, "here: b is torch.float64"),
    ]
    for tensors, message in cases:
        with pytest.raises(CheckpointError, match=message):
            fill(ours, tensors, "here")
        assert ours["a"].tolist() == [1, 1]


# -- policies --------------------------------------------------------------------------------------------------------


def question() -> Decisions:
    engine = make_engine(RULES, 50, seed=5)
    return Decisions(obs=engine.observe(), mask=engine.legal(), seat=engine.to_move(), rules=RULES)


def test_a_policy_plays_from_its_folder(tmp_path: Path) -> None:
    folder = written(tmp_path)
    policy = load_policy(folder)
    actor = make_actor("mlp", RULES, [8], torch.Generator().manual_seed(1))
    batch = question()
    with torch.no_grad():
        logits = actor(torch.from_numpy(batch.obs).float())
    want = logits.masked_fill(torch.from_numpy(batch.mask == 0), -1e9).softmax(1).numpy()
    assert np.allclose(policy.probabilities(batch), want, atol=1e-6)
    for path in (tmp_path, tmp_path / "checkpoints" / "latest"):
        agent = make_agent(str(path), RULES)
        assert np.array_equal(agent.act(batch), policy.act(batch)) and agent.name == str(path)


def test_a_policy_of_other_rules_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path)
    for other in ("kozyol", "tiny_pairs", get_rules("sport_book", lone_blank=3)):
        with pytest.raises(CheckpointError, match="was trained for sport_book, not for"):
            load_policy(folder, other)
    assert load_policy(folder, "sport_book").rules == RULES


def test_a_policy_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    policy = contents()[2]["policy"]
    for number, (change, message) in enumerate(
        [
            ({"network": "lstm"}, "network 'lstm' is not known; known: mlp, public_private, gru"),
            ({"bits": 192}, "its network has 192 bits, this version has 256"),
            ({"actions": 59}, "its network has 59 actions"),
            ({"words": True}, "its network has 256 bits, this version has 296"),
            ({"words": 1}, "says words=1; it is true or false"),
            ({"choices": True}, "its network has 256 bits, this version has 448"),
            ({"choices": 1}, "says choices=1; it is true or false"),
            # Which of the tensors that do not fit is named first is left open.
            ({"hidden": [16]}, r"actor\.\S+ is torch.float32 \(.*\), expected torch.float32 \("),
            ({"hidden": [8, 8]}, r"actor\.\S+ is missing"),
            ({"hidden": "wide"}, "its network has widths 'wide'"),
            ({"hidden": [-1]}, r"its network has widths \[-1\]"),
            ({"hidden": []}, r"its network has widths \[\]"),
        ]
    ):
        with pytest.raises(CheckpointError, match=message):
            load_policy(written(tmp_path, number, policy={**policy, **change}))
    with pytest.raises(CheckpointError, match="does not say what network it holds"):
        load_policy(written(tmp_path, 90, policy=3))


def test_rules_that_have_changed_or_are_unknown_are_refused(tmp_path: Path) -> None:
    said = describe_rules(RULES)
    changes = [
        ({"name": "chess"}, "unknown rules 'chess'"),
        ({"overrides": {"colour": 1}}, "colour"),
        ({"fields": {**said["fields"], "lone_blank": 11}}, "preset 'sport_book' has changed"),
    ]
    for number, (change, message) in enumerate(changes):
        with pytest.raises(CheckpointError, match=message):
            load_policy(written(tmp_path, number, rules={**said, **change}))
    for number, rules in enumerate([None, ["sport_book"], {"name": "sport_book"}], 90):
        with pytest.raises(CheckpointError, match="does not say for what rules"):
            load_policy(written(tmp_path, number, rules=rules))


def test_one_tile_a_turn_may_bear_the_name_it_had_before_blitz(tmp_path: Path) -> None:
    """Checkpoints of the first version called it chain="one", which is now a way to play blitz (B3)."""
    said = describe_rules(RULES)
    assert said["fields"]["chain"] == "none"
    old = {**said, "fields": {**said["fields"], "chain": "one"}}
    assert load_policy(written(tmp_path, rules=old), RULES).rules == RULES
    blitz = describe_rules(get_rules("blitz"))
    with pytest.raises(CheckpointError, match="preset 'blitz' has changed"):
        load_policy(written(tmp_path, 4, rules={**blitz, "fields": {**blitz["fields"], "chain": "one"}}))


@pytest.mark.parametrize(
    ("name", "overrides", "words"),
    [("blitz", {"seats": 7, "chain": "one"}, False), ("blind", {"seats": 2}, False), ("blind_blitz", {}, True)],
)
def test_policies_of_every_game_come_back(tmp_path: Path, name: str, overrides: dict[str, Any], words: bool) -> None:
    rules = get_rules(name, **overrides)
    actor = make_actor("mlp", rules, [8], torch.Generator().manual_seed(1), words)
    model = {f"actor.{key}": tensor for key, tensor in actor.state_dict().items()}
    said = {"network": "mlp", "hidden": [8], "actions": rules.num_actions, "bits": input_bits(rules, words)}
    state = contents(rules=describe_rules(rules), policy=said | {"words": words})[2]
    policy = make_agent(str(save(tmp_path / "checkpoints", 1, model, {}, state).parent.parent), rules)
    engine = make_engine(rules, 30, seed=3)
    for _ in range(30):
        engine.step(policy.act(decide(engine, policy)))
    assert policy.needs_history == words
    with pytest.raises(CheckpointError, match="was trained for"):
        make_agent(str(tmp_path), "sport_book")


# -- full disks ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A disk of its own of so many kilobytes; skips where none can be mounted."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(os.name != "posix" or shutil.which("mount") is None, reason="needs mount")
def test_a_full_disk_leaves_the_earlier_checkpoint(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 256) as disk:
        first = written(disk, 3)
        rest = disk / "rest"
        with contextlib.suppress(OSError), open(rest, "wb", buffering=0) as file:
            while file.write(bytes(4096)) == 4096:
                pass
        for _ in range(2):
            with pytest.raises(CheckpointError, match=r"00000005 could not be saved .No space left") as caught:
                written(disk, 5)
            assert "\n" not in str(caught.value)
            assert names(disk / "checkpoints") == ["00000003", "latest"]
        assert load(disk / "checkpoints" / "latest").folder == first
        rest.unlink()
        assert load(written(disk, 5)).state["counters"] == {"updates": 3}


def test_an_error_while_writing_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(tmp_path, 3)

    def full(path: Path, data: bytes) -> None:
        path.write_bytes(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "_write", full)
    with pytest.raises(CheckpointError, match="earlier checkpoints are intact"):
        written(tmp_path, 5)
    assert names(tmp_path / "checkpoints") == ["00000003", "latest"] and load(first)


def test_slim_keeps_what_plays_and_nothing_else(tmp_path: Path) -> None:
    folder = written(tmp_path)
    out = slim(folder, tmp_path / "small")
    assert sorted(file.name for file in out.iterdir()) == ["model.safetensors", "optimizer.safetensors", "state.json"]
    kept, whole = load(out), load(folder)
    assert kept.optimizer == {} and kept.model.keys() == whole.model.keys()
    assert all(torch.equal(kept.model[name], tensor) for name, tensor in whole.model.items())
    assert "runs_dir" not in kept.state["config"] and kept.state["policy"] == whole.state["policy"]
    again = slim(folder, out)  # over one that is there
    assert again == out and [file.name for file in tmp_path.iterdir() if file.name.startswith(".small")] == []
    model, optimizer, state = contents()
    judged = model | {"critic.head.bias": torch.ones(1)}
    save(tmp_path / "judged" / "checkpoints", 1, judged, optimizer, state)
    assert load(slim(tmp_path / "judged", tmp_path / "both")).model.keys() == judged.keys()
    assert load(slim(tmp_path / "judged", tmp_path / "alone", critic=False)).model.keys() == model.keys()
    with pytest.raises(CheckpointError, match="does not exist"):
        slim(tmp_path / "nowhere", tmp_path / "other")
    assert not (tmp_path / "other").exists()
