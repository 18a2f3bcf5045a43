"""The table of conventions: what each kind of move says about the hidden hand of who makes it, and what comes of it.

For a kind of move and a meaning Y the lift is how much likelier Y is, after the move, to the partner that knows how all
play than by the rules alone,

    lift = sum of P_true(Y) / sum of P_rules(Y), over the decisions in which the move was made,

from exact posteriors, not from counts: P_true is the partner's belief with what this move says put in. Beside it stand
the lift over the belief that takes the mover for an innocent reference, and that of the choice alone: over the belief
before the move, to which no more is added than that the mover held the tile. Only decisions with a choice are looked
at, and partners do not know that there was one: so even a belief that is right need not be so in the mean over them.
Still less over those of a kind that hangs on the mover's hand, for that is made where a hidden thing is so; how often Y
is true stands beside the belief and shows by how much it is led astray.

What a kind of move tells is its share of the mutual information of action and hand,

    I = sum over actions a of pi(a) KL(belief after a || belief before),

and so is its excess over the reference under the same belief. Its convention bits are what it adds to
G = KL(belief that knows the policy || belief that takes the mover for the reference).

What a move costs is what the best legal one is worth more, to a judge who hears nobody. A costly signal gives up points
for what it adds to G.

A signal is told apart from a cue as biologists do (Maynard Smith and Harper 2003): it is there because someone listens.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.search.position import mask_of_bits
from agents.search.reading import Model
from domino_env.rules import Rules
from domino_env.tiles import DOUBLES_MASK, NUM_SUITS, NUM_TILES, SUIT_MASK
from experiments.signaling.examples import Example, example
from experiments.signaling.hands import WORLDS, HandLists, by_seat, hand_lists, pieces, said
from experiments.signaling.moves import MOVES, Situation, kinds, made, open_to, situation, touched
from experiments.signaling.record import Moments, Record
from experiments.signaling.statistics import ESS, NOTHING, Estimate, clustered, discoveries, finite, p_value

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]
Values = Callable[[Moments], Floats]  # of M decisions: (M, actions) worth in points
Table = Model | Sequence[Model]  # one player for all seats, or one a seat
Progress = Callable[[int, int], None]

ANY = "any"  # the row of all moves
LEAST = 200  # decisions below which a cell has no number
LEVEL = 0.05  # of false discoveries
CHEAP = 0.5  # points up to which a move counts as one that costs nothing
ADDED = 0.1  # bits added to G above which a move that costs more is a costly signal
TILES = range(8, 17)  # on the line before the decisions that are measured: beliefs are exact there
FLOOR = 0.02
EXAMPLES = 3
_TINY = 1e-9  # of a probability that is no longer open; of bits

# -- what may be meant ----------------------------------------------------------------------------------------------


def _holds(rest: Masks, suits: npt.NDArray[np.uint8], least: int = 1) -> Bools:
    """(K,) whether a hand has so many tiles of one of the suits of a set."""
    out = np.zeros(len(rest), np.bool_)
    for suit in range(NUM_SUITS):
        out |= (suits >> suit & 1 != 0) & (np.bitwise_count(rest & SUIT_MASK[suit]) >= least)
    return out


def _double(rest: Masks, suits: npt.NDArray[np.uint8]) -> Bools:
    return _holds(rest & np.uint32(DOUBLES_MASK), suits)


@dataclass(frozen=True)
class Meaning:
    """Something that a move may mean: a statement about what the mover still holds."""

    name: str
    text: str
    suits: str  # which of `Touched` it is about; it says nothing where there is none
    true: Callable[[Masks, npt.NDArray[np.uint8]], Bools]  # of (K,) hands after the move and sets of suits


MEANINGS: tuple[Meaning, ...] = (
    Meaning("more_opened", "holds two more tiles of the suit that it opened", "opened", lambda h, s: _holds(h, s, 2)),
    Meaning("double_opened", "holds the double of the suit that it opened", "opened", _double),
    Meaning("more_covered", "holds another tile of the suit that it covered", "covered", _holds),
    Meaning("void_left", "holds no tile of the suit that it left alone", "left", lambda h, s: ~_holds(h, s)),
    Meaning("double_left", "holds the double of the suit that it left alone", "left", _double),
    Meaning("partner_suit", "holds a tile of a suit that its partner has opened", "partner", _holds),
)

# -- what is measured of each decision ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """What the partners of M deciders believe of them; nan where there is no belief to speak of."""

    moments: Moments
    before: Floats  # (M, meanings) P_true before the choice: that the mover holds the tile is put in, and no more
    true: Floats  # (M, meanings) after it; nan where a meaning has no suit to be about
    reference: Floats  # (M, meanings) after it, the mover taken for the reference
    rules: Floats  # (M, meanings) after it, by the rules alone
    held: Floats  # (M, meanings) 1 where it is so, else 0
    gap: Floats  # (M, 2) G before and after the move, bits
    told: Floats  # (M, actions) what each action adds to I, bits
    told_reference: Floats  # (M, actions) the same if the mover were the reference, under the same belief

    def __len__(self) -> int:
        return len(self.moments)

    @property
    def good(self) -> Bools:
        """(M,) whether there is a belief."""
        return ~np.isnan(self.gap[:, 0])

    def open(self, number: int) -> Bools:
        """(M,) whether the rules leave open what a meaning says, by its number, and somebody believes something."""
        rules = self.rules[:, number]
        with np.errstate(invalid="ignore"):
            return (rules > _TINY) & (rules < 1 - _TINY) & ~np.isnan(self.true[:, number])


def judge(
    moments: Moments,
    table: Sequence[Model],
    reference: Model,
    *,
    floor: float = FLOOR,
    worlds: int = WORLDS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Judged:
    """What the partners believe before and after each move.

    Args:
        moments: M decisions; those of which a sampled belief is worth fewer than `ESS` worlds have nan, as have those
            that no hands explain by how the table plays.
        table: who plays in each seat, as agents that can be asked.
        reference: an innocent player, for whom the mover may be taken.
        floor: mixes every player's move with a random one, the reference's too.
        worlds: of a sampled belief; seed: of these.
        progress: called with (decisions, decisions in all).

    Raises:
        ValueError: models that cannot be asked, a game without partners, or a reference that rules out, without a
            floor, what the players do.
    """
    rules, n = moments.position.rules, len(moments)
    if not rules.pairs:
        raise ValueError(f"conventions are between partners, and {rules.title} has none")
    figures = {name: np.full((n, len(MEANINGS)), np.nan) for name in ("before", "true", "reference", "rules", "held")}
    gap = np.full((n, 2), np.nan)
    told, told_reference = np.full((2, n, rules.num_actions), np.nan)
    done = 0
    targets = {"gap": gap, "told": told, "told_reference": told_reference, **figures}
    for rows in pieces(moments, [2], worlds):
        for name, values in _judge(moments.take(rows), table, reference, floor, worlds, seed).items():
            targets[name][rows] = values
        done += len(rows)
        if progress is not None:
            progress(done, n)
    endless = np.isinf(gap).any(axis=1)
    if endless.any():
        raise ValueError(
            f"in {int(endless.sum())} of {n} decisions the reference rules out what the players may hold, which is "
            f"infinitely many bits: floor={floor!r} must be above 0"
        )
    return Judged(moments, **figures, gap=gap, told=told, told_reference=told_reference)


def _judge(
    moments: Moments, table: Sequence[Model], reference: Model, floor: float, worlds: int, seed: int
) -> dict[str, Floats]:
    """The figures of `Judged` of so few decisions that all hands can be looked at together."""
    lists = hand_lists(moments, table, reference, floor=floor, worlds=worlds, seed=seed)
    play, legal = said(moments, lists, table, floor)
    innocent, _ = said(moments, lists, [reference] * len(table), floor)
    each, action = np.arange(len(lists.row)), moments.action[lists.row]
    may = legal >> action.astype(np.uint64) & np.uint64(1) != 0
    after = {
        "true": lists.scaled(lists.true * play[each, action]),
        "reference": lists.scaled(lists.reference * innocent[each, action]),
        "rules": lists.scaled(lists.rules * may),
        "before": lists.scaled(lists.true * may),
    }
    out = {name: np.empty((len(moments), len(MEANINGS))) for name in (*after, "held")}
    seen = touched(situation(moments), moments.action)
    tile = np.uint32(1) << (moments.action % NUM_TILES).astype(np.uint32)
    rest, truly = lists.hand & ~tile[lists.row], moments.hand() & ~tile
    for number, meaning in enumerate(MEANINGS):
        suits = getattr(seen, meaning.suits)
        holds = meaning.true(rest, suits[lists.row])
        for name, weight in after.items():
            out[name][:, number] = lists.sums(weight * holds)
        out["held"][:, number] = meaning.true(truly, suits)
        for values in out.values():
            values[suits == 0, number] = np.nan
    out["gap"] = np.stack(
        [lists.divergence(lists.true, lists.reference), lists.divergence(after["true"], after["reference"])], axis=1
    )
    out["told"], out["told_reference"] = (_told(lists, one) for one in (play, innocent))
    worth = np.minimum(lists.worlds(lists.true), lists.worlds(after["true"]))
    bad = ~lists.known | (worth < ESS) | ~(lists.sums(after["true"]) > 0)
    for values in out.values():
        values[bad] = np.nan
    return out


def _told(lists: HandLists, play: Floats) -> Floats:
    """What each action adds to the mutual information of action and hand, in bits: (N, actions)."""
    weighted = lists.true[:, None] * play
    mean = lists.sums(weighted)[lists.row]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(weighted > 0, weighted * np.log2(play / mean), 0.0)
    return lists.sums(terms)


# -- who listens ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heard:
    """What M moves changed in the next decision of another seat, where that had a choice in its next turn."""

    row: Ints  # (H,) number of the move
    bits: Floats  # (H,) KL of what the seat does to what it would do deaf
    rise: dict[str, Floats]  # by kind, (H,) how much likelier it makes a move of this kind than deaf


def listening(
    moments: Moments,
    rows: Ints,
    place: int,
    table: Sequence[Model],
    deaf: Table,
    floor: float = FLOOR,
) -> Heard:
    """How another seat answers a move.

    Args:
        moments: all decisions of some deals; rows: (M,) the moves among them.
        place: of who answers, clockwise from the mover.
        table: who plays in each seat; deaf: the same players without ears for what the mover chose.
        floor: mixes all answers with a random move.

    Raises:
        ValueError: players that cannot be asked.
    """
    key = moments.number
    wanted = key[rows] + place
    found = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    there = np.flatnonzero(key[found] == wanted)
    next_ones = moments.take(found[there])
    seats = moments.position.rules.seats
    without: Sequence[Model] = list(deaf) if isinstance(deaf, list | tuple) else [deaf] * seats  # type: ignore[list-item]
    line = np.arange(len(next_ones))
    hearing, unhearing = (
        by_seat(next_ones.position, players, line, next_ones.hand(), floor)[0] for players in (table, without)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(hearing > 0, hearing * np.log2(hearing / unhearing), 0.0)
    change = hearing - unhearing
    rise = {name: (change * which).sum(axis=1) for name, which in kinds(situation(next_ones)).items()}
    return Heard(there, np.maximum(terms.sum(axis=1), 0.0), rise)


# -- verdicts -------------------------------------------------------------------------------------------------------

SIGNAL, CUE, LEAK, NOISE, OPEN = "signal", "cue", "leak", "noise", "open"


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on; `NOTHING` and None where it was not measured."""

    informative: bool | None  # whether the move says something of the hand that the rules do not
    convention: Estimate  # bits that it adds to G
    excess: Estimate  # bits that it tells beyond the deaf world
    partner: Estimate  # bits by which the partner's next decision hangs on what it has heard of the mover
    opponents: Estimate  # the same of the opponents
    valuable: bool | None  # whether points are lost where its hearer's ears are closed


