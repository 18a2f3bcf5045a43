"""Duplicate tournaments: the figures are those of `evaluate`, a run goes on where it was, and all of it is drawn."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import base
from agents.base import make_agent
from domino_env import get_rules
from experiments import cli, duplicate, strength, tournament
from experiments.duplicate import draw_matrix, labels, load, networks, plan, run
from experiments.evaluate import evaluate
from experiments.ratings import rate

ROOT = Path(__file__).resolve().parents[2]
WORDS = ["greedy", "mixed=club+greedy", "club", "random"]
BOARDS, SEED = 40, 5


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A tournament that was played in one go: folder and figures."""
    folder = tmp_path_factory.mktemp("duplicate") / "whole"
    return folder, run(plan(WORDS, boards=BOARDS, seed=SEED), folder)


def same(one, other):
    """Whether two results are alike but for where they lie and what time they took."""
    return all(one[key] == other[key] for key in one if key not in ("folder", "cpu_ms_per_move"))


def counted(monkeypatch, stop_at=None):
    """Counts the matches that are played; Ctrl-C comes in the one of this number."""
    seen = []
    meet = duplicate.meet

    def counting(*words):
        seen.append(words[:2])
        if len(seen) == stop_at:
            raise KeyboardInterrupt
        return meet(*words)

    monkeypatch.setattr(duplicate, "meet", counting)
    return seen


@pytest.fixture
def undrawn(monkeypatch):
    """No tables and pictures, where a test is of something else."""
    monkeypatch.setattr(duplicate, "_write", lambda result, folder: None)


# ------------------------------------------------------------------------------------------------------------- figures


def test_figures__are_those_of_evaluate(played):
    _, found = played
    assert found["players"] == ["greedy", "mixed", "club", "random"]
    assert found["sides"]["mixed"] == ["club", "greedy"] and found["sides"]["club"] == ["club", "club"]
    players = {"greedy": "greedy", "mixed": ("club", "greedy"), "club": "club", "random": "random"}
    for i, a in enumerate(players):
        for j, b in enumerate(players):
            cells = {key: found[key][i][j] for key in ("points", "low", "high", "win", "tie")}
            if a == b:
                assert set(cells.values()) == {None}
                continue
            one = evaluate(players[a], players[b], boards=BOARDS, seed=SEED)  # both ways round
            assert cells == pytest.approx(
                {"points": one.points_per_deal, "low": one.low, "high": one.high, "win": one.win, "tie": one.tie}
            )
            assert found["boards_won"][i][j] == (one.values > 0).mean()
            assert found["boards_tied"][i][j] == (one.values == 0).mean()
    assert found["boards"] == BOARDS and found["seed"] == SEED and found["rules"] == "sport_book"
    assert found["means"]["club"] == pytest.approx(np.mean([x for x in found["points"][2] if x is not None]))
    assert all(0 < ms < 100 for ms in found["cpu_ms_per_move"].values())


def test_ratings_and_mixture__follow_from_the_boards(played):
    _, found = played
    names = found["players"]
    values = {name: {} for name in names}
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            one, two = (tuple(found["sides"][name]) for name in (a, b))
            values[a][b] = evaluate(one, two, boards=BOARDS, seed=SEED).values
    meetings = [(a, b, of) for a, row in values.items() for b, of in row.items()]
    assert found["ratings"] == rate(names[::-1], meetings[::-1], shared=True, seed=SEED)  # a pair has one for both
    rating = [found["ratings"][name]["rating"] for name in found["ranking"]]
    assert rating == sorted(rating, reverse=True) and found["ranking"][0] == "club"
    nash = found["nash"]
    assert nash["mixture"] == {"greedy": 0, "mixed": 0, "club": 1, "random": 0} and nash["unique"]
    assert nash["value"] == 0 and nash["against"]["random"] == pytest.approx(found["points"][3][2])


