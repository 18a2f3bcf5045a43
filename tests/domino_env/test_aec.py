"""The AEC env, and the quick one-row engine under it: what PettingZoo's own tests do not look at."""

import copy
import sys
from itertools import pairwise

import numpy as np
import pytest

from domino_env import make_engine
from domino_env.aec import ILLEGAL_REWARD, aec_env, raw_aec_env
from domino_env.parallel import parallel_env
from domino_env.rules import PRESETS
from domino_env.single import DominoEnv
from domino_env.solo import make_table
from domino_env.tiles import NUM_TILES, PASS, tile_name

SEATS = ["seat_0", "seat_1", "seat_2", "seat_3"]
HANDS = [[tile_name(t) for t in range(seat, NUM_TILES, 4)] for seat in range(4)]
GAMES = [
    *({"rules": rules, "episode": episode} for rules in PRESETS for episode in ("deal", "match")),
    {"rules": "sport_book", "labelled_ends": True},
    {"rules": "sport_book", "seats": 2, "pairs": False, "episode": "match"},
    {"rules": "sport_book", "pairs": False, "episode": "match"},
    {"rules": "tiny_pairs", "seats": 2, "pairs": False, "hand_size": 5},
    {"rules": "blitz", "seats": 6, "chain": "one"},
    {"rules": "blitz", "seats": 7},
    {"rules": "blitz", "seats": 5, "chain": "one", "labelled_ends": True, "episode": "match"},
    {"rules": "blitz", "pairs": True, "chain": "one"},
    {"rules": "blind_blitz", "seats": 2, "memory": "peek"},
]


def random_action(observation, rng):
    """A uniformly random legal action of an observation."""
    return int(rng.choice(observation["action_mask"].nonzero()[0]))


def play(env, rng):
    """Play an episode to the last action that somebody makes; yields the env after each."""
    while not any(env.terminations.values()):
        env.step(random_action(env.observe(env.agent_selection), rng))
        yield env


@pytest.mark.parametrize("game", GAMES, ids=lambda game: "-".join(map(str, game.values())))
def test_solo_is_the_engine(game):
    """`play` and `see` do what `step`, `observe` and `legal` do, at every ply of 12 episodes or some 500 plies."""
    settings = dict(game)
    solo, engine = make_table(**settings), make_engine(settings.pop("rules"), 1, **settings)
    rng = np.random.default_rng(1)
    plies = 0
    for number in range(12):
        solo.reset(seed=7 if number == 0 else None)
        engine.reset(seed=7 if number == 0 else None)
        done = False
        while not done:
            for seat in range(solo.rules.seats):
                observation, mask = solo.see(seat)
                assert observation.dtype == np.uint8 and np.array_equal(observation, engine.observe(seat)[0])
                assert mask.dtype == np.int8 and np.array_equal(mask, engine.legal(seat)[0])
                assert np.array_equal(mask, solo.legal(seat)[0])
            assert solo.mover() == engine.to_move()[0]
            action = int(engine.sample_legal(rng)[0])
            rewards, done = solo.play(action)
            other, over = engine.step(np.array([action]), autoreset=False)
            assert (rewards or [0] * solo.rules.seats) == other[0].tolist() and done == over[0]
            assert (rewards is not None) == bool(len(engine.finished)) == bool(len(solo.finished))
            if len(engine.finished):
                assert solo.finished.info(0) == engine.finished.info(0)
            plies += 1
        assert solo.snapshot(0) == engine.snapshot(0)
        if plies > 500:
            break


@pytest.mark.parametrize(
    ("game", "hands"), [({}, 1000), ({"rules": "blitz", "seats": 7}, 50), ({"rules": "blind", "seats": 3}, 20)], ids=str
)
def test_dead_steps__each_agent_once(game, hands):
    """B04: after the ply that ends a hand all seats are terminated at once, and each is yielded exactly once more."""
    env = aec_env(**game)
    rng = np.random.default_rng(4)
    for hand in range(hands):
        env.reset(seed=hand)
        dead = []
        for agent in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            assert not truncated
            if terminated:
                dead.append(agent)
                env.step(None)
                continue
            assert not dead, "a dead agent was followed by a living one"
            env.step(random_action(observation, rng))
            assert len(set(env.terminations.values())) == 1 and env.agents == env.possible_agents
        assert sorted(dead) == env.possible_agents and env.agents == []


def deal_of(env):
    """The deal that an env holds: all hands, and who begins."""
    return env.unwrapped._table.hands()[0].tolist(), env.agent_selection


