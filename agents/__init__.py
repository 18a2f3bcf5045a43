"""Who plays: rule players, searchers and learned policies. Imports `domino_env`, never `experiments`."""

from agents import baselines, champion, counter, memory, search  # the house's players; each registers itself
from agents.base import Agent, Decisions, Table, decide, list_agents, make_agent, register_agent

__all__ = [
    "Agent",
    "Decisions",
    "Table",
    "baselines",
    "champion",
    "counter",
    "decide",
    "list_agents",
    "make_agent",
    "memory",
    "register_agent",
    "search",
]
