"""A player by a table: what it knows, as text, says how likely it chooses each action.

So a policy that OpenSpiel's algorithms made, or an exact equilibrium, plays here as any other agent.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from agents.base import Decisions
from domino_env.observation import layout_of
from domino_env.rules import Rules
from domino_env.tiles import NUM_TILES, PASS
from domino_env.tree import information_key

Lookup = Callable[[str], npt.ArrayLike]


class Tabular:
    """A player by a table of `information_key`.

    Args:
        lookup: key -> (actions,) probabilities; a KeyError for what it does not know. Of an OpenSpiel `TabularPolicy`
            it is `policy_for_key`, of a dict `table.__getitem__`.
        rules: the game.
        by_place: the table knows deals led by seat 0 alone, and seats are counted from the leader.
    """

    needs_history = True

    def __init__(self, lookup: Lookup, rules: Rules, name: str = "tabular", *, by_place: bool = False) -> None:
        self.name = name
        self._lookup = lookup
        self._rules = rules
        self._slices = layout_of(rules).slices
        self._by_place = by_place

    def check(self, rules: Rules) -> None:
        """Refuse another game than the table's, by a ValueError."""
        if rules != self._rules:
            raise ValueError(f"{self.name} plays {self._rules.title}, not {rules.title}")

    def probabilities(self, batch: Decisions) -> npt.NDArray[np.float64]:
        """(N, actions) float64 of the table; a KeyError for what is not in it."""
        return np.array([self._lookup(key) for key in self.keys(batch)], np.float64).reshape(batch.mask.shape)

    def act(self, batch: Decisions) -> npt.NDArray[np.int64]:
        """(N,) int64 drawn by the probabilities, with one number of `batch.rng` a row."""
        if batch.rng is None:
            raise ValueError(f"{self.name} needs batch.rng")
        upto = np.cumsum(self.probabilities(batch), axis=1)
        drawn = batch.rng.random(len(batch)) * upto[:, -1]
        return (upto > drawn[:, None]).argmax(axis=1)

    def keys(self, batch: Decisions) -> list[str]:
        """What each mover knows, as the table has it."""
        if batch.history is None:
            raise ValueError(f"{self.name} needs batch.history")
        seats = self._rules.seats
        held = batch.obs[:, self._slices["hand"]].astype(np.int64) @ (1 << np.arange(NUM_TILES))
        leader = (batch.seat + batch.obs[:, self._slices["leader"]].argmax(axis=1)) % seats
        keys = []
        for hand, led, seat, events in zip(held.tolist(), leader.tolist(), batch.seat.tolist(), batch.history):
            past = events[events >= 0]
            moves = (past & 63).tolist()
            for action, who in zip(moves, (past >> 12).tolist()):
                if who == 0 and action != PASS:
                    hand |= 1 << action % NUM_TILES
            seat, led = ((seat - led) % seats, 0) if self._by_place else (seat, led)
            keys.append(information_key(seat, led, hand, moves))
        return keys
