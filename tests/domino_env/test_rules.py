"""One test a clause of rules.md (S, B5, K1, K2, K4), on deals small enough to be scored by hand; presets as data."""

from dataclasses import FrozenInstanceError, fields
from functools import partial

import numpy as np
import pytest

from domino_env import make_engine
from domino_env.rules import PRESETS, Rules, get_rules
from domino_env.tiles import (
    DOUBLES_MASK,
    NUM_ACTIONS,
    PASS,
    PIPS,
    SUIT_MASK,
    action_index,
    action_name,
    mask_of,
    tile_index,
    tile_name,
    tiles_of,
)
from tests.reference import GAMES, TILES, Game
from tests.twin import Twin, overrides_of, tiles_in

# Hands of two tiles from the full set: the rest is out of play, so a deal of a few moves is a whole deal.
SMALL = {"hand_size": 2, "redeal": False, "lead": "rotation"}


def played(rules, hands, moves, leader=0, **overrides):
    """Play a given deal to its end: the plain info of the deal and the rewards of the seats."""
    engine = make_engine(rules, 1, **{**SMALL, **overrides})
    engine.reset(options={"hands": [hand.split() for hand in hands], "leader": leader})
    *before, last = [action_index(move) for move in moves.split()]
    for action in before:
        rewards, done = engine.step(np.array([action]))
        assert not done[0] and not rewards.any(), f"over after {action_name(action)}"
    rewards, done = engine.step(np.array([last]))
    assert done[0]
    return engine.finished.info(0), rewards[0].tolist()


def names(mask):
    """Names of the legal actions of a mask."""
    return {action_name(int(a)) for a in np.flatnonzero(mask)}


# -------------------------------------------------------------------------------------------------------------------- S


def test_deal__28_tiles_seven_each():
    """S1: every tile is dealt once, seven to each of four seats."""
    for rules in ("sport_book", "sport_club", "puerto_rico", "kozyol"):
        hands = make_engine(rules, 500, seed=3).hands()
        assert hands.shape == (500, 4) and hands.dtype == np.uint32
        assert (np.bitwise_count(hands) == 7).all()
        assert (np.bitwise_or.reduce(hands, axis=1) == (1 << 28) - 1).all()


def test_lead__rotates_by_deals_since_the_seeded_reset():
    """S2: deal d is led by seat d mod 4, whatever happened; row i begins at i mod 4; a seeded reset begins anew."""
    engine = make_engine("sport_book", 10, seed=5)
    rng = np.random.default_rng(0)
    count = np.arange(10) % 4
    for _ in range(300):
        assert np.array_equal(engine.leader(), count % 4)
        assert np.array_equal(engine.deal_index(), count)
        _, done = engine.step(engine.sample_legal(rng))
        count += done
    assert (count > 6).all()
    engine.reset()
    assert np.array_equal(engine.leader(), (count + 1) % 4), "a reset without a seed goes on with the rotation"
    engine.reset(seed=5)
    assert np.array_equal(engine.leader(), np.arange(10) % 4)


def test_lead__each_seat_once_a_four():
    """S2: in a match the seats lead in turn, from seat 0."""
    engine = make_engine("sport_club", 6, seed=1, episode="match", fours=1)
    rng = np.random.default_rng(1)
    leaders = [[] for _ in range(6)]
    finished = np.zeros(6, bool)
    for row, leader in enumerate(engine.leader()):
        leaders[row].append(leader)
    while not finished.all():
        _, done = engine.step(engine.sample_legal(rng))
        finished |= done
        for row in engine.finished.rows:
            if not finished[row]:
                leaders[row].append(engine.leader()[row])
    assert leaders == [[0, 1, 2, 3]] * 6


