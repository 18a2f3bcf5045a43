"""What a trainer plays for an update, and how the deals of it went, counted step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.buffers import Rollout
from domino_env.engine import Engine
from domino_env.rules import Rules
from domino_env.scoring import BLOCK, GUARD, OUT, Finished
from domino_env.tiles import PASS

SELF = -1  # in place of a member's number: the learner


class Tally:
    """How some deals go, counted step by step."""

    def __init__(self, deals: int) -> None:
        self.deals = deals
        self.actions = 0
        self.lays = 0
        self.passes = 0  # 56 in a turn without a lay; after one it is a stop (B3, R6)
        self.rolls = 0  # turns with a lay after which the next seat laid nothing in its turn
        self.ended = np.zeros(3, np.int64)  # deals by outcome
        self.points = 0.0  # of the winners
        self.returns = 0.0  # rewards of the leaders
        self._laid = np.zeros(deals, np.bool_)  # (deals that run,) the mover has laid in this turn
        self._before = np.zeros(deals, np.bool_)  # (deals that run,) the turn before this one had a lay

    def count(self, actions: npt.NDArray[np.int64], turned: npt.NDArray[np.bool_], finished: Finished) -> None:
        """Counts a step.

        Args:
            actions: (n,) one for each deal that runs; turned: (n,) bool, they ended the mover's turn.
            finished: the deals that ended.
        """
        lays = actions < PASS
        laid = self._laid | lays
        self.actions += len(actions)
        self.lays += int(lays.sum())
        self.passes += int((~laid & (actions == PASS)).sum())
        self.rolls += int((turned & ~laid & self._before).sum())
        self._before = np.where(turned, laid, self._before)
        self._laid = laid & ~turned
        if len(finished):
            self.ended += np.bincount(finished.outcome, minlength=3)
            self.points += float(finished.rewards.max(axis=1).sum())

    def keep(self, rows: npt.NDArray[np.int64]) -> None:
        """Goes on with these of the deals that run."""
        self._laid, self._before = self._laid[rows], self._before[rows]


class Running:
    """The deals of an engine on their way to the end: those that run still, and what came of all."""

    def __init__(self, engine: Engine, seed: int) -> None:
        """Deals anew in all rows of the engine."""
        engine.reset(seed=seed)
        count = engine.num_envs
        self.engine = engine  # of the deals that run; rows as in `live`
        self.leader = engine.leader()  # (D,) of all deals
        self.rewards = np.zeros((count, engine.rules.seats), np.float32)  # (D, seats) points of the deals that ended
        self.tally = Tally(count)
        self.live = np.arange(count)  # (n,) numbers of the deals that run
        self.mover = engine.to_move()  # (n,) never told from the plies: a turn may have several actions

    def step(self, actions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Makes a move in each of the (n,) deals that run; (m,) which of them go on."""
        reward, done = self.engine.step(actions, autoreset=False)
        before, self.mover = self.mover, self.engine.to_move()
        self.tally.count(actions, self.mover != before, self.engine.finished)
        going = np.flatnonzero(~done)
        if len(going) < len(done):
            self.rewards[self.live[done]] = reward[done]
            self.live, self.mover = self.live[going], self.mover[going]
            self.tally.keep(going)
            if len(going):
                self.engine = self.engine.take(going)
            else:
                self.tally.returns = float(self.rewards[np.arange(len(self.leader)), self.leader].sum())
        return going


def sequences(
    central: bool,
    deal: npt.NDArray[np.int64],
    seat: npt.NDArray[np.int64],
    leader: npt.NDArray[np.int64],
    rewards: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """What `agents.buffers.gae` asks of T decisions: sequence (T,), sign (T,), rewards (S,) at the ends.

    Args:
        central: a deal is one sequence through all its seats, in the sign of the leader's side; else each seat has one.
        deal, seat: (T,); leader: (D,); rewards: (D, seats) scaled.
    """
    if central:
        sign = np.where((seat - leader[deal]) % 2 == 0, np.float32(1), np.float32(-1))
        return deal, sign, rewards[np.arange(len(leader)), leader]
    return deal * rewards.shape[1] + seat, np.ones(len(deal), np.float32), rewards.ravel()


def in_order(plies: Sequence[tuple[npt.NDArray[Any], ...]], rules: Rules) -> list[npt.NDArray[Any]]:
    """What was decided in some plies, column by column, one ply after the other.

    Raises:
        ValueError: there are none; in a game of few tiles it may be that nobody has a choice.
    """
    if not plies:
        raise ValueError(f"there is nothing to learn from: no seat of {rules.title} had a choice; play more deals")
    return [np.concatenate(column) for column in zip(*plies, strict=True)]


@dataclass
class Seating:
    """Who sits where at D tables, from the beginning of their deals to the end (B26: nobody is exchanged)."""

    who: npt.NDArray[np.int64]  # (D, seats) number of the member of the pool, SELF where the learner sits
    member: npt.NDArray[np.int64]  # (D,) the one that is met, SELF at tables of plain self-play
    partner: npt.NDArray[np.bool_]  # (D,) it is the partner of the learner, not its opponents


@dataclass
class Played:
    """One part of the deals of an update."""

    rollout: Rollout
    tally: Tally
    seating: Seating
    rewards: npt.NDArray[np.float32]  # (D, seats) points, unscaled


def deal_figures(rules: Rules, tallies: Sequence[Tally]) -> dict[str, float]:
    """How the deals of an update went, by TensorBoard tag."""

    def total(name: str) -> float:
        return float(sum(getattr(tally, name) for tally in tallies))

    deals, actions = total("deals"), total("actions")
    ended = np.sum([tally.ended for tally in tallies], axis=0) / deals
    figures = {
        "charts/episodic_return": total("returns") / deals,
        "charts/episodic_length": actions / deals,
        "domino/out_rate": float(ended[OUT]),
        "domino/block_rate": float(ended[BLOCK]),
        "domino/pass_rate": total("passes") / actions,
        "domino/rolled_rate": total("rolls") / max(total("lays"), 1),
        "domino/points": total("points") / deals,
    }
    return figures | ({"domino/guard_rate": float(ended[GUARD])} if rules.rows else {})
