"""Losses against double-dummy in evaluations, on the command line, as a picture, and in the log of a run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from agents.base import Decisions, make_agent
from agents.search import losses as dd
from experiments import cli, train as training
from experiments.console import asked_rules
from experiments.evaluate import Result, evaluate
from experiments.losses import LATE, PLACES, Losses, draw_losses
from experiments.train import train

SMALL = "tiny_pairs max_pip=5 hand_size=4"


def small() -> Any:
    return asked_rules(SMALL)


def played(a: Any = "greedy", b: Any = "random", **options: Any) -> Result:
    return evaluate(a, b, small(), **{"boards": 40, "seed": 3, "losses": 40, **options})


def test_the_difference_of_the_losses_is_the_result() -> None:
    """Double-dummy values cancel on duplicate boards: what A wins a board is what B loses more, board by board."""
    result = played()
    assert result.losses is not None and result.losses.boards == 40
    a, b = result.losses.cost.sum(axis=(2, 3)) / 2
    assert (b - a == result.values).all() and a.min() >= 0 and a.max() > 0
    for which, total in enumerate((a, b)):
        figures = result.losses.side(which)
        assert figures["per_deal"] == pytest.approx(total.mean())
        assert figures["low"] < total.mean() < figures["high"]
        assert figures["lead"] + figures["early"] + figures["late"] == pytest.approx(total.mean())
        assert sum(figures[place] for place in PLACES) == pytest.approx(2 * total.mean())
    assert result.losses.cost[:, :, 1:, 0].sum() == 0  # only the leader leads


@pytest.mark.parametrize("name", ["sport_book", "puerto_rico"])
def test_who_plays_exactly_loses_nothing(name: str) -> None:
    result = evaluate("cheat", "club", name, boards=6, seed=1, losses=6)
    assert result.losses is not None
    assert result.losses.cost[0].sum() == 0
    assert result.losses.side(1)["per_deal"] == pytest.approx(result.points_per_deal) and result.points_per_deal > 0


def test_two_seats() -> None:
    result = evaluate("greedy", "random", asked_rules("tiny_pairs seats=2 pairs=false hand_size=4"), 30, losses=30)
    assert result.losses is not None
    a, b = result.losses.cost.sum(axis=(2, 3)) / 2
    assert (b - a == result.values).all()
    assert list(result.losses.side(0)) == ["per_deal", "low", "high", "lead", "early", "late", "leader", "second"]


def test_what_is_counted_depends_on_the_board_alone() -> None:
    """The first boards are those of a longer evaluation, however they are batched; without losses nothing changes."""
    whole, some = played(), played(losses=15, batch=7)
    assert whole.losses is not None and some.losses is not None
    assert (some.losses.cost == whole.losses.cost[:, :15]).all()
    plain, record = played(losses=0), whole.to_dict()
    assert list(record) == [*plain.to_dict(), "dd_loss_per_deal", "dd_losses"]
    assert plain.losses is None and plain == whole and (plain.values == whole.values).all()
    assert record["dd_loss_per_deal"] == record["dd_losses"]["a"]["per_deal"] and record["dd_losses"]["boards"] == 40
    assert (played(losses=1000).losses.cost == whole.losses.cost).all()  # type: ignore[union-attr]


class Faulty:
    """Plays greedily, but not at the second table of every tenth board."""

    name = "faulty"

    def act(self, batch: Decisions) -> np.ndarray:
        actions = make_agent("greedy").act(batch)
        assert batch.key is not None
        actions[batch.key % 20 == 7] = 99
        return actions


def test_boards_with_a_forfeited_deal_are_left_out() -> None:
    whole, result = played(), played(Faulty(), on_error="forfeit")
    assert result.errors == 4 and result.losses is not None and whole.losses is not None
    kept = np.arange(40) % 10 != 3
    assert (result.losses.cost == whole.losses.cost[:, kept]).all() and result.losses.boards == 36


def test_progress_goes_on_while_moves_are_solved() -> None:
    seen: list[tuple[int, int]] = []
    evaluate("greedy", "random", "tiny_pairs", 100, batch=50, losses=70, progress=lambda *one: seen.append(one))
    assert seen == [(50, 100), (100, 100), (64, 70), (70, 70)]


@pytest.mark.parametrize("wrong", [-1, 2.5, True, "3"])
def test_numbers_of_boards_that_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="losses="):
        played(losses=wrong)


def test_phases_and_places_by_hand() -> None:
    cost = np.zeros((2, 2, 4, 28), np.int64)
    cost[0, 0, 0, 0], cost[0, 0, 1, LATE - 1], cost[0, 1, 3, LATE] = 4, 8, 2
    figures = Losses(cost).side(0)
    assert [figures[key] for key in ("per_deal", "lead", "early", "late")] == [3.5, 1, 2, 0.5]
    assert [figures[key] for key in PLACES] == [2, 4, 0, 1]
    margin = 12.7062 * np.std([6, 1], ddof=1) / np.sqrt(2)  # Student's t with one degree of freedom
    assert figures["low"] == pytest.approx(3.5 - margin, abs=1e-3) and figures["high"] == pytest.approx(
        3.5 + margin, abs=1e-3
    )
    assert np.isnan(Losses(cost[:, :1]).side(0)["low"]) and np.isnan(Losses(cost[:, :0]).side(1)["late"])


def test_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A darker cell for a greater loss, one file and nothing beside it."""
    from PIL import Image

    cost = np.zeros((2, 1, 4, 28), np.int64)
    cost[1, 0, 2, 5] = 10
    out = draw_losses(Losses(cost), ("one", "two"), tmp_path / "losses.png")
    picture = np.asarray(Image.open(out).convert("RGB")).astype(int)
    dark = (picture[:, :, 0] > 2 * picture[:, :, 2]) & (picture.sum(axis=2) < 250)
    columns = np.flatnonzero(dark[:, : int(picture.shape[1] * 0.9)].any(axis=0))  # the colour bar is at the right
    assert len(columns) and columns.min() > picture.shape[1] / 2  # in the half of side B
    assert [one.name for one in tmp_path.iterdir()] == ["losses.png"]
    with pytest.raises(ValueError, match="no losses to draw"):
        draw_losses(Losses(cost[:, :0]), ("one", "two"), tmp_path / "none.png")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "greedy", "random", "--rules", SMALL, "--boards", "30", "--losses", "20"]
    picture = tmp_path / "losses.png"
    assert cli.main([*words, "--losses-png", str(picture)]) == 0
    shown = capsys.readouterr().out
    for word in ("against double-dummy, 20 boards", "lead", "early", "late", "leader", "partner", "fourth"):
        assert word in shown
    table = shown[shown.index("points lost a deal") :]
    assert max(map(len, table.splitlines())) <= 80
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert cli.main([*words, "--forfeit", "--time-limit", "1e-9"]) == 0
    assert "every board has a forfeited deal" in capsys.readouterr().out
    assert cli.main([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["dd_losses"]["boards"] == 20 and f"{record['dd_loss_per_deal']:.2f}" in shown
    assert list(record["dd_losses"]["b"]) == ["per_deal", "low", "high", "lead", "early", "late", *PLACES]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--rules blitz --losses 4", "not blitz"),
        ("--rules blind --losses 4", "not blind"),
        ("--losses 1", "'--losses'"),
        ("--losses-png x.png", "--losses-png x.png needs --losses N"),
        ("--losses 4 --losses-png {here}", "Is a directory"),
        ("--losses 4 --losses-png {here}/none/x.png", "none/x.png: No such file"),
    ],
)
def test_the_command_refuses(words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["evaluate", "greedy", "random", "--boards", "1000000", *words.format(here=tmp_path).split()]
    assert cli.main(line) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert said in error


RUN = [
    "deals=16", "minibatch=64", "hidden=[16]", "critic_hidden=[16]", "evaluate_boards=4", "eval_boards=8", "threads=1",
    "total_updates=2", "evaluate_every=1", "opponents=[random]", "rules=tiny_pairs",
]  # fmt: skip


def run(folder: Path, *words: str) -> dict[str, Any]:
    return train(None, [*RUN, f"runs_dir={folder}", *words], json=True)


def loss_tags(folder: str) -> dict[str, int]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(folder)
    events.Reload()
    return {tag: len(events.Scalars(tag)) for tag in events.Tags()["scalars"] if "dd_loss" in tag}


def test_a_run_logs_its_losses_and_learns_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_losses, without = run(tmp_path), run(tmp_path, "dd_loss_boards=0")
    assert loss_tags(with_losses["run"]) == {"eval/random/dd_loss_per_deal": 2}
    assert loss_tags(without["run"]) == {} and "dd_losses" not in without["evaluations"][0]
    assert with_losses["evaluations"][0]["dd_losses"]["boards"] == 8
    for name in ("model", "optimizer"):
        files = [Path(one["run"], "checkpoints", "latest", f"{name}.safetensors") for one in (with_losses, without)]
        assert files[0].read_bytes() == files[1].read_bytes()
    assert "dd_loss" not in capsys.readouterr().err


def test_a_run_without_numba_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(module: str) -> Any:
        raise ImportError("search needs numba, which is not installed; install the extra search")

    monkeypatch.setattr(dd, "load", missing)
    result = run(tmp_path)
    assert loss_tags(result["run"]) == {}
    said = [line for line in capsys.readouterr().err.splitlines() if "numba" in line]
    assert said == ["no eval/…/dd_loss_per_deal: search needs numba, which is not installed; install the extra search"]
    with pytest.raises(ImportError, match="install the extra search"):
        played()


def test_a_run_of_another_game_has_no_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(tmp_path, "rules=blitz", "advantage=seat")
    assert loss_tags(result["run"]) == {} and "dd_loss" not in capsys.readouterr().err
    with pytest.raises(training.ConfigError, match="dd_loss_boards: must not be negative"):
        run(tmp_path, "dd_loss_boards=-1")
