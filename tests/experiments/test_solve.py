"""`domino solve`: against plain minimax, its forms of input, and what it refuses."""

import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from domino_env import get_rules, make_engine
from domino_env.judge import Violation
from domino_env.line import LineEngine
from domino_env.match import Header, Played, Recorder, lay_out, next_deal
from domino_env.tiles import PASS
from experiments import cli
from experiments.replay import play
from experiments.solve import find, report, solve
from tests.records import match_record

DEAL = "tiny_pairs leader=0 | 0-1 1-2 | 2-2 0-3 | 0-0 1-3 | 0-2 2-3 | 0-1L 0-3L"
OVER = "tiny_pairs leader=0 | 0-1 1-2 | 2-2 0-3 | 0-0 1-3 | 0-2 2-3 | 0-1L 0-3L 1-3R 2-3L 1-2L"


def minimax(engine: LineEngine) -> dict[int, int]:
    """Net points of the mover's side by action, by looking at everything: one table of an engine."""
    values = {}
    side = int(engine.to_move()[0]) % 2
    for action in np.flatnonzero(engine.legal()[0]).tolist():
        after = engine.take(np.zeros(1, np.int64))
        rewards, done = after.step(np.array([action]), autoreset=False)
        if done[0]:
            values[action] = int(rewards[0, side])
        else:
            best = max(minimax(after).values())
            values[action] = best if int(after.to_move()[0]) % 2 == side else -best
    return values


def deals(rules: Any, count: int, seed: int) -> list[str]:
    """Deals played at random to the end, as text."""
    rng, texts = np.random.default_rng(seed), []
    for number in range(count):
        engine = make_engine(rules, 1, seed=seed + number)
        while not engine.over()[0]:
            engine.step(engine.sample_legal(rng), autoreset=False)
        texts.append(engine.text(0))
    return texts


@pytest.mark.parametrize(
    "rules",
    [
        get_rules("tiny_pairs"),
        get_rules("tiny_pairs", labelled_ends=True, block_score="loser_total", lone_blank=9),
        get_rules("tiny_pairs", seats=2, pairs=False, hand_size=3),
    ],
    ids=["tiny", "labelled", "two"],
)
def test_values_and_losses_are_those_of_minimax(rules: Any) -> None:
    lost = 0
    for text in deals(rules, 6, 20):
        one = play(text)
        engine = make_engine(rules, 1, seed=0)
        engine.load(0, one.position(0))
        expected = []
        for number, action in enumerate(one.deal.moves):
            values = minimax(engine)
            found = solve(one, number)
            assert found["values"] == {rules.action_name(a): value for a, value in values.items()}
            assert found["values"][found["best"]] == max(values.values()) and found["to_move"] == engine.to_move()[0]
            assert len(found["losses"]) == number
            expected.append((int(engine.to_move()[0]), max(values.values()) - values[action], len(values) == 1))
            engine.step(np.array([action]), autoreset=False)
        whole = solve(one)
        assert whole["over"] and whole["values"] == {} and whole["best"] is None and whole["to_move"] is None
        assert [(move["seat"], move["loss"], move["forced"]) for move in whole["losses"]] == expected
        lost += sum(loss for _, loss, _ in expected)
        for seat in range(rules.seats):
            assert whole["loss_by_seat"][seat] == sum(loss for who, loss, _ in expected if who == seat)
        assert whole["loss_by_side"] == [sum(whole["loss_by_seat"][side::2]) for side in (0, 1)]
    assert lost > 0, "some random move costs something"


def test_the_best_line_ends_with_the_value() -> None:
    for text in deals("sport_book", 2, 5):
        for moves in (6, 12):
            found = solve(play(text), moves)
            before = text.split(" | ")
            line = " | ".join([*before[:5], " ".join([*before[5].split()[:moves], *found["line"]])])
            last = play(line).position()
            assert last["over"] and last["deal"] == found["end"]
            points = found["end"]["points"]
            assert (points[0] - points[1]) * (1 - 2 * (found["to_move"] % 2)) == found["values"][found["best"]]
            assert found["line"][0] == found["best"]


