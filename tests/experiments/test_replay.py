"""Deals in text and match records, played again; mistakes are told with line and column, or with the line."""

import io
import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from domino_env import get_rules, make_engine, render
from domino_env.judge import Violation
from domino_env.line import LineEngine
from domino_env.match import Header, Played, Recorder, lay_out, leave, next_deal
from domino_env.rules import Rules
from domino_env.tiles import PASS
from experiments import cli
from experiments.replay import MatchReplay, play, read

DEAL = "tiny_pairs leader=0 | 0-1 1-2 | 2-2 0-3 | 0-0 1-3 | 0-2 2-3"


def played(rules: str | Rules, seed: int) -> str:
    """A deal in text, played to its end at random."""
    engine = make_engine(rules, 1, seed=seed)
    engine.reset(seed=seed)
    rng = np.random.default_rng(seed)
    while not engine.over()[0]:
        engine.step(engine.sample_legal(rng), autoreset=False)
    return engine.text(0)


GAMES = {  # every kind of game
    **{name: get_rules(name) for name in ("sport_book", "sport_club", "puerto_rico", "tiny_pairs", "blitz", "blind")},
    "blitz of seven": get_rules("blitz", seats=7, chain="one"),
    "blind_blitz of two": get_rules("blind_blitz", seats=2),
    "blitz in pairs": get_rules("blitz", pairs=True),
}


@pytest.mark.parametrize("rules", GAMES.values(), ids=[*GAMES])
def test_what_the_engine_writes_is_replayed_to_the_same_end(rules: Rules, tmp_path: Path) -> None:
    path = tmp_path / "deals.txt"
    texts = [played(rules, seed) for seed in range(3)]
    path.write_text("# three deals\n\n" + "\n".join(texts) + "\n")
    replays = read(path)
    assert isinstance(replays, list)
    assert [replay.line for replay in replays] == [3, 4, 5]
    for replay in replays:
        last = replay.positions[-1]
        assert last["over"] and last["deal"]["plies"] == len(replay.deal.moves) == len(replay.positions) - 1
        plain = replay.as_dict()
        assert json.loads(json.dumps(plain)) == plain
        assert plain["deal"] == last["deal"] and plain["moves"] == last["moves"]
        assert len(plain["movers"]) == len(plain["moves"]) and plain["movers"][0] == replay.deal.leader
        assert len(plain.get("stock", [])) == (rules.leftover if rules.rows else 0)


SOME = ("sport_club", "blitz of seven", "blind_blitz of two")


@pytest.mark.parametrize("name", SOME)
def test_one_position_is_that_of_them_all(name: str) -> None:
    replay = play(played(GAMES[name], 3))
    moves = len(replay.deal.moves)
    assert [replay.position(number) for number in range(0, moves, 19)] == replay.positions[:-1:19]
    assert replay.position() == replay.positions[-1]
    for number in (-1, moves + 1):
        with pytest.raises(ValueError, match=f"the deal of line 1 has moves 0 to {moves}, not {number}"):
            replay.position(number)


def test_movers_are_those_of_the_game() -> None:
    """B3, R4: a seat acts several times in a turn, so whose a move is cannot be counted off."""
    for name in ("blitz of seven", "blind_blitz of two"):
        replay = play(played(GAMES[name], 8))
        movers = [position["to_move"] for position in replay.positions[:-1]]
        assert replay.as_dict()["movers"] == movers
        assert any(a == b for a, b in pairwise(movers))


def test_every_position_is_shown_from_the_deal_on() -> None:
    replay = play(DEAL + " | 0-1L 0-3L")
    assert [len(position["moves"]) for position in replay.positions] == [0, 1, 2]
    assert [position["to_move"] for position in replay.positions] == [0, 1, 2]
    assert replay.positions[0]["ends"] is None and replay.positions[2]["ends"] == [3, 1]


@pytest.mark.parametrize(
    ("moves", "says"),
    [
        ("0-1L 2-2L", "line 9, column 70: seat 1 may not play 2-2L; allowed: 0-3L"),
        ("0-1L pass", "line 9, column 70: seat 1 may not play pass; allowed: 0-3L"),
        ("0-1R", "line 9, column 65: seat 0 may not play 0-1R; allowed: 0-1L, 1-2L"),
        ("0-3L", "line 9, column 65: seat 0 may not play 0-3L"),
        ("0-1L 0-9L", "line 9, column 70: unknown move '0-9L'"),
    ],
)
def test_mistakes_are_told_with_their_place(moves: str, says: str) -> None:
    text = DEAL + " | " + moves
    with pytest.raises(ValueError) as error:
        play(text, 9)
    # Columns are told for people: the first character is column 1.
    assert says.replace("column 70", f"column {len(DEAL) + 4 + 5}").replace(
        "column 65", f"column {len(DEAL) + 4}"
    ) in str(error.value)


