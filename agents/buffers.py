"""What was played: rows of decisions, observations packed, and the advantages that follow from them.

A `Rollout` is learned from at once; a `Replay` holds the newest rows of a run and a `Reservoir` an even sample of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

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
    worth: Floats | None = None  # (T, A) what every legal action is worth, scaled, 0 for others; None: not asked for
    # (T, nbytes) what the seats would see that are deaf (agents/deafness.py), and the others see; None: `obs`
    whole: npt.NDArray[np.uint8] | None = None


def join(parts: Sequence[Rollout]) -> Rollout:
    """One rollout of several; the numbers of the deals stay those of each part."""
    columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Rollout)}
    joined: dict[str, Any] = {name: None if one[0] is None else np.concatenate(one) for name, one in columns.items()}
    return Rollout(**joined)


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


# -- rows that outlive an update -------------------------------------------------------------------------------------


class _Rows:
    """Up to `capacity` rows of one structured type, and how many were ever added."""

    def __init__(self, capacity: int, dtype: np.dtype[Any]) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self.capacity = capacity
        self.added = 0  # in all, also those that are no longer here
        self._rows = np.zeros(capacity, dtype)  # memory is taken as it fills

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    @property
    def rows(self) -> npt.NDArray[Any]:
        """(n,) what is here, in the order of the places; not a copy."""
        return self._rows[: len(self)]

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[Any]:
        """Copies of rows, each as likely and with repetition; ValueError where there are none."""
        if not len(self):
            raise ValueError("there is nothing to sample from: no row was added")
        return self._rows[rng.integers(0, len(self), shape)]

    def tensors(self) -> dict[str, Tensor]:
        """For `BaseTrainer.memory`: "rows" (n, bytes of a row) uint8, not a copy, and "added" () int64."""
        filled = self.rows.view(np.uint8).reshape(len(self), self._rows.dtype.itemsize)
        return {"rows": torch.from_numpy(filled), "added": torch.tensor(self.added)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Goes on from what `tensors` gave.

        Raises:
            KeyError, ValueError: what is missing, or is of other rows or of another capacity.
        """
        rows, added = tensors["rows"], int(tensors["added"])
        shape = (min(added, self.capacity), self._rows.dtype.itemsize)
        if rows.dtype != torch.uint8 or tuple(rows.shape) != shape or added < 0:
            raise ValueError(f"rows are {rows.dtype} {tuple(rows.shape)}, expected torch.uint8 {shape}")
        self.added = added
        if added:  # bytes of no row have no type to be read as
            self._rows[: shape[0]] = np.ascontiguousarray(rows.numpy()).view(self._rows.dtype)[:, 0]


class Replay(_Rows):
    """A ring that holds the newest rows (Lin 1992): row number i since the start lies at i modulo the capacity."""

    def add(self, rows: npt.NDArray[Any]) -> None:
        """Adds (n,) rows of the replay's type; the oldest make room."""
        kept = rows[-self.capacity :]
        first = self.added + len(rows) - len(kept)
        self._rows[(first + np.arange(len(kept))) % self.capacity] = kept
        self.added += len(rows)


class Reservoir(_Rows):
    """An even sample of all rows ever added: each is here with probability capacity / added (B30).

    Vitter 1985, algorithm R: row number i, counted from 0, draws a place from 0..i, and takes it if it is one of ours.
    """

    def add(self, rows: npt.NDArray[Any], rng: np.random.Generator) -> None:
        """Adds (n,) rows of the reservoir's type, as if one after the other."""
        numbers = self.added + np.arange(len(rows))
        places = rng.integers(0, numbers + 1)
        places[numbers < self.capacity] = numbers[numbers < self.capacity]  # the first fill it in their order
        taken = np.flatnonzero(places < self.capacity)[::-1]
        places, last = np.unique(places[taken], return_index=True)  # of those that want one place the last stays
        self._rows[places] = rows[taken[last]]
        self.added += len(rows)
