"""Shuffling (S1, S4), duplicate boards, random streams, and the text notation of a deal."""

import re
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from domino_env import get_rules, make_engine
from domino_env.deals import Deal, Streams, boards, format_deal, parse_deal, row_keys, shuffle, struck
from tests.reference import GAMES, TILES, Table, is_redeal, make_game, number, shuffled
from tests.twin import mask_in, overrides_of, tiles_in

ROWS = 40_000
CHANCE = 1e-5  # of a fair generator failing one of the tests below; the seeds are fixed


def many(rules, seed=1, deal=0, rows=ROWS):
    """Hands of deal number `deal` of many rows of a seed."""
    return shuffle(rules, row_keys(seed, np.arange(rows)), np.full(rows, deal))


def holders(hands):
    """Seat of every tile, (rows, 28); the last number means nobody."""
    bits = hands[:, :, None] >> np.arange(28, dtype=np.uint32) & 1
    return np.where(bits.any(axis=1), bits.argmax(axis=1), hands.shape[1])


# ------------------------------------------------------------------------------------------------------------ shuffling


@pytest.mark.parametrize("name", sorted(GAMES))
def test_shuffle__deals_the_set(name):
    rules, game = get_rules(name), GAMES[name]
    hands = many(rules, rows=2_000)
    assert hands.dtype == np.uint32 and hands.shape == (2_000, 4)
    assert (np.bitwise_count(hands) == game.hand_size).all()
    union = np.bitwise_or.reduce(hands, axis=1)
    assert (np.bitwise_count(union) == 4 * game.hand_size).all()
    assert not (union & ~np.uint32(mask_in(game.tiles))).any()


def test_shuffle__every_tile_goes_anywhere():
    """Seats of each tile, seats of each two tiles, and the number of doubles of a hand are as chance has them."""
    where = holders(many(get_rules("puerto_rico")))
    for tile in range(28):
        assert stats.chisquare(np.bincount(where[:, tile], minlength=4)).pvalue > CHANCE
    for one in range(0, 28, 3):
        for two in range(one + 1, 28, 2):
            together = int((where[:, one] == where[:, two]).sum())
            assert stats.binomtest(together, ROWS, 6 / 27).pvalue > CHANCE
    doubles = [number((k, k)) for k in range(7)]
    held = (where[:, doubles] == 2).sum(axis=1)
    expected = np.array([comb(7, k) * comb(21, 7 - k) / comb(28, 7) for k in range(8)]) * ROWS
    found = np.bincount(held, minlength=8)
    assert stats.chisquare([*found[:5], found[5:].sum()], [*expected[:5], expected[5:].sum()]).pvalue > CHANCE


def test_shuffle__tiles_left_over_are_chance_too():
    where = holders(many(get_rules("tiny_pairs")))
    tiles = [number(tile) for tile in GAMES["tiny_pairs"].tiles]
    for tile in tiles:
        assert stats.chisquare(np.bincount(where[:, tile], minlength=5)).pvalue > CHANCE


def test_shuffle__deals_of_a_row_and_of_neighbours_are_unrelated():
    """A tile lies where it lay in the row's deal before, or in the next row, one time in four."""
    rules = get_rules("puerto_rico")
    first, second = holders(many(rules, deal=0)), holders(many(rules, deal=1))
    other = holders(many(rules, seed=2, deal=0))
    for one, two in [(first, second), (first[:-1], first[1:]), (first, other), (first[:-1], second[1:])]:
        share = (one == two).mean(axis=0)
        assert abs(share - 0.25).max() < 5 * np.sqrt(0.1875 / len(one))
        assert abs(share.mean() - 0.25) < 5 * np.sqrt(0.1875 / len(one) / 28) * 2


def test_shuffle__no_deal_comes_twice():
    rules = get_rules("puerto_rico")
    seen = {row.tobytes() for deal in range(5) for row in many(rules, deal=deal, rows=20_000)}
    assert len(seen) == 100_000


