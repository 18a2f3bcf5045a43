"""What the moves of the others say: the likelihood of their hands, and beliefs that know how the players play.

What a seat does hangs on its own hand and on what is public, so the likelihood of a deal is a product over the seats,

    L_j(h) = product over the past decisions of seat j of pi_j(what it did | h and all it has laid since, public past),

and the belief over the hidden hands is the rules' belief times the product of these, as Lerer, Hu, Foerster and Brown
(2020) keep it for Hanabi. A move that was forced, or that the rules bound the leader to, says no more than that it was
possible; of a pass no more is asked either. The viewer's own factor is a constant and is left out. Each seat has its
own model: the rules alone, playing at random, or any agent that has `probabilities`.

Positions do not tell a match's score: agents that look at it are asked as in a single deal.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agents.base import Agent, need_probabilities, one_hot
from agents.search.beliefs import Belief, RulesBelief, spread, world_marginals
from agents.search.joining import draw_rows, join_rows, subset_rows, sum_hands
from agents.search.position import Position, bound, mask_of_bits, past
from domino_env.deals import GOLDEN, mix, row_keys, struck
from domino_env.decisions import Decisions
from domino_env.line import LineEngine
from domino_env.observation import unpack
from domino_env.rules import Rules
from domino_env.tiles import ALL_TILES, NUM_SUITS, NUM_TILES, PASS, SUIT_MASK

Model = Agent | str | None  # an agent with probabilities(); "rules" or None: every legal move; "uniform": at random
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.uint32]
Bits = npt.NDArray[np.uint64]

_BOTH = np.uint64(1 | 1 << NUM_TILES)  # a hand times this stands for both ends of the lays
_PASS_BIT = np.uint64(1 << PASS)
_PAIRS = 1 << 17  # questions that are worked on at once
_ASKED = 1 << 13  # questions that an agent is asked at once
_ROWS = 1 << 9  # positions whose past is laid out at once
_WORLDS = 1 << 17  # worlds whose hands are told apart at once
_TERMS = 1_000_000  # products of a join up to which `method="auto"` is exact
_TABLE = 20  # hidden tiles up to which the tables of an exact join are reasonable
_SALT = np.uint64(0x5851F42D4C957F2D)  # parts the draws from a sampled belief from those of its candidates


class AsPlayed:
    """An agent whose play is certain, as a model: it plays what `act` answers, with probability 1.

    For a network that plays its likeliest action, and whose `probabilities` say what it thinks instead. A single
    rounding turns such a likelihood to 0: use a floor.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.name = agent.name
        self.needs_history = getattr(agent, "needs_history", False)
        for name in ("chances", "answers"):  # a network is asked about many hands at a fraction of the cost
            if hasattr(agent, name):
                setattr(self, name, functools.partial(getattr(agent, name), certain=True))

    def check(self, rules: Rules) -> None:
        """Refuse a game that the agent does not play, by a ValueError."""
        check = getattr(self.agent, "check", None)
        if check is not None:
            check(rules)

    def act(self, batch: Decisions, /) -> Ints:
        """(N,) int64 what the agent plays."""
        return self.agent.act(batch)

    def probabilities(self, batch: Decisions) -> Floats:
        """(N, actions) float64: 1 for what it plays, else 0."""
        return one_hot(self.agent.act(batch), batch.mask.shape[1])


# -- the past, as questions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Questions:
    """Q past decisions of some positions, by row and ply, without the hands of those who made them."""

    row: Ints  # (Q,) of the position
    seat: Ints  # (Q,) who decided
    action: Ints  # (Q,)
    later: Masks  # (Q,) tiles that the seat laid with this action or later
    chosen: npt.NDArray[np.bool_]  # (Q,) False: the rules bound the leader to the tile
    obs: npt.NDArray[np.uint8]  # (Q, nbytes) packed, no tile in the own hand
    fits: Bits  # (Q,) what would be legal with all tiles in hand; bit PASS: the turn may be ended at will
    history: npt.NDArray[np.int16] | None  # (Q, T) if asked for

    def legal(self, places: Ints, hands: Masks) -> Bits:
        """(E,) uint64 what is legal in the questions at these places, with these hands."""
        legal = hands * _BOTH
        legal &= self.fits[places] & ~_PASS_BIT
        legal |= (legal == 0) * _PASS_BIT
        return cast(Bits, legal | self.fits[places] & _PASS_BIT)