def test_play__leader_lays_any_tile_others_must_match():
    """S3: any of the leader's tiles; then either end; a pass is forced and otherwise forbidden."""
    engine = make_engine("sport_book", 1, **SMALL)
    engine.reset(options={"hands": [["3-4", "0-6"], ["3-5", "4-4"], ["3-6", "2-5"], ["1-1", "1-2"]], "leader": 0})
    assert names(engine.legal()[0]) == {"3-4L", "0-6L"}
    engine.step(np.array([action_index("3-4L")]))
    assert engine.ends()[0].tolist() == [3, 4]
    assert names(engine.legal()[0]) == {"3-5L", "4-4R"}
    for wrong in ("pass", "3-5R", "4-4L", "3-6L", "3-4L"):
        with pytest.raises(ValueError):
            engine.step(np.array([action_index(wrong)]))
    engine.step(np.array([action_index("3-5L")]))
    assert engine.ends()[0].tolist() == [5, 4]
    assert names(engine.legal()[0]) == {"2-5L"}
    engine.step(np.array([action_index("2-5L")]))
    assert engine.ends()[0].tolist() == [2, 4]
    assert names(engine.legal()[0]) == {"1-2L"}
    engine.step(np.array([action_index("1-2L")]))
    assert engine.ends()[0].tolist() == [1, 4]
    assert names(engine.legal()[0]) == {"pass"}, "seat 0 holds 0-6 only"
    engine.step(np.array([PASS]))
    assert engine.to_move()[0] == 1
    assert engine.ends()[0].tolist() == [1, 4]
    assert names(engine.legal()[0]) == {"4-4R"}


def dealt(rules, rows=20_000, seed=11):
    """Hands of many first deals as lists of tiles."""
    return [[tiles_in(mask) for mask in row] for row in make_engine(rules, rows, seed=seed).hands()]


def test_redeal__five_doubles():
    """S4: nobody is left with five doubles, where the rules re-deal; four are let stand."""
    most = [max(sum(a == b for a, b in hand) for hand in hands) for hands in dealt("sport_book")]
    assert max(most) == 4
    assert max(max(sum(a == b for a, b in hand) for hand in hands) for hands in dealt("puerto_rico")) >= 5


def test_redeal__six_of_a_suit():
    """S4: nobody is left with six tiles of a suit (a double counts once); five are let stand."""

    def longest(deals):
        return max(sum(suit in tile for tile in hand) for hands in deals for hand in hands for suit in range(7))

    assert longest(dealt("sport_club")) == 5
    assert longest(dealt("puerto_rico")) >= 6


def test_redeal__same_leader():
    """S4: the deal is dealt again with the same leader, so the rotation does not move."""
    engine = make_engine("sport_book", 20_000, seed=2)
    assert np.array_equal(engine.leader(), np.arange(20_000) % 4)


def test_redeal__off_for_given_deals():
    """S4, S13: a given deal stands, whatever is in it."""
    doubles = ["0-0", "1-1", "2-2", "3-3", "4-4", "5-5", "6-6"]
    rest = [f"{a}-{b}" for a, b in TILES if a != b]
    hands = [doubles, rest[:7], rest[7:14], rest[14:]]
    engine = make_engine("sport_book", 3, seed=1)
    engine.reset(options={"hands": hands, "leader": 2})
    assert [tiles_of(mask) for mask in engine.hands()[0]] == [[tile_index(t) for t in hand] for hand in hands]
    assert engine.leader().tolist() == [2, 2, 2]


def test_end__out_with_the_last_tile():
    """S5: the deal ends the moment a seat lays its last tile."""
    info, _ = played(
        "sport_book",
        ["0-1 1-2", "6-6 5-6", "4-4 3-4", "2-6 5-5"],
        "0-1L pass pass pass 1-2R",
    )
    assert info["outcome"] == "out" and info["by"] == 0 and info["plies"] == 5


def test_end__block_is_seen_at_once():
    """S5: no round of passes when no tile of any hand matches."""
    info, _ = played("sport_book", ["1-1 6-6", "2-2 2-3", "0-0 0-2", "3-3 3-4"], "1-1L")
    assert info == {
        "outcome": "block",
        "winner": 0,
        "points": [8, 0],  # 12 + 2 against 9 + 13
        "pips_left": [12, 9, 2, 13],
        "by": 0,
        "plies": 1,
    }


def test_end__out_that_closes_the_line_is_an_out():
    """S5: the last tile closes the line too; as a block the other pair would win by 1."""
    info, rewards = played("sport_book", ["1-1 0-1", "2-2 2-3", "6-6 5-6", "3-3 3-4"], "1-1L pass pass pass 0-1L")
    assert info["outcome"] == "out" and info["winner"] == 0
    assert info["points"] == [22, 0] and rewards == [22, -22, 22, -22]
    assert info["pips_left"] == [0, 9, 23, 13]