def test_shuffle__depends_on_key_and_number_alone():
    rules = get_rules("sport_book")
    keys, counts = row_keys(5, np.arange(3_000)), np.arange(3_000) % 7
    hands = shuffle(rules, keys, counts)
    order = np.random.default_rng(0).permutation(3_000)
    assert np.array_equal(shuffle(rules, keys[order], counts[order]), hands[order])
    assert np.array_equal(shuffle(rules, keys[40:41], counts[40:41])[0], hands[40])
    assert len(np.unique(row_keys(5, np.arange(100_000)))) == 100_000
    assert not np.array_equal(row_keys(5, np.arange(9)), row_keys(6, np.arange(9)))
    assert not np.array_equal(row_keys(None, np.arange(9)), row_keys(None, np.arange(9)))


# -------------------------------------------------------------------------------------------------------- re-deals (S4)


def test_struck__is_the_clause():
    """S4 against the reference's plain reading of it, on 20,000 shuffles and on hands at its edges."""
    hands = many(get_rules("puerto_rico"), rows=20_000)
    found = struck(hands)
    assert [is_redeal([tiles_in(mask) for mask in row]) for row in hands] == found.tolist()
    assert 300 < found.sum() < 460
    rest = [(0, 1), (2, 3), (4, 5)]
    doubles = [(k, k) for k in range(7)]
    threes = [(3, 3), (0, 3), (1, 3), (2, 3), (3, 4), (3, 5), (3, 6)]
    for hand, expected in [
        (doubles[:4] + rest, False),
        (doubles[:5] + rest[:2], True),
        (doubles, True),
        (threes[:5] + [(0, 1), (0, 2)], False),  # five with the double, which counts once
        (threes[:6] + [(0, 1)], True),
        (threes[1:] + [(0, 1)], True),
        (threes, True),
    ]:
        other = [tile for tile in TILES if tile not in hand]
        spread = [other[0::3], other[1::3], other[2::3]]
        if not expected and is_redeal(spread):
            raise AssertionError("the other hands of this case must be quiet")
        row = np.array([[mask_in(spread[0]), mask_in(hand), 0, 0]], np.uint32)
        assert struck(row)[0] == expected, hand


def test_redeal__only_the_struck_deals_change():
    """S4: what is not struck stays as shuffled; what is, is dealt anew from the same stream."""
    plain, again = many(get_rules("puerto_rico"), rows=20_000), many(get_rules("sport_book"), rows=20_000)
    found = struck(plain)
    assert np.array_equal(plain[~found], again[~found])
    assert (plain[found] != again[found]).any(axis=1).all()
    assert not struck(again).any()


# --------------------------------------------------------------------------------------------------- boards and streams

BY_TILE = [
    get_rules("blitz"),
    get_rules("blitz", seats=5),
    get_rules("blitz", seats=7),
    get_rules("blind_blitz", seats=3),
    get_rules("blind", lead="high", seats=2),
    get_rules("blind", lead="low"),
    get_rules("blind", seats=3),
]


@pytest.mark.parametrize("rules", BY_TILE, ids=lambda rules: f"{rules.name}-{rules.seats}-{rules.lead}")
def test_boards__led_by_the_tile(rules):
    """B2, R3, S11: the lowest or highest tile dealt leads; by lot the lead rotates; the same however batched."""
    made = boards(rules, 7, 0, 60)
    parts = [boards(rules, 7, start, count) for start, count in ((0, 1), (1, 20), (21, 39))]
    for j, whole in enumerate(made):
        assert np.array_equal(np.concatenate([part[j] for part in parts]), whole)
    for j, leader in enumerate(made[1].tolist()):
        hands = [[TILES[tile] for tile in hand] if rules.rows else tiles_in(hand) for hand in made[0][j]]
        ranked = sorted((sum(tile), tile[0], seat) for seat, hand in enumerate(hands) for tile in hand)
        first = {"low": ranked[0], "blank": ranked[0], "high": ranked[-1], "lot": (0, 0, j % rules.seats)}
        assert leader == first[rules.lead][2]
    engine = make_engine(rules, 60, 1)
    engine.deal(*made)
    assert np.array_equal(engine.leader(), made[1])


