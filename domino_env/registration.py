"""The games under their ids: `Domino/SportBook-v0` for gymnasium.make, `domino/sport_book-v0` for pettingzoo.make."""

from __future__ import annotations

import gymnasium
from pettingzoo.env_registry import registration as pettingzoo

from domino_env.rules import PRESETS

VERSION = 0  # moves only when rules, actions or observations change


def gymnasium_id(preset: str) -> str:
    """Id of a preset in Gymnasium: `gymnasium_id("sport_book") == "Domino/SportBook-v0"`."""
    return f"Domino/{''.join(word.capitalize() for word in preset.split('_'))}-v{VERSION}"


def pettingzoo_id(preset: str) -> str:
    """Id of a preset in PettingZoo, AEC and Parallel: `pettingzoo_id("sport_book") == "domino/sport_book-v0"`."""
    return f"domino/{preset}-v{VERSION}"


def register_all() -> None:
    """Register every preset: with Gymnasium as Env and VectorEnv, with PettingZoo as AEC and Parallel env."""
    for preset in PRESETS:
        kwargs = {"rules": preset}
        # Both libraries warn about an id that is there already; a second call leaves all as it is.
        if gymnasium_id(preset) not in gymnasium.registry:
            gymnasium.register(
                gymnasium_id(preset),
                entry_point="domino_env.single:DominoEnv",
                vector_entry_point="domino_env.vector:make_vec",
                kwargs=kwargs,
            )
        name = pettingzoo_id(preset)
        if name not in pettingzoo.aec_registry:
            pettingzoo.register("aec", name, "domino_env.aec:aec_env", kwargs=kwargs)
        if name not in pettingzoo.parallel_registry:
            pettingzoo.register("parallel", name, "domino_env.parallel:parallel_env", kwargs=kwargs)