def test_other_games__each_seat_for_itself(tmp_path, undrawn):
    found = run(plan(["greedy", "random", "counter"], "blitz", boards=8), tmp_path / "t")
    one = evaluate("random", "counter", "blitz", boards=8)
    assert found["points"][1][2] == pytest.approx(one.points_per_deal)
    assert found["points"][2][1] == pytest.approx(evaluate("counter", "random", "blitz", boards=8).points_per_deal)


def test_players_that_are_level_share_the_mixture(tmp_path, undrawn):
    found = run(plan(["one=club", "two=club", "random"], boards=20), tmp_path / "t")
    assert found["points"][0][1] == 0 and found["boards_tied"][0][1] == 1
    assert found["nash"]["mixture"] == pytest.approx({"one": 0.5, "two": 0.5, "random": 0}, abs=1e-6)
    assert not found["nash"]["unique"]
    assert found["ratings"]["one"] == pytest.approx(found["ratings"]["two"], abs=1e-6)


# ------------------------------------------------------------------------------------------------------------ going on


def test_stopped__goes_on_with_the_match_that_was_played(tmp_path, monkeypatch, played):
    folder = tmp_path / "t"
    with monkeypatch.context() as patch:
        counted(patch, stop_at=4)
        with pytest.raises(KeyboardInterrupt):
            run(plan(WORDS, boards=BOARDS, seed=SEED), folder)
    kept = {path: path.read_bytes() for path in (folder / "matches").iterdir()}
    assert len(kept) == 3 and not (folder / "table.json").exists()
    for name in (".duplicate.json.7.part", "matches/.match-0004.json.7.part"):  # killed while it wrote
        (folder / name).write_text("{")
    seen, shown = counted(monkeypatch), []
    found = run(load(folder), folder, lambda done, total: shown.append((done, total)))
    assert len(seen) == 3 and same(found, played[1])
    assert shown[0] == (3 * BOARDS, 6 * BOARDS) and shown[-1] == (6 * BOARDS, 6 * BOARDS)
    assert all(path.read_bytes() == data for path, data in kept.items())
    assert not list(folder.rglob("*.part"))
    assert (folder / "matrix.png").read_bytes() == (played[0] / "matrix.png").read_bytes()


def test_more_players__bring_only_their_own_matches(tmp_path, monkeypatch, undrawn, played):
    folder = tmp_path / "t"
    run(plan(["random", "club"], boards=BOARDS, seed=SEED), folder)
    seen = counted(monkeypatch)
    found = run(plan(WORDS, boards=BOARDS, seed=SEED), folder)  # in another order, too
    assert len(seen) == 5 and same(found, played[1])
    with pytest.raises(ValueError, match="holds a tournament with greedy too"):
        run(plan(["club", "random"], boards=BOARDS, seed=SEED), folder)


