"""Blitz (B1-B6): the engine against the slow reference, each clause by hand, and what a seat may see."""

import ast
import copy
import json
import pickle
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from domino_env import DominoEnv, get_rules, make_engine, make_vec, parallel_env, raw_aec_env
from domino_env.deals import Deal, format_deal, parse_deal
from domino_env.observation import SCORE_STEPS
from domino_env.scoring import score
from tests.blitz_reference import BLITZ, PASS, TILES, BlitzGame, BlitzTable, lowest, number, shuffled, variant

SEATS = (4, 5, 6, 7, 8)
CHAINS = ("both", "one")


def engine_of(game: BlitzGame, num_envs: int, seed=None, **keywords):
    """An engine that plays a reference game."""
    changes = {name: getattr(game, name) for name in ("seats", "pairs", "chain", "labelled_ends", "max_pip")}
    changes |= {"hand_size": game.hand_size} if game.hand_size else {}
    return make_engine("blitz", num_envs, seed, **changes, **keywords)


def names_of(tiles) -> list[str]:
    """Names of reference tiles."""
    return [f"{a}-{b}" for a, b in tiles]


def tiles_in(mask) -> list:
    """The tiles of a bit mask."""
    return [tile for bit, tile in enumerate(TILES) if int(mask) >> bit & 1]


def mask_in(tiles) -> int:
    """The bit mask of some tiles."""
    return sum(1 << number(tile) for tile in tiles)


def table_at(game: BlitzGame, masks) -> BlitzTable:
    """A reference table on the hands that the engine has dealt."""
    hands = [tiles_in(mask) for mask in masks]
    assert all(len(hand) == game.hand for hand in hands) and all(tile in game.tiles for hand in hands for tile in hand)
    assert len({tile for hand in hands for tile in hand}) == game.seats * game.hand
    return BlitzTable(game, hands)


class Twin:
    """An engine and a reference table a row; any difference is an AssertionError that says in which deal."""

    def __init__(self, game: BlitzGame, num_envs: int, seed: int) -> None:
        self.game = game
        self.engine = engine_of(game, num_envs, seed)
        self.rng = np.random.default_rng(seed)
        self.tables = [table_at(game, masks) for masks in self.engine.hands()]
        self.outcomes: Counter[str] = Counter()

    def where(self, row: int) -> str:
        """Says which deal went wrong."""
        table = self.tables[row]
        hands = [[number(tile) for tile in hand] for hand in table.dealt]
        return format_deal(Deal(self.engine.rules, table.leader, hands, [event.action for event in table.events]))

    def step(self) -> None:
        """One action in every row, compared in all its effects."""
        engine, tables = self.engine, self.tables
        legal = [table.legal() for table in tables]
        expected = np.zeros((len(tables), 57), np.int8)
        for row, ids in enumerate(legal):
            expected[row, ids] = 1
        mask = engine.legal()
        assert mask.dtype == np.int8
        for row in np.flatnonzero((mask != expected).any(axis=1)):
            raise AssertionError(f"{np.flatnonzero(mask[row])} is legal, not {legal[row]}: {self.where(row)}")
        assert engine.legal_count().tolist() == [len(ids) for ids in legal]
        assert engine.to_move().tolist() == [table.turn for table in tables]
        assert engine.leader().tolist() == [table.leader for table in tables]
        assert engine.ends().tolist() == [list(table.ends or (-1, -1)) for table in tables]
        assert engine.plies().tolist() == [len(table.events) for table in tables]
        assert engine.hands().tolist() == [[mask_in(hand) for hand in table.hands] for table in tables]
        draws = self.rng.random(len(legal))
        choose = [ids[int(draw * len(ids))] for ids, draw in zip(legal, draws, strict=True)]
        rewards, done = engine.step(np.array(choose))
        for table, action in zip(tables, choose, strict=True):
            table.play(action)
        over = [row for row, table in enumerate(tables) if table.result is not None]
        assert np.flatnonzero(done).tolist() == over == engine.finished.rows.tolist()
        gains = np.zeros(rewards.shape, np.float32)
        hands = engine.hands() if over else None
        for j, row in enumerate(over):
            table = tables[row]
            assert engine.finished.info(j) == table.result, self.where(row)
            gains[row] = table.rewards()
            self.outcomes[table.result["outcome"]] += 1
            if table.result["outcome"] == "block":
                self.outcomes["ends apart"] += table.ends[0] != table.ends[1]
                self.outcomes["nobody"] += table.result["winner"] is None
            tables[row] = table_at(self.game, hands[row])
        assert rewards.dtype == np.float32 and done.dtype == np.bool_
        assert np.array_equal(rewards, gains) and not rewards.sum(axis=1).any()
        assert not engine.truncated().any()

    def look(self, rows) -> None:
        """Compare every seat's view of some rows, the history and a snapshot."""
        engine = self.engine
        for seat in range(self.game.seats):
            seen, history, mask = engine.observe(seat), engine.history(seat), engine.legal(seat)
            for row in rows:
                table = self.tables[row]
                view = table.view(seat)
                assert set(view) == set(engine.layout.slices)
                for name, on in view.items():
                    got = set(np.flatnonzero(seen[row, engine.layout.slices[name]]).tolist())
                    assert got == on, f"{name} of seat {seat}: {got}, not {on}: {self.where(row)}"
                assert int(seen[row].sum()) == sum(map(len, view.values())), self.where(row)
                events = table.history(seat)
                assert history[row, : len(events)].tolist() == events
                assert (history[row, len(events) :] == -1).all()
                assert np.flatnonzero(mask[row]).tolist() == (table.legal() if seat == table.turn else [PASS])
        snapshot, table = engine.snapshot(rows[0]), self.tables[rows[0]]
        assert snapshot["turn"] == {"laid": table.laid, "end": {"": None, "L": "left", "R": "right"}[table.grown]}
        assert sorted(snapshot["leftover"]) == names_of(table.left_over)
        assert snapshot["movers"] == [event.seat for event in table.events]
        assert [sorted(hand) for hand in snapshot["hands"]] == [sorted(names_of(hand)) for hand in table.hands]
        assert snapshot["to_move"] == table.turn and snapshot["ends"] == (table.ends and list(table.ends))

    def run(self, deals: int, look_every: int = 9) -> None:
        """Play at random until so many deals have been compared."""
        step = 0
        while self.outcomes["out"] + self.outcomes["block"] < deals:
            if step % look_every == 0:
                self.look(self.rng.integers(len(self.tables), size=3).tolist())
            self.step()
            step += 1


def label(value):
    if not isinstance(value, BlitzGame):
        return None
    return "-".join(f"{key}={item}" for key, item in vars(value).items() if item != getattr(BLITZ, key)) or "blitz"


GRID = [
    variant(seats=seats, chain=chain, labelled_ends=labelled)
    for seats in SEATS
    for chain in CHAINS
    for labelled in (False, True)
] + [variant(pairs=True, chain=chain, labelled_ends=labelled) for chain in CHAINS for labelled in (False, True)]


