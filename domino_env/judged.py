"""The judge in the envs: a wrong act at the table is judged instead of raised (J1-J5).

A :class:`Referee` stands beside the rows of an engine, and every act goes through it. Where it is legal, and within the
time of thought, the engine plays it and nothing else happens: rows in which nobody errs are never looked at one by one.
Where somebody errs the referee says what follows, and at the end of such a deal it replaces the rewards by those of the
record. What an act costs is said by `domino_env.judge`; here is what happens at the table:

* **A wrong pass** ends the deal in `sport_book` (0:10, J2) and where ``decision="end"`` (J5). Else it is fined and
  stands, and play goes on (J3). It is not taken back, but for one that leaves nothing to play on: the leader's before
  the first tile, and one after which nobody could lay up to the seat that laid last. This one is corrected at once
  (J4), and the seat is asked again.
* **A tile that does not match** is every other lay that is not legal: of a tile that does not fit this end, that the
  seat does not hold, or that is not the one to be led with. It is noticed at once and taken back (J3), and the seat is
  asked again, unless the deal ends or is replayed by decision. No error is the right action of a tile that can be laid
  by its left one alone, on the empty line or where both ends are equal: that tile does match, and is laid.
* **A false declaration of a block** is action 57. Every declaration is false, as a block is seen at once (S5). The deal
  is played to its result (J3): the seat is asked again.
* **Thought** of more than ``thought`` seconds comes before the act and is judged before it; seconds are those of one
  act, not the sum of all acts at one decision.

A seat is asked again as often as it errs, and every time is a violation of its own. Agents cannot be relied on to stop,
so after `PATIENCE` wrong acts at one decision the judge has a tile laid that matches (J3), by the lowest legal action,
or has the seat pass if it holds none: every deal ends.

``decision`` is the judge's choice wherever there is one (J5); elsewhere the clause decides. "replay" deals anew from
the stream of the row, also where hands had been given, with the same number and, where it goes by rotation, the same
leader. A deal is replayed once; in the second all is decided "continue", or play need never end.

Violations count over the episode, which is a deal or a match (J1, J3, S10). A pair with its fifth warning is out (J1):
that ends the match.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from domino_env.engine import Engine
from domino_env.judge import (
    DECISIONS,
    RULEBOOKS,
    THOUGHT,
    Recorded,
    Verdict,
    Violation,
    choices,
    overtime,
    record,
    stopped,
    verdict,
)
from domino_env.line import LineEngine
from domino_env.rules import PRESETS, Rules
from domino_env.scoring import Finished, nothing
from domino_env.solo import ChainSolo, OneTable, Solo
from domino_env.tiles import NUM_ACTIONS, NUM_TILES, PASS, SUIT_MASK
from domino_env.view import Actions, Observation, action_id, action_ids

FALSE_BLOCK = NUM_ACTIONS  # action 57: "it is a block", which it is not
NUM_JUDGED_ACTIONS = NUM_ACTIONS + 1
PATIENCE = 10  # wrong acts at one decision; then the judge has a tile laid

_ONE = np.uint64(1)
_TABLE = np.zeros(1, np.int64)  # the row of a table of one


class Timed(spaces.Tuple):
    """An action and the seconds of thought before it: what an agent gives with a clock.

    A mask that `sample` is given is one of actions. Seconds are then drawn as the Box draws them: 1 on the average.
    """

    def __init__(self, actions: spaces.Discrete) -> None:
        super().__init__((actions, spaces.Box(0, np.inf, (), np.float32)))

    def sample(self, mask: Any = None, probability: Any = None) -> tuple[Any, ...]:
        """One action, by the mask (int8) or the probabilities given, and seconds."""
        actions, seconds = self.spaces
        return actions.sample(mask, probability), seconds.sample()

    def contains(self, x: Any) -> bool:
        """Whether `x` is a pair of an action and a number of seconds >= 0."""
        return isinstance(x, tuple | list) and len(x) == 2 and self.spaces[0].contains(x[0]) and _is_time(x[1])


def _is_time(seconds: Any) -> bool:
    """Whether something is a number of seconds >= 0: a Python number, NumPy's, or an array of shape ()."""
    number = np.asarray(seconds)
    return number.shape == () and number.dtype.kind in "iuf" and bool(number >= 0)


