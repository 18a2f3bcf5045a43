"""Expert iteration: labels are what the teachers say of the decision, imitation follows them, then PPO goes on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.base import decide, make_agent
from agents.expert import ExpertConfig, Labels, Trainer, concatenate, make_teacher
from agents.networks import CentralCritic, Policy, to_bits
from agents.pool import PoolConfig
from agents.search.position import position_of
from agents.search.solver import solve
from domino_env.deals import Streams
from domino_env.engine import make_engine
from domino_env.observation import layout_of, unpack
from experiments.train import train

SMALL: dict[str, Any] = {
    "deals": 32, "minibatch": 64, "hidden": [16], "critic_hidden": [16], "opponents": [], "dd_loss_boards": 0,
    "label_deals": 8, "steps": 4, "threads": 1, "total_updates": 4, "imitate": 0.5,
    "teachers": ["double_dummy"], "shares": [1.0], "precision": "float32",
}  # fmt: skip


def small(**changes: Any) -> Trainer:
    return Trainer(ExpertConfig(**{**SMALL, **changes}))


def words(**changes: Any) -> list[str]:
    return [
        f"{key}={str(value).replace(chr(39), '')}" for key, value in {"algorithm": "expert", **SMALL, **changes}.items()
    ]


def played(plies: int, rows: int = 24) -> tuple[Any, np.ndarray]:
    """An engine in mid-deal, and the rows where there is a choice."""
    engine = make_engine("sport_book", rows, seed=5)
    rng = np.random.default_rng(1)
    for _ in range(plies):
        engine.step(engine.sample_legal(rng), autoreset=False)
    return engine, np.flatnonzero(engine.legal_count() > 1)


def test_double_dummy_labels_are_the_solver_s_values_of_the_deal_as_it_lies() -> None:
    trainer = small()
    found, regret = trainer._label()
    assert len(found.legal) > 40 and regret > 0
    layout = layout_of(trainer.rules)
    bits = unpack(found.obs)
    ends = np.stack([bits[:, layout.slices[name]].argmax(axis=1) for name in ("end_left", "end_right")], axis=1)
    assert (ends[:, 0] <= ends[:, 1]).all()  # straightened
    legal = np.unpackbits(found.legal.view(np.uint8).reshape(-1, 8), axis=1, count=57, bitorder="little").astype(bool)
    assert (found.values[~legal] == 0).all() and (np.abs(found.values).max(axis=1) > 0).mean() > 0.5
    hands = bits[:, layout.slices["hand"]].sum(axis=1)
    sizes = [bits[:, layout.slices[f"size_{who}"]].sum(axis=1) for who in ("left", "partner", "right")]
    assert (hands + sum(sizes) <= 24).all()  # the dear ones are left out


def test_every_label_is_what_the_teacher_says_turned_with_the_line() -> None:
    trainer = small()
    engine, free = played(9)
    batch = decide(engine, None, Streams.of(1, np.arange(24)), free)
    policy = Policy(trainer.actor.network, trainer.rules, sample=True, choices=True)
    critic = CentralCritic(trainer.critic.network, trainer.rules, trainer.config.reward_scale)
    keys = np.arange(len(free), dtype=np.uint64)
    teacher = make_teacher("double_dummy", trainer.config, policy, critic)
    values = teacher(batch, engine, free, keys)
    exact = solve(engine.hands()[free], engine.ends()[free], engine.to_move()[free], trainer.rules)
    assert (values == exact).all()
    labels = trainer._straight(batch, np.where(batch.mask, values, 0).astype(np.float32))
    seen, legal, _ = trainer._seen(engine, engine.legal_bits(), free, engine.leader())
    assert np.array_equal(labels.obs, seen) and np.array_equal(labels.legal, legal)  # as PPO shows it, with choices
    turned = engine.ends()[free][:, 0] > engine.ends()[free][:, 1]
    assert turned.any() and not turned.all()
    for row in range(len(free)):
        ours = np.where(batch.mask[row], values[row], 0)
        theirs = labels.values[row]
        if turned[row]:
            theirs = np.concatenate([theirs[28:56], theirs[:28], theirs[56:]])
        assert (ours == theirs).all()
    for name, mean in (
        ("pimc-3", lambda agent: agent.outlook(position_of(batch), keys).mean),
        ("search:worlds=8", None),
    ):
        said = make_teacher(name, trainer.config, policy, critic)(batch, engine, free, keys)
        assert np.isfinite(said[batch.mask != 0]).all() and np.isneginf(said[batch.mask == 0]).all()
        if mean is not None:
            assert (said == mean(make_agent(name))).all()


def test_search_asks_the_run_s_own_networks() -> None:
    trainer = small()
    engine, free = played(9)
    batch = decide(engine, None, Streams.of(1, np.arange(24)), free)
    policy = Policy(trainer.actor.network, trainer.rules, sample=True, choices=True)
    critic = CentralCritic(trainer.critic.network, trainer.rules, 20.0)
    teacher = make_teacher("search:worlds=8", trainer.config, policy, critic)
    keys = np.arange(len(free), dtype=np.uint64)
    before = teacher(batch, engine, free, keys)
    with torch.no_grad():
        trainer.critic.network.head.weight.add_(1.0)
    assert not np.array_equal(before, teacher(batch, engine, free, keys))


def test_regret_is_what_the_likeliest_action_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(name: str, config: Any, policy: Policy, critic: Any) -> Any:
        def teacher(batch: Any, engine: Any, rows: Any, keys: Any) -> np.ndarray:
            best = policy.probabilities(batch).argmax(axis=1)
            values = np.full(batch.mask.shape, 7.0)  # everything else is three points better
            values[np.arange(len(best)), best] = 4.0
            return values

        return teacher

    monkeypatch.setattr("agents.expert.make_teacher", planted)
    found, regret = small()._label()
    assert regret == pytest.approx(3.0)
    assert set(np.unique(found.values)) == {0.0, 4.0, 7.0}


def test_imitation_comes_to_play_the_best_label() -> None:
    trainer = small(keep_labels=64, minibatch=64, steps=400, temperature=0.5, imitate_rate=3e-3)
    trainer.labels = trainer._label()[0].newest(64)
    rng = np.random.default_rng(1)
    rows = rng.integers(len(trainer.labels.legal), size=(400, 64))
    first = trainer._learn_labels(rows[:1])["losses/imitation_loss"]
    trainer._learn_labels(rows)
    assert trainer._learn_labels(rows[:1])["losses/imitation_loss"] < first - 0.2
    legal = np.unpackbits(trainer.labels.legal.view(np.uint8).reshape(-1, 8), axis=1, count=57, bitorder="little") == 1
    logits = trainer.actor.fast(to_bits(trainer.labels.obs, torch.float32)).detach().numpy()
    chosen = np.where(legal, logits, -np.inf).argmax(axis=1)
    values = np.where(legal, trainer.labels.values, -np.inf)
    assert (values[np.arange(len(chosen)), chosen] == values.max(axis=1)).mean() > 0.9


def test_the_newest_labels_are_kept() -> None:
    one = Labels(np.zeros((3, 2), np.uint8), np.arange(3, dtype=np.uint64), np.zeros((3, 57), np.float32))
    two = Labels(np.ones((2, 2), np.uint8), np.arange(3, 5, dtype=np.uint64), np.ones((2, 57), np.float32))
    kept = concatenate([one, two]).newest(4)
    assert kept.legal.tolist() == [1, 2, 3, 4] and kept.obs[:, 0].tolist() == [0, 0, 1, 1]


def test_an_update_without_labels_adds_none_and_a_run_without_any_says_so() -> None:
    trainer = small(imitate=1.0)
    trainer.update()
    before, decisions = len(trainer.labels.legal), trainer.decisions
    assert before == decisions > 0
    trainer.config.label_share = 1e-12
    figures = trainer.update()
    assert len(trainer.labels.legal) == before and trainer.decisions == decisions and trainer.updates == 2
    assert "losses/label_regret" not in figures and "losses/imitation_loss" in figures
    trainer.close()
    trainer = small(label_tiles=1)
    with pytest.raises(ValueError, match="no decision of 8 deals was labelled; raise label_deals"):
        trainer.update()
    trainer.close()


def test_a_pool_goes_on_while_it_is_taught() -> None:
    trainer = small(imitate=1.0, pool=PoolConfig(share=0.5, every=1, keep=2))
    for _ in range(2):
        assert trainer._play(0, False).rollout.worth is None
        figures = trainer.update()
    assert trainer.pool.names == ["past_1", "past_2"] and figures["pool/past/share"] == 0.5
    assert trainer.pool.counts["past_1"].sum() > 0
    trainer.close()


def test_rounds_alternate() -> None:
    trainer = small(rounds=2, total_updates=8)
    parts = []
    for trainer.updates in range(8):
        parts.append(trainer.taught)
    assert parts == [True, True, False, False] * 2


def test_smoke_and_bit_equal_resume(tmp_path: Path) -> None:
    settings = {"teachers": "[double_dummy, pimc-2, 'search:worlds=4,candidates=8']", "shares": "[0.8, 0.1, 0.1]"}
    given = [word for word in words() if not word.startswith(("teachers", "shares"))]
    given += [f"{key}={value}" for key, value in settings.items()]
    more = ["checkpoint_every=1", "keep_checkpoints=9", "evaluate_every=1000", "evaluate_boards=2", "eval_boards=2"]
    whole = train(None, [*given, *more, f"runs_dir={tmp_path / 'a'}"], json=True)
    assert whole["updates"] == 4 and whole["decisions"] > 100
    final = Path(whole["run"]) / "checkpoints" / "latest"
    for begin in ("00000001", "00000003"):  # while it is taught, and after
        run = train(None, [*given, *more, f"runs_dir={tmp_path / begin}"], json=True)["run"]
        for later in sorted((Path(run) / "checkpoints").iterdir()):
            if later.name > begin and later.name != "latest":
                for file in later.iterdir():
                    file.unlink()
                later.rmdir()
        (Path(run) / "checkpoints" / "latest").unlink()
        train(None, [], Path(run) / "checkpoints" / begin, json=True)
        for name in ("model.safetensors", "optimizer.safetensors", "memory.safetensors"):
            assert (Path(run) / "checkpoints" / "latest" / name).read_bytes() == (final / name).read_bytes()
    assert make_agent(str(final)).name == str(final)


@pytest.mark.parametrize(
    ("changes", "key", "why"),
    [
        ({"teachers": [], "shares": []}, "shares", "one for each teacher"),
        ({"shares": [0.5, 0.5]}, "shares", "1 teachers and 2 shares"),
        ({"shares": [-1.0]}, "shares", "negative"),
        ({"teachers": ["club"]}, "teachers", "cannot say what actions are worth"),
        ({"teachers": ["pimc:ms=5"]}, "teachers", "clock"),
        ({"teachers": ["search:model=x"]}, "teachers", "not to be chosen"),
        ({"teachers": ["search:wrlds=3"]}, "teachers", "wrlds"),
        ({"rules": "blind", "advantage": "seat"}, "advantage", "needs deal"),
        ({"words": True}, "words", "without"),
        ({"temperature": 0.0}, "temperature", "above 0"),
        ({"imitate": 1.5}, "imitate", "0..1"),
        ({"rounds": 0}, "rounds", "at least 1"),
    ],
)
def test_config_refuses(changes: dict[str, Any], key: str, why: str) -> None:
    with pytest.raises(ValueError) as error:
        ExpertConfig(**{**SMALL, **changes})
    assert error.value.args[0] == key and why in error.value.args[1]
