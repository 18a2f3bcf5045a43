"""Words of the game (head of rules.md): each on positions made by hand, then all against a plain reading."""

import ast
from pathlib import Path

import numpy as np
import pytest

from domino_env import make_engine, words as module
from domino_env.tiles import action_index
from domino_env.words import cut_off_double, end_on, fewest_holder, long_end, public, rolled, rolls, words
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


# ------------------------------------------------------------------------------------------ all of it, read plainly


def plain(row, seats, max_pip, leader):
    """The words of one history, by the sentences of rules.md, event by event."""
    laid, out, ends, counts = [0] * seats, set(), None, [0] * seats
    before = None  # the seat of the last lay, while nobody has answered it
    for event in [int(e) for e in row if e >= 0]:
        seat, action = event >> 12, event & 63
        if action == 56:
            if before is not None:
                counts[before] += 1
            before = None
            continue
        a, b = TILES[action % 28]
        out.add((a, b))
        laid[seat] += 1
        before = seat
        ends = [a, b] if ends is None else [a + b - ends[0], ends[1]] if action < 28 else [ends[0], a + b - ends[1]]
    order = [(leader + i) % seats for i in range(seats)]
    holder = min(order, key=lambda s: (-laid[s], order.index(s)))
    told = []
    for k in SUITS:
        left = [t for t in TILES if k in t and t[1] <= max_pip and t not in out]
        is_open = ends is not None and k in ends
        told.append((is_open and len(left) == 1, is_open and len(left) == 2 and (k, k) in left, left == [(k, k)]))
    return holder, counts, told


@pytest.mark.parametrize(
    "rules, options", [("sport_book", {}), ("tiny_pairs", {}), ("sport_club", {"seats": 2, "pairs": False})]
)
def test_words__of_an_engine(rules, options):
    """At every move of many deals, from the mover's seat and from a fixed one."""
    engine = make_engine(rules, 60, seed=4, redeal=False, **options)
    rng = np.random.default_rng(2)
    met = np.zeros(3, int)
    for step in range(60):
        for seat in (None, step % engine.rules.seats):
            found = words(engine, seat)
            viewer = engine.to_move() if seat is None else np.full(60, seat)
            for i, row in enumerate(engine.history(seat)):
                leader = int(engine.leader()[i] - viewer[i]) % engine.rules.seats
                holder, counts, told = plain(row, engine.rules.seats, engine.rules.max_pip, leader)
                assert found.fewest_holder[i] == holder and found.rolls[i].tolist() == counts
                mine = np.stack([found.end_on[i], found.long_end[i], found.cut_off_double[i]], axis=1)
                assert mine.tolist() == [list(one) for one in told]
                met += mine.sum(axis=0)
        engine.step(engine.sample_legal(rng))
    assert (met > 0).all(), "each word was met"


def test_words__no_python_loop_over_rows():
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    loops = [ast.unparse(n.iter) for n in ast.walk(tree) if isinstance(n, ast.For | ast.comprehension)]
    assert set(loops) <= {"range(NUM_SUITS)", "range(PASS)", "range(rules.seats)", "range(get_rules(rules).seats)"}
