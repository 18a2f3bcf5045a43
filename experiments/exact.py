"""How fast the exact parts are, on one core: the double-dummy solver and the beliefs over hidden hands.

Times are CPU time of one thread, position by position as a player asks them; beside them, in the same run and on the
same positions, other people's programs where they are installed, or the plain way of doing it.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agents import decide, make_agent
from agents.search import load
from domino_env import get_rules, make_engine
from domino_env.deals import boards, row_keys
from domino_env.line import LineEngine
from domino_env.rules import Rules
from domino_env.tiles import HIGH, LOW, NUM_TILES, PASS, tiles_of
from experiments.benchmark import one_core

AFTER = (4, 8, 12)  # tiles on the line, beside none
#: What `domino benchmark solver` wants: milliseconds for all leads of a deal, and times faster than `dominoes`.
GOALS = {"ms_median": 15.0, "ms_max": 100.0}
PEER_GOALS = {0: 500.0, 8: 50.0}
PEER_DEALS = {0: 5, 8: 20}
#: And `domino benchmark beliefs`: seconds for the exact belief of one position under four policy models.
BELIEF_GOALS = {12: 0.1, 8: 0.5}
PLIES = (4, 8, 12, 16)
WORLDS = 1000

Say = Callable[[str], None]
Ints = npt.NDArray[np.int64]


def positions(rules: Rules, deals: int, tiles: int, seed: int, player: str = "random") -> LineEngine:
    """Deals of a seed played on until so many tiles lie on the line: at most ``deals`` rows, fewer where deals end.

    Args:
        rules: a game on an open line; tiles: on the line, 0 for the deal itself; player: who plays up to there.
    """
    engine = make_engine(rules, deals, seed=0)
    assert isinstance(engine, LineEngine)
    engine.deal(*boards(rules, seed, 0, deals))
    agent, rng = make_agent(player), np.random.default_rng(seed)
    kept: list[LineEngine] = []
    while True:
        laid = np.bitwise_count(engine.played()).sum(axis=1)
        ready = (laid >= tiles) & (engine.legal_count() > 1)
        if ready.any():
            kept.append(engine.take(ready))
        if ready.all():
            break
        engine = engine.take(~ready)
        _, done = engine.step(agent.act(decide(engine, agent, rng)), autoreset=False)
        if done.all():
            break
        engine = engine.take(~done)
    if not kept:
        raise ValueError(f"none of {deals} deals of {rules.name} has a choice with {tiles} tiles on the line")
    whole = make_engine(rules, sum(part.num_envs for part in kept), seed=0)
    assert isinstance(whole, LineEngine)
    begin = 0
    for part in kept:
        whole.put(np.arange(begin, begin + part.num_envs), part)
        begin += part.num_envs
    # Those with the fewest passes come first, and who looks at the first few should meet the others too.
    return whole.take(rng.permutation(begin)) if tiles else whole


def _each(count: int, task: Callable[[int], Any]) -> list[float]:
    """CPU milliseconds of task(0), task(1), … after one call to warm up."""
    task(0)
    times = []
    for i in range(count):
        began = time.process_time()
        task(i)
        times.append(1000 * (time.process_time() - began))
    return times


def _spread(times: Sequence[float]) -> dict[str, float]:
    return {
        "ms_median": round(statistics.median(times), 3),
        "ms_p90": round(float(np.quantile(times, 0.9)), 3),
        "ms_max": round(max(times), 3),
    }


# -- the solver ------------------------------------------------------------------------------------------------------


def solver(
    deals: int = 300, seed: int = 0, rules: str = "sport_book", peers: bool = False, say: Say = lambda line: None
) -> dict[str, Any]:
    """Milliseconds that the exact values of all moves of a position take: of all leads of a deal, and later.

    Positions are asked one by one, the call in Python included, and once more all together.

    Args:
        deals: how many; rules: a preset's name; seed: of the deals.
        peers: also `dominoes`' alpha-beta search on the first deals under puerto_rico, in the same run.
        say: is told what is being measured.
    Returns:
        the JSON of `domino benchmark solver`.
    Raises:
        ValueError: rules that the solver does not play, deals < 1.
        ImportError: Numba is not installed.
    """
    if deals < 1:
        raise ValueError(f"deals must be at least 1, got {deals}")
    solving, game = load("solver"), get_rules(rules)
    solving.check(game)

    def in_batch(table: Any) -> float:
        """Milliseconds a position where all are asked in one call, as a player asks that imagines many worlds."""
        repeats = max(1, (60 if (table[1] < 0).any() else 2000) // len(table[0]))
        many = [np.concatenate([part] * repeats) for part in table]
        return round(_each(1, lambda _: solving.solve(*many, game, threads=1))[0] / len(many[0]), 4)

    with one_core() as core:
        rows, sign = [], {}
        least = game.seats * (game.hand_size - 1)  # tiles on the line when a seat has one tile left, if nobody passed
        for tiles in (0, *(laid for laid in AFTER if laid < least)):
            say(f"solver, {deals} deals, {tiles} tiles on the line" if tiles else f"solver, all leads of {deals} deals")
            engine = positions(game, deals, tiles, seed)
            table = (engine.hands(), engine.ends(), engine.to_move())

            def one(i: int, sign: bool = False, table: Any = table) -> None:
                solving.solve(*(part[i : i + 1] for part in table), game, sign=sign, threads=1)

            spread = _spread(_each(engine.num_envs, one))
            rows.append({"after_tiles": tiles, "deals": engine.num_envs, **spread, "ms_in_batch": in_batch(table)})
            if not tiles:
                sign = _spread(_each(engine.num_envs, lambda i: one(i, True)))
        result: dict[str, Any] = {
            "rules": rules, "seed": seed, "core": core, **rows[0],
            "after": rows[1:], "sign_only": sign, "goals": GOALS, "peers": {},
        }  # fmt: skip
        if peers:
            result |= _solver_peers(solving, seed, say)
    say("solver, all cores")
    return result | _all_cores(solving, game, deals, seed)


def _all_cores(solving: Any, game: Rules, deals: int, seed: int) -> dict[str, Any]:
    """How many times faster, by the clock, all leads of the deals are solved on all cores than on one."""
    engine = positions(game, deals, 0, seed)
    table = engine.hands(), engine.ends(), engine.to_move()
    ratios = []
    for _ in range(3):
        seconds = []
        for threads in (1, None):
            began = time.perf_counter()
            solving.solve(*table, game, threads=threads)
            seconds.append(time.perf_counter() - began)
        ratios.append(seconds[0] / seconds[1])
    return {"threads": solving.cores(), "threads_speedup": round(statistics.median(ratios), 2)}


def _solver_peers(solving: Any, seed: int, say: Say, limit: float = 30.0) -> dict[str, Any]:
    """`dominoes.search.alphabeta` and our solver on the same positions of puerto_rico, in turns."""
    try:
        dominoes = importlib.import_module("dominoes")
    except ImportError:
        return {"peers_missing": ["dominoes"]}
    rules = get_rules("puerto_rico")
    found: dict[str, Any] = {}
    for tiles, deals in PEER_DEALS.items():
        engine = positions(rules, deals, tiles, seed)
        ours, theirs, unfinished = [], [], 0
        for i in range(engine.num_envs):
            say(f"dominoes' alphabeta, {tiles} tiles on the line, position {i + 1} of {engine.num_envs}")
            game = peer_game(dominoes, engine, i)
            table = tuple(part[i : i + 1] for part in (engine.hands(), engine.ends(), engine.to_move()))

            def ask(_: int, table: Any = table) -> None:
                solving.solve(*table, rules, threads=1)

            ours.append(max(statistics.mean(_each(10, ask)), 1e-3))  # short: the clock of a virtual machine may stand
            began = time.process_time()
            try:
                with _at_most(limit):
                    _, value = dominoes.search.alphabeta(game)
            except TimeoutError:
                unfinished += 1
            else:
                values = solving.solve(*table, rules, threads=1)
                best = int(values.max()) * (1 - 2 * (int(table[2][0]) & 1))
                if best != value:
                    raise AssertionError(f"dominoes says {value}, the solver {best}: {engine.text(i)}")
            theirs.append(1000 * (time.process_time() - began))
        found["dominoes" if not tiles else f"dominoes_after_{tiles}"] = {
            "ms_median": round(statistics.median(theirs), 1),
            "after_tiles": tiles,
            "deals": engine.num_envs,
            "unfinished": unfinished,  # broken off after the limit, which then stands for their time
            "limit_s": limit,
            "ours_ms_median": round(statistics.median(ours), 3),
            "ratio": round(statistics.median(t / o for t, o in zip(theirs, ours)), 1),
            "goal": PEER_GOALS[tiles],
        }
    return {"peers": found, "peers_missing": []}


def peer_game(dominoes: Any, engine: LineEngine, row: int) -> Any:
    """A table of the engine as a game of PyPI `dominoes`, with its past."""
    one = engine.take(np.array([row]))
    hands = (one.hands() | one.played())[0]
    tiles = [dominoes.Domino(int(low), int(high)) for low, high in zip(LOW, HIGH)]
    held = [dominoes.Hand([tiles[t] for t in tiles_of(int(hand))]) for hand in hands]
    leader = int(one.leader()[0])
    valid = tuple((tile, True) for tile in held[leader])
    game = dominoes.Game(dominoes.Board(), held, [], leader, valid, leader, None)
    for event in one.history(0)[0, : int(one.plies()[0])]:
        action = int(event) & 63
        if action != PASS:  # the peer passes by itself
            game.make_move(tiles[action % NUM_TILES], action < NUM_TILES)
    return game


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Breaks plain Python code off after so much CPU time with a TimeoutError; outside the main thread it does not."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError

    try:
        before = signal.signal(signal.SIGVTALRM, late)
    except (ValueError, AttributeError):
        yield
        return
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# -- beliefs ---------------------------------------------------------------------------------------------------------


def beliefs(
    deals: int = 50,
    seed: int = 0,
    rules: str = "sport_book",
    model: str = "club",
    peers: bool = False,
    say: Say = lambda line: None,
) -> dict[str, Any]:
    """Milliseconds that beliefs of the seat to move take, by the number of tiles on the line.

    Args:
        deals: positions for each number of tiles; rules: a preset's name; seed: of deals and samples.
        model: an agent with probabilities, or a checkpoint, that reads the others' moves.
        peers: also rejection sampling, the plain way: shuffle the hidden tiles until they fit the passes.
        say: is told what is being measured.
    Returns:
        the JSON of `domino benchmark beliefs`.
    Raises:
        ValueError: rules without beliefs, an unknown model, deals < 1.
        ImportError: Numba is not installed.
    """
    if deals < 1:
        raise ValueError(f"deals must be at least 1, got {deals}")
    ruled, reading, places = load("beliefs"), load("reading"), load("position")
    game = get_rules(rules)
    if game.rows:
        raise ValueError(f"beliefs are for games on an open line, not for {rules}")
    agent = make_agent(model, game)
    found = []
    with one_core() as core:
        for tiles in PLIES:
            say(f"beliefs, {tiles} tiles on the line")
            engine = positions(game, deals, tiles, seed)
            position = places.position_at(engine)
            keys = row_keys(seed, np.arange(len(position)))
            ones = [position.take(np.array([i])) for i in range(len(position))]

            def rules_only(i: int, ones: Any = ones) -> None:
                belief = ruled.RulesBelief(ones[i])
                belief.marginals(), belief.holds(), belief.entropy()

            def sample(i: int, ones: Any = ones, keys: Any = keys) -> None:
                ruled.RulesBelief(ones[i]).sample(WORLDS, keys[i : i + 1])

            def policy(method: str, i: int, ones: Any = ones, keys: Any = keys) -> None:
                models = [agent] * game.seats
                reading.policy_belief(ones[i], models, method=method, candidates=500, keys=keys[i : i + 1]).marginals()

            row: dict[str, Any] = {"after_tiles": tiles, "positions": len(ones)}
            row["rules_ms"] = _spread(_each(len(ones), rules_only))["ms_median"]
            row["sample_1000_ms"] = _spread(_each(len(ones), sample))["ms_median"]
            row["sampled_500_ms"] = _spread(_each(len(ones), lambda i: policy("sampled", i)))["ms_median"]
            if tiles in BELIEF_GOALS or tiles > max(BELIEF_GOALS):
                few = min(len(ones), 10)
                row["exact_ms"] = _spread(_each(few, lambda i: policy("exact", i)))["ms_median"]
                row["exact_goal_ms"] = 1000 * BELIEF_GOALS[tiles] if tiles in BELIEF_GOALS else None
            if peers:
                row["rejection_1000_ms"], row["rejection_accepts"] = _rejection(position, seed)
            found.append(row)
    return {"rules": rules, "seed": seed, "core": core, "model": model, "deals": deals, "by_tiles": found}


def _rejection(position: Any, seed: int) -> tuple[float, float]:
    """Median milliseconds to `WORLDS` worlds by shuffling until the passes are respected, and the share that was."""
    rng, times, shares = np.random.default_rng(seed), [], []
    for row in range(min(len(position), 20)):
        hidden = np.array(tiles_of(int(position.hidden[row])))
        sizes = np.where(np.arange(position.rules.seats) == position.viewer[row], 0, position.sizes[row])
        seats = np.repeat(np.arange(len(sizes)), sizes)
        suits = 1 << LOW[hidden].astype(np.int64) | 1 << HIGH[hidden].astype(np.int64)
        began, kept, tried = time.process_time(), 0, 0
        while kept < WORLDS and tried < 1000 * WORLDS:
            order = rng.permuted(np.broadcast_to(np.arange(len(hidden)), (WORLDS, len(hidden))), axis=1)
            bad = suits[order[:, : len(seats)]] & position.voids[row][seats] != 0
            kept, tried = kept + int((~bad.any(axis=1)).sum()), tried + WORLDS
        share = kept / tried
        shares.append(share)
        times.append(1000 * (time.process_time() - began) * WORLDS / max(kept, 1))
    return round(statistics.median(times), 3), round(statistics.median(shares), 4)
