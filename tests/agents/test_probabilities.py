"""`probabilities(decisions)` of every agent that has it, and the quick way by which a network reads supposed hands."""

from typing import Any

import numpy as np
import pytest

from agents.base import decide, has_probabilities, list_agents, make_agent, need_probabilities
from domino_env import get_rules, make_engine
from domino_env.deals import Streams
from domino_env.tiles import NUM_TILES

LINE = ["sport_book", "sport_club", "puerto_rico", "kozyol", "tiny_pairs"]
PLAYS = {  # agent -> games
    "random": [*LINE, "blitz", "blind_blitz", "blind"],
    "greedy": [*LINE, "blitz", "blind_blitz", "blind"],
    "double_first": [*LINE, "blitz", "blind_blitz", "blind"],
    "club": LINE,
    "counter": ["blitz"],
    "memory": ["blind_blitz", "blind"],
}


def batches(rules: Any, agent: Any, rows: int = 48, steps: int = 25, seed: int = 2):
    """Questions of many plies, put by random play."""
    engine = make_engine(rules, rows, seed=seed)
    rng = Streams.of(seed, np.arange(rows))
    for _ in range(steps):
        yield decide(engine, agent, rng)
        engine.step(engine.sample_legal(np.random.default_rng(seed)))


@pytest.mark.parametrize(("name", "game"), [(name, game) for name, games in PLAYS.items() for game in games])
def test_probabilities_are_those_of_the_play(name: str, game: str) -> None:
    agent: Any = make_agent(name, game)
    seen = 0
    for batch in batches(game, agent):
        p = agent.probabilities(batch)
        assert p.shape == batch.mask.shape and p.dtype == np.float64
        assert (p[batch.mask == 0] == 0).all() and np.allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
        if name == "random":
            assert np.array_equal(p[batch.mask == 1], (1 / batch.mask.sum(axis=1))[np.nonzero(batch.mask)[0]])
        else:
            assert np.array_equal(p.argmax(axis=1), agent.act(batch)) and (p.max(axis=1) == 1).all()
        seen += int((batch.mask.sum(axis=1) > 1).sum())
    assert seen > 100


def test_the_random_player_draws_by_its_probabilities() -> None:
    agent: Any = make_agent("random")
    engine = make_engine("sport_book", 1, seed=0).take(np.zeros(7000, np.int64))
    batch = decide(engine, agent, np.random.default_rng(0))
    count = np.bincount(agent.act(batch), minlength=57) / 7000
    assert np.abs(count - agent.probabilities(batch)[0]).max() < 0.02


def test_who_has_probabilities() -> None:
    class Mute:
        name = "mute"

        def act(self, batch: Any, /) -> Any:
            return batch.mask.argmax(axis=1)

    assert not has_probabilities(Mute())
    with pytest.raises(ValueError, match="agent mute has no probabilities: "):
        need_probabilities(Mute())
    for name in PLAYS:
        need_probabilities(make_agent(name))
    assert set(PLAYS) <= {name for name, _ in list_agents()}


def test_a_player_that_remembers_its_row_has_none_there() -> None:
    agent: Any = make_agent("memory")
    with pytest.raises(ValueError, match="peek"):
        agent.probabilities(next(batches(get_rules("blind_blitz", memory="peek"), agent)))
    rules = get_rules("blind", memory="peek")  # nobody has looked: there is nothing to remember
    batch = next(batches(rules, agent))
    assert np.array_equal(agent.probabilities(batch).argmax(axis=1), agent.act(batch))


NETWORKS = [
    ("mlp", "sport_book", False),
    ("public_private", "sport_book", False),
    ("mlp", "tiny_pairs", True),
    ("public_private", "blitz", True),
    ("mlp", "blitz", False),
]


def network(kind: str, rules: Any, words: bool, seed: int = 0, hidden: tuple[int, ...] = (48, 48), scale: float = 60):
    """A network whose preferences are marked: a fresh one's are nearly equal."""
    torch = pytest.importorskip("torch")
    networks = pytest.importorskip("agents.networks")
    actor = networks.make_actor(kind, rules, list(hidden), torch.Generator().manual_seed(seed), words)
    with torch.no_grad():
        actor.head.weight.mul_(scale)
    return networks.Policy(actor, rules, sample=True, words=words)


@pytest.mark.parametrize(("kind", "game", "words"), NETWORKS)
def test_a_network_reads_supposed_hands_as_it_reads_its_own(kind: str, game: str, words: bool) -> None:
    rules = get_rules(game)
    policy = network(kind, rules, words)
    rng, marked = np.random.default_rng(3), False
    for batch in batches(rules, policy, rows=20, steps=6):
        p = policy.probabilities(batch)
        marked |= p[batch.mask == 1].std() > 0.05
        which, actions = np.nonzero(batch.mask)
        order = rng.permutation(len(which))
        which, actions = which[order], actions[order]
        legal = np.packbits(batch.mask != 0, axis=1, bitorder="little")
        bits = np.zeros((len(batch), 8), np.uint8)
        bits[:, : legal.shape[1]] = legal
        obs = np.packbits(batch.obs, axis=1, bitorder="little")
        words_ = obs.view("<u4").copy()
        hands = words_[:, 0] & np.uint32((1 << NUM_TILES) - 1)
        words_[:, 0] ^= rng.integers(0, 1 << NUM_TILES, len(obs)).astype(np.uint32)  # the own hand there is not read
        arguments = (which, hands[which], bits.view("<u8")[:, 0][which], actions)
        found = policy.chances(words_.view(np.uint8), batch.history, *arguments)
        assert found.dtype == np.float32 and np.abs(found - p[which, actions]).max() < 1e-5
        # Nor does an answer depend on the others that are asked for beside it.
        part = rng.choice(len(which), 7, replace=False)
        some = policy.chances(words_.view(np.uint8), batch.history, *(argument[part] for argument in arguments))
        assert np.array_equal(some, found[part])
    assert marked
    nothing = [argument[:0] for argument in arguments]
    assert policy.chances(words_.view(np.uint8), batch.history, *nothing).shape == (0,)
    if words:
        with pytest.raises(ValueError, match="history"):
            policy.chances(words_.view(np.uint8), None, *arguments)


@pytest.mark.parametrize("sample", [False, True])
def test_a_network_that_plays_its_likeliest_action_still_says_what_it_thinks(sample: bool) -> None:
    rules = get_rules("sport_book")
    policy = network("mlp", rules, False)
    batch = next(batches(rules, policy))
    policy.sample = sample
    p = policy.probabilities(batch)
    assert (p.max(axis=1)[batch.mask.sum(axis=1) > 1] < 1).any()
    policy.sample = False
    assert np.array_equal(p.argmax(axis=1), policy.act(batch))
