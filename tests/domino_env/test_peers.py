"""Other people's programs play the same deals: PyPI `dominoes` for `puerto_rico` (K1), OpenSpiel for legality (K3)."""

import numpy as np
import pytest

from domino_env import make_engine
from tests.reference import PASS, TILES, number
from tests.twin import tiles_in


def test_puerto_rico__is_pypi_dominoes():
    """K1: 300 deals, move for move and point for point; half of them led by the holder of 6-6."""
    dominoes = pytest.importorskip("dominoes")
    rng = np.random.default_rng(71)
    for lead in ("rotation", "double_six"):
        engine = make_engine("puerto_rico", 150, seed=71, lead=lead)
        games = [pypi_game(dominoes, engine, row, lead) for row in range(150)]
        moves = [0] * 150  # moves of each peer that the engine has made too
        live = np.arange(150)
        blocks = 0
        while len(live):
            legal = engine.legal()
            actions = engine.sample_legal(rng)
            for j, row in enumerate(live):
                game = games[row]
                if moves[row] < len(game.moves):  # the peer has passed by itself
                    assert game.moves[moves[row]] is None
                    assert np.flatnonzero(legal[j]).tolist() == [PASS]
                else:
                    assert game.turn == engine.to_move()[j]
                    valid = {number_of(tile) + (0 if left else 28): (tile, left) for tile, left in game.valid_moves}
                    assert np.flatnonzero(legal[j]).tolist() == sorted(valid)
                    game.make_move(*valid[int(actions[j])])
                moves[row] += 1
            rewards, done = engine.step(actions, autoreset=False)
            for k, j in enumerate(engine.finished.rows):
                result, info = games[live[j]].result, engine.finished.info(k)
                assert result.won == (info["outcome"] == "out") and result.player == info["by"]
                assert result.points == rewards[j, 0] == info["points"][0] - info["points"][1]
                assert moves[live[j]] == len(games[live[j]].moves) == info["plies"]
                blocks += not result.won
            assert all((games[row].result is not None) == over for row, over in zip(live, done, strict=True))
            live = live[~done]
            if len(live):
                engine = engine.take(~done)
        assert 10 < blocks < 100


def number_of(tile):
    """Tile number of one of the peer's tiles."""
    return number(tuple(sorted((tile.first, tile.second))))


def pypi_game(dominoes, engine, row, lead):
    """The peer's game on the hands of a row, before its first move."""
    hands = [dominoes.Hand([dominoes.Domino(*tile) for tile in tiles_in(mask)]) for mask in engine.hands()[row]]
    leader = int(engine.leader()[row])
    tiles = [dominoes.Domino(6, 6)] if lead == "double_six" else hands[leader]
    return dominoes.Game(dominoes.Board(), hands, [], leader, tuple((tile, True) for tile in tiles), leader, None)


def test_legality__is_openspiel_team_dominoes():
    """K3: the same moves are legal in `python_team_dominoes`, which is always led by player 0 and scores otherwise."""
    pytest.importorskip("open_spiel")
    pyspiel = pytest.importorskip("pyspiel")
    pytest.importorskip("open_spiel.python.games")
    from open_spiel.python.games import team_dominoes

    game = pyspiel.load_game("python_team_dominoes")
    rng = np.random.default_rng(72)
    deals = 100
    engine = make_engine("puerto_rico", deals, seed=72)
    engine.reset(options={"leader": 0})
    states = []
    for masks in engine.hands():
        state = game.new_initial_state()
        order = [tiles_in(mask) for mask in masks]
        for k in range(28):
            state.apply_action(TILES.index(order[k % 4][k // 4]))
        states.append(state)
    live = np.arange(deals)
    while len(live):
        legal, ends, movers = engine.legal(), engine.ends(), engine.to_move()
        actions = engine.sample_legal(rng)
        for j, row in enumerate(live):
            state = states[row]
            ids = np.flatnonzero(legal[j]).tolist()
            if ids == [PASS]:
                assert state.current_player() != movers[j] and not state.is_terminal()
                continue
            assert state.current_player() == movers[j]
            theirs = {}
            for peer in state.legal_actions():
                move = team_dominoes._ACTIONS[peer]
                tile = number(tuple(int(pip) for pip in move.tile))
                right = move.edge is not None and move.edge != ends[j, 0]
                theirs[tile + 28 * right] = peer
            assert sorted(theirs) == ids
            state.apply_action(theirs[int(actions[j])])
        _, done = engine.step(actions, autoreset=False)
        assert [states[row].is_terminal() for row in live] == done.tolist()
        live = live[~done]
        if len(live):
            engine = engine.take(~done)
