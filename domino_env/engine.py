"""The verbs every engine has, and how to get one.

A batch of N deals: ``reset``, ``reset_rows``, ``deal``; ``step``; ``legal``, ``sample_legal``, ``observe``,
``history``, ``to_move``; ``take``, ``put``, ``snapshot``, ``load``, and copies by ``copy.deepcopy`` or ``pickle``. The
games on an open line are played by :class:`domino_env.line.LineEngine`, the blind ones by
:class:`domino_env.rows.RowEngine`.
"""

from collections.abc import Sequence
from typing import Any

from domino_env.line import LineEngine
from domino_env.rows import RowEngine
from domino_env.rules import Rules, get_rules

Engine = LineEngine | RowEngine


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
    game = get_rules(rules, **rule_overrides)
    kind = RowEngine if game.rows else LineEngine
    return kind(game, num_envs, seed, episode=episode, fours=fours)
