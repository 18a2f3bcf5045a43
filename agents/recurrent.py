"""PPO for a player that remembers: a recurrent network over the public events of a deal.

What happens at a table is public, so one memory serves all its seats (`agents.networks.TableMemory`): it reads every
event, forced moves and passes too, and the seat that decides reads its state beside the observation. Its state is 0
where a deal begins, when acting and when learning (B29). The critic needs no memory: it sees all hands, and with
`advantage: seat` what the seat sees.

It learns from whole deals. A minibatch is a number of them: the memory runs over their events from the beginning, and
the loss of the real decisions goes back through all of it. Objective, advantages and schedules are those of
`agents.ppo`, and so are chance, parts and threads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from agents.algorithms import MAX_WIDTH, BaseTrainer, RunConfig
from agents.buffers import Rollout, gae, join
from agents.learner import Learner, padded
from agents.networks import (
    Critic,
    MaskedCategorical,
    Policy,
    Recurrent,
    TableMemory,
    describe_network,
    event_words,
    hidden_hands,
    make_actor,
    mirrored,
    straighten,
    to_bits,
    to_events,
    to_mask,
)
from agents.ppo import PARTS, Surrogate, objective_figures, taken
from agents.rollout import Running, Tally, deal_figures, in_order, sequences
from agents.tasks import Tasks
from domino_env.line import LineEngine, select_bit
from domino_env.observation import layout_of

Ints = npt.NDArray[np.int64]

_ROWS = 64  # the networks are asked about multiples of this: see `padded`


@dataclass
class RecurrentConfig(RunConfig):
    """Settings of a run; a YAML in configs/ holds only what differs."""

    algorithm: Literal["recurrent"] = "recurrent"
    network: Literal["gru", "gru_public_private"] = "gru"
    state: int = 64  # numbers that the memory holds of a table
    critic_hidden: list[int] = field(default_factory=lambda: [256, 256])
    advantage: Literal["deal", "seat"] = "deal"
    deals: int = 2048  # played for each update
    epochs: int = 2
    minibatch_deals: int = 64  # about 1,000 decisions
    learning_rate: float = 2e-3
    learning_rate_end: float = 1e-4
    entropy_coef: float = 0.08
    entropy_coef_end: float = 0.008
    clip: float = 0.2
    gae_lambda: float = 0.5
    reward_scale: float = 20.0  # rewards are divided by it

    FIXED: ClassVar[tuple[str, ...]] = (
        *RunConfig.FIXED, "network", "state", "critic_hidden", "advantage", "reward_scale",
    )  # fmt: skip

    def __post_init__(self) -> None:
        rules = self.get_rules()
        if rules.rows:  # said first: those who play on a line are no opponents there
            raise ValueError("rules", f"{rules.name} is blind, and recurrent plays on an open line; train it with ppo")
        super().__post_init__()
        self.at_least(1, "epochs", "minibatch_deals", "state")
        self.at_most(MAX_WIDTH, "state")
        self.at_least(PARTS, "deals")
        self.at_most(2**20, "deals", "minibatch_deals")
        self.above(0, "learning_rate", "reward_scale", "clip")
        self.not_negative("learning_rate_end", "entropy_coef", "entropy_coef_end")
        self.within(0, 1, "gae_lambda")
        self.widths("critic_hidden")
        if self.advantage == "deal" and rules.num_sides != 2:
            raise ValueError("advantage", f"deal needs two sides, {rules.name} has {rules.num_sides}; use seat")


# -- what was played -------------------------------------------------------------------------------------------------


@dataclass
class Deals:
    """D whole deals and the T decisions in them. The rows of a deal lie together, in the order of play."""

    rollout: Rollout
    ply: Ints  # (T,) events of the deal before each decision
    place: Ints  # (T,) which of the deals, 0..D-1
    events: npt.NDArray[np.uint64]  # (plies, D) words of the events, forced ones too; 0 where the deal is over
    first: Ints  # (D + 1,) where the rows of each deal begin, and T

    def rows(self, deals: Ints) -> tuple[Ints, Ints]:
        """The rows of (n,) deals, deal after deal: their numbers, and which of the n each belongs to."""
        begin, count = self.first[deals], self.first[deals + 1] - self.first[deals]
        which = np.repeat(np.arange(len(deals)), count)
        return np.arange(len(which)) + np.repeat(begin - (np.cumsum(count) - count), count), which


@dataclass
class _Part:
    """One part of an update's deals, as it was played: decisions and events by ply."""

    rollout: Rollout
    ply: Ints
    events: list[tuple[Ints, npt.NDArray[np.uint64]]]  # of each ply: the deals that ran, what happened in them
    deals: int
    tally: Tally


