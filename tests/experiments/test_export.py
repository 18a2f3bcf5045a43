"""`domino export`: every column against a replay, the same rows after a kill, and what is refused."""

import json
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from agents import make_agent
from agents.base import decide
from agents.dataset import NO_VALUE, Rows, columns_of, read, read_manifest
from agents.networks import Policy, make_actor
from domino_env import get_rules, make_engine
from domino_env.deals import Streams, boards
from domino_env.observation import layout_of
from experiments import cli, export as module
from experiments.export import PlayError, export

ROOT = Path(__file__).resolve().parents[2]
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="values are worked out by the extra search")


def rows_of(folder: Path, columns: list[str] | None = None) -> Rows:
    parts = list(read(folder, columns))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def same(a: Rows, b: Rows) -> bool:
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) and a[name].dtype == b[name].dtype for name in a)


def played_again(rows: Rows, names: list[str], game: str, seed: int, forced: bool = False) -> None:
    """Each deal of the data, played by an engine of one row, with the agents asked one decision at a time."""
    rules = get_rules(game)
    agents = [make_agent(name, rules) for name in names]
    deals = np.unique(rows["deal"])
    assert deals.tolist() == list(range(len(deals)))
    at = 0
    for deal in deals.tolist():
        engine = make_engine(rules, 1, seed=0)
        engine.deal(*boards(rules, seed, deal, 1))
        leader, first, reward, done = engine.leader()[0], at, np.zeros((1, rules.seats)), np.zeros(1, bool)
        while not done[0]:
            ply, seat, mask = engine.plies(), int(engine.to_move()[0]), engine.legal()[0]
            action = int(mask.argmax())
            if mask.sum() > 1 or engine.peeks()[0]:
                agent = agents[seat % len(agents)]
                question = decide(engine, agent, Streams.of(seed, deal * 1024 + ply), None, np.array([deal]))
                action = int(agent.act(question)[0])
            if mask.sum() > 1 or forced:
                one = {name: rows[name][at] for name in rows}
                assert (one["deal"], one["ply"], one["seat"], one["leader"]) == (deal, ply[0], seat, leader)
                assert one["player"] == seat % len(agents) and one["action"] == action
                seen = np.unpackbits(one["obs"], bitorder="little")
                assert np.array_equal(seen, engine.observe()[0]), "the observation of the mover"
                assert [int(one["mask"]) >> a & 1 for a in range(rules.num_actions)] == mask.tolist()
                assert np.array_equal(one["hands"], engine.hands()[0])
                at += 1
            reward, done = engine.step(np.array([action]), autoreset=False)
        mine = slice(first, at)
        assert np.array_equal(rows["result"][mine], reward[0][rows["seat"][mine]])
        assert (rows["outcome"][mine] == engine.finished.outcome[0]).all()
    assert at == len(rows["deal"])


