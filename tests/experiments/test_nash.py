"""The mixture that nobody beats: known games, brute force over supports, and which one where there are several."""

from itertools import combinations

import numpy as np
import pytest

from experiments.nash import mixture

ROCK = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], float)  # rock, paper, scissors


def antisymmetric(n, rng):
    half = np.triu(rng.normal(size=(n, n)), 1)
    return half - half.T


def entropy(weights):
    used = weights[weights > 0]
    return float(-(used * np.log(used)).sum())


def by_brute_force(points):
    """All corners of the set of equilibria: where so many of its bounds hold at once that one point is left."""
    n, corners = len(points), []
    bounds = np.vstack([np.eye(n), points])  # weights >= 0, points @ weights <= 0
    for held in combinations(range(2 * n), n - 1):
        rows = np.vstack([np.ones(n), bounds[list(held)]])
        if abs(np.linalg.det(rows)) > 1e-9:
            weights = np.linalg.solve(rows, np.eye(n)[0])
            inside = weights.min() > -1e-9 and (points @ weights).max() < 1e-9
            if inside and not any(np.allclose(weights, one) for one in corners):
                corners.append(weights)
    return corners


def test_rock_paper_scissors():
    found = mixture(ROCK)
    assert found.weights == pytest.approx([1 / 3] * 3) and found.unique
    assert found.against == pytest.approx([0, 0, 0], abs=1e-9) and found.value == pytest.approx(0)
    # Whose win counts double is played less by the others: 1/4, 1/4 and 1/2, by hand.
    found = mixture([[0, -1, 2], [1, 0, -1], [-2, 1, 0]])
    assert found.weights == pytest.approx([0.25, 0.5, 0.25])


def test_a_beaten_player_has_no_share():
    points = np.zeros((4, 4))
    points[:3, :3] = 3 * ROCK
    points[3, :3], points[:3, 3] = -2, 2
    found = mixture(points)
    assert found.weights == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0]) and found.weights[3] == 0 and found.unique
    assert found.against == pytest.approx([0, 0, 0, -2], abs=1e-9)


def test_of_an_order_of_strength_the_best_alone():
    strength = np.array([1.0, 6, 3, 4.5, -2])
    found = mixture(strength[:, None] - strength)
    assert found.weights.tolist() == [0, 1, 0, 0, 0] and found.unique
    assert found.against == pytest.approx(strength - 6)


def test_against_brute_force():
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(40):
        points = antisymmetric(int(rng.integers(2, 6)), rng)
        (expected,) = by_brute_force(points)  # where no two figures are alike there is one
        found = mixture(points)
        assert found.weights == pytest.approx(expected, abs=1e-7) and found.unique
        sizes.append(int((found.weights > 0).sum()))
    assert {1, 3} <= set(sizes)


def test_of_several_the_one_of_greatest_entropy():
    assert mixture(np.zeros((4, 4))).weights == pytest.approx([0.25] * 4)
    twice = ROCK[np.ix_([0, 0, 1, 2], [0, 0, 1, 2])]  # rock is entered twice
    found = mixture(twice)
    assert found.weights == pytest.approx([1 / 6, 1 / 6, 1 / 3, 1 / 3], abs=1e-6) and not found.unique
    two = np.array([[0, 0, 1], [0, 0, 5], [-1, -5, 0]], float)  # two are level, and beat the third
    assert mixture(two).weights == pytest.approx([0.5, 0.5, 0], abs=1e-6)
    # The first may have 3/4 at most: with more of it than three times the second, the third wins.
    bound = np.array([[0, 0, -1], [0, 0, 3], [1, -3, 0]], float)
    assert mixture(bound).weights == pytest.approx([0.5, 0.5, 0], abs=1e-6)
    rng = np.random.default_rng(1)
    several = 0
    for _ in range(25):
        half = np.triu(rng.integers(-1, 2, (5, 5)), 1).astype(float)
        points = half - half.T
        found, all_of_them = mixture(points), by_brute_force(points)
        assert found.against.max() < 1e-6 and found.weights.sum() == pytest.approx(1)
        assert found.unique == (len(all_of_them) == 1)
        several += not found.unique
        for _ in range(20):  # every mixture of equilibria is one
            share = rng.dirichlet(np.ones(len(all_of_them)))
            assert entropy(share @ np.array(all_of_them)) <= entropy(found.weights) + 1e-6
    assert several > 5


def test_units_do_not_matter():
    points = antisymmetric(5, np.random.default_rng(3))
    assert mixture(1e4 * points).weights == pytest.approx(mixture(1e-4 * points).weights, abs=1e-6)
    assert mixture([[0]]).weights.tolist() == [1.0]


def test_refusals():
    for points in ([[0, 1], [1, 0]], [[0, 1, 2], [-1, 0, 3]], [], [[0, np.nan], [np.nan, 0]], [1, 2]):
        with pytest.raises(ValueError, match=r"a row and a column|the column must lose"):
            mixture(points)