def gather(parts: Sequence[_Part]) -> Deals:
    """The deals of all parts, by deal."""
    before = np.cumsum([0, *(part.deals for part in parts)])
    place = np.concatenate([part.rollout.deal + start for part, start in zip(parts, before)])
    order = np.argsort(place, kind="stable")
    played = vars(join([part.rollout for part in parts]))
    ordered: dict[str, Any] = {name: None if column is None else column[order] for name, column in played.items()}
    rollout = Rollout(**ordered)
    events = np.zeros((max(len(part.events) for part in parts), before[-1]), np.uint64)
    for part, start in zip(parts, before):
        for ply, (deals, words) in enumerate(part.events):
            events[ply, start + deals] = words
    first = np.searchsorted(place[order], np.arange(before[-1] + 1))
    return Deals(rollout, np.concatenate([part.ply for part in parts])[order], place[order], events, first)


# -- training --------------------------------------------------------------------------------------------------------


class Trainer(BaseTrainer):
    """A run of recurrent PPO. `update()` plays and learns once."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self._tasks = Tasks(config.threads, "recurrent")
        self.device = torch.device(config.device)
        self.dtype = config.dtype()
        sizes = [config.deals // PARTS + (p < config.deals % PARTS) for p in range(PARTS)]
        self._engines = [LineEngine(self.rules, size, seed=0) for size in sizes]
        self.layout = layout_of(self.rules)
        generator = torch.Generator().manual_seed(config.seed)
        actor = make_actor(config.network, self.rules, config.hidden, generator, state=config.state)
        self.actor = Learner(actor, config)
        self.central = config.advantage == "deal"
        inputs = self.layout.size + (32 * (self.rules.seats - 1) if self.central else 0)
        self.critic = Learner(Critic(inputs, config.critic_hidden, generator), config)
        self.learners = {"actor": self.actor, "critic": self.critic}

    def close(self) -> None:
        """Ends the threads."""
        self._tasks.close()

    def policy(self, name: str = "policy") -> Policy:
        """The agent that the present network is; it goes on learning with the network."""
        return Policy(self.actor.network, self.rules, name)

    def describe(self) -> dict[str, Any]:
        """What one must know to build the actor again, as plain data."""
        config = self.config
        return describe_network(config.network, config.hidden, self.rules) | {"state": config.state}

    @property
    def _memory(self) -> TableMemory:
        """The one that computes."""
        return cast(Recurrent, self.actor.fast).memory

    # -- one update --

    def update(self) -> dict[str, float | npt.NDArray[np.float32]]:
        """Plays fresh deals and learns from them; returns figures by TensorBoard tag."""
        config, progress = self.config, self.progress
        learning_rate = config.learning_rate + progress * (config.learning_rate_end - config.learning_rate)
        entropy_coef = config.entropy_coef + progress * (config.entropy_coef_end - config.entropy_coef)
        begin = time.perf_counter()
        played = self._tasks.together(*(partial(self._play, part) for part in range(PARTS)))
        deals = gather(played)
        middle = time.perf_counter()
        count = len(deals.ply)
        rng = np.random.default_rng([config.seed, self.updates, PARTS])
        epochs = [(self._minibatches(deals, rng), rng.permutation(count)) for _ in range(config.epochs)]
        actor, critic = self._tasks.together(
            lambda: self._learn_actor(deals, [deals for deals, _ in epochs], learning_rate, entropy_coef),
            lambda: self._learn_critic(deals.rollout, [rows for _, rows in epochs], learning_rate),
        )
        end = time.perf_counter()
        self.updates += 1
        self.decisions += count
        self.deals += config.deals
        errors = deals.rollout.advantage  # targets - values
        return {
            **deal_figures(self.rules, [part.tally for part in played]),
            **actor,
            **critic,
            "losses/explained_variance": float(1 - errors.var() / max(deals.rollout.target.var(), 1e-12)),
            "charts/learning_rate": learning_rate,
            "charts/entropy_coef": entropy_coef,
            "time/rollout_seconds": middle - begin,
            "time/learning_seconds": end - middle,
        }

    # -- playing --

    def _play(self, part: int) -> _Part:
        """One part of an update's deals, played by the present network to their end, with advantages."""
        entropy = np.random.SeedSequence([self.config.seed, self.updates, part])
        run = Running(self._engines[part], int(entropy.generate_state(1, np.uint64)[0]))
        rng = np.random.default_rng(entropy)
        decisions: list[tuple[npt.NDArray[Any], ...]] = []
        events: list[tuple[Ints, npt.NDArray[np.uint64]]] = []
        with torch.inference_mode():
            state = self._memory.start(len(run.live))
            while len(run.live):
                engine, live, mover = cast(LineEngine, run.engine), run.live, run.mover
                bits = engine.legal_bits()
                actions = select_bit(bits, np.zeros(len(bits), np.uint8))
                free = np.flatnonzero(engine.legal_count() > 1)
                if len(free):
                    hidden = hidden_hands(engine, free)
                    obs, legal, flipped = straighten(engine.observe(packed=True)[free], bits[free], self.layout)
                    chosen, logprob = self._choose(obs, state[torch.from_numpy(free)], legal, rng.random(len(free)))
                    actions[free] = mirrored(chosen, flipped)
                    ply = np.full(len(free), len(events))
                    decisions.append((obs, hidden, legal, chosen, logprob, live[free], mover[free], ply))
                ends = engine.ends().astype(np.int64) & 7  # -1 before the first tile: 7 in an event
                who = (mover - run.leader[live]) % self.rules.seats
                happened = event_words(who, ends[:, 0] << 9 | ends[:, 1] << 6 | actions)
                events.append((live, happened))
                going = run.step(actions)
                if len(going) < len(happened):
                    happened, state = happened[going], state[going]
                state = self._remember(happened, state)
        return self._judge(decisions, events, run)

    def _choose(
        self,
        obs: npt.NDArray[np.uint8],
        state: Tensor,
        legal: npt.NDArray[np.uint64],
        uniforms: npt.NDArray[np.float64],
    ) -> tuple[Ints, npt.NDArray[np.float32]]:
        """Samples an action for each observation; (n,) actions and (n,) their log-probabilities."""
        logits = self._logits(obs, state)[: len(obs)]
        policy = MaskedCategorical(logits, to_mask(legal, self.rules.num_actions, self.device))
        action = policy.sample(torch.from_numpy(uniforms).to(self.device))
        return action.cpu().numpy(), policy.log_prob(action).cpu().numpy()

    def _logits(self, obs: npt.NDArray[np.uint8], state: Tensor) -> Tensor:
        """(m, actions) of (n, nbytes) observations and (n, width) states, with rows of zeros up to a multiple."""
        bits = to_bits(padded(obs, _ROWS), self.dtype, self.device)
        return self.actor.fast(torch.cat([bits, F.pad(state, (0, 0, 0, len(bits) - len(state)))], 1))

    def _remember(self, words: npt.NDArray[np.uint64], state: Tensor) -> Tensor:
        """The states (n, width) one event on."""
        more = -len(words) % _ROWS
        events = to_events(np.pad(words, (0, more)), self.dtype, self.device)
        return self._memory.step(events, F.pad(state, (0, 0, 0, more)))[: len(words)]

    def _judge(
        self,
        decisions: Sequence[tuple[npt.NDArray[Any], ...]],
        events: list[tuple[Ints, npt.NDArray[np.uint64]]],
        run: Running,
    ) -> _Part:
        """The part that these plies are, with what the critic says of them."""
        obs, hidden, legal, action, logprob, deal, seat, ply = in_order(decisions, self.rules)
        bounds = np.cumsum([0, *(len(one[0]) for one in decisions)]).tolist()
        values = self._values(obs, hidden)
        rewards = run.rewards / np.float32(self.config.reward_scale)
        sequence, sign, ends = sequences(self.central, deal, seat, run.leader, rewards)
        advantage = gae(values, sign, sequence, ends, bounds, self.config.gae_lambda)
        rollout = Rollout(obs, hidden, legal, action, logprob, deal, seat, advantage, values + advantage)
        return _Part(rollout, ply, events, len(run.leader), run.tally)

    def _values(self, obs: npt.NDArray[np.uint8], hidden: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """(n,) what the critic says."""
        return self.critic.ask(self._critic_input(obs, hidden), 1024).float().cpu().numpy()

    def _critic_input(self, obs: npt.NDArray[np.uint8], hidden: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Packed, what the critic reads: (n, bytes)."""
        return np.concatenate([obs, hidden], axis=1) if self.central else obs

    # -- learning --

    def _minibatches(self, deals: Deals, rng: np.random.Generator) -> Ints:
        """An epoch's deals that have decisions: (minibatches, deals) of one size; a few are left out or come twice."""
        order = rng.permutation(np.flatnonzero(np.diff(deals.first)))
        size = min(self.config.minibatch_deals, len(order))
        return np.resize(order, (round(len(order) / size), size))

    def _run(self, deals: Deals, some: Ints) -> tuple[Tensor, Ints]:
        """What the network says of some deals, with its graph.

        Returns:
            (m, actions) logits of their decisions, rows of padding behind them, and (n,) which rows of `deals`.
        """
        rows, which = deals.rows(some)
        ply = deals.ply[rows]
        events = to_events(deals.events[: max(1, int(ply.max())), some], self.dtype, self.device)
        states = self._memory.run(events)
        at = torch.from_numpy(ply * len(some) + which).to(self.device)
        return self._logits(deals.rollout.obs[rows], states.flatten(0, 1).index_select(0, at)), rows

    def _learn_actor(
        self, deals: Deals, epochs: Sequence[Ints], learning_rate: float, entropy_coef: float
    ) -> dict[str, Any]:
        rollout = deals.rollout
        objective = taken(rollout, self.rules.num_actions, self.device, self.config.clip, entropy_coef)
        seen: list[Surrogate] = []
        norms: list[float] = []
        for minibatches in epochs:
            seen.clear()
            for some in minibatches:
                logits, rows = self._run(deals, some)
                result = objective(logits[: len(rows)], rows)
                grad = F.pad(result.grad, (0, 0, 0, len(logits) - len(rows)))
                norms.append(self.actor.step(logits, grad.to(logits.dtype), learning_rate))
                seen.append(result)
        return objective_figures(seen, norms)

    def _learn_critic(self, rollout: Rollout, orders: Sequence[Ints], learning_rate: float) -> dict[str, Any]:
        """As many minibatches as the actor's, but of rows: it has no memory, and learns better from many deals."""
        losses: list[Tensor] = []
        number = max(1, round(self.config.deals / self.config.minibatch_deals))
        for order in orders:
            losses.clear()
            size = _ROWS * max(1, round(len(order) / (number * _ROWS)))
            for rows in np.resize(order, (number, size)):
                x = self._critic_input(rollout.obs[rows], rollout.hidden[rows])
                target = torch.from_numpy(rollout.target[rows]).to(self.device)
                losses.append(self.critic.regress(x, target, learning_rate))
        return {"losses/value_loss": float(torch.stack(losses).mean())}
