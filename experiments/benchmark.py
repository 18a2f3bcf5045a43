"""How fast the engine and the trainer are, beside a yardstick and beside other people's programs, in the same run.

Two noisy programs cannot be compared one after the other: everything here is measured in turns (A B A B) on one pinned
core, and reported as the median of the turns. Peers are used where they can be imported; nothing is installed.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from domino_env import make_engine
from domino_env.aec import raw_aec_env
from domino_env.tiles import NUM_ACTIONS

ROWS = (1024, 4096, 16384)
MEMORY_ROWS = 16384
#: What `domino benchmark engine --peers` wants of each peer: our moves a second over theirs.
GOALS = {"dominoes": 40.0, "openspiel_team_dominoes": 300.0, "pettingzoo_texas_holdem": 2.0}
YARDSTICK_GOAL = 0.7
TRAINER_GOAL = 10.0  # and of `domino benchmark train`
GAMES = ("sport_book", "blitz", "blind_blitz", "blind")  # of `--games`; the first is what the others are held against
GAME_ROWS = (4096, 16384)
#: How many times slower than the sport engine a game may be.
GAME_GOALS = {"blitz": 2.0, "blind_blitz": 3.0, "blind": 3.0}

Turn = Callable[[], int]  # does a small piece of work, returns how many moves it was


@dataclass(frozen=True)
class Speed:
    """Moves a second of one program: the median of its turns."""

    wall: float  # by the clock on the wall
    cpu: float  # by the process's own CPU time: what a quiet core would have given
    turns: list[float]  # moves per CPU second of each turn


def measure(programs: dict[str, Turn], repeats: int, seconds: float) -> dict[str, Speed]:
    """Runs the programs in turns A B A B …, `repeats` times, each turn `seconds` long, after a warm-up."""
    for program in programs.values():
        program()
    wall: dict[str, list[float]] = {name: [] for name in programs}
    cpu: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(repeats):
        for name, program in programs.items():
            moves, began, used = 0, time.perf_counter(), time.process_time()
            while not moves or time.perf_counter() - began < seconds:  # once at least, however late the turn came
                moves += program()
            wall[name].append(moves / (time.perf_counter() - began))
            cpu[name].append(moves / max(time.process_time() - used, 1e-9))
    return {name: Speed(statistics.median(wall[name]), statistics.median(cpu[name]), cpu[name]) for name in programs}


def ratio(ours: Speed, theirs: Speed) -> float:
    """Median over the turns of ours over theirs; neighbours in time, so what slowed one slowed the other."""
    return statistics.median(a / b for a, b in zip(ours.turns, theirs.turns))


@contextlib.contextmanager
def one_core() -> Iterator[int | None]:
    """Pins the process to one core while the block runs; yields its number, None where the system cannot."""
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    before = os.sched_getaffinity(0)
    core = max(before)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, before)


def engine_turn(rules: str, rows: int, seed: int) -> Turn:
    """The whole loop of random play: legal pick, step with auto-reset, mask, observation packed and then unpacked."""
    engine = make_engine(rules, num_envs=rows, seed=seed)
    engine.reset(seed=seed)
    rng = np.random.default_rng(seed)

    def turn() -> int:
        engine.step(engine.sample_legal(rng))
        engine.legal()
        np.unpackbits(
            engine.observe(packed=True), axis=1, bitorder="little"
        )  # as a buffer keeps and a network reads it
        return rows

    return turn


def yardstick_turn(rows: int, seed: int) -> Turn:
    """What plain NumPy costs: 20 bit operations, 20 gathers, one 200-byte and one 57-byte unpack over the rows.

    Half the operations are on 32 and half on 64 bits; half the gathers look up a small table and half pick one seat's
    word of each row. Each reads arrays of its own, as an engine reads its state, not what lies in the nearest cache.
    """
    rng = np.random.default_rng(seed)
    narrow = rng.integers(0, 1 << 28, (20, rows), dtype=np.uint32)
    wide = rng.integers(0, 1 << 57, (20, rows), dtype=np.uint64)
    table = rng.integers(0, 1 << 28, 128, dtype=np.uint32)
    entries = rng.integers(0, len(table), (10, rows))
    hands = rng.integers(0, 1 << 28, (rows, 4), dtype=np.uint32)
    seats = rng.integers(0, 4, (10, rows))
    every = np.arange(rows)
    packed = rng.integers(0, 256, (rows, 25), dtype=np.uint8)
    mask = rng.integers(0, 256, (rows, 8), dtype=np.uint8)
    operations = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.bitwise_and, np.bitwise_or) * 2

    def turn() -> int:
        for i, operation in enumerate(operations):
            operation(narrow[i], narrow[i + 10])
            operation(wide[i], wide[i + 10])
            table[entries[i]]
            hands[every, seats[i]]
        np.unpackbits(packed, axis=1, bitorder="little")
        np.unpackbits(mask, axis=1, count=NUM_ACTIONS, bitorder="little")
        return rows

    return turn


def engine_megabytes(rules: str, rows: int = MEMORY_ROWS, seed: int = 0) -> dict[str, float]:
    """Memory of an engine in MB: what it holds after 60 steps, and the most it needed, its answers included."""
    tracemalloc.start()
    try:
        turn = engine_turn(rules, rows, seed)
        for _ in range(60):
            turn()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return {"held": held / 1e6, "peak": peak / 1e6}


def dominoes_turn(seed: int) -> Turn:
    """One deal of PyPI `dominoes` between random players, bare: no observation, no mask."""
    import random

    dominoes = importlib.import_module("dominoes")
    rng = random.Random(seed)

    def turn() -> int:
        game = dominoes.Game.new()
        while game.result is None:
            game.make_move(*rng.choice(game.valid_moves))
        return len(game.moves)

    return turn


def openspiel_turn(seed: int) -> Turn:
    """One deal of OpenSpiel's `python_team_dominoes`, random players, observation and mask at every move."""
    import random

    pyspiel = importlib.import_module("pyspiel")
    importlib.import_module("open_spiel.python.games.team_dominoes")
    game = pyspiel.load_game("python_team_dominoes")
    observer = game.make_py_observer()
    rng = random.Random(seed)

    def turn() -> int:
        state, moves = game.new_initial_state(), 0
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(rng.choice(state.legal_actions()))
                continue
            player = state.current_player()
            observer.set_from(state, player)
            observer.tensor.copy()
            state.legal_actions_mask(player)
            state.apply_action(rng.choice(state.legal_actions()))
            moves += 1
        return moves

    return turn


