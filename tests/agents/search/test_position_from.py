"""A table from plain data: what is told of it is what the engine would say, and what cannot be is named."""

import re

import numpy as np
import pytest

from agents.search.position import PUBLIC, imagine, position_at, position_from
from domino_env import get_rules, make_engine
from domino_env.scoring import BLOCK
from domino_env.tiles import NUM_TILES, PASS, tile_index, tiles_of

GAMES = [
    get_rules("sport_book"),
    get_rules("sport_club", labelled_ends=True),
    get_rules("puerto_rico", lead="double_six"),
    get_rules("kozyol"),
    get_rules("tiny_pairs"),
    get_rules("sport_book", seats=2, pairs=False, hand_size=7, max_pip=4, redeal=False),
    get_rules("blitz"),
    get_rules("blitz", seats=6),
    get_rules("blitz", chain="one", seats=5),
]
BOOK = get_rules("sport_book")
TINY = get_rules("tiny_pairs")


@pytest.mark.parametrize("rules", GAMES, ids=lambda rules: f"{rules.name}-{rules.seats}-{rules.chain}")
def test_it_is_the_position_of_the_engine(rules) -> None:
    """At every ply, for every seat and the public, with the hand as dealt and as it is now."""
    rng = np.random.default_rng(4)
    checked = passes = 0
    for seed in range(3):
        engine = make_engine(rules, 1, seed=seed)
        while not engine.over()[0]:
            deal, now = engine.record(0), engine.hands()[0]
            for viewer in range(PUBLIC, rules.seats):
                known = position_at(engine, viewer)
                hands = [deal.hands[viewer], tiles_of(int(now[viewer]))] if viewer >= 0 else [()]
                movers = (known.events[0, : known.plies[0]] >> 12).tolist()
                for hand in hands:
                    found = position_from(rules, deal.leader, deal.moves, viewer, hand, movers)
                    for name in ("viewer", "own", "played", "voids", "sizes", "ends", "leader", "to_move", "hidden"):
                        mine, theirs = getattr(found, name), getattr(known, name)
                        assert np.array_equal(mine, theirs) and mine.dtype == theirs.dtype, name
                    plies = int(known.plies[0])
                    assert found.events is not None and found.events.shape == (1, plies)
                    assert np.array_equal(found.events, known.events[:, :plies])
                    checked += 1
            engine.step(engine.sample_legal(rng), autoreset=False)
        passes += sum(move == PASS for move in engine.record(0).moves)
        deal = engine.record(0)
        if rules.leftover and engine.finished.outcome[0] == BLOCK:
            continue  # that the tiles that match were dealt to nobody is not to be seen
        with pytest.raises(ValueError, match="the deal is over"):
            position_from(rules, deal.leader, deal.moves, PUBLIC)
        with pytest.raises(ValueError, match=f"move {len(deal.moves) + 1}, pass, comes after the end of the deal"):
            position_from(rules, deal.leader, [*deal.moves, PASS], PUBLIC)
    assert checked > 50 and passes > 0


def test_it_can_be_imagined() -> None:
    found = position_from(BOOK, 0, moves("3-4L 4-6R"), 2, tiles("0-0 0-1 0-2 0-3 0-4 0-5 1-1"))
    hidden = tiles_of(int(found.hidden[0]))
    hands = np.zeros((1, 4), np.uint32)
    for seat, size in enumerate(found.sizes[0]):
        for _ in range(size if seat != 2 else 0):
            hands[0, seat] |= 1 << hidden.pop()
    hands[0, 2] = found.own[0]
    engine = imagine(found, np.zeros(1, np.int64), hands)
    assert engine.to_move()[0] == 2 and engine.ends()[0].tolist() == [3, 6]


def tiles(text: str) -> list[int]:
    return [tile_index(word) for word in text.split()]


def moves(text: str, rules=BOOK) -> list[int]:
    return [rules.action_index(word) for word in text.split()]


