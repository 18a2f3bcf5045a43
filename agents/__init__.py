"""Who plays: rule players, searchers and learned policies. Imports `domino_env`, never `experiments`."""

# The house's players; each module registers its own.
from agents import baselines, champion, counter, deafness, memory, planted, search
from agents.base import Agent, Decisions, Table, decide, list_agents, make_agent, register_agent

__all__ = [
    "Agent",
    "Decisions",
    "Table",
    "baselines",
    "champion",
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
