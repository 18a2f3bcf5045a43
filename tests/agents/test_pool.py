"""The pool: past selves that stay what they were, who is met how often, and what is learned at tables with guests."""

import copy
import dataclasses
import hashlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from agents import base
from agents.base import Decisions
from agents.buffers import Rollout, join
from agents.checkpoint import load as load_checkpoint, resolve, save
from agents.pool import AGAINST, PAST, WITH, Past, Pool, PoolConfig, ask, prioritised
from agents.ppo import PPOConfig, Trainer
from agents.rollout import SELF, Played, Seating
from domino_env import get_rules, make_engine
from domino_env.deals import Streams
from domino_env.rules import Rules, describe_rules
from experiments.config import ConfigError, find, load
from experiments.metrics import check_tag
from experiments.train import train

SMALL: dict[str, Any] = {
    "deals": 64, "minibatch": 256, "hidden": [32], "critic_hidden": [32], "total_updates": 8, "precision": "float32",
    "opponents": [], "threads": 1, "alternatives": False,
}  # fmt: skip
RULES = get_rules("sport_book")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def small(pool: dict[str, Any] | None = None, **settings: Any) -> Trainer:
    return Trainer(PPOConfig(**{**SMALL, **settings}, **({} if pool is None else {"pool": PoolConfig(**pool)})))


def plays(trainer: Trainer) -> list[Played]:
    return [trainer._play(part) for part in range(2)]


def digest(network: torch.nn.Module) -> str:
    return hashlib.sha256(b"".join(t.numpy().tobytes() for t in network.state_dict().values())).hexdigest()


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def aged(config: PoolConfig, updates: list[int], rules: Rules = RULES) -> Pool:
    """A pool with past selves that need not play."""
    pool = Pool(config, rules, 1)
    pool.past = [Past(update, torch.nn.Identity(), torch.nn.Identity()) for update in updates]
    return pool


# -- past selves -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_b26_past_selves_do_not_change_with_the_learner(precision: str) -> None:
    trainer = small({"share": 0.5, "every": 1, "keep": 5}, precision=precision, deals=16, minibatch=64)
    rollout = join([one.rollout for one in plays(trainer)])
    states = rollout.obs[:100], rollout.legal[:100]

    def probabilities() -> list[np.ndarray]:
        with torch.no_grad():
            return [trainer._distribution(past.fast, *states).probs.numpy() for past in trainer.pool.past]

    for _ in range(5):
        trainer.update()
        now = trainer._distribution(trainer.actor.fast, *states).probs.detach().numpy()
        assert np.array_equal(probabilities()[-1], now)  # taken in as it is, in the learner's own arithmetic
    past, before = list(trainer.pool.past), probabilities()
    hashes = [digest(one.network) for one in past]
    assert len(set(hashes)) == 5 and [one.update for one in past] == [1, 2, 3, 4, 5]
    learner = digest(trainer.actor.network)
    assert learner == hashes[-1]
    trainer.config.pool.every = 0
    for _ in range(2):
        figures = trainer.update()
    assert figures["pool/past/share"] == 0.5
    assert digest(trainer.actor.network) != learner
    assert [digest(one.network) for one in past] == hashes and trainer.pool.past == past
    assert all(np.array_equal(a, b) for a, b in zip(before, probabilities()))
    assert not any(p.requires_grad for one in past for p in [*one.network.parameters(), *one.fast.parameters()])
    trainer.close()


def test_who_is_taken_in_and_who_goes() -> None:
    trainer = small({"share": 0.5, "every": 2, "keep": 2})
    for update in range(1, 9):
        trainer.pool.grow(update, trainer.actor)
    assert trainer.pool.names == ["past_6", "past_8"]
    trainer.close()
    spread = aged(PoolConfig(share=0.5, every=1, keep=4, drop="spread"), [10, 20, 30, 80])
    assert spread._superfluous() == 1  # between 10 and 30
    assert aged(PoolConfig(share=0.5, every=1), [10, 20, 30, 80])._superfluous() == 0
    assert aged(PoolConfig(share=0.5, every=1, drop="spread"), [10, 20])._superfluous() == 0


