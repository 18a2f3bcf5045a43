"""Perfect-information Monte Carlo (Levy 1989; Ginsberg 2001): imagines worlds, solves each, plays the best mean.

It supposes that from now on everybody sees everything: it neither hides nor asks, but counts well. With a model of the
others the worlds are those that the others' past moves speak for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Agent, Decisions
from agents.search import solver
from agents.search.position import Position, position_at, position_of
from agents.search.worlds import (
    FLOOR,
    TEMPERATURE,
    Imagination,
    Keys,
    Worlds,
    blocks,
    check_clock,
    joined,
    keys_of,
)
from domino_env.line import LineEngine
from domino_env.rules import PRESETS, Rules

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

USUAL = 30  # worlds where neither they nor the time are given
MOST = 10_000  # worlds where the time is given, and they are not
_AT_ONCE = 1 << 15  # worlds or candidates: some tens of MB
_CLOCKED = 16  # decisions that share a clock, enough to solve their worlds together
_A_CALL = 500  # worlds a deal that `evaluate` plays between two marks of progress, for some seconds
_DECISIONS = 15  # of a player on both tables of a board, about


@dataclass(frozen=True)
class Outlook:
    """What the actions of N decisions are worth in imagined worlds, by action id."""

    values: npt.NDArray[np.int32]  # (N, K, 57) net points of the mover's side; ILLEGAL in worlds without weight too
    weights: Floats  # (N, K) each row adds up to 1
    ess: Floats  # (N,) effective number of draws that the weights stand for
    fell_back: npt.NDArray[np.bool_]  # (N,) the model ruled out every candidate
    weighted: bool  # a model weighed the worlds
    worlds: int  # asked for, with equal ones

    @cached_property
    def legal(self) -> npt.NDArray[np.bool_]:
        """(N, 57) actions that are legal."""
        return (self.values != solver.ILLEGAL).any(axis=1)

    @cached_property
    def mean(self) -> Floats:
        """(N, 57) expected points, -inf where not legal; means that are equal but for rounding are equal."""
        mean = self._average(np.where(self.values == solver.ILLEGAL, 0, self.values))
        return np.where(self.legal, np.round(mean, 9), -np.inf)

    @cached_property
    def error(self) -> Floats:
        """(N, 57) standard error of the mean that comes of drawing worlds; 0 where not legal."""
        away = np.where(self.values == solver.ILLEGAL, 0, self.values - self.mean[:, None])
        spread = self._average(np.where(self.legal[:, None], away, 0) ** 2)
        part = 1 / self.ess + (1 / self.worlds if self.weighted else 0)  # of weighing, and of choosing few of many
        return np.sqrt(spread * part[:, None])

    @cached_property
    def win(self) -> Floats:
        """(N, 57) chance that the mover's side wins points, 0 where not legal."""
        return self._average(self.values > 0)

    @cached_property
    def tie(self) -> Floats:
        """(N, 57) chance that the deal is drawn, 0 where not legal."""
        return self._average(self.values == 0)

    def _average(self, values: npt.NDArray[Any]) -> Floats:
        return (values * self.weights[:, :, None]).sum(axis=1)


def world_values(
    position: Position, worlds: Worlds, *, sign: bool = False, threads: int | None = None
) -> npt.NDArray[np.int32]:
    """What the actions of the movers are worth in every world if all hands are open from here on.

    Args:
        position: N rows; worlds: K for each.
        sign: only 1, 0 or -1: whether the mover's side wins, ties or loses.
        threads: of the solver; None: one a core.

    Returns:
        (N, K, 57) int32 net points of the mover's side, `solver.ILLEGAL` where not legal and in worlds without weight.
    """
    row, world = np.nonzero(worlds.weights)
    values = np.full((*worlds.weights.shape, solver.NUM_ACTIONS), solver.ILLEGAL, np.int32)
    values[row, world] = solver.solve(
        worlds.hands[row, world],
        position.ends[row],
        position.to_move[row],
        position.rules,
        sign=sign,
        threads=threads,
    )
    return values