def test_boards__are_the_same_however_batched():
    """S13: a board is a deal and a leader; leaders rotate; S4 as the rules have it."""
    for name in ("sport_book", "puerto_rico", "tiny_pairs"):
        rules = get_rules(name)
        hands, leader = boards(rules, 7, 0, 500)
        parts = [boards(rules, 7, start, count) for start, count in ((0, 1), (1, 63), (64, 400), (464, 36))]
        assert np.array_equal(np.concatenate([part[0] for part in parts]), hands)
        assert np.array_equal(np.concatenate([part[1] for part in parts]), leader)
        assert leader.dtype == np.int64 and np.array_equal(leader, np.arange(500) % 4)
        assert not np.array_equal(boards(rules, 8, 0, 500)[0], hands)
        assert len({row.tobytes() for row in hands}) > (499 if name != "tiny_pairs" else 450)
    assert not struck(boards(get_rules("sport_club"), 7, 0, 20_000)[0]).any()
    assert struck(boards(get_rules("puerto_rico"), 7, 0, 20_000)[0]).any()
    hands, leader, lead = boards(get_rules("puerto_rico", lead="double_six"), 7, 0, 300)
    assert (hands[np.arange(300), leader] >> 27 & 1).all()
    engine = make_engine("puerto_rico", 300, 1, lead="double_six")
    engine.deal(hands, leader, lead)
    assert (engine.legal_bits() == 1 << 27).all()  # K1: with it
    engine.deal(hands, leader)
    assert (engine.legal_count() == 7).all()
    for wrong in (lead[:2], lead.astype(float), hands[np.arange(300), (leader + 1) % 4]):
        with pytest.raises(ValueError, match="lead must be"):
            engine.deal(hands, leader, wrong)
    for seed, start, count in ((-1, 0, 4), ("x", 0, 4), (7, -1, 4), (7, 0.5, 2), (7, 0, -1), (7, 0, None)):
        with pytest.raises(ValueError, match="whole number >= 0"):
            boards(rules, seed, start, count)


def test_streams__uniform_and_apart():
    """One number a row and call, in [0, 1); rows, calls and seeds are unrelated; a row does not know its batch."""
    streams = Streams.of(9, np.arange(20_000))
    draws = np.stack([streams.random(20_000) for _ in range(4)])
    assert draws.dtype == np.float64 and draws.min() >= 0 and draws.max() < 1
    for one in draws:
        assert stats.kstest(one, "uniform").pvalue > CHANCE
    pairs = np.corrcoef(np.concatenate([draws, draws[:, np.roll(np.arange(20_000), 1)]]))
    assert abs(pairs[np.triu_indices(8, 1)]).max() < 5 / np.sqrt(20_000)
    few = Streams.of(9, np.array([5, 17]))
    assert np.array_equal(np.stack([few.random(2) for _ in range(4)]), draws[:, [5, 17]])
    taken = streams.take(np.array([3, 8]))
    assert np.array_equal(taken.random(2), streams.random(20_000)[[3, 8]])
    assert not np.array_equal(Streams.of(10, np.arange(9)).random(9), draws[0, :9])
    with pytest.raises(ValueError, match="2"):
        few.random(3)


# ----------------------------------------------------------------------------------------------------------------- text


