"""Runs: a folder complete in itself, bit-equal on resume, and safe against Ctrl-C and full disks."""

import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from agents import checkpoint
from agents.checkpoint import CheckpointError
from agents.ppo import PPOConfig, Trainer
from experiments import train as module
from experiments.config import ConfigError, find
from experiments.metrics import TAGS
from experiments.train import train

ROOT = Path(__file__).resolve().parents[2]
SMALL = [
    "deals=64", "minibatch=256", "hidden=[32]", "critic_hidden=[32]", "evaluate_boards=4", "eval_boards=20",
    "evaluate_every=1000", "checkpoint_every=1000", "opponents=[random]", "threads=1", "dd_loss_boards=0",
]  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def run(tmp_path: Path, *words: str, resume: Path | None = None) -> dict[str, Any]:
    return train(None, [*SMALL, f"runs_dir={tmp_path}", *words] if resume is None else words, resume, json=True)


def tensors(folder: str | Path) -> tuple[bytes, bytes]:
    latest = Path(folder) / "checkpoints" / "latest"
    return (latest / "model.safetensors").read_bytes(), (latest / "optimizer.safetensors").read_bytes()


def log_of(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0, "histograms": 0, "tensors": 0})
    events.Reload()
    return events


def test_smoke_is_complete_in_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = train(find("smoke"), [f"runs_dir={tmp_path}", "eval_boards=100"])
    folder = Path(result["run"])
    assert folder.parent == tmp_path and folder.name.startswith("smoke-1-")
    assert result["updates"] == 16 and result["decisions"] > 16 * 256 * 10 and result["seconds"] > 0
    assert [one["b"] for one in result["evaluations"]] == ["random", "greedy", "club"]
    for one in result["evaluations"]:
        assert one["boards"] == 100 and one["low"] < one["points_per_deal"] < one["high"]
    assert result["evaluations"][0]["points_per_deal"] > 2  # it has learned something
    assert json.loads((folder / "result.json").read_text()) == result
    assert "total_updates: 16" in (folder / "config.yaml").read_text()
    shown = capsys.readouterr().out
    assert "random" in shown and "a second" in shown and "95 %" in shown
    log_is_complete(folder, result)
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["00000008", "00000016", "latest"]


def log_is_complete(folder: Path, result: dict[str, Any]) -> None:
    """Every tag that PPO has is in the log of a smoke run, as often as it should be; nothing else is."""
    from PIL import Image

    log = log_of(folder)
    opponents = [one["b"] for one in result["evaluations"]]
    every_update = {
        tag
        for tag, text in TAGS.items()
        if tag.startswith(("charts/", "losses/", "domino/", "time/")) and not re.search(r" \([A-Za-z]+\)$", text)
    } - {"time/evaluation_seconds"}
    if not result["evaluations"][0]["rules"].startswith("blind"):
        every_update -= {"domino/guard_rate"}  # R8
    words = {tag for tag in TAGS if tag.startswith("words/")}
    every_evaluation = (
        {"time/evaluation_seconds"}
        | words
        | {f"eval/{one}/points_per_deal{end}" for one in opponents for end in ("", "_low", "_high")}
    )
    if find_spec("numba") is not None and not result["evaluations"][0]["rules"].startswith("bli"):
        every_evaluation |= {f"eval/{one}/dd_loss_per_deal" for one in opponents}
    assert set(log.Tags()["scalars"]) == every_update | every_evaluation
    for tag in every_update:
        assert len(log.Scalars(tag)) == 16, tag
        assert all(math.isfinite(event.value) for event in log.Scalars(tag)), tag
    for tag in every_evaluation:
        assert len(log.Scalars(tag)) == 2, tag
    for one in result["evaluations"]:
        for end, key in (("", "points_per_deal"), ("_low", "low"), ("_high", "high")):
            event = log.Scalars(f"eval/{one['b']}/points_per_deal{end}")[-1]
            assert event.value == pytest.approx(one[key], abs=1e-5) and event.step == result["decisions"]
    names = {f"weights/{name}" for name in checkpoint.load(folder / "checkpoints" / "latest").model}
    assert set(log.Tags()["histograms"]) == names | {"policy/entropy"}
    assert all(len(log.Histograms(name)) == 2 for name in names)
    assert log.Tags()["images"] == ["deal"] and len(log.Images("deal")) == 2
    for event in log.Images("deal"):
        picture = Image.open(io.BytesIO(event.encoded_image_string))
        assert picture.size == (event.width, event.height) and len(picture.convert("RGB").getcolors(1 << 24)) > 4
    (text,) = log.Tensors("config/text_summary")
    said = text.tensor_proto.string_val[0].decode()
    assert said.strip("`\n") == (folder / "config.yaml").read_text().strip("\n")
    for part in ("experiment", "session_start_info", "session_end_info"):
        assert f"_hparams_/{part}" in log.summary_metadata
    assert log.summary_metadata["_hparams_/session_start_info"].plugin_data.content.find(b"learning_rate") > 0


