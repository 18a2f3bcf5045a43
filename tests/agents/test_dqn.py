"""Double DQN: the objective on numbers worked by hand, what a transition joins, and what a run keeps."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import checkpoint
from agents.base import decide
from agents.dqn import (
    DQNConfig,
    Played,
    Trainer,
    double_q,
    epsilon_greedy,
    linear,
    play,
    temporal_difference,
    transitions,
)
from agents.networks import to_bits
from agents.rollout import Tally
from domino_env import get_rules, make_engine
from domino_env.rules import describe_rules
from experiments.config import find
from experiments.train import load_config, train

SMALL: dict[str, Any] = {
    "deals": 24, "minibatch": 128, "steps": 4, "replay": 700, "warmup": 300, "target_every": 3, "hidden": [24],
    "total_updates": 8, "precision": "float32", "opponents": [], "epsilon_decisions": 2000, "threads": 1,
}  # fmt: skip

#: Pairs and each for itself, a hand of one's own or none, turns of several actions, other numbers of seats.
GAMES: list[tuple[str, dict[str, Any]]] = [
    ("sport_book", {}), ("blitz", {"seats": 5, "chain": "one"}), ("blitz", {"pairs": True}), ("blind", {"seats": 3}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def small(**settings: Any) -> Trainer:
    return Trainer(DQNConfig(**{**SMALL, **settings}))


def words(**settings: Any) -> list[str]:
    said = {**SMALL, "evaluate_boards": 4, "eval_boards": 20, "evaluate_every": 1000, "checkpoint_every": 1000}
    said |= {"dd_loss_boards": 0, **settings}
    return [f"{key}={value}".replace("'", "") for key, value in said.items()]


def tensors(folder: str | Path) -> list[bytes]:
    latest = Path(folder) / "checkpoints" / "latest"
    return [(latest / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer", "memory")]


# -- the objective ---------------------------------------------------------------------------------------------------


def rows(*values: list[float]) -> torch.Tensor:
    return torch.tensor(values)


def test_b03_double_q_on_numbers_worked_by_hand() -> None:
    """The online network prefers action 0, which the target network holds for 1.0; its own largest value is 2.0."""
    online, target = rows([5.0, 4.0, -1.0]), rows([1.0, 2.0, 0.0])
    legal, nothing, discount = torch.tensor([[True, True, True]]), torch.zeros(1), torch.tensor([0.9])
    assert double_q(online, target, legal, nothing, discount).item() == pytest.approx(0.9)  # 0.9 * 1.0
    assert (discount * target.max()).item() == pytest.approx(1.8)  # what a plain maximum would say
    assert double_q(online, target, legal, torch.tensor([0.25]), discount).item() == pytest.approx(1.15)


def test_double_q_counts_no_illegal_action() -> None:
    """Neither a huge value of the online network nor one of the target network, nor where all legal ones are low."""
    online, target = rows([-50.0, 1e30, -60.0]), rows([-0.5, 1e30, 7.0])
    legal = torch.tensor([[True, False, True]])
    got = double_q(online, target, legal, torch.zeros(1), torch.ones(1))
    assert got.item() == -0.5


def test_double_q_of_an_ended_deal_is_the_reward() -> None:
    """No value beyond the end is added, whatever the networks say of a row of zeros."""
    for said in (1e30, float("inf"), float("nan")):
        got = double_q(rows([said] * 3), rows([said] * 3), torch.zeros(1, 3, dtype=torch.bool), torch.tensor([-1.5]),
                       torch.zeros(1))  # fmt: skip
        assert got.item() == -1.5


def test_huber_on_numbers_worked_by_hand() -> None:
    values = rows([0.0, 3.0], [0.5, 9.0], [9.0, -1.0])
    result = temporal_difference(values, torch.tensor([1, 0, 1]), torch.tensor([0.0, 0.25, 4.0]), 1.0)
    # Errors 3, 0.25 and -5: losses 1 * (3 - 0.5), 0.25^2 / 2, 1 * (5 - 0.5); slopes 1, 0.25 and -1, each a third.
    assert result.loss.item() == pytest.approx((2.5 + 0.03125 + 4.5) / 3)
    assert result.values.tolist() == [3.0, 0.5, -1.0]
    assert torch.allclose(result.grad, rows([0.0, 1 / 3], [0.25 / 3, 0.0], [0.0, -1 / 3]))


@pytest.mark.parametrize("huber", [0.3, 1.0])
def test_huber_is_what_autograd_says(huber: float) -> None:
    draw = torch.Generator().manual_seed(0)
    values = torch.randn(300, 57, generator=draw).requires_grad_()
    action = torch.randint(0, 57, (300,), generator=draw)
    target = torch.randn(300, generator=draw)
    taken = values.gather(1, action[:, None])[:, 0]
    loss = torch.nn.functional.huber_loss(taken, target, delta=huber)
    (want,) = torch.autograd.grad(loss, values)
    got = temporal_difference(values.detach(), action, target, huber)
    assert torch.allclose(got.grad, want, atol=1e-8) and got.loss.item() == pytest.approx(loss.item(), abs=1e-6)


# -- exploring -------------------------------------------------------------------------------------------------------


def test_b22_epsilon_is_linear_in_decisions() -> None:
    assert linear(1.0, 0.05, 10_000, 0) == 1.0
    assert linear(1.0, 0.05, 10_000, 4_000) == pytest.approx(0.62)
    assert linear(1.0, 0.05, 10_000, 10_000) == linear(1.0, 0.05, 10_000, 10**9) == pytest.approx(0.05)


def test_b22_epsilon_goes_on_after_a_resume() -> None:
    first = small(epsilon_decisions=10_000, replay=2_000)
    first.update()
    first.decisions = 4_000  # as if it had played so many
    second = small(epsilon_decisions=10_000, replay=2_000)
    assert second.epsilon == 1.0
    second.restore(first.counters(), first.memory())
    assert second.decisions == 4_000 and second.epsilon == pytest.approx(0.62)
    assert second.update()["charts/epsilon"] == pytest.approx(0.62)
    assert len(second.values.replay) == second.values.replay.added > len(first.values.replay) > 24 * 10


def test_epsilon_greedy_explores_legal_actions_evenly() -> None:
    rng = np.random.default_rng(0)
    legal = np.full(40_000, 1 << 3 | 1 << 17 | 1 << 58, np.uint64)
    best = np.full(40_000, 17)
    assert (epsilon_greedy(best, legal, 0.0, rng) == 17).all()
    for epsilon in (0.3, 1.0):
        share = np.bincount(epsilon_greedy(best, legal, epsilon, rng), minlength=59) / 40_000
        assert share[[3, 17, 58]].sum() == 1
        assert share[[3, 58]] == pytest.approx(epsilon / 3, abs=0.012)
        assert share[17] == pytest.approx(1 - 2 * epsilon / 3, abs=0.012)


# -- transitions -----------------------------------------------------------------------------------------------------


def by_hand() -> Played:
    """One deal of two decisions of seat 0 and one of seat 1, another in which seat 1 decides three times."""
    deal, seat = np.array([0, 1, 0, 1, 0, 1]), np.array([0, 1, 1, 1, 0, 1])
    obs = (10 * np.arange(1, 7, dtype=np.uint8))[:, None].repeat(2, axis=1)
    rewards = np.array([[8.0, -8.0], [-20.0, 20.0]], np.float32)
    return Played(obs, 2 ** np.arange(6, dtype=np.uint64), np.arange(6), deal, seat, rewards, Tally(2))


@pytest.mark.parametrize(
    ("steps", "following", "discount", "reward"),
    [
        (1, [50, 40, 0, 60, 0, 0], [0.5, 0.5, 0, 0.5, 0, 0], [0, 0, -2, 0, 2, 5]),
        (2, [0, 60, 0, 0, 0, 0], [0, 0.25, 0, 0, 0, 0], [1, 0, -2, 2.5, 2, 5]),
        (9, [0] * 6, [0] * 6, [1, 1.25, -2, 2.5, 2, 5]),
    ],
)
def test_transitions_on_numbers_worked_by_hand(
    steps: int, following: list[int], discount: list[float], reward: list[float]
) -> None:
    played = by_hand()
    got = transitions(played, steps, 0.5, 4.0)
    assert got["obs"].tolist() == played.obs.tolist() and got["action"].tolist() == [0, 1, 2, 3, 4, 5]
    assert got["next_obs"].tolist() == [[one, one] for one in following]
    assert got["next_legal"].tolist() == [2 ** (one // 10 - 1) if one else 0 for one in following]
    assert got["discount"].tolist() == discount and got["reward"].tolist() == reward


@pytest.mark.parametrize(("name", "overrides"), GAMES, ids=str)
def test_a_transition_leads_to_the_same_seat_or_to_the_end_of_its_own_deal(
    name: str, overrides: dict[str, Any]
) -> None:
    """Deal by deal and seat by seat, as plain Python reads them off what was played."""
    trainer = small(rules=name, rule_overrides=overrides)
    played = trainer._play(1.0)
    got = transitions(played, 1, 1.0, trainer.config.reward_scale)
    assert (np.bitwise_count(played.legal) > 1).all()
    assert ((played.legal >> played.action.astype(np.uint64)) & np.uint64(1) == 1).all()
    ends = 0
    for deal in range(SMALL["deals"]):
        for seat in range(trainer.rules.seats):
            own = np.flatnonzero((played.deal == deal) & (played.seat == seat))
            for here, there in itertools.pairwise(own):
                assert got["next_obs"][here].tobytes() == played.obs[there].tobytes()
                assert got["next_legal"][here] == played.legal[there]
                assert got["reward"][here] == 0 and got["discount"][here] == 1
            for here in own[-1:]:
                ends += 1
                assert got["next_legal"][here] == 0 == got["discount"][here] and not got["next_obs"][here].any()
                assert got["reward"][here] == played.rewards[deal, seat] / np.float32(20)
    assert ends == (got["discount"] == 0).sum() and np.abs(played.rewards).max() > 10
    assert (played.rewards.sum(axis=1) == 0).all()
    trainer.close()


def test_play_asks_what_the_seat_sees_and_plays_what_it_is_told() -> None:
    """Straightened questions, mirrored answers: the moves that the engine gets are those meant."""
    rules, rng = get_rules("sport_book"), np.random.default_rng(5)
    engine = make_engine(rules, 50, seed=0)
    counts = []

    def choose(obs: Any, legal: Any, deal: Any, seat: Any) -> Any:
        counts.append(len(deal))
        assert len(set(deal.tolist())) == len(deal) and seat.max() < 4
        left, right = (to_bits(obs, torch.float32).numpy()[:, engine.layout.slices[end]] for end in ENDS)
        weight = 2 ** np.arange(left.shape[1])
        assert (left @ weight <= right @ weight).all()
        return epsilon_greedy(np.zeros(len(deal), np.int64), legal, 1.0, rng)

    played = play(engine, 7, choose)  # the engine refuses an illegal action
    assert sum(counts) == len(played.action) and set(played.deal.tolist()) == set(range(50))
    assert played.tally.deals == 50 and played.tally.ended.sum() == 50


ENDS = ("end_left", "end_right")


# -- learning --------------------------------------------------------------------------------------------------------


def test_it_learns_nothing_before_the_warm_up_and_then_a_fixed_number_of_minibatches() -> None:
    trainer = small(warmup=700)
    seen = [trainer.update() for _ in range(4)]
    known = ["losses/td_loss" in figures for figures in seen]
    assert known == sorted(known) and not known[0] and known[-1]
    assert trainer.values.online.steps == sum(known) * SMALL["steps"]
    assert trainer.deals == 96 and trainer.decisions > 96 * 10 and len(trainer.values.replay) == 700
    trainer.close()


def test_the_target_network_stays_until_it_is_refreshed() -> None:
    """B26: a copy, and one that learns nothing by itself."""
    trainer = small(steps=1, target_every=3, warmup=1)
    trainer.update()
    first = trainer.values.target.flat.clone()
    assert torch.equal(first, trainer.values.online.flat)
    for updates in range(1, 7):
        trainer.update()
        same = torch.equal(trainer.values.target.flat, trainer.values.online.flat)
        assert same == (updates % 3 == 0)
        assert torch.equal(trainer.values.target.flat, first) == (updates < 3)
    trainer.close()


def test_what_plays_is_renewed_at_the_beginning_of_every_update() -> None:
    trainer = small(warmup=64)
    online, player = trainer.values.online, trainer.values.player
    for _ in range(3):
        before = [parameter.clone() for parameter in online.parameters]
        trainer.update()
        assert all(map(torch.equal, player._network.parameters(), before))
    assert not torch.equal(online.parameters[0], before[0])
    trainer.close()


def test_what_plays_does_not_learn_in_the_middle_of_the_update() -> None:
    """Playing and learning share nothing, so the number of threads changes no result."""
    runs = [small(threads=threads) for threads in (1, 2)]
    for trainer in runs:
        for _ in range(5):
            trainer.update()
        trainer.close()
    one, two = runs
    assert one.values.online.steps > 8 and torch.equal(one.values.online.flat, two.values.online.flat)
    assert torch.equal(one.memory()["replay.rows"], two.memory()["replay.rows"])
    assert one.decisions == two.decisions
    other = small(seed=2)
    other.update()
    assert not torch.equal(other.memory()["replay.rows"][:100], one.memory()["replay.rows"][:100])
    other.close()


def test_values_of_the_last_decision_come_to_the_rewards() -> None:
    """A replay of ended deals alone: the values of what was played are learned as they are."""
    trainer = small(n_step=99, steps=150, learning_rate=5e-3, learning_rate_end=5e-3, max_grad_norm=10.0, hidden=[64])
    trainer.update()
    rows = trainer.values.replay.rows
    assert (rows["discount"] == 0).all()
    before = trainer.values.learn(np.random.default_rng(0), 5e-3)["losses/td_loss"]
    after = trainer.values.learn(np.random.default_rng(1), 1e-3)["losses/td_loss"]
    assert after < before / 3 and after < 0.03
    trainer.close()


# -- the agent -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", ["mlp", "public_private"])
def test_the_agent_plays_the_highest_value_and_its_probabilities_are_of_points(network: str, tmp_path: Path) -> None:
    result = train(None, ["algorithm=dqn", *words(total_updates=3, network=network, temperature=0.5),
                          f"runs_dir={tmp_path}"], None, json=True)  # fmt: skip
    agent = checkpoint.load_policy(result["run"])
    assert agent.temperature == pytest.approx(0.5 / 20)
    engine = make_engine("sport_book", 300, seed=1)
    rng = np.random.default_rng(1)
    for _ in range(6):
        engine.step(engine.sample_legal(rng))
    batch = decide(engine)
    played, said = agent.act(batch), agent.probabilities(batch)
    assert (said.argmax(axis=1) == played).all() and (said[batch.mask == 0] == 0).all()
    assert said.sum(axis=1) == pytest.approx(1, abs=1e-5)
    # With the temperature taken away the same network says other probabilities, and plays the same.
    agent.temperature = 1.0
    flat = agent.probabilities(batch)
    assert (agent.act(batch) == played).all() and (flat.max(axis=1) <= said.max(axis=1) + 1e-6).all()
    rows, actions = np.nonzero(batch.mask)
    points = 20 * np.log(flat[rows, actions])  # values in points, up to a constant of the row
    sharper = np.zeros_like(said)
    sharper[rows, actions] = np.exp((points - points.max()) / 0.5)
    assert sharper / sharper.sum(axis=1, keepdims=True) == pytest.approx(said, abs=1e-3)


def test_chances_of_other_hands_are_of_points_too() -> None:
    trainer = small(hidden=[16])
    policy = trainer.policy()
    engine = make_engine("sport_book", 60, seed=3)
    obs, legal = engine.observe(packed=True), engine.legal_bits()
    hands = engine.hands()[np.arange(60), engine.to_move()]
    batch = decide(engine)
    action = policy.act(batch)
    got = policy.chances(obs, None, np.arange(60), hands, legal, action)
    assert got == pytest.approx(policy.probabilities(batch)[np.arange(60), action], abs=1e-5)
    assert got.std() > 1e-3
    trainer.close()


@pytest.mark.parametrize("temperature", [0, -1, "warm", True, None, float("inf")])
def test_a_checkpoint_of_another_temperature_is_refused(temperature: Any, tmp_path: Path) -> None:
    trainer = small()
    rules = describe_rules(trainer.rules)
    state = {"rules": rules, "policy": trainer.describe() | {"temperature": temperature}}
    folder = checkpoint.save(tmp_path, 1, trainer.model(), trainer.optimizer(), state)
    with pytest.raises(checkpoint.CheckpointError, match=r"temperature=.*; it is a number above 0"):
        checkpoint.load_policy(folder)
    trainer.close()


# -- runs ------------------------------------------------------------------------------------------------------------


def test_smoke_of_a_run_and_its_tags(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    result = train(find("dqn"), [*words(opponents=["random"], total_updates=4), f"runs_dir={tmp_path}"], json=True)
    folder = Path(result["run"])
    assert folder.name.startswith("dqn-1-") and result["updates"] == 4 and (folder / "result.json").exists()
    log = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    log.Reload()
    tags = set(log.Tags()["scalars"])
    assert {"losses/td_loss", "losses/q_values", "losses/grad_norm", "charts/epsilon", "charts/learning_rate",
            "charts/episodic_return", "domino/out_rate", "time/rollout_seconds", "charts/SPS"} <= tags  # fmt: skip
    epsilon = [event.value for event in log.Scalars("charts/epsilon")]
    assert epsilon[0] == 1.0 and epsilon == sorted(epsilon, reverse=True) and epsilon[-1] < 0.7
    assert [event.step for event in log.Scalars("losses/td_loss")][-1] == result["decisions"]


@pytest.mark.parametrize("game", [["rules=blind"], ["rules=blitz", "rule_overrides.seats=6"]], ids=str)
def test_runs_of_other_games(game: list[str], tmp_path: Path) -> None:
    result = train(None, ["algorithm=dqn", *words(total_updates=2, deals=40), *game, f"runs_dir={tmp_path}"], json=True)
    assert result["updates"] == 2 and checkpoint.load_policy(result["run"]).rules.name == game[0].split("=")[1]


def test_resume_is_bit_equal(tmp_path: Path) -> None:
    """B22: the replay, the target network and the place of epsilon go on too; the ring has gone round by then."""
    made = ["algorithm=dqn", *words(total_updates=6, precision="bf16"), f"runs_dir={tmp_path}"]
    whole = train(None, made, json=True)
    half = train(None, [*made, "checkpoint_every=2", "keep_checkpoints=9"], json=True)
    assert tensors(half["run"]) == tensors(whole["run"])
    resumed = train(None, [], Path(half["run"]) / "checkpoints" / "00000004", json=True)
    assert resumed["updates"] == 6 and resumed["decisions"] == whole["decisions"]
    assert tensors(half["run"]) == tensors(whole["run"])
    state = checkpoint.load(checkpoint.resolve(whole["run"]))
    assert int(state.memory["replay.added"]) == whole["decisions"] > 700 == len(state.memory["replay.rows"])
    assert state.state["counters"]["actor_steps"] > 12


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("replay=900", "replay=900 cannot be changed on resume"),
        ("network=public_private", "network=public_private cannot be changed on resume"),
        ("reward_scale=10.0", "reward_scale=10.0 cannot be changed on resume; .* has 20.0"),
        ("discount=0.5", "discount=0.5 cannot be changed on resume"),
        ("n_step=2", "n_step=2 cannot be changed on resume"),
    ],
)
def test_what_a_resume_cannot_change(word: str, message: str, tmp_path: Path) -> None:
    first = train(None, ["algorithm=dqn", *words(total_updates=1), f"runs_dir={tmp_path}"], json=True)
    with pytest.raises(ValueError, match=message):
        train(None, [word], Path(first["run"]), json=True)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("epsilon=1.5", r"epsilon: must be in 0\.\.1, got 1\.5"),
        ("discount=-0.1", r"discount: must be in 0\.\.1, got -0\.1"),
        ("warmup=300000", "warmup: must be at most replay, 262144, got 300000"),
        ("n_step=0", "n_step: must be at least 1, got 0"),
        ("huber=0", r"huber: must be above 0, got 0\.0"),
        ("temperature=0", r"temperature: must be above 0, got 0\.0"),
        ("replay=99999999", "replay: must be at most 16777216, got 99999999"),
        ("critic_hidden=[3]", 'unknown key "critic_hidden"'),
    ],
)
def test_settings_are_checked(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_config(None, ["algorithm=dqn", word])


def test_a_network_with_a_hand_needs_a_game_with_hands() -> None:
    with pytest.raises(ValueError, match="public_private needs a hand, and blind has none; use mlp"):
        load_config(None, ["algorithm=dqn", "rules=blind", "network=public_private", "opponents=[]"])


def test_the_shipped_config_holds_only_what_differs() -> None:
    import yaml

    said = yaml.safe_load(find("dqn").read_text())
    assert said.pop("algorithm") == "dqn" and isinstance(load_config(find("dqn"), []), DQNConfig)
    for key, value in said.items():
        assert getattr(DQNConfig(), key) != value, key
