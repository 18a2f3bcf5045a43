"""ismcts: equal to a plain twin over the engine, to minimax where all hands are known; blind to what it cannot see."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from agents.base import Decisions, decide
from agents.search import ismcts as module
from agents.search.beliefs import RulesBelief
from agents.search.ismcts import Counts, Ismcts, ismcts
from agents.search.position import imagine, position_at, position_of
from agents.search.worlds import keys_of
from domino_env import get_rules
from domino_env.deals import Streams
from domino_env.decisions import table_of
from domino_env.line import LineEngine
from domino_env.tiles import HIGH, LOW, NUM_TILES, PASS, PIPS, tiles_of
from experiments.evaluate import evaluate

GAMES = [
    ("sport_book", {}),
    ("sport_club", {}),
    ("puerto_rico", {}),
    ("kozyol", {"labelled_ends": True}),
    ("tiny_pairs", {"lone_blank": 10}),
    ("sport_book", {"seats": 2, "pairs": False, "redeal": False, "out_score": "others"}),
    ("sport_club", {"seats": 2, "pairs": False, "redeal": False, "max_pip": 4}),
]
IDS = [" ".join([name, *map(str, overrides)]) for name, overrides in GAMES]
game = pytest.mark.parametrize("rules", [get_rules(name, **overrides) for name, overrides in GAMES], ids=IDS)
BOOK = get_rules("sport_book")
TWO = get_rules(GAMES[5][0], **GAMES[5][1])


def engines(rules, rows: int, seed: int = 0, plies: int = 100):
    """Random deals, and after each ply those that are not over."""
    rng = np.random.default_rng(seed)
    engine = LineEngine(rules, rows, seed)
    for _ in range(plies):
        yield engine
        engine.step(engine.sample_legal(rng), autoreset=False)
        if engine.over().all():
            return
        if engine.over().any():
            engine = engine.take(~engine.over())


def ask(engine: LineEngine, seed: int = 5) -> Decisions:
    return decide(engine, rng=Streams.of(seed, np.arange(engine.num_envs)))


def take(batch: Decisions, rows) -> Decisions:
    return dataclasses.replace(
        batch, obs=batch.obs[rows], mask=batch.mask[rows], seat=batch.seat[rows], history=None, rng=batch.rng.take(rows)
    )


def same(a: Counts, b: Counts) -> bool:
    return bool((a.visits == b.visits).all() and (a.points == b.points).all())


# -- what it plays ----------------------------------------------------------------------------------------------------


@game
def test_every_answer_is_legal_and_every_iteration_is_counted(rules):
    player = Ismcts(30)
    player.check(rules)
    seen = 0
    for engine in engines(rules, 16, seed=1):
        batch = ask(engine)
        answer, found = player.act(batch), player.search(ask(engine))
        assert answer.dtype == np.int64 and (batch.mask[np.arange(len(batch)), answer] == 1).all()
        assert (found.visits[batch.mask == 0] == 0).all() and (found.points[found.visits == 0] == 0).all()
        equal = (engine.ends()[:, 0] == engine.ends()[:, 1]) & (engine.ends()[:, 0] >= 0)
        lines = np.where(equal & rules.labelled_ends, engine.legal_count() // 2, engine.legal_count())
        assert (found.visits.sum(axis=1) == np.where(lines > 1, 30, 1)).all()
        seen += len(batch)
    assert seen > 50


def test_the_most_visited_action_then_the_higher_mean_then_the_lower_id():
    visits, points = np.zeros((4, 57), np.int64), np.zeros((4, 57), np.int64)
    visits[0, [3, 7]], points[0, [3, 7]] = [5, 6], [500, -600]
    visits[1, [3, 7]], points[1, [3, 7]] = [6, 6], [-9, -8]
    visits[2, [3, 7, 30]], points[2, [3, 7, 30]] = [4, 6, 6], [90, 5, 5]
    visits[3, PASS] = 1
    assert Counts(visits, points).choice.tolist() == [7, 7, 7, PASS]


def test_it_is_deterministic_and_every_seed_is_another_search():
    engine = next(itertools.islice(engines(BOOK, 12), 6, None))
    found = Ismcts(200).search(ask(engine))
    assert same(found, Ismcts(200).search(ask(engine)))
    free = engine.legal_count() > 1
    other = Ismcts(200).search(ask(engine, seed=6))
    assert free.sum() > 5 and (found.points != other.points).any(axis=1)[free].all()


def test_a_row_does_not_depend_on_the_batch_the_threads_or_the_blocks(monkeypatch):
    engine = next(itertools.islice(engines(BOOK, 14, seed=2), 5, None))
    batch = ask(engine)
    whole = Ismcts(90, threads=1).search(batch)
    for rows in (np.arange(14)[::-1], np.array([4]), np.array([9, 9, 2])):
        part = Ismcts(90).search(take(ask(engine), rows))
        assert same(part, Counts(whole.visits[rows], whole.points[rows]))
    assert same(whole, Ismcts(90, threads=5).search(ask(engine)))
    monkeypatch.setattr(module, "_NODES", 300)  # three trees side by side
    monkeypatch.setattr(module, "_WORLDS", 20)
    assert same(whole, Ismcts(90, threads=2).search(ask(engine)))


def test_a_longer_search_goes_on_from_a_shorter_one():
    engine = next(itertools.islice(engines(BOOK, 10, seed=3), 3, None))
    some, more = Ismcts(50).search(ask(engine)), Ismcts(51).search(ask(engine))
    free = engine.legal_count() > 1
    assert ((more.visits - some.visits).sum(axis=1) == free).all() and (more.visits >= some.visits).all() and free.any()


def test_only_the_actions_that_the_mask_allows():
    engine = LineEngine(BOOK, 6, seed=4)
    batch = ask(engine)
    batch.mask = batch.mask.copy()
    for row in batch.mask:
        row[np.flatnonzero(row)[2:]] = 0
    assert ((Ismcts(40).search(batch).visits > 0) == (batch.mask == 1)).all()


def test_at_equal_ends_a_tile_is_one_action():
    plain, labelled = get_rules("kozyol"), get_rules("kozyol", labelled_ends=True)
    equal = 0
    for engine in engines(plain, 30, seed=5, plies=10):
        position = position_at(engine)
        twin = imagine(dataclasses.replace(position, rules=labelled), np.arange(len(position)), engine.hands())
        rows = np.flatnonzero((engine.ends()[:, 0] == engine.ends()[:, 1]) & (engine.legal_count() > 1))
        rows = rows[engine.ends()[rows, 0] >= 0]
        if len(rows):
            assert (twin.legal_count()[rows] == 2 * engine.legal_count()[rows]).all()
            found = Ismcts(60).search(take(ask(twin), rows))
            assert same(found, Ismcts(60).search(take(ask(engine), rows)))
        equal += len(rows)
    assert equal > 5


# -- the search itself ------------------------------------------------------------------------------------------------


def mixed(state: int) -> int:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        state = (state ^ state >> shift) * factor & (1 << 64) - 1
    return state


class Node:
    def __init__(self):
        self.children, self.visits, self.offered, self.points = {}, 0, 1, 0


def twin(engine: LineEngine, worlds, key: int, explore: float, greedy: bool) -> Node:
    """The search of one decision with the engine's own steps and scores."""
    position, root = position_at(engine), Node()
    me = int(engine.to_move()[0])
    scale = 4 / sum(int(PIPS[t]) for t in engine.rules.tiles)
    for number, hands in enumerate(worlds):
        table = imagine(position, np.zeros(1, np.int64), hands[None])
        state = mixed(key + number * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        node, path = root, []
        while not table.over()[0]:
            actions = np.flatnonzero(table.legal()[0]).tolist()
            untried = [a for a in actions if node is not None and a not in node.children]
            seat = int(table.to_move()[0])
            if node is not None:
                tried = [a for a in reversed(node.children) if a in actions]
                for a in tried:
                    node.children[a].offered += 1
            if node is not None and not untried:

                def bound(a, node=node):
                    child = node.children[a]
                    return scale * child.points / child.visits + explore * math.sqrt(
                        math.log(child.offered) / child.visits
                    )

                action = max(tried, key=bound)
            elif node is None and (greedy or len(actions) == 1):
                action = max(actions, key=lambda a: 2 * PIPS[a % 28] + (LOW[a % 28] == HIGH[a % 28]) if a < PASS else 0)
            else:
                choice = untried if node is not None else actions
                state = state + 0x9E3779B97F4A7C15 & (1 << 64) - 1
                action = choice[(mixed(state) >> 32) * len(choice) >> 32]
            if node is not None:
                fresh = action not in node.children
                child = node.children.setdefault(action, Node())
                path.append((seat, child))
                node = None if fresh else child
            table.step(np.array([action]), autoreset=False)
        points = table.finished.rewards[0]
        root.visits += 1
        for seat, node in path:
            node.visits += 1
            node.points += int(points[seat])
        assert engine.rules.seats == 2 or points[me] == points[(me + 2) % 4]
    return root


@pytest.mark.parametrize("playout", ["random", "greedy"])
@pytest.mark.parametrize("rules", [BOOK, get_rules("tiny_pairs"), TWO], ids=["book", "tiny", "two"])
def test_equal_to_a_plain_twin_over_the_engine(rules, playout):
    tables, deep = 0, 0
    for ply, engine in enumerate(engines(rules, 12, seed=7)):
        rows = np.flatnonzero(engine.legal_count() > 1)
        if ply % (rules.hand_size // 2) or not len(rows):
            continue
        one = engine.take(rows[:1])
        found = Ismcts(40, explore=0.5, playout=playout).search(ask(one))
        keys = keys_of(ask(one))
        worlds = RulesBelief(position_of(ask(one))).sample(40, keys)[0]
        root = twin(one, worlds, int(keys[0] ^ module._SALT), 0.5, playout == "greedy")
        for action, child in root.children.items():
            assert (found.visits[0, action], found.points[0, action]) == (child.visits, child.points)
        tables += 1
        deep += sum(len(child.children) for child in root.children.values())
    assert tables >= 3 and deep > 10


@game
def test_points_are_those_of_the_engine(rules):
    engine, kinds, rng = LineEngine(rules, 400, seed=8), set(), np.random.default_rng(8)
    code, done = module._game(rules, "random"), 0
    while True:
        engine.step(engine.sample_legal(rng), autoreset=False)
        over = engine.finished
        hands = engine.hands().astype(np.int64)
        for j, row in enumerate(over.rows):
            assert module._score(hands[row], over.by[j], code) == over.rewards[j, 0]
            kinds.add((int(over.outcome[j]), bool((hands[row] == 1).any()), int(np.sign(over.rewards[j, 0]))))
        done += len(over)
        if engine.over().all():
            break
        engine = engine.take(~engine.over())
    assert done == 400 and len(kinds) >= 6  # outs and blocks, lone blanks and others, won by either


def minimax(hands: tuple[int, ...], ends: tuple[int, int], seat: int, code) -> dict[int, int]:
    """Net points of the mover's side by action."""
    fits = [(t, end) for t in tiles_of(hands[seat]) for end in (0, 1) if ends[end] in (LOW[t], HIGH[t])]
    values = {}
    for tile, end in fits:
        if end and ends[0] == ends[1]:
            continue
        left = tuple(h & ~(1 << tile) for h in hands)
        new = (int(PIPS[tile]) - ends[0], ends[1]) if not end else (ends[0], int(PIPS[tile]) - ends[1])
        blocked = not any(k in (LOW[t], HIGH[t]) for h in left for t in tiles_of(h) for k in new)
        if blocked or not left[seat]:
            net = int(module._score(np.array(left), seat, code)) * (-1) ** seat
        else:
            net = -max(minimax(left, new, (seat + 1) % len(hands), code).values())
        values[tile + NUM_TILES * end] = net
    if not fits:
        values[PASS] = -max(minimax(hands, ends, (seat + 1) % len(hands), code).values())
    return values


def best_moves(engine: LineEngine, player: Ismcts) -> int:
    """Asserts that no other move is worth more; counts the positions in which another is worth less."""
    code, compared = module._game(engine.rules, "random"), 0
    choice = player.act(ask(engine))
    for hands, ends, seat, action in zip(engine.hands(), engine.ends(), engine.to_move(), choice):
        values = minimax(tuple(map(int, hands)), tuple(map(int, ends)), int(seat), code)
        assert values[int(action)] == max(values.values()), (hands, ends, seat, values)
        compared += len(set(values.values())) > 1
    return compared


@pytest.mark.parametrize("playout", ["random", "greedy"])
def test_where_one_deal_is_left_it_plays_the_best_move(playout):
    compared = 0
    for engine in engines(get_rules("sport_book", seats=2, pairs=False, redeal=False, max_pip=3, hand_size=5), 40):
        if engine.ends()[0, 0] >= 0:
            assert (RulesBelief(position_at(engine)).total() == 1).all()
            compared += best_moves(engine, Ismcts(10_000, explore=2, playout=playout))
    assert compared > 40


class AllOpen:
    """What a seat would believe that saw all hands."""

    def __init__(self, engine: LineEngine):
        self.hands = engine.hands()

    def sample(self, worlds, keys, start):
        return np.repeat(self.hands[:, None], worlds, axis=1)


@pytest.mark.parametrize("rules", [get_rules("sport_club"), get_rules("puerto_rico")], ids=["club", "puerto_rico"])
def test_with_all_hands_open_pairs_play_the_best_move(rules, monkeypatch):
    compared = 0
    for engine in engines(rules, 60, seed=9):
        late = (np.bitwise_count(engine.hands()).sum(axis=1) <= 10) & (engine.legal_count() > 1)
        if late.any():
            engine = engine.take(late)
            monkeypatch.setattr(module, "lenient", lambda position, engine=engine: AllOpen(engine))
            compared += best_moves(engine, Ismcts(10_000, explore=2, threads=1))
    assert compared > 40


# -- what it knows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [BOOK, get_rules("tiny_pairs")], ids=["book", "tiny"])
def test_no_decision_depends_on_what_the_seat_cannot_see(rules):
    player, moved, rng = Ismcts(60), 0, np.random.default_rng(1)
    assert not getattr(player, "sees_everything", False)
    for engine in engines(rules, 12, seed=10, plies=14):
        position = position_at(engine)
        keys = rng.integers(0, 1 << 63, len(position)).astype(np.uint64)
        other = imagine(position, np.arange(len(position)), RulesBelief(position).sample(1, keys)[:, 0])
        moved += int((other.hands() != engine.hands()).any(axis=1).sum())
        shown, scrambled = ask(engine), ask(other)
        shown.table, scrambled.table = table_of(engine), table_of(other)  # though nobody hands it to this player
        assert same(player.search(shown), player.search(scrambled))
    assert moved > 50


def test_where_no_deal_fits_the_passes_do_not_count():
    position = position_at(next(itertools.islice(engines(BOOK, 30, seed=11), 12, None)))
    position = position.take(np.flatnonzero(position.voids.any(axis=1))[:3])
    voids = position.voids.copy()
    voids[1] = 127  # nobody could hold anything
    belief = module.lenient(dataclasses.replace(position, voids=voids))
    assert (belief.position.voids[[0, 2]] == voids[[0, 2]]).all() and not belief.position.voids[1].any()
    assert belief.sample(3, np.zeros(3, np.uint64)).shape == (3, 3, 4)


# -- strength and time ------------------------------------------------------------------------------------------------


def test_far_stronger_than_random_and_than_a_short_search():
    assert evaluate(Ismcts(400), "random", boards=60, seed=1).points_per_deal > 6  # of about 12 +- 1.4
    assert evaluate(Ismcts(400), Ismcts(4), boards=60, seed=1).points_per_deal > 3


def test_the_clock_ends_the_search(monkeypatch):
    engine = next(itertools.islice(engines(BOOK, 3, seed=12), 2, None))
    rows = np.flatnonzero(engine.legal_count() > 1)[:2]
    players = [Ismcts(ms=ms, threads=1) for ms in (0.001, 5, 50)]
    now, grow = [0.0], module._grow

    def slow(trees, used, worlds, *others) -> None:
        grow(trees, used, worlds, *others)
        now[0] += 1e-5 * worlds.shape[0] * worlds.shape[1]  # an iteration takes ten microseconds

    monkeypatch.setattr(module, "_grow", slow)
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    for player, most in zip(players, (16, 500, 5000)):
        done = player.search(take(ask(engine), rows)).visits.sum(axis=1)
        assert len(done) == 2 and (done[0] == done[1]) and most <= done[0] <= most + 16
    assert Ismcts(iterations=33, ms=10_000).search(take(ask(engine), rows)).visits.sum() == 66


def test_a_move_takes_about_its_time():
    engine = LineEngine(BOOK, 1, seed=13)
    player = Ismcts(ms=60)
    begun = module.time.perf_counter()
    found = player.search(ask(engine))
    spent = module.time.perf_counter() - begun
    assert 0.05 < spent < 5  # on a busy machine too
    assert found.visits.sum() > 100


def test_a_tree_of_a_long_search_grows_as_it_needs():
    engine = LineEngine(BOOK, 2, seed=14)
    visits = Ismcts(iterations=2000, ms=100_000).search(ask(engine)).visits
    assert (visits == Ismcts(iterations=2000).search(ask(engine)).visits).all()


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"iterations": 0}, "iterations=0 must"),
        ({"iterations": 1.5}, "iterations=1.5 must"),
        ({"iterations": True}, "iterations=True must"),
        ({"iterations": 10**7}, "in 1..1000000"),
        ({"explore": -0.1}, "explore=-0.1 must"),
        ({"explore": "x"}, "explore='x' must"),
        ({"playout": "best"}, "playout='best' is unknown; choose from random, greedy"),
        ({"ms": 0}, "ms=0 must"),
        ({"ms": -3}, "ms=-3 must"),
        ({"ms": math.inf}, "ms=inf must"),
        ({"ms": math.nan}, "ms=nan must"),
        ({"threads": 0}, "threads=0 must"),
    ],
)
def test_options_that_cannot_be(options, said):
    with pytest.raises(ValueError, match=said) as error:
        ismcts(**options)
    assert "\n" not in str(error.value)


def test_options_as_they_are_understood():
    assert ismcts().iterations == 1000 and ismcts().name == "ismcts-1000"
    assert ismcts(iterations=400).name == "ismcts-400"
    assert ismcts(ms=50).iterations == module.MOST and ismcts(ms=50).name == "ismcts:ms=50"
    assert ismcts(400).batch_hint > ismcts(ms=15_000).batch_hint == 1


@pytest.mark.parametrize(
    "rules", ["blitz", "blind", dataclasses.replace(BOOK, pairs=False)], ids=lambda rules: str(rules)[:5]
)
def test_games_that_it_does_not_play(rules):
    with pytest.raises(ValueError, match="one tile a turn"):
        ismcts().check(get_rules(rules))


def test_without_chance_it_says_so():
    batch = ask(LineEngine(BOOK, 2, seed=1))
    batch.rng = None
    with pytest.raises(ValueError, match="rng"):
        ismcts(10).act(batch)