@pytest.mark.parametrize(
    "game", [["rules=blind"], pytest.param(["rules=blitz", "rule_overrides.seats=6"], marks=pytest.mark.slow)], ids=str
)
def test_smoke_of_the_other_games(game: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B, R: a run of a game in which each plays for itself leaves the same folder, its deals drawn."""
    monkeypatch.setattr(module, "SAMPLE_DEALS", 4)
    words = ["advantage=seat", "deals=48", "eval_boards=40", "evaluate_boards=4", "opponents=[random]"]
    result = train(
        find("smoke"), [*game, *words, f"runs_dir={tmp_path}", "hidden=[32]", "critic_hidden=[32]"], json=True
    )
    log_is_complete(Path(result["run"]), result)
    assert result["evaluations"][0]["low"] > 0  # a thousand deals are enough to beat random play


@pytest.mark.parametrize("game", ["sport_book", "blitz", "blind_blitz"])
def test_sample_deals_are_whole_and_the_first_is_the_same_alone(game: str) -> None:
    trainer = Trainer(PPOConfig(rules=game, advantage="seat", hidden=[16], critic_hidden=[16], deals=8, opponents=[]))
    first, histories = module.sample_deals(trainer, 5, 40)
    alone, history = module.sample_deals(trainer, 5, 1)
    trainer.close()
    assert first == alone and first["over"] and len(histories) == 40 and histories.shape[1] == history.shape[1]
    assert (histories == history).all(axis=1).any() and (history >= 0).sum() == len(first["moves"])


@pytest.mark.parametrize(
    "name", ["smoke", "quick", "ppo", "owner", "hearing", "deaf", "labelled", "blitz", "blind_blitz", "blind"]
)
def test_shipped_configs_are_valid_and_hold_only_what_differs(name: str) -> None:
    import yaml

    from experiments.config import load

    load(find(name), [], PPOConfig)
    for key, value in yaml.safe_load(find(name).read_text()).items():
        assert getattr(PPOConfig(), key) != value, key


def test_resume_is_bit_equal(tmp_path: Path) -> None:
    """B22: counters and schedules go on too."""
    whole = run(tmp_path, "total_updates=6", "precision=auto")
    half = run(tmp_path, "total_updates=6", "precision=auto", "checkpoint_every=2", "keep_checkpoints=9")
    assert tensors(half["run"]) == tensors(whole["run"])
    resumed = train(None, [], Path(half["run"]) / "checkpoints" / "00000004", json=True)
    assert resumed["run"] == half["run"] and resumed["updates"] == 6
    assert tensors(half["run"]) == tensors(whole["run"]) and resumed["decisions"] == whole["decisions"]
    counters = [checkpoint.load(checkpoint.resolve(one["run"])).state["counters"] for one in (whole, resumed)]
    for name in ("updates", "decisions", "deals", "actor_steps", "critic_steps"):
        assert counters[0][name] == counters[1][name]


def test_kill_9_and_resume_is_bit_equal(tmp_path: Path) -> None:
    words = [*SMALL, "total_updates=8", "checkpoint_every=3", "keep_checkpoints=9", "opponents=[]"]
    # Killed after update 4, in the middle of learning: only the checkpoint of update 3 is left.
    script = (
        "import os, sys; from agents.ppo import Trainer; from experiments.train import train\n"
        "learn = Trainer._learn_actor\n"
        "def stab(self, *rest):\n"
        "    if self.updates == 4: os.kill(os.getpid(), 9)\n"
        "    return learn(self, *rest)\n"
        "Trainer._learn_actor = stab\n"
        "train(None, sys.argv[1:], None, json=True)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, *words, f"runs_dir={tmp_path / 'killed'}"], cwd=ROOT, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "killed").iterdir()
    assert checkpoint.resolve(folder).name == "00000003"
    whole = train(None, [*words, f"runs_dir={tmp_path}"], None, json=True)
    resumed = train(None, [], folder, json=True)
    assert resumed["decisions"] == whole["decisions"] and tensors(folder) == tensors(whole["run"])


def test_a_longer_total_counts_from_the_start(tmp_path: Path) -> None:
    first = run(tmp_path, "total_updates=2")
    second = run(tmp_path, "total_updates=5", resume=Path(first["run"]))
    assert second["updates"] == 5 and second["run"] == first["run"]
    third = run(tmp_path, resume=Path(first["run"]))  # nothing left to do: it is evaluated again
    assert third["updates"] == 5 and third["evaluations"] == second["evaluations"]


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run(tmp_path, "total_updates=4", "checkpoint_every=2")
    good = tensors(whole["run"])
    newest = checkpoint.resolve(whole["run"])
    with open(newest / "model.safetensors", "r+b") as file:
        file.truncate(1000)
    again = run(tmp_path, resume=Path(whole["run"]))
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "refused" in line and str(newest) in line and "model.safetensors" in line]
    assert again["updates"] == 4 and tensors(whole["run"]) == good
    checkpoint.load(newest)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("rules=kozyol", "rules=kozyol cannot be changed on resume"),
        ("hidden=[64]", r"hidden=\[64\] cannot be changed on resume"),
        ("network=public_private", "network=public_private cannot be changed on resume"),
        ("words=true", "words=true cannot be changed on resume"),
        ("learning_rat=1", "learning_rat"),
        ("seed=7", "seed=7 cannot be changed on resume"),
        ("runs_dir=elsewhere", "runs_dir=elsewhere cannot be changed on resume"),
    ],
)
def test_what_a_resume_cannot_change(tmp_path: Path, word: str, message: str) -> None:
    first = run(tmp_path, "total_updates=1", "opponents=[]")
    with pytest.raises(ValueError, match=message):
        run(tmp_path, word, resume=Path(first["run"]))


def test_what_a_run_says_of_itself_is_checked_and_can_be_put_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a run of another machine is resumed: its device is not here."""
    monkeypatch.setattr(
        module.configs, "as_dict", lambda config, real=module.configs.as_dict: {**real(config), "device": "cuda:99"}
    )
    first = run(tmp_path, "total_updates=1", "opponents=[]")
    monkeypatch.undo()
    with pytest.raises(ConfigError, match=r"00000001/state.json: device: cuda:99 is not there"):
        run(tmp_path, resume=Path(first["run"]))
    assert run(tmp_path, "device=cpu", resume=Path(first["run"]))["updates"] == 1


def test_a_resumed_run_is_called_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = train(None, [*SMALL, "total_updates=1", "opponents=[]", "runs_dir=here"], None, json=True)
    assert not Path(first["run"]).is_absolute()
    assert train(None, [], first["run"], json=True)["run"] == first["run"]
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    assert train(None, [], tmp_path / first["run"], json=True)["run"] == str(tmp_path / first["run"])


def test_opponents_and_folder_are_looked_at_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(Trainer, "update", lambda self: pytest.fail("trained"))
    with pytest.raises(ConfigError, match="opponents: unknown agent 'nobody'; choose from random"):
        run(tmp_path, "opponents=[nobody]")
    for place in ("file", "file/below"):
        with pytest.raises(ConfigError, match=r"runs_dir=.*file.*: no run can be written there: .*; it must be"):
            run(tmp_path, f"runs_dir={tmp_path / place}")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_is_no_run_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="neither a run nor a checkpoint"):
        run(tmp_path, resume=tmp_path)
    with pytest.raises(ConfigError, match="total_updates"):
        run(tmp_path, "total_updates=none")
    assert not list(tmp_path.iterdir())


