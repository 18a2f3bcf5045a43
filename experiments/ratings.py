"""One number a pair: the Bradley-Terry model by maximum likelihood, on the scale of Elo.

A board that a pair wins, ties or loses counts 1, 1/2 or 0; by how much is left to the points. The rating is the pair's,
so partners share it. All boards are fitted at once (`choix`, Maystre and Grossglauser 2015: iterated Luce spectral
ranking, whose fixed point is the maximum-likelihood estimate of Bradley and Terry 1952), so that their order does not
matter: updates one match after the other, as of Elo or OpenSkill, would depend on it.

So that a pair that never lost has a finite rating, every pair is also given one tied board, spread evenly over the
others. Intervals come from a bootstrap: boards are drawn with replacement and the ratings fitted anew. Where all meet
on the same boards a board is drawn for all of them together, for what it is worth is alike in all its matches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import choix
import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float64]
#: Two sides, and the net points of the first, board by board: (boards,).
Meeting = tuple[str, str, Sequence[float] | Floats]
Rating = dict[str, float | None]

MEAN = 1500.0  # of all ratings
ELO = 400 / math.log(10)  # rating points of a unit of log odds: 400 points are odds of ten to one
SAMPLES = 500
CONFIDENCE = 0.95
_PRIOR = 1.0  # tied boards of every pair
_AT_ONCE = 1 << 21  # numbers of a piece of the bootstrap
_STEPS, _EXACT = 100, 1e-9


def expected(a: float, b: float) -> float:
    """The share of boards that a pair rated `a` is expected to win against one rated `b`, a tie counted half."""
    return 1 / (1 + math.exp((b - a) / ELO))


def fit(wins: Floats) -> Floats:
    """Ratings from who won how often.

    Args:
        wins: (n, n) boards that the row won against the column, ties half; the diagonal is not looked at.
    Returns:
        (n,) ratings of mean `MEAN`.
    """
    if len(wins) == 1:
        return np.full(1, MEAN)
    return MEAN + ELO * np.asarray(choix.ilsr_pairwise_dense(_with_prior(wins), max_iter=10_000))


def rate(players: Sequence[str], meetings: Sequence[Meeting], *, shared: bool, seed: int = 0) -> dict[str, Rating]:
    """Ratings of all who met, with their intervals.

    Args:
        players: names, each once.
        meetings: who met whom, in any order; two may meet again.
        shared: whether board k is the same deal in all meetings, which then have the same number of boards.
        seed: of the bootstrap.
    Returns:
        by player `rating`, and `low` and `high`, the ends of the 95 % interval: None for one who played no board, and
        no interval from fewer than two boards.
    Raises:
        ValueError: a player twice or one who is not named, or boards that are not shared.
    """
    names = sorted(players)  # not even the rounding shall depend on the order
    place = {name: i for i, name in enumerate(names)}
    if len(place) < len(names):
        raise ValueError(f"each player has one rating; twice in {', '.join(players)}")
    sides, boards = [], []
    for a, b, values in sorted((_upright(meeting) for meeting in meetings), key=lambda one: (one[:2], list(one[2]))):
        if a not in place or b not in place or a == b:
            raise ValueError(f"{a} against {b} is no meeting of two of {', '.join(players)}")
        sides.append((place[a], place[b]))
        boards.append((np.sign(np.asarray(values, np.float64)) + 1) / 2)
    if shared and len({len(scores) for scores in boards}) > 1:
        raise ValueError("meetings on the same boards have the same number of boards")
    count = np.zeros(len(names), np.int64)
    for pair, scores in zip(sides, boards):
        count[list(pair)] += len(scores)
    if not count.any():
        return {name: {"rating": None, "low": None, "high": None} for name in players}
    won, met, units = _incidence(boards, shared)
    one = np.ones((units, 1))
    point = fit(_wins(sides, won @ one, met @ one, len(names))[0])
    low = high = np.full(len(names), np.nan)
    if units > 1:
        drawn = [
            _refit(_wins(sides, won @ weights, met @ weights, len(names)), point)
            for weights in _weights(units, max(len(sides), len(names) ** 2), seed)
        ]
        low, high = np.quantile(np.concatenate(drawn), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)

    def rating(i: int) -> Rating:
        row = zip(("rating", "low", "high"), (point[i], low[i], high[i]))
        return {key: float(value) if count[i] and np.isfinite(value) else None for key, value in row}

    return {name: rating(place[name]) for name in players}


def _upright(meeting: Meeting) -> tuple[str, str, Floats]:
    """The meeting with its sides in the order of the alphabet."""
    a, b, values = meeting[0], meeting[1], np.asarray(meeting[2], np.float64)
    return (a, b, values) if a <= b else (b, a, -values)


def _incidence(boards: Sequence[Floats], shared: bool) -> tuple[sparse.csr_array, sparse.csr_array, int]:
    """(meetings, units) what the first side won, and how many boards were played, of each unit that is drawn."""
    total = sum(map(len, boards))
    row = np.repeat(np.arange(len(boards)), [len(scores) for scores in boards])
    unit = np.concatenate([np.arange(len(scores)) for scores in boards]) if shared else np.arange(total)
    units = int(unit[-1]) + 1
    shape = (len(boards), units)
    won = sparse.csr_array((np.concatenate(boards), (row, unit)), shape=shape)
    return won, sparse.csr_array((np.ones(total), (row, unit)), shape=shape), units


def _weights(units: int, size: int, seed: int) -> Iterator[Floats]:
    """(units, samples) how often each unit was drawn, in pieces that fit into memory."""
    rng = np.random.default_rng(seed)
    piece = max(1, _AT_ONCE // max(units, size))
    for start in range(0, SAMPLES, piece):
        drawn = rng.multinomial(units, np.full(units, 1 / units), min(piece, SAMPLES - start))
        yield drawn.T.astype(np.float64)


def _wins(sides: Sequence[tuple[int, int]], won: Floats, met: Floats, players: int) -> Floats:
    """(samples, n, n) boards won by the row against the column, from (meetings, samples)."""
    wins = np.zeros((players, players, won.shape[1]))
    for (a, b), first, boards in zip(sides, won, met):
        wins[a, b] += first
        wins[b, a] += boards - first
    return wins.transpose(2, 0, 1)


def _with_prior(wins: Floats) -> Floats:
    """The same with the tied boards of the prior, and nothing on the diagonal."""
    n = wins.shape[-1]
    return (wins + _PRIOR / 2 / (n - 1)) * (1 - np.eye(n))


def _refit(wins: Floats, point: Floats) -> Floats:
    """(samples, n) the ratings of :func:`fit` for each of (samples, n, n), from nearby.

    Newton's method for all samples at once, which is many times as fast as one fit after the other. The likelihood is
    concave; a step is cut to one unit of log odds, so that it does not leap over the top where it is flat.
    """
    wins = _with_prior(wins)
    n = wins.shape[-1]
    both = wins + wins.transpose(0, 2, 1)
    theta = np.broadcast_to((point - MEAN) / ELO, wins.shape[:2]).copy()
    for _ in range(_STEPS):
        share = 1 / (1 + np.exp(theta[:, None, :] - theta[:, :, None]))
        gradient = wins.sum(axis=2) - (both * share).sum(axis=2)
        curve = both * share * (1 - share)
        hessian = curve.sum(axis=2)[:, :, None] * np.eye(n) - curve
        # Where all move together nothing changes: 1/n there keeps the sum, and makes the matrix regular.
        step = np.linalg.solve(hessian + 1 / n, gradient[..., None])[..., 0]
        most = np.abs(step).max(axis=1, keepdims=True)
        theta += step / np.maximum(most, 1)
        if most.max() < _EXACT:
            return MEAN + ELO * theta
    raise RuntimeError(f"the ratings of a bootstrap sample did not settle in {_STEPS} steps")
