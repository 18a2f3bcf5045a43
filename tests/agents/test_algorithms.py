"""What holds for every algorithm: its deals are all different, and a run that starts from another has its networks."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import checkpoint
from agents.algorithms import ALGORITHMS, BaseTrainer, config_class, make_trainer
from domino_env.line import LineEngine
from domino_env.rules import describe_rules

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {
    "hidden": [16], "opponents": [], "dd_loss_boards": 0, "precision": "float32", "threads": 1, "total_updates": 6,
}  # fmt: skip
POLICY: dict[str, Any] = {"deals": 30, "critic_hidden": [16]}
VALUES: dict[str, Any] = {"deals": 30, "minibatch": 32, "steps": 2, "replay": 4096, "warmup": 64}
RUNS: dict[str, dict[str, Any]] = {
    "ppo": POLICY | {"minibatch": 64},
    "recurrent": POLICY | {"minibatch_deals": 8, "state": 8},
    "expert": POLICY | {
        "minibatch": 64, "label_deals": 30, "steps": 2, "teachers": ["double_dummy"], "shares": [1.0], "rounds": 2,
        "imitate": 0.5,
    },
    "dqn": VALUES,
    "nfsp": VALUES,
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def trainer_of(algorithm: str, **settings: Any) -> BaseTrainer:
    return make_trainer(config_class(algorithm)(**{**SMALL, **RUNS[algorithm], **settings}))


@pytest.mark.parametrize("algorithm", RUNS)
def test_b28_no_two_parts_and_no_two_updates_play_the_same_deals(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of an update, deals for labels, and the updates of two seeds: every deal is dealt once."""
    dealt: list[np.ndarray] = []
    first = LineEngine.legal_bits

    def spy(engine: LineEngine) -> Any:
        """Every deal begins by asking what is legal."""
        begun = np.flatnonzero(engine.plies() == 0)
        dealt.append(engine.hands()[begun].copy())
        return first(engine)

    for seed in (1, 2):
        trainer = trainer_of(algorithm, seed=seed)
        monkeypatch.setattr(LineEngine, "legal_bits", spy)
        for _ in range(3):
            trainer.update()
        monkeypatch.undo()
        trainer.close()
    hands = np.concatenate(dealt)
    assert len(hands) == trainer.deals * 2 and len(np.unique(hands, axis=0)) == len(hands)


@pytest.mark.parametrize("algorithm", RUNS)
def test_a_run_that_starts_from_another_computes_with_its_networks(algorithm: str, tmp_path: Path) -> None:
    """Also in bfloat16, where what computes is a copy; and the optimisers begin anew."""
    first, second = (trainer_of(algorithm, precision="bf16", seed=seed) for seed in (1, 2))
    state = {"rules": describe_rules(first.rules)}
    checkpoint.begin(second, checkpoint.save(tmp_path, 1, first.model(), first.optimizer(), state))
    for name, tensor in second.model().items():
        assert torch.equal(tensor, first.model()[name]), name
    values = getattr(second, "values", None)
    for learner in [*second.learners.values(), *([values.target] if values is not None else [])]:
        assert learner.fast is not learner.network and learner.steps == 0
        for slow, fast in zip(learner.network.parameters(), learner.fast.parameters(), strict=True):
            assert torch.equal(slow.to(torch.bfloat16), fast)
    first.close()
    second.close()


def test_in_a_game_without_choices_there_is_nothing_to_learn() -> None:
    for algorithm in ("ppo", "recurrent", "dqn", "nfsp"):
        trainer = trainer_of(algorithm, rules="tiny_pairs", rule_overrides={"hand_size": 1})
        with pytest.raises(ValueError, match=r"nothing to learn from: no seat of tiny_pairs.* had a choice"):
            trainer.update()
        trainer.close()


def test_where_all_other_actions_end_the_deal_the_critic_is_not_asked() -> None:
    """Two seats and a small set: in a part of one deal there may be no position to judge."""
    rules = {"rules": "tiny_pairs", "rule_overrides": {"seats": 2, "pairs": False}}
    for seed in range(4):
        trainer = trainer_of("ppo", **rules, deals=2, seed=seed)
        for _ in range(3):
            assert np.isfinite(trainer.update()["losses/policy_loss"])  # type: ignore[arg-type]
        trainer.close()


def test_only_imitation_needs_the_extra_export() -> None:
    """Its loss serves others too, and its reader of Parquet files must not come along with it."""
    names = [name for name in ALGORITHMS if name != "imitation"]
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        f"from agents.algorithms import config_class; print(*(config_class(name).__name__ for name in {names}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and done.stdout.count("Config") == len(names), done.stderr
