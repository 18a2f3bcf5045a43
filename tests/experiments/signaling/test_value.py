"""The square's algebra by hand, exact zeros where nobody differs, and intervals over trainings."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments.evaluate import evaluate
from experiments.signaling.value import FIGURES, SYMMETRIC, Square, Worlds, square, worlds


def made(cells, noise=0.0, boards=50, claim=None, seed=0):
    """A square of given means, with noise of each board that all four cells share, and a little of each."""
    rng = np.random.default_rng(seed)
    values = np.array(cells, float)[:, :, None] + rng.normal(size=boards) * 100
    return Square({}, "sport_book", 0, values + noise * rng.normal(size=values.shape), claim)


def test_square__by_hand():
    one = made([[1.0, -2.0], [4.0, 0.5]])
    by_hand = {"partner_0": 3, "partner_1": 2.5, "exposure_0": 3, "exposure_1": 3.5, "net": -0.5, "interaction": -0.5}
    found = {name: one.estimate(name) for name in FIGURES}
    assert {name: estimate.mean for name, estimate in found.items()} == pytest.approx(by_hand)
    # What all cells of a board share falls out of the differences: no width is left; of a cell it does not.
    assert all(estimate.error < 1e-10 for estimate in found.values()) and one.cell(1, 0).error > 5


def test_square__identities_hold_board_by_board():
    one = made([[1.0, -2.0], [4.0, 0.5]], noise=7)
    each = {name: one.each(name) for name in FIGURES}
    assert each["net"] == pytest.approx(each["partner_1"] - each["exposure_0"])
    assert each["net"] == pytest.approx(each["partner_0"] - each["exposure_1"])
    assert each["interaction"] == pytest.approx(each["partner_1"] - each["partner_0"])
    assert each["interaction"] == pytest.approx(each["exposure_0"] - each["exposure_1"])


def test_square__cells_are_matches_on_the_same_boards():
    players = {"hear_a": "club", "deaf_a": "greedy", "hear_b": "double_first", "deaf_b": "random"}
    one = square(*players.values(), boards=30, seed=2)
    assert one.sides == players
    for x, a in enumerate(("greedy", "club")):
        for y, b in enumerate(("random", "double_first")):
            assert (one.values[x, y] == evaluate(a, b, boards=30, seed=2).values).all()
    assert one.notes == [] and one.estimate("partner_0").mean > one.estimate("net").mean


def test_square__own_copy_is_exactly_nothing():
    one = square("greedy", "greedy", "greedy", "greedy", boards=20)
    for name in FIGURES:
        estimate = one.estimate(name)
        assert (estimate.mean, estimate.low, estimate.high) == (0, 0, 0) and not estimate.told
    assert [note[:30] for note in one.notes] == ["team A does not read its partn", "team B does not read its oppon"]
    deaf = square(
        ("greedy", "greedy"), "greedy", "random", "random", boards=20
    )  # it hears and does not, and plays the same
    assert not deaf.each("partner_1").any() and deaf.values.any()
    assert len(deaf.notes) == 1 and "team B does not read its opponents" in deaf.notes[0]


def test_square__one_network_deaf_at_both_teams_has_one_figure():
    one = square("greedy", "random", "greedy", "random", boards=40)
    assert one.notes == [SYMMETRIC] and not one.each("net").any() and not one.each("interaction").any()
    assert (one.each("partner_0") == one.each("exposure_1")).all() and one.estimate("partner_0").mean > 0


def test_square__claims():
    few = made([[0.0, 0.0], [0.3, 0.3]], noise=5, claim=0.5)
    assert len(few.notes) == len(FIGURES) and "net of reading and being read: 50 boards are too few" in few.notes[4]
    assert made([[0.0, 0.0], [9.0, 0.0]], noise=0.1, claim=20, boards=9).notes == []
    with pytest.raises(ValueError, match="claim=-1"):
        square("club", "club", "club", "club", boards=2, claim=-1)


def test_square__report(tmp_path):
    one = square("club", "greedy", "greedy", "random", boards=10, folder=tmp_path)
    plain = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert plain["figures"]["net"]["mean"] == one.estimate("net").mean and plain["boards"] == 10
    assert plain["cells"]["10"]["mean"] == one.cell(1, 0).mean and len(one.rows()) == 10
    assert square("club", "greedy", "greedy", "random", boards=10, folder=tmp_path).to_dict() == one.to_dict()
    axes = Figure().add_subplot()
    one.draw(axes)
    assert len(axes.get_yticks()) == len(FIGURES)


def test_worlds__trainings_are_units():
    """The spread of trainings is in the interval, however well each was measured."""
    true = [0.0, 2.0, 4.0, 6.0]
    found = Worlds(tuple(made([[0, 0], [value, value]], noise=1, boards=2000, seed=i) for i, value in enumerate(true)))
    over = found.estimate("partner_0")
    assert over.units == 4 and over.mean == pytest.approx(3, abs=0.1)
    assert over.high - over.low > 10 * (found.squares[0].estimate("partner_0").high - true[0])
    assert found.spread("partner_0") == pytest.approx(np.std(true, ddof=1), abs=0.1)
    assert found.spread("exposure_0") < 0.1  # only boards differ there
    assert any("4 seeds" in note for note in found.notes)


def test_worlds__boards_of_their_own():
    told = []
    found = worlds(
        ["greedy"] * 2,
        ["random"] * 2,
        ["double_first"] * 2,
        ["random"] * 2,
        boards=10,
        progress=lambda *now: told.append(now),
    )
    assert [one.seed for one in found.squares] == [0, 1] and told[-1] == (80, 80) and told == sorted(told)
    for i, one in enumerate(found.squares):
        assert (one.values == square("greedy", "random", "double_first", "random", boards=10, seed=i).values).all()
    assert found.estimate("net").mean == pytest.approx(np.mean([one.estimate("net").mean for one in found.squares]))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(plain["squares"]) == 2 and plain["figures"]["net"]["spread"] is not None
    axes = Figure().add_subplot()
    found.draw(axes)
    assert "2 trainings" in axes.get_xlabel()
    alone = Worlds(found.squares[:1]).to_dict()
    assert alone["figures"]["net"]["low"] is None and alone["figures"]["net"]["spread"] is None


def test_errors():
    with pytest.raises(ValueError, match=r"not \[1, 1, 0, 1\]"):
        worlds(["club"], ["club"], [], ["club"])
    with pytest.raises(ValueError, match="in blitz there are none"):
        square("random", "random", "random", "random", "blitz")
    with pytest.raises(ValueError, match="figure 'worth' is unknown"):
        made([[0, 0], [0, 0]]).each("worth")
