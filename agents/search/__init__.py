"""Exact play and exact beliefs: the double-dummy solver, posteriors over hidden hands, and the players built on them.

All of it needs the extra `search` (Numba), which is imported when the first search player is made and not before: the
environments, trainers and rule players do without.
"""

from __future__ import annotations

import importlib
from typing import Any

from agents.base import Agent, call_factory, register_agent

_PLAYERS = {  # name: (option that a number after a dash gives, "pimc-30"; one line about it)
    "pimc": ("worlds", "Imagines worlds, solves each exactly and plays the best mean."),
    "lookahead": ("worlds", "Each move in imagined worlds, judged by a network's critic, or its mean with exact play."),
    "ismcts": ("iterations", "Information-set Monte Carlo tree search, a fresh world every iteration."),
    "cheat": (None, "Sees all hands and plays exactly: the ceiling."),
}


def load(module: str) -> Any:
    """A module of this package.

    Raises:
        ImportError: Numba is not installed; it says which extra brings it.
    """
    try:
        return importlib.import_module(f"agents.search.{module}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("numba", "llvmlite"):
            raise
        raise ImportError(
            "search and exact play need numba, which is not installed; install the extra search: "
            "pip install 'domino-lab[search]'"
        ) from None


def _register(name: str, number: str | None, description: str) -> None:
    def make(**options: Any) -> Agent:
        return call_factory(name, getattr(load(name), name), options)

    register_agent(name, make, description, number=number)


for _name, (_number, _description) in _PLAYERS.items():
    _register(_name, _number, _description)
