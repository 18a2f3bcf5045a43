"""Tiny runs and controls that are not played."""

from pathlib import Path

import pytest

from experiments.signaling import report
from experiments.signaling.page import Picture
from experiments.signaling.statistics import Estimate
from experiments.signaling.validity import Control, Validity

TINY = [
    "rules=tiny_pairs", "deals=16", "minibatch=64", "hidden=[16]", "critic_hidden=[16]", "eval_boards=2",
    "evaluate_boards=2", "total_updates=1", "opponents=[]", "threads=1", "dd_loss_boards=0", "network=public_private",
]  # fmt: skip


@pytest.fixture(scope="session")
def hearing(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run with labelled ends that knows what it is to be deaf."""
    from experiments.train import train

    words = ["deaf=0.25", "rule_overrides={labelled_ends: true}", f"runs_dir={tmp_path_factory.mktemp('hearing')}"]
    return str(Path(train(None, [*TINY, *words], None, json=True)["run"]))


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run that never was deaf, of the plain game."""
    from experiments.train import train

    return str(Path(train(None, [*TINY, f"runs_dir={tmp_path_factory.mktemp('plain')}"], None, json=True)["run"]))


def controls(holds: bool = True) -> Validity:
    """Two controls with figures that nobody played."""
    found = (
        Control("no convention", Estimate(0.0, 0.0, 0.0, 0.0, 5, 9), "0 to 1e-09", True),
        Control("more of more", Estimate(0.3125, 0.25, 0.375, 0.03, 5, 9), "above 0", holds),
    )
    return Validity(found, {0.0: found[0].estimate, 2.0: found[1].estimate}, 5, "sport_book")


def without_pictures(patch: pytest.MonkeyPatch) -> None:
    """Reports that draw nothing, which takes most of the time of small ones."""
    patch.setattr(report, "drawn", lambda words, size, draw: Picture(words, b"<svg></svg>"))
    patch.setattr(report, "raster", lambda words, figure: Picture(words, b"\x89PNG"))
    patch.setattr(report.examples, "figure", lambda found: None)