def check_judge(rules: Rules, judge: str | None, decision: str, clock: bool, thought: float) -> None:
    """Refuse with a ValueError what no judge can judge, and settings of a judge where there is none."""
    if judge is None:
        if decision != DECISIONS[0] or clock is not False or thought != THOUGHT:
            given = f"decision={decision!r}, clock={clock!r}, thought={thought!r}"
            raise ValueError(f"{given} are for a judge: add judge='book' or judge='club'")
        return
    if judge not in RULEBOOKS:
        raise ValueError(f"unknown judge {judge!r}; choose from {', '.join(RULEBOOKS)}, or None")
    if not rules.pairs or rules.lead == "winner" or rules.match_to is not None:
        known = [name for name, one in PRESETS.items() if one.pairs and one.lead != "winner"]
        why = "each seat plays for itself" if not rules.pairs else "leads or matches go by results, which J knows not"
        raise ValueError(
            f"judge={judge!r}: in {rules.name} {why}; judged are {', '.join(known)}, and other games with pairs=True"
        )
    if decision not in DECISIONS:
        raise ValueError(f"unknown decision {decision!r}; choose from {', '.join(DECISIONS)}")
    if not isinstance(clock, bool):
        raise ValueError(f"clock={clock!r} must be True or False")
    if isinstance(thought, bool) or not isinstance(thought, int | float | np.number) or not 0 < thought < np.inf:
        raise ValueError(f"thought={thought!r} must be a number of seconds > 0")
    if thought != THOUGHT and not clock:
        raise ValueError(f"thought={thought!r} is for clock=True: without it nobody's thought is timed")


@dataclass
class _Case:
    """What the judge has noted at a table since its episode began."""

    violations: list[Violation] = field(default_factory=list)  # of the episode, in order
    found: list[Verdict] = field(default_factory=list)  # on those of the deal that runs
    pending: list[Verdict] = field(default_factory=list)  # on those of the deals that it replaces
    ply: int = 0  # of the last wrong act
    acts: int = 0  # wrong acts at that ply

    @property
    def open(self) -> bool:
        """Whether the running deal has sanctions."""
        return bool(self.found or self.pending)

    def close(self, replayed: bool = False) -> None:
        """The deal is over, or is replayed: then its sanctions wait for the one that replaces it."""
        self.pending = [*self.pending, *self.found] if replayed else []
        self.found = []
        self.acts = 0


@dataclass
class Judged:
    """What came of one step of n rows; rows are counted as in that step."""

    rewards: npt.NDArray[np.float32]  # (n, seats) as the record has them, where a deal ended; else zero
    done: npt.NDArray[np.bool_]  # (n,) the episode is over
    finished: Finished  # deals that were played to their end, with the raw results
    verdicts: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # given in this step, by row
    recorded: dict[int, dict[str, Any]] = field(default_factory=dict)  # infos["judge"], deals with sanctions
    stopped: dict[int, dict[str, Any]] = field(default_factory=dict)  # infos["deal"] of deals that the judge ended (J5)
    broken_off: list[int] = field(default_factory=list)  # rows whose deal was broken off: lost, ended, or replayed


def make_referee(
    engine: Engine, judge: str | None, decision: str, clock: bool, thought: float, illegal: str = "lose"
) -> Referee | None:
    """The judge of an env by its settings, None where there is none.

    Raises:
        ValueError: as of :func:`check_judge`; also for illegal="raise" beside a judge, who lets nothing raise.
    """
    check_judge(engine.rules, judge, decision, clock, thought)
    if judge is None:
        return None
    if illegal != "lose":
        raise ValueError(f"illegal={illegal!r}: judge={judge!r} judges illegal actions; leave illegal out")
    assert isinstance(engine, LineEngine)  # there are no pairs in the blind games
    return Referee(engine, judge, decision, clock, thought)


