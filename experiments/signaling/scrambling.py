"""What a message is worth, by spoiling it: a speaker whose moves are now and then replaced by others as good.

With probability e a move is replaced by one that a judge who hears nobody holds to be as good as itself, drawn alike
among all that are. The play stays nearly as strong, what it tells goes. How fast the team loses points, dJ/de, is the
price of the lost message and of what strength was lost after all. Spoiling the same speaker beside a partner that does
not listen costs the latter alone: the difference of the two slopes is what the message was worth to the partner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agents.base import Agent, Decisions, has_probabilities, make_agent, need_probabilities
from domino_env.deals import Streams
from domino_env.decisions import Uniforms
from domino_env.rules import Rules
from experiments.evaluate import Player, Side
from experiments.signaling.matches import BOARDS, Match, Matches, Show, lacking_line, said, side_name
from experiments.signaling.statistics import Estimate, over_units

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: What each action is worth to one who hears nobody: batch -> (N, actions), in any unit; illegal ones are not read.
Values = Callable[[Decisions], npt.NDArray[Any]]

SHARES = (0.0, 0.25, 0.5, 1.0)
_SALT = np.uint64(0x53C7A3B1E9D24F65)  # of the scrambler's own chance: the agent's stays as it is


class Scrambled:
    """An agent whose moves are replaced now and then by others that are about as good."""

    def __init__(self, agent: Agent, share: float, within: float, values: Values, name: str | None = None) -> None:
        """Takes an agent and what to do with it.

        Args:
            agent: whose moves; with share 0 it plays exactly as by itself, with the same chance.
            share: probability that a move is replaced.
            within: a move may come in whose value is at most so far from that of the agent's own, above or below it; in
                units of `values`. With infinity and share 1 this is the uniform player.
            values: of the actions, from what the judge may hear; a `needs_history` of it is kept to.
            name: None: made of the others, of `values` by its `name`.

        Raises:
            ValueError: numbers out of range.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"share={share!r} must be between 0 and 1")
        if not within >= 0:
            raise ValueError(f"within={within!r} must be at least 0")
        self.agent, self.share, self.within, self.values = agent, float(share), float(within), values
        judge = getattr(values, "name", None) or getattr(values, "__name__", "values")
        self.name = name or f"scrambled:share={share:g},within={within:g},judge={judge}({said(agent)})"
        self.sees_everything = bool(getattr(agent, "sees_everything", False))
        self.needs_history = bool(getattr(agent, "needs_history", False) or getattr(values, "needs_history", False))
        if hint := getattr(agent, "batch_hint", None):
            self.batch_hint = hint
        if has_probabilities(agent):
            self.probabilities = self._probabilities
        self.counts = {"asked": 0, "open": 0, "replaced": 0, "changed": 0}  # see `Dose`

    def check(self, rules: Rules) -> None:
        """Refuses what the agent refuses."""
        check = getattr(self.agent, "check", None)
        if check is not None:
            check(rules)

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64 legal actions. Which decisions are replaced grows with the share: those of a small one stay."""
        own = self.agent.act(batch)
        self.counts["asked"] += len(batch)
        if not self.share or not len(batch):
            return own
        if batch.rng is None:
            raise ValueError("a scrambled player needs batch.rng")
        good = self.good(batch, own)
        rng = _chance(batch.rng)
        replaced = rng.random(len(batch)) < self.share
        count = np.cumsum(good, axis=1)
        size = count[:, -1]
        drawn = np.minimum((rng.random(len(batch)) * size).astype(np.int64), size - 1)
        answer = np.where(replaced, (count > drawn[:, None]).argmax(axis=1), own)
        self.counts["open"] += int((size > 1).sum())
        self.counts["replaced"] += int(replaced.sum())
        self.counts["changed"] += int((answer != own).sum())
        return answer

    def good(self, batch: Decisions, own: Ints) -> npt.NDArray[np.bool_]:
        """The moves that may come in.

        Args:
            own: (N,) the agent's moves, legal.
        Returns:
            (N, actions), the own move always among them.
        """
        return _near(self._worth(batch), own, self.within)

    def _worth(self, batch: Decisions) -> Floats:
        """(N, actions) values of the legal moves; nan for others."""
        legal = batch.mask != 0
        worth = np.asarray(self.values(batch), np.float64)
        if worth.shape != legal.shape:
            raise ValueError(f"values of these decisions are {legal.shape}, not {worth.shape}")
        if not (worth[legal] < math.inf).all():
            raise ValueError("values of legal actions are numbers below infinity")
        return np.where(legal, worth, math.nan)

    def _probabilities(self, batch: Decisions) -> Floats:
        """(N, actions) float64: those of the agent, and with the share those of the draws beside each of its moves."""
        own = np.asarray(cast(Any, self.agent).probabilities(batch), np.float64)
        worth, drawn = self._worth(batch), np.zeros_like(own)
        for move in np.flatnonzero(own.any(axis=0)):  # a table of (N, moves, moves) would be too large
            rows = np.flatnonzero(own[:, move] > 0)
            good = _near(worth[rows], np.full(len(rows), move), self.within)
            drawn[rows] += own[rows, move, None] * good / good.sum(axis=1, keepdims=True)
        return (1 - self.share) * own + self.share * drawn


def _near(worth: Floats, own: Ints, within: float) -> npt.NDArray[np.bool_]:
    """(N, actions) moves whose value is near that of the own one, or just as infinite; the own one always."""
    mine = np.take_along_axis(worth, own[:, None], axis=1)
    with np.errstate(invalid="ignore"):
        near = (np.abs(worth - mine) <= within) | (worth == mine)
    np.put_along_axis(near, own[:, None], True, axis=1)
    return near


class Preferences:
    """Values of actions from what an agent would do: log probabilities, nats; a judge, if it hears nobody."""

    def __init__(self, agent: Agent) -> None:
        """agent: one with probabilities; ValueError for others."""
        need_probabilities(agent)
        self.agent, self.name = agent, f"preferences of {said(agent)}"
        self.needs_history = bool(getattr(agent, "needs_history", False))

    def __call__(self, batch: Decisions) -> Floats:
        """(N, actions) float64, minus infinity for what it never does."""
        said = np.asarray(cast(Any, self.agent).probabilities(batch), np.float64)
        return np.log(said, where=said > 0, out=np.full(said.shape, -math.inf))


def _chance(rng: Uniforms) -> Uniforms:
    """Chance that has nothing to do with the agent's, where it comes by rows."""
    return Streams(rng.keys ^ _SALT, rng.counter) if isinstance(rng, Streams) else rng


