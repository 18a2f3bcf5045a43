"""The native ParallelEnv beside the AEC env, and what is asked of its actions."""

import copy

import numpy as np
import pytest

from domino_env.aec import raw_aec_env
from domino_env.parallel import parallel_env
from domino_env.rules import PRESETS
from domino_env.tiles import PASS

SEATS = ["seat_0", "seat_1", "seat_2", "seat_3"]


@pytest.mark.parametrize("episode", ["deal", "match"])
@pytest.mark.parametrize("rules", PRESETS)
def test_same_game_as_aec(rules, episode):
    """Observations, rewards, ends and infos are those of the AEC env, whatever the seats off turn send."""
    aec, parallel = (make(rules, episode, history=True) for make in (raw_aec_env, parallel_env))
    rng = np.random.default_rng(1)
    for seed in range(3):
        aec.reset(seed=seed)
        observations, infos = parallel.reset(seed=seed)
        assert infos == {agent: {} for agent in SEATS}
        while parallel.agents:
            mover = aec.agent_selection
            for agent in SEATS:
                view = aec.observe(agent)
                assert observations[agent].keys() == view.keys()
                assert all(np.array_equal(observations[agent][key], view[key]) for key in view)
            action = int(rng.choice(observations[mover]["action_mask"].nonzero()[0]))
            noise = {agent: int(rng.integers(57)) for agent in SEATS}
            aec.step(action)
            observations, rewards, terminations, truncations, infos = parallel.step(noise | {mover: action})
            assert rewards == aec.rewards and terminations == aec.terminations and truncations == aec.truncations
            ended = bool(parallel._table.finished.rows.size)
            assert infos == ({a: aec.infos[a] for a in SEATS} if ended else {a: {} for a in SEATS})
        assert all(terminations.values())


def test_mover_alone_suffices():
    env = parallel_env()
    observations, _ = env.reset(seed=1)
    for seat in ("seat_0", "seat_1", "seat_2"):
        observations, *_ = env.step({seat: int(observations[seat]["action_mask"].argmax())})


def test_off_turn_only_pass():
    env = parallel_env()
    observations, _ = env.reset(seed=1)
    for agent in SEATS[1:]:
        assert observations[agent]["action_mask"].nonzero()[0].tolist() == [PASS]


def test_samples_without_a_mask_are_legal():
    """Drivers that know no masks play the game; samples are spread over the legal actions, and seeded."""
    env = parallel_env()
    rng = env.action_space("seat_0")
    observations, _ = env.reset(seed=1)
    mask = observations["seat_0"]["action_mask"]
    rng.seed(5)
    drawn = [int(rng.sample()) for _ in range(300)]
    assert set(drawn) == set(mask.nonzero()[0].tolist())
    rng.seed(5)
    assert [int(rng.sample()) for _ in range(300)] == drawn
    assert rng.contains(drawn[0]) and env.action_space("seat_0") is rng
    while env.agents:
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})


def test_uniform_samples():
    """A sample by a mask is uniform over the mask: 57,000 draws from 19 actions, each 3,000 +- 5 sigma."""
    space = parallel_env().action_space("seat_0")
    space.seed(1)
    mask = np.zeros(57, np.int8)
    mask[::3] = 1
    counts = np.bincount([space.sample(mask) for _ in range(57_000)], minlength=57)
    assert counts[mask == 0].sum() == 0
    assert abs(counts[mask == 1] - 3000).max() < 5 * np.sqrt(3000)
    with pytest.raises(AssertionError):
        space.sample(mask.astype(np.int64))
    assert space.sample(probability=np.eye(57)[8]) == 8


WRONG = [{"seat_0": action} for action in (57, PASS, 1.5, None)]


@pytest.mark.parametrize("actions", [*WRONG, {}, {"seat_1": 0}, {1: 0, "x": 0}, None, 5, "seat_0", [0] * 4], ids=repr)
def test_bad_actions(actions, fingerprint):
    """The mover's action is missing, out of range, illegal or no integer: ValueError, and nothing is changed."""
    env = parallel_env()
    env.reset(seed=1)
    before = fingerprint(env._table)
    with pytest.raises(ValueError, match=r"seat_0|action"):
        env.step(actions)
    assert fingerprint(env._table) == before and env.agents == SEATS


def test_bad_options(fingerprint):
    env = parallel_env()
    env.reset(seed=1)
    before = fingerprint(env._table)
    with pytest.raises(ValueError, match="leader"):
        env.reset(options={"leader": 9})
    assert fingerprint(env._table) == before


def test_step_after_the_end():
    env = parallel_env()
    with pytest.raises(ValueError, match="reset"):
        env.step({"seat_0": 0})
    env.reset(seed=1)
    while env.agents:
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    with pytest.raises(ValueError, match="reset"):
        env.step({"seat_0": PASS})


def test_arrays_are_never_written_again():
    env = parallel_env(history=True)
    kept = []
    for seed in range(3):
        observations, _ = env.reset(seed=seed)
        while env.agents:
            kept.append((observations, copy.deepcopy(observations)))
            observations, *_ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    for view, was in kept:
        assert all(np.array_equal(view[agent][key], was[agent][key]) for agent in SEATS for key in was[agent])
