"""`domino signal`: examples run, JSON is one object, bad input is one line, and figures are those of the measures."""

import functools
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer

from domino_env import get_rules, make_engine
from domino_env.deals import Deal, format_deal
from domino_env.tiles import tiles_of
from experiments import cli
from experiments.files import locked
from experiments.signaling import cross_play, examples, matches, probe, report as reporting, validity
from experiments.signaling.commands import app as signal_app
from experiments.signaling.conventions import MOVES
from tests.experiments.signaling.conftest import controls, without_pictures

COMMANDS = "e0 e1 e2 e3 e4 e9 measure listen decode probe conventions report".split()
QUICKLY = {"--boards": "4", "--deals": "3", "--least": "5"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run in, and controls that are not played."""
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    for module in (validity, reporting):
        monkeypatch.setattr(module, "validity", lambda *words, **more: controls())
    for size in ("QUICK", "USUAL"):
        monkeypatch.setattr(reporting, size, reporting.Sizes(3, 6, 2, 4, 2, 2, 2, 4, 3))
    return tmp_path


def few_draws(patch: pytest.MonkeyPatch) -> None:
    """Fifty draws of trainings."""
    patch.setattr(cross_play.cross_play, "__kwdefaults__", {**cross_play.cross_play.__kwdefaults__, "draws": 50})


def answer(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    """The JSON object that a command prints."""
    assert cli.main(["signal", *words, "--json"]) == code
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def examples_of(command: str, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The words of the examples in the help of a command."""
    assert cli.main(["signal", command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--json" in shown and "--seed" in shown
    said = re.findall(r"Example: domino ((?:.|\n(?!\s*\n))+)", shown)
    assert said, "every command has an example"
    return [shlex.split(" ".join(one.split())) for one in said]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_the_help_are_understood(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    group: Any = typer.main.get_command(signal_app)
    for first, name, *words in examples_of(command, capsys):
        assert (first, name) == ("signal", command)
        group.commands[name].make_context(name, words)


@pytest.mark.slow
@pytest.mark.parametrize("command", [one for one in COMMANDS if one != "probe"])
def test_the_examples_of_the_help_run(
    command: str, hearing: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pictures(monkeypatch)
    few_draws(monkeypatch)
    for example in examples_of(command, capsys):
        words = [re.sub(r"runs/[\w-]+-\d{8}-\d{6}", hearing, word) for word in example]
        for option, value in QUICKLY.items():
            if option in words:
                words[words.index(option) + 1] = value
        if "--tiles" in words:
            words[words.index("--tiles") + 1] = "3,4"
        if hearing not in words and "--rules" not in words and command != "e0":
            words += ["--rules", "tiny_pairs"]
        assert cli.main(words) == 0, (example, capsys.readouterr())
        assert capsys.readouterr().out


def test_e0(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def run(game: Any, **more: Any) -> Any:
        asked.update(more, game=game.title)
        return controls(holds=False)

    found = answer(capsys, "e0", "--deals", "7")
    assert found["experiment"] == "e0" and found["holds"] is True and len(found["rows"]) == 2
    assert found["rows"][1] == {
        "name": "more of more", "estimate": 0.3125, "low": 0.25, "high": 0.375, "expected": "above 0", "holds": True,
    }  # fmt: skip
    monkeypatch.setattr(validity, "validity", run)
    found = answer(capsys, "e0", "--deals", "7", "--quick", "--seed", "3", code=1)
    assert found["rows"][1]["holds"] is False and found["doses"]["2"]["mean"] == 0.3125
    assert (asked["deals"], asked["seed"], asked["whole"]) == (7, 3, False)
    assert cli.main(["signal", "e0"]) == 1 and "NO" in capsys.readouterr().out


def test_measures_of_a_planted_convention(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    small = ["--rules", "tiny_pairs", "--deals", "40"]
    loud = answer(capsys, "measure", "planted:strength=4", *small)
    quiet = answer(capsys, "measure", "planted:strength=0", *small)
    assert loud["reference"] == quiet["reference"] == "planted:strength=0" and loud["seed"] == 0
    assert loud["observers"]["partner"]["gap"]["low"] > 1e-5
    for name in ("excess", "gap"):
        assert quiet["observers"]["partner"][name]["mean"] == pytest.approx(0, abs=1e-9)
    other = answer(capsys, "measure", "planted:strength=4", *small, "--reference", "planted:strength=4")
    assert other["observers"]["left"]["excess"]["mean"] == 0 == other["secrecy"]["left"]["mean"]

    ladder = answer(capsys, "e1", "planted:strength=4", "planted:strength=0", *small, "--of", "1")["ladders"]
    assert [one["player"] for one in ladder] == ["planted:strength=4", "planted:strength=0"]
    assert ladder[0]["of"] == "left" and abs(ladder[1]["all"]["true"]["mean"]) < ladder[0]["all"]["true"]["mean"]

    decoded = answer(capsys, "decode", "planted:strength=4", *small, "--target", "holds")
    assert list(decoded["targets"]) == ["holds"] and decoded["of"] == 2 and decoded["hands"]["true"]["z"] is not None

    few = [*small[:2], "--deals", "60", "--least", "20", "--examples", "1", "--boards", "20"]
    table = answer(capsys, "conventions", "planted:strength=4", *few)
    assert [row["kind"] for row in table["rows"]] == ["any", *MOVES] and len(table["examples"]) == 1
    assert table["rows"][0]["convention"]["low"] > 0 and table["rows"][0]["verdict"] == "noise"  # nobody reads it
    assert table["worth"]["boards"] == 20 and table["worth"]["pool"] == ["greedy", "club"] and table["judge"] is None
    assert table["rows"][0]["value"]["mean"] == 0 and table["rows"][0]["valuable"] is False  # it does not listen
    counted = table["consistency"]
    assert len(counted["links"]) == len(MOVES) * 6 and counted["least"] == 20 and counted["draws"] == 10_000
    assert any(one["p"] is not None for one in counted["links"])
    monkeypatch.setattr(examples, "draw_examples", lambda found, out: out.write_text(found[0].move))
    assert cli.main(["signal", "conventions", "planted:strength=4", *few, "--png", "deals.png"]) == 0
    move = table["examples"][0]["move"]
    shown = capsys.readouterr().out
    assert Path("deals.png").read_text() == move and f"lays {move}" in shown and "covers partner" in shown
    assert "what the choice of a kind tells" in " ".join(shown.split()) and "read bits beside chance" in shown


def test_points_and_prices_of_a_run(
    hearing: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["conventions", hearing, "--deals", "8", "--least", "4", "--examples", "0", "--worlds", "4"]
    kept = [*words, "--boards", "6", "--pool", "random", "--out", "kept"]
    found = answer(capsys, *kept)
    assert found["worth"]["pool"] == ["random"] and found["worth"]["deaf"] == f"deaf:model={hearing} (sampled)"
    assert found["rows"][0]["value"]["units"] == 6 and found["rows"][0]["price"]["mean"] >= 0
    assert found["judge"] == {"critic": hearing, "why": found["judge"]["why"], "worlds": 4}
    assert len(list((here / "kept").iterdir())) == 15
    with monkeypatch.context() as patch:
        patch.setattr(matches, "evaluate", None)
        assert answer(capsys, *kept) == found
    none = answer(capsys, *words[:-2], "--boards", "0", "--worlds", "0")
    assert none["worth"] is None is none["judge"] and none["rows"][0]["price"]["mean"] is None
    assert cli.main(["signal", *kept]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "prices: by the critic" in shown and "ears closed to one kind of moves, 6 boards against random" in shown


def test_listening(hearing: str, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--rules", "tiny_pairs", "--deals", "40"]
    found = answer(capsys, "listen", "planted:strength=4,listen=3", *small)["without"]
    assert found["partner"]["divergence"]["low"] > 0 == found["opponents"]["divergence"]["mean"]
    assert found["partner"]["influence"]["partner"]["informational"]["mean"] > 0
    deaf = answer(capsys, "listen", "planted:strength=4", *small)["without"]
    assert deaf["all"]["divergence"]["mean"] == 0 < deaf["all"]["influence"]["left"]["total"]["mean"]
    words = ["--least", "5", "--examples", "0", "--boards", "0", "--worlds", "0"]
    every = answer(capsys, "conventions", "planted:strength=4,listen=3", *small, *words)["rows"][0]
    assert every["partner"]["mean"] > 0 == every["opponents"]["mean"] == every["opponents"]["error"]
    found = answer(capsys, "listen", "club", "--deals", "6", "--tiles", "12")  # certain moves: a floor, and all alike
    assert found["how"] == "certain" and found["without"]["all"]["influence"]["partner"]["total"]["mean"] > 0
    found = answer(capsys, "listen", "lookahead:worlds=2,model=" + hearing, "--deals", "2")
    assert set(found["without"]) == {"all", "partner", "opponents"}
    assert found["without"]["all"]["divergence"]["mean"] is None and not found["without"]["all"]["influence"]


def test_greedy_play_is_read_as_certain(hearing: str, capsys: pytest.CaptureFixture[str]) -> None:
    soft = answer(capsys, "measure", hearing, "--deals", "20")
    sure = answer(capsys, "measure", hearing, "--deals", "20", "--greedy")
    assert soft["how"] == "drawn by its own probabilities" and sure["how"].startswith("its likeliest action")
    assert soft["reference"] == sure["reference"] == f"deaf:model={hearing}"
    assert sure["observers"]["partner"]["uniform"] != soft["observers"]["partner"]["uniform"]


def test_the_square(
    hearing: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["e2", "planted:strength=4,listen=3", "--boards", "40", "--rules", "tiny_pairs", "--out", "kept/matches"]
    found = answer(capsys, *words)
    assert found["experiment"] == "e2" and found["boards"] == 40 and set(found["cells"]) == {"00", "01", "10", "11"}
    assert found["sides"]["deaf_a"] == "planted:strength=4,listen=0"
    assert found["figures"]["exposure_1"]["mean"] == 0 != found["figures"]["partner_1"]["mean"]
    names = sorted(path.name for path in (here / "kept" / "matches").iterdir())

    def never(*words: Any, **more: Any) -> Any:
        raise AssertionError("a match was played again")

    with monkeypatch.context() as patch:
        patch.setattr(matches, "evaluate", never)
        assert answer(capsys, *words) == found
    assert sorted(path.name for path in (here / "kept" / "matches").iterdir()) == names

    own = answer(capsys, "e2", hearing, "--boards", "10", "--png", "square.png")
    assert (here / "square.png").read_bytes().startswith(b"\x89PNG")
    assert own["sides"]["deaf_b"] == f"deaf:model={hearing} (sampled)" and own["figures"]["net"]["mean"] == 0
    assert "both teams are the same players" in own["notes"][0]
    trained = f"{hearing},planted:strength=2"
    lists = ["--retrained", trained, "--deaf", f"deaf:model={hearing},planted:strength=0", "--boards", "6"]
    both = answer(capsys, "e2", *lists, "--against", "planted:listen=1")
    assert len(both["squares"]) == 2 and both["squares"][1]["sides"]["deaf_a"] == "planted:strength=0"
    assert both["squares"][0]["sides"]["hear_b"] == "planted:listen=1"


def test_cross_play(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    few_draws(monkeypatch)
    runs = [f"planted:strength={strength}" for strength in (2, 4, 8)]
    found = answer(capsys, "e3", *runs, "--rules", "tiny_pairs", "--boards", "10", "--deals", "20", "--pool", "greedy")
    far = np.array(found["distances"])
    assert found["players"] == runs and far.shape == (3, 3) and far[0, 2] > far[0, 1] > 0 == far[1, 1]
    assert found["methods"][0]["gap"]["low"] is not None and found["agreement"]["all"]["p"] is not None
    assert found["notes"][0].startswith("3 trainings: intervals over trainings are too narrow; of 100 about 62 hold")
    words = ["--method", "a=random,double_first", "--method", "b=planted,planted:strength=2,listen=1", "--deals", "0"]
    found = answer(capsys, "e3", *words, "--boards", "4", "--out", "m", "--rules", "tiny_pairs")
    assert found["method"] == ["a", "a", "b", "b"] and found["distances"] is None
    assert found["players"][3] == "planted:strength=2,listen=1" and len(list((here / "m").iterdir())) == 20


def test_the_free_channel(hearing: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "e4", hearing, "--deals", "60", "--control", "planted:strength=4")
    assert found["player"]["decisions"] > 10 and found["player"]["information"]["mean"] < 1e-3
    assert found["control"]["players"][0] == "planted:strength=4"
    assert found["control"]["information"]["mean"] > 0.01


def test_maxims(hearing: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "e9", hearing, "--boards", "2", "--deals", "20", "--others", "random,uniform")
    assert len(found["worths"]) == 22 and found["base"] == "club" and found["players"][0] == hearing
    assert set(found["answers"][0]["rates"]) == {"random", "uniform"}


def test_probe(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Deals of a program that cannot be asked."""
    rules, lines, rng = get_rules("tiny_pairs"), [], np.random.default_rng(0)
    engine: Any = make_engine(rules, 500, seed=1)
    engine.reset()
    hands, leaders, moves = engine.hands().copy(), engine.to_move().copy(), [[] for _ in range(500)]
    rows = np.arange(500)
    while len(rows):
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in engine.legal()])
        for row, action in zip(rows, actions.tolist()):
            moves[row].append(action)
        _, over = engine.step(actions, autoreset=False)
        rows = rows[~over]
        engine = engine.take(~over) if len(rows) else None
    for row in range(500):
        lines.append(format_deal(Deal(rules, int(leaders[row]), [tiles_of(int(h)) for h in hands[row]], moves[row])))
    (here / "deals.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(probe, "Learning", functools.partial(probe.Learning, epochs=2, hidden=8))
    monkeypatch.setattr(probe, "probe", functools.partial(probe.probe, at_most=20))
    found = answer(capsys, "probe", "deals.txt", "--player", "random")
    assert found["deals"] == [300, 100, 100] and found["of"] == 2 and found["gain"]["total"]["units"] <= 100
    assert found["exact"]["mean"] is not None and found["rules"] == "tiny_pairs"
    (here / "few.txt").write_text("\n".join(lines[:20]) + "\n")
    assert cli.main(["signal", "probe", "few.txt"]) == 2
    assert "20 deals are too few for a probe: it needs 500" in capsys.readouterr().err


BAD = [
    ("measure nobody", "unknown agent 'nobody'; choose from random, greedy"),
    ("measure pimc", "pimc has no probabilities: its moves hang on worlds that it draws"),
    ("report pimc --out new", "measure the network or rule player that it is built on"),
    ("measure club --reference pimc", "pimc has no probabilities"),
    ("measure {hearing} --rules sport_book", "was trained for tiny_pairs labelled_ends=True, not for sport_book"),
    ("report {hearing} {plain} --out new", "was trained for tiny_pairs, not for tiny_pairs labelled_ends=True"),
    ("listen {plain}", "out of distribution"),
    ("e2 {plain}", "train it with deaf=0.25"),
    ("conventions {plain} --reference deaf:model={plain}", "out of distribution"),
    ("e2 club --boards 100 --claim 0.5", "--boards 100 are too few for a claim of 0.5 points a deal: it needs about"),
    ("e2 club --png none/square.png", "none/square.png"),
    ("e2 club --claim 0", "--claim 0 must be points above 0"),
    ("e2", "name HEARING"),
    ("e2 club --retrained club --deaf club", "name HEARING"),
    ("e2 --retrained club,greedy --deaf random", "--retrained has 2 runs and --deaf 1"),
    ("e3", "which trainings?"),
    ("e3 club", "cross-play needs two trainings or more of a method, and all has 1"),
    ("e3 --method club,greedy", "write NAME=RUN,RUN"),
    ("e3 club club --deals 0 --boards 4", "each training counts once"),
    ("e3 club random --deals 0 --boards 4", "a training is no opponent of itself, where it wins 0"),
    ("report club club --out new", "each training counts once"),
    ("report {plain} {plain}/ --out new", "/ are one"),
    ("report random --pool club,greedy,club --out new", "each opponent counts once, for all count alike; twice: club"),
    ("e3 {plain} {plain}/checkpoints/latest --deals 0", "/checkpoints/latest are one"),
    ("e3 pimc:model={plain} pimc:model={plain}/checkpoints --deals 0", "each training counts once"),
    ("e3 planted planted:listen=2 --deals 0 --pool greedy,greedy", "each opponent counts once"),
    ("e3 planted planted:listen=2 --deals 0 --pool ,", "--pool is an empty list: name opponents"),
    ("e3 --method a= --boards 2", "cross-play needs two trainings or more of a method, and a has 0"),
    ("e2 --retrained {hearing},{hearing}/ --deaf random,greedy", "each training counts once"),
    ("e2 --retrained {hearing} --deaf {hearing}/checkpoints", "each training counts once"),
    ("e2 --retrained club --deaf random --claim 1", "of --retrained trainings are the units, so leave it out"),
    ("e9 --others greedy", "name PLAYER, too, or leave them out"),
    ("e0 --rules tiny_pairs --quick", "12 tiles on the line of a double-six set; in tiny_pairs too few have anything"),
    ("e4 {plain}", "train it with labelled_ends=true"),
    ("measure club --tiles 12,x", "must be numbers of 0..27 with commas between them"),
    ("measure club --tiles 27 --deals 2", "no decision with so many tiles on the line in 2 deals"),
    ("decode club --target colour --deals 2 --rules tiny_pairs", "unknown target 'colour'"),
    ("decode club --of 7 --deals 2 --rules tiny_pairs", "of=7 must be another seat"),
    ("measure club --rules blitz", "not in blitz"),
    ("listen lookahead --deals 2", "lookahead"),
    ("listen planted:listen=3 --rules tiny_pairs --tiles 7 --deals 2", "no decision with so many tiles on the line"),
    ("probe none.txt", "none.txt: No such file"),
    ("report greedy --out file.txt", "file.txt is a file; a folder is wanted"),
    ("report greedy --out .", "is not empty and holds no report on signals; write elsewhere by --out"),
    ("report greedy --out file.txt/below", "file.txt/below: Not a directory"),
    ("e2 planted:listen=1 --out file.txt", "file.txt is a file; a folder is wanted"),
    ("conventions random --boards 2 --pool random --deals 2 --rules tiny_pairs", "has nobody but random, which is"),
    ("conventions random --pool ,", "--pool is an empty list"),
    ("conventions club --png none/deals.png", "none/deals.png"),
    ("e0 --deals 1", "got '1'"),
]  # fmt: skip


def test_what_is_said_beside_the_figures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of players that read nobody, of one in its own pool, of parts that a report lacks, and of few decisions."""
    without_pictures(monkeypatch)
    few_draws(monkeypatch)
    small = ["--rules", "tiny_pairs", "--deals", "9"]

    def shown(*words: str) -> str:
        assert cli.main(["signal", *words]) == 0
        return " ".join(capsys.readouterr().out.split())

    for player in ("random", "pimc-1"):
        assert "it does not read all others, the partner, the opponents: without hearing them it is itself" in shown(
            "listen", player, *small
        )
    assert "the total is not the sum" in shown("listen", "planted:listen=3", *small)
    found = answer(capsys, "e2", "random", "--against", "planted:listen=3", "--rules", "tiny_pairs", "--boards", "4")
    assert [note.partition(":")[0] for note in found["notes"]] == ["team A does not read its partner"] + [
        "team B does not read its opponents"
    ]
    words = ["conventions", "greedy", *small, "--boards", "2", "--examples", "0", "--least", "5"]
    said = shown(*words)
    assert "greedy is left out of its own opponents" in said and "verdicts rest on intervals" in said
    said = shown("report", "greedy", "--rules", "tiny_pairs", "--out", "all")
    assert '"The free channel" is not in it: in tiny_pairs left and right' in said
    assert "greedy is left out of its own opponents" in Path("all/report.html").read_text()
    said = shown("e9", "greedy", "--boards", "2", "--deals", "9")
    assert "unknown: it takes 200 such decisions" in said


def test_one_report_at_a_time_writes_a_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "signals").mkdir()
    with locked(here / "signals", "a test"):
        assert cli.main(["signal", "report", "greedy", "--rules", "tiny_pairs", "--out", "signals"]) == 2
    assert "signals is being written by another report; wait for it" in capsys.readouterr().err
    assert not list((here / "signals").iterdir())


def test_a_report_overwrites_nothing_but_a_report(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["signal", "report", "random", "--rules", "tiny_pairs", "--out", "signals"]
    (here / "signals").mkdir()
    for name in ("report.html", "report.json"):
        (here / "signals" / name).write_text("{}")
        assert cli.main(words) == 2 and "signals is not empty and holds no report" in capsys.readouterr().err
        assert [path.read_text() for path in here.rglob("*") if path.is_file()] == ["{}"] * (1 + (name[-1] == "n"))
    reporting.claim(here / "none")
    (here / "kept" / "matches").mkdir(parents=True)
    (here / "kept" / ".1.trial").write_text("")
    reporting.claim(here / "kept")
    (here / "signals" / "report.json").write_text(json.dumps({"record": reporting.KIND, "version": reporting.VERSION}))
    reporting.claim(here / "signals")


def test_a_damaged_match_is_named_and_nothing_is_hidden(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pictures(monkeypatch)
    few_draws(monkeypatch)
    loud, small = "planted:strength=4,listen=3", ["--rules", "tiny_pairs", "--boards", "4"]
    asked = [
        ["e2", loud, *small, "--out", "square"],
        ["e3", loud, "planted", *small, "--deals", "0", "--out", "crossed"],
        ["report", loud, *small, "--out", "all"],
    ]
    for words in asked:
        assert cli.main(["signal", *words]) == 0
        kept = [path for path in (here / words[-1]).rglob("*.json") if len(path.stem) == 20]
        for path in kept:
            path.write_text(path.read_text()[:30])
        capsys.readouterr()
        assert cli.main(["signal", *words]) == 2
        out, err = capsys.readouterr()
        assert not out and err.count("\n") == 1 and "remove it, and it is played again" in err
        assert any(path.name in err for path in kept)


@pytest.mark.parametrize(("words", "says"), BAD, ids=[words for words, _ in BAD])
def test_bad_input_is_one_line_and_exit_code_2(
    words: str, says: str, here: Path, hearing: str, plain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file.txt").write_text("")
    before = sorted(here.rglob("*"))
    code = cli.main(["signal", *(word.format(hearing=hearing, plain=plain) for word in words.split())])
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert err.startswith("domino: ") and err.count("\n") == 1 and says in err
    assert sorted(here.rglob("*")) == before, "nothing is written"
