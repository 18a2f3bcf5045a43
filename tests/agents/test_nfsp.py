"""NFSP: who plays how, what comes into the reservoir, and the average policy that learns from it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import checkpoint
from agents.base import decide
from agents.networks import MaskedCategorical, to_bits, to_mask
from agents.nfsp import NFSPConfig, Trainer
from agents.targets import imitation_loss
from domino_env import make_engine
from experiments.config import find
from experiments.train import load_config, train

SMALL: dict[str, Any] = {
    "deals": 24, "minibatch": 64, "steps": 3, "average_steps": 2, "replay": 700, "reservoir": 150, "warmup": 300,
    "target_every": 3, "hidden": [24], "total_updates": 8, "precision": "float32", "opponents": [],
    "epsilon_decisions": 2000, "threads": 1, "eta": 0.3,
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def small(**settings: Any) -> Trainer:
    return Trainer(NFSPConfig(**{**SMALL, **settings}))


def words(**settings: Any) -> list[str]:
    said = {**SMALL, "evaluate_boards": 4, "eval_boards": 20, "evaluate_every": 1000, "checkpoint_every": 1000}
    said |= {"dd_loss_boards": 0, **settings}
    return ["algorithm=nfsp", *(f"{key}={value}".replace("'", "") for key, value in said.items())]


def opposed(**settings: Any) -> Trainer:
    """A trainer whose best response always plays the legal action of the lowest number, and its average the highest."""
    trainer = small(epsilon=0, epsilon_end=0, **settings)
    slope = torch.arange(trainer.rules.num_actions, dtype=torch.float32)
    with torch.no_grad():
        for learner, sign in ((trainer.values.online, -1), (trainer.average, 1000)):
            learner.network.head.weight.zero_()
            learner.network.head.bias.copy_(sign * slope)
            learner.refresh()
    trainer.values.player.refresh()
    trainer._averaged.refresh()
    return trainer


def lowest(legal: np.ndarray) -> np.ndarray:
    return np.bitwise_count((legal & -legal.view(np.int64).astype(np.int64).view(np.uint64)) - np.uint64(1))


def highest(legal: np.ndarray) -> np.ndarray:
    return np.array([int(word).bit_length() - 1 for word in legal])


# -- the supervised loss ---------------------------------------------------------------------------------------------


def test_imitation_on_numbers_worked_by_hand() -> None:
    """Probabilities 1/4 and 3/4 of two legal actions, then one of three alike; an illegal one counts nowhere."""
    logits = torch.tensor([[0.0, np.log(3.0), 50.0], [2.0, 2.0, 2.0]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    loss, grad = imitation_loss(logits, mask, torch.tensor([0, 2]))
    assert loss.item() == pytest.approx((np.log(4) + np.log(3)) / 2)
    want = torch.tensor([[-0.75, 0.75, 0.0], [1 / 3, 1 / 3, -2 / 3]]) / 2
    assert torch.allclose(grad, want, atol=1e-6)


def test_imitation_is_what_autograd_says() -> None:
    draw = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(200, 57, generator=draw)).requires_grad_()
    mask = torch.rand(200, 57, generator=draw) < 0.2
    mask[:, 5] = True
    action = MaskedCategorical(logits, mask).sample(torch.rand(200, generator=draw))
    loss = -MaskedCategorical(logits, mask).log_prob(action).mean()
    (want,) = torch.autograd.grad(loss, logits)
    found, gradient = imitation_loss(logits.detach(), mask, action)
    assert torch.allclose(gradient, want, atol=1e-8) and found.item() == pytest.approx(loss.item())


# -- who plays how ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "overrides"), [("sport_book", {}), ("blitz", {}), ("blitz", {"pairs": True}), ("blind", {})], ids=str
)
def test_a_side_plays_a_whole_deal_one_way(name: str, overrides: dict[str, Any]) -> None:
    """Both seats of a pair, from the first decision to the last; and a share of eta of the sides responds."""
    trainer = opposed(rules=name, rule_overrides=overrides, deals=40 if name == "blind" else 200)
    played, moves = trainer._play(0.0)
    low, high = played.action == lowest(played.legal), played.action == highest(played.legal)
    assert (low ^ high).all()
    sides = trainer.rules.num_sides
    side = played.deal * sides + played.seat % sides
    decisions = np.bincount(side, minlength=trainer.config.deals * sides)
    responses = np.bincount(side, low, minlength=len(decisions))
    assert ((responses == 0) | (responses == decisions)).all()
    share = (responses > 0).sum() / (decisions > 0).sum()
    assert share == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / len(decisions)))
    responds = (responses > 0).reshape(-1, sides)
    assert (responds.any(axis=1) & ~responds.all(axis=1)).any()  # each side draws for itself
    # Only what a best response did is handed to the reservoir, in the order of play.
    assert moves["action"].tolist() == played.action[low].tolist()
    assert np.array_equal(moves["obs"], played.obs[low]) and np.array_equal(moves["legal"], played.legal[low])
    trainer.close()


def test_who_responds_is_drawn_anew_for_every_update() -> None:
    trainer = opposed(deals=100)
    found = []
    for _ in range(2):
        played, _ = trainer._play(0.0)
        responds = np.zeros(200, np.bool_)
        responds[2 * played.deal + played.seat % 2] = played.action == lowest(played.legal)
        found.append(responds)
        trainer.updates += 1
    assert 30 < (found[0] != found[1]).sum() < 130
    trainer.close()


def test_the_reservoir_holds_the_best_action_also_where_another_was_explored() -> None:
    trainer = opposed(eta=1)
    played, moves = trainer._play(1.0)
    best = lowest(played.legal)
    assert (moves["action"] == best).all() and len(moves) == len(played.action)
    assert 0.3 < (played.action != best).mean() < 0.7
    trainer.close()


def test_eta_one_is_all_response_and_eta_zero_none() -> None:
    always, never = opposed(eta=1), opposed(eta=0)
    played, moves = always._play(0.0)
    assert (played.action == lowest(played.legal)).all() and len(moves) == len(played.action)
    played, moves = never._play(0.0)
    assert (played.action == highest(played.legal)).all() and len(moves) == 0
    for trainer in (always, never):
        before = trainer.average.flat.clone()
        figures = [trainer.update() for _ in range(4)]
        assert all("losses/td_loss" in one for one in figures[2:])  # the values learn either way
        assert ("losses/average_loss" in figures[-1]) == (trainer is always)
        assert torch.equal(trainer.average.flat, before) == (trainer is never)
        assert trainer.reservoir.added == (trainer.decisions if trainer is always else 0)
        assert trainer.values.replay.added == trainer.decisions
        trainer.close()


def test_the_average_policy_plays_by_its_probabilities() -> None:
    trainer = small(eta=0, deals=400, hidden=[8])
    with torch.no_grad():
        trainer.average.network.head.weight.mul_(1000)
        trainer.average.refresh()
    trainer._averaged.refresh()
    played, _ = trainer._play(0.0)
    with torch.no_grad():
        logits = trainer.average.network(to_bits(played.obs, torch.float32))
        probs = MaskedCategorical(logits, to_mask(played.legal, 57)).probs.numpy()
    likeliest = probs.max(axis=1)
    hit = played.action == probs.argmax(axis=1)
    spread = np.sqrt((likeliest * (1 - likeliest)).sum()) / len(hit)
    assert abs(hit.mean() - likeliest.mean()) < 4 * spread
    assert 0.5 < hit.mean() < 0.98
    trainer.close()


# -- runs ------------------------------------------------------------------------------------------------------------


def test_what_plays_is_renewed_at_the_beginning_of_every_update() -> None:
    trainer = small(warmup=64)
    both = ((trainer.values.online, trainer.values.player), (trainer.average, trainer._averaged))
    for _ in range(4):
        before = [[parameter.clone() for parameter in learner.parameters] for learner, _ in both]
        trainer.update()
        for (_, player), kept in zip(both, before, strict=True):
            assert all(map(torch.equal, player._network.parameters(), kept))
    assert not any(torch.equal(learner.parameters[0], kept[0]) for (learner, _), kept in zip(both, before))
    trainer.close()


def test_the_average_policy_is_one_over_the_legal_actions() -> None:
    """Before it has learned, its loss is the mean logarithm of how many there are."""
    trainer = small(average_learning_rate=1e-12, average_learning_rate_end=0, reservoir=4000, eta=1)
    losses = [trainer.update().get("losses/average_loss", 0.0) for _ in range(3)]
    several = np.log(np.bitwise_count(trainer.reservoir.rows["legal"])).mean()
    assert losses[-1] == pytest.approx(several, abs=0.1)
    trainer.close()


def test_the_average_policy_comes_to_what_the_responses_do() -> None:
    trainer = opposed(eta=1, reservoir=2000, average_steps=60, average_learning_rate=0.01, learning_rate=1e-12,
                      learning_rate_end=0, average_learning_rate_end=0.01)  # fmt: skip
    with torch.no_grad():
        trainer.average.network.head.bias.zero_()
        trainer.average.refresh()
    losses = [trainer.update().get("losses/average_loss", 9.0) for _ in range(6)]
    assert losses[0] == 9.0 and losses[1] > 2 * losses[-1] and losses[-1] < 0.25
    trainer.close()


def test_the_number_of_threads_changes_no_result() -> None:
    runs = [small(threads=threads) for threads in (1, 3)]
    for trainer in runs:
        for _ in range(5):
            trainer.update()
        trainer.close()
    for name, tensor in runs[0].model().items() | runs[0].memory().items():
        assert torch.equal(tensor, (runs[1].model() | runs[1].memory())[name]), name


def tensors(folder: str | Path) -> list[bytes]:
    latest = Path(folder) / "checkpoints" / "latest"
    return [(latest / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer", "memory")]


def test_resume_is_bit_equal(tmp_path: Path) -> None:
    """B22: the reservoir and its count go on too; more has come by then than it holds."""
    made = [*words(total_updates=6, precision="bf16"), f"runs_dir={tmp_path}"]
    whole = train(None, made, json=True)
    half = train(None, [*made, "checkpoint_every=2", "keep_checkpoints=9"], json=True)
    resumed = train(None, [], Path(half["run"]) / "checkpoints" / "00000002", json=True)
    assert resumed["updates"] == 6 and resumed["decisions"] == whole["decisions"]
    assert tensors(half["run"]) == tensors(whole["run"])
    state = checkpoint.load(checkpoint.resolve(whole["run"]))
    assert int(state.memory["reservoir.added"]) > 150 == len(state.memory["reservoir.rows"])
    assert int(state.memory["replay.added"]) == whole["decisions"]
    assert state.state["counters"]["actor_steps"] >= 6 and state.state["counters"]["q_steps"] >= 9


def test_an_empty_reservoir_is_kept_too(tmp_path: Path) -> None:
    first = train(None, [*words(total_updates=1, eta=0), f"runs_dir={tmp_path}"], json=True)
    assert train(None, ["total_updates=2"], Path(first["run"]), json=True)["updates"] == 2
    state = checkpoint.load(checkpoint.resolve(first["run"]))
    assert int(state.memory["reservoir.added"]) == 0 and state.memory["reservoir.rows"].shape[0] == 0


def test_smoke_of_a_run_and_its_agent(tmp_path: Path) -> None:
    """What plays as the agent is the average policy, not the values."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    made = [*words(opponents=["random"], total_updates=5)[1:], f"runs_dir={tmp_path}"]
    result = train(find("nfsp"), made, json=True)
    log = EventAccumulator(str(result["run"]), size_guidance={"scalars": 0})
    log.Reload()
    tags = set(log.Tags()["scalars"])
    assert {"losses/td_loss", "losses/q_values", "losses/average_loss", "charts/epsilon", "charts/SPS",
            "domino/points"} <= tags  # fmt: skip
    state = checkpoint.load(checkpoint.resolve(result["run"]))
    assert {name.split(".")[0] for name in state.model} == {"actor", "q", "target"}
    agent = checkpoint.load_policy(result["run"])
    assert agent.temperature == 1.0
    engine = make_engine("sport_book", 100, seed=1)
    trainer = small(total_updates=5)
    checkpoint.fill(trainer.model(), state.model, "here")
    assert (agent.act(decide(engine)) == trainer.policy().act(decide(engine))).all()
    assert not torch.equal(state.model["actor.head.weight"], state.model["q.head.weight"])
    trainer.close()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("eta=1.1", r"eta: must be in 0\.\.1, got 1\.1"),
        ("reservoir=0", "reservoir: must be at least 1, got 0"),
        ("average_learning_rate=0", r"average_learning_rate: must be above 0, got 0\.0"),
        ("temperature=1", 'unknown key "temperature"'),
    ],
)
def test_settings_are_checked(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_config(None, ["algorithm=nfsp", word])


def test_the_reservoir_cannot_be_changed_on_resume(tmp_path: Path) -> None:
    first = train(None, [*words(total_updates=1), f"runs_dir={tmp_path}"], json=True)
    with pytest.raises(ValueError, match="reservoir=9 cannot be changed on resume"):
        train(None, ["reservoir=9"], Path(first["run"]), json=True)


def test_the_shipped_config_holds_only_what_differs() -> None:
    import yaml

    said = yaml.safe_load(find("nfsp").read_text())
    assert said.pop("algorithm") == "nfsp" and isinstance(load_config(find("nfsp"), []), NFSPConfig)
    for key, value in said.items():
        assert getattr(NFSPConfig(), key) != value, key