def test_past_selves_sample_or_play_the_likeliest() -> None:
    for sample in (True, False):
        trainer = small({"share": 1.0, "every": 1, "sample": sample})
        trainer.pool.grow(1, trainer.actor)
        rollout = trainer._play(0).rollout
        obs, legal = rollout.obs[:200], rollout.legal[:200]
        draws = [trainer._choose_past(0, obs, legal, np.full(200, uniform)) for uniform in (0.01, 0.99)]
        assert np.array_equal(draws[0], draws[1]) != sample
        with torch.no_grad():
            trainer.actor.flat.normal_()
        assert np.array_equal(trainer._choose_past(0, obs, legal, np.full(200, 0.01)), draws[0])
        trainer.close()


# -- who is met ------------------------------------------------------------------------------------------------------


def test_prioritised_weights_on_numbers_worked_by_hand() -> None:
    rates = np.array([0.5, 0.9, 0.1])
    assert prioritised(rates, "hard") == pytest.approx([0.25, 0.01, 0.81])
    assert prioritised(rates, "variance") == pytest.approx([0.25, 0.09, 0.09])
    pool = Pool(PoolConfig(share=0.5, members=["greedy", "club"], choice="hard", prior=20), RULES, 1)
    pool.counts = {"greedy": np.array([[80.0, 60.0, 0.0], [80.0, 10.0, 0.0]])}
    assert pool.win_rates(AGAINST) == pytest.approx([0.7, 0.5])  # (60 + 10) / 100; of club nothing is known
    assert pool.win_rates(WITH) == pytest.approx([0.2, 0.5])
    assert pool.probabilities(AGAINST) == pytest.approx([0.09 / 0.34, 0.25 / 0.34])
    assert pool.probabilities(WITH) == pytest.approx([0.64 / 0.89, 0.25 / 0.89])
    pool.config.weights = {"club": 0.5}
    assert pool.probabilities(AGAINST) == pytest.approx([0.09 / 0.215, 0.125 / 0.215])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"choice": "uniform"}, [1, 1, 1, 1]),
        ({"choice": "recency", "recency": 0.5}, [1, 0.25, 0.5, 1]),
        ({"choice": "uniform", "weights": {"greedy": 0.0, PAST: 2.0}}, [0, 1, 1, 1]),
        ({"choice": "hard"}, [0.25, 0.25, 0.04, 0.25]),
    ],
    ids=str,
)
def test_members_are_met_as_often_as_they_should_be(settings: dict[str, Any], expected: list[float]) -> None:
    pool = aged(PoolConfig(share=0.75, partner=0.25, members=["greedy"], every=1, prior=20, **settings), [3, 6, 9])
    pool.counts["past_6"] = np.array([[80.0, 70.0, 0.0]] * 2)  # (70 + 10) / 100 = 0.8
    seating = pool.seat(8000, np.random.default_rng(5))
    assert (seating.member != SELF).sum() == 6000 and seating.partner.sum() == 1500
    for way in (False, True):
        seen = np.bincount(seating.member[(seating.member != SELF) & (seating.partner == way)], minlength=4)
        want = np.array(expected) / sum(expected) * seen.sum()
        some = want > 0
        assert (seen[~some] == 0).all()
        assert stats.chisquare(seen[some], want[some]).pvalue > 1e-3
        assert stats.chisquare(seen[some], np.roll(want[some], 1) + 1e-9, sum_check=False).pvalue < 1e-3 or (
            len(set(expected)) < 3
        )


def test_seats_are_drawn_evenly_and_are_of_one_side() -> None:
    pool = Pool(PoolConfig(share=1.0, partner=0.5, members=["greedy"]), RULES, 1)
    seating = pool.seat(4000, np.random.default_rng(1))
    there = seating.who != SELF
    assert (there.sum(axis=1) == np.where(seating.partner, 1, 2)).all()
    sides = there[~seating.partner]
    assert (sides[:, 0] == sides[:, 2]).all() and (sides[:, 1] == sides[:, 3]).all()
    for seen in (there[seating.partner].sum(axis=0), [sides[:, 0].sum(), sides[:, 1].sum()]):
        assert stats.chisquare(seen).pvalue > 1e-3
    five = Pool(PoolConfig(share=1.0, members=["counter"]), get_rules("blitz", seats=5), 1)
    seats = five.seat(100, np.random.default_rng(1)).who != SELF
    assert set(seats.sum(axis=1).tolist()) == {2, 3}