def test_the_deadline_is_cpu_time(tmp_path: Path) -> None:
    result = run(tmp_path, "total_minutes=0.02", "total_updates=null", "opponents=[]")
    spent = checkpoint.load(checkpoint.resolve(result["run"])).state["counters"]["cpu_seconds"]
    assert 1.2 <= spent < 3


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------


def interrupting(function: Callable[..., Any], when: Callable[..., bool]) -> Callable[..., Any]:
    """The function, but with one Ctrl-C at its beginning the first time that `when` holds."""
    sent: list[bool] = []

    def wrapped(*args: Any, **keywords: Any) -> Any:
        if not sent and when(*args):
            sent.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)  # let it arrive in the main thread
        return function(*args, **keywords)

    return wrapped


IN_HALVES = ["total_updates=6", "checkpoint_every=4", "evaluate_every=3"]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    torch.set_num_threads(1)
    return run(tmp_path_factory.mktemp("whole"), *IN_HALVES)


@pytest.mark.parametrize("phase", ["rollout", "learning", "saving", "evaluation", "end"])
def test_ctrl_c_saves_in_every_phase(
    tmp_path: Path,
    phase: str,
    uninterrupted: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    second = lambda trainer, *rest: trainer.updates == 2  # noqa: E731
    if phase == "rollout":
        monkeypatch.setattr(Trainer, "_play", interrupting(Trainer._play, second))
    elif phase == "learning":
        monkeypatch.setattr(Trainer, "_learn_critic", interrupting(Trainer._learn_critic, second))
    elif phase == "saving":
        monkeypatch.setattr(checkpoint, "save", interrupting(checkpoint.save, lambda *rest: True))
    else:
        boards = 4 if phase == "evaluation" else 20
        monkeypatch.setattr(module, "_evaluate", interrupting(module._evaluate, lambda r, o, n, s: n == boards))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, *IN_HALVES)
    assert signal.getsignal(signal.SIGINT) is before
    updates = {"rollout": 3, "learning": 3, "saving": 4, "evaluation": 3, "end": 6}[phase]
    (folder,) = tmp_path.iterdir()
    assert checkpoint.load(checkpoint.resolve(folder)).state["counters"]["updates"] == updates
    shown = capsys.readouterr().err
    assert f"domino train --resume {folder}" in shown and "interrupted; saved" in shown
    monkeypatch.undo()
    resumed = run(tmp_path, resume=folder)
    assert resumed["updates"] == 6 and tensors(folder) == tensors(uninterrupted["run"])


