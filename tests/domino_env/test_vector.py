"""The VectorEnv: its lanes beside single envs, autoreset, the players of the other seats, and bad input."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from domino_env import make_engine
from domino_env.deals import Streams
from domino_env.decisions import Decisions
from domino_env.lanes import LOST
from domino_env.line import LineEngine
from domino_env.rules import PRESETS
from domino_env.single import DominoEnv
from domino_env.tiles import NUM_TILES, PASS, tile_name
from domino_env.vector import DominoVectorEnv, make_vec

HANDS = [[tile_name(t) for t in range(seat, NUM_TILES, 4)] for seat in range(4)]


class Heaviest:
    """Plays by the mask alone, at random among its three last legal actions; keeps what it was asked."""

    name = "heaviest"

    def __init__(self):
        self.asked = []

    def __repr__(self):
        return self.name

    def act(self, batch):
        self.asked.append(batch)
        rank = np.cumsum(batch.mask[:, ::-1], axis=1)[:, ::-1] * batch.mask  # 1 for the last legal action
        limit = np.minimum(batch.mask.sum(axis=1), 3)
        chosen = 1 + (batch.rng.random(len(batch)) * limit).astype(int)
        return (rank == chosen[:, None]).argmax(axis=1)


def pick(mask, rng):
    """A random legal action of each row of masks."""
    return np.where(mask == 1, rng.random(mask.shape), -1).argmax(axis=1)


def row_of(view, i):
    """One row of a batched observation."""
    return {key: value[i] for key, value in view.items()}


def same(view, other):
    """Whether two observations are equal in keys, types and values."""
    return view.keys() == other.keys() and all(
        view[key].dtype == other[key].dtype and np.array_equal(view[key], other[key]) for key in view
    )


def plain(info, i):
    """Row i of an info in Gymnasium's dict-of-arrays form, where its mask says so."""
    return {
        key: plain(value, i) if isinstance(value, dict) else value[i]
        for key, value in info.items()
        if not key.startswith("_") and info[f"_{key}"][i]
    }


GAMES = [
    {},
    {"skip_forced": True},
    {"history": True},
    {"partner": Heaviest(), "opponents": Heaviest()},
    *({"rules": rules, "episode": "match"} for rules in PRESETS),
    {"rules": "tiny_pairs", "skip_forced": True},
    {"rules": "tiny_pairs", "hand_size": 1},
    {"seats": 2, "pairs": False},
    {"pairs": False, "opponents": Heaviest()},
    {"rules": "blitz", "seats": 7, "skip_forced": True, "history": True},
    {"rules": "blitz", "pairs": True},
    {"rules": "blind_blitz", "seats": 3, "memory": "peek", "skip_forced": True},
]


@pytest.mark.parametrize("game", GAMES, ids=str)
@pytest.mark.parametrize("given", [True, False], ids=["given", "seeded"])
def test_lanes_are_single_envs(game, given):
    """B09, SAME_STEP: eight lanes and eight single envs with the same deals, actions and streams agree at every step.

    On a step that ends an episode the lane shows the first observation of the next, and final_obs and final_info are
    what its twin returned; all other lanes are untouched by it. Wrong actions are among those played.
    """
    lanes = make_vec(num_envs=8, **game)
    twins = [DominoEnv(**game) for _ in range(8)]
    assert lanes.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    seeds = [100 + i for i in range(8)]
    options = [{"deal_index": i % 4} for i in range(8)]  # S2: row i of a batch starts at d = i mod 4
    if given:
        engine = make_engine(game.get("rules", "sport_book"), 8, 3, **{k: game[k] for k in game.keys() & RULES})
        for i in range(8):
            shot = engine.snapshot(i)
            options[i] |= {"hands": shot["dealt"], "leader": i % engine.rules.seats}
            if engine.rules.lead in ("low", "blank"):
                options[i]["leader"] = shot["leader"]  # who holds the lowest tile (B2, R3)
            if engine.rules.rows:
                options[i]["stock"] = shot["dealt_stock"]
    view, infos = lanes.reset(seed=seeds, options=options)
    assert infos == {} and view in lanes.observation_space
    for i, twin in enumerate(twins):
        assert same(row_of(view, i), twin.reset(seed=seeds[i], options=options[i])[0])
    rng = np.random.default_rng(9)
    ended = illegal = 0
    for step in range(60):
        actions = pick(view["action_mask"], rng)
        if step % 20 == 19:
            actions[step % 8] = (view["action_mask"][step % 8] == 0).argmax()  # a client that knows no masks
        view, rewards, terminations, truncations, infos = lanes.step(actions)
        assert view in lanes.observation_space and rewards.shape == (8,) and not truncations.any()
        for i, twin in enumerate(twins):
            mine, reward, terminated, truncated, info = twin.step(actions[i])
            assert (reward, terminated, truncated) == (rewards[i], terminations[i], False)
            if terminated:
                ended += 1
                illegal += info.get("illegal", False)
                assert infos["_final_obs"][i] and infos["_final_info"][i]
                assert same(infos["final_obs"][i], mine) and plain(infos["final_info"], i) == info
                mine, info = twin.reset()
            else:
                assert "final_obs" not in infos or infos["final_obs"][i] is None
                assert "_final_obs" not in infos or not infos["_final_obs"][i]
                assert plain({k: infos[k] for k in ("deal", "_deal") if k in infos}, i) == info
            assert same(row_of(view, i), mine)
    assert ended >= 3 and illegal == 3


