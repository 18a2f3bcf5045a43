"""Intervals cover what they say they do, with deals and seeds as units."""

import math

import numpy as np
import pytest

from experiments.signaling.statistics import (
    NOTHING,
    boards_needed,
    clustered,
    discoveries,
    finite,
    held,
    mantel,
    over_nodes,
    over_seeds,
    p_value,
    share,
)


def test_clustered__equal_deals_is_the_interval_over_deals():
    rng = np.random.default_rng(1)
    values, deal = rng.normal(size=60), np.repeat(np.arange(20), 3)
    found = clustered(values, deal)
    means = values.reshape(20, 3).mean(axis=1)
    assert found.mean == pytest.approx(means.mean()) and found.error == pytest.approx(means.std(ddof=1) / 20**0.5)
    assert (found.units, found.count) == (20, 60)
    shuffled = rng.permutation(60)
    assert clustered(values[shuffled], deal[shuffled]).error == pytest.approx(found.error)


def test_clustered__covers():
    """Decisions that hang together: intervals over deals hold the mean in 95 of 100 cases, over decisions far fewer."""
    rng, held, wrong = np.random.default_rng(2), 0, 0
    for _ in range(400):
        size = rng.integers(1, 9, size=40)
        deal = np.repeat(np.arange(40), size)
        values = rng.normal(size=40)[deal] + rng.normal(size=len(deal)) * 0.3
        held += clustered(values, deal).covers(0)
        wrong += clustered(values, np.arange(len(deal))).covers(0)
    assert 0.91 < held / 400 < 0.98 and wrong / 400 < 0.8


def test_clustered__little():
    assert clustered(np.zeros(0), np.zeros(0)) is NOTHING
    one = clustered(np.array([1.0, 3.0]), np.array([4, 4]))
    assert one.mean == 2 and math.isnan(one.error) and not one.told and one.to_dict()["low"] is None


def test_over_nodes__is_wider_than_pairs():
    """A seed that goes with nobody moves all of its pairs at once."""
    rng = np.random.default_rng(3)
    good = rng.normal(size=8)
    matrix = good[:, None] + good + rng.normal(size=(8, 8)) * 0.1

    def off(one):
        return float(np.nanmean(one[~np.eye(len(one), dtype=bool)]))

    found = over_nodes(matrix, off, draws=500)
    pairs = matrix[~np.eye(8, dtype=bool)]
    assert found.mean == pytest.approx(pairs.mean()) and found.error > 2.5 * pairs.std(ddof=1) / 56**0.5
    with pytest.raises(ValueError, match="three or more, not 2"):
        over_nodes(matrix[:2, :2], off)


def test_held__is_how_often_intervals_over_few_seeds_hold_the_truth():
    """What each wins with itself and what it brings to a pair scatter normally around 0."""
    trials, off = 100, ~np.eye(4, dtype=bool)
    rng, hits = np.random.default_rng(5), np.zeros(3)

    def figures(one):
        own, others = float(np.diagonal(one).mean()), float(np.nanmean(one[off]))
        return own, others, own - others

    for trial in range(trials):
        brings = rng.normal(size=4)
        matrix = brings[:, None] + brings
        np.fill_diagonal(matrix, rng.normal(size=4))
        found = [over_nodes(matrix, lambda one, k=k: figures(one)[k], draws=100, seed=trial) for k in range(3)]
        hits += [one.covers(0) for one in found]
    assert held(4) == (80, 75, 77)
    assert np.abs(hits - held(4)).max() < 13  # three standard errors
    assert held(9) == held(8) and held(29) == held(20) and held(2) is None is held(30)
    assert all(a <= b for n in range(3, 29) for a, b in zip(held(n), held(n + 1)))


def test_share__has_a_width_where_all_came_alike():
    deal = np.repeat(np.arange(5), 4)
    none, all_ = (share(np.full(20, came), deal) for came in (False, True))
    assert (none.mean, none.low, none.error) == (0, 0, 0) and none.high == pytest.approx(1 - 0.025 ** (1 / 5))
    assert (all_.low, all_.high) == pytest.approx((0.025 ** (1 / 5), 1))
    assert clustered(np.ones(20), deal).low == 1  # which a mean has not
    assert math.isnan(share(np.ones(3), np.zeros(3)).low) and share(np.zeros(0), np.zeros(0)) is NOTHING


def test_mantel():
    rng = np.random.default_rng(4)
    place = rng.normal(size=8)
    one = abs(place[:, None] - place)
    r, p = mantel(one, 2 * one + 1, draws=300)
    assert r == pytest.approx(1) and p < 0.02
    r, p = mantel(one, rng.normal(size=(8, 8)), draws=300)
    assert p > 0.05


def test_discoveries():
    """Benjamini and Hochberg by hand: 0.01 of 4 and 0.02 of 4 give 0.04 and 0.04."""
    assert discoveries(np.array([0.02, 0.9, 0.01, 0.5, np.nan]))[:4] == pytest.approx([0.04, 0.9, 0.04, 2 / 3])


def test_p_value_and_boards():
    found = clustered(np.array([1.0, 2.0, 3.0]), np.arange(3))
    assert p_value(found, 2.0) == pytest.approx(1) and p_value(found) == pytest.approx(0.0742, abs=1e-4)
    assert math.isnan(p_value(NOTHING))
    assert boards_needed(14, 1) == 1539 and boards_needed(14, 0.5) == 6154


def test_p_value__of_deals_that_are_alike():
    """No spread is no proof: two deals that agree would by chance, too, in one case of two."""
    for value in (0.5, 0.1):  # the second leaves an error of rounding
        for deals, p in ((2, 0.5), (8, 2**-7)):
            found = clustered(np.full(3 * deals, value), np.repeat(np.arange(deals), 3))
            assert found.error == pytest.approx(0, abs=1e-15) and found.told
            assert p_value(found) == p and p_value(found, value) == 1


def test_over_seeds():
    found = over_seeds(np.array([1.0, 3.0]))
    assert (found.low, found.high) == (1, 3)
    assert math.isnan(over_seeds(np.array([1.0])).low)


def test_finite__is_for_json():
    assert [finite(one) for one in (0.0, math.nan, math.inf, np.float64(2.5))] == [0.0, None, None, 2.5]
    assert NOTHING.to_dict() == dict.fromkeys(("mean", "low", "high", "error")) | {"units": 0, "count": 0}
