"""A seat that hears nothing: it sees what the rules need, and nothing of what others chose.

By the rules alone, what can be known of the hidden hands hangs on a few facts: which tiles lie on the line, the two
ends, how many tiles each seat holds, who passed while which suits were open, who leads and who is to move, and in a
match the score. A deaf seat sees these and its own hand. It is not told who laid what, in which order, at which end,
nor what else was open then: only that can be a signal, so nobody can signal to a deaf seat.

All tiles on the line are shown as if the seat itself had laid them (`played_me`), and none as laid by another. No seat
that hears ever sees that while others hold fewer tiles than at the deal, so a network that learns both can tell them
apart. What stands behind the observation, the words of the game and the choices, is blank. With labelled ends it is a
choice, too, how the line lies: a deaf seat's line is turned as in games without labels (`agents.networks.straighten`).

Where struck hands are dealt again (S4) the rules tie what a seat holds to the doubles and suits that it has laid. A
deaf seat does without: to be told that would be to be told who laid what.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from agents.base import Agent, load_network, register_agent
from domino_env.observation import Layout
from domino_env.rules import Rules

#: Share of deals and seats that is enough for a network to learn both; named where one has learned only one.
USUAL = 0.25


def check_game(rules: Rules) -> None:
    """Raises a ValueError for a game in which nobody can be made deaf."""
    if rules.rows or rules.chains:
        raise ValueError(f"a seat can be deaf in games with one tile a turn on an open line, not in {rules.title}")


def deafened(seen: npt.NDArray[np.uint8], layout: Layout) -> npt.NDArray[np.uint8]:
    """What deaf seats are shown of the same decisions.

    Args:
        seen: (N, nbytes) packed observations, and whatever stands behind them; layout: of the observations, of a game
            as of `check_game`.

    Returns:
        (N, nbytes) uint8, a copy: the tiles of all `played_` slices in `played_me`, blank behind the observation.
    """
    out = seen.copy()
    out[:, layout.nbytes :] = 0
    words = np.ascontiguousarray(out[:, : layout.nbytes]).view("<u4")
    first, *others = (part for name, part in layout.slices.items() if name.startswith("played_"))
    tiles = np.uint32((1 << first.stop - first.start) - 1)
    for part in others:
        # A word has the tiles of one seat from its lowest bit on; what lies above them is not of the tiles.
        words[:, first.start // 32] |= words[:, part.start // 32] & tiles
        words[:, part.start // 32] &= ~tiles
    out[:, : layout.nbytes] = words.view(np.uint8)
    return out


def check_heard(name: str, chance: float, deaf: bool) -> None:
    """Raises a ValueError where a network is to play as it never did while it learned.

    Args:
        name: of the network; chance: of a seat to be deaf when it was trained; deaf: how it is to play.
    """
    if deaf and chance == 0:
        raise ValueError(
            f"{name} cannot play deaf: it was trained with deaf=0 and has never seen a table without what others "
            f"chose, so what it did there would be out of distribution and mean nothing; train it with deaf={USUAL}"
        )
    if not deaf and chance == 1:
        raise ValueError(
            f"{name} cannot play hearing: it was trained with deaf=1 and has never seen what others chose, so what it "
            f"did with that would be out of distribution and mean nothing; train it with deaf={USUAL}"
        )


def deaf(model: str) -> Agent:
    """A network that hears nothing of what others chose: model=RUN, a run or checkpoint trained with deaf above 0."""
    agent = load_network(str(model), deaf=True)
    agent.name = f"deaf:model={model}"
    return cast(Agent, agent)


register_agent("deaf", deaf)
