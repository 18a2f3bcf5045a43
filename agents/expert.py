"""Expert iteration (Anthony, Tian and Barber 2017): label decisions by search, imitate, improve by PPO, and again.

A run is so many rounds, and a round has two parts. First the network learns from teachers: it plays deals against
itself, some of its decisions are labelled with what every legal action is worth, and it imitates softmax(values /
temperature). Then PPO goes on from there (agents/ppo.py). Three kinds of teachers:

* `double_dummy`: exact values of the deal as it lies, all hands open. The network is shown its own hand, so over many
  deals it learns the mean; cheap but at the lead.
* players that know no more than the seat and can say values: `pimc-30`, `lookahead:model=RUN`.
* `search`: look-ahead with the run's own networks, as they are then: the policy reads the others' past moves, the
  critic that sees all hands judges (agents/search/lookahead.py). Options after a colon: `search:worlds=50,leaf=mean`.

While it is taught the critic learns from deals that the network plays against itself, so that PPO and `search` find one
that knows this player. All chance of an update follows from (seed, number of the update).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.base import Decisions, call_factory, decide, make_agent, options_of
from agents.buffers import join
from agents.networks import (
    CentralCritic,
    Policy,
    input_bits,
    mirrored_columns,
    straightened,
    to_bits,
    to_mask,
    with_choices,
)
from agents.ppo import PARTS, PPOConfig, Trainer as PPO
from agents.rollout import deal_figures
from agents.search import load
from agents.targets import imitation_loss, soft_targets
from domino_env.deals import Streams
from domino_env.engine import make_engine
from domino_env.line import LineEngine, select_bit

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

DOUBLE_DUMMY, SEARCH = "double_dummy", "search"
_LABELS = 100  # apart from the numbers of PPO's parts, where chance is seeded


@dataclass
class ExpertConfig(PPOConfig):
    """Settings of a run; a YAML in configs/ holds only what differs."""

    algorithm: Literal["expert"] = "expert"  # type: ignore[assignment]
    teachers: list[str] = field(default_factory=lambda: [DOUBLE_DUMMY, "pimc-10"])
    shares: list[float] = field(default_factory=lambda: [0.95, 0.05])  # of the labels, one for each teacher
    rounds: int = 1
    imitate: float = 0.3  # of each round, before PPO
    label_deals: int = 128  # played for labels in an update
    label_share: float = 1.0  # of their decisions, that are labelled
    label_tiles: int = 24  # decisions with more tiles in all hands are labelled by no `double_dummy`: 28 is the lead
    keep_labels: int = 65536  # the newest, that are learned from
    steps: int = 16  # minibatches of an update
    temperature: float = 2.0  # points: a move that costs so much weighs 1/e of the best
    imitate_rate: float = 1e-3  # learning rate of imitation

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "rounds", "label_deals", "keep_labels", "steps", "label_tiles")
        self.at_most(2**20, "label_deals", "keep_labels", "steps")
        self.above(0, "label_share", "temperature", "imitate_rate")
        self.within(0, 1, "label_share", "imitate")
        for key in ("words", "owner_coef", "deaf"):
            if getattr(self, key):
                raise ValueError(key, "expert learns without; leave it out, or train with ppo")
        if self.advantage != "deal":
            raise ValueError("advantage", f"expert needs deal, a critic that sees all hands; got {self.advantage}")
        rules = self.get_rules()
        try:
            load("solver").check(rules)
        except ValueError as error:
            raise ValueError("rules", f"expert labels by exact play: {error}") from None
        if not self.teachers or len(self.teachers) != len(self.shares):
            said = f"{len(self.teachers)} teachers and {len(self.shares)} shares"
            raise ValueError("shares", f"there must be one for each teacher, at least one; got {said}")
        if min(self.shares) < 0 or sum(self.shares) <= 0:
            raise ValueError("shares", f"must not be negative, and not all 0; got {self.shares}")
        for name in self.teachers:
            try:
                _check_teacher(name, self)
            except ValueError as error:
                raise ValueError("teachers", str(error)) from None


def _check_teacher(name: str, config: ExpertConfig) -> None:
    """Refuses what labels nothing, by a ValueError."""
    if name == DOUBLE_DUMMY:
        return
    if name.partition(":")[0] == SEARCH:
        options = options_of(name)
        for key in ("model", "critic", "ms", "threads"):
            if key in options:
                raise ValueError(f"{name}: {key} is not to be chosen; the run's own networks search")
        call_factory(SEARCH, load("lookahead").Lookahead, {"model": "random", "critic": _Nobody(), **options})
        return
    agent: Any = make_agent(name, config.get_rules())
    if not hasattr(agent, "search") and not hasattr(agent, "outlook"):
        raise ValueError(
            f"{name} cannot say what actions are worth; choose {DOUBLE_DUMMY}, {SEARCH}, pimc or lookahead"
        )
    if getattr(agent, "ms", None) is not None:
        raise ValueError(f"{name} has a clock: what it says cannot be repeated; say worlds instead")


class _Nobody:
    """A judge that only stands for one where options are checked."""

    name = "nobody"

    def values(self, engine: LineEngine, /) -> Floats:
        """Never asked."""
        raise NotImplementedError


# -- labels ----------------------------------------------------------------------------------------------------------


@dataclass
class Labels:
    """N decisions and what their actions are worth, as the network is shown them: lines straightened."""

    obs: npt.NDArray[np.uint8]  # (N, nbytes) packed
    legal: npt.NDArray[np.uint64]  # (N,) bit a for action a
    values: Floats  # (N, 57) points of the mover's side, 0 where not legal

    def newest(self, count: int) -> Labels:
        """The last `count` of them, or all."""
        return Labels(self.obs[-count:], self.legal[-count:], self.values[-count:])


def concatenate(parts: Sequence[Labels]) -> Labels:
    """All of them, in this order."""
    return Labels(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("obs", "legal", "values")))


Teacher = Callable[[Decisions, LineEngine, Ints, npt.NDArray[np.uint64]], npt.NDArray[Any]]


def make_teacher(name: str, config: ExpertConfig, policy: Policy, critic: CentralCritic) -> Teacher:
    """What labels: called with decisions, the engine and the rows that they are of, and (n,) chance of each; it answers
    (n, 57) points, whatever where not legal.

    Args:
        name: of `ExpertConfig.teachers`; policy, critic: the run's own, for `search`.
    """
    if name == DOUBLE_DUMMY:
        solve, rules = load("solver").solve, config.get_rules()

        def exact(batch: Decisions, engine: LineEngine, rows: Ints, keys: Any) -> npt.NDArray[Any]:
            hands, ends, seats = engine.hands()[rows], engine.ends()[rows], engine.to_move()[rows]
            return solve(hands, ends, seats, rules, threads=config.threads)

        return exact
    if name.partition(":")[0] == SEARCH:
        options = {"temperature": 1.0, "floor": 0.02, **options_of(name)}
        agent = load("lookahead").Lookahead(policy, critic=critic, threads=config.threads, **options)
    else:
        agent = make_agent(name, config.get_rules())
    position_of = load("position").position_of

    def searched(batch: Decisions, engine: LineEngine, rows: Ints, keys: Any) -> npt.NDArray[Any]:
        position = position_of(batch)
        found = agent.search(position, batch.mask, keys) if hasattr(agent, "search") else agent.outlook(position, keys)
        return found.mean

    return searched


# -- training --------------------------------------------------------------------------------------------------------


class Trainer(PPO):
    """A run of expert iteration. `update()` labels and imitates, or is one of PPO."""

    config: ExpertConfig

    def __init__(self, config: ExpertConfig) -> None:
        super().__init__(config)
        nbytes = input_bits(self.rules, False, config.choices) // 8
        nothing = np.zeros((0, self.rules.num_actions), np.float32)
        self.labels = Labels(np.zeros((0, nbytes), np.uint8), np.zeros(0, np.uint64), nothing)

    @property
    def taught(self) -> bool:
        """Whether the next update is one of imitation."""
        return self.progress * self.config.rounds % 1 < self.config.imitate

    def memory(self) -> dict[str, Tensor]:
        """The labels that are learned from, and the past selves."""
        labels = self.labels
        if not len(labels.legal):
            return super().memory()
        return super().memory() | {
            "labels.obs": torch.from_numpy(labels.obs),
            "labels.legal": torch.from_numpy(labels.legal.view(np.int64)),
            "labels.values": torch.from_numpy(labels.values),
        }

    def restore(self, counters: Mapping[str, Any], memory: Mapping[str, Tensor]) -> None:
        """Goes on from there."""
        super().restore(counters, memory)
        if "labels.obs" in memory:
            obs, legal, values = (memory[f"labels.{name}"].numpy() for name in ("obs", "legal", "values"))
            self.labels = Labels(obs, legal.view(np.uint64), values)

    def update(self) -> dict[str, float | npt.NDArray[np.float32]]:
        """Learns from teachers, or plays and learns as PPO does; returns figures by TensorBoard tag."""
        return self._imitate() if self.taught else super().update()

    def _imitate(self) -> dict[str, float | npt.NDArray[np.float32]]:
        config = self.config
        begin = time.perf_counter()
        fresh, regret = self._label()
        labelled = time.perf_counter()
        self.labels = concatenate([self.labels, fresh]).newest(config.keep_labels)
        if not len(self.labels.legal):
            raise ValueError(
                f"there is nothing to learn from: no decision of {config.label_deals} deals was labelled; raise "
                "label_deals, label_share or label_tiles"
            )
        played = self._tasks.together(*(partial(self._play, part, False) for part in range(PARTS)))
        rollout = join([part.rollout for part in played])
        middle = time.perf_counter()
        rng = np.random.default_rng([config.seed, self.updates, PARTS])
        orders = [rng.permutation(len(rollout.action)) for _ in range(config.epochs)]
        rows = rng.integers(len(self.labels.legal), size=(config.steps, config.minibatch))
        actor, critic = self._tasks.together(
            lambda: self._learn_labels(rows), lambda: self._learn_critic(rollout, orders, config.imitate_rate)
        )
        self.updates += 1
        self.decisions += len(fresh.legal)
        self.deals += config.deals + config.label_deals
        met = self.pool.count([(part.seating, part.rewards) for part in played])
        self.pool.grow(self.updates, self.actor)
        return {
            **deal_figures(self.rules, [part.tally for part in played]),
            **met,
            **actor,
            **critic,
            **({"losses/label_regret": regret} if len(fresh.legal) else {}),
            "losses/explained_variance": float(1 - rollout.advantage.var() / max(rollout.target.var(), 1e-12)),
            "charts/learning_rate": config.imitate_rate,
            "time/labels_seconds": labelled - begin,
            "time/rollout_seconds": middle - labelled,
            "time/learning_seconds": time.perf_counter() - middle,
        }

    def _learn_labels(self, batches: Ints) -> dict[str, Any]:
        """One step for each of (steps, minibatch) rows of the labels."""
        config, losses, norms = self.config, list[Tensor](), list[float]()
        for rows in batches:
            mask = to_mask(self.labels.legal[rows], self.rules.num_actions, self.device)
            target = soft_targets(self._tensor(self.labels.values[rows]), mask, config.temperature)
            logits = self.actor.fast(to_bits(self.labels.obs[rows], self.dtype, self.device))
            loss, grad = imitation_loss(logits, mask, target)
            norms.append(self.actor.step(logits, grad.to(logits.dtype), config.imitate_rate))
            losses.append(loss)
        return {
            "losses/imitation_loss": float(torch.stack(losses).mean()),
            "losses/grad_norm": sum(norms) / len(norms),
        }

    def _label(self) -> tuple[Labels, float]:
        """Decisions of fresh deals that the network plays against itself, labelled by the teachers.

        Returns:
            The labels, and the points that the network's likeliest action loses by them, on average; nan where there
            are none.
        """
        config, rules = self.config, self.rules
        entropy = np.random.SeedSequence([config.seed, self.updates, _LABELS])
        seed = int(entropy.generate_state(1, np.uint64)[0] >> np.uint64(1))
        engine: Any = make_engine(rules, config.label_deals, seed=seed)
        streams, rng = Streams.of(seed, np.arange(config.label_deals)), np.random.default_rng(entropy)
        policy = Policy(self.actor.network, rules, "expert", sample=True, choices=config.choices)
        critic = CentralCritic(self.critic.network, rules, config.reward_scale)
        teachers = [make_teacher(name, config, policy, critic) for name in config.teachers]
        odds = np.array(config.shares) / sum(config.shares)
        parts, lost = list[Labels](), list[npt.NDArray[Any]]()
        over = False
        while not over:
            bits = engine.legal_bits()
            actions = select_bit(bits, np.zeros(len(bits), np.uint8))
            free = np.flatnonzero(engine.legal_count() > 1)
            if len(free):
                batch = decide(engine, None, streams, free)
                actions[free] = policy.act(batch)
                who = rng.choice(len(teachers), len(free), p=odds)
                keys = rng.integers(1 << 53, size=len(free), dtype=np.uint64)
                wanted = rng.random(len(free)) < config.label_share
                tiles = np.bitwise_count(engine.hands()[free]).sum(axis=1)
                for number, teacher in enumerate(teachers):
                    rows = wanted & (who == number)
                    if config.teachers[number] == DOUBLE_DUMMY:
                        rows &= tiles <= config.label_tiles
                    chosen = np.flatnonzero(rows)
                    if len(chosen):
                        asked = batch.take(chosen)
                        values = np.where(asked.mask, teacher(asked, engine, free[chosen], keys[chosen]), 0)
                        parts.append(self._straight(asked, values.astype(np.float32)))
                        best = policy.probabilities(asked).argmax(axis=1)
                        top = np.where(asked.mask, values, -np.inf).max(axis=1)
                        lost.append(top - values[np.arange(len(values)), best])
            _, done = engine.step(actions, autoreset=False)
            over = bool(done.all())
            if done.any() and not over:
                engine, streams = engine.take(~done), streams.take(~done)
        if not parts:
            nothing = slice(0)
            return Labels(self.labels.obs[nothing], self.labels.legal[nothing], self.labels.values[nothing]), math.nan
        return concatenate(parts), float(np.concatenate(lost).mean())

    def _straight(self, batch: Decisions, values: Floats) -> Labels:
        """Decisions and values as the network is shown them."""
        obs, legal, flipped = straightened(batch, self.layout)
        if self.config.choices:
            assert batch.history is not None
            obs = with_choices(obs, batch.history, self.rules)
        return Labels(obs, legal, mirrored_columns(values, flipped))
