"""Who plays: rule players, searchers and learned policies. Imports `domino_env`, never `experiments`."""

from agents import (
    baselines,
    counter,
    memory,
    planted,
    search,
)  # the players that come with the house; each registers itself
from agents.base import Agent, Decisions, Table, decide, list_agents, make_agent, register_agent

__all__ = [
    "Agent",
    "Decisions",
    "Table",
    "baselines",
    "counter",
    "deafness",
    "decide",
    "list_agents",
    "make_agent",
    "memory",
    "planted",
    "register_agent",
    "search",
]