def verdict(evidence: Evidence) -> str:
    """What a kind of move is.

    * a signal: it adds to G, the partner listens, it tells more than in a world in which nobody can listen (all
      intervals above 0), and it is worth points;
    * a cue: it is informative and the partner uses it, but it tells no more than in the deaf world;
    * a leak: it is informative, and only opponents use it;
    * noise: all else.

    "open" where what was not measured decides.
    """
    names = ("convention", "excess", "partner", "opponents")
    told = [evidence.informative, *(_above(getattr(evidence, name)) for name in names), evidence.valuable]
    worlds = itertools.product(*((True, False) if one is None else (one,) for one in told))
    found = {_verdict(*world) for world in worlds}
    return found.pop() if len(found) == 1 else OPEN


def _above(estimate: Estimate) -> bool | None:
    """Whether the interval lies above 0; None where there is none."""
    return None if math.isnan(estimate.low) else estimate.low > 0


def _verdict(informative: bool, convention: bool, excess: bool, partner: bool, opponents: bool, valuable: bool) -> str:
    if convention and partner and valuable and excess:
        return SIGNAL
    if informative and partner and not excess:
        return CUE
    if informative and opponents and not partner:
        return LEAK
    return NOISE


# -- the table ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """What one kind of move says of one meaning."""

    meaning: str
    lift: Estimate  # P after the move over that by the rules; 1: the move says nothing
    over_reference: Estimate  # the same over the belief that takes the mover for the reference
    alone: Estimate  # the same over the belief before the choice, which has only the tile put in
    innocent: Estimate  # what the reference's move says: its belief over that by the rules
    believed: Estimate  # mean P after the move
    held: Estimate  # how often it is so
    p: float = math.nan  # of the lift being 1, adjusted for all cells of the table; nan without a number
    p_reference: float = math.nan  # of the lift over the reference being 1, likewise

    @property
    def found(self) -> bool:
        """Whether the move says this, at 5 % false discoveries in the table."""
        return self.p < LEVEL

    @property
    def natural(self) -> bool:
        """Whether the reference's move says the same: both lifts lie on one side of 1, and exclude it."""
        one, other = self.innocent, self.lift
        return self.found and not one.covers(1) and (one.mean > 1) == (other.mean > 1) and not math.isnan(one.low)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("lift", "over_reference", "alone", "innocent", "believed", "held")
        plain = {name: getattr(self, name).to_dict() for name in names}
        p = {name: finite(getattr(self, name)) for name in ("p", "p_reference")}
        return {"meaning": self.meaning, **plain, **p, "found": self.found, "natural": self.natural}


