"""The maxims that people teach, as hypotheses: what each is worth in points, and whether a player follows it.

People who play in pairs teach their beginners what to do and what to read into a move. Each maxim is a predicate over
the moves of a decision, so that it can be told how often a player follows it where it could do otherwise, and a player
can be made to follow it always, or never.

Points are those of duplicate boards against the player as it is. Rates are compared on the same decisions: what a deaf
twin, a heuristic, or random play would do with the same hand. A player that follows a maxim no more often than its deaf
twin follows it for what it does to the board, not for what it tells.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from agents.base import Agent, Decisions, make_agent, need_probabilities
from agents.baselines import MAXIMS as CLUB
from agents.search.asking import answers
from agents.search.position import mask_of_bits
from agents.search.reading import Model
from domino_env.rules import Rules, get_rules
from domino_env.tiles import DOUBLES_MASK, HIGH, LOW, NUM_SUITS, NUM_TILES, PASS, SUIT_MASK
from experiments.evaluate import evaluate
from experiments.signaling.hands import by_seat
from experiments.signaling.moves import Situation, asked, situation
from experiments.signaling.record import Record
from experiments.signaling.statistics import CONFIDENCE, NOTHING, Estimate, clustered, over_units

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]

LEAST = 200  # decisions below which there is no rate
FIVE, THREE = 5, 3  # tiles of a suit
_TILE = np.arange(PASS) % NUM_TILES
_DOUBLE = (LOW == HIGH)[_TILE]
_SUIT = LOW[_TILE].astype(np.int64)
_DOUBLES = np.array([int(SUIT_MASK[suit]) & DOUBLES_MASK for suit in range(NUM_SUITS)], np.uint32)  # (7,) masks
_BASE = "play_heavy"  # the maxim of who follows no other

# -- what is taught -------------------------------------------------------------------------------------------------


def _count(s: Situation, suits: npt.NDArray[np.uint8]) -> Ints:
    """(N,) how many tiles the mover holds of its longest suit among those of the sets (N, 1)."""
    held = np.bitwise_count(s.hand[:, None] & SUIT_MASK).astype(np.int64)
    among: Ints = np.where(suits >> np.arange(NUM_SUITS) & 1 != 0, held, 0).max(axis=1)
    return among


def _highest_accompanied(s: Situation) -> Bools:
    fine = s.lead & _DOUBLE & s.legal_lays & (s.others() > 0)
    best = np.where(fine, _SUIT, -1).max(axis=1, keepdims=True)
    return fine & (best == _SUIT)


def _lacks_doubles(s: Situation) -> Bools:
    either = (_DOUBLES[LOW[_TILE]] | _DOUBLES[HIGH[_TILE]]).astype(np.uint32)
    return s.lead & ~_DOUBLE & (s.hand[:, None] & either == 0)


def _everything(s: Situation) -> Bools:
    return np.ones((len(s), PASS), np.bool_)


@dataclass(frozen=True)
class Maxim:
    """Something that is taught."""

    name: str
    text: str  # what people say
    follows: Callable[[Situation], Bools]  # (N, 56) the moves that follow it
    applies: Callable[[Situation], Bools]  # (N,) the decisions that it is about
    within: Callable[[Situation], Bools] = _everything  # (N, 56) the moves that it chooses among
    unless: Callable[[Situation], Bools] | None = None  # (N,) where it may be broken
    unless_text: str = ""

    def free(self, s: Situation) -> Bools:
        """(N,) where the maxim itself says that it may be broken."""
        return np.zeros(len(s), np.bool_) if self.unless is None else self.unless(s)

    def open_to(self, s: Situation) -> Bools:
        """(N,) decisions that it is about in which it can be followed and can be broken."""
        may, follows = s.legal_lays & self.within(s), self.follows(s)
        both: Bools = self.applies(s) & (may & follows).any(axis=1) & (may & ~follows).any(axis=1)
        return both


TAUGHT: dict[str, Maxim] = {
    maxim.name: maxim
    for maxim in (
        Maxim(
            "repeat_partner",
            "repeat your partner's tile: open the suit that it has opened",
            lambda s: s.fresh & s.suits(2) != 0,
            lambda s: ~s.lead[:, 0],
        ),
        Maxim(
            "lead_high_double",
            "lead the highest double that is not alone",
            _highest_accompanied,
            lambda s: s.lead[:, 0],
        ),
        Maxim(
            "no_bare_double",
            "do not lead a bare double: it misleads your partner",
            lambda s: s.lead & ~(_DOUBLE & (s.others() == 0)),
            lambda s: s.lead[:, 0],
        ),
        Maxim(
            "respect_lead",
            "respect your partner's lead, unless you hold five of a suit",
            lambda s: s.closed & s.led == 0,
            lambda s: s.leader(2)[:, 0] & (s.led[:, 0] != 0),
            unless=lambda s: _count(s, np.full((len(s), 1), 0x7F, np.uint8)) >= FIVE,
            unless_text="less often with five of a suit",
        ),
        Maxim(
            "cover_lead",
            "a lead that is not covered is suspicious: an opponent covers it, unless it holds that suit itself",
            lambda s: s.closed & s.led != 0,
            lambda s: (s.leader(1) | s.leader(3))[:, 0] & (s.led[:, 0] != 0),
            unless=lambda s: _count(s, s.led) >= THREE,
            unless_text="less often with three of that suit",
        ),
        Maxim(
            "mixed_lead",
            "who leads a mixed tile hunts the doubles of its suits: it holds neither",
            _lacks_doubles,
            lambda s: s.lead[:, 0],
            within=lambda s: s.lead & ~_DOUBLE,
        ),
    )
}

# -- players that follow one ----------------------------------------------------------------------------------------


class Follower:
    """A player that follows a maxim wherever it can, or breaks it wherever it can, and else plays as another one.

    Moves that the maxim does not choose among stay as they are: of mixed leads it says which, not that one be made.
    """

    needs_history = True

    def __init__(self, agent: Agent, maxim: str, follow: bool = True) -> None:
        """agent: how it plays otherwise; maxim: a name of `TAUGHT`; follow: always, else never."""
        self.agent, self.maxim, self.follow = agent, _taught(maxim), follow
        self.name = f"{agent.name} that {'always' if follow else 'never'} follows {maxim}"
        self.sees_everything = getattr(agent, "sees_everything", False)

    def check(self, rules: Rules) -> None:
        """Refuse a game without partners, or one that the other player does not play, by a ValueError."""
        if not rules.pairs:
            raise ValueError(f"maxims speak of partners, and {rules.title} has none")
        check = getattr(self.agent, "check", None)
        if check is not None:
            check(rules)

    def act(self, batch: Decisions, /) -> Ints:
        """(N,) int64 what the other player answers where moves against what it is told are not legal."""
        return self.agent.act(self._narrowed(batch))

    def probabilities(self, batch: Decisions) -> Floats:
        """(N, actions) what the other player says there."""
        need_probabilities(self.agent)
        agent: Any = self.agent
        found: Floats = agent.probabilities(self._narrowed(batch))
        return found

    def _narrowed(self, batch: Decisions) -> Decisions:
        s = asked(batch)
        bound = (self.maxim.open_to(s) & ~self.maxim.free(s))[:, None] & self.maxim.within(s)
        allowed = np.ones(batch.mask.shape, np.bool_)
        allowed[:, :PASS] = (self.maxim.follows(s) == self.follow) | ~bound
        return dataclasses.replace(batch, mask=(batch.mask * allowed).astype(batch.mask.dtype))


def _taught(name: str) -> Maxim:
    if name not in TAUGHT:
        raise ValueError(f"unknown maxim {name!r}; people teach {', '.join(TAUGHT)}")
    return TAUGHT[name]


# -- what each is worth ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Worth:
    """Points a deal on duplicate boards."""

    maxim: str
    text: str
    taught: bool  # one of `TAUGHT`, tried on a player that follows it always or never; else a weight of club
    kept: Estimate  # always, against the player as it is; of a weight: alone with heavy tiles, against heavy tiles
    left: Estimate  # never, against the player as it is; of a weight: club without it, against club

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: getattr(self, name) for name in ("maxim", "text", "taught")}
        return plain | {"kept": self.kept.to_dict(), "left": self.left.to_dict()}


def worths(
    rules: str | Rules = "sport_book",
    boards: int = 1000,
    seed: int = 0,
    *,
    base: str | Agent = "club",
    taught: Sequence[str] = tuple(TAUGHT),
    weights: Sequence[str] = tuple(CLUB),
    progress: Progress | None = None,
) -> list[Worth]:
    """What the maxims are worth.

    Args:
        rules: a game of pairs; boards: of each match, at least 2; seed: of deals and chance.
        base: who is made to follow the taught maxims, and whom it meets then.
        taught: names of `TAUGHT`; weights: names of club's maxims, which are switched off and on.
        progress: called with (matches, matches in all).

    Raises:
        ValueError: unknown names, or a game that the players do not play.
    """
    game = get_rules(rules)
    if unknown := [name for name in weights if name not in CLUB]:
        raise ValueError(f"club has no maxim {unknown[0]!r}; maxims are {', '.join(CLUB)}")
    player = make_agent(base, game)
    off = dict.fromkeys(CLUB, 0.0) | {_BASE: CLUB[_BASE][0]}
    heavy = _club(off)
    total, done = 2 * (len(taught) + len(weights)), 0

    def meet(a: str | Agent, b: str | Agent) -> Estimate:
        nonlocal done
        found = over_units(evaluate(a, b, game, boards, seed).values)
        done += 1
        if progress is not None:
            progress(done, total)
        return found

    out = []
    for name in taught:
        maxim = _taught(name)
        kept, left = (meet(Follower(player, name, follow), player) for follow in (True, False))
        out.append(Worth(name, maxim.text, True, kept, left))
    for name in weights:
        alone = off | {name: CLUB[name][0]}
        kept = meet(_club(alone), heavy) if name != _BASE else meet(heavy, _club(off | {_BASE: 0.0}))
        out.append(Worth(name, CLUB[name][1], False, kept, meet(f"club:{name}=0", "club")))
    return out


def _club(weights: Mapping[str, float]) -> str:
    return "club:" + ",".join(f"{name}={weight}" for name, weight in weights.items())


# -- who follows them -----------------------------------------------------------------------------------------------

MORE, LESS, ALIKE, UNKNOWN = "more", "less", "alike", "unknown"


@dataclass(frozen=True)
class Answer:
    """Whether a player follows a maxim."""

    maxim: str
    text: str
    count: int  # decisions in which it could be followed and could be broken, and may not be
    rate: Estimate  # how often the player follows it there
    rates: dict[str, Estimate]  # the others, on the same decisions
    differences: dict[str, Estimate]  # the player less each of the others
    unless: str  # where it is to be followed less often; "" where nothing is said
    free: int  # decisions there in which it could be followed and could be broken
    split: Estimate  # the rate there, less the rate elsewhere

    def compared(self, other: str) -> str:
        """Whether it follows the maxim more often than another one: more, less, alike, or unknown."""
        return _word(self.differences[other])

    @property
    def knows_when(self) -> str:
        """Whether it follows the maxim less often where that says so: yes, no, or unknown; "" where it says nothing."""
        return {LESS: "yes", UNKNOWN: UNKNOWN}.get(_word(self.split), "no") if self.unless else ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **{name: getattr(self, name) for name in ("maxim", "text", "count", "unless", "free", "knows_when")},
            "rate": self.rate.to_dict(),
            "rates": {name: one.to_dict() for name, one in self.rates.items()},
            "differences": {name: one.to_dict() for name, one in self.differences.items()},
            "compared": {name: self.compared(name) for name in self.differences},
            "split": self.split.to_dict(),
        }


def _word(difference: Estimate) -> str:
    if math.isnan(difference.error):
        return UNKNOWN
    return ALIKE if difference.covers(0.0) else MORE if difference.mean > 0 else LESS


def follows(
    record: Record,
    others: Mapping[str, Model],
    *,
    taught: Sequence[str] = tuple(TAUGHT),
    least: int = LEAST,
) -> list[Answer]:
    """Whether the players of a record follow the maxims, and more often than others would.

    Args:
        record: deals with all their decisions, played by agents that can be asked.
        others: by name, whom they are compared with: a deaf twin, a heuristic, "uniform".
        taught: names of `TAUGHT`.
        least: decisions below which there is no rate.

    Raises:
        ValueError: unknown names, a game without partners, or players that cannot be asked.
    """
    moments = record.moments
    rules = moments.position.rules
    if not rules.pairs:
        raise ValueError(f"maxims speak of partners, and {rules.title} has none")
    s = situation(moments)
    rows = np.arange(len(moments))
    own = by_seat(moments.position, record.table, rows, moments.hand())[0]
    said = {name: answers(moments.position, model, rows, moments.hand())[0] for name, model in others.items()}
    return [_answer(_taught(name), s, own, said, moments.deal, least) for name in taught]


def _answer(maxim: Maxim, s: Situation, own: Floats, said: Mapping[str, Floats], deal: Ints, least: int) -> Answer:
    bound, may = maxim.open_to(s), mask_of_bits(s.legal)[:, :PASS] != 0
    within = maxim.within(s) & may
    wanted = within & maxim.follows(s)

    def parts(play: Floats, rows: Bools) -> tuple[Floats, Floats]:
        """By decision: how likely a move that follows is, and one that it chooses among."""
        return (play[rows, :PASS] * wanted[rows]).sum(axis=1), (play[rows, :PASS] * within[rows]).sum(axis=1)

    def rate(play: Floats) -> Estimate:
        over, under = parts(play, some)
        return clustered(np.divide(over, under, out=np.zeros(len(over)), where=under > 0), deal[some], under)

    free, some = bound & maxim.free(s), bound & ~maxim.free(s)
    enough, split = int(some.sum()) >= least, NOTHING
    if enough and int(free.sum()) >= least:
        split = _difference(parts(own, free), deal[free], parts(own, some), deal[some])
    return Answer(
        maxim=maxim.name,
        text=maxim.text,
        count=int(some.sum()),
        rate=rate(own) if enough else NOTHING,
        rates={name: rate(play) if enough else NOTHING for name, play in said.items()},
        differences={
            name: _difference(parts(own, some), deal[some], parts(play, some), deal[some]) if enough else NOTHING
            for name, play in said.items()
        },
        unless=maxim.unless_text,
        free=int(free.sum()),
        split=split,
    )


def _difference(one: tuple[Floats, Floats], deal: Ints, other: tuple[Floats, Floats], other_deal: Ints) -> Estimate:
    """One ratio of sums less another, where deals are the units of both: the error is that of the linearised ratios."""
    units, which = np.unique(np.concatenate([deal, other_deal]), return_inverse=True)
    n, split = len(units), len(deal)
    means, spread = [], np.zeros(n)
    for (over, under), place, sign in ((one, which[:split], 1), (other, which[split:], -1)):
        total = float(under.sum())
        if not total > 0:
            return NOTHING
        ratio = float(over.sum()) / total
        spread += sign * np.bincount(place, over - ratio * under, minlength=n) / total
        means.append(ratio)
    mean = means[0] - means[1]
    if n < 2:
        return Estimate(mean, math.nan, math.nan, math.nan, n, split)
    error = float(np.sqrt(n / (n - 1) * (spread**2).sum()))
    margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    return Estimate(mean, mean - margin, mean + margin, error, n, split)


# -- both -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Maxims:
    """What the maxims are worth, and who follows them."""

    rules: Rules
    boards: int
    base: str
    worths: list[Worth]
    players: tuple[str, ...]  # by seat, of the deals that were looked at; none where nobody was asked for
    answers: list[Answer]
    least: int = LEAST  # decisions below which there is no rate

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rules": self.rules.title,
            "boards": self.boards,
            "base": self.base,
            "players": list(self.players),
            "least": self.least,
            "worths": [one.to_dict() for one in self.worths],
            "answers": [one.to_dict() for one in self.answers],
        }


def maxims(
    rules: str | Rules = "sport_book",
    boards: int = 1000,
    seed: int = 0,
    *,
    base: str | Agent = "club",
    record: Record | None = None,
    others: Mapping[str, Model] | None = None,
    taught: Sequence[str] = tuple(TAUGHT),
    weights: Sequence[str] = tuple(CLUB),
    least: int = LEAST,
    progress: Progress | None = None,
) -> Maxims:
    """What the maxims are worth to a rule player, and whether the players of a record follow them.

    Args:
        rules, boards, seed, base, taught, weights, progress: as of `worths`.
        record, others, least: as of `follows`; without a record nobody is asked.

    Raises:
        ValueError: as of these; a record of another game.
    """
    game = get_rules(rules)
    if record is not None and record.moments.position.rules != game:
        raise ValueError(f"the record is of {record.moments.position.rules.title}, not of {game.title}")
    found = worths(game, boards, seed, base=base, taught=taught, weights=weights, progress=progress)
    told = [] if record is None else follows(record, others or {"uniform": "uniform"}, taught=taught, least=least)
    players = () if record is None else tuple(agent.name for agent in record.table)
    return Maxims(game, boards, make_agent(base, game).name, found, players, told, least)