@st.composite
def deals(draw):
    """Some deal of some game, with some of its moves."""
    rng = draw(st.randoms(use_true_random=False))
    name = draw(st.sampled_from(sorted(GAMES)))
    changes = draw(
        st.sampled_from(
            [
                {},
                {"pairs": False},
                {"labelled_ends": True, "lone_blank": 25},
                {"seats": 2, "pairs": False, "hand_size": 5, "max_pip": 4, "lead": "rotation"},
                {"hand_size": 3, "max_pip": 5, "lead": "rotation", "match_to": 60},
                {"block_score": "both_totals", "match_to": None, "equal_block": "credit"},
            ]
        )
    )
    game = make_game(name, **changes)
    leader = draw(st.integers(0, game.seats - 1))
    table = Table(game, shuffled(make_game(name, **{**changes, "redeal": False}), rng), leader)
    for _ in range(draw(st.integers(0, 40))):
        if table.result is None:
            table.play(rng.choice(table.legal()))
    hands = [sorted(number(tile) for tile in hand) for hand in table.dealt]
    return Deal(get_rules(name, **overrides_of(game)), leader, hands, [event.action for event in table.events])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(deals(), st.integers(1, 99))
def test_text__round_trip(deal, line):
    text = format_deal(deal)
    assert "\n" not in text
    assert parse_deal(text, line=line) == deal
    assert parse_deal("  " + text.replace(" ", "   ") + " ") == deal, "spaces do not matter"
    assert parse_deal(text.replace(" | ", "|")) == deal, "nor do those around bars"


JUNK = ["", *" |7x-=L²\t\x00٣", "9999999999", " rules=3 ", " leader=1 "]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(deals(), st.integers(0, 400), st.sampled_from(JUNK))
def test_text__damage_is_placed_or_harmless(deal, at, junk):
    """A text with something put in or cut out is read, or refused with its line and column; nothing else happens."""
    text = format_deal(deal)
    at %= len(text)
    for damaged in (text[:at] + junk + text[at:], text[:at], text[:at] + junk + text[at + 1 :]):
        try:
            read = parse_deal(damaged, line=31)
        except ValueError as error:
            place = re.match(r"line 31, column (\d+): .", str(error))
            assert place, f"{damaged!r}: {error}"
            assert 1 <= int(place.group(1)) <= len(damaged) + 1
        else:
            read.hands = [sorted(hand) for hand in read.hands]
            assert parse_deal(format_deal(read)) == read


def test_text__the_example():
    """design.md: the line of a deal, with or without a bar before the moves."""
    rules = get_rules("tiny_pairs")
    hands = [[1, 13], [0, 9], [7, 18], [2, 8]]
    deal = Deal(rules, 1, hands, [0, 1 + 28, 56])
    text = "tiny_pairs leader=1 | 0-1 2-2 | 0-0 1-3 | 1-1 3-3 | 0-2 1-2 | 0-0L 0-1R pass"
    assert format_deal(deal) == text
    assert parse_deal(text) == deal
    assert parse_deal("tiny_pairs leader=1 | 1-0 2-2 | 0-0 3-1 | 1-1 3-3 | 0-2 1-2 0-0L 0-1R pass") == deal
    assert parse_deal("tiny_pairs leader=1 | 0-1 2-2 | 0-0 1-3 | 1-1 3-3 | 0-2 1-2") == Deal(rules, 1, hands, [])
    other = Deal(get_rules("tiny_pairs", lone_blank=10), 0, hands)
    assert format_deal(other).startswith("tiny_pairs lone_blank=10 leader=0 |")


BODY = "| 0-1 2-2 | 0-0 1-3 | 1-1 3-3 | 0-2 1-2"


