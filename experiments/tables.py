"""Tables of a tournament: many matches played at once, each into its record, by one process or several.

Deals of all tables are rows of one engine; what a record holds is not played again. An agent that fails stops the
play where nobody judges. A judge punishes it by the rulebook: a pass of who could lay is a wrong pass (J2: the deal is
lost 0:10; J3: a fine, and the pass stands; at the second in a deal the judge ends it, or it might never end); a tile
that does not match, or is not held, is `misfit_at_once`; action 57 is `false_block`, as in the environments; anything
else is no answer in time (`time`). After all but a wrong pass the first legal action is played for the agent.
"""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing import connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Agent, decide, make_agent
from domino_env import match
from domino_env.deals import Deal, Streams, boards
from domino_env.engine import Engine, make_engine
from domino_env.judge import Violation
from domino_env.judged import FALSE_BLOCK
from domino_env.line import LineEngine
from domino_env.match import FOUR, Header, Played, Recorder
from domino_env.tiles import NUM_TILES, PASS, mask_of, tiles_of

Ints = npt.NDArray[np.int64]
Tell = Callable[[int], None]  # called with a number of deals that are recorded

PLY_BITS = 10  # of the number of a random stream, below the number of the board
_OPEN = 256  # records that are open at a time
_ROWS = 4096  # deals played at once, at most
_PATIENCE = 1.0  # seconds: while they are played sooner, twice as many deals are played at once
GRACE = 3.0  # seconds that workers get to end by themselves


class PairError(RuntimeError):
    """An agent raised, or answered with what cannot be played, and nobody judges."""


@dataclass(frozen=True)
class Table:
    """One table of a match: all that a worker has to know."""

    file: str  # of its record
    header: Header
    agents: tuple[str, str, str, str]  # by seat
    board: int  # number of its first deal
    crossed: bool  # the second table of a team match
    even: int  # which of the two sides has the even seats
    where: str  # round, match and table, for people


@dataclass(frozen=True)
class Sheet:
    """What the record of a table says."""

    points: tuple[tuple[int, int], ...]  # of each deal that has a result, of the two sides of the match
    over: bool
    warnings: tuple[int, int]  # J1: of the two sides in the tournament, as far as this table knows
    removed: tuple[int, ...] = ()  # sides that are out (J1)
    withdrawn: int | None = None  # the side that left (J6)


# -- playing ----------------------------------------------------------------------------------------------------------


def play_tables(
    folder: Path, tables: Sequence[Table], seed: int, tell: Tell, agents: dict[str, Agent] | None = None
) -> list[Sheet]:
    """Play these tables to their end, each into its record; what a record holds is not played again.

    Args:
        folder: where the records lie.
        tables: to be played at once.
        seed: of the tournament.
        tell: called after every deal that was recorded.
        agents: those that are made already, by name; more are added.
    Returns:
        what the records say, a table each.
    Raises:
        ValueError: a record that does not hold, or is of something else.
        PairError: an agent failed, and nobody judges.
    """
    agents = {} if agents is None else agents
    for name in (name for table in tables for name in table.agents):
        if name not in agents:
            agents[name] = make_agent(name, tables[0].header.rules)
    results: list[Sheet] = []
    for start in range(0, len(tables), _OPEN):
        with contextlib.ExitStack() as stack, _one_thread():
            seatings = [_open(folder, table, seed, stack) for table in tables[start : start + _OPEN]]
            tell(sum(len(one.points) for one in seatings))
            _fill(seatings, agents, seed, tell)
            results += [one.sheet() for one in seatings]
    return results


@dataclass
class _Seating:
    """A table while it is played."""

    table: Table
    recorder: Recorder | None  # None: the record was complete
    standing: match.Standing
    points: list[tuple[int, int]]  # of seats 0 and 2, and of 1 and 3

    def enter(self, line: Mapping[str, Any]) -> None:
        """Count a line of the record."""
        if line["recorded"]["deal"] != "replay":
            first, second = line["recorded"]["points"]
            self.points.append((first, second))

    def sheet(self) -> Sheet:
        """What the record says by now."""
        even, standing = self.table.even, self.standing  # side s of the match has the seats of pair s ^ even

        def turned(two: tuple[int, int]) -> tuple[int, int]:
            return (two[1], two[0]) if even else two

        left = standing.withdrawal
        return Sheet(
            points=tuple(turned(one) for one in self.points),
            over=standing.over,
            warnings=turned(standing.warnings),
            removed=tuple(pair ^ even for pair in standing.removed),
            withdrawn=None if left is None else left.seat % 2 ^ even,
        )


