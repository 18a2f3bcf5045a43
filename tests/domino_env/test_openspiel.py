"""`python_domino`: OpenSpiel's own checks, its environment, and our agents as its policies."""

import importlib
import sys

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from agents import make_agent  # noqa: E402
from agents.tabular import Tabular  # noqa: E402
from domino_env import get_rules, make_engine  # noqa: E402
from domino_env.openspiel import AgentPolicy, load_game, question  # noqa: E402

DUEL = "python_domino(rules=tiny_pairs,seats=2,pairs=0,max_pip=2)"
GAMES = [
    "rules=sport_book",
    "rules=sport_club,labelled_ends=1",
    "rules=puerto_rico,lead=double_six",
    "rules=kozyol",
    "rules=tiny_pairs",
    "rules=tiny_pairs,leader=3",
    "rules=tiny_pairs,seats=2,pairs=0,hand_size=3",
    "rules=blitz,seats=5",
]


@pytest.mark.parametrize("text", GAMES)
def test_random_sim(text):
    """OpenSpiel's test of a game: chance, legality, clones, strings, tensors, returns in bounds, serialisation."""
    pyspiel.random_sim_test(pyspiel.load_game(f"python_domino({text})"), num_sims=1, serialize=True, verbose=False)


def at_random(game, rng):
    """The states of a random deal, from its lead."""
    state = game.new_initial_state()
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes = state.chance_outcomes()
            state.apply_action(outcomes[rng.integers(len(outcomes))][0])
        else:
            yield state.clone()
            state.apply_action(int(rng.choice(state.legal_actions())))
    yield state


@pytest.mark.parametrize("rules", ["sport_book", "kozyol", "tiny_pairs", "blitz"])
def test_observation__is_the_engines(rules):
    """Tensors are our observation and mask, on and off turn; the question is the one that our engine asks."""
    game, rng = load_game(rules), np.random.default_rng(3)
    engine = make_engine(rules, 1, seed=0)
    for state in at_random(game, rng):
        deal = state.position
        if not deal.moves:
            engine.deal(np.array([deal.dealt], np.uint32), np.array([deal.leader]))
        else:
            engine.step(np.array([deal.moves[-1]]), autoreset=False)
        for seat in range(4):
            seen = np.array(state.observation_tensor(seat))
            assert (seen[: engine.layout.size] == engine.observe(seat)[0]).all()
            if deal.moves or rules != "kozyol":  # K2: there the leader of a dealt deal may lay any tile
                assert (seen[engine.layout.size :] == engine.legal(seat)[0]).all()
        if not state.is_terminal():
            asked = question(deal)
            assert (asked.history == engine.history()).all() and asked.seat == engine.to_move()
            assert np.flatnonzero(asked.mask[0]).tolist() == state.legal_actions()
    assert state.is_terminal() and sum(state.returns()) == 0


def test_information_tensor__tells_no_more_than_the_string():
    """Equal tensors exactly where the strings are equal."""
    game, rng = pyspiel.load_game(DUEL), np.random.default_rng(4)
    told = {}
    for _ in range(80):
        for state in at_random(game, rng):
            for seat in (0, 1):
                text = state.information_state_string(seat)
                tensor = np.array(state.information_state_tensor(seat), np.uint8).tobytes()
                assert told.setdefault(text, tensor) == tensor
    assert len(set(told.values())) == len(told) > 150


def test_game__says_its_bounds():
    game = load_game("sport_book")
    assert game.num_distinct_actions() == 57 and game.num_players() == 4 and game.utility_sum() == 0
    assert game.max_utility() == 168 + 10 and game.min_utility() == -178  # all pips, 0-0 alone counts 10 (S8)
    assert game.max_game_length() == 112 and game.max_chance_outcomes() == 28
    assert game.max_chance_nodes_in_history() == 29
    assert load_game("tiny_pairs").max_chance_outcomes() == 45


class Mute:
    """An agent that says nothing of its chances."""

    name = "mute"


def test_errors__are_one_line():
    for make, text in (
        (lambda: load_game("blind"), "blind is a blind game"),
        (lambda: pyspiel.load_game("python_domino(rules=nothing)"), "unknown rules 'nothing'"),
        (lambda: load_game("tiny_pairs", leader=7), "leader=7 must be in"),
        (lambda: load_game("tiny_pairs", hand_size=9), "hand_size may be 1..2"),
        (lambda: AgentPolicy(load_game("blitz"), make_agent("club")), "club"),
        (lambda: AgentPolicy(load_game("tiny_pairs"), Mute()), "mute has no probabilities"),
    ):
        with pytest.raises(ValueError, match=text) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_missing__names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    monkeypatch.delitem(sys.modules, "domino_env.openspiel")
    with pytest.raises(ImportError, match=r"install the extra openspiel: pip install 'domino-lab\[openspiel\]'"):
        importlib.import_module("domino_env.openspiel")


def test_rl_environment():
    """OpenSpiel's own environment plays it to the end, with each of our tensors."""
    from open_spiel.python import rl_environment

    rng = np.random.default_rng(6)
    for kind in (rl_environment.ObservationType.OBSERVATION, rl_environment.ObservationType.INFORMATION_STATE):
        env = rl_environment.Environment(pyspiel.load_game("python_domino(rules=tiny_pairs)"), observation_type=kind)
        env.seed(6)
        step = env.reset()
        while not step.last():
            seat = step.observations["current_player"]
            step = env.step([int(rng.choice(step.observations["legal_actions"][seat]))])
        assert sum(step.rewards) == 0


def test_policies__there_and_back():
    """An agent plays there by its probabilities; as a table it comes back and plays the same here."""
    from open_spiel.python.policy import tabular_policy_from_callable

    game, club = load_game("tiny_pairs", leader=1, seats=2, pairs=False, max_pip=2), make_agent("club")
    table = tabular_policy_from_callable(game, AgentPolicy(game, club).action_probabilities)
    rules = get_rules("tiny_pairs", seats=2, pairs=False, max_pip=2)
    back = make_agent(Tabular(table.policy_for_key, rules), rules)
    rng, asked = np.random.default_rng(7), 0
    for _ in range(20):
        for state in at_random(game, rng):
            if not state.is_terminal():
                batch = question(state.position)
                assert np.allclose(back.probabilities(batch), club.probabilities(batch))
                batch.rng = rng
                assert back.act(batch)[0] in state.legal_actions()
                asked += 1
    assert asked > 50
    with pytest.raises(ValueError, match="tabular plays tiny_pairs seats=2"):
        make_agent(back, "sport_book")
