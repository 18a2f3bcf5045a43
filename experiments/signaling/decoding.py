"""What the moves so far tell of a hand: questions about it, answered by a belief, and how right the answers are.

A belief B gives each answer y to a question the probability q(y), the sum of B over the hands that have it. Whoever
knows how the players play gains on whoever knows the rules alone

    E[log2 q_true(y) - log2 q_rules(y)]

bits, where y is what the hand answers: the gain in log loss, which no wrong belief can have on average over deals that
the players played (Good 1952). How often what was said with probability q came true is drawn as a reliability diagram.

Who decides is always the one that is asked what it believes. Decisions with one legal move are not looked at, and that
a seat has more is known to this seat alone: what another believed before is not right on average over those decisions
that turn out to be choices. So what an opponent reads in a hand is seen where the opponent decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agents.base import Agent
from agents.search.beliefs import RulesBelief
from agents.search.reading import Model, ReadBelief, SampledBelief, SplitBelief, policy_belief
from domino_env.deals import row_keys
from domino_env.rules import Rules
from domino_env.tiles import DOUBLES_MASK, NUM_SUITS, SUIT_MASK, tiles_of
from experiments.signaling.hands import hands_of
from experiments.signaling.record import Moments, models_of
from experiments.signaling.statistics import ESS, Estimate, clustered, finite, share

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.uint32]

LEVELS = ("rules", "reference", "true")  # who believes: knows the rules, takes all for the reference, knows the players
TARGETS = ("holds", "double", "void", "count", "longest")
BINARY = ("holds", "double", "void")  # asked with yes or no, of each suit
SAME = NUM_SUITS  # answer to "longest": several suits are

_ANSWERS = {"holds": 2, "double": 2, "void": 2, "count": NUM_SUITS + 1, "longest": NUM_SUITS + 1}
DOUBLES = np.array(tiles_of(DOUBLES_MASK), np.uint32)  # (7,) number of the double of each suit
_ROWS = 128  # positions whose beliefs are kept at once
_CERTAIN = 1e-12  # what the rules give away is no forecast: it has no place in a diagram
_NO_BITS = 1e-9  # what is left of nothing after rounding
_WHO = {1: "the left neighbour", 2: "the partner", 3: "the right neighbour"}
_LABELS = {"rules": "the rules alone", "reference": "all play like the reference", "true": "as the players play"}


# -- questions --------------------------------------------------------------------------------------------------------


def answers_of(hands: Masks, target: str) -> Ints:
    """What hands answer.

    Args:
        hands: (E,) uint32 masks of tiles.
        target: "holds" (a tile of suit k), "double" (of suit k), "void" (no tile of suit k), "count" (tiles of suit k),
            each for the seven suits; "longest" (the suit of which there are most tiles, `SAME` where that is no one
            suit).
    Returns:
        (E, 7) int64, of "longest" (E, 1).
    Raises:
        ValueError: another target.
    """
    _check_targets([target])
    hands = np.asarray(hands, np.uint32)[:, None]
    if target == "double":
        return (hands >> DOUBLES & 1).astype(np.int64)
    count = np.bitwise_count(hands & SUIT_MASK).astype(np.int64)
    if target != "longest":
        return {"holds": count > 0, "void": count == 0, "count": count}[target].astype(np.int64)
    most = count.max(axis=1, keepdims=True)
    return np.where((count == most).sum(axis=1, keepdims=True) > 1, SAME, count.argmax(axis=1)[:, None])


def forecast(belief: ReadBelief, seat: npt.NDArray[Any], targets: Sequence[str] = TARGETS) -> dict[str, Floats]:
    """How likely a belief takes each answer about one hand a row.

    Args:
        belief: about N positions, exact or sampled. What is sampled counts a world more that answers anything alike:
            nothing is impossible only because it was not drawn.
        seat: (N,) whose hand, never the viewer's own.
    Returns:
        for each target (N, 7, answers) float64, of "longest" (N, 1, answers); the last axis adds up to 1.
    """
    _check_targets(targets)
    seat = np.asarray(seat, np.int64)
    if (seat == belief.position.viewer).any():
        raise ValueError("nobody has to be told of its own hand: give the seat of another than the viewer")
    out: dict[str, Floats] = {}
    if isinstance(belief, SplitBelief):
        for rows, part in belief.parts:
            for target, value in forecast(part, seat[rows], targets).items():
                out.setdefault(target, np.empty((len(belief), *value.shape[1:])))[rows] = value
        return out
    row, hands, weight = hands_of(belief, seat)
    for target in targets:
        answer, kinds = answers_of(hands, target), _ANSWERS[target]
        n, asked = len(belief), answer.shape[1]
        place = (row[:, None] * asked + np.arange(asked)) * kinds + answer
        sums = np.bincount(place.ravel(), np.repeat(weight, asked), minlength=n * asked * kinds)
        q: Floats = sums.reshape(n, asked, kinds).astype(np.float64)
        if isinstance(belief, SampledBelief):
            worlds = belief.ess[:, None, None]
            q = (worlds * q + 1 / kinds) / (worlds + 1)
        out[target] = q / q.sum(axis=2, keepdims=True)
    return out


def by_the_rules(belief: RulesBelief, seat: npt.NDArray[Any], target: str) -> Floats:
    """P(yes) by the rules alone, in closed form: (N, 7) of one of `BINARY`, asked of each suit, and (N,) whose hand."""
    here = np.arange(len(belief))
    if target == "double":
        return belief.marginals()[here, seat][:, DOUBLES]
    holds = belief.holds()[here, seat]
    return holds if target == "holds" else 1 - holds


def _check_targets(targets: Sequence[str]) -> None:
    unknown = [target for target in targets if target not in TARGETS]
    if unknown or not targets or isinstance(targets, str):
        raise ValueError(f"unknown target {unknown[0] if unknown else targets!r}; choose from {', '.join(TARGETS)}")


def log_told(q: Floats, answer: Ints) -> Floats:
    """log2 of the probability that was given to what is so: (N, T) from (N, T, answers) and (N, T)."""
    with np.errstate(divide="ignore"):
        return cast(Floats, np.log2(np.take_along_axis(q, answer[:, :, None], axis=2)[:, :, 0]))


# -- how right they are -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bin:
    """What was said with about the same probability."""

    said: float  # mean probability
    came: Estimate  # how often it was so


def reliability(q: npt.NDArray[Any], came: npt.NDArray[Any], deal: npt.NDArray[Any], bins: int = 10) -> tuple[Bin, ...]:
    """How often it was so, by how likely it was said to be, in bins of one width; empty bins are left out.

    Args:
        q: (M,) probabilities; came: (M,) whether it was so; deal: (M,) what hangs together, as of `share`.
    """
    if bins < 1:
        raise ValueError(f"bins={bins!r} must be at least 1")
    q, came = np.asarray(q, np.float64), np.asarray(came, np.float64)
    which = np.minimum((q * bins).astype(np.int64), bins - 1)
    out = []
    for number in np.unique(which):
        rows = np.flatnonzero(which == number)
        out.append(Bin(float(q[rows].mean()), share(came[rows], deal[rows])))
    return tuple(out)


@dataclass(frozen=True)
class Calibration:
    """How sure a belief is, and how wrong: one who knows how the players play is as sure as it ought to be."""

    entropy: Estimate  # bits that it thinks it lacks
    loss: Estimate  # bits that it lacks: -log2 of what it gave to what was so
    gap: Estimate  # loss - entropy: 0 for a belief that is right about itself, above it for one that is too sure

    @property
    def z(self) -> float:
        """The gap in standard errors; 0 where there is no gap at any decision, nan where there is no error."""
        if abs(self.gap.mean) < _NO_BITS and self.gap.error < _NO_BITS:
            return 0.0
        return self.gap.mean / self.gap.error if self.gap.error > 0 else math.nan

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        figures = {name: getattr(self, name).to_dict() for name in ("entropy", "loss", "gap")}
        return {**figures, "z": finite(self.z)}


def calibration(entropy: npt.NDArray[Any], loss: npt.NDArray[Any], deal: npt.NDArray[Any]) -> Calibration:
    """Of M decisions: (M,) bits each, and (M,) what hangs together."""
    return Calibration(clustered(entropy, deal), clustered(loss, deal), clustered(np.subtract(loss, entropy), deal))


@dataclass(frozen=True)
class Gain:
    """Bits by which who knows the players' play foretells a hand better; below 0: worse."""

    total: Estimate  # all suits together, a decision
    each: tuple[Estimate, ...]  # by suit; of "longest" one alone

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"total": self.total.to_dict(), "each": [one.to_dict() for one in self.each]}


