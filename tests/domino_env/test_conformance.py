"""The test suites of PettingZoo and Gymnasium on every preset, with every warning that can be avoided an error."""

import copy
import pickle
import warnings

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from domino_env.aec import aec_env, raw_aec_env
from domino_env.parallel import parallel_env
from domino_env.registration import gymnasium_id, pettingzoo_id, register_all
from domino_env.rules import PRESETS
from domino_env.single import DominoEnv
from domino_env.vector import make_vec

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo's tests import an env in PettingZoo's old way
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test
    from pettingzoo.test.state_test import state_test

register_all()

# PettingZoo wants plain Box observations; a dict with an action mask warns for every env that is not on its own list.
DICT_OBSERVATIONS = (
    "ignore:Observation is not a NumPy array",
    "ignore:Observation space for each agent probably should be",
)
pytestmark = [pytest.mark.filterwarnings(text) for text in DICT_OBSERVATIONS]
every_game = pytest.mark.parametrize("rules", PRESETS)
every_episode = pytest.mark.parametrize("episode", ["deal", "match"])


@every_game
@every_episode
@pytest.mark.parametrize("make", [aec_env, raw_aec_env])
def test_api(rules, episode, make):
    api_test(make(rules=rules, episode=episode), num_cycles=1000)


@pytest.mark.parametrize(
    "settings",
    [
        {"history": True},
        {"seats": 2, "pairs": False},
        {"labelled_ends": True},
        {"rules": "blitz", "seats": 8, "history": True},
        {"rules": "blitz", "seats": 5, "chain": "one", "labelled_ends": True},
        {"rules": "blitz", "pairs": True},
        {"rules": "blind_blitz", "seats": 2, "memory": "peek", "history": True},
        {"rules": "blind", "seats": 3, "lead": "high"},
    ],
)
def test_api__options(settings):
    api_test(aec_env(**settings), num_cycles=1000)
    parallel_api_test(parallel_env(**settings), num_cycles=1000)
    check_env(DominoEnv(**settings), skip_render_check=True)


@every_game
@every_episode
def test_seed(rules, episode):
    seed_test(lambda: aec_env(rules=rules, episode=episode))
    seed_test(lambda: raw_aec_env(rules=rules, episode=episode))


@every_game
@every_episode
def test_parallel_api(rules, episode):
    parallel_api_test(parallel_env(rules=rules, episode=episode), num_cycles=1000)


@every_game
@every_episode
def test_parallel_seed(rules, episode):
    parallel_seed_test(lambda: parallel_env(rules=rules, episode=episode))


@every_game
@pytest.mark.filterwarnings("ignore:.*Illegal move made")  # the test samples without a mask; the wrapper says so
def test_state(rules):
    state_test(aec_env(rules), parallel_env(rules))


@every_game
def test_render(rules, monkeypatch):
    pytest.importorskip("PIL")
    render_test(lambda render_mode: aec_env(rules=rules, render_mode=render_mode))
    raw = raw_aec_env(rules=rules, render_mode="rgb_array")
    raw.reset(seed=0)
    frame = raw.render()
    assert frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[2] == 3


@every_game
@every_episode
def test_gymnasium_check_env(rules, episode):
    env = gymnasium.make(gymnasium_id(rules), episode=episode).unwrapped
    assert isinstance(env, DominoEnv) and env.rules.name == rules
    check_env(env)


@every_game
def test_made_by_id(rules):
    """Every registered id makes its game, and registering again is silent."""
    register_all()
    aec = pettingzoo.make("aec", pettingzoo_id(rules))
    parallel = pettingzoo.make("parallel", pettingzoo_id(rules), history=True)
    assert str(aec) == str(parallel) == f"{rules}_v0"
    aec.reset(seed=1)
    observations, _ = parallel.reset(seed=1)
    for agent in aec.agents:
        assert np.array_equal(aec.observe(agent)["observation"], observations[agent]["observation"])
    vector = gymnasium.make_vec(gymnasium_id(rules), num_envs=8)
    observations, _ = vector.reset(seed=1)
    assert vector.num_envs == 8 and vector.unwrapped.rules.name == rules
    assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert observations in vector.observation_space