@pytest.mark.parametrize("game", GRID, ids=label)
def test_reference__every_variant(game):
    """24 games of 50 deals and more."""
    twin = Twin(game, 32, seed=401)
    twin.run(50, look_every=17)
    assert twin.outcomes["out"]


@pytest.mark.parametrize("game", [BLITZ, variant(chain="one"), variant(seats=6)], ids=label)
def test_reference__300_deals(game):
    twin = Twin(game, 128, seed=400)
    twin.run(300, look_every=31)
    assert twin.outcomes["out"] and twin.outcomes["block"]


def test_reference__blocks_of_every_kind():
    """B1, B4, B5: with tiles left over a block may have two ends apart, and two hands may be lowest."""
    twin = Twin(variant(max_pip=5, hand_size=4), 64, seed=402)
    twin.run(400, look_every=1_000_000)
    assert twin.outcomes["ends apart"] > 3 and twin.outcomes["nobody"] > 1


SMALL = [
    variant(max_pip=4, hand_size=3),
    variant(max_pip=2, hand_size=1),
    variant(seats=5, max_pip=3, hand_size=2, chain="one"),
    variant(max_pip=3, hand_size=2, pairs=True, chain="one", labelled_ends=True),
    variant(seats=8, hand_size=2),
]


@pytest.mark.parametrize("game", SMALL, ids=label)
def test_reference__other_sets_and_hands(game):
    """K4: small sets and hands."""
    Twin(game, 32, seed=403).run(80)


@pytest.mark.slow
@pytest.mark.parametrize("game", GRID, ids=label)
def test_reference__many_deals(game):
    Twin(game, 256, seed=404).run(3_000, look_every=25)


def test_reference__compares_all_there_is():
    """A twin on other rules than the engine's finds the difference: the comparison can fail."""
    for game, other in [
        (BLITZ, variant(chain="one")),
        (variant(chain="one"), BLITZ),
        (BLITZ, variant(labelled_ends=True)),
        (variant(chain="one", labelled_ends=True), variant(chain="one")),
        (BLITZ, variant(pairs=True)),
    ]:
        twin = Twin(game, 128, seed=405)
        twin.tables = [BlitzTable(other, table.dealt) for table in twin.tables]
        with pytest.raises(AssertionError):
            twin.run(200)


# -- the clauses by hand ----------------------------------------------------------------------------------------------

FOUR = [
    ["0-6", "3-4", "3-5", "3-6", "5-5", "5-6", "6-6"],
    ["0-4", "0-5", "2-3", "2-4", "2-5", "2-6", "3-3"],
    ["0-0", "0-1", "0-2", "0-3", "4-4", "4-5", "4-6"],
    ["1-1", "1-2", "1-3", "1-4", "1-5", "1-6", "2-2"],
]
# Left over: 2-6, 3-6, 4-6, 5-6. After 0-0L 0-1L pass 1-6L 0-6R pass, 6-6 is the last six.
EIGHT = [
    ["0-4", "0-5", "1-3"],
    ["0-2", "1-4", "1-5"],
    ["2-3", "2-4", "2-5"],
    ["0-0", "0-1", "1-1"],
    ["0-6", "1-6", "2-2"],
    ["0-3", "1-2", "6-6"],
    ["3-3", "3-4", "3-5"],
    ["4-4", "4-5", "5-5"],
]


def table_of(hands=FOUR, moves="", **changes):
    """A table with these hands, after some moves."""
    engine = engine_of(variant(seats=len(hands), **changes), 1, seed=5)
    engine.reset(options={"hands": hands})
    play(engine, moves)
    return engine


def play(engine, moves: str) -> dict:
    """Play moves by name in row 0 without reset; the snapshot afterwards."""
    for move in moves.split():
        engine.step(np.array([engine.rules.action_index(move)]), autoreset=False)
    return engine.snapshot(0)


def may(engine) -> set[str]:
    """Names of the legal actions of row 0."""
    return {engine.rules.action_name(a) for a in np.flatnonzero(engine.legal()[0]).tolist()}


def part(engine, seat: int, name: str, row: int = 0) -> list[int]:
    """Bits that are on in a slice of an observation."""
    return np.flatnonzero(engine.observe(seat)[row, engine.layout.slices[name]]).tolist()


@pytest.mark.parametrize(("seats", "hand", "left_over"), [(4, 7, 0), (5, 5, 3), (6, 4, 4), (7, 4, 0), (8, 3, 4)])
def test_hands__by_seats(seats, hand, left_over):
    """B1: hands, and what is left over is in no hand, seen by nobody and never drawn."""
    engine = make_engine("blitz", 60, 1, seats=seats)
    assert engine.rules == get_rules("blitz", seats=seats)
    assert (engine.rules.hand_size, engine.rules.leftover) == (hand, left_over)
    hands = engine.hands()
    assert hands.shape == (60, seats) and (np.bitwise_count(hands) == hand).all()
    assert (np.bitwise_count(np.bitwise_or.reduce(hands, axis=1)) == 28 - left_over).all()
    assert len(np.unique(hands[:, 0])) > 50
    assert [len(engine.snapshot(row)["leftover"]) for row in range(3)] == [left_over] * 3
    assert "stock" not in engine.layout.slices and engine.legal().shape == (60, 57)


def test_lead__lowest_tile_dealt():
    """B2: its holder leads and must begin with it: no other tile and no pass."""
    engine = table_of()
    assert engine.leader().tolist() == engine.to_move().tolist() == [2]
    assert may(engine) == {"0-0L"}
    assert part(engine, 2, "leader") == [0] and part(engine, 1, "leader") == [1] and part(engine, 3, "leader") == [3]
    for wrong in ("0-1L", "4-6L", "0-0R", "pass"):
        with pytest.raises(ValueError, match="0-0L"):
            engine.step(np.array([engine.rules.action_index(wrong)]))


@pytest.mark.parametrize(
    ("left_over", "seat", "tile"),
    [
        (["0-0", "6-6", "5-6"], 1, "0-1"),  # 1 pip
        (["0-0", "0-1", "6-6"], 2, "0-2"),  # 2 pips: the smaller suit stands below 1-1
        (["0-0", "0-1", "0-2"], 3, "1-1"),
        (["6-6", "0-1", "0-2"], 0, "0-0"),
    ],
)
def test_lead__with_tiles_left_over(left_over, seat, tile):
    """B2, S11: of the tiles dealt the one with the fewest pips, then with the smaller suit; left-over ones lead not."""
    firsts = [["0-0"], ["0-1"], ["0-2"], ["1-1"], []]
    hands = [[name for name in first if name not in left_over] for first in firsts]
    rest = [name for name in names_of(TILES) if name not in left_over and [name] not in firsts]
    for hand in hands:
        while len(hand) < 5:
            hand.append(rest.pop())
    engine = table_of(hands)
    assert engine.leader().tolist() == [seat] and may(engine) == {f"{tile}L"}


