"""The benchmarks of the solver and of beliefs measure what they say. No test looks at a speed."""

import importlib
import time

import numpy as np
import pytest

from domino_env import get_rules
from domino_env.deals import boards
from experiments import exact


def test_positions_stand_where_they_should_and_have_a_choice() -> None:
    rules = get_rules("sport_book")
    for tiles in (0, 5, 12):
        engine = exact.positions(rules, 20, tiles, seed=3)
        assert 10 < engine.num_envs <= 20
        assert (engine.legal_count() > 1).all()
        laid = np.bitwise_count(engine.played()).sum(axis=1)
        assert (laid >= tiles).all() and (laid <= tiles + 6).all()
    assert np.array_equal(exact.positions(rules, 20, 0, 3).hands(), boards(rules, 3, 0, 20)[0])
    with pytest.raises(ValueError, match="none of 3 deals"):
        exact.positions(get_rules("tiny_pairs"), 3, 8, seed=0)


def test_solver__its_figures_and_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    dominoes = importlib.import_module("dominoes")
    monkeypatch.setattr(exact, "PEER_DEALS", {14: 3})
    monkeypatch.setattr(exact, "PEER_GOALS", {14: 1.0})
    said: list[str] = []
    result = exact.solver(3, seed=1, rules="sport_club", peers=True, say=said.append)
    assert result["deals"] == 3 and result["after_tiles"] == 0 and said
    assert result["ms_median"] <= result["ms_p90"] <= result["ms_max"]
    assert [row["after_tiles"] for row in result["after"]] == list(exact.AFTER)
    assert result["threads"] >= 1 and result["threads_speedup"] > 0
    peer = result["peers"]["dominoes_after_14"]
    assert peer["after_tiles"] == 14 and 1 <= peer["deals"] <= 3 and peer["unfinished"] == 0 and peer["ratio"] > 0
    # A peer that says something else is a fault that is not hidden.
    monkeypatch.setattr(dominoes.search, "alphabeta", lambda game: ([], 10_000))
    with pytest.raises(AssertionError, match="dominoes says 10000"):
        exact.solver(1, peers=True)


def test_solver__small_sets_are_asked_as_far_as_they_go() -> None:
    assert exact.solver(4, rules="tiny_pairs")["after"] == []


def test_solver__a_peer_that_does_not_finish_is_broken_off() -> None:
    with pytest.raises(TimeoutError), exact._at_most(0.05):
        began = time.process_time()
        while time.process_time() - began < 20:
            pass
    with exact._at_most(0.05):
        pass
    began = time.process_time()
    while time.process_time() - began < 0.1:  # the alarm is off again
        pass


def test_peer_game_is_the_same_table() -> None:
    dominoes = importlib.import_module("dominoes")
    engine = exact.positions(get_rules("puerto_rico"), 10, 9, seed=4)
    for row in range(engine.num_envs):
        game = exact.peer_game(dominoes, engine, row)
        assert game.turn == engine.to_move()[row] and len(game.moves) == engine.plies()[row]
        assert len(game.valid_moves) == engine.legal_count()[row]
        assert [game.board.left_end(), game.board.right_end()] == engine.ends()[row].tolist()


def test_beliefs__its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "PLIES", (12, 16))
    monkeypatch.setattr(exact, "WORLDS", 20)
    result = exact.beliefs(3, seed=2, peers=True)
    assert [row["after_tiles"] for row in result["by_tiles"]] == [12, 16] and result["model"] == "club"
    for row in result["by_tiles"]:
        assert {"rules_ms", "sample_1000_ms", "exact_ms", "sampled_500_ms", "rejection_1000_ms"} <= row.keys()
        assert 0 < row["rejection_accepts"] <= 1


def test_refusals() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        exact.solver(0)
    with pytest.raises(ValueError, match="at least 1"):
        exact.beliefs(0)
    with pytest.raises(ValueError, match="blind"):
        exact.beliefs(1, rules="blind")
    with pytest.raises(ValueError, match="unknown rules"):
        exact.solver(1, rules="sprot")
    with pytest.raises(ValueError, match="blitz"):
        exact.solver(1, rules="blitz")
