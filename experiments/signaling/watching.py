"""Signals while a run learns: a few exact figures of late positions, for the log of every evaluation.

The present policy plays some deals against itself, by its probabilities, and a few late decisions of each are looked
at: there beliefs are exact and cost little. The same deals are played at every evaluation. What a run comes to in the
end is for `measure` of experiments/signaling/information.py, on more deals and with intervals.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from agents.networks import Policy
from agents.search.reading import ExactBelief
from domino_env.rules import Rules
from experiments.signaling.information import entropy_of_lists, measure
from experiments.signaling.listening import changes
from experiments.signaling.record import Moments, play

PARTNER = 2  # seats clockwise
LATE = 16  # tiles that do not lie on the line, at most: of a double-six set 12 do
EACH = 2  # decisions of a deal
FLOOR = 1e-6  # of a reading by another network: what that one hardly ever plays is not impossible


def late(rules: Rules) -> range:
    """With how many tiles on the line decisions are late."""
    return range(max(rules.num_tiles - LATE, 1), rules.num_tiles)


def watch(policy: Policy, deals: int = 32, seed: int = 1) -> dict[str, float]:
    """What the moves of a policy tell its partner, and what it listens to, by TensorBoard tag; means over decisions.

    Args:
        policy: of a game of pairs with one tile a turn on an open line; it is left as it is.
        deals: that it plays against itself; seed: of these.

    Returns:
        In bits: "signaling/information", what a move tells the partner about the mover's hand; "…/excess_over_uniform",
        how much more than random play would under the same belief; "…/convention_over_uniform", what the partner loses
        that takes the mover for a random player (KL of beliefs about its hand); "…/belief_entropy" of that belief, and
        "…/belief_entropy_rules" of the same by the rules alone. Of a policy that has learned to play deaf, too:
        "…/excess_over_deaf" and "…/convention_over_deaf" against the mover as it plays deaf, and "…/listening", KL of
        its own answer from that of the deaf one. And "…/decisions", how many. Nothing where no decision was late.

    Raises:
        ValueError: another game.
    """
    player = copy.copy(policy)
    player.sample = True  # the likeliest action alone would tell more than the probabilities say
    moments = play(player, player.rules, deals, seed, tiles=late(player.rules), each=EACH).moments
    if not len(moments):
        return {}
    deaf = player.deafened() if 0 < player.deafness < 1 and not player.deaf else None
    found = measure(
        moments, player, "uniform" if deaf is None else deaf, places=(PARTNER,), reference_floor=FLOOR, method="exact"
    )
    figures: dict[str, Any] = {
        "decisions": len(moments),
        "information": found.told,
        "excess_over_uniform": found.told - found.uniform,
        "convention_over_uniform": found.gaps["uniform"],
        "belief_entropy": _entropies(moments, player),
        "belief_entropy_rules": _entropies(moments, None),
    }
    if deaf is not None:
        figures["excess_over_deaf"], figures["convention_over_deaf"] = found.excess, found.gap
        figures["listening"] = changes(moments, player, deaf, FLOOR).divergence
    return {f"signaling/{name}": float(np.mean(values)) for name, values in figures.items()}


def _entropies(moments: Moments, model: Policy | None) -> Any:
    """(M,) bits, of the partner's belief about the hand of who decides; None: by the rules alone."""
    belief = ExactBelief(moments.seen_by(PARTNER), [model] * moments.position.rules.seats)
    row, _, share = belief.hand_lists(moments.seat)
    return entropy_of_lists(row, share, len(moments))
