"""Networks, bits and the masked categorical (B01)."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from agents.base import decide
from agents.networks import (
    NETWORKS,
    RECURRENT,
    Dense,
    MaskedCategorical,
    Policy,
    PublicPrivate,
    make_actor,
    mirrored,
    straighten,
    to_bits,
    to_mask,
)
from agents.owner import Owners, add_head
from domino_env import get_rules, make_engine
from domino_env.decisions import Decisions
from domino_env.observation import layout_of
from domino_env.tiles import PASS

RULES = get_rules("sport_book")
LAYOUT = layout_of(RULES)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_masks(rows: int, actions: int = 57, seed: int = 0) -> torch.Tensor:
    """1 to `actions` legal actions a row, every number as likely."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, actions + 1, rows)
    return torch.from_numpy(rng.random((rows, actions)).argsort(axis=1).argsort(axis=1) < count[:, None])


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_b01_masked_categorical_at_any_logit_size(scale: float, dtype: torch.dtype) -> None:
    mask = random_masks(4096)
    raw = (torch.randn(4096, 57, generator=generator(1)) * scale).to(dtype)
    logits = raw.clone().requires_grad_()
    policy = MaskedCategorical(logits, mask)
    assert (policy.probs[~mask] == 0).all()
    assert (policy.probs.sum(1) - 1).abs().max() < 1e-6
    torch.distributions.Categorical(probs=policy.probs, validate_args=True)
    for seed in range(3):
        uniforms = torch.from_numpy(np.random.default_rng(seed).random(4096))
        assert mask.gather(1, policy.sample(uniforms)[:, None]).all()
    for edge in (0.0, 1 - 2**-53):
        assert mask.gather(1, policy.sample(torch.full((4096,), edge, dtype=torch.float64))[:, None]).all()
    assert mask.gather(1, policy.mode()[:, None]).all()
    entropy = policy.entropy()
    assert entropy.isfinite().all() and (entropy >= 0).all()
    single = mask.sum(1) == 1
    assert single.any()
    only = mask[single].to(torch.uint8).argmax(1)
    chosen = mask.to(torch.uint8).argmax(1)
    assert (policy.log_prob(chosen)[single] == 0).all() and (entropy[single] == 0).all()
    assert (policy.mode()[single] == only).all()
    (policy.log_prob(chosen).clamp(min=-1e4).sum() + entropy.sum()).backward()
    assert logits.grad is not None and logits.grad.isfinite().all()
    assert (logits.grad[~mask] == 0).all()


@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
def test_b01_equal_logits_have_entropy_ln_k(size: float) -> None:
    mask = torch.zeros(57, 57, dtype=torch.bool)
    for k in range(57):
        mask[k, : k + 1] = True
    entropy = MaskedCategorical(torch.full((57, 57), size), mask).entropy()
    assert torch.allclose(entropy, torch.arange(1, 58).float().log(), atol=1e-5)
    assert entropy[2].item() == pytest.approx(1.098612, abs=1e-6)


def test_sampling_follows_the_probabilities() -> None:
    mask = torch.tensor([[True, False, True, True]])
    policy = MaskedCategorical(
        torch.tensor([[0.0, 50.0, math.log(2), math.log(5)]]).expand(80_000, 4), mask.expand(80_000, 4)
    )
    uniforms = torch.from_numpy((np.arange(80_000) + 0.5) / 80_000)
    counts = torch.bincount(policy.sample(uniforms), minlength=4)
    assert counts.tolist() == [10_000, 0, 20_000, 50_000]