def _questions(position: Position, history: bool) -> _Questions:
    """The past decisions of positions with events."""
    if position.events is None:
        raise ValueError("a belief that reads moves needs the past: these positions have no events")
    if position.rules.chains:
        return _chain_questions(position, history)
    rules, seats = position.rules, position.rules.seats
    events = position.events[:, : int(position.plies.max(initial=0))]
    going = events >= 0
    seat, action = np.where(going, events >> 12, 0), events & 63
    left, right = events >> 9 & 7, events >> 6 & 7
    mine = (seat[:, :, None] == np.arange(seats)) & going[:, :, None]
    tile = np.where(action < PASS, np.uint32(1) << (action % NUM_TILES).astype(np.uint32), np.uint32(0))
    lays = (tile[:, :, None] * mine).astype(np.uint32)
    gone = (action == PASS) & (left < 7)
    lacks = (np.where(gone, 1 << left | 1 << right, 0)[:, :, None] * mine).astype(np.uint8)
    played, voids = np.bitwise_or.accumulate(lays, axis=1) ^ lays, np.zeros_like(lacks)
    if lacks.shape[1]:
        voids[:, 1:] = np.bitwise_or.accumulate(lacks, axis=1)[:, :-1]
    row, ply = np.nonzero(going)
    seat, action = seat[row, ply], action[row, ply]
    played = played[row, ply]
    sizes = rules.hand_size - np.bitwise_count(played).astype(np.int64)
    ends = np.stack([left[row, ply], right[row, ply]], axis=1)
    ends = np.where(ends == 7, -1, ends)
    before = np.where(np.arange(events.shape[1]) < ply[:, None], events[row], -1) if history else None
    engine = LineEngine.standing(
        rules,
        ((1 << sizes) - 1).astype(np.uint32),  # any hands of these sizes: those of the movers are put in later
        played,
        voids[row, ply],
        ends,
        position.leader[row],
        ply,
        before,
    )
    obs, fits = engine.suppose(np.arange(len(row)), np.full(len(row), ALL_TILES, np.uint32))
    later = position.played[row, seat] & ~played[np.arange(len(row)), seat]
    chosen = (ply > 0) | ~bound(rules, action)
    past_events = engine.history() if history and len(row) else None
    return _Questions(row, seat, action, later, chosen, _without_hand(obs), fits, past_events)


def _chain_questions(position: Position, history: bool) -> _Questions:
    """The past decisions of blitz, where a turn may have several: the engine plays them again."""
    parts: list[tuple[Any, ...]] = []
    hands = RulesBelief(position).sample(1, row_keys(0, np.zeros(len(position), np.int64)))[:, 0]
    nothing = LineEngine(position.rules, 1, 0).take(np.zeros(1, np.int64))  # so that there is a part to begin with
    none = np.zeros(0, np.int64)
    obs, fits = nothing.suppose(none, none.astype(np.uint32))
    told = nothing.history()[:0] if history else None
    parts.append((none, none, none, none.astype(np.uint32), none > 0, obs, fits, told))
    for ply in past(position, hands):
        here = np.arange(len(ply.rows))
        obs, fits = ply.engine.suppose(here, np.full(len(here), ALL_TILES, np.uint32))
        told = ply.engine.history() if history else None
        parts.append((ply.rows, ply.seat, ply.action, ply.later, ply.chosen, _without_hand(obs), fits, told))
    *arrays, tolds = zip(*parts)
    joined: list[Any] = [np.concatenate(part) for part in arrays]
    joined.append(np.concatenate(tolds) if history else None)
    order = np.argsort(joined[0], kind="stable")  # by row, then by ply
    ordered: list[Any] = [None if part is None else part[order] for part in joined]
    return _Questions(*ordered)


