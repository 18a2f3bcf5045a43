"""Deals as values that never change play as the engines do, and tell exactly what a seat knows."""

import numpy as np
import pytest

from domino_env import get_rules, make_engine
from domino_env.tiles import tiles_of
from domino_env.tree import CHANCE, OVER, Setup, make_setup

GAMES = [
    ("sport_book", {}),
    ("sport_club", {"labelled_ends": True}),
    ("puerto_rico", {"lead": "double_six"}),
    ("kozyol", {}),
    ("tiny_pairs", {}),
    ("tiny_pairs", {"seats": 2, "pairs": False, "hand_size": 3}),
    ("blitz", {}),
    ("blitz", {"chain": "one", "seats": 6}),
]


@pytest.mark.parametrize(("rules", "overrides"), GAMES, ids=lambda x: str(x))
def test_play__is_the_engines(rules, overrides):
    """Movers, legal actions, ends and results of random deals, led as the rules say."""
    engine = make_engine(rules, 40, seed=5, **overrides)
    setup = Setup(engine.rules)
    free = engine.rules.lead == "rotation"  # else a tile says who leads, with what
    deals = zip(engine.hands(), engine.leader())
    tables = [setup.dealt(hands, int(leader) if free else -1) for hands, leader in deals]
    rng, live, ended = np.random.default_rng(5), np.arange(40), 0
    while len(live):
        legal, movers = engine.legal(), engine.to_move()
        for j, row in enumerate(live):
            assert tables[row].mover == movers[j]
            assert tables[row].legal_actions() == np.flatnonzero(legal[j]).tolist()
        actions = engine.sample_legal(rng)
        rewards, done = engine.step(actions, autoreset=False)
        for j, row in enumerate(live):
            tables[row] = tables[row].after(int(actions[j]))
            assert (tables[row].mover == OVER) == done[j]
            assert tables[row].returns() == tuple(rewards[j])
            assert tables[row].hands == tuple(engine.hands()[j])
        ended += done.sum()
        live = live[~done]
        if len(live):
            engine = engine.take(~done)
    assert ended == 40


def walk(position):
    """Every position from here on, with how likely chance makes it."""
    waiting = [(position, 1.0)]
    while waiting:
        here, chance = waiting.pop()
        yield here, chance
        if here.mover == CHANCE:
            waiting += [(here.after(outcome), chance * share) for outcome, share in here.outcomes()]
        else:
            waiting += [(here.after(action), chance) for action in here.legal_actions()]


def test_chance__deals_every_deal_once():
    """Two leaders, 15 x 6 deals of a set of six tiles: no order of a hand is told apart, all alike likely."""
    start = make_setup("tiny_pairs", seats=2, pairs=False, max_pip=2).start()
    dealt = [(here, chance) for here, chance in walk(start) if here.dealt and not here.moves]
    assert len({(here.leader, here.dealt) for here, _ in dealt}) == len(dealt) == 2 * 15 * 6
    assert np.allclose([chance for _, chance in dealt], 1 / 180)


def test_chance__deals_tile_by_tile_where_hands_are_many():
    here, rng, nodes = make_setup("sport_book").start(), np.random.default_rng(1), 0
    while here.mover == CHANCE:
        outcomes = here.outcomes()
        assert sum(share for _, share in outcomes) == pytest.approx(1)
        assert "gets" in here.outcome_name(outcomes[0][0]) or nodes == 0
        here = here.after(outcomes[rng.integers(len(outcomes))][0])
        nodes += 1
    assert nodes == here.setup.chance_nodes == 29
    assert sorted(tile for hand in here.dealt for tile in tiles_of(hand)) == list(range(28))


@pytest.mark.parametrize("lead", ["double_six", "winner", "low"])
def test_lead__by_a_tile(lead):
    """K1, K2, B2: who holds the tile leads, with it alone; the first chance node is a hand's."""
    setup = make_setup({"double_six": "puerto_rico", "winner": "kozyol", "low": "blitz"}[lead], lead=lead)
    here, rng = setup.start(), np.random.default_rng(2)
    while here.mover == CHANCE:
        here = here.after(here.outcomes()[rng.integers(len(here.outcomes()))][0])
    tile = {"double_six": 27, "winner": 7, "low": 0}[lead]
    assert here.legal_actions() == [tile] and here.hands[here.mover] >> tile & 1 and here.leader == here.mover


def test_key__is_own_hand_and_public_past():
    """Perfect recall: the same text exactly where seat, own hand, leader and all moves are the same."""
    keys = {}
    for here, _ in walk(make_setup("tiny_pairs", seats=2, pairs=False, max_pip=2).start()):
        if here.dealt:
            for seat in (0, 1):
                known = (seat, here.leader, here.dealt[seat], here.moves)
                assert keys.setdefault(here.key(seat), known) == known
    assert len(set(keys.values())) == len(keys) > 500


def test_position__does_not_change():
    here = make_setup("tiny_pairs").dealt([3, 12, 48, 640], leader=1)
    kept = (here.hands, here.moves, here.mover)
    for action in here.legal_actions():
        after = here.after(action)
        assert after.moves == (action,) and after.mover == 2
        assert after.key(1).startswith(here.key(1)), "the hand in it is the one that was dealt"
    assert (here.hands, here.moves, here.mover) == kept


def test_errors():
    with pytest.raises(ValueError, match="blind_blitz is a blind game"):
        make_setup("blind_blitz")
    with pytest.raises(ValueError, match=r"leader=4 must be in 0\.\.3"):
        make_setup("tiny_pairs", 4)
    with pytest.raises(ValueError, match="lowest tile dealt leads"):
        make_setup("blitz", 1)
    here = Setup(get_rules("tiny_pairs")).dealt([3, 12, 48, 640], leader=1)
    with pytest.raises(ValueError, match="action 5 is illegal; legal are"):
        here.after(5)
    with pytest.raises(ValueError, match="outcome 4 of this chance node does not exist"):
        make_setup("tiny_pairs").start().after(4)
