"""The learning curve that a run leaves behind."""

import pytest

from experiments.curve import draw_curve
from experiments.files import write_whole
from experiments.metrics import Metrics, opponent_tag


def test_curve_is_drawn_from_the_events(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    with Metrics(run) as metrics:
        for step in (1000, 2000):
            for opponent in ("greedy", "club"):
                for figure, value in (("", 1.0), ("_low", 0.5), ("_high", 1.5)):
                    metrics.scalar(opponent_tag(opponent, f"points_per_deal{figure}"), value * step / 1000, step)
    out = draw_curve(run)
    assert out == run / "curve.png" and out.read_bytes().startswith(b"\x89PNG")
    other = draw_curve(run, tmp_path / "other.png")
    assert other.stat().st_size > 5000
    assert not [path for path in (*run.iterdir(), *tmp_path.iterdir()) if path.name.endswith(".part")]


def test_run_without_evaluations(tmp_path):
    with Metrics(tmp_path) as metrics:
        metrics.scalar("charts/SPS", 1.0, 1)
    with pytest.raises(ValueError, match="no evaluations"):
        draw_curve(tmp_path)
    assert not (tmp_path / "curve.png").exists()


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "a.txt", "old")
    assert path.read_text() == "old"
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_whole(path, b"new")
    assert path.read_text() == "old" and [one.name for one in tmp_path.iterdir()] == ["a.txt"]