class Referee:
    """The judge of an env's tables.

    Args:
        engine: the rows that the env plays; a line game in pairs.
        judge: the rulebook, "book" or "club".
        decision: "continue", "end" or "replay", where the clause leaves it to the judge (J5).
        clock: whether acts come with their seconds of thought.
        thought: seconds that a move may take (J1).

    Raises:
        ValueError: as of :func:`check_judge`.
    """

    def __init__(
        self,
        engine: LineEngine,
        judge: str,
        decision: str = DECISIONS[0],
        clock: bool = False,
        thought: float = THOUGHT,
    ) -> None:
        check_judge(engine.rules, judge, decision, clock, thought)
        self.rules = engine.rules
        self.judge = judge
        self.decision = decision
        self.clock = clock
        self.thought = max(float(thought), float(np.float32(thought)))  # seconds may come rounded, as the Box has them
        self._deals = 4 * engine.fours if engine.episode == "match" else None  # of an episode; None: one deal
        self._cases: dict[int, _Case] = {}  # rows in which somebody erred in this episode

    def forget(self, rows: npt.NDArray[np.int64] | None = None) -> None:
        """New episodes begin in these rows, or in all."""
        if rows is None:
            self._cases.clear()
        elif self._cases:
            for row in rows.tolist():
                self._cases.pop(row, None)

    def play(
        self, table: Solo | ChainSolo, action: int, seconds: float | None = None
    ) -> tuple[list[float] | None, bool, dict[str, Any]]:
        """One act at a table of one.

        Args:
            table: a table as of `domino_env.solo`, the one row of this referee.
            action: 0..57.
            seconds: of thought before it, >= 0; None: not timed.

        Returns:
            rewards: one a seat if a deal ended, else None; done: the episode is over; what all seats are told: "deal"
            if one was played to its end or stopped, "judge" if one with sanctions ended, "verdicts" if any were given.

        Raises:
            ValueError: after the end.
        """
        timely = seconds is None or seconds <= self.thought
        if timely and not self._cases and int(table.legal_bits()[0]) >> action & 1:
            rewards, done = table.play(action)
            return rewards, done, {} if rewards is None else {"deal": table.finished.info(0)}
        out = self.step(table, _TABLE, np.array([action]), None if seconds is None else np.array([seconds]))
        told: dict[str, Any] = {}
        if len(out.finished):
            told["deal"] = out.finished.info(0)
        for name, found in (("deal", out.stopped), ("judge", out.recorded), ("verdicts", out.verdicts)):
            if found:
                told[name] = found[0]
        ended = "deal" in told or "judge" in told
        return out.rewards[0].tolist() if ended else None, bool(out.done[0]), told

    def step(
        self,
        engine: LineEngine,
        rows: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
        seconds: npt.NDArray[np.floating[Any]] | None = None,
    ) -> Judged:
        """One act in every row of an engine: what `engine.step(actions, autoreset=False)` does, judged.

        Args:
            engine: all rows, or some that were taken.
            rows: (n,) which of the env's rows these are.
            actions: (n,) int64 in 0..57.
            seconds: (n,) of thought, >= 0; None: not timed.

        Raises:
            ValueError: a row that is over; nothing is changed.
        """
        wrong = engine.legal_bits() >> actions.astype(np.uint64) & _ONE == 0
        if seconds is not None:
            wrong |= seconds > self.thought
        if wrong.any():
            out = self._judged(engine, rows, actions, seconds, np.flatnonzero(wrong))
        else:
            rewards, done = engine.step(actions, autoreset=False)
            out = Judged(rewards, done, engine.finished)
        if self._cases and len(out.finished):
            self._record(engine, rows, out)
        return out

    def _judged(
        self,
        engine: LineEngine,
        rows: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
        seconds: npt.NDArray[np.floating[Any]] | None,
        wrong: npt.NDArray[np.int64],
    ) -> Judged:
        """A step in which the movers of some rows err: these are judged one by one, the others play."""
        if engine.over().any():
            raise ValueError(f"row {int(engine.over().argmax())} is over; reset it or take the others first")
        out = Judged(
            np.zeros((len(rows), self.rules.seats), np.float32), np.zeros(len(rows), np.bool_), nothing(self.rules)
        )
        actions = actions.copy()
        for j in wrong.tolist():
            thought = None if seconds is None else float(seconds[j])
            played = self._act(engine, j, int(rows[j]), int(actions[j]), thought, out)
            actions[j] = -1 if played is None else played
        goes = np.flatnonzero(actions >= 0)
        if len(goes) == len(rows):
            out.rewards, out.done = engine.step(actions, autoreset=False)
            out.finished = engine.finished
        elif len(goes):
            part = engine.take(goes)
            out.rewards[goes], out.done[goes] = part.step(actions[goes], autoreset=False)
            engine.put(goes, part)
            out.finished = replace(part.finished, rows=goes[part.finished.rows])
        return out

    def _act(self, engine: LineEngine, j: int, row: int, action: int, seconds: float | None, out: Judged) -> int | None:
        """Judge one act. Returns what is played, None where the seat is asked again or the deal was broken off."""
        one = engine.take(np.array([j]))
        legal = int(one.legal_bits()[0])
        action = _same_tile(one, legal, action)
        late = seconds is not None and overtime(seconds, self.thought)
        right = bool(legal >> action & 1)
        if right and not late:
            return action
        case = self._cases.setdefault(row, _Case())
        seat, ply = int(one.to_move()[0]), int(one.plies()[0])
        if late and self._verdict(j, case, Violation("time", seat, ply), out) != "continue":
            self._break_off(engine, one, j, case, out)
            return None
        if right:
            return action
        case.ply, case.acts = ply, case.acts + 1 if case.ply == ply else 1
        kind = {FALSE_BLOCK: "false_block", PASS: "wrong_pass"}.get(action, "misfit_at_once")
        if self._verdict(j, case, self._violation(one, kind, seat, ply, bool(case.pending)), out) != "continue":
            self._break_off(engine, one, j, case, out)
            return None
        if kind == "wrong_pass" and not case.found[-1].violation.corrected:
            engine.allow_pass(np.array([j]))
            return PASS
        if case.acts >= PATIENCE:
            return (legal & -legal).bit_length() - 1
        return None

    def _violation(self, one: LineEngine, kind: str, seat: int, ply: int, replayed: bool) -> Violation:
        """What a wrong act is, with what the judge decides on it."""
        left = choices(self.judge, kind)
        if replayed:
            left = tuple(decision for decision in left if decision != "replay")
        decision = self.decision if self.decision in left else DECISIONS[0]
        corrected = kind == "wrong_pass" and self.judge == "club" and decision == "continue" and _stuck(one)
        return Violation(kind, seat, ply, decision, corrected)

    def _verdict(self, j: int, case: _Case, violation: Violation, out: Judged) -> str:
        """Give a verdict; what becomes of the deal by it."""
        found = verdict(self.judge, case.violations, violation)
        case.violations.append(violation)
        case.found.append(found)
        out.verdicts.setdefault(j, []).append(found.as_dict())
        return found.deal

    def _break_off(self, engine: LineEngine, one: LineEngine, j: int, case: _Case, out: Judged) -> None:
        """The deal of a row is lost, ended or replayed by its last verdict; the row shows the next, or is over."""
        out.broken_off.append(j)
        number, leader = int(one.deal_index()[0]), int(one.leader()[0])
        if case.found[-1].deal == "replay":
            case.close(replayed=True)
            self._deal(engine, j, number, leader)
            return
        raw = None
        if case.found[-1].deal == "end":
            last = case.found[-1].violation
            plies = last.ply + (last.kind == "wrong_pass")  # the pass was made; a tile was taken back
            raw = out.stopped[j] = stopped(self.rules, one.hands()[0].tolist(), plies, _laid_last(one))
        recorded = record(raw, case.found, case.pending)
        out.rewards[j] = recorded.rewards
        out.recorded[j] = _told(recorded, case)
        out.done[j] = self._deals is None or number + 1 >= self._deals or bool(recorded.removed)
        case.close()
        engine.add_points(np.array([j]), np.array(recorded.points))
        if out.done[j]:
            engine.stop(np.array([j]))
        else:
            self._deal(engine, j, number + 1)

    def _deal(self, engine: LineEngine, j: int, number: int, leader: int | None = None) -> None:
        """Deal a row anew within its episode."""
        by_turns = leader is not None and self.rules.lead == "rotation"
        engine.deal_on(np.array([j]), [{"deal_index": number, **({"leader": leader} if by_turns else {})}])

    def _record(self, engine: LineEngine, rows: npt.NDArray[np.int64], out: Judged) -> None:
        """Record deals that were played to their end: sanctions change their rewards, and their points in the match."""
        erred = np.isin(rows[out.finished.rows], [row for row, case in self._cases.items() if case.open])
        for k in np.flatnonzero(erred).tolist():
            j, raw = int(out.finished.rows[k]), out.finished.info(k)
            case = self._cases[int(rows[j])]
            recorded = record(raw, case.found, case.pending)
            out.rewards[j] = recorded.rewards
            out.recorded[j] = _told(recorded, case)
            case.close()
            engine.add_points(np.array([j]), np.subtract(recorded.points, raw["points"]))


