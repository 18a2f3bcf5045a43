"""Intervals over few seeds, against cases worked out by hand."""

import numpy as np
import pytest

from experiments.bootstrap import EXACT, coarse, seed_interval


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([3.0, 1.0], 1, 3),  # each of the two alone is a quarter of the draws
        ([0.0, 9.0, 3.0], 0, 9),  # one draw of 27 is more than 2.5 %
        # Of four seeds of which one is not 0: the mean is how often it is drawn. 4 times: 1 of 256; 3 times: 12 of 256.
        ([0.0, 0.0, 4.0, 0.0], 0, 3),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 1.8, 4.2),  # P(mean <= 1.6) = 56 / 3125 and P(mean <= 1.8) = 126 / 3125 by counting
        # Of eight, by chance: P(up to 2) = 0.933, P(up to 3) = 0.989.
        ([0.0] * 7 + [8.0], 0, 3),
    ],
)
def test_interval_of_hand_made_numbers(values: list[float], low: float, high: float) -> None:
    got = seed_interval(values)
    assert (float(got[0]), float(got[1])) == pytest.approx((low, high))


def test_every_column_is_taken_by_itself() -> None:
    values = np.random.default_rng(1).normal(size=(4, 3, 2))
    low, high = seed_interval(values)
    assert low.shape == high.shape == (3, 2)
    for i in np.ndindex(3, 2):
        assert [low[i], high[i]] == pytest.approx([float(end) for end in seed_interval(values[(slice(None), *i)])])
    assert (low < values.mean(axis=0)).all() and (values.mean(axis=0) < high).all()


def test_draws_by_chance_agree_with_all_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).normal(size=EXACT)
    exact = np.array(seed_interval(values))
    monkeypatch.setattr("experiments.bootstrap.EXACT", 1)
    assert np.array(seed_interval(values)) == pytest.approx(exact, abs=0.05)


def test_few_seeds_are_named() -> None:
    with pytest.raises(ValueError, match="two or more, not 1"):
        seed_interval([1.0])
    assert "no interval" in coarse(1) and "coarse" in coarse(2) and "three cases of four" in coarse(3)
    assert "too narrow" in coarse(5) and not coarse(30)


@pytest.mark.parametrize("seeds", [4, 5, 10, 20])
def test_how_often_so_few_seeds_hold_the_mean(seeds: int) -> None:
    low, high = seed_interval(np.random.default_rng(3).normal(size=(seeds, 1500)))
    held = 100 * ((low <= 0) & (high >= 0)).mean()
    said = float(coarse(seeds).split()[-4])
    assert said == pytest.approx(held, abs=2.5)
