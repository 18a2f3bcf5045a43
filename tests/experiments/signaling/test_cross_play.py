"""Pairs of seeds: figures are those of `evaluate`, alike seeds have no gap, and trainings are the units."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from agents import make_agent
from experiments.evaluate import evaluate
from experiments.signaling import matches
from experiments.signaling.cross_play import CrossPlay, cross_play, difference, distances_of
from experiments.signaling.statistics import Estimate


class Seed:
    """An agent by another name."""

    def __init__(self, agent, name):
        self.agent, self.name = make_agent(agent), name

    def act(self, batch):
        return self.agent.act(batch)

    needs_history = True


def planted(own, with_others, distances=None, boards=3, draws=400):
    """Seeds of given points: (n,) own, (n,) what each brings to a pair of two seeds."""
    n = len(own)
    points = (np.array(with_others)[:, None] + with_others).astype(float)
    np.fill_diagonal(points, own)
    values = points[:, :, None, None] + np.array([-1.0, 0, 1])[:boards]
    return CrossPlay(tuple(f"s{i}" for i in range(n)), ("m",) * n, ("pool",), "sport_book", 0, values, distances, draws)


def test_cross_play__figures_are_those_of_evaluate():
    told = []
    found = cross_play(
        {"rules": ["greedy", Seed("greedy", "again")], "other": ["random", "double_first"]},
        ["greedy", ("double_first", "random")],
        boards=20,
        seed=4,
        progress=lambda *now: told.append(now),
    )
    players = ["greedy", "greedy", "random", "double_first"]
    assert found.players == ("greedy", "again", "random", "double_first") and found.method == (
        "rules",
        "rules",
        "other",
        "other",
    )
    assert found.pool == ("greedy", "double_first+random") and told[-1] == (400, 400)
    for i, j in ((0, 0), (0, 1), (1, 3), (2, 2)):
        for k, opponents in enumerate(("greedy", ("double_first", "random"))):
            one = evaluate((players[i], players[j]), opponents, boards=20, seed=4).values
            assert (found.values[i, j, k] == one).all() and (found.values[j, i, k] == one).all()
    points = found.points
    assert points[0, 1] == pytest.approx(found.values[0, 1].mean())
    assert found.gaps[0, 3] == pytest.approx((points[0, 0] + points[3, 3]) / 2 - points[0, 3])
    alike, other = found.methods
    assert alike.gap.mean == alike.gap_over_boards.error == 0
    assert other.gap.mean == pytest.approx((points[2, 2] + points[3, 3]) / 2 - points[2, 3])
    assert other.gap.to_dict()["low"] is None  # of two seeds there is no interval
    assert other.gap_over_boards.mean == pytest.approx(other.gap.mean) and other.gap_over_boards.error > 0
    assert found.between["rules x other"].mean == pytest.approx(points[:2, 2:].mean())


def test_cross_play__alike_seeds_have_no_gap():
    seeds = [Seed("greedy", f"seed {i}") for i in range(3)]
    found = cross_play(seeds, ["random"], boards=7, draws=200)
    assert (found.points == found.points[0, 0]).all() and found.points[0, 0] != 0 and not found.gaps.any()
    (one,) = found.methods
    for gap in (one.gap, one.gap_over_boards):
        assert (gap.mean, gap.low, gap.high, gap.error) == (0, 0, 0, 0)
    assert one.self_play.mean == pytest.approx(one.cross_play.mean) == pytest.approx(one.middle)


def test_cross_play__planted_order():
    """A seed that goes with nobody is found, and its share in the gap is as uncertain as seeds are few."""
    found = planted([20, 21, 19, 20, 20, 20], [9, 9, 9, 9, 9, -5])
    (one,) = found.methods
    assert one.worst == "s5" and one.worst_points == pytest.approx(4)
    assert one.self_play.mean == pytest.approx(20) and one.cross_play.mean == pytest.approx((10 * 18 + 5 * 4) / 15)
    assert one.gap.mean == pytest.approx(one.self_play.mean - one.cross_play.mean) and one.gap.told
    # The pairs of one bad seed hang together: its absence or its doubling moves the gap far.
    off = found.points[~np.eye(6, dtype=bool)]
    assert one.gap.error > 1.5 * off.std(ddof=1) / len(off) ** 0.5
    assert one.gap.low < 4 < 8 < one.gap.high
    assert one.middle == pytest.approx((2 * 4 + 7 * 18) / 9)
    good = planted([20, 21, 19, 20, 20, 20], [9, 9, 9, 9, 9, 9]).methods[0]
    assert good.gap.high < one.gap.mean and good.gap.mean == pytest.approx(2)


def test_difference():
    """By hand: 3-4-5 on either side."""
    one, other = Estimate(10, 7, 16, 1.5, 5, 25), Estimate(2, -6, 6, 2.0, 4, 16)
    found = difference(one, other)
    assert (found.mean, found.low, found.high, found.error) == (8, 3, 18, 2.5)


def test_agreement():
    place = np.array([0.0, 1, 3, 7, 8])
    far = abs(place[:, None] - place)
    values = np.zeros((5, 5, 1, 4)) - far[:, :, None, None]  # two lose as much as they are apart
    names = tuple("abcde")
    lopsided = far * np.where(np.triu(far) > 0, 1.5, 0.5)
    found = CrossPlay(names, ("m",) * 5, ("pool",), "sport_book", 0, values, lopsided, 99)
    assert found.agreement["m"]["correlation"] == pytest.approx(1) and found.agreement["m"]["p"] < 0.05
    flat = CrossPlay(names, ("m",) * 5, ("pool",), "sport_book", 0, values * 0, far, 99)
    assert flat.agreement == {"m": {"correlation": None, "p": None}}
    assert CrossPlay(names, ("m",) * 5, ("pool",), "sport_book", 0, values).agreement == {}
    both = CrossPlay(names, ("m", "m", "m", "o", "o"), ("pool",), "sport_book", 0, values, far, 99).agreement
    assert set(both) == {"m", "o", "all"} and both["o"]["p"] is None and both["all"]["p"] < 0.05


def test_distances():
    def apart(one, others):
        return [Estimate(float(ord(one) - ord(other)), 0, 0, 0, 1, 1) for other in others]

    told = []
    found = distances_of(["a", "c", "d"], apart, lambda *now: told.append(now))
    assert found.tolist() == [[0, -2, -3], [2, 0, -1], [3, 1, 0]] and told == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(ValueError, match="distances of a to 1 others are so many, not 0"):
        distances_of(["a", "b"], lambda one, others: [])
    played = cross_play(
        ["double_first", "greedy"], ["random"], boards=2, distances=lambda one, others: [len(one) - len(others[0])]
    )
    assert played.distances is not None and played.distances.tolist() == [[0, 6], [-6, 0]]
    with pytest.raises(ValueError, match=r"\(2, 2\) matrix, not one of \(1, 1\)"):
        cross_play(["club", "greedy"], ["random"], boards=2, distances=[[0.0]])


def test_cross_play__interrupted(monkeypatch, tmp_path):
    """What was played is kept, and the end is the same, byte by byte."""
    seeds = ["random", "greedy", "double_first"]
    words = {"pool": ["random"], "boards": 8, "draws": 100}
    whole = cross_play(seeds, folder=tmp_path / "whole", **words)
    seen = []

    def stopping(a, b, *more, **rest):
        seen.append((a, b))
        if len(seen) == 4:
            raise KeyboardInterrupt
        return evaluate(a, b, *more, **rest)

    monkeypatch.setattr(matches, "evaluate", stopping)
    with pytest.raises(KeyboardInterrupt):
        cross_play(seeds, folder=tmp_path / "cut", **words)
    cut = cross_play(seeds, folder=tmp_path / "cut", **words)
    assert len(seen) == 4 + 3
    assert json.dumps(cut.to_dict(), allow_nan=False) == json.dumps(whole.to_dict(), allow_nan=False)
    kept = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "cut")]
    assert kept[0] == kept[1] and len(kept[0]) == 6
    more = cross_play([*seeds, Seed("random", "more")], folder=tmp_path / "cut", **words)
    assert len(seen) == 7 + 4 and (more.points[:3, :3] == whole.points).all()


def test_report():
    found = planted([3, 4, 5], [1, 1, 1], distances=np.ones((3, 3)) - np.eye(3))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["points"][0] == [3, 2, 2] and plain["methods"][0]["gap"]["mean"] == 2
    assert [words for words, _ in found.rows()][2] == "m: gap"
    for what in ("points", "gaps", "distances"):
        axes = Figure().add_subplot()
        found.draw(axes, what)
        assert len(axes.texts) == 9
    axes = Figure().add_subplot()
    found.draw_agreement(axes)
    assert len(axes.lines[0].get_xdata()) == 3
    with pytest.raises(ValueError, match="no picture of 'bits'"):
        found.draw(axes, "bits")
    bare = planted([3, 4, 5], [1, 1, 1])
    with pytest.raises(ValueError, match="no picture of 'distances'"):
        bare.draw(axes, "distances")
    with pytest.raises(ValueError, match="no distances"):
        bare.draw_agreement(axes)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((["club"],), "needs two trainings or more of a method, and all has"),
        ((["club", "greedy", "club"],), "twice: club"),
        ((["club", "greedy"], []), "a list of opponents"),
        ((["club", "greedy"], "greedy"), "a list of opponents"),
        ((["random", "greedy"], ["random"], "blitz"), "no game of pairs"),
    ],
)
def test_errors(words, line):
    with pytest.raises(ValueError, match=line):
        cross_play(*words)