@pytest.mark.parametrize(
    ("marked", "said"),
    [
        (f"«chess leader=0 {BODY}", "chess"),
        ("«", "rules"),
        ("«| 0-1", "rules"),
        (f"«leader=0 {BODY}", "leader=0"),
        (f"tiny_pairs «leader=4 {BODY}", "4"),
        (f"tiny_pairs «leader=-1 {BODY}", "-1"),
        (f"tiny_pairs «leader=x {BODY}", "x"),
        (f"tiny_pairs «leader= {BODY}", "leader"),
        (f"tiny_pairs «leader {BODY}", "leader"),
        (f"tiny_pairs «leader=² {BODY}", "²"),
        (f"tiny_pairs leader=1 «leader=1 {BODY}", "once"),
        (f"tiny_pairs «{BODY}", "leader"),
        ("tiny_pairs«", "leader"),
        (f"tiny_pairs leader=1 «speed=9 {BODY}", "speed"),
        (f"tiny_pairs lone_blank=3 leader=1 «speed=9 {BODY}", "speed"),
        (f"tiny_pairs leader=1 «rules=9 {BODY}", "rules"),
        (f"tiny_pairs leader=1 lone_blank=3 «hand_size=3 {BODY}", "hand_size"),
        (f"tiny_pairs «name=mine leader=1 {BODY}", "name"),
        (f"tiny_pairs leader=1 lone_blank=3 «lone_blank=4 {BODY}", "once"),
        (f"tiny_pairs leader=1 «lone_blank {BODY}", "lone_blank"),
        (f"tiny_pairs leader=1 «lone_blank= {BODY}", "lone_blank"),
        (f"tiny_pairs leader=1 «lone_blank=² {BODY}", "²"),
        (f"tiny_pairs leader=1 «hand_size={'9' * 5000} {BODY}", "hand_size"),
        (f"tiny_pairs leader=1 «block_score=most {BODY}", "most"),
        ("tiny_pairs leader=1 | 0-1 2-2 | 0-0 «0-1 | 1-1 3-3 | 0-2 1-2", "0-1"),
        ("tiny_pairs leader=1 | 0-1 2-2 | 0-0 «2-2 | 1-1 3-3 | 0-2 1-2", "2-2"),
        ("tiny_pairs leader=1 | 0-1 2-2 | 0-0 «4-5 | 1-1 3-3 | 0-2 1-2", "4-5"),
        ("tiny_pairs leader=1 | 0-1 2-2 | «0-9 1-3 | 1-1 3-3 | 0-2 1-2", "0-9"),
        ("tiny_pairs leader=1 | 0-1 2-2 | «01 1-3 | 1-1 3-3 | 0-2 1-2", "01"),
        ("tiny_pairs leader=1 | 0-1 2-2 «| 0-0 | 1-1 3-3 | 0-2 1-2", "1"),
        ("tiny_pairs leader=1 | 0-1 2-2 «| 0-0 1-3 2-3 | 1-1 3-3 | 0-2 1-2", "3"),
        ("tiny_pairs leader=1 | 0-1 2-2 | 0-0 1-3 | 1-1 3-3 «| 0-2", "1"),
        ("tiny_pairs leader=1 | 0-1 2-2 | 0-0 1-3 «| 1-1 3-3", "4"),
        (f"tiny_pairs leader=1 {BODY} | 0-0L «| pass", "4"),
        (f"tiny_pairs leader=1 {BODY} | «0-0", "0-0"),
        (f"tiny_pairs leader=1 {BODY} | 0-0L «PASS", "PASS"),
        (f"tiny_pairs leader=1 {BODY} | 0-0L «0-1l", "0-1l"),
        (f"tiny_pairs leader=1 {BODY} 0-0L «0-9R", "0-9R"),
    ],
)
def test_text__errors_name_line_and_column(marked, said):
    """The mark « stands before the column that the error must name; what was read there is quoted."""
    with pytest.raises(ValueError) as error:
        parse_deal(marked.replace("«", ""), line=12)
    assert str(error.value).startswith(f"line 12, column {marked.index('«') + 1}: ")
    assert said in str(error.value)


@pytest.mark.parametrize("text", [None, 5, b"sport_book", ["sport_book"]], ids=repr)
def test_text__is_text(text):
    with pytest.raises(ValueError, match=r"line 3, column 1: .*text"):
        parse_deal(text, line=3)