def gain(more: Floats, less: Floats, deal: npt.NDArray[Any]) -> Gain:
    """Of two forecasts, by `log_told`: (M, T) each, and (M,) what hangs together."""
    bits = more - less
    return Gain(clustered(bits.sum(axis=1), deal), tuple(clustered(suit, deal) for suit in bits.T))


@dataclass(frozen=True)
class Decoded:
    """One question, as all levels answer it."""

    target: str
    gain: dict[str, Gain]  # of "true" over "rules" and over "reference"
    calibration: dict[str, Calibration]  # by level, all suits together
    reliability: dict[
        str, tuple[Bin, ...]
    ]  # by level, all suits together; nothing where there are more answers than two

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        bins = {
            level: [{"said": one.said, "came": one.came.to_dict()} for one in found]
            for level, found in self.reliability.items()
        }
        return {
            "target": self.target,
            "gain": {level: one.to_dict() for level, one in self.gain.items()},
            "calibration": {level: one.to_dict() for level, one in self.calibration.items()},
            "reliability": bins,
        }


@dataclass(frozen=True)
class Decoding:
    """What the moves before M decisions told who decides of the hand of another."""

    of: int  # whose hand: places clockwise from who decides, 2 its partner
    decisions: int
    deals: int
    left_out: int  # decisions whose belief was sampled, and worth too few worlds
    fell_back: int  # decisions before which the models explain no deal: the rules' belief stands for theirs
    targets: dict[str, Decoded]
    hands: dict[str, Calibration]  # of the beliefs over all hidden hands, where they are exact: "reference" and "true"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: getattr(self, name) for name in ("of", "decisions", "deals", "left_out", "fell_back")}
        return plain | {
            "targets": {name: one.to_dict() for name, one in self.targets.items()},
            "hands": {level: one.to_dict() for level, one in self.hands.items()},
        }

    def rows(self) -> list[dict[str, Any]]:
        """One line a target, for a table: bits a decision, all suits together."""
        return [
            {
                "target": name,
                "loss by the rules": one.calibration["rules"].loss,
                "loss by the reference": one.calibration["reference"].loss,
                "loss as they play": one.calibration["true"].loss,
                "gain over the rules": one.gain["rules"].total,
                "gain over the reference": one.gain["reference"].total,
                "z": one.calibration["true"].z,
            }
            for name, one in self.targets.items()
        ]

    def draw(self, axes: Any, target: str = "holds") -> None:
        """A reliability diagram: how often it was so against how likely it was said to be, by level."""
        draw_reliability(axes, {_LABELS[level]: bins for level, bins in self._of(target).reliability.items()})
        axes.set_title(f"{target}: the hand of {_WHO[self.of]}, by who is to move", fontsize=9)

    def draw_gains(self, axes: Any, target: str = "holds") -> None:
        """Bits gained by suit, over the rules and over the reference, with 95 % intervals."""
        width = 0.4
        for number, (level, found) in enumerate(self._of(target).gain.items()):
            means = [one.mean for one in found.each]
            spread = [[one.mean - one.low for one in found.each], [one.high - one.mean for one in found.each]]
            places = np.arange(len(means)) + (number - 0.5) * width
            axes.bar(places, means, width, yerr=spread, capsize=2, label=f"over {_LABELS[level]}")
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(self.targets[target].gain["rules"].each)))
        axes.set_xlabel("suit")
        axes.set_ylabel("bits gained a decision")
        axes.legend(frameon=False, fontsize=8)

    def _of(self, target: str) -> Decoded:
        if target not in self.targets:
            raise ValueError(f"{target!r} was not asked for; choose from {', '.join(self.targets)}")
        return self.targets[target]