def test_end__block_has_equal_ends_and_an_exhausted_suit():
    """S5: with all 28 tiles dealt a block needs equal ends and all seven tiles of their suit on the line."""
    engine = make_engine("puerto_rico", 256, seed=8)
    rng = np.random.default_rng(8)
    blocks = 0
    while blocks < 300:
        before, mover, ends = engine.hands(), engine.to_move(), engine.ends()
        actions = engine.sample_legal(rng)
        engine.step(actions)
        for row, outcome in zip(engine.finished.rows, engine.finished.outcome, strict=True):
            if outcome != 1:
                continue
            blocks += 1
            tile = TILES[actions[row] % 28]
            left, right = ends[row].tolist()
            if actions[row] < 28:
                left = tile[0] + tile[1] - left
            else:
                right = tile[0] + tile[1] - right
            held = {t for mask in before[row] for t in tiles_in(mask)} - {tile}
            assert left == right
            assert not any(left in t for t in held)
            assert tile in tiles_in(before[row, mover[row]])


def test_out__wins_with_more_pips_and_partner_does_not_count():
    """S6: 23 pips in the winners' hands against 17: the losers' 17 are scored, the partner's 23 are not."""
    info, rewards = played("sport_book", ["1-1 0-1", "2-2 0-2", "6-6 5-6", "2-3 3-3"], "1-1L pass pass pass 0-1L")
    assert info["winner"] == 0 and info["points"] == [17, 0] and info["pips_left"] == [0, 6, 23, 11]
    assert rewards == [17, -17, 17, -17]


def test_out__by_the_other_pair():
    """S6: seat 1 goes out; pair 1 wins, pair 0 pays."""
    info, rewards = played(
        "sport_club", ["6-6 5-6", "1-1 0-1", "2-2 0-2", "4-4 3-4"], "1-1L pass pass pass 0-1L", leader=1
    )
    assert info["by"] == 1 and info["winner"] == 1 and info["points"] == [0, 29]
    assert rewards == [-29, 29, -29, 29]


BLOCK = ["1-1 6-6", "2-2 2-3", "0-0 0-2", "3-3 3-4"]  # 14 pips against 22


@pytest.mark.parametrize(
    ("rules", "points"), [("sport_book", 8), ("sport_club", 22), ("puerto_rico", 36), ("kozyol", 22), ("tiny_pairs", 8)]
)
def test_block__fewer_pips_win(rules, points):
    """S7, K1, K2: the difference (book), the loser's total (club, kozyol), or all pips (Puerto Rico)."""
    info, rewards = played(rules, BLOCK, "1-1L", max_pip=6)
    assert info["winner"] == 0 and info["points"] == [points, 0]
    assert rewards == [points, -points, points, -points]
    turned, rewards = played(rules, BLOCK[-1:] + BLOCK[:-1], "1-1L", leader=1, max_pip=6)
    assert turned["winner"] == 1 and turned["points"] == [0, points] and turned["by"] == 1
    assert rewards == [-points, points, -points, points]


@pytest.mark.parametrize(
    ("rules", "points"),
    [("sport_book", [0, 0]), ("sport_club", [17, 17]), ("puerto_rico", [0, 0]), ("kozyol", [0, 0])],
)
def test_block__equal(rules, points):
    """S7, K1, K2: 17 pips each; nothing, or (club) both pairs are credited, which is 0 net."""
    info, rewards = played(rules, ["1-1 6-6", "2-3 0-4", "0-2 0-3", "0-0 4-4"], "1-1L")
    assert info["outcome"] == "block" and info["winner"] is None
    assert info["points"] == points and info["pips_left"] == [12, 9, 5, 8]
    assert rewards == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("rules", "lone", "points"),
    [("sport_book", 10, 27), ("sport_club", 0, 17), ("puerto_rico", 0, 40), ("kozyol", 25, 42)],
)
def test_lone_blank__loser_on_an_out(rules, lone, points):
    """S8, K2: seat 1 is left with 0-0 alone."""
    info, _ = played(rules, ["1-1 1-2", "1-3 0-0", "6-6 5-6", "4-4 4-5"], "1-1L 1-3L pass pass 1-2R")
    assert info["pips_left"] == [0, lone, 23, 17]
    assert info["winner"] == 0 and info["points"] == [points, 0]


