"""What moves tell: against every deal played again, every deal of a small game, and players whose answer is known."""

import json
import math
import time

import numpy as np
import pytest

from agents import make_agent
from agents.search.position import PUBLIC
from agents.search.reading import ladder as levels_of
from domino_env.rules import get_rules
from experiments.signaling import hands
from experiments.signaling.exact import FIGURES, by_replay, everything
from experiments.signaling.information import distances, divergences, figure, measure, share
from experiments.signaling.record import models_of, play
from experiments.signaling.statistics import NOTHING

PLAIN, SPEAKER, LISTENER = (
    make_agent(f"planted:{options}") for options in ("strength=0", "strength=3", "strength=2,listen=1")
)
CLUB, GREEDY, RANDOM = (make_agent(name) for name in ("club", "greedy", "random"))
PLACES = (2, 1, 3, PUBLIC)


@pytest.fixture(scope="module")
def spoken():
    """Decisions of speakers and a rule player, of one deal several."""
    return play([SPEAKER, CLUB], deals=32, seed=4, tiles=[17, 18])


@pytest.mark.parametrize(
    ("players", "reference", "floor", "reference_floor"),
    [
        ([SPEAKER, CLUB], GREEDY, 0.0, 0.02),
        (LISTENER, [PLAIN, "uniform", RANDOM, SPEAKER], 0.1, 0.0),
    ],
)
def test_measure__is_every_deal_played_again(players, reference, floor, reference_floor):
    record = play(players, deals=30, seed=1, tiles=[21])
    moments = record.moments.take(np.arange(3))
    info = measure(moments, record.table, reference, places=PLACES, floor=floor, reference_floor=reference_floor)
    told = 0.0
    for number in range(3):
        for column, place in enumerate(PLACES):
            plain = by_replay(moments, number, place, record.table, reference, floor, reference_floor)
            for name in FIGURES:
                assert getattr(info, name)[number, column] == pytest.approx(plain[name], rel=0, abs=1e-12), name
            told += plain["told"] + plain["gap"]
    assert told > 0.5


def test_draw__has_a_line_an_observer_and_a_point_a_number_of_tiles(spoken):
    from matplotlib.figure import Figure

    info = measure(spoken.moments, spoken.table, PLAIN)
    info.draw(axes := Figure().subplots(1, 2))
    assert axes[0].get_legend_handles_labels()[1] == ["partner", "left opponent", "right opponent"]
    for ax, name in zip(axes, ("excess", "gap")):
        late = info.estimates(spoken.moments.tiles == 18)
        drawn = [container[0].get_ydata()[1] for container in ax.containers]
        assert drawn == [late[place][name].mean for place in ("partner", "left", "right")]


def test_measure__is_that_of_all_deals_of_a_small_game():
    """Seat 0 holds 0-0 and 0-1: 2520 deals, every way of playing them."""
    listed = everything(LISTENER, PLAIN, observer=(0, 0b11), sample=8)
    assert listed.deals == 2520 and len(listed.some) > 30 and set(listed.means["gap"]) == {1, 2, 3}
    info = measure(listed.some, LISTENER, PLAIN, places=listed.places, reference_floor=0.0)
    asked = ~np.isnan(listed.figures["told"])
    assert (asked.sum(axis=1) == 1).all()  # only what seat 0 sees
    for name in FIGURES:
        apart = np.abs(getattr(info, name) - listed.figures[name])[asked]
        assert apart.max() < 1e-12 < listed.figures[name][asked].max(), name


def test_measure__without_a_convention_there_are_no_convention_bits():
    record = play(PLAIN, deals=6, seed=2, tiles=[15])
    info = measure(record.moments, record.table, make_agent("planted:strength=0"), reference_floor=0.0)
    assert (info.gap == 0).all() and (info.excess == 0).all() and (info.told > 0).any()
    assert (info.gaps["uniform"] > 0).any() and (info.gaps["rules"] > 0).any()


def test_measure__random_play_is_its_own_floor():
    record = play("random", deals=6, seed=2, tiles=[15])
    info = measure(record.moments, record.table, GREEDY, places=PLACES)
    assert (info.told == info.uniform).all() and (info.gaps["uniform"] < 1e-12).all()
    assert (info.told > 0.1).any() and (info.excess != 0).any()
    # With a floor of 1 everyone plays at random.
    info = measure(record.moments, CLUB, GREEDY, floor=1.0)
    assert np.allclose(info.told, info.uniform, atol=1e-12) and (info.gaps["uniform"] < 1e-12).all()