def test_ctrl_c_of_the_command_is_exit_code_130(tmp_path: Path) -> None:
    words = ["train", "smoke", "total_updates=100000", f"runs_dir={tmp_path}"]
    script = "import sys; from experiments.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/checkpoints/latest/state.json")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == ""
    assert "domino train --resume" in err and "Traceback" not in err
    (folder,) = tmp_path.iterdir()
    checkpoint.load(checkpoint.resolve(folder))


# -- full disks ------------------------------------------------------------------------------------------------------


def test_a_save_that_fails_on_the_way_is_a_warning_and_at_the_end_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[int] = []
    write = checkpoint._write

    def full(path: Path, data: bytes) -> None:
        calls.append(1)
        if len(calls) == 4:  # the second checkpoint
            raise OSError(28, "No space left on device")
        write(path, data)

    monkeypatch.setattr(checkpoint, "_write", full)
    run(tmp_path, "total_updates=6", "checkpoint_every=2", "opponents=[]")
    assert "warning" in capsys.readouterr().err
    monkeypatch.setattr(checkpoint, "_write", lambda path, data: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(CheckpointError, match="could not be saved"):
        run(tmp_path, "total_updates=1", "opponents=[]")


def test_start_takes_the_parameters_of_another_run(tmp_path: Path) -> None:
    first = run(tmp_path, "total_updates=2")
    begun = module.make_trainer(module.load_config(None, [*SMALL, "total_updates=2", "seed=5"]))
    kept = {name: tensor.clone() for name, tensor in begun.model().items()}
    checkpoint.begin(begun, first["run"])
    saved = checkpoint.load(Path(first["run"]) / "checkpoints" / "latest").model
    assert all(torch.equal(tensor, saved[name]) for name, tensor in begun.model().items())
    assert any(not torch.equal(tensor, kept[name]) for name, tensor in begun.model().items())
    assert begun.updates == 0
    fast = begun.learners["actor"].fast
    assert all(
        torch.allclose(a.float(), b, atol=0.01) for a, b in zip(fast.parameters(), begun.policy().actor.parameters())
    )
    second = run(tmp_path, "total_updates=1", "learning_rate=1e-9", "learning_rate_end=1e-9", f"start={first['run']}")
    last = checkpoint.load(Path(second["run"]) / "checkpoints" / "latest").model
    assert all(torch.allclose(last[name], tensor, atol=1e-6) for name, tensor in saved.items())


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ("nowhere", "does not exist"),
        ("OTHER", "trained for"),
        ("WIDER", r"hidden=\[16\] there, \[.*\] here$"),
        ("PLAIN", "choices=false there, true here$"),
        ("SCALED", r"has reward_scale=40\.0, this run 20\.0; they must be the same$"),
    ],
)
def test_start_refuses_what_does_not_fit(start: str, why: str, tmp_path: Path) -> None:
    words = {
        "OTHER": ["rules=sport_club"],
        "WIDER": ["hidden=[16]"],
        "PLAIN": ["choices=false"],
        "SCALED": ["reward_scale=40"],
    }.get(start)
    folder = run(tmp_path / "first", "total_updates=1", "opponents=[]", *words)["run"] if words else start
    with pytest.raises(CheckpointError, match=why):
        run(tmp_path / "second", "total_updates=1", f"start={folder}")
    assert not (tmp_path / "second").exists()