def test_lone_blank__winner_s_partner_on_an_out():
    """S8 with K1: where the partner's pips are scored, its lone 0-0 counts as the rules say; book does not score it."""
    hands = ["1-1 1-2", "4-4 4-5", "1-3 0-0", "6-6 5-6"]
    for lone, points in ((0, 40), (25, 65)):
        info, _ = played("puerto_rico", hands, "1-1L pass 1-3L pass 1-2R", lone_blank=lone)
        assert info["pips_left"] == [0, 17, lone, 23] and info["points"] == [points, 0]
    info, _ = played("sport_book", hands, "1-1L pass 1-3L pass 1-2R")
    assert info["pips_left"] == [0, 17, 10, 23] and info["points"] == [40, 0]


@pytest.mark.parametrize(
    ("rules", "lone", "points"),
    [("sport_book", 10, [4, 0]), ("sport_club", 0, [0, 25]), ("puerto_rico", 0, [0, 44]), ("kozyol", 25, [44, 0])],
)
def test_lone_blank__decides_a_block(rules, lone, points):
    """S8: 25 pips against 19 and a lone 0-0, which turns the result over."""
    info, _ = played(rules, ["1-1 6-6", "1-2 0-0", "3-3 3-4", "5-5 4-5"], "1-1L 1-2L")
    assert info["outcome"] == "block" and info["by"] == 1 and info["pips_left"] == [12, lone, 13, 19]
    assert info["points"] == points


@pytest.mark.parametrize(
    ("rules", "lone", "points"),
    [("sport_book", 10, [0, 8]), ("sport_club", 0, [0, 25]), ("puerto_rico", 0, [0, 32]), ("kozyol", 25, [32, 0])],
)
def test_lone_blank__held_by_the_winners_of_a_block(rules, lone, points):
    """S8: the lone 0-0 counts for the pair that wins the block too: 25 against 7 and the lone 0-0."""
    info, _ = played(rules, ["1-1 6-6", "1-2 0-0", "3-3 3-4", "0-3 0-4"], "1-1L 1-2L")
    assert info["pips_left"] == [12, lone, 13, 7] and info["points"] == points


def test_lone_blank__not_alone_counts_nothing():
    """S8: 0-0 beside another tile is 0 pips."""
    info, _ = played("sport_book", BLOCK, "1-1L")
    assert info["pips_left"][2] == 2


@pytest.mark.parametrize("rules", sorted(GAMES))
def test_reward__zero_sum_once_at_the_end(rules):
    """S9: nothing before the end; then own points minus the other pair's, to all four seats at the same moment."""
    engine = make_engine(rules, 128, seed=4)
    rng = np.random.default_rng(4)
    for _ in range(120):
        rewards, _ = engine.step(engine.sample_legal(rng))
        finished = engine.finished
        assert rewards.dtype == np.float32 and rewards.shape == (128, 4)
        assert (rewards.sum(axis=1) == 0).all()
        net = finished.points[:, 0] - finished.points[:, 1]
        assert np.array_equal(rewards[finished.rows], np.stack([net, -net, net, -net], axis=1))
        rewards[finished.rows] = 0
        assert not rewards.any()


@pytest.mark.parametrize("fours", [1, 2])
def test_match__sum_of_its_fours(fours):
    """S10: a match is n fours; its running score is the sum of the points of its deals."""
    engine = make_engine("sport_club", 32, seed=6, episode="match", fours=fours)
    rng = np.random.default_rng(6)
    totals, deals, matches = np.zeros((32, 2), int), np.zeros(32, int), 0
    while matches < 100:
        assert np.array_equal(engine.score(), totals)
        _, done = engine.step(engine.sample_legal(rng))
        totals[engine.finished.rows] += engine.finished.points
        deals[engine.finished.rows] += 1
        assert np.array_equal(done, deals == 4 * fours)
        matches += done.sum()
        totals[done], deals[done] = 0, 0


# ------------------------------------------------------------------------------------------------------------- K and B5


def test_puerto_rico__out_takes_all_three_hands():
    """K1: 22 pips of the losers and 23 of the partner."""
    info, _ = played("puerto_rico", ["1-1 0-1", "2-2 2-3", "6-6 5-6", "3-3 3-4"], "1-1L pass pass pass 0-1L")
    assert info["points"] == [45, 0]


