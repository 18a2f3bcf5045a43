"""The controls hold, and do not where a measure is broken."""

import json

import numpy as np
import pytest

from experiments.signaling import validity as module
from experiments.signaling.exact import by_replay
from experiments.signaling.record import play
from experiments.signaling.report import QUICK
from experiments.signaling.sheets import of_validity
from experiments.signaling.statistics import NOTHING, Estimate
from experiments.signaling.validity import Validity, validity


def test_validity__small(monkeypatch):
    monkeypatch.setattr(module, "_REPLAYED", 1)
    calls = []
    found = validity(
        deals=60, doses=(0, 8), tiles=(16,), whole=False, progress=lambda done, total: calls.append((done, total))
    )
    assert calls[-1] == (6, 6) and len(found.controls) > 12
    assert found.doses[0].mean == 0 and found.doses[8].low > 0.3
    for row in found.rows():
        assert set(row) == {"name", "estimate", "low", "high", "expected", "holds"}
        assert row["holds"], row
    assert found.holds
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["holds"] and plain["controls"][0]["expected"] == "0 to 1e-09" and set(plain["doses"]) == {"0", "8"}
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    found.draw(axes)
    assert axes.lines[0].get_xdata().tolist() == [0, 8]


@pytest.mark.slow
def test_validity__at_length():
    found = validity()
    assert found.holds, [row for row in found.rows() if not row["holds"]]
    low = [one.low for one in found.doses.values()]
    assert low == sorted(low) and len(low) == 4


def test_validity__a_broken_measure_is_seen(monkeypatch):
    def biased(moments, *_, **__):
        return np.full((len(moments), 1), 1e-6)

    monkeypatch.setattr(module, "divergences", biased)

    def played(players, **settings):
        return play(players, deals=30, tiles=[20])

    controls = module._dose_response(played, (0, 2), {})
    assert [one.holds for one in controls] == [False, False]
    measured = module.measure

    def shifted(*arguments, **settings):
        info = measured(*arguments, **settings)
        info.told[0, 0] += 1e-6
        return info

    monkeypatch.setattr(module, "measure", shifted)
    assert [one.holds for one in module._negatives(played)] == [False, False, False, True]


def test_few_deals_leave_a_control_open():
    def of(mean, margin, units):
        return module._above("", Estimate(mean, mean - margin, mean + margin, margin / 2, units, units), 1.0, ", it")

    assert [of(2, 0.5, 9).holds, of(2, 1.5, 9).holds, of(0.5, 0.4, 9).holds] == [True, None, False]
    assert of(2, 1.5, module.FEW).holds is False and of(2, 0.5, 9).expected == "above 1.000, it"
    assert module._above("", NOTHING).holds is None is module._zero("", NOTHING).holds
    assert module._none("", np.zeros(0), np.zeros(0), 1.0).holds is None
    found = Validity((of(2, 0.5, 9), of(2, 1.5, 9)), {}, 9, "sport_book")
    assert found.open and not found.holds and not found.fails
    assert [one["holds"] for one in json.loads(json.dumps(found.to_dict()))["controls"]] == [True, None]
    sheet = of_validity(found)[0]
    assert [row[-1] for row in sheet.rows] == ["yes", "open"] and "9 deals of each table are too few" in sheet.notes[0]


def test_a_bound_that_is_named_is_the_one_that_is_tested():
    """An end of the weaker convention's interval, not its mean."""

    def played(players, **settings):
        return play(players, deals=6, tiles=[20])

    doses = {}
    for one, weak in zip(module._dose_response(played, (0, 2, 4), doses)[1:], (0, 2)):
        assert one.expected == f"above {doses[weak].high:.3f}, the upper end of strength {weak}"
        assert one.holds is (True if one.estimate.low > doses[weak].high else None)


@pytest.mark.slow
def test_the_deals_of_a_quick_report_are_enough():
    assert validity(deals=QUICK.controls, whole=False).holds


def test_refusals():
    with pytest.raises(ValueError, match="no decision in 3 deals of tiny_pairs with 7 tiles on the line: take more"):
        validity("tiny_pairs", deals=3, tiles=[7])
    with pytest.raises(ValueError, match=r"doses=\[2, 4\] must begin with 0 and go up"):
        validity(doses=(2, 4))
    with pytest.raises(ValueError, match="two deals or more, not deals=1"):
        validity(deals=1)
    with pytest.raises(ValueError, match="played without"):
        validity("blind")
    moments = play("random", deals=1, tiles=[4]).moments
    with pytest.raises(ValueError, match="deals are too many to be played again"):
        by_replay(moments, 0, 2, "uniform", "uniform")
