"""The `domino` command: bad input is one line and exit code 2, `--json` is one object, the examples of `--help` run."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from experiments import cli
from experiments.console import print_json
from tests.records import match_record

ROOT = Path(__file__).resolve().parents[2]
DEAL = "tiny_pairs leader=0 | 0-1 1-2 | 2-2 0-3 | 0-0 1-3 | 0-2 2-3 | 0-1L 0-3L"
COMMANDS = ["train", "evaluate", "benchmark engine", "benchmark train", "replay", "agents", "rules"]
QUICKLY = {"--boards": "20", "--seconds": "0.05", "--rows": "64", "--updates": "1", "--move": "2"}
TINY = ["total_updates=1", "deals=32", "minibatch=64", "hidden=[16]", "critic_hidden=[16]", "eval_boards=2"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run in, with a file of deals."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deals.txt").write_text(f"# a deal\n{DEAL}\n")
    return tmp_path


def start(*words: str, cwd: Path, **keywords: Any) -> subprocess.Popen[str]:
    """The command as a process of its own, when it has got as far as `main`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    code = "import sys; from experiments.cli import main; print('ready', file=sys.stderr, flush=True); sys.exit(main())"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | keywords
    process = subprocess.Popen([sys.executable, "-c", code, *words], cwd=cwd, env=environment, **pipes)
    assert process.stderr is not None and process.stderr.readline() == "ready\n"
    return process