@pytest.mark.slow
def test_killed__loses_the_match_that_ran(tmp_path):
    names = ["random", "greedy", "club", "double_first"]
    words = ["tournament", "--duplicate", *names, "--boards", "12000", "--seed", "2"]
    code = "import sys; from experiments.cli import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    begun = subprocess.Popen([sys.executable, "-c", code, *words, "--out", "t"], cwd=tmp_path, env=environment)
    deadline = time.monotonic() + 300
    while len(list(tmp_path.glob("t/matches/match-*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(begun.pid, signal.SIGKILL)
    assert begun.wait() == -signal.SIGKILL
    kept = {path: path.read_bytes() for path in tmp_path.glob("t/matches/match-*.json")}
    assert 2 <= len(kept) < 6
    found = run(load(tmp_path / "t"), tmp_path / "t")
    assert all(path.read_bytes() == data for path, data in kept.items())
    assert same(found, run(plan(names, boards=12000, seed=2), tmp_path / "whole"))


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "two sides or more, not none"),
        ("club", "two sides or more, not club"),
        ("club greedy club", "'club' stands twice; give one another name"),
        ("club gredy", "unknown agent 'gredy'; choose from"),
        ("club greedy --boards 1", "'--boards'"),
        ("club greedy --seed -1", "'--seed'"),
        ("club greedy --rules sprot", "unknown rules 'sprot'"),
        ("club counter", "counter"),
        ("club north=club&greedy", "a team of two pairs"),
        ("club a=club+greedy+random", "a pair is an agent or two"),
        ("club a=greedy+random --rules blind/seats=3", "two partners, and blind has 3 seats"),
        ("cup.yaml club greedy", "cup.yaml: --duplicate is told who plays in words"),
        ("club greedy --fours 2", "--fours is of matches of fours; --duplicate has --boards"),
        ("club greedy --system swiss", "--system is of matches"),
        ("club greedy --rounds 2", "--rounds is of matches"),
        ("club greedy --table team", "--table is of matches"),
        ("club greedy --judge club", "--judge is of matches"),
        ("club greedy --withdraw club=1", "--withdraw is of matches"),
        ("club greedy --workers 2", "--workers is of matches"),
        ("--resume nowhere", "nowhere holds no duplicate tournament: there is no duplicate.json in it"),
        ("club greedy --resume nowhere", "beside it only --json"),
        ("club greedy --out file", "file is a file; a tournament is written to a folder"),
        ("club greedy --out full", "full is not empty and holds no duplicate tournament"),
    ],
)
def test_bad_input__is_one_line_and_nothing_is_written(tmp_path, monkeypatch, capsys, words, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("here")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "tournament.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    assert cli.main(["tournament", "--duplicate", *(word.replace("/", " ") for word in words.split())]) == 2
    out, err = capsys.readouterr()
    assert says in err and err.count("\n") == 1 and err.startswith("domino: ") and not out
    assert sorted(tmp_path.rglob("*")) == before


def test_options_of_the_other_kind__are_refused(tmp_path, monkeypatch, capsys, played):
    monkeypatch.chdir(tmp_path)
    assert cli.main("tournament club greedy --boards 20".split()) == 2
    assert "--boards 20 is of --duplicate" in capsys.readouterr().err
    assert cli.main(["tournament", "--resume", str(played[0]), "--workers", "2"]) == 2
    assert "--workers is of matches of fours" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "options", "says"),
    [
        (WORDS, {"boards": 61}, "with boards=40, not boards=61"),
        (WORDS, {"seed": 6}, "with seed=5, not seed=6"),
        (WORDS, {"rules": "sport_club"}, "with rules=sport_book, not rules=sport_club"),
        (WORDS, {"rules": get_rules("sport_book", lone_blank=3)}, "not rules=sport_book lone_blank=3"),
        (["greedy", "mixed=club+random", "club", "random"], {}, r"mixed=club\+greedy, not mixed=club\+random"),
        (WORDS[1:], {}, "with greedy too"),
    ],
)
def test_another_tournament__is_refused(played, words, options, says):
    folder, _ = played
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=says):
        run(plan(words, **{"boards": BOARDS, "seed": SEED, **options}), folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_damaged_match__is_named(tmp_path, undrawn):
    asked = plan(["club", "greedy"], boards=4)
    run(asked, tmp_path / "t")
    path = tmp_path / "t" / "matches" / "match-0001.json"
    whole = json.loads(path.read_text())
    short, other = {**whole, "values": whole["values"][:3]}, {**whole, "sides": ["club", "random"]}
    for text in ("{", "[]", '{"sides": ["club", "greedy"]}', json.dumps(short), json.dumps(other)):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"match-0001.json is no match of this tournament"):
            run(asked, tmp_path / "t")
    path.unlink()
    run(asked, tmp_path / "t")
    assert json.loads(path.read_text())["values"] == whole["values"]
    (path.parent / "match-0002.json").write_bytes(path.read_bytes())  # twice
    with pytest.raises(ValueError, match=r"match-0002.json is no match of this tournament"):
        run(asked, tmp_path / "t")


@pytest.mark.parametrize("text", ["{", "[]", '{"record": "domino duplicate tournament", "version": 1}'])
def test_a_damaged_head__is_named(tmp_path, text):
    (tmp_path / "duplicate.json").write_text(text)
    with pytest.raises(ValueError, match=r"duplicate.json"):
        load(tmp_path)


