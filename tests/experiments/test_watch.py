"""A deal to be looked at: who sits where, that it is the deal of its seed, and what its picture shows."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agents import make_agent
from agents.base import Decisions
from domino_env import PRESETS, make_engine, render
from experiments.solve import solve
from experiments.watch import draw_deal, watch


class Listener:
    """Plays the first legal move, and remembers which seats it was asked for."""

    name = "listener"

    def __init__(self) -> None:
        self.seats: set[int] = set()

    def act(self, batch: Decisions) -> np.ndarray:
        self.seats |= set(batch.seat.tolist())
        return batch.mask.argmax(axis=1)


def pixels(path: Path) -> np.ndarray:
    """(height, width, 3) uint8 of a picture."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


@pytest.mark.parametrize("rules", [*PRESETS])
def test_a_deal_of_any_game_ends_and_follows_from_its_seed(rules: str) -> None:
    one = watch("random", rules=rules, seed=4)
    assert one.position()["over"]
    assert one.position(0)["dealt"] == make_engine(rules, 1, seed=4).snapshot(0)["dealt"]
    assert watch("random", rules=rules, seed=4).deal == one.deal
    assert watch("random", rules=rules, seed=5).deal != one.deal


def test_the_first_has_the_even_seats() -> None:
    a, b = Listener(), Listener()
    watch(a, b, seed=1)
    assert (a.seats, b.seats) == ({0, 2}, {1, 3})
    alone = Listener()
    watch(alone, seed=1)
    assert alone.seats == {0, 1, 2, 3}


def test_one_that_sees_all_hands_loses_nothing() -> None:
    pytest.importorskip("numba")
    assert solve(watch("cheat", "greedy", seed=2))["loss_by_side"][0] == 0


def test_the_picture_shows_the_positions_asked_for(tmp_path: Path) -> None:
    one = watch(make_agent("greedy"), seed=3)
    picture = pixels(draw_deal(one, tmp_path / "deal.png", [0, 8, None], view=1, width=808))
    assert picture.shape == (608, 808, 3)
    for number, made in enumerate([0, 8, None]):
        y, x = number // 2 * 308, number % 2 * 408
        drawn = render.rgb(one.position(made), 1, (400, 300)).astype(int)
        assert np.abs(picture[y : y + 300, x : x + 400] - drawn).mean() < 2
    alone = draw_deal(one, tmp_path / "alone.png", width=400)
    assert pixels(alone).shape == (300, 400, 3)
    assert alone.stat().st_size < 40_000


def test_what_cannot_be_drawn_is_told(tmp_path: Path) -> None:
    one = watch("greedy", seed=3)
    with pytest.raises(ValueError, match="no position"):
        draw_deal(one, tmp_path / "deal.png", [])
    with pytest.raises(ValueError, match="not 99"):
        draw_deal(one, tmp_path / "deal.png", [99])
    with pytest.raises(ValueError, match="unknown agent 'nobody'"):
        watch("nobody")
    assert not [*tmp_path.iterdir()]