@dataclass(frozen=True)
class Row:
    """One kind of move."""

    kind: str
    text: str
    public: bool
    count: int  # decisions in which it was made
    share: Estimate  # of all measured decisions
    frequency: Estimate  # of those in which some legal move was of the kind and some was not
    told: Estimate  # bits of I, a decision in which some legal move is of the kind
    excess: Estimate  # beyond the reference, likewise
    convention: Estimate  # bits that the move adds to G
    partner: Estimate  # bits: the partner's next decision, hearing the mover and deaf to it
    opponents: Estimate  # bits: those of the opponents
    reply: str  # the kind of move that the partner's answer rises most in; "" where none does
    rise: Estimate  # how much more likely that is
    price: Estimate  # points that the move costs by a judge who hears nobody
    value: Estimate  # points a deal that are lost where it is not heard
    cells: tuple[Cell, ...]
    p: float = math.nan  # of the value being 0, adjusted for all kinds of the table; nan without a number

    @property
    def valuable(self) -> bool | None:
        """Whether it is worth points, at 5 % false discoveries in the table; None where that was not measured."""
        return None if math.isnan(self.p) else self.p < LEVEL and self.value.mean > 0

    @property
    def evidence(self) -> Evidence:
        """What the verdict rests on."""
        tested = [cell for cell in self.cells if not math.isnan(cell.p)]
        informative = any(cell.found for cell in tested) if tested else None
        return Evidence(informative, self.convention, self.excess, self.partner, self.opponents, self.valuable)

    @property
    def verdict(self) -> str:
        """See `verdict`."""
        return verdict(self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: getattr(self, name) for name in ("kind", "text", "public", "count", "reply", "verdict")}
        figures = {name: getattr(self, name).to_dict() for name in _FIGURES}
        worth = {"p": finite(self.p), "valuable": self.valuable}
        return {**plain, **figures, **worth, "cells": [cell.to_dict() for cell in self.cells]}


