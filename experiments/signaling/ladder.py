"""How much is known of another hand, step by step: from the rules, to random play, to a reference, to the players.

Four who know ever more believe something about a hand of n of the m tiles that they do not see. One knows the rules:
what a seat passed on it does not hold. One knows besides that every move was one of the legal ones, and that who plays
at random plays any of them. One takes all for an innocent reference, one knows who plays. A step is worth

    sum over hands of B_true(hand) log2(B_step(hand) / B_before(hand))

bits, the belief before the first being that all hands of n tiles are alike. The steps and what is left, the entropy of
the last belief, add up to log2 of the number of such hands. A step below 0 leads away from the truth: the reference
plays otherwise than those at the table.

Who looks is the seat that has to move. That it has a choice follows from what it knows itself, so its decisions are
not selected by what it does not see. Means over them are what it gains in log loss, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.search.beliefs import RulesBelief
from agents.search.reading import ExactBelief, Model
from experiments.signaling.information import FLOOR, PLACES, Progress, entropy_of_lists, figure
from experiments.signaling.record import Moments, models_of
from experiments.signaling.statistics import Estimate

Floats = npt.NDArray[np.float64]

STEPS = ("rules", "uniform", "reference", "true")
TILES = (8, 10, 12, 14, 16)  # on the line
PLAYERS = ("random", "greedy", "club")
_ROWS = 64  # positions whose beliefs are kept at once
_LABELS = {
    "rules": "passes and rules",
    "uniform": "that every move was legal",
    "reference": "reference",
    "true": "the players' own way",
}
_COLORS = {"rules": "#4c72b0", "uniform": "#55a868", "reference": "#dd8452", "true": "#c44e52", "left": "#d9d9d9"}


@dataclass(frozen=True)
class Ladder:
    """What each step told of a hand in M positions, in bits."""

    player: str
    of: int  # whose hand: seats clockwise from who looks, 2 the partner
    tiles: npt.NDArray[np.int64]  # (M,) on the line
    deal: npt.NDArray[np.int64]  # (M,)
    steps: dict[str, Floats]  # (M,) of each step; nan where no deal explains the moves by the models of the players
    left: Floats  # (M,) entropy of the last belief
    whole: Floats  # (M,) log2 of the number of hands of that size

    def estimates(self, tiles: int | None = None) -> dict[str, Estimate]:
        """Mean bits of each step, "left" and "told", which is all steps together; with so many tiles on the line."""
        rows = np.ones(len(self.tiles), np.bool_) if tiles is None else self.tiles == tiles
        values = {**self.steps, "left": self.left, "told": self.whole - self.left}
        return {name: figure(value[rows], self.deal[rows]) for name, value in values.items()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""

        def plain(tiles: int | None) -> dict[str, Any]:
            return {name: one.to_dict() for name, one in self.estimates(tiles).items()}

        return {
            "player": self.player,
            "of": PLACES.get(self.of, str(self.of)),
            "positions": len(self.tiles),
            "left_out": int(np.isnan(self.left).sum()),
            "all": plain(None),
            "by_tiles": {str(number): plain(number) for number in np.unique(self.tiles).tolist()},
        }

    def draw(self, axes: Any) -> None:
        """Stacked bars by tiles on the line: what each step tells, and in grey what is left."""
        numbers = np.unique(self.tiles).tolist()
        found = [self.estimates(number) for number in numbers]
        places, above, below = np.arange(len(numbers)), np.zeros(len(numbers)), np.zeros(len(numbers))
        for name in (*STEPS, "left"):
            height = np.nan_to_num(np.array([one[name].mean for one in found]))
            up, down = height.clip(0), (-height).clip(0)
            label = _LABELS.get(name, "still unknown")
            axes.bar(places, up, 0.8, bottom=above, color=_COLORS[name], label=label)
            axes.bar(places, -down, 0.8, bottom=below, color=_COLORS[name])
            above, below = above + up, below - down
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xticks(places, numbers)
        axes.set_xlabel("tiles on the line")
        axes.set_ylabel("bits of the hand")
        axes.set_title(f"{self.player}: the hand of {PLACES.get(self.of, self.of)}", fontsize=9)


def climb(
    moments: Moments,
    table: Model | Sequence[Model],
    reference: Model | Sequence[Model],
    *,
    of: int = 2,
    floor: float = 0.0,
    reference_floor: float = FLOOR,
    player: str | None = None,
    progress: Progress | None = None,
) -> Ladder:
    """What each step tells those who have to move of another seat's hand.

    Args:
        moments: decisions of deals that `table` played, with at most 20 tiles hidden from who moves.
        table, reference, floor, reference_floor: as of `information.measure`; every step reads all seats its own way.
        of: whose hand, seats clockwise from who moves.
        player: what the table is called; None: the names of its players.
        progress: called with (positions done, positions).

    Raises:
        ValueError: models that cannot be asked, a seat that does not exist, or too many hidden tiles.
    """
    rules = moments.position.rules
    if not 0 < of < rules.seats:
        raise ValueError(f"of={of!r} must be in 1..{rules.seats - 1}, seats clockwise from who moves")
    models = {
        "rules": (models_of(None, rules), 0.0),
        "uniform": (models_of("uniform", rules), 0.0),
        "reference": (models_of(reference, rules), reference_floor),
        "true": (models_of(table, rules), floor),
    }
    names = dict.fromkeys(one if isinstance(one, str) else one.name for one in models["true"][0] if one is not None)
    m = len(moments)
    steps = {name: np.full(m, np.nan) for name in STEPS}
    left, whole = np.full(m, np.nan), np.full(m, np.nan)
    for begin in range(0, m, _ROWS):
        rows = np.arange(begin, min(begin + _ROWS, m))
        some = moments.take(rows)
        view, seat = some.seen_by(0), (some.seat + of) % rules.seats
        counted = RulesBelief(view)
        size = view.sizes[np.arange(len(rows)), seat]
        hidden = np.bitwise_count(view.hidden)
        whole[rows] = np.log2([math.comb(int(n), int(k)) for n, k in zip(hidden, size)])
        beliefs = {name: ExactBelief(view, each, floor=share, rules=counted) for name, (each, share) in models.items()}
        row, _, true = beliefs["true"].hand_lists(seat)
        fine, held = ~beliefs["true"].fell_back, true > 0
        before = -whole[rows][row]
        for name, belief in beliefs.items():
            share = belief.hand_lists(seat)[2]  # the lists of all levels hold the same hands
            with np.errstate(divide="ignore"):
                log = np.log2(share, where=held, out=np.zeros(len(held)))
            log[held & belief.fell_back[row]] = -np.inf  # it takes what was played for impossible
            total = np.bincount(row, true * np.where(held, log - before, 0.0), minlength=len(rows))
            steps[name][rows] = np.where(fine, total, np.nan)
            before = log
        left[rows] = np.where(fine, entropy_of_lists(row, true, len(rows)), np.nan)
        if progress is not None:
            progress(int(rows[-1]) + 1, m)
    called = player or " and ".join(names)
    return Ladder(called, of, moments.tiles, moments.deal, steps, left, whole)


def draw(found: Sequence[Ladder], axes: Sequence[Any]) -> None:
    """Ladders beside each other, one in each of the axes, with one legend and one scale."""
    for ladder, ax in zip(found, axes):
        ladder.draw(ax)
    limits = [ax.get_ylim() for ax in axes]
    for number, ax in enumerate(axes):
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
        if number:
            ax.set_ylabel("")
    axes[-1].legend(frameon=False, fontsize=8)