def _without_hand(obs: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    obs.view("<u4")[:, 0] &= ~np.uint32(ALL_TILES)
    return obs


# -- likelihood -----------------------------------------------------------------------------------------------------


def _checked(models: Sequence[Model], position: Position, floor: float) -> list[Model]:
    """The models of all seats, with None for "rules"; a ValueError for one that cannot be asked."""
    rules = position.rules
    if isinstance(models, str) or not isinstance(models, Sequence) or len(models) != rules.seats:
        raise ValueError(f"models must be a list of {rules.seats}, one for each seat of {rules.name}, not {models!r}")
    if not 0 <= floor <= 1:
        raise ValueError(f"floor={floor!r} must be in 0..1")
    out: list[Model] = []
    for model in models:
        if model is None or model == "rules":
            out.append(None)
        elif isinstance(model, str):
            if model != "uniform":
                raise ValueError(f"unknown model {model!r}: give an agent, 'rules' or 'uniform'")
            out.append(model)
        else:
            need_probabilities(model)
            check_model(model, rules)
            out.append(model)
    return out


def check_model(model: Agent, rules: Rules) -> None:
    """Raise a ValueError for a game that a model does not play, or that a network was not trained for."""
    check = getattr(model, "check", None)
    if check is not None:
        check(rules)
    trained = getattr(model, "rules", rules)  # a network's
    if trained != rules:
        raise ValueError(f"the model {model.name} was trained for {trained.title}, not for {rules.title}")


class _Reader:
    """Answers how likely past decisions are, for the pairs of a seat and a hand that it is asked about."""

    def __init__(self, position: Position, models: list[Model], floor: float) -> None:
        self.position, self.models, self.floor = position, models, floor
        self.history = any(getattr(model, "needs_history", False) for model in models)

    def log_factors(self, row: Ints, seat: Ints, hand: Masks) -> Floats:
        """ln of L_j for P pairs, ordered by row: (P,), from rows of the position, absolute seats and present hands."""
        out = np.zeros(len(row))
        bounds = np.searchsorted(row, np.arange(0, len(self.position) + _ROWS, _ROWS))
        for number, (begin, end) in enumerate(itertools.pairwise(bounds)):
            if begin < end:
                base = number * _ROWS
                asked = _questions(
                    self.position.take(np.arange(base, min(base + _ROWS, len(self.position)))), self.history
                )
                out[begin:end] = self._of(asked, row[begin:end] - base, seat[begin:end], hand[begin:end])
        return out

    def _of(self, asked: _Questions, row: Ints, seat: Ints, hand: Masks) -> Floats:
        seats = self.position.rules.seats
        name = asked.row * seats + asked.seat
        order = np.argsort(name, kind="stable")  # the decisions of a seat stand side by side, oldest first
        name = name[order]
        low, high = (np.searchsorted(name, row * seats + seat, side) for side in ("left", "right"))
        out = np.zeros(len(row))
        upto = np.cumsum(high - low)
        begin = 0
        while begin < len(row):
            past_pairs = upto[begin - 1] if begin else 0
            end = max(int(np.searchsorted(upto, past_pairs + _PAIRS, "right")), begin + 1)
            out[begin:end] = self._chunk(asked, order, low[begin:end], high[begin:end], hand[begin:end])
            begin = end
        return out

    def _chunk(self, asked: _Questions, order: Ints, low: Ints, high: Ints, hand: Masks) -> Floats:
        count = high - low
        pair = np.repeat(np.arange(len(count)), count)
        turn = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)  # which decision of the seat
        place = order[np.repeat(low, count) + turn]
        held = hand[pair] | asked.later[place]
        legal = asked.legal(place, held)
        can = legal >> asked.action[place].astype(np.uint64) & np.uint64(1) != 0
        options = np.bitwise_count(legal).astype(np.float64)
        log = np.where(can, 0.0, -np.inf)
        alive = np.ones(len(count), bool)
        alive[pair[~can]] = False
        read = np.flatnonzero((options > 1) & asked.chosen[place] & alive[pair])
        told = asked.seat[place[read]]
        models = self.models
        for model in {id(model): model for model in models if model is not None}.values():
            mine = np.isin(told, [seat for seat, other in enumerate(models) if other is model])
            here = read[mine]
            if isinstance(model, str):
                log[here] = -np.log(options[here])
            elif hasattr(model, "chances"):
                self._ask(asked, model, here, place, held, legal, options, log)
            else:
                # One decision after the other: a hand that is ruled out needs no more answers.
                for number in range(int(turn[here].max(initial=-1)) + 1):
                    now = here[(turn[here] == number) & alive[pair[here]]]
                    self._ask(asked, model, now, place, held, legal, options, log)
                    alive[pair[now[log[now] == -np.inf]]] = False
        return cast(Floats, np.bincount(pair, log, minlength=len(count)))

    def _ask(
        self,
        asked: _Questions,
        model: Any,
        here: Ints,
        place: Ints,
        held: Masks,
        legal: Bits,
        options: Any,
        log: Floats,
    ) -> None:
        """Fill log[here] with what an agent says."""
        for begin in range(0, len(here), _ASKED):
            some = here[begin : begin + _ASKED]
            which = place[some]
            if hasattr(model, "chances"):
                questions, which_of = np.unique(which, return_inverse=True)
                told = None if asked.history is None else asked.history[questions]
                p = model.chances(
                    asked.obs[questions], told, which_of, held[some], legal[some], asked.action[which]
                ).astype(np.float64)
            else:
                obs = asked.obs[which]
                obs.view("<u4")[:, 0] |= held[some]
                told = (
                    asked.history[which]
                    if getattr(model, "needs_history", False) and asked.history is not None
                    else None
                )
                mask = mask_of_bits(legal[some])
                batch = Decisions(unpack(obs), mask, asked.seat[which], told, rules=self.position.rules)
                p = model.probabilities(batch)[np.arange(len(some)), asked.action[which]].astype(np.float64)
            if self.floor:
                p = (1 - self.floor) * p + self.floor / options[some]
            with np.errstate(divide="ignore"):
                log[some] = np.log(p)