def test_results_are_counted_in_the_learners_sign() -> None:
    config = PoolConfig(share=1.0, partner=0.5, members=["greedy", "club"], fade=0.5, prior=20)
    pool = Pool(config, RULES, 1)
    S = SELF
    who = np.array([[0, S, 0, S], [S, 0, S, 0], [S, 1, S, S], [S, S, S, 1], [S, S, S, S], [0, S, 0, S]])
    seating = Seating(who, np.array([0, 0, 1, 1, S, 0]), np.array([0, 0, 1, 1, 0, 0], bool))
    won = np.array([7, 5, 30, -4, 99, 0], np.float32)  # of the even seats
    rewards = np.stack([won, -won, won, -won], axis=1)
    figures = pool.count([(seating, rewards)])
    # greedy: it loses 7 at the even seats, so -7; the learner wins 5; a tie. club as partner of seats 3 and 1.
    assert pool.counts["greedy"][AGAINST] == pytest.approx([3, 1.5, -2])
    assert pool.counts["club"][WITH] == pytest.approx([2, 1, -26])
    assert pool.counts["greedy"][WITH].tolist() == pool.counts["club"][AGAINST].tolist() == [0, 0, 0]
    assert figures == pytest.approx(
        {
            "pool/greedy/share": 0.5, "pool/greedy/win_rate": 11.5 / 23, "pool/greedy/points_per_deal": -2 / 3,
            "pool/club/share": 2 / 6, "pool/club/win_rate": 0.5, "pool/club/partner_points_per_deal": -13,
        }
    )  # fmt: skip
    assert [check_tag(tag) for tag in figures]
    pool.count([(seating, rewards)])
    assert pool.counts["greedy"][AGAINST] == pytest.approx([4.5, 2.25, -3])  # what was before counts half


# -- at the tables ---------------------------------------------------------------------------------------------------


class Watched:
    """An agent that notes whom it was asked for: deals by key, seats, and how many actions were legal."""

    def __init__(self, agent: base.Agent) -> None:
        self.agent, self.name = agent, agent.name
        self.asked: list[tuple[int, int, int]] = []

    def act(self, batch: Decisions) -> np.ndarray:
        assert batch.key is not None and batch.table is None
        self.asked += zip(batch.key.tolist(), batch.seat.tolist(), (batch.mask != 0).sum(axis=1).tolist())
        return self.agent.act(batch)


@pytest.mark.parametrize("partner", [0.0, 1.0, 0.5])
def test_nobody_is_exchanged_and_only_the_learners_decisions_are_learned_from(partner: float) -> None:
    """B26, the second half: who sits down plays the deal to its end; each is asked at its own seats alone."""
    trainer = small({"share": 0.75, "partner": partner, "members": ["greedy", "club"], "every": 1})
    trainer.update()  # a past self is there too
    agents = [[Watched(agent) for agent in part] for part in trainer.pool.agents]
    trainer.pool.agents = agents  # type: ignore[assignment]
    chosen: list[tuple[int, int]] = []
    choose = trainer._choose_past
    trainer._choose_past = lambda number, obs, *rest: (  # type: ignore[method-assign]
        chosen.append((number, len(obs))), choose(number, obs, *rest)
    )[1]  # fmt: skip
    for part in range(2):
        chosen.clear()
        played = trainer._play(part)
        seating, rollout = played.seating, played.rollout
        assert (seating.member != SELF).sum() == 24 and set(seating.member.tolist()) == {SELF, 0, 1, 2}
        assert (seating.who[rollout.deal, rollout.seat] == SELF).all()
        plain = rollout.deal[seating.member[rollout.deal] == SELF]
        assert 10 < len(plain) / 8 < 20  # at the other tables all seats' decisions are there
        for number, watched in enumerate(agents[part]):
            deals = np.array([key for key, _, _ in watched.asked]) - (trainer.updates * 2 + part) * 2**20
            seats = np.array([seat for _, seat, _ in watched.asked])
            assert len(deals) > 20 and (seating.who[deals, seats] == number).all()
            assert min(legal for _, _, legal in watched.asked) > 1  # forced moves are nobody's decision
        assert {number for number, _ in chosen} == {2}
        decisions = len(rollout.action) + sum(len(w.asked) for w in agents[part]) + sum(n for _, n in chosen)
        assert 12 < decisions / 32 < 19
    trainer.close()


def parts_of(played: Played) -> tuple[Rollout, Seating, np.ndarray]:
    return played.rollout, played.seating, played.rewards


