"""`domino play`: driven over pipes, by typer's runner and in a terminal; its texts come from the one catalogue."""

import ast
import errno
import fcntl
import io
import os
import pty
import re
import select
import signal
import string
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from agents import base
from agents.base import Decisions, make_agent, register_agent
from agents.checkpoint import save
from agents.networks import make_actor
from domino_env import PRESETS, get_rules, make_engine, match
from domino_env.deals import parse_deal
from domino_env.observation import layout_of
from domino_env.render import words as catalogue
from domino_env.render.line import story_of
from domino_env.rules import describe_rules
from domino_env.tiles import tile_name
from experiments import cli, play
from experiments.console import asked_rules
from experiments.replay import play as replayed

ROOT = Path(__file__).resolve().parents[2]
FIRST = "1\n" * 300  # the first offered move, over and over
COMMAND = typer.main.get_command(cli.app)
QUICK = "--opponents greedy --hint greedy"
CODES = re.compile("\x1b\\[[0-9;?]*[a-zA-Z]")

Sit = Callable[..., tuple[int, str, str]]
Types = str | Callable[[str], str]  # all the input, or: what was told so far -> the next line


class Person(io.TextIOBase):
    """Standard input that reads what is told before it answers."""

    def __init__(self, out: io.StringIO, types: Callable[[str], str]) -> None:
        self.out, self.types = out, types

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return self.types(self.out.getvalue())


