"""What the moves that were not made are worth: positions, values and signs by hand, and the objective by autograd."""

from typing import Any

import numpy as np
import pytest
import torch

from agents.alternatives import advantages, branches, expected_surrogate, join, worth
from agents.moves import make_moves
from agents.networks import ILLEGAL, CentralCritic, Critic, MaskedCategorical, mirrored, straighten, to_bits
from agents.pool import PoolConfig
from agents.ppo import PPOConfig, Trainer, surrogate
from domino_env import make_engine

SMALL: dict[str, Any] = {
    "deals": 32, "minibatch": 128, "hidden": [16], "critic_hidden": [16], "opponents": [], "threads": 1,
    "precision": "float32", "dd_loss_boards": 0,
}  # fmt: skip


def midway(rules: str = "sport_book", plies: int = 12, rows: int = 80) -> Any:
    engine = make_engine(rules, rows, seed=3)
    rng = np.random.default_rng(3)
    for _ in range(plies):
        engine.step(engine.sample_legal(rng))
    return engine


@pytest.mark.parametrize("rules", ["sport_book", "kozyol"])
def test_forced_moves_are_made_until_someone_chooses(rules: str) -> None:
    for plies in (3, 17):
        engine = midway(rules, plies, 200)
        plain = [engine.take(np.array([row])) for row in range(engine.num_envs)]
        actions = engine.sample_legal(np.random.default_rng(1))
        rewards, over = make_moves(engine, actions)
        assert plies == 3 or (over.any() and not over.all())
        for row, one in enumerate(plain):
            points, done = one.step(actions[[row]], autoreset=False)
            while not done[0] and one.legal_count()[0] == 1:
                points, done = one.step(one.legal().argmax(axis=1), autoreset=False)
            assert done[0] == over[row] and (points[0] == rewards[row]).all()
            if not done[0]:
                assert (one.hands()[0] == engine.hands()[row]).all() and one.to_move()[0] == engine.to_move()[row]


def test_each_branch_is_the_critic_s_word_on_the_position_after_it() -> None:
    engine = midway()
    rows = np.flatnonzero(engine.legal_count() > 1)
    _, legal, flipped = straighten(engine.observe(packed=True)[rows], engine.legal_bits()[rows], engine.layout)
    played = mirrored(engine.legal()[rows].argmax(axis=1), flipped)
    assert flipped.any() and not flipped.all()
    parts = [branches(engine, some, turned, done) for some, turned, done in (
        (rows[:20], flipped[:20], played[:20]), (rows[20:], flipped[20:], played[20:])
    )]  # fmt: skip
    found = join(parts)
    network = Critic(CentralCritic.inputs(engine.rules), [24], torch.Generator().manual_seed(1)).requires_grad_(False)
    critic = CentralCritic(network, engine.rules, 20.0)
    bits = np.unpackbits(found.seen, axis=1, bitorder="little").astype(np.float32)
    values = network(torch.from_numpy(bits)).numpy()
    table = worth(found, values, 57, 20.0)
    ended = 0
    for number, row in enumerate(rows):
        for action in np.flatnonzero(engine.legal()[row]):
            at = int(mirrored(np.array([action]), flipped[[number]])[0])
            assert legal[number] >> np.uint64(at) & np.uint64(1)
            if at == played[number]:
                assert table[number, at] == 0
                continue
            one = engine.take(np.array([row]))
            seat = one.to_move()[0]
            points, over = make_moves(one, np.array([action]))
            sign = 1 if (one.to_move()[0] - seat) % 2 == 0 else -1
            expected = points[0, seat] if over[0] else sign * critic.values(one)[0]
            assert table[number, at] * 20 == pytest.approx(expected, abs=1e-4)
            ended += bool(over[0])
    assert (np.count_nonzero(table, axis=1) <= engine.legal_count()[rows] - 1).all() and ended


def test_advantages_by_hand() -> None:
    old = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]]).log()
    mask = torch.tensor([[True, True, True], [True, True, False]])
    values = torch.tensor([[1.0, -1.0, 3.0], [2.0, 0.0, 99.0]])
    values[1, 2] = 0.0  # not legal
    old[1, 2] = ILLEGAL
    # means 1 and 1: differences (0, -2, 2) and (1, -1); mean squares 0.25*4+0.25*4 = 2 and 1; root of 1.5.
    expected = torch.tensor([[0.0, -2.0, 2.0], [1.0, -1.0, 0.0]]) / 1.5**0.5
    assert torch.allclose(advantages(old, mask, values), expected, atol=1e-6)


def test_expected_objective_by_hand() -> None:
    old = torch.tensor([[0.5, 0.5]]).log()
    logits = torch.tensor([[0.8, 0.2]]).log()  # ratios 1.6 and 0.4
    found = expected_surrogate(logits, torch.ones(1, 2, dtype=torch.bool), old, torch.tensor([[2.0, -1.0]]), 0.2, 0.0)
    # 0.5 * min(3.2, 2.4) + 0.5 * min(-0.4, -0.8) = 1.2 - 0.4: both on the clipped branch, no gradient.
    assert float(found.loss) == pytest.approx(-0.8) and float(found.clipfrac) == pytest.approx(1.0)
    assert torch.allclose(found.grad, torch.zeros(1, 2), atol=1e-6)
    back = expected_surrogate(logits, torch.ones(1, 2, dtype=torch.bool), old, torch.tensor([[-2.0, 1.0]]), 0.2, 0.0)
    # 0.5 * -3.2 + 0.5 * 0.4 = -1.4; d/dlogp = (-1.6, 0.2) up, so d loss / dlogits = -(pull - p sum(pull)).
    assert float(back.loss) == pytest.approx(1.4)
    assert torch.allclose(back.grad, torch.tensor([[1.6 - 0.8 * 1.4, -0.2 - 0.2 * 1.4]]), atol=1e-6)