def test_log_prob_and_entropy_agree_with_torch_distributions() -> None:
    mask = random_masks(512, seed=3)
    logits = torch.randn(512, 57, generator=generator(2))
    ours = MaskedCategorical(logits, mask)
    theirs = torch.distributions.Categorical(logits=logits.masked_fill(~mask, -1e30))
    action = ours.mode()
    assert torch.allclose(ours.log_prob(action), theirs.log_prob(action), atol=1e-6)
    finite = torch.where(mask, theirs.logits, 0.0)
    assert torch.allclose(ours.entropy(), -(theirs.probs * finite).sum(1), atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bits_and_masks_are_those_of_the_engine(dtype: torch.dtype) -> None:
    engine = make_engine(RULES, 64, seed=3)
    rng = np.random.default_rng(0)
    for _ in range(9):
        engine.step(engine.sample_legal(rng))
    bits = to_bits(engine.observe(packed=True), dtype)
    assert bits.dtype == dtype
    assert np.array_equal(bits.float().numpy(), engine.observe())
    assert np.array_equal(to_mask(engine.legal_bits(), 57).numpy(), engine.legal() == 1)


@pytest.mark.parametrize("rectified", [False, True])
def test_dense_has_the_gradients_of_a_linear_layer(rectified: bool) -> None:
    layer = Dense(11, 7, rectified, 1.0, generator()).double()
    with torch.no_grad():
        layer.bias.copy_(torch.randn(7, generator=generator(4), dtype=torch.float64))
    x = torch.randn(5, 11, dtype=torch.float64, generator=generator(5), requires_grad=True)
    assert torch.autograd.gradcheck(lambda *inputs: layer(inputs[0]), (x, layer.weight, layer.bias))


@pytest.mark.parametrize("kind", ["mlp", "public_private"])
def test_the_same_seed_gives_the_same_network(kind: str) -> None:
    x = (torch.rand(9, LAYOUT.size, generator=generator(1)) < 0.3).float()
    one, two, other = (make_actor(kind, RULES, [32, 32], generator(seed))(x) for seed in (7, 7, 8))
    assert one.shape == (9, 57) and torch.equal(one, two) and not torch.equal(one, other)


def test_unknown_network_names_the_choices() -> None:
    with pytest.raises(ValueError, match="'lstm'; choose from mlp, public_private, gru, gru_public_private"):
        make_actor("lstm", RULES, [8], generator())


def test_public_branch_does_not_see_the_own_hand() -> None:
    net = make_actor("public_private", RULES, [32, 32], generator())
    assert isinstance(net, PublicPrivate)
    x = (torch.rand(9, LAYOUT.size, generator=generator(1)) < 0.3).float()
    other = x.clone()
    other[:, LAYOUT.slices["hand"]] = 1 - other[:, LAYOUT.slices["hand"]]
    assert torch.equal(net.public(x), net.public(other))
    hand = x[:, LAYOUT.slices["hand"]]
    assert torch.allclose(net.join(net.public(x), net.private(hand)), net(x))
    # What it is for: many hands on one public position.
    hands = other[:, LAYOUT.slices["hand"]]
    assert torch.allclose(net.join(net.public(x[:1]), net.private(hands))[:1], net(other[:1]), atol=1e-5)
    assert not torch.equal(net(x), net(other))


# -- Policy ----------------------------------------------------------------------------------------------------------


def questions(rows: int = 300, seed: int = 5) -> Decisions:
    """Mid-deal decisions of many rows."""
    engine = make_engine(RULES, rows, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(7):
        engine.step(engine.sample_legal(rng))
    return Decisions(
        obs=engine.observe(), mask=engine.legal(), seat=engine.to_move(), rng=np.random.default_rng(1), rules=RULES
    )


def take(batch: Decisions, rows: np.ndarray) -> Decisions:
    return dataclasses.replace(batch, obs=batch.obs[rows], mask=batch.mask[rows], seat=batch.seat[rows])


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("kind", ["mlp", "public_private"])
def test_policy_plays_legal_actions_by_its_probabilities(kind: str, sample: bool) -> None:
    batch = questions()
    policy = Policy(make_actor(kind, RULES, [64, 64], generator()), RULES, sample=sample)
    action = policy.act(batch)
    assert action.dtype == np.int64 and action.shape == (300,)
    rows = np.arange(300)
    assert (batch.mask[rows, action] == 1).all()
    probabilities = policy.probabilities(batch)
    assert probabilities.shape == (300, 57) and probabilities.dtype == np.float32
    assert (probabilities[batch.mask == 0] == 0).all() and np.allclose(probabilities.sum(1), 1, atol=1e-6)
    if not sample:
        assert (probabilities[rows, action] == probabilities.max(1)).all()


def test_policy_does_not_depend_on_the_batch() -> None:
    batch = questions(700)
    policy = Policy(make_actor("mlp", RULES, [128, 128], generator()), RULES)
    whole = policy.probabilities(batch)
    order = np.random.default_rng(0).permutation(700)
    assert np.array_equal(policy.probabilities(take(batch, order)), whole[order])
    for size in (1, 3, 255, 257):
        assert np.array_equal(policy.probabilities(take(batch, np.arange(size))), whole[:size])


def test_policy_refuses_other_rules_and_sampling_without_chance() -> None:
    batch = questions(3)
    policy = Policy(make_actor("mlp", RULES, [8], generator()), RULES, "pupil")
    with pytest.raises(ValueError, match=r"pupil was trained for .*sport_book.*, not for .*sport_club"):
        policy.act(dataclasses.replace(batch, rules=get_rules("sport_club")))
    policy.sample = True
    with pytest.raises(ValueError, match="rng"):
        policy.act(dataclasses.replace(batch, rng=None))


def test_policy_answers_an_empty_batch() -> None:
    policy = Policy(make_actor("mlp", RULES, [8], generator()), RULES)
    assert policy.act(take(questions(3), np.arange(0))).shape == (0,)


@pytest.mark.parametrize(
    ("name", "overrides"),
    [("blitz", {"seats": 6}), ("blitz", {"chain": "one"}), ("blind_blitz", {}), ("blind", {"seats": 2})],
    ids=str,
)
def test_policy_plays_every_game_to_its_end(name: str, overrides: dict[str, Any]) -> None:
    rules = get_rules(name, **overrides)
    engine = make_engine(rules, 20, seed=1)
    policy = Policy(make_actor("mlp", rules, [32], generator()), rules, sample=True)
    rng = np.random.default_rng(1)
    for ply in range(150):
        batch = Decisions(engine.observe(), engine.legal(), engine.to_move(), rng=rng, rules=rules)
        if ply % 10 == 9:
            probabilities = policy.probabilities(batch)
            assert probabilities.shape == (20, rules.num_actions) and (probabilities[batch.mask == 0] == 0).all()
        engine.step(policy.act(batch))
    assert (engine.deal_index() > np.arange(20) % 4).mean() > 0.5


def test_a_blind_game_has_no_hand_for_the_private_branch() -> None:
    with pytest.raises(ValueError, match="public_private needs a hand, and blind has none; choose mlp"):
        make_actor("public_private", get_rules("blind"), [8], generator())


# -- the mirror of the line ------------------------------------------------------------------------------------------


def mirror(batch: Decisions) -> Decisions:
    """The same decisions on the mirrored line."""
    obs, mask = batch.obs.copy(), batch.mask.copy()
    left, right = LAYOUT.slices["end_left"], LAYOUT.slices["end_right"]
    obs[:, left], obs[:, right] = batch.obs[:, right], batch.obs[:, left]
    mask[:, :28], mask[:, 28:56] = batch.mask[:, 28:56], batch.mask[:, :28]
    return dataclasses.replace(batch, obs=obs, mask=mask, rng=np.random.default_rng(1))


def test_straightened_lines_have_the_smaller_end_on_the_left() -> None:
    batch = questions()
    packed = np.packbits(batch.obs, axis=1, bitorder="little")
    legal = np.zeros((300, 8), np.uint8)
    legal[:] = np.packbits(batch.mask, axis=1, bitorder="little")
    before = packed.copy()
    obs, words, flipped = straighten(packed, legal.view("<u8")[:, 0], LAYOUT)
    assert np.array_equal(packed, before) and 0.2 < flipped.mean() < 0.8
    want = mirror(batch)
    bits, mask = to_bits(obs, torch.float32).numpy(), to_mask(words, 57).numpy()
    assert np.array_equal(bits, np.where(flipped[:, None], want.obs, batch.obs))
    assert np.array_equal(mask, np.where(flipped[:, None], want.mask, batch.mask) == 1)
    assert (bits[:, LAYOUT.slices["end_left"]].argmax(1) <= bits[:, LAYOUT.slices["end_right"]].argmax(1)).all()
    assert mirrored(np.array([0, 27, 28, 55, 56, 3]), np.array([1, 1, 1, 1, 1, 0], bool)).tolist() == [
        28,
        55,
        0,
        27,
        56,
        3,
    ]


@pytest.mark.parametrize(("name", "overrides"), [("blitz", {"chain": "one"}), ("blind_blitz", {})], ids=str)
def test_straightening_exchanges_ends_lays_and_what_the_turn_grew(name: str, overrides: dict[str, Any]) -> None:
    """B3: with `chain="one"` the grown end is turned along; to stop, turn and draw lie at no end (R4, R5)."""
    engine = make_engine(name, 400, seed=2, **overrides)
    rng = np.random.default_rng(2)
    names = ("end_left", "end_right") if name == "blind_blitz" else ("end_left", "end_right", "grown")
    layout, seen = engine.layout, dict.fromkeys(names, 0)
    for _ in range(12):
        engine.step(engine.sample_legal(rng))
        obs, legal, flipped = straighten(engine.observe(packed=True), engine.legal_bits(), layout)
        before, after = engine.observe(), to_bits(obs, torch.float32).numpy()
        left, right = layout.slices["end_left"], layout.slices["end_right"]
        want = before.copy()
        want[np.ix_(flipped, range(left.start, right.stop))] = np.roll(
            before[flipped, left.start : right.stop], 7, axis=1
        )
        if "grown" in names:
            want[flipped, layout.slices["grown"]] = before[flipped, layout.slices["grown"]][:, ::-1]
        assert np.array_equal(after, want)
        for one in names:
            seen[one] += int((after != before)[:, layout.slices[one]].any(axis=1).sum())
        mask, turned = engine.legal() == 1, to_mask(legal, engine.num_actions).numpy()
        assert np.array_equal(turned[:, 56:], mask[:, 56:]) and np.array_equal(turned[~flipped], mask[~flipped])
        assert np.array_equal(turned[flipped, :28], mask[flipped, 28:56])
        assert np.array_equal(turned[flipped, 28:56], mask[flipped, :28])
    assert min(seen.values()) > 50
    every = np.arange(56, engine.num_actions)
    assert np.array_equal(mirrored(every, np.ones(len(every), bool)), every)


@pytest.mark.parametrize("sample", [False, True])
def test_a_policy_plays_the_mirrored_line_alike(sample: bool) -> None:
    batch = questions()
    other = mirror(batch)
    policy = Policy(make_actor("mlp", RULES, [64], generator()), RULES, sample=sample)
    ends = batch.obs[:, LAYOUT.slices["end_left"]] != batch.obs[:, LAYOUT.slices["end_right"]]
    unequal = ends.any(axis=1)
    assert np.array_equal(mirrored(policy.act(batch), unequal)[unequal], policy.act(other)[unequal])
    swapped = policy.probabilities(other)
    assert np.array_equal(policy.probabilities(batch)[unequal, :28], swapped[unequal, 28:56])
    assert np.array_equal(policy.probabilities(batch)[unequal, 28:56], swapped[unequal, :28])


# -- what must not be seen -------------------------------------------------------------------------------------------


def redealt(plies: int, rows: int = 200, seed: int = 3) -> tuple[Any, Any]:
    """Two engines after the same public moves, passes too: in the other one, what the others hold has changed hands."""
    rng = np.random.default_rng(seed)
    engine = make_engine(RULES, rows, seed=seed)
    dealt, leader = engine.hands(), engine.leader()
    moves: list[np.ndarray] = []
    for _ in range(plies):
        moves.append(engine.sample_legal(rng))
        engine.step(moves[-1], autoreset=False)
    now, each = engine.hands(), np.arange(rows)
    for _ in range(4):  # exchanges between two of the others, as many as both hold
        first, second = ((engine.to_move() + rng.permuted(np.tile([1, 2, 3], (rows, 1)), axis=1)[:, :2].T) % 4).tolist()
        for row, one, two in zip(each, first, second):
            a, b = ([t for t in range(28) if int(now[row, seat]) >> t & 1] for seat in (one, two))
            for x, y in zip(rng.permutation(a)[:1].tolist(), rng.permutation(b)[:1].tolist()):
                for hands in (now, dealt):
                    hands[row, one] ^= np.uint32(1 << x | 1 << y)
                    hands[row, two] ^= np.uint32(1 << x | 1 << y)
    other, kept = make_engine(RULES, rows), each
    other.deal(dealt, leader)
    for move in moves:  # rows go in which a move is not to be made, or a pass would be none
        can = (other.legal_bits() >> move[kept].astype(np.uint64) & np.uint64(1)) == 1
        other, kept = other.take(can), kept[can]
        other.step(move[kept], autoreset=False)
    return engine.take(kept), other


@pytest.mark.parametrize("kind", NETWORKS)
def test_what_a_policy_says_does_not_hang_on_hidden_hands(kind: str) -> None:
    """With words, choices, the memory of the deal, and who holds what: all of it is read off what everyone saw."""
    network = make_actor(kind, RULES, [24], generator(), True, 8 if kind in RECURRENT else 0, True)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator(1)), alpha=0.2)
    if kind not in RECURRENT:
        add_head(network, RULES, 24, generator(2))
    policy = Policy(network.requires_grad_(False), RULES, words=True, choices=True)
    for plies in (5, 13):
        engine, other = redealt(plies)
        assert (engine.hands() != other.hands()).any(axis=1).mean() > 0.8 and engine.num_envs > 50
        assert plies == 5 or (engine.history() & 63 == PASS).any(axis=1).mean() > 0.1
        ours, theirs = (decide(one, policy) for one in (engine, other))
        assert np.array_equal(policy.probabilities(ours), policy.probabilities(theirs))
        if kind not in RECURRENT:
            assert np.array_equal(Owners(policy).probabilities(ours), Owners(policy).probabilities(theirs))