def test_a_deal_is_found_as_text_in_a_file_and_on_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deals.txt").write_text(f"# two deals\n{DEAL}\n\n{OVER}\n")
    assert cli.main(["solve", DEAL, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["values"] == {"1-3L": 11, "1-3R": 6} and first["best"] == "1-3L" and first["to_move"] == 2
    assert first["line"] == ["1-3L", "pass", "1-2L"] and first["end"]["points"] == [11, 0]
    assert cli.main(["solve", str(tmp_path / "deals.txt"), "--deal", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == first
    monkeypatch.setattr("sys.stdin", io.StringIO(f"# one\n{DEAL}\n"))
    assert cli.main(["solve", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert cli.main(["solve", OVER, "--move", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert cli.main(["solve", OVER]) == 0
    text = capsys.readouterr().out
    assert "the deal is over" in text
    lines = text.splitlines()
    assert re.fullmatch(r" +3 +seat_2  1-3R +5 +\+11  1-3L", lines[5]), lines[5]
    assert lines[-1] == "points lost: seat_0 0, seat_1 0, seat_2 5, seat_3 0, seats 0+2 5, seats 1+3 0"
    assert max(map(len, lines)) <= 80


def test_a_long_deal_fits_80_columns() -> None:
    replay = find(deals("sport_book", 1, 3)[0])
    lines = report(solve(replay) | {"loss_by_seat": [100] * 4, "loss_by_side": [200, 200]}, replay.deal.rules)
    assert max(map(len, lines)) <= 80
    assert all(f"seat_{seat} 100" in " ".join(lines) for seat in range(4)) and lines[-1].endswith("seats 1+3 200")


def test_the_text_says_what_is_to_be_played(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["solve", DEAL, "--move", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tiny_pairs, seat_0 leads, 0 moves: seat_0 to move, the lead"
    values = [int(line.split()[0]) for line in lines if line.startswith("  ")]
    assert len(values) == 2 and values == sorted(values, reverse=True)
    assert not any("points lost" in line for line in lines)


def test_a_wrong_pass_that_the_judge_let_stand_has_its_loss(tmp_path: Path) -> None:
    """J3: it is worth what comes after it."""
    path = tmp_path / "match.jsonl"
    rng = np.random.default_rng(3)
    with Recorder.create(path, Header(get_rules("sport_club"), ("A", "B", "C", "D"), judge="club")) as recorder:
        engine = lay_out([recorder.standing], [next_deal(recorder.standing, 1)])
        wrong = []
        while not engine.over()[0]:
            passes = int(engine.plies()[0]) == 5 and not engine.legal()[0, PASS]
            if passes:
                engine.allow_pass(np.zeros(1, np.int64))
                wrong = [Violation("wrong_pass", int(engine.to_move()[0]), 5)]
            engine.step(np.array([PASS]) if passes else engine.sample_legal(rng), autoreset=False)
        assert wrong
        recorder.append(Played(engine.record(0), tuple(wrong)))
    one = find(str(path))
    found = solve(one)
    assert found["losses"][5]["played"] == "pass" and not found["losses"][5]["forced"]
    sign = 1 - 2 * (found["losses"][5]["seat"] % 2)
    other = 1 - 2 * (found["losses"][6]["seat"] % 2)
    assert found["losses"][5]["value"] == sign * other * found["losses"][6]["best_value"]
    # What the leader's side could have had, less what it lost and plus what the other lost, is what it got.
    points = found["end"]["points"]
    got = (points[0] - points[1]) * (1 - 2 * (one.deal.leader % 2))
    first = one.deal.leader % 2
    lost = found["loss_by_side"]
    assert found["losses"][0]["best_value"] - lost[first] + lost[1 - first] == got
    assert "pass" in "\n".join(report(found, one.deal.rules))


BAD = [
    (["solve"], "Missing argument 'DEAL'"),
    (["solve", "none.txt"], "none.txt: No such file or directory"),
    (["solve", "deals.txt"], "deals.txt holds deals 1 to 2: choose with --deal"),
    (["solve", "deals.txt", "--deal", "3"], "--deal 3: deals.txt holds deals 1 to 2"),
    (["solve", "empty.txt"], "empty.txt: no deal in it"),
    (["solve", " "], "a deal begins with the name of its rules"),
    (["solve", DEAL, "--deal", "2"], "--deal 2: the text holds deals 1 to 1"),
    (["solve", DEAL, "--move", "3"], "has moves 0 to 2, not 3"),
    (["solve", DEAL.replace("0-3L", "2-2L")], "line 1, column 68: seat 1 may not play 2-2L; allowed: 0-3L"),
    (["solve", DEAL.replace("0-3L", "pass")], "seat 1 may not play pass; allowed: 0-3L, so it is a wrong pass"),
    (["solve", DEAL.replace("2-2", "0-1")], "line 1, column 33: tile 0-1 stands here a second time"),
    (["solve", DEAL.replace("0-0", "")], "seat 2 has 1 tiles; tiny_pairs deals 2"),
    (["solve", OVER + " pass"], "pass comes after the end of the deal"),
    (["solve", "sprot leader=0 | 0-1"], "unknown rules 'sprot'"),
    (["solve", deals("blitz", 1, 3)[0]], "the solver plays games of one tile a turn"),
    (["solve", deals("blind", 1, 3)[0]], "the solver plays games of one tile a turn"),
    (["solve", deals(get_rules("tiny_pairs", pairs=False), 1, 3)[0]], "the solver plays games of one tile a turn"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[f"{i}" for i in range(len(BAD))])
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deals.txt").write_text(f"{DEAL}\n{OVER}\n")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    for more in ([], ["--json"]):
        assert cli.main([*words, *more]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("domino: ") and err.count("\n") == 1
        assert says in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deals.txt", "empty.txt"]


def test_the_examples_of_the_help_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    match_record(tmp_path / "match.jsonl")
    assert cli.main(["solve", "--help"]) == 0
    found = re.findall(r"Example: domino ((?:.|\n(?!\s*\n))+)", capsys.readouterr().out)
    assert found
    for example in found:
        assert cli.main(shlex.split(" ".join(example.split()))) == 0, example
        assert capsys.readouterr().out
