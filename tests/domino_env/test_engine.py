"""LineEngine as a machine: what it refuses, what it hands out, its copies and streams, its sampling, its symmetries."""

import copy
import json
import pickle
from collections import defaultdict

import numpy as np
import pytest
from scipy import stats

from domino_env import make_engine
from tests.reference import GAMES, TILES, action_of
from tests.twin import names_in, tiles_in

PRESETS = sorted(GAMES)
HANDS = [names_in(TILES[i::4]) for i in range(4)]  # a deal of our own, seven tiles each
LEAD = action_of(TILES[0], "L")  # seat 0 holds 0-0


def engine_in_the_middle(rules="sport_book", rows=16, seed=21, steps=70, **keywords):
    """A batch whose rows stand at many different points of their deals."""
    engine = make_engine(rules, rows, seed=seed, **keywords)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        engine.step(engine.sample_legal(rng))
    return engine


def future(engine, steps=90, seed=3):
    """All that a batch will do under one random player."""
    rng = np.random.default_rng(seed)
    seats = range(engine.rules.seats)
    story = []
    for _ in range(steps):
        actions = engine.sample_legal(rng)
        rewards, done = engine.step(actions)
        infos = [engine.finished.info(j) for j in range(len(engine.finished.rows))]
        views = [engine.observe(seat, packed=True).tobytes() + engine.history(seat).tobytes() for seat in seats]
        state = [engine.hands(), engine.ends(), engine.leader(), engine.deal_index(), engine.score(), engine.legal()]
        story.append((actions.tobytes(), rewards.tobytes(), done.tobytes(), infos, views, [a.tobytes() for a in state]))
    return story


# ------------------------------------------------------------------------------------------------------ what is refused


def legal_of(engine):
    return np.array([np.flatnonzero(mask)[0] for mask in engine.legal()])


def test_step__illegal_actions_leave_all_as_it_was(fingerprint):
    """Every illegal id of a row is refused, and the row and its batch stay as they were."""
    engine = engine_in_the_middle(rows=6)
    before, twin = fingerprint(engine), copy.deepcopy(engine)
    good = legal_of(engine)
    mask = engine.legal()
    for row in range(6):
        for action in np.flatnonzero(mask[row] == 0):
            wrong = good.copy()
            wrong[row] = action
            with pytest.raises(ValueError, match=f"row {row}"):
                engine.step(wrong)
    assert fingerprint(engine) == before
    assert future(engine) == future(twin)


@pytest.mark.parametrize(
    "wrong",
    [
        np.full(4, 57),
        np.full(4, -1),
        np.full(4, 1000),
        np.full(4, 2**62),
        np.full(4, 2**63, np.uint64),
        np.full(4, 120, np.int8),
        np.zeros(4, np.float64),
        np.zeros(4, np.float32),
        np.zeros(4, bool),
        np.zeros(4, complex),
        np.array(["0"] * 4),
        np.array([None] * 4),
        np.array([0, 0, 0, 0], object),
        np.zeros(3, np.int64),
        np.zeros((4, 1), np.int64),
        np.zeros((1, 4), np.int64),
        np.int64(0),
        None,
        "pass",
        [0, 0, 0],
        [[0], [0, 0], [0], [0]],
        {},
    ],
    ids=repr,
)
def test_step__wrong_shape_dtype_or_range(wrong, fingerprint):
    engine = make_engine("sport_book", 4, seed=1)
    engine.reset(options={"hands": HANDS, "leader": 0})
    before = fingerprint(engine)
    with pytest.raises(ValueError):
        engine.step(wrong)
    assert fingerprint(engine) == before
    engine.step(np.full(4, LEAD))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint32, np.uint64])
def test_step__any_integer_dtype(dtype):
    engine = make_engine("sport_book", 4, seed=1)
    engine.reset(options={"hands": HANDS, "leader": 0})
    actions = np.full(4, LEAD, dtype)
    engine.step(actions)
    assert (engine.ends() == 0).all() and (actions == LEAD).all(), "the caller's array is not written to"
    engine.step(legal_of(engine).tolist())


