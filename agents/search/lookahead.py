"""One-ply look-ahead: every legal move is made in many imagined worlds and judged by a critic that sees all hands.

The critic has learned what a position is worth if all go on playing as the network does, which does not see the hidden
hands: other than exact play in each world (`pimc`) it does not count on knowing them later. It has learned positions
whose mover has a choice, and no others. So after the move the game goes on, where only one action is legal, until a
seat has a choice, and the critic judges; or until the deal ends, and its result counts. With ``leaf="mean"`` a move is
worth in a world the mean of that and of its exact value there.
"""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from agents.base import Agent, Decisions
from agents.moves import make_moves
from agents.search import solver
from agents.search.kernels import cores
from agents.search.position import Position, imagine, position_of
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
from domino_env.tiles import PASS, is_whole

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

LEAVES = ("critic", "mean")
USUAL = 100  # worlds where neither they nor the time are given
MOST = 10_000  # worlds where the time is given, and they are not
CANDIDATES = 5  # for each world
#: Tiles in all hands from which down exact values are asked for with `leaf="mean"`; before, the critic judges alone.
#: With 28 a world takes 18 times as long as with 24, with 27 four times: most time would go into first moves.
_SOLVED = 24
_ROWS = 1 << 16  # imagined tables, or candidates, at once: some tens of MB
_A_CALL = 5000  # worlds a board that `evaluate` plays between two marks of progress, for some seconds
_DECISIONS = 15  # of a player on both tables of a board, about


@runtime_checkable
class Judge(Protocol):
    """What stands at the leaves; `agents.networks.CentralCritic` is one.

    A method `check(rules)` may be there: it raises a ValueError for a game that it does not judge.
    """

    def values(self, engine: LineEngine, /) -> npt.NDArray[Any]:
        """(N,) points that the side of each row's mover is expected to win from there, all hands being seen."""
        ...


@dataclass(frozen=True)
class Judged:
    """What a search found about N decisions."""

    mean: Floats  # (N, 57) expected points of the mover's side, -inf where not legal; but for rounding equal: equal
    ess: Floats  # (N,) effective number of draws that the weights of the worlds stand for
    fell_back: Bools  # (N,) the model ruled out every candidate; worlds then count by the rules alone
    worlds: int  # asked for, with equal ones


