"""Who won a deal and for how much (S5-S9, K1, K2; B5 where each seat plays for itself)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from domino_env.rules import Rules
from domino_env.tiles import pips_of

OUT, BLOCK, GUARD = 0, 1, 2
OUTCOMES = ("out", "block", "guard")


@dataclass
class Finished:
    """Deals that ended in one step, k of them. What a trainer does not ask for is worked out only when it is asked."""

    rules: Rules
    rows: np.ndarray  # (k,) int64 rows of the batch
    by: np.ndarray  # (k,) int64, the seat that laid the last tile
    plies: np.ndarray  # (k,) int64, every action counts
    pips: np.ndarray  # (seats, k) int64 left in the hands, clockwise from `by`; a lone 0-0 at its special value (S8)
    out: np.ndarray  # (k,) bool, else a block
    gain: np.ndarray  # pairs: (k,) net points of the pair of `by`; else (seats, k) of each seat, clockwise from `by`
    guard: np.ndarray | None = None  # (k,) bool, broken off (R8): nobody scores; None where the game has no guard

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def outcome(self) -> np.ndarray:
        """(k,) int64, OUT, BLOCK or GUARD."""
        outcome = np.where(self.out, OUT, BLOCK)
        if self.guard is not None:
            outcome[self.guard] = GUARD
        return outcome

    @cached_property
    def rewards(self) -> np.ndarray:
        """(k, seats) int64, zero-sum (S9)."""
        if not self.rules.pairs:
            return self._by_seat(self.gain)
        net = self.gain * (1 - 2 * (self.by & 1))
        rewards = np.empty((len(self), self.rules.seats), np.int64)
        rewards[:, 0::2] = net[:, None]
        rewards[:, 1::2] = -net[:, None]
        return rewards

    @cached_property
    def winner(self) -> np.ndarray:
        """(k,) int64, the winning side, -1 for none."""
        if self.rules.pairs:
            return np.where(self.gain == 0, -1, np.where(self.gain > 0, self.by, self.by + 1) % 2)
        lowest = (self.by + self.pips.argmin(axis=0)) % self.rules.seats
        return np.where(self.out, self.by, np.where((self.gain == 0).all(axis=0), -1, lowest))

    @cached_property
    def points(self) -> np.ndarray:
        """(k, sides) int64: pairs as the record shows them, seats as signed gain."""
        if not self.rules.pairs:
            return self.rewards
        points = np.maximum(self.rewards[:, :2], 0)
        if self.rules.equal_block == "credit":
            equal = self.gain == 0
            points[equal] = (self.pips[0] + self.pips[2])[equal, None]
        return points

    @cached_property
    def pips_left(self) -> np.ndarray:
        """(k, seats) int64 left in the hands, seats in order."""
        return self._by_seat(self.pips)

    def _by_seat(self, relative: np.ndarray) -> np.ndarray:
        places = (np.arange(self.rules.seats) - self.by[:, None]) % self.rules.seats
        return np.take_along_axis(relative.T, places, axis=1)

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
    left = np.zeros((rules.seats, 0), np.int64)
    return Finished(rules, none, none, none, left, none.astype(bool), none if rules.pairs else left)


def score(
    rules: Rules,
    rows: np.ndarray,
    hands: np.ndarray,
    by: np.ndarray,
    plies: np.ndarray,
    guard: np.ndarray | None = None,
) -> Finished:
    """Score deals that are over.

    Args:
        rules: the game.
        rows: (k,) which rows these are.
        hands: (seats, k) uint32, what each seat has left, clockwise from the one that laid the last tile.
        by: (k,) that seat; its hand is empty exactly on an out.
        plies: (k,) actions of the deal.
        guard: (k,) bool, deals that were broken off (R8); None for none.
    """
    pips = pips_of(hands).astype(np.int64)
    if rules.lone_blank:
        pips[hands == 1] = rules.lone_blank  # S8: tile 0 alone is mask 1
    out = hands[0] == 0
    gain = (_pairs if rules.pairs else _seats)(rules, pips, out)
    if guard is not None:
        gain[..., guard] = 0
    return Finished(rules, rows, by, plies, pips, out, gain, guard)


def _pairs(rules: Rules, pips: np.ndarray, out: np.ndarray) -> np.ndarray:
    """(k,) points of the pair that laid last less those of the other; 0 for an equal block alone."""
    mine = pips[0] + pips[2]
    theirs = pips[1] + pips[3]
    more = theirs - mine
    if rules.block_score == "difference":
        block = more
    elif rules.block_score == "loser_total":
        block = np.sign(more) * np.maximum(mine, theirs)
    else:
        block = np.sign(more) * (mine + theirs)
    # S6; K1 counts the partner's hand too, and on an out that is all there is of `mine`.
    return np.where(out, theirs + mine if rules.out_score == "others" else theirs, block)


def _seats(rules: Rules, pips: np.ndarray, out: np.ndarray) -> np.ndarray:
    """(seats, k) signed points of each seat (B5)."""
    lowest = pips.min(axis=0)
    over = pips - lowest  # on an out the lowest is 0
    tied = ~out & ((over == 0).sum(axis=0) > 1)
    gain = -over
    first = np.where(out, 0, pips.argmin(axis=0))
    gain[first, np.arange(len(out))] = over.sum(axis=0)
    gain[:, tied] = 0
    return gain