def test_lead__same_pips_smaller_suit():
    """B2: 0-3 stands below 1-2, wherever the two lie."""
    low = ["0-0", "0-1", "0-2", "1-1"]  # of six seats four tiles are left over
    rest = [name for name in names_of(TILES) if name not in [*low, "0-3", "1-2"]]
    for order in (["0-3", "1-2"], ["1-2", "0-3"]):
        tiles = [*rest[:10], order[0], *rest[10:14], order[1], *rest[14:]]
        engine = table_of([tiles[4 * seat : 4 * seat + 4] for seat in range(6)])
        assert may(engine) == {"0-3L"} and engine.leader().tolist() == [2 if order[0] == "0-3" else 3]


def test_lead__another_leader_is_an_error():
    """B2: the tile says who leads; another seat is refused as an option and as an array, and nothing changes."""
    engine = table_of(moves="0-0L 0-1L pass")
    before = engine.snapshot(0)
    for options in ({"hands": FOUR, "leader": 1}, {"leader": (lead_of_next(engine) + 1) % 4}):
        with pytest.raises(ValueError, match="lead"):
            engine.reset(options=options)
        assert engine.snapshot(0) == before
    hands = np.array([[mask_in(tile_tuples(hand)) for hand in FOUR]], np.uint32)
    with pytest.raises(ValueError, match="lead"):
        engine.deal(hands, np.array([0]))
    assert engine.snapshot(0) == before
    engine.reset(options={"hands": FOUR, "leader": 2})
    assert engine.leader().tolist() == [2] and may(engine) == {"0-0L"}
    engine.deal(hands, np.array([2]))
    assert engine.leader().tolist() == [2] and may(engine) == {"0-0L"}


def test_lead__asked_for_with_a_seed():
    """B2: with a seed it is the lowest tile of the seed's first deal that counts, whatever was played before."""
    first = make_engine("blitz", 5, 31, seats=7)
    leaders = [{"leader": leader} for leader in first.leader().tolist()]
    engine = make_engine("blitz", 5, 30, seats=7)
    engine.reset()
    engine.reset(seed=31, options=leaders)
    assert [engine.text(row) for row in range(5)] == [first.text(row) for row in range(5)]
    engine.reset()
    with pytest.raises(ValueError, match="lead"):
        engine.reset(seed=31, options=leaders[1:] + leaders[:1])


def seen_of(env, result):
    """All that an env shows after a reset: what it returned, or in AEC what every seat observes."""
    views = result[0] if result else {agent: env.observe(agent) for agent in env.possible_agents}
    return [view.tobytes() for one in views.values() for view in (one.values() if isinstance(one, dict) else [one])]


@pytest.mark.parametrize("make", [raw_aec_env, parallel_env, DominoEnv, make_vec])
def test_lead__another_leader_is_an_error_in_every_env(make):
    """B2: it leaves deals and stream of an env as they were, with a seed and without one."""
    rows = {"num_envs": 2} if make is make_vec else {}
    env, untouched = make("blitz", seats=5, **rows), make("blitz", seats=5, **rows)
    for seed in (35, 36):
        engine = make_engine("blitz", 1, seed, seats=5)
        assert seen_of(env, env.reset(seed=seed)) == seen_of(untouched, untouched.reset(seed=seed))
        for again, leader in ((seed, lead_of(engine)), (None, lead_of_next(engine))):
            with pytest.raises(ValueError, match="holds the lowest tile dealt"):
                env.reset(seed=again, options={"leader": (leader + 1) % 5})
        assert seen_of(env, env.reset()) == seen_of(untouched, untouched.reset())


def test_lead__of_arrays_without_leaders():
    """B2: `deal` asks for no leader where the tile says who it is, and for one where no tile does."""
    source, engine = make_engine("blitz", 4, 27, seats=7), make_engine("blitz", 4, 1, seats=7)
    engine.deal(source.hands())
    assert [engine.text(row) for row in range(4)] == [source.text(row) for row in range(4)]
    assert np.array_equal(engine.legal(), source.legal())
    with pytest.raises(ValueError, match="in sport_book no tile decides"):
        make_engine("sport_book", 4, 1).deal(make_engine("sport_book", 4, 2).hands())


def lead_of(engine) -> int:
    """Who leads the deal of row 0."""
    return int(engine.leader()[0])


def lead_of_next(engine) -> int:
    """Who leads the deal that a reset would begin."""
    other = copy.deepcopy(engine)
    other.reset()
    return lead_of(other)


def tile_tuples(names) -> list:
    """Tiles of names."""
    return [(int(name[0]), int(name[2])) for name in names]


def test_lead__may_go_on():
    """B2, B3: after the leading tile the leader may lay more in the same turn, or stop."""
    engine = table_of(moves="0-0L")
    assert engine.to_move().tolist() == [2] and may(engine) == {"0-1L", "0-2L", "0-3L", "pass"}
    play(engine, "0-1L")
    assert engine.to_move().tolist() == [2] and may(engine) == {"0-2R", "0-3R", "pass"}
    play(engine, "0-3R pass")
    assert engine.to_move().tolist() == [3] and engine.ends().tolist() == [[1, 3]]


def test_turn__must_lay_one_where_it_can():
    """B3: no stop before a lay: a seat that can lay must; 56 comes after it."""
    engine = table_of(moves="0-0L pass pass")
    assert engine.to_move().tolist() == [0] and may(engine) == {"0-6L"}
    with pytest.raises(ValueError, match="0-6L"):
        engine.step(np.array([PASS]))
    play(engine, "0-6L")
    assert may(engine) == {"3-6L", "5-6L", "6-6L", "pass"}
    assert [part(engine, seat, "laid") for seat in range(4)] == [[0]] * 4
    play(engine, "6-6L 5-6L 5-5L 3-5L 3-6L")
    assert engine.to_move().tolist() == [0] and engine.snapshot(0)["turn"] == {"laid": 6, "end": None}
    assert may(engine) == {"pass"}  # 3-4 fits neither 6 nor 0: nothing is left to lay, so stop is all there is
    play(engine, "pass")
    assert engine.to_move().tolist() == [1] and part(engine, 2, "laid") == []


def test_turn__a_wrong_pass_that_is_let_through():
    """J3: the mover may then pass beside what it may lay; the turn is over, and all have seen the suits."""
    engine = table_of(moves="0-0L pass pass")
    engine.allow_pass(np.array([0]))
    assert may(engine) == {"0-6L", "pass"}
    play(engine, "pass")
    assert engine.to_move().tolist() == [1] and part(engine, 1, "passed_right") == [0]


