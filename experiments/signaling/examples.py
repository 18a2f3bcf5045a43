"""Moves that told much, to be looked at: the deal, and what the partner thought of the mover before and after."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.search.position import position_from
from agents.search.reading import Model
from domino_env import render
from domino_env.deals import Deal, format_deal
from domino_env.render import scene
from domino_env.rules import Rules
from domino_env.tiles import NUM_TILES, tile_name, tiles_of
from experiments.advise import half_square
from experiments.files import write_whole
from experiments.replay import play
from experiments.signaling.hands import WORLDS, hand_lists, said
from experiments.signaling.moves import MOVES
from experiments.signaling.record import Moments

Floats = npt.NDArray[np.float64]

NONE = "no move added to G and left the deal going"  # why there is none
_TILES = np.arange(NUM_TILES, dtype=np.uint32)
_WIDTH = 80  # columns of the text
_BOARD = 640  # pixels of the picture of the table
_HEADS = {  # of the beliefs: two words each, and what stands over a picture
    "before": ("before", "", "before the move"),
    "after": ("after", "", "after it"),
    "reference": ("after,", "naive", "after it, to who takes the mover for the reference"),
    "rules": ("after,", "rules", "after it, by the rules alone"),
}


@dataclass(frozen=True)
class Example:
    """One move, and what the partner of who made it thinks that the mover holds."""

    rules: Rules
    number: int  # of the deal
    ply: int  # events before the move
    deal: str  # the deal in text, to the move and with it
    seat: int  # who moved
    partner: int  # who looks on
    move: str
    kinds: tuple[str, ...]  # names of `MOVES`
    gap: float  # bits that the move adds to what one loses who takes the mover for the reference
    hand: int  # mask of what the mover holds after the move
    hidden: int  # mask of the tiles that the partner does not see after the move
    before: Floats  # (28,) P of the mover holding each tile, to a partner that knows how all play
    after: Floats  # (28,) the same after the move
    reference: Floats  # (28,) after the move, to one that takes the mover for the reference
    rules_only: Floats  # (28,) after the move, by the rules alone

    @property
    def beliefs(self) -> dict[str, Floats]:
        """The four beliefs: "before", "after", "reference" and "rules"."""
        return {
            "before": self.before,
            "after": self.after,
            "reference": self.reference,
            "rules": self.rules_only,
        }

    def to_dict(self) -> dict[str, Any]:
        """For JSON: probabilities by tile, of the tiles that the partner does not see."""
        tiles = tiles_of(self.hidden)
        return {
            **{name: getattr(self, name) for name in ("number", "ply", "deal", "seat", "partner", "move", "gap")},
            "kinds": list(self.kinds),
            "hand": [tile_name(tile) for tile in tiles_of(self.hand)],
            "beliefs": {
                name: {tile_name(tile): float(chances[tile]) for tile in tiles}
                for name, chances in self.beliefs.items()
            },
        }

    def text(self, color: bool = False) -> str:
        """The same as text of 80 columns."""
        kinds = "; ".join(MOVES[name].text for name in self.kinds) or "a move of no kind"
        held = " ".join(tile_name(tile) for tile in tiles_of(self.hand))
        lines = wrap(self.deal, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        move = f"deal {self.number}, ply {self.ply}: seat_{self.seat} lays {self.move}: {kinds}"
        lines += wrap(f"{move}; {self.gap:+.2f} bits of convention", _WIDTH)
        lines += [f"what seat_{self.partner} thinks that it holds, in per cent; in truth it holds {held}"]
        chances = {
            tile_name(tile): [float(one[tile]) for one in self.beliefs.values()] for tile in tiles_of(self.hidden)
        }
        return "\n".join(lines) + "\n" + render.belief(chances, [words[:2] for words in _HEADS.values()], color)


def example(
    moments: Moments,
    table: Sequence[Model],
    reference: Model,
    names: Sequence[str],
    gap: float,
    *,
    floor: float = 0.0,
    worlds: int = WORLDS,
    seed: int = 0,
) -> Example | None:
    """One decision as an example; None where the move ends the deal.

    Args:
        moments: one decision.
        table, reference, floor, worlds, seed: as of `hand_lists`.
        names: kinds that the move is of; gap: bits that it adds.
    """
    rules, seat, action = moments.position.rules, int(moments.seat[0]), int(moments.action[0])
    partner, leader = (seat + 2) % rules.seats, int(moments.position.leader[0])
    dealt = (moments.hands | moments.position.played)[0]
    events = moments.position.events
    assert events is not None
    moves = [*(events[0][events[0] >= 0] & 63).tolist(), action]
    try:
        after = position_from(rules, leader, moves, partner, tiles_of(int(dealt[partner])))
    except ValueError:  # the deal is over
        return None
    lists = hand_lists(moments, table, reference, floor=floor, worlds=worlds, seed=seed)
    play_, legal = said(moments, lists, table, floor)
    innocent, _ = said(moments, lists, [reference] * len(table), floor)
    may = legal >> np.uint64(action) & np.uint64(1) != 0
    tile = np.uint32(1 << action % NUM_TILES)

    def chances(weight: Floats) -> Floats:
        rest = (lists.hand & ~tile)[:, None] >> _TILES & 1
        found: Floats = lists.sums(lists.scaled(weight)[:, None] * rest)[0]
        return found

    return Example(
        rules=rules,
        number=int(moments.deal[0]),
        ply=int(moments.ply[0]),
        deal=format_deal(Deal(rules, leader, [tiles_of(int(hand)) for hand in dealt], moves)),
        seat=seat,
        partner=partner,
        move=rules.action_name(action),
        kinds=tuple(names),
        gap=gap,
        hand=int(moments.hand()[0] & ~tile),
        hidden=int(after.hidden[0]),
        before=chances(lists.true),
        after=chances(lists.true * play_[:, action]),
        reference=chances(lists.reference * innocent[:, action]),
        rules_only=chances(lists.rules * may),
    )


def figure(examples: Sequence[Example]) -> Any:
    """Examples as a figure of matplotlib: a row each, the table as the partner sees it, and the beliefs.

    Raises:
        ValueError: no example.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not examples:
        raise ValueError(f"no example to draw: {NONE}, or none was asked for")
    titles = {name: words[2] for name, words in _HEADS.items()}
    wide = 1.4  # the table, in widths of a belief
    drawn = Figure(figsize=(3.3 * (len(titles) + wide), 3.5 * len(examples)), layout="constrained")
    FigureCanvasAgg(drawn)
    plots = drawn.subplots(len(examples), 1 + len(titles), squeeze=False, width_ratios=[wide] + [1] * len(titles))
    for row, one in zip(plots, examples):
        board = play(one.deal).position()
        row[0].imshow(render.rgb(board, one.partner, (_BOARD, _BOARD * scene.HEIGHT // scene.WIDTH)))
        row[0].set_axis_off()
        row[0].set_title(
            f"deal {one.number}, ply {one.ply}: seat_{one.seat} has laid {one.move}, {one.gap:+.2f} bits", fontsize=9
        )
        for axes, (name, chances) in zip(row[1:], one.beliefs.items()):
            half_square(axes, one.rules, one.hidden, chances, tiles_of(one.hand))
            axes.set_title("\n".join(wrap(titles[name], 32)), fontsize=9)
    drawn.suptitle(
        "what the partner thinks that the mover holds, in per cent; framed: what it holds in truth",
        fontsize=9,
        color="0.3",
    )
    return drawn


def draw_examples(examples: Sequence[Example], out: str | Path) -> Path:
    """The figure as PNG. Raises ``ValueError`` without examples, ``OSError`` where it cannot be written."""
    picture = io.BytesIO()
    figure(examples).savefig(picture, format="png", dpi=100)
    return write_whole(out, picture.getvalue())
