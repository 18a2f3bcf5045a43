"""`domino advise`: exact where all deals are solved, an interval where they are drawn, and what cannot be is named."""

import dataclasses
import io
import itertools
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from agents.search import solver
from agents.search.position import position_at
from domino_env import get_rules, make_engine, render
from domino_env.deals import format_deal, struck
from domino_env.tiles import NUM_TILES, PASS, SUIT_MASK, tile_name, tiles_of
from experiments import advise as adviser, cli
from experiments.advise import Advice, advise, find, from_text, from_words, report
from tests.records import match_record

# A deal of sport_club after fourteen moves: seat 2 is to move.
HANDS = [
    "0-3 0-5 1-3 1-5 2-6 3-5 6-6",
    "0-0 0-2 0-4 1-1 2-4 2-5 3-3",
    "0-1 1-2 1-4 2-3 3-4 4-6 5-5",
    "0-6 1-6 2-2 3-6 4-4 4-5 5-6",
]
MOVES = "1-5L 2-5R 1-2R 1-6L 2-6L 0-2L 1-4R 4-5R 0-3L 3-3L 5-5R 3-6L 6-6L pass"
DEAL = f"sport_club leader=0 | {' | '.join(HANDS)} | {MOVES}"
TABLE = f"sport_club leader=0 seat=2 | {HANDS[2]} | {MOVES}"
CODES = re.compile("\x1b\\[[0-9;]*m")


def every_deal(position: Any) -> list[list[int]]:
    """All hands that fit what is known, by trying all: masks by seat. S4 counts where the rules have it."""
    rules, viewer = position.rules, int(position.viewer[0])
    others = [seat for seat in range(rules.seats) if seat != viewer]
    ends = [int(end) for end in position.ends[0] if end >= 0]
    found = []

    def deal(left: list[int], hands: dict[int, int]) -> None:
        if len(hands) == len(others):
            whole = [int(position.own[0]) if seat == viewer else hands[seat] for seat in range(rules.seats)]
            goes_on = not ends or any(hand & int(SUIT_MASK[end]) for hand in whole for end in ends)
            dealt = np.array([[hand | int(laid) for hand, laid in zip(whole, position.played[0])]], np.uint32)
            if goes_on and not (rules.redeal and struck(dealt)[0]):
                found.append(whole)
            return
        seat = others[len(hands)]
        lacks = [int(SUIT_MASK[k]) for k in range(7) if int(position.voids[0, seat]) >> k & 1]
        may = [tile for tile in left if not any(mask >> tile & 1 for mask in lacks)]
        for hand in itertools.combinations(may, int(position.sizes[0, seat])):
            rest = [tile for tile in left if tile not in hand]
            deal(rest, {**hands, seat: sum(1 << tile for tile in hand)})

    deal(tiles_of(int(position.hidden[0])), {})
    return found


def brute(position: Any) -> tuple[dict[str, tuple[float, float]], np.ndarray]:
    """By move its mean points and share of wins over all deals, and who holds what."""
    rules, deals = position.rules, np.array(every_deal(position), np.uint32)
    n = len(deals)
    values = solver.solve(deals, np.repeat(position.ends, n, 0), np.repeat(position.to_move, n), rules).astype(float)
    legal = np.flatnonzero(values[0] != solver.ILLEGAL).tolist()
    moves = {rules.action_name(a): (values[:, a].mean(), (values[:, a] > 0).mean()) for a in legal}
    held = (deals[:, :, None] >> np.arange(NUM_TILES, dtype=np.uint32) & 1).mean(axis=0)
    return moves, held


@pytest.mark.parametrize(
    "rules",
    [
        get_rules("tiny_pairs"),
        get_rules("tiny_pairs", labelled_ends=True),
        get_rules("tiny_pairs", seats=2, pairs=False, hand_size=3),
    ],
    ids=["tiny", "labelled", "two"],
)
def test_where_all_deals_are_solved_it_is_exact(rules: Any) -> None:
    rng = np.random.default_rng(2)
    passes = 0
    for seed in range(2):
        engine = make_engine(rules, 1, seed=seed)
        while not engine.over()[0]:
            position = position_at(engine)
            moves, held = brute(position)
            advice = advise(position, worlds=10_000)
            assert advice.exact and advice.worlds == advice.deals and advice.ess == pytest.approx(advice.worlds)
            assert {move.move for move in advice.moves} == set(moves)
            for move in advice.moves:
                assert (move.points, move.win) == pytest.approx(moves[move.move], abs=1e-9)
            assert all(move.low == move.high == move.points for move in advice.moves)
            points = [move.points for move in advice.moves]
            assert points == sorted(points, reverse=True)
            assert advice.tiles[:-1] == pytest.approx(held, abs=1e-9)
            if advice.moves[0].move == "pass":
                passes += 1
                assert any("must pass" in note for note in advice.notes)
            engine.step(engine.sample_legal(rng), autoreset=False)
    assert passes