def test_turn__pass_only_without_a_tile():
    """B3: a seat that can lay nothing has only pass; a pass tells all which suits it lacks, a stop does not."""
    engine = table_of(moves="0-0L pass")
    assert engine.to_move().tolist() == [3] and may(engine) == {"pass"}
    assert part(engine, 3, "passed_right") == []  # seat 2 stopped
    after = play(engine, "pass")
    assert after["to_move"] == 0 and after["moves"] == ["0-0L", "pass", "pass"] and after["movers"] == [2, 2, 3]
    assert part(engine, 0, "passed_right") == [0] and part(engine, 3, "passed_me") == [0]
    assert engine.passed()[0].tolist() == [0, 0, 0, 1]


def test_chain__both_is_the_rule():
    """B3, chain="both": every lay of a turn may go on either end."""
    assert get_rules("blitz").chain == "both" and get_rules("sport_book").chain == "none"
    engine = table_of(moves="0-0L 0-1L")
    assert may(engine) == {"0-2R", "0-3R", "pass"}
    play(engine, "0-2R pass 1-2R")  # ends 1 and 1
    assert engine.ends().tolist() == [[1, 1]]
    assert may(engine) == {"1-1L", "1-3L", "1-4L", "1-5L", "1-6L", "pass"}  # equal ends: the left actions
    play(engine, "1-3L")
    assert may(engine) == {"1-1R", "1-4R", "1-5R", "1-6R", "pass"}


def test_chain__one_goes_on_where_the_turn_grew():
    """B3, chain="one": after the first lay only the end that the turn has grown."""
    engine = table_of(moves="0-0L 0-1L", chain="one")
    assert may(engine) == {"pass"}  # 0-2 and 0-3 would fit the right end
    assert engine.snapshot(0)["turn"] == {"laid": 2, "end": "left"}
    assert [part(engine, seat, "grown") for seat in range(4)] == [[0]] * 4
    play(engine, "pass")
    assert [part(engine, seat, "grown") for seat in range(4)] == [[]] * 4
    assert engine.snapshot(0)["turn"] == {"laid": 0, "end": None}
    play(engine, "1-2L")
    assert may(engine) == {"2-2L", "pass"}
    play(engine, "pass")
    assert may(engine) == {"0-6R"}  # the next seat begins on either end
    play(engine, "0-6R")
    assert may(engine) == {"3-6R", "5-6R", "6-6R", "pass"} and part(engine, 3, "grown") == [1]
    play(engine, "pass")
    assert may(engine) == {"2-3L", "2-4L", "2-5L", "2-6L", "2-6R"}


def test_chain__one_lead_leaves_both_ends():
    """B3: the leading tile grows no end; the tile after it decides which."""
    hands = [["0-1", "0-2", "1-2", "2-2", "1-1"], *[[]] * 4]
    rest = [name for name in names_of(TILES) if name not in hands[0] and name not in ("0-0", "5-5", "6-6")]
    engine = table_of([hands[0], *[rest[5 * seat : 5 * seat + 5] for seat in range(4)]], chain="one", moves="0-1L")
    assert engine.snapshot(0)["turn"] == {"laid": 1, "end": None} and part(engine, 0, "grown") == []
    assert may(engine) == {"0-2L", "1-1R", "1-2R", "pass"}
    left = copy.deepcopy(engine)
    play(left, "0-2L")
    assert may(left) == {"1-2L", "2-2L", "pass"}
    play(engine, "1-2R")
    assert may(engine) == {"0-2R", "2-2R", "pass"}


BEGUN = {
    "reset": lambda engine: engine.reset(options={"hands": FOUR}),
    "reset_rows": lambda engine: engine.reset_rows(np.array([0]), [{"hands": FOUR}]),
    "deal_on": lambda engine: engine.deal_on(np.array([0]), [{"hands": FOUR}]),
    "deal": lambda engine: engine.deal(np.array([[mask_in(tile_tuples(hand)) for hand in FOUR]], np.uint32)),
}


@pytest.mark.parametrize("begin", BEGUN)
def test_turn__of_a_deal_that_is_given_up_ends_with_it(begin):
    """B3: a deal that begins in the midst of a turn begins with none: nothing is laid, no end has grown."""
    engine = table_of(moves="0-0L 0-1L", chain="one")
    assert part(engine, 2, "laid") == [0] and part(engine, 2, "grown") == [0]
    BEGUN[begin](engine)
    assert engine.to_move().tolist() == [2] and engine.plies().tolist() == [0] and may(engine) == {"0-0L"}
    assert part(engine, 2, "laid") == part(engine, 2, "grown") == []
    assert engine.snapshot(0)["turn"] == {"laid": 0, "end": None} and engine.snapshot(0)["moves"] == []
    play(engine, "0-0L")
    assert engine.to_move().tolist() == [2] and may(engine) == {"0-1L", "0-2L", "0-3L", "pass"}


def test_stop__in_the_midst_of_a_turn():
    """B6, J5: a deal that a judge stops has no result by play and waits; in single deals nothing is added up."""
    engine = engine_of(variant(pairs=True, chain="one"), 2, seed=32)
    rng = np.random.default_rng(32)
    while engine.snapshot(1)["turn"]["end"] is None:
        engine.step(engine.sample_legal(rng))
    engine.stop(np.array([1]))
    engine.add_points(np.array([1]), np.array([0, 25]))
    assert engine.over().tolist() == [False, True] and np.flatnonzero(engine.legal()[1]).tolist() == [PASS]
    shot = engine.snapshot(1)
    assert shot["over"] and shot["deal"] is None and shot["score"] == engine.score()[1].tolist() == [0, 0]
    with pytest.raises(ValueError, match="row 1 is over"):
        engine.step(engine.sample_legal(rng))
    engine.reset_rows(np.array([1]))
    assert not engine.over().any() and engine.snapshot(1)["turn"] == {"laid": 0, "end": None}


def test_deal_on__goes_on_with_the_match(fingerprint):
    """B2, S10: the next deal of the stream, counted, with the score as it stands; a wrong leader changes nothing."""
    engine = make_engine("blitz", 3, 33, seats=5, episode="match")
    deals = make_engine("blitz", 3, 33, seats=5)
    deals.reset()
    rows, points = np.array([0, 2]), [3, -4, 0, 6, -5]
    engine.add_points(rows, np.array(points))
    leaders = deals.leader()[rows]
    state = fingerprint(engine)
    with pytest.raises(ValueError, match="lead"):
        engine.deal_on(rows, [{"leader": int(leaders[0])}, {"leader": int(leaders[1] + 1) % 5}])
    assert fingerprint(engine) == state
    untouched = engine.hands()[1].tolist()
    engine.deal_on(rows, [{"leader": int(leader)} for leader in leaders])
    assert engine.deal_index().tolist() == [1, 0, 1] and engine.score().tolist() == [points, [0] * 5, points]
    assert engine.hands()[rows].tolist() == deals.hands()[rows].tolist() and engine.hands()[1].tolist() == untouched
    assert engine.leader()[rows].tolist() == leaders.tolist()