def test_puerto_rico__holder_of_double_six_leads_with_it():
    """K1, lead="double_six"; the rotation is the default."""
    engine = make_engine("puerto_rico", 400, seed=9, lead="double_six")
    rng = np.random.default_rng(9)
    for _ in range(60):
        fresh = engine.plies() == 0
        assert np.array_equal(np.flatnonzero(engine.legal()[fresh].any(axis=0)), [27] if fresh.any() else [])
        holds = engine.hands()[np.arange(400), engine.leader()] >> 27 & 1
        assert holds[fresh].all()
        engine.step(engine.sample_legal(rng))
    assert set(engine.leader()) == {0, 1, 2, 3}
    assert np.array_equal(make_engine("puerto_rico", 8, seed=9).leader(), np.arange(8) % 4)


def test_puerto_rico__a_given_leader_leads_any_tile():
    """K1 with a given leader (design.md, options)."""
    engine = make_engine("puerto_rico", 1, seed=9, lead="double_six")
    holder = int(engine.leader()[0])
    engine.reset(options={"leader": (holder + 1) % 4})
    assert engine.leader()[0] == (holder + 1) % 4 or engine.legal()[0].sum() == 7
    engine.reset(options={"leader": 3})
    assert engine.leader()[0] == 3 and engine.legal()[0].sum() == 7


def test_kozyol__first_deal_of_a_match_is_led_with_one_one():
    """K2: the holder of 1-1 leads the first deal, with it; no later deal is bound to a tile."""
    engine = make_engine("kozyol", 200, seed=10, episode="match")
    rng = np.random.default_rng(10)
    first = np.ones(200, bool)
    seen = 0
    for _ in range(250):
        fresh = engine.plies() == 0
        legal, hands, leader = engine.legal(), engine.hands(), engine.leader()
        for row in np.flatnonzero(fresh):
            if first[row]:
                assert np.flatnonzero(legal[row]).tolist() == [7]
                assert hands[row, leader[row]] >> 7 & 1
            else:
                assert legal[row].sum() == 7
                seen += 1
        _, done = engine.step(engine.sample_legal(rng))
        first[engine.finished.rows] = False
        first[done] = True
    assert seen > 200


def test_kozyol__who_leads_after_an_out_and_after_a_block():
    """K2: the seat that went out; after a block the winners' first seat clockwise from the closer; else the same."""
    engine = make_engine("kozyol", 300, seed=12, episode="match", match_to=10_000)
    rng = np.random.default_rng(12)
    kinds = {"out": 0, "own": 0, "other": 0, "equal": 0}
    for _ in range(500):
        leader = engine.leader()
        engine.step(engine.sample_legal(rng))
        for j, row in enumerate(engine.finished.rows):
            info = engine.finished.info(j)
            by = info["by"]
            if info["outcome"] == "out":
                kind, expected = "out", by
            elif info["winner"] is None:
                kind, expected = "equal", leader[row]
            elif info["winner"] == by % 2:
                kind, expected = "own", by
            else:
                kind, expected = "other", (by + 1) % 4
            kinds[kind] += 1
            assert engine.leader()[row] == expected, (kind, info)
    assert min(kinds.values()) > 10


def test_kozyol__match_to_101():
    """K2: a match ends with the deal that brings a pair to 101 or more."""
    engine = make_engine("kozyol", 64, seed=13, episode="match")
    rng = np.random.default_rng(13)
    totals, matches = np.zeros((64, 2), int), 0
    while matches < 100:
        _, done = engine.step(engine.sample_legal(rng))
        totals[engine.finished.rows] += engine.finished.points
        assert np.array_equal(done, totals.max(axis=1) >= 101)
        totals[done] = 0
        matches += done.sum()
        assert np.array_equal(engine.score(), totals)


def test_kozyol__no_redeal():
    """K2: S4 is not played."""
    assert max(max(sum(a == b for a, b in hand) for hand in hands) for hands in dealt("kozyol")) >= 5


def test_single__out():
    """B5 (pairs=False): the winner gets all other hands, each other seat loses its own."""
    info, rewards = played(
        "sport_book", ["0-1 1-2", "6-6 5-6", "4-4 3-4", "2-6 5-5"], "0-1L pass pass pass 1-2R", pairs=False
    )
    assert info["winner"] == 0 and info["points"] == [56, -23, -15, -18] == rewards