def _open(folder: Path, table: Table, seed: int, stack: contextlib.ExitStack) -> _Seating:
    """Begin a record, or read what there is of it."""
    path = folder / table.file
    if path.exists() and b"\n" not in path.read_bytes():  # killed before the first line was whole
        path.unlink()
    if not path.exists():
        recorder = stack.enter_context(Recorder.create(path, table.header))
        return _Seating(table, recorder, recorder.standing, [])
    found = match.read(path, drop_cut=True)
    if found.header != table.header:
        raise ValueError(f"{path}: line 1: the header is not that of {table.where} of this tournament")
    seating = _Seating(table, None, found.standing, [])
    deals = hands(table, seed, 0, found.standing.deals + 1).tolist()
    for number, (line, played) in enumerate(zip(found.lines, found.played), 2):
        if [mask_of(hand) for hand in played.deal.hands] != deals[line["deal"]]:
            raise ValueError(f"{path}: line {number}: deal {line['deal']} is not the one that seed {seed} deals")
        seating.enter(line)
    if not found.standing.over:
        seating.recorder = stack.enter_context(Recorder.resume(path, drop_cut=True))
    return seating


def hands(table: Table, seed: int, start: int, count: int) -> npt.NDArray[np.uint32]:
    """Deals `start` .. `start + count - 1` of a table: (count, 4) masks; S4 is off where they are given (S13)."""
    rules = table.header.rules
    return boards(replace(rules, redeal=rules.redeal and not table.header.given), seed, table.board + start, count)[0]