@pytest.mark.parametrize(
    ("labelled", "first", "right", "left"),
    [
        (False, {"2-3L", "2-4L", "2-5L", "2-6L", "2-6R"}, {"2-3R", "2-4R", "2-5R", "pass"}, {"pass"}),
        (True, {"2-3L", "2-4L", "2-5L", "2-6L", "2-6R"}, {"2-3R", "2-4R", "2-5R", "pass"}, {"pass"}),
    ],
)
def test_chain__one_by_its_ids_where_ends_are_equal(labelled, first, right, left):
    """B3: where the turn grew the right end into equal ends, only the right ids go on, labelled or not."""
    moves = "0-0L 0-1L pass 1-2L pass 0-6R pass"
    engine = table_of(moves=moves, chain="one", labelled_ends=labelled)
    assert engine.ends().tolist() == [[2, 6]] and may(engine) == first
    other = copy.deepcopy(engine)
    play(engine, "2-6R")
    assert engine.ends().tolist() == [[2, 2]] and may(engine) == right
    play(other, "2-6L")
    assert other.ends().tolist() == [[6, 6]] and may(other) == left
    both = table_of(moves=moves + " 2-6R", labelled_ends=labelled)
    lefts = {"2-3L", "2-4L", "2-5L", "pass"}
    assert may(both) == (lefts | right if labelled else lefts)
    # The next seat, on equal ends, has both ids only where ends are labelled.
    play(engine, "pass")
    assert may(engine) == {"0-2L"} | ({"0-2R"} if labelled else set())


# Seats -> points of an out in the first turn: the leader lays 0-0 0-1 1-1 1-2 2-2 2-3 3-3, as far as its hand goes.
OUTS = {
    4: [-29, -49, -69, 147],
    5: [-20, -27, -34, -44, 125],
    6: [-14, -21, -22, -28, -34, 119],
    7: [-14, -21, -22, -28, -34, -43, 162],
    8: [-9, -14, -15, -16, -21, -21, -26, 122],
}


@pytest.mark.parametrize("seats", SEATS)
def test_out__all_at_once(seats):
    """B4, B5: laying the last tile in the midst of a turn ends the deal; the winner gets what the others hold."""
    size = get_rules("blitz", seats=seats).hand_size
    run = ["0-0", "0-1", "1-1", "1-2", "2-2", "2-3", "3-3"][:size]
    rest = [name for name in names_of(TILES) if name not in run]
    hands = [*[rest[size * seat : size * (seat + 1)] for seat in range(seats - 1)], run]
    engine = table_of(hands)
    moves = [f"{name}L" for name in run]
    before = play(engine, " ".join(moves[:-1]))
    assert not before["over"] and before["to_move"] == seats - 1
    rewards, done = engine.step(np.array([engine.rules.action_index(moves[-1])]), autoreset=False)
    assert done.tolist() == [True] and rewards.tolist() == [OUTS[seats]]
    assert engine.finished.info(0) == {
        "outcome": "out",
        "winner": seats - 1,
        "points": OUTS[seats],
        "pips_left": [*(-points for points in OUTS[seats][:-1]), 0],
        "by": seats - 1,
        "plies": size,
    }
    assert engine.over().tolist() == [True] and may(engine) == {"pass"}


def test_out__not_at_once():
    """B4, B5: an out in a later turn; a stop ended the one before."""
    first = "0-0L pass 0-6L pass 0-3R pass 3-5R pass 4-5R 4-4R pass"  # seat 7 is left with 5-5
    engine = table_of(EIGHT, f"{first} 0-4R pass 0-2R pass 2-5R pass pass 1-6L pass 1-2L pass pass")
    assert engine.to_move().tolist() == [7] and may(engine) == {"5-5R"}
    after = play(engine, "5-5R")
    assert after["deal"] == {
        "outcome": "out",
        "winner": 7,
        "points": [-9, -11, -11, -3, -4, -12, -13, 63],
        "pips_left": [9, 11, 11, 3, 4, 12, 13, 0],
        "by": 7,
        "plies": 24,
    }


def test_out__with_the_tile_that_closes_the_line():
    """B4, S5: an out that leaves nothing to match is an out."""
    hands = [*EIGHT[:4], ["0-6", "1-6", "6-6"], ["0-3", "1-2", "2-2"], *EIGHT[6:]]
    after = play(table_of(hands), "0-0L 0-1L pass 1-6L 0-6R 6-6L")
    assert (after["deal"]["outcome"], after["deal"]["winner"], after["deal"]["by"]) == ("out", 4, 4)
    assert after["deal"]["points"] == [-13, -13, -18, -2, 104, -10, -21, -27]


def test_out__beside_a_hand_of_no_pips():
    """B5, R8: who went out takes all, also where another seat is left with 0-0 alone, which counts nothing. In blitz
    0-0 is led, in the blind games it may stay behind."""
    none, hands = np.zeros(1, np.int64), np.array([[0], [1], [1 << 27]], np.uint32)  # clockwise: out, 0-0, 6-6
    done = score(get_rules("blind", seats=3), none, hands, by=none + 2, plies=none + 9)
    assert done.info(0) == {
        "outcome": "out",
        "winner": 2,
        "points": [0, -12, 12],
        "pips_left": [0, 12, 0],
        "by": 2,
        "plies": 9,
    }


def test_block__seen_at_once_in_a_turn():
    """B4, B5: no tile in any hand matches, so the deal ends with the lay; the lowest takes the differences."""
    engine = table_of(EIGHT, "0-0L 0-1L pass 1-6L 0-6R pass")
    assert may(engine) == {"6-6L"}  # the last six in play; four are left over
    after = play(engine, "6-6L")
    assert after["over"] and may(engine) == {"pass"}
    assert after["deal"] == {
        "outcome": "block",
        "winner": 3,
        "points": [-11, -11, -16, 88, -2, -4, -19, -25],
        "pips_left": [13, 13, 18, 2, 4, 6, 21, 27],
        "by": 5,
        "plies": 7,
    }


def test_block__two_lowest():
    """B5: two lowest hands: nobody scores."""
    hands = copy.deepcopy(EIGHT)
    hands[1][0], hands[4][2] = "2-2", "0-2"
    after = play(table_of(hands), "0-0L 0-1L pass 1-6L 0-6R pass 6-6L")
    assert (after["deal"]["outcome"], after["deal"]["winner"]) == ("block", None)
    assert after["deal"]["points"] == [0] * 8 and after["deal"]["pips_left"] == [13, 15, 18, 2, 2, 6, 21, 27]


def test_block__not_while_the_other_end_lives():
    """B3, B4: chain="one" stops a turn at an end nobody matches, but the deal goes on at the other end."""
    engine = table_of(EIGHT, "0-0L 0-1L pass 1-6L pass 6-6L", chain="one")
    assert engine.ends().tolist() == [[6, 0]] and not engine.over()[0] and may(engine) == {"pass"}
    after = play(engine, "pass pass pass 0-4R")
    assert not after["over"]