def aec_turn(env: Any, seed: int) -> Turn:
    """One episode of a raw PettingZoo AEC env, random players: `last()`, a legal pick from the mask, `step()`."""
    rng = np.random.default_rng(seed)

    def turn() -> int:
        env.reset(seed=int(rng.integers(1 << 31)))
        moves = 0
        for _ in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            env.step(int(rng.choice(np.flatnonzero(observation["action_mask"]))))
            moves += 1
        return moves

    return turn


def texas_turn(seed: int) -> Turn:
    """pettingzoo's `texas_holdem_v4`, raw."""
    texas = importlib.import_module("pettingzoo.classic.texas_holdem_v4")
    return aec_turn(texas.raw_env(), seed)


PEERS: dict[str, Callable[[int], Turn]] = {
    "dominoes": dominoes_turn,
    "openspiel_team_dominoes": openspiel_turn,
    "pettingzoo_texas_holdem": texas_turn,
}


def engine(
    rules: str = "sport_book",
    rows: int | None = None,
    seconds: float = 8.0,
    seed: int = 0,
    peers: bool = False,
    say: Callable[[str], None] = lambda line: None,
    games: bool = False,
) -> dict[str, Any]:
    """Moves a second of the engine on one core, beside the yardstick, and beside peers or the other games where asked.

    Args:
        rules: a preset's name.
        rows: one number of rows; None: 1,024, 4,096 and 16,384, of which 4,096 is the headline.
        seconds: how long to measure in all, without the peers and the games (which take about as long again each).
        seed: of deals and picks.
        peers: also run the peers that can be imported.
        say: is told what is being measured.
        games: also measure sport_book, blitz, blind_blitz and blind in turns; of 4,096 and 16,384 rows, or of ``rows``.
    Returns:
        the JSON of `domino benchmark engine`; `peers` holds their moves a second, `ratios` ours over theirs; with
        ``games``, `games` holds a dict a game and number of rows and `game_goals` how many times slower each may be.
    Raises:
        ValueError: unknown rules, rows < 1 or seconds not above 0.
    """
    if rows is not None and rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}")
    if not 0 < seconds <= 3600:
        raise ValueError(f"seconds must be above 0 and at most 3600, got {seconds}")
    repeats, sizes = 7, [rows] if rows else list(ROWS)
    turn_seconds = seconds / (2 * repeats * len(sizes))
    with one_core() as core:
        by_rows = []
        for size in sizes:
            say(f"engine and yardstick, {size} rows")
            speeds = measure(
                {"engine": engine_turn(rules, size, seed), "yardstick": yardstick_turn(size, seed)},
                repeats,
                turn_seconds,
            )
            by_rows.append(
                {
                    "rows": size,
                    "moves_per_second": round(speeds["engine"].wall),
                    "moves_per_cpu_second": round(speeds["engine"].cpu),
                    "yardstick_moves_per_second": round(speeds["yardstick"].wall),
                    "ratio": round(ratio(speeds["engine"], speeds["yardstick"]), 3),
                }
            )
        head = next((row for row in by_rows if row["rows"] == 4096), by_rows[0])
        result: dict[str, Any] = {
            **head,
            "rules": rules,
            "seed": seed,
            "core": core,
            "by_rows": by_rows,
            "yardstick_goal": YARDSTICK_GOAL,
            "megabytes": {
                "rows": MEMORY_ROWS,
                **{key: round(value, 1) for key, value in engine_megabytes(rules).items()},
            },
            "peers": {},
        }
        if peers:
            best = max(by_rows, key=lambda row: row["moves_per_cpu_second"])
            result |= _peers(rules, int(best["rows"]), seconds, seed, say)
        if games:
            result |= _games([rows] if rows else list(GAME_ROWS), seconds, seed, say)
    return result


