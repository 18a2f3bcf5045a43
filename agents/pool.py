"""Whom a learner meets beside itself: past selves, frozen by value, and agents by name; and how likely it meets whom.

At a part of the tables of an update a member of the pool sits, as both opponents of the learner (where each seat plays
for itself: at every second seat) or as its partner, from the beginning of the deal to its end. Members are chosen
evenly, newer past selves more often, or by how the learner fares with them: prioritised fictitious self-play (Vinyals
and others 2019) meets those more often that it loses to. What is known of that is counted in training.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from agents.base import Agent, decide, make_agent
from agents.checkpoint import fill
from agents.learner import Learner
from agents.rollout import SELF, Seating
from domino_env.deals import Streams
from domino_env.engine import Engine, make_engine
from domino_env.rules import Rules

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

AGAINST, WITH = 0, 1  # the two ways to meet a member: as opponents, as the partner
PAST = "past"  # what all past selves together are called in `weights` and in the log
DEALS = 2**20  # of an update, at most
_PLIES = 1 << 10  # room for the plies of a deal in the number of a random stream
_LEAST_DEALS = 16  # of an update: with fewer the learner might have no decision to learn from
_NAME = re.compile(r"past_(\d+)")


@dataclass
class PoolConfig:
    """Settings of the pool; a share of 0 is plain self-play."""

    share: float = 0.0  # of the tables of an update at which a member sits
    partner: float = 0.0  # of these, at which it is the learner's partner; at the others it is both opponents
    members: list[str] = field(default_factory=list)  # agents by name, or checkpoints by folder; they stay
    every: int = 0  # after every so many updates a past self is taken in; 0: none
    keep: int = 8  # past selves that stay
    drop: Literal["oldest", "spread"] = "oldest"  # who goes: the oldest, or one so that the others are evenly spread
    choice: Literal["uniform", "recency", "hard", "variance"] = "uniform"  # hard, variance: by win rates
    recency: float = 0.8  # with that choice: how likely a past self is beside the next newer one
    sample: bool = True  # past selves play by their probabilities; else the likeliest action
    weights: dict[str, float] = field(default_factory=dict)  # how often beside the others; past: every past self
    prior: float = 20.0  # deals, half of them won, that every win rate begins with
    fade: float = 0.98  # what a deal still counts for after the next update

    def __post_init__(self) -> None:
        for key in ("share", "partner", "recency", "fade"):
            if not 0 <= getattr(self, key) <= 1:
                raise ValueError(key, f"must be in 0..1, got {getattr(self, key)}")
        if self.recency == 0:
            raise ValueError("recency", "must be above 0, got 0.0")
        if self.every < 0:
            raise ValueError("every", f"must not be negative, got {self.every}")
        if self.keep < 1:
            raise ValueError("keep", f"must be at least 1, got {self.keep}")
        if self.prior <= 0:
            raise ValueError("prior", f"must be above 0, got {self.prior}")
        if len(set(self.members)) < len(self.members):
            raise ValueError("members", f"each is named once, got {', '.join(self.members)}")
        for name in self.members:
            if name == PAST or _NAME.fullmatch(name):
                raise ValueError("members", f"{name} is what past selves are called")
        known = [PAST, *self.members]
        for name, weight in self.weights.items():
            if name not in known:
                raise ValueError("weights", f"{name!r} is no member; there are {', '.join(known)}")
            if weight < 0:
                raise ValueError("weights", f"must not be negative, got {name}: {weight}")
        able = [*self.members, *([PAST] if self.every else [])]
        if self.share and not any(self.weights.get(name, 1.0) for name in able):
            raise ValueError("share", f"at {self.share} of the tables sits nobody: name members, or set every")

    def check(self, rules: Rules, deals: int) -> None:
        """Refuses, by ValueError(key, why), what this game cannot have; members are tried at a table.

        Args:
            deals: of an update.
        """
        if not self.share:
            return
        if self.partner and not rules.pairs:
            raise ValueError("partner", f"in {rules.title} each seat plays for itself; set it to 0")
        if deals < _LEAST_DEALS:
            raise ValueError("share", f"a pool needs at least {_LEAST_DEALS} deals an update, got deals={deals}")
        for name in self.members:
            try:
                agent = make_agent(name, rules)
            except ValueError as error:
                raise ValueError("members", str(error)) from None
            if getattr(agent, "ms", None) is not None:
                raise ValueError("members", f"{name} has a clock: what it plays cannot be repeated; say worlds instead")
            try:
                _try(agent, rules)
            except ImportError:
                raise
            except Exception as error:  # whatever a player of someone else's raises
                why = " ".join(str(error).split())
                raise ValueError("members", f"{name} fails at a table of {rules.title}: {why}") from error


def _try(agent: Agent, rules: Rules) -> None:
    """Lets an agent play one deal at all seats."""
    engine, over = make_engine(rules, 1, seed=0), False
    while not over:
        actions = engine.legal().argmax(axis=1)
        if engine.legal_count()[0] > 1 or engine.peeks()[0]:
            actions = ask(agent, engine, Streams.of(0, engine.plies()), np.zeros(1, np.int64))
        over = bool(engine.step(actions, autoreset=False)[1][0])


def ask(agent: Agent, engine: Engine, streams: Streams, key: Ints) -> Ints:
    """What an agent plays at all tables of an engine.

    Args:
        engine: N rows; streams: their chance; key: (N,) identities of the deals.

    Raises:
        ValueError: an answer that cannot be played.
    """
    answer = np.asarray(agent.act(decide(engine, agent, streams, key=key)))
    if answer.shape != (engine.num_envs,) or answer.dtype.kind not in "iu":
        raise ValueError(f"{agent.name} answered {answer.dtype} {answer.shape} to {engine.num_envs} decisions")
    answer = answer.astype(np.int64)
    bits = engine.legal_bits()
    legal = (answer >= 0) & (answer < engine.rules.num_actions)
    legal &= bits >> np.where(legal, answer, 0).astype(np.uint64) & np.uint64(1) == 1
    if not legal.all():
        raise ValueError(f"{agent.name} answered {answer[~legal][0]}, which is not legal")
    return answer


# -- how likely ------------------------------------------------------------------------------------------------------


def prioritised(win_rate: Floats, choice: str) -> Floats:
    """Weights of prioritised fictitious self-play (Vinyals and others 2019, Methods): (M,) from (M,) win rates.

    "hard": (1 - p)^2, who beats the learner; "variance": p (1 - p), who is about as good.
    """
    return (1 - win_rate) ** 2 if choice == "hard" else win_rate * (1 - win_rate)


@dataclass
class Past:
    """A past self: copies of the learner's parameters, which nothing changes."""

    update: int  # after which it was the learner
    network: nn.Module  # float32: what is saved
    fast: nn.Module  # what plays, in the learner's arithmetic

    @property
    def name(self) -> str:
        """What it is called in the counters."""
        return f"past_{self.update}"


