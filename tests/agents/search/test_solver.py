"""The double-dummy solver against plain minimax, written here from the clauses, and against PyPI `dominoes`."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from domino_env import get_rules
from domino_env.line import LineEngine

pytest.importorskip("numba")

from agents.search.solver import ILLEGAL, best_line, check, solve

TILES = [(a, b) for a in range(7) for b in range(a, 7)]
PASS = 56
GAMES = {
    "book": get_rules("sport_book"),
    "book, 0-0 counts nothing": get_rules("sport_book", lone_blank=0),
    "club": get_rules("sport_club"),
    "puerto_rico": get_rules("puerto_rico"),
    "kozyol": get_rules("kozyol"),
    "others, difference, lone": get_rules("sport_book", out_score="others", lone_blank=30),
    "losers, both": get_rules("puerto_rico", out_score="losers", lone_blank=7, labelled_ends=True),
    "tiny_pairs": get_rules("tiny_pairs", lone_blank=5),
    "double-four, leftover": get_rules("sport_club", max_pip=4, hand_size=3, redeal=False, lone_blank=10),
    "double-five, leftover": get_rules("sport_book", max_pip=5, hand_size=5, redeal=False),
    "two seats": get_rules("sport_book", seats=2, pairs=False, hand_size=7, redeal=False),
    # What two seats score does not depend on how pairs score.
    "two seats, whole set": get_rules("puerto_rico", seats=2, pairs=False, hand_size=5, max_pip=3, lone_blank=10),
}


# -- minimax, from the clauses -----------------------------------------------------------------------------------------


def pips(rules, hand):
    """S8: what a hand counts."""
    return (
        rules.lone_blank if hand == 1 and rules.lone_blank else sum(sum(TILES[t]) for t in range(28) if hand >> t & 1)
    )


def points(rules, hands, by, out):
    """S6, S7, K1, K2, B5: net points of the side of `by`, who laid the last tile."""
    left = [pips(rules, hand) for hand in hands]
    mine = sum(left[by % 2 :: 2])
    theirs = sum(left) - mine
    if out:
        return theirs + mine if rules.out_score == "others" and rules.pairs else theirs
    if mine == theirs:
        return 0
    score = {"difference": abs(mine - theirs), "loser_total": max(mine, theirs), "both_totals": mine + theirs}
    won = score[rules.block_score if rules.pairs else "difference"]
    return won if mine < theirs else -won


def actions_of(rules, hand, ends):
    """S3: action -> new ends, of the mover; a pass where there is no other."""
    legal = {}
    for tile in range(28):
        if not hand >> tile & 1:
            continue
        low, high = TILES[tile]
        if ends is None:
            legal[tile] = (low, high)
            continue
        left, right = ends
        if left in (low, high):
            legal[tile] = (low + high - left, right)
        if right in (low, high) and (left != right or rules.labelled_ends):
            legal[tile + 28] = (left, low + high - right)
    return legal or {PASS: ends}


def after(rules, hands, ends, mover, action):
    """The hands and ends after an action, and net points of the mover's side where the deal is over, else None."""
    hands = list(hands)
    ends = actions_of(rules, hands[mover], ends)[action]
    if action != PASS:
        hands[mover] ^= 1 << action % 28
        if not hands[mover]:
            return hands, ends, points(rules, hands, mover, True)
        if not any(set(TILES[t]) & set(ends) for hand in hands for t in range(28) if hand >> t & 1):
            return hands, ends, points(rules, hands, mover, False)
    return hands, ends, None


def minimax(rules, hands, ends, mover, memo=None):
    """action -> net points of the mover's side, nothing pruned."""
    key = (*hands, ends, mover)
    if memo is not None and key in memo:
        return memo[key]
    values = {}
    for action in actions_of(rules, hands[mover], ends):
        left, new, over = after(rules, hands, ends, mover, action)
        following = (mover + 1) % rules.seats
        if over is None:  # the sides alternate
            over = -max(minimax(rules, left, new, following, memo).values())
        values[action] = over
    if memo is not None:
        memo[key] = values
    return values


# -- positions ---------------------------------------------------------------------------------------------------------


