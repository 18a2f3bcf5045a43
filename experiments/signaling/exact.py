"""What the measures must be, by plain means that share nothing with beliefs: deals are listed and played again.

Of a late position every deal that can be is played from the start, and what the players would have done on the way
weighs it (`by_replay`). Of a game as small as tiny_pairs every deal and every way of playing it is listed, so that the
means over all decisions are known to the last digit (`everything`).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import decide
from agents.search.position import PUBLIC, bound, position_at
from agents.search.reading import Model
from domino_env.deals import struck
from domino_env.engine import make_engine
from domino_env.rules import Rules, get_rules
from domino_env.tiles import NUM_TILES, mask_of, tiles_of
from experiments.enumerate import all_deals
from experiments.signaling.record import Moments, joined, models_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.uint32]

FIGURES = ("told", "reference", "uniform", "entropy", "gap")
MOST = 200_000  # deals of a position that are played again
_ASKED = 1 << 13


def _asked(engine: Any, model: Model, floor: float, rows: Ints) -> Floats:
    """(n, actions) what the movers of some rows would do, by a model of them."""
    legal = engine.legal()[rows].astype(np.float64)
    even = legal / legal.sum(axis=1, keepdims=True)
    if isinstance(model, str):
        return even
    asked: Any = model
    parts = []
    for begin in range(0, len(rows), _ASKED):
        some = rows[begin : begin + _ASKED]
        parts.append(np.asarray(asked.probabilities(decide(engine, asked, rows=some)), np.float64))
    return (1 - floor) * np.concatenate(parts) + floor * even if parts else even


def _lays(engine: Any, model: Model, floor: float, node: Ints, action: Ints) -> Floats:
    """(m,) how likely the movers of some rows, ascending, are to choose these actions, by a model of them."""
    parts = [np.zeros(0)]
    bounds = np.searchsorted(node, np.arange(0, engine.num_envs + _ASKED, _ASKED))
    for number, (begin, end) in enumerate(itertools.pairwise(bounds)):
        if begin < end:
            rows = np.arange(number * _ASKED, min((number + 1) * _ASKED, engine.num_envs))
            parts.append(_asked(engine, model, floor, rows)[node[begin:end] - rows[0], action[begin:end]])
    return np.concatenate(parts)


# -- one position -----------------------------------------------------------------------------------------------------


def deals_of(moments: Moments, number: int, place: int) -> Masks:
    """Every way in which the hidden tiles can lie, by the sizes of the hands: (D, seats) uint32, present hands."""
    position, rules = moments.position, moments.position.rules
    viewer = PUBLIC if place == PUBLIC else int(moments.seat[number] + place) % rules.seats
    hidden = mask_of(rules.tiles) & ~int(np.bitwise_or.reduce(position.played[number]))
    sizes = position.sizes[number].tolist()
    given = {}
    if viewer != PUBLIC:
        given = {viewer: int(moments.hands[number, viewer])}
        hidden &= ~given[viewer]
    count, left = 1, hidden.bit_count()
    for seat, size in enumerate(sizes):
        if seat not in given:
            count, left = count * math.comb(left, size), left - size
    if count > MOST:
        raise ValueError(f"{count:,} deals are too many to be played again one by one; at most {MOST:,} are")

    def ways(seat: int, tiles: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if seat == rules.seats:
            yield ()
        elif seat in given:
            yield from ((given[seat], *others) for others in ways(seat + 1, tiles))
        else:
            for hand in combinations(tiles, sizes[seat]):
                rest = tuple(tile for tile in tiles if tile not in hand)
                yield from ((mask_of(hand), *others) for others in ways(seat + 1, rest))

    return np.array(list(ways(0, tuple(tiles_of(hidden)))), np.uint32)


def by_replay(
    moments: Moments,
    number: int,
    place: int,
    table: Model | Sequence[Model],
    reference: Model | Sequence[Model],
    floor: float = 0.0,
    reference_floor: float = 0.0,
) -> dict[str, float]:
    """The figures of one decision for one observer, by playing every deal that it can be from the start.

    Args:
        moments: decisions; number: which of them; place: of the observer, clockwise from who decides, -1 the public.
        table, reference, floor, reference_floor: as of `information.measure`.
    Returns:
        "told", "reference", "uniform", "entropy" and "gap", in bits.

    Raises:
        ValueError: a position of too many deals.
    """
    position, rules = moments.position, moments.position.rules
    players, others = models_of(table, rules), models_of(reference, rules)
    mover, events = int(moments.seat[number]), position.events
    assert events is not None
    hands = deals_of(moments, number, place)
    dealt = hands | position.played[number]
    if rules.redeal:
        hands, dealt = (part[~struck(dealt)] for part in (hands, dealt))
    engine: Any = make_engine(rules, len(dealt), seed=0)
    engine.deal(dealt, np.full(len(dealt), position.leader[number]))
    weight = np.ones(len(dealt))  # of all but the decider
    own = {"true": np.ones(len(dealt)), "reference": np.ones(len(dealt))}  # of the decider
    for ply, event in enumerate(event for event in events[number].tolist() if event >= 0):
        seat, action = event >> 12, event & 63
        rows = np.flatnonzero(engine.legal()[:, action])
        engine, weight, hands = engine.take(rows), weight[rows], hands[rows]
        own = {name: values[rows] for name, values in own.items()}
        if ply or not bound(rules, np.array([action]))[0]:
            every = np.arange(len(rows))
            if seat == mover:
                own["true"] *= _asked(engine, players[seat], floor, every)[:, action]
                own["reference"] *= _asked(engine, others[seat], reference_floor, every)[:, action]
            else:
                weight *= _asked(engine, players[seat], floor, every)[:, action]
        _, over = engine.step(np.full(len(rows), action), autoreset=False)
        engine, weight, hands = engine.take(~over), weight[~over], hands[~over]
        own = {name: values[~over] for name, values in own.items()}
    every = np.arange(len(hands))
    says = {
        "told": _asked(engine, players[mover], floor, every),
        "reference": _asked(engine, others[mover], reference_floor, every),
        "uniform": _asked(engine, "uniform", 0.0, every),
    }
    return _plainly(hands[:, mover].tolist(), weight * own["true"], weight * own["reference"], says)


def _plainly(held: list[int], true: Floats, reference: Floats, says: dict[str, Floats]) -> dict[str, float]:
    """The figures from a list of deals: the hand of who decides, two weights, and what it would do."""
    beliefs = []
    for weights in (true, reference):
        belief: dict[int, float] = defaultdict(float)
        for hand, weight in zip(held, weights.tolist()):
            belief[hand] += weight / float(weights.sum())
        beliefs.append(belief)
    first = {hand: deal for deal, hand in reversed(list(enumerate(held)))}
    out = {"gap": sum(p * math.log2(p / beliefs[1][hand]) for hand, p in beliefs[0].items() if p)}
    for name, answers in says.items():
        expected, doubt = [0.0] * answers.shape[1], 0.0
        for hand, p in beliefs[0].items():
            for action, chance in enumerate(answers[first[hand]].tolist()):
                if p * chance:
                    expected[action] += p * chance
                    doubt -= p * chance * math.log2(chance)
        whole = -sum(p * math.log2(p) for p in expected if p)
        out[name] = whole - doubt
        if name == "told":
            out["entropy"] = whole
    return out


# -- a whole game -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Everything:
    """All decisions of a small game, and what each tells."""

    places: tuple[int, ...]
    deals: int
    nodes: int  # positions in which a seat moves
    decisions: int  # of them with a choice
    means: dict[str, dict[int, float]]  # of each figure by place of the observer: mean over all decisions of all deals
    some: Moments  # a few of the decisions, drawn among all
    figures: dict[str, Floats]  # (S, places) of these; nan for observers that were not asked for


def everything(
    player: Model,
    reference: Model,
    rules: str | Rules = "tiny_pairs",
    *,
    floor: float = 0.0,
    reference_floor: float = 0.0,
    observer: tuple[int, int] | None = None,
    sample: int = 100,
    seed: int = 0,
) -> Everything:
    """List every deal and every way of playing it, where one player sits in all seats and seat 0 leads.

    Args:
        player: whose decisions are looked at; reference, floor, reference_floor: as of `information.measure`.
        observer: a seat and its hand (a mask): only the deals in which it is dealt that, and only what it sees, which
            takes a small part of the time. None: all deals and all observers.
        sample: decisions that are drawn of each number of plies; seed: of the draw.

    Raises:
        ValueError: a game that is too large (`experiments.enumerate`).
    """
    game = get_rules(rules)
    hands = all_deals(game)
    if observer is not None:
        hands = hands[hands[:, observer[0]] == observer[1]]
    places = tuple(range(1, game.seats))
    engine: Any = make_engine(game, len(hands), seed=0)
    engine.deal(hands, np.zeros(len(hands), np.int64))
    public = np.zeros(len(hands), np.int64)  # number of what all have seen
    factors = {name: np.ones((len(hands), game.seats)) for name in ("true", "reference")}  # of each seat
    models: dict[str, tuple[Model, float]] = {
        "told": (player, floor), "reference": (reference, reference_floor), "uniform": ("uniform", 0.0)
    }  # fmt: skip
    rng, nodes, decisions, reached = np.random.default_rng(seed), 0, 0, 0.0
    sums = {name: dict.fromkeys(places, 0.0) for name in FIGURES}
    weights = dict.fromkeys(places, 0.0)
    drawn: list[Moments] = []
    found: dict[str, list[Floats]] = {name: [] for name in FIGURES}
    while True:
        every, mover, held = np.arange(engine.num_envs), engine.to_move(), engine.hands()
        nodes += len(every)
        node, action = np.nonzero(engine.legal())
        says = {name: _lays(engine, model, share, node, action) for name, (model, share) in models.items()}
        seat = None if observer is None else observer[0]
        values = _of_level(public, mover, held, factors, (node, action), says, places, seat)
        free = engine.legal_count() > 1
        reach = factors["true"].prod(axis=1) * free
        decisions += int((reach > 0).sum())
        reached += float(reach.sum())
        for number, place in enumerate(places):
            asked = ~np.isnan(values["told"][:, number])
            weights[place] += float(reach[asked].sum())
            for name in FIGURES:
                sums[name][place] += float((reach[asked] * values[name][asked, number]).sum())
        rows = np.flatnonzero((reach > 0) & ~np.isnan(values["told"]).all(axis=1))
        rows = np.sort(rng.choice(rows, min(sample, len(rows)), replace=False))
        if len(rows):
            drawn.append(_moments(engine, rows))
            for name in FIGURES:
                found[name].append(values[name][rows])
        after = engine.take(node)
        likely = {"true": says["told"], "reference": says["reference"]}
        _, over = after.step(action, autoreset=False)
        goes = np.flatnonzero(~over & ((likely["true"] > 0) | (likely["reference"] > 0)))
        if not len(goes):
            break
        node, action = node[goes], action[goes]
        for name, chance in likely.items():
            factors[name] = factors[name][node]
            factors[name][np.arange(len(goes)), mover[node]] *= chance[goes]
        public = np.unique(public[node] << 6 | action, return_inverse=True)[1]
        engine = after.take(goes)
    return Everything(
        places=places,
        deals=len(hands),
        nodes=nodes,
        decisions=decisions,
        means={name: {p: sums[name][p] / weights[p] for p in places if weights[p]} for name in FIGURES},
        some=joined(drawn),
        figures={name: np.concatenate(parts) for name, parts in found.items()},
    )


def _of_level(
    public: Ints,
    mover: Ints,
    held: Masks,
    factors: dict[str, Floats],
    lays: tuple[Ints, Ints],
    says: dict[str, Floats],
    places: Sequence[int],
    observer: int | None,
) -> dict[str, Floats]:
    """The figures of all n positions after the same number of actions: (n, places) each.

    Args:
        public, mover: (n,); held: (n, seats) hands; factors: (n, seats) of what each has done, by two models.
        lays: (m,) position, ascending, and action of all that can be done; says: (m,) how likely it is, by each model.

    Whoever observes tells positions apart by what all have seen and by its own hand; of those that it cannot tell
    apart, each weighs what chance and the players make it.
    """
    n, every = len(public), np.arange(len(public))
    out = {name: np.full((n, len(places)), np.nan) for name in FIGURES}
    node, action = lays
    doubt = {name: np.bincount(node, -p * np.log2(np.where(p > 0, p, 1)), minlength=n) for name, p in says.items()}
    own = {name: part[every, mover] for name, part in factors.items()}
    seats = held.shape[1]
    rest = np.prod(np.where(np.arange(seats) == mover[:, None], 1.0, factors["true"]), axis=1)
    hand = held[every, mover].astype(np.int64)
    for number, place in enumerate(places):
        viewer = (mover + place) % seats
        rows = every if observer is None else np.flatnonzero(viewer == observer)
        if not len(rows):
            continue
        name = public[rows] << NUM_TILES | held[rows, viewer[rows]]
        sets, group = np.unique(name, return_inverse=True)

        def shared(values: Floats, group: Ints = group, count: int = len(sets)) -> Floats:
            return np.bincount(group, values, minlength=count).astype(np.float64)

        weight = {name: rest[rows] * part[rows] for name, part in own.items()}
        total = {name: shared(part) for name, part in weight.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            belief = {name: part / total[name][group] for name, part in weight.items()}
        # Both beliefs about the decider's hand: sums over what the others may hold.
        _, same = np.unique(group << NUM_TILES | hand[rows], return_inverse=True)
        of_hand = {name: np.bincount(same, part)[same] for name, part in belief.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(belief["true"] > 0, np.log2(of_hand["true"] / of_hand["reference"]), 0.0)
            out["gap"][rows, number] = shared(belief["true"] * ratio)[group]
        place_of = np.full(n, -1)
        place_of[rows] = np.arange(len(rows))
        asked = np.flatnonzero(place_of[node] >= 0)
        inside = place_of[node[asked]]
        for what, p in says.items():
            keys, entry = np.unique(group[inside] << 6 | action[asked], return_inverse=True)
            expected = np.bincount(entry, belief["true"][inside] * p[asked])
            parts = -expected * np.log2(np.where(expected > 0, expected, 1))
            whole = np.bincount(keys >> 6, parts, minlength=len(sets))
            out[what][rows, number] = (whole - shared(belief["true"] * doubt[what][rows]))[group]
            if what == "told":
                out["entropy"][rows, number] = whole[group]
    return out


def _moments(engine: Any, rows: Ints) -> Moments:
    """Some rows of an engine as decisions; what is done is the first that is legal."""
    some = engine.take(rows)
    legal = some.legal_bits()
    return Moments(
        position=position_at(some, PUBLIC),
        hands=some.hands(),
        legal=legal,
        action=some.legal().argmax(axis=1).astype(np.int64),
        deal=rows.astype(np.int64),
        ply=some.plies().astype(np.int64),
    )