@pytest.mark.parametrize(
    ("game", "settings", "partner"),
    [
        ("sport_book", {}, 0.5), ("sport_book", {"advantage": "seat"}, 0.5),
        ("tiny_pairs", {"rule_overrides": {"seats": 2, "pairs": False}}, 0.0), ("blitz", {"advantage": "seat"}, 0.0),
    ],
)  # fmt: skip
def test_rewards_land_with_the_right_sign(game: str, settings: dict[str, Any], partner: float) -> None:
    """With lambda 1 and a critic of 0 every decision of the learner is worth what its own seat gets in the end."""
    trainer = small(
        {"share": 1.0, "partner": partner, "members": ["greedy"]}, rules=game, gae_lambda=1.0, **settings
    )  # fmt: skip
    trainer.critic.flat.zero_()
    trainer.critic.refresh()
    rollout, seating, rewards = parts_of(trainer._play(0))
    own = rewards[rollout.deal, rollout.seat] / trainer.config.reward_scale
    assert np.allclose(rollout.advantage, own, atol=1e-6) and np.allclose(rollout.target, own, atol=1e-6)
    assert (own > 0).any() and (own < 0).any() and (rewards.sum(axis=1) == 0).all()
    assert (seating.who[rollout.deal, rollout.seat] == SELF).all()
    trainer.close()


def test_advantages_at_a_table_with_guests_run_over_the_learners_decisions_alone() -> None:
    """With lambda 0 a decision is judged by the critic at the learner's next one, in the sign of the side."""
    trainer = small({"share": 1.0, "partner": 1.0, "members": ["greedy"]}, gae_lambda=0.0)
    rollout, _, rewards = parts_of(trainer._play(0))
    values = rollout.target - rollout.advantage
    for deal in range(8):
        rows = np.flatnonzero(rollout.deal == deal)
        for here, then in itertools.pairwise(rows):
            sign = 1 if (rollout.seat[here] - rollout.seat[then]) % 2 == 0 else -1
            assert rollout.target[here] == pytest.approx(sign * values[then], abs=1e-6)
        assert rollout.target[rows[-1]] * 20 == pytest.approx(rewards[deal, rollout.seat[rows[-1]]], abs=1e-4)
    trainer.close()


def test_without_a_share_all_is_as_it_was() -> None:
    plain = small()
    off = small({"share": 0.0, "members": ["greedy"], "every": 1})
    never = small({"share": 0.01, "members": ["greedy"]})  # of 32 tables a third of one
    for _ in range(2):
        for trainer in (plain, off, never):
            figures = trainer.update()
    assert figures["pool/greedy/share"] == 0
    for trainer in (off, never):
        assert same(plain.model(), trainer.model()) and same(plain.optimizer(), trainer.optimizer())
        assert trainer.memory() == {} and trainer.decisions == plain.decisions
    assert off.counters() == plain.counters() and "pool" not in plain.counters()
    with_guests = small({"share": 0.5, "members": ["greedy"]})
    with_guests.update()
    assert with_guests.decisions < plain.decisions
    for trainer in (plain, off, never, with_guests):
        trainer.close()


# -- keeping ---------------------------------------------------------------------------------------------------------

WORDS = [
    "deals=16", "minibatch=64", "hidden=[16]", "critic_hidden=[16]", "eval_boards=4", "evaluate_every=99",
    "opponents=[]", "threads=1", "dd_loss_boards=0", "keep_checkpoints=9", "total_updates=6", "pool.share=0.5",
    "pool.members=[greedy]", "pool.partner=0.25", "pool.every=1", "pool.keep=3", "pool.choice=hard", "precision=auto",
]  # fmt: skip
FILES = ("model", "optimizer", "memory")


def bytes_of(run: dict[str, Any]) -> list[bytes]:
    latest = Path(run["run"]) / "checkpoints" / "latest"
    return [(latest / f"{name}.safetensors").read_bytes() for name in FILES]


def test_resume_is_bit_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.train.SAMPLE_DEALS", 4)
    whole = train(None, [*WORDS, f"runs_dir={tmp_path}", "checkpoint_every=99"], None, json=True)
    half = train(None, [*WORDS, f"runs_dir={tmp_path}", "checkpoint_every=4"], None, json=True)
    before = bytes_of(half)
    assert before == bytes_of(whole)
    resumed = train(None, [], Path(half["run"]) / "checkpoints" / "00000004", json=True)
    assert resumed["updates"] == 6 and bytes_of(half) == before
    counts = [load_checkpoint(resolve(run["run"])).state["counters"]["pool"] for run in (whole, half)]
    assert counts[0] == counts[1] and counts[0].keys() == {"greedy", "past_4", "past_5"}  # past_6 has met nobody
    # Other members may be met from there on; what was counted of those that stay stays.
    other = train(None, ["total_updates=7", "pool.members=[club]", "pool.keep=2"], half["run"], json=True)
    assert other["updates"] == 7 and bytes_of(other) != before


