"""Imitation: the loss by numbers, what a network learns from decisions, and going on to the bit."""

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from agents.algorithms import make_trainer
from agents.checkpoint import CheckpointError, load_policy
from agents.dataset import read, read_manifest
from agents.imitation import ImitationConfig, Trainer, held_out
from agents.networks import straighten
from agents.targets import imitation_loss, soft_targets
from experiments import cli
from experiments.config import find, load
from experiments.export import export, imitate
from experiments.train import train

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="values are worked out by the extra search")
QUICK = [
    "algorithm=imitation", "hidden=[32]", "steps=4", "minibatch=128", "opponents=[]", "dd_loss_boards=0",
    "precision=float32", "checkpoint_every=1000", "evaluate_every=1000", "eval_boards=2",
]  # fmt: skip


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Decisions of the greedy player."""
    folder = tmp_path_factory.mktemp("greedy")
    export("greedy", folder, 50_000, seed=1, part_deals=1000)
    return folder


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Decisions of a small game, with values."""
    folder = tmp_path_factory.mktemp("solved")
    export("random", folder, 6000, "tiny_pairs", seed=1, values=True)
    return folder


def config(data: Path, **settings: Any) -> ImitationConfig:
    small: dict[str, Any] = {"opponents": [], "hidden": [32], "steps": 4, "minibatch": 128, "precision": "float32"}
    return ImitationConfig(**(small | {"data": str(data), "total_updates": 8} | settings))


def questions() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(40, 57, generator=generator) < 0.2
    mask[:, 7] = True
    mask[0] = False
    mask[0, 5] = True
    return 3 * torch.randn(40, 57, generator=generator), mask


def test_the_loss_of_actions_is_cross_entropy_over_the_legal_ones() -> None:
    logits, mask = questions()
    target = torch.full((40,), 7)
    target[0] = 5
    loss, grad = imitation_loss(logits, mask, target)
    wanted = logits.double().requires_grad_()
    value = F.cross_entropy(torch.where(mask, wanted, -torch.inf), target)
    value.backward()
    assert loss.item() == pytest.approx(value.item(), rel=1e-6)
    assert torch.allclose(grad.double(), wanted.grad, atol=1e-8)
    assert (grad[~mask] == 0).all() and (grad[0] == 0).all(), "a forced move teaches nothing"


def test_the_loss_of_probabilities_and_its_gradient() -> None:
    logits, mask = questions()
    target = soft_targets(10 * logits.flip(0), mask, 5.0)
    loss, grad = imitation_loss(logits.bfloat16(), mask, target)
    wanted = logits.bfloat16().double().requires_grad_()
    logprobs = torch.log_softmax(torch.where(mask, wanted, -1e30), dim=1)
    value = -(target * torch.where(mask, logprobs, 0.0)).sum(1).mean()
    value.backward()
    assert loss.item() == pytest.approx(value.item(), rel=1e-5) and grad.dtype == torch.float32
    assert torch.allclose(grad.double(), wanted.grad, atol=1e-7)
    one = F.one_hot(torch.full((40,), 7), 57).float() * mask
    one[0] = F.one_hot(torch.tensor(5), 57)
    actions = torch.full((40,), 7)
    actions[0] = 5
    hard, soft = imitation_loss(logits, mask, actions), imitation_loss(logits, mask, one)
    assert torch.allclose(hard[0], soft[0]) and torch.allclose(hard[1], soft[1], atol=1e-8)


def test_soft_targets_are_softmax_of_points() -> None:
    values = torch.tensor([[3, -(2**15), 1, 1]], dtype=torch.int16)
    mask = torch.tensor([[True, False, True, True]])
    weights = np.exp(np.array([3, -np.inf, 1, 1]) / 2.0)
    assert soft_targets(values, mask, 2.0)[0].tolist() == pytest.approx((weights / weights.sum()).tolist())
    assert torch.equal(soft_targets(values + 5, mask, 2.0), soft_targets(values, mask, 2.0)), "only differences count"
    assert soft_targets(values, mask, 1e-3)[0].tolist() == [1, 0, 0, 0]


def test_the_held_out_deals_are_a_share_of_any() -> None:
    deals = np.arange(40_000)
    chosen = held_out(deals, 0.05)
    assert abs(chosen.mean() - 0.05) < 0.005 and abs(chosen[deals % 4 == 1].mean() - 0.05) < 0.01
    assert np.array_equal(held_out(deals[7:9000:13], 0.05), chosen[7:9000:13])
    assert not (chosen & ~held_out(deals, 0.1)).any()


def test_it_learns_to_play_greedy(greedy: Path) -> None:
    trainer = Trainer(config(greedy, hidden=[64], steps=64, minibatch=512, total_updates=4, learning_rate=4e-3))
    figures = [trainer.update() for _ in range(4)]
    trainer.close()
    data = trainer._rows.data
    deals = np.concatenate([data.group(part, group, ["deal"])["deal"] for part, group, _ in data.groups.tolist()])
    assert trainer._rows.rows == (~held_out(deals, 0.05)).sum() < len(deals)  # of the others nothing is learned
    accuracy = [one["losses/held_out_accuracy"] for one in figures]
    assert accuracy[-1] > 0.9 and figures[-1]["losses/held_out_loss"] < figures[0]["losses/held_out_loss"]
    assert trainer.updates == 4 and trainer.decisions > 3.9 * 64 * 512


