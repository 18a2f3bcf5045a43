"""Words of the game (head of rules.md): each on positions made by hand, then all against a plain reading."""

import ast
from pathlib import Path

import numpy as np
import pytest

from domino_env import get_rules, make_engine, words as module
from domino_env.tiles import DRAW, PASS, TURN, action_index, tile_index
from domino_env.words import (
    cut_off_double,
    end_on,
    feature_names,
    features,
    fewest_holder,
    long_end,
    public,
    rates,
    rolled,
    rolls,
    words,
)
from tests.reference import TILES

SUITS = range(7)


def history(moves, leader=0, viewer=0, seats=4, empty=4):
    """The history of some moves, as (1, T): what the engine would give."""
    events, ends, seat = [], (7, 7), leader
    for move in moves.split():
        action = action_index(move)
        events.append((seat - viewer) % seats << 12 | ends[0] << 9 | ends[1] << 6 | action)
        if action < 56:
            a, b = TILES[action % 28]
            assert ends == (7, 7) or ends[action // 28] in (a, b), f"{move} does not match"
            assert moves.split().count(move) == 1
            if ends == (7, 7):
                ends = (a, b)
            elif action < 28:
                ends = (a + b - ends[0], ends[1])
            else:
                ends = (ends[0], a + b - ends[1])
        seat = (seat + 1) % seats
    return np.array([events + [-1] * empty], np.int16)


def suits(found):
    """The suits that a word holds for, of a batch of one."""
    assert found.shape == (1, 7) and found.dtype == bool
    return np.flatnonzero(found[0]).tolist()


def test_public__what_is_out_and_open():
    seen = public(history("3-4L 4-6R pass 3-3L 1-6R", leader=2, viewer=3))
    assert seen.out[0] == sum(1 << action_index(f"{t}L") for t in ("3-4", "4-6", "3-3", "1-6"))
    assert seen.ends.tolist() == [[3, 1]] and seen.leader.tolist() == [3] and seen.laid.tolist() == [[1, 0, 1, 2]]


def test_public__before_the_lead():
    for empty in (history(""), np.zeros((1, 0), np.int16)):
        seen = public(empty)
        assert seen.ends.tolist() == [[-1, -1]] and not seen.out[0] and not seen.laid.any() and seen.leader[0] == -1
        for word in (end_on, long_end, cut_off_double):
            assert suits(word(empty)) == []
        assert not rolled(empty).any()


@pytest.mark.parametrize(
    "moves, leader, holder",
    [
        ("3-4L", 1, 1),  # the leader at first
        ("3-4L 4-6R 3-3L", 1, 1),  # of several the nearest clockwise from the leader
        ("3-4L 4-6R 3-3L 3-6L", 1, 1),  # all alike again
        ("3-4L 4-6R 3-3L 3-6L pass 6-6R", 1, 2),  # the leader passed, its neighbour goes ahead
        ("3-4L 4-6R pass 3-3L pass 6-6R 2-6R", 1, 2),  # seat 1 passed once and seat 2 leads it by one
        ("3-4L 4-6R 3-3L 3-6L pass pass 6-6L", 1, 3),
        ("3-4L pass 3-3L 3-6L pass 4-6R 0-6L", 3, 1),  # seats 0, 1, 2 have laid 1, 2, 1
    ],
)
def test_fewest_holder(moves, leader, holder):
    assert fewest_holder(history(moves, leader)).tolist() == [holder]
    for viewer in range(4):
        assert fewest_holder(history(moves, leader, viewer)).tolist() == [(holder - viewer) % 4]


def test_fewest_holder__before_the_lead():
    """It is the leader, whom a history without events does not name."""
    assert fewest_holder(history("")).tolist() == [-1]
    assert fewest_holder(history(""), leader=2).tolist() == [2]
    assert fewest_holder(history("3-4L", 1), leader=2).tolist() == [1], "the history knows better"


@pytest.mark.parametrize(
    "moves, marked, counts",
    [
        ("3-4L 4-6R", [], [0, 0, 0, 0]),
        ("3-4L pass 4-6R", [0], [1, 0, 0, 0]),
        ("3-4L pass pass pass 4-6R", [0], [1, 0, 0, 0]),  # one lay rolled them all
        ("3-4L 4-6R pass 3-3L pass 6-6R", [1, 3], [0, 1, 0, 1]),
        ("3-4L pass", [0], [1, 0, 0, 0]),
    ],
)
def test_rolled(moves, marked, counts):
    """Prokatit: an opponent was made to pass."""
    past = history(moves)
    assert rolled(past).shape == past.shape and np.flatnonzero(rolled(past)[0]).tolist() == marked
    assert rolls(past).tolist() == [counts]
    assert rolls(history(moves, leader=3, viewer=1)).tolist() == [np.roll(counts, 2).tolist()]


# Six of suit 6 on the line, the last of them at an end: 0-6 is still to come.
SIXES = "6-6L 1-6L 2-6R 1-1L 2-2R 1-2R 1-3L 1-4R 3-6L 4-6R 5-6L"


def test_end_on():
    """Only one tile of the suit is still to come and the suit is open."""
    past = history(SIXES + " 0-5L")
    assert public(past).ends.tolist() == [[0, 6]] and suits(end_on(past)) == [6]
    assert end_on(past, k=6).tolist() == [True] and end_on(past, k=0).tolist() == [False]
    assert suits(end_on(history(SIXES))) == [6]
    assert suits(end_on(history(SIXES.rsplit(" ", 1)[0]))) == [], "two are still to come"
    assert suits(end_on(history(SIXES + " 0-6R"))) == [], "all are out"


def test_end_on__whichever_tile_is_the_last():
    past = history("6-6L 1-6L 2-6R 1-1L 2-2R 1-2R 1-3L 1-4R 3-6L 4-6R 0-6L")
    assert public(past).ends.tolist() == [[0, 6]] and suits(end_on(past)) == [6]


def test_end_on__the_last_may_be_the_double():
    """Six tiles of a suit without its double leave it at both ends, or at none."""
    both = "5-6L 1-5L 0-6R 0-1R 1-6R 1-2L 2-6L 3-6R 3-4R 4-6R"
    past = history(both)
    assert public(past).ends.tolist() == [[6, 6]]
    assert suits(end_on(past)) == [6] and suits(cut_off_double(past)) == [6]
    assert suits(end_on(history(both + " 6-6L"))) == []


def test_long_end():
    """The suit is open, its double and its last tile are still to come."""
    past = history("1-6L 2-6R 1-3L 2-4R 3-6L 4-6R 5-6L")
    assert public(past).ends.tolist() == [[5, 6]]
    assert suits(long_end(past)) == [6] and suits(end_on(past)) == []
    assert long_end(past, k=6).tolist() == [True] and long_end(past, k=5).tolist() == [False]
    assert suits(long_end(history("1-6L 2-6R 1-3L 2-4R 3-6L 4-6R"))) == [], "three are still to come"
    assert suits(long_end(history("6-6L 1-6L 2-6R 1-3L 2-4R 3-6L 4-6R"))) == [], "the double is out"


def test_cut_off_double():
    """Every tile of the suit is out but its double; here it is open nowhere and can never be laid."""
    past = history("5-6L 1-5L 0-6R 0-1R 1-6R 1-2L 2-6L 3-6R 3-4R 4-6L")
    assert public(past).ends.tolist() == [[4, 4]]
    assert suits(cut_off_double(past)) == [6] and suits(end_on(past)) == []
    assert cut_off_double(past, k=6).tolist() == [True] and cut_off_double(past, k=4).tolist() == [False]
    assert suits(cut_off_double(history("5-6L 1-5L 0-6R 0-1R 1-6R 1-2L 2-6L 3-6R 3-4R"))) == []


def test_small_set():
    """K4: suits of the double-three set have four tiles."""
    past = history("0-3L 1-3R 0-2L 2-3L")
    assert public(past, "tiny_pairs").ends.tolist() == [[3, 1]]
    assert suits(cut_off_double(past, "tiny_pairs")) == [3] and suits(end_on(past, "tiny_pairs")) == [3]
    assert suits(cut_off_double(past)) == [] and suits(end_on(past)) == []
    assert suits(long_end(history("0-3L 0-1L 1-3L"), "tiny_pairs")) == [3]
    assert suits(long_end(history("0-3L 0-2L 2-3L 3-3L"), "tiny_pairs")) == []
    assert suits(long_end(history("1-2L 1-3L 0-3L 0-1L"), "tiny_pairs")) == []
    assert suits(end_on(history("3-3L 1-3L 1-2L 2-3L"), "tiny_pairs")) == [3]
    assert suits(end_on(history("3-3L 1-3L 1-2L 2-3L"))) == [], "four more in the double-six set"
    with pytest.raises(ValueError, match=r"k=4 must be in 0\.\.3"):
        end_on(past, "tiny_pairs", k=4)


@pytest.mark.parametrize(
    "bad", [np.zeros(5, np.int16), np.zeros((2, 3)), np.full((1, 2), 57), np.full((1, 2), 4 << 12)]
)
def test_public__bad_input(bad):
    with pytest.raises(ValueError, match="history"):
        public(bad)


def test_public__a_gap():
    with pytest.raises(ValueError, match="no events"):
        public(np.array([[-1, 3]], np.int16))


# ----------------------------------------------------------------------------------- several events of a seat in a turn


def turns(text, viewer=0, seats=4, empty=3):
    """A history written "seat: move move … | seat: …"; of the blind games "?a-b" turns a tile and "draw" draws one."""
    events, ends = [], (7, 7)
    for part in text.split("|"):
        seat, moves = part.split(":")
        who = (int(seat) - viewer) % seats << 12
        for move in moves.split():
            if move[0] == "?":
                events.append(who | tile_index(move[1:]) << 6 | TURN)
                continue
            action = DRAW if move == "draw" else action_index(move)
            events.append(who | ends[0] << 9 | ends[1] << 6 | action)
            if action >= PASS:
                continue
            a, b = TILES[action % 28]
            if ends == (7, 7):
                ends = (a, b)
            elif action < 28:
                ends = (a + b - ends[0], ends[1])
            else:
                ends = (ends[0], a + b - ends[1])
    return np.array([events + [-1] * empty], np.int16)


@pytest.mark.parametrize(
    "text, marked, counts",
    [
        ("0: 0-0L 0-1L pass | 1: 1-2L pass", [], [0, 0, 0, 0]),  # both stop, nobody passes
        ("0: 0-0L 0-1L pass | 1: pass", [1], [1, 0, 0, 0]),  # the last lay of the turn is the one that rolled
        ("0: 0-0L pass | 1: pass | 2: pass | 3: 0-1L pass", [0], [1, 0, 0, 0]),  # one lay rolled them all
        ("0: 0-0L pass | 1: 0-1L pass | 2: pass | 3: 1-1L 1-2L pass | 0: pass", [2, 6], [0, 1, 0, 1]),
        ("0: 0-0L 0-1L pass", [], [0, 0, 0, 0]),  # its own stop is no pass
        ("0: 0-0L 0-1L", [], [0, 0, 0, 0]),
    ],
)
def test_rolled__a_stop_is_no_pass(text, marked, counts):
    """B3: 56 after a lay of the same turn is a stop; a roll is where the next seat passes without having laid."""
    past = turns(text)
    assert np.flatnonzero(rolled(past)[0]).tolist() == marked and rolls(past, "blitz").tolist() == [counts]
    assert rolls(turns(text, viewer=2), "blitz").tolist() == [np.roll(counts, 2).tolist()]


def test_rolled__eight_seats():
    """B1: seat 7 is in the last three bits of an event, and the round goes on from it to seat 0."""
    past = turns("7: 0-0L 0-1L pass | 0: pass | 1: 1-6L pass", seats=8)
    rules = get_rules("blitz", seats=8)
    assert rolls(past, rules).tolist() == [[0] * 7 + [1]]
    seen = public(past, rules)
    assert seen.laid.tolist() == [[0, 1, 0, 0, 0, 0, 0, 2]] and seen.held.tolist() == [[3, 2, 3, 3, 3, 3, 3, 1]]
    assert seen.ends.tolist() == [[6, 0]] and seen.leader.tolist() == [7]
    assert fewest_holder(past, rules).tolist() == [7]
    with pytest.raises(ValueError, match="blitz with 4 seats"):
        public(past, "blitz")


def test_fewest_holder__who_has_laid_several():
    past = turns("1: 0-0L pass | 2: 0-1L 1-2L 2-3L pass | 3: 0-4R 4-4R pass")
    assert fewest_holder(past, "blitz").tolist() == [2]
    assert fewest_holder(past[:, :3], "blitz").tolist() == [1], "2 has laid one too, 1 leads"


def test_turns__a_turned_tile_is_not_on_the_line():
    """R4: it is known, but no tile of the line; the ends are those of the last lay. Draws count as tiles (R5)."""
    text = "2: ?0-0 0-0L ?1-2 draw | 3: ?0-5 0-5R ?5-6"
    past = turns(text)
    seen = public(past, "blind")
    assert seen.out.tolist() == [1 | 1 << tile_index("0-5")] and seen.ends.tolist() == [[0, 5]]
    assert seen.laid.tolist() == [[0, 0, 1, 1]] and seen.held.tolist() == [[7, 7, 7, 6]]
    assert fewest_holder(past, "blind").tolist() == [3] and not rolls(past, "blind").any()
    first = turns("2: ?1-2")
    assert public(first, "blind").ends.tolist() == [[-1, -1]] and public(first, "blind").leader.tolist() == [2]
    for word in (end_on, long_end, cut_off_double):
        assert suits(word(first, "blind")) == []


def test_rolled__in_the_blind_games():
    """A turn without a lay is a pass, whether the seat declines, or draws (R5), or has nothing to turn (R7)."""
    assert rolls(turns("0: ?0-0 0-0L pass | 1: ?1-2 pass"), "blind").tolist() == [[1, 0, 0, 0]]
    assert rolls(turns("0: ?0-0 0-0L pass | 1: ?1-2 draw"), "blind").tolist() == [[1, 0, 0, 0]]
    assert rolls(turns("0: ?0-0 0-0L pass | 1: draw"), "blind").tolist() == [[1, 0, 0, 0]]
    assert not rolls(turns("0: ?0-0 0-0L pass | 1: ?1-2"), "blind").any(), "the turn still runs"
    assert not rolls(turns("0: ?0-0 0-0L pass | 1: ?0-2 0-2L ?1-3 pass"), "blind").any(), "1 has laid"
    assert not rolls(turns("0: ?0-0 0-0L ?1-3 draw | 1: ?0-2 0-2L"), "blind").any()
    past = turns("0: ?0-0 0-0L ?1-3 draw | 1: ?2-2 pass")
    assert np.flatnonzero(rolled(past)[0]).tolist() == [1], "its own miss does not matter"


def test_end_on__tiles_left_over_are_still_to_come():
    """B1: nobody knows what nobody was dealt."""
    past = turns("0: 0-6L pass | 1: 6-6R 1-6R pass | 2: 1-1R 1-2R 2-6R pass | 3: 3-6R 3-4R 4-6R pass")
    assert suits(long_end(past, "blitz")) == [] and suits(end_on(past, "blitz")) == [6]


# --------------------------------------------------------------------------------------------- features and rates


def test_features__bits_with_names():
    past = history(SIXES + " 0-5L pass", leader=1, viewer=2)
    bits, names = features(past), feature_names()
    assert bits.shape == (1, len(names)) == (1, 37) and bits.dtype == np.uint8
    # Leader 1, 12 lays: all have laid three, so the leader, the viewer's right, is the first of them; 0 rolled 1.
    assert [name for name, bit in zip(names, bits[0]) if bit] == ["fewest_holder_right", "rolls_partner_1", "end_on_6"]


def test_features__before_the_lead():
    empty = history("")
    assert not features(empty).any()
    assert np.flatnonzero(features(empty, leader=2)[0]).tolist() == [2]


def test_features__rolls_are_a_thermometer():
    past = history("3-4L pass pass pass 3-3L pass 4-6R 1-6R", leader=0)
    wanted = {"fewest_holder_me", "rolls_me_1", "rolls_me_2"}
    assert {name for name, bit in zip(feature_names(), features(past)[0]) if bit} == wanted


@pytest.mark.parametrize(
    "rules, size, second",
    [
        (get_rules("tiny_pairs"), 4 * 4 + 3 * 4, "fewest_holder_left"),
        (get_rules("sport_club", seats=2, pairs=False), 2 * 4 + 3 * 7, "fewest_holder_left"),
        (get_rules("blitz", seats=8), 8 * 4 + 3 * 7, "fewest_holder_left"),
        (get_rules("blind", seats=3), 3 * 4 + 3 * 7, "fewest_holder_left"),
    ],
)
def test_feature_names__of_every_game(rules, size, second):
    names = feature_names(rules)
    assert len(set(names)) == len(names) == size and names[:2] == ("fewest_holder_me", second)
    assert features(np.full((3, 5), -1, np.int16), rules).shape == (3, size)


def test_rates__counted_by_hand():
    """Two deals of the double-three set: tiles are laid one after the other, seat 1 goes out in the first."""
    first = turns("0: 0-3L | 1: 1-3R | 2: 0-2L | 3: pass | 0: pass | 1: 1-1R", viewer=2, empty=0)
    found = rates(first, "tiny_pairs")
    assert found["rolls_per_deal"] == 1, "3 and 0 passed on account of one lay"
    # Two tiles at least are to come of every suit, 0-0 and 0-1 of suit 0, which is not open: no word holds.
    assert found["end_on_rate"] == found["long_end_rate"] == found["cut_off_double_rate"] == 0
    # In all five positions after the lead seat 0 is the fewest-holder; seat 1, of the other pair, goes out.
    assert found["fewest_holder_share"] == 0
    second = turns("0: 0-3L | 1: 1-3R | 2: 0-2L | 3: 2-3L | 0: 1-2R", viewer=1, empty=1)
    found = rates(second, "tiny_pairs")
    # After 2-3L, before the last action, only 3-3 of suit 3 is to come, and 3 is open.
    assert found == {
        "rolls_per_deal": 0,
        "end_on_rate": 1 / 5,
        "long_end_rate": 0,
        "cut_off_double_rate": 1 / 5,
        "fewest_holder_share": 1,
    }
    both = np.concatenate([first, second])
    found = rates(both, "tiny_pairs")
    assert found["rolls_per_deal"] == 1 / 2 and found["end_on_rate"] == 1 / 11
    assert found["fewest_holder_share"] == pytest.approx(4 / 9)


@pytest.mark.parametrize("bad", [np.zeros((0, 4), np.int16), np.full((1, 4), -1, np.int16), np.zeros((1, 0), np.int16)])
def test_rates__need_whole_deals(bad):
    with pytest.raises(ValueError, match="whole deals"):
        rates(bad)


# ------------------------------------------------------------------------------------------ all of it, read plainly


def plain(row, rules, leader):
    """The words of one history, by the sentences of rules.md, event by event."""
    seats = rules.seats
    held, out, ends, counts = [rules.hand_size] * seats, set(), None, [0] * seats
    rolling = None  # the seat that laid in the turn before this one
    turn, laid = None, False  # whose turn it is, and whether it has laid
    for event in [int(e) for e in row if e >= 0]:
        seat, action = event >> 12, event & 63
        if seat != turn:
            rolling = turn if laid else None
            turn, laid = seat, False
        if action == TURN:
            continue
        if action in (PASS, DRAW):
            held[seat] += action == DRAW
            if not laid and rolling is not None:
                counts[rolling] += 1
            continue
        a, b = TILES[action % 28]
        out.add((a, b))
        held[seat] -= 1
        laid = True
        ends = [a, b] if ends is None else [a + b - ends[0], ends[1]] if action < 28 else [ends[0], a + b - ends[1]]
    order = [(leader + i) % seats for i in range(seats)]
    holder = min(order, key=lambda s: (held[s], order.index(s)))
    told = []
    for k in SUITS:
        left = [t for t in TILES if k in t and t[1] <= rules.max_pip and t not in out]
        is_open = ends is not None and k in ends
        told.append((is_open and len(left) == 1, is_open and len(left) == 2 and (k, k) in left, left == [(k, k)]))
    return holder, counts, told, held


GAMES = [
    ("sport_book", {"redeal": False}),
    ("tiny_pairs", {}),
    ("sport_club", {"seats": 2, "pairs": False, "redeal": False}),
    ("blitz", {}),
    ("blitz", {"seats": 7, "chain": "one"}),
    ("blitz", {"pairs": True}),
    ("blind_blitz", {"seats": 2}),
    ("blind", {"seats": 3}),
]


@pytest.mark.parametrize("rules, options", GAMES, ids=str)
def test_words__of_an_engine(rules, options):
    """At every move of many deals, from the mover's seat and from a fixed one."""
    engine = make_engine(rules, 12, seed=4, **options)
    rules, rng = engine.rules, np.random.default_rng(2)
    met = np.zeros(3, int)
    for step in range(60):
        for seat in (None, step % rules.seats):
            found, past = words(engine, seat), engine.history(seat)
            bits = features(past, rules, found.fewest_holder)
            viewer = engine.to_move() if seat is None else np.full(12, seat)
            for i, row in enumerate(past):
                leader = int(engine.leader()[i] - viewer[i]) % rules.seats
                holder, counts, told, _ = plain(row, rules, leader)
                assert found.fewest_holder[i] == holder and found.rolls[i].tolist() == counts
                mine = np.stack([found.end_on[i], found.long_end[i], found.cut_off_double[i]], axis=1)
                assert mine.tolist() == [list(one) for one in told]
                met += mine.sum(axis=0)
                many = [count >= least for count in counts for least in (1, 2, 3)]
                by_suit = [told[k][word] for word in range(3) for k in range(rules.max_pip + 1)]
                assert bits[i].tolist() == [s == holder for s in range(rules.seats)] + many + by_suit
            hands = np.bitwise_count(engine.hands())
            order = (viewer[:, None] + np.arange(rules.seats)) % rules.seats
            assert (public(past, rules).held == np.take_along_axis(hands, order, axis=1)).all()
        engine.step(engine.sample_legal(rng))
    assert (met > 0).all() if rules.name == "sport_book" else met.any(), "the words were met"


@pytest.mark.parametrize("rules, options", GAMES, ids=str)
def test_rates__of_an_engine(rules, options):
    """Against the plain reading of every position of whole deals."""
    engine = make_engine(rules, 30, seed=8, **options)
    rules, rng = engine.rules, np.random.default_rng(3)
    deals, parts = [], engine
    while len(deals) < 30:
        _, done = parts.step(parts.sample_legal(rng), autoreset=False)
        deals += list(parts.history(0)[done])
        parts = parts.take(~done) if not done.all() else parts
    sums, positions, rolled_once, after, won = np.zeros(3), 0, 0, 0, 0
    for row in deals:
        events = row[row >= 0]
        leader = events[0] >> 12
        held = plain(events, rules, leader)[3]
        rolled_once += sum(plain(events, rules, leader)[1])
        for upto in range(len(events)):
            holder, _, told, _ = plain(events[:upto], rules, leader)
            positions += 1
            sums += np.array(told).any(axis=0)
            if 0 in held and any(event & 63 < PASS for event in events[:upto]):
                after += 1
                won += rules.side_of(holder) == rules.side_of(held.index(0))
    assert after > 0
    wanted = [rolled_once / 30, *(sums / positions), won / after]
    assert list(rates(np.array(deals), rules).values()) == pytest.approx(wanted)


def test_words__no_python_loop_over_rows():
    """Loops run over seats, suits and words, never over the rows of a batch."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    loops = [ast.unparse(n.iter) for n in ast.walk(tree) if isinstance(n, ast.For | ast.comprehension)]
    assert set(loops) <= {
        *("range(NUM_SUITS)", "range(PASS)", "range(rules.seats)", "range(1, _ROLLS + 1)", "suits", "who"),
        *("layout_of(rules).slices", "('end_on', 'long_end', 'cut_off_double')"),
        "(found.end_on, found.long_end, found.cut_off_double)",
    }