def test_drawn_worlds_are_near_the_exact_mean_and_follow_from_the_seed() -> None:
    position = from_text("tiny_pairs leader=0 seat=0 | 0-3 2-3").position()
    exact = {move.move: move for move in advise(position, worlds=100_000).moves}
    found = [advise(position, worlds=400, seed=seed) for seed in range(60)]
    assert not any(advice.exact for advice in found) and found[0].deals == 2520
    inside = [
        move.low <= exact[move.move].points <= move.high  # type: ignore[operator]
        for advice in found
        for move in advice.moves
    ]
    assert 0.85 < np.mean(inside) < 0.99, "95 % intervals"
    again = advise(position, worlds=400, seed=3)
    assert again.moves == found[3].moves and found[3].moves != found[4].moves
    assert np.array_equal(again.tiles, found[4].tiles), "who holds what is exact"
    few = advise(position, worlds=25, seed=3).moves[0]
    assert few.high - few.low > 2 * (again.moves[0].high - again.moves[0].low)  # type: ignore[operator]
    single = advise(position, worlds=1).moves
    assert all(move.low is None and move.high is None for move in single)
    assert json.dumps([vars(move) for move in single])


def test_only_the_own_hand_is_looked_at() -> None:
    """Whatever the others hold: a whole deal says no more than the own hand and the moves."""
    other = DEAL.replace("0-6 1-6 2-2", "0-6 1-6 0-0").replace("0-0 0-2 0-4", "2-2 0-2 0-4")
    mine = from_text(TABLE)
    dealt = HANDS[2].split()
    left = " ".join(tile for tile in dealt if tile not in re.sub("[LR]", "", MOVES).split())
    by_hand = from_words(get_rules("sport_club"), 2, 0, left.replace(" ", ","), MOVES)
    told = [from_text(DEAL), from_text(other), from_text(DEAL, seat=2), mine, by_hand]
    plain = [advise(table.position(), worlds=50).to_dict() for table in told]
    assert all(one == plain[0] for one in plain)
    assert plain[0]["seat"] == plain[0]["to_move"] == 2
    assert json.loads(json.dumps(plain[0])) == plain[0]


def test_the_json_says_what_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", TABLE, "--json", "--worlds", "30"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert {"to_move", "moves", "belief", "worlds", "effective_sample_size"} <= set(found)
    assert [list(move) for move in found["moves"]] == [["move", "points", "low", "high", "win"]]
    move = found["moves"][0]
    assert move["move"] == "4-6L" and move["low"] < move["points"] < move["high"] and 0 <= move["win"] <= 1
    hidden = tiles_of(int(from_text(TABLE).position().hidden[0]))
    assert list(found["belief"]) == [tile_name(tile) for tile in hidden]
    for by_seat in found["belief"].values():
        assert list(by_seat) == ["0", "1", "3"] and sum(by_seat.values()) == pytest.approx(1)
    assert found["belief"]["0-6"]["1"] == 0, "it passed on 6"
    assert found["suits"]["1"][5:] == [0, 0]
    assert found["worlds"] == found["effective_sample_size"] == 30 and not found["exact"]
    assert found["model"] is None and found["fell_back"] is False and found["notes"] == []
    assert cli.main(["advise", TABLE.replace("sport_club", "tiny_pairs").split("|")[0] + "| 0-1 1-2", "--json"]) == 0
    tiny = json.loads(capsys.readouterr().out)
    assert tiny["to_move"] == 0 and tiny["moves"] == [] and tiny["worlds"] == 0, "another seat is to move"
    assert list(tiny["belief"]["0-0"]) == ["0", "1", "3", "nobody"]
    assert tiny["belief"]["0-0"]["nobody"] == pytest.approx(2 / 8)