RULES = {"hand_size", "seats", "pairs", "memory"}


@pytest.mark.parametrize("learner", ["seat", "pair"])
def test_row_does_not_depend_on_the_batch(learner):
    """Row i of a seed plays the same in a batch of 8 and of 13, whatever the other rows do."""
    few, many = (make_vec(num_envs=n, learner=learner, opponents=Heaviest()) for n in (8, 13))
    (a, _), (b, _) = few.reset(seed=5), many.reset(seed=5)
    rng = np.random.default_rng(5)
    for _ in range(40):
        actions = pick(b["action_mask"], rng)
        a, *first = few.step(actions[:8])
        b, *second = many.step(actions)
        assert same(a, {key: value[:8] for key, value in b.items()})
        assert all(np.array_equal(x, y[:8]) for x, y in zip(first[:3], second[:3]))


def test_same_seed_same_game():
    """A seed fixes deals and players, whatever was played before it; no seed goes on."""
    env = make_vec(num_envs=16, seed=3)
    runs = []
    for seed in (None, 3, 4, None):
        view, _ = env.reset(seed=seed)
        first = view["observation"].copy()
        total = []
        for _ in range(20):
            view, rewards, *_ = env.step(view["action_mask"].argmax(axis=1))
            total.append(rewards)
        runs.append((first.tobytes(), np.array(total).tobytes()))
    assert runs[0] == runs[1] and len(set(runs)) == 3


def test_rewards_are_the_deals_results():
    """Every reward is what the deal's info says, also when others lay the last tile; many deals end off turn."""
    env = make_vec(num_envs=64)
    view, _ = env.reset(seed=1)
    by = []
    for _ in range(60):
        view, rewards, terminations, _, infos = env.step(view["action_mask"].argmax(axis=1))
        assert (rewards[~terminations] == 0).all()
        for i in np.flatnonzero(terminations):
            deal = plain(infos["final_info"], i)["deal"]
            assert rewards[i] == deal["points"][0] - deal["points"][1]
            by.append(deal["by"])
    assert len(by) > 400 and set(by) == {0, 1, 2, 3}


def test_no_result_is_lost():
    """Deals that end before the learner decides anything are reported all the same: every deal of every row is seen."""
    env = make_vec("tiny_pairs", num_envs=32, hand_size=1, opponents=Heaviest())
    view, _ = env.reset(seed=1)
    twin = make_engine("tiny_pairs", 32, 1, hand_size=1)
    for _ in range(10):
        leader = twin.leader()
        rewards, done = twin.step(twin.legal().argmax(axis=1), autoreset=False)
        assert done.all()  # deals of one tile: the leader goes out, whoever it is
        waits = leader != 0
        assert (view["action_mask"][waits].argmax(axis=1) == PASS).all()
        view, mine, terminations, _, infos = env.step(view["action_mask"].argmax(axis=1))
        assert terminations.all() and np.array_equal(mine, rewards[:, 0])
        assert infos["final_info"]["deal"]["by"].tolist() == leader.tolist()
        twin.reset_rows(np.arange(32))


