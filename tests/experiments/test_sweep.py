"""Sweeps: refused before anything runs, gone on with after a kill, and a table that says what it can say."""

import csv
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agents import ppo
from experiments import cli, sweep
from experiments.exploit import best_response_loss
from experiments.summary import markdown, summarize, write_tables
from experiments.sweep import Run, find_run, plan, run, shipped
from experiments.train import train

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def refuse(*words: Any, **keywords: Any) -> Any:
    raise AssertionError("nothing is left to do")


def test_a_sweep_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broken off in its first run, then failing there, then finished: as if nothing had happened."""
    folder = tmp_path / "sweep"
    words = ["sweep", "smoke", "--out", str(folder)]
    update = ppo.Trainer.update

    def pressed(trainer: ppo.Trainer) -> Any:
        os.kill(os.getpid(), signal.SIGINT)  # a Ctrl-C in the midst of an update waits for its end
        return update(trainer)

    def failing(trainer: ppo.Trainer) -> Any:
        if trainer.config.epochs == 1:
            raise ValueError("no\nroom")
        return update(trainer)

    monkeypatch.setattr(ppo.Trainer, "update", pressed)
    assert cli.main(words) == 130
    assert f"the same command goes on with {folder}" in capsys.readouterr().err
    (begun,) = (folder / "runs").iterdir()
    assert find_run(folder, "epochs=1", 1) == Run("epochs=1", 1, begun) and not (folder / "table.md").exists()

    monkeypatch.setattr(ppo.Trainer, "update", failing)
    assert cli.main([*words, "--json"]) == 1
    out, err = capsys.readouterr()
    table = json.loads(out)
    assert table["failures"] == {"epochs=1, seed 1": "no room"}
    assert "failed: epochs=1, seed 1: no room\n" in err and "the same command tries again" in err.splitlines()[-1]
    assert [one["unfinished"] for one in table["variants"]] == [[1], []]
    assert table["variants"][0]["points"] == {} and table["variants"][1]["points"]["random"]["boards"] == 10
    assert "not finished: epochs=1, seed 1" in table["notes"]

    monkeypatch.setattr(ppo.Trainer, "update", update)
    assert cli.main([*words, "--json"]) == 0
    third = json.loads(capsys.readouterr().out)
    assert len([*(folder / "runs").iterdir()]) == 2 and not third["failures"]
    assert third["variants"][1] == {**table["variants"][1], "points": third["variants"][1]["points"]}
    assert json.loads((folder / "table.json").read_text()) == third and third["variants"][0]["cpu_minutes"] > 0
    whole = train(folder / "configs" / "epochs=1.yaml", [f"runs_dir={tmp_path}"], json=True)
    weights = "checkpoints/latest/model.safetensors"
    assert (begun / weights).read_bytes() == (Path(whole["run"]) / weights).read_bytes()

    monkeypatch.setattr(sweep, "train", refuse)
    monkeypatch.setattr(sweep, "evaluate", refuse)
    assert cli.main(words) == 0  # all is there
    assert "epochs=2" in capsys.readouterr().out
    assert cli.main(["compare", str(folder), "--by", "epochs", "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert [group["name"] for group in compared["groups"]] == ["epochs=1", "epochs=2"]
    assert compared["out"] == str(folder / "compare.png") and (folder / "compare.png").is_file()
    # Other boards are another match.
    with pytest.raises(AssertionError, match="nothing is left to do"):
        next(iter(_jobs(folder, "evaluate.boards=12"))).here(lambda what: nullcontext())


def _jobs(folder: Path, *words: str) -> list[Any]:
    """What a sweep would still do."""
    return list(sweep._Sweep(plan(sweep.find("smoke"), words), folder, lambda line: None).todo)


def test_a_match_counts_only_for_the_state_it_was_played_in(tmp_path: Path) -> None:
    run_folder = tmp_path / "runs" / "epochs=1-1-20261130-120000"
    run_folder.mkdir(parents=True)
    result = {"updates": 2, "decisions": 1, "seconds": 1.0, "evaluations": []}
    match = {"b": "random", "boards": 10, "seed": 3, "points_per_deal": 1.0}
    (tmp_path / "evaluations").mkdir()
    kept = {"run": run_folder.name, "updates": 2, "matches": [match]}
    (tmp_path / "evaluations" / "epochs=1-1.json").write_text(json.dumps(kept))
    assert len(_jobs(tmp_path)) == 2, "two runs to train"
    (run_folder / "result.json").write_text(json.dumps(result))
    assert find_run(tmp_path, "epochs=1", 1).matches == (match,)
    assert [job.title for job in _jobs(tmp_path)] == ["epochs=2, seed 1"]
    (run_folder / "result.json").write_text(json.dumps({**result, "updates": 3}))  # it was trained on
    assert [job.title for job in _jobs(tmp_path)] == ["epochs=2, seed 1", "epochs=1, seed 1 against random"]
    (run_folder / "result.json").write_text("half a fi")
    assert len(_jobs(tmp_path)) == 2 and find_run(tmp_path, "epochs=1", 1).folder is None
    assert find_run(tmp_path, "epochs=1", 11).folder is None


def test_what_a_best_response_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Worked out after the training, tried again where it failed, kept beside the matches, and shown."""
    folder, given = tmp_path / "sweep", ["rules=tiny_pairs", "grid={epochs: [2]}", "evaluate.best_response=6"]
    words = ["sweep", "smoke", *given, "--out", str(folder)]

    def failing(*words: Any, **keywords: Any) -> Any:
        raise ValueError("no room")

    monkeypatch.setattr(sweep, "exploit", failing)
    assert cli.main([*words, "--json"]) == 1
    table = json.loads(capsys.readouterr().out)
    assert table["failures"] == {"epochs=2, seed 1: best response": "no room"}
    assert table["variants"][0]["best_response"] is None
    monkeypatch.undo()
    monkeypatch.setattr(sweep, "train", refuse)
    monkeypatch.setattr(sweep, "evaluate", refuse)
    assert cli.main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert "3 of 3: epochs=2, seed 1: best response" in err
    (one,) = json.loads(out)["variants"]
    found, folder_of_it = one["best_response"], one["runs"][0]
    assert found["mean"] == found["by_seed"]["1"] == best_response_loss(folder_of_it, boards=6, seed=3)[0]
    assert (found["boards"], found["boards_seed"], found["searchers"]) == (6, 3, ["lookahead"])
    assert one["points"]["random"]["boards"] == 10, "the match is still there"
    monkeypatch.setattr(sweep, "exploit", refuse)
    assert cli.main(words) == 0  # all is there
    assert "wins" in capsys.readouterr().out

    def left(*words: str) -> sweep._Sweep:
        return sweep._Sweep(plan(sweep.find("smoke"), [*given, *words]), folder, lambda line: None)

    (job,) = left("evaluate.best_response=8").todo
    numbers = ["--boards", "8", "--seed", "3"]
    assert job.words() == ["exploit", folder_of_it, "--no-train", "--rules", "tiny_pairs", *numbers]
    more = left("evaluate.boards=12")
    (match,) = more.todo
    more.done(match, {"b": "random", "boards": 12, "seed": 3, "points_per_deal": 0.0})
    after = find_run(folder, "epochs=2", 1)
    assert after.matches[0]["boards"] == 12 and after.response is not None, "a later match leaves it"


