"""The critic of a checkpoint: it says of positions what it said in training, and refuses what it has not learned."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.checkpoint import CheckpointError, load_critic, save
from agents.networks import CentralCritic
from agents.ppo import PPOConfig, Trainer
from domino_env import get_rules
from domino_env.line import LineEngine
from domino_env.rules import describe_rules


def trained(**changes: Any) -> Trainer:
    settings: dict[str, Any] = {
        "deals": 16, "hidden": [8], "critic_hidden": [16, 8], "threads": 1, "total_updates": 1, "precision": "float32",
        "opponents": [], "reward_scale": 30.0,
    }  # fmt: skip
    return Trainer(PPOConfig(**settings | changes))


def saved(trainer: Trainer, folder: Path, **changes: Any) -> Path:
    state: dict[str, Any] = {
        "config": dataclasses.asdict(trainer.config) | changes,
        "rules": describe_rules(trainer.rules),
        "policy": trainer.describe(),
        "counters": trainer.counters(),
    }
    return save(folder / "checkpoints", 1, trainer.model(), trainer.optimizer(), state)


@pytest.mark.parametrize("rules", ["sport_book", "tiny_pairs"])
def test_it_says_what_it_said_in_training(rules: str, tmp_path: Path) -> None:
    trainer = trained(rules=rules)
    trainer.update()
    rollout = trainer._play(0).rollout
    critic = load_critic(saved(trainer, tmp_path), rules)
    engine = LineEngine(rules, 8, seed=0)  # a part of the 16 deals
    entropy = np.random.SeedSequence([trainer.config.seed, trainer.updates, 0])
    engine.reset(seed=int(entropy.generate_state(1, np.uint64)[0]))
    assert (engine.legal_count() > 1).all()  # so that the first rows of the rollout are the leads
    said = (rollout.target - rollout.advantage)[:8] * trainer.config.reward_scale
    assert said.std() > 0.01 and np.allclose(critic.values(engine), said, atol=1e-4)
    trainer.close()


def test_it_reads_the_turned_line_and_the_other_hands_clockwise(tmp_path: Path) -> None:
    trainer = trained()
    critic = load_critic(saved(trainer, tmp_path))
    engine = LineEngine("sport_book", 300, seed=4)
    rng = np.random.default_rng(0)
    for _ in range(9):
        engine.step(engine.sample_legal(rng))
    obs, hands, mover = engine.observe(), engine.hands(), engine.to_move()
    place = engine.layout.slices
    seen = np.zeros((300, 256 + 96), np.float32)
    turned = 0
    for row in range(300):
        seen[row, :256] = obs[row]
        left, right = obs[row, place["end_left"]], obs[row, place["end_right"]]
        if left.any() and left.argmax() > right.argmax():
            seen[row, place["end_left"]], seen[row, place["end_right"]] = right, left
            turned += 1
        for i in range(1, 4):
            for tile in range(28):
                seen[row, 256 + 32 * (i - 1) + tile] = hands[row, (mover[row] + i) % 4] >> tile & 1
    assert 50 < turned < 250
    with torch.inference_mode():
        wanted = 30 * trainer.critic.network(torch.from_numpy(seen)).numpy()
    got = critic.values(engine)
    assert got.dtype == np.float32 and np.allclose(got, wanted, atol=1e-4)
    # A row's value does not depend, to the last bit, on what else is asked.
    for rows in (np.arange(5), np.arange(250, 300), np.array([299, 3, 3])):
        assert np.array_equal(critic.values(engine.take(rows)), got[rows])
    with pytest.raises(ValueError, match="trained for sport_book, not for"):
        critic.values(LineEngine("sport_club", 1, seed=0))
    with pytest.raises(ValueError, match="trained for sport_book, not for"):
        critic.check(get_rules("kozyol"))
    trainer.close()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"advantage": "seat"}, "no critic that sees all hands: it was trained with advantage='seat'"),
        ({"advantage": None}, "advantage=None"),
        ({"words": True}, "reads the words of the game"),
        ({"critic_hidden": [16, 0]}, r"widths \[16, 0\]"),
        ({"critic_hidden": [17, 8]}, r"critic.torso.0.weight is torch.float32 \(16, 352\), expected"),
        ({"critic_hidden": [16]}, "critic.torso.1.bias is not known"),
        ({"reward_scale": 0}, "reward_scale=0"),
        ({"reward_scale": "20"}, "reward_scale='20'"),
    ],
    ids=str,
)
def test_refusals(changes: dict[str, Any], text: str, tmp_path: Path) -> None:
    trainer = trained()
    trainer.close()
    with pytest.raises(CheckpointError, match=text):
        load_critic(saved(trainer, tmp_path, **changes))


def test_a_run_without_a_critic_is_refused_by_its_algorithm(tmp_path: Path) -> None:
    trainer = trained()
    trainer.close()
    state = {"config": {"seed": 1}, "algorithm": "dqn", "rules": describe_rules(trainer.rules)}
    folder = save(tmp_path / "checkpoints", 1, trainer.model(), trainer.optimizer(), state)
    with pytest.raises(CheckpointError, match="no critic that sees all hands: runs of dqn have no critic"):
        load_critic(folder)


def test_refusals_of_folders_and_rules(tmp_path: Path) -> None:
    trainer = trained()
    trainer.close()
    folder = saved(trainer, tmp_path)
    assert isinstance(load_critic(tmp_path, "sport_book"), CentralCritic)
    with pytest.raises(CheckpointError, match="trained for sport_book, not for sport_club"):
        load_critic(folder, "sport_club")
    with pytest.raises(CheckpointError, match="does not exist"):
        load_critic(tmp_path / "nothing")
    state = {"config": 5, "rules": describe_rules(trainer.rules), "policy": trainer.describe()}
    folder = save(tmp_path / "other", 1, trainer.model(), {}, state)
    with pytest.raises(CheckpointError, match="how its critic was trained"):
        load_critic(folder)
