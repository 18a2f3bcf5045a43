"""The players that come along: they work right after the install, say where they come from, and play well."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from agents import checkpoint, make_agent
from agents.base import decide
from agents.champion import FOLDER, READER, SEARCH
from agents.ppo import PPOConfig
from domino_env import make_engine
from domino_env.deals import Streams
from experiments.evaluate import evaluate
from experiments.train import load_config

ROOT = Path(__file__).parents[2]


def test_files__are_few_and_small():
    names = {file.name for file in FOLDER.iterdir() if file.name != "__pycache__"}
    parts = {"model.safetensors", "optimizer.safetensors", "state.json"}
    assert names == {"__init__.py", READER.name} | parts and {file.name for file in READER.iterdir()} == parts
    for folder in (FOLDER, READER):
        assert sum((folder / name).stat().st_size for name in parts) < 2_000_000


@pytest.mark.parametrize(("folder", "config"), [(FOLDER, "ppo.yaml"), (READER, "reader.yaml")])
def test_state__is_of_the_committed_config(folder, config):
    """It was trained as the config says; settings that are younger than it stand at their defaults."""
    said = checkpoint.load(folder).state["config"]
    wanted = dataclasses.asdict(load_config(ROOT / "configs" / config, []))
    assert said.items() <= wanted.items()
    usual = dataclasses.asdict(PPOConfig())
    for key in wanted.keys() - said.keys():
        assert wanted[key] == usual[key], key
    assert "/" not in json.dumps(said), "no path of the machine that trained it"


def test_champion__plays_alike_however_it_is_asked():
    engine = make_engine("sport_book", num_envs=40, seed=6)
    champion = make_agent("champion")
    assert champion.name == "champion" and not champion.sees_everything
    for _ in range(6):
        batch = decide(engine, champion, Streams.of(1, np.arange(40)))
        actions = champion.act(batch)
        assert (actions[7:9] == champion.act(batch.take(np.arange(7, 9)))).all()
        assert np.allclose(champion.probabilities(batch).sum(axis=1), 1, atol=1e-6)
        engine.step(actions)
    sampled = make_agent("champion:sample=true")
    assert (sampled.act(batch) != champion.act(batch)).any()


def test_champion__is_strong():
    """Far above `greedy`, and above `club`, with intervals that say so; README.md has the figures of many boards."""
    for name, least in (("greedy", 5.0), ("club", 0.0)):
        result = evaluate("champion", name, boards=1500, seed=33)
        assert result.low > least, result


def test_champion__plays_its_game_only():
    with pytest.raises(ValueError, match="trained for sport_book, not for blitz"):
        evaluate("champion", "random", rules="blitz", boards=2)


def test_champion_search__is_the_champion_looking_ahead():
    player = make_agent("champion-search:worlds=10,candidates=20")
    assert player.name == "champion-search:worlds=10,candidates=20"
    mind = make_agent("champion-search").imagination
    assert mind.candidates == SEARCH["candidates"] and (mind.trust, mind.other.name) == (0.2, str(READER))
    sure = make_agent("champion-search:known=true").imagination
    assert sure.trust is None and sure.known
    engine = make_engine("sport_book", num_envs=4, seed=4)
    for _ in range(8):  # first moves take longest
        engine.step(engine.legal().argmax(axis=1))
    for _ in range(4):
        batch = decide(engine, player, Streams.of(2, np.arange(4)))
        actions = player.act(batch)
        assert batch.mask[np.arange(4), actions].all()
        engine.step(actions)
    with pytest.raises(ValueError, match="depth"):
        make_agent("champion-search:depth=3")
