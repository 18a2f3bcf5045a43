"""PPO: the objective, the advantages, and what may and may not change a run."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
import torch

from agents.base import decide
from agents.buffers import Rollout, gae, join
from agents.networks import MaskedCategorical, straighten, to_bits, to_mask
from agents.ppo import PPOConfig, Trainer, surrogate
from agents.rollout import Tally, deal_figures
from domino_env import get_rules, make_engine
from domino_env.choices import packed as choices_of
from domino_env.observation import unpack
from domino_env.rules import Rules
from domino_env.tiles import PASS
from domino_env.words import features

SMALL: dict[str, Any] = {
    "deals": 64, "minibatch": 256, "hidden": [32, 32], "critic_hidden": [32], "total_updates": 8,
    "precision": "float32", "opponents": [],
}  # fmt: skip

#: Games in which each seat plays for itself, and a turn may have several actions.
NEW: list[tuple[str, dict[str, Any]]] = [
    ("blitz", {}), ("blitz", {"seats": 5, "chain": "one"}), ("blitz", {"seats": 8}),
    ("blind_blitz", {"seats": 2}), ("blind", {"seats": 3}), ("blind", {}),
]  # fmt: skip


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


@pytest.mark.parametrize("alternatives", [False, True])
def test_b02_the_mask_and_the_network_are_the_same_when_learning(alternatives: bool) -> None:
    trainer = small(epochs=1, minibatch=2048, alternatives=alternatives)
    rollout = played(trainer)
    with torch.no_grad():
        policy = MaskedCategorical(trainer.actor.fast(to_bits(rollout.obs, torch.float32)), to_mask(rollout.legal, 57))
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
    assert rollout.obs.dtype == np.uint8 and rollout.obs.shape[1] == 32 + 24  # and the choices
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
    part = trainer._play(0)
    rollout = part.rollout
    assert np.abs(rollout.target * 20 - part.rewards[rollout.deal, rollout.seat]).max() < 1e-4
    assert (np.bincount(rollout.seat, minlength=4) > 0).all() and (part.rewards != 0).any(axis=0).all()
    trainer.close()


def test_the_hands_the_critic_sees_are_those_of_the_others_clockwise() -> None:
    trainer = small()
    rollout = trainer._play(0).rollout
    bits = unpack(rollout.obs[:, :32])
    slices = trainer.layout.slices
    hands = np.unpackbits(rollout.hidden, axis=1, bitorder="little").reshape(len(bits), 3, 32)[:, :, :28]
    for place, who in enumerate(("left", "partner", "right")):
        assert np.array_equal(hands[:, place].sum(axis=1), bits[:, slices[f"size_{who}"]].sum(axis=1))
    played = sum(bits[:, slices[f"played_{who}"]] for who in ("me", "left", "partner", "right"))
    assert (hands.sum(axis=1) + bits[:, slices["hand"]] + played == 1).all()  # every tile is in one place
    seats = [rollout.seat == seat for seat in range(4)]
    assert all(seat.any() for seat in seats)
    trainer.close()


@pytest.mark.parametrize(("name", "overrides"), NEW, ids=str)
def test_targets_of_a_seat_lead_to_its_own_reward(name: str, overrides: dict[str, Any]) -> None:
    """A turn of several actions, and deals of two to eight seats (B3, B5, R6): with lambda 1 every decision of a seat
    is judged by what that seat gets at the end of the deal, and nobody's reward is left over."""
    deals = 32 if name.startswith("blind") else 128
    trainer = small(rules=name, rule_overrides=overrides, advantage="seat", gae_lambda=1.0, deals=deals)
    rollout = trainer._play(0).rollout
    seats = trainer.rules.seats
    points = np.full((trainer.config.deals // 2, seats), np.nan)
    again = 0
    for deal in range(len(points)):
        rows = np.flatnonzero(rollout.deal == deal)
        again += int((np.diff(rollout.seat[rows]) == 0).sum())
        for seat in range(seats):
            target = rollout.target[rows[rollout.seat[rows] == seat]] * trainer.config.reward_scale
            assert np.allclose(target, np.round(target[:1]), atol=1e-3)
            points[deal, seat] = np.round(target[0]) if len(target) else np.nan
    assert again > 0  # decisions of one seat after each other: the mover is not told from the plies
    whole = points[~np.isnan(points).any(axis=1)]
    assert len(whole) and (whole.sum(axis=1) == 0).all() and np.abs(whole).max() > 10
    trainer.close()


def counted(rules: Rules, deals: int, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """Random play: the figures as the trainer counts them, and the same counted deal by deal in plain Python."""
    engine = make_engine(rules, deals, seed=seed)
    rng = np.random.default_rng(seed)
    tally = Tally(deals)
    moves: list[list[tuple[int, int]]] = [[] for _ in range(deals)]
    live, points, ended = np.arange(deals), 0.0, [0, 0, 0]
    while len(live):
        actions, seats = engine.sample_legal(rng), engine.to_move()
        for row, action, seat in zip(live.tolist(), actions.tolist(), seats.tolist()):
            moves[row].append((seat, action))
        _, done = engine.step(actions, autoreset=False)
        tally.count(actions, engine.to_move() != seats, engine.finished)
        for j in range(len(engine.finished)):
            info = engine.finished.info(j)
            ended[["out", "block", "guard"].index(info["outcome"])] += 1
            side = info["points"]
            points += abs(side[0] - side[1]) if rules.pairs else max(side)
        tally.keep(np.flatnonzero(~done))
        live = live[~done]
        if len(live):
            engine = engine.take(~done)
    lays = passes = rolls = 0
    for deal in moves:
        turns: list[list[int]] = []
        last = None
        for seat, action in deal:
            if seat != last:
                turns.append([])
            turns[-1].append(action)
            last = seat
        laid = [any(action < PASS for action in turn) for turn in turns]
        lays += sum(action < PASS for _, action in deal)
        passes += sum(turn[-1] == PASS and not any_laid for turn, any_laid in zip(turns, laid))
        rolls += sum(one and not two for one, two in itertools.pairwise(laid))
    total = sum(map(len, moves))
    plain = {
        "charts/episodic_length": total / deals, "domino/pass_rate": passes / total, "domino/rolled_rate": rolls / lays,
        "domino/points": points / deals, "domino/out_rate": ended[0] / deals, "domino/block_rate": ended[1] / deals,
    } | ({"domino/guard_rate": ended[2] / deals} if rules.rows else {})  # fmt: skip
    return deal_figures(rules, [tally]), plain


@pytest.mark.parametrize(("name", "overrides"), [("sport_club", {}), ("blitz", {"pairs": True}), *NEW], ids=str)
def test_the_figures_of_the_deals_are_those_counted_by_hand(name: str, overrides: dict[str, Any]) -> None:
    """56 after a lay of the same turn is a stop and no pass (B3, R6); rolled is who then lays nothing in its turn."""
    figures, plain = counted(get_rules(name, **overrides), 40, 3)
    assert figures.pop("charts/episodic_return") == 0  # of the leaders' rewards, which are not counted here
    assert figures == pytest.approx(plain)
    assert 0 < plain["domino/rolled_rate"] < 1 and 0 < plain["domino/pass_rate"] < 0.5


def test_guard__deals_broken_off_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """R8: neither out nor block, and nobody scores."""
    monkeypatch.setattr("domino_env.rows.GUARD_TURNS", 6)
    figures, plain = counted(get_rules("blind"), 30, 1)
    assert figures["domino/guard_rate"] == plain["domino/guard_rate"] > 0.5
    assert figures["domino/out_rate"] + figures["domino/block_rate"] + figures["domino/guard_rate"] == pytest.approx(1)
    trainer = small(rules="blind", advantage="seat", deals=16)
    assert trainer.update()["domino/guard_rate"] > 0.5
    trainer.close()


@pytest.mark.parametrize(("words", "choices"), [(True, False), (False, True), (True, True)])
def test_words_and_choices_are_read_beside_the_observation(words: bool, choices: bool) -> None:
    """What the trainer shows the actor while playing is what the policy reads off the history at the table."""
    trainer = small(words=words, choices=choices)
    trainer.update()
    rules, policy = trainer.rules, trainer.policy()
    engine = make_engine(rules, 200, seed=4)
    rng = np.random.default_rng(4)
    for _ in range(9):
        engine.step(engine.sample_legal(rng))
    assert policy.needs_history and not small(choices=False).policy().needs_history
    batch = decide(engine, policy)
    obs, legal, _ = straighten(engine.observe(packed=True), engine.legal_bits(), trainer.layout)
    more = [np.zeros((len(obs), 0), np.uint8)]
    if words:
        bits = features(engine.history(), rules, (engine.leader() - engine.to_move()) % 4)
        more.append(np.packbits(bits, axis=1, bitorder="little"))
    if choices:
        more.append(choices_of(engine.history()))
    assert all(part.any() for part in more[1:])
    shown = np.concatenate([obs, *more], axis=1)
    assert rollout_width(trainer) == shown.shape[1]
    with torch.no_grad():
        logits = trainer.actor.network(to_bits(shown, torch.float32))
        other = trainer.actor.network(to_bits(np.concatenate([obs, 0 * shown[:, 32:]], axis=1), torch.float32))
    free = np.bitwise_count(legal) > 1
    probs = MaskedCategorical(logits, to_mask(legal, 57)).probs.numpy()
    assert np.allclose(np.sort(policy.probabilities(batch)[free]), np.sort(probs[free]), atol=1e-5)
    assert not torch.equal(logits, other)
    with pytest.raises(ValueError, match=r"reads the history of the deal: it needs batch\.history"):
        policy.act(dataclasses.replace(batch, history=None))
    trainer.close()


def rollout_width(trainer: Trainer) -> int:
    return played(trainer).obs.shape[1]


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
        seen = trainer._seen(engine, engine.legal_bits(), rows, engine.leader())
        every = trainer._seen(other, other.legal_bits(), np.arange(len(rows)), other.leader())
        chosen = trainer._choose(seen[0], seen[1], uniforms)
        again = trainer._choose(every[0], every[1], uniforms)
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
        {"rules": "sport_book", "words": True},
        {"rules": "blitz", "rule_overrides": {"seats": 8}, "advantage": "seat"},
        {"rules": "blitz", "rule_overrides": {"pairs": True, "chain": "one"}, "network": "public_private"},
        {"rules": "blind_blitz", "rule_overrides": {"seats": 2}, "deals": 16},
        {"rules": "blind_blitz", "rule_overrides": {"memory": "peek"}, "advantage": "seat", "words": True, "deals": 16},
        {"rules": "blind", "rule_overrides": {"seats": 3}, "advantage": "seat", "precision": "bf16", "deals": 16},
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
    second.restore(counters, first.memory())
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
    trainer = small(
        total_updates=4, learning_rate=1e-3, learning_rate_end=1e-4, entropy_coef=0.09, entropy_coef_end=0.01
    )
    figures = [trainer.update() for _ in range(4)]
    assert [one["charts/learning_rate"] for one in figures] == pytest.approx([1e-3, 7.75e-4, 5.5e-4, 3.25e-4])
    assert [one["charts/entropy_coef"] for one in figures] == pytest.approx([0.09, 0.07, 0.05, 0.03])
    assert trainer.progress == 1 and trainer.elapsed == 4
    trainer.close()
    trainer = small(total_updates=None, total_minutes=3.0)
    trainer.spend(60.0, 40.0)  # two threads: half a minute of three
    assert trainer.progress == pytest.approx(1 / 6) and trainer.elapsed == pytest.approx(0.5)
    resumed = small(total_updates=None, total_minutes=3.0, threads=1)
    resumed.restore(trainer.counters(), {})
    assert resumed.elapsed == pytest.approx(0.5), "what is behind us stays, whatever threads a resume has"
    resumed.spend(60.0, 60.0)
    assert resumed.elapsed == pytest.approx(1.5) and resumed.cpu_seconds == 120 and resumed.seconds == 100
    old = {key: value for key, value in trainer.counters().items() if key != "minutes"}
    resumed.restore(old, {})
    assert resumed.elapsed == pytest.approx(1.0), "a run of before that was counted"
    resumed.close()
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
        ({"rules": "blitz", "opponents": []}, "advantage"),
        ({"rules": "blitz", "rule_overrides": {"seats": 9}}, "rule_overrides"),
        ({"rules": "blitz", "advantage": "seat"}, "opponents"),  # club is of the line games
        ({"rules": "blind", "advantage": "seat", "network": "public_private", "opponents": []}, "network"),
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


@pytest.mark.parametrize("deaf", [0.0, 0.5])
def test_rollouts_are_joined_in_order(deaf: float) -> None:
    trainer = small(deaf=deaf)
    parts = [trainer._play(part).rollout for part in range(2)]
    joined = join(parts)
    for field in dataclasses.fields(Rollout):
        found, wanted = getattr(joined, field.name), [getattr(part, field.name) for part in parts]
        if field.name == "whole" and not deaf:
            assert found is None and wanted == [None, None]
        else:
            assert np.array_equal(found, np.concatenate(wanted))
    trainer.close()