HAND = "0-0 0-1 0-2 1-1 1-2 2-2 5-6"
BAD = [  # hand, moves, whose hand, what is said
    (HAND, "3-4L 4-4R 3-4L", 2, "move 3: tile 3-4 lies there twice; seat 0 laid it at move 1"),
    (HAND, "3-4L 5-5R", 2, "move 2: 5-5 does not match the right end, which is 4"),
    (HAND, "3-4L 4-5L", 2, "move 2: 4-5 does not match the left end, which is 3"),
    (HAND, "pass", 2, "move 1 is a wrong pass: seat 0 leads and can lay any tile"),
    # the hand
    (HAND[:-3] + "0-3", "3-4L 0-3L", 3, "hand: tile 0-3 was laid by seat 1 at move 2"),
    (HAND[:-3] + "2-2", "3-4L", 2, "hand: tile 2-2 stands there twice"),
    (HAND + " 6-6", "3-4L", 2, "hand: seat 2 was dealt 7 tiles; 8 are given"),
    (HAND[:7], "3-4L", 2, "hand: seat 2 was dealt 7 tiles; 2 are given"),
    ("", "3-4L", 2, "hand: seat 2 was dealt 7 tiles; 0 are given"),
    (HAND, "0-3L 3-3R 3-4R 4-4R", 0, "hand: seat 0 laid 0-3 at move 1, and the 7 tiles it was dealt lack it"),
    (HAND[:-8], "0-3L 3-3R", 0, "hand: seat 0 was dealt 7 tiles, and 6 are left of it now; 5 are given"),
    (HAND[:-7] + "0-3", "0-3L", 0, "hand: 0-3 was laid at move 1, and is among the 6 tiles left now"),
    # wrong passes
    (
        HAND[:-3] + "4-5",
        "3-4L 4-4R pass",
        2,
        "move 3 is a wrong pass: seat 2 passed while 3 and 4 were the ends, and holds 4-5",
    ),
    (
        HAND[:-3] + "3-3",
        "3-4L pass 4-6R 6-6R pass",
        1,
        "move 2 is a wrong pass: seat 1 passed while 3 and 4 were the ends, and holds 3-3",
    ),
    (
        HAND,
        "3-4L pass 4-4R 3-5L 5-6L 4-6R",
        3,
        "move 2 is a wrong pass: seat 1 passed while 3 and 4 were the ends, and lays 4-6, which has 4, at move 6",
    ),
    (
        HAND,
        "3-3L pass 3-4L 4-5L 5-6L 3-6R",
        0,
        "move 2 is a wrong pass: seat 1 passed while 3 was at both ends, and lays 3-6, which has 3, at move 6",
    ),
    (
        # The viewer's own pass, which what it lays later gives away.
        HAND,
        "3-4L 4-4R pass 4-6R 6-6R 5-6R 4-5R",
        2,
        "move 3 is a wrong pass: seat 2 passed while 3 and 4 were the ends, and lays 4-5, which has 4, at move 7",
    ),
    (HAND, "3-4L pass pass pass pass", 2, "move 5: all seats have passed; a block ends the deal without passes (S5)"),
    # no deal fits
    (HAND, "0-0L pass pass pass", 0, "nobody can hold 0-3, 0-4, 0-5 or 0-6: all others have passed on a suit of it"),
    (
        "0-2 1-2 4-5 1-5 1-6 0-5 4-6",
        "0-1L pass 1-2R 2-3R 3-4R pass 0-2L 4-4R 2-2L pass",
        2,
        "seat 1 holds 7 tiles, but only 6 of the 16 hidden ones can be there after the passes",
    ),
]