@needs_numba
def test_it_learns_from_values(solved: Path) -> None:
    trainer = Trainer(
        config(solved, rules="tiny_pairs", target="values", temperature=0.5, steps=64, learning_rate=5e-3)
    )
    before = trainer._look()
    figures = [trainer.update() for _ in range(4)]
    trainer.close()
    assert figures[-1]["losses/held_out_regret"] < 0.85 * before["losses/held_out_regret"]
    assert figures[-1]["losses/held_out_accuracy"] > before["losses/held_out_accuracy"] + 0.05


@needs_numba
def test_targets_are_turned_with_the_line(solved: Path) -> None:
    """What the network is shown and taught is the decision, or its mirror image: the same tile, at the same end."""
    rows = next(iter(read(solved)))
    by_action = Trainer(config(solved, rules="tiny_pairs"))
    by_value = Trainer(config(solved, rules="tiny_pairs", target="values", temperature=3.0))
    _, mask, flipped, action = by_action._prepared({k: rows[k] for k in ("obs", "mask", "action")})
    _, _, _, soft = by_value._prepared(rows)
    by_action.close(), by_value.close()
    assert 0.1 < flipped.mean() < 0.9
    for row in range(0, 600, 7):
        played, shown = int(rows["action"][row]), int(action[row])
        assert shown == (played + 28) % 56 if flipped[row] and played < 56 else shown == played
        legal = [a for a in range(57) if int(rows["mask"][row]) >> a & 1]
        there = [(a + 28) % 56 if flipped[row] and a < 56 else a for a in legal]
        assert mask[row].nonzero().flatten().tolist() == sorted(there)
        weights = np.exp(rows["values"][row][legal] / 3.0)
        assert soft[row][there].tolist() == pytest.approx((weights / weights.sum()).tolist(), rel=1e-5)


def tensors(folder: str | Path) -> list[bytes]:
    latest = Path(folder) / "checkpoints" / "latest"
    return [(latest / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")]


def test_resume_is_bit_equal_and_the_result_plays(greedy: Path, tmp_path: Path) -> None:
    words = [*QUICK, f"data={greedy}", f"runs_dir={tmp_path}", "total_updates=6"]
    whole = train(None, words, json=True)
    half = train(None, [*words, "checkpoint_every=2", "keep_checkpoints=9"], json=True)
    assert tensors(half["run"]) == tensors(whole["run"])
    resumed = train(None, [], Path(half["run"]) / "checkpoints" / "00000002", json=True)
    assert resumed["run"] == half["run"] and resumed["updates"] == 6
    assert tensors(half["run"]) == tensors(whole["run"]) and resumed["decisions"] == whole["decisions"] == 6 * 4 * 128
    other = train(None, [*words, "seed=2", "total_updates=1"], json=True)
    assert tensors(other["run"]) != tensors(whole["run"])
    export(whole["run"], tmp_path / "own", 50)
    (mark,) = read_manifest(tmp_path / "own")["command"]["checkpoints"]
    assert mark == hashlib.sha256(tensors(whole["run"])[0]).hexdigest(), "which network it was when `latest` moves on"
    with pytest.raises(ValueError, match="was begun with agents="):
        export(half["run"], tmp_path / "own", 50)
    data = tmp_path / "data"
    export("greedy", data, 2000, seed=2)
    with pytest.raises(CheckpointError, match="holds other decisions than this run has learned from"):
        train(None, [f"data={data}"], Path(whole["run"]), json=True)


def test_imitate_takes_the_rules_of_the_data(tmp_path: Path) -> None:
    export("greedy", tmp_path / "a: b", 1500, "blitz", seed=3)
    result = imitate(tmp_path / "a: b", [*QUICK[1:], "total_updates=1", f"runs_dir={tmp_path}"])
    assert result["updates"] == 1 and load_policy(result["run"]).rules.name == "blitz"


def test_the_shipped_config() -> None:
    import yaml

    load(find("imitation"), [], ImitationConfig)
    for key, value in yaml.safe_load(find("imitation").read_text()).items():
        assert key == "algorithm" or getattr(ImitationConfig(), key) != value


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "data names no folder of decisions"),
        ("data=nowhere", "nowhere is no folder of decisions"),
        ("data={data} rules=kozyol", "is of sport_book; this run is of kozyol"),
        ("data={data} target=values", "has no column 'values'"),
        ("data={data} target=wishes", "target: expected one of action, values"),
        ("data={data} temperature=0", "temperature: must be above 0"),
        ("data={data} held_out=0.9", "held_out: must be in 0.001..0.5"),
        ("data={data} minibatch=0", "minibatch: must be at least 1"),
        ("data={few}", "is held out; export more decisions"),
    ],
)
def test_bad_input_is_one_line(
    words: str,
    says: str,
    greedy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if "{few}" in words:
        export("greedy", "few", 1)
    given = words.format(data=greedy, few="few").split()
    assert cli.main(["train", "imitation", *given]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and says in err
    assert not (tmp_path / "runs").exists()


def test_the_mirror_of_every_row_is_shown_alike(greedy: Path) -> None:
    """No row that the network is shown has its larger end at the left."""
    trainer = make_trainer(config(greedy))
    assert isinstance(trainer, Trainer)
    rows = trainer._rows.batch(3)
    obs, mask, _, _ = trainer._prepared(rows)
    trainer.close()
    legal = np.packbits(mask.numpy(), axis=1, bitorder="little").copy()
    assert not straighten(obs, np.zeros(len(obs), np.uint64), trainer.layout)[2].any() and legal.any()
    assert json.loads(json.dumps(trainer.describe()))["network"] == "mlp"
