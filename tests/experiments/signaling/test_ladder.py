"""Steps of what is known of a hand: against sums over single beliefs, and players whose steps are known."""

import json
import math

import numpy as np
import pytest

from agents import make_agent
from agents.search.reading import ladder as levels_of
from experiments.signaling.ladder import STEPS, climb, draw
from experiments.signaling.record import play

SPEAKER, GREEDY = make_agent("planted:strength=4"), make_agent("greedy")


@pytest.fixture(scope="module")
def spoken():
    return play([SPEAKER, GREEDY], deals=24, seed=4, tiles=[16, 18])


@pytest.mark.parametrize("of", [1, 2])
def test_climb__is_what_each_belief_tells(spoken, of):
    moments = spoken.moments.take(np.arange(6))
    found = climb(moments, spoken.table, GREEDY, of=of, floor=0.05, reference_floor=0.05)
    view, seat = moments.seen_by(0), (moments.seat + of) % 4
    beliefs = levels_of(view, GREEDY, list(spoken.table), floor=0.05, method="exact")
    true = {k: dict(zip(*map(np.ndarray.tolist, beliefs["true"].hands_of(k, seat[k])))) for k in range(6)}
    for k in range(6):
        before = dict.fromkeys(true[k], 1 / math.comb(int(view.hidden[k]).bit_count(), int(view.sizes[k, seat[k]])))
        for name in STEPS:
            if name == "rules":  # by listing: hands that the marginals of the rules' belief allow are alike likely here
                worlds = levels_of(view, "rules", ["rules"] * 4, method="exact")["true"]
                now = dict(zip(*map(np.ndarray.tolist, worlds.hands_of(k, seat[k]))))
            else:
                now = dict(zip(*map(np.ndarray.tolist, beliefs[name].hands_of(k, seat[k]))))
            step = sum(p * math.log2(now[hand] / before[hand]) for hand, p in true[k].items() if p)
            assert found.steps[name][k] == pytest.approx(step, abs=1e-9)
            before = now
        left = -sum(p * math.log2(p) for p in true[k].values() if p)
        assert found.left[k] == pytest.approx(left, abs=1e-9)


def test_climb__steps_and_what_is_left_are_all_there_is(spoken):
    found = climb(spoken.moments, spoken.table, GREEDY, reference_floor=0.02)
    assert found.player == "planted:strength=4 and greedy" and len(found.left) > 15
    assert np.allclose(sum(found.steps.values()) + found.left, found.whole, rtol=0, atol=1e-9)
    assert (found.steps["rules"] > 0.1).any() and (found.left >= 0).all()
    means = found.estimates()
    assert means["told"].mean == pytest.approx(sum(means[name].mean for name in STEPS)) and means["true"].mean > 0.3
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.to_dict()["by_tiles"]["16"]["left"]["mean"] == pytest.approx(found.left[found.tiles == 16].mean())


def test_climb__random_players_tell_what_their_legal_moves_tell():
    record = play("random", deals=12, seed=1, tiles=[15])
    found = climb(record.moments, record.table, "uniform")
    assert np.abs(found.steps["reference"]).max() < 1e-12 and np.abs(found.steps["true"]).max() < 1e-12
    assert found.estimates()["uniform"].mean > 0.1
    # Read as if they were another, they lead astray, and as far back again.
    astray = climb(record.moments, record.table, GREEDY)
    assert np.allclose(astray.steps["reference"], -astray.steps["true"], atol=1e-9)
    assert astray.estimates()["reference"].mean < -0.3


def test_draw():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    tables = [play(players, deals=8, tiles=(16, 19)) for players in ("random", ["club", "greedy"])]
    found = [climb(one.moments, one.table, GREEDY) for one in tables]
    assert [one.player for one in found] == ["random", "club and greedy"]
    axes = figure.subplots(1, 2)
    draw(found, axes)
    assert axes[0].get_ylim() == axes[1].get_ylim() and axes[0].get_ylabel() and not axes[1].get_ylabel()
    for ladder, ax in zip(found, axes):
        bars = [bar for bar in ax.patches if bar.get_height() != 0]
        numbers = np.unique(ladder.tiles).tolist()
        upper = [
            max(b.get_y() + b.get_height() for b in bars if round(b.get_x() + 0.4) == k) for k in range(len(numbers))
        ]
        lower = [
            min(b.get_y() + b.get_height() for b in bars if round(b.get_x() + 0.4) == k) for k in range(len(numbers))
        ]
        for k, number in enumerate(numbers):
            whole = ladder.whole[ladder.tiles == number].mean()
            assert upper[k] + min(lower[k], 0) == pytest.approx(whole)  # what leads astray lies below


def test_refusals(spoken):
    with pytest.raises(ValueError, match=r"of=0 must be in 1\.\.3"):
        climb(spoken.moments, spoken.table, GREEDY, of=0)
    with pytest.raises(ValueError, match="has no probabilities"):
        climb(spoken.moments, make_agent("pimc-2"), GREEDY)
    endless = climb(spoken.moments, spoken.table, GREEDY, reference_floor=0.0)
    with pytest.raises(ValueError, match="give it a floor above 0"):
        endless.estimates()
    early = play("random", deals=2, tiles=[0]).moments
    with pytest.raises(ValueError, match="21 hidden tiles are too many"):
        climb(early, "uniform", GREEDY)
