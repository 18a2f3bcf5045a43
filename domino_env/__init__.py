"""Partnership dominoes as environments: one vectorised engine and thin PettingZoo and Gymnasium views of it."""

from domino_env.aec import aec_env, raw_aec_env
from domino_env.decisions import Decisions, Table
from domino_env.engine import make_engine
from domino_env.parallel import parallel_env
from domino_env.registration import register_all
from domino_env.rules import PRESETS, Rules, get_rules
from domino_env.single import DominoEnv
from domino_env.vector import DominoVectorEnv, make_vec

__all__ = [
    "PRESETS",
    "Decisions",
    "DominoEnv",
    "DominoVectorEnv",
    "Rules",
    "Table",
    "aec_env",
    "get_rules",
    "make_engine",
    "make_vec",
    "parallel_env",
    "raw_aec_env",
    "register_all",
]

register_all()
