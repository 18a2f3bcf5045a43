"""PPO: the objective, the advantages, and what may and may not change a run."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from agents.buffers import Rollout, gae, join
from agents.networks import MaskedCategorical, to_bits, to_mask
from agents.ppo import PPOConfig, Trainer, surrogate
from domino_env import make_engine

SMALL: dict[str, Any] = {
    "deals": 64, "minibatch": 256, "hidden": [32, 32], "critic_hidden": [32], "total_updates": 8,
    "precision": "float32",
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def small(**settings: Any) -> Trainer:
    return Trainer(PPOConfig(**{**SMALL, **settings}))


def played(trainer: Trainer) -> Rollout:
    return join([trainer._play(part).rollout for part in range(2)])


def copies(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# -- advantages ------------------------------------------------------------------------------------------------------


def test_gae_on_numbers_worked_by_hand() -> None:
    # One deal, three decisions, the middle one by the other pair; the leader's pair wins 2.
    values = np.array([0.5, 0.25, 1.0], np.float32)
    sign = np.array([1, -1, 1], np.float32)
    deal = np.zeros(3, np.int64)
    got = gae(values, sign, deal, np.array([2.0], np.float32), [0, 1, 2, 3], 0.5)
    # In the leader's sign the values are 0.5, -0.25, 1: steps -0.75, 1.25, 1.
    # Advantages backwards: 1; 1.25 + 0.5; -0.75 + 0.5 * 1.75; the middle one then in its own sign.
    assert got.tolist() == [0.125, -1.75, 1.0]


def test_gae_with_lambda_one_and_zero() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=6).astype(np.float32)
    deal = np.array([0, 1, 0, 1, 1, 0])
    ends = np.array([3.0, -1.0], np.float32)
    bounds = [0, 2, 4, 5, 6]
    ones = np.ones(6, np.float32)
    assert gae(values, ones, deal, ends, bounds, 1.0) == pytest.approx(ends[deal] - values, abs=1e-6)
    following = np.array([values[2], values[3], values[5], values[4], ends[1], ends[0]])
    assert gae(values, ones, deal, ends, bounds, 0.0) == pytest.approx(following - values, abs=1e-6)


def test_gae_keeps_sequences_apart() -> None:
    values = np.zeros(4, np.float32)
    got = gae(values, np.ones(4, np.float32), np.array([0, 1, 0, 1]), np.array([1.0, 5.0], np.float32), [0, 2, 4], 0.5)
    assert got.tolist() == [0.5, 2.5, 1.0, 5.0]


# -- the objective ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_surrogate_is_what_autograd_says(scale: float) -> None:
    draw = torch.Generator().manual_seed(0)
    logits = (torch.randn(400, 57, generator=draw) * scale).requires_grad_()
    mask = torch.rand(400, 57, generator=draw) < 0.1
    mask[:, 5] = True
    policy = MaskedCategorical(logits, mask)
    action = policy.sample(torch.rand(400, generator=draw))
    old = policy.log_prob(action).detach() + 0.3 * torch.randn(400, generator=draw)
    advantage = torch.randn(400, generator=draw)
    ratio = (policy.log_prob(action) - old).exp()
    loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    (want,) = torch.autograd.grad(loss - 0.03 * policy.entropy().mean(), logits)
    got = surrogate(logits.detach(), mask, action, old, advantage, 0.2, 0.03)
    assert torch.allclose(got.grad, want, atol=1e-7) and (got.grad[~mask] == 0).all()
    assert got.loss.item() == pytest.approx(loss.item(), abs=1e-6)
    assert torch.allclose(got.entropy, policy.entropy(), atol=1e-6)
    assert got.clipfrac.item() == ((ratio - 1).abs() > 0.2).float().mean().item()
    assert got.approx_kl.item() == pytest.approx((ratio - 1 - ratio.log()).mean().item(), abs=1e-6)


def test_surrogate_is_finite_at_any_logit_size() -> None:
    mask = torch.rand(500, 57, generator=torch.Generator().manual_seed(1)) < 0.05
    mask[:, 9] = True
    for scale in (1e2, 1e4, 1e6):
        logits = torch.randn(500, 57, generator=torch.Generator().manual_seed(2)) * scale
        policy = MaskedCategorical(logits, mask)
        action = policy.mode()
        got = surrogate(logits, mask, action, policy.log_prob(action), torch.ones(500), 0.2, 0.04)
        assert got.grad.isfinite().all() and got.entropy.isfinite().all()


def test_b02_the_mask_and_the_network_are_the_same_when_learning() -> None:
    trainer = small(epochs=1, minibatch=100_000)
    rollout = played(trainer)
    with torch.no_grad():
        policy = MaskedCategorical(trainer.actor.fast(to_bits(rollout.obs, torch.float32)), to_mask(rollout.legal))
        again = policy.log_prob(torch.from_numpy(rollout.action)).numpy()
    assert np.abs(np.exp(again - rollout.logprob) - 1).max() < 1e-5
    for _ in range(2):
        figures = trainer.update()
        assert abs(figures["losses/approx_kl"]) < 1e-6 and figures["losses/clipfrac"] == 0
    trainer.close()


# -- what is played --------------------------------------------------------------------------------------------------


def test_only_real_decisions_are_kept_and_every_deal_is_played_out() -> None:
    trainer = small()
    rollout = played(trainer)
    assert (np.bitwise_count(rollout.legal) > 1).all()
    assert ((rollout.legal >> rollout.action.astype(np.uint64)) & np.uint64(1) == 1).all()
    assert 12 < len(rollout.action) / 64 < 19  # 15.4 a deal in random play
    assert rollout.obs.dtype == np.uint8 and rollout.obs.shape[1] == 32
    figures = trainer.update()
    assert 18 < figures["charts/episodic_length"] < 32
    assert figures["domino/out_rate"] + figures["domino/block_rate"] == pytest.approx(1)
    for rate in ("out_rate", "pass_rate", "rolled_rate"):
        assert 0 < figures[f"domino/{rate}"] < 1
    assert 5 < figures["domino/points"] < 60
    assert trainer.deals == 64 and trainer.decisions > 64 * 10
    trainer.close()


def test_targets_lead_to_the_reward() -> None:
    """With lambda 1 the critic's target is the deal's reward in the mover's sign, whoever the mover is."""
    trainer = small(gae_lambda=1.0)
    rollout = trainer._play(0).rollout
    for deal in range(5):
        rows = rollout.deal == deal
        sign = np.where(rollout.seat[rows] % 2 == 0, 1, -1)
        assert np.allclose(rollout.target[rows] * sign, (rollout.target[rows] * sign)[0], atol=1e-5)
        assert (np.abs(rollout.target[rows] * 20 - np.round(rollout.target[rows] * 20)) < 1e-4).all()
    trainer.close()