def late(rules, number, tiles, seed=1):
    """Positions of random play with so many tiles left at most: hands (n, seats), ends (n, 2), to_move (n,)."""
    rng = np.random.default_rng(seed)
    engine = LineEngine(rules, 2 * number, seed)
    found = []
    while sum(len(rows) for rows, *_ in found) < number:
        hands, ends, mover = engine.hands(), engine.ends(), engine.to_move()
        few = np.bitwise_count(hands).sum(axis=1) <= tiles
        # One position of a deal, anywhere from there to its end.
        take = few & (rng.random(len(few)) < 0.3)
        found.append((hands[take], ends[take], mover[take]))
        _, done = engine.step(engine.sample_legal(rng), autoreset=False)
        going = ~(done | take)
        engine = engine.take(going) if going.any() else LineEngine(rules, 2 * number, int(rng.integers(1 << 30)))
    return tuple(np.concatenate(part)[:number] for part in zip(*found, strict=True))


def after_plies(rules, number, plies, seed=1):
    """An engine of at most so many deals, after so many plies of random play; those that have ended are left out."""
    rng = np.random.default_rng(seed)
    engine = LineEngine(rules, number, seed)
    for _ in range(plies):
        _, done = engine.step(engine.sample_legal(rng), autoreset=False)
        engine = engine.take(~done)
    return engine


def state(engine):
    return engine.hands(), engine.ends(), engine.to_move()


def values_of(row):
    """The values of the legal actions of a row of `solve`."""
    return {int(action): int(row[action]) for action in np.flatnonzero(row != ILLEGAL)}


def compare(rules, hands, ends, mover, memo=False):
    """Every legal action of every position has minimax's value, no other action has one."""
    values = solve(hands, ends, mover, rules)
    assert values.dtype == np.int32 and values.shape == (len(hands), 57)
    for row in range(len(hands)):
        line = None if ends[row, 0] < 0 else tuple(ends[row].tolist())
        expected = minimax(rules, hands[row].tolist(), line, int(mover[row]), {} if memo else None)
        assert values_of(values[row]) == expected, (rules.name, row)


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", GAMES.values(), ids=GAMES)
def test_late_positions__are_minimax(rules):
    compare(rules, *late(rules, 60, 12, seed=2), memo=True)


@pytest.mark.slow
@pytest.mark.parametrize("rules", GAMES.values(), ids=GAMES)
def test_late_positions__are_minimax_on_2000(rules):
    compare(rules, *late(rules, 200, 12, seed=3))


@pytest.mark.parametrize("game", ["tiny_pairs", "two seats, whole set"])
def test_the_lead__is_minimax(game):
    compare(GAMES[game], *state(LineEngine(GAMES[game], 6, 3)), memo=True)


