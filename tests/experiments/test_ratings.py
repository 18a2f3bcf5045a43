"""Ratings: the arithmetic by hand, order, ties, who never lost, known strengths, and what the intervals hang on."""

import math

import choix
import numpy as np
import pytest

from experiments.ratings import ELO, MEAN, _refit, _with_prior, expected, fit, rate

RNG = np.random.default_rng(5)
NAMES = ["a", "b", "c", "d"]


def played(theta, boards, rng, ties=0.0):
    """Meetings of all with all by given strengths (rating points); a part of the boards is tied."""
    meetings = []
    for i, a in enumerate(theta):
        for j in range(i):
            won = rng.random(boards) < expected(a, theta[j])
            values = np.where(rng.random(boards) < ties, 0.0, np.where(won, 3.0, -3.0))
            meetings.append((f"p{i}", f"p{j}", values))
    return [f"p{i}" for i in range(len(theta))], meetings


def numbers(ratings):
    return {name: one["rating"] for name, one in ratings.items()}


def test_expected__the_scale_of_elo():
    assert expected(1600, 1400) == pytest.approx(0.759747, abs=1e-6)
    assert expected(1400, 1600) == pytest.approx(1 - 0.759747, abs=1e-6)
    assert expected(1234, 1234) == 0.5
    assert expected(1900, 1500) == pytest.approx(10 / 11)


def test_rate__by_hand():
    # Three boards won and one lost, and the tied board of the prior: odds of 3.5 to 1.5.
    found = numbers(rate(["a", "b"], [("a", "b", [1, 2, 30, -5])], shared=True))
    half = 200 * math.log10(3.5 / 1.5)
    assert found == pytest.approx({"a": 1500 + half, "b": 1500 - half}, abs=1e-6)
    assert found["a"] == pytest.approx(1573.595, abs=1e-3)
    # A win is worth more than a tie, a tie more than a loss, and a margin nothing.
    win, tie, loss = (numbers(rate(["a", "b"], [("a", "b", [x, 1, -1])], shared=True))["a"] for x in (1, 0, -1))
    assert win > tie > loss and tie == pytest.approx(1500) and win - 1500 == pytest.approx(1500 - loss)
    big, small = (rate(["a", "b"], [("a", "b", [x, 1, -1, -1])], shared=True) for x in (0.5, 40))
    assert big == small


def test_rate__where_elo_stands_still():
    """B27: at the ratings that the results speak for, the expected share is the share there was."""
    high, low = fit(np.array([[0, 759_747], [240_253, 0.0]]))
    assert (high, low) == pytest.approx((1600, 1400), abs=0.01)
    assert fit(np.array([[0, 240_253], [759_747.0, 0]])) == pytest.approx([low, high])


def test_rate__a_tie_counts_half():
    ties = rate(NAMES[:3], [("a", "b", [0, 0, 4, 1]), ("b", "c", [0, 0, 3, -1])], shared=False)
    split = rate(NAMES[:3], [("a", "b", [1, -1, 4, 1]), ("b", "c", [2, -2, 3, -1])], shared=False)
    assert numbers(ties) == pytest.approx(numbers(split), abs=1e-6)
    assert numbers(rate(NAMES[:2], [("a", "b", [0] * 50)], shared=True)) == pytest.approx({"a": MEAN, "b": MEAN})


