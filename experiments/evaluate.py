"""Who is better, and by how much: duplicate boards with an interval.

A board is a deal and its leader, played twice with the sides crossed: side A first sits at the even seats, then at the
odd ones (S13). The value of a board is the mean of A's net points (S9) over its two tables. Where each seat plays for
itself (blitz, the blind games) A has every seat once at the two tables together, and the value of a board is the mean
of A's points over these seats, be they two or eight: what a player gains a deal by being an A among As and Bs. Leaders
rotate over the boards, unless a tile decides (K1, B2, R3). Chance is keyed on (seed, board, ply), alike at both tables,
so an agent scores exactly 0 against its own copy, and nothing depends on how many boards are played at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from agents.base import Agent, decide, make_agent
from agents.search.losses import Moves, check as check_solver, moves_at
from domino_env.deals import Streams, boards as duplicate_boards
from domino_env.engine import Engine, make_engine
from domino_env.rules import Rules, get_rules
from domino_env.scoring import BLOCK, GUARD, OUT
from domino_env.words import rates
from experiments.losses import Losses, count_losses

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Player = str | Agent
Side = Player | tuple[Player, Player]
_Fault = tuple[str, Exception | None]

FORFEIT = 10  # points a side loses a deal by when its agent fails, as for a wrong pass (J2)
CONFIDENCE = 0.95
_PLIES = 1 << 10  # room for the plies of a deal in the number of a random stream
_KEYS = [  # of the JSON (design.md)
    *("a", "b", "rules", "boards", "seed"),
    *("points_per_deal", "low", "high", "win", "tie", "loss", "out_rate", "block_rate"),
]
_SHOWN = 20  # faults kept as text
_WORD_BOARDS = 1024  # the words of the game are counted on the first boards: histories take room
_FORFEITED = -1  # beside OUT, BLOCK and GUARD


class AgentError(RuntimeError):
    """An agent raised, timed out, or answered with something that cannot be played."""

    def __init__(self, agent: str, board: int, table: int, seat: int, ply: int, what: str) -> None:
        self.agent, self.board, self.table, self.seat, self.ply, self.what = agent, board, table, seat, ply, what
        super().__init__(f"agent {agent}, board {board}, table {table}, seat {seat}, ply {ply}: {what}")


@dataclass(frozen=True)
class Result:
    """How side A did against side B, in points and shares of A's side."""

    a: str
    b: str
    rules: str  # name of the rules, with what was overridden
    boards: int
    seed: int
    points_per_deal: float  # mean over boards of A's net points a deal; without pairs, of one seat of A's
    low: float  # 95 % interval of it over boards, Student's t
    high: float
    win: float  # share of the 2 * boards deals in which A's net points (of all its seats) are positive
    tie: float  # zero
    loss: float  # negative
    out_rate: float  # share of all deals that ended with a seat out, whichever side it was of
    block_rate: float  # share of all deals that ended blocked; with those below the shares make 1
    guard_rate: float = 0.0  # share of all deals that the guard broke off (R8), at 0 points
    errors: int = 0  # deals forfeited because an agent failed
    faults: tuple[str, ...] = ()  # the first of these failures in words
    words: dict[str, float] | None = None  # where asked for: domino_env.words.rates of the deals of the first boards
    values: Floats = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)  # (boards,) value of each
    losses: Losses | None = field(default=None, repr=False, compare=False)  # where asked for: of both sides' moves

    def to_dict(self) -> dict[str, Any]:
        """The keys of `domino evaluate --json`.

        `guard_rate` is there only when a deal was broken off, `errors` and `faults` when one was forfeited, `words`,
        `dd_loss_per_deal` and `dd_losses` when they were asked for.
        """
        record = {name: getattr(self, name) for name in _KEYS}
        if self.guard_rate:
            record["guard_rate"] = self.guard_rate
        if self.errors:
            record |= {"errors": self.errors, "faults": list(self.faults)}
        if self.words is not None:
            record["words"] = self.words
        if self.losses is not None:
            record |= self.losses.to_dict()
        return record


