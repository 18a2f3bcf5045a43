"""The belief by the rules alone: equal to brute force by replaying the game with every deal there could be.

The brute force knows nothing of voids, blocks or lowest tiles: it deals out all deals of the tiles that a viewer does
not see, and keeps those with which the engine plays the same public moves and the deal goes on (S3, S5, B2, B4), and in
which no hand was to be dealt again (S4).
"""

import dataclasses
from functools import cache
from math import factorial

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings, strategies as st

from agents.search.beliefs import RulesBelief, world_marginals
from agents.search.position import Position, position_at, position_from
from domino_env import get_rules
from domino_env.deals import row_keys, struck
from domino_env.line import LineEngine
from domino_env.tiles import DOUBLES_MASK, HIGH, LOW, NUM_TILES, PASS, PIPS, SUIT_MASK, mask_of, tile_index, tiles_of

SPORT = get_rules("sport_book")
TINY = get_rules("tiny_pairs")
BITS = np.arange(NUM_TILES, dtype=np.uint32)


def play(rules, seed: int, plies: int, n: int = 1, hands=None, leader=None) -> LineEngine:
    """Tables after so many random moves; rows whose deals would be over by then are played anew, with other moves."""
    rng = np.random.default_rng(seed)
    engine = LineEngine(rules, n, seed)
    if hands is not None:
        engine.deal(hands, leader)
    start = engine.take(np.arange(n))
    wanted = np.full(n, True)
    for _ in range(1000):
        going = start.take(np.flatnonzero(wanted))
        alive = np.full(going.num_envs, True)
        rows = np.flatnonzero(wanted)
        for _ in range(plies):
            _, done = going.step(going.sample_legal(rng), autoreset=False)
            alive &= ~done
            if not alive.any():
                break
            going, rows, alive = going.take(np.flatnonzero(alive)), rows[alive], alive[alive]
        if alive.any():
            engine.put(rows, going)
            wanted[rows] = False
        if not wanted.any():
            return engine
        if hands is None:
            start.reset_rows(np.flatnonzero(wanted))
    raise AssertionError("no such play")


def assignments(hidden: int, sizes: list[int]) -> np.ndarray:
    """All ways to give the tiles of a mask to groups of these sizes: (M, groups) uint32."""
    ways = np.zeros((1, len(sizes)), np.uint32)
    for tile in tiles_of(hidden):
        more = []
        for group, size in enumerate(sizes):
            fits = ways[np.bitwise_count(ways[:, group]) < size].copy()
            fits[:, group] |= np.uint32(1 << tile)
            more.append(fits)
        ways = np.concatenate(more)
    return ways


def ways(position: Position) -> int:
    """In how many ways the hidden tiles of a position of one row fill the hands and the tiles left over."""
    sizes = [int(size) for seat, size in enumerate(position.sizes[0]) if seat != position.viewer[0]]
    count = factorial(int(np.bitwise_count(position.hidden)[0])) // factorial(position.rules.leftover)
    for size in sizes:
        count //= factorial(size)
    return count


def brute(position: Position, redeal: bool) -> np.ndarray:
    """All hands that fit a position of one row, by replaying its events: (M, seats) uint32."""
    rules, viewer = position.rules, int(position.viewer[0])
    sizes = [0 if seat == viewer else int(size) for seat, size in enumerate(position.sizes[0])]
    hands = assignments(int(position.hidden[0]), [*sizes, rules.leftover])[:, :-1]
    if viewer >= 0:
        hands[:, viewer] = position.own[0]
    dealt = hands | position.played[0]
    if redeal:
        doubles = np.bitwise_count(dealt & np.uint32(DOUBLES_MASK)) >= 5
        of_suit = np.bitwise_count(dealt[..., None] & SUIT_MASK) >= 6
        dealt = dealt[~(doubles | of_suit.any(axis=2)).any(axis=1)]
    if not len(dealt):
        return dealt
    engine = LineEngine(rules, len(dealt), 0)
    engine.deal(dealt, None if rules.lead == "low" else np.full(len(dealt), position.leader[0]))
    fits = engine.leader() == position.leader[0]
    if rules.lead == "double_six" and position.ends[0, 0] < 0:
        fits &= dealt[:, position.leader[0]] >> np.uint32(27) == 1
    for event in position.events[0]:
        if event < 0 or not fits.any():
            break
        rows = np.flatnonzero(fits)
        engine, action = engine.take(rows), int(event & 63)
        legal = engine.legal_bits() >> np.uint64(action) & np.uint64(1) == 1
        if not legal.any():
            return dealt[:0]
        dealt, engine = dealt[rows][legal], engine.take(np.flatnonzero(legal))
        _, done = engine.step(np.full(len(dealt), action), autoreset=False)
        fits = ~done
    return dealt[fits] & ~position.played[0]