def test_measure__bounds(spoken):
    info = measure(spoken.moments, spoken.table, GREEDY, places=PLACES)
    assert len(info) > 12 and set(spoken.moments.seat.tolist()) == {0, 1, 2, 3}
    for bits in (info.told, info.reference, info.uniform, *info.gaps.values()):
        assert (bits >= 0).all() and np.isfinite(bits).all() and (bits > 0.01).any()
    assert (info.told <= info.entropy + 1e-12).all()
    assert np.isinf(info.ess).all() and (info.options >= 1).all()
    certain = spoken.moments.seat % 2 == 1  # club plays one move alone: all of its action tells
    assert np.allclose(info.told[certain], info.entropy[certain], atol=1e-12) and (info.said[certain] == 0).all()
    assert (info.said[~certain] < 0).any() and (info.foreseen < 0).any()
    itself = measure(spoken.moments, spoken.table, spoken.table, reference_floor=0.0)
    assert (itself.gap == 0).all() and (itself.excess == 0).all() and (itself.pointwise == 0).all()


def test_measure__how_the_work_is_cut_up_changes_nothing(spoken, monkeypatch):
    moments = spoken.moments.take(np.arange(8))
    whole = measure(moments, spoken.table, GREEDY)
    monkeypatch.setattr(hands, "_HANDS", 100)
    calls = []
    parts = measure(moments, spoken.table, GREEDY, progress=lambda done, total: calls.append((done, total)))
    assert len(calls) > 4 and calls[-1] == (8, 8)
    for name in ("told", "reference", "uniform", "entropy", "gap", "pointwise", "foreseen"):
        assert np.allclose(getattr(whole, name), getattr(parts, name), rtol=0, atol=1e-12), name


def test_measure__sampled_beliefs_come_near_or_say_nothing():
    late = play(PLAIN, deals=6, seed=4, tiles=[14]).moments
    exact = measure(late, PLAIN, "uniform", floor=0.3)
    sampled = measure(late, PLAIN, "uniform", floor=0.3, method="sampled", candidates=4000)
    there = ~np.isnan(sampled.told)
    assert there.mean() > 0.8 and (sampled.ess[there] >= 200).all()
    for name, margin in (("told", 0.06), ("gap", 0.1), ("uniform", 0.06), ("pointwise", 0.15)):
        apart = np.abs(getattr(exact, name) - getattr(sampled, name))[there]
        assert 0 < apart.mean() < margin, name
    few = measure(late, PLAIN, "uniform", method="sampled", candidates=150)
    assert np.isnan(few.told).all() and few.estimates()["partner"]["told"] is NOTHING
    assert few.to_dict()["left_out"]["partner"] == len(late) and few.to_dict()["least_ess"] is None
    assert few.ess.max() < 200 <= sampled.least_ess == sampled.ess[there].min()


def test_measure__moves_that_the_players_would_not_make_are_left_out():
    record = play("random", deals=15, seed=3, tiles=[16])
    info = measure(record.moments, GREEDY, PLAIN)
    lost = np.isnan(info.told)
    assert lost.any() and (np.isnan(info.gap) == lost).all()
    assert info.estimates()["left"]["told"].count == int((~lost[:, 1]).sum()) < len(info)


def test_estimates__and_what_is_made_of_them(spoken):
    info = measure(spoken.moments, spoken.table, GREEDY)
    found = info.estimates()
    assert list(found) == ["partner", "left", "right"]
    partner, deal = found["partner"], spoken.moments.deal
    assert partner["excess"].mean == pytest.approx(partner["told"].mean - partner["reference"].mean)
    assert partner["use"].mean == pytest.approx(info.told[:, 0].sum() / info.entropy[:, 0].sum())
    assert partner["gap"].units == len(np.unique(deal)) < len(deal) == partner["gap"].count
    mine, left, right = (info.told[:, k] - info.reference[:, k] for k in range(3))
    assert np.allclose(info.secrecy()["opponents"], mine - (left + right) / 2)
    assert np.allclose(info.secrecy()["left"], mine - left)
    late = info.estimates(spoken.moments.tiles == 17)["partner"]["told"]
    assert late.mean == pytest.approx(info.told[spoken.moments.tiles == 17, 0].mean())
    plain = info.to_dict()
    json.dumps([plain, info.rows()], allow_nan=False)
    assert plain["by_tiles"][17]["partner"]["told"]["mean"] == pytest.approx(late.mean)
    assert plain["secrecy"]["opponents"]["mean"] == pytest.approx(info.secrecy()["opponents"].mean())
    row = info.rows()[7]
    assert row["partner"]["gap"] == info.gap[7, 0] and row["action"] == spoken.moments.action[7] and row["legal"] > 1


