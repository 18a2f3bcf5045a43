"""Which mixture of the players nobody beats: the Nash equilibrium of the game of choosing a player.

Two choose a player each and get what the pay-off matrix says: what one wins the other loses. The game is symmetric, so
its value is 0, and a mixture is an equilibrium where no player wins anything against it. Where there are several, the
one of greatest entropy is taken (Balduzzi et al. 2018, Re-evaluating evaluation): players that are alike share evenly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp, softmax

Floats = npt.NDArray[np.float64]
_SMALL = 1e-6  # of a share: less is none


@dataclass(frozen=True)
class Mixture:
    """An equilibrium."""

    weights: Floats  # (n,) share of each player, adds up to 1
    against: Floats  # (n,) points of each player against the mixture, at most 0; what it is short of 0 is its regret
    value: float  # points of the mixture against itself
    unique: bool  # whether it is the only one; otherwise it is that of greatest entropy


def mixture(points: npt.ArrayLike) -> Mixture:
    """The equilibrium of a pay-off matrix, by linear programming (SciPy's HiGHS).

    Args:
        points: (n, n) of the row against the column, antisymmetric; the diagonal is taken as 0.
    Raises:
        ValueError: no such matrix.
    """
    table = np.array(points, np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not len(table):
        raise ValueError(f"a pay-off matrix has a row and a column a player, not the shape {table.shape}")
    np.fill_diagonal(table, 0)
    scale = float(np.abs(table).max()) or 1.0
    if not np.isfinite(scale) or np.abs(table + table.T).max() > 1e-9 * scale:
        raise ValueError("what the row wins against the column the column must lose, in every cell")
    game = table / scale
    ends = np.array([[_extreme(game, i, sign) for sign in (1, -1)] for i in range(len(game))])  # (n, 2, n)
    each = np.arange(len(game))
    spread = ends[each, 1, each] - ends[each, 0, each]  # of the shares that a player can have
    unique = bool(spread.max() < _SMALL)
    weights = ends.mean(axis=(0, 1))  # in the midst of all of them
    weights[weights < _SMALL / len(game)] = 0
    if not unique:
        weights = _evenest(game, weights > 0)
    weights = weights / weights.sum()
    against = table @ weights
    return Mixture(weights, against, float(weights @ against), unique)


def _extreme(game: Floats, player: int, sign: int) -> Floats:
    """The equilibrium in which this player has the least share (sign 1), or the greatest (-1)."""
    n = len(game)
    cost = np.zeros(n)
    cost[player] = sign
    answer: Any = linprog(cost, A_ub=game, b_ub=np.zeros(n), A_eq=np.ones((1, n)), b_eq=np.ones(1), method="highs-ds")
    if answer.x is None:
        raise ValueError(f"no equilibrium was found: {answer.message}")
    return np.maximum(answer.x, 0)


def _evenest(game: Floats, used: npt.NDArray[np.bool_]) -> Floats:
    """The equilibrium of greatest entropy among the players that any of them uses.

    Its shares are softmax(-game^T prices) for prices >= 0 that minimise the log of the sum (the dual problem).
    """
    held = game[:, used]

    def dual(prices: Floats) -> tuple[float, Floats]:
        scores = -prices @ held
        return float(logsumexp(scores)), -held @ softmax(scores)

    n = len(game)
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 0.0, "gtol": 1e-12}
    answer: Any = minimize(dual, np.zeros(n), jac=True, bounds=[(0, None)] * n, method="L-BFGS-B", options=options)
    weights = np.zeros(n)
    weights[used] = softmax(-answer.x @ held)
    return weights
