"""What the seat to move would do if it held other hands: a player's whole answer, hand by hand.

`reading.py` asks how likely the past is; this asks about the present decision. Together they say what a move will tell:
who believes `b` about the mover's hand expects it to play the mean of the answers under `b`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import need_probabilities
from agents.search.position import Position, imagine, mask_of_bits
from agents.search.reading import Model, check_model
from domino_env.decisions import Decisions
from domino_env.line import LineEngine
from domino_env.observation import unpack

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.uint32]
Bits = npt.NDArray[np.uint64]

_ASKED = 1 << 13  # hands that an agent is asked about at once


def answers(
    position: Position, model: Model, row: npt.NDArray[Any], hands: Masks, floor: float = 0.0
) -> tuple[Floats, Bits]:
    """What the movers would do with these hands.

    Args:
        position: N positions of a game with one tile a turn; with events where the model needs the history. Whose view
            it is does not matter: a mover's own hand is put in its place.
        model: an agent with `probabilities`, or "uniform", which plays every legal move alike.
        row: (E,) rows of the position, which may repeat; hands: (E,) uint32 what the mover of each would hold, as many
            tiles as it does.
        floor: mixes the answer with a random move, as of `reading.log_likelihood`.

    Returns:
        (E, actions) float64 probabilities, 0 where not legal, rows of sum 1; and (E,) uint64 legal actions, bit a for
        action a.

    Raises:
        ValueError: a model that cannot be asked, or that does not play this game; "rules", which says no more than what
            is legal.
    """
    rules = position.rules
    if model is None or (isinstance(model, str) and model != "uniform"):
        raise ValueError(f"model {model!r} does not say how likely a move is: give an agent, or 'uniform'")
    row, hands = np.asarray(row, np.int64), np.asarray(hands, np.uint32)
    if row.shape != hands.shape or row.ndim != 1:
        raise ValueError(f"row and hands must be of one length, not {row.shape} and {hands.shape}")
    if not isinstance(model, str):
        need_probabilities(model)
        check_model(model, rules)
    engine = standing(position)
    out, legal = np.empty((len(row), rules.num_actions)), np.empty(len(row), np.uint64)
    agent: Any = model
    told = engine.history() if getattr(agent, "needs_history", False) else None
    # Of a network what all see is worked out once for each position.
    seen = engine.observe(packed=True) if hasattr(agent, "answers") else None
    for begin in range(0, len(row), _ASKED):
        some = slice(begin, begin + _ASKED)
        obs, legal[some] = engine.suppose(row[some], hands[some])
        mask = mask_of_bits(legal[some])
        even = mask / mask.sum(axis=1, keepdims=True)
        if isinstance(model, str):
            out[some] = even
            continue
        if seen is not None:
            rows, which = np.unique(row[some], return_inverse=True)
            history = None if told is None else told[rows]
            out[some] = agent.answers(seen[rows], history, which, hands[some], legal[some])
        else:
            history = None if told is None else told[row[some]]
            batch = Decisions(unpack(obs), mask, position.to_move[row[some]], history, rules=rules)
            out[some] = agent.probabilities(batch)
        if floor:
            out[some] = (1 - floor) * out[some] + floor * even
    return out, legal


def standing(position: Position) -> LineEngine:
    """Tables as of the position, with any hands of the right sizes: for questions about the mover by `suppose`."""
    return imagine(position, np.arange(len(position)), ((1 << position.sizes) - 1).astype(np.uint32))