@pytest.mark.parametrize("game", ["book", "puerto_rico", "losers, both", "others, difference, lone"])
def test_middle_positions__are_minimax(game):
    compare(GAMES[game], *state(after_plies(GAMES[game], 4, 9)), memo=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("game", ["book", "book, 0-0 counts nothing", "club", "puerto_rico", "kozyol"])
@pytest.mark.parametrize(("plies", "number"), [(4, 1), (6, 3), (8, 10)])
def test_early_positions__are_minimax(game, plies, number):
    compare(GAMES[game], *state(after_plies(GAMES[game], number, plies, seed=plies)), memo=True)


def test_lone_blank__counts_for_either_side():
    """S8: on outs and blocks, where the hand is 0-0 and nothing else."""
    hands, ends, mover = late(GAMES["book"], 300, 7, seed=5)
    held = (hands & 1).any(axis=1)
    position = hands[held][:60], ends[held][:60], mover[held][:60]
    with_it, without = (solve(*position, GAMES[game]) for game in ("book", "book, 0-0 counts nothing"))
    assert (with_it > without).any() and (with_it < without).any()
    for game in ("book", "book, 0-0 counts nothing"):
        compare(GAMES[game], *position)


def test_blocks__score_as_the_rules_say():
    """S7, K1: the same tile closes the line for the difference, the loser's total, or all that is left."""
    hands = np.array([[mask("1-2 3-3"), mask("4-4 4-5"), mask("0-3"), mask("0-4 5-5")]], np.uint32)
    ends, mover = np.array([[1, 2]]), np.array([0])
    # 1-2 laid on the left closes by 2, on the right by 1: 9 pips against 31 are left.
    for game, won in (("book", 22), ("club", 31), ("puerto_rico", 40), ("kozyol", 31)):
        assert values_of(solve(hands, ends, mover, GAMES[game])[0]) == {8: won, 36: won}
    # Seen from the pair that is left with more, and with as much as the other.
    hands = np.array([[mask("1-2 6-6"), mask("0-4"), mask("0-3"), mask("0-5")]] * 2, np.uint32)
    hands[1, 0], hands[1, 2] = mask("1-2 0-4"), mask("0-5")
    hands[1, 1], hands[1, 3] = mask("3-3"), mask("0-3")
    ends, mover = np.array([[1, 2]] * 2), np.array([0, 0])
    for game, lost in (("book", -6), ("club", -15), ("puerto_rico", -24), ("kozyol", -15)):
        values = solve(hands, ends, mover, GAMES[game])
        assert values_of(values[0]) == {8: lost, 36: lost}
        assert values_of(values[1]) == {8: 0, 36: 0}


def mask(names):
    return sum(1 << TILES.index((int(name[0]), int(name[2]))) for name in names.split())


def test_equal_ends__have_one_action_a_tile_unless_they_are_labelled():
    hands = np.array([[mask("1-2 1-3"), mask("2-2 2-3"), mask("3-3 1-4"), mask("4-4 1-5")]], np.uint32)
    ends, mover = np.array([[1, 1]]), np.array([0])
    values = values_of(solve(hands, ends, mover, GAMES["book"])[0])
    assert sorted(values) == [8, 9]
    labelled = values_of(solve(hands, ends, mover, get_rules("sport_book", labelled_ends=True))[0])
    assert labelled == values | {action + 28: value for action, value in values.items()}


def test_a_forced_pass__has_the_value_of_the_deal():
    hands = np.array([[mask("5-6 6-6"), mask("2-2 2-3"), mask("3-3 1-4"), mask("4-4 1-5")]], np.uint32)
    ends = np.array([[1, 2]])
    forced, next_one = (solve(hands, ends, np.array([seat]), GAMES["book"])[0] for seat in (0, 1))
    assert values_of(forced) == {PASS: -next_one.max()}


def test_dominoes__agrees_under_puerto_rico():
    """K1: values of PyPI dominoes' own alpha-beta search on 100 positions."""
    dominoes = pytest.importorskip("dominoes")
    rules = GAMES["puerto_rico"]
    hands, ends, mover = late(rules, 100, 13, seed=11)
    values = solve(hands, ends, mover, rules).max(axis=1)
    for row in range(100):
        seat = int(mover[row])
        _, value = dominoes.search.alphabeta(pypi_game(dominoes, hands[row], ends[row], seat))
        assert value == (values[row] if seat % 2 == 0 else -values[row])


def pypi_game(dominoes, hands, ends, seat):
    """The peer's game of a position: at the next seat that can play, as it passes by itself."""
    left, right = ends.tolist()
    theirs = [dominoes.Hand([dominoes.Domino(*TILES[t]) for t in range(28) if hand >> t & 1]) for hand in hands]
    while True:
        moves = [(tile, True) for tile in theirs[seat] if left in tile]
        moves += [(tile, False) for tile in theirs[seat] if right in tile and left != right]
        if moves:
            board = dominoes.SkinnyBoard(left, right, 28 - int(np.bitwise_count(hands).sum()))
            return dominoes.Game(board, theirs, [], seat, tuple(moves), seat, None)
        seat = (seat + 1) % 4


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.sampled_from(list(GAMES.values())), st.integers(6, 12), st.integers(0, 10**6))
def test_a_position__is_worth_its_best_move(rules, plies, seed):
    """Property: a value is the greatest of what is left after each action, one ply deep, by the engine's play."""
    hands, ends, mover = late(rules, 1, max(4, rules.num_tiles - plies), seed)
    values = values_of(solve(hands, ends, mover, rules)[0])
    line = None if ends[0, 0] < 0 else tuple(ends[0].tolist())
    assert sorted(values) == sorted(actions_of(rules, int(hands[0, mover[0]]), line))
    for action, value in values.items():
        left, new, over = after(rules, hands[0].tolist(), line, int(mover[0]), action)
        if over is None:
            later = solve(np.array([left]), np.array([new]), (mover + 1) % rules.seats, rules)
            over = -int(later.max())
        assert value == over