def _games(sizes: list[int], seconds: float, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Every game beside the sport engine, in turns."""
    repeats, found = 7, []
    for size in sizes:
        say(f"games, {size} rows")
        turns = {name: engine_turn(name, size, seed) for name in GAMES}
        speeds = measure(turns, repeats, seconds / (repeats * len(GAMES) * len(sizes)))
        found += [
            {
                "rules": name,
                "rows": size,
                "moves_per_second": round(speed.wall),
                "moves_per_cpu_second": round(speed.cpu),
                "times_slower": round(ratio(speeds[GAMES[0]], speed), 2),
            }
            for name, speed in speeds.items()
        ]
    return {"games": found, "game_goals": GAME_GOALS}


def _peers(rules: str, rows: int, seconds: float, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, int] = {}
    ratios: dict[str, float] = {}
    missing: list[str] = []
    ours: dict[str, int] = {}
    repeats = 5
    for name, make in PEERS.items():
        try:
            theirs = make(seed)
        except ImportError:
            missing.append(name)
            continue
        say(f"peer {name}")
        raw = name == "pettingzoo_texas_holdem"
        mine = aec_turn(raw_aec_env(rules), seed) if raw else engine_turn(rules, rows, seed)
        speeds = measure({"ours": mine, name: theirs}, repeats, seconds / (2 * repeats * len(PEERS)))
        found[name] = round(speeds[name].wall)
        ours[name] = round(speeds["ours"].wall)
        ratios[name] = round(ratio(speeds["ours"], speeds[name]), 2)
    return {
        "peers": found,
        "peers_rows": rows,
        "ours": ours,
        "ratios": ratios,
        "goals": {name: GOALS[name] for name in found},
        "peers_missing": missing,
    }


def trainer(
    updates: int = 2,
    seed: int = 0,
    peers: bool = True,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Learned decisions a second of the default trainer, and of sb3-contrib's MaskablePPO where it is installed.

    Both have two hidden layers of 256, two epochs, minibatches of 1,024, the same threads and the same number of
    decisions with more than one legal action; MaskablePPO plays seat_0 of a VectorEnv among random players.

    Args:
        updates: of ours.
        seed: of the run.
        peers: also train MaskablePPO.
        say: is told what is being done.
    Returns:
        the JSON of `domino benchmark train`; `peers` holds decisions a second, `ratios` ours over theirs.
    Raises:
        ValueError: updates < 1.
    """
    if updates < 1:
        raise ValueError(f"updates must be at least 1, got {updates}")
    import torch

    from agents.ppo import PPOConfig

    name, theirs = "sb3_maskable_ppo", None
    say(f"our trainer, {updates} updates")
    runs = [_train(updates, seed)]
    missing = []
    if peers:
        try:
            learn = maskable_ppo(seed)
        except ImportError:
            missing.append(name)
        else:
            say(f"peer {name}, {runs[0]['decisions']:,} decisions")
            threads = torch.get_num_threads()
            torch.set_num_threads(PPOConfig.threads)
            began = time.perf_counter()
            theirs = learn(runs[0]["decisions"]) / (time.perf_counter() - began)
            torch.set_num_threads(threads)
            say("our trainer again")  # the peer takes long: before and after it, so that both meet the same machine
            runs.append(_train(updates, seed))
    decisions, seconds = sum(run["decisions"] for run in runs), sum(run["seconds"] for run in runs)
    result: dict[str, Any] = {
        "decisions_per_second": round(decisions / seconds),
        "decisions": decisions,
        "seconds": seconds,
        "updates": updates,
        "threads": PPOConfig.threads,
        "seed": seed,
        "peers": {},
        "peers_missing": missing,
    }
    if theirs:
        result["peers"] = {name: round(theirs)}
        result["ours"] = {name: result["decisions_per_second"]}
        result["ratios"] = {name: round(decisions / seconds / theirs, 2)}
        result["goals"] = {name: TRAINER_GOAL}
    return result


def _train(updates: int, seed: int) -> dict[str, Any]:
    """A run of the default trainer in a folder that is thrown away, without evaluations."""
    import tempfile

    from experiments.train import train

    with tempfile.TemporaryDirectory() as folder:
        words = [f"total_updates={updates}", f"seed={seed}", f"runs_dir={folder}", "evaluate_every=1000000"]
        return train(None, [*words, "checkpoint_every=1000000", "opponents=[]"], None, json=True)


def maskable_ppo(seed: int, num_envs: int = 256, steps: int = 128) -> Callable[[int], int]:
    """sb3-contrib's MaskablePPO on seat_0 of `make_vec`; returns learn(decisions) -> decisions really learned from."""
    MaskablePPO = importlib.import_module("sb3_contrib").MaskablePPO
    vec_env = importlib.import_module("stable_baselines3.common.vec_env")
    from gymnasium import spaces

    from domino_env.vector import make_vec

    class Lanes(vec_env.VecEnv):  # type: ignore[name-defined]
        """Our VectorEnv in sb3's form; whatever sb3 asks for and does not use is left empty."""

        def __init__(self) -> None:
            self.lanes = make_vec("sport_book", num_envs, skip_forced=True)
            view = spaces.Box(0, 1, (make_engine(num_envs=1).layout.size,), np.uint8)
            super().__init__(num_envs, view, spaces.Discrete(NUM_ACTIONS))
            self.masks: Any = None
            self.actions: Any = None

        def _shown(self, observation: Any) -> Any:
            self.masks = observation["action_mask"]
            return observation["observation"]

        def reset(self) -> Any:
            return self._shown(self.lanes.reset(seed=seed)[0])

        def step_async(self, actions: Any) -> None:
            self.actions = actions

        def step_wait(self) -> Any:
            observation, rewards, ended, _, _ = self.lanes.step(self.actions)
            return self._shown(observation), rewards, ended, [{} for _ in range(num_envs)]

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **keywords: Any) -> Any:
            return list(self.masks)  # sb3-contrib asks for "action_masks" alone

        def get_attr(self, attr_name: str, indices: Any = None) -> Any:
            return [None] * num_envs

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            pass

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:
            return [False] * num_envs

        def close(self) -> None:
            self.lanes.close()

    settings = {"n_steps": steps, "batch_size": 1024, "n_epochs": 2, "seed": seed, "device": "cpu"}
    layers = {"net_arch": {"pi": [256, 256], "vf": [256, 256]}}
    model = MaskablePPO("MlpPolicy", Lanes(), policy_kwargs=layers, **settings)

    def learn(decisions: int) -> int:
        model.learn(total_timesteps=decisions)
        return int(model.num_timesteps)

    return learn
