"""What the moves of players tell who cannot be asked: people, and other people's programs.

Without a player's probabilities there is no exact belief. Instead something learns, on some deals, what the moves say
of a hand beyond what the rules say, and is measured on others: a residual probe,

    logit P(y) = logit q_rules(y) + f(public past),

with f = 0 to begin with. What it gains on q_rules, in log loss on deals that it has not seen, is a lower bound on what
the past tells (the conditional V-information of Hewitt and others 2021: what is there for a reader of this kind). Three
controls stand beside it. The same probe, learned from pasts that belong to other deals, gains only what can be said
without the past (that heavy tiles leave hands early, say). Nothing may foretell a known player's hand better than its
exact belief, and so no probe of random play better than the belief of random play. And where the exact answer is
known, the part of it that the probe finds tells how much it may miss in players who cannot be asked.

Tiles are suits and pips: what holds of one suit holds of another, so one small network looks at a suit at a time, with
the number of the suit beside it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agents.base import Agent
from agents.networks import Dense
from agents.search.beliefs import RulesBelief
from agents.search.position import Position
from agents.search.reading import Model, policy_belief
from domino_env.choices import KINDS, choices
from domino_env.deals import row_keys
from domino_env.tiles import NUM_SUITS, NUM_TILES, SUIT_MASK
from experiments.signaling.decoding import (
    DOUBLES,
    Bin,
    Gain,
    answers_of,
    by_the_rules,
    check_place,
    draw_reliability,
    forecast,
    gain,
    log_told,
    reliability,
)
from experiments.signaling.record import Moments, models_of
from experiments.signaling.statistics import ESS, NOTHING, Estimate, boards_needed, clustered, ratio

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

TARGETS = ("holds", "double")
LEAST = 500  # deals below which a probe says nothing
GOOD = 20_000  # deals from which it finds most of what is there
_PARTS = (0.6, 0.2, 0.2)  # of the deals: to learn from, to stop by, to measure on
_CERTAIN = 1e-12
_ROWS = 4096  # positions whose rules' beliefs are kept at once
_EXACT = 128


@dataclass(frozen=True)
class Learning:
    """How a probe learns."""

    hidden: int = 64  # units of each of its two layers
    rate: float = 2e-3  # of Adam
    decay: float = 1e-3  # of the weights
    batch: int = 2048  # suits of decisions a step
    epochs: int = 60  # at most
    patience: int = 6  # epochs without a better validation

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for name in ("hidden", "batch", "epochs", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least 1")
        if not self.rate > 0 or self.decay < 0:
            raise ValueError(f"rate={self.rate!r} must be above 0 and decay={self.decay!r} not below 0")


@dataclass(frozen=True)
class Probe:
    """What a probe found, on deals that it had not seen. Bits a decision, all suits together."""

    target: str
    of: int  # whose hand: places clockwise from who decides, 2 its partner
    deals: tuple[int, int, int]  # to learn from, to stop by, to measure on
    epochs: int  # after which it was best
    gain: Gain  # over the rules' belief
    permuted: Gain  # of the probe that learned from the pasts of other deals
    past: Gain  # the one less the other: what the past tells
    moved: float  # share of the pasts that were exchanged among decisions with the same voids, too
    said: dict[str, tuple[Bin, ...]]  # reliability of "rules" and "probe"
    exact: Estimate | None = None  # gain of the exact belief, on some of the same decisions
    efficiency: Estimate | None = None  # the probe's gain as a part of it, on these
    beyond: Estimate | None = None  # how much better than the exact belief it is there: never above 0 but by chance

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: getattr(self, name) for name in ("target", "of", "epochs", "moved")}
        plain["deals"] = list(self.deals)
        plain |= {name: getattr(self, name).to_dict() for name in ("gain", "permuted", "past")}
        for name in ("exact", "efficiency", "beyond"):
            one = getattr(self, name)
            plain[name] = None if one is None else one.to_dict()
        plain["said"] = {
            level: [{"said": one.said, "came": one.came.to_dict()} for one in bins] for level, bins in self.said.items()
        }
        return plain

    def rows(self) -> list[dict[str, Any]]:
        """Figure by figure, for a table."""
        named = {
            "gain over the rules": self.gain.total,
            "with the pasts of other deals": self.permuted.total,
            "what the past tells": self.past.total,
            "exact belief": self.exact,
            "part of it found": self.efficiency,
            "beyond it": self.beyond,
        }
        return [{"figure": name, "value": one} for name, one in named.items() if one is not None]

    def deals_needed(self, bits: float) -> int:
        """Deals in all, those to learn from included, for what the past tells to be seen if it is so much."""
        one = self.past.total
        return math.ceil(boards_needed(one.error * math.sqrt(one.units), bits) / _PARTS[2])

    def draw(self, axes: Any) -> None:
        """A reliability diagram of the rules' belief and of the probe."""
        draw_reliability(axes, {"the rules alone": self.said["rules"], "the probe": self.said["probe"]})
        axes.set_title(f"{self.target}, deals that the probe has not seen", fontsize=9)


