"""How strong search players are against each other and others, and what a move of theirs costs: one table.

Every two players meet on the same duplicate boards. A table that takes long is written to a file match by match, and
goes on from there.
"""

from __future__ import annotations

import importlib
import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Agent, Decisions, make_agent
from agents.search import load
from domino_env.rules import Rules, get_rules
from domino_env.tiles import NUM_TILES, tile_index
from experiments.duplicate import Timed, cpu_ms_per_move, matrices, meet
from experiments.evaluate import Result, evaluate
from experiments.exact import peer_game
from experiments.files import write_whole

#: Who plays where nobody is named; with a trained pair also those that read it, and the pair.
PLAYERS = ("greedy", "club", "pimc-10", "pimc-30", "ismcts-1000", "cheat")
READERS = (
    "{model}",
    "pimc:worlds=30,candidates=300,model={model}",
    "lookahead:worlds=100,candidates=0,model={model}",
    "lookahead:worlds=100,candidates=500,model={model}",
    "lookahead:worlds=100,candidates=500,leaf=mean,model={model}",
)
PEER_TILES = 8  # tiles on the line from which on `dominoes` searches; before, both play the same
PEER_WORLDS = 10

Ints = npt.NDArray[np.int64]
Say = Callable[[str], None]


def search(
    players: Sequence[str] = (),
    model: str | None = None,
    rules: str | Rules = "sport_book",
    boards: int = 200,
    seed: int = 0,
    out: Path | None = None,
    peers: bool = False,
    say: Say = lambda line: None,
) -> dict[str, Any]:
    """Every two players against each other on duplicate boards.

    Args:
        players: names of agents, at least two; none: `PLAYERS`, and with a model `READERS`.
        model: a checkpoint for `READERS`.
        rules: the game; boards: of each match; seed: of deals and chance.
        out: a JSON file that is written after every match; matches that stand in it are not played again.
        peers: also `dominoes`' probabilistic_alphabeta against `pimc` under puerto_rico, at equal time.
        say: is told which match is played.
    Returns:
        players, points, low, high (matrices of the row's points a deal against the column, None on the diagonal),
        cpu_ms_per_move (by player), rules, boards, seed; with peers, `peers`.
    Raises:
        ValueError: fewer than two players, a player twice, unknown names, a file of another table.
        ImportError: Numba is not installed.
    """
    game = get_rules(rules)
    names = list(players) or [*PLAYERS, *(name.format(model=model) for name in READERS if model)]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"a table needs two players or more, each once, not {', '.join(names) or 'none'}")
    load("solver")
    for name in names:
        make_agent(name, game)  # better now than before its first match
    head = {"rules": str(game.name), "overrides": game.overrides(), "boards": boards, "seed": seed}
    matches = _begun(out, head)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    for number, (a, b) in enumerate(pairs):
        key = f"{a} | {b}"
        if key in matches:
            continue
        say(f"match {number + 1} of {len(pairs)}: {a} against {b}, {boards} boards")
        result, spent = meet((a, a), (b, b), game, boards, seed)
        matches[key] = {**_figures(result), "spent": dict(zip((a, b), spent))}
        if out is not None:
            write_whole(out, json.dumps({**head, "matches": matches}, indent=1) + "\n")
    met = {(a, b): matches[f"{a} | {b}"] for a, b in pairs}
    table = matrices(names, met, ("points", "low", "high"))
    cost = cpu_ms_per_move(names, (one["spent"] for one in met.values()))
    found: dict[str, Any] = {**head, "players": names, **table, "cpu_ms_per_move": cost, "peers": {}}
    if peers:
        found |= _peers(boards, seed, say)
    return found


def _figures(result: Result) -> dict[str, float]:
    return {"points": result.points_per_deal, "low": result.low, "high": result.high}


def _begun(out: Path | None, head: dict[str, Any]) -> dict[str, Any]:
    """The matches that stand in a file, if it is of the same table."""
    if out is None:
        return {}
    if not out.exists():
        if not out.parent.is_dir():  # better now than after the first match
            raise ValueError(f"{out}: there is no folder {out.parent}")
        return {}
    try:
        kept = json.loads(out.read_text())
        said = {key: kept[key] for key in head}
        matches = dict(kept["matches"])
        for key, one in matches.items():
            for name in key.split(" | "):
                [*map(float, one["spent"][name]), *(float(one[figure]) for figure in ("points", "low", "high"))]
    except (ValueError, KeyError, TypeError, OSError):
        raise ValueError(f"{out} is no table of matches; name another file") from None
    if said != head:
        raise ValueError(f"{out} is a table of {said}, not of {head}; name another file")
    return matches