def _frozen(network: nn.Module, update: int, dtype: torch.dtype) -> Past:
    """A past self of its own copies of the parameters."""
    kept = copy.deepcopy(network).requires_grad_(False)
    fast = kept if dtype == torch.float32 else copy.deepcopy(kept).to(dtype)
    return Past(update, kept, fast)


class Pool:
    """The members, how the learner fares with each, and who sits where. Named members come first, then past selves."""

    def __init__(self, config: PoolConfig, rules: Rules, parts: int) -> None:
        """The named members, once for each of the parts of an update, which play at the same time."""
        self.config, self.rules = config, rules
        names = config.members if config.share else []
        self.agents = [[make_agent(name, rules) for name in names] for _ in range(parts)]
        self.named = len(names)
        self.past: list[Past] = []  # oldest first
        # By member: (2, 3) deals, won (a tie is half of one), points of the learner; against it, with it; faded.
        self.counts: dict[str, Floats] = {}

    @property
    def names(self) -> list[str]:
        """Of all members, by number."""
        return [*self.config.members[: self.named], *(one.name for one in self.past)]

    # -- who is met --

    def win_rates(self, way: int) -> Floats:
        """(M,) estimates of the part of the deals that the learner wins, against or with each member."""
        counts = np.array([self._of(name)[way] for name in self.names]).reshape(-1, 3)
        prior = self.config.prior
        return (counts[:, 1] + prior / 2) / (counts[:, 0] + prior)

    def probabilities(self, way: int) -> Floats:
        """(M,) how likely each member is met; all 0 where none may be."""
        config, past = self.config, len(self.past)
        weight = np.array([config.weights.get(name, 1.0) for name in self.config.members[: self.named]])
        weight = np.concatenate([weight, np.full(past, config.weights.get(PAST, 1.0))])
        if config.choice == "recency":
            weight[self.named :] *= config.recency ** np.arange(past - 1, -1, -1.0)
        elif config.choice != "uniform":
            weight *= prioritised(self.win_rates(way), config.choice)
        total = weight.sum()
        return weight / total if total else weight

    def seat(self, deals: int, rng: np.random.Generator) -> Seating:
        """Who sits at so many tables: members at the first ones, drawn by their probabilities at seats that are drawn.

        Where it sits against the learner a member has every second seat.
        """
        config, seats = self.config, self.rules.seats
        who, member = np.full((deals, seats), SELF), np.full(deals, SELF)
        partner = np.zeros(deals, np.bool_)
        tables = round(config.share * deals) if self.names and self.probabilities(AGAINST).any() else 0
        if tables:
            first = round(config.partner * tables)
            partner[:first] = True
            for way, rows in ((WITH, np.arange(first)), (AGAINST, np.arange(first, tables))):
                member[rows] = rng.choice(len(self.names), len(rows), p=self.probabilities(way))
            place = rng.integers(seats, size=tables)[:, None]
            apart = (np.arange(seats) - place) % seats
            there = np.where(partner[:tables, None], apart == 0, (np.arange(seats) - place) % 2 == 0)
            who[:tables] = np.where(there, member[:tables, None], SELF)
        return Seating(who, member, partner)

    def past_self(self, number: int) -> Past:
        """The past self that is the member of that number."""
        return self.past[number - self.named]

    # -- what came of it --

    def count(self, played: Sequence[tuple[Seating, npt.NDArray[np.float32]]]) -> dict[str, float]:
        """Takes in how the deals of an update ended; returns figures by TensorBoard tag.

        Args:
            played: the tables of each part, and the (D, seats) rewards of their deals.
        """
        if not self.config.share:
            return {}
        fresh = np.zeros((len(self.names), 2, 3))
        for seating, rewards in played:
            met = np.flatnonzero(seating.member != SELF)
            way = seating.partner[met].astype(np.int64)
            # The seats whose points are the learner's: its own, or its partner's, who gets the same.
            ours = (seating.who[met] == SELF) != seating.partner[met, None]
            points = (rewards[met] * ours).sum(axis=1, dtype=np.float64) / ours.sum(axis=1)
            won = (points > 0) + 0.5 * (points == 0)
            np.add.at(fresh, (seating.member[met], way), np.stack([np.ones(len(met)), won, points], axis=1))
        for name, counts in zip(self.names, fresh, strict=True):
            self.counts[name] = self.config.fade * self._of(name) + counts
        return self._figures(fresh, sum(len(seating.member) for seating, _ in played))

    def _of(self, name: str) -> Floats:
        return self.counts.get(name, np.zeros((2, 3)))

    def _figures(self, fresh: Floats, deals: int) -> dict[str, float]:
        """Of every named member, and of all past selves together; fresh: (M, 2, 3) counts of this update."""
        groups = {name: [i] for i, name in enumerate(self.names[: self.named])}
        if self.past:
            groups[PAST] = list(range(self.named, len(self.names)))
        figures: dict[str, float] = {"pool/past_selves": len(self.past)} if self.config.every else {}
        for name, numbers in groups.items():
            tag = f"pool/{re.sub(r'[^A-Za-z0-9_.=,-]+', '_', name).strip('_')}"
            now = fresh[numbers].sum(axis=0)
            figures[f"{tag}/share"] = float(now[:, 0].sum() / deals)
            known, prior = sum(self._of(self.names[i])[AGAINST] for i in numbers), self.config.prior
            figures[f"{tag}/win_rate"] = float((known[1] + prior / 2) / (known[0] + prior))
            for way, figure in ((AGAINST, "points_per_deal"), (WITH, "partner_points_per_deal")):
                if now[way, 0]:
                    figures[f"{tag}/{figure}"] = float(now[way, 2] / now[way, 0])
        return figures

    # -- past selves --

    def grow(self, update: int, actor: Learner) -> None:
        """Takes in the present learner, where one is due after this update, and drops who is one too many."""
        config = self.config
        if not config.share or not config.every or update % config.every:
            return
        self.past.append(_frozen(actor.network, update, next(actor.fast.parameters()).dtype))
        while len(self.past) > config.keep:
            del self.past[self._superfluous()]
        self.counts = {name: counts for name, counts in self.counts.items() if name in self.names}

    def _superfluous(self) -> int:
        if self.config.drop == "oldest" or len(self.past) < 3:
            return 0
        updates = np.array([one.update for one in self.past])
        return int((updates[2:] - updates[:-2]).argmin()) + 1  # whose neighbours are nearest to each other

    # -- keeping --

    def memory(self) -> dict[str, Tensor]:
        """The parameters of the past selves by name."""
        return {
            f"{PAST}.{one.update}.{name}": tensor
            for one in self.past
            for name, tensor in one.network.state_dict().items()
        }

    def counters(self) -> dict[str, Any]:
        """What was counted, as plain data."""
        return {name: self.counts[name].tolist() for name in self.names if name in self.counts}

    def restore(self, counters: Mapping[str, Any], memory: Mapping[str, Tensor], actor: Learner) -> None:
        """Goes on from there; what is no longer a member is forgotten.

        Raises:
            ValueError: what is missing or cannot be.
        """
        if not self.config.share:
            return
        found: dict[int, dict[str, Tensor]] = {}
        for key, tensor in memory.items():
            kind, _, rest = key.partition(".")
            if kind == PAST:
                number, _, name = rest.partition(".")
                found.setdefault(int(number), {})[name] = tensor
        self.past = []
        for update in sorted(found):
            network = copy.deepcopy(actor.network)
            fill(network.state_dict(), found[update], f"past self {update}")
            self.past.append(_frozen(network, update, next(actor.fast.parameters()).dtype))
        self.counts = {name: _counts(name, counters[name]) for name in self.names if name in counters}