BLITZ = "blitz seats=8 leader=0 | 0-0 0-1 0-2 | 0-3 0-4 0-5 | 0-6 1-1 1-2 | 1-3 1-4 1-5 | 1-6 2-2 2-3 | 2-4 2-5 2-6 | "
BLITZ += "3-3 3-4 3-5 | 3-6 4-4 4-5"
BLIND = "blind_blitz seats=2 leader=0 | 0-0 1-1 2-2 3-3 4-4 5-5 6-6 0-1 | 0-2 0-3 0-4 0-5 0-6 1-2 1-3 1-4 | "
BLIND += "1-5 1-6 2-3 2-4 2-5 2-6 3-4 3-5 3-6 4-5 4-6 5-6"


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        (BLITZ + " | 0-1L", "0-1L", "seat 0 may not play 0-1L; allowed: 0-0L"),
        (BLITZ + " | 0-0L 0-3L", "0-3L", "seat 0 may not play 0-3L; allowed: 0-1L, 0-2L, pass"),
        (BLITZ + " | 0-0L pass pass", "pass pass", "seat 1 may not play pass; allowed: 0-3L, 0-4L, 0-5L"),
        (BLITZ + " | 0-0L turn", "turn", "unknown move 'turn'; moves are written a-bL, a-bR or pass"),
        (BLITZ.replace("leader=0", "leader=3"), "leader=3", "seat 0"),
        (BLIND + " | turn", "turn", "seat 0 may not play turn; allowed: 0-0L"),
        (BLIND + " | 0-0L turn draw", "draw", "seat 0 may not play draw; allowed: 0-1L"),
        (BLIND + " | 0-0L pass turn 1-4R", "1-4R", "seat 1 may not play 1-4R; allowed: pass, draw"),
        (BLIND.replace("leader=0", "leader=1"), "leader=1", "seat 0 lead, who holds 0-0"),
    ],
)
def test_mistakes_in_other_games_are_told_with_their_place(text: str, at: str, says: str) -> None:
    with pytest.raises(ValueError) as error:
        play(text, 4)
    place = text.rindex("pass") if at == "pass pass" else text.rindex(at)
    assert str(error.value).startswith(f"line 4, column {place + 1}: ") and says in str(error.value)


