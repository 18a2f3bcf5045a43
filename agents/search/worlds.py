"""Worlds as a player imagines them: hidden hands that fit what it knows, and how much each of them counts.

By the rules alone every deal that fits is as likely as any other, and worlds are drawn independently. Where a model of
the others is given, many such deals are drawn first as candidates, each is weighed by how likely the others' past moves
were with its hands, and the worlds are drawn from them by these weights: importance sampling with resampling (Rubin
1987), the systematic kind (Kitagawa 1996).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agents.base import Agent, Decisions, make_agent, need_probabilities
from agents.search.beliefs import RulesBelief
from agents.search.position import Position
from agents.search.reading import AsPlayed, check_model, log_likelihood
from domino_env.deals import Streams
from domino_env.rules import Rules
from domino_env.tiles import is_whole

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]
Masks = npt.NDArray[np.uint32]

LIMIT = 1_000_000  # worlds or candidates
READS = ("all", "partner", "opponents", "none")
#: Candidates for each world where a model is given and their number is not.
CANDIDATES = 10
#: How much is believed of a model: likelihoods to the power of 1 / TEMPERATURE, and FLOOR of its moves at random. Who
#: sits there may play otherwise, and a product of many likelihoods is sure of itself.
TEMPERATURE = 1.7
FLOOR = 0.05
#: Of the moves of opponents who are known to play as the model does: they never stray, but numbers are rounded.
KNOWN_FLOOR = 0.01
_KNOWN = ("rules", "uniform")  # models without an agent
_SALT = np.uint64(0x5EEDED5A17D0F00D)  # the resampling's own chance, apart from that of the candidates


@dataclass(frozen=True)
class Worlds:
    """K worlds for each of N positions. Equal worlds stand once: the others of them have weight 0."""

    hands: Masks  # (N, K, seats) what each seat holds now
    weights: Floats  # (N, K), each row adds up to 1
    ess: Floats  # (N,) effective number of the draws that the weights stand for (Kish); `draws` where all count alike
    mass: Floats  # (N,) log of the mean weight of the candidates; 0 without a model, -inf where they fell back
    draws: int  # candidates or worlds drawn for each position

    @property
    def fell_back(self) -> npt.NDArray[np.bool_]:
        """(N,) the model rules out every candidate; they then count by the rules alone."""
        return np.isneginf(self.mass)

    def take(self, rows: npt.NDArray[Any]) -> Worlds:
        """The same of only these positions."""
        return Worlds(self.hands[rows], self.weights[rows], self.ess[rows], self.mass[rows], self.draws)


class Imagination:
    """Draws worlds for positions, by the rules or by what the others' moves say under a model of them."""

    def __init__(
        self,
        worlds: int = 30,
        candidates: int | None = None,
        model: Agent | str | None = None,
        temperature: float = TEMPERATURE,
        floor: float = FLOOR,
        reads: str = "all",
        known: bool = False,
        trust: float | None = None,
        other: Agent | str | None = None,
    ) -> None:
        """Takes the options.

        Args:
            worlds: how many to draw.
            candidates: deals that the worlds are chosen from, at least as many; 0: no model is asked. None: ten for
                each world where there is a model, else 0.
            model: how the others play: an agent that can say its probabilities, its name or the folder of a
                checkpoint; "uniform" (all legal moves alike likely); "rules" or None (moves say nothing).
            temperature: likelihoods count to the power of one over this; > 0.
            floor: share of its moves that the model makes at random, 0..1.
            reads: whose moves are read: "all" others, the "partner", the "opponents", or "none", for the same player
                that takes no hint: candidates are drawn as ever, but all count alike. Of the others it is known what
                they could do, and no more.
            known: the opponents are the model itself. Their moves are then read as it plays them (a network that plays
                its likeliest action would have played no other), with temperature 1 and hardly a floor; the partner's
                as ever.
            trust: how likely it is that a side plays as the model does, 0..1, before it has made a move; its moves
                themselves then say more and more which it is. Else it is the other player, and its choices are weaker
                evidence: that one's probabilities to the power of one over the temperature, times those of a player
                that makes any move, to the power of the rest. None: all sides are the model.
            other: who a side may be instead, as the model; None: the model itself.

        Raises:
            ValueError: anything out of these.
        """
        if not isinstance(known, bool):
            raise ValueError(f"known={known!r} must be true or false")
        if known and (model is None or model in _KNOWN):
            raise ValueError("known=true needs a model=… that plays, which the opponents are known to be")
        if trust is not None and (model is None or model in _KNOWN):
            raise ValueError(f"trust={trust!r} needs a model=… that plays, which is trusted so much")
        if other is not None and trust is None:
            raise ValueError(f"other={_called(other)} needs trust=…, how likely it is that a side is the model instead")
        if not is_whole(worlds) or not 1 <= worlds <= LIMIT:
            raise ValueError(f"worlds={worlds!r} must be a whole number in 1..{LIMIT}")
        if candidates is not None and (not is_whole(candidates) or not 0 <= candidates <= LIMIT):
            raise ValueError(f"candidates={candidates!r} must be a whole number in 0..{LIMIT}")
        if candidates and model is None:
            raise ValueError(f"candidates={candidates} need a model=… of how the others play, which weighs them")
        if candidates and candidates < worlds:
            raise ValueError(f"candidates={candidates} must be at least worlds={worlds}, or 0 for worlds by the rules")
        if not is_number(temperature) or not 0 < temperature < np.inf:
            raise ValueError(f"temperature={temperature!r} must be a number > 0")
        if not is_number(floor) or not 0 <= floor <= 1:
            raise ValueError(f"floor={floor!r} must be a number in 0..1")
        if trust is not None and (not is_number(trust) or not 0 <= trust <= 1):
            raise ValueError(f"trust={trust!r} must be a number in 0..1")
        if trust is not None and known:
            raise ValueError(f"trust={trust!r} does not go with known=true, which is sure of the opponents")
        if trust is not None and temperature < 1:
            raise ValueError(f"temperature={temperature!r} must be at least 1 where trust={trust!r} is given")
        if reads not in READS:
            raise ValueError(f"reads={reads!r} is unknown; choose from {', '.join(READS)}")
        self.model: Agent | str | None = model
        if model is not None and model not in _KNOWN:
            self.model = _model(model)
        self.other = self.model if other is None else _model(other, "other")
        if candidates is None:
            candidates = 0 if model is None else CANDIDATES * worlds
        self.worlds, self.candidates = int(worlds), int(candidates)
        self.temperature, self.floor, self.reads = float(temperature), float(floor), reads
        self.known, self.trust = known, trust
        self._opponents = self.model
        if getattr(self.model, "sample", None) is False:  # a network that plays its likeliest action
            self._opponents = AsPlayed(cast(Agent, self.model))

    def check(self, rules: Rules) -> None:
        """Raises a ValueError for a game that the model does not play, or without the seats that are read."""
        if self.reads in ("partner", "opponents") and not rules.pairs:
            raise ValueError(f"reads={self.reads}: {rules.name} is played without partners")
        for model in (self.model, self.other):
            if model is not None and not isinstance(model, str):
                check_model(model, rules)

    def options(self) -> list[str]:
        """The options as they stand in the name of a player: "worlds=30" and so on."""
        said = [f"worlds={self.worlds}", f"candidates={self.candidates}"]
        if self.candidates:
            said += [f"model={_called(self.model)}", f"temperature={self.temperature:g}", f"floor={self.floor:g}"]
            said += [f"reads={self.reads}"] if self.reads != "all" else []
            said += ["known=true"] if self.known else []
            said += [f"trust={self.trust:g}"] if self.trust is not None else []
            said += [f"other={_called(self.other)}"] if self.other is not self.model else []
        return said

    def draw(self, position: Position, keys: Keys, start: int = 0, worlds: int | None = None) -> Worlds:
        """Worlds for every position; a row depends only on itself and its key.

        Args:
            position: N rows with a seat as viewer; with events where a model is asked.
            keys: (N,) uint64, the chance of each row.
            start: number of the first world: draws of the same keys from other numbers on are other, independent ones.
            worlds: how many; None: as given to the imagination.

        Raises:
            ValueError: a row that no deal fits, even if nobody's passes counted.
        """
        count = self.worlds if worlds is None else worlds
        if not self.candidates:
            hands = lenient(position).sample(count, keys, start)
            n = len(position)
            return Worlds(hands, _copies(hands) / count, np.full(n, float(count)), np.zeros(n), count)
        first, last = (place * self.candidates // self.worlds for place in (start, start + count))
        hands = lenient(position).sample(last - first, keys, first)
        copies = _copies(hands)
        log = np.where(copies > 0, self._log_weight(position, hands), -np.inf)
        top = log.max(axis=1)
        lost = np.isneginf(top)
        log[lost], top[lost] = 0, 0
        likelihood = np.exp(log - top[:, None])
        weights = copies * likelihood
        total = weights.sum(axis=1)
        ess = total**2 / (weights * likelihood).sum(axis=1)
        mass = np.where(lost, -np.inf, top + np.log(total / (last - first)))
        hands, weights = _chosen(hands, weights / total[:, None], count, Streams(keys ^ _SALT, start))
        return Worlds(hands, weights, ess, mass, last - first)

    def _log_weight(self, position: Position, hands: Masks) -> Floats:
        """(N, M) natural log of the weight of hands by the past moves of the seats that are read."""
        if self.reads == "none":
            return np.zeros(hands.shape[:2])
        away = (np.arange(position.rules.seats) - position.viewer[:, None]) % position.rules.seats
        partner, opponents = away == 2, away % 2 == 1
        if self.known:
            log = np.zeros(hands.shape[:2])
            if self.reads != "opponents":
                log += self._of_seats(position, hands, partner, self.model, self.floor).sum(axis=2) / self.temperature
            if self.reads != "partner":
                log += self._of_seats(position, hands, opponents, self._opponents, KNOWN_FLOOR).sum(axis=2)
            return log
        read = {"all": away > 0, "partner": partner, "opponents": opponents}[self.reads]
        told = self._of_seats(position, hands, read, self.model, self.floor)
        if self.trust is None:
            return told.sum(axis=2) / self.temperature
        soft = told if self.other is self.model else self._of_seats(position, hands, read, self.other, self.floor)
        if self.temperature > 1:
            even = self._of_seats(position, hands, read, "uniform", 0)
            soft = soft / self.temperature + even * (1 - 1 / self.temperature)
        with np.errstate(divide="ignore"):
            is_model, is_other = np.log(self.trust), np.log1p(-self.trust)
        log = np.zeros(hands.shape[:2])
        for side in (partner & read, opponents & read):  # a side is one player or the other, both its seats together
            sure, unsure = (np.where(side[:, None], one, 0).sum(axis=2) for one in (told, soft))
            log += np.logaddexp(is_model + sure, is_other + unsure)
        return log

    @staticmethod
    def _of_seats(
        position: Position, hands: Masks, read: npt.NDArray[np.bool_], model: Agent | str | None, floor: float
    ) -> Floats:
        """(N, M, seats) natural log of how likely the past moves of seats were: of those `read` (N, seats), else 0."""
        seats = position.rules.seats
        if (read.sum(axis=1) == seats - 1).all():
            return log_likelihood(position, [model] * seats, hands, floor)
        out = np.zeros(hands.shape)
        for seat in np.unique(position.viewer):  # the seats that are not read need not be asked
            rows = np.flatnonzero(position.viewer == seat)
            models = [model if one else None for one in read[rows[0]]]
            out[rows] = log_likelihood(position.take(rows), models, hands[rows], floor)
        return out


def is_number(value: Any) -> bool:
    """Whether a value is a number, Python's or NumPy's; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_clock(ms: Any, threads: Any) -> None:
    """Raises a ValueError for what is no time in milliseconds or no number of threads; None may stand for both."""
    if ms is not None and (not is_number(ms) or not 0 < ms < np.inf):
        raise ValueError(f"ms={ms!r} must be a number of milliseconds > 0")
    if threads is not None and (not is_whole(threads) or threads < 1):
        raise ValueError(f"threads={threads!r} must be a whole number >= 1, or None")


def _model(model: Agent | str, option: str = "model") -> Agent:
    try:
        agent = make_agent(model)
        need_probabilities(agent)
    except ValueError as error:
        if isinstance(model, str) and str(error).startswith("unknown agent"):
            nor = f", nor {' or '.join(_KNOWN)}" if option == "model" else ""
            raise ValueError(f"{option}={model!r} is no agent, no checkpoint{nor}") from None
        raise ValueError(f"{option}={_called(model)}: {error}") from None
    return agent


def _called(model: Agent | str | None) -> str:
    return str(model if isinstance(model, str) or model is None else getattr(model, "name", model))


def keys_of(batch: Decisions) -> Keys:
    """(N,) uint64 random keys of a batch, from one number of `batch.rng` a row."""
    if batch.rng is None:
        raise ValueError("a player that imagines worlds needs batch.rng")
    return (batch.rng.random(len(batch)) * 2.0**53).astype(np.uint64)


def blocks(most: int, ms: float | None, rows: int, largest: int) -> Iterator[tuple[int, int]]:
    """Which worlds to do next, until all are done or the time is used: number of the first, and how many.

    Blocks grow, at most twofold, and follow the speed that the caller showed with those before. One is always done.

    Args:
        most: worlds in all; ms: milliseconds for each of `rows` decisions, which share the time; None: all at once.
        largest: worlds of a block at most, where there is a clock.
    """
    if ms is None:
        yield 0, most
        return
    begun = time.perf_counter()
    done, size = 0, 1
    while size >= 1:
        started = time.perf_counter()
        yield done, size
        done += size
        now = time.perf_counter()
        left = ms / 1000 * rows - (now - begun)
        size = int(min(2 * size, most - done, largest, left / (now - started) * size))


def joined(parts: Sequence[Worlds]) -> Worlds:
    """The worlds of several draws for the same positions and keys as one.

    A draw counts by the weight of all its candidates, as if all candidates had been weighed together. Worlds that are
    equal in several parts stand several times.
    """
    if len(parts) == 1:
        return parts[0]
    draws = np.array([part.draws for part in parts], np.float64)
    mass = np.stack([part.mass for part in parts], axis=1)
    lost = (mass == -np.inf).all(axis=1)
    top = np.where(lost, 0, mass.max(axis=1))
    share = draws * np.where(lost[:, None], 1, np.exp(mass - top[:, None]))  # (N, parts)
    total = share.sum(axis=1)
    ess = total**2 / (share**2 / np.stack([part.ess for part in parts], axis=1)).sum(axis=1)
    return Worlds(
        np.concatenate([part.hands for part in parts], axis=1),
        np.concatenate([part.weights * (share[:, i] / total)[:, None] for i, part in enumerate(parts)], axis=1),
        ess,
        np.where(lost, -np.inf, top + np.log(total / draws.sum())),
        int(draws.sum()),
    )


def lenient(position: Position) -> RulesBelief:
    """The belief by the rules; in rows that no deal fits nobody's passes count.

    There a judge let a wrong pass stand (J3), which says of a seat what is not so.

    Raises:
        ValueError: a row that no deal fits all the same.
    """
    try:
        return RulesBelief(position)
    except ValueError:
        voids = position.voids.copy()
        for row in range(len(position)):
            try:
                RulesBelief(position.take(np.array([row])))
            except ValueError:
                voids[row] = 0
        return RulesBelief(dataclasses.replace(position, voids=voids))


def _copies(hands: Masks) -> npt.NDArray[np.int64]:
    """How often each world stands in its row: (N, M) from (N, M, seats), the number at the first of equals, then 0."""
    wide = hands.astype(np.uint64)
    if wide.shape[2] % 2:
        wide = np.concatenate([wide, np.zeros_like(wide[:, :, :1])], axis=2)
    keys = wide[:, :, ::2] | wide[:, :, 1::2] << np.uint64(32)
    order = np.lexsort(tuple(np.moveaxis(keys, 2, 0)), axis=-1)  # stable: the first of equals comes first
    keys = np.take_along_axis(keys, order[:, :, None], axis=1)
    new: npt.NDArray[np.bool_] = np.ones(order.shape, np.bool_)
    new[:, 1:] = np.any(keys[:, 1:] != keys[:, :-1], axis=2)
    copies = np.zeros(order.shape, np.int64)
    copies[np.nonzero(new)[0], order[new]] = np.bincount(np.cumsum(new.ravel()) - 1)
    return copies


def _chosen(hands: Masks, weights: Floats, count: int, chance: Streams) -> tuple[Masks, Floats]:
    """At most `count` of the worlds by their weights, and the weights that they stand for: (N, count, …), (N, count).

    Where no more have any weight they are kept as they are. Else they are drawn by systematic resampling, which needs
    one number a row: a world is drawn as often as multiples of 1 / count, shifted by it, fall into its stretch of 0..1.
    """
    upto = np.minimum(weights.cumsum(axis=1), 1)
    last = weights.shape[1] - 1 - (weights[:, ::-1] > 0).argmax(axis=1)
    upto[np.arange(weights.shape[1]) >= last[:, None]] = 1  # rounding
    passed = np.ceil(upto * count - chance.random(len(weights))[:, None])
    drawn = np.diff(passed, axis=1, prepend=0) / count
    few = (weights > 0).sum(axis=1) <= count
    weights = np.where(few[:, None], weights, drawn)
    order = np.argsort(weights == 0, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(hands, order[:, :, None], axis=1), np.take_along_axis(weights, order, axis=1)