class Pimc:
    """The player.

    An exact solution is dearest at the lead, where the others' moves say nothing yet; `lead_sign` makes do there with
    who wins. The defaults of temperature and floor trust a model less than its likelihoods say: the table need not
    play like it.
    """

    sees_everything = False

    def __init__(
        self,
        worlds: int | None = None,
        candidates: int | None = None,
        model: Agent | str | None = None,
        temperature: float = TEMPERATURE,
        floor: float = FLOOR,
        reads: str = "all",
        ms: float | None = None,
        lead_sign: bool = False,
        threads: int | None = None,
        known: bool = False,
        trust: float | None = None,
        other: Agent | str | None = None,
    ) -> None:
        """Takes the options.

        Args:
            worlds: how many to imagine. None: 30, or, where `ms` is given, as many as there is time for.
            candidates, model, temperature, floor, reads, known, trust, other: how worlds are weighed, see
                `Imagination`. In a player with a clock as many candidates belong to a world as without.
            ms: time for a move in milliseconds, a batch of n moves has n times as much. Worlds are then added block by
                block until it is used up, and what is played depends on the machine. None: no limit.
            lead_sign: at the lead count wins and losses instead of points.
            threads: of the solver; None: one a core. What is played without `ms` does not depend on it.

        Raises:
            ValueError: anything out of these.
        """
        check_clock(ms, threads)
        if not isinstance(lead_sign, bool):
            raise ValueError(f"lead_sign={lead_sign!r} must be true or false")
        if worlds is None:
            worlds = USUAL if ms is None or candidates else MOST
        self.imagination = Imagination(worlds, candidates, model, temperature, floor, reads, known, trust, other)
        self.ms, self.lead_sign, self.threads = ms, lead_sign, threads
        self.needs_history = self.imagination.candidates > 0
        self.name = self._called()
        if ms is not None:
            _warm_up()
        boards = _A_CALL / worlds if ms is None else _A_CALL * 10 / (ms * _DECISIONS)
        self.batch_hint = int(min(max(boards, 4 if ms is None else 1), 1024))

    def _called(self) -> str:
        """The name with the options by which players differ."""
        mind = self.imagination
        if self.ms is None and not mind.candidates and not self.lead_sign:
            return f"pimc-{mind.worlds}"
        said = mind.options()
        said += [f"ms={self.ms:g}"] if self.ms is not None else []
        said += ["lead_sign=true"] if self.lead_sign else []
        return f"pimc:{','.join(said)}"

    def check(self, rules: Rules) -> None:
        """Raises a ValueError for a game that the solver or the model does not play."""
        solver.check(rules)
        self.imagination.check(rules)

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64 the action with the best mean, of equals the lowest; one number of `batch.rng` a row."""
        self.check(PRESETS["sport_book"] if batch.rules is None else batch.rules)
        keys, mask = keys_of(batch), batch.mask != 0
        actions = mask.argmax(axis=1)
        free = np.flatnonzero(mask.sum(axis=1) > 1)
        position = position_of(batch)
        step = _CLOCKED
        if self.ms is None:
            step = max(1, _AT_ONCE // max(self.imagination.worlds, self.imagination.candidates))
        for start in range(0, len(free), step):
            rows = free[start : start + step]
            mean = self.outlook(position.take(rows), keys[rows]).mean
            actions[rows] = np.where(mask[rows], mean, -np.inf).argmax(axis=1)
        return actions

    def outlook(self, position: Position, keys: Keys) -> Outlook:
        """What all moves are worth, with as many worlds as the options say or the time allows.

        Args:
            position: N rows, of which the viewer is to move; keys: (N,) uint64 chance of each row.
        """
        mind = self.imagination
        largest = max(1, _AT_ONCE * mind.worlds // (max(mind.worlds, mind.candidates) * max(len(position), 1)))
        worlds, values, done = [], [], 0
        for first, size in blocks(mind.worlds, self.ms, len(position), largest):
            worlds.append(mind.draw(position, keys, first, size))
            values.append(self._values(position, worlds[-1]))
            done = first + size
        drawn = joined(worlds)
        every = np.concatenate(values, axis=1)
        return Outlook(every, drawn.weights, drawn.ess, drawn.fell_back, mind.candidates > 0, done)

    def _values(self, position: Position, worlds: Worlds) -> npt.NDArray[np.int32]:
        lead = position.ends[:, 0] < 0
        if not self.lead_sign or not lead.any():
            return world_values(position, worlds, threads=self.threads)
        values = np.empty((*worlds.weights.shape, solver.NUM_ACTIONS), np.int32)
        for sign, rows in ((True, np.flatnonzero(lead)), (False, np.flatnonzero(~lead))):
            some = worlds.take(rows)
            values[rows] = world_values(position.take(rows), some, sign=sign, threads=self.threads)
        return values


def _warm_up() -> None:
    """Have all that is compiled ready before a clock runs."""
    position = position_at(LineEngine(PRESETS["tiny_pairs"], 1, seed=0))
    world_values(position, Imagination(1).draw(position, np.zeros(1, np.uint64)))


pimc = Pimc  # by the name of the player
