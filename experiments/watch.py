"""A deal that agents play, to be looked at: every position of it, and a picture of some.

What it gives is a `Replay`, so that `experiments.solve` says of it what every move lost, and `domino_env.render` draws
each position.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agents.base import Agent, decide, make_agent
from domino_env import make_engine, render
from domino_env.deals import Streams
from domino_env.render import scene
from domino_env.rules import Rules
from experiments.files import write_whole
from experiments.replay import Replay

_GAP = 8  # pixels between two positions
_COLOURS = 128  # of a picture: tiles and felt have few, and the file is a third as large


def watch(a: str | Agent, b: str | Agent | None = None, rules: str | Rules = "sport_book", seed: int = 0) -> Replay:
    """One deal, played to its end.

    Args:
        a: an agent or its name, see `make_agent`, for seats 0, 2 and every second one.
        b: for the others; None: the same.
        rules: the game.
        seed: of the deal and of chance, a whole number >= 0.

    Raises:
        ValueError: an unknown agent, game or seed, or an agent that does not play the game.
    """
    engine = make_engine(rules, 1, seed=seed)
    first = make_agent(a, engine.rules)
    sides = (first, first if b is None else make_agent(b, engine.rules))
    chance, key = Streams.of(seed, np.zeros(1, np.int64)), np.zeros(1, np.int64)
    while not engine.over()[0]:
        agent = sides[int(engine.to_move()[0]) % 2]
        engine.step(agent.act(decide(engine, agent, chance, key=key)), autoreset=False)
    return Replay(1, engine.record(0))


def draw_deal(
    one: Replay, out: str | Path, moves: Sequence[int | None] = (None,), view: int | None = None, width: int = 800
) -> Path:
    """Draw positions of a deal as PNG, two abreast; one alone fills the picture.

    Args:
        one: the deal.
        out: the picture.
        moves: after how many moves, for each position; None: after the last.
        view: the seat at the bottom, which sees only its own hand; None: all hands lie open.
        width: pixels of the whole picture.

    Raises:
        ValueError: no position, or more moves than were made; a seat that there is not.
        OSError: it cannot be written.
    """
    from PIL import Image

    if not moves:
        raise ValueError("no position to draw: name after how many moves, None for the last")
    abreast = min(2, len(moves))
    across = (width - _GAP * (abreast - 1)) // abreast
    down = across * scene.HEIGHT // scene.WIDTH
    lines = -(-len(moves) // abreast)
    picture = Image.new("RGB", (width, lines * down + _GAP * (lines - 1)), "white")
    for number, made in enumerate(moves):
        drawn = render.rgb(one.position(made), view, (across, down))
        at = (number % abreast * (across + _GAP), number // abreast * (down + _GAP))
        picture.paste(Image.fromarray(drawn), at)
    file = io.BytesIO()
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(file, format="PNG", optimize=True)
    return write_whole(out, file.getvalue())