PAIRS = [
    ["0-4", "0-5", "0-6", "1-3", "1-4", "1-5", "1-6"],
    ["2-4", "2-5", "2-6", "3-4", "3-5", "3-6", "0-2"],
    ["0-3", "4-4", "4-5", "4-6", "5-5", "5-6", "6-6"],
    ["0-0", "0-1", "1-1", "1-2", "2-2", "2-3", "3-3"],
]


def test_pairs__out_scores_the_losers_pips():
    """B6, S6: the pair of the seat that went out scores what both opponents hold, not its own partner's pips."""
    after = play(table_of(PAIRS, pairs=True), "0-0L 0-1L 1-1L 1-2L 2-2L 2-3L 3-3L")
    assert after["pairs"] is True and after["deal"]["pips_left"] == [37, 47, 63, 0]
    assert (after["deal"]["outcome"], after["deal"]["winner"], after["deal"]["points"]) == ("out", 1, [0, 100])
    engine = table_of(PAIRS, "0-0L 0-1L 1-1L 1-2L 2-2L 2-3L", pairs=True)
    rewards, _ = engine.step(np.array([engine.rules.action_index("3-3L")]))
    assert rewards.tolist() == [[-100, 100, -100, 100]]


@pytest.mark.parametrize("chain", CHAINS)
def test_pairs__block_scores_the_difference(chain):
    """B6, S7 book: the pair with fewer pips scores the difference, equal sums 0 to 0."""
    engine = engine_of(variant(pairs=True, chain=chain), 400, seed=406)
    rng = np.random.default_rng(406)
    blocks = ties = 0
    for _ in range(400):
        rewards, _ = engine.step(engine.sample_legal(rng))
        for j, row in enumerate(engine.finished.rows.tolist()):
            info = engine.finished.info(j)
            if info["outcome"] == "block":
                first, second = (sum(info["pips_left"][pair::2]) for pair in (0, 1))
                assert info["points"] == [max(second - first, 0), max(first - second, 0)]
                assert info["winner"] == (None if first == second else int(second < first))
                assert rewards[row].tolist() == [second - first, first - second] * 2
                blocks, ties = blocks + 1, ties + (first == second)
    assert blocks > 100 and ties > 0


def test_pairs__names():
    """B6: with pairs the seat across is the partner; each for itself it is not; more seats count on."""
    assert "size_partner" in engine_of(variant(pairs=True), 1).layout.slices
    assert "size_across" in engine_of(BLITZ, 1).layout.slices
    eight = engine_of(variant(seats=8), 1).layout.slices
    assert [name[5:] for name in eight if name.startswith("size_")] == variant(seats=8).names


# -- what a seat sees -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GRID, ids=label)
def test_layout__slices_are_apart_and_in_the_table(game):
    engine = engine_of(game, 20, seed=407)
    used = np.zeros(engine.layout.size, int)
    for name, bits in engine.layout.slices.items():
        used[bits] += 1
        assert f"`{name}`" in engine.layout.table()
    assert used.max() == 1 and engine.layout.size == 8 * engine.layout.nbytes
    rng = np.random.default_rng(407)
    for _ in range(10):
        engine.step(engine.sample_legal(rng))
        seen, mover = engine.observe(), engine.to_move()
        assert np.array_equal(np.unpackbits(engine.observe(packed=True), axis=1, bitorder="little"), seen)
        assert np.array_equal(engine.observe(mover), seen) and np.array_equal(engine.legal(mover), engine.legal())
        assert np.array_equal(engine.history(mover), engine.history())
        each = np.stack([engine.observe(seat) for seat in range(game.seats)])
        seats = rng.integers(0, game.seats, 20)
        assert np.array_equal(engine.observe(seats), each[seats, np.arange(20)])
        assert not seen[:, used == 0].any()


def rearranged(table: BlitzTable, seat: int, rng: random.Random, tries: int = 20):
    """Another deal in which all that `seat` has seen would have happened too, tiles left over among the moved."""
    game = table.game
    others = [other for other in range(game.seats) if other != seat]
    unseen = [tile for other in others for tile in table.hands[other]] + table.left_over
    for _ in range(tries):
        pool = rng.sample(unseen, len(unseen))
        hands = [list(hand) for hand in table.dealt]
        for other in others:
            size = len(table.hands[other])
            hands[other] = table.played(other) + pool[:size]
            pool = pool[size:]
        twin = BlitzTable(game, hands)
        try:
            for event in table.events:
                twin.play(event.action)
        except ValueError:
            continue
        if twin.result is None and hands != table.dealt and twin.leader == table.leader:
            return hands
    return None


@settings(max_examples=25, deadline=None, derandomize=True)
@given(game=st.sampled_from(GRID), seed=st.integers(0, 10**9), plies=st.integers(0, 30))
def test_hidden_tiles__change_no_byte(game, seed, plies):
    """B1: what a seat is shown is byte-equal under any re-arrangement of what it cannot see, left-over tiles too."""
    rng = random.Random(seed)
    table = BlitzTable(game, shuffled(game, rng))
    for _ in range(plies):
        before = copy.deepcopy(table)
        table.play(rng.choice(table.legal()))
        if table.result is not None:
            table = before
            break
    for seat in rng.sample(range(game.seats), 3):
        hands = rearranged(table, seat, rng)
        if hands is None:
            continue
        pair = engine_of(game, 2, seed=1)
        pair.reset(options=[{"hands": [names_of(hand) for hand in deal]} for deal in (table.dealt, hands)])
        for action in [*(event.action for event in table.events), None]:
            seen, history, mask = pair.observe(seat, packed=True), pair.history(seat), pair.legal(seat)
            assert (seen[0] == seen[1]).all() and (history[0] == history[1]).all() and (mask[0] == mask[1]).all()
            if action is not None:
                pair.step(np.array([action, action]), autoreset=False)


def test_hidden_tiles__are_really_moved():
    """The test above moves tiles between hands and from and to what is left over, late in deals too."""
    rng = random.Random(408)
    found: Counter[str] = Counter()
    for _ in range(60):
        table = BlitzTable(variant(seats=6), shuffled(variant(seats=6), rng))
        for _ in range(rng.randrange(14)):
            if table.result is None:
                table.play(rng.choice(table.legal()))
        hands = None if table.result else rearranged(table, table.turn, rng)
        if hands:
            found["moved"] += 1
            found["left over"] += BlitzTable(table.game, hands).left_over != table.left_over
            found["late"] += len(table.events) > 8
    assert found["moved"] > 20 and found["left over"] > 10 and found["late"] > 3, found


