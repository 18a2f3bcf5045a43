"""A move, and all that follows from it by itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from domino_env.line import LineEngine, select_bit


def make_moves(
    engine: LineEngine, actions: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Makes a move in every row, then goes on where only one action is legal, until a seat has a choice.

    Args:
        engine: N rows, which are changed; rows whose deal ended stand still.
        actions: (N,) legal actions.

    Returns:
        (N, seats) points of the deals that ended, else 0; (N,) bool, which ended.
    """
    rewards, over = engine.step(actions, autoreset=False)
    rewards, over = rewards.copy(), over.copy()
    forced = np.flatnonzero((engine.legal_count() == 1) & ~over)
    while len(forced):
        part = engine.take(forced)
        bits = part.legal_bits()
        points, done = part.step(select_bit(bits, np.zeros(len(bits), np.uint8)), autoreset=False)
        engine.put(forced, part)
        rewards[forced[done]], over[forced[done]] = points[done], True
        forced = forced[(part.legal_count() == 1) & ~done]
    return rewards, over
