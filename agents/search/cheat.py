"""The ceiling: a player that sees all hands and plays exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agents.base import Decisions
from agents.search import solver
from domino_env.rules import PRESETS, Rules


class Cheat:
    """Plays what is best if all the others, too, see all hands. No honest player can do so well in the long run."""

    name = "cheat"
    sees_everything = True
    batch_hint = 256  # boards that `evaluate` plays between two marks of progress

    def check(self, rules: Rules) -> None:
        """Raises a ValueError for a game that the solver does not play."""
        solver.check(rules)

    def act(self, batch: Decisions) -> npt.NDArray[np.int64]:
        """(N,) int64 the best action, of equals the lowest.

        Raises:
            ValueError: no table in the batch, or a game that the solver does not play.
        """
        rules = PRESETS["sport_book"] if batch.rules is None else batch.rules
        if batch.table is None:
            raise ValueError("the cheat needs batch.table, all hands open")
        mask = batch.mask != 0
        actions = mask.argmax(axis=1)
        rows = np.flatnonzero(mask.sum(axis=1) > 1)
        table = batch.table.take(rows)
        values = solver.solve(table.hands, table.ends, table.to_move, rules)
        actions[rows] = np.where(mask[rows], values, solver.ILLEGAL).argmax(axis=1)
        return actions


cheat = Cheat  # by the name of the player