def test_networks__one_that_was_trained_on_is_another(tmp_path, monkeypatch, undrawn):
    for number in ("00000001", "00000002"):
        (tmp_path / "run" / "checkpoints" / number).mkdir(parents=True)
        (tmp_path / "run" / "checkpoints" / number / "model.safetensors").write_text(number)
    whole, first = str(tmp_path / "run"), str(tmp_path / "run" / "checkpoints" / "00000001")
    found = networks(["club", whole, f"pimc:worlds=3,model={first}"])
    assert list(found) == sorted([whole, first]) and found[whole] != found[first]  # a run is its newest checkpoint
    monkeypatch.chdir(tmp_path)
    (tmp_path / "club").mkdir()  # a player's name is no folder, nor is a number
    (tmp_path / "3").mkdir()
    assert networks(["club", "pimc:worlds=3"]) == {}
    asked = plan(["club", "greedy"], boards=4)
    now = {"greedy": "0" * 64}
    monkeypatch.setattr(duplicate, "networks", lambda agents: dict(now))
    run(duplicate.Plan(asked.sides, asked.rules, 4, 0, now), tmp_path / "t")
    changed = duplicate.Plan({**asked.sides, "random": ("random", "random")}, asked.rules, 4, 0, {"greedy": "1" * 64})
    with pytest.raises(ValueError, match="greedy is not the network that began"):
        run(changed, tmp_path / "t")
    with pytest.raises(ValueError, match="greedy is not the network that began"):  # while it is played
        run(changed, tmp_path / "other")


def test_an_agent_that_fails__stops_it(tmp_path, monkeypatch, capsys, undrawn):
    class Bad:
        name = "bad"

        def act(self, batch):
            raise RuntimeError("no idea")

    monkeypatch.setitem(base._REGISTRY, "bad", (Bad, ""))
    monkeypatch.chdir(tmp_path)
    words = "tournament --duplicate club greedy bad --boards 4 --out t".split()
    assert cli.main(words) == 1
    err = capsys.readouterr().err
    assert "RuntimeError: no idea; once it is mended: domino tournament --resume t" in err and err.count("\n") == 1
    assert len(list((tmp_path / "t" / "matches").iterdir())) == 1
    monkeypatch.setitem(base._REGISTRY, "bad", (lambda: make_agent("greedy"), ""))
    assert cli.main(["tournament", "--resume", "t"]) == 0


# ------------------------------------------------------------------------------------------------------------- outputs


def test_files__hold_the_same_figures(played):
    folder, found = played
    table = json.loads((folder / "table.json").read_text())
    assert {**table, "folder": str(folder)} == found
    rows = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    assert [(row["place"], row["player"]) for row in rows] == [(f"{i}", x) for i, x in enumerate(found["ranking"], 1)]
    for row in rows:
        i = found["players"].index(row["player"])
        rating = found["ratings"][row["player"]]
        assert [float(row[key]) for key in ("rating", "rating_low", "rating_high")] == pytest.approx(
            [rating["rating"], rating["low"], rating["high"]], rel=1e-5
        )
        assert float(row["nash"]) == found["nash"]["mixture"][row["player"]]
        for j, other in enumerate(found["players"]):
            cells = [row[f"{what} {other}"] for what in ("over", "low over", "high over")]
            if i == j:
                assert cells == ["", "", ""]
            else:
                expected = [found[key][i][j] for key in ("points", "low", "high")]
                assert list(map(float, cells)) == pytest.approx(expected, rel=1e-5)


def test_events__ratings_and_the_picture(played):
    folder, found = played
    events = EventAccumulator(str(folder))
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == sorted(f"tournament/{name}/rating" for name in found["players"])
    (one,) = events.Scalars("tournament/club/rating")
    assert one.value == pytest.approx(found["ratings"]["club"]["rating"], rel=1e-6) and one.step == BOARDS
    assert events.Tags()["images"] == ["tournament/matrix"]


