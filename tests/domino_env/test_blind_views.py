"""What the blind games ask of the env views beyond the games on a line: turns of several steps, the guard, the peek."""

import numpy as np
import pytest

import domino_env
from domino_env import rows
from domino_env.single import DominoEnv

GAMES = ["blind_blitz", "blind"]


def first_legal(batch):
    """The lowest legal action of every row."""
    return batch.mask.argmax(axis=1)


@pytest.fixture
def short_guard(monkeypatch):
    """Deals are broken off after three turns instead of 400."""
    monkeypatch.setattr(rows, "GUARD_TURNS", 3)


@pytest.mark.parametrize("game", GAMES)
def test_turn__asks_the_same_seat_again(game):
    """R4-R6: turning is a step of its own, so the next agent is who the engine says, and often the same."""
    env = domino_env.raw_aec_env(game)
    env.reset(seed=2)
    rng = np.random.default_rng(2)
    again = 0
    while not all(env.terminations.values()):
        before = env.agent_selection
        assert env.possible_agents[env._table.to_move()[0]] == before
        env.step(int(rng.choice(env.observe(before)["action_mask"].nonzero()[0])))
        again += env.agent_selection == before
    assert again >= 5


@pytest.mark.parametrize("game", GAMES)
def test_guard__truncates_with_zero_rewards(game, short_guard):
    """R8: in AEC, Parallel, Vector and single env alike."""
    aec = domino_env.raw_aec_env(game)
    aec.reset(seed=1)
    while not any({**aec.truncations, **{a: b for a, b in aec.terminations.items() if b}}.values()):
        aec.step(int(aec.observe(aec.agent_selection)["action_mask"].argmax()))
    assert all(aec.truncations.values()) and not any(aec.terminations.values())
    assert set(aec.rewards.values()) == {0.0} and aec.infos["seat_0"]["deal"]["outcome"] == "guard"
    for _ in aec.agent_iter():
        assert aec.last()[3]
        aec.step(None)
    assert not aec.agents

    parallel = domino_env.parallel_env(game)
    views, _ = parallel.reset(seed=1)
    while parallel.agents:
        acts = {agent: int(view["action_mask"].argmax()) for agent, view in views.items()}
        views, rewards, terminations, truncations, infos = parallel.step(acts)
    assert all(truncations.values()) and not any(terminations.values())
    assert set(rewards.values()) == {0.0} and infos["seat_1"]["deal"]["outcome"] == "guard"

    env = DominoEnv(game, opponents=first_legal)
    view, _ = env.reset(seed=1)
    ended = (False, False)
    while not any(ended):
        view, reward, *ended, info = env.step(int(view["action_mask"].argmax()))
    assert ended == [False, True] and reward == 0 and info["deal"]["outcome"] == "guard"

    lanes = domino_env.make_vec(game, num_envs=8, opponents=first_legal)
    view, _ = lanes.reset(seed=1)
    seen = 0
    for _ in range(30):
        view, rewards, terminations, truncations, infos = lanes.step(view["action_mask"].argmax(axis=1))
        assert not terminations.any() and not rewards.any()
        assert truncations.tolist() == infos.get("_final_obs", np.zeros(8, bool)).tolist()
        seen += truncations.sum()
    assert seen > 20


def test_guard__a_match_goes_on(short_guard):
    """R8, S10: a deal that is broken off scores nothing, and the match is complete after its last one."""
    env = domino_env.raw_aec_env("blind", episode="match")
    env.reset(seed=1)
    deals = 0
    while not any(env.terminations.values()):
        assert not any(env.truncations.values())
        env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
        deals += bool(len(env._table.finished))
    assert deals == 4 and not any(env.truncations.values())
    lanes = domino_env.make_vec("blind", num_envs=4, episode="match", opponents=first_legal)
    view, _ = lanes.reset(seed=1)
    ended = 0
    for _ in range(30):
        view, rewards, terminations, truncations, _ = lanes.step(view["action_mask"].argmax(axis=1))
        assert not truncations.any() and not rewards.any()
        ended += terminations.sum()
    assert ended > 4