def rearranged(hands: np.ndarray, seat: np.ndarray, laid: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The dealt hands with all tiles that `seat` cannot see and nobody has laid shuffled among the other seats."""
    result = hands.copy()
    for row in range(len(hands)):
        others = [s for s in range(4) if s != seat[row]]
        free = {s: [t for t in range(28) if hands[row, s] >> t & 1 and not laid[row] >> t & 1] for s in others}
        pool = rng.permutation([t for s in others for t in free[s]]).tolist()
        for s in others:
            kept = int(hands[row, s]) & int(laid[row])
            result[row, s] = kept | sum(1 << pool.pop() for _ in free[s])
    return result


@pytest.mark.parametrize("network", ["mlp", "public_private"])
def test_the_actor_does_not_change_when_hidden_hands_are_rearranged(network: str) -> None:
    trainer = small(network=network)
    trainer.update()
    rng = np.random.default_rng(1)
    for plies in range(5):
        engine = make_engine("sport_book", 400, seed=plies)
        dealt, leader = engine.hands(), engine.leader()
        moves = []
        for _ in range(plies):
            moves.append(engine.sample_legal(rng))
            engine.step(moves[-1])
        rows = np.flatnonzero((np.array(moves).reshape(plies, 400) != 56).all(axis=0))  # a pass would bind the rest
        laid = np.bitwise_or.reduce(dealt, axis=1) ^ np.bitwise_or.reduce(engine.hands(), axis=1)
        other = make_engine("sport_book", len(rows))
        other.deal(rearranged(dealt[rows], engine.to_move()[rows], laid[rows], rng), leader[rows])
        for move in moves:
            other.step(move[rows])
        assert (other.hands() != engine.hands()[rows]).any(axis=1).mean() > 0.9
        uniforms = rng.random(len(rows))
        chosen = trainer._choose(engine.observe(packed=True)[rows], engine.legal_bits()[rows], uniforms)
        again = trainer._choose(other.observe(packed=True), other.legal_bits(), uniforms)
        assert np.array_equal(chosen[0], again[0]) and np.array_equal(chosen[1], again[1])
    trainer.close()


def test_the_central_critic_sees_the_hidden_hands_and_the_other_does_not() -> None:
    for advantage, sees in (("deal", True), ("seat", False)):
        trainer = small(advantage=advantage)
        rollout = played(trainer)
        with torch.no_grad():
            values, others = (
                trainer.critic.fast(to_bits(trainer._critic_input(rollout.obs, hidden), torch.float32))
                for hidden in (rollout.hidden, rollout.hidden[::-1])
            )
        assert torch.equal(values, others) != sees
        trainer.close()


# -- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"rules": "tiny_pairs"},
        {"rules": "kozyol", "advantage": "seat"},
        {"rules": "puerto_rico", "network": "public_private"},
        {"rules": "sport_club", "precision": "bf16"},
        {"rules": "tiny_pairs", "rule_overrides": {"seats": 2, "pairs": False}},
        {"rules": "sport_book", "rule_overrides": {"pairs": False}, "advantage": "seat"},
    ],
)
def test_other_games_and_settings_train(settings: dict[str, Any]) -> None:
    trainer = small(**settings)
    figures = [trainer.update() for _ in range(2)][-1]
    for tag, value in figures.items():
        assert np.isfinite(value).all(), tag
    assert all(tensor.isfinite().all() for tensor in trainer.model().values())
    trainer.close()


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_result_does_not_depend_on_the_threads(precision: str) -> None:
    one, two = (small(threads=threads, precision=precision) for threads in (1, 2))
    for _ in range(2):
        one.update()
        two.update()
    assert same(one.model(), two.model()) and same(one.optimizer(), two.optimizer())
    one.close()
    two.close()


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_resume_in_memory_is_bit_equal(precision: str) -> None:
    whole = small(threads=1, precision=precision)
    for _ in range(4):
        figures = whole.update()
    first = small(threads=1, precision=precision)
    for _ in range(2):
        first.update()
    model, optimizer, counters = copies(first.model()), copies(first.optimizer()), first.counters()
    second = small(threads=1, precision=precision)
    for into, source in ((second.model(), model), (second.optimizer(), optimizer)):
        for name, tensor in into.items():
            tensor.copy_(source[name])
    second.restore(counters)
    second.update()
    again = second.update()
    assert same(whole.model(), second.model()) and same(whole.optimizer(), second.optimizer())
    assert whole.counters() == second.counters()
    for tag in ("charts/learning_rate", "charts/entropy_coef", "losses/policy_loss", "charts/episodic_return"):
        assert figures[tag] == again[tag]
    for trainer in (whole, first, second):
        trainer.close()


def test_seeds_differ() -> None:
    one, two = small(seed=1), small(seed=2)
    assert not same(one.model(), two.model())
    assert not np.array_equal(played(one).obs[:64], played(two).obs[:64])
    first = played(one)
    one.update()
    assert not np.array_equal(first.obs[:64], played(one).obs[:64])  # fresh deals in every update
    one.close()
    two.close()


def test_schedules_follow_the_total_and_the_clock() -> None:
    trainer = small(total_updates=4, learning_rate=1e-3, learning_rate_end=1e-4)
    rates = [trainer.update()["charts/learning_rate"] for _ in range(4)]
    assert rates == pytest.approx([1e-3, 7.75e-4, 5.5e-4, 3.25e-4])
    assert trainer.progress == 1 and trainer.elapsed == 4
    trainer.close()
    trainer = small(total_updates=None, total_minutes=3.0)
    trainer.cpu_seconds = 60.0  # two threads: half a minute of three
    assert trainer.progress == pytest.approx(1 / 6) and trainer.elapsed == pytest.approx(0.5)
    trainer.close()


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"minibatch": 0}, "minibatch"),
        ({"deals": -5}, "deals"),
        ({"hidden": []}, "hidden"),
        ({"critic_hidden": [64, 0]}, "critic_hidden"),
        ({"gae_lambda": 1.5}, "gae_lambda"),
        ({"total_updates": 0}, "total_updates"),
        ({"total_minutes": 0.0}, "total_minutes"),
        ({"device": "abacus"}, "device"),
        ({"device": "meta"}, "device"),
        ({"rules": "chess"}, "rules"),
        ({"rule_overrides": {"seats": 8}}, "rule_overrides"),
        ({"rule_overrides": {"colour": 8}}, "rule_overrides"),
        ({"rule_overrides": {"pairs": False}}, "advantage"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"eval_boards": 1}, "eval_boards"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"runs_dir": ""}, "runs_dir"),
        ({"deals": 2**30}, "deals"),
        ({"minibatch": 2**30}, "minibatch"),
        ({"hidden": [64, 10**9]}, "hidden"),
        ({"opponents": ["random", "nobody"]}, "opponents"),
        ({"opponents": ["club:reptile=1"]}, "opponents"),
        ({"opponents": ["greedy", "greedy"]}, "opponents"),
    ],
)
def test_impossible_settings_name_their_key(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError) as caught:
        PPOConfig(**settings)
    assert caught.value.args[0] == key and len(caught.value.args) == 2


def test_rollouts_are_joined_in_order() -> None:
    trainer = small()
    parts = [trainer._play(part).rollout for part in range(2)]
    whole = join(parts)
    for field in dataclasses.fields(Rollout):
        assert np.array_equal(getattr(whole, field.name), np.concatenate([getattr(p, field.name) for p in parts]))
    trainer.close()