def check(position: Position, redeal: bool | None = None) -> tuple[RulesBelief, np.ndarray]:
    """Compare a belief about one row with brute force in all that it says."""
    rules = position.rules
    belief = RulesBelief(position, redeal)
    hands = brute(position, rules.redeal if redeal is None else redeal)
    count = len(hands)
    assert count and belief.total()[0] == pytest.approx(count, rel=1e-12)
    assert belief.entropy()[0] == pytest.approx(np.log2(count), abs=1e-12)
    held = (hands[:, :, None] >> BITS & 1).mean(axis=0)
    deck = np.uint32(mask_of(rules.tiles)) & ~np.bitwise_or.reduce(position.played[0])
    nobody = (deck & ~np.bitwise_or.reduce(hands, axis=1))[:, None] >> BITS & 1
    expected = np.concatenate([held, nobody.mean(axis=0)[None]])
    np.testing.assert_allclose(belief.marginals()[0], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(belief.holds()[0], (hands[:, :, None] & SUIT_MASK != 0).mean(axis=0), rtol=0, atol=1e-12)
    # What `log2_probability` calls possible is exactly what brute force finds.
    sizes = [0 if seat == position.viewer[0] else int(size) for seat, size in enumerate(position.sizes[0])]
    every = assignments(int(position.hidden[0]), [*sizes, rules.leftover])[:, :-1]
    if position.viewer[0] >= 0:
        every[:, position.viewer[0]] = position.own[0]
    if len(every) <= 3000:
        many = RulesBelief(position.take(np.zeros(len(every), np.int64)), redeal)
        fits = many.log2_probability(every) > -np.inf
        assert {tuple(row) for row in every[fits]} == {tuple(row) for row in hands}
        np.testing.assert_allclose(many.log2_probability(every)[fits], -np.log2(count), rtol=0, atol=1e-12)
    return belief, hands


# -- against brute force --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_tiny_pairs__every_viewer_and_ply__brute_force(seed):
    for plies in range(0 if seed < 1 else 2, 7):
        try:
            engine = play(TINY, seed, plies)
        except AssertionError:
            break
        for viewer in range(-1, 4):
            check(position_at(engine, viewer))


SMALL = [
    ("tiny_pairs", {"seats": 2, "pairs": False, "max_pip": 2}, 1),
    ("tiny_pairs", {"seats": 2, "pairs": False, "hand_size": 4}, 4),
    ("tiny_pairs", {"max_pip": 4, "hand_size": 3}, 7),
    ("tiny_pairs", {"max_pip": 4, "hand_size": 3, "labelled_ends": True}, 6),
    ("puerto_rico", {}, 18),
    ("kozyol", {}, 19),
    ("sport_book", {}, 18),
    ("sport_club", {}, 21),
    ("blitz", {}, 20),
    ("blitz", {"chain": "one"}, 20),
    ("blitz", {"seats": 5}, 20),
    ("blitz", {"seats": 8}, 22),
    ("blitz", {"seats": 4, "hand_size": 2, "max_pip": 3}, 1),
    ("blitz", {"seats": 5, "hand_size": 2, "max_pip": 4}, 4),
    ("blitz", {"seats": 6, "hand_size": 1, "max_pip": 3}, 0),
]


@pytest.mark.parametrize(("name", "fields", "plies"), SMALL, ids=str)
def test_late_and_small_positions__brute_force(name, fields, plies):
    rules = get_rules(name, **fields)
    for seed in range(3):
        engine = play(rules, seed, plies)
        for viewer in sorted({int(engine.to_move()[0]), (seed + 1) % rules.seats, -1}):
            position = position_at(engine, viewer)
            if ways(position) <= 20_000:
                check(position)


@pytest.mark.parametrize("viewer", range(-1, 4))
def test_blitz_before_the_lead__leader_holds_the_lowest_tile_dealt__b2(viewer):
    rules = get_rules("blitz", hand_size=2, max_pip=3)
    for seed in range(4):
        position = position_at(LineEngine(rules, 1, seed), viewer)
        belief, _ = check(position)
        left = belief.marginals()[0, -1]
        if viewer >= 0:
            leader = int(position.leader[0])
            below = [
                t for t in tiles_of(int(position.hidden[0])) if rank(t) < min(map(rank, tiles_of(position.own[0])))
            ]
            if viewer == leader:
                assert (left[below] == 1).all()
            else:
                assert sum(belief.marginals()[0, leader, below]) > 0


def rank(tile: int) -> tuple[int, int]:
    return int(PIPS[tile]), int(LOW[tile])


def test_blitz_after_the_lead__tiles_below_the_one_that_led__nobody_has__b2():
    rules = get_rules("blitz", seats=8)
    engine = play(rules, 3, 1, n=200)
    position = position_at(engine)
    marginals = RulesBelief(position).marginals()
    count = 0
    for row in range(200):
        for tile in tiles_of(int(position.hidden[row])):
            if rank(tile) < rank(int(position.events[row, 0]) & 63):
                assert marginals[row, -1, tile] == 1
                count += 1
    assert count > 20
    bare = dataclasses.replace(position, events=None)  # the lowest tile on the line is the one that led
    np.testing.assert_array_equal(RulesBelief(bare).marginals(), marginals)


@pytest.mark.parametrize("rules", [TINY, get_rules("blitz", hand_size=2, max_pip=3)], ids=["line", "blitz"])
def test_all_passed_since_the_last_lay__somebody_can_play__s5_b4(rules):
    """The viewer cannot play, nobody since the last lay could, and the deal goes on: a hand that is left can."""
    bound = 0
    for seed in range(300):
        engine = play(rules, seed, 3)
        position = position_at(engine)
        if engine.legal_bits()[0] != 1 << PASS:
            continue
        _, hands = check(position)
        reach = SUIT_MASK[position.ends[0, 0]] | SUIT_MASK[position.ends[0, 1]]
        sizes = position.sizes[0] * (np.arange(4) != position.viewer[0])
        every = assignments(int(position.hidden[0]), [*sizes.tolist(), rules.leftover])[:, :-1]
        may = [~np.bitwise_or.reduce(SUIT_MASK[[k for k in range(7) if v >> k & 1]]) for v in position.voids[0]]
        free = every[(every & ~np.array(may, np.uint32) == 0).all(axis=1)]
        bound += len(hands) < len(free)
        assert ((hands & reach) != 0).any(axis=1).all()
        if bound == 3:
            return
    raise AssertionError("the condition never bound")


# -- S4 -------------------------------------------------------------------------------------------------------------


def names(text: str) -> int:
    return mask_of(tile_index(name) for name in text.split())


def long_deals(n: int, seed: int) -> np.ndarray:
    """Deals with a seat that is long in a suit or has many doubles: (n, 4) uint32."""
    rng = np.random.default_rng(seed)
    weight = np.zeros((n, 4, NUM_TILES))
    suits = np.array([rng.permutation(7)[:4] for _ in range(n)])
    for seat in range(4):
        weight[:, seat] = (SUIT_MASK[suits[:, seat], None] >> BITS & 1) * 1.6 + rng.random((n, NUM_TILES))
    weight[:, 0] += (np.uint32(DOUBLES_MASK) >> BITS & 1) * 1.5 * (rng.random((n, 1)) < 0.5)
    hands = np.zeros((n, 4), np.uint32)
    for row in range(n):
        left = set(range(NUM_TILES))
        for number in range(NUM_TILES):
            seat = number % 4
            tile = max(left, key=lambda t: weight[row, seat, t])
            left.remove(tile)
            hands[row, seat] |= np.uint32(1 << tile)
    return hands


@cache
def sharp_positions() -> list[Position]:
    """Late positions, one row each, in which S4 leaves out some deals."""
    hands = long_deals(600, 1)
    hands = hands[~struck(hands.copy())]
    engine = play(SPORT, 2, 17, n=len(hands), hands=hands, leader=np.arange(len(hands)) % 4)
    found = []
    for shift in (0, 1, 2, 3, None):
        viewer = np.full(len(hands), -1) if shift is None else (engine.to_move() + shift) % 4
        position = position_at(engine, viewer)
        small = np.bitwise_count(position.hidden) <= (9 if shift is None else 11)
        with_it, without = RulesBelief(position), RulesBelief(position, redeal=False)
        binds = np.flatnonzero(small & (with_it.total() < without.total()))
        found += [position.take(binds[i : i + 1]) for i in range(min(len(binds), 6))]
    return found


def test_redeal__a_condition_that_binds__brute_force__s4():
    positions = sharp_positions()
    assert len(positions) >= 20
    for position in positions:
        check(position)


ZONES = (SUIT_MASK[6], SUIT_MASK[5], SUIT_MASK[4], np.uint32((1 << NUM_TILES) - 1))


def test_redeal__two_and_three_seats_struck_at_once__inclusion_and_exclusion__s4():
    """Deals in which several hidden seats are struck are taken out once, not once for each."""
    dealt = [  # six of suit 6, of 5 and of 4; no seat but the last is one that S4 would let be
        names("0-6 1-6 2-6 3-6 4-6 6-6 0-0"),
        names("0-5 1-5 2-5 3-5 5-6 5-5 1-1"),
        names("0-4 1-4 2-4 3-4 4-5 4-4 2-2"),
        names("0-1 0-2 0-3 1-2 1-3 2-3 3-3"),
    ]
    rules = get_rules("puerto_rico", hand_size=7)
    several = {2: 0, 3: 0}
    for laid, viewer in ((4, 3), (5, 3), (5, -1)):
        played = np.array([[mask_of(tiles_of(hand & int(suit))[:laid]) for hand, suit in zip(dealt, ZONES)]], np.uint32)
        hands = np.array([dealt], np.uint32) & ~played
        position = Position(
            rules,
            np.array([viewer]),
            hands[:, viewer] if viewer >= 0 else np.zeros(1, np.uint32),
            played,
            np.array([[0, 1, 0, 1 << 6]], np.uint8),
            np.bitwise_count(hands).astype(np.int64),
            np.full((1, 2), -1),
            np.zeros(1, np.int64),
            np.zeros(1, np.int64),
        )
        sizes = [0 if seat == viewer else int(size) for seat, size in enumerate(position.sizes[0])]
        every = assignments(int(position.hidden[0]), sizes)
        if viewer >= 0:
            every[:, viewer] = position.own[0]
        void = np.array([0, SUIT_MASK[0], 0, SUIT_MASK[6]]) * (np.arange(4) != viewer)
        every = every[(every & void == 0).all(axis=1)]
        bad = sum(struck((every | played)[:, [seat]].copy()).astype(int) for seat in range(4) if seat != viewer)
        for number in several:
            several[number] += int((bad >= number).sum())
        fine = every[bad == 0]
        belief = RulesBelief(position, redeal=True)
        assert len(fine) and belief.redeal.all() and belief.total()[0] == len(fine)
        held, suits = fine[:, :, None] >> BITS & 1, fine[:, :, None] & SUIT_MASK != 0
        np.testing.assert_allclose(belief.marginals()[0, :4], held.mean(axis=0), rtol=0, atol=1e-12)
        np.testing.assert_allclose(belief.holds()[0], suits.mean(axis=0), rtol=0, atol=1e-12)
    assert several[2] > 100 and several[3] > 10


def test_redeal__small_set_with_tiles_left_over__brute_force__s4():
    rules = get_rules("tiny_pairs", seats=2, pairs=False, max_pip=5, hand_size=7, redeal=True)
    for plies in (0, 2):
        engine = play(rules, 4, plies)
        belief, hands = check(position_at(engine))
        assert belief.total()[0] < RulesBelief(position_at(engine), redeal=False).total()[0]
        assert belief.total()[0] == len(hands)


def test_redeal__public_before_the_lead__shuffles_struck__s4():
    """1.89 % of shuffles are struck: the count of all deals against the shuffle, within four standard errors."""
    position = position_at(LineEngine(SPORT, 1, 0), -1)
    struck_part = 1 - RulesBelief(position).total()[0] / RulesBelief(position, redeal=False).total()[0]
    engine = LineEngine("sport_book", 200_000, 5, redeal=False)
    found = struck(engine.hands()).mean()
    assert abs(struck_part - found) < 4 * np.sqrt(found * (1 - found) / 200_000)


def test_redeal__what_is_known_is_struck__deals_were_given():
    hands = np.array(
        [
            [
                names("0-6 1-6 2-6 3-6 4-6 5-6 0-0"),
                names("0-1 0-2 0-3 0-4 0-5 1-1 1-2"),
                names("1-3 1-4 1-5 2-2 2-3 2-4 2-5"),
                names("3-3 3-4 3-5 4-4 4-5 5-5 6-6"),
            ]
        ],
        np.uint32,
    )
    engine = LineEngine(SPORT, 1, 0)
    engine.deal(hands, np.zeros(1, np.int64))
    own = RulesBelief(position_at(engine, 0))
    assert not own.redeal[0] and own.total()[0] == 399_072_960
    other = RulesBelief(position_at(engine, 1))
    assert other.redeal[0] and other.total()[0] < 399_072_960
    assert other.log2_probability(hands)[0] == -np.inf


def test_redeal__every_deal_is_struck__deals_were_given():
    """Three tiles are left, and whoever holds them has six of a suit: the belief does not break off a given deal."""
    dealt = [
        names("0-6 1-6 2-6 3-6 4-6 5-6 0-0"),
        names("0-1 0-2 0-3 0-4 0-5 1-1 1-2"),
        names("1-3 1-4 1-5 2-2 2-3 2-4 2-5"),
        names("3-3 3-4 3-5 4-4 4-5 5-5 6-6"),
    ]
    hands = np.array([[names("5-6"), names("0-1"), names("1-3"), names("6-6")]], np.uint32)
    position = Position(
        SPORT,
        np.array([2]),
        hands[:, 2],
        np.array([dealt], np.uint32) & ~hands,
        np.array([[0, 1 << 6, 0, 0]], np.uint8),
        np.ones((1, 4), np.int64),
        np.array([[1, 5]]),
        np.zeros(1, np.int64),
        np.full(1, 2),
    )
    belief = RulesBelief(position)
    assert not belief.redeal[0] and belief.total()[0] == 2
    assert belief.log2_probability(hands)[0] == -1


# -- what must hold everywhere ----------------------------------------------------------------------------------------

GAMES = [
    ("sport_book", {}),
    ("sport_club", {}),
    ("puerto_rico", {}),
    ("kozyol", {}),
    ("tiny_pairs", {}),
    ("sport_book", {"hand_size": 6}),
    ("sport_book", {"seats": 2, "pairs": False}),
    ("blitz", {}),
    ("blitz", {"seats": 5}),
    ("blitz", {"seats": 6, "chain": "one"}),
    ("blitz", {"seats": 8}),
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(GAMES), st.integers(0, 10**6), st.integers(0, 20), st.integers(-1, 7))
def test_any_game__truth_fits__sums_bounds_voids_and_worlds(game, seed, plies, viewer):
    rules = get_rules(game[0], **game[1])
    rng = np.random.default_rng(seed)
    engine = LineEngine(rules, 6, seed)
    for _ in range(plies):
        following = engine.take(np.arange(6))
        _, done = following.step(engine.sample_legal(rng), autoreset=False)
        if done.any():
            break
        engine = following
    viewers = np.full(6, viewer) if viewer < 0 else (viewer + np.arange(6)) % rules.seats
    if viewer < 0 and rules.seats > 5 and plies == 0:
        viewers[:] = 0
    position, hands = position_at(engine, viewers), engine.hands()
    belief = RulesBelief(position)
    assert np.isinf(belief.ess).all() and (belief.total() >= 1 - 1e-9).all()
    np.testing.assert_allclose(belief.log2_probability(hands), -belief.entropy(), rtol=0, atol=1e-12)
    marginals, holds = belief.marginals(), belief.holds()
    assert marginals.min() >= 0 and marginals.max() <= 1 and holds.min() >= 0 and holds.max() <= 1
    np.testing.assert_allclose(marginals[:, :-1].sum(axis=2), position.sizes, atol=1e-9)
    np.testing.assert_allclose(marginals[:, -1].sum(axis=1), rules.leftover, atol=1e-9)
    unseen = (position.hidden | position.own)[:, None] >> BITS & 1
    np.testing.assert_allclose(marginals.sum(axis=1), unseen, atol=1e-9)
    has = SUIT_MASK >> BITS[:, None] & 1  # (28, 7)
    assert (holds <= (marginals[:, :-1] @ has) + 1e-9).all()
    assert (holds >= (marginals[:, :-1, :, None] * has).max(axis=2) - 1e-9).all()
    void = (position.voids[:, :, None] >> np.arange(7) & 1).astype(bool)
    void[np.arange(6)[viewers >= 0], viewers[viewers >= 0]] = False
    assert (holds[void] == 0).all()
    worlds = belief.sample(20, row_keys(seed, np.arange(6)))
    assert worlds.dtype == np.uint32
    for world in range(20):
        assert (belief.log2_probability(worlds[:, world]) > -np.inf).all()


def relabelled(position: Position, suit: np.ndarray) -> tuple[Position, np.ndarray]:
    """The position with suit k called suit[k], and the new number of each tile."""
    pair = {(int(low), int(high)): t for t, (low, high) in enumerate(zip(LOW, HIGH, strict=True))}
    tile = np.array([pair[tuple(sorted((suit[LOW[t]], suit[HIGH[t]])))] for t in range(NUM_TILES)])

    def masks(old):
        return ((old[..., None] >> BITS & 1) << tile.astype(np.uint32)).sum(axis=-1, dtype=np.uint32)

    voids = ((position.voids[..., None] >> np.arange(7) & 1) << suit).sum(axis=-1).astype(np.uint8)
    ends = np.where(position.ends >= 0, suit[np.maximum(position.ends, 0)], -1)
    named = dataclasses.replace(
        position, own=masks(position.own), played=masks(position.played), voids=voids, ends=ends, events=None
    )
    return named, tile


def test_suits_relabelled__same_belief():
    """The rules of the sport games know no suit from another (S3, S4); in blitz the order of tiles decides (B2)."""
    rng = np.random.default_rng(0)
    for plies in (1, 6, 12):
        position = position_at(play(SPORT, plies, plies, n=20))
        belief, suit = RulesBelief(position), rng.permutation(7)
        other, tile = relabelled(position, suit)
        named = RulesBelief(other)
        np.testing.assert_allclose(named.total(), belief.total(), rtol=1e-12)
        np.testing.assert_allclose(named.marginals()[:, :, tile], belief.marginals(), atol=1e-12)
        np.testing.assert_allclose(named.holds()[:, :, suit], belief.holds(), atol=1e-12)
    blitz = position_at(play(get_rules("blitz", seats=5), 1, 1))
    with pytest.raises(ValueError, match="no deal fits what row 0 says"):
        RulesBelief(relabelled(blitz, np.arange(7)[::-1])[0])


@pytest.mark.parametrize(("name", "plies"), [("sport_book", 8), ("sport_book", 14), ("tiny_pairs", 3), ("blitz", 5)])
def test_calibration__true_owners_as_often_as_believed(name, plies):
    """The sum of P(true owner) over the hidden tiles, less its expectation, has mean 0 over deals.

    Each deal is weighted by how many moves the others could choose from at each of their plies: random play is then
    as if every hand that could make these moves were as likely as any other. One position a deal.
    """
    rules, n = get_rules(name), 6000
    rng = np.random.default_rng(11)
    engine, weight = LineEngine(rules, n, 3), np.ones((n, rules.seats))
    for _ in range(plies):
        mover = engine.to_move()
        weight[np.arange(engine.num_envs), mover] *= engine.legal_count()
        _, done = engine.step(engine.sample_legal(rng), autoreset=False)
        going = np.flatnonzero(~done)
        engine, weight = engine.take(going), weight[going]
    position, hands = position_at(engine), engine.hands()
    weight[np.arange(len(weight)), position.viewer] = 1
    weights = weight.prod(axis=1)
    marginals = RulesBelief(position).marginals()
    held = hands[:, :, None] >> BITS & 1
    nobody = position.hidden & ~np.bitwise_or.reduce(hands, axis=1)
    owners = np.concatenate([held, (nobody[:, None] >> BITS & 1)[:, None]], axis=1)
    score = ((owners - marginals) * marginals).sum(axis=(1, 2)) * weights / weights.mean()
    error = score.std() / np.sqrt(len(score))
    assert len(score) > 1000 and abs(score.mean()) < 4 * error
    assert error < 0.1 * (marginals * (1 - marginals)).sum(axis=(1, 2)).mean()


# -- the sampler ------------------------------------------------------------------------------------------------------


def sampled_evenly(position: Position, seed: int, worlds: int = 40_000) -> None:
    hands = brute(position, position.rules.redeal)
    assert 2 <= len(hands) <= 2000
    drawn = RulesBelief(position).sample(worlds, row_keys(seed, np.zeros(1)))[0]
    number = {tuple(row): i for i, row in enumerate(hands.tolist())}
    counts = np.bincount([number[tuple(row)] for row in drawn.tolist()], minlength=len(hands))
    chi2 = ((counts - worlds / len(hands)) ** 2 / (worlds / len(hands))).sum()
    freedom = len(hands) - 1
    assert abs(chi2 - freedom) < 5 * np.sqrt(2 * freedom) + 5


@pytest.mark.parametrize(("name", "fields", "plies", "viewer"), [
    ("tiny_pairs", {}, 4, 0),
    ("tiny_pairs", {}, 3, 1),
    ("sport_book", {}, 19, 2),
    ("blitz", {"hand_size": 2, "max_pip": 3}, 0, 1),
    ("blitz", {"hand_size": 2, "max_pip": 3}, 0, 2),
    ("blitz", {"hand_size": 2, "max_pip": 3}, 3, 0),
])  # fmt: skip
def test_sample__every_deal_as_often(name, fields, plies, viewer):
    sampled_evenly(position_at(play(get_rules(name, **fields), 1, plies), viewer), seed=4)


def test_sample__under_a_condition_that_binds__every_deal_as_often__s4_s5():
    for position in sharp_positions()[:4]:
        sampled_evenly(position, seed=5)
    for seed in range(300):
        engine = play(TINY, seed, 3)
        position = position_at(engine)
        if engine.legal_bits()[0] == 1 << PASS:
            free = RulesBelief(dataclasses.replace(position, ends=np.full((1, 2), -1)))
            if free.total()[0] > RulesBelief(position).total()[0] > 1:
                sampled_evenly(position, seed=6)
                return
    raise AssertionError("the condition never bound")


def test_sample__a_world_is_its_keys_and_numbers__whatever_the_batch():
    position = position_at(play(SPORT, 8, 6, n=50))
    keys = row_keys(9, np.arange(50))
    worlds = RulesBelief(position).sample(40, keys)
    np.testing.assert_array_equal(RulesBelief(position).sample(10, keys, start=30), worlds[:, 30:])
    np.testing.assert_array_equal(RulesBelief(position).sample(7, keys), worlds[:, :7])
    rows = np.array([31, 4, 4])
    np.testing.assert_array_equal(RulesBelief(position.take(rows)).sample(40, keys[rows]), worlds[rows])
    assert len({tuple(world) for world in worlds[0].tolist()}) == 40
    assert (worlds[0] != RulesBelief(position.take(np.zeros(1, np.int64))).sample(40, keys[1:2])[0]).any()


def test_sample__many_rows__threads_change_nothing(monkeypatch):
    from agents.search import beliefs

    position = position_at(play(SPORT, 8, 6, n=300))
    keys = row_keys(2, np.arange(300))
    belief = RulesBelief(position)
    expected = belief.sample(3, keys), belief.marginals(), belief.holds()
    monkeypatch.setattr(beliefs, "_SPREAD", 1)
    belief = RulesBelief(position)
    for one, other in zip(expected, (belief.sample(3, keys), belief.marginals(), belief.holds()), strict=True):
        np.testing.assert_array_equal(one, other)


def test_sample__scrambled_truth__same_worlds():
    """Nothing that the viewer cannot see enters: other hidden hands, same worlds."""
    engine = play(SPORT, 8, 0, n=30)
    position = position_at(engine)
    worlds = RulesBelief(position).sample(5, row_keys(1, np.arange(30)))
    other = LineEngine(SPORT, 30, 0)
    other.deal(RulesBelief(position).sample(1, row_keys(7, np.arange(30)))[:, 0], engine.leader())
    again = RulesBelief(position_at(other)).sample(5, row_keys(1, np.arange(30)))
    np.testing.assert_array_equal(again, worlds)


# -- helpers and errors -----------------------------------------------------------------------------------------------


def test_world_marginals__equal_weights__as_by_the_rules():
    position = position_at(play(TINY, 2, 3), 1)
    hands = brute(position, redeal=False)
    belief = RulesBelief(position)
    tiles, suits = world_marginals(position, np.zeros(len(hands), int), hands, np.full(len(hands), 3.0))
    np.testing.assert_allclose(tiles, belief.marginals(), atol=1e-12)
    np.testing.assert_allclose(suits, belief.holds(), atol=1e-12)
    one, _ = world_marginals(position, np.zeros(len(hands), int), hands, np.eye(1, len(hands), 2)[0])
    np.testing.assert_array_equal(one[0, :4], hands[2][:, None] >> BITS & 1)
    with pytest.raises(ValueError, match="worlds of row 0 have no weight"):
        world_marginals(position, np.zeros(len(hands), int), hands, np.zeros(len(hands)))


def test_log2_probability__what_cannot_be__minus_infinity():
    engine = play(SPORT, 1, 5)
    position, hands = position_at(engine), engine.hands()
    belief = RulesBelief(position)
    mover = int(position.viewer[0])
    assert belief.log2_probability(hands)[0] == -belief.entropy()[0]
    swapped = hands.copy()
    swapped[0, [mover, (mover + 1) % 4]] = hands[0, [(mover + 1) % 4, mover]]
    assert belief.log2_probability(swapped)[0] == -np.inf
    double = hands.copy()
    double[0, (mover + 1) % 4] = hands[0, (mover + 2) % 4]
    assert belief.log2_probability(double)[0] == -np.inf
    fewer = hands.copy()
    fewer[0, (mover + 1) % 4] &= fewer[0, (mover + 1) % 4] - np.uint32(1)
    assert belief.log2_probability(fewer)[0] == -np.inf
    with pytest.raises(ValueError, match=r"hands must be \(1, 4\) masks"):
        belief.log2_probability(hands[:, :3])


def test_puerto_rico_before_the_lead__leader_holds_the_double_six__k1():
    engine = LineEngine("puerto_rico", 1, 4, lead="double_six")
    leader = int(engine.leader()[0])
    for viewer in (-1, (leader + 1) % 4, leader):
        belief = RulesBelief(position_at(engine, viewer))
        assert belief.marginals()[0, leader, 27] == 1
    # Who was given the lead and holds no 6-6 may lead anything.
    given_lead = LineEngine("puerto_rico", 1, 4, lead="double_six")
    given_lead.deal(engine.hands(), np.array([(leader + 1) % 4]))
    belief = RulesBelief(position_at(given_lead, leader))
    assert belief.total()[0] == 399_072_960


def test_impossible_and_over__one_line_names_the_row():
    with pytest.raises(ValueError, match="not for blind"):
        RulesBelief(dataclasses.replace(position_at(LineEngine(TINY, 1, 0)), rules=get_rules("blind")))
    position = position_at(play(SPORT, 3, 8, n=5))
    voids = position.voids.copy()
    voids[3] = 127
    with pytest.raises(ValueError, match="no deal fits what row 3 says"):
        RulesBelief(dataclasses.replace(position, voids=voids))
    sizes = position.sizes.copy()
    sizes[2, 1] += 1
    with pytest.raises(ValueError, match="no deal fits what row 2 says"):
        RulesBelief(dataclasses.replace(position, sizes=sizes))
    sizes[1] = [2, 2, 0, 2]
    with pytest.raises(ValueError, match="the deal of row 1 is over: seat 2 holds no tile"):
        RulesBelief(dataclasses.replace(position, sizes=sizes))
    played = position.played.copy()
    played[4, 0] = SUIT_MASK[3]
    with pytest.raises(ValueError, match="the deal of row 4 is over: no tile matches an end"):
        ends = position.ends.copy()
        ends[4] = 3
        RulesBelief(dataclasses.replace(position, played=played, ends=ends, own=position.own & ~SUIT_MASK[3]))
    with pytest.raises(ValueError, match="redeal=True is for line games"):
        RulesBelief(position_at(LineEngine("blitz", 1, 0)), redeal=True)
    belief, keys = RulesBelief(position), row_keys(0, np.arange(5))
    with pytest.raises(ValueError, match="worlds=0 must be at least 1"):
        belief.sample(0, keys)
    with pytest.raises(ValueError, match=r"keys must be \(5,\) uint64"):
        belief.sample(1, keys[:3])


def test_position_from_plain_data__same_belief_as_at_the_table():
    engine = play(SPORT, 12, 7)
    position = position_at(engine)
    events = position.events[0, : position.plies[0]]
    seat = int(position.viewer[0])
    own = tiles_of(int(engine.hands()[0, seat] | engine.played()[0, seat]))
    plain = position_from(SPORT, int(engine.leader()[0]), (events & 63).tolist(), seat, own)
    np.testing.assert_array_equal(RulesBelief(plain).marginals(), RulesBelief(position).marginals())


def test_patterns__every_struck_hand_has_exactly_one__s4():
    from agents.search.counting import _HELD, _ZONE

    assert len(_HELD) == 85
    rng = np.random.default_rng(0)
    hands = long_deals(300, 3).ravel()
    hands = np.concatenate([hands, [mask_of(rng.permutation(NUM_TILES)[:7]) for _ in range(2000)]]).astype(np.uint32)
    found = (hands[:, None].astype(np.int64) & _ZONE == _HELD).sum(axis=1)
    np.testing.assert_array_equal(found, struck(hands[:, None].copy()))
    assert found.sum() > 20
