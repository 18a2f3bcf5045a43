"""What a viewer knows, imagined tables, and the past, held against the engine that they were taken from."""

import dataclasses

import numpy as np
import pytest

from agents.base import decide
from agents.search.position import PUBLIC, imagine, past, position_at, position_of
from domino_env import get_rules, make_engine
from domino_env.line import LineEngine
from domino_env.tiles import PASS

GAMES = [
    get_rules("sport_book"),
    get_rules("sport_club", labelled_ends=True),
    get_rules("puerto_rico", lead="double_six"),
    get_rules("kozyol"),
    get_rules("tiny_pairs"),
    get_rules("sport_book", seats=2, pairs=False, hand_size=7, max_pip=4, redeal=False),
]
BLITZ = [get_rules("blitz"), get_rules("blitz", seats=6), get_rules("blitz", chain="one", seats=5)]


def _played(rules, rows: int = 40, seed: int = 3):
    """An engine whose rows stand at different plies of their deals, none of them over."""
    engine = make_engine(rules, rows, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(40):
        engine.step(engine.sample_legal(rng))
    return engine


@pytest.mark.parametrize("rules", GAMES + BLITZ, ids=str)
def test_position_of_a_decision_is_that_of_the_engine(rules) -> None:
    engine = _played(rules)
    asked, known = position_of(decide(engine)), position_at(engine)
    for name in ("viewer", "own", "played", "voids", "sizes", "ends", "leader", "to_move", "events", "hidden"):
        assert np.array_equal(getattr(asked, name), getattr(known, name)), name
    assert np.array_equal(asked.plies, engine.plies())
    hands = engine.hands()
    for row in range(len(known)):
        rest = sum(int(hands[row, seat]) for seat in range(rules.seats) if seat != known.viewer[row])
        assert rest & ~int(known.hidden[row]) == 0
    assert (position_at(engine, PUBLIC).own == 0).all()


@pytest.mark.parametrize("rules", GAMES, ids=str)
@pytest.mark.parametrize("events", [True, False])
def test_an_imagined_table_goes_on_as_the_true_one(rules, events: bool) -> None:
    engine = _played(rules)
    engine = engine.take(np.flatnonzero(engine.plies() > 0))
    position = position_at(engine, 0)
    if not events:
        position = dataclasses.replace(position, events=None)
    rows = np.repeat(np.arange(len(position)), 2)
    other = imagine(position, rows, engine.hands()[rows])
    engine = engine.take(rows)
    rng = np.random.default_rng(5)
    while engine.num_envs:
        assert np.array_equal(engine.to_move(), other.to_move())
        assert np.array_equal(engine.observe(packed=True), other.observe(packed=True))
        assert np.array_equal(engine.legal_bits(), other.legal_bits())
        if events:
            assert np.array_equal(engine.history(), other.history())
        actions = engine.sample_legal(rng)
        rewards, done = engine.step(actions, autoreset=False)
        theirs, ended = other.step(actions, autoreset=False)
        assert np.array_equal(rewards, theirs) and np.array_equal(done, ended)
        if done.all():
            break
        engine, other = engine.take(~done), other.take(~done)


@pytest.mark.parametrize("rules", GAMES + BLITZ, ids=str)
def test_the_past_is_asked_as_it_was_asked(rules) -> None:
    """Every past question, put again with the true hands, is the one that was put."""
    engine = make_engine(rules, 30, seed=8)
    rng = np.random.default_rng(8)
    asked = []
    plies = 4 if rules.name == "tiny_pairs" else 9
    for _ in range(plies):
        asked.append((engine.plies(), engine.observe(), engine.legal(), engine.to_move(), engine.history()))
        actions = engine.sample_legal(rng)
        asked[-1] += (actions,)
        _, done = engine.step(actions, autoreset=False)
        going = ~done
        asked = [tuple(part[going] for part in one) for one in asked]
        engine = engine.take(going)
    position, hands = position_at(engine, 1), engine.hands()
    seen = 0
    for ply in past(position, hands):
        places = np.arange(len(ply.rows))
        question = ply.ask(places, hands[ply.rows, ply.seat], history=True)
        _, obs, mask, seat, history, action = (part[ply.rows] for part in asked[ply.number])
        assert np.array_equal(question.obs, obs) and np.array_equal(question.seat, seat)
        assert np.array_equal(question.history, history) and np.array_equal(ply.action, action)
        assert np.array_equal(question.mask[ply.chosen], mask[ply.chosen])
        assert (ply.chosen | (mask.sum(axis=1) == 1)).all()
        seen += 1
    assert seen == plies


def test_a_wrong_pass_that_stood_is_in_the_past() -> None:
    """A judge let it stand (J3), so it is asked about like any other pass."""
    engine = make_engine("sport_book", 8, seed=1)
    engine.step(engine.sample_legal(np.random.default_rng(1)), autoreset=False)
    engine = engine.take(np.flatnonzero(engine.legal_bits() != np.uint64(1 << PASS)))
    engine.allow_pass(np.arange(engine.num_envs))
    engine.step(np.full(engine.num_envs, PASS), autoreset=False)
    plies = list(past(position_at(engine), engine.hands()))
    assert [ply.number for ply in plies] == [0, 1] and (plies[1].action == PASS).all() and len(plies[1].rows) > 4


def test_supposed_hands_change_nothing_else() -> None:
    engine = _played(get_rules("sport_book"))
    hands = engine.hands()
    rows, mover = np.arange(40), engine.to_move()
    obs, legal = engine.suppose(rows, hands[rows, (mover + 1) % 4])
    base = engine.observe(packed=True)
    assert (np.flatnonzero((obs != base).any(axis=0)) < 4).all()
    assert (legal == np.uint64(1 << PASS)).any() and (legal != engine.legal_bits()).any()


def test_refusals() -> None:
    with pytest.raises(ValueError, match="open line"):
        position_of(decide(make_engine("blind", 2, seed=0)))
    engine = _played(get_rules("sport_book"), 4)
    batch = decide(engine)
    batch.obs = batch.obs[:, :-1]
    with pytest.raises(ValueError, match="observations of sport_book"):
        position_of(batch)
    batch = decide(engine)
    batch.history = None
    with pytest.raises(ValueError, match="not known"):
        next(past(position_of(batch), engine.hands()))
    with pytest.raises(ValueError, match="several actions"):
        none = np.zeros((1, 4), np.uint32)
        LineEngine.standing(get_rules("blitz"), none, none, none, none[:, :2], none[:, 0], none[:, 0])
