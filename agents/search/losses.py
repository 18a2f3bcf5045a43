"""What a move costs: its loss against double-dummy, the best play of all seats that see all hands.

The loss of a move is the value of the best move in the position less that of the move made, in points of the mover's
side: never negative, and 0 for a forced move. Who does not see all hands cannot avoid every loss, so it is no count of
errors; it compares players over the same deals, and shows where in the deal a player has most to gain. The losses of a
deal add up: the value of the lead position for the leader's side, less what that side got in the end, is the sum of its
own losses less the sum of the other side's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.search import load
from domino_env.deals import Deal
from domino_env.engine import Engine, make_engine
from domino_env.rules import Rules
from domino_env.tiles import mask_of

Ints = npt.NDArray[np.int64]

_KEPT = 4096  # positions before a lead whose values are kept: two thirds of the time go there, and boards come again
_leads: dict[tuple[Rules, bytes], npt.NDArray[np.int32]] = {}


@dataclass(frozen=True)
class Moves:
    """M moves that were not forced, with the tables they were made at, all hands open."""

    deal: Ints  # (M,) whatever number the caller gives the deal
    hands: npt.NDArray[np.uint32]  # (M, seats) before the move
    ends: Ints  # (M, 2) before the move, -1 before the lead
    leader: Ints  # (M,) seat that led the deal
    seat: Ints  # (M,) who moved
    action: Ints  # (M,)

    def __len__(self) -> int:
        return len(self.deal)

    @property
    def place(self) -> Ints:
        """(M,) where the mover sits, clockwise from the leader."""
        return (self.seat - self.leader) % self.hands.shape[1]

    def take(self, rows: npt.NDArray[Any]) -> Moves:
        """Only these moves (indices or a bool mask)."""
        return Moves(*(getattr(self, field.name)[rows] for field in fields(self)))


def moves_at(engine: Engine, actions: npt.NDArray[Any], deal: Ints, wanted: npt.NDArray[np.bool_]) -> Moves:
    """The moves that are about to be made at some tables; forced ones are left out.

    Args:
        engine: N rows of a game on an open line, before the step.
        actions: (N,) that it is about to be stepped with; deal: (N,) numbers of the deals.
        wanted: (N,) bool, which rows to note.
    """
    rows = np.flatnonzero(wanted & (engine.legal_count() > 1))
    return Moves(
        deal[rows],
        engine.hands()[rows],
        engine.ends()[rows].astype(np.int64),
        engine.leader()[rows],
        engine.to_move()[rows],
        actions[rows].astype(np.int64),
    )


def joined(parts: Sequence[Moves]) -> Moves:
    """Moves of several tables or plies, one after the other; of at least one part."""
    return Moves(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Moves)))


def check(rules: Rules) -> None:
    """Raises a ValueError for a game that the solver does not play, an ImportError where Numba is missing."""
    load("solver").check(rules)


def move_losses(moves: Moves, rules: Rules, threads: int | None = None) -> Ints:
    """What each move cost the mover's side.

    Args:
        moves: M of them; positions that come several times are solved once.
        rules: the game.
        threads: of the solver; None: one a core. The losses do not depend on it.

    Returns:
        (M,) int64 points, at least 0.

    Raises:
        ValueError: a game that the solver does not play, or a move that is not legal.
    """
    check(rules)
    if not len(moves):
        return np.zeros(0, np.int64)
    positions = np.column_stack([moves.hands, moves.ends, moves.seat])
    positions, which = np.unique(positions, axis=0, return_inverse=True)
    values = _values(positions, rules, threads)[which.reshape(-1)].astype(np.int64)
    made = values[np.arange(len(moves)), moves.action]
    illegal = made == load("solver").ILLEGAL
    if illegal.any():
        row = int(illegal.argmax())
        raise ValueError(f"move {row}, {rules.action_name(int(moves.action[row]))}, is not legal")
    return values.max(axis=1) - made


def _values(positions: Ints, rules: Rules, threads: int | None) -> npt.NDArray[np.int32]:
    """(n, actions) values of positions: hands, ends and mover in one row."""
    seats = rules.seats
    keys = {int(row): (rules, positions[row].tobytes()) for row in np.flatnonzero(positions[:, seats] < 0)}
    known = {row: value for row, key in keys.items() if (value := _leads.get(key)) is not None}
    ask = np.setdiff1d(np.arange(len(positions)), list(known))
    hands, ends, mover = positions[ask, :seats], positions[ask, seats : seats + 2], positions[ask, -1]
    values = np.zeros((len(positions), rules.num_actions), np.int32)
    values[ask] = load("solver").solve(hands, ends, mover, rules, threads=threads)
    for row, value in known.items():
        values[row] = value
    if len(_leads) + len(keys) > _KEPT:
        _leads.clear()
    _leads.update({key: values[row].copy() for row, key in list(keys.items())[:_KEPT]})
    return values


def deal_losses(deals: Sequence[Deal], threads: int | None = None) -> list[Ints]:
    """What each action of some deals cost its seat's side.

    Args:
        deals: of one game, as dealt, with their actions so far. The leader of a given deal may lay any tile, so a lead
            that the rules bind (K1, K2) is judged as if it were free.
        threads: as of `move_losses`.

    Returns:
        for each deal (number of its actions,) int64 points; 0 for forced actions.

    Raises:
        ValueError: deals of several games, of one that the solver does not play, or with an illegal action.
    """
    if not deals:
        return []
    rules = deals[0].rules
    check(rules)
    if any(deal.rules != rules for deal in deals):
        raise ValueError(f"the deals must be of one game, not of {rules.name} and others")
    losses = [np.zeros(len(deal.moves), np.int64) for deal in deals]
    rows = np.arange(len(deals))
    engine = make_engine(rules, len(deals), seed=0)
    hands = np.array([[mask_of(hand) for hand in deal.hands] for deal in deals], np.uint32)
    engine.deal(hands, np.array([deal.leader for deal in deals]))
    parts: list[Moves] = []
    plies: list[Ints] = []
    for ply in range(max(len(deal.moves) for deal in deals)):
        going = np.array([len(deals[int(row)].moves) > ply for row in rows])
        if not going.all():
            rows, engine = rows[going], engine.take(going)
        actions = np.array([deals[int(row)].moves[ply] for row in rows])
        parts.append(moves_at(engine, actions, rows, np.ones(len(rows), np.bool_)))
        plies.append(np.full(len(parts[-1]), ply))
        engine.step(actions, autoreset=False)
    if parts:
        moves = joined(parts)
        for deal, ply, loss in zip(moves.deal, np.concatenate(plies), move_losses(moves, rules, threads), strict=True):
            losses[deal][ply] = loss
    return losses