def draw_reliability(axes: Any, found: dict[str, tuple[Bin, ...]]) -> None:
    """Points with intervals and the diagonal on which a belief that is right about itself lies, by the name of each.

    Raises:
        ValueError: nothing to draw, as of a question with more answers than two.
    """
    if not any(found.values()):
        raise ValueError(f"a reliability diagram is drawn of questions with two answers: {', '.join(BINARY)}")
    axes.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
    for name, bins in found.items():
        mean = np.array([one.came.mean for one in bins])
        low = np.array([one.came.low for one in bins])
        high = np.array([one.came.high for one in bins])
        spread = np.nan_to_num(np.stack([mean - low, high - mean])).clip(0)
        axes.errorbar([one.said for one in bins], mean, spread, marker="o", markersize=4, capsize=2, label=name)
    axes.set_xlabel("probability that was said")
    axes.set_ylabel("how often it was so")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, fontsize=8)


# -- the measurement --------------------------------------------------------------------------------------------------


def decode(
    moments: Moments,
    table: str | Agent | Sequence[Model],
    reference: str | Agent | Sequence[Model] = "greedy",
    *,
    of: int = 2,
    targets: Sequence[str] = TARGETS,
    floor: float = 0.0,
    reference_floor: float = 0.02,
    method: str = "auto",
    candidates: int = 1000,
    seed: int = 0,
    bins: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> Decoding:
    """What the moves before some decisions told who decides of another's hand, exactly.

    Args:
        moments: M decisions of deals that the table played.
        table: who sat there, as of `models_of`: each with `probabilities`. Their play must be what they say.
        reference: an innocent player to compare with, likewise; "uniform" plays at random.
        of: whose hand, clockwise from who decides: 1 its left neighbour's, 2 its partner's, 3 its right neighbour's.
        targets: see `answers_of`.
        floor, reference_floor: mix the moves of the table's and of the reference's models with random ones, as of
            `policy_belief`. Without the second, a reference that is certain of its moves would rule out what happened.
        method, candidates: of the beliefs, as of `policy_belief`; seed: of those that are sampled. A sampled belief
            that is worth fewer than `ESS` worlds is left out.
        bins: of the reliability diagrams.
        progress: called with (decisions, decisions in all).

    Raises:
        ValueError: no decisions, a place or targets that cannot be, players without probabilities, or players whose
            models rule out hands that were held.
    """
    _check_targets(targets)
    rules = moments.position.rules
    check_place(rules, of)
    if not len(moments):
        raise ValueError("no decisions to decode: play more deals, or allow more tiles on the line")
    models = {
        "rules": models_of("rules", rules),
        "reference": models_of(reference, rules),
        "true": models_of(table, rules),
    }
    floors = {"rules": 0.0, "reference": reference_floor, "true": floor}
    parts = []
    for begin in range(0, len(moments), _ROWS):
        some = moments.take(np.arange(begin, min(begin + _ROWS, len(moments))))
        keys = row_keys(seed, np.arange(begin, begin + len(some)))
        beliefs = {
            level: policy_belief(
                some.seen_by(0), models[level], method=method, candidates=candidates, keys=keys, floor=floors[level]
            )
            for level in LEVELS
        }
        exactly = RulesBelief(some.seen_by(0))
        parts.append(_Part.of(some, beliefs, exactly, (some.seat + of) % rules.seats, targets))
        if progress is not None:
            progress(begin + len(some), len(moments))
    return _summed(_Part.joined(parts), moments, of, targets, bins)


def check_place(rules: Rules, of: int) -> None:
    """Refuse a place that is none of another seat, by a ValueError."""
    if not 1 <= of < rules.seats:
        raise ValueError(f"of={of!r} must be another seat, clockwise from who decides: 1..{rules.seats - 1}")


@dataclass(frozen=True)
class _Part:
    """Figures of some decisions, by level and target: what is kept when their beliefs are gone."""

    kept: npt.NDArray[np.bool_]  # (M,) the beliefs are exact, or worth enough worlds
    exact: npt.NDArray[np.bool_]  # (M,)
    fell_back: npt.NDArray[np.bool_]  # (M,) by the players' models
    open: dict[str, npt.NDArray[np.bool_]]  # target of `BINARY` -> (M, 7) whether the rules leave it open
    q: dict[str, dict[str, Floats]]  # target -> level -> (M, T, answers)
    answer: dict[str, Ints]  # target -> (M, T)
    hands: dict[str, Floats]  # level -> (M, 2) entropy and loss of the hidden hands

    @classmethod
    def of(
        cls,
        some: Moments,
        beliefs: dict[str, ReadBelief],
        rules: RulesBelief,
        seat: Ints,
        targets: Sequence[str],
    ) -> _Part:
        # Not by the belief at the level "rules": where that is sampled, nothing is certain.
        sure = {target: by_the_rules(rules, seat, target) for target in targets if target in BINARY}
        ess = np.stack([belief.ess for belief in beliefs.values()])
        said = {level: forecast(belief, seat, targets) for level, belief in beliefs.items()}
        held = some.hands[np.arange(len(some)), seat]
        hands = {
            level: np.stack([beliefs[level].entropy(), -beliefs[level].log2_probability(some.hands)], axis=1)
            for level in LEVELS[1:]
        }
        return cls(
            kept=np.asarray((ess >= ESS).all(axis=0)),
            exact=np.asarray(np.isinf(ess).all(axis=0)),
            fell_back=beliefs["true"].fell_back,
            open={target: (p > _CERTAIN) & (p < 1 - _CERTAIN) for target, p in sure.items()},
            q={target: {level: said[level][target] for level in LEVELS} for target in targets},
            answer={target: answers_of(held, target) for target in targets},
            hands=hands,
        )

    @classmethod
    def joined(cls, parts: Sequence[_Part]) -> _Part:
        first = parts[0]
        return cls(
            kept=np.concatenate([part.kept for part in parts]),
            exact=np.concatenate([part.exact for part in parts]),
            fell_back=np.concatenate([part.fell_back for part in parts]),
            open={target: np.concatenate([part.open[target] for part in parts]) for target in first.open},
            q={
                target: {level: np.concatenate([part.q[target][level] for part in parts]) for level in LEVELS}
                for target in first.q
            },
            answer={target: np.concatenate([part.answer[target] for part in parts]) for target in first.answer},
            hands={level: np.concatenate([part.hands[level] for part in parts]) for level in first.hands},
        )


def _summed(part: _Part, moments: Moments, of: int, targets: Sequence[str], bins: int) -> Decoding:
    kept = np.flatnonzero(part.kept)
    deal = moments.deal[kept]
    exact = np.flatnonzero(part.kept & part.exact)
    hands = {}
    for level, figures in part.hands.items():
        entropy, loss = figures[exact].T
        impossible = int(np.isinf(loss).sum())
        if impossible:
            raise ValueError(
                f"the models of {level!r} rule out the hands that were held at {impossible} of {len(exact)} decisions: "
                "they do not play what they say; give a floor, such as 0.02"
            )
        hands[level] = calibration(entropy, loss, moments.deal[exact])
    found = {}
    for target in targets:
        answer = part.answer[target][kept]
        q = {level: part.q[target][level][kept] for level in LEVELS}
        log = {level: log_told(q[level], answer) for level in LEVELS}
        entropy = {
            level: -np.where(p > 0, p * np.log2(np.where(p > 0, p, 1)), 0).sum(axis=(1, 2)) for level, p in q.items()
        }
        found[target] = Decoded(
            target,
            {level: gain(log["true"], log[level], deal) for level in ("rules", "reference")},
            {level: calibration(entropy[level], -log[level].sum(axis=1), deal) for level in LEVELS},
            {level: _diagram(q[level], part.open[target][kept], answer, deal, bins) for level in LEVELS}
            if target in BINARY
            else {},
        )
    return Decoding(
        of,
        decisions=len(kept),
        deals=len(np.unique(deal)),
        left_out=len(moments) - len(kept),
        fell_back=int(part.fell_back[kept].sum()),
        targets=found,
        hands=hands,
    )


def _diagram(
    q: Floats, still_open: npt.NDArray[np.bool_], answer: Ints, deal: npt.NDArray[Any], bins: int
) -> tuple[Bin, ...]:
    """The reliability of what was said of the suits that the rules leave open."""
    row, suit = np.nonzero(still_open)
    return reliability(q[row, suit, 1], answer[row, suit], deal[row], bins)