def test_restoring_a_pool_says_what_is_wrong() -> None:
    trainer = small({"share": 0.5, "every": 1})
    trainer.update()
    counters, memory = trainer.counters(), {name: t.clone() for name, t in trainer.memory().items()}
    other = small({"share": 0.5, "every": 1})
    other.restore(counters, memory | {"replay.obs": torch.zeros(3)})
    assert same(other.memory(), memory) and other.counters() == counters
    other.restore({name: value for name, value in counters.items() if name != "pool"}, {})  # of before there were pools
    assert other.memory() == {} and other.pool.counts == {}
    with pytest.raises(ValueError, match=r"past self 1: head\.weight is missing"):
        other.restore(counters, {name: t for name, t in memory.items() if not name.endswith("head.weight")})
    with pytest.raises(ValueError, match="the counts of pool member past_1"):
        other.restore(counters | {"pool": {"past_1": [1, 2]}}, memory)
    trainer.close()
    other.close()


# -- members ---------------------------------------------------------------------------------------------------------


def trained(tmp_path: Path) -> str:
    trainer = small()
    trainer.update()
    state = {
        "config": dataclasses.asdict(trainer.config), "rules": describe_rules(trainer.rules),
        "policy": trainer.describe(), "counters": trainer.counters(),
    }  # fmt: skip
    folder = save(tmp_path / "checkpoints", 1, trainer.model(), trainer.optimizer(), state)
    trainer.close()
    return str(folder)


def test_search_players_and_checkpoints_play(tmp_path: Path) -> None:
    """As opponents and as partners."""
    pytest.importorskip("numba")
    folder = trained(tmp_path)
    members = ["pimc-2", f"lookahead:model={folder},worlds=2,candidates=4", folder]
    trainer = small({"share": 1.0, "partner": 0.5, "members": members}, deals=16)
    again = trainer._play(0)
    assert np.array_equal(trainer._play(0).rewards, again.rewards)  # searchers draw their chance by deal and ply
    figures = trainer.update()
    shares = [value for tag, value in figures.items() if tag.startswith("pool/") and tag.endswith("/share")]
    assert len(shares) == 3 and sum(shares) == pytest.approx(1) and min(shares) > 0
    for way in (AGAINST, WITH):
        assert sum(counts[way, 0] for counts in trainer.pool.counts.values()) == 8
    assert {"pool/pimc-2/win_rate", "pool/pimc-2/share"} < figures.keys() and [check_tag(tag) for tag in figures]
    trainer.close()


@pytest.mark.parametrize(
    ("settings", "member"),
    [
        ({"rules": "blitz"}, "counter"),
        ({"rules": "blind_blitz", "rule_overrides": {"memory": "peek"}, "deals": 16}, "memory"),
        ({"rules": "kozyol", "words": True}, "club"),
    ],
)
def test_other_games_have_pools(settings: dict[str, Any], member: str) -> None:
    trainer = small({"share": 0.5, "members": [member], "every": 1}, advantage="seat", **settings)
    for _ in range(2):
        figures = trainer.update()
    assert figures[f"pool/{member}/share"] > 0 and figures["pool/past/share"] > 0
    assert all(np.isfinite(value).all() for value in figures.values())
    trainer.close()


def test_who_is_shown_its_row_once_is_asked_then() -> None:
    """R9: also where only one action is legal, as in an evaluation."""
    trainer = small(
        {"share": 1.0, "members": ["memory"]}, rules="blind_blitz", rule_overrides={"memory": "peek"}, deals=16,
        advantage="seat",
    )  # fmt: skip
    watched = Watched(trainer.pool.agents[0][0])
    trainer.pool.agents[0][0] = watched
    trainer._play(0)
    first = {}
    for key, seat, legal in watched.asked:
        first.setdefault((key, seat), legal)
    assert 1 in first.values() and len(first) > 8
    trainer.close()