def test_a_move_after_the_end() -> None:
    text = played("sport_book", 1) + " pass"
    with pytest.raises(ValueError, match="pass comes after the end of the deal"):
        play(text)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no deal in it"),
        (b"# nothing\n\n", "no deal in it"),
        (b"\xff\xfe", "not a text file"),
        (b"sport leader=0", "line 1, column 1: unknown rules 'sport'"),
        (b"\n" + DEAL.replace("2-3", "0-1").encode(), "line 2, column"),
    ],
)
def test_files_that_are_none(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "deals.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        read(path)
    assert says in str(error.value) and str(path) in str(error.value)


# -- match records ----------------------------------------------------------------------------------------------------

NAMES = ("Ann", "Bob", "Cid", "Dot", "Eve", "Fay", "Gus")


def record(path: Path, rules: Rules, violations: tuple[Violation, ...] = (), **fields: object) -> Path:
    """A match played at random, with violations in its second deal."""
    path.write_bytes(_record(rules, violations, tuple(fields.items())))
    return path


@cache
def _record(rules: Rules, violations: tuple[Violation, ...], fields: tuple[tuple[str, object], ...]) -> bytes:
    rng = np.random.default_rng(5)
    with TemporaryDirectory() as folder:
        header = Header(rules, NAMES[: rules.seats], **dict(fields))  # type: ignore[arg-type]
        with Recorder.create(Path(folder) / "match.jsonl", header) as recorder:
            while not recorder.standing.over:
                engine = lay_out([recorder.standing], [next_deal(recorder.standing, 5)])
                while not engine.over()[0]:
                    engine.step(engine.sample_legal(rng), autoreset=False)
                recorder.append(Played(engine.record(0), violations if recorder.standing.deals == 1 else ()))
        return recorder.path.read_bytes()


@pytest.fixture
def club(tmp_path: Path) -> Path:
    """A judged match of sport_club: a talk and a tile shown in the second deal."""
    shown = (Violation("talk", 1, 4), Violation("show", 2, 6))
    draw = ("0-0", "1-1", "4-4", "2-2")
    return record(tmp_path / "club.jsonl", get_rules("sport_club"), violations=shown, judge="club", draw=draw)


@pytest.mark.parametrize("name", [*SOME, "blitz in pairs"])
def test_a_match_is_replayed_deal_by_deal(name: str, tmp_path: Path) -> None:
    """Positions are those of the deal, with its number and the points of the match before and after it."""
    rules = GAMES[name]
    found = read(record(tmp_path / "match.jsonl", rules))
    assert isinstance(found, MatchReplay) and len(found.deals) == len(found.record.lines) == 4
    before = [0] * rules.num_sides
    for number, (one, line) in enumerate(zip(found.deals, found.record.lines, strict=True)):
        assert one.line == number + 2 and one.deal == found.record.played[number].deal
        last = one.position()
        assert last["over"] and last["deal"] == line["raw"] and last["moves"] == line["moves"]
        assert (last["deal_index"], last["score"]) == (number, line["sums"])
        for moves in (0, 1, len(one.deal.moves) - 1):
            assert (one.position(moves)["deal_index"], one.position(moves)["score"]) == (number, before)
            assert render.text(one.position(moves))
        before = line["sums"]


def test_what_a_match_says_of_itself(club: Path) -> None:
    """S11, S12, J: players, seats, judge, who leads and shuffles, raw and recorded result, sanctions, sums."""
    found = read(club)
    assert isinstance(found, MatchReplay)
    lines = found.record.lines
    assert found.heading() == [
        "match of sport_club, 4 deals, the club judges",
        "  seat 0  Ann  drew 0-0",
        "  seat 1  Bob  drew 1-1",
        "  seat 2  Cid  drew 4-4",
        "  seat 3  Dot  drew 2-2",
        "  Ann and Cid against Bob and Dot",
    ]
    assert found.opening(found.deals[1]) == [
        "deal 2 (line 3): Bob, seat 1, leads; Ann, then Bob would shuffle, Bob draws last"
    ]
    outcome = found.outcome(found.deals[1])
    points = " : ".join(map(str, lines[1]["recorded"]["points"]))
    assert outcome[1:] == [
        "  talk by Bob after 4 moves (J3), no. 1: a warning",
        "  show by Cid after 6 moves (J3), no. 1: fine 25",
        f"  recorded {points}, of it fines 0 : 25",
        f"  sums {' : '.join(map(str, lines[1]['sums']))}",
    ]
    assert f"after {lines[1]['raw']['plies']} moves, pips left " in outcome[0]
    assert outcome[0].endswith(" : ".join(map(str, lines[1]["raw"]["points"])))
    sums = lines[-1]["sums"]
    winner = "Ann and Cid" if sums[0] > sums[1] else "Bob and Dot"
    assert found.ending() == [f"{winner} win after 4 deals: {sums[0]} : {sums[1]}"]


def test_what_a_match_of_single_seats_says(tmp_path: Path) -> None:
    """B5: no pairs, no judge, a sum a seat."""
    rules = GAMES["blitz of seven"]
    found = read(record(tmp_path / "blitz.jsonl", rules, given=True))
    assert isinstance(found, MatchReplay)
    assert found.heading()[0] == "match of blitz seats=7 chain=one, 4 deals, nobody judges"
    assert found.heading()[-2:] == ["  seat 6  Gus", "  the deals are given"]
    line = found.record.lines[0]
    assert found.opening(found.deals[0]) == [f"deal 1 (line 2): {NAMES[line['leader']]}, seat {line['leader']}, leads"]
    assert found.outcome(found.deals[0])[-1] == f"  sums {' : '.join(map(str, line['sums']))}"
    best = found.record.standing.winner
    assert best is not None and found.ending()[0].startswith(f"{NAMES[best]} wins after 4 deals: ")


def test_what_a_match_that_was_left_or_tied_says(club: Path) -> None:
    """S10, J6."""
    found = read(club)
    assert isinstance(found, MatchReplay)
    tied = replace(found.record.standing, sums=(40, 40))
    assert replace(found, record=replace(found.record, standing=tied)).ending() == ["a tie after 4 deals: 40 : 40"]
    going = replace(found.record.standing, deals=3)
    assert "goes on after 3 deals" in replace(found, record=replace(found.record, standing=going)).ending()[0]
    left = replace(found, record=replace(found.record, standing=leave(going, 3)))
    assert left.ending()[0] == "Dot, seat 3, left: barred for the season or three entry fees"


def test_players_of_one_name_are_told_apart_by_their_seats(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    path = tmp_path / "match.jsonl"
    with Recorder.create(path, Header(get_rules("sport_club"), ("Ann", "club", "club", "club"))) as recorder:
        engine = lay_out([recorder.standing], [next_deal(recorder.standing, 2)])
        while not engine.over()[0]:
            engine.step(engine.sample_legal(rng), autoreset=False)
        recorder.append(Played(engine.record(0)))
    found = read(path)
    assert isinstance(found, MatchReplay)
    assert found.heading()[-1] == "  Ann and club (seat 2) against club (seat 1) and club (seat 3)"
    assert found.opening(found.deals[0])[0].endswith("; club (seat 3), then Ann would shuffle, Ann draws last")
    by = found.record.lines[0]["raw"]["by"]
    assert ("Ann" if by == 0 else f"club (seat {by})") in found.outcome(found.deals[0])[0]
    assert found.ending()[0].startswith("the match goes on after 1 deal: ")


def test_a_wrong_pass_that_went_on_is_stepped_through(tmp_path: Path) -> None:
    """J3: the seat could lay and passed; the positions show it."""
    rng = np.random.default_rng(1)
    path = tmp_path / "match.jsonl"
    with Recorder.create(path, Header(get_rules("sport_club"), NAMES[:4], judge="club")) as recorder:
        engine = lay_out([recorder.standing], [next_deal(recorder.standing, 2)])
        while not engine.over()[0]:
            wrong = engine.plies()[0] == 5
            if wrong:
                assert isinstance(engine, LineEngine) and engine.legal()[0, PASS] == 0
                engine.allow_pass(np.zeros(1, np.int64))
            engine.step(np.array([PASS]) if wrong else engine.sample_legal(rng), autoreset=False)
        recorder.append(Played(engine.record(0), (Violation("wrong_pass", 1, 5),)))
    found = read(path)
    assert isinstance(found, MatchReplay)
    positions = found.deals[0].positions
    assert len(positions) == len(found.deals[0].deal.moves) + 1 and positions[6]["moves"][5] == "pass"
    assert "wrong_pass by Bob after 5 moves (J3), no. 1: fine 25" in found.outcome(found.deals[0])[1]
    for position in positions:
        assert render.text(position)


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `domino replay …`."""
    code = cli.main(["replay", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def test_command_prints_a_match(club: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read(club)
    assert isinstance(found, MatchReplay)
    code, out, err = run(capsys, club)
    told = found.heading()
    for one in found.deals:
        told += ["", *found.opening(one), *found.outcome(one)]
    assert (code, err) == (0, "") and out.splitlines() == [*told, "", *found.ending()]


def test_command_shows_deals_and_moves_of_a_match(club: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read(club)
    assert isinstance(found, MatchReplay)
    second = found.deals[1]
    code, out, _ = run(capsys, club, "--deal", 2)
    assert code == 0 and render.text(second.position()) in out
    assert found.outcome(second)[-1] in out and found.opening(found.deals[0])[0] not in out
    code, out, _ = run(capsys, club, "--deal", 2, "--move", 7)
    assert code == 0 and render.text(second.position(7)) in out
    assert not any(line in out for line in found.outcome(second)), "how it ends is not told"
    code, out, _ = run(capsys, club, "--deal", 2, "--step")
    assert code == 0 and all(render.text(position) in out for position in second.positions)


class Terminal(io.StringIO):
    """A stream that says that a person sits before it."""

    def isatty(self) -> bool:
        return True


def test_command_steps_through_a_match_at_a_terminal(club: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter shows the next position, q leaves; how the deal ends is not told to who leaves before its end."""
    found = read(club)
    assert isinstance(found, MatchReplay)
    first = found.deals[0]
    for typed, shown in [("\n\nq\n", 3), ("\n" * 60, len(first.positions))]:
        out = Terminal()
        monkeypatch.setattr("sys.stdin", Terminal(typed))
        monkeypatch.setattr("sys.stdout", out)
        assert cli.main(["replay", str(club), "--deal", "1", "--step"]) == 0
        pictures = [render.text(position, color=True) in out.getvalue() for position in first.positions]
        assert pictures == [number < shown for number in range(len(pictures))]
        assert (found.outcome(first)[-1] in out.getvalue()) == (shown == len(pictures))


@pytest.mark.parametrize("name", ["sport_club", "blitz of seven", "blind"])
def test_command_draws_any_position_of_a_match(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    path = record(tmp_path / "match.jsonl", GAMES[name])
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    code, _, _ = run(capsys, path, "--deal", 3, "--move", 6, "--svg", svg, "--png", png)
    found = read(path)
    assert isinstance(found, MatchReplay)
    position = found.deals[2].position(6)
    assert code == 0 and svg.read_text() == render.svg(position)
    assert np.array_equal(np.asarray(Image.open(png)), render.rgb(position))


def test_command_tells_a_match_as_json(club: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in club.read_text().splitlines()]
    code, out, _ = run(capsys, club, "--json")
    told = json.loads(out)
    assert code == 0 and list(told) == ["file", "header", "summary", "cut", "deals"] and told["header"] == lines[0]
    assert told["deals"] == [{"line": number, **line} for number, line in enumerate(lines[1:], 2)]
    assert told["summary"]["sums"] == lines[-1]["sums"]
    code, out, _ = run(capsys, club, "--json", "--deal", 2, "--move", 3)
    (deal,) = json.loads(out)["deals"]
    assert code == 0 and deal["deal"] == 1 and deal["position"]["moves"] == lines[2]["moves"][:3]


def test_command_refuses_a_record_that_is_cut(club: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cut in the middle of any line: path and line are named, exit code 2; `--drop-cut` shows what is whole."""
    whole = club.read_bytes()
    starts = [0, *(i + 1 for i, byte in enumerate(whole[:-1]) if byte == 10)]
    for number, start in enumerate(starts, 1):
        club.write_bytes(whole[: start + 40])
        code, out, err = run(capsys, club)
        assert (code, out) == (2, "") and err.startswith(f"domino: {club}: line {number} is cut in the middle")
        code, out, err = run(capsys, club, "--drop-cut")
        if number == 1:
            assert code == 2 and "line 1 is missing" in err
        else:
            whole_deals = "1 deal" if number == 3 else f"{number - 2} deals"
            assert code == 0 and "the last line was cut" in out and f"goes on after {whole_deals}: " in out
    assert run(capsys, club, "--drop-cut", "--deal", 4)[2].endswith("--deal 4: " + f"{club} holds deals 1 to 3\n")


@pytest.mark.parametrize("name", SOME)
def test_command_refuses_an_edited_result(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A result, a sum or a move that was edited does not follow: path and line are named, exit code 2, no output."""
    path = record(tmp_path / "match.jsonl", GAMES[name])
    lines = path.read_text().splitlines(keepends=True)
    line = json.loads(lines[2])
    edits = {
        "raw": {**line["raw"], "points": [7] * len(line["sums"])},
        "recorded": {**line["recorded"], "points": [7] * len(line["sums"])},
        "sums": [points + 1 for points in line["sums"]],
        "moves": line["moves"][:-1],
        "leader": line["leader"] + 1,
    }
    for key, value in edits.items():
        path.write_text("".join([*lines[:2], json.dumps({**line, key: value}) + "\n", *lines[3:]]))
        code, out, err = run(capsys, path, "--json")
        assert (code, out) == (2, "") and err.startswith(f"domino: {path}: line 3: ") and err.count("\n") == 1
    path.write_text("".join(lines))
    assert run(capsys, path)[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--deal", 5], "--deal 5: {path} holds deals 1 to 4"),
        (["--move", 400], "--move 400: the deal of line 2 has moves 0 to "),
        (["--step", "--move", 1], "choose"),
        (["--svg", "a.svg"], "a picture shows one deal: choose with --deal 1 to --deal 4"),
        (["--deal", 1, "--step", "--svg", "a.svg"], "a picture shows one position"),
    ],
)
def test_command_refuses_what_a_match_has_not(
    words: list[object], says: str, club: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(club.parent)
    code, out, err = run(capsys, club, *words)
    assert (code, out) == (2, "") and says.format(path=club) in err and not Path("a.svg").exists()


def test_command_on_a_match_without_deals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "match.jsonl"
    Recorder.create(path, Header(get_rules("blind"), NAMES[:4])).close()
    code, out, _ = run(capsys, path)
    assert code == 0 and out.splitlines()[-1] == "the match goes on after 0 deals: 0 : 0 : 0 : 0"
    assert "--deal 1: " in (err := run(capsys, path, "--deal", 1)[2]) and "holds no deals" in err
    assert "a picture shows one deal: " in (err := run(capsys, path, "--png", "a.png")[2]) and "holds none" in err


def test_command_knows_the_two_kinds_of_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, other = tmp_path / "deals.txt", tmp_path / "other.json"
    text.write_text(f"# a deal\n{DEAL}\n")
    assert run(capsys, text)[1].startswith("line 2: tiny_pairs, seat 0 leads, 0 moves\n")
    assert "only the last line of a match record can be left out" in run(capsys, text, "--drop-cut")[2]
    other.write_text('{"a": 1}\n')
    assert run(capsys, other)[2] == f"domino: {other}: line 1: header lacks 'record'\n"