def evaluate(
    a: Side,
    b: Side,
    rules: str | Rules = "sport_book",
    boards: int = 4000,
    seed: int = 0,
    batch: int = 4096,
    progress: Callable[[int, int], None] | None = None,
    *,
    on_error: str = "raise",
    time_limit: float | None = None,
    words: bool = False,
    losses: int = 0,
) -> Result:
    """Play two sides against each other on duplicate boards.

    Forced moves are played without asking. A failed call of an agent is asked again row by row, to name the board.

    Args:
        a, b: an agent or its name, see `make_agent`; a tuple of two is a pair of different partners, the first at the
            lower seat.
        rules: the game. Without pairs, too, A has every second seat: of five, three at one table and two at the other.
        boards: how many, at least 2; boards 0 .. boards - 1 of the seed.
        seed: of deals and chance, a whole number >= 0.
        batch: boards played at once, fewer where an agent's attribute `batch_hint` says so (a slow one, that progress
            be seen); only speed and memory depend on it.
        progress: called with (boards played, boards) after each batch; then, where losses are asked for, with (boards
            solved, boards to solve).
        on_error: "raise", or "forfeit": a deal in which an agent fails counts 0:10 against its side and is counted in
            `errors`.
        time_limit: seconds a decision may take, as mean over a call; None: no limit. Looked at when the call returns.
        words: also count the words of the game in the deals of the first 1024 boards.
        losses: also count what the moves of the first so many boards lost against double-dummy; 0: none. Boards with a
            forfeited deal are left out.

    Raises:
        AgentError: an agent fails (on_error="raise").
        ValueError: unknown agents or rules, or numbers out of range; losses of a game that the solver does not play.
        ImportError: losses without Numba.
    """
    game = get_rules(rules)
    numbers: list[tuple[str, Any, int]] = [("boards", boards, 2), ("batch", batch, 1), ("seed", seed, 0)]
    numbers += [("losses", losses, 0)]
    for name, value, least in numbers:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name}={value!r} must be a whole number >= {least}")
    if on_error not in ("raise", "forfeit"):
        raise ValueError(f"on_error={on_error!r} is unknown; choose from raise, forfeit")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit={time_limit!r} must be positive seconds, or None")
    losses = min(losses, boards)
    if losses:
        check_solver(game)
    made: dict[str, Agent] = {}
    sides = [_side(side, game, made) for side in (a, b)]
    match = _Match(game, int(seed), [agents for _, agents in sides], on_error == "raise", time_limit, words, losses)
    net, ended = np.zeros((2, boards), dtype=np.int64), np.zeros((2, boards), dtype=np.int64)
    at_once = min([batch, *(hint for agent in match.agents if (hint := getattr(agent, "batch_hint", None)))])
    for start in range(0, boards, at_once):
        stop = min(start + at_once, boards)
        net[:, start:stop], ended[:, start:stop] = match.play(start, stop - start)
        if progress is not None:
            progress(stop, boards)
    solved = None
    if losses:
        solved = count_losses(match.moves, (ended[:, :losses] != _FORFEITED).all(axis=0), game, progress)
    values = net.sum(axis=0) / (2 if game.pairs else game.seats)  # deals, or seats of A's
    mean = float(values.mean())
    margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, boards - 1) * values.std(ddof=1) / np.sqrt(boards))
    return Result(
        a=sides[0][0],
        b=sides[1][0],
        rules=game.title,
        boards=int(boards),
        seed=int(seed),
        points_per_deal=mean,
        low=mean - margin,
        high=mean + margin,
        win=float((net > 0).mean()),
        tie=float((net == 0).mean()),
        loss=float((net < 0).mean()),
        out_rate=float((ended == OUT).mean()),
        block_rate=float((ended == BLOCK).mean()),
        guard_rate=float((ended == GUARD).mean()),
        errors=int((ended == _FORFEITED).sum()),
        faults=tuple(str(error) for error in sorted(match.faults, key=lambda e: (e.board, e.table))[:_SHOWN]),
        words=rates(np.concatenate(match.histories), game) if match.histories else None,
        values=values,
        losses=solved,
    )