def test_picture__winners_above_and_warm(tmp_path, played):
    _, found = played
    figure = duplicate._figure(found)
    axes = figure.axes[0]
    rows = [label.get_text().split()[0] for label in axes.get_yticklabels()]
    assert rows == found["ranking"] == [label.get_text() for label in axes.get_xticklabels()]
    best, last = (found["players"].index(found["ranking"][i]) for i in (0, -1))
    texts = [text.get_text() for text in axes.texts]
    assert f"{found['points'][best][last]:+.2f}" in texts and len(texts) == 12 * 2 + 4
    path = draw_matrix(found, tmp_path / "m.png")
    picture = np.asarray(Image.open(path).convert("RGB")).astype(int)
    width, height = figure.get_size_inches() * 120
    assert picture.shape[:2] == pytest.approx((height, width), abs=1) and min(width, height) > 400

    def ink(row, column):  # beside the text of a cell
        x, y = axes.transData.transform((column + 0.35, row - 0.35)) * 120 / figure.dpi
        return picture[round(height - y), round(x)]

    figure.canvas.draw()
    red, _, blue = ink(0, 3)
    assert red > blue + 60  # won: orange
    red, _, blue = ink(3, 0)
    assert blue > red + 20  # lost: purple
    assert np.ptp(ink(1, 1)) < 8  # nobody met: grey


def test_picture__of_other_tables(tmp_path):
    names = ["greedy", "random"]
    table = strength.search(names, boards=4)
    assert draw_matrix(table, tmp_path / "a.png").stat().st_size > 5000
    figures = tournament.run(tournament.plan(["club", *names]), tmp_path / "t")
    assert draw_matrix(figures, tmp_path / "b.png").stat().st_size > 5000
    figures["points"][0][1] = figures["points"][1][0] = None  # never met
    assert draw_matrix(figures, tmp_path / "c.png").stat().st_size > 5000


def test_labels__are_short_and_differ():
    long = "lookahead:worlds=100,candidates=500,leaf=mean,model=runs/a/checkpoints/latest"
    names = ["club", "runs/a/checkpoints/latest", "/x/runs/b", "runs/a/checkpoints/00000120", "x/club", long]
    found = labels(names)
    assert found[1:4] == ["a", "b", "a/00000120"] and len(set(found)) == 6
    assert found[0] == "club (1)" and found[4] == "club (5)" and len(found[5]) <= 26 and "…" in found[5]


def test_command__prints_a_table_or_one_object(tmp_path, monkeypatch, capsys, played):
    monkeypatch.chdir(tmp_path)
    words = ["tournament", "--duplicate", *WORDS, "--boards", str(BOARDS), "--seed", str(SEED), "--out", "t"]
    assert cli.main([*words, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert same(found, played[1]) and found["folder"] == "t"
    assert list(found)[:6] == ["players", "points", "low", "high", "ratings", "boards"]
    seen = counted(monkeypatch)
    assert cli.main(["tournament", "--resume", "t"]) == 0  # it is told by what lies there
    assert not seen and len(list(Path("t").glob("events.out.tfevents.*"))) == 1  # of the table that is there
    page = capsys.readouterr().out
    best = found["ratings"]["club"]
    assert f"{best['rating']:.0f} ({best['low']:.0f} to {best['high']:.0f})" in page and "100.0%" in page
    places = [re.search(rf"│ {place} │ (\w+)", page).group(1) for place in range(1, 5)]
    assert places == found["ranking"]
    i, j = (found["players"].index(found["ranking"][k]) for k in (0, 1))
    assert f"{found['points'][i][j]:+.2f}" in page and "nobody wins points against it." in page
    assert "Traceback" not in page and "in t: table.json" in page


def test_interrupted__says_how_to_go_on(tmp_path, monkeypatch, capsys, undrawn):
    monkeypatch.chdir(tmp_path)
    counted(monkeypatch, stop_at=1)
    assert cli.main("tournament --duplicate club greedy --boards 4 --out t".split()) == 130
    assert "interrupted; go on with: domino tournament --resume t" in capsys.readouterr().err
    assert cli.main("tournament --resume t".split()) == 0
