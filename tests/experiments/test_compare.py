"""Learning curves of several runs: what is read, grouped, drawn and logged."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.ppo import PPOConfig
from experiments import cli, compare, config as configs
from experiments.bootstrap import coarse
from experiments.compare import draw_comparison, read_runs, write_scalars
from experiments.curve import read_curves
from experiments.metrics import Metrics, opponent_tag

Points = list[tuple[int, float]]


def make_run(folder: Path, name: str, curves: dict[str, Points], **settings: Any) -> Path:
    """A run folder with evaluations at these decisions, a minute each million; intervals are ±1."""
    run = folder / name
    run.mkdir()
    (run / "config.yaml").write_text(configs.dump(PPOConfig(**settings)))
    with Metrics(run) as metrics:
        for step in sorted({step for points in curves.values() for step, _ in points}):
            metrics.scalar("time/total_minutes", step / 1e6, step)
        for opponent, points in curves.items():
            for step, value in points:
                for end, margin in (("", 0), ("_low", -1), ("_high", 1)):
                    metrics.scalar(opponent_tag(opponent, f"points_per_deal{end}"), value + margin, step)
    return run


M = 1_000_000


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs of one config, one of another that has met another opponent too."""
    return [
        make_run(tmp_path, "a-1-20261130-120000", {"greedy": [(M, 1), (2 * M, 3)]}),
        make_run(tmp_path, "a-2-20261130-120000", {"greedy": [(3 * M // 2, 2), (3 * M, 8)]}, seed=2),
        make_run(tmp_path, "b-1-20261130-120000", {"greedy": [(M, 0)], "club": [(M, -2)]}, learning_rate=5e-4),
    ]


def test_band_of_a_group(runs: list[Path]) -> None:
    found = read_runs(runs)
    assert [(group.name, len(group.runs)) for group in found.groups] == [("a", 2), ("b", 1)]
    assert found.opponents == ["club", "greedy"] and found.rules == "sport_book"
    a, b = found.groups
    band = a.band("greedy")
    # From where both have begun to where the first ends; lines between evaluations: 2, 3 and 2, 4.
    assert band is not None and band.runs == 2
    assert band.x.tolist() == [1.5 * M, 2 * M] and band.mean.tolist() == [2, 3.5]
    assert band.low.tolist() == [2, 3] and band.high.tolist() == [2, 4]
    alone = b.band("greedy", "minutes")
    assert alone is not None and (alone.x.tolist(), alone.low.tolist(), alone.high.tolist()) == ([1], [-1], [1])
    assert a.band("club") is None


def test_groups_by_a_key(runs: list[Path]) -> None:
    found = read_runs(runs, "learning_rate")
    assert [group.name for group in found.groups] == ["learning_rate=0.0005", "learning_rate=0.002"]
    assert [len(group.runs) for group in found.groups] == [1, 2]
    assert len(read_runs([*runs, runs[0]], "algorithm").groups[0].runs) == 3, "a run that is named twice counts once"


def test_runs_with_nothing_in_common(tmp_path: Path) -> None:
    early = make_run(tmp_path, "a-1-20261130-120000", {"greedy": [(M, 1)]})
    late = make_run(tmp_path, "a-2-20261130-120000", {"greedy": [(2 * M, 1)]}, seed=2)
    found = read_runs([early, late])
    assert found.groups[0].band("greedy") is None and found.to_dict()["groups"][0]["curves"] == {}
    with pytest.raises(ValueError, match="nothing to draw: no group's runs have a stretch of decisions in common"):
        draw_comparison([early, late], tmp_path / "out.png")
    assert not (tmp_path / "out.png").exists()


def test_the_last_of_two_evaluations_at_one_step_counts(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a-1-20261130-120000", {"greedy": [(M, 1), (2 * M, 3), (2 * M, 5)]})
    assert read_curves(run)["greedy"].points.tolist() == [1, 5]


def test_picture_and_scalars(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "out.png"
    assert cli.main(["compare", *map(str, runs), "--out", str(out), "--x", "minutes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["by", "rules", "x", "opponents", "groups", "notes", "out", "tensorboard"]
    assert said["notes"] == [coarse(2)], "the band of two runs is too narrow"
    assert said["groups"][0]["curves"]["greedy"]["x"] == [1.5, 2] and said["out"] == str(out)
    assert out.read_bytes().startswith(b"\x89PNG") and out.stat().st_size > 10_000
    folder = Path(said["tensorboard"])
    for _ in range(2):  # what was written before is replaced
        write_scalars(read_runs(runs), folder)
        assert len([*folder.rglob("events.*")]) == 2
    events = EventAccumulator(str(folder / "a"))
    events.Reload()
    tags = [f"compare/greedy/points_per_deal{end}" for end in ("", "_high", "_low")]
    assert sorted(events.Tags()["scalars"]) == tags
    assert [(one.step, one.value) for one in events.Scalars(tags[0])] == [(1.5 * M, 2), (2 * M, 3.5)]
    assert cli.main(["compare", *map(str, runs), "--out", str(out)]) == 0
    assert "+3.50 (+3.00 to +4.00)" in capsys.readouterr().out


def test_no_panel_cuts_the_curves_of_another(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a-1-20261130-120000", {"club": [(M, 1), (2 * M, 2)], "greedy": [(M, 1), (5 * M, 2)]})
    club, greedy, *_ = compare._figure(read_runs([run]), "decisions").axes
    assert club.get_xlim() == greedy.get_xlim() and greedy.get_xlim()[0] == 0 and greedy.get_xlim()[1] >= 5


def test_more_groups_than_colours_are_drawn(tmp_path: Path) -> None:
    curves = {name: [(M, 1.0), (2 * M, 2.0)] for name in ("a", "b", "c", "d")}
    many = [make_run(tmp_path, f"run{i}", curves, learning_rate=(i + 1) * 1e-4) for i in range(9)]
    assert draw_comparison(many, tmp_path / "out.png", by="learning_rate").stat().st_size > 10_000


BAD = [
    ("compare", "Missing argument 'RUN...'"),
    ("compare none", "none: there is no such folder; name the folder of a run or of a sweep"),
    ("compare empty", "empty is no run: it has no config.yaml"),
    ("compare text", "text is no run: its config.yaml is not that of a run"),
    ("compare {a} unseen", "unseen holds no evaluations"),
    ("compare {a} blind", "runs of different rules cannot be compared: {a} plays sport_book, blind plays blind"),
    ("compare {a} --by learning_rat", 'no run has the key "learning_rat"; did you mean "learning_rate"?'),
    ("compare {a} --by zzz", "known: adam_eps, "),
    ("compare {a} --x hours", "x='hours' is unknown; choose from decisions, minutes"),
    ("compare {a} --out no/where.png", "no/where.png: No such file or directory"),
    ("compare strange", "strange: its rules are not known here"),
]


def test_bad_input_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    a = make_run(tmp_path, "a", {"greedy": [(M, 1)]}).name
    make_run(tmp_path, "unseen", {})
    make_run(tmp_path, "blind", {"greedy": [(M, 1)]}, rules="blind", advantage="seat", opponents=["random"])
    make_run(tmp_path, "strange", {"greedy": [(M, 1)]})
    (tmp_path / "strange" / "config.yaml").write_text("rules: sprot\n")
    for name, text in (("empty", None), ("text", "- 1\n")):
        (tmp_path / name).mkdir()
        if text:
            (tmp_path / name / "config.yaml").write_text(text)
    before = sorted(tmp_path.rglob("*"))
    for words, says in BAD:
        code = cli.main(words.format(a=a).split())
        out, err = capsys.readouterr()
        assert (code, out) == (2, ""), words
        assert err.startswith("domino: ") and err.count("\n") == 1 and says.format(a=a) in err, (words, err)
    assert sorted(tmp_path.rglob("*")) == before, "nothing is written"


def test_the_numbers_survive_the_log(tmp_path: Path) -> None:
    points = [(M * i, float(np.float32(np.sin(i)))) for i in range(1, 6)]
    (curve,) = read_curves(make_run(tmp_path, "a", {"greedy": points})).values()
    assert list(zip(curve.decisions.tolist(), curve.points.tolist())) == points
    assert curve.minutes.tolist() == [1, 2, 3, 4, 5]