def test_the_text_has_the_moves_and_a_picture_of_the_belief(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", TABLE, "--worlds", "5000"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80 and "\x1b" not in text
    assert lines[0] == "sport_club: you are seat_2, seat_0 leads; 14 moves, ends 6 and 5"
    assert lines[1:3] == ["your hand: 0-1 2-3 3-4 4-6", "passes tell: seat_1 no 5 6"]
    assert re.search(r"^4-6L +[+-][0-9.]+ +exact +[0-9]+%$", text, re.M)
    assert "Over all 1,190 deals that can be" in " ".join(lines)
    assert re.search(r"left +partner right .*\n +seat_3  seat_0  seat_1", text)
    for tile in range(NUM_TILES):
        assert tile_name(tile) in text.split("who holds what")[1].split("who holds a tile")[0]
    assert "0-1  your hand" in text and "1-2  laid by you" in text and "5-5  laid by you" in text
    assert re.search(r"0-5  ▓▓ 57   ▒▒ 43       ·  ", text)
    assert re.search(r" 5 .*·$", text, re.M), "seat 1 holds no 5"
    # The same in colour, only coloured.
    advice = advise(from_text(TABLE).position(), worlds=5000)
    assert CODES.sub("", report(advice, color=True)) == report(advice) == text
    assert report(advice, color=True) != text


def test_the_picture_fits_the_terminal_for_every_number_of_seats() -> None:
    tiles = {tile_name(tile): [0.0, 0.004, 0.5, 0.996, 1.0, 1 / 3, 0.1, 0.9] for tile in range(NUM_TILES)}
    for seats in range(1, 9):
        text = render.belief({name: row[:seats] for name, row in tiles.items()}, [("head", "seat_1")] * seats)
        assert max(map(len, text.splitlines())) <= 80
        assert len(text.splitlines()) == (16 if seats < 5 else 30)
    row = text.splitlines()[2]
    assert row.split() == ["0-0", "·", "░░", "<1", "▓▓", "50", "▓▓>99", "██100", "▒▒", "33", "░░", "10", "▓▓", "90"]
    assert render.belief({"0-0": "your hand"}, [("left", "seat_1")]).splitlines()[2] == "0-0  your hand"


def test_another_seats_turn_a_given_deal_and_blitz_are_told() -> None:
    other = advise(from_text(DEAL, seat=0).position(), worlds=10)
    assert other.moves == [] and other.notes == ["it is the turn of seat_2: no moves to value"]
    assert report(other).count("it is the turn of seat_2") == 1
    own = from_words(get_rules("sport_club"), 0, 0, "0-0 1-1 2-2 3-3 4-4 5-5 6-6")
    given = advise(own.position(), worlds=4)
    assert any("S4" in note for note in given.notes) and len(given.moves) == 7
    engine = make_engine("blitz", 1, seed=5)
    rng = np.random.default_rng(0)
    for _ in range(7):
        engine.step(engine.sample_legal(rng), autoreset=False)
    blitz = advise(position_at(engine))
    assert blitz.moves == [] and "no moves are valued" in blitz.notes[0]
    assert blitz.tiles.sum(axis=0) == pytest.approx([0 if tile_laid(engine, t) else 1 for t in range(NUM_TILES)])
    assert "across" in report(blitz)


def tile_laid(engine: Any, tile: int) -> bool:
    return bool(np.bitwise_or.reduce(engine.played()[0]) >> np.uint32(tile) & 1)


def test_a_clock_ends_the_drawing_of_worlds() -> None:
    position = from_text(DEAL).position(3)
    short, longer = advise(position, ms=1), advise(position, ms=300)
    assert short.worlds == adviser._AT_ONCE and not short.exact
    assert longer.worlds > short.worlds
    capped = advise(position, ms=100_000, worlds=40)
    assert capped.worlds == 40 and capped.moves == advise(position, worlds=40).moves
    shown: list[tuple[int, int]] = []
    advise(position, worlds=40, show=lambda done, total: shown.append((done, total)))
    assert shown == [(16, 40), (32, 40), (40, 40)]


def test_a_model_reads_the_moves() -> None:
    position = from_text(DEAL).position(5)
    by_rules, read = advise(position, worlds=60), advise(position, worlds=60, model="greedy", candidates=300)
    assert read.model == "greedy" and not read.fell_back and not np.allclose(read.tiles, by_rules.tiles)
    assert read.ess < 60
    assert "the others' moves are read as those of greedy" in report(read)
    same = advise(position, worlds=60, model="rules")
    assert [move.move for move in same.moves] == [move.move for move in by_rules.moves]
    late = advise(from_text(DEAL).position(), worlds=2000, model="greedy", floor=0.1)
    assert late.exact and late.ess < late.worlds == 1190 and late.tiles.sum() == pytest.approx(28 - 13)
    assert late.moves[0].points != advise(from_text(DEAL).position(), worlds=2000).moves[0].points


def test_a_history_that_the_model_rules_out_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", DEAL, "--model", "greedy", "--floor", "0", "--worlds", "20"]
    assert cli.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fell_back"] is True and found["model"] == "greedy"
    assert found["notes"] == ["no hands explain the moves if greedy made them: what follows is by the rules alone"]
    assert cli.main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "! no hands explain the moves if greedy made them" in text and "are read as those" not in text
    rules = advise(from_text(DEAL).position(), worlds=20)
    assert [move["points"] for move in found["moves"]] == [move.points for move in rules.moves]


def test_tables_are_found_in_files_and_on_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tables.txt"
    path.write_text(f"# two\n{DEAL}\n\n{TABLE}\n", encoding="utf-8")
    assert find(str(path), 1).position().own[0] == find(str(path), 2).position().own[0]
    monkeypatch.setattr("sys.stdin", io.StringIO(TABLE + "\n"))
    assert find("-").seat == 2
    moved = TABLE.replace("2-5R 1-2R", "1:2-5R 2:1-2R")
    assert moved != TABLE and from_text(moved).position().own[0] == from_text(TABLE).position().own[0]
    match_record(tmp_path / "match.jsonl")
    table = find(str(tmp_path / "match.jsonl"), 2, 3)
    assert table.rules.name == "sport_club" and table.position(5).viewer[0] == 3
    fields = from_text("sport_book leader=1 seat=0 lone_blank=3 redeal=False | 0-0 0-1 0-2 0-3 0-4 0-5 0-6")
    assert fields.rules == get_rules("sport_book", lone_blank=3, redeal=False)


def over() -> str:
    """A deal of tiny_pairs that ended with an out."""
    rng = np.random.default_rng(1)
    for seed in range(100):
        engine = make_engine("tiny_pairs", 1, seed=seed)
        while not engine.over()[0]:
            engine.step(engine.sample_legal(rng), autoreset=False)
        if engine.snapshot(0)["deal"]["outcome"] == "out":
            return format_deal(engine.record(0))
    raise AssertionError


HAND = ["--hand", "0-0 0-1 0-2 1-1 1-2 2-2 5-6", "--seat", "2", "--leader", "0"]
BAD = [
    (["advise"], "missing: --hand, --seat, --leader; or name a table in text"),
    (["advise", *HAND[:4]], "missing: --leader"),
    (["advise", ""], "a deal begins with the name of its rules"),
    (["advise", TABLE, *HAND[:2]], "--hand 0-0 0-1 0-2 1-1 1-2 2-2 5-6: the table is given in text"),
    (["advise", TABLE, "--seat", "1"], "--seat 1: the hand is that of seat 2"),
    (["advise", DEAL, "--seat", "4"], "--seat 4: sport_club has seats 0 to 3"),
    (["advise", *HAND[:2], "--seat", "4", "--leader", "0"], "--seat 4: sport_book has seats 0 to 3"),
    (["advise", *HAND[:4], "--leader", "4"], "leader=4 must be a seat of sport_book"),
    (["advise", *HAND, "--rules", "sprot"], "unknown rules 'sprot'"),
    (["advise", *HAND, "--rules", "blind"], "beliefs and search are for games on an open line"),
    (["advise", *HAND, "--worlds", "0"], "'--worlds'"),
    (["advise", *HAND, "--ms", "0"], "'--ms'"),
    (["advise", *HAND, "--candidates", "0"], "'--candidates'"),
    (["advise", *HAND, "--floor", "2"], "'--floor'"),
    (["advise", *HAND, "--model", "nobody"], "unknown agent 'nobody'"),
    (["advise", *HAND, "--move", "1"], "--move 1: there are moves 0 to 0"),
    (["advise", *HAND, "--moves", "3-4L 4-4"], "--moves: unknown move '4-4'"),
    (["advise", *HAND, "--moves", "3-4L x:pass"], "--moves: 'x:pass': before a colon stands the seat"),
    (["advise", *HAND, "--moves", "3-4L 2:4-4R"], "move 2, 4-4R, is of seat 1, whose turn it is, not of seat 2"),
    (["advise", *HAND[2:], "--hand", "0-0 0-7"], "--hand: unknown tile '0-7'"),
    (["advise", *HAND[2:], "--hand", "0-0 0-0 0-2 1-1 1-2 2-2 5-6"], "hand: tile 0-0 stands there twice"),
    (
        ["advise", *HAND[2:], "--hand", " ".join(tile_name(t) for t in range(28)) + " 0-0"],
        "tile 0-0 stands there twice",
    ),
    (["advise", *HAND[2:], "--hand", " ".join(tile_name(t) for t in range(28))], "was dealt 7 tiles; 28 are given"),
    (["advise", *HAND, "--moves", "3-4L pass pass pass pass"], "move 5: all seats have passed"),
    (
        ["advise", *HAND, "--moves", "1-4L 4-4R pass"],
        "move 3 is a wrong pass: seat 2 passed while 1 and 4 were the ends",
    ),
    (["advise", *HAND, "--moves", "3-4L pass 4-5R 5-5R 4-6L 3-3L"], "move 5: 4-6 does not match the left end"),
    (
        ["advise", *HAND, "--moves", "3-4L pass 4-4R"],
        "hand: seat 2 laid 4-4 at move 3, and the 7 tiles it was dealt lack",
    ),
    (
        ["advise", *HAND, "--moves", "3-4L pass pass 4-4R 4-5R 3-3L"],
        "move 2 is a wrong pass: seat 1 passed while 3 and 4",
    ),
    (["advise", *HAND, "--moves", "5-6L"], "hand: tile 5-6 was laid by seat 0 at move 1"),
    (["advise", over()], "the deal is over: seat "),
    (["advise", "none.txt"], "none.txt: No such file or directory"),
    (["advise", "tables.txt"], "tables.txt holds deals 1 to 2: choose with --deal"),
    (["advise", "tables.txt", "--deal", "3"], "--deal 3: tables.txt holds deals 1 to 2"),
    (["advise", "empty.txt"], "empty.txt holds no deals"),
    (["advise", "bad.txt"], "bad.txt: line 1, column 34: unknown tile '0-9'"),
    (["advise", "latin.txt"], "latin.txt: not a text file in UTF-8"),
    (["advise", "sport_book seat=1 | 0-0"], "line 1, column 1: leader=SEAT is missing"),
    (["advise", "sprot leader=0 seat=1 | 0-0"], "line 1, column 1: unknown rules 'sprot'"),
    (["advise", "sport_book leader=0 seat=4 | 0-0"], "line 1, column 1: seat=4 must be in 0..3"),
    (["advise", "sport_book leader=0 seat=1 seat=2 | 0-0"], "line 1, column 28: 'seat=2': write leader=SEAT"),
    (["advise", "sport_book leader=0 seat=1 blank=3 | 0-0"], "rules have no field 'blank'"),
    (["advise", "sport_book leader=0 seat=1 | 0-0 | 3-4L | pass"], "after seat=1 write | its hand | the moves"),
    (["advise", DEAL.replace("0-6 1-6", "0-0 1-6")], "tile 0-0 stands here a second time"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[f"{i}" for i in range(len(BAD))])
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables.txt").write_text(f"{DEAL}\n{TABLE}\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "bad.txt").write_text("sport_book leader=0 seat=1 | 0-0 0-9\n")
    (tmp_path / "latin.txt").write_bytes(b"\xe9 |\n")
    before = sorted(tmp_path.iterdir())
    for more in ([], ["--json"]):
        assert cli.main([*words, *more]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("domino: ") and err.count("\n") == 1
        assert says in err
    assert sorted(tmp_path.iterdir()) == before, "nothing is written"


def test_what_a_sample_never_shows_is_not_called_impossible(capsys: pytest.CaptureFixture[str]) -> None:
    """Whose turn it is, is another question: few effective samples are named in any case."""
    table = "sport_book leader=0 seat=1 | 0-1 1-1 2-2 3-4 3-5 4-6 6-6 | 2-4L 3-4R 2-5L 3-3R"
    assert cli.main(["advise", table, "--model", "double_first", "--floor", "0", "--candidates", "500"]) == 0
    shown = capsys.readouterr().out
    assert "effective samples" in shown and "it is the turn of seat_0" in shown
    picture = shown[shown.index("seat_2  seat_3") :]
    assert "100" not in picture and "·" not in picture and "<1" in picture and ">99" in picture


def test_a_long_path_of_a_model_has_a_line_of_its_own() -> None:
    advice = advise(from_text("tiny_pairs leader=0 seat=1 | 0-1 2-2 | 1-1L").position(), worlds=2)
    lines = report(dataclasses.replace(advice, model="runs/" + 12 * "long-" + "/latest")).splitlines()
    assert max(map(len, lines)) <= 80 and any(line.startswith("  runs/") for line in lines)


@pytest.mark.parametrize("words", [["solve", DEAL], ["advise", DEAL]], ids=["solve", "advise"])
def test_without_numba_the_extra_is_named(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    for name in ("kernels", "solver", "beliefs", "counting", "reading"):
        monkeypatch.delitem(sys.modules, f"agents.search.{name}", raising=False)
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "need numba, which is not installed" in err and "pip install 'domino-lab[search]'" in err


def test_the_examples_of_the_help_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    match_record(tmp_path / "match.jsonl")
    assert cli.main(["advise", "--help"]) == 0
    found = re.findall(r"Example: domino ((?:.|\n(?!\s*\n))+)", capsys.readouterr().out)
    assert len(found) == 3
    for example in found:
        words = shlex.split(" ".join(example.split()))
        if "--worlds" not in words and "--ms" not in words:
            words += ["--worlds", "20"]
        assert cli.main(words) == 0, example
        assert capsys.readouterr().out


def test_numbers_are_checked() -> None:
    position = from_text(TABLE).position()
    for name in ("worlds", "ms", "candidates"):
        with pytest.raises(ValueError, match=f"{name}=0 must be at least 1"):
            advise(position, **{name: 0})
    with pytest.raises(ValueError, match=r"floor=1.5 must be in 0\.\.1"):
        advise(position, floor=1.5)
    assert isinstance(advise(position, worlds=1), Advice) and PASS == 56


def test_the_drawn_belief_has_every_tile_once_and_frames_the_truth(tmp_path: Path) -> None:
    position = find(TABLE).position()
    advices = {"rules": advise(position, worlds=1), "club": advise(position, worlds=1, model="club")}
    hands = [[tile_name(tile) for tile in tiles_of(mask)] for mask in every_deal(position)[0]]
    figure = adviser._figure(advices, hands)
    assert len(figure.axes) == 6
    for axes, (title, seat) in zip(figure.axes, itertools.product(advices, (3, 0, 1))):
        assert axes.get_title().split("\n")[0] == title
        assert f"seat_{seat}" in axes.get_title()
        chances = advices[title].tiles[seat]
        told = {(text.get_position(), text.get_text()) for text in axes.texts}
        hidden = [tile for tile in tiles_of(int(position.hidden[0])) if chances[tile] > 0]
        places = {tile: tuple(map(int, tile_name(tile).split("-"))) for tile in hidden}
        assert {place for place, _ in told} == set(places.values())
        for tile, place in places.items():
            assert (place, f"{100 * chances[tile]:.0f}") in told or not 0.01 < chances[tile] < 0.99
        framed = {tuple(np.rint(np.mean(line.get_xydata()[:4], axis=0)).astype(int)) for line in axes.lines}
        assert framed == {tuple(map(int, name.split("-"))) for name in hands[seat]}
    picture = adviser.draw_beliefs(advices, tmp_path / "beliefs.png", hands)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    other = advise(find(TABLE).position(9), worlds=1)
    for wrong in ({}, {**advices, "other": other}):
        with pytest.raises(ValueError, match="one position"):
            adviser.draw_beliefs(wrong, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