# -- one value however it is asked for ---------------------------------------------------------------------------------


def test_threads_and_order__change_no_value():
    for plies, number in ((2, 4), (7, 120)):
        hands, ends, mover = state(after_plies(GAMES["book"], number, plies))
        values = solve(hands, ends, mover, GAMES["book"], threads=1)
        assert (solve(hands, ends, mover, GAMES["book"], threads=2) == values).all()
        assert (solve(hands, ends, mover, GAMES["book"]) == values).all()
        order = np.random.default_rng(0).permutation(len(hands))
        shuffled = solve(hands[order], ends[order], mover[order], GAMES["book"], threads=1)
        assert (shuffled == values[order]).all()


def test_deals_of_one_batch__do_not_share_what_the_table_knows():
    """The same tiles, ends and mover: only who holds what differs."""
    hands, ends, mover = state(after_plies(GAMES["club"], 1, 6))
    rows = np.array([[0, 1, 2, 3], [0, 3, 2, 1], [2, 1, 0, 3], [2, 3, 0, 1]])
    hands = hands[0][rows]
    ends, mover = ends.repeat(4, axis=0), mover.repeat(4)
    together = solve(hands, ends, mover, GAMES["club"], threads=1)
    alone = [solve(hands[[row]], ends[[row]], mover[[row]], GAMES["club"])[0] for row in range(4)]
    assert (together == alone).all()
    assert (together[0] != together[1]).any()


@pytest.mark.parametrize("rules", GAMES.values(), ids=GAMES)
def test_sign__is_that_of_the_value(rules):
    position = late(rules, 60, 12)
    values, signs = solve(*position, rules), solve(*position, rules, sign=True)
    legal = values != ILLEGAL
    assert (signs[legal] == np.sign(values[legal])).all()
    assert (signs[~legal] == ILLEGAL).all()


def test_sign_from_the_deal__is_that_of_the_value():
    position = state(LineEngine("sport_book", 3, 8))
    values, signs = (solve(*position, GAMES["book"], sign=sign) for sign in (False, True))
    assert (signs == np.where(values == ILLEGAL, ILLEGAL, np.sign(values))).all()
    assert ((values != ILLEGAL).sum(axis=1) == 7).all()  # S3: any tile may be led


def test_mirrored_line__has_mirrored_values():
    hands, ends, mover = late(GAMES["book"], 50, 14)
    values, mirrored = solve(hands, ends, mover, GAMES["book"]), solve(hands, ends[:, ::-1], mover, GAMES["book"])
    apart = ends[:, 0] != ends[:, 1]
    assert (values[apart, :28] == mirrored[apart, 28:56]).all() and (values[apart, 28:56] == mirrored[apart, :28]).all()