def log_likelihood(
    position: Position, models: Sequence[Model], hands: Masks, floor: float = 0.0
) -> npt.NDArray[np.float64]:
    """How well hands explain what each seat has done, by a model of each.

    Args:
        position: N positions with events.
        models: one for each absolute seat: an agent with `probabilities`, "uniform" (one over the number of legal
            moves), or "rules" or None (1 for what was legal).
        hands: (N, M, seats) uint32, what each seat would hold now in M worlds.
        floor: mixes every model's move with a random one, so that no possible move has probability 0:
            (1 - floor) pi + floor / number of legal moves.

    Returns:
        (N, M, seats) float64, ln of the factor L_j of each seat, -inf where it cannot be; 0 for the viewer's own seat,
        whose factor is the same in all worlds.

    Raises:
        ValueError: positions without events, models that cannot be asked, a floor out of 0..1.
    """
    checked = _checked(models, position, floor)
    hands = np.asarray(hands)
    n, seats = len(position), position.rules.seats
    if hands.ndim != 3 or hands.shape[0] != n or hands.shape[2] != seats or hands.dtype.kind not in "iu":
        raise ValueError(f"hands must be ({n}, worlds, {seats}) masks of tiles, not {hands.dtype} {hands.shape}")
    out = np.zeros(hands.shape)
    step = max(_WORLDS // max(hands.shape[1], 1), 1)
    for begin in range(0, n, step):
        rows = np.arange(begin, min(begin + step, n))
        out[rows] = _factors(position.take(rows), checked, hands[rows], floor)
    return out


def log_factors(
    position: Position,
    models: Sequence[Model],
    row: npt.NDArray[Any],
    seat: npt.NDArray[Any],
    hands: Masks,
    floor: float = 0.0,
) -> Floats:
    """`log_likelihood` of single hands of single seats: ln of L_j, whoever views the positions.

    Args:
        row: (P,) rows of the position, ascending; seat: (P,) whose hand; hands: (P,) uint32 what it would hold now.
    Returns:
        (P,) float64, -inf where the seat cannot have done with this hand what it did.

    Raises:
        ValueError: as of `log_likelihood`, or rows out of order.
    """
    checked = _checked(models, position, floor)
    row, seat, hands = np.asarray(row, np.int64), np.asarray(seat, np.int64), np.asarray(hands, np.uint32)
    if row.ndim != 1 or not row.shape == seat.shape == hands.shape or (np.diff(row) < 0).any():
        shapes = f"{row.shape}, {seat.shape} and {hands.shape}"
        raise ValueError(f"row, ascending, seat and hands must be of one length, not {shapes}")
    return _Reader(position, checked, floor).log_factors(row, seat, hands)


def _factors(position: Position, models: list[Model], hands: Masks, floor: float) -> Floats:
    """`log_likelihood` of so few worlds that all their hands can be looked at together."""
    seats, out = position.rules.seats, np.zeros(hands.shape)
    asks = np.arange(seats) != position.viewer[:, None]
    row, world, seat = np.nonzero(np.broadcast_to(asks[:, None], hands.shape))
    # Worlds share hands: each is read once for a row and a seat.
    name = (row * seats + seat) << NUM_TILES | hands[row, world, seat].astype(np.int64)
    names, back = np.unique(name, return_inverse=True)
    where = names >> NUM_TILES
    reader = _Reader(position, models, floor)
    found = reader.log_factors(where // seats, where % seats, (names & ALL_TILES).astype(np.uint32))
    out[row, world, seat] = found[back]
    return out


# -- beliefs --------------------------------------------------------------------------------------------------------


def _settings(
    models: Sequence[Model], position: Position, floor: float, temperature: float
) -> tuple[list[Model], float]:
    """The checked models and the temperature; at an infinite one only the rules are left."""
    checked = _checked(models, position, floor)
    if not temperature > 0:
        raise ValueError(f"temperature={temperature!r} must be above 0")
    if math.isinf(temperature):
        return [None] * len(checked), 1.0
    return checked, temperature


class ReadBelief(Belief):
    """A belief that knows how the players play."""

    fell_back: npt.NDArray[np.bool_]  # (N,) no deal explains the moves by these models: the row has the rules' belief


class ExactBelief(ReadBelief):
    """The rules' belief times what each seat's moves say, summed over all deals.

    It keeps some 60 bytes for every hand that a seat may hold: half a megabyte a position at ply 8.
    """

    def __init__(
        self,
        position: Position,
        models: Sequence[Model],
        *,
        floor: float = 0.0,
        temperature: float = 1.0,
        redeal: bool | None = None,
        rules: RulesBelief | None = None,
    ) -> None:
        """Sum over all deals. Arguments and errors as of `policy_belief`; `rules` spares the work of making it."""
        super().__init__(position)
        models, temperature = _settings(models, position, floor, temperature)
        self.rules_belief = RulesBelief(position, redeal) if rules is None else rules
        self._cases = cases = self.rules_belief.cases
        most = int(np.bitwise_count(cases.hidden).max(initial=0))
        if most > _TABLE:
            raise ValueError(
                f"{most} hidden tiles are too many for method='exact', which takes {_TABLE}; use 'sampled'"
            )
        groups = cases.sizes.shape[1]
        width = _choose(np.bitwise_count(cases.may & cases.hidden[:, None]), cases.sizes)
        width[cases.sizes == 0] = 0
        self._first = np.concatenate([[0], np.cumsum(width)])
        hands, self._squeezed = np.empty((2, self._first[-1]), np.int64)
        subset_rows(cases.may, cases.sizes, cases.hidden, self._first, hands, self._squeezed)
        case, self._group = np.divmod(np.repeat(np.arange(width.size), width.ravel()), groups)
        self._row, self._hand = cases.row[case], hands
        self._hits = hands & cases.reach[case] != 0
        log = np.zeros(len(hands))
        seats = np.flatnonzero(self._group < groups - 1)
        masks = hands[seats].astype(np.uint32)
        if any(model is not None for model in models):
            found = _Reader(position, models, floor).log_factors(self._row[seats], self._group[seats], masks)
            log[seats] = found / temperature
        dealt = masks | cases.played[case[seats], self._group[seats]].astype(np.uint32)
        barred = np.zeros(len(hands), bool)
        barred[seats] = self.rules_belief.redeal[self._row[seats]] & struck(dealt[:, None])  # S4
        log[barred] = -np.inf
        mass, self._case_total = np.zeros(len(hands)), np.zeros(len(cases.row))
        self._join(np.arange(len(cases.row)), log, mass)
        self.fell_back = ~(cases.add(self._case_total, len(self)) > 0)
        again = np.flatnonzero(self.fell_back[cases.row])
        if len(again):
            log = np.where(self.fell_back[self._row], np.where(barred, -np.inf, 0), log)
            self._join(again, log, mass)
        self._total = cases.add(self._case_total, len(self))
        self._share = mass / self._total[self._row]  # (P,) probability of the case with this hand

    def _join(self, which: Ints, log: Floats, mass: Floats) -> None:
        """Sum over the deals of some cases; the likeliest hand of each row's group is scaled to weigh 1."""
        name = self._row * self._cases.sizes.shape[1] + self._group
        self._top = np.full((len(self), self._cases.sizes.shape[1]), -np.inf)  # ln of the scale
        np.maximum.at(self._top.reshape(-1), name, log)
        self._top[np.isinf(self._top)] = 0
        self._scaled = log - self._top.reshape(-1)[name]
        self._weight = np.exp(self._scaled)
        arguments = (which, self._cases.sizes, self._first, self._squeezed, self._weight, self._hits)
        work = 1000 * len(which)  # a guess: only very few problems are not worth another core
        spread(join_rows, len(which), work, *arguments, self._cases.reach != 0, mass, self._case_total)

    def _sums(self) -> tuple[Floats, Floats]:
        n, groups = self._top.shape
        tiles, suits = np.zeros((n, groups, NUM_TILES)), np.zeros((n, groups, NUM_SUITS))
        sum_hands(self._row, self._group, self._hand, self._share, tiles, suits)
        return tiles, suits

    def marginals(self) -> Floats:
        """P(group holds tile): (N, seats + 1, 28) float64, exact; the last group: nobody was dealt it."""
        return self.own_marginals() + self._sums()[0].clip(0, 1)

    def holds(self) -> Floats:
        """P(seat holds at least one tile of suit k): (N, seats, 7) float64, exact."""
        out = self._sums()[1][:, :-1].clip(0, 1)
        rows = np.flatnonzero(self.position.viewer >= 0)
        out[rows, self.position.viewer[rows]] = self.position.own[rows, None] & SUIT_MASK != 0
        return out

    def entropy(self) -> Floats:
        """Entropy of the hidden hands in bits: (N,) float64, exact."""
        held = np.flatnonzero(self._share)
        mean = np.bincount(self._row[held], self._share[held] * self._scaled[held], minlength=len(self))
        return np.maximum(np.log(self._total) - mean, 0) / math.log(2)

    def log2_probability(self, hands: Masks) -> Floats:
        """log2 of the probability of these hands: (N,) float64. Hands as of `Belief.log2_probability`."""
        fits = np.flatnonzero(self.rules_belief.fits(hands))
        out = np.full(len(self), -np.inf)
        groups = self._top.shape[1]
        name = self._row * groups + self._group << NUM_TILES | self._hand
        order = np.argsort(name, kind="stable")  # where a row has several cases, any will do: before the lead
        row, seat = (part.ravel() for part in np.meshgrid(fits, np.arange(groups - 1), indexing="ij"))
        asked = seat != self.position.viewer[row]
        row, seat = row[asked], seat[asked]
        wanted = row * groups + seat << NUM_TILES | np.asarray(hands)[row, seat].astype(np.int64)
        found = order[np.searchsorted(name, wanted, sorter=order)] if len(wanted) else wanted
        log = np.bincount(row, self._scaled[found], minlength=len(self)) - np.log(self._total)
        out[fits] = log[fits] / math.log(2)
        return out

    def hands_of(self, row: int, seat: int) -> tuple[Masks, Floats]:
        """What one seat may hold, and how likely: (K,) uint32 ascending and (K,) float64 that add up to 1.

        Seat `seats` stands for the tiles that nobody was dealt.
        """
        mine = np.flatnonzero((self._row == row) & (self._group == seat))
        hands, back = np.unique(self._hand[mine], return_inverse=True)
        return hands.astype(np.uint32), cast(Floats, np.bincount(back, self._share[mine], minlength=len(hands)))

    def hand_lists(self, seat: npt.NDArray[Any]) -> tuple[Ints, Masks, Floats]:
        """What one seat of each row may hold, and how likely: `hands_of` for all rows at once.

        Args:
            seat: (N,) one a row, `seats` for the tiles that nobody was dealt. The viewer's own has no list.
        Returns:
            (K,) int64 row, (K,) uint32 hands and (K,) float64 probabilities, ordered by row, then by hand. The hands
            are all that fit in the groups by size and passes, with probability 0 where no deal has them: a list does
            not hang on the models, and those of other models for the same positions stand beside it.
        """
        mine = np.flatnonzero(self._group == np.asarray(seat)[self._row])
        name = self._row[mine] << NUM_TILES | self._hand[mine]
        names, share = name, self._share[mine]
        if not (name[1:] > name[:-1]).all():  # several cases of a row, before the lead
            names, back = np.unique(name, return_inverse=True)
            share = cast(Floats, np.bincount(back, share, minlength=len(names)))
        return names >> NUM_TILES, (names & ALL_TILES).astype(np.uint32), share

    def sample(self, worlds: int, keys: Bits, start: int = 0) -> Masks:
        """Independent deals, each with its probability; as of `Belief.sample`."""
        keys, cases, position = self._keys(worlds, keys, start), self._cases, self.position
        drawn = np.empty((len(self), worlds, cases.sizes.shape[1]), np.int64)
        lists = (cases.sizes, cases.hidden, self._first, self._squeezed, self._weight, self._hits, cases.reach != 0)
        work = 1000 * len(self)
        spread(draw_rows, len(self), work, cases.first, self._case_total, *lists, keys, start, drawn)
        hands = drawn[:, :, :-1].astype(np.uint32)
        rows = np.flatnonzero(position.viewer >= 0)
        hands[rows, :, position.viewer[rows]] = position.own[rows, None]
        return hands


def _choose(n: npt.NDArray[Any], k: Ints) -> Ints:
    """Binomial coefficients."""
    return _BINOMIAL[n.astype(np.int64), k]


_BINOMIAL = np.array([[comb(n, k) for k in range(NUM_TILES + 1)] for n in range(NUM_TILES + 1)])


class SampledBelief(ReadBelief):
    """Worlds of the rules' belief, weighted by what each seat's moves say (importance sampling).

    `ess` (N,) tells how many independent worlds they are worth (Kong 1992): where it is small, all that is said here is
    rough, the entropy and the probabilities of single deals most of all.
    """

    def __init__(
        self,
        position: Position,
        models: Sequence[Model],
        *,
        candidates: int = 1000,
        keys: Bits | None = None,
        floor: float = 0.0,
        temperature: float = 1.0,
        redeal: bool | None = None,
        rules: RulesBelief | None = None,
    ) -> None:
        """Draw and weigh the worlds. Arguments and errors as of `policy_belief`; `rules` spares work."""
        super().__init__(position)
        self._models, self._temperature = _settings(models, position, floor, temperature)
        self._floor = floor
        if candidates < 1:
            raise ValueError(f"candidates={candidates!r} must be at least 1")
        self.rules_belief = RulesBelief(position, redeal) if rules is None else rules
        keys = row_keys(0, np.zeros(len(position), np.int64)) if keys is None else keys
        self.hands = self.rules_belief.sample(candidates, keys)  # (N, candidates, seats) uint32
        log = self._read(self.hands)
        top = log.max(axis=1)
        self.fell_back = np.isinf(top)
        log[self.fell_back], top[self.fell_back] = 0, 0
        weights = np.exp(log - top[:, None])
        total = weights.sum(axis=1)
        self.ess = total**2 / (weights**2).sum(axis=1)
        self.weights = weights / total[:, None]  # (N, candidates) float64, rows add up to 1
        self._log = np.where(self.weights > 0, log, 0)
        self._mean = np.log(total / candidates) + top  # (N,) ln of the mean likelihood

    def _read(self, hands: Masks) -> Floats:
        """(N, M) ln of the likelihood of worlds."""
        return log_likelihood(self.position, self._models, hands, self._floor).sum(axis=2) / self._temperature

    def _sums(self) -> tuple[Floats, Floats]:
        row = np.repeat(np.arange(len(self)), self.hands.shape[1])
        hands = self.hands.reshape(-1, self.hands.shape[2])
        return world_marginals(self.position, row, hands, self.weights.ravel())

    def marginals(self) -> Floats:
        """P(group holds tile): (N, seats + 1, 28) float64, by the worlds; the last group: nobody was dealt it."""
        return self._sums()[0]

    def holds(self) -> Floats:
        """P(seat holds at least one tile of suit k): (N, seats, 7) float64, by the worlds."""
        return self._sums()[1]

    def entropy(self) -> Floats:
        """Entropy of the hidden hands in bits: (N,) float64, an estimate that only a large `ess` makes good."""
        mean = (self.weights * self._log).sum(axis=1)
        return np.maximum(self.rules_belief.entropy() + (self._mean - mean) / math.log(2), 0)

    def log2_probability(self, hands: Masks) -> Floats:
        """log2 of the probability of these hands, which need not be among the worlds: (N,) float64, an estimate."""
        log = self._read(self._hands(hands)[:, None])[:, 0]
        log[self.fell_back] = 0
        return self.rules_belief.log2_probability(hands) + (log - self._mean) / math.log(2)

    def sample(self, worlds: int, keys: Bits, start: int = 0) -> Masks:
        """Draws from the weighted worlds, with replacement; as of `Belief.sample`."""
        keys = self._keys(worlds, keys, start)
        number = np.arange(start, start + worlds).astype(np.uint64)
        mark = _uniforms(keys[:, None] ^ _SALT, number)
        upto = np.cumsum(self.weights, axis=1)
        upto /= upto[:, -1:]
        last = self.hands.shape[1] - 1
        place = np.stack([np.searchsorted(row, marks, "right") for row, marks in zip(upto, mark)])
        place = np.minimum(place, last)
        return np.take_along_axis(self.hands, place[:, :, None], axis=1)


def _uniforms(keys: Bits, number: Bits) -> Floats:
    """Uniform numbers in [0, 1) by key and number."""
    x = mix(keys ^ mix(number + GOLDEN))
    return cast(Floats, (x >> np.uint64(11)) * 2.0**-53)


class SplitBelief(ReadBelief):
    """Beliefs of several kinds, each about some rows."""

    def __init__(self, position: Position, parts: Sequence[tuple[Ints, ReadBelief]]) -> None:
        """parts: row numbers and a belief about these rows; together they are all rows, each once."""
        super().__init__(position)
        self.parts = list(parts)
        self.ess = self._all([part.ess for _, part in parts])
        self.fell_back = self._all([part.fell_back for _, part in parts])

    def _all(self, values: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        out = np.empty((len(self), *values[0].shape[1:]), values[0].dtype)
        for (rows, _), value in zip(self.parts, values):
            out[rows] = value
        return out

    def marginals(self) -> Floats:
        """P(group holds tile): (N, seats + 1, 28) float64."""
        return self._all([part.marginals() for _, part in self.parts])

    def holds(self) -> Floats:
        """P(seat holds at least one tile of suit k): (N, seats, 7) float64."""
        return self._all([part.holds() for _, part in self.parts])

    def entropy(self) -> Floats:
        """Entropy of the hidden hands in bits: (N,) float64."""
        return self._all([part.entropy() for _, part in self.parts])

    def log2_probability(self, hands: Masks) -> Floats:
        """log2 of the probability of these hands: (N,) float64."""
        hands = self._hands(hands)
        return self._all([part.log2_probability(hands[rows]) for rows, part in self.parts])

    def sample(self, worlds: int, keys: Bits, start: int = 0) -> Masks:
        """Hands drawn from the belief of each row; as of `Belief.sample`."""
        keys = self._keys(worlds, keys, start)
        return self._all([part.sample(worlds, keys[rows], start) for rows, part in self.parts])


def join_terms(rules: RulesBelief) -> Ints:
    """Products of the largest sum of an exact join: (N,) int64; 2 ** 62 where its tables would be too large."""
    cases = rules.cases
    terms = np.ones(len(cases.row), np.int64)
    for case, sizes in enumerate(cases.sizes.tolist()):
        held = [size for size in sizes if size > 0]
        m = sum(held)
        if m > _TABLE:
            terms[case] = 1 << 62
            continue
        for k in range(1, len(held)):
            upto = sum(held[: k + 1])
            terms[case] = max(terms[case], comb(m, upto) * comb(upto, held[k]))
    out = np.ones(len(rules), np.int64)
    np.maximum.at(out, cases.row, terms)
    return out


def policy_belief(
    position: Position,
    models: Sequence[Model],
    *,
    method: str = "auto",
    candidates: int = 1000,
    keys: Bits | None = None,
    floor: float = 0.0,
    temperature: float = 1.0,
    redeal: bool | None = None,
) -> ReadBelief:
    """What a viewer may believe that knows how the others play.

    Args:
        position: N positions with events.
        models: one for each absolute seat, as of `log_likelihood`; the viewer's own is not asked.
        method: "exact" sums over all deals, for at most 20 hidden tiles; "sampled" weighs worlds of the rules' belief;
            "auto" is exact in the rows in which that takes at most about a million products.
        candidates: worlds of a sampled belief; keys: (N,) uint64, their random streams (None: the same for all rows).
        floor: mixes every model's move with a random one, see `log_likelihood`; 1 is playing at random.
        temperature: the likelihood of a deal is taken to the power of 1 / temperature; infinite: the rules alone.
        redeal: whether struck hands were dealt again (S4), as of `RulesBelief`.

    Returns:
        an `ExactBelief`, a `SampledBelief`, or where the rows differ a `SplitBelief`. Rows in which no deal explains
        the moves have the rules' belief, and `fell_back` says so.

    Raises:
        ValueError: what cannot be asked or is out of range, or a row that no deal fits by the rules.
    """
    if method not in ("auto", "exact", "sampled"):
        raise ValueError(f"unknown method {method!r}; choose from auto, exact, sampled")
    shared: dict[str, Any] = {"floor": floor, "temperature": temperature, "redeal": redeal}
    if method == "exact":
        return ExactBelief(position, models, **shared)
    rules = RulesBelief(position, redeal)
    late = join_terms(rules) <= _TERMS if method == "auto" else np.zeros(len(position), bool)
    if late.all() and len(late):
        return ExactBelief(position, models, **shared, rules=rules)
    if not late.any():
        return SampledBelief(position, models, candidates=candidates, keys=keys, **shared, rules=rules)
    parts: list[tuple[Ints, ReadBelief]] = []
    for rows in (np.flatnonzero(late), np.flatnonzero(~late)):
        some = position.take(rows)
        if late[rows[0]]:
            parts.append((rows, ExactBelief(some, models, **shared)))
        else:
            key = None if keys is None else keys[rows]
            parts.append((rows, SampledBelief(some, models, candidates=candidates, keys=key, **shared)))
    return SplitBelief(position, parts)


def ladder(
    position: Position, reference: Model | Sequence[Model], true: Model | Sequence[Model], **settings: Any
) -> dict[str, Belief]:
    """The four beliefs by which signals are measured, from what all know to what only the table's players know.

    Args:
        position: N positions with events.
        reference: an innocent player, for all seats, or a list of one a seat; true: those who played, likewise.
        settings: as of `policy_belief`.

    Returns:
        "rules" (what the rules say), "uniform" (all play at random), "reference" and "true".
    """
    seats = position.rules.seats

    def each(models: Model | Sequence[Model]) -> Sequence[Model]:
        return list(models) if isinstance(models, list | tuple) else [cast(Model, models)] * seats

    return {
        "rules": RulesBelief(position, settings.get("redeal")),
        "uniform": policy_belief(position, ["uniform"] * seats, **settings),
        "reference": policy_belief(position, each(reference), **settings),
        "true": policy_belief(position, each(true), **settings),
    }