def _side(side: Side, rules: Rules, made: dict[str, Agent]) -> tuple[str, list[Agent]]:
    """Name and agents of a side; a name that stands twice is made once."""
    players = list(side) if isinstance(side, tuple) else [side]
    if len(players) > 2 or not players or (len(players) == 2 and rules.seats < 4):
        raise ValueError(f"a side of {rules.name} is an agent{' or two' if rules.seats > 3 else ''}, not {side!r}")
    agents = []
    for player in players:
        if isinstance(player, str) and player not in made:
            made[player] = make_agent(player, rules)
        agents.append(made[player] if isinstance(player, str) else make_agent(player, rules))
    names = [player if isinstance(player, str) else agent.name for player, agent in zip(players, agents, strict=True)]
    return "+".join(names), agents


class _Match:
    """Plays the boards of one evaluation."""

    def __init__(
        self,
        rules: Rules,
        seed: int,
        sides: list[list[Agent]],
        strict: bool,
        time_limit: float | None,
        words: bool,
        losses: int,
    ) -> None:
        self.rules, self.seed, self.strict, self.time_limit, self.words = rules, seed, strict, time_limit, words
        self.losses = losses  # boards whose moves are noted
        self.moves: list[Moves] = []  # whose deals are numbered 2 * board + table
        self.histories: list[npt.NDArray[np.int16]] = []  # of deals that ended, for the words of the game
        self.faults: list[AgentError] = []
        self.agents: list[Agent] = []
        for agent in (agent for side in sides for agent in side):
            if not any(agent is known for known in self.agents):
                self.agents.append(agent)
        # (2, seats): which agent sits where, at the first table and at the crossed one.
        self.seating = np.zeros((2, rules.seats), dtype=np.int64)
        for table in range(2):
            for seat in range(rules.seats):
                side = sides[(seat + table) % 2]
                agent = side[seat // 2 % len(side)]
                self.seating[table, seat] = next(i for i, known in enumerate(self.agents) if known is agent)

    def play(self, start: int, count: int) -> tuple[Ints, Ints]:
        """Play `count` boards from number `start` on.

        Returns:
            (2, count) A's net points, those of its seats added up, and (2, count) how each deal ended, by table and
            board.
        """
        engine = make_engine(self.rules, 2 * count, seed=0)
        dealt = duplicate_boards(self.rules, self.seed, start, count)
        engine.deal(*(np.concatenate([part, part]) for part in dealt))
        net, ended = np.zeros(2 * count, dtype=np.int64), np.zeros(2 * count, dtype=np.int64)
        live = np.arange(2 * count)
        while len(live):
            table, board = live // count, start + live % count
            bad, actions = self._decide(engine, table, board)
            if bad.any():
                lost = live[bad]
                odd = engine.to_move()[bad] % 2
                net[lost] = np.where(odd == table[bad], -FORFEIT, FORFEIT)  # A has the even seats of table 0
                ended[lost] = _FORFEITED
                live, table, board, actions = live[~bad], table[~bad], board[~bad], actions[~bad]
                if not len(live):
                    break
                engine = engine.take(~bad)
            if start < self.losses:
                self.moves.append(moves_at(engine, actions, 2 * board + table, board < self.losses))
            _, done = engine.step(actions, autoreset=False)
            if done.any():
                over = engine.finished
                even = over.rewards[:, 0] if self.rules.pairs else over.rewards[:, ::2].sum(axis=1)
                net[live[over.rows]] = np.where(table[over.rows] == 0, even, -even)
                ended[live[over.rows]] = over.outcome
                few = over.rows[start + live[over.rows] % count < _WORD_BOARDS]
                if self.words and len(few):
                    self.histories.append(engine.take(few).history(0))
                live = live[~done]
                if len(live):
                    engine = engine.take(~done)
        return net.reshape(2, count), ended.reshape(2, count)

    def _decide(self, engine: Engine, table: Ints, board: Ints) -> tuple[npt.NDArray[np.bool_], Ints]:
        """One action for every row, and which rows' agents failed (never any where failures raise)."""
        mask = engine.legal()
        actions = mask.argmax(axis=1)
        bad = np.zeros(len(actions), dtype=bool)
        plies = engine.plies()
        free = (engine.legal_count() > 1) | engine.peeks()
        who = np.where(free, self.seating[table, engine.to_move()], -1)
        streams = Streams.of(self.seed, board * _PLIES + plies)
        for i, agent in enumerate(self.agents):
            rows = np.flatnonzero(who == i)
            if not len(rows):
                continue
            actions[rows], faults = self._ask(agent, engine, streams, rows, 2 * board + table)
            for row, (what, cause) in faults.items():
                error = AgentError(
                    agent.name, int(board[row]), int(table[row]), int(engine.to_move()[row]), int(plies[row]), what
                )
                if self.strict:
                    raise error from cause
                bad[row] = True
                self.faults.append(error)
        return bad, actions

    def _ask(
        self, agent: Agent, engine: Engine, streams: Streams, rows: Ints, key: Ints
    ) -> tuple[Ints, dict[int, _Fault]]:
        """The agent's answers for some rows, and what is wrong with them by row of the engine."""
        question = decide(engine, agent, streams, rows, key)
        try:
            begun = time.perf_counter()
            answer = _checked(agent.act(question), len(rows))
            taken = time.perf_counter() - begun
        except Exception as cause:  # an agent is someone else's code: whatever it raises is reported with its place
            if len(rows) == 1:
                what = str(cause) if isinstance(cause, _WrongAnswer) else f"{type(cause).__name__}: {cause}"
                return np.zeros(1, dtype=np.int64), {int(rows[0]): (what, cause)}
            return self._ask_singly(agent, engine, streams, rows, key, cause)
        if self.time_limit is not None and taken > self.time_limit * len(rows):
            what = f"time-out: {taken:.3g} s for {len(rows)} decisions, the limit is {self.time_limit:g} s for one"
            return answer, {int(row): (what, None) for row in rows}
        playable = (answer >= 0) & (answer < self.rules.num_actions)
        playable[playable] = question.mask[playable, answer[playable]] == 1
        faults: dict[int, _Fault] = {}
        for j in np.flatnonzero(~playable):
            legal = " ".join(self.rules.action_name(int(action)) for action in np.flatnonzero(question.mask[j]))
            said = self.rules.action_name(int(answer[j])) if 0 <= answer[j] < self.rules.num_actions else answer[j]
            faults[int(rows[j])] = f"answered {said}, legal are {legal}", None
        return answer, faults

    def _ask_singly(
        self, agent: Agent, engine: Engine, streams: Streams, rows: Ints, key: Ints, cause: Exception
    ) -> tuple[Ints, dict[int, _Fault]]:
        """Ask again row by row after a call has failed, to find which to blame; all of them where none fails alone."""
        answer = np.zeros(len(rows), dtype=np.int64)
        faults: dict[int, _Fault] = {}
        for j, row in enumerate(rows):
            one = np.array([row])
            only = np.zeros(1, dtype=np.int64)
            answer[j : j + 1], fault = self._ask(agent, engine.take(one), streams.take(one), only, key[one])
            if fault:
                faults[int(row)] = fault[0]
                if self.strict:
                    break
        if not faults:
            what = f"{type(cause).__name__} in a call of {len(rows)} decisions, though not in one for each: {cause}"
            faults = {int(row): (what, cause) for row in rows}
        return answer, faults


class _WrongAnswer(Exception):
    """An answer that is not one action a row."""


def _checked(answer: Any, rows: int) -> Ints:
    """The answer as (rows,) int64."""
    array = np.asarray(answer)
    if array.shape != (rows,) or array.dtype.kind not in "iu":
        got = f"{array.dtype} of shape {array.shape}"
        raise _WrongAnswer(f"answered {got} instead of one whole number for each of {rows} rows")
    return array.astype(np.int64)
