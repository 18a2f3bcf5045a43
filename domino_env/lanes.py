"""N rows in which a learner's seats wait while all other seats are played: what the Gymnasium views have in common.

Agents are asked in batches, and each row gives them its own random stream, so that a row plays the same whatever the
number of rows. An illegal action of the learner loses the deal 0:10 (J2), unless there is a judge: then a wrong act of
any seat is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from domino_env.deals import Streams, row_keys
from domino_env.decisions import Decisions, Player, table_of
from domino_env.engine import Engine
from domino_env.judged import NUM_JUDGED_ACTIONS, Judged, Referee, observation
from domino_env.line import LineEngine, select_bit
from domino_env.scoring import GUARD, OUTCOMES
from domino_env.view import Observation, fresh_seed

LOST = 10  # J2: an illegal action loses the deal 0:10
_SALT = 3  # the agents' random streams, apart from those that deal
_DRAWS = np.uint64(0x9E3779B97F4A7C15 << 16 & (1 << 64) - 1)  # 65,536 places of a `Streams` are kept for each question
_LEARNERS = {"seat": (0,), "pair": (0, 2)}

Options = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None
Seeds = int | Sequence[int] | None


class Lanes:
    """N rows of an engine in which the learner's seats wait and all other seats are played.

    Args:
        engine: the rows; from now on only to be stepped by this object.
        learner: "seat" (seat_0) or "pair" (seats 0 and 2).
        partner: plays seat 2 when the learner is a seat of a pair; None: random legal actions.
        opponents: plays all remaining seats; None: random legal actions.
        history: whether observations hold the public events.
        skip_forced: play the learner's forced moves, too; not the first of a deal where it alone shows the row (R9).
        seed: of the first reset, where that has none; None: one that nobody chose.
        referee: the judge of these rows; None: nobody judges.

    Raises:
        ValueError: an unknown learner, a player that cannot be asked, a pair or partner in a game without pairs.
    """

    def __init__(
        self,
        engine: Engine,
        learner: str,
        partner: Player | None,
        opponents: Player | None,
        history: bool,
        skip_forced: bool,
        seed: Seeds = None,
        referee: Referee | None = None,
    ) -> None:
        if learner not in _LEARNERS:
            raise ValueError(f"unknown learner {learner!r}: choose 'seat' or 'pair'")
        if learner == "pair" and not engine.rules.pairs:
            raise ValueError(f"learner='pair' needs a game in pairs; in {engine.rules.name} each seat plays for itself")
        if partner is not None and (learner == "pair" or not engine.rules.pairs):
            raise ValueError("partner= is for learner='seat' in a game in pairs: here no seat is the learner's partner")
        self.engine = engine
        self.referee = referee
        self.history = history
        self.skip_forced = skip_forced
        rows, seats = engine.num_envs, engine.rules.seats
        self._learns = np.isin(np.arange(seats), _LEARNERS[learner])  # (seats,) bool
        helps = (np.arange(seats) == 2) & engine.rules.pairs & ~self._learns
        self._players: list[tuple[Player | None, npt.NDArray[np.bool_]]] = []  # each with the (seats,) that it plays
        for role, player, own in (("partner", partner, helps), ("opponents", opponents, ~self._learns & ~helps)):
            _check_player(role, player)
            self._seat_player(player, own)
        self._first_seed: Seeds = fresh_seed() if seed is None else seed
        self._waiting = False  # all rows wait for the learner: not before the first reset, nor when a player failed
        self._keys = np.zeros(rows, np.uint64)  # (N,) the agents' random streams
        self._asked = np.zeros(rows, np.uint64)  # (N,) questions put in this row since the last seed
        self._deals = np.zeros(rows, np.int64)  # (N,) deals begun in this row, ever
        self._gain = np.zeros(rows, np.float32)  # (N,) the learner's points since its last step
        self._told = np.zeros(rows, np.bool_)  # (N,) a deal has ended since the learner's last step: the arrays below
        self._outcome, self._winner, self._by, self._plies = (np.zeros(rows, np.int64) for _ in range(4))
        self._points = np.zeros((rows, engine.rules.num_sides), np.int64)
        self._pips = np.zeros((rows, seats), np.int64)
        # Since the learner's last step, only of rows in which somebody erred: record of the last deal, all verdicts.
        self._recorded: dict[int, dict[str, Any]] = {}
        self._verdicts: dict[int, list[dict[str, Any]]] = {}
        self._judged: dict[str, Mapping[int, Any]] = {}  # the two as they stood at the end of that step

    def _seat_player(self, player: Player | None, own: npt.NDArray[np.bool_]) -> None:
        for other, seats in self._players:
            if other is player:
                seats |= own  # one player on several seats is asked once for all of them
                return
        self._players.append((player, own))

    def reset(self, seed: Seeds, options: Options) -> None:
        """Begin an episode in all rows, up to the learner's first decision. A seed also seeds the agents' streams.

        Raises:
            ValueError: bad seeds or options; nothing is changed.
        """
        seed = self._first_seed if seed is None else seed
        self.engine.reset(seed=seed, options=options)
        self._first_seed = None
        rows = np.arange(self.engine.num_envs)
        if isinstance(seed, int | np.integer):
            self._keys = row_keys(int(seed), rows, _SALT)
        elif seed is not None:
            self._keys = np.concatenate([row_keys(int(one), rows[:1], _SALT) for one in seed])
        if seed is not None:
            self._asked[:] = 0
        self._begin(rows)

    def restart(self, rows: npt.NDArray[np.int64]) -> None:
        """Begin the next episode in some rows, up to the learner's first decision."""
        self.engine.reset_rows(rows)
        self._begin(rows)

    def _begin(self, rows: npt.NDArray[np.int64]) -> None:
        self._deals[rows] += 1
        self._gain[rows] = 0
        self._told[rows] = False
        if self.referee is not None:
            self.referee.forget(rows)
            for noted in (self._recorded, self._verdicts):
                for row in noted.keys() & set(rows.tolist()):
                    del noted[row]
        self._play_on(self._part(rows), rows)

    def step(
        self, actions: npt.NDArray[np.int64], strict: bool, seconds: npt.NDArray[np.float64] | None = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Make the learner's action in every row and play on until all wait again, or are over.

        Args:
            actions: (N,) int64, each below `num_actions`, or where there is a judge below one more.
            strict: refuse illegal actions instead of losing by them; of no effect where there is a judge.
            seconds: (N,) of thought; None: not timed.

        Returns:
            rewards (N,) float32; ended (N,) bool, to be restarted before the next step; lost (N,) bool, ended by an
            illegal action; told (N,) bool, rows in which a deal ended, for `deal_info`; of `ended` those are broken off
            (R8) that `broken` says.

        Raises:
            ValueError: an illegal action, where strict; nothing is changed. Before the first reset, or after a player
                failed in the middle of a step: rows then do not wait for the learner.
        """
        if not self._waiting:
            raise ValueError("a step before the first reset, or after a player failed: call reset()")
        engine = self.engine
        if self.referee is None:
            lost = engine.legal_bits() >> actions.astype(np.uint64) & np.uint64(1) == 0
        else:
            lost = np.zeros(engine.num_envs, np.bool_)
        if strict and lost.any():
            row = int(lost.argmax())
            legal = np.flatnonzero(engine.legal()[row]).tolist()
            raise ValueError(f"action {actions[row]} in row {row} is illegal; legal are {legal}")
        rows = np.flatnonzero(~(lost | engine.over()))
        if len(rows):
            part = self._part(rows)
            self._step(part, rows, actions[rows], None if seconds is None else seconds[rows])
            self._play_on(part, rows)
        rewards, self._gain = self._gain, np.zeros_like(self._gain)
        told, self._told = self._told, np.zeros_like(self._told)
        self._judged = {"judge": self._recorded, "verdicts": self._verdicts}
        self._recorded, self._verdicts = {}, {}
        rewards[lost] -= LOST
        return rewards, engine.over() | lost, lost, told

    def _part(self, rows: npt.NDArray[np.int64]) -> Engine:
        """The engine itself where all rows are meant, else a copy of these rows."""
        return self.engine if len(rows) == self.engine.num_envs else self.engine.take(rows)

    def _play_on(self, part: Engine, rows: npt.NDArray[np.int64]) -> None:
        """Play the other seats of `part`, which holds these rows, until all wait; put back what was a copy."""
        self._waiting = False
        while True:
            waits = self._learns[part.to_move()]
            if self.skip_forced:
                waits &= _free(part)
            waits |= part.over()
            if waits.any():
                if part is not self.engine:
                    kept: Any = part if waits.all() else part.take(waits)  # of the engine's own kind
                    self.engine.put(rows[waits], kept)
                if waits.all():
                    self._waiting = True
                    return
                rows, part = rows[~waits], part.take(~waits)
            self._step(part, rows, self._choose(part, rows))

    def _step(
        self,
        part: Engine,
        rows: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
        seconds: npt.NDArray[np.float64] | None = None,
    ) -> None:
        if self.referee is None:
            rewards, _ = part.step(actions, autoreset=False)
            done = part.finished
        else:
            assert isinstance(part, LineEngine)  # as of make_referee
            judged = self.referee.step(part, rows, actions, seconds)
            rewards, done = judged.rewards, judged.finished
            self._note(judged, rows)
        if not len(done):
            return
        at = rows[done.rows]
        self._gain[at] += rewards[done.rows, 0]
        self._deals[at] += 1
        self._told[at] = True
        self._outcome[at], self._winner[at], self._by[at] = done.outcome, done.winner, done.by
        self._plies[at], self._points[at], self._pips[at] = done.plies, done.points, done.pips_left

    def _note(self, judged: Judged, rows: npt.NDArray[np.int64]) -> None:
        """What the judge did in a step of these rows, but for rewards and results of deals that were played out."""
        if self._recorded:
            for row in rows[judged.finished.rows].tolist():
                self._recorded.pop(row, None)  # of a deal before this one
        for j, given in judged.verdicts.items():
            self._verdicts.setdefault(int(rows[j]), []).extend(given)
        for j, recorded in judged.recorded.items():
            self._recorded[int(rows[j])] = recorded
        for j in judged.broken_off:
            row = rows[j]
            self._deals[row] += 1
            if j in judged.recorded:  # else it is replayed
                self._gain[row] += judged.rewards[j, 0]
                self._told[row] = j in judged.stopped
        for j, deal in judged.stopped.items():
            row = rows[j]
            self._outcome[row], self._plies[row] = OUTCOMES.index(deal["outcome"]), deal["plies"]
            self._winner[row], self._by[row] = (-1 if deal[key] is None else deal[key] for key in ("winner", "by"))
            self._points[row], self._pips[row] = deal["points"], deal["pips_left"]

    def _choose(self, part: Engine, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Actions of seats that the learner does not play; asked about a forced move is only who sees its row (R9)."""
        bits, count, mover, free = part.legal_bits(), part.legal_count(), part.to_move(), _free(part)
        actions = select_bit(bits, np.zeros(len(rows), np.uint8))
        for player, seats in self._players:
            asked = np.flatnonzero(free & seats[mover])
            if not len(asked):
                continue
            at = rows[asked]
            rng = Streams(self._keys[at] + self._asked[at] * _DRAWS)
            self._asked[at] += np.uint64(1)
            if player is None:
                actions[asked] = select_bit(bits[asked], (rng.random(len(at)) * count[asked]).astype(np.uint8))
            else:
                actions[asked] = self._ask(player, part if len(asked) == len(rows) else part.take(asked), at, rng)
        return actions

    def _ask(self, player: Player, part: Engine, rows: npt.NDArray[np.int64], rng: Streams) -> npt.NDArray[np.int64]:
        seat = part.to_move()
        batch = Decisions(
            obs=part.observe(),
            mask=part.legal(),
            seat=seat,
            history=part.history() if getattr(player, "needs_history", False) else None,
            rng=rng,
            table=table_of(part) if getattr(player, "sees_everything", False) else None,
            rules=part.rules,
            key=self._deals[rows] * self.engine.num_envs + rows,
        )
        act: Any = getattr(player, "act", player)
        answer = np.asarray(act(batch))
        name = getattr(player, "name", type(player).__name__)
        if answer.shape != seat.shape or answer.dtype.kind not in "iu":
            raise ValueError(
                f"{name} must answer {len(seat)} whole numbers, not {answer.dtype} of shape {answer.shape}"
            )
        if self.referee is not None and ((answer >= 0) & (answer < NUM_JUDGED_ACTIONS)).all():
            return answer.astype(np.int64)
        known = (answer >= 0) & (answer < part.num_actions)
        wrong = ~known | (batch.mask[np.arange(len(seat)), np.where(known, answer, 0)] == 0)
        if wrong.any():
            row = int(wrong.argmax())
            legal = np.flatnonzero(batch.mask[row]).tolist()
            raise ValueError(f"{name} played {answer[row]} at seat {seat[row]}, which is illegal; legal are {legal}")
        return answer.astype(np.int64)

    def seats(self, part: Engine | None = None) -> npt.NDArray[np.int64]:
        """(N,) the seat that each row shows: the learner's seat to move, after the end its next one clockwise."""
        mover = (part or self.engine).to_move()
        if self._learns.sum() == 1:
            return np.zeros_like(mover)
        return (mover + (mover & 1)) % self.engine.rules.seats

    def observe(self, rows: npt.NDArray[np.int64] | None = None) -> Observation:
        """What the learner sees in all or some rows, in new arrays with a first axis of rows."""
        part = self.engine if rows is None else self._part(rows)
        shown = self.seats(part)
        seats = None if np.array_equal(shown, part.to_move()) else shown  # None, the mover's view, is the quick path
        view: Observation = {"observation": part.observe(seats), "action_mask": part.legal(seats)}
        if self.history:
            view["history"] = part.history(seats)
        return observation(view, self.referee)

    def deal_info(self, rows: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """The last deals of these rows, (N,) bool, in Gymnasium's dict-of-arrays form."""
        values = {
            "outcome": np.array(OUTCOMES, object)[self._outcome[rows]],
            "winner": _or_none(self._winner[rows]),
            "points": _lists(self._points[rows]),
            "pips_left": _lists(self._pips[rows]),
            "by": self._by[rows],
            "plies": self._plies[rows],
        }
        info: dict[str, Any] = {}
        for key, value in values.items():
            whole = np.full(len(rows), None, object) if value.dtype == object else np.zeros(len(rows), value.dtype)
            whole[rows] = value
            info[key], info[f"_{key}"] = whole, rows.copy()
        return info

    def judge_info(self, rows: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """What the judge did in these rows, (N,) bool, in the last step: `judge` and `verdicts`, objects with masks."""
        info: dict[str, Any] = {}
        for key, noted in self._judged.items():
            found = [row for row in noted if rows[row]]
            if found:
                info[key] = np.full(len(rows), None, object)
                info[f"_{key}"] = np.zeros(len(rows), np.bool_)
                for row in found:
                    info[key][row], info[f"_{key}"][row] = noted[row], True
        return info

    def broken(self, ended: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which of the rows that ended, (N,) bool, did so because a single deal was broken off (R8)."""
        return ended & (self._outcome == GUARD) & (self.engine.episode == "deal")

    def last_deal(self, row: int) -> dict[str, Any]:
        """The last deal of a row as the plain dict of `infos["deal"]`."""
        info = self.deal_info(np.arange(self.engine.num_envs) == row)
        return {
            key: value[row] if value.dtype == object else int(value[row])
            for key, value in info.items()
            if not key.startswith("_")
        }


def _free(part: Engine) -> npt.NDArray[np.bool_]:
    """(N,) bool, rows whose mover must be asked: it has a choice, or sees its row now and never again (R9)."""
    free = part.legal_count() > 1
    return free | part.peeks() if part.rules.memory == "peek" else free


def _check_player(role: str, player: Any) -> None:
    if isinstance(player, str):
        raise ValueError(
            f"{role}={player!r}: give a player, not its name, e.g. {role}=agents.make_agent({player!r}); "
            f"left out, the {role} {'play' if role == 'opponents' else 'plays'} random legal actions"
        )
    if player is not None and not callable(getattr(player, "act", player)):
        raise ValueError(f"{role}={player!r} must have act(batch) -> actions, or be such a function")


def _lists(values: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """(k, n) numbers as (k,) objects, each a list: what Gymnasium makes of lists in infos."""
    return np.fromiter(values.tolist(), object, len(values))


def _or_none(sides: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """(k,) objects: the number of a side, None for -1."""
    objects = sides.astype(object)
    objects[sides < 0] = None
    return objects