@pytest.mark.parametrize(("hand", "past", "viewer", "says"), BAD, ids=[says for *_, says in BAD])
def test_what_cannot_be_is_named(hand: str, past: str, viewer: int, says: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        position_from(BOOK, 0, moves(past), viewer, tiles(hand))


def test_where_a_deal_has_ended_is_told() -> None:
    past = moves("0-0L 0-1L 1-1L 0-2R 1-2L 2-2L", TINY)
    says = "^move 6, 2-2L, comes after the end of the deal: seat 0 went out with move 5$"
    with pytest.raises(ValueError, match=says):
        position_from(TINY, 0, past, 1, tiles("0-1 0-3"))
    with pytest.raises(ValueError, match=r"^the deal is over: seat 0 went out with move 5$"):
        position_from(TINY, 0, past[:5], 1, tiles("0-1 0-3"))


def test_a_block_that_all_can_see_ends_the_deal() -> None:
    """S5: all tiles of the suit at both ends lie there."""
    past = moves("0-1L 0-0L 1-2R 0-2R 0-3L 3-4L 0-4L 0-5L 5-6L 0-6L")
    with pytest.raises(ValueError, match=r"^the deal is over: move 10 blocked the line, no tile is left that matches"):
        position_from(BOOK, 0, past, PUBLIC)
    with pytest.raises(ValueError, match=r"^move 11, pass, comes after the end of the deal: move 10 blocked the line"):
        position_from(BOOK, 0, [*past, PASS], PUBLIC)
    assert position_from(BOOK, 0, past[:-1], PUBLIC).to_move[0] == 1


def test_left_and_right_are_the_same_where_they_are() -> None:
    same = [position_from(BOOK, 0, moves(text), PUBLIC).events for text in ("3-3L 3-4L", "3-3R 3-4R")]
    assert np.array_equal(*same)
    labelled = get_rules("sport_book", labelled_ends=True)
    told = position_from(labelled, 0, moves("3-3R 3-4R"), PUBLIC).events
    assert told is not None and (told & 63).tolist() == [[tile_index("3-3"), NUM_TILES + tile_index("3-4")]]


def test_who_moved_is_checked_where_it_is_said() -> None:
    past = moves("3-4L 4-4R pass")
    assert position_from(BOOK, 1, past, PUBLIC, movers=[1, None, 3]).to_move[0] == 0
    with pytest.raises(ValueError, match=r"^move 3, pass, is of seat 3, whose turn it is, not of seat 0$"):
        position_from(BOOK, 1, past, PUBLIC, movers=[None, 2, 0])


def test_a_struck_hand_is_no_contradiction() -> None:
    """S4 is off for given deals: the beliefs see to that."""
    own = tiles("0-0 1-1 2-2 3-3 4-4 0-1 0-2")
    assert position_from(BOOK, 0, [], 0, own).own[0] == sum(1 << tile for tile in own)


def test_turns_of_blitz() -> None:
    blitz, one = get_rules("blitz", seats=5), get_rules("blitz", seats=5, chain="one")
    past = moves("0-1L 0-2L 2-2L pass", blitz)  # the leader lays three tiles and stops
    found = position_from(blitz, 3, past, PUBLIC)
    assert found.to_move[0] == 4 and found.sizes[0].tolist() == [5, 5, 5, 2, 5] and not found.voids.any()
    assert position_from(blitz, 3, past[:2], PUBLIC).to_move[0] == 3
    assert position_from(blitz, 3, [*past, PASS], PUBLIC).voids[0].tolist() == [0, 0, 0, 0, 1 << 2 | 1 << 1]
    with pytest.raises(ValueError, match=r"^move 3: this turn goes on at the left end only$"):
        position_from(one, 3, moves("0-1L 0-2L 1-1R", one), PUBLIC)
    says = r"^move 1: seat 3 leads 0-1, but seat 2 was dealt 0-0, and the lowest tile leads \(B2\)$"
    with pytest.raises(ValueError, match=says):
        position_from(blitz, 3, past, 2, tiles("0-0 1-1 1-2 1-3 1-4"))


def test_other_mistakes() -> None:
    with pytest.raises(ValueError, match="open line"):
        position_from(get_rules("blind"), 0, [], 0)
    with pytest.raises(ValueError, match=r"leader=4 must be a seat of sport_book, 0\.\.3"):
        position_from(BOOK, 4, [], 0)
    with pytest.raises(ValueError, match=r"viewer=-2 must be a seat of sport_book, -1\.\.3"):
        position_from(BOOK, 0, [], -2)
    with pytest.raises(ValueError, match="move 1: action 57 does not exist"):
        position_from(BOOK, 0, [57], PUBLIC)
    with pytest.raises(ValueError, match="move 1: tile 3-4 is not in the double-3 set of tiny_pairs"):
        position_from(TINY, 0, moves("3-4L"), PUBLIC)
    with pytest.raises(ValueError, match="hand: tile 3-4 is not in the double-3 set of tiny_pairs"):
        position_from(TINY, 0, [], 1, tiles("3-4 0-0"))