# -- another program -------------------------------------------------------------------------------------------------


class Late:
    """Plays one agent's moves until so many tiles lie on the line, and then another's."""

    needs_history = True

    def __init__(self, early: Agent, late: Agent, tiles: int) -> None:
        self.early, self.late, self.tiles = early, late, tiles
        self.name = f"{late.name} after {tiles} tiles"

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64 legal actions."""
        position = load("position").position_of(batch)
        late = np.bitwise_count(position.played).sum(axis=1) >= self.tiles
        answer = np.zeros(len(batch), np.int64)
        for agent, rows in ((self.early, np.flatnonzero(~late)), (self.late, np.flatnonzero(late))):
            if len(rows):
                answer[rows] = agent.act(batch.take(rows))
        return answer


class Dominoes:
    """PyPI `dominoes`' probabilistic_alphabeta at our table: it is shown what its seat can know, and no more."""

    name = "dominoes_probabilistic_alphabeta"
    needs_history = True

    def __init__(self, worlds: int = PEER_WORLDS) -> None:
        """`worlds`: hands that it imagines a move.

        Raises:
            ImportError: `dominoes` is not installed.
        """
        self._dominoes = importlib.import_module("dominoes")
        self._player = self._dominoes.players.probabilistic_alphabeta(sample_size=worlds)

    def check(self, rules: Rules) -> None:
        """It plays puerto_rico."""
        if rules != get_rules("puerto_rico"):
            raise ValueError(f"dominoes plays puerto_rico, not {rules.name}")

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64 legal actions."""
        if batch.rng is None:
            raise ValueError("dominoes needs batch.rng")
        places, beliefs = load("position"), load("beliefs")
        position = places.position_of(batch)
        seeds = (batch.rng.random(len(batch)) * 2**53).astype(np.uint64)
        # Any hands that can be will do for the others': it deals them anew.
        hands = beliefs.RulesBelief(position).sample(1, seeds)[:, 0]
        engine = places.imagine(position, np.arange(len(batch)), hands)
        answer = np.zeros(len(batch), np.int64)
        kept = random.getstate()
        try:
            for row in range(len(batch)):
                random.seed(int(seeds[row]))  # the package draws from Python's one generator
                game = peer_game(self._dominoes, engine, row)
                game.skinny_board()
                self._player(game)
                tile, left = game.valid_moves[0]
                answer[row] = tile_index(f"{tile.first}-{tile.second}") + (0 if left else NUM_TILES)
        finally:
            random.setstate(kept)
        return answer


def _peers(boards: int, seed: int, say: Say) -> dict[str, Any]:
    """`pimc` with the time that `dominoes` takes a move, against it; both play greedy until eight tiles are laid."""
    try:
        theirs = Timed(Dominoes())
    except ImportError:
        return {"peers_missing": ["dominoes"]}
    rules = get_rules("puerto_rico")
    greedy = make_agent("greedy")
    say(f"what a move of {theirs.name} takes")
    evaluate(Late(greedy, theirs, PEER_TILES), greedy, rules, 2, seed + 1, batch=1)
    limit = 1000 * theirs.seconds / max(theirs.decisions, 1)
    theirs = Timed(theirs.agent)
    ours = Timed(make_agent(f"pimc:worlds=1000,ms={limit:.3f}", rules))
    say(f"{ours.name} against {theirs.name}, {boards} boards, {limit:.0f} ms a move")
    result = evaluate(Late(greedy, ours, PEER_TILES), Late(greedy, theirs, PEER_TILES), rules, boards, seed, batch=1)
    found = {
        **_figures(result),
        "boards": boards,
        "after_tiles": PEER_TILES,
        "worlds": PEER_WORLDS,
        "ms_per_move": round(1000 * theirs.seconds / max(theirs.decisions, 1), 1),
        "ours_ms_per_move": round(1000 * ours.seconds / max(ours.decisions, 1), 1),
    }
    return {"peers": {theirs.name: found}, "peers_missing": [], "cores": os.cpu_count()}