def _told(recorded: Recorded, case: _Case) -> dict[str, Any]:
    """The plain dict of ``infos["judge"]``: the recorded result and the verdicts that it follows from."""
    return {**recorded.as_dict(), "sanctions": [one.as_dict() for one in (*case.pending, *case.found)]}


def _same_tile(one: LineEngine, legal: int, action: int) -> int:
    """The left action for the right one of a tile that is laid by the left alone: on an empty line, on equal ends."""
    left, right = one.ends()[0].tolist()
    if not NUM_TILES <= action < PASS or left != right or not legal >> action - NUM_TILES & 1 or legal >> action & 1:
        return action
    # B3: once the turn has grown an end the two are apart, whatever their suits; the lead tile grows none.
    grown = one.rules.chains and one.snapshot(0)["turn"]["end"] is not None
    return action if grown else action - NUM_TILES


def _laid_last(one: LineEngine) -> int | None:
    """The seat that laid the last tile of a table's deal, None where nobody has."""
    events = one.history(np.zeros(1, np.int64))[0, : int(one.plies()[0])]
    laid = np.flatnonzero(events & 63 != PASS)
    return int(events[laid[-1]] >> 12) if len(laid) else None


def _stuck(one: LineEngine) -> bool:
    """Whether a pass would leave nothing to play on: nobody has led, or nobody could lay before the round is over.

    The round is over with the seat that laid last. So at most seats - 1 pass between two lays, as where nobody errs.
    """
    mover, last = int(one.to_move()[0]), _laid_last(one)
    if last is None:
        return True
    left, right = one.ends()[0].tolist()
    fits, hands, seats = int(SUIT_MASK[left] | SUIT_MASK[right]), one.hands()[0].tolist(), one.rules.seats
    return not any(hands[(mover + r) % seats] & fits for r in range(1, (last - mover) % seats + 1))