@pytest.fixture
def sit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Sit:
    """Runs `domino play` with these words and this input in an empty folder: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(words: str, types: Types = FIRST) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        person = io.StringIO(types) if isinstance(types, str) else Person(out, types)
        with monkeypatch.context() as patch:
            for name, stream in (("stdin", person), ("stdout", out), ("stderr", err)):
                patch.setattr(sys, name, stream)
            patch.setattr(typer.main, "get_command", lambda app: COMMAND)  # to build it anew is most of the time
            code = cli.main(["play", *(word.replace(",", " ") for word in words.split())])
        return code, out.getvalue(), err.getvalue()

    return run


def offered(out: str) -> list[str]:
    """The moves that were offered last."""
    *_, offer = re.findall(r"^1\) .*\n(?:\d+\) .*\n)*", out, re.MULTILINE)
    return [move.strip() for move in re.split(r"(?:^| +|\n)\d+\) ", offer)[1:]]


def deal_text(out: str) -> str:
    """The notation of the one deal that was told."""
    (found,) = re.findall(r"^(?:the deal|запись раздачи): (.*)$", out, re.MULTILINE)
    return str(found)


def asked(out: str) -> list[str]:
    """The line that followed each prompt."""
    return re.findall(r"^your move:\n(.*)$", out, re.MULTILINE)


# -- the catalogue ----------------------------------------------------------------------------------------------------


def test_both_languages_have_the_same_keys_and_gaps() -> None:
    english, russian = (catalogue.words_of(lang) for lang in ("en", "ru"))
    assert list(english) == list(russian)
    for key in english:
        gaps = [
            [gap for _, gap, _, _ in string.Formatter().parse(text[key]) if gap is not None]
            for text in (english, russian)
        ]
        assert gaps[0] == gaps[1] or ("" not in gaps[0] and sorted(gaps[0]) == sorted(gaps[1])), key
        assert not re.search("[а-яё]", english[key], re.IGNORECASE), key
        plain = re.sub(r"\{\w*\}|--?\w+|\n| ", "", russian[key])
        assert not re.search("[a-z]", plain, re.IGNORECASE) or re.search("[а-яё]", plain, re.IGNORECASE), key


@pytest.mark.parametrize("lang", ["en", "ru"])
def test_texts_fit_a_terminal(lang: str) -> None:
    for key, text in catalogue.words_of(lang).items():
        assert key.startswith("bad_") or max(map(len, text.splitlines())) <= 80, key


def test_the_words_of_the_table_are_there() -> None:
    russian, english = (" ".join(catalogue.words_of(lang).values()) for lang in ("ru", "en"))
    for (
        word
    ) in "ход заход бой пас четвёрка партия раздача базар дубль масть конец пара косточка выход стоп ряд".split():
        assert re.search(rf"\b{word}\b", russian), word
    for word in "move lead block pass four match deal stock double suit end pair tile out stop row".split():
        assert re.search(rf"\b{word}\b", english), word


SOURCE = ast.parse(Path(play.__file__).read_text(encoding="utf-8"))


def test_no_text_of_the_game_stands_outside_of_the_catalogue() -> None:
    docs = {id(node.value) for node in ast.walk(SOURCE) if isinstance(node, ast.Expr)}
    patterns = {
        id(node.args[0]) for node in ast.walk(SOURCE) if isinstance(node, ast.Call) and "re." in ast.unparse(node.func)
    }
    for node in ast.walk(SOURCE):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs | patterns:
            # Keys, names of options and seats, and signs between them are no text.
            assert re.fullmatch(r"(--)?[a-z_]*0?|[^\w]*", node.value), f"line {node.lineno}: {node.value!r}"


def test_every_key_exists_and_every_text_of_the_game_is_used() -> None:
    keys = list(catalogue.words_of("en"))
    code = ast.unparse(SOURCE)
    offences = {f"offence_{kind}" for kind in ("wrong_pass", "misfit_at_once", "false_block")}  # see domino_env.judged
    for key in keys[keys.index("term_tile") :]:  # those before are of the drawn table
        family, _, rest = key.partition("_")
        built = family in ("term", "move", "type") and f"'{rest}'" in code
        assert f"'{key}'" in code or built or key in offences, f"{key} is unused"
    for node in ast.walk(SOURCE):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "self.say"
            and isinstance(node.args[0], ast.Constant)
        ):
            assert node.args[0].value in keys
    assert offences <= set(keys)
    for term in (*play._TERMS, "pair", "stop", "row", "turn", "stock"):
        assert f"term_{term}" in keys


# -- a game -----------------------------------------------------------------------------------------------------------

GAMES = [
    *PRESETS,
    "blitz,seats=8",
    "blitz,pairs=true",
    "blitz,seats=5,chain=one",
    "blind,seats=2",
    "sport_book,seats=2,pairs=false",
]


@pytest.mark.parametrize("rules", GAMES)
def test_every_game_is_played_to_its_end(rules: str, sit: Sit) -> None:
    """S, B, R, K: a person who always takes the first offered move."""
    code, out, err = sit(f"--rules {rules} --seed 11 --as seat_1")
    assert (code, err) == (0, "") and "\x1b" not in out
    replay = replayed(deal_text(out))
    last = replay.positions[-1]
    assert replay.deal.rules == asked_rules(rules.replace(",", " ")) and last["over"]
    assert out.startswith(f"{replay.deal.rules.title}: you are seat_1; --seed 11 ")
    assert f"points {' : '.join(map(str, last['deal']['points']))}" in out
    movers = [move.seat for move in story_of(last).moves]
    for seat in range(replay.deal.rules.seats):
        who = "you" if seat == 1 else f"seat_{seat}"
        told = re.findall(rf"^{who}: (?!open now)(.*)$", out, re.MULTILINE)
        assert len(told) == movers.count(seat), f"each move of {who} is told"
    forced = out.count(" (the only move)")
    assert len(asked(out)) + forced == movers.count(1), "forced moves are told and not asked for"
    assert not any(line.endswith("(the only move)") for line in asked(out))


@pytest.mark.parametrize(
    "rules", ["sport_book", "blitz,seats=6", "blind_blitz,seats=3", "blind", "blind_blitz,memory=peek"]
)
def test_the_table_never_shows_what_the_seat_may_not_see(rules: str, sit: Sit) -> None:
    """Until the end of the deal only tiles lie open that were told before, or its own; then all hands are open."""
    out = sit(f"--rules {rules} --seed 2 --as seat_1 {QUICK}")[1]
    replay = replayed(deal_text(out))
    last = replay.positions[-1]
    face = re.compile(r"[\[({](\d)\|(\d)[\])}]")
    seen = set(last["dealt"][1]) if replay.deal.rules.looked else set()
    before, *tables = out.split(f"\n\n{replay.deal.rules.name}   ")
    assert len(tables) > 3
    for number, table in enumerate(tables):
        for told in re.findall(r"^(?:seat_\d|you): .*", before, re.MULTILINE):
            seen |= set(re.findall(r"\d-\d", told))
        drawn = table.partition("\n1) ")[0]
        shown = {"-".join(sorted(found.groups())) for found in face.finditer(drawn)}
        if number + 1 < len(tables):
            assert shown <= seen, "a tile that nobody has told of"
        else:
            assert {tile for hand in last["hands"] for tile in hand} <= shown
        before = table


def test_who_must_remember_sees_its_row_once(sit: Sit) -> None:
    """R9: with memory="peek" the row is shown as it is dealt, and no more; a hint comes from who saw it, too."""
    code, out, err = sit("--rules blind_blitz,memory=peek,seats=3 --as seat_1 --seed 3", "hint\n" + FIRST)
    assert (code, err) == (0, "")
    row = parse_deal(deal_text(out)).hands[1]
    first, _, rest = out.partition("you:")
    assert re.findall(r"\((\d\|\d)\)", first) == [tile_name(tile).replace("-", "|") for tile in row if tile]
    assert "▴ [0|0]" in first, "the lead lies turned (R3)"
    assert not re.search(r"\(\d\|\d\)", rest.rpartition("\n\nblind_blitz")[0])
    assert "memory would play " in rest


def test_a_seed_deals_the_same_again_and_is_told_where_none_is_given(sit: Sit) -> None:
    out = sit("")[1]
    (seed,) = re.findall(r"--seed (\d+)", out)
    assert sit(f"--seed {seed}")[1] == out
    assert deal_text(sit("")[1]) != deal_text(out)


def test_the_others_are_who_was_named(sit: Sit) -> None:
    """--partner faces the person (S1), --opponents sit beside; each plays what its agent plays."""
    out = sit("--as seat_2 --partner random --opponents greedy --seed 4")[1]
    assert "seat_0  random, your partner\n  seat_1  greedy, an opponent\n  seat_2  you\n  seat_3  greedy" in out
    replay = replayed(deal_text(out))
    greedy = make_agent("greedy")
    engine = make_engine("sport_book", 1, seed=4)
    assert engine.snapshot(0)["dealt"] == replay.positions[0]["dealt"]
    differs = False
    for move in replay.deal.moves:
        seat, action = int(engine.to_move()[0]), int(greedy.act(base.decide(engine, greedy))[0])
        assert seat not in (1, 3) or move == action
        differs |= seat == 0 and move != action
        engine.step(np.array([move]), autoreset=False)
    assert differs, "the partner is another"


@pytest.mark.parametrize("seat", range(4))
def test_every_seat_can_be_taken(seat: int, sit: Sit) -> None:
    code, out, _ = sit(f"--as seat_{seat} --seed 1")
    assert code == 0 and f"you are seat_{seat};" in out and f"  seat_{seat}  you\n" in out
    first = out.partition("your move:")[0]
    own = parse_deal(deal_text(out)).hands[seat]
    held = [tile for tile in own if not re.search(rf"^you: \w* ?{tile_name(tile)}", first, re.MULTILINE)]
    assert all(f"[{tile_name(tile).replace('-', '|')}]" in first for tile in held), "its hand lies open"


# -- what is typed ----------------------------------------------------------------------------------------------------

START = "--seed 3 --as seat_0"  # 0-1 0-4 0-6 1-1 2-4 3-5 4-6, and seat_0 leads


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("3", "you: lead 0-6, ends 0 and 6"),
        ("3-5L", "you: lead 3-5, ends 3 and 5"),
        ("5-3l", "you: lead 3-5, ends 3 and 5"),
        ("  5:3 ", "you: lead 3-5, ends 3 and 5"),
        ("4-6", "you: lead 4-6, ends 4 and 6"),
        ("4-6R", "you: lead 4-6, ends 4 and 6"),
    ],
)
def test_a_move_is_typed_by_number_or_text(typed: str, told: str, sit: Sit) -> None:
    out = sit(START, typed + "\nquit\n")[1]
    assert asked(out)[0] == told


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "0",
        "8",
        "-1",
        "999",
        "3-4L",
        "7-7L",
        "0-1X",
        "pass",
        "stop",
        "turn",
        "draw",
        "x" * 300,
        "1 2",
        "\x00",
        "ход",
        "{}",
        "[red]",
    ],
)
def test_what_is_not_allowed_is_one_line_and_asked_again(typed: str, sit: Sit) -> None:
    out = sit(START, typed + "\n2\nquit\n")[1]
    lines = out.split("your move:\n")
    assert lines[1].count("\n") == 1
    assert lines[1].endswith(
        "is not allowed; allowed: 0-1L 0-4L 0-6L 1-1L 2-4L 3-5L 4-6L, or hint, help, words, table, quit\n"
    )
    assert len(lines[1]) < 140
    assert lines[2].startswith("you: lead 0-4")


def test_a_tile_that_fits_both_ends_needs_its_end(sit: Sit) -> None:
    """The first tile that is offered on both ends is typed without its end, then with the right one."""

    def types(out: str) -> str:
        if told := re.findall(r"^(\d-\d) fits both ends", out, re.MULTILINE):
            return f"{told[0]}r\n" if out.endswith(f"{told[0]}R\nyour move:\n") else "1\n"
        both = [move[:-1] for move in offered(out) if f"{move[:-1]}R" in offered(out) and move.endswith("L")]
        return f"{both[0]}\n" if both else "1\n"

    out = sit("--seed 2 --opponents random --partner random", types)[1]
    found = re.findall(r"your move:\n(\d-\d) fits both ends: (.*)\nyour move:\nyou: (\d-\d) on the right", out)
    assert len(found) == 1 and found[0] == (found[0][0], f"{found[0][0]}L {found[0][0]}R", found[0][0])


def test_where_both_ends_are_one_each_names_it(sit: Sit) -> None:
    """Between equal ends only the left action is legal; a person may well say right, and means the same."""
    equal = re.compile(r"ends (\d) and \1\n(?!.*\bends\b)", re.DOTALL)

    def types(out: str) -> str:
        move = offered(out)[0]
        return f"{move[:-1]}R\n" if equal.search(out) and move.endswith("L") else f"{move}\n"

    outs = [sit(f"--seed {seed} --opponents random --partner random", types)[1] for seed in (2, 3)]
    assert any(re.search(r"ends (\d) and \1\n(?:.*\n)*?your move:\nyou: .* on the left", out) for out in outs)
    assert not any("is not allowed" in out for out in outs)


def test_nothing_is_taken_back(sit: Sit) -> None:
    """It is a game: undo is answered, and changes nothing."""
    for word in ("undo", "back", "UNDO"):
        out = sit(START, f"1\n{word}\nquit\n")[1]
        assert asked(out)[1] == "a laid tile stays: this is a game, nothing is taken back"
    played = deal_text(sit(START)[1])
    assert deal_text(sit(START, "undo\n1\n" * 40)[1]) == played


def test_a_hint_is_what_its_player_would_play_and_changes_nothing(sit: Sit) -> None:
    plain = deal_text(sit(f"{START} --opponents random --partner random")[1])
    out = sit(f"{START} --opponents random --partner random --hint greedy", "hint\nh\n1\n" * 40)[1]
    assert deal_text(out) == plain
    hints = [line for line in asked(out) if "would play" in line]
    assert hints[0] == "greedy would play 4-6L" and hints[::2] == hints[1::2]
    assert "club would play " in sit(START, "hint\n")[1], "a strong player where none is named"
    followed = sit(f"{START} --opponents greedy --partner greedy --hint greedy", "4-6\nhint\nquit\n")[1]
    (move,) = re.findall("greedy would play (.*)", followed)
    assert f") {move}" in followed


def test_help_words_and_table(sit: Sit) -> None:
    out = sit(START, "help\nwords\ntable\nquit\n")[1]
    parts = out.split("your move:\n")
    assert "3-4L lays 3-4 on the left" in parts[1] and "Nothing is taken back" in parts[1]
    assert "block: nobody can lay any more and the deal ends\n" in parts[2] and "stock" not in parts[2]
    assert "▶ seat_0 to move" in parts[3] and "1) 0-1L" in parts[3]
    blind = sit("--rules blind --seed 1 --as seat_1", "words\n")[1]
    assert "stock: " in blind and "row: " in blind and "pair: " not in blind


@pytest.mark.parametrize("lang", ["en", "ru"])
@pytest.mark.parametrize(
    ("rules", "without_tile"),
    [
        ("blitz", {"stop", "стоп"}),
        ("blind,seats=2", {"stop", "decline", "turn", "draw", "стоп", "отказ", "открыть", "взять"}),
    ],
)
def test_offered_moves_can_be_typed_as_they_are_offered(
    rules: str, without_tile: set[str], lang: str, sit: Sit
) -> None:
    """B3, R4-R6: also stop, decline, turn and draw, in both languages."""
    typed = set()

    def types(out: str) -> str:
        moves = offered(out)
        new = [move for move in moves if move not in typed and not move[0].isdigit()]
        move = new[0] if new else moves[len(out) % len(moves)]
        typed.add(move)
        return move + "\n"

    for seed in range(2):
        code, out, _ = sit(f"--rules {rules} --seed {seed} --lang {lang} {QUICK}", types)
        assert code == 0 and not re.search("is not allowed|нельзя", out)
    found = {move for move in typed if not move[0].isdigit()}
    assert found == {word for word in without_tile if bool(re.search("[а-я]", word)) == (lang == "ru")}


def test_russian_is_spoken_and_understood(sit: Sit) -> None:
    typed = "помощь\nслова\nстол\nподсказка\nотмена\n0-1Л\nхм\nвыход\n"
    out = sit(f"{START} --lang ru --opponents greedy --rules sport_club --episode match", typed)[1]
    assert "вы: заход 0-1, концы 0 и 1\n" in out and "club ходит так: " in out and "ход назад не берут" in out
    assert "бой: класть больше нечего никому" in out and "'хм' нельзя; можно: 0-6L" in out
    assert out.endswith("вы вышли; сыграно раздач до конца: 0\n")
    names = r"seat_\d|sport_club|club|greedy|--seed|help|\d-\d[LR]|[LR]"
    assert re.findall(r"[a-zA-Z]+", re.sub(names, "", out)) == []


# -- how it ends ------------------------------------------------------------------------------------------------------


def test_a_match_is_played_and_recorded(sit: Sit, tmp_path: Path) -> None:
    """S2, S10: four deals, each led by another seat; the record holds who played, and is read again."""
    words = "--rules sport_club --episode match --fours 1 --seed 8 --as seat_3 --name Анна --opponents greedy"
    code, out, err = sit(f"{words} --record match.jsonl")
    assert (code, err) == (0, "")
    record = match.read(tmp_path / "match.jsonl")
    assert record.standing.over and len(record.lines) == 4
    assert record.header.players == ("greedy", "club", "greedy", "Анна")
    assert dict(record.header.info) == {"seed": 8, "person": 3}
    assert re.findall(r"^deal (\d) of 4, four 1: seat_(\d) leads", out, re.MULTILINE) == [
        (str(d + 1), str(d)) for d in range(4)
    ]
    sums = [f"seats 0+2: {line['sums'][0]}, seats 1+3: {line['sums'][1]}" for line in record.lines]
    assert re.findall(r"^after deal \d: (.*)$", out, re.MULTILINE) == sums
    winner = "seats 0+2" if record.standing.winner == 0 else "seats 1+3"
    assert f"the match is over, {winner} win: {sums[-1]}\nrecord: match.jsonl, whole deals in it: 4\n" in out
    assert "the deal: " not in out
    # The engine's own match of this seed deals the same.
    engine = make_engine("sport_club", 1, seed=8, episode="match")
    assert engine.text(0) == record.lines[0]["text"]


def test_a_match_may_be_tied(sit: Sit) -> None:
    """S10: equal sums are a draw."""
    words = "--rules tiny_pairs --episode match --opponents random --partner random --seed"
    out = next(out for seed in range(6, 60) if "a tie" in (out := sit(f"{words} {seed}")[1]))
    assert re.search(r"^the match is over, a tie: seats 0\+2: (\d+), seats 1\+3: \1$", out, re.MULTILINE)


@pytest.mark.parametrize("rules", ["kozyol", "blitz,seats=6", "blind_blitz", "blind,seats=3"])
def test_other_matches_are_recorded_too(rules: str, sit: Sit, tmp_path: Path) -> None:
    """K2, B2, R3: the leads of these matches go by results or tiles; the record plays them again."""
    code, out, err = sit(f"--rules {rules} --episode match --seed 2 --record match.jsonl {QUICK}", "1\n" * 2000)
    assert (code, err) == (0, "")
    record = match.read(tmp_path / "match.jsonl")
    assert record.standing.over and out.count("after deal") == len(record.lines)
    assert "the match is over" in out


@pytest.mark.parametrize(("last", "told"), [("quit\n", "you leave"), ("Q\n", "you leave"), ("", "the input has ended")])
def test_whoever_leaves_keeps_the_whole_deals(last: str, told: str, sit: Sit, tmp_path: Path) -> None:
    def types(out: str) -> str:
        deal = out.rpartition("\nafter deal 1")
        return last if deal[1] and deal[2].count("your move:") == 3 else "1\n"

    code, out, err = sit("--seed 8 --episode match --record m.jsonl", types)
    assert (code, err) == (0, "")
    assert out.endswith(f"{told}; whole deals played: 1\nrecord: m.jsonl, whole deals in it: 1\n")
    assert len(match.read(tmp_path / "m.jsonl").lines) == 1
    out = sit("--seed 8", "1\n" + last)[1]
    assert out.endswith(f"{told}; whole deals played: 0\n")


# -- the judge --------------------------------------------------------------------------------------------------------


def test_a_wrong_pass_is_judged_by_the_club(sit: Sit, tmp_path: Path) -> None:
    """J3: 25 to the opponents, and the pass stands; the record holds it, and is read again."""
    out = sit("--rules sport_club --judge club --seed 8 --record m.jsonl", "1\npass\n" + FIRST)[1]
    assert "you: pass\njudge, J3: a pass with a tile that fits: 25 to the opponents\n" in out
    (line,) = match.read(tmp_path / "m.jsonl").lines
    assert line["recorded"]["fines"] == [0, 25] and line["moves"][4] == "pass"
    assert f"by the judge: {line['recorded']['points'][0]} : {line['recorded']['points'][1]}\n" in out


def test_a_wrong_pass_loses_the_deal_by_the_book(sit: Sit, tmp_path: Path) -> None:
    """J2: 0:10 at once; in a match the next deal follows."""
    out = sit("--judge book --seed 8 --episode match --record m.jsonl", "1\npass\n" + FIRST)[1]
    assert "judge, J2: a pass with a tile that fits: the deal is lost\n" in out
    record = match.read(tmp_path / "m.jsonl")
    assert record.standing.over and record.lines[0]["recorded"]["points"] == [0, 10]
    assert "after deal 1: seats 0+2: 0, seats 1+3: 10\n" in out
    assert f"seats 0+2: {record.standing.sums[0]}, seats 1+3: {record.standing.sums[1]}\nrecord" in out


def test_other_wrong_acts_are_judged_and_the_seat_is_asked_again(sit: Sit, tmp_path: Path) -> None:
    """J3: a false block 25, a tile shown that does not match 25, then 50; what is no act at all costs nothing."""
    shown: list[str] = []

    def types(out: str) -> str:
        if out.count("your move:") == 1:
            return "1\n"
        if out.count("your move:") == 2:
            return "block\n"
        hand = re.findall(r"\[(\d)\|(\d)\]", out.rpartition("▶ seat_0")[2].partition("last moves")[0])
        held = [f"{a}-{b}" for a, b in hand]
        wrong = [tile for tile in held if not any(tile in move for move in offered(out))]
        if len(shown) < 2:
            shown.append(wrong[0])
            return f"{wrong[0]}R\n"
        return "6-6-6\n" if "6-6-6" not in out else "1\n"

    out = sit("--rules sport_club --judge club --seed 8 --record m.jsonl --lang en", types)[1]
    assert "judge, J3: a block that is none: 25 to the opponents\n" in out
    assert "judge, J3: a tile that does not match: 25 to the opponents\n" in out
    assert "judge, J3: a tile that does not match: 50 to the opponents\n" in out
    (line,) = match.read(tmp_path / "m.jsonl").lines
    assert line["recorded"]["fines"] == [0, 100] and len(line["sanctions"]) == 3
    told = sit("--judge book --seed 8 --lang ru --rules sport_book", "1\nрыба\nвыход\n")[1]
    assert "судья, J1: ложный бой: замечание 1\n" in told


def test_a_person_who_never_errs_scores_the_same_under_a_judge(sit: Sit) -> None:
    """Under a judge forced moves are asked for, too: a pass must be said."""
    plain, judged = (sit(f"--rules sport_club --seed 5{judge}")[1] for judge in ("", " --judge club"))
    assert deal_text(plain) == deal_text(judged) and "by the judge" not in judged
    assert "the only move" in plain and "the only move" not in judged
    assert (
        "say block where there is none" in sit("--judge book", "help\n")[1] and "say block" not in sit("", "help\n")[1]
    )


def test_a_checkpoint_sits_at_the_table(sit: Sit, tmp_path: Path) -> None:
    rules, generator = get_rules("sport_book"), torch.Generator().manual_seed(1)
    actor = make_actor("mlp", rules, [8], generator)
    model = {f"actor.{name}": tensor for name, tensor in actor.state_dict().items()}
    policy = {"network": "mlp", "hidden": [8], "bits": layout_of(rules).size, "actions": 57}
    state = {
        "algorithm": "ppo",
        "config": {},
        "rules": describe_rules(rules),
        "policy": policy,
        "counters": {"updates": 3},
    }
    save(tmp_path / "checkpoints", 3, model, {}, state)
    code, out, err = sit("--seed 1 --partner checkpoints/latest --hint checkpoints/latest", "hint\n" + FIRST)
    assert (code, err) == (0, "")
    assert "  seat_2  checkpoints/latest, your partner\n" in out and "checkpoints/latest would play " in out
    code, out, err = sit("--rules sport_club --opponents checkpoints/latest")
    assert (code, out) == (2, "") and "was trained for sport_book, not for sport_club" in err


def test_an_agent_that_fails_is_exit_code_1_and_the_record_is_whole(sit: Sit, tmp_path: Path) -> None:
    class Faulty:
        name = "faulty"

        def __init__(self, decisions: int, answer: int | None) -> None:
            self.left, self.answer = decisions, answer

        def act(self, batch: Decisions) -> np.ndarray:
            self.left -= 1
            if self.left < 0 and self.answer is None:
                raise RuntimeError("out of order")
            return batch.mask.argmax(axis=1) if self.left >= 0 else np.array([self.answer])

    register_agent("faulty", lambda after=0, answer=None: Faulty(after, answer))
    try:
        code, out, err = sit("--seed 8 --episode match --record m.jsonl --opponents faulty:after=25")
        assert code == 1 and "after deal 1" in out
        assert re.fullmatch(r"domino: seat_[13], agent faulty:after=25, failed: RuntimeError: out of order\n", err)
        assert len(match.read(tmp_path / "m.jsonl").lines) == 1
        code, _, err = sit("--seed 8 --partner faulty --record n.jsonl")
        assert code == 2 and "--partner 'faulty' cannot play sport_book: RuntimeError: out of order" in err
        assert not (tmp_path / "n.jsonl").exists()
    finally:
        base._REGISTRY.pop("faulty")


BAD = [
    ("--as seat_4", "--as 'seat_4': the seats of sport_book are seat_0 to seat_3"),
    ("--as 0", "--as '0': the seats of sport_book are seat_0 to seat_3"),
    ("--as seat_6 --rules blitz,seats=6", "--as 'seat_6': the seats of blitz are seat_0 to seat_5"),
    ("--partner nobody", "unknown agent 'nobody'; choose from random, greedy"),
    ("--opponents club:reptile=1", "reptile"),
    ("--hint nobody", "unknown agent 'nobody'"),
    ("--opponents runs/none/checkpoints/latest", "runs/none/checkpoints/latest"),
    ("--opponents {here}", "{here}"),
    ("--partner club --rules blitz", "--partner 'club': in blitz each seat plays for itself; name --opponents only"),
    ("--rules sprot", "unknown rules 'sprot'; choose from sport_book"),
    ("--rules blitz,seats=9", "seats=9 cannot be played"),
    ("--rules sport_book,seats=5", "seats=5 cannot be played"),
    ("--episode four", "episode='four' is unknown; choose from deal, match"),
    ("--fours 2", "--fours 2: fours are counted in a match; add --episode match"),
    ("--fours 0 --episode match", "'--fours'"),
    ("--seed -1", "'--seed'"),
    ("--seed many", "'--seed'"),
    ("--lang de", "lang must be one of en, ru, got 'de'"),
    ("--name ,", "--name ' ': a player needs a name"),
    ("--record no/where/m.jsonl", "no/where/m.jsonl: No such file or directory"),
    ("--record there.txt", "there.txt is there already; a new record needs a new file"),
    ("--record {here}", "{here}"),
    ("--as seat_9 --lang ru", "--as 'seat_9': в sport_book места от seat_0 до seat_3"),
    ("--judge club --rules blitz", "in blitz each seat plays for itself"),
    ("--judge fifa", "unknown judge 'fifa'; choose from book, club"),
    ("--undo", "--undo"),
    ("seat_0", "seat_0"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[words for words, _ in BAD])
def test_a_bad_option_is_one_line_and_exit_code_2(words: str, says: str, sit: Sit, tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("mine")
    record = "" if "--record" in words else " --record new.jsonl"
    code, out, err = sit(words.format(here=tmp_path) + record)
    assert (code, out) == (2, "")
    assert err.startswith("domino: ") and err.count("\n") == 1 and says.format(here=tmp_path) in err
    assert [path.name for path in tmp_path.iterdir()] == ["there.txt"], "nothing is written"
    assert (tmp_path / "there.txt").read_text() == "mine"


# -- pipes, the runner, a terminal ------------------------------------------------------------------------------------


def test_the_examples_of_the_help_run(sit: Sit, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["play", "--help"]) == 0
    found = re.findall(r"Example: domino play ((?:.|\n(?!\s*\n))+)", capsys.readouterr().out)
    assert len(found) == 2
    for example in found:
        code, out, err = sit(" ".join(example.split()))
        assert (code, err) == (0, "") and out


def test_typers_runner_drives_it() -> None:
    result = CliRunner().invoke(cli.app, ["play", "--seed", "3"], input=FIRST)
    assert result.exit_code == 0
    assert parse_deal(deal_text(result.output)).moves
    assert (
        CliRunner().invoke(cli.app, ["play", "--seed", "3"], input="quit\n").output.endswith("whole deals played: 0\n")
    )


def test_bytes_that_are_no_text_are_not_allowed_and_asked_again() -> None:
    result = CliRunner().invoke(cli.app, ["play", "--seed", "3"], input=b"\xff\xfe\n2\nquit\n")
    assert result.exit_code == 0
    assert "is not allowed" in asked(result.output)[0] and asked(result.output)[1] == "you: lead 0-4, ends 0 and 4"


def test_a_closed_input_is_an_ended_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert cli.main(["play", "--seed", "3"]) == 0
    assert capsys.readouterr().out.endswith("the input has ended; whole deals played: 0\n")


def start(words: str, cwd: Path, **pipes: int) -> subprocess.Popen[str]:
    """`domino play` as a process of its own; with a terminal, its controlling one."""
    own = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); " if "terminal" in pipes else ""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), pipes.get("terminal", subprocess.PIPE))
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"{own}import sys; from experiments.cli import command; sys.exit(command())",
            "play",
            *words.split(),
        ],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TERM": "xterm-256color", "COLUMNS": "100"},
        text=True,
        start_new_session=bool(own),
        **streams,
    )


def test_over_pipes_every_line_comes_before_the_next_is_asked_for(tmp_path: Path) -> None:
    process = start("--seed 3 --episode match --record m.jsonl", tmp_path)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    questions = 0
    for line in process.stdout:
        assert "\x1b" not in line
        if line == "your move:\n":
            questions += 1
            process.stdin.write("1\n")
            process.stdin.flush()
    assert process.wait(60) == 0 and process.stderr.read() == ""
    assert questions > 8 and match.read(tmp_path / "m.jsonl").standing.over
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def test_ctrl_c_is_one_line_and_exit_code_130_and_the_record_is_whole(tmp_path: Path) -> None:
    process = start("--seed 3 --record m.jsonl", tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if line == "your move:\n":
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "domino: interrupted\n")
    assert match.read(tmp_path / "m.jsonl").lines == ()


class Terminal:
    """A real terminal with `domino play` in it."""

    def __init__(self, words: str, cwd: Path) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, b"\x28\x00\x64\x00\x00\x00\x00\x00")  # 40 lines of 100 columns
        self.process = start(words, cwd, terminal=slave)
        os.close(slave)
        self.shown = ""

    def read(self, until: str | None, again: str = "") -> str:
        """What is shown from here until a text, or to the end; `again` is typed whenever a second passes in silence."""
        new, deadline = "", time.monotonic() + 60
        while until is None or until not in CODES.sub("", new):
            assert time.monotonic() < deadline, new
            if not select.select([self.master], [], [], 1)[0]:
                self.type(again)
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError as error:  # Linux says so where the other side has closed
                assert error.errno == errno.EIO
                data = b""
            if not data:
                break
            new += data.decode()
        self.shown += new
        return new

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def close(self) -> int:
        code = self.process.wait(60)
        os.close(self.master)
        return code


def test_in_a_terminal_a_deal_is_played_in_colours(tmp_path: Path, sit: Sit) -> None:
    terminal = Terminal("--seed 3", tmp_path)
    while "your move: " in CODES.sub("", terminal.read("your move: ")):
        terminal.type("1\n")
    assert terminal.close() == 0
    assert "\x1b[1" in terminal.shown and "\x1b[38;5;" in terminal.shown
    assert not re.search("\x1b\\[[0-9;?]*[A-HJKfhl]", terminal.shown), "colours alone: no cursor is moved"
    plain = CODES.sub("", terminal.shown).replace("\r\n", "\n")
    assert deal_text(plain) == deal_text(sit("--seed 3")[1])
    assert "\nyour move: 1\n" in plain


@pytest.mark.parametrize(
    ("keys", "code", "told"),
    [("\x03", 130, "domino: interrupted"), ("\x04", 0, "the input has ended; whole deals played: 0")],
)
def test_in_a_terminal_ctrl_c_and_ctrl_d_end_it(keys: str, code: int, told: str, tmp_path: Path) -> None:
    terminal = Terminal("--seed 3 --record m.jsonl", tmp_path)
    terminal.read("your move: ")
    terminal.type(keys)
    # A key that comes while the terminal is being made ready for the prompt is lost, as a person's is.
    rest = CODES.sub("", terminal.read(None, keys))
    assert terminal.close() == code
    assert told in rest and "Traceback" not in rest
    assert match.read(tmp_path / "m.jsonl").lines == ()