def test_seed__deal_and_leader():
    """B08: the same seed gives the same deal and leader on a new env and after 1, 3 and 10 hands."""
    rng = np.random.default_rng(8)
    used, deals = aec_env(), []
    for seed in range(200):
        new = aec_env()
        new.reset(seed=seed)
        deals.append(deal_of(new))
        for hands in (1, 2, 7) if seed % 20 == 0 else (1,):  # 1, 3 and 10 hands since the last seed
            for _ in range(hands):
                if used.unwrapped.agents:
                    list(play(used, rng))
                used.reset()
            used.reset(seed=seed)
            assert deal_of(used) == deals[-1]
    assert len({str(hands) for hands, _ in deals}) >= 199
    assert {first for _, first in deals} == {"seat_0"}  # S2: a seeded reset is deal 0


def test_leader_rotates():
    """B08, S2: over unseeded deals the lead rotates, deal after deal."""
    env = raw_aec_env()
    env.reset()
    leaders = []
    for _ in range(200):
        leaders.append(SEATS.index(env.agent_selection))
        env.reset()
    assert leaders[0] == 0 and all((b - a) % 4 == 1 for a, b in pairwise(leaders))


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("rules", PRESETS)
def test_spaces_contain_every_observation(rules, history):
    """B12: masks are int8 and sample legal actions; spaces contain the first, middle, last and new observations."""
    env = raw_aec_env(rules, history=history)
    for agent in env.possible_agents:
        env.action_space(agent).seed(12)
    kinds = [int, np.int64, np.int32, lambda action: np.array(action)]
    for hand in range(12 if history else 30):  # 200 hands and more over all presets
        env.reset(seed=hand)
        ply = 0
        while True:
            for agent in env.agents:
                observation = env.observe(agent)
                mask = observation["action_mask"]
                assert env.observation_space(agent).contains(observation)
                assert mask.dtype == np.int8 and mask.shape == (env.rules.num_actions,) and set(mask.tolist()) <= {0, 1}
                if agent != env.agent_selection or env.terminations[agent]:
                    assert mask.nonzero()[0].tolist() == [PASS]  # off turn and at the end: only the pass
                assert mask.any()
            mover = env.agent_selection
            if env.terminations[mover]:
                break
            mask = env.observe(mover)["action_mask"]
            action = env.action_space(mover).sample(mask)
            assert mask[action] == 1
            env.step(kinds[ply % 4](action))
            ply += 1


def test_wrapped_env_takes_every_kind_of_integer():
    """B12: np.int64, np.int32, int and 0-d arrays through the wrappers."""
    env = aec_env()
    for kind in (int, np.int64, np.int32, np.uint8, lambda action: np.array(action)):
        env.reset(seed=3)
        env.step(kind(env.observe("seat_0")["action_mask"].argmax()))
        assert env.agent_selection == "seat_1"


@pytest.mark.parametrize("rules", PRESETS)
@pytest.mark.parametrize("episode", ["deal", "match"])
def test_last_gives_every_result(rules, episode):
    """The rewards that last() gives a seat sum to the points of its deals; all seats are told the same deals."""
    env = raw_aec_env(rules, episode)
    rng = np.random.default_rng(2)
    for seed in range(5):
        env.reset(seed=seed)
        got, deals = dict.fromkeys(SEATS, 0.0), {agent: [] for agent in SEATS}
        for agent in env.agent_iter():
            observation, reward, terminated, _, info = env.last()
            got[agent] += reward
            if info:
                deals[agent].append(info["deal"])
            env.step(None if terminated else random_action(observation, rng))
        assert deals["seat_0"] == deals["seat_1"] == deals["seat_2"] == deals["seat_3"]
        assert len(deals["seat_0"]) == 1 if episode == "deal" else len(deals["seat_0"]) >= 2
        points = np.sum([deal["points"] for deal in deals["seat_0"]], axis=0).astype(float)
        if env.rules.pairs:
            points = np.tile([points[0] - points[1], points[1] - points[0]], 2)
        assert got == dict(zip(SEATS, points.tolist(), strict=True))


