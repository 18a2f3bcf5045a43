"""The Gymnasium Env of one seat: episodes, players, illegal actions, bad input."""

import json

import gymnasium
import numpy as np
import pytest

from domino_env.lanes import LOST
from domino_env.registration import register_all
from domino_env.rules import PRESETS
from domino_env.single import DominoEnv
from domino_env.tiles import NUM_TILES, PASS, tile_name

register_all()
HANDS = [[tile_name(t) for t in range(seat, NUM_TILES, 4)] for seat in range(4)]


class FirstLegal:
    """Plays the first legal action; counts the questions."""

    def __init__(self):
        self.seats = []

    def act(self, batch):
        self.seats += batch.seat.tolist()
        return batch.mask.argmax(axis=1)


def play(env, **reset):
    """Play an episode with the first legal action: the step results."""
    view, _ = env.reset(**reset)
    results = []
    while not results or not results[-1][2]:
        results.append(env.step(int(view["action_mask"].argmax())))
        view = results[-1][0]
    return results


@pytest.mark.parametrize("episode", ["deal", "match"])
@pytest.mark.parametrize("rules", PRESETS)
def test_episode(rules, episode):
    """Rewards come with the deals' infos and sum to their points; every observation lies in the space."""
    env = DominoEnv(rules, episode=episode)
    deals = 0
    for seed in range(5):
        for view, reward, terminated, truncated, info in play(env, seed=seed):
            assert view in env.observation_space and view["action_mask"].any() and not truncated
            assert type(reward) is float and type(terminated) is bool
            if info:
                deals += 1
                json.dumps(info)
            if info and episode == "deal":
                points = info["deal"]["points"]
                assert reward == (points[0] - points[1] if env.rules.pairs else points[0]) and terminated
            if not info:
                assert reward == 0
        assert view["action_mask"].nonzero()[0].tolist() == [PASS]
    assert deals >= (5 if episode == "deal" else 10)


def test_seat_0_moves():
    """The learner is seat_0 and sees its own hand; the lead rotates, so it meets every role (S2)."""
    env = DominoEnv()
    plies = []
    for number in range(8):
        view, _ = env.reset(seed=1 if number == 0 else None)
        engine = env._lanes.engine
        assert engine.to_move()[0] == 0
        hand = int(engine.hands()[0, 0])
        assert view["observation"][:NUM_TILES].tolist() == [hand >> t & 1 for t in range(NUM_TILES)]
        plies.append(int(engine.plies()[0]))
    assert plies == [0, 3, 2, 1, 0, 3, 2, 1]


def test_made_by_gymnasium():
    """gymnasium.make with agents: partner at seat 2, opponents at 1 and 3."""
    partner, opponents = FirstLegal(), FirstLegal()
    env = gymnasium.make("Domino/SportBook-v0", partner=partner, opponents=opponents)
    play(env, seed=1)
    assert set(partner.seats) == {2} and set(opponents.seats) == {1, 3}
    assert env.unwrapped.rules.name == "sport_book"


def test_same_seed_same_game():
    env = DominoEnv()
    first = [(step[0]["observation"].tobytes(), step[1]) for step in play(env, seed=5)]
    play(env)
    assert [(step[0]["observation"].tobytes(), step[1]) for step in play(env, seed=5)] == first
    assert [(step[0]["observation"].tobytes(), step[1]) for step in play(DominoEnv(), seed=5)] == first


def test_illegal_action_loses():
    """J2: 0:10, terminated, info illegal; then only a reset goes on."""
    env = DominoEnv()
    view, _ = env.reset(seed=1)
    after, reward, terminated, truncated, info = env.step(int((view["action_mask"] == 0).argmax()))
    assert (reward, terminated, truncated, info) == (-LOST, True, False, {"illegal": True})
    assert after in env.observation_space
    with pytest.raises(ValueError, match="reset"):
        env.step(0)
    env.reset()
    env.step(int(env.action_masks().argmax()))


def test_strict(fingerprint):
    env = DominoEnv(illegal="raise")
    view, _ = env.reset(seed=1)
    before = fingerprint(env._lanes.engine)
    with pytest.raises(ValueError, match="illegal"):
        env.step(int((view["action_mask"] == 0).argmax()))
    assert fingerprint(env._lanes.engine) == before
    env.step(int(view["action_mask"].argmax()))


def test_after_the_end():
    """Steps before the first reset and after the end are errors; a wrong action is named first."""
    env = DominoEnv()
    with pytest.raises(ValueError, match="reset"):
        env.step(0)
    play(env, seed=1)
    with pytest.raises(ValueError, match="reset"):
        env.step(PASS)
    with pytest.raises(ValueError, match=r"0\.\.56"):
        env.step(99)


@pytest.mark.parametrize("action", [57, -1, 1.0, "pass", None, True, [0], np.zeros(1, int)], ids=repr)
def test_bad_action(action, fingerprint):
    env = DominoEnv()
    env.reset(seed=1)
    before = fingerprint(env._lanes.engine)
    with pytest.raises(ValueError, match=r"0\.\.56"):
        env.step(action)
    assert fingerprint(env._lanes.engine) == before


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"hands": [[*HANDS[0][:6], HANDS[1][0]], *HANDS[1:]]}, "twice"),
        ({"hands": [HANDS[0][:6], *HANDS[1:]]}, "7"),
        ({"hands": [["7-7", *HANDS[0][1:]], *HANDS[1:]]}, "7-7"),
        ({"leader": 4}, "leader"),
        ({"first": 1}, "first"),
    ],
)
def test_bad_options(options, named, fingerprint):
    env = DominoEnv()
    env.reset(seed=1)
    before = fingerprint(env._lanes.engine)
    with pytest.raises(ValueError, match=named):
        env.reset(options=options)
    assert fingerprint(env._lanes.engine) == before
    env.step(int(env.action_masks().argmax()))


@pytest.mark.parametrize("seed", [-1, 1.5, "one", [1], True], ids=repr)
def test_bad_seed(seed, fingerprint):
    env = DominoEnv()
    env.reset(seed=1)
    before = fingerprint(env._lanes.engine)
    with pytest.raises(ValueError, match="seed"):
        env.reset(seed=seed)
    assert fingerprint(env._lanes.engine) == before


def test_seed__numpy_integer():
    """Gymnasium itself takes only Python's integers."""
    env = DominoEnv()
    first, _ = env.reset(seed=7)
    again, _ = env.reset(seed=np.int64(7))
    assert np.array_equal(first["observation"], again["observation"])


def test_masks_for_sb3():
    """action_masks() is the mask of the last observation as bool."""
    env = DominoEnv()
    view, _ = env.reset(seed=1)
    assert env.action_masks().dtype == np.bool_ and (env.action_masks() == view["action_mask"]).all()


def test_render(monkeypatch):
    """The learner's own hand lies open, the others' do not; a window where SDL has a driver."""
    pytest.importorskip("PIL")
    env = DominoEnv(render_mode="ansi")
    env.reset(options={"hands": HANDS, "leader": 0, "deal_index": 0})
    text = env.render()
    assert isinstance(text, str)
    env.reset(options={"hands": [HANDS[0], HANDS[2], HANDS[3], HANDS[1]], "leader": 0, "deal_index": 0})
    assert env.render() == text
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = DominoEnv(render_mode="human")
    window.reset(seed=1)
    assert window.render() is None
    window.close()
