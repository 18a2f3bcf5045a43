"""Partnership dominoes as environments: one vectorised engine and thin PettingZoo and Gymnasium views of it."""

from domino_env.engine import make_engine
from domino_env.rules import PRESETS, Rules, get_rules

__all__ = ["PRESETS", "Rules", "get_rules", "make_engine"]