# -- what the views of one table and of many have in common, with a judge or without one ------------------------------


def read(engine: Engine, referee: Referee | None, action: Any) -> tuple[int, float | None]:
    """What an agent gave to one table: the action, and with a clock the seconds of thought, else None.

    Raises:
        ValueError: no such action; with a clock no pair of one and a number >= 0.
    """
    if referee is None:
        return action_id(action, engine.num_actions), None
    if not referee.clock:
        return action_id(action, NUM_JUDGED_ACTIONS), None
    if not isinstance(action, tuple | list) or len(action) != 2 or not _is_time(action[1]):
        raise ValueError(f"{action!r} must be (action, seconds), with seconds >= 0: there is a clock")
    return action_id(action[0], NUM_JUDGED_ACTIONS), float(action[1])


def read_all(
    engine: Engine, referee: Referee | None, actions: Any
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]:
    """What a learner gave to N rows: the actions (N,) int64, and with a clock the seconds (N,) float64, else None.

    Raises:
        ValueError: wrong shapes or dtypes, or no such actions; with a clock no pair of these and numbers >= 0.
    """
    rows = engine.num_envs
    if referee is None:
        return action_ids(actions, rows, engine.num_actions), None
    if not referee.clock:
        return action_ids(actions, rows, NUM_JUDGED_ACTIONS), None
    if not isinstance(actions, tuple | list) or len(actions) != 2:
        raise ValueError(f"actions must be (actions, seconds), two arrays: there is a clock; not {actions!r}")
    numbers, seconds = action_ids(actions[0], rows, NUM_JUDGED_ACTIONS), np.asarray(actions[1])
    if seconds.shape != (rows,) or seconds.dtype.kind not in "iuf" or not (seconds >= 0).all():
        raise ValueError(f"seconds must be numbers >= 0 of shape ({rows},), not {seconds!r}")
    return numbers, seconds.astype(np.float64)