def test_ids():
    names = ["SportBook", "SportClub", "PuertoRico", "Kozyol", "TinyPairs", "Blitz", "BlindBlitz", "Blind"]
    assert [gymnasium_id(rules) for rules in PRESETS] == [f"Domino/{name}-v0" for name in names]
    assert pettingzoo_id("sport_book") == "domino/sport_book-v0"


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasium_vectorizes_the_single_env(mode):
    """Gymnasium's own vectorisers take the single env, also where a drawn deal (winner None) ends beside others."""
    envs = gymnasium.make_vec(gymnasium_id("tiny_pairs"), num_envs=8, vectorization_mode=mode)
    winners = set()
    try:
        observations, _ = envs.reset(seed=5)
        for _ in range(60):
            observations, _, _, _, infos = envs.step(observations["action_mask"].argmax(axis=1))
            if "deal" in infos:
                winners.add(frozenset(infos["deal"]["winner"][infos["_deal"]]))
    finally:
        envs.close()
    assert any(None in ended and len(ended) > 1 for ended in winners)


def test_gymnasium_wrappers():
    """The passive checker of gymnasium.make finds nothing in a hundred deals."""
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make(gymnasium_id("sport_book")))
    observation, _ = env.reset(seed=2)
    ended = 0
    while ended < 100:
        action = env.action_space.sample(mask=observation["action_mask"])
        observation, reward, terminated, _, info = env.step(action)
        if terminated:
            assert info["episode"]["r"] == reward
            ended += 1
            observation, _ = env.reset()


@pytest.mark.parametrize(
    "make",
    [
        aec_env,
        raw_aec_env,
        parallel_env,
        DominoEnv,
        lambda **settings: make_vec(num_envs=4, **settings),
    ],
)
@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"rules": "sport_bok"}, "sport_book"),
        ({"episode": "four"}, "match"),
        ({"fours": 0}, "fours"),
        ({"seats": 8}, "seats"),
        ({"seats": 5}, "line games have 2 or 4 seats"),
        ({"rules": "blitz", "seats": 9}, "games of blitz have 4 to 8 seats"),
        ({"rules": "blind", "seats": 5}, "blind games have 2 to 4 seats"),
        ({"rules": "blitz", "chain": "none"}, "chain='both' or chain='one'"),
        ({"hand_size": 8}, "hand_size"),
        ({"max_cycles": 10}, "max_cycles"),
        ({"block_score": "none"}, "loser_total"),
        ({"render_mode": "svg"}, "rgb_array"),
    ],
)
def test_bad_settings(make, settings, named):
    with pytest.raises(ValueError, match=named):
        make(**settings)


@pytest.mark.parametrize("make", [aec_env, raw_aec_env, parallel_env, DominoEnv])
@pytest.mark.parametrize("setting", ["num_envs", "seed"])
def test_settings_of_a_batch(make, setting):
    """One table has none of them, and says so instead of taking them for something else."""
    with pytest.raises(ValueError, match=f"no field '{setting}'"):
        make(**{setting: 3})


@pytest.mark.parametrize("make", [aec_env, parallel_env, DominoEnv, lambda: make_vec(num_envs=4)])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_keep_the_future(make, copied):
    """A copy in mid-deal plays the same deal on, and deals the same deals after it."""
    env = make()
    env.reset(seed=11)
    twin = None
    for step in range(60):
        if step == 5:
            twin = copied(env)
        seen = [advance(one) for one in (env, twin) if one is not None]
        if len(seen) == 2:
            assert seen[0] == seen[1]


def advance(env):
    """One step of any view with the first legal action, a reset at the end; what was seen of it."""
    if hasattr(env, "agent_selection"):
        env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
        seen = [env.observe(agent) for agent in env.agents], dict(env.rewards), copy.deepcopy(env.infos)
        if all(env.terminations.values()):
            env.reset()
    elif hasattr(env, "possible_agents"):
        masks = {agent: env._table.see(seat)[1] for seat, agent in enumerate(env.possible_agents)}
        seen = env.step({agent: int(mask.argmax()) for agent, mask in masks.items()})
        if not env.agents:
            env.reset()
    elif hasattr(env, "num_envs"):
        seen = env.step(env._lanes.observe()["action_mask"].argmax(axis=1))
    else:
        seen = env.step(int(env.action_masks().argmax()))
        if seen[2]:
            env.reset()
    return repr(seen)
