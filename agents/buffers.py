"""What was played: rows of decisions, observations packed, and the advantages that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass
class Rollout:
    """T decisions of D deals in the order of play: those of one ply lie together. Forced moves are not in it."""

    obs: npt.NDArray[np.uint8]  # (T, nbytes) packed observation of the seat that decides, straightened; then the words
    hidden: npt.NDArray[np.uint8]  # (T, 4 (seats - 1)) packed hands of the other seats, clockwise from the left
    legal: npt.NDArray[np.uint64]  # (T,) legal actions, bit a for action a, straightened like the two below
    action: npt.NDArray[np.int64]  # (T,)
    logprob: Floats  # (T,) of the action when it was chosen
    deal: npt.NDArray[np.int64]  # (T,) which deal, 0..D-1
    seat: npt.NDArray[np.int64]  # (T,) absolute seat that decides
    advantage: Floats  # (T,) in scaled reward of the seat that decides
    target: Floats  # (T,) what the critic should have said: value + advantage


def join(parts: Sequence[Rollout]) -> Rollout:
    """One rollout of several; the numbers of the deals stay those of each part."""
    names = [field.name for field in fields(Rollout)]
    return Rollout(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def gae(
    values: Floats,
    sign: Floats,
    sequence: npt.NDArray[np.int64],
    rewards: Floats,
    bounds: Sequence[int],
    lam: float,
) -> Floats:
    """Generalised advantage estimates (Schulman and others 2016) without discount, for many sequences at a time.

    A sequence is a deal seen through all its seats, in one side's sign, or the decisions of one seat.

    Args:
        values: (T,) critic, in the sign of the seat that decides.
        sign: (T,) +1 where that is the sign of the sequence, else -1.
        sequence: (T,) which sequence a decision belongs to; no two of one ply belong to the same.
        rewards: (S,) reward at the end of each sequence, in the sequence's sign.
        bounds: where each ply begins, ascending, and at last T.
        lam: 0 trusts the critic at the next decision, 1 the end of the deal.

    Returns:
        (T,) advantages in the sign of the seat that decides.
    """
    ours = values * sign
    advantages = np.empty_like(values)
    next_value = rewards.astype(np.float32)
    next_advantage = np.zeros_like(next_value)
    for begin, end in zip(bounds[-2::-1], bounds[:0:-1]):
        rows = sequence[begin:end]
        value = ours[begin:end]
        advantage = next_value[rows] - value + np.float32(lam) * next_advantage[rows]
        advantages[begin:end] = advantage
        next_value[rows] = value
        next_advantage[rows] = advantage
    return advantages * sign
