"""The free channel: whether the side at which a tile is laid says something where both ends are the same suit.

Where both ends are alike, left and right lead to the same game, and only the words of the line differ: with labelled
ends such a lay is one free bit. Given the tile that is laid, the side tells

    I(side; hand | tile) = sum over tiles of pi(tile) KL(P(hand | tile, side) || P(hand | tile))

bits of the hand to a partner that knows the policy and sees that a tile is laid, in the mean over sides. Who was
trained where ends are not labelled, or lays at random, tells nothing by it; what is told there is nothing but
convention, for it is worth no point by itself (cheap talk, Crawford and Sobel 1982).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from domino_env.rules import Rules
from domino_env.tiles import DOUBLES_MASK, NUM_TILES, PASS, SUIT_MASK
from experiments.signaling.conventions import TILES
from experiments.signaling.hands import WORLDS, hand_lists, pieces, said
from experiments.signaling.record import Moments, Record
from experiments.signaling.statistics import ESS, NOTHING, Estimate, clustered, over_units

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]

LONG = 3  # tiles of a suit

#: What a side may say of the hand before the move; of hands (K,) and the suit that lies at both ends (K,).
MEANINGS: dict[str, tuple[str, Callable[[Masks, Ints], Bools]]] = {
    "double": (
        "holds the double of the open suit",
        lambda hand, suit: hand & SUIT_MASK[suit] & np.uint32(DOUBLES_MASK) != 0,
    ),
    "long": (
        f"holds {LONG} tiles of the open suit",
        lambda hand, suit: np.bitwise_count(hand & SUIT_MASK[suit]) >= LONG,
    ),
}


@dataclass(frozen=True)
class FreeChannel:
    """What the sides told where both ends were alike, in bits; nan where there is too little to say anything."""

    rules: Rules
    players: tuple[str, ...]  # by seat
    deals: int
    decisions: int  # with both ends alike
    measured: int  # of these, with a belief
    left_out: int  # of these that were to be measured, without one
    capacity: Estimate  # a deal: decisions with both ends alike, each of which could tell a bit
    entropy: Estimate  # a decision: of the side, given the tile; no more can be told
    information: Estimate  # a decision: of the side about the hand, given the tile
    per_deal: Estimate  # a deal: the same over all its measured decisions
    meanings: dict[str, Estimate]  # a decision: of the side about one thing, see `MEANINGS`

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: getattr(self, name) for name in ("deals", "decisions", "measured", "left_out")}
        figures = {name: getattr(self, name).to_dict() for name in ("capacity", "entropy", "information", "per_deal")}
        meanings = {name: {"text": MEANINGS[name][0], **estimate.to_dict()} for name, estimate in self.meanings.items()}
        return {
            "rules": self.rules.title,
            "players": list(self.players),
            **plain,
            **figures,
            "meanings": meanings,
        }

    def rows(self) -> list[dict[str, str]]:
        """The figures in words."""
        lines = [
            ("decisions with both ends alike, a deal: bits that could be told", self.capacity),
            ("bits of the side, given the tile", self.entropy),
            ("of these about the hand", self.information),
            ("about the hand, a deal, in its measured decisions", self.per_deal),
            *((f"about whether it {MEANINGS[name][0]}", one) for name, one in self.meanings.items()),
        ]
        return [{"what": what, "bits": f"{estimate}"} for what, estimate in lines]


def free_channel(
    record: Record,
    *,
    tiles: Collection[int] = TILES,
    place: int = 2,
    floor: float = 0.0,
    worlds: int = WORLDS,
    least: int = 2,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> FreeChannel:
    """Measure the free channel.

    Args:
        record: deals with labelled ends and all their decisions, played by agents that can be asked.
        tiles: decisions with so many tiles on the line are measured.
        place: where the observer sits, clockwise from who decides: 2 is the partner.
        floor: mixes every player's move with a random one, which lays at a random side.
        worlds: of a sampled belief; seed: of these.
        least: deals below which there is no number.
        progress: called with (decisions, decisions in all).

    Raises:
        ValueError: a game whose ends are not labelled, or players that cannot be asked.
    """
    rules = record.moments.position.rules
    if not rules.labelled_ends:
        raise ValueError(
            f"in {rules.title} left and right are one move where both ends are alike: play with labelled_ends=True"
        )
    ends = record.moments.position.ends
    alike = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)
    moments = record.moments.take(alike & np.isin(record.moments.tiles, list(tiles)))
    names = ("information", "entropy", *MEANINGS)
    bits = np.full((len(moments), len(names)), np.nan)
    done = 0
    for rows in pieces(moments, [place], worlds):
        bits[rows] = _measure(moments.take(rows), record, place, floor, worlds, seed)
        done += len(rows)
        if progress is not None:
            progress(done, len(moments))
    good = ~np.isnan(bits[:, 0])
    deals = len(record.points)

    def a_deal(values: Floats, deal: Ints) -> Estimate:
        _, which = np.unique(deal, return_inverse=True)
        sums = np.bincount(which, values) if len(values) else np.zeros(0)
        return over_units(np.concatenate([sums, np.zeros(deals - len(sums))]))

    def a_decision(number: int) -> Estimate:
        found = clustered(bits[good, number], moments.deal[good])
        return found if found.units >= least else NOTHING

    estimates = {name: a_decision(number) for number, name in enumerate(names)}
    return FreeChannel(
        rules=rules,
        players=tuple(agent.name for agent in record.table),
        deals=deals,
        decisions=int(alike.sum()),
        measured=int(good.sum()),
        left_out=int((~good).sum()),
        capacity=a_deal(np.ones(int(alike.sum())), record.moments.deal[alike]),
        entropy=estimates["entropy"],
        information=estimates["information"],
        per_deal=a_deal(bits[good, 0], moments.deal[good]) if good.any() else NOTHING,
        meanings={name: estimates[name] for name in MEANINGS},
    )


def _measure(moments: Moments, record: Record, place: int, floor: float, worlds: int, seed: int) -> Floats:
    """(n, figures) bits of a few decisions."""
    lists = hand_lists(moments, record.table, None, place, floor=floor, worlds=worlds, seed=seed)
    play, _ = said(moments, lists, record.table, floor)
    sides = np.stack([play[:, :NUM_TILES], play[:, NUM_TILES:PASS]])  # (2, K, tiles)
    joint = lists.true[:, None] * sides
    mean = np.stack([lists.sums(one) for one in joint])  # (2, n, tiles)
    own = _surprise(joint, sides / np.maximum(sides.sum(axis=0), 1e-300))
    entropy = _surprise(mean, mean / np.maximum(mean.sum(axis=0), 1e-300))
    figures = [entropy - lists.sums(own), entropy]
    suit = moments.position.ends[lists.row, 0]
    for _, meaning in MEANINGS.values():
        holds = meaning(lists.hand, suit)
        known = np.zeros(len(moments))
        for case in (holds, ~holds):
            part = np.stack([lists.sums(one * case[:, None]) for one in joint])
            known += _surprise(part, part / np.maximum(part.sum(axis=0), 1e-300))
        figures.append(entropy - known)
    lays = mean.sum(axis=(0, 2))  # else the decider passes, and there is no side
    out = np.maximum(np.stack(figures, axis=1), 0.0) / lays[:, None]
    out[~lists.known | (lists.worlds(lists.true) < ESS)] = np.nan
    return out


def _surprise(weight: Floats, share: Floats) -> Floats:
    """Minus the sum over sides and tiles of weight times log2 of the side's share: (2, n, tiles) -> (n,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(weight > 0, -weight * np.log2(share), 0.0)
    return terms.sum(axis=(0, 2))