def probe(
    moments: Moments,
    *,
    target: str = "holds",
    of: int = 2,
    table: str | Agent | Sequence[Model] | None = None,
    floor: float = 0.0,
    at_most: int = 500,
    learning: Learning | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Probe:
    """Learn what the moves before a decision tell who decides of another's hand, and measure it.

    Args:
        moments: decisions of deals, as of `record.play` or `replayed.replayed`; 20,000 deals and more are good.
        target: "holds" (a tile of suit k) or "double" (of suit k).
        of: whose hand, clockwise from who decides, and who looks.
        table: who played them, where they can be asked, as of `decoding.decode`: then the exact answer stands beside
            the probe's, with `floor`, at `at_most` decisions of the deals that are measured on; None: not known.
        learning: None: `Learning()`.
        seed: of the parts, the weights and the batches.
        progress: called with (decisions whose rules' belief is known, decisions).

    Raises:
        ValueError: another target, a place that cannot be, or too few deals: the message says how many are needed.
    """
    if target not in TARGETS:
        raise ValueError(f"unknown target {target!r}; a probe is asked {' or '.join(TARGETS)}")
    rules = moments.position.rules
    check_place(rules, of)
    check_deals(len(np.unique(moments.deal)))
    if at_most < 1:
        raise ValueError(f"at_most={at_most!r} must be at least 1")
    models = None if table is None else models_of(table, rules)
    learning = Learning() if learning is None else learning
    seen, seat = moments.seen_by(0), (moments.seat + of) % rules.seats
    q = rules_forecast(seen, seat, target, progress)
    y = answers_of(moments.hand(of), target)
    still, past = still_features(seen, q), past_features(seen)
    part = parts_of(moments.deal, seed)
    others, moved = exchanged(moments, seat, part, seed)
    p, epochs = _learned(still, past, q, y, part, learning, seed)
    blind, _ = _learned(still, past[others], q, y, part, learning, seed)

    test = np.flatnonzero(part == 2)
    deal, by_rules, by_probe, by_blind = moments.deal[test], *(_bits(q, one, y)[test] for one in (q, p, blind))
    row, suit = np.nonzero(_open(q[test]))
    deals = [len(np.unique(moments.deal[part == one])) for one in range(len(_PARTS))]
    found = Probe(
        target,
        of,
        deals=(deals[0], deals[1], deals[2]),
        epochs=epochs,
        gain=gain(by_probe, by_rules, deal),
        permuted=gain(by_blind, by_rules, deal),
        past=gain(by_probe, by_blind, deal),
        moved=moved,
        said={
            name: reliability(one[test][row, suit], y[test][row, suit], deal[row])
            for name, one in (("rules", q), ("probe", p))
        },
    )
    if models is None:
        return found
    some = _drawn(deal, at_most, seed)
    by_exact, fine = _exactly(moments.take(test[some]), models, floor, target, of, seed)
    some, by_exact = some[fine], by_exact[fine]
    there, mine = ((one - by_rules[some]).sum(axis=1) for one in (by_exact, by_probe[some]))
    return dataclasses.replace(
        found,
        exact=clustered(there, deal[some]),
        efficiency=share_of(mine, there, deal[some]),
        beyond=clustered(mine - there, deal[some]),
    )


def check_deals(deals: int) -> None:
    """Refuse too few deals, by a ValueError."""
    if deals < LEAST:
        raise ValueError(
            f"{deals} deals are too few for a probe: it needs {LEAST} at least, and finds most of what is there from "
            f"{GOOD} on"
        )


# -- what it is given -------------------------------------------------------------------------------------------------


def rules_forecast(
    seen: Position, seat: Ints, target: str, progress: Callable[[int, int], None] | None = None
) -> Floats:
    """P(yes) by the rules alone, of each suit, as of `by_the_rules`: (N, 7), some rows at a time."""
    out = np.empty((len(seen), NUM_SUITS))
    for begin in range(0, len(seen), _ROWS):
        rows = np.arange(begin, min(begin + _ROWS, len(seen)))
        out[rows] = by_the_rules(RulesBelief(seen.take(rows)), seat[rows], target)
        if progress is not None:
            progress(begin + len(rows), len(seen))
    return out


def past_features(seen: Position) -> Singles:
    """What has happened, suit by suit, as the viewer sees the seats: (N, 7, features) float32, all in 0..1.

    Of each seat: the choices of `domino_env.choices`, whether it passed on the suit, how many tiles of it and whether
    its double the seat laid, how many tiles it has left; of all: the ends, the first tile, who led.
    """
    if seen.events is None:
        raise ValueError("a probe reads what was played: these positions have no events")
    n, seats = len(seen), seen.rules.seats
    around = (seen.viewer[:, None] + np.arange(seats)) % seats  # the seats, clockwise from the viewer

    def clockwise(each: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.take_along_axis(each, around, axis=1)

    who = ((seen.events >> 12) - seen.viewer[:, None]) % seats
    history = np.where(seen.events >= 0, who << 12 | seen.events & 0xFFF, -1).astype(np.int16)
    chosen, lead = choices(history, seen.rules)
    chosen = chosen.reshape(n, len(KINDS) * seats)
    suits = np.arange(NUM_SUITS)
    laid, first = clockwise(seen.played), lead[:, None] & SUIT_MASK
    all_alike = [clockwise(seen.sizes) / seen.rules.hand_size, clockwise(np.arange(seats) == seen.leader[:, None])]
    columns = [
        chosen[:, None] >> suits[:, None] & 1,
        clockwise(seen.voids)[:, None] >> suits[:, None] & 1,
        np.bitwise_count(laid[:, None] & SUIT_MASK[:, None]) / NUM_SUITS,
        laid[:, None] >> DOUBLES[:, None] & 1,
        (seen.ends[:, None] == suits[:, None]),
        np.stack([first != 0, lead[:, None] >> DOUBLES & 1], axis=2),
        *(np.broadcast_to(one[:, None], (n, NUM_SUITS, seats)) for one in all_alike),
    ]
    return np.concatenate([one.astype(np.float32) for one in columns], axis=2)


def still_features(seen: Position, q: Floats) -> Singles:
    """What is so without the past, suit by suit: (N, 7, features) float32.

    What the rules say, the viewer's own tiles of the suit, how many tiles lie on the line, and the number of the suit.
    """
    n = len(seen)
    laid = np.bitwise_count(seen.played).sum(axis=1) / NUM_TILES
    columns = [
        _logit(q)[:, :, None] / 4,
        q[:, :, None],
        np.bitwise_count(seen.own[:, None] & SUIT_MASK)[:, :, None] / NUM_SUITS,
        (seen.own[:, None] >> DOUBLES & 1)[:, :, None],
        np.broadcast_to(laid[:, None, None], (n, NUM_SUITS, 1)),
        np.broadcast_to(np.eye(NUM_SUITS), (n, NUM_SUITS, NUM_SUITS)),
    ]
    return np.concatenate([one.astype(np.float32) for one in columns], axis=2)


def parts_of(deal: npt.NDArray[Any], seed: int = 0) -> Ints:
    """To which part each decision belongs, by its deal: (M,) 0 to learn from, 1 to stop by, 2 to measure on."""
    deals, which = np.unique(deal, return_inverse=True)
    bounds = np.round(np.cumsum(_PARTS)[:-1] * len(deals))
    place = np.random.default_rng([seed, 11]).permutation(len(deals))
    return np.searchsorted(bounds, place, "right")[which]


def exchanged(moments: Moments, seat: Ints, part: Ints, seed: int = 0) -> tuple[Ints, float]:
    """For each decision another of the same part and of another deal, whose past it is to be given.

    It is drawn among those with as many tiles on the line and in the hand that is asked about, and the same passes of
    its seat; where there is none, among those with as many tiles on the line; else among all.

    Args:
        seat: (M,) whose hand is asked about; part: as of `parts_of`.
    Returns:
        (M,) rows, and the share of those that were found at once.
    """
    here, rng = np.arange(len(moments)), np.random.default_rng([seed, 13])
    names = [
        (part, moments.tiles, moments.position.sizes[here, seat], moments.position.voids[here, seat]),
        (part, moments.tiles),
        (part,),
    ]
    out, shares = np.full(len(moments), -1), []
    for name in names:
        # Sorted by stratum and deal, each deal is one block of its stratum, and is jumped over.
        _, stratum = np.unique(np.stack(name).astype(np.int64), axis=1, return_inverse=True)
        stratum = stratum.ravel()
        order = np.lexsort([moments.deal, stratum])
        _, block = np.unique(np.stack([stratum, moments.deal]), axis=1, return_inverse=True)
        block = block.ravel()
        low, high = (np.searchsorted(stratum[order], stratum, side) for side in ("left", "right"))
        begin, end = (np.searchsorted(block[order], block, side) for side in ("left", "right"))
        others = (high - low) - (end - begin)
        place = low + (rng.random(len(out)) * others).astype(np.int64)
        place += np.where(place >= begin, end - begin, 0)
        found = (out < 0) & (others > 0)
        out[found] = order[place[found]]
        shares.append(float((out >= 0).mean()))
    if (out < 0).any():
        raise ValueError("the decisions of a part are all of one deal: none has another past to be given")
    return out, shares[0]


# -- learning ---------------------------------------------------------------------------------------------------------


def _learned(
    still: Singles, past: Singles, q: Floats, y: Ints, part: Ints, learning: Learning, seed: int
) -> tuple[Floats, int]:
    """What the probe says of all decisions, (M, 7), and after how many epochs it was best by those it stops by."""
    row, suit = np.nonzero(_open(q))
    x = torch.from_numpy(np.concatenate([still[row, suit], past[row, suit]], axis=1))
    base = torch.from_numpy(_logit(q)[row, suit].astype(np.float32))
    told = torch.from_numpy(y[row, suit].astype(np.float32))
    generator = torch.Generator().manual_seed(seed)
    hidden = learning.hidden
    network = nn.Sequential(
        Dense(x.shape[1], hidden, True, math.sqrt(2), generator),
        Dense(hidden, hidden, True, math.sqrt(2), generator),
        Dense(hidden, 1, False, 0.0, generator),  # nothing to begin with
    )
    learns, stops = (torch.from_numpy(np.flatnonzero(part[row] == one)) for one in (0, 1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=learning.rate, weight_decay=learning.decay)

    def loss(rows: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(base[rows] + network(x[rows])[:, 0], told[rows])

    with _one_thread():
        with torch.no_grad():
            best, best_epoch = float(loss(stops)), 0
        kept = [one.detach().clone() for one in network.parameters()]
        for epoch in range(1, learning.epochs + 1):
            for rows in learns[torch.randperm(len(learns), generator=generator)].split(learning.batch):
                optimizer.zero_grad()
                loss(rows).backward()
                optimizer.step()
            with torch.no_grad():
                now = float(loss(stops))
            if now < best:
                best, best_epoch = now, epoch
                kept = [one.detach().clone() for one in network.parameters()]
            elif epoch - best_epoch >= learning.patience:
                break
        with torch.no_grad():
            for one, value in zip(network.parameters(), kept, strict=True):
                one.copy_(value)
            said = torch.sigmoid((base + network(x)[:, 0]).double()).numpy()
    out = q.copy()
    out[row, suit] = said
    return out, best_epoch


@contextmanager
def _one_thread() -> Iterator[None]:
    """So small a network is slower on two, and the last bit may depend on how work is split."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# -- measuring --------------------------------------------------------------------------------------------------------


def _open(q: Floats) -> npt.NDArray[np.bool_]:
    """What the rules leave open; the rest is known, and nothing can be gained there."""
    return (q > _CERTAIN) & (q < 1 - _CERTAIN)


def _logit(q: Floats) -> Floats:
    inside = q.clip(_CERTAIN, 1 - _CERTAIN)
    return np.log(inside) - np.log1p(-inside)


def _bits(q: Floats, p: Floats, y: Ints) -> Floats:
    """log2 of the probability of what is so: (M, 7), of a forecast p where the rules' q leaves it open, else 0.

    Who was sure of what is not so has lost bits, but not all there are: nothing is surer than `_CERTAIN`.
    """
    p = p.clip(_CERTAIN, 1 - _CERTAIN)
    return np.where(_open(q), np.log2(np.where(y == 1, p, 1 - p)), 0)


def _drawn(deal: npt.NDArray[Any], at_most: int, seed: int) -> Ints:
    """At most so many decisions, of deals that are drawn whole as far as it goes."""
    deals, which = np.unique(deal, return_inverse=True)
    place = np.random.default_rng([seed, 17]).permutation(len(deals))
    return np.sort(np.argsort(place[which], kind="stable")[:at_most])


def _exactly(
    some: Moments, models: Sequence[Model], floor: float, target: str, of: int, seed: int
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """log2 of what the belief that knows the players gave to what is so: (M, 7); and which rows it may be said of."""
    seat, y = (some.seat + of) % some.position.rules.seats, answers_of(some.hand(of), target)
    out, fine = np.empty(y.shape), np.empty(len(some), np.bool_)
    for begin in range(0, len(some), _EXACT):
        rows = np.arange(begin, min(begin + _EXACT, len(some)))
        seen = some.take(rows).seen_by(0)
        belief = policy_belief(seen, models, floor=floor, keys=row_keys(seed, rows))
        out[rows], fine[rows] = log_told(forecast(belief, seat[rows], [target])[target], y[rows]), belief.ess >= ESS
    if np.isinf(out[fine]).any():
        raise ValueError(
            "the players' models rule out hands that were held: they do not play what they say; give a floor, such as "
            "0.02"
        )
    return out, fine


def share_of(part: Floats, whole: Floats, deal: npt.NDArray[Any]) -> Estimate:
    """The ratio of two sums over decisions; nothing where the whole is not above 0 for sure: it would say nothing."""
    return ratio(part, whole, deal) if clustered(whole, deal).low > 0 else NOTHING