def test_pair_plays_both_seats():
    """learner="pair": rows show seat 0 or 2 as the turn comes, its own hand, and the pair's points."""
    env = make_vec(num_envs=32, learner="pair")
    view, _ = env.reset(seed=2)
    seen = set()
    rng = np.random.default_rng(2)
    for _ in range(40):
        seats = env.seats
        engine = env._lanes.engine
        assert (seats == engine.to_move()).all() and not seats[0] & 1
        assert np.array_equal(view["observation"], engine.observe(seats))
        seen |= set(seats.tolist())
        view, rewards, terminations, _, infos = env.step(pick(view["action_mask"], rng))
        for i in np.flatnonzero(terminations):
            points = infos["final_info"]["deal"]["points"][i]
            assert rewards[i] == points[0] - points[1]
            assert infos["final_obs"][i]["action_mask"].nonzero()[0].tolist() == [PASS]
    assert seen == {0, 2}


@pytest.mark.parametrize("learner", ["seat", "pair"])
def test_skip_forced(learner):
    """With skip_forced the learner always has a choice, but for the report of a deal without any."""
    env = make_vec(num_envs=64, learner=learner, skip_forced=True)
    view, _ = env.reset(seed=3)
    rng = np.random.default_rng(3)
    reports = 0
    for _ in range(40):
        over = env._lanes.engine.over()
        reports += over.sum()
        assert (view["action_mask"][~over].sum(axis=1) > 1).all()
        assert (view["action_mask"][over].argmax(axis=1) == PASS).all()
        view, *_ = env.step(pick(view["action_mask"], rng))
    assert reports < 0.01 * 40 * 64


def test_illegal_action_loses():
    """J2: the deal is lost 0:10, the row terminates with info illegal and begins the next deal; others play on."""
    env = make_vec(num_envs=8)
    view, _ = env.reset(seed=4)
    actions = view["action_mask"].argmax(axis=1)
    for row in (2, 5):
        actions[row] = (view["action_mask"][row] == 0).argmax()
    after, rewards, terminations, _, infos = env.step(actions)
    assert terminations.nonzero()[0].tolist() == [2, 5] and (rewards == np.where(terminations, -LOST, 0)).all()
    assert infos["final_info"]["illegal"].tolist() == infos["final_info"]["_illegal"].tolist() == terminations.tolist()
    assert "deal" not in infos["final_info"]
    assert same(infos["final_obs"][2], row_of(view, 2))
    assert (env._lanes.engine.deal_index()[terminations] == np.array([2, 5]) % 4 + 1).all()
    assert env._lanes.engine.plies()[2] < 4 and after in env.observation_space


BAD_ACTIONS = [
    np.zeros(7, int),
    np.zeros((8, 1), int),
    np.zeros(8),
    np.zeros(8, bool),
    np.full(8, 57),
    np.full(8, -1),
    None,
    [0] * 7,
    ["0"] * 8,
    3,
]


@pytest.mark.parametrize("actions", BAD_ACTIONS, ids=repr)
@pytest.mark.parametrize("illegal", ["lose", "raise"])
def test_bad_actions(actions, illegal, fingerprint):
    env = make_vec(num_envs=8, illegal=illegal)
    env.reset(seed=1)
    before = fingerprint(env._lanes.engine)
    with pytest.raises(ValueError, match="action"):
        env.step(actions)
    assert fingerprint(env._lanes.engine) == before