def _fill(seatings: Sequence[_Seating], agents: Mapping[str, Agent], seed: int, tell: Tell) -> None:
    """Play tables on to their end, so many deals of all of them at once."""
    deals = FOUR
    while going := [one for one in seatings if not one.standing.over]:
        begun = time.monotonic()
        one_by_one = going[0].standing.header.rules.lead == "winner"  # K2: who leads is known when a deal is over
        share = 1 if one_by_one else max(1, min(deals, _ROWS // len(going)))
        wave = _Wave(going, share, agents, seed)
        for seating, played in wave.play():
            if seating.standing.over or seating.recorder is None:
                continue  # a pair was removed meanwhile (J1): what comes after is void
            seating.enter(seating.recorder.append(played))
            seating.standing = seating.recorder.standing
            tell(1)
        if time.monotonic() - begun < _PATIENCE:
            deals *= 2


class _Wave:
    """Some deals of several tables, all played at once."""

    def __init__(self, seatings: Sequence[_Seating], share: int, agents: Mapping[str, Agent], seed: int) -> None:
        self.rules = seatings[0].standing.header.rules
        self.judge = seatings[0].standing.header.judge
        self.agents = list(agents.values())
        self.seed = seed
        self.seatings: list[_Seating] = []  # of each row
        place = {name: i for i, name in enumerate(agents)}
        dealt: list[npt.NDArray[np.uint32]] = []
        led: list[tuple[int, int | None]] = []
        number: list[int] = []
        crossed: list[bool] = []
        seats: list[list[int]] = []
        for seating in seatings:
            table, standing = seating.table, seating.standing
            total = FOUR * standing.header.fours if self.rules.match_to is None else standing.deals + 1
            count = min(share, total - standing.deals)
            own = hands(table, seed, standing.deals, count)
            dealt.append(own)
            led += [
                match.lead(self.rules, standing.deals + i, one, standing.last) for i, one in enumerate(own.tolist())
            ]
            number += range(table.board + standing.deals, table.board + standing.deals + count)
            crossed += [table.crossed] * count
            seats += [[place[name] for name in table.agents]] * count
            self.seatings += [seating] * count
        self.hands = np.concatenate(dealt)
        self.leader = np.array([leader for leader, _ in led])
        self.forced = np.array([-1 if tile is None else tile for _, tile in led])  # the tile that must be led
        self.board, self.crossed = np.array(number), np.array(crossed)
        self.seats = np.array(seats)  # (rows, 4) number of the agent
        self.violations: list[list[Violation]] = [[] for _ in number]

    def play(self) -> Iterator[tuple[_Seating, Played]]:
        """Every deal as it was played, with its table; those of a table in order."""
        rows = len(self.board)
        moves = np.full((rows, self.rules.max_plies), -1, dtype=np.int16)
        engine = make_engine(self.rules, rows, seed=0)
        engine.deal(self.hands, self.leader)
        live = np.arange(rows)
        while len(live):
            actions, stopped = self._decide(engine, live)
            moves[live, engine.plies()] = actions
            if stopped.all():
                break
            if stopped.any():
                engine, actions, live = engine.take(~stopped), actions[~stopped], live[~stopped]
            _, done = engine.step(actions, autoreset=False)
            if done.any():
                live = live[~done]
                engine = engine.take(~done) if len(live) else engine
        for row, seating in enumerate(self.seatings):
            held = [tiles_of(hand) for hand in self.hands[row].tolist()]
            deal = Deal(self.rules, int(self.leader[row]), held, [move for move in moves[row].tolist() if move >= 0])
            yield seating, Played(deal, tuple(self.violations[row]))

    def _decide(self, engine: Engine, live: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """An action for every row, and which deals end with it: by a wrong pass (J2, J3)."""
        actions = engine.legal().argmax(axis=1)
        plies, mover = engine.plies(), engine.to_move()
        opening = (plies == 0) & (self.forced[live] >= 0)
        actions[opening] = self.forced[live][opening]
        who = np.where((engine.legal_count() > 1) & ~opening, self.seats[live, mover], -1)
        # Alike at both tables of a team match: a pair scores 0 against its own copy (S13).
        streams = Streams.of(self.seed, self.board[live] << PLY_BITS | plies)
        key = self.board[live] * 2 + self.crossed[live]
        stopped = np.zeros(len(live), dtype=bool)
        for number, agent in enumerate(self.agents):
            rows = np.flatnonzero(who == number)
            if not len(rows):
                continue
            first = actions[rows]
            actions[rows], faults = ask(agent, engine, streams, rows, key)
            for j, (kind, what) in faults.items():
                row = int(live[rows[j]])
                if self.judge is None:
                    raise PairError(self._place(row, agent, int(mover[rows[j]]), int(plies[rows[j]])) + what)
                again = any(one.kind == "wrong_pass" for one in self.violations[row])
                end = kind == "wrong_pass" and again and self.judge == "club"
                decision = "end" if end else "continue"
                self.violations[row].append(Violation(kind, int(mover[rows[j]]), int(plies[rows[j]]), decision))
                actions[rows[j]] = first[j]
                if kind == "wrong_pass":
                    actions[rows[j]] = PASS
                    stopped[rows[j]] = end or self.judge == "book"
                    assert isinstance(engine, LineEngine)  # games in pairs are
                    engine.allow_pass(rows[j : j + 1])
        return actions, stopped

    def _place(self, row: int, agent: Agent, seat: int, ply: int) -> str:
        table = self.seatings[row].table
        deal = int(self.board[row]) - table.board
        player = table.header.players[seat]
        return f"agent {agent.name} ({player}), {table.where}, deal {deal}, seat {seat}, ply {ply}: "


def ask(
    agent: Agent, engine: Engine, streams: Streams, rows: Ints, key: Ints
) -> tuple[Ints, dict[int, tuple[str, str]]]:
    """The agent's answers for some rows, and what is wrong with them.

    After a call that fails it is asked row by row, so that the fault is found and the other rows have their answers.

    Returns:
        (n,) actions; by place among `rows`: the violation that a judge makes of it, and what happened in words.
    """
    question = decide(engine, agent, streams, rows, key)
    try:
        answer = np.asarray(agent.act(question))
        if answer.shape != (len(rows),) or answer.dtype.kind not in "iu":
            raise TypeError(f"answered {answer.dtype} of shape {answer.shape}, not one whole number for each row")
    except Exception as error:  # an agent is someone else's code: whatever it raises is reported with its place
        if len(rows) == 1:
            return np.zeros(1, dtype=np.int64), {0: ("time", f"{type(error).__name__}: {error}")}
        answer = np.zeros(len(rows), dtype=np.int64)
        faults: dict[int, tuple[str, str]] = {}
        for j in range(len(rows)):
            answer[j : j + 1], fault = ask(agent, engine, streams, rows[j : j + 1], key)
            if fault:
                faults[j] = fault[0]
        return answer, faults
    answer = answer.astype(np.int64)
    actions = engine.rules.num_actions
    fits = (answer >= 0) & (answer < actions)
    fits[fits] = question.mask[fits, answer[fits]] == 1
    return answer, {int(j): _fault(engine, int(rows[j]), int(answer[j])) for j in np.flatnonzero(~fits)}


def _fault(engine: Engine, row: int, action: int) -> tuple[str, str]:
    """What a judge calls an illegal answer, and the answer in words."""
    rules = engine.rules
    if action == FALSE_BLOCK:
        return "false_block", f"answered {action}, which is no action"
    if not 0 <= action < rules.num_actions:
        return "time", f"answered {action}, which is no action"
    legal = np.flatnonzero(engine.legal()[row]).tolist()
    what = f"answered {rules.action_name(action)}, legal are {' '.join(map(rules.action_name, legal))}"
    if action == PASS:
        return "wrong_pass", what
    left, right = engine.ends()[row].tolist()
    tile = action % NUM_TILES
    fits = left == right and tile in legal  # it only is not the way to say so
    return "time" if fits else "misfit_at_once", what


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Networks compute on one thread, in whatever process: the last bit may depend on how work is split."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# -- several processes ------------------------------------------------------------------------------------------------


class Workers:
    """Plays tables in this process, or in several that share them out."""

    def __init__(self, folder: Path, seed: int, count: int) -> None:
        self.folder, self.seed, self.count = folder, seed, count
        self._agents: dict[str, Agent] = {}
        self._staff: list[tuple[Any, connection.Connection]] = []

    def play(self, tables: Sequence[Table], tell: Tell) -> list[Sheet]:
        """As of :func:`play_tables`, in the order of the tables."""
        if self.count == 1:
            return play_tables(self.folder, tables, self.seed, tell, self._agents)
        shares = [tables[i :: self.count] for i in range(min(self.count, len(tables)))]
        while len(self._staff) < len(shares):
            self._hire()
        busy: dict[connection.Connection, int] = {}
        for i, share in enumerate(shares):
            self._staff[i][1].send(share)
            busy[self._staff[i][1]] = i
        results: list[Sheet | None] = [None] * len(tables)
        while busy:
            for one in connection.wait(list(busy)):
                assert isinstance(one, connection.Connection)
                try:
                    what, said = one.recv()
                except (EOFError, ConnectionError):
                    raise OSError("a worker process has died; what was recorded is kept: go on with --resume") from None
                if what == "deals":
                    tell(said)
                elif what == "error":
                    raise said
                else:
                    results[busy.pop(one) :: self.count] = said
        return [one for one in results if one is not None]

    def _hire(self) -> None:
        spawn = multiprocessing.get_context("spawn")  # a fork would share threads, locks and generators
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=_work, args=(theirs, self.folder, self.seed), daemon=True)
        # Ctrl-C goes to every process at the terminal: this one decides, a worker never sees it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._staff.append((process, ours))

    def close(self) -> None:
        """Let the workers go: each ends when it next looks up, or, where its agents think for long, is ended."""
        for _, ours in self._staff:
            ours.close()
        deadline = time.monotonic() + GRACE
        for process, _ in self._staff:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.terminate()
                process.join()
        self._staff = []


def _work(ours: connection.Connection, folder: Path, seed: int) -> None:
    """The life of a worker: tables in, deals and results out, until nobody listens."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:  # killed with -9, the parent cannot say that it is gone
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)  # who goes on with the tournament waits until no process of this run is left
    if not parent.is_alive():
        os._exit(1)
    agents: dict[str, Agent] = {}
    try:
        while True:
            tables = ours.recv()
            try:
                sheets = play_tables(folder, tables, seed, lambda n: ours.send(("deals", n)), agents)
                answer: tuple[str, Any] = "done", sheets
            except ConnectionError:
                return
            except (ValueError, OSError, MemoryError, PairError) as error:
                answer = "error", error
            except Exception:  # a fault of ours, with its place
                answer = "error", RuntimeError("".join(traceback.format_exc()))
            ours.send(answer)
    except (EOFError, ConnectionError):
        return
