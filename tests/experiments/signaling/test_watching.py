"""Signals in the log of a run: nothing where nothing is told, the sums of all deals by hand, and the tags of a run."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents.base import decide
from agents.networks import Policy, make_actor
from agents.ppo import PPOConfig
from agents.search.position import imagine
from agents.search.reading import log_likelihood
from domino_env import get_rules
from domino_env.tiles import tiles_of
from experiments.signaling import watching
from experiments.signaling.record import play
from experiments.signaling.watching import watch
from experiments.train import train

TINY = get_rules("tiny_pairs", max_pip=4, hand_size=3)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def network(rules: Any, gain: float, **settings: Any) -> Policy:
    """With random weights: its preferences are as strong as the gain."""
    actor: Any = make_actor("public_private", rules, [16], torch.Generator().manual_seed(5), choices=True)
    actor.requires_grad_(False)
    actor.head.weight *= gain
    return Policy(actor, rules, "pupil", choices=True, **settings)


def test_random_play_has_no_convention_and_hears_nothing() -> None:
    policy = network(get_rules(), 0.0, deafness=0.25)
    found = watch(policy, 8, 3)
    assert found["signaling/decisions"] > 12 and found["signaling/information"] > 0.5
    for name in ("excess_over_uniform", "excess_over_deaf", "convention_over_uniform", "convention_over_deaf"):
        assert found[f"signaling/{name}"] == pytest.approx(0, abs=1e-5), name
    assert found["signaling/listening"] == pytest.approx(0, abs=1e-9)
    assert 0 < found["signaling/belief_entropy"] < found["signaling/belief_entropy_rules"]
    assert not policy.sample and not policy.deaf


def test_who_hears_and_has_preferences_listens() -> None:
    found = watch(network(get_rules(), 300.0, deafness=0.25), 8, 3)
    for name in ("convention_over_uniform", "convention_over_deaf", "listening"):
        assert found[f"signaling/{name}"] > 0.003, name
    for other in (network(get_rules(), 300.0), network(get_rules(), 300.0, deaf=True, deafness=1.0)):
        plain = watch(other, 2, 3)
        assert "signaling/listening" not in plain and "signaling/convention_over_deaf" not in plain
        assert plain["signaling/convention_over_uniform"] > 0.003


def test_figures_are_those_of_all_deals_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game of few tiles: every deal that the partner cannot rule out is laid out, and the player asked about each."""
    monkeypatch.setattr(watching, "LATE", TINY.num_tiles - 6)
    policy = network(TINY, 300.0, deafness=0.25)
    assert watching.late(TINY) == range(6, 15)
    found = watch(policy, 30, 2)
    policy.sample = True
    moments = play(policy, TINY, 30, 2, tiles=watching.late(TINY), each=2).moments
    names = ("information", "excess_over_uniform", "excess_over_deaf", "belief_entropy", "belief_entropy_rules")
    sums: dict[str, list[float]] = {name: [] for name in names}
    deaf = policy.deafened()
    for row in range(len(moments)):
        view = moments.take(np.array([row])).seen_by(2)
        seat, others = int(moments.seat[row]), [s for s in range(4) if s != int(view.viewer[0])]
        worlds = []
        hidden = tiles_of(int(view.hidden[0]))
        sizes = [int(view.sizes[0, other]) for other in others]
        for first in itertools.combinations(hidden, sizes[0]):
            rest = tuple(tile for tile in hidden if tile not in first)
            for second in itertools.combinations(rest, sizes[1]):
                for third in itertools.combinations(tuple(tile for tile in rest if tile not in second), sizes[2]):
                    hands = [0, 0, 0, 0]
                    hands[int(view.viewer[0])] = int(view.own[0])
                    for other, held in zip(others, (first, second, third)):
                        hands[other] = sum(1 << tile for tile in held)
                    worlds.append(hands)
        every = np.array(worlds, np.uint32)
        by = {
            "true": log_likelihood(view, [policy] * 4, every[None]).sum(axis=2)[0],
            "rules": log_likelihood(view, [None] * 4, every[None]).sum(axis=2)[0],
        }
        for name, log in by.items():
            weight = np.exp(log) / np.exp(log).sum()
            mass: dict[int, float] = {}
            for hand, share in zip(every[:, seat].tolist(), weight.tolist()):
                mass[hand] = mass.get(hand, 0.0) + share
            p = np.array([share for share in mass.values() if share > 0])
            label = "belief_entropy" if name == "true" else "belief_entropy_rules"
            sums[label].append(float(-(p * np.log2(p)).sum()))
            if name == "true":
                likely = [hand for hand, share in mass.items() if share > 0]
                tables = np.array([every[every[:, seat] == hand][0] for hand in likely])
                engine = imagine(view, np.zeros(len(likely), np.int64), tables)
                legal = engine.legal().astype(np.float64)

                def told(says: Any, p: Any = p) -> float:
                    def bits(q: Any) -> Any:
                        return -(q * np.log2(np.where(q > 0, q, 1))).sum(axis=-1)

                    says = says.astype(np.float64)
                    return float(bits(p @ says) - p @ bits(says))

                own, other = (told(one.probabilities(decide(engine, one))) for one in (policy, deaf))
                sums["information"].append(own)
                sums["excess_over_uniform"].append(own - told(legal / legal.sum(axis=1, keepdims=True)))
                sums["excess_over_deaf"].append(own - other)
    assert len(moments) > 12 and all(abs(np.mean(sums[name])) > 1e-4 for name in names)
    for name, values in sums.items():
        assert found[f"signaling/{name}"] == pytest.approx(np.mean(values), abs=1e-5), name


def test_a_run_logs_them_at_every_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.train.SAMPLE_DEALS", 4)
    words = [
        "rules=tiny_pairs", "deals=32", "minibatch=64", "hidden=[16]", "critic_hidden=[16]", "eval_boards=4",
        "evaluate_boards=4", "evaluate_every=1", "total_updates=2", "opponents=[]", "threads=1", "dd_loss_boards=0",
        "deaf=0.25", "network=public_private",
    ]  # fmt: skip
    runs = [train(None, [*words, f"runs_dir={tmp_path}", f"signal_deals={deals}"], None, json=True) for deals in (0, 6)]
    logs = [EventAccumulator(run["run"]) for run in runs]
    tags = []
    for log in logs:
        log.Reload()
        tags.append({tag for tag in log.Tags()["scalars"] if tag.startswith("signaling/")})
    assert not tags[0] and {"signaling/information", "signaling/listening"} <= tags[1] and len(tags[1]) == 9
    assert all(len(logs[1].Scalars(tag)) == 2 for tag in tags[1])
    models = [(Path(run["run"]) / "checkpoints" / "latest" / "model.safetensors").read_bytes() for run in runs]
    assert models[0] == models[1]  # it is looked at, not learned from


def test_games_without_partners_or_with_turns_of_several_tiles_are_refused() -> None:
    for rules, overrides in (("blitz", {}), ("blind", {}), ("tiny_pairs", {"seats": 2, "pairs": False})):
        with pytest.raises(
            ValueError, match="in games of pairs with one tile a turn on an open line, not in"
        ) as caught:
            PPOConfig(rules=rules, rule_overrides=overrides, advantage="seat", opponents=[], signal_deals=8)
        assert caught.value.args[0] == "signal_deals"