def test_strict(fingerprint):
    """illegal="raise": a single illegal action is refused with its row, and nothing is changed."""
    env = make_vec(num_envs=8, illegal="raise")
    view, _ = env.reset(seed=1)
    actions = view["action_mask"].argmax(axis=1)
    actions[6] = (view["action_mask"][6] == 0).argmax()
    before = fingerprint(env._lanes.engine)
    with pytest.raises(ValueError, match="row 6"):
        env.step(actions)
    assert fingerprint(env._lanes.engine) == before
    env.step(view["action_mask"].argmax(axis=1))


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"options": {"leader": 4}}, "leader"),
        ({"options": [{}] * 7}, "8"),
        ({"options": {"hands": HANDS[:2]}}, "hands"),
        ({"options": [*[{}] * 7, {"hands": [["0-0"] * 7, *HANDS[1:]]}]}, "0-0"),
        ({"options": {"mask": 1}}, "mask"),
        ({"seed": -1}, "seed"),
        ({"seed": [1, 2, 3]}, "8"),
        ({"seed": [1] * 7 + ["x"]}, "x"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_bad_reset(asked, named, fingerprint):
    env = make_vec(num_envs=8)
    env.reset(seed=1)
    before = fingerprint(env._lanes.engine)
    with pytest.raises(ValueError, match=named):
        env.reset(**asked)
    assert fingerprint(env._lanes.engine) == before


def test_given_deals():
    """Options as one dict for all rows, or one a row; the leader of a given deal lays any tile."""
    env = make_vec(num_envs=4)
    view, _ = env.reset(options={"hands": HANDS, "leader": 0})
    assert (view["observation"] == view["observation"][0]).all()
    view, _ = env.reset(options=[{"hands": HANDS, "leader": leader} for leader in (0, 1, 2, 3)])
    assert env._lanes.engine.leader().tolist() == [0, 1, 2, 3]
    assert env._lanes.engine.plies().tolist() == [0, 3, 2, 1]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"partner": "greedy"}, "make_agent"),
        ({"opponents": "greedy"}, "make_agent"),
        ({"partner": 3}, "act"),
        ({"learner": "team"}, "pair"),
        ({"learner": "pair", "partner": Heaviest()}, "partner"),
        ({"learner": "pair", "pairs": False}, "pair"),
        ({"seats": 2, "pairs": False, "partner": Heaviest()}, "partner"),
        ({"illegal": "ignore"}, "raise"),
        ({"render_mode": "human"}, "ansi"),
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 2.5}, "num_envs"),
    ],
)
def test_bad_settings(settings, named):
    with pytest.raises(ValueError, match=named):
        make_vec(**{"num_envs": 4, **settings})


def test_what_players_are_handed():
    """A Decisions record a batch: own view, mask, seats and rules; the table only for players that declare it."""
    partner, opponents = Heaviest(), Heaviest()
    opponents.sees_everything = opponents.needs_history = True
    env = make_vec(num_envs=32, partner=partner, opponents=opponents)
    view, _ = env.reset(seed=1)
    for _ in range(10):
        view, *_ = env.step(view["action_mask"].argmax(axis=1))
    for batch in partner.asked:
        assert isinstance(batch, Decisions) and batch.table is None and batch.history is None
        assert set(batch.seat) == {2}
    keys = set()
    for batch in opponents.asked:
        assert set(batch.seat) <= {1, 3} and batch.rules.name == "sport_book"
        n = len(batch)
        assert batch.obs.dtype == np.uint8 and batch.obs.shape == (n, 256)
        assert batch.mask.dtype == np.int8 and (batch.mask.sum(axis=1) > 1).all()  # nobody is asked about forced moves
        assert batch.history.shape[0] == n and batch.key.dtype == np.int64 and len(set(batch.key)) == n
        assert batch.table.hands.shape == (n, 4) and (batch.table.to_move == batch.seat).all()
        own = batch.table.hands[np.arange(n), batch.seat]
        assert (np.packbits(batch.obs[:, :28], axis=1, bitorder="little").sum(axis=1) > 0).all()
        assert (np.bitwise_count(own) == batch.obs[:, :28].sum(axis=1)).all()
        assert isinstance(batch.rng, Streams)
        keys |= set(batch.key.tolist())
    assert len(keys) > 32  # a new deal has a new key


def test_one_player_on_many_seats_is_asked_once():
    """The same agent as partner and opponents is asked in one batch a sub-step, and may be a plain function."""
    calls = []

    def first_legal(batch):
        calls.append(set(batch.seat.tolist()))
        return batch.mask.argmax(axis=1)

    env = make_vec(num_envs=64, partner=first_legal, opponents=first_legal)
    env.reset(seed=1)
    assert any(len(seats) == 3 for seats in calls)  # rows with different leaders, one question


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda batch: np.full(len(batch), 57), "illegal"),
        (lambda batch: np.full(len(batch), -1), "illegal"),
        (lambda batch: (batch.mask == 0).argmax(axis=1), "illegal"),
        (lambda batch: batch.mask.argmax(axis=1)[:-1], "whole numbers"),
        (lambda batch: batch.mask.argmax(axis=1).astype(float), "whole numbers"),
        (lambda batch: None, "whole numbers"),
    ],
)
def test_player_that_answers_wrongly(answer, named):
    env = make_vec(num_envs=8, opponents=answer)
    with pytest.raises(ValueError, match=named):
        env.reset(seed=1)
    with pytest.raises(ValueError, match="reset"):  # rows stand in the middle of other seats' turns
        env.step(np.full(8, PASS))