class Broken:
    """Refuses to play, or plays what is not there."""

    name = "broken"

    def __init__(self, how: str = "raise") -> None:
        self.how = how

    def act(self, batch: Decisions) -> Any:
        if self.how == "raise":
            raise RuntimeError("no\nmore")
        return np.full(len(batch), 56) if self.how == "illegal" else np.zeros(len(batch))


@pytest.mark.parametrize(
    ("pool", "settings", "key", "why"),
    [
        ({"share": 1.5, "members": ["greedy"]}, {}, "share", "must be in 0..1, got 1.5"),
        ({"share": 0.5}, {}, "share", "sits nobody"),
        ({"share": 0.5, "members": ["club"], "weights": {"club": 0.0}}, {}, "share", "sits nobody"),
        ({"share": 0.5, "every": 1, "partner": -0.1}, {}, "partner", "must be in 0..1"),
        ({"every": -1}, {}, "every", "negative"),
        ({"keep": 0}, {}, "keep", "at least 1"),
        ({"recency": 0.0}, {}, "recency", "above 0"),
        ({"prior": 0.0}, {}, "prior", "above 0"),
        ({"fade": 1.1}, {}, "fade", "in 0..1"),
        ({"members": ["greedy", "greedy"]}, {}, "members", "named once"),
        ({"members": ["past"]}, {}, "members", "what past selves are called"),
        ({"members": ["past_7"]}, {}, "members", "what past selves are called"),
        ({"members": ["greedy"], "weights": {"club": 1.0}}, {}, "weights", "'club' is no member; there are past, gre"),
        ({"members": ["greedy"], "weights": {"past": -1.0}}, {}, "weights", "negative"),
        ({"share": 0.5, "members": ["nobody"]}, {}, "pool.members", "unknown agent 'nobody'"),
        ({"share": 0.5, "members": ["memory"]}, {}, "pool.members", "memory"),
        ({"share": 0.5, "members": ["broken"]}, {}, "pool.members", "broken fails at a table of sport_book: no more"),
        ({"share": 0.5, "members": ["broken:how=illegal"]}, {}, "pool.members", "answered 56, which is not legal"),
        ({"share": 0.5, "members": ["broken:how=floats"]}, {}, "pool.members", "answered float64 (1,) to 1 decisions"),
        ({"share": 0.5, "every": 1}, {"deals": 8}, "pool.share", "at least 16 deals"),
        (
            {"share": 0.5, "every": 1, "partner": 0.5}, {"rules": "blitz", "advantage": "seat"}, "pool.partner",
            "each seat plays for itself",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_impossible_pools_are_refused_in_one_line(
    pool: dict[str, Any], settings: dict[str, Any], key: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_REGISTRY", copy.copy(base._REGISTRY))
    base.register_agent("broken", Broken, "plays badly")
    with pytest.raises(ValueError) as caught:
        PPOConfig(**{**SMALL, **settings}, pool=PoolConfig(**pool))
    assert caught.value.args[0] == key and why in caught.value.args[1] and "\n" not in caught.value.args[1]


def test_players_with_a_clock_are_refused() -> None:
    pytest.importorskip("numba")
    with pytest.raises(ValueError) as caught:
        PPOConfig(**SMALL, pool=PoolConfig(share=0.5, members=["pimc:ms=5"]))
    assert caught.value.args[0] == "pool.members" and "has a clock" in caught.value.args[1]


def test_the_command_line_names_the_key() -> None:
    with pytest.raises(ConfigError, match=r'"pool.members=\[nobody\]": pool.members: unknown agent'):
        load(None, ["pool.share=0.5", "pool.members=[nobody]"], PPOConfig)
    with pytest.raises(ConfigError, match=r'"pool.shar=0.5": unknown key "pool.shar"; did you mean "pool.share"'):
        load(None, ["pool.shar=0.5"], PPOConfig)


def test_the_shipped_config_is_valid() -> None:
    pytest.importorskip("numba")
    config = load(find("pool"), [], PPOConfig)
    assert config.pool.share > 0 and config.pool.partner > 0 and config.pool.every and "club" in config.pool.members


def test_ask_takes_no_answer_that_cannot_be_played() -> None:
    engine = make_engine("sport_book", 3, seed=0)
    with pytest.raises(ValueError, match="broken answered 56, which is not legal"):
        ask(Broken("illegal"), engine, Streams.of(0, np.arange(3)), np.arange(3))
