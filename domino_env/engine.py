"""The verbs every engine has, and how to get one.

A batch of N deals: ``reset``, ``reset_rows``, ``deal``; ``step``; ``legal``, ``sample_legal``, ``observe``,
``history``, ``to_move``; ``take``, ``put``, ``snapshot``, ``load``, and copies by ``copy.deepcopy`` or ``pickle``. The
games on an open line are played by :class:`domino_env.line.LineEngine`.
"""

from collections.abc import Sequence
from typing import Any

from domino_env.line import LineEngine
from domino_env.rules import Rules

Engine = LineEngine


def make_engine(
    rules: str | Rules = "sport_book",
    num_envs: int = 1024,
    seed: int | Sequence[int] | None = None,
    *,
    episode: str = "deal",
    fours: int = 1,
    **rule_overrides: Any,
) -> Engine:
    """The engine of a game; arguments and errors as of :class:`domino_env.line.LineEngine`."""
    return LineEngine(rules, num_envs, seed, episode=episode, fours=fours, **rule_overrides)