def test_step_before_reset():
    env = make_vec(num_envs=8)
    with pytest.raises(ValueError, match="reset"):
        env.step(np.full(8, PASS))


def test_arrays_are_never_written_again():
    """Observations, rewards, flags and infos handed out keep their values."""
    env = make_vec("tiny_pairs", num_envs=8, episode="match", history=True, opponents=Heaviest())
    view, _ = env.reset(seed=1)
    kept = []
    rng = np.random.default_rng(1)
    for _ in range(30):
        outcome = env.step(pick(view["action_mask"], rng))
        view = outcome[0]
        kept.append((outcome, pickle.dumps(outcome)))
    assert all(pickle.dumps(outcome) == was for outcome, was in kept)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies(copied):
    """A copy in mid-deal has the same future: deals, players' chances, autoresets."""
    env = make_vec(num_envs=8, learner="pair", opponents=Heaviest())
    view, _ = env.reset(seed=7)
    for _ in range(5):
        view, *_ = env.step(view["action_mask"].argmax(axis=1))
    twin = copied(env)
    for _ in range(40):
        a, b = (one.step(view["action_mask"].argmax(axis=1)) for one in (env, twin))
        view = a[0]
        assert same(a[0], b[0]) and all(np.array_equal(x, y) for x, y in zip(a[1:4], b[1:4]))


def test_spaces():
    """B12: batched spaces hold what the env gives, and take what it samples."""
    env = make_vec(num_envs=8, history=True)
    view, _ = env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(30):
        assert view in env.observation_space and row_of(view, 3) in env.single_observation_space
        assert view["action_mask"].dtype == np.int8 and view["observation"].dtype == np.uint8
        assert view["action_mask"].any(axis=1).all()
        view, *_ = env.step(env.action_space.sample())
    for kind in (np.int32, np.uint8, np.int64, list):
        view, *_ = env.step(
            list(map(int, view["action_mask"].argmax(axis=1)))
            if kind is list
            else view["action_mask"].argmax(axis=1).astype(kind)
        )


def test_render():
    pytest.importorskip("PIL")
    env = DominoVectorEnv(num_envs=3, render_mode="ansi")
    env.reset(seed=1)
    frames = env.render()
    assert len(frames) == 3 and all(isinstance(frame, str) for frame in frames)
    assert make_vec(num_envs=2).render() is None


@pytest.mark.parametrize("game", [{}, {"episode": "match"}, {"rules": "kozyol"}, {"seats": 2, "pairs": False}], ids=str)
def test_put_is_the_reverse_of_take(game, fingerprint):
    """Rows taken, stepped and put back go on as rows that were stepped in place, at whatever time it is there."""
    engine = LineEngine(**{"rules": "sport_book", "num_envs": 12, **game})
    engine.reset(seed=3)
    rng = np.random.default_rng(3)
    for _ in range(40):
        rows = np.flatnonzero((rng.random(12) < 0.6) & ~engine.over())
        if not len(rows):
            engine.reset_rows(np.flatnonzero(engine.over()))
            continue
        rng.shuffle(rows)
        before = engine.take(np.setdiff1d(np.arange(12), rows)) if len(rows) < 12 else None
        part = engine.take(rows)
        for _ in range(rng.integers(1, 4)):
            if part.over().any():
                break
            part.step(part.sample_legal(rng), autoreset=False)
        engine.put(rows, part)
        assert fingerprint(engine.take(rows)) == fingerprint(part)
        if before is not None:
            assert fingerprint(engine.take(np.setdiff1d(np.arange(12), rows))) == fingerprint(before)
        for i in rows[:2].tolist():
            assert engine.record(i).moves == part.record(int(np.flatnonzero(rows == i)[0])).moves
        over = np.flatnonzero(engine.over())
        if len(over):
            twin = copy.deepcopy(part)
            local = np.flatnonzero(twin.over())
            twin.reset_rows(local)
            engine.reset_rows(rows[local])
            engine.reset_rows(np.setdiff1d(over, rows[local]))
            assert np.array_equal(engine.hands()[rows], twin.hands())