@pytest.mark.parametrize(
    ("game", "names"),
    [
        ("sport_book", ["club", "greedy"]),
        ("kozyol", ["random"]),
        ("blitz", ["counter", "random", "greedy", "random"]),
        ("blind_blitz", ["memory", "greedy"]),
        ("blind", ["random"]),
    ],
)
def test_every_column_is_what_a_replay_says(game: str, names: list[str], tmp_path: Path) -> None:
    result = export(names, tmp_path, 250, game, seed=3, part_deals=9)
    rows = rows_of(tmp_path)
    assert list(rows) == [one.name for one in columns_of(get_rules(game))] == result["columns"]
    counts = np.bincount(rows["deal"])
    assert result["rows"] == len(rows["deal"]) >= 250 > counts[:-1].sum(), "the deal in which it is reached is the last"
    assert result["deals"] == len(counts) and result["parts"] == -(-len(counts) // 9)
    played_again(rows, names, game, 3)


def test_forced_moves_are_there_when_asked_for(tmp_path: Path) -> None:
    export("double_first", tmp_path / "few", 600, seed=2)
    export("double_first", tmp_path / "all", 1200, seed=2, forced=True)
    few, whole = rows_of(tmp_path / "few"), rows_of(tmp_path / "all")
    played_again(whole, ["double_first"], "sport_book", 2, forced=True)
    free = (np.bitwise_count(whole["mask"]) > 1) & (whole["deal"] < 35)
    assert 0.3 < free[whole["deal"] < 35].mean() < 0.9
    assert same({k: v[free] for k, v in whole.items()}, {k: v[few["deal"] < 35] for k, v in few.items()})


@needs_numba
@pytest.mark.parametrize("game", ["tiny_pairs", "puerto_rico"])
def test_values_are_those_of_the_solver(game: str, tmp_path: Path) -> None:
    from agents.search.solver import ILLEGAL, solve

    export("random", tmp_path, 150, game, seed=4, values=True, forced=True, part_deals=9)
    rows, rules = rows_of(tmp_path), get_rules(game)
    assert rows["values"].dtype == np.int16 and rows["values"].shape == (len(rows["deal"]), rules.num_actions)
    layout, table = layout_of(rules), pq.read_table(tmp_path / "part-00000.parquet")
    seen = np.unpackbits(rows["obs"], axis=1, bitorder="little")
    ends = np.stack([seen[:, layout.slices[f"end_{side}"]] for side in ("left", "right")], axis=1)
    ends = np.where(ends.any(axis=2), ends.argmax(axis=2), -1)
    values = solve(rows["hands"], ends, rows["seat"].astype(np.int64), rules)
    legal = rows["mask"][:, None] >> np.arange(rules.num_actions, dtype=np.uint64) & np.uint64(1) != 0
    assert (values[legal] != ILLEGAL).all() and np.array_equal(rows["values"][legal], values[legal])
    assert (rows["values"][~legal] == NO_VALUE).all()
    nulls = [[one is None for one in row] for row in table["values"].to_pylist()]
    assert np.array_equal(np.array(nulls), ~legal[: len(nulls)]), "illegal is null in the file"
    ended = rows["result"][np.flatnonzero(np.diff(rows["deal"], append=-1))]
    last = rows["values"].max(axis=1)[np.flatnonzero(np.diff(rows["deal"], append=-1))]
    assert np.array_equal(ended, last), "the value of the last move is the result"


def test_the_rows_do_not_depend_on_how_the_work_is_cut_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(["club", "random"], tmp_path / "a", 500, seed=5)
    monkeypatch.setattr(module, "BATCH", 11)
    export(["club", "random"], tmp_path / "b", 500, seed=5, part_deals=15)
    assert same(rows_of(tmp_path / "a"), rows_of(tmp_path / "b"))
    export(["club", "random"], tmp_path / "c", 500, seed=6)
    assert not same(rows_of(tmp_path / "a"), rows_of(tmp_path / "c"))


def test_kill_9_and_again_is_as_if_nothing_had_been(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = (
        "import os, sys; from pathlib import Path; from experiments import export as module\n"
        "write = Path.write_bytes\n"
        "def stab(self, content):\n"
        "    write(self, content[:1000])\n"
        "    if 'part-00002' in self.name: os.kill(os.getpid(), 9)\n"
        "    return write(self, content)\n"
        "Path.write_bytes = stab\n"
        "module.export('random', sys.argv[1], 900, seed=8, part_deals=16)\n"
    )
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed = subprocess.run([sys.executable, "-c", script, folder], cwd=ROOT, env=environment, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    names = {path.name for path in folder.iterdir()}
    assert {"part-00000.parquet", "part-00001.parquet", "manifest.json"} < names and len(names) == 4
    assert [part["file"] for part in read_manifest(folder)["parts"]] == ["part-00000.parquet", "part-00001.parquet"]
    some = rows_of(folder)
    result = export("random", folder, 900, seed=8, part_deals=16)
    export("random", whole, 900, seed=8, part_deals=16)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {p.name: p.read_bytes() for p in whole.iterdir()}
    assert result["new_rows"] == result["rows"] - len(some["deal"]) and read_manifest(folder)["complete"]
    again = export("random", folder, 900, seed=8, part_deals=16)
    assert (again["rows"], again["new_rows"], again["seconds"]) == (result["rows"], 0, 0.0)
    good = (folder / "part-00001.parquet").read_bytes()
    (folder / "part-00001.parquet").write_bytes(good[:-1] + b"?")
    (folder / "part-00002.parquet").unlink()
    export("random", folder, 900, seed=8, part_deals=16)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {p.name: p.read_bytes() for p in whole.iterdir()}
    assert capsys.readouterr().err.count("missing or damaged: played again") == 2


def test_a_folder_may_be_called_as_the_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    export("greedy", "greedy", 40)
    assert export("greedy", "greedy", 40)["new_rows"] == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 2}, "begun with seed=1, not 2"),
        ({"decisions": 60}, "begun with decisions=50, not 60"),
        ({"agents": "random"}, 'begun with agents=["greedy"], not ["random"]'),
        ({"forced": True}, "begun with forced=false, not true"),
        ({"rules": "kozyol"}, 'begun with rules={"name": "sport_book"}, not {"name": "kozyol"}'),
        ({"part_deals": 3}, "begun with part_deals=8192, not 3"),
    ],
    ids=str,
)
def test_the_folder_of_another_command_is_refused(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    command: dict[str, Any] = {"agents": "greedy", "decisions": 50, "seed": 1}
    export(**command, folder=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError) as caught:
        export(**(command | change), folder=tmp_path)
    assert says in str(caught.value) and str(tmp_path) in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_documented_schema_is_the_one_that_is_written(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| `")]
    rules = get_rules("sport_book")
    columns = columns_of(rules, values=True)
    assert table == [f"| `{one.name}` | {one.type} | {one.unit} | {one.meaning} |" for one in columns]
    export(["greedy", "random"], tmp_path, 40, seed=9)
    schema = pq.read_schema(tmp_path / "part-00000.parquet")
    for field, column in zip(schema, columns[:-1], strict=True):
        assert (field.name, field.type, field.nullable) == (column.name, column.type, False)
        said = {key.decode(): value.decode() for key, value in field.metadata.items()}
        assert {"unit": column.unit, "meaning": column.meaning}.items() <= said.items()
    said = {key.decode(): json.loads(value) for key, value in schema.metadata.items() if key.startswith(b"domino.")}
    assert (said["domino.format"], said["domino.seed"], said["domino.agents"]) == (1, 9, ["greedy", "random"])
    assert said["domino.rules"]["fields"]["lone_blank"] == 10 and said["domino.versions"]["pyarrow"]
    place = layout_of(rules).slices["end_left"]
    assert said["domino.observation"]["end_left"][:2] == [place.start, place.stop]
    for key in said:
        assert f"`{key}`" in text


def network(seed: int) -> Policy:
    actor = make_actor("mlp", get_rules(), [16], torch.Generator().manual_seed(seed))
    return Policy(actor, get_rules(), "network")


def test_networks_play_by_their_probabilities_where_asked(tmp_path: Path) -> None:
    player = network(1)
    export(player, tmp_path / "best", 300, seed=1)
    export(player, tmp_path / "drawn", 300, seed=1, sample=True)
    assert not player.sample, "the agent that was given is as it was"
    best, drawn = rows_of(tmp_path / "best"), rows_of(tmp_path / "drawn")
    assert not np.array_equal(best["action"][:100], drawn["action"][:100])
    with pytest.raises(ValueError, match="--sample is for networks, and greedy is none"):
        export("greedy", tmp_path / "none", 10, sample=True)
    assert not (tmp_path / "none").exists()


class Broken:
    """Answers as it is told to."""

    name = "broken"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, batch: Any) -> Any:
        return self.answer(batch)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda batch: 1 / 0, "ZeroDivisionError"),
        (lambda batch: np.full(len(batch), 56), "answered pass, legal are "),
        (lambda batch: np.full(len(batch), 99), "answered 99, legal are "),
        (lambda batch: np.zeros(len(batch)), "instead of one whole number for each"),
        (lambda batch: np.zeros((len(batch), 2), int), "instead of one whole number for each"),
    ],
)
def test_an_agent_that_fails_is_named(answer: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(PlayError, match="agent broken, deal ") as caught:
        export(Broken(answer), tmp_path, 100)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("greedy", "--out"),
        ("--out x", "AGENT"),
        ("greedy --out x --decisions 0", "'--decisions'"),
        ("greedy --out x --seed -1", "'--seed'"),
        ("greedy --out x --part-deals 0", "'--part-deals'"),
        ("nobody --out x", "unknown agent 'nobody'"),
        ("greedy --out x --rules sprot", "unknown rules 'sprot'"),
        ("greedy greedy greedy --out x", "3 agents do not sit evenly at 4 seats; name 1, 2, 4"),
        ("club --out x --rules blitz", "club"),
        ("greedy --out x --sample", "--sample is for networks"),
        ("greedy --out there.txt", "there.txt is a file; --out names a folder"),
        ("greedy --out full", "full holds other files and no manifest.json"),
        ("greedy --out strange", "manifest.json is damaged"),
        ("greedy --out x --rules tiny_pairs,hand_size=1", "nobody had a choice"),
        pytest.param("greedy --out x --values --rules blitz", "the solver plays games", marks=needs_numba),
    ],
)
def test_bad_input_is_one_line(
    words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.txt").write_text("a file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "manifest.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    code = cli.main(["export", *(word.replace(",", " ") for word in words.split())])
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1) and says in err
    assert sorted(tmp_path.rglob("*")) == before, "nothing is written"


def test_the_command_says_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main("export greedy --decisions 300 --out x --json".split()) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["rows"] >= 300 and figures["agents"] == ["greedy"] and figures["decisions_per_second"] > 0
    assert cli.main("export greedy --decisions 300 --out x".split()) == 0
    assert f"{figures['rows']} decisions of {figures['deals']} deals" in (said := capsys.readouterr().out)
    assert "all there already" in said and said.count("\n") == 1
    assert cli.main(["export", "--help"]) == 0
    examples = re.findall(r"Example: domino (export (?:.|\n(?!\s*\n))+)", capsys.readouterr().out)
    assert len(examples) == 2
    for example in examples:
        words = example.split()
        words[words.index("--decisions") + 1] = "20"
        if find_spec("numba") is not None or "--values" not in words:
            assert cli.main(words) == 0, example


def test_ctrl_c_leaves_whole_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    play = module.play

    def pressed(*given: Any, **options: Any) -> Rows:
        if given[3] >= 32:
            raise KeyboardInterrupt
        return play(*given, **options)

    monkeypatch.setattr(module, "play", pressed)
    words = ["export", "greedy", "--decisions", "900", "--out", str(tmp_path / "x"), "--part-deals", "16"]
    assert cli.main(words) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert sorted(p.name for p in (tmp_path / "x").iterdir()) == [
        "manifest.json", "part-00000.parquet", "part-00001.parquet",
    ]  # fmt: skip
    monkeypatch.undo()
    assert cli.main(words) == 0
    export("greedy", tmp_path / "y", 900)
    assert same(rows_of(tmp_path / "x"), rows_of(tmp_path / "y"))