def test_single__block():
    """B5: the lowest hand takes from each other seat the difference to it."""
    info, rewards = played("sport_book", BLOCK, "1-1L", pairs=False)
    assert info["winner"] == 2 and info["points"] == [-10, -7, 28, -11] == rewards


def test_single__two_lowest_hands():
    """B5: 12, 5, 5 and 13 pips: nobody scores."""
    info, rewards = played("sport_club", ["1-1 6-6", "2-3 0-0", "0-2 0-3", "4-4 0-5"], "1-1L", pairs=False)
    assert info["winner"] is None and info["points"] == [0, 0, 0, 0] == rewards
    assert info["pips_left"] == [12, 5, 5, 13]


def test_single__two_seats():
    """K4, B5 with two seats: the loser's pips go over to the winner."""
    info, rewards = played("sport_book", ["0-1 1-2", "6-6 5-6"], "0-1L pass 1-2R", pairs=False, seats=2)
    assert info["winner"] == 0 and info["points"] == [23, -23] == rewards
    assert info["plies"] == 3


def test_small_set__keeps_tile_numbers():
    """K4: tiny_pairs deals two tiles each of the ten of the double-three set, under the double-six numbers."""
    engine = make_engine("tiny_pairs", 2_000, seed=14)
    numbers = {number for number, (_, high) in enumerate(TILES) if high <= 3}
    hands = engine.hands()
    assert (np.bitwise_count(hands) == 2).all()
    assert (np.bitwise_count(np.bitwise_or.reduce(hands, axis=1)) == 8).all(), "two tiles are left over"
    assert set(tiles_of(np.bitwise_or.reduce(hands, axis=None))) == numbers
    assert engine.legal().shape == (2_000, 57)


# -------------------------------------------------------------------------------------------------------- rules as data


@pytest.mark.parametrize("name", sorted(GAMES))
def test_preset__is_what_the_clauses_say(name):
    """Each field of a preset against the reference's own table."""
    rules, game = get_rules(name), GAMES[name]
    for field in fields(Game):
        assert getattr(rules, field.name) == getattr(game, field.name), field.name
    assert rules.leftover == len(game.tiles) - game.seats * game.hand_size
    assert rules.num_tiles == len(game.tiles) == len(rules.tiles)
    assert [TILES[t] for t in rules.tiles] == game.tiles
    assert rules.overrides() == {}


def test_presets__are_the_eight():
    assert set(PRESETS) == {*GAMES, "blitz", "blind_blitz", "blind"}


def test_rules__overrides_and_sides():
    rules = get_rules("kozyol", pairs=False, lone_blank=3)
    assert rules.overrides() == {"pairs": False, "lone_blank": 3}
    assert rules.num_sides == 4 and [rules.side_of(s) for s in range(4)] == [0, 1, 2, 3]
    pairs = get_rules("kozyol")
    assert pairs.num_sides == 2 and [pairs.side_of(s) for s in range(4)] == [0, 1, 0, 1]
    assert overrides_of(Game("sport_book", lone_blank=10, redeal=True, max_pip=5, hand_size=3)) == {
        "max_pip": 5,
        "hand_size": 3,
    }
    with pytest.raises(FrozenInstanceError):
        pairs.seats = 2


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"seats": 8, "hand_size": 7}, "8"),
        ({"seats": 3, "pairs": False}, "3"),
        ({"seats": 0}, "0"),
        ({"seats": 2}, "pairs"),
        ({"hand_size": 8}, "8"),
        ({"hand_size": 0}, "0"),
        ({"hand_size": 7, "max_pip": 5}, "7"),
        ({"max_pip": 7}, "7"),
        ({"max_pip": 1, "hand_size": 1}, "1"),
        ({"hand_size": 7.0}, "7.0"),
        ({"hand_size": "7"}, "'7'"),
        ({"seats": True}, "True"),
        ({"lone_blank": -1}, "-1"),
        ({"lone_blank": 10**30}, "1000"),
        ({"lead": "loser"}, "rotation"),
        ({"block_score": "sum"}, "difference"),
        ({"equal_block": "half"}, "credit"),
        ({"out_score": "all"}, "losers"),
        ({"pairs": 1}, "1"),
        ({"redeal": "yes"}, "yes"),
        ({"labelled_ends": None}, "None"),
        ({"match_to": 0}, "0"),
        ({"match_to": "101"}, "101"),
        ({"lead": "double_six", "max_pip": 5, "hand_size": 5}, "double_six"),
        ({"lead": "double_six", "hand_size": 6}, "double_six"),
        ({"lead": "winner", "hand_size": 6}, "winner"),
        ({"tiles": 28}, "tiles"),
        ({"name": "mine"}, "name"),
        ({"hand_sise": 7}, "hand_sise"),
    ],
)
def test_rules__impossible(overrides, said):
    """What cannot be played is refused, and the message says what was given or may be given."""
    for make in (get_rules, partial(make_engine, num_envs=4)):
        with pytest.raises(ValueError) as error:
            make("sport_book", **overrides)
        assert said in str(error.value)