@pytest.mark.parametrize("seats", [5, 6, 7])
def test_match__score_in_the_observation(seats):
    """S10: a match is a number of fours; the lead is by the lowest tile in each deal of it."""
    engine = engine_of(variant(seats=seats), 20, seed=409, episode="match", fours=1)
    rng = np.random.default_rng(409)
    total, ended = np.zeros((20, seats)), 0
    while ended < 10:
        rewards, done = engine.step(engine.sample_legal(rng))
        total += rewards
        total[done] = 0
        ended += int(done.sum())
        assert np.array_equal(engine.score(), total)
        seen, slices = engine.observe(2), engine.layout.slices
        ahead = total[:, 2] - np.delete(total, 2, axis=1).max(axis=1)
        assert seen[:, slices["score_ahead"]].tolist() == [[int(a >= s) for s in SCORE_STEPS] for a in ahead]
        assert seen[:, slices["score_behind"]].tolist() == [[int(-a >= s) for s in SCORE_STEPS] for a in ahead]
        assert (seen[:, slices["deal"]].argmax(axis=1) == engine.deal_index() % 4).all()
        begun = np.flatnonzero(engine.plies() == 0)
        for row in begun.tolist():
            leader, tile = lowest([tiles_in(mask) for mask in engine.hands()[row]])
            assert engine.leader()[row] == leader
            assert np.flatnonzero(engine.legal()[row]).tolist() == [number(tile)]


# -- properties -------------------------------------------------------------------------------------------------------

GAMES_DRAWN = st.one_of(
    st.builds(variant, seats=st.sampled_from(SEATS), chain=st.sampled_from(CHAINS), labelled_ends=st.booleans()),
    st.builds(variant, pairs=st.just(True), chain=st.sampled_from(CHAINS), labelled_ends=st.booleans()),
)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(game=GAMES_DRAWN, seed=st.integers(0, 10**9), steps=st.integers(1, 60))
def test_any_play__loses_no_tile_and_no_point(game, seed, steps):
    """B1, B5: every tile is in one place, rewards sum to zero, a mask is never empty and offers only what is held."""
    engine = engine_of(game, 8, seed)
    rng = np.random.default_rng(seed)
    dealt = engine.hands()
    for _ in range(steps):
        mask, hands, mover = engine.legal(), engine.hands(), engine.to_move()
        assert mask.any(axis=1).all() and (engine.legal_count() == mask.sum(axis=1)).all()
        mine = hands[np.arange(8), mover]
        offered = mask[:, :28] | mask[:, 28:56]
        held = mine[:, None] >> np.arange(28, dtype=np.uint32) & 1
        assert not (offered > held).any()
        for seat in range(game.seats):
            others = engine.legal(seat)[mover != seat]
            assert (others.argmax(axis=1) == PASS).all() and (others.sum(axis=1) == 1).all()
        rewards, done = engine.step(engine.sample_legal(rng))
        assert not rewards.sum(axis=1).any() and not rewards[~done].any()
        hands, played = engine.hands(), engine.played()
        dealt[done] = hands[done]
        assert np.array_equal(hands | played, dealt) and not (hands & played).any()
        both = np.concatenate([hands, played], axis=1)
        assert (np.bitwise_count(both).sum(axis=1) == np.bitwise_count(np.bitwise_or.reduce(both, axis=1))).all()
        assert (engine.plies() <= engine.rules.max_plies).all()


@settings(max_examples=30, deadline=None, derandomize=True)
@given(game=GAMES_DRAWN, seed=st.integers(0, 10**9), steps=st.integers(0, 50))
def test_history__plays_again(game, seed, steps):
    """The history of a seat and the deal say all: from the two the same position, movers and text come about."""
    engine = engine_of(game, 1, seed)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        engine.step(engine.sample_legal(rng))
    seat = int(rng.integers(game.seats))
    events = engine.history(seat)[0, : engine.plies()[0]].tolist()
    again = engine_of(game, 1, seed=1)
    again.reset(options={"hands": engine.snapshot(0)["dealt"]})
    for event in events:
        assert event >> 12 == (again.to_move()[0] - seat) % game.seats
        left, right = again.ends()[0].tolist()
        assert (event >> 9 & 7, event >> 6 & 7) == ((7, 7) if left < 0 else (left, right))
        again.step(np.array([event & 63]), autoreset=False)
    assert again.history(seat)[0, : len(events)].tolist() == events
    assert again.text(0) == engine.text(0) and np.array_equal(again.observe(seat), engine.observe(seat))


# -- copies, streams, text, bad input ---------------------------------------------------------------------------------

COPIED = [
    BLITZ,
    variant(seats=6, chain="one"),
    variant(seats=8, labelled_ends=True),
    variant(pairs=True, chain="one"),
    variant(seats=5),
]


def future(engine, steps: int = 70):
    """What becomes of an engine when it is played by a fixed rule, several deals on."""
    seen = []
    for step in range(steps):
        legal = engine.legal()
        rewards, done = engine.step((((np.arange(57) * 7 + step * 5) % 61 + 1) * legal).argmax(axis=1))
        seen.append((rewards.tobytes(), done.tobytes(), engine.observe(packed=True).tobytes()))
    return seen


@pytest.mark.parametrize("game", COPIED, ids=label)
def test_copies__keep_the_future(game, fingerprint):
    """take, put, deepcopy, pickle, snapshot and load, in the midst of turns: this deal and the deals after it."""
    engine = engine_of(game, 24, seed=411)
    rng = np.random.default_rng(411)
    for _ in range(57):
        engine.step(engine.sample_legal(rng))
    laid = [engine.snapshot(row)["turn"]["laid"] for row in range(24)]
    assert 0 in laid and max(laid) > 0
    state = fingerprint(engine)
    copies = [copy.deepcopy(engine), pickle.loads(pickle.dumps(engine)), engine.take(np.arange(24))]
    loaded = engine_of(game, 24, seed=99)
    for _ in range(5):
        loaded.step(loaded.sample_legal(rng))
    put = copy.deepcopy(loaded)
    for row in range(24):
        loaded.load(row, json.loads(json.dumps(engine.snapshot(row))))
        assert loaded.snapshot(row) == engine.snapshot(row)
    order = rng.permutation(24)
    put.put(order, engine.take(order))
    copies += [loaded, put]
    for other in copies:
        assert fingerprint(other) == state
    expected = future(engine)
    for other in copies:
        assert future(other) == expected


def test_rows__do_not_depend_on_the_batch():
    """Row i of a seed plays the same deals in a batch of any size, whatever was played before."""
    few, many = make_engine("blitz", 3, 21, seats=5), make_engine("blitz", 50, 21, seats=5)
    rng = np.random.default_rng(1)
    for _ in range(20):
        many.step(many.sample_legal(rng))
    many.reset(21)
    assert [few.text(i) for i in range(3)] == [many.text(i) for i in range(3)]
    few.reset()
    many.reset_rows(np.arange(3))
    assert [few.text(i) for i in range(3)] == [many.text(i) for i in range(3)]