_FIGURES = "share frequency told excess convention partner opponents rise price value".split()


@dataclass(frozen=True)
class Conventions:
    """The table of conventions of one table of players."""

    rules: Rules
    players: tuple[str, ...]  # by seat
    reference: str
    decisions: int  # measured
    left_out: int  # of these, without a belief
    deals: int
    least: int  # decisions below which there is no number
    table: tuple[Row, ...]
    costly: Estimate = NOTHING  # share of costly signals among decisions with a belief and a price
    examples: tuple[Example, ...] = field(default=())
    judged: Judged | None = field(default=None, repr=False, compare=False)  # what it rests on; no part of the data

    def row(self, kind: str) -> Row:
        """The row of a kind of move; "any" for all moves."""
        return next(row for row in self.table if row.kind == kind)

    def most(self, number: int) -> Conventions:
        """The same with only so many kinds of moves, those that were made most often, beside the row of all moves."""
        ranked = sorted((row for row in self.table if row.kind != ANY), key=lambda row: -row.count)
        return dataclasses.replace(self, table=(self.row(ANY), *ranked[:number]))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rules": self.rules.title,
            "players": list(self.players),
            "reference": self.reference,
            **{name: getattr(self, name) for name in ("decisions", "left_out", "deals", "least")},
            "costly": {**self.costly.to_dict(), "price_above": CHEAP, "added_above": ADDED},
            "meanings": {meaning.name: meaning.text for meaning in MEANINGS},
            "rows": [row.to_dict() for row in self.table],
            "examples": [one.to_dict() for one in self.examples],
        }

    def draw(self, axes: Any) -> None:
        """Draw the lifts over the rules: kinds that were made down, meanings across, stars where they are found."""
        shown = [row for row in self.table if row.count]
        lifts = np.array([[cell.lift.mean for cell in row.cells] for row in shown])
        with np.errstate(divide="ignore", invalid="ignore"):
            shades = np.clip(np.log2(lifts), -1, 1)
        axes.imshow(shades, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        for down, across in np.ndindex(lifts.shape):
            cell = shown[down].cells[across]
            if not math.isnan(cell.lift.mean):
                words = f"{cell.lift.mean:.2f}{'*' if cell.found else ''}"
                ink = "white" if abs(shades[down, across]) > 0.7 else "black"
                axes.text(across, down, words, ha="center", va="center", color=ink, fontsize=8)
        axes.set_xticks(range(len(MEANINGS)), [one.name.replace("_", " ") for one in MEANINGS], rotation=30, ha="right")
        axes.set_yticks(range(len(shown)), [f"{row.text} ({row.count:,})" for row in shown])
        axes.set_title(
            "how much likelier than by the rules, after the move (* at 5 % false discoveries)", loc="right", fontsize=9
        )


def conventions(
    record: Record,
    reference: Model,
    *,
    tiles: Collection[int] = TILES,
    deaf: Table | Mapping[int, Table] | None = None,
    price: Values | None = None,
    value: Mapping[str, Estimate] | None = None,
    floor: float = FLOOR,
    worlds: int = WORLDS,
    least: int = LEAST,
    examples: int = EXAMPLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Conventions:
    """The table of conventions.

    Args:
        record: deals with all their decisions, played by agents that can be asked.
        reference: an innocent player. For verdicts it is the same network, trained in a world where nobody can listen.
        tiles: decisions with so many tiles on the line are measured. 0 are the leads, of which beliefs are sampled.
        deaf: the players without ears for what the mover chose, by place of who answers, clockwise from it: 2 does not
            hear its partner, 1 and 3 do not hear their opponents (`players.deaf_to_mover`). One for all places where
            it hears nobody, as of a network; None: no listening.
        price: what a judge who hears nobody thinks that each action is worth, in points; None: no prices.
        value: by kind of move, the points that are lost where it is not heard (`worth.Worths`). A kind is worth them
            where they are above 0 at 5 % false discoveries among the kinds that have a figure.
        floor: mixes every player's move with a random one.
        worlds: of a sampled belief; seed: of these.
        least: decisions below which a cell has no number.
        examples: deals to be drawn, those of the largest gap.
        progress: called with (decisions, decisions in all).

    Raises:
        ValueError: no decision to measure, and as of `judge`.
    """
    if least < 2 or examples < 0:
        raise ValueError(f"least={least!r} must be at least 2 and examples={examples!r} at least 0")
    rows = np.flatnonzero(np.isin(record.moments.tiles, list(tiles)))
    if not len(rows):
        raise ValueError(f"none of {len(record.moments)} decisions has {_spoken(tiles)} tiles on the line")
    models: list[Model] = list(record.table)
    judged = judge(
        record.moments.take(rows), models, reference, floor=floor, worlds=worlds, seed=seed, progress=progress
    )
    moments = judged.moments
    s = situation(moments)
    heard = None
    if deaf is not None:
        twins = deaf if isinstance(deaf, Mapping) else dict.fromkeys((1, 2, 3), deaf)
        heard = {place: listening(record.moments, rows, place, models, twin, floor) for place, twin in twins.items()}
    prices = None if price is None else costs(price(moments), moments)
    worth = value or {}
    found = [ANY, *MOVES]
    if unknown := sorted(set(worth) - set(found)):
        raise ValueError(f"value of {', '.join(unknown)}: there is no such kind of move; there are {', '.join(found)}")
    which = {ANY: np.ones_like(judged.told, np.bool_), **kinds(s)}
    table = [_row(name, which[name], judged, heard, prices, worth.get(name, NOTHING), least) for name in found]
    return Conventions(
        rules=moments.position.rules,
        players=tuple(agent.name for agent in record.table),
        reference=reference if isinstance(reference, str) else getattr(reference, "name", "rules"),
        decisions=len(moments),
        left_out=int((~judged.good).sum()),
        deals=len(record.points),
        least=least,
        table=tuple(_adjusted(table)),
        costly=NOTHING if prices is None else _costly(judged, prices, least),
        examples=tuple(_examples(judged, models, reference, s, floor, worlds, seed, examples)),
        judged=judged,
    )


def _spoken(tiles: Collection[int]) -> str:
    return ", ".join(map(str, sorted(tiles))) or "any number of"


def costs(values: Floats, moments: Moments) -> Floats:
    """(M,) how much better the best legal action is than that which was made: of (M, actions) worth."""
    legal = mask_of_bits(moments.legal)[:, : values.shape[1]] != 0
    best = np.where(legal, values, -np.inf).max(axis=1)
    return best - values[np.arange(len(moments)), moments.action]


def _costly(judged: Judged, prices: Floats, least: int) -> Estimate:
    """How many moves give up points for what they add to G."""
    some = judged.good
    if some.sum() < least:
        return NOTHING
    added = judged.gap[some, 1] - judged.gap[some, 0]
    return clustered((prices[some] > CHEAP) & (added > ADDED), judged.moments.deal[some])


def _row(
    name: str,
    which: Bools,
    judged: Judged,
    heard: Mapping[int, Heard] | None,
    prices: Floats | None,
    value: Estimate,
    least: int,
) -> Row:
    moments = judged.moments
    was = made(which, moments.action)
    could = open_to(which, moments.legal)
    deal = moments.deal

    def mean(values: Floats, rows: Bools) -> Estimate:
        rows = rows & ~np.isnan(values)
        return clustered(values[rows], deal[rows]) if (was & rows).sum() >= least else NOTHING

    may = (which & (mask_of_bits(moments.legal)[:, : which.shape[1]] != 0)).any(axis=1)
    told, beyond = ((values * which).sum(axis=1) for values in (judged.told, judged.told - judged.told_reference))
    partner, opponents, reply, rise = NOTHING, NOTHING, "", NOTHING
    if heard is not None:
        partner, opponents = (_listens(heard, places, was, deal, least) for places in ((2,), (1, 3)))
        reply, rise = _reply(heard[2], was, deal, least)
    kind = MOVES.get(name)
    return Row(
        kind=name,
        text="any move" if kind is None else kind.text,
        public=kind is None or kind.public,
        count=int(was.sum()),
        share=clustered(was, deal) if which.any() else NOTHING,
        frequency=clustered(was[could], deal[could]) if could.sum() >= least else NOTHING,
        told=mean(told, may),
        excess=mean(beyond, may),
        convention=mean(judged.gap[:, 1] - judged.gap[:, 0], was),
        partner=partner,
        opponents=opponents,
        reply=reply,
        rise=rise,
        price=NOTHING if prices is None else mean(prices, was),
        value=value,
        cells=tuple(_cell(number, judged, was, least) for number in range(len(MEANINGS))),
    )


def _listens(heard: Mapping[int, Heard], places: Sequence[int], was: Bools, deal: Ints, least: int) -> Estimate:
    bits = np.concatenate([heard[place].bits[was[heard[place].row]] for place in places])
    units = np.concatenate([deal[heard[place].row[was[heard[place].row]]] for place in places])
    return clustered(bits, units) if len(bits) >= least else NOTHING


def _reply(heard: Heard, was: Bools, deal: Ints, least: int) -> tuple[str, Estimate]:
    """The kind of move that an answer rises most in."""
    some = was[heard.row]
    if some.sum() < least:
        return "", NOTHING
    means = {name: float(values[some].mean()) for name, values in heard.rise.items()}
    best = max(means, key=lambda name: means[name])
    rise = clustered(heard.rise[best][some], deal[heard.row[some]])
    return (best, rise) if rise.low > 0 else ("", rise)


def _cell(number: int, judged: Judged, was: Bools, least: int) -> Cell:
    """The lifts: ratios of sums over decisions, where the rules leave it open whether the meaning is true."""
    some = np.flatnonzero(was & judged.open(number))
    meaning = MEANINGS[number].name
    if len(some) < least:
        return Cell(meaning, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
    deal = judged.moments.deal[some]
    before, true, reference, rules, held = (
        getattr(judged, name)[some, number] for name in ("before", "true", "reference", "rules", "held")
    )

    def ratio(over: Floats, under: Floats) -> Estimate:
        values = np.divide(over, under, out=np.zeros(len(over)), where=under > 0)
        return clustered(values, deal, under)

    return Cell(
        meaning,
        lift=ratio(true, rules),
        over_reference=ratio(true, reference),
        alone=ratio(true, before),
        innocent=ratio(reference, rules),
        believed=clustered(true, deal),
        held=clustered(held, deal),
    )


def _adjusted(table: Sequence[Row]) -> list[Row]:
    """The rows with the p-values of all cells adjusted for their number, and those of all values for theirs."""
    cells = [cell for row in table for cell in row.cells]
    p = discoveries(np.array([p_value(cell.lift, 1.0) for cell in cells]))
    q = discoveries(np.array([p_value(cell.over_reference, 1.0) for cell in cells]))
    done = iter([dataclasses.replace(cell, p=float(a), p_reference=float(b)) for cell, a, b in zip(cells, p, q)])
    worth = discoveries(np.array([p_value(row.value) for row in table]))
    return [
        dataclasses.replace(row, cells=tuple(itertools.islice(done, len(row.cells))), p=float(one))
        for row, one in zip(table, worth)
    ]


def _examples(
    judged: Judged,
    table: Sequence[Model],
    reference: Model,
    s: Situation,
    floor: float,
    worlds: int,
    seed: int,
    count: int,
) -> list[Example]:
    """The moves that add most to the gap, one a deal; none that ends its deal."""
    gain = judged.gap[:, 1] - judged.gap[:, 0]
    out: list[Example] = []
    taken: set[int] = set()
    found = kinds(s)
    for row in np.argsort(-np.where(np.isnan(gain), -np.inf, gain), kind="stable").tolist():
        deal = int(judged.moments.deal[row])
        if len(out) == count or not gain[row] > _TINY:
            break
        if deal in taken:
            continue
        names = [name for name, which in found.items() if which[row, judged.moments.action[row]]]
        one = judged.moments.take(np.array([row]))
        drawn = example(one, table, reference, names, float(gain[row]), floor=floor, worlds=worlds, seed=seed)
        if drawn is not None:
            out.append(drawn)
            taken.add(deal)
    return out
