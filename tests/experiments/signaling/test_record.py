"""Decisions that are measured: whose they are, what each viewer knows, and that chance follows the deal."""

import numpy as np
import pytest

from agents import make_agent
from agents.base import decide
from agents.search.asking import answers
from agents.search.beliefs import RulesBelief
from agents.search.position import imagine
from domino_env.rules import get_rules
from experiments.signaling.record import play, seated


def test_play__notes_choices_as_they_were_seen():
    record = play(["club", "greedy"], deals=40, seed=3)
    moments = record.moments
    assert len(moments) > 300 and (np.bitwise_count(moments.legal) > 1).all()
    assert (moments.legal >> moments.action.astype(np.uint64) & np.uint64(1) == 1).all()
    assert (np.lexsort([moments.ply, moments.deal]) == np.arange(len(moments))).all()
    assert record.points.shape == (40, 4) and (record.points.sum(axis=1) == 0).all() and record.points.any()
    for place in range(4):
        seen = moments.seen_by(place)
        assert (seen.own == moments.hand(place)).all()
        assert np.isfinite(RulesBelief(seen).log2_probability(moments.hands)).all()


def test_play__does_not_hang_on_how_many_deals_there_are():
    few, many = (play("random", deals=deals, seed=5).moments for deals in (7, 30))
    mine = many.take(many.deal < 7)
    assert (few.action == mine.action).all() and (few.hands == mine.hands).all() and (few.deal == mine.deal).all()
    later = play("random", deals=7, seed=5, start=3).moments
    assert (later.take(later.deal < 7).action == mine.take(mine.deal >= 3).action).all()


def test_play__tiles_and_each():
    all_of = play("club", deals=30, seed=1, tiles=[8, 12]).moments
    assert set(all_of.tiles.tolist()) == {8, 12}
    one = play("club", deals=30, seed=1, tiles=[8, 12], each=1).moments
    assert (np.unique(one.deal, return_counts=True)[1] == 1).all() and set(one.deal) == set(all_of.deal)


@pytest.mark.parametrize("name", ["club", "greedy", "random"])
def test_answers__are_what_the_player_says(name):
    """Asked about the hand that the mover held, a player answers what it answered at the table."""
    moments = play("random", deals=12, seed=2).moments
    agent = make_agent(name)
    said, legal = answers(moments.seen_by(0), agent, np.arange(len(moments)), moments.hand())
    assert (legal == moments.legal).all()
    assert np.allclose(said.sum(axis=1), 1) and (said[np.arange(len(said)), :][(said > 0)] > 0).all()
    own = play(name, deals=12, seed=2).moments
    told, _ = answers(own.position, agent, np.arange(len(own)), own.hand())
    assert (told[np.arange(len(own)), own.action] > 0).all()
    if name != "random":
        assert (told.argmax(axis=1) == own.action).all()


@pytest.mark.parametrize("kind", ["mlp", "public_private"])
def test_answers__of_networks_are_their_probabilities(kind):
    """A network works out once what all see; with the hand that the mover held it answers what it says at the table."""
    torch = pytest.importorskip("torch")
    networks = pytest.importorskip("agents.networks")
    rules = get_rules("sport_book")
    actor = networks.make_actor(kind, rules, [32, 32], torch.Generator().manual_seed(1), False, choices=True)
    with torch.no_grad():
        actor.head.weight.mul_(200)  # a fresh network's preferences are nearly equal
    policy = networks.Policy(actor, rules, sample=True, choices=True)
    moments = play(["club", policy], deals=10, seed=2).moments
    rows = np.arange(len(moments))
    said, legal = answers(moments.position, policy, rows, moments.hand())
    engine = imagine(moments.position, rows, moments.hands)
    asked = policy.probabilities(decide(engine, policy))
    assert policy.needs_history and (legal == moments.legal).all()
    assert (asked.max(axis=1) * np.bitwise_count(legal)).max() > 1.2  # far from all alike
    assert np.abs(said - asked).max() < 1e-6
    # Asked about hands that nobody holds, several of a row, too.
    order = np.random.default_rng(1).permutation(np.repeat(rows, 2))
    other = np.roll(moments.hands, 1, axis=1)[rows, moments.seat]
    fits = np.bitwise_count(other) == np.bitwise_count(moments.hand())
    order = order[fits[order]]
    swapped = moments.hands.copy()
    swapped[rows, moments.seat] = other
    swapped[rows, (moments.seat - 1) % 4] = moments.hand()
    some = np.flatnonzero(fits)
    engine = imagine(moments.position.take(some), np.arange(len(some)), swapped[some])
    asked = policy.probabilities(decide(engine, policy))
    said, _ = answers(moments.position, policy, order, other[order])
    assert len(some) > 10 and np.abs(said - asked[np.searchsorted(some, order)]).max() < 1e-6


def test_answers__uniform_and_floor():
    moments = play("random", deals=5, seed=2).moments
    rows = np.arange(len(moments))
    even, legal = answers(moments.position, "uniform", rows, moments.hand())
    count = np.bitwise_count(legal)
    assert np.allclose(even.max(axis=1), 1 / count) and np.allclose(even.sum(axis=1), 1)
    mixed, _ = answers(moments.position, make_agent("greedy"), rows, moments.hand(), floor=0.2)
    assert np.allclose(mixed.max(axis=1), 0.8 + 0.2 / count)


def test_errors():
    with pytest.raises(ValueError, match="one tile a turn"):
        play("random", "blitz")
    with pytest.raises(ValueError, match="1 player, 2 or 4, not 3"):
        seated(["random"] * 3, "sport_book")
    moments = play("random", deals=2, seed=2).moments
    with pytest.raises(ValueError, match="'rules' does not say"):
        answers(moments.position, "rules", np.zeros(1, int), moments.hand()[:1])
    with pytest.raises(ValueError, match="has no probabilities"):
        answers(moments.position, make_agent("pimc-2"), np.zeros(1, int), moments.hand()[:1])