@pytest.mark.parametrize("game", COPIED, ids=label)
def test_text__reads_back(game):
    """A deal in text holds several moves of one seat in a row; stop is written as pass."""
    engine = engine_of(game, 20, seed=412)
    rng = np.random.default_rng(412)
    for _ in range(23):
        engine.step(engine.sample_legal(rng))
    again = engine_of(game, 20, seed=1)
    for row in range(20):
        text = engine.text(row)
        deal = parse_deal(text)
        assert deal == engine.record(row) and format_deal(deal) == text and deal.rules == engine.rules
        assert deal.leader == engine.leader()[row] and f"leader={deal.leader}" in text
        table = BlitzTable(game, [[TILES[tile] for tile in hand] for hand in deal.hands])
        for action in deal.moves:
            table.play(action)
        assert table.turn == engine.to_move()[row]
        snapshot = engine.snapshot(row)
        assert snapshot["moves"] == [engine.rules.action_name(action) for action in deal.moves]
        again.load(row, snapshot)
        assert again.text(row) == text
    row = int(engine.plies().argmax())
    text = engine.text(row)
    for bad in (text.replace("blitz", "blits"), text.replace(" | ", " ", 1), text + " turn", text + " 3-4"):
        with pytest.raises(ValueError, match="line 1, column"):
            parse_deal(bad)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"seats": 9}, "seats=9"),
        ({"seats": 3}, "seats=3"),
        ({"seats": "6"}, "seats"),
        ({"seats": 5, "pairs": True}, "pairs=True needs 4 seats"),
        ({"chain": "three"}, "chain='three'.*both, one"),
        ({"hand_size": 8}, "hand_size"),
        ({"seats": 8, "hand_size": 4}, "hand_size"),
        ({"lead": "lot"}, "lead"),
        ({"memory": "peek"}, "memory"),
        ({"unknown": 1}, "no field 'unknown'"),
    ],
    ids=str,
)
def test_rules__bad_input(keywords, message):
    with pytest.raises(ValueError, match=message):
        get_rules("blitz", **keywords)
    with pytest.raises(ValueError, match=message):
        make_engine("blitz", 2, 1, **keywords)


BAD_OPTIONS = [
    ({"hands": FOUR[:3]}, "4 hands"),
    ({"hands": [*FOUR[:3], FOUR[3][:6]]}, "7 tile names"),
    ({"hands": [*FOUR[:3], [*FOUR[3][:6], "0-6"]]}, "twice"),
    ({"hands": [*FOUR[:3], [*FOUR[3][:6], "0-7"]]}, "unknown tile"),
    ({"hands": FOUR, "leader": 4}, "leader"),
    ({"hands": FOUR, "leader": 1}, "lead"),
    ({"hands": FOUR, "stock": ["0-0"]}, "stock"),
    ({"turn": 1}, "unknown option"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS, ids=str)
def test_options__bad_ones_change_nothing(options, message, fingerprint):
    engine = make_engine("blitz", 2, 24)
    engine.step(engine.sample_legal(np.random.default_rng(1)))
    state = fingerprint(engine)
    with pytest.raises(ValueError, match=message):
        engine.reset(options=options)
    with pytest.raises(ValueError, match=message):
        engine.reset(seed=5, options=[{}, options])
    with pytest.raises(ValueError, match=message):
        engine.reset_rows(np.array([1]), [options])
    assert fingerprint(engine) == state
    untouched = make_engine("blitz", 2, 24)
    untouched.step(untouched.sample_legal(np.random.default_rng(1)))
    assert future(engine) == future(untouched)


def test_deal__bad_arrays_change_nothing(fingerprint):
    """B1, B2: arrays of hands that are no deal of blitz, or whose leader the tile contradicts."""
    source = make_engine("blitz", 4, 27, seats=6)
    hands, leader = source.hands(), source.leader()
    engine = make_engine("blitz", 4, 1, seats=6)
    state = fingerprint(engine)
    bad_leader = leader.copy()
    bad_leader[3] = (bad_leader[3] + 1) % 6
    for bad in (
        (hands[:, :5], leader),
        (hands * 0, leader),
        (hands, bad_leader),
        (hands, leader + 6),
        (hands[:3], leader),
    ):
        with pytest.raises(ValueError):
            engine.deal(*bad)
        assert fingerprint(engine) == state
    engine.deal(hands, leader)
    assert [engine.text(row) for row in range(4)] == [source.text(row) for row in range(4)]
    assert np.array_equal(engine.legal(), source.legal())


def test_step__bad_actions_change_nothing(fingerprint):
    """Illegal in the midst of a turn: another seat's tile, an end that the turn did not grow, a pass before a lay."""
    engine = table_of(moves="0-0L 0-1L", chain="one")
    state = fingerprint(engine)
    for move in ("0-2R", "0-3R", "1-1L", "0-0L"):
        with pytest.raises(ValueError, match="legal are pass"):
            engine.step(np.array([engine.rules.action_index(move)]))
    for actions in ([57], [-1], [[56]], [56.0], [56, 56], None):
        with pytest.raises(ValueError):
            engine.step(np.array(actions))
    assert fingerprint(engine) == state


@pytest.mark.parametrize("other", [variant(chain="one"), variant(seats=5), variant(pairs=True)], ids=label)
def test_put__of_another_game_changes_nothing(other, fingerprint):
    """What is no part of this engine is refused before anything of it is written."""
    engine = make_engine("blitz", 3, 34)
    state = fingerprint(engine)
    for rows, part in [([0, 2], engine_of(other, 2, 1)), ([0], engine.take(np.array([1, 2]))), ([3], engine)]:
        with pytest.raises(ValueError):
            engine.put(np.array(rows), part)
        assert fingerprint(engine) == state


@pytest.mark.parametrize("change", ["leader", "move", "chain", "dealt", "over"])
def test_load__refuses_what_does_not_follow(change, fingerprint):
    engine = engine_of(variant(seats=6, chain="one"), 2, seed=28)
    rng = np.random.default_rng(28)
    for _ in range(12):
        engine.step(engine.sample_legal(rng))
    state, snapshot = fingerprint(engine), engine.snapshot(0)
    {
        "leader": lambda s: s.update(leader=(s["leader"] + 1) % 6),
        "move": lambda s: s["moves"].insert(1, s["moves"][0]),
        "chain": lambda s: s["overrides"].pop("chain"),
        "dealt": lambda s: s["dealt"][0].pop(),
        "over": lambda s: s.update(over=True),
    }[change](snapshot)
    with pytest.raises(ValueError):
        engine.load(1, snapshot)
    assert fingerprint(engine) == state


def test_reference__is_independent():
    """The second implementation imports nothing from the product, and no arrays."""
    tree = ast.parse((Path(__file__).parents[1] / "blitz_reference.py").read_text(encoding="utf-8"))
    modules = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules <= {"__future__", "random", "dataclasses", "typing"}