def test_rules__unknown_name():
    for make in (get_rules, make_engine):
        with pytest.raises(ValueError, match=r"sport_bok.*sport_book"):
            make("sport_bok")
        with pytest.raises(ValueError):
            make(7)
    for name in ("mine", "", None):  # texts, snapshots and checkpoints name the preset and what differs from it
        with pytest.raises(ValueError, match=r"name=.*sport_book"):
            Rules(name=name)


# ---------------------------------------------------------------------------------------------------- tiles and actions


def test_tiles__numbers_pips_suits():
    """The head of rules.md: 0-0, 0-1, … 0-6, 1-1, … 6-6."""
    assert [tile_name(t) for t in range(28)] == [f"{a}-{b}" for a, b in TILES]
    assert [tile_index(f"{b}-{a}") for a, b in TILES] == list(range(28))
    assert PIPS.tolist() == [a + b for a, b in TILES] and PIPS.sum() == 168
    for suit in range(7):
        assert tiles_of(SUIT_MASK[suit]) == [t for t, tile in enumerate(TILES) if suit in tile]
    assert tiles_of(DOUBLES_MASK) == [t for t, (a, b) in enumerate(TILES) if a == b]
    assert mask_of([0, 27]) == 1 | 1 << 27
    for bad in ("7-0", "0-7", "00", "0", "", "0 -1", "0-1 ", None, 3):
        with pytest.raises(ValueError):
            tile_index(bad)
    for bad in (-1, 28, 1.0, "0-1", None, True):
        with pytest.raises(ValueError, match=r"0\.\.27"):
            tile_name(bad)


def test_actions__ids_and_names():
    """design.md: 0..27 left, 28..55 right, 56 pass."""
    assert NUM_ACTIONS == 57 and PASS == 56
    texts = [action_name(a) for a in range(57)]
    assert texts == [f"{a}-{b}L" for a, b in TILES] + [f"{a}-{b}R" for a, b in TILES] + ["pass"]
    assert [action_index(text) for text in texts] == list(range(57))
    assert action_index("4-3R") == action_index("3-4R")
    for bad in ("3-4", "3-4l", "L", "PASS", "pass ", "3-4LR", "", None, 5):
        with pytest.raises(ValueError):
            action_index(bad)
    for bad in (-1, 57, 1.0, "pass", None, True):
        with pytest.raises(ValueError, match=r"0\.\.56"):
            action_name(bad)


# --------------------------------------------------------------------------------------- engine and reference, in short


@pytest.mark.parametrize("name", sorted(GAMES))
def test_chain__first_tile_and_equal_ends(name):
    """design.md: the first a-b opens a on the left and b on the right; equal ends are played by left ids only."""
    twin = Twin(GAMES[name], 64, seed=15)
    for _ in range(60):
        legal, ends = twin.engine.legal(), twin.engine.ends()
        fresh = twin.engine.plies() == 0
        closed = fresh | (ends[:, 0] == ends[:, 1])
        assert not legal[closed, 28:56].any()
        twin.step()


def test_title__the_preset_and_what_differs_from_it():
    assert get_rules("sport_book").title == "sport_book"
    assert get_rules("sport_book", lone_blank=3, redeal=False).title == "sport_book lone_blank=3 redeal=False"
    assert get_rules("blitz", seats=6).title == "blitz seats=6"  # the hand follows the seats
