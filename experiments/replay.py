"""Deals in text, played again: one deal a line, blank lines and lines that begin with # are left out.

The notation is that of `domino_env.deals`; moves are played on the engine, so what is shown is what the rules allow,
and a mistake is told with its line and column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from domino_env import make_engine
from domino_env.deals import Deal, parse_deal
from domino_env.tiles import NUM_ACTIONS, action_name, mask_of

Snapshot = dict[str, Any]


@dataclass(frozen=True)
class Replay:
    """One deal of a file and every position of it."""

    line: int  # number of its line in the file, from 1
    deal: Deal
    positions: list[Snapshot]  # before the first move, then after each

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the deal as dealt, its moves, and how it stands after the last."""
        last = self.positions[-1]
        return {
            "line": self.line,
            "rules": last["rules"],
            "overrides": last["overrides"],
            "leader": self.deal.leader,
            "hands": last["dealt"],
            "moves": last["moves"],
            "ends": last["ends"],
            "over": last["over"],
            "deal": last["deal"],
        }


def read(path: str | Path) -> list[Replay]:
    """All deals of a file, played.

    Raises:
        ValueError: with file, line and column, for what is not the notation and for a move that the rules forbid.
        OSError: the file cannot be read.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file in UTF-8") from None
    replays = []
    for number, text in enumerate(lines, 1):
        if text.strip() and not text.lstrip().startswith("#"):
            try:
                replays.append(play(text, number))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
    if not replays:
        raise ValueError(f'{path}: no deal in it; one begins like "sport_book leader=0 | 0-1 2-2 … | …"')
    return replays


def play(text: str, line: int = 1) -> Replay:
    """Plays one line of text; ValueError with line and column where it cannot be."""
    deal = parse_deal(text, line)
    engine = make_engine(deal.rules, 1, seed=0)
    engine.deal(np.array([[mask_of(hand) for hand in deal.hands]], dtype=np.uint32), np.array([deal.leader]))
    positions = [engine.snapshot(0)]
    for number, action in enumerate(deal.moves):
        at, name = _place(text, deal, number, line), action_name(action)
        if engine.over()[0]:
            raise ValueError(f"{at}: {name} comes after the end of the deal")
        mask = engine.legal()[0]
        if not mask[action]:
            allowed = ", ".join(action_name(legal) for legal in range(NUM_ACTIONS) if mask[legal])
            raise ValueError(f"{at}: seat {int(engine.to_move()[0])} may not play {name}; allowed: {allowed}")
        engine.step(np.array([action]), autoreset=False)
        positions.append(engine.snapshot(0))
    return Replay(line, deal, positions)


def _place(text: str, deal: Deal, number: int, line: int) -> str:
    """Where move `number` stands: the moves are the last words of the line."""
    words = [match.start() for match in re.finditer(r"[^\s|]+", text)]
    return f"line {line}, column {words[len(words) - len(deal.moves) + number] + 1}"