def test_deal_info__plain_and_complete():
    """The deal of the last step holds plain values under the contract's keys, equal for all seats."""
    env = raw_aec_env()
    env.reset(seed=1)
    list(play(env, np.random.default_rng(1)))
    deal = env.infos["seat_0"]["deal"]
    assert list(deal) == ["outcome", "winner", "points", "pips_left", "by", "plies"]
    assert deal["outcome"] in ("out", "block") and deal["winner"] in (0, 1, None)
    assert type(deal["plies"]) is int and all(type(n) is int for n in deal["points"] + deal["pips_left"])
    assert all(env.infos[agent] == {"deal": deal} for agent in SEATS)
    assert sum(env.rewards.values()) == 0


def test_match__sixteen_deals():
    """S10: a match of four fours is sixteen deals, each seat leading four; the end comes with the last deal."""
    env = raw_aec_env(episode="match", fours=4)
    env.reset(seed=6)
    results = [env.rewards for _ in play(env, np.random.default_rng(6)) if env._table.finished.rows.size]
    assert len(results) == 16
    assert all(env.terminations.values()) and sum(env.rewards.values()) == 0


def test_reset_amid_dead_steps():
    """A reset after some of the dead steps leaves nothing behind."""
    env = aec_env()
    rng = np.random.default_rng(3)
    for dead in range(4):
        env.reset(seed=dead)
        list(play(env, rng))
        for _ in range(dead):
            env.step(None)
        env.reset(seed=9)
        assert env.agents == SEATS and env.agent_selection == "seat_0"
        assert env.rewards == dict.fromkeys(SEATS, 0.0) and not any(env.terminations.values())
        assert env.last()[1:] == (0.0, False, False, {})
        seen = [agent for agent in env.agent_iter(4) if env.step(random_action(env.observe(agent), rng)) is None]
        assert seen == SEATS
        list(play(env, rng))
        assert sorted(agent for agent in env.agent_iter() if env.step(None) is None) == SEATS


def test_arrays_are_never_written_again():
    """What was handed out stays as it was, whatever is played after it."""
    env = raw_aec_env(history=True)
    rng = np.random.default_rng(5)
    kept = []
    for seed in range(5):
        env.reset(seed=seed)
        for _ in play(env, rng):
            view = env.observe(env.agent_selection) | {"state": env.state()}
            kept.append((view, copy.deepcopy(view)))
    for view, was in kept:
        assert all(np.array_equal(view[key], was[key]) for key in was)


def test_writing_into_an_observation_changes_nothing():
    env = raw_aec_env()
    env.reset(seed=5)
    before = copy.deepcopy(env.observe("seat_0"))
    spoiled = env.observe("seat_0")
    spoiled["observation"][:] = 0
    spoiled["action_mask"][:] = 1
    assert all(np.array_equal(env.observe("seat_0")[key], before[key]) for key in before)


def test_state__whole_table():
    """state() is seat_0's observation and the hands of the others."""
    env = raw_aec_env()
    env.reset(options={"hands": HANDS, "leader": 2})
    state = env.state()
    assert env.state_space.contains(state)
    size = env.observation_space("seat_0")["observation"].shape[0]
    assert np.array_equal(state[:size], env.observe("seat_0")["observation"])
    hands = state[size:].reshape(3, NUM_TILES)
    for seat in (1, 2, 3):
        assert [tile_name(t) for t in hands[seat - 1].nonzero()[0]] == HANDS[seat]
    assert env.agent_selection == "seat_2"


SWAPPED = [["0-0", "0-0", *HANDS[0][2:]], *HANDS[1:]]
BAD_OPTIONS = [
    ({"hands": SWAPPED}, "0-0"),
    ({"hands": [HANDS[0][:6], *HANDS[1:]]}, "7"),
    ({"hands": HANDS[:3]}, "4"),
    ({"hands": [["0-7", *HANDS[0][1:]], *HANDS[1:]]}, "0-7"),
    ({"leader": 4}, "leader"),
    ({"leader": -1}, "leader"),
    ({"leader": "seat_0"}, "leader"),
    ({"stock": ["0-0"]}, "stock"),
    ({"deal_index": -1}, "deal_index"),
    ({"hand": HANDS}, "hands"),
    ([{"leader": 1}], "dict"),
]
BAD_ACTIONS = [57, -1, 10**30, 1.0, np.float32(3), "3", None, True, [3], np.array([3]), np.array(3.0)]