BAD = [
    ("eval", "No such command 'eval'. Did you mean 'evaluate'?"),
    ("evaluate greedy", "Missing argument 'B'"),
    ("evaluate greedy nobody --boards 10", "unknown agent 'nobody'; choose from random, greedy"),
    ("evaluate greedy club:reptile=1 --boards 10", "reptile"),
    ("evaluate greedy random --rules sprot", "unknown rules 'sprot'; choose from sport_book"),
    ("evaluate greedy random --boards many", "'--boards'"),
    ("evaluate greedy random --boards many", "got 'many'"),
    ("evaluate greedy random --boards -3", "got '-3'"),
    ("evaluate greedy random --boards 1", "'--boards'"),
    ("evaluate greedy random --batch 0", "'--batch'"),
    ("evaluate greedy random --seed -1", "'--seed'"),
    ("evaluate greedy random --bords 3", "--boards"),
    ("evaluate runs/none/checkpoints/latest greedy", "runs/none/checkpoints/latest"),
    ("evaluate {here} greedy", "{here}"),
    ("rules sport", "unknown rules 'sport'; choose from sport_book"),
    ("replay none.txt", "none.txt: No such file or directory"),
    ("replay {here}", "{here}: Is a directory"),
    ("replay deals.txt --deal 2", "--deal 2: deals.txt holds deals 1 to 1"),
    ("replay deals.txt --move 3", "--move 3: the deal of line 2 has moves 0 to 2"),
    ("replay deals.txt --move 1 --step", "choose"),
    ("replay deals.txt --step --svg out.svg", "choose with --move"),
    ("replay deals.txt --svg no/where/out.svg", "no/where/out.svg: No such file or directory"),
    ("evaluate greedy random --rules sport_book,lone_blank", "after the preset's name write FIELD=VALUE, each once"),
    ("evaluate greedy random --rules sport_book,blank=3", "rules have no field 'blank'; fields are "),
    ("evaluate greedy random --rules sport_book,seats=8", "seats=8 cannot be played"),
    ("evaluate counter greedy --rules blitz,chain=none", "chain='none' cannot be played in blitz"),
    ("benchmark engine --rows 0", "'--rows'"),
    ("benchmark engine --seconds 0", "'--seconds'"),
    ("benchmark engine --rules sprot", "unknown rules 'sprot'"),
    ("train", "which config? name a YAML file or one of "),
    ("train none.yaml", "no config file none.yaml"),
    ("train quik", 'did you mean "quick"?'),
    ("train {here}", "is a folder, not a config file"),
    ("train smoke more.yaml", '"more.yaml" is neither the config (one file, named first) nor key=value'),
    ("train smoke sed=3", 'command line "sed=3": unknown key "sed"; did you mean "seed"?'),
    ("train smoke seed=three", 'seed: expected a whole number, got "three" (text)'),
    ("train smoke total_updates=-1", 'command line "total_updates=-1": total_updates: '),
    ("train smoke checkpoint_every=-1", "checkpoint_every: "),
    ("train smoke rules=sprot", "sprot"),
    ("train smoke device=abacus", "abacus"),
    ("train bad.yaml", 'bad.yaml: unknown key "learning_rat"; did you mean "learning_rate"?'),
    ("train --resume none", "none"),
    ("train quick --resume none", '"quick": a resumed run keeps its own config; beside --resume only key=value'),
    ("train seed=3 smoke.yaml --resume none", '"smoke.yaml": a resumed run keeps its own config'),
    ("train smoke opponents=[nobody]", "opponents: unknown agent 'nobody'; choose from random, greedy"),
    ("train smoke seed=99999999999999999999", "seed: must be at most"),
    ("train smoke runs_dir=deals.txt", "runs_dir=deals.txt: no run can be written there: "),
    ("train smoke runs_dir=''", "runs_dir: must name a folder"),
    ("train smoke hidden=[1000000000]", "hidden: widths must be at most 8192"),
    ("replay deals.txt --svg out.svg --png no/where/out.png", "no/where/out.png: No such file or directory"),
    ("replay deals.txt --svg out.svg --png {here}", "{here}: Is a directory"),
    ("train --resume {here}", "{here}"),
    ("train smoke --seed -1", "'--seed'"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[f"{i}-{words}" for i, (words, _) in enumerate(BAD)])
def test_bad_input_is_one_line_and_exit_code_2(
    words: str, says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "bad.yaml").write_text("learning_rat: 1\n")
    before = sorted(here.rglob("*"))
    given = [word.format(here=here) for word in words.split()]
    code = cli.main([word.replace(",", " ") if word.startswith(("sport_book,", "blitz,")) else word for word in given])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("domino: ") and err.count("\n") == 1
    assert says.format(here=here) in err
    assert sorted(here.rglob("*")) == before, "nothing is written"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of one tiny update."""
    from experiments.train import train

    folder = tmp_path_factory.mktemp("runs")
    return Path(train(None, [*TINY, f"runs_dir={folder}"], json=True)["run"])


def examples(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The examples in the help of a command."""
    assert cli.main([*command.split(), "--help"]) == 0
    found = re.findall(r"Example: domino ((?:.|\n(?!\s*\n))+)", capsys.readouterr().out)
    return [" ".join(example.split()) for example in found]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_the_help_run(command: str, here: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = examples(command, capsys)
    assert found, "every command has an example"
    if command == "replay":
        match_record(here / "match.jsonl")
    for example in found:
        words = re.sub(r"runs/[\w-]+-\d{8}-\d{6}", str(run), example).split()
        for option, value in QUICKLY.items():
            if option in words:
                words[words.index(option) + 1] = value
        if words[0] == "train":
            words += [word for word in TINY if "--resume" not in words or not word.startswith("hidden")]
            words += [f"runs_dir={run.parent}"]
        assert cli.main([word for word in words if word != "--peers"]) == 0, example
        assert capsys.readouterr().out


def only_json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What was printed, which is one JSON object on one line."""
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    value = json.loads(out)
    assert isinstance(value, dict)
    return value


def test_evaluate_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = "evaluate greedy random --boards 50 --seed 3 --json".split()
    assert cli.main(words) == 0
    first = only_json(capsys)
    assert list(first) == "a b rules boards seed points_per_deal low high win tie loss out_rate block_rate".split()
    assert first["low"] < first["points_per_deal"] < first["high"]
    assert cli.main([*words, "--batch", "7"]) == 0
    assert only_json(capsys) == first, "the batch changes the speed alone"
    assert cli.main(words[:5]) == 0
    assert "greedy over random" in capsys.readouterr().out
    words = ["evaluate", "greedy", "random", "--rules", "blind seats=2", "--boards", "20", "--words", "--json"]
    assert cli.main(words) == 0
    other = only_json(capsys)
    assert list(other) == [*first, "words"] and other["rules"] == "blind seats=2" and other["words"]["end_on_rate"] > 0
    assert cli.main("evaluate greedy random --rules blitz --boards 20 --words".split()) == 0
    assert "rolls_per_deal" in capsys.readouterr().out


def test_benchmark_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main("benchmark engine --rows 32 --seconds 0.05 --json".split()) == 0
    result = only_json(capsys)
    assert {"rows", "moves_per_second", "yardstick_moves_per_second", "peers"} <= set(result)
    assert result["rows"] == 32 and result["moves_per_second"] > 0 and result["peers"] == {}
    assert result["megabytes"]["peak"] < 64


def test_lists_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agents", "--json"]) == 0
    assert {"random", "greedy", "double_first", "club"} <= {agent["name"] for agent in only_json(capsys)["agents"]}
    assert cli.main(["rules", "--json"]) == 0
    rules = only_json(capsys)["rules"]
    assert list(rules)[:2] == ["sport_book", "sport_club"] and rules["kozyol"]["match_to"] == 101
    assert cli.main(["rules", "sport_club", "--json"]) == 0
    assert list(only_json(capsys)["rules"]) == ["sport_club"]


def test_replay_prints_steps_and_draws(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", "deals.txt"]) == 0
    last = capsys.readouterr().out
    assert cli.main(["replay", "deals.txt", "--step"]) == 0
    steps = capsys.readouterr().out
    assert len(steps) > 2 * len(last)
    assert cli.main("replay deals.txt --deal 1 --svg a.svg --png a.png --json".split()) == 0
    deals = only_json(capsys)["deals"]
    assert deals[0]["moves"] == ["0-1L", "0-3L"] and deals[0]["line"] == 2
    assert (here / "a.svg").read_text().startswith("<svg")
    assert (here / "a.png").read_bytes().startswith(b"\x89PNG")


def test_train_evaluate_and_resume(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "smoke", "total_updates=2", f"runs_dir={here / 'runs'}", "--seed", "5", "--json"]) == 0
    first = only_json(capsys)
    assert {"run", "updates", "decisions", "seconds", "evaluations"} <= set(first)
    assert first["updates"] == 2
    run = Path(first["run"])
    assert run.name.startswith("smoke-5-")
    latest = str(run / "checkpoints" / "latest")
    assert cli.main(["evaluate", latest, "random", "--boards", "20", "--json"]) == 0
    assert only_json(capsys)["boards"] == 20
    assert cli.main(["train", "--resume", str(run), "total_updates=3", "--json"]) == 0
    second = only_json(capsys)
    assert second["updates"] == 3 and Path(second["run"]) == run


def test_a_pair_of_other_rules_is_evaluated_under_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "smoke", *TINY, "rule_overrides={lone_blank: 3, redeal: false}", "opponents=[]", "--json"]
    assert cli.main([*words, f"runs_dir={here}"]) == 0
    latest = only_json(capsys)["run"] + "/checkpoints/latest"
    assert cli.main(["evaluate", latest, "greedy", "--boards", "4"]) == 2
    said = re.search("was trained for (.*), not for sport_book", capsys.readouterr().err)
    assert said is not None and said[1] == "sport_book lone_blank=3 redeal=False"
    assert cli.main(["evaluate", latest, "greedy", "--boards", "4", "--rules", said[1], "--json"]) == 0
    assert only_json(capsys)["rules"] == said[1]


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("domino-lab")
    assert cli.main([]) == 0
    shown = capsys.readouterr().out
    for command in [*COMMANDS, "play", "tournament"]:  # the examples of these two run in their own tests
        assert command.split()[0] in shown


@pytest.mark.parametrize("words", [["--help"], ["rules"], ["agents"], ["replay", "deals.txt"]])
def test_light_commands_do_not_wait_for_torch(words: list[str], here: Path) -> None:
    code = (
        "import sys; from experiments.cli import main; main(sys.argv[1:]); "
        "print([m for m in ('torch', 'scipy', 'matplotlib', 'tensorboard') if m in sys.modules], file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=here, env=environment, capture_output=True, text=True
    )
    assert done.stderr == "[]\n"


def test_what_is_not_installed_is_named_with_its_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "experiments.config", raising=False)
    monkeypatch.delattr("experiments.config", raising=False)
    assert cli.main(["train", "smoke"]) == 2
    assert "this needs yaml, which is not installed; install the extra train: pip install" in capsys.readouterr().err


def test_without_typer_the_command_says_so(here: Path) -> None:
    code = "import sys; sys.modules['typer'] = None; from experiments.cli import main"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=here, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("domino: this needs typer") and done.stderr.count("\n") == 1


def test_an_agent_that_fails_is_reported(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents import base

    class Broken:
        name = "broken"

        def act(self, batch: Any) -> Any:
            raise RuntimeError("no idea")

    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))
    base.register_agent("broken", lambda **options: Broken(), "fails")
    assert cli.main(["evaluate", "broken", "random", "--boards", "4"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("domino: agent broken, board ") and "no idea" in err and err.count("\n") == 1
    assert cli.main(["evaluate", "broken", "random", "--boards", "4", "--forfeit", "--json"]) == 0
    assert only_json(capsys)["errors"] == 8


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **keywords: Any) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("domino_env.get_rules", broken)
    with pytest.raises(KeyError):
        cli.main(["rules", "sport_book"])
    monkeypatch.setenv("DOMINO_TRACEBACK", "1")
    with pytest.raises(typer.TyperException):
        cli.main(["rulez"])


def test_figures_that_are_none_are_null(capsys: pytest.CaptureFixture[str]) -> None:

    print_json({"a": float("nan"), "b": np.float32(2), "c": [np.int64(3), np.array([1.5])], "d": Path("x")})
    assert only_json(capsys) == {"a": None, "b": 2.0, "c": [3, [1.5]], "d": "x"}


def test_a_reader_that_leaves_is_no_error(here: Path) -> None:
    (here / "many.txt").write_text(f"{DEAL}\n" * 300)
    process = start("replay", "many.txt", cwd=here)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(30)


@pytest.mark.parametrize("words", ["rules", "rules --json", "--help", "replay deals.txt"])
def test_a_closed_standard_output_is_no_error(words: str, here: Path) -> None:
    code = "import sys; sys.stdout = None; from experiments.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()], cwd=here, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_while_the_command_is_imported_is_one_line_and_130(here: Path) -> None:
    code = (
        "import os, signal, sys, importlib.abc\n"
        "class Press(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Press())\n"
        "from experiments.cli import main\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=here, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "domino: interrupted\n")


def test_ctrl_c_in_a_call_back_from_c_is_heard_all_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    """Python drops what is raised there; numba is called back so while it loads its code."""

    def press() -> None:
        raise KeyboardInterrupt

    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), cli._heard():
        ctypes.CFUNCTYPE(None)(press)()
        time.sleep(20)
    assert capfd.readouterr() == ("", "")
    assert sys.unraisablehook is hook


def test_too_much_for_the_memory_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def huge(*args: Any, **keywords: Any) -> None:
        raise MemoryError("Unable to allocate 7 TiB")

    monkeypatch.setattr("experiments.evaluate.evaluate", huge)
    assert cli.main("evaluate greedy random --boards 1000000000000".split()) == 2
    assert capsys.readouterr().err == "domino: not enough memory: Unable to allocate 7 TiB\n"


@pytest.mark.parametrize("wait", [0.1, 2.0], ids=["early", "late"])
def test_ctrl_c_is_one_line_and_130(wait: float, here: Path) -> None:
    process = start("evaluate", "club", "greedy", "--boards", "1000000", cwd=here)
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (out, err) == ("", "domino: interrupted\n")


def test_a_second_ctrl_c_while_the_process_ends_changes_nothing(here: Path) -> None:
    ending = "import atexit, sys, time; atexit.register(time.sleep, 2); from experiments.cli import command; "
    words = ["evaluate", "club", "greedy", "--boards", "1000000"]
    process = subprocess.Popen(
        [sys.executable, "-c", f"{ending}sys.exit(command())", *words],
        cwd=here, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None and process.stderr.readline() == "domino: interrupted\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("", "") and process.returncode == 130
