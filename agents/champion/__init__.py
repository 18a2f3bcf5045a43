"""The trained players that come along: `champion`, a network, and `champion-search`, which looks ahead with it.

Their checkpoint lies beside this file: the networks of a run of configs/ppo.yaml, seed 1, without what only training
needs (`agents.checkpoint.slim`). README.md says on what machine it was trained, and how strong it is. In `reader` is a
second actor, of configs/reader.yaml, seed 1. It is the weaker player, but it has learned for five minutes only and is
less sure of its choices: what it would do tells more of what others do, of search players above all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from agents.base import Agent, call_factory, load_network, register_agent
from agents.search import load

FOLDER = Path(__file__).parent
READER = FOLDER / "reader"

#: How `champion-search` looks ahead where nothing else is asked for.
SEARCH: dict[str, Any] = {"leaf": "mean", "worlds": 200, "candidates": 2000, "floor": 0.1}
#: Whom it takes the others for, unless it is told: more often than not no champion sits there.
DOUBT: dict[str, Any] = {"trust": 0.2, "other": str(READER)}


def champion(sample: bool = False) -> Agent:
    """The trained network that comes along, for sport_book.

    Args:
        sample: plays by its probabilities; else the likeliest action, which is the stronger.
    """
    policy = load_network(FOLDER, sample=sample)
    policy.name = "champion"
    return cast(Agent, policy)


def champion_search(**options: Any) -> Agent:
    """The champion that looks one ply ahead in imagined worlds; it has the options of `lookahead`."""
    usual = SEARCH if options.get("known") is True else SEARCH | DOUBT
    player = call_factory("champion-search", load("lookahead").lookahead, {**usual, "model": str(FOLDER), **options})
    player.name = "champion-search" + "".join(
        f"{',' if i else ':'}{key}={value}" for i, (key, value) in enumerate(options.items())
    )
    return player


register_agent("champion", champion)
register_agent("champion-search", champion_search)
