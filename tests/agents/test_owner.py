"""The owner head: what can be, what is learned, and that play does not change by it."""

import copy
import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from agents.base import decide
from agents.buffers import join
from agents.checkpoint import CheckpointError, load_policy, save
from agents.networks import ILLEGAL, straighten, to_bits
from agents.owner import Possible, held, load_owners, owner_loss, owners_of
from agents.ppo import PPOConfig, Trainer
from domino_env import get_rules, make_engine
from domino_env.line import LineEngine
from domino_env.rules import describe_rules
from domino_env.tiles import tile_index
from experiments.config import ConfigError
from experiments.train import train

SMALL: dict[str, Any] = {
    "deals": 32, "minibatch": 256, "hidden": [32], "critic_hidden": [32], "total_updates": 8, "precision": "float32",
    "opponents": [], "threads": 1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def small(**settings: Any) -> Trainer:
    return Trainer(PPOConfig(**{**SMALL, "owner_coef": 0.5, **settings}))


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# -- the loss --------------------------------------------------------------------------------------------------------


def test_loss_on_numbers_worked_by_hand() -> None:
    """Two hidden tiles: one with the odds 3 : 1 for its owner of two, one that only one can hold."""
    possible = torch.zeros(1, 28, 3, dtype=torch.bool)
    possible[0, 4, :2] = True
    possible[0, 9, 2] = True
    logits = torch.zeros(1, 28, 3)
    logits[0, 4] = torch.tensor([math.log(3), 0.0, 50.0])  # who cannot hold it may say what it likes
    logits[0, 20] = 7.0  # not hidden
    owner = torch.zeros(1, 28, dtype=torch.int64)
    owner[0, 9] = 2
    got = owner_loss(logits.transpose(1, 2).flatten(1), possible, owner, 0.1)
    assert got.loss.item() == pytest.approx(-math.log(0.75) / 2)
    assert got.even.item() == pytest.approx(math.log(2) / 2)
    want = torch.zeros(1, 28, 3)
    want[0, 4] = torch.tensor([-0.25, 0.25, 0.0]) * 0.1 / 2
    assert torch.allclose(got.grad, want.transpose(1, 2).flatten(1), atol=1e-7)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_gradient_is_what_autograd_says(scale: float) -> None:
    draw = torch.Generator().manual_seed(0)
    logits = (torch.randn(50, 28, 4, generator=draw) * scale).requires_grad_()
    possible = torch.rand(50, 28, 4, generator=draw) < 0.5
    possible[:3] = False  # rows without a hidden tile
    owner = (possible.float() + 1e-3 * torch.rand(50, 28, 4, generator=draw)).argmax(2)
    hidden = possible.any(2)
    logprobs = F.log_softmax(torch.where(possible, logits, ILLEGAL), dim=2)
    loss = F.nll_loss(logprobs[hidden], owner[hidden])
    (want,) = torch.autograd.grad(0.3 * loss, logits)
    got = owner_loss(logits.detach().transpose(1, 2).flatten(1), possible, owner, 0.3)
    grad = got.grad.view(50, 4, 28).transpose(1, 2)
    assert torch.allclose(grad, want, atol=1e-7) and got.grad.isfinite().all()
    assert got.loss.item() == pytest.approx(loss.item(), rel=1e-5)
    assert (grad[~possible] == 0).all()


def test_without_hidden_tiles_there_is_no_loss() -> None:
    got = owner_loss(torch.ones(2, 56), torch.zeros(2, 28, 2, dtype=torch.bool), torch.ones(2, 28).long(), 1.0)
    assert got.loss == 0 and got.even == 0 and (got.grad == 0).all()


def test_holders_are_read_off_the_packed_hands() -> None:
    hands = np.array([[1 << 3 | 1 << 27, 1 << 5, 1 << 0]], "<u4")
    owner = held(hands.view(np.uint8).reshape(1, -1), 4)[0]
    assert owner[[3, 27, 5, 0]].tolist() == [0, 0, 1, 2] and (np.delete(owner, [3, 27, 5, 0]) == 3).all()


# -- what can be -----------------------------------------------------------------------------------------------------

GAMES: list[tuple[str, dict[str, Any]]] = [
    ("sport_book", {}), ("puerto_rico", {}), ("kozyol", {}), ("tiny_pairs", {"seats": 2, "pairs": False}),
    ("blitz", {}), ("blitz", {"seats": 5}),
]  # fmt: skip


def tables(name: str, overrides: dict[str, Any], plies: int) -> LineEngine:
    rules = get_rules(name, **overrides)
    engine: Any = make_engine(rules, 80, seed=plies)
    rng = np.random.default_rng(plies)
    for _ in range(plies):
        after = copy.deepcopy(engine)
        _, done = after.step(after.sample_legal(rng), autoreset=False)
        if done.all():
            break
        engine = after.take(~done)
    return engine


def shown(engine: LineEngine) -> torch.Tensor:
    obs, _, _ = straighten(engine.observe(packed=True), engine.legal_bits(), engine.layout)
    return to_bits(obs, torch.float32)


def truth(engine: LineEngine) -> np.ndarray:
    """(N, 28) who holds each tile, as the trainer is told."""
    seats = engine.rules.seats
    around = (engine.to_move()[:, None] + np.arange(1, seats)) % seats
    hidden = np.take_along_axis(engine.hands(), around, axis=1).astype("<u4").view(np.uint8)
    return held(hidden, len(owners_of(engine.rules)))


@pytest.mark.parametrize(("name", "overrides"), GAMES, ids=str)
def test_what_is_true_can_be(name: str, overrides: dict[str, Any]) -> None:
    for plies in (0, 3, 9, 14):
        engine = tables(name, overrides, plies)
        possible = Possible(engine.rules)(shown(engine)).numpy()
        hidden = possible.any(axis=2)
        assert possible.shape == (engine.num_envs, 28, len(owners_of(engine.rules)))
        owner = truth(engine)
        assert np.take_along_axis(possible, owner[:, :, None], axis=2)[hidden].all()
        mover = engine.hands()[np.arange(engine.num_envs), engine.to_move()]
        unseen = len(engine.rules.tiles) - np.bitwise_count(engine.played()).sum(axis=1) - np.bitwise_count(mover)
        assert np.array_equal(hidden.sum(axis=1), unseen)


@pytest.mark.parametrize(("name", "overrides"), GAMES, ids=str)
def test_nothing_is_masked_that_the_rules_allow(name: str, overrides: dict[str, Any]) -> None:
    pytest.importorskip("numba")
    from agents.search.beliefs import RulesBelief
    from agents.search.position import position_of

    both = looser = 0
    for plies in (0, 3, 9, 14):
        engine = tables(name, overrides, plies)
        seats = engine.rules.seats
        marginals = RulesBelief(position_of(decide(engine))).marginals()
        around = (engine.to_move()[:, None] + np.arange(1, seats)) % seats
        groups = np.concatenate([around, np.full((len(around), 1), seats)], axis=1)[:, : len(owners_of(engine.rules))]
        allowed = np.take_along_axis(marginals, groups[:, :, None], axis=1).transpose(0, 2, 1) > 0
        possible = Possible(engine.rules)(shown(engine)).numpy()
        assert not (allowed & ~possible).any()
        both += int(allowed.sum())
        looser += int((possible & ~allowed).sum())
    # Looser by what sizes of hands, the lead and re-deals tell: at most one in a hundred.
    assert both > 1000 and looser < 0.03 * both


def test_who_passed_holds_none_of_the_suits() -> None:
    engine = LineEngine("sport_book", 200, seed=3)
    rng = np.random.default_rng(3)
    for _ in range(8):
        engine.step(engine.sample_legal(rng))
    possible = Possible(engine.rules)(shown(engine)).numpy()
    voids, mover = engine.passed(), engine.to_move()
    row = int(np.flatnonzero(voids[np.arange(200), (mover + 1) % 4])[0])
    suit = int(voids[row, (mover[row] + 1) % 4]).bit_length() - 1
    for other in range(7):
        tile = tile_index(f"{min(suit, other)}-{max(suit, other)}")
        assert not possible[row, tile, 0]
    assert owners_of(engine.rules) == ("left", "partner", "right")
    assert owners_of(get_rules("tiny_pairs", seats=2, pairs=False)) == ("left", "stock")


# -- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", ["mlp", "public_private"])
def test_the_head_changes_nothing_at_the_table(network: str) -> None:
    plain, other = small(owner_coef=0.0, network=network), small(network=network)
    model = plain.model()
    assert set(other.model()) - set(model) == {"actor.owners.weight", "actor.owners.bias"}
    assert all(torch.equal(tensor, other.model()[name]) for name, tensor in model.items())
    one, two = plain._play(0).rollout, other._play(0).rollout
    assert np.array_equal(one.action, two.action) and np.array_equal(one.logprob, two.logprob)
    assert "losses/owner_loss" not in plain.update() and "owners" not in plain.describe()
    figures = other.update()
    assert figures["losses/owner_loss"] > 0 and other.describe()["owners"] == ["left", "partner", "right"]
    assert any(not torch.equal(tensor, other.model()[name]) for name, tensor in plain.model().items())
    plain.close()
    other.close()


@pytest.mark.slow
def test_it_learns_who_holds_what() -> None:
    """Of deals that are new to it, it comes to know more than who thinks all owners that can be alike."""
    trainer = small(deals=128, hidden=[64], learning_rate=5e-3, owner_coef=2.0)
    gains = [trainer.update()["losses/owner_gain"] for _ in range(10)]
    assert max(gains[:3]) < min(gains[-2:]) and gains[-1] > 0.002  # bits a tile; all that the rules tell are 0.026
    trainer.close()


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_it_learns_some_deals_by_heart(precision: str) -> None:
    trainer = small(hidden=[64], owner_coef=1.0, precision=precision)
    rollout = join([trainer._play(part).rollout for part in range(2)])
    orders = [np.arange(len(rollout.action))] * 2
    gains = [trainer._learn_actor(rollout, orders, 5e-3, 0.0)["losses/owner_gain"] for _ in range(8)]
    assert abs(gains[0]) < 0.05 and gains[-1] > 0.2
    trainer.close()


@pytest.mark.parametrize(
    "settings", [{"rules": "blitz", "advantage": "seat"}, {"words": True}, {"rules": "tiny_pairs"}]
)
def test_other_games_and_settings_train(settings: dict[str, Any]) -> None:
    trainer = small(**settings)
    figures = trainer.update()
    assert all(np.isfinite(value).all() for value in figures.values()) and figures["losses/owner_loss"] > 0
    trainer.close()


def test_resume_is_bit_equal_and_the_head_cannot_be_taken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.train.SAMPLE_DEALS", 4)
    words = [
        "deals=16", "minibatch=64", "hidden=[16]", "critic_hidden=[16]", "eval_boards=4", "evaluate_every=99",
        "opponents=[]", "threads=1", "dd_loss_boards=0", "total_updates=4", "owner_coef=0.5", "keep_checkpoints=9",
    ]  # fmt: skip
    whole = train(None, [*words, f"runs_dir={tmp_path}", "checkpoint_every=2"], None, json=True)
    latest = Path(whole["run"]) / "checkpoints" / "latest"
    before = [(latest / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")]
    train(None, [], latest.parent / "00000002", json=True)
    assert [(latest / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")] == before
    with pytest.raises(ConfigError, match=r"owner_coef=0\.0 cannot be changed on resume"):
        train(None, ["owner_coef=0"], whole["run"], json=True)


def saved(trainer: Trainer, folder: Path) -> Path:
    state = {
        "config": dataclasses.asdict(trainer.config), "rules": describe_rules(trainer.rules),
        "policy": trainer.describe(), "counters": trainer.counters(),
    }  # fmt: skip
    return save(folder / "checkpoints", 1, trainer.model(), trainer.optimizer(), state)


@pytest.mark.parametrize("words", [False, True])
def test_a_checkpoint_plays_and_says_who_holds_what(words: bool, tmp_path: Path) -> None:
    trainer = small(words=words)
    trainer.update()
    folder = saved(trainer, tmp_path)
    engine = LineEngine("sport_book", 60, seed=1)
    rng = np.random.default_rng(1)
    for _ in range(7):
        engine.step(engine.sample_legal(rng))
    policy, owners = load_policy(folder), load_owners(folder)
    batch = decide(engine)
    assert np.array_equal(policy.probabilities(batch), trainer.policy().probabilities(batch))
    got = owners.probabilities(batch)
    possible = Possible(engine.rules)(shown(engine)).numpy()
    assert got.shape == (60, 28, 3) and owners.names == ("left", "partner", "right")
    assert (got[~possible] == 0).all() and np.allclose(got.sum(axis=2)[possible.any(axis=2)], 1, atol=1e-5)
    assert got[possible].std() > 0.01
    with pytest.raises(ValueError, match="not for tiny_pairs"):
        owners.probabilities(decide(make_engine("tiny_pairs", 1)))
    if words:
        with pytest.raises(ValueError, match=r"it needs batch\.history"):
            owners.probabilities(dataclasses.replace(batch, history=None))
    trainer.close()
    plain = small(owner_coef=0.0)
    with pytest.raises(CheckpointError, match="trained with owner_coef=0"):
        load_owners(saved(plain, tmp_path / "plain"))
    plain.close()


@pytest.mark.parametrize(
    "settings", [{"owner_coef": -0.1}, {"rules": "blind", "advantage": "seat"}, {"owner_coef": -1.0}], ids=str
)
def test_impossible_settings_name_their_key(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:
        small(**settings)
    assert caught.value.args[0] == "owner_coef" and len(caught.value.args) == 2