def act(table: OneTable, referee: Referee | None, action: Any) -> tuple[list[float] | None, bool, dict[str, Any]]:
    """One act at a table, as an agent gave it. Results as of :meth:`Referee.play`.

    Raises:
        ValueError: as of :func:`read`, an illegal action where nobody judges, or after the end; nothing is changed.
    """
    if referee is not None:
        assert isinstance(table, LineEngine)  # as of make_referee
        return referee.play(table, *read(table, referee, action))
    rewards, done = table.play(action_id(action, table.num_actions))
    return rewards, done, {} if rewards is None else {"deal": table.finished.info(0)}


def action_space(
    engine: Engine, referee: Referee | None, legal: Callable[[], npt.NDArray[np.int8]] | None = None
) -> Actions | Timed:
    """What a seat may give: actions, with a judge one more, with a clock their seconds too; `legal` as of `Actions`."""
    if referee is None:
        return Actions(engine.num_actions, legal)
    actions = Actions(NUM_JUDGED_ACTIONS, legal)
    return Timed(actions) if referee.clock else actions


def observation_space(space: spaces.Dict, referee: Referee | None) -> spaces.Dict:
    """The space of a seat's observation; under a judge the mask has a place for the false declaration, always 0."""
    if referee is None:
        return space
    return spaces.Dict({**space.spaces, "action_mask": spaces.Box(0, 1, (NUM_JUDGED_ACTIONS,), np.int8)})


def observation(view: Observation, referee: Referee | None) -> Observation:
    """A seat's observation, or those of many rows, as that space has them."""
    if referee is None:
        return view
    mask = view["action_mask"]
    view["action_mask"] = np.concatenate([mask, np.zeros((*mask.shape[:-1], 1), np.int8)], axis=-1)
    return view


def told_more(info: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """What a seat has been told and has not yet read, and what it is told now: verdicts add up, results replace."""
    if "deal" in told or "judge" in told:
        info = {key: value for key, value in info.items() if key == "verdicts"}
    verdicts = [*info.get("verdicts", ()), *told.get("verdicts", ())]
    return {**info, **told, **({"verdicts": verdicts} if verdicts else {})}
