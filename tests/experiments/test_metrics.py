"""The TensorBoard log: only the tags of the list, and what was written is read back."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from experiments.metrics import TAGS, Metrics, check_tag, opponent_tag, run_folder


def test_the_contract_tags_are_there() -> None:
    names = "SPS episodic_return episodic_length learning_rate"
    losses = "policy_loss value_loss entropy approx_kl clipfrac explained_variance q_values td_loss"
    ours = "out_rate block_rate pass_rate rolled_rate points"
    for tag in (
        *(f"charts/{name}" for name in names.split()),
        *(f"losses/{name}" for name in losses.split()),
        *(f"domino/{name}" for name in ours.split()),
    ):
        assert tag in TAGS
        assert check_tag(tag) == tag
    assert opponent_tag("greedy") == "eval/greedy/points_per_deal"
    assert opponent_tag("runs/a b/latest", "points_per_deal_low") == "eval/runs_a_b_latest/points_per_deal_low"


@pytest.mark.parametrize(
    "tag", ["charts/sps", "loss", "", "eval/greedy/points", "charts/SPS/x", "eval/a/b/points_per_deal"]
)
def test_unknown_tags_are_refused(tag: str, tmp_path: Path) -> None:
    with Metrics(tmp_path) as metrics, pytest.raises(ValueError, match="unknown tag"):
        metrics.scalar(tag, 1.0, 0)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "runs", "smoke", 3)
    with Metrics(folder) as metrics:
        metrics.scalars({"charts/SPS": 10.0, "losses/entropy": 0.5}, 7)
        metrics.histogram("policy/entropy", np.array([0.0, 1.0, np.nan]), 7)
        metrics.histogram("weights/torso.0", np.array([]), 7)
        metrics.text("config", "seed: 3\n")
        metrics.image("deal", np.full((4, 6, 3), 200, np.uint8), 7)
        metrics.hparams({"seed": 3, "layers": [1, 2], "bf16": True}, {opponent_tag("greedy"): 1.5})
    log = EventAccumulator(str(folder))
    log.Reload()
    assert [(event.step, event.value) for event in log.Scalars("charts/SPS")] == [(7, 10.0)]
    assert log.Histograms("policy/entropy")[0].histogram_value.num == 2
    assert log.Images("deal")[0].width == 6
    assert log.Tensors("config/text_summary")[0].tensor_proto.string_val[0] == b"```\nseed: 3\n```"
    assert any("hparams" in name for name in log.summary_metadata)
    assert len(list(folder.iterdir())) == 1, "a run is one event file, no folder beside it"


@pytest.mark.skipif(os.name != "posix" or shutil.which("mount") is None, reason="needs mount")
def test_a_full_disk_costs_events_and_one_warning(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        with Metrics(tmp_path) as metrics:
            metrics.scalar("charts/SPS", 1.0, 0)
            (tmp_path / "rest").write_bytes(bytes(48 * 1024))
            for step in range(1, 6):
                metrics.histogram("policy/entropy", np.random.default_rng(step).random(4000), step)
                metrics.text("config", "x" * 4000, step)
            metrics.flush()
            (tmp_path / "rest").unlink()
            metrics.scalar("charts/SPS", 2.0, 9)
        log = EventAccumulator(str(tmp_path))
        log.Reload()
        assert [(event.step, event.value) for event in log.Scalars("charts/SPS")] == [(0, 1), (9, 2)]
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)
    err = capfd.readouterr().err
    assert err.startswith("warning: ") and "No space left on device" in err and err.count("\n") == 1


@pytest.mark.parametrize("picture", [np.zeros((2, 2, 3)), np.zeros((2, 2), np.uint8), np.zeros((2, 2, 4), np.uint8)])
def test_what_is_no_picture_is_refused(picture: np.ndarray, tmp_path: Path) -> None:
    with Metrics(tmp_path) as metrics, pytest.raises(ValueError, match="a picture is uint8"):
        metrics.image("deal", picture, 0)


def test_a_resumed_run_hides_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    with Metrics(tmp_path) as metrics:
        for step in range(5):
            metrics.scalar("charts/SPS", 1.0, step)
    with Metrics(tmp_path, purge_step=3) as metrics:
        metrics.scalar("charts/SPS", 2.0, 3)
    log = EventAccumulator(str(tmp_path))
    log.Reload()
    assert [(event.step, event.value) for event in log.Scalars("charts/SPS")] == [(0, 1), (1, 1), (2, 1), (3, 2)]


def test_run_folders_are_named_and_never_shared(tmp_path: Path) -> None:
    first, second = (run_folder(tmp_path, "quick", 1, now=0) for _ in range(2))
    assert first != second
    assert first.name.startswith("quick-1-19") and second.name == first.name + ".2"
    assert first.is_dir() and second.is_dir()