def test_rate__equal_players_are_rated_equal():
    values = [3, -3, 0, 1, -1, 2, -2]
    found = rate(NAMES, [(a, b, values) for a in NAMES for b in NAMES if a < b], shared=True)
    assert list(numbers(found).values()) == pytest.approx([MEAN] * 4, abs=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_rate__nothing_depends_on_the_order(shared):
    names, meetings = played([1700, 1500, 1450, 1350], 60, np.random.default_rng(1), ties=0.2)
    found = rate(names, meetings, shared=shared, seed=3)
    assert sum(numbers(found).values()) == pytest.approx(4 * MEAN)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mixed = [meetings[i] for i in rng.permutation(len(meetings))]
        turned = [(b, a, [-x for x in values]) if rng.random() < 0.5 else (a, b, values) for a, b, values in mixed]
        players = [names[i] for i in rng.permutation(4)]
        again = rate(players, turned, shared=shared, seed=3)
        assert again == found and list(again) == players  # to the last bit, the intervals too


def test_rate__who_never_lost_has_a_finite_rating():
    found = rate(["a", "b"], [("a", "b", [6] * 400)], shared=True)
    assert found["a"]["rating"] - found["b"]["rating"] == pytest.approx(400 * math.log10(400.5 / 0.5), abs=1e-4)
    names, meetings = played([1500, 1500, 1500], 100, np.random.default_rng(2))
    best = [("best", name, [1] * 100) for name in names]
    found = rate([*names, "best"], [*meetings, *best], shared=True)
    assert all(math.isfinite(value) for one in found.values() for value in one.values())
    assert found["best"]["rating"] > 2000 and found["best"]["rating"] == max(numbers(found).values())


def test_rate__known_strengths_are_found():
    theta = np.array([1720.0, 1580, 1500, 1460, 1240])
    names, meetings = played(theta, 4000, np.random.default_rng(7))
    found = rate(names, meetings, shared=True)
    assert list(numbers(found).values()) == pytest.approx(theta, abs=12)
    assert all(8 < one["high"] - one["low"] < 40 for one in found.values())


def test_rate__intervals_hold_what_they_promise():
    """Of two equals over 100 boards: the half width by theory is 1.96 ELO / (2 sqrt(100 / 4)), and 95 % hold 1500."""
    inside, widths = 0, []
    for seed in range(60):
        names, meetings = played([1500, 1500], 100, np.random.default_rng(seed))
        one = rate(names, meetings, shared=True, seed=seed)["p0"]
        inside += one["low"] <= 1500 <= one["high"]
        widths.append((one["high"] - one["low"]) / 2)
    assert 52 <= inside <= 60
    assert np.mean(widths) == pytest.approx(1.96 * ELO / 2 / 5, rel=0.1)


def test_rate__a_board_is_drawn_for_all_its_matches():
    """What one wins on a board in every match is one piece of luck, not three."""
    luck = np.where(RNG.random(200) < 0.5, 1.0, -1.0)
    meetings = [("a", name, luck) for name in "bcd"]
    together, apart = (rate(NAMES, meetings, shared=shared)["a"] for shared in (True, False))
    assert together["rating"] == apart["rating"]
    ratio = (together["high"] - together["low"]) / (apart["high"] - apart["low"])
    assert ratio == pytest.approx(math.sqrt(3), rel=0.15)


def test_refit__is_the_fit_of_every_sample():
    wins = RNG.integers(0, 30, (40, 5, 5)).astype(float)
    wins[:10, 0] = 40  # one that loses nearly nothing, or nothing
    wins[:5, :, 0] = 0
    found = _refit(wins, fit(wins.mean(axis=0)))
    assert found == pytest.approx(np.stack([fit(one) for one in wins]), abs=1e-3)
    # and the fit is the maximum: no gradient is left there (Bradley and Terry: wins = expected wins)
    one = _with_prior(wins[7])
    share = 1 / (1 + np.exp((found[7][None] - found[7][:, None]) / ELO))
    assert one.sum(axis=1) == pytest.approx(((one + one.T) * share).sum(axis=1), abs=1e-6)
    assert choix.ilsr_pairwise_dense(one, max_iter=1000) * ELO + MEAN == pytest.approx(found[7], abs=1e-3)


def test_rate__who_has_not_played_has_no_rating():
    found = rate(NAMES, [("a", "b", [1, -1, 1])], shared=False)
    assert found["c"] == found["d"] == {"rating": None, "low": None, "high": None}
    assert found["a"]["rating"] > found["b"]["rating"]
    none = {"rating": None, "low": None, "high": None}
    assert rate(["a", "b"], [], shared=True) == {"a": none, "b": none}
    one = rate(["a", "b"], [("a", "b", [1])], shared=True)
    assert one["a"]["low"] is None and one["a"]["rating"] > 1500


def test_rate__refusals():
    with pytest.raises(ValueError, match="one rating"):
        rate(["a", "a"], [], shared=True)
    for meeting in (("a", "x", [1]), ("a", "a", [1])):
        with pytest.raises(ValueError, match="no meeting of two of a, b"):
            rate(["a", "b"], [meeting], shared=True)
    with pytest.raises(ValueError, match="same number of boards"):
        rate(NAMES, [("a", "b", [1]), ("a", "c", [1, 2])], shared=True)