def test_step__after_the_end(fingerprint):
    """autoreset=False: a finished row stays at its end, offers only PASS, and is an error to step."""
    engine = make_engine("sport_book", 8, seed=2)
    rng = np.random.default_rng(2)
    while not engine.over().any():
        mover = engine.to_move()
        _, done = engine.step(engine.sample_legal(rng), autoreset=False)
    over = engine.over()
    assert np.array_equal(over, done) and np.array_equal(np.flatnonzero(over), engine.finished.rows)
    assert not over.all()
    assert np.array_equal(engine.to_move(), (mover + 1) % 4)
    assert (engine.legal()[over].sum(axis=1) == 1).all() and engine.legal()[over, 56].all()
    before = fingerprint(engine)
    with pytest.raises(ValueError, match="over"):
        engine.step(legal_of(engine))
    assert fingerprint(engine) == before
    index = engine.deal_index()
    engine.reset_rows(np.flatnonzero(over))
    assert not engine.over().any()
    assert np.array_equal(engine.deal_index() - index, over)
    assert np.array_equal(engine.plies() == 0, over)
    engine.step(engine.sample_legal(rng), autoreset=False)


GOOD = {"hands": HANDS, "leader": 2}
TWICE = [HANDS[0], HANDS[1], HANDS[2], [HANDS[0][0], *HANDS[3][1:]]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hands": TWICE}, "0-0 is given twice, to seats 0 and 3"),
        ({"hands": [["0-0", "0-0", *HANDS[0][2:]], *HANDS[1:]]}, "0-0 is given twice, to seat 0"),
        ({"hands": [["6-0", *HANDS[0][1:]], *HANDS[1:]]}, "0-6"),
        ({"hands": [HANDS[0][:6], *HANDS[1:]]}, "7"),
        ({"hands": [[*HANDS[0], "1-1"], *HANDS[1:]]}, "7"),
        ({"hands": HANDS[:3]}, "4"),
        ({"hands": [*HANDS, []]}, "4"),
        ({"hands": []}, "4"),
        ({"hands": "0-0"}, "4"),
        ({"hands": 28}, "4"),
        ({"hands": [["7-7", *HANDS[0][1:]], *HANDS[1:]]}, "7-7"),
        ({"hands": [[0, *HANDS[0][1:]], *HANDS[1:]]}, "0"),
        ({"hands": [[None, *HANDS[0][1:]], *HANDS[1:]]}, "None"),
        ({"hands": [" ".join(HANDS[0]), *HANDS[1:]]}, "seat 0"),
        ({"hands": [None, *HANDS[1:]]}, "seat 0"),
        ({"leader": 4}, "4"),
        ({"leader": -1}, "-1"),
        ({"leader": 1.0}, "1.0"),
        ({"leader": "seat_1"}, "seat_1"),
        ({"leader": True}, "True"),
        ({"deal_index": -1}, "-1"),
        ({"deal_index": 0.5}, "0.5"),
        ({"deal_index": 2**31}, "2147483647"),
        ({"deal_index": 10**30}, "deal_index"),
        ({"stock": ["0-0"]}, "stock"),
        ({"stock": np.zeros(3)}, "no stock"),
        ({"stock": 0}, "no stock"),
        ({"hand": HANDS}, "hand"),
        ({**GOOD, "Leader": 0}, "Leader"),
        ({3: 4}, "3"),
        ([GOOD], "list"),
        ([GOOD, GOOD, GOOD, {"leader": 9}], "9"),
        ([GOOD, GOOD, GOOD, 7], "7"),
        ("hands", "hands"),
        (7, "7"),
    ],
    ids=str,
)
def test_reset__bad_options(options, said, fingerprint):
    """design.md: bad options raise and leave the engine as it was, with a seed or without."""
    engine = engine_in_the_middle(rows=4)
    before, twin = fingerprint(engine), copy.deepcopy(engine)
    for call in (
        lambda: engine.reset(options=options),
        lambda: engine.reset(seed=5, options=options),
        lambda: engine.reset_rows(np.arange(4), options=options),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert said in str(error.value)
    assert fingerprint(engine) == before
    assert future(engine, steps=40) == future(twin, steps=40)


@pytest.mark.parametrize("seed", [-1, 1.5, "seven", [1, 2], [1, 2, 3, -4], [1, 2, 3, 4.5]])
def test_reset__bad_seed(seed, fingerprint):
    engine = engine_in_the_middle(rows=4)
    before, twin = fingerprint(engine), copy.deepcopy(engine)
    with pytest.raises(ValueError):
        engine.reset(seed=seed)
    assert fingerprint(engine) == before
    assert future(engine, steps=40) == future(twin, steps=40)


def test_make_engine__bad_arguments():
    for keywords in ({"num_envs": 0}, {"num_envs": -3}, {"num_envs": 2.0}, {"fours": 0}, {"episode": "hand"}):
        with pytest.raises(ValueError, match=next(iter(keywords))):
            make_engine("sport_book", **keywords)


@pytest.mark.parametrize("seat", [4, -1, 0.0, "0", np.array([0, 1, 2, 4]), np.zeros(3, int)])
def test_look__bad_seat(seat):
    engine = make_engine("sport_book", 4, seed=1)
    for verb in (engine.observe, engine.legal, engine.history):
        with pytest.raises(ValueError, match=r"seat .*0\.\.3"):
            verb(seat)


def test_deal__bad_arrays(fingerprint):
    """deal() refuses hands that overlap, miss a tile or are not of the set, and leaders that do not exist."""
    engine = engine_in_the_middle("tiny_pairs", rows=3)
    before = fingerprint(engine)
    good = engine_of_hands(engine)
    for hands, leader in [
        (good[:2], [0, 0, 0]),
        (good[:, :3], [0, 0, 0]),
        (good, [0, 0, 4]),
        (good, [0, 0, -1]),
        (good, [0, 0]),
        (np.where(np.arange(4) == 1, good[:, :1], good), [0, 0, 0]),
        (good & (good - 1), [0, 0, 0]),
        (good.astype(float), [0, 0, 0]),
        (good.astype(np.int64) | 1 << 40, [0, 0, 0]),
        (good, [0.0, 0.5, 0.0]),
        (np.array([[1 << 27 | 1, 6, 384, 8192 + 16384]] * 3), [0, 0, 0]),
    ]:
        with pytest.raises(ValueError):
            engine.deal(hands, np.array(leader))
    assert fingerprint(engine) == before


def engine_of_hands(engine):
    """Some good hands for an engine's rules."""
    return make_engine(engine.rules, engine.num_envs, seed=77).hands()


# --------------------------------------------------------------------------------------------------------- reset, deals


def test_reset__given_deals():
    """One dict for all rows, or one a row; what is left out is dealt as ever; "options" is ignored."""
    engine = make_engine("sport_book", 4, seed=3)
    engine.reset(options={"hands": HANDS, "leader": 2, "options": 1, "stock": [], "deal_index": 7})
    assert all([names_in(tiles_in(mask)) for mask in row] == HANDS for row in engine.hands())
    assert engine.leader().tolist() == [2] * 4 and engine.deal_index().tolist() == [7] * 4
    engine.reset(options=[{"leader": 3}, {"hands": tuple(map(tuple, HANDS))}, {}, {"deal_index": 9}])
    assert engine.leader().tolist()[:2] == [3, 0] and engine.leader()[3] == 1
    assert [names_in(tiles_in(mask)) for mask in engine.hands()[1]] == HANDS
    assert engine.hands()[0].tolist() != engine.hands()[1].tolist()


def test_reset__given_deals_do_not_disturb_the_stream():
    """The deals of a row after a given one are the deals it would have had."""
    plain, given = make_engine("sport_book", 4, seed=4), make_engine("sport_book", 4, seed=4)
    plain.reset()
    given.reset(options={"hands": HANDS, "leader": 0})
    plain.reset()
    given.reset()
    assert np.array_equal(plain.hands(), given.hands()) and np.array_equal(plain.leader(), given.leader())


def test_reset__a_seed_a_row():
    engine = make_engine("sport_book", 3, seed=[5, 6, 5])
    hands = engine.hands()
    assert np.array_equal(hands[0], hands[2]) and not np.array_equal(hands[0], hands[1])
    engine.reset(seed=[6, 5, 5])
    assert np.array_equal(engine.hands()[[1, 0]], hands[[0, 1]])


def test_reset_rows__leaves_the_others():
    engine = engine_in_the_middle(rows=8)
    before, plies, index = engine.hands(), engine.plies(), engine.deal_index()
    engine.reset_rows(np.array([1, 6]), options=[{"leader": 3}, {"hands": HANDS}])
    kept = np.array([0, 2, 3, 4, 5, 7])
    assert np.array_equal(engine.hands()[kept], before[kept]) and np.array_equal(engine.plies()[kept], plies[kept])
    assert engine.plies()[[1, 6]].tolist() == [0, 0] and engine.leader()[1] == 3
    assert np.array_equal(engine.deal_index() - index, np.isin(np.arange(8), [1, 6]))
    assert [names_in(tiles_in(mask)) for mask in engine.hands()[6]] == HANDS


@pytest.mark.parametrize("rows", [[8], [-1], [0.0], [[0]], [True], np.ones(7, bool), 3, "0"], ids=repr)
def test_rows__bad_numbers(rows, fingerprint):
    engine = engine_in_the_middle(rows=8)
    before = fingerprint(engine)
    for verb in (engine.reset_rows, engine.take):
        with pytest.raises(ValueError):
            verb(rows)
    assert fingerprint(engine) == before
    engine.reset_rows([])
    engine.reset_rows(np.zeros(8, bool))
    assert fingerprint(engine) == before
    with pytest.raises(ValueError):
        engine.take([])


def deals_by_row(rows, seed, player, deals=6, rules="sport_book", **keywords):
    """The first deals and leaders of the first four rows."""
    engine = make_engine(rules, rows, seed=seed, **keywords)
    rng = np.random.default_rng(player)
    story = defaultdict(list)
    while min((len(story[row]) for row in range(4)), default=0) < deals:
        hands, leader, fresh = engine.hands(), engine.leader(), engine.plies() == 0
        for row in range(4):
            if fresh[row]:
                story[row].append((hands[row].tolist(), int(leader[row])))
        engine.step(engine.sample_legal(rng))
    return {row: story[row][:deals] for row in range(4)}


@pytest.mark.parametrize("rules", ["sport_book", "tiny_pairs"])
@pytest.mark.parametrize("episode", ["deal", "match"])
def test_streams__do_not_depend_on_batch_or_actions(rules, episode):
    """Row i of a seed has the same deals in a batch of any size, whatever is played."""
    story = deals_by_row(4, seed=31, player=1, rules=rules, episode=episode)
    assert story == deals_by_row(64, seed=31, player=2, rules=rules, episode=episode)
    assert story != deals_by_row(4, seed=32, player=1, rules=rules, episode=episode)
    assert len({json.dumps(deal[0]) for row in story.values() for deal in row}) > (23 if rules == "sport_book" else 12)


def test_streams__unseeded_engines_differ():
    assert not np.array_equal(make_engine("sport_book", 8).hands(), make_engine("sport_book", 8).hands())


# ------------------------------------------------------------------------------------------------------------- sampling


def test_sample_legal__is_uniform():
    """20,000 rows in one position: each of its legal actions equally often, nothing else ever."""
    engine = make_engine("sport_book", 20_000, seed=1)
    engine.reset(options={"hands": HANDS, "leader": 0})
    rng = np.random.default_rng(9)
    for _ in range(6):
        legal = np.flatnonzero(engine.legal()[0])
        actions = engine.sample_legal(rng)
        assert actions.dtype == np.int64 and actions.shape == (20_000,)
        counts = np.bincount(actions, minlength=57)
        assert counts[legal].sum() == 20_000
        if len(legal) > 1:
            assert stats.chisquare(counts[legal]).pvalue > 1e-4
        engine.step(np.full(20_000, legal[-1]))


def test_sample_legal__every_rank_in_every_row():
    """Over rows in different positions: the rank of the pick among k legal actions is uniform for every k."""
    engine = engine_in_the_middle(rows=2_048, labelled_ends=True)
    rng = np.random.default_rng(10)
    ranks = defaultdict(list)
    for _ in range(40):
        mask = engine.legal().astype(bool)
        actions = engine.sample_legal(rng)
        rows = np.arange(2_048)
        assert mask[rows, actions].all()
        assert np.array_equal(engine.legal_count(), mask.sum(axis=1))
        rank = (np.cumsum(mask, axis=1) - 1)[rows, actions]
        for k in range(2, 15):
            ranks[k].append(rank[mask.sum(axis=1) == k])
        engine.step(actions)
    for k, parts in ranks.items():
        counts = np.bincount(np.concatenate(parts), minlength=k)
        if counts.sum() > 20 * k:
            assert len(counts) == k and stats.chisquare(counts).pvalue > 1e-4, k
    assert sum(len(np.concatenate(parts)) > 500 for parts in ranks.values()) > 5


def test_legal_bits__are_the_mask():
    engine = engine_in_the_middle(rows=300)
    bits, mask = engine.legal_bits(), engine.legal()
    assert bits.dtype == np.uint64
    assert all(int(word) == sum(1 << int(a) for a in np.flatnonzero(row)) for word, row in zip(bits, mask, strict=True))


def test_legal__of_a_seat():
    """Off turn only PASS; masks are never empty."""
    engine = engine_in_the_middle(rows=100)
    mover, mask = engine.to_move(), engine.legal()
    only_pass = np.eye(57, dtype=np.int8)[56]
    for seat in range(4):
        shown = engine.legal(seat)
        assert np.array_equal(shown[mover == seat], mask[mover == seat])
        assert (shown[mover != seat] == only_pass).all()
    assert np.array_equal(engine.legal(mover), mask)
    assert (mask.sum(axis=1) >= 1).all()


# ---------------------------------------------------------------------------------------------------- handed-out arrays


def handed_out(engine):
    """Every array that the engine's verbs return."""
    arrays = [engine.legal(), engine.legal(1), engine.legal_bits(), engine.legal_count(), engine.to_move()]
    arrays += [engine.over(), engine.leader(), engine.plies(), engine.deal_index(), engine.hands(), engine.ends()]
    arrays += [engine.score(), engine.history(), engine.history(2)]
    for seat in (None, 2, engine.to_move()):
        arrays += [engine.observe(seat), engine.observe(seat, packed=True)]
    arrays += [value for value in vars(engine.finished).values() if isinstance(value, np.ndarray)]
    return arrays


@pytest.mark.parametrize("episode", ["deal", "match"])
def test_arrays_handed_out__are_never_written_again(episode):
    engine = make_engine("kozyol", 32, seed=41, episode=episode)
    rng = np.random.default_rng(41)
    kept = []
    for _ in range(80):
        arrays = handed_out(engine)
        actions = engine.sample_legal(rng)
        arrays += [actions, *engine.step(actions)]
        kept += [(array, array.copy()) for array in arrays]
    engine.reset_rows(np.arange(10))
    engine.load(3, engine.snapshot(5))
    engine.reset(seed=1)
    engine.deal(engine_of_hands(engine), np.zeros(32, int))
    assert all(np.array_equal(array, copied) for array, copied in kept)


def test_arrays_handed_out__may_be_written_by_their_owner(fingerprint):
    """What the caller does to its arrays does not reach the engine."""
    engine = engine_in_the_middle(rows=8)
    before = fingerprint(engine)
    for array in handed_out(engine):
        if array.flags.writeable:
            array[...] = 0
    assert fingerprint(engine) == before


# --------------------------------------------------------------------------------------------------------------- copies


COPIES = [(name, "deal") for name in PRESETS] + [("sport_book", "match"), ("kozyol", "match")]


@pytest.mark.parametrize(("rules", "episode"), COPIES)
def test_copies__keep_the_future(rules, episode, fingerprint):
    """deepcopy, pickle and take, in mid-deal."""
    engine = engine_in_the_middle(rules, rows=12, steps=61, episode=episode)
    copies = [copy.deepcopy(engine), pickle.loads(pickle.dumps(engine)), engine.take(np.arange(12))]
    assert all(fingerprint(one) == fingerprint(engine) for one in copies)
    before = fingerprint(engine)
    stories = [future(one, steps=120) for one in copies]
    assert fingerprint(engine) == before, "a copy shares nothing with its original"
    assert stories == [future(engine, steps=120)] * 3


@pytest.mark.parametrize(("rules", "episode"), COPIES)
def test_snapshot__keeps_the_future(rules, episode, fingerprint):
    """Through JSON into another engine of the same rules, which was elsewhere."""
    engine = engine_in_the_middle(rules, rows=12, steps=61, episode=episode)
    other = engine_in_the_middle(rules, rows=12, seed=5, steps=13, episode=episode)
    for row in range(12):
        other.load(row, json.loads(json.dumps(engine.snapshot(row))))
    assert fingerprint(other) == fingerprint(engine)
    assert [other.snapshot(row) for row in range(12)] == [engine.snapshot(row) for row in range(12)]
    assert future(other, steps=120) == future(engine, steps=120)


def test_take__rows_in_their_order():
    engine = engine_in_the_middle(rows=10, episode="match")
    rows = np.array([7, 2, 2])
    part = engine.take(rows)
    assert part.num_envs == 3
    for verb in ("hands", "ends", "to_move", "leader", "plies", "score", "legal", "observe", "history", "deal_index"):
        assert np.array_equal(getattr(part, verb)(), getattr(engine, verb)()[rows]), verb
    assert np.array_equal(engine.take(np.arange(10) > 6).hands(), engine.hands()[7:])
    forks = np.random.default_rng(1)
    for _ in range(100):
        actions = part.sample_legal(forks)
        actions[2] = actions[1] if np.array_equal(part.hands()[1], part.hands()[2]) else actions[2]
        part.step(actions)
    assert np.array_equal(part.hands()[1], part.hands()[2]), "one row taken twice goes on alike under like actions"


@pytest.mark.parametrize(
    ("rules", "episode"), [("sport_book", "deal"), ("tiny_pairs", "deal"), ("kozyol", "match"), ("kozyol", "deal")]
)
@pytest.mark.parametrize(("ahead", "behind"), [(0, 0), (1, 0), (90, 0), (0, 90), (30, 90), (90, 30)])
def test_put__is_the_reverse_of_take(rules, episode, ahead, behind, fingerprint):
    """Rows taken, played on and put back: they and their futures are those of the part, the others are untouched.

    Also where the engine has gone on in the meantime, so that what is put back is older than what it replaces.
    """
    engine = engine_in_the_middle(rules, rows=10, steps=61, episode=episode)
    rows = np.array([7, 0, 4])
    rest = np.setdiff1d(np.arange(10), rows)
    part = engine.take(rows)
    rng = np.random.default_rng(5)
    for _ in range(ahead):
        part.step(part.sample_legal(rng))
    for _ in range(behind):
        engine.step(engine.sample_legal(rng))
    others = engine.take(rest)
    engine.put(rows, part)
    assert fingerprint(engine.take(rows)) == fingerprint(part)
    assert fingerprint(engine.take(rest)) == fingerprint(others)
    assert [engine.snapshot(int(row)) for row in rows] == [part.snapshot(j) for j in range(3)]
    assert future(engine.take(rows), steps=120) == future(part, steps=120)
    assert future(engine.take(rest), steps=120) == future(others, steps=120)


def test_put__rows_that_wait_at_their_end(fingerprint):
    """Over rows stay over; put in place of an over row, a running one runs."""
    engine = make_engine("sport_book", 16, seed=46)
    rng = np.random.default_rng(46)
    while not engine.over().any():
        engine.step(engine.sample_legal(rng), autoreset=False)
    over = np.flatnonzero(engine.over())[:1]
    live = np.flatnonzero(~engine.over())[:1]
    ended, running = engine.take(over), engine.take(live)
    engine.put(live, ended)
    assert engine.over()[live].all() and engine.snapshot(int(live[0]))["deal"] == ended.snapshot(0)["deal"]
    engine.put(live, running)
    engine.put(np.flatnonzero(engine.over()), running.take(np.zeros(engine.over().sum(), int)))
    assert not engine.over().any()
    engine.step(engine.sample_legal(rng))


def test_snapshot__says_what_lies_on_the_table():
    engine = make_engine("sport_book", 2, seed=6)
    engine.reset(options={"hands": HANDS, "leader": 0})
    first = engine.snapshot(1)
    assert first["ends"] is None and first["moves"] == [] and first["hands"] == first["dealt"] == HANDS
    for name in ("0-0L", "0-1L", "pass"):
        action = 56 if name == "pass" else action_of((int(name[0]), int(name[2])), name[3])
        if engine.legal()[1, action]:
            engine.step(np.array([action, action]))
    shot = engine.snapshot(1)
    assert shot["rules"] == "sport_book" and shot["overrides"] == {} and shot["seats"] == 4 and shot["pairs"] is True
    assert shot["leader"] == 0 and shot["to_move"] == 2 and shot["moves"] == ["0-0L", "0-1L"] and shot["ends"] == [1, 0]
    assert shot["dealt"] == HANDS and shot["hands"][0] == HANDS[0][1:] and shot["hands"][1] == HANDS[1][1:]
    assert shot["over"] is False and shot["deal"] is None
    json.dumps(shot)


@pytest.mark.parametrize(("rules", "episode"), COPIES)
def test_snapshot__at_the_end(rules, episode, fingerprint):
    """A row that waits at its end: with its result, and the same after a load, and the same deals after it."""
    engine = make_engine(rules, 16, seed=43, episode=episode)
    rng = np.random.default_rng(43)
    while not engine.over().any():
        engine.step(engine.sample_legal(rng), autoreset=False)
    row = int(np.flatnonzero(engine.over())[0])
    shot = engine.snapshot(row)
    assert shot["over"] is True
    assert shot["deal"] == engine.finished.info(engine.finished.rows.tolist().index(row))
    other = make_engine(rules, 16, seed=44, episode=episode)
    other.load(row, json.loads(json.dumps(shot)))
    assert other.snapshot(row) == shot
    rows = np.array([row])
    one, two = engine.take(rows), other.take(rows)
    assert fingerprint(one) == fingerprint(two)
    assert one.snapshot(0)["deal"] == shot["deal"]
    one.reset_rows(np.array([0]))
    two.reset_rows(np.array([0]))
    assert future(one) == future(two)


def test_load__bad_snapshots(fingerprint):
    """Other rules, missing parts, moves that do not follow: refused, and the engine is as it was."""
    engine = engine_in_the_middle(rows=4, steps=10)
    shot = engine.snapshot(1)
    assert shot["moves"]
    before, twin = fingerprint(engine), copy.deepcopy(engine)
    bad = [{key: value for key, value in shot.items() if key != missing} for missing in shot]
    optional = [{**shot, "nonsense": 1}]
    bad += [
        {},
        None,
        "sport_book",
        {**shot, "rules": "kozyol"},
        {**shot, "rules": "chess"},
        {**shot, "overrides": {"lone_blank": 3}},
        {**shot, "overrides": {"nonsense": 3}},
        {**shot, "overrides": {1: 2}},
        {**shot, "overrides": [1]},
        {**shot, "leader": 7},
        {**shot, "leader": None},
        {**shot, "leader": (shot["leader"] + 1) % 4},
        {**shot, "dealt": shot["dealt"][:3]},
        {**shot, "dealt": shot["dealt"][1:] + shot["dealt"][:1]},
        {**shot, "moves": [*shot["moves"], "3-9L"]},
        {**shot, "moves": [*shot["moves"], shot["moves"][0]]},
        {**shot, "over": True},
        {**shot, "over": None},
        {**shot, "score": [0]},
        {**shot, "stream": {}},
        {**shot, "stream": None},
        {**shot, "deal_index": "two"},
    ]
    derived = ("seats", "pairs", "to_move", "hands", "ends", "movers", "deal", "lead_tile")
    for snapshot in bad:
        if isinstance(snapshot, dict) and any({**snapshot, key: shot[key]} == shot for key in derived):
            optional.append(snapshot)
            continue
        with pytest.raises(ValueError):
            engine.load(2, snapshot)
    for row in (-1, 4, 1.0, "1", None):
        with pytest.raises(ValueError):
            engine.load(row, shot)
        with pytest.raises(ValueError):
            engine.snapshot(row)
    assert fingerprint(engine) == before
    assert future(copy.deepcopy(engine), steps=40) == future(twin, steps=40)
    for snapshot in optional:
        engine.load(2, snapshot)


# ----------------------------------------------------------------------------------------------------------- properties


@pytest.mark.parametrize("rules", ["sport_book", "kozyol"])
def test_properties__lays_pips_tiles(rules):
    """At most 25 lays, 168 pips on line and in hands, tiles laid and held are the 28."""
    engine = make_engine(rules, 400, seed=51)
    rng = np.random.default_rng(51)
    pips = np.array([a + b for a, b in TILES])
    most = 0
    for _ in range(100):
        held, laid = engine.hands(), engine.played()
        masks = np.concatenate([held, laid], axis=1)
        bits = masks[:, :, None] >> np.arange(28) & 1
        assert (bits.sum(axis=1) == 1).all()
        assert (bits.sum(axis=1) @ pips == 168).all()
        most = max(most, int(np.bitwise_count(laid).sum(axis=1).max()))
        engine.step(engine.sample_legal(rng))
    assert 22 < most <= 25


def relabelled(mask, suits):
    """A mask with every suit k called suits[k]."""
    tiles = [tuple(sorted((suits[a], suits[b]))) for a, b in tiles_in(mask)]
    return sum(1 << TILES.index(tile) for tile in tiles)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("labelled_ends", [False, True])
def test_properties__suits_and_sides_have_no_meaning(seed, labelled_ends):
    """Relabel the suits of a deal: the same moves are legal, relabelled, and it ends in the same way.

    Where the first tile a-b becomes one whose halves change places, the line is the mirror of the other: left ids are
    right ids (save on equal ends, which are played by left ids unless they are labelled).
    """
    rows = 256
    rng = np.random.default_rng(seed)
    suits = rng.permutation(7)
    one = make_engine("puerto_rico", rows, seed=seed, labelled_ends=labelled_ends)
    two = make_engine("puerto_rico", rows, seed=seed, labelled_ends=labelled_ends)
    two.deal(np.array([[relabelled(mask, suits) for mask in row] for row in one.hands()], np.uint32), one.leader())
    tile_map = np.array([TILES.index(tuple(sorted((suits[a], suits[b])))) for a, b in TILES])
    mirrored, ever = np.zeros(rows, bool), np.zeros(rows, bool)
    live = np.arange(rows)
    ends_seen = 0
    while len(live):
        mask = one.legal()
        ends = one.ends()
        swap = mirrored[live] & ((ends[:, 0] != ends[:, 1]) | labelled_ends)
        expected = np.zeros_like(mask)
        expected[:, 56] = mask[:, 56]
        left, right = mask[:, :28], mask[:, 28:56]
        expected[:, tile_map] = np.where(swap[:, None], right, left)
        expected[:, 28 + tile_map] = np.where(swap[:, None], left, right)
        assert np.array_equal(two.legal(), expected)
        actions = one.sample_legal(rng)
        tile, side = actions % 28, actions // 28
        image = np.where(actions == 56, 56, tile_map[tile] + 28 * np.where(swap, 1 - side, side))
        first, levelled = one.plies() == 0, (ends[:, 0] == ends[:, 1]) & (actions != 56)
        low, high = np.array(TILES).T
        turned = suits[low[tile]] > suits[high[tile]]
        if not labelled_ends:  # a line with equal ends is its own mirror, and both are played on the left
            mirrored[live[levelled]] = False
        mirrored[live[first]] = turned[first]
        ever |= mirrored
        one.step(actions, autoreset=False)
        two.step(image, autoreset=False)
        assert np.array_equal(one.over(), two.over()) and np.array_equal(one.to_move(), two.to_move())
        assert np.array_equal(one.finished.outcome, two.finished.outcome)
        assert np.array_equal(one.finished.plies, two.finished.plies)
        shown, image_ends = one.ends(), two.ends()
        at = mirrored[live]
        assert np.array_equal(image_ends, suits[np.where(at[:, None], shown[:, ::-1], shown)])
        ends_seen += int(one.over().sum())
        keep = ~one.over()
        live = live[keep]
        if len(live):
            one, two = one.take(keep), two.take(keep)
    assert ends_seen == rows and 0 < ever.mean() < 1


def test_batch__rows_do_not_touch_each_other():
    """A row plays the same deal alone as in a batch."""
    engine = make_engine("sport_book", 16, seed=61)
    alone = [engine.take(np.array([row])) for row in range(16)]
    rng = np.random.default_rng(61)
    for _ in range(150):
        actions = engine.sample_legal(rng)
        rewards, done = engine.step(actions)
        for row, one in enumerate(alone):
            gain, over = one.step(actions[row : row + 1])
            assert np.array_equal(gain[0], rewards[row]) and over[0] == done[row]
    assert np.array_equal(np.concatenate([one.observe(2) for one in alone]), engine.observe(2))


def test_deal__rotates_on_from_its_leader():
    """S2: after given deals the lead goes on clockwise; a match that begins with one still has its four deals."""
    rng = np.random.default_rng(4)
    engine = make_engine("sport_book", 4, seed=2)
    hands = engine.hands()
    engine.deal(hands, np.array([3, 1, 2, 0]))
    while not engine.over().all():
        live = np.flatnonzero(~engine.over())
        part = engine.take(live)
        part.step(part.sample_legal(rng), autoreset=False)
        engine.put(live, part)
    engine.reset_rows(np.arange(4))
    assert engine.leader().tolist() == [0, 2, 3, 1]
    match = make_engine("sport_book", 4, seed=2, episode="match")
    match.deal(hands, np.array([3, 3, 3, 3]))
    ended, done = np.zeros(4, int), np.zeros(4, bool)
    while not done.any():
        _, done = match.step(match.sample_legal(rng))
        ended[match.finished.rows] += 1
    assert (ended[done] == 4).all()