@pytest.mark.parametrize(("options", "named"), BAD_OPTIONS)
@pytest.mark.parametrize("make", [aec_env, raw_aec_env])
def test_bad_options(make, options, named, fingerprint):
    """Refused with a ValueError that says what is allowed; the game goes on as if nothing had been asked."""
    env = make()
    env.reset(seed=1)
    env.step(int(env.observe("seat_0")["action_mask"].argmax()))
    before = fingerprint(env.unwrapped._table), env.agent_selection, dict(env.rewards)
    with pytest.raises(ValueError, match=named):
        env.reset(seed=2, options=options)
    assert (fingerprint(env.unwrapped._table), env.agent_selection, dict(env.rewards)) == before
    env.step(int(env.observe("seat_1")["action_mask"].argmax()))
    assert env.agent_selection == "seat_2"


@pytest.mark.parametrize("seed", [-1, 1.5, "one", [1]], ids=repr)
def test_bad_seed(seed, fingerprint):
    env = raw_aec_env()
    env.reset(seed=1)
    before = fingerprint(env._table)
    with pytest.raises(ValueError, match="seed"):
        env.reset(seed=seed)
    assert fingerprint(env._table) == before


@pytest.mark.parametrize("action", BAD_ACTIONS, ids=repr)
def test_bad_action(action, fingerprint):
    """Out of range, of a wrong type, or no action: ValueError, and nothing is changed."""
    env = raw_aec_env()
    env.reset(seed=1)
    before = fingerprint(env._table)
    with pytest.raises(ValueError, match=r"0\.\.56"):
        env.step(action)
    assert fingerprint(env._table) == before and env.agent_selection == "seat_0"
    env.step(int(env.observe("seat_0")["action_mask"].argmax()))


def test_illegal_action(fingerprint):
    """Every action outside the mask is refused in the bare env."""
    env = raw_aec_env()
    env.reset(seed=1)
    for action in (env.observe("seat_0")["action_mask"] == 0).nonzero()[0]:
        before = fingerprint(env._table)
        with pytest.raises(ValueError, match="legal are"):
            env.step(action)
        assert fingerprint(env._table) == before


def test_step_after_the_end():
    env = raw_aec_env()
    with pytest.raises(ValueError, match="reset"):
        env.step(0)
    env.reset(seed=1)
    list(play(env, np.random.default_rng(1)))
    with pytest.raises(ValueError, match="None"):
        env.step(PASS)
    for _ in SEATS:
        env.step(None)
    with pytest.raises(ValueError, match="reset"):
        env.step(None)


def test_illegal_action__wrapped(caplog):
    """An illegal action ends the wrapped game with the usual wrapper: a loss for the seat, nothing for the others."""
    env = aec_env()
    env.reset(seed=1)
    illegal = int((env.observe("seat_0")["action_mask"] == 0).nonzero()[0][0])
    env.step(illegal)
    assert "Illegal move made" in caplog.text
    assert env.rewards == {"seat_0": ILLEGAL_REWARD, "seat_1": 0, "seat_2": 0, "seat_3": 0}
    assert sorted(agent for agent in env.agent_iter() if env.step(None) is None) == SEATS
    env.reset(seed=1)
    assert env.last()[1:] == (0.0, False, False, {})
    for action in (57, -1, 1.0, "pass", None, True):
        with pytest.raises(AssertionError, match="action space"):
            env.step(action)
        assert env.agent_selection == "seat_0" and not any(env.terminations.values())


def test_render_modes(monkeypatch):
    """Text and pixels follow the game; without a mode, or a window without a display, the error says what to do."""
    pytest.importorskip("PIL")
    env = raw_aec_env(render_mode="ansi")
    env.reset(seed=1)
    first = env.render()
    env.step(int(env.observe("seat_0")["action_mask"].argmax()))
    assert isinstance(first, str) and env.render() != first
    silent = raw_aec_env()
    silent.reset(seed=1)
    with pytest.raises(ValueError, match="render_mode"):
        silent.render()
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    for make in (aec_env, parallel_env, DominoEnv):
        window = make(render_mode="human")
        with pytest.raises(ValueError, match="display"):  # before a move is made
            window.reset(seed=1)
        with pytest.raises(ValueError, match="display"):
            window.unwrapped.render()


def test_render_human__without_pygame(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(ValueError, match="pip install"):
        raw_aec_env(render_mode="human").reset(seed=1)


def test_render_human(monkeypatch):
    """A window shows each step, can be closed twice, and a copy of the env has its own."""
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = raw_aec_env(render_mode="human")
    env.metadata["render_fps"] = env._window.fps = 1000
    env.reset(seed=1)
    for _ in range(3):
        assert env.render() is None
        env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
    twin = copy.deepcopy(env)
    env.close()
    env.close()
    assert twin.render() is None
    twin.close()