@dataclass(frozen=True)
class Dose:
    """How much was spoilt at one share. Where hardly any move has another as good, the slope says nothing."""

    share: float
    asked: int  # decisions of the speaker
    open: int  # those where another move is as good as the speaker's; not counted at share 0
    changed: int  # those where another move was played than the speaker's

    def to_dict(self) -> dict[str, float | int]:
        """For JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Scrambling:
    """How a team's points fall with the share of the speaker's moves that are spoilt."""

    speaker: str
    partner: str
    deaf: str | None  # the partner that does not listen
    pool: tuple[str, ...]
    rules: str
    seed: int
    within: float
    shares: Floats  # (k,)
    values: Floats = field(repr=False)  # (k, boards) points a deal beside the partner, mean over the pool
    deaf_values: Floats | None = field(repr=False)  # the same beside the deaf one
    doses: tuple[Dose, ...] = ()  # (k,)
    claim: float | None = None

    @property
    def boards(self) -> int:
        """Boards of each match."""
        return self.values.shape[1]

    @property
    def slope(self) -> Estimate:
        """dJ/de, points a deal from no move spoilt to all."""
        return over_units(slopes(self.shares, self.values))

    @property
    def deaf_slope(self) -> Estimate | None:
        """The same beside the partner that does not listen: what spoiling costs by itself."""
        return None if self.deaf_values is None else over_units(slopes(self.shares, self.deaf_values))

    @property
    def message(self) -> Estimate | None:
        """What the message is worth to a partner that listens: the deaf slope less the other, board by board."""
        return None if self.deaf_values is None else over_units(self._message(self.deaf_values))

    def _message(self, deaf: Floats) -> Floats:
        return slopes(self.shares, deaf) - slopes(self.shares, self.values)

    @property
    def curve(self) -> list[Estimate]:
        """Points a deal at each share less those at the smallest, on the same boards."""
        return [over_units(row - self.values[0]) for row in self.values]

    @property
    def notes(self) -> list[str]:
        """What to bear in mind: a dose that spoils little, and where boards are too few for the claim."""
        said = []
        most = self.doses[-1]
        if most.asked and most.changed < 0.05 * most.asked:
            part = 100 * most.changed / most.asked
            said.append(f"at share {most.share:g} only {part:.1f} % of the moves were changed; take a wider `within`")
        said += lacking_line("slope", slopes(self.shares, self.values), self.claim)
        if self.deaf_values is not None:
            said += lacking_line("worth of the message", self._message(self.deaf_values), self.claim)
        return said

    def rows(self) -> list[tuple[str, Estimate]]:
        """Figures in words."""
        found = [("dJ/de", self.slope)]
        if self.deaf_slope is not None and self.message is not None:
            found += [("dJ/de beside a deaf partner", self.deaf_slope), ("worth of the message", self.message)]
        return found + [
            (f"share {share:g} less {self.shares[0]:g}", one) for share, one in zip(self.shares, self.curve)
        ]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        deaf, message = self.deaf_slope, self.message
        return {
            "speaker": self.speaker,
            "partner": self.partner,
            "deaf": self.deaf,
            "pool": list(self.pool),
            "rules": self.rules,
            "seed": self.seed,
            "boards": self.boards,
            "within": None if math.isinf(self.within) else self.within,
            "shares": self.shares.tolist(),
            "slope": self.slope.to_dict(),
            "deaf_slope": None if deaf is None else deaf.to_dict(),
            "message": None if message is None else message.to_dict(),
            "curve": [one.to_dict() for one in self.curve],
            "doses": [one.to_dict() for one in self.doses],
            "claim": self.claim,
            "notes": self.notes,
        }

    def draw(self, axes: Any) -> None:
        """Draw points a deal over the share on matplotlib axes, beside either partner."""
        both = [("partner", self.values)] + ([] if self.deaf_values is None else [("deaf partner", self.deaf_values)])
        for color, (name, values) in zip(("C0", "C1"), both):
            found = [over_units(row) for row in values]
            mean = [one.mean for one in found]
            reach = [[one.mean - one.low for one in found], [one.high - one.mean for one in found]]
            axes.errorbar(self.shares, mean, yerr=reach, fmt="o", color=color, capsize=2, label=name)
            fit = np.mean(mean) + float(slopes(self.shares, values).mean()) * (self.shares - self.shares.mean())
            axes.plot(self.shares, fit, color=color, linewidth=1)
        axes.set_xlabel("share of the speaker's moves that are spoilt")
        axes.set_ylabel("points a deal")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)


def slopes(shares: npt.NDArray[Any], values: Floats, weights: Sequence[float] | None = None) -> Floats:
    """The least-squares slope of each board: their mean is the slope of the means, and their spread gives its error.

    The same boards are played at all shares, so what a board is worth by itself falls out.

    Args:
        shares: (k,) at least two different ones; values: (k, boards).
        weights: (k,) of each share, fixed beforehand; None: all alike, so that slopes of different players, whose
            curves may bend, are of one kind.
    Returns:
        (boards,).
    """
    weight = np.ones(len(shares)) if weights is None else np.asarray(weights, np.float64)
    weight = weight / weight.sum()
    apart = np.asarray(shares, np.float64) - float(weight @ shares)
    return (weight * apart) @ (values - values[0]) / float(weight @ apart**2)


def scramble(
    speaker: Player,
    partner: Player,
    pool: Sequence[Side],
    values: Values,
    within: float,
    shares: Sequence[float] = SHARES,
    *,
    deaf: Player | None = None,
    rules: str | Rules = "sport_book",
    boards: int = BOARDS,
    seed: int = 0,
    claim: float | None = None,
    folder: str | Path | None = None,
    progress: Show | None = None,
) -> Scrambling:
    """Spoil a speaker's moves more and more, and see what its team loses.

    Args:
        speaker: whose moves are replaced; partner: who sits opposite; pool: opponents, fixed, each alike in the mean.
        values, within: what may come in, see `Scrambled`.
        shares: of moves that are replaced, rising, two or more.
        deaf: the partner that does not listen, for comparison.
        rules: a game of pairs for four; boards: of each match; seed: of deals and chance.
        claim: points a deal that shall be seen in a slope.
        folder: matches are kept there, and those that are there are not played again; `values` have to be the same.
        progress: called with (boards played, boards of all matches).
    Raises:
        ValueError: shares that do not rise, an empty pool, and what `Scrambled` and `Matches.play_all` refuse.
        AgentError: a player failed.
    """
    table = Matches(rules, boards, seed, folder)
    if not table.rules.pairs or table.rules.seats != 4:
        raise ValueError(f"a speaker has a partner and two opponents, and {table.rules.name} is no game of pairs")
    steps = np.array(shares, np.float64)
    if len(steps) < 2 or not (np.diff(steps) > 0).all():
        raise ValueError(f"shares={list(shares)} must rise, two or more of them")
    if not pool or isinstance(pool, str):
        raise ValueError("scrambling needs a list of opponents, at least one")
    if claim is not None and not 0 < claim < math.inf:
        raise ValueError(f"claim={claim!r} must be points above 0")
    agent = make_agent(speaker, table.rules)
    listeners = [partner] if deaf is None else [partner, deaf]
    spoilt = [Scrambled(agent, float(share), within, values) for share in steps]
    asked: list[tuple[Side, Side]] = [
        ((one, listener), opponents) for listener in listeners for one in spoilt for opponents in pool
    ]
    played = table.play_all(asked, progress)
    shape = (len(listeners), len(steps), len(pool))
    won = np.stack([one.values for one in played]).reshape(*shape, table.boards).mean(axis=2)
    doses = _doses(steps, played[: len(steps) * len(pool)])
    return Scrambling(
        said(speaker),
        said(partner),
        None if deaf is None else said(deaf),
        tuple(map(side_name, pool)),
        table.rules.title,
        table.seed,
        float(within),
        steps,
        won[0],
        None if deaf is None else won[1],
        doses,
        claim,
    )


def _doses(shares: Floats, played: Sequence[Match]) -> tuple[Dose, ...]:
    """What the matches beside the partner counted, by share."""
    each = len(played) // len(shares)
    found = []
    for k, share in enumerate(shares):
        counts: list[Mapping[str, int]] = [one.counts for one in played[k * each : (k + 1) * each]]
        asked, good, changed = (sum(one.get(key, 0) for one in counts) for key in ("asked", "open", "changed"))
        found.append(Dose(float(share), asked, good, changed))
    return tuple(found)
