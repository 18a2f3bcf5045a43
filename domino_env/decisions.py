"""The question put to an agent: a batch of decisions, one row a seat that has to move.

An agent answers `act(decisions) -> actions (N,) int64`. The records live here, beside the games, because the vector
and single views ask agents too; `agents.base` hands them on under the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from domino_env.engine import Engine
from domino_env.rows import RowEngine
from domino_env.rules import Rules


@runtime_checkable
class Uniforms(Protocol):
    """Where an agent's chance comes from: `domino_env.deals.Streams`, or a NumPy `Generator`."""

    def random(self, size: int, /) -> npt.NDArray[np.float64]:
        """(size,) float64 in [0, 1); a `Streams` answers one number a row, from the row's own stream."""
        ...


@dataclass
class Table:
    """The whole table, all hands open; only for agents that declare `sees_everything`."""

    hands: npt.NDArray[np.uint32]  # (N, seats) tiles now in hand, bit t = tile t, by absolute seat
    ends: npt.NDArray[np.int8]  # (N, 2) open ends left and right, -1 before the lead
    to_move: npt.NDArray[np.int64]  # (N,) absolute seat
    leader: npt.NDArray[np.int64]  # (N,) absolute seat that led the deal
    plies: npt.NDArray[np.int64]  # (N,) actions made in the deal so far, passes counted
    # Blind games alone, by tile number, -1 where none lies:
    rows: npt.NDArray[np.int8] | None = None  # (N, seats, places) face down, the next to be turned first
    stock: npt.NDArray[np.int8] | None = None  # (N, leftover) the next to be drawn first

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """The same table on only these rows (indices or a bool mask)."""
        return Table(
            self.hands[rows],
            self.ends[rows],
            self.to_move[rows],
            self.leader[rows],
            self.plies[rows],
            None if self.rows is None else self.rows[rows],
            None if self.stock is None else self.stock[rows],
        )


def table_of(engine: Engine) -> Table:
    """The tables of all rows of an engine, for agents that see everything."""
    blind = engine if isinstance(engine, RowEngine) else None
    return Table(
        engine.hands(),
        engine.ends(),
        engine.to_move(),
        engine.leader(),
        engine.plies(),
        None if blind is None else blind.rows(),
        None if blind is None else blind.stock(),
    )


@dataclass
class Decisions:
    """N seats that have to move, as each of them sees its table. What is handed over is never written again."""

    obs: npt.NDArray[np.uint8]  # (N, bits) seat-relative observation, 0/1
    mask: npt.NDArray[np.int8]  # (N, actions) 1 = legal
    seat: npt.NDArray[np.int64]  # (N,) absolute seat that decides
    history: npt.NDArray[np.int16] | None = None  # (N, T) public events, oldest first, -1 padded
    rng: Uniforms | None = None  # rng.random(N) -> one uniform a row
    table: Table | None = None  # only for agents that declare sees_everything
    rules: Rules | None = None  # the game that is played
    key: npt.NDArray[np.int64] | None = None  # (N,) identity of the deal, for agents that keep a state

    def __len__(self) -> int:
        return len(self.obs)

    def take(self, rows: npt.NDArray[Any]) -> Decisions:
        """Only these decisions (indices or a bool mask); a generator, which has no rows, stays as it is."""
        rng: Any = self.rng
        return Decisions(
            self.obs[rows],
            self.mask[rows],
            self.seat[rows],
            None if self.history is None else self.history[rows],
            rng.take(rows) if hasattr(rng, "take") else rng,
            None if self.table is None else self.table.take(rows),
            self.rules,
            None if self.key is None else self.key[rows],
        )


class Agent(Protocol):
    """What the views ask of a player. `sees_everything` and `needs_history` may be left out: both are then False."""

    def act(self, batch: Decisions, /) -> npt.NDArray[np.int64]:
        """(N,) int64 legal actions, one for each row of the batch."""
        ...


Player = Agent | Callable[[Decisions], npt.NDArray[np.int64]]
