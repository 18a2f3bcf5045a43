"""Decisions of deals that were written down: people's games, and those of programs that cannot be asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.search.position import PUBLIC, bound, position_at
from domino_env import match
from domino_env.deals import Deal
from domino_env.engine import make_engine
from experiments import replay
from experiments.signaling.record import Moments, joined


def read_deals(path: str | Path) -> list[Deal]:
    """The deals of a file that `domino replay` reads, deals in text or a match record.

    Deals of a match in which the rules were broken are left out: a wrong pass says what is not so.

    Raises:
        ValueError: naming file and line, as of `experiments.replay.read`, or where no deal is left.
    """
    found = replay.read(path)
    if not isinstance(found, replay.MatchReplay):
        return [one.deal for one in found]
    deals = [one.deal for one in found.record.played if not one.violations]
    if not deals:
        raise ValueError(f"{path}: no deal that was played by the rules")
    return deals


def replayed(deals: Sequence[Deal], *, tiles: Collection[int] | None = None, start: int = 0) -> Moments:
    """Play deals again and note their decisions with more than one legal move.

    A lead to which the rules bound the leader (K1, K2) is no decision.

    Args:
        deals: of one game with one tile a turn on an open line, with their moves; they may be broken off.
        tiles: decisions with so many tiles on the line are noted; None: all.
        start: number of the first deal.

    Raises:
        ValueError: no deals, or of several games, another kind of game, or a move that is not legal.
    """
    if not deals:
        raise ValueError("no deals to look at")
    rules = deals[0].rules
    if any(deal.rules != rules for deal in deals):
        raise ValueError(f"the deals must be of one game, not of {rules.title} and others")
    if rules.rows or rules.chains:
        raise ValueError(f"signals are measured in games with one tile a turn on an open line, not in {rules.name}")
    engine: Any = make_engine(rules, len(deals), seed=0)
    match.deal_out(engine, deals)
    rows, lengths = np.arange(len(deals)), np.array([len(deal.moves) for deal in deals])
    parts: list[Moments] = []
    for ply in range(int(lengths.max())):
        going = lengths[rows] > ply
        if not going.all():
            rows, engine = rows[going], engine.take(going)
        actions = np.array([deals[row].moves[ply] for row in rows.tolist()], np.int64)
        legal = engine.legal_bits()
        wrong = engine.over() | (legal >> actions.astype(np.uint64) & np.uint64(1) == 0)
        if wrong.any():
            row = int(wrong.argmax())
            name = rules.action_name(int(actions[row]))
            raise ValueError(f"deal {rows[row]}, move {ply + 1}: {name} is not legal there")
        noted = engine.legal_count() > 1
        if ply == 0:
            noted &= ~bound(rules, actions)
        if tiles is not None:
            noted &= np.isin(np.bitwise_count(engine.played()).sum(axis=1), list(tiles))
        here = np.flatnonzero(noted)
        parts.append(
            Moments(
                position_at(engine, PUBLIC).take(here),
                engine.hands()[here],
                legal[here],
                actions[here],
                start + rows[here],
                engine.plies()[here],
            )
        )
        engine.step(actions, autoreset=False)
    if not parts:
        raise ValueError("the deals have no moves: what was played stands behind the hands")
    found = joined(parts)
    return found.take(np.lexsort([found.ply, found.deal]))
