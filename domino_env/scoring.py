"""Who won a deal and for how much (S5-S9, K1, K2; B5 where each seat plays for itself)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from domino_env.rules import Rules
from domino_env.tiles import pips_of

OUT, BLOCK = 0, 1
OUTCOMES = ("out", "block")


@dataclass
class Finished:
    """Deals that ended in one step, k of them."""

    rows: np.ndarray  # (k,) int64 rows of the batch
    outcome: np.ndarray  # (k,) int64, OUT or BLOCK
    winner: np.ndarray  # (k,) int64, the winning side, -1 for none
    points: np.ndarray  # (k, sides) int64: pairs as the record shows them, seats as signed gain
    rewards: np.ndarray  # (k, seats) int64, zero-sum (S9)
    pips_left: np.ndarray  # (k, seats) int64, a lone 0-0 at its special value (S8)
    by: np.ndarray  # (k,) int64, the seat that laid the last tile
    plies: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # (k,) int64, every action counts

    def __len__(self) -> int:
        return len(self.rows)

    def info(self, j: int) -> dict[str, Any]:
        """The j-th deal as the plain dict of ``infos["deal"]``."""
        return {
            "outcome": OUTCOMES[self.outcome[j]],
            "winner": None if self.winner[j] < 0 else int(self.winner[j]),
            "points": self.points[j].tolist(),
            "pips_left": self.pips_left[j].tolist(),
            "by": int(self.by[j]),
            "plies": int(self.plies[j]),
        }


def nothing(rules: Rules) -> Finished:
    """The record of a step in which no deal ended."""
    none = np.zeros(0, np.int64)
    seats, sides = np.zeros((0, rules.seats), np.int64), np.zeros((0, rules.num_sides), np.int64)
    return Finished(none, none, none, sides, seats, seats, none, none)


def score(rules: Rules, rows: np.ndarray, hands: np.ndarray, by: np.ndarray, plies: np.ndarray) -> Finished:
    """Score deals that are over.

    Args:
        rules: the game.
        rows: (k,) which rows these are.
        hands: (k, seats) uint32, what each seat has left.
        by: (k,) seat that laid the last tile; its hand is empty exactly on an out.
        plies: (k,) actions of the deal.
    """
    pips = pips_of(hands).astype(np.int64)
    if rules.lone_blank:
        pips[hands == 1] = rules.lone_blank  # S8: tile 0 alone is mask 1
    each = np.arange(len(rows))
    out = hands[each, by] == 0
    points, winner = (_pairs if rules.pairs else _seats)(rules, pips, by, out)
    if rules.pairs:
        net = points[:, 0] - points[:, 1]
        rewards = np.stack([net, -net] * (rules.seats // 2), axis=1)
    else:
        rewards = points
    return Finished(rows, np.where(out, OUT, BLOCK), winner, points, rewards, pips, by, plies)


def _pairs(rules: Rules, pips: np.ndarray, by: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    totals = np.stack([pips[:, 0] + pips[:, 2], pips[:, 1] + pips[:, 3]], axis=1)
    each = np.arange(len(pips))
    fewer = np.where(totals[:, 0] <= totals[:, 1], 0, 1)
    equal = ~out & (totals[:, 0] == totals[:, 1])
    winner = np.where(out, by % 2, fewer)
    own, other = totals[each, winner], totals[each, 1 - winner]
    on_out = (
        other + own if rules.out_score == "others" else other
    )  # K1: the winner's own hand is empty, so own = partner
    on_block = {"difference": other - own, "loser_total": other, "both_totals": other + own}[rules.block_score]
    points = np.zeros_like(totals)
    points[each, winner] = np.where(out, on_out, on_block)
    points[equal] = totals[equal] if rules.equal_block == "credit" else 0
    return points, np.where(equal, -1, winner)


def _seats(rules: Rules, pips: np.ndarray, by: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    each = np.arange(len(pips))
    lowest = pips.min(axis=1)
    tied = ~out & ((pips == lowest[:, None]).sum(axis=1) > 1)
    winner = np.where(out, by, pips.argmin(axis=1))
    lost = pips - np.where(out, 0, lowest)[:, None]
    points = -lost
    points[each, winner] = lost.sum(axis=1)
    points[tied] = 0
    return points, np.where(tied, -1, winner)