def test_distances(spoken):
    """The distance to oneself is nothing; to others it is the gap to them, seat by seat."""
    others = [spoken.table, GREEDY, [PLAIN, GREEDY, PLAIN, GREEDY]]
    found = divergences(spoken.moments, spoken.table, others)
    assert found.shape == (len(spoken.moments), 3)
    itself = divergences(spoken.moments, spoken.table, [spoken.table], other_floor=0.0)
    assert (itself == 0).all()
    gap = measure(spoken.moments, spoken.table, GREEDY, places=[2]).gap[:, 0]
    assert np.allclose(found[:, 1], gap, rtol=0, atol=1e-12) and (gap > 0.1).any()
    even = spoken.moments.seat % 2 == 0
    assert np.allclose(found[~even, 2], gap[~even], atol=1e-12) and (found[even, 2] != gap[even]).any()
    rows = distances(spoken.moments, spoken.table, others)
    assert rows[1].mean == pytest.approx(gap.mean()) and rows[0].mean < rows[1].mean
    left = divergences(spoken.moments, spoken.table, [GREEDY], place=1)[:, 0]
    assert np.allclose(left, measure(spoken.moments, spoken.table, GREEDY).gap[:, 1], atol=1e-12)


def test_figure_and_share():
    values, deal = np.array([1.0, math.nan, 3.0]), np.arange(3)
    assert figure(values, deal).mean == 2 and figure(values, deal).count == 2
    assert share(np.array([1.0, 1.0, 0.0]), np.array([2.0, 1.0, 0.0]), deal).mean == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="infinite in 1 of 3 decisions"):
        figure(np.array([1.0, math.inf, 2.0]), deal)


def test_refusals(spoken):
    moments, table = spoken.moments.take(np.arange(4)), spoken.table
    with pytest.raises(ValueError, match=r"places=\(2, 4\) must be some of 1\.\.3, or -1 for the public"):
        measure(moments, table, GREEDY, places=[2, 4])
    with pytest.raises(ValueError, match="1 player, 2 or 4, not 3"):
        measure(moments, [CLUB, CLUB, CLUB], GREEDY)
    with pytest.raises(ValueError, match="has no probabilities"):
        measure(moments, make_agent("pimc-2"), GREEDY)
    with pytest.raises(ValueError, match="'rules' does not say"):
        measure(moments, table, "rules")
    with pytest.raises(ValueError, match="secrecy needs the partner and both opponents"):
        measure(moments, table, GREEDY, places=[2]).secrecy()
    endless = measure(spoken.moments, table, GREEDY, reference_floor=0.0)  # greedy never plays what they do
    assert np.isinf(endless.gap).any() and (np.isinf(endless.gap) | (endless.gap >= 0)).all()
    with pytest.raises(ValueError, match="give it a floor above 0"):
        endless.estimates()
    assert models_of("uniform", moments.position.rules) == ["uniform"] * 4


@pytest.mark.slow
@pytest.mark.parametrize("player", ["club", "public_private"])
def test_cost(player):
    """Four beliefs of one position: 0.1 s with 12 tiles on the line, 0.5 s with 8; three times that for a network."""
    rules, factor, model = get_rules("sport_book"), 1, CLUB
    if player != "club":
        torch = pytest.importorskip("torch")
        networks = pytest.importorskip("agents.networks")
        actor = networks.make_actor(player, rules, [128, 128], torch.Generator().manual_seed(0), False, choices=True)
        factor, model = 3, networks.Policy(actor, rules, sample=True, choices=True)
    for tiles, limit in ((12, 0.1), (8, 0.5)):
        view = play(CLUB, deals=16, seed=1, tiles=[tiles]).moments.seen_by(2)
        took = []
        for row in range(6):
            begin = time.process_time()
            levels_of(view.take(np.array([row])), GREEDY, model, floor=0.02, method="exact")
            took.append(time.process_time() - begin)
        assert sorted(took)[2] < factor * limit