def test_the_gradient_is_autograd_s() -> None:
    generator = torch.Generator().manual_seed(2)
    mask = torch.rand(50, 9, generator=generator) < 0.5
    mask[:, 4] = True
    old = torch.log_softmax(torch.where(mask, torch.randn(50, 9, generator=generator), ILLEGAL), 1)
    advantage = torch.where(mask, torch.randn(50, 9, generator=generator), 0.0)
    logits = (torch.randn(50, 9, generator=generator) * 0.7).requires_grad_()
    found = expected_surrogate(logits, mask, old, advantage, 0.2, 0.03)
    logprobs = torch.log_softmax(torch.where(mask, logits, ILLEGAL), 1)
    ratio = torch.where(mask, logprobs - old, 0.0).exp()
    gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
    loss = -(torch.where(mask, old, ILLEGAL).exp() * gain).sum(1).mean()
    entropy = -(logprobs.exp() * torch.where(mask, logprobs, 0.0)).sum(1)
    (grad,) = torch.autograd.grad(loss - 0.03 * entropy.mean(), logits)
    assert torch.allclose(found.grad, grad, atol=1e-6) and torch.allclose(found.loss, loss.detach(), atol=1e-6)
    assert torch.allclose(found.entropy, entropy.detach(), atol=1e-5) and (found.grad[~mask] == 0).all()


def test_it_is_the_mean_of_the_plain_objective_over_what_the_old_policy_chooses() -> None:
    generator = torch.Generator().manual_seed(3)
    mask = torch.ones(1, 5, dtype=torch.bool)
    old = torch.log_softmax(torch.randn(1, 5, generator=generator), 1)
    advantage = torch.randn(1, 5, generator=generator)
    logits = torch.randn(1, 5, generator=generator)
    found = expected_surrogate(logits, mask, old, advantage, 0.2, 0.0)
    parts = [surrogate(logits, mask, torch.tensor([a]), old[:, a], advantage[:, a], 0.2, 0.0) for a in range(5)]
    chances = old[0].exp()
    assert torch.allclose(found.grad, sum(p * one.grad for p, one in zip(chances, parts)), atol=1e-6)
    for figure in ("loss", "approx_kl", "clipfrac"):
        mean = sum(float(p * getattr(one, figure)) for p, one in zip(chances, parts))
        assert float(getattr(found, figure)) == pytest.approx(mean, abs=1e-6)


def test_rollouts_hold_the_worth_of_every_legal_action() -> None:
    trainer = Trainer(PPOConfig(**SMALL))
    rollout = trainer._play(0).rollout
    assert rollout.worth is not None and rollout.worth.shape == (len(rollout.action), 57)
    assert np.array_equal(rollout.worth[np.arange(len(rollout.action)), rollout.action], rollout.target)
    legal = np.unpackbits(rollout.legal.view(np.uint8).reshape(-1, 8), axis=1, count=57, bitorder="little") == 1
    assert (rollout.worth[~legal] == 0).all() and (rollout.worth[legal] != 0).mean() > 0.95
    objective, rows = trainer._all(rollout, 0.02), np.random.default_rng(1).permutation(len(legal))[:50]
    with torch.no_grad():
        logits = trainer.actor.fast(to_bits(rollout.obs, torch.float32))
    mask = torch.from_numpy(legal)
    old = MaskedCategorical(logits, mask).logprobs
    advantage = advantages(old, mask, torch.from_numpy(rollout.worth))
    later = logits + 0.5 * torch.randn(logits.shape, generator=torch.Generator().manual_seed(4))
    at = torch.from_numpy(rows)
    want = expected_surrogate(later[at], mask[at], old[at], advantage[at], trainer.config.clip, 0.02)
    assert torch.allclose(objective(later[at], rows).grad, want.grad, atol=1e-7)
    assert float(objective(logits[at], rows).approx_kl) < 1e-8
    figures = trainer.update()
    assert np.isfinite([value for value in figures.values() if isinstance(value, float)]).all()
    trainer.close()


@pytest.mark.parametrize(
    "changes",
    [
        {"alternatives": False},
        {"advantage": "seat"},
        {"words": True},
        {"rules": "blind"},
        {"pool": PoolConfig(share=0.5, members=["club"])},
    ],
)
def test_where_no_critic_can_say_what_was_played_teaches(changes: dict[str, Any]) -> None:
    trainer = Trainer(PPOConfig(**{**SMALL, **changes, **({"advantage": "seat"} if "rules" in changes else {})}))
    assert trainer._play(0).rollout.worth is None
    trainer.close()