def test_guard__an_illegal_action_after_it_is_no_truncation(short_guard):
    """R8, J2: a deal that is lost by an illegal action is terminated, though the one before was broken off."""
    lanes = domino_env.make_vec("blind", num_envs=1, opponents=first_legal)
    view, _ = lanes.reset(seed=1)
    broken = np.zeros(1, bool)
    while not broken.any():
        view, _, _, broken, _ = lanes.step(view["action_mask"].argmax(axis=1))
    _, rewards, lost, broken, _ = lanes.step((view["action_mask"] == 0).argmax(axis=1))
    assert (rewards.tolist(), lost.tolist(), broken.tolist()) == ([-10], [True], [False])


@pytest.mark.parametrize("skip_forced", [True, False])
def test_peek__the_learner_sees_its_row_once(skip_forced):
    """R9: a learner with memory="peek" is shown its row at its first decision of every deal, forced or not."""
    lanes = domino_env.make_vec("blind_blitz", num_envs=64, seats=3, memory="peek", skip_forced=skip_forced)
    part = lanes._lanes.engine.layout.slices["row_me"]

    def faces(view):
        """(N,) tiles of the own row, and (N,) those whose face is known."""
        places = view["observation"][:, part].reshape(64, -1, 16)
        return places[:, :, 14].sum(axis=1), (places[:, :, :14].sum(axis=2) == 2).sum(axis=1)

    view, _ = lanes.reset(seed=3)
    rng = np.random.default_rng(3)
    begun, deals, later = np.ones(64, bool), 0, 0
    for _ in range(200):
        tiles, known = faces(view)
        assert (known == tiles)[begun & ~lanes._lanes.engine.over()].all()
        later += (known < tiles)[~begun].sum()
        deals += begun.sum()
        actions = np.array([rng.choice(mask.nonzero()[0]) for mask in view["action_mask"]])
        view, _, terminations, _, _ = lanes.step(actions)
        begun = terminations
    assert deals > 150 and later > 1000


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_state__tells_tables_apart(game, seats):
    """state() holds what no seat sees: other faces in the rows or in the stock, and it is another state."""
    env = domino_env.raw_aec_env(game, seats=seats, lead="lot")
    env.reset(seed=5)
    shot = env._table.snapshot(0)
    hands, stock = shot["dealt"], shot["dealt_stock"]
    free = [(seat, place) for seat in range(seats) for place in range(2) if seat != shot["leader"]]
    states = set()
    for seat, place in free:
        other = [list(hand) for hand in hands]
        if stock:
            taken = [stock[0], *stock[1:]]
            other[seat][place], taken[0] = taken[0], other[seat][place]
        else:
            taken = stock
            other[seat][0], other[seat][1] = other[seat][1], other[seat][0]
        env.reset(options={"hands": other, "stock": taken, "leader": shot["leader"]})
        states.add(env.state().tobytes())
        assert env.state() in env.state_space
    assert len(states) == (len(free) if stock else seats - 1)


def test_peek__the_others_are_asked_when_they_see_their_rows():
    """R9: an agent with memory="peek" sees its own row at its first decision of every deal, though that is forced."""
    layout = domino_env.make_engine("blind_blitz", 1, seats=3).layout
    met, known = set(), []

    def spy(batch):
        places = batch.obs[:, layout.slices["row_me"]].reshape(len(batch), -1, 16)
        whole = places[:, :, 14].sum(axis=1) == (places[:, :, :14].sum(axis=2) == 2).sum(axis=1)
        for key, seat, one in zip(batch.key.tolist(), batch.seat.tolist(), whole.tolist(), strict=True):
            if (key, seat) not in met:
                met.add((key, seat))
                known.append(one)
        return batch.mask.argmax(axis=1)

    lanes = domino_env.make_vec("blind_blitz", num_envs=16, seats=3, memory="peek", opponents=spy)
    view, _ = lanes.reset(seed=4)
    for _ in range(120):
        view = lanes.step(view["action_mask"].argmax(axis=1))[0]
    assert len(known) > 60 and all(known)