class Lookahead:
    """The player."""

    sees_everything = False

    def __init__(
        self,
        model: Agent | str | None = None,
        worlds: int | None = None,
        candidates: int | None = None,
        temperature: float = TEMPERATURE,
        floor: float = FLOOR,
        reads: str = "all",
        leaf: str = "critic",
        critic: Judge | str | None = None,
        ms: float | None = None,
        threads: int | None = None,
        known: bool = False,
        trust: float | None = None,
        other: Agent | str | None = None,
    ) -> None:
        """Takes the options.

        Args:
            model: how the others play, and who judges: the folder of a checkpoint, whose network reads the others' past
                moves, and whose critic stands at the leaves.
            worlds: how many to imagine. None: 100, or, where `ms` is given, as many as there is time for.
            candidates: deals that the worlds are chosen from; 0: worlds by the rules alone, no moves are read. None:
                five for each world.
            temperature, floor, reads, trust, other: how worlds are weighed, see `Imagination`.
            leaf: "critic", or "mean": of the critic's and the exact value, once no more than 24 tiles are in all hands.
            critic: the folder of another checkpoint, whose critic stands at the leaves; or a judge. The model may then
                be any that `Imagination` takes, or None: no moves are read.
            ms: time for a move in milliseconds, a batch of n moves has n times as much. Worlds are then added block by
                block until it is used up, and what is played depends on the machine. None: no limit.
            threads: over the decisions of a batch; None: one a core. What is played without `ms` does not depend on it.
            known: the opponents are the model itself, see `Imagination`.

        Raises:
            ValueError: anything out of these, or a checkpoint without a critic that sees all hands.
            ImportError: a checkpoint where torch is not installed.
        """
        if leaf not in LEAVES:
            raise ValueError(f"leaf={leaf!r} is unknown; choose from {', '.join(LEAVES)}")
        check_clock(ms, threads)
        if worlds is None:
            worlds = USUAL if ms is None or candidates else MOST
        if candidates is None and model is not None and is_whole(worlds):
            candidates = CANDIDATES * worlds
        if critic is None:
            if not isinstance(model, str):
                raise ValueError("lookahead needs model=FOLDER of a checkpoint, whose critic judges, or critic=FOLDER")
            critic = model
        self.judge = _judge(critic)
        self.imagination = Imagination(worlds, candidates, model, temperature, floor, reads, known, trust, other)
        self.leaf, self.ms, self.threads = leaf, ms, threads or cores()
        self.needs_history = self.imagination.candidates > 0
        self.name = self._called()
        boards = _A_CALL / worlds if ms is None else 5000 / (ms * _DECISIONS)
        self.batch_hint = int(min(max(boards, 4 if ms is None else 1), 1024))

    def _called(self) -> str:
        """The name with the options by which players differ."""
        mind = self.imagination
        said = mind.options()
        said += [f"leaf={self.leaf}", f"critic={getattr(self.judge, 'name', type(self.judge).__name__)}"]
        said += [f"ms={self.ms:g}"] if self.ms is not None else []
        return f"lookahead:{','.join(said)}"

    def check(self, rules: Rules) -> None:
        """Raises a ValueError for a game without two sides, of several tiles a turn, or not the critic's own."""
        solver.check(rules)
        self.imagination.check(rules)
        check = getattr(self.judge, "check", None)
        if check is not None:
            check(rules)

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64 the action with the best mean, of equals the lowest; one number of `batch.rng` a row."""
        self.check(PRESETS["sport_book"] if batch.rules is None else batch.rules)
        keys, mask = keys_of(batch), batch.mask != 0
        actions = mask.argmax(axis=1)
        many = mask.sum(axis=1)
        free = np.flatnonzero(many > 1)
        if not len(free):
            return actions
        position = position_of(batch)
        mind = self.imagination
        most = _ROWS // max(mind.worlds * int(many.max()), mind.candidates)
        size = max(1, min(most, -(-len(free) // self.threads)))
        groups = [free[i : i + size] for i in range(0, len(free), size)]

        def work(rows: Ints) -> None:
            actions[rows] = self.search(position.take(rows), mask[rows], keys[rows]).mean.argmax(axis=1)

        with ThreadPoolExecutor(min(self.threads, len(groups))) as pool:
            list(pool.map(work, groups))  # raises what a thread raised
        return actions

    def search(self, position: Position, legal: npt.NDArray[Any], keys: Keys) -> Judged:
        """What all moves are worth, with as many worlds as the options say or the time allows.

        Args:
            position: N rows, of which the viewer is to move; with events where worlds are weighed.
            legal: (N, 57) true or 1 where legal; keys: (N,) uint64 chance of each row.
        """
        mind, legal = self.imagination, legal != 0
        legal[legal.sum(axis=1) > 1, PASS] = False  # that a judge would let stand (J3), but not the rules
        worlds, means, done = [], [], 0
        for first, size in blocks(mind.worlds, self.ms, len(position), mind.worlds):
            worlds.append(mind.draw(position, keys, first, size))
            means.append(self._means(position, legal, worlds[-1]))
            done = first + size
        drawn = joined(worlds)
        ends = np.cumsum([one.weights.shape[1] for one in worlds])[:-1]
        mean = np.zeros(legal.shape)
        for part, weights in zip(means, np.split(drawn.weights, ends, axis=1), strict=True):
            mean += part * weights.sum(axis=1)[:, None]
        return Judged(np.where(legal, np.round(mean, 9), -np.inf), drawn.ess, drawn.fell_back, done)

    def _means(self, position: Position, legal: Bools, worlds: Worlds) -> Floats:
        """(N, 57) weighted means over the worlds of each row, 0 where the action is not legal."""
        row, number = np.nonzero(worlds.weights)
        hands, weight = worlds.hands[row, number], worlds.weights[row, number]
        world, action = np.nonzero(legal[row])  # a leaf for each legal action of each world
        values = self._leaves(position, row[world], hands[world], action)
        if self.leaf == "mean":
            few = position.sizes.sum(axis=1)[row] <= _SOLVED
            exact = np.zeros((len(row), legal.shape[1]), np.int32)
            at = row[few]
            exact[few] = solver.solve(hands[few], position.ends[at], position.to_move[at], position.rules, threads=1)
            values = np.where(few[world], (values + exact[world, action]) / 2, values)
        # `bincount` adds in order: the sum of a row does not depend on other rows.
        place = row[world] * legal.shape[1] + action
        sums = np.bincount(place, weight[world] * values, legal.size)
        return sums.reshape(legal.shape).astype(np.float64)

    def _leaves(self, position: Position, rows: Ints, hands: npt.NDArray[np.uint32], actions: Ints) -> Floats:
        """What comes of actions in worlds: (n,) points of the asking side.

        Args:
            rows: (n,) of the position; hands: (n, seats) uint32; actions: (n,) legal there.
        """
        engine = imagine(dataclasses.replace(position, events=None), rows, hands)
        asking = position.to_move[rows]
        rewards, over = make_moves(engine, actions)
        points = rewards[np.arange(len(rows)), asking].astype(np.float64)
        going = np.flatnonzero(~over)
        if len(going):
            left = engine.take(going)
            values = self.judge.values(left).astype(np.float64)
            points[going] = np.where((left.to_move() - asking[going]) % 2 == 1, -values, values)
        return points


def _judge(given: Judge | str) -> Judge:
    """The judge that is meant."""
    if not isinstance(given, str):
        if not isinstance(given, Judge):
            raise ValueError(f"critic={given!r} is neither the folder of a checkpoint nor has it values(engine)")
        return given
    if not Path(given).is_dir():
        raise ValueError(f"{given!r} is not the folder of a checkpoint, whose critic could judge")
    try:
        from agents.checkpoint import load_critic  # torch is only needed here
    except ModuleNotFoundError as error:
        raise ImportError(f"to load the checkpoint {given} install torch: pip install 'domino-lab[train]'") from error
    return load_critic(given)


lookahead = Lookahead  # by the name of the player