# -- side by side -----------------------------------------------------------------------------------------------------


class Job:
    """Any command of ours."""

    def __init__(self, title: str, *words: str) -> None:
        self.title, self.given, self.run = title, list(words), Run(title, 1)

    def words(self) -> list[str]:
        return self.given

    def here(self, watch: sweep.Watch) -> dict[str, Any]:
        raise AssertionError("a process of its own was asked for")


def test_processes_side_by_side(tmp_path: Path) -> None:
    """One that is wrong is told in one line; the others come to their ends."""
    done: dict[str, Any] = {}
    failed: dict[str, str] = {}
    jobs = deque([Job("good", "rules", "blind"), Job("bad", "rules", "sprot"), Job("other", "rules", "blitz")])
    crew: Any = SimpleNamespace(
        todo=jobs, folder=tmp_path, total=3, left=3,
        done=lambda job, answer: done.update({job.title: answer}),
        failed=lambda job, why: failed.update({job.title: why}),
    )  # fmt: skip
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "bad-1.log").write_text("of an earlier try\n")
    with (tmp_path / "lock").open("w") as lock:
        sweep._side_by_side(crew, 2, lock.fileno(), lambda done, total: None)
    assert list(done["good"]["rules"]) == ["blind"] and list(done["other"]["rules"]) == ["blitz"]
    (why,) = failed.values()
    assert why.startswith("unknown rules 'sprot'; choose from") and "\n" not in why


