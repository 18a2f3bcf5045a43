"""Pairs of seeds: figures are those of `evaluate`, alike seeds have no gap, and trainings are the units."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from agents import make_agent
from experiments.evaluate import evaluate
from experiments.signaling import matches, sheets
from experiments.signaling.cross_play import CrossPlay, cross_play, difference, distances_of
from experiments.signaling.statistics import Estimate, held, over_units


class Seed:
    """An agent by another name."""

    def __init__(self, agent, name):
        self.agent, self.name = make_agent(agent), name

    def act(self, batch):
        return self.agent.act(batch)

    needs_history = True


def test_cross_play__the_bar_covers_the_distances():
    told = []
    cross_play(
        ["greedy", "random", "double_first"],
        ["club"],
        "tiny_pairs",
        boards=10,
        distances=lambda one, others: [1.0] * len(others),
        progress=lambda *now: told.append(now),
    )
    assert told == sorted(told) and {total for _, total in told} == {120}
    assert (60, 120) in told and told[-3:] == [(80, 120), (100, 120), (120, 120)]


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
        ["club", ("club", "planted:strength=0")],
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
    assert found.pool == ("club", "club+planted:strength=0") and told[-1] == (400, 400)
    for i, j in ((0, 0), (0, 1), (1, 3), (2, 2)):
        for k, opponents in enumerate(("club", ("club", "planted:strength=0"))):
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
    # All pairs share the boards: these are the units, and what the pairs win on each is one figure.
    board = found.values.mean(axis=2)
    by_hand = {"self_play": (board[2, 2] + board[3, 3]) / 2, "cross_play": board[2, 3]}
    for name, won in by_hand.items():
        over, one = getattr(other, f"{name}_over_boards"), over_units(won)
        assert (over.mean, over.low, over.high) == pytest.approx((one.mean, one.low, one.high)) and over.units == 20
        assert over.mean == pytest.approx(getattr(other, name).mean) and over.error > 0
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
    # What is not known is not taken for the largest of distances.
    hole = lopsided.copy()
    hole[1, 4] = np.nan
    some = CrossPlay(names, ("m", "m", "m", "o", "o"), ("pool",), "sport_book", 0, values, hole, 99)
    assert some.agreement["all"] == {"correlation": None, "p": None} and some.agreement["m"]["p"] is not None
    assert json.loads(json.dumps(some.to_dict(), allow_nan=False))["distances"][1][4] is None
    assert sheets.of_cross_play(some)[2].rows[1][5] == "–"
    some.draw(Figure().add_subplot(), "distances")


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
    words = {"pool": ["club"], "boards": 8, "draws": 100}
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
    rows = [words.removeprefix("m: ") for words, _ in found.rows()]
    assert rows[1::2] == [f"{words}, over boards" for words in rows[::2]] and rows[4] == "gap"
    assert plain["methods"][0]["self_play_over_boards"]["units"] == plain["boards"] == 3
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


def test_notes__how_often_intervals_hold():
    """A line for each number of trainings; of as many as leave nothing to say, none."""
    (line,) = planted([3, 4, 5], [1, 1, 1]).notes
    own, others, gap = held(3)
    assert line == (
        f"3 trainings: intervals over trainings are too narrow; of 100 about {own} hold the truth for partners of one "
        f"training, {others} for partners of different ones, {gap} for the gap"
    )
    values = np.zeros((34, 34, 1, 2))
    mixed = ("many",) * 30 + ("two",) * 2 + ("pair",) * 2
    found = CrossPlay(tuple(map(str, range(34))), mixed, ("pool",), "sport_book", 0, values, draws=20)
    assert found.notes == ["2 trainings give no interval over trainings; three would"] == found.to_dict()["notes"]
    assert sheets.of_cross_play(found)[0].notes == found.notes


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((["club"],), "needs two trainings or more of a method, and all has"),
        ((["club", "greedy", "club"],), "twice: club"),
        ((["random", "greedy"],), "a training is no opponent of itself, .* in the pool, too: greedy$"),
        ((["club", "random"], ["greedy", ("random", "club")]), "in the pool, too: club, random$"),
        ((["club", "greedy"], []), "a list of opponents"),
        ((["club", "greedy"], "greedy"), "a list of opponents"),
        ((["random", "greedy"], ["random"], "blitz"), "no game of pairs"),
    ],
)
def test_errors(words, line):
    with pytest.raises(ValueError, match=line):
        cross_play(*words)