# -- the best line -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", GAMES.values(), ids=GAMES)
def test_best_line__scores_the_value(rules):
    """The engine plays it to the end of the deal, and it scores what the solver says; the first action is the best."""
    for plies, seed in ((min(7, rules.num_tiles // 4), 3), (1, 4))[: 2 if rules.num_tiles < 28 else 1]:
        engine = after_plies(rules, 12, plies, seed)
        values = solve(*state(engine), rules)
        hands, ends, mover = state(engine)
        for row in range(min(6, engine.num_envs)):
            actions = best_line(hands[row], ends[row], int(mover[row]), rules)
            assert actions[0] == values[row].argmax()
            one = engine.take(np.array([row]))
            for action in actions[:-1]:
                _, done = one.step(np.array([action]), autoreset=False)
                assert not done[0]
            rewards, done = one.step(np.array(actions[-1:]), autoreset=False)
            assert done[0]
            assert rewards[0, mover[row]] == values[row].max()


def test_best_line__from_the_deal():
    engine = LineEngine("sport_club", 1, 2)
    hands, ends, mover = state(engine)
    actions = best_line(hands[0].tolist(), (-1, -1), int(mover[0]), engine.rules)
    for action in actions:
        rewards, _ = engine.step(np.array([action]), autoreset=False)
    assert engine.over()[0]
    assert rewards[0, mover[0]] == solve(hands, ends, mover, engine.rules).max()


# -- errors and compiled code ------------------------------------------------------------------------------------------


def test_check__names_the_games():
    for rules in GAMES.values():
        check(rules)
    for name, change in (("blitz", {}), ("blitz", {"pairs": True}), ("blind", {}), ("sport_book", {"pairs": False})):
        with pytest.raises(ValueError, match="the solver plays games of one tile a turn, of two pairs or two seats"):
            check(get_rules(name, **change))
    with pytest.raises(ValueError, match="of two pairs or two seats, not blitz"):
        solve(np.zeros((1, 4), np.uint32), np.zeros((1, 2), int), np.zeros(1, int), get_rules("blitz"))


GOOD = ["1-2 3-3", "2-2 4-4", "3-4", "5-6"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hands": ["1-2", "2-2", "", "3-4"]}, "the deal of row 1 is over: a hand is empty"),
        ({"hands": ["3-3", "4-4", "5-5", "6-6"]}, "the deal of row 1 is over: no hand can play"),
        ({"hands": ["1-2 3-3", "2-2 3-3", "3-4", "5-6"]}, "row 1 holds tile 3-3 twice"),
        ({"ends": (1, 7)}, r"the ends of row 1 must be suits in 0\.\.6, or both -1 before the lead"),
        ({"ends": (-1, 2)}, r"the ends of row 1 must be suits in 0\.\.6, or both -1 before the lead"),
        ({"seat": 4}, r"to_move of row 1 must be a seat in 0\.\.3"),
        ({"seat": -1}, r"to_move of row 1 must be a seat in 0\.\.3"),
    ],
)
def test_bad_rows__are_named(change, message):
    hands = np.array([[mask(names) for names in GOOD], [mask(names) for names in change.get("hands", GOOD)]])
    ends, mover = np.array([(1, 2), change.get("ends", (1, 2))]), np.array([0, change.get("seat", 0)])
    with pytest.raises(ValueError, match=message):
        solve(hands, ends, mover, GAMES["book"])
    with pytest.raises(ValueError, match=message.replace("row 1", "row 0")):
        best_line(hands[1], ends[1], mover[1], GAMES["book"])


def test_bad_tiles_shapes_and_threads__are_refused():
    hands, ends, mover = np.array([[mask(names) for names in GOOD]]), np.array([[1, 2]]), np.array([0])
    for tile in (1 << 28, -1, 1 << 40):
        with pytest.raises(ValueError, match="row 0 holds a tile that is not in the double-6 set"):
            solve(hands | tile, ends, mover, GAMES["book"])
    with pytest.raises(ValueError, match="row 0 holds a tile that is not in the double-3 set"):
        solve(hands, ends, mover, GAMES["tiny_pairs"])
    with pytest.raises(ValueError, match=r"hands must be whole numbers of shape \(1, 4\), not int64 of shape \(1, 3\)"):
        solve(hands[:, :3], ends, mover, GAMES["book"])
    with pytest.raises(ValueError, match=r"ends must be whole numbers of shape \(1, 2\), not float64"):
        solve(hands, ends / 1, mover, GAMES["book"])
    with pytest.raises(ValueError, match=r"to_move must be whole numbers of shape \(1,\), not int64 of shape \(\)"):
        solve(hands, ends, 0, GAMES["book"])
    for threads in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match=r"threads=.* must be a whole number >= 1 or None"):
            solve(hands, ends, mover, GAMES["book"], threads=threads)


def test_no_rows__have_no_values():
    values = solve(np.zeros((0, 4), np.uint32), np.zeros((0, 2), int), np.zeros(0, int), GAMES["book"])
    assert values.shape == (0, 57) and values.dtype == np.int32


def test_compiled_code__is_loaded_by_another_process():
    """A form in the cache that does not load, or is not found, shows only in a process that has compiled nothing."""
    position = state(after_plies(GAMES["book"], 2, 9))
    values = solve(*position, GAMES["book"])
    code = (
        "import numpy as np; from agents.search import solver; from domino_env import get_rules\n"
        f"hands, ends, mover = (np.array(part) for part in {tuple(part.tolist() for part in position)})\n"
        "values = solver.solve(hands, ends, mover, get_rules('sport_book'))\n"
        "assert solver._solve.stats.cache_hits and not solver._solve.stats.cache_misses\n"
        "print(values.tolist())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(values.tolist())