def test_why_a_process_ended(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("before\ndomino: warning\n\ndomino: the disk is full\n\n")
    assert sweep._last_words(log, 7, 2) == "the disk is full"
    assert sweep._last_words(log, 7, -9) == f"ended by signal 9; see {log}"
    assert sweep._last_words(log, log.stat().st_size, 1) == f"ended by exit code 1; see {log}"


@pytest.mark.slow
def test_ctrl_c_stops_all_runs_and_each_saves(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    words = ["sweep", "smoke", "--out", str(folder), "--jobs", "2", "total_updates=100", "checkpoint_every=1"]
    words.append("evaluate_every=1000")
    code = "import sys; from experiments.cli import main; sys.exit(main())"
    start: dict[str, Any] = {"env": {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, "cwd": tmp_path}
    process = subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True, **start)
    deadline = time.monotonic() + 120
    while len([*folder.glob("runs/*/checkpoints/latest")]) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "stopping 2 at work" in err and "the same command goes on" in err
    for log in (folder / "logs").iterdir():
        assert "interrupted; saved" in log.read_text()
    again = subprocess.run([sys.executable, "-c", code, *words, "--json"], capture_output=True, text=True, **start)
    assert again.returncode == 0, again.stderr
    table = json.loads(again.stdout)
    assert [one["seeds"] for one in table["variants"]] == [[1], [1]] and len([*(folder / "runs").iterdir()]) == 2
    assert all("resuming" in log.read_text() for log in (folder / "logs").iterdir())


# -- what is asked for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", shipped())
def test_shipped_sweeps_can_be_run(name: str) -> None:
    assert len(plan(sweep.find(f"configs/sweeps/{name}.yaml")).variants) >= 1


def test_the_example_of_the_page_can_be_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    asked = plan(tmp_path / "mine.yaml", ["total_minutes=1"])
    assert len(asked.variants) == 6 and asked.variants[0].name == "plain,learning_rate=0.001"


def test_variants_and_grid_are_multiplied_out(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "config: smoke\nsettings: {epochs: 3}\nvariants: {a: , b: {config: quick, settings: {epochs: 1}}}\n"
        "grid: {hidden: [[16], [32, 32]], rules: [sport_club]}\nseeds: [4]\n"
    )
    asked = plan(tmp_path / "x.yaml", ["seeds=[5,6]", "clip=0.3"])
    assert [variant.name for variant in asked.variants] == [
        f"{name},hidden={hidden},rules=sport_club" for name in "ab" for hidden in ("16", "32,32")
    ]
    configs: list[Any] = [variant.config for variant in asked.variants]
    assert [(c.epochs, c.hidden, c.clip, c.deals) for c in configs[1:3]] == [
        (3, [32, 32], 0.3, 256),
        (1, [16], 0.3, 2048),
    ]
    assert asked.seeds == (5, 6) and asked.rules.name == "sport_club"


BAD = [
    ("", 'has no key "config"'),
    ("config: quik", 'did you mean "quick"?'),
    ("config: smoke\nsetings: {}", 'unknown key "setings"; did you mean "settings"?'),
    ("config: smoke\nvariants: {a: {sets: 1}}", 'variant a: unknown key "sets"'),
    ("config: smoke\nvariants: {a: , b: {settings: {epoch: 1}}}", 'unknown key "epoch"; did you mean "epochs"?'),
    ("config: smoke\ngrid: {algorithm: [ppo, alphazero]}", "algorithm 'alphazero' is unknown; choose from ppo"),
    ("config: smoke\ngrid: {epochs: [1, 0]}", "epochs: must be at least 1, got 0"),
    ("config: smoke\ngrid: {epochs: []}", "grid.epochs: must be one value or more"),
    ("config: smoke\ngrid: {epochs: [2, 2]}", "variants epochs=2 and epochs=2 are the same"),
    ("config: smoke\nvariants: {a: , b: }", "variants a and b are the same"),
    ("config: smoke\nvariants: {a/b: }", "variant 'a/b' must be named by"),
    (
        "config: smoke\ngrid: {rules: [sport_book, sport_club]}",
        "play sport_book and sport_club; a sweep is of one game",
    ),
    ("config: smoke\nsettings: {seed: 2}", 'seed is set by the sweep; use the key "seeds"'),
    ("config: smoke\nsettings: {runs_dir: x}", "runs_dir is set by the sweep; use --out"),
    ("config: smoke\nseeds: [1, 1]", "seeds: must be one or more whole numbers from 0, each once, got [1, 1]"),
    ("config: smoke\nseeds: []", "seeds: must be one or more"),
    ("config: smoke\nseeds: [99999999999999999999]", "seeds: must be at most"),
    ("config: smoke\nevaluate: {opponents: [nobody]}", "evaluate.opponents: unknown agent 'nobody'"),
    ("config: smoke\nevaluate: {opponents: [club, club]}", "evaluate.opponents: each is named once, club is not"),
    ("config: smoke\nevaluate: {boards: 1}", "evaluate.boards: must be at least 2"),
    ("config: smoke\nevaluate: {seed: -1}", "evaluate.seed: must not be negative"),
    ("config: smoke\nevaluate: {best_response: 1}", "evaluate.best_response: must be at least 2 boards, or 0 for none"),
    (
        "config: blitz\nevaluate: {best_response: 9}",
        "evaluate.best_response: the solver plays games of one tile a turn",
    ),
]


def test_bad_sweeps_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def refused(words: list[str], says: str) -> None:
        before = sorted(tmp_path.rglob("*"))
        assert cli.main(words) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("domino: ") and err.count("\n") == 1 and says in err, (says, err)
        assert sorted(tmp_path.rglob("*")) == before, "nothing is written"

    for text, says in BAD:
        (tmp_path / "bad.yaml").write_text(text)
        refused(["sweep", "bad.yaml"], says)
    refused(["sweep", "smok"], f"no sweep file smok; shipped sweeps: {', '.join(shipped())}")
    refused(["sweep", "smoke", "epoch=1"], 'unknown key "epoch"; did you mean "epochs"?')
    refused(["sweep", "smoke", "seeds=[1,1]"], 'command line "seeds=[1,1]": seeds: must be one or more whole numbers')
    refused(["sweep", "smoke", "evaluate.boards=1"], 'command line "evaluate.boards=1": evaluate.boards: must be at')
    refused(["sweep", "smoke", "grid={epochs: []}"], 'command line "grid={epochs: []}": grid.epochs: must be one value')
    refused(["sweep", "smoke", "more"], 'command line "more": expected key=value')
    refused(["sweep", "smoke", "--jobs", "0"], "got '0'")
    refused(["sweep", "smoke", "--out", "bad.yaml"], "bad.yaml is a file; a sweep is written to a folder")
    refused(["sweep", "smoke", "--out", "."], ". is not empty and holds no sweep; write elsewhere by --out")
    refused(["compare", "."], ". is no run")


def test_a_folder_holds_one_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_one_by_one", lambda *given: None)
    folder = tmp_path / "sweep"
    table = run(plan(sweep.find("smoke")), folder)
    assert [one["unfinished"] for one in table["variants"]] == [[1], [1]]
    with pytest.raises(ValueError, match="holds another sweep: its epochs=1 has deals=32, not 64"):
        run(plan(sweep.find("smoke"), ["deals=64"]), folder)
    # Other seeds, players and variants may be added.
    run(plan(sweep.find("smoke"), ["seeds=[1,2]", "grid={epochs: [1, 3]}", "evaluate.opponents=[]"]), folder)
    assert [(one.variant, one.seed) for one in sweep.runs_of(folder)] == [
        ("epochs=1", 1), ("epochs=1", 2), ("epochs=3", 1), ("epochs=3", 2),
    ]  # fmt: skip
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(ValueError, match="is being written by another sweep"):
        run(plan(sweep.find("smoke")), folder)
    os.close(handle)
    (folder / "sweep.json").write_text("{}")
    with pytest.raises(ValueError, match="is no domino sweep of version 1"):
        run(plan(sweep.find("smoke")), folder)
    with pytest.raises(ValueError, match="jobs=True must be a whole number"):
        run(plan(sweep.find("smoke")), folder, True)


# -- the table --------------------------------------------------------------------------------------------------------


def made(variant: str, seed: int, points: dict[str, float], boards: int = 100) -> Run:
    """A finished run: a million decisions, 20 seconds by the seed."""
    met = [{"b": name, "boards": boards, "seed": 2, "points_per_deal": value} for name, value in points.items()]
    result = {"updates": 1, "decisions": 1_000_000, "seconds": 20.0 * seed, "evaluations": met}
    return Run(variant, seed, Path(f"{variant}-{seed}"), result, tuple({**one, "seed": 3} for one in met), 30.0 * seed)


def test_the_table_of_hand_made_runs(tmp_path: Path) -> None:
    asked = plan(sweep.find("smoke"), ["seeds=[1,2,3]", "evaluate.opponents=[]"])
    runs = [made("epochs=1", seed, {"greedy": float(seed)}) for seed in (1, 2, 3)]
    runs += [made("epochs=2", 1, {"greedy": 2.0, "club": 0.5}), made("epochs=2", 2, {"greedy": 6.0})]
    runs.append(Run("epochs=2", 3))
    table = summarize(asked, runs)
    assert table["opponents"] == ["greedy", "club"] and table["first"] == "epochs=1"
    first, second = table["variants"]
    assert first["decisions_per_second"] == pytest.approx((50_000 + 25_000 + 50_000 / 3) / 3)
    assert (first["minutes"], first["decisions"]) == (pytest.approx(2 / 3), 1e6)
    greedy = first["points"]["greedy"]
    assert (greedy["mean"], greedy["low"], greedy["high"]) == (2, 1, 3) and greedy["over_first"] is None
    assert "club" not in first["points"] and second["unfinished"] == [3]
    greedy, club = second["points"]["greedy"], second["points"]["club"]
    assert (greedy["mean"], greedy["low"], greedy["high"], greedy["by_seed"]) == (4, 2, 6, {1: 2.0, 2: 6.0})
    assert greedy["over_first"] == {"mean": 2.5, "low": 1, "high": 4, "seeds": 2}  # 2 - 1 and 6 - 2
    assert (club["mean"], club["low"], club["high"], club["over_first"]) == (0.5, None, None, None)
    write_tables(table, tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert "| `epochs=1` | 3 | +2.00 [1.00, 3.00] | - | 30,556 | 1.00 million | 0.7 | 1.0 |" in text
    assert "| `epochs=2` | 2 | +2.50 [1.00, 4.00] | - |" in text
    assert "mean over 1 to 3 seeds, with the 95 % interval of the bootstrap" in text and "100 of seed 2" in text
    assert "2 seeds: the interval is their range; it is coarse" in text and "not finished: epochs=2, seed 3." in text
    assert "not played: epochs=2, seed 2, against club." in text
    rows = [*csv.DictReader((tmp_path / "table.csv").read_text().splitlines())]
    assert [(row["variant"], row["opponent"], row["mean"], row["over_first_mean"]) for row in rows] == [
        ("epochs=1", "greedy", "2.0", ""), ("epochs=2", "greedy", "4.0", "2.5"), ("epochs=2", "club", "0.5", ""),
    ]  # fmt: skip
    assert json.loads((tmp_path / "table.json").read_text())["variants"][1]["points"]["club"]["low"] is None


def test_the_table_says_what_a_best_response_is(tmp_path: Path) -> None:
    asked = plan(sweep.find("smoke"), ["seeds=[1,2]", "evaluate.opponents=[greedy]", "evaluate.best_response=50"])

    def won(run: Run, points: float, who: str, boards: int = 50) -> Run:
        return replace(run, response={"boards": boards, "seed": 3, "points_per_deal": points, "response": who})

    first = [made("epochs=1", seed, {"greedy": 1.0}, 10) for seed in (1, 2)]
    runs = [won(first[0], 2.0, "lookahead:worlds=3"), won(first[1], 3.0, "lookahead:worlds=3"), made("epochs=2", 1, {})]
    runs.append(won(made("epochs=2", 2, {}), 5.0, "pimc-30"))
    runs[2] = won(runs[2], 9.0, "pimc-30", boards=60)  # not what is asked for
    table = summarize(asked, runs)
    one, two = (variant["best_response"] for variant in table["variants"])
    assert (one["mean"], one["low"], one["high"], one["by_seed"]) == (2.5, 2.0, 3.0, {1: 2.0, 2: 3.0})
    assert (two["mean"], two["low"], two["searchers"]) == (5.0, None, ["pimc"])
    assert "not played: epochs=2, seed 1, against a best response" in table["notes"]
    write_tables(table, tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert "| best response wins |" in text and "| +2.50 [2.00, 3.00] |" in text and "| +5.00 |" in text
    assert "lookahead against epochs=1; pimc against epochs=2, which are not alike sharp" in text
    rows = [*csv.DictReader((tmp_path / "table.csv").read_text().splitlines())]
    assert [row["best_response_mean"] for row in rows] == ["2.5", "5.0"]
    plain = summarize(plan(sweep.find("smoke"), ["seeds=[1,2]"]), runs)
    assert "best response" not in markdown(plain)


def test_only_the_same_boards_are_compared(tmp_path: Path) -> None:
    asked = plan(sweep.find("smoke"), ["evaluate.opponents=[]"])
    runs = [made("epochs=1", 1, {"greedy": 1.0}), made("epochs=2", 1, {"greedy": 2.0}, boards=50)]
    table = summarize(asked, runs)
    assert table["variants"][1]["points"]["greedy"]["over_first"] is None and "minus" not in markdown(table)
    asked = plan(sweep.find("smoke"), ["evaluate.opponents=[greedy]", "evaluate.boards=50"])
    (note, *_) = summarize(asked, runs)["notes"]
    assert "50 of seed 3" in note, "the matches that were asked for, not the runs' own"
    assert "no seeds" in summarize(asked, [Run("epochs=1", 1), Run("epochs=2", 1)])["notes"][0]