def _counts(name: str, said: Any) -> Floats:
    counts = np.array(said, np.float64)
    if counts.shape != (2, 3) or not np.isfinite(counts).all():
        raise ValueError(f"the counts of pool member {name} are not 2 times 3 numbers")
    return counts


# -- at the tables ---------------------------------------------------------------------------------------------------


class Guests:
    """The members at the tables of one part of an update, the same from the beginning of a deal to its end (B26)."""

    def __init__(self, pool: Pool, part: int, deals: int, seed: Sequence[int], key: int) -> None:
        """Seats them.

        Args:
            part: of the update; deals: its tables.
            seed: of their seats and of all chance of theirs; the learner's is as it would be without them.
            key: of the part, in the run.
        """
        self.rng = np.random.default_rng(seed)
        self.seating = pool.seat(deals, self.rng)
        self.who = self.seating.who
        #: By number, of SELF at the end: who is a network, asked as the learner is.
        self.networks = np.array([False] * pool.named + [True] * (len(pool.past) + 1))
        self._agents = pool.agents[part]
        self._seed = int(self.rng.integers(2**63))
        self._key = key * DEALS

    def play(self, engine: Engine, who: Ints, deals: Ints, actions: Ints) -> None:
        """Writes down what the agents by name play, each asked only at its own tables.

        Args:
            engine: N deals that run; who: (N,) number of their movers; deals: (N,) their numbers; actions: (N,).
        """
        if not self._agents:
            return
        asked = ~self.networks[who] & ((engine.legal_count() > 1) | engine.peeks())
        for number in np.unique(who[asked]).tolist():
            rows = np.flatnonzero(asked & (who == number))
            tables = engine.take(rows)
            streams = Streams.of(self._seed, deals[rows] * _PLIES + tables.plies())
            actions[rows] = ask(self._agents[number], tables, streams, self._key + deals[rows])
