"""PPO self-play: all seats share one network and play each other (Schulman and others 2017). It plays every game.

An update is a number of fresh deals, played to their end; forced moves are played without asking the network and are
not learned from. The default critic sees all hands, and the advantages of a deal are one sequence through all its
seats, in the sign of the leader's side (`advantage: deal`): what one seat does is judged at the very next decision,
whoever makes it. That needs two sides. With `advantage: seat` every seat has a sequence of its own decisions, and the
critic sees what the seat sees; where each plays for itself, a critic that saw all hands was no better for its price.

The actor and the critic share nothing, so each learns on a core of its own, and the result is the same to the bit
however the threads are scheduled and however many there are. All chance of an update follows from (seed, number of
the update). `torch.compile` is not used: at these sizes it takes longer to compile than it saves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.algorithms import BaseTrainer, RunConfig
from agents.buffers import Rollout, gae, join
from agents.learner import Learner, padded
from agents.networks import (
    ILLEGAL,
    Critic,
    MaskedCategorical,
    Policy,
    input_bits,
    make_actor,
    mirrored,
    straighten,
    to_bits,
    to_mask,
    with_words,
)
from domino_env.engine import Engine, make_engine
from domino_env.line import select_bit
from domino_env.observation import layout_of
from domino_env.rules import Rules
from domino_env.scoring import BLOCK, GUARD, OUT, Finished
from domino_env.tiles import PASS

T = TypeVar("T")

#: The deals of an update are always played in so many parts: the number of threads changes no result.
PARTS = 2


@dataclass
class PPOConfig(RunConfig):
    """Settings of a run; a YAML in configs/ holds only what differs."""

    algorithm: Literal["ppo"] = "ppo"
    network: Literal["mlp", "public_private"] = "mlp"
    critic_hidden: list[int] = field(default_factory=lambda: [256, 256])
    words: bool = False  # the networks also read the words of the game (domino_env/words.py); playing takes longer
    advantage: Literal["deal", "seat"] = "deal"
    deals: int = 2048  # played for each update
    epochs: int = 2
    minibatch: int = 1024
    learning_rate: float = 2e-3
    learning_rate_end: float = 1e-4
    entropy_coef: float = 0.08
    entropy_coef_end: float = 0.008
    clip: float = 0.2
    gae_lambda: float = 0.5
    reward_scale: float = 20.0  # rewards are divided by it

    FIXED: ClassVar[tuple[str, ...]] = (*RunConfig.FIXED, "network", "critic_hidden", "words", "advantage")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "epochs", "minibatch")
        self.at_least(PARTS, "deals")
        self.at_most(2**20, "deals", "minibatch")
        self.above(0, "learning_rate", "reward_scale", "clip")
        self.not_negative("learning_rate_end", "entropy_coef", "entropy_coef_end")
        self.within(0, 1, "gae_lambda")
        self.widths("critic_hidden")
        rules = self.get_rules()
        if self.advantage == "deal" and rules.num_sides != 2:
            raise ValueError("advantage", f"deal needs two sides, {rules.name} has {rules.num_sides}; use seat")
        if self.network == "public_private" and "hand" not in layout_of(rules).slices:
            raise ValueError("network", f"public_private needs a hand, and {rules.name} has none; use mlp")


# -- learning --------------------------------------------------------------------------------------------------------


@dataclass
class Surrogate:
    """The clipped objective of one minibatch, and its gradient."""

    grad: Tensor  # (B, A) float32, of (policy loss - coef * entropy) with respect to the logits
    loss: Tensor  # () clipped policy loss
    entropy: Tensor  # (B,) nats
    approx_kl: Tensor  # () mean of (ratio - 1) - log ratio
    clipfrac: Tensor  # () part of the ratios outside the clip range


def surrogate(
    logits: Tensor, mask: Tensor, action: Tensor, old: Tensor, advantage: Tensor, clip: float, entropy_coef: float
) -> Surrogate:
    """PPO's clipped objective with an entropy bonus, in closed form: a quarter of the passes that autograd would make.

    Args:
        logits: (B, A); mask: (B, A) bool; action: (B,) int64; old: (B,) log-probabilities when chosen; advantage: (B,).
    """
    with torch.no_grad():
        masked = torch.where(mask, logits.float(), ILLEGAL)
        logprobs, probs = torch.log_softmax(masked, dim=1), torch.softmax(masked, dim=1)
        entropy = -(probs * logprobs).sum(1)
        index = action[:, None]
        logratio = logprobs.gather(1, index).squeeze(1) - old
        ratio = logratio.exp()
        clipped = ratio.clamp(1 - clip, 1 + clip)
        gain = torch.minimum(ratio * advantage, clipped * advantage)
        # d loss / d logprob of the action: 0 where the clipped branch is the smaller.
        pull = torch.where(gain == ratio * advantage, gain, 0.0).div_(-len(action))[:, None]
        # d logprob_a / d logits = onehot_a - probs;  d entropy / d logits = -probs (logprobs + entropy).
        grad = logprobs.add_(entropy[:, None]).mul_(entropy_coef / len(action)).sub_(pull).mul_(probs)
        grad.scatter_add_(1, index, pull)
        return Surrogate(
            grad=grad,
            loss=-gain.mean(),
            entropy=entropy,
            approx_kl=(ratio - 1 - logratio).mean(),
            clipfrac=((ratio - 1).abs() > clip).float().mean(),
        )


# -- training --------------------------------------------------------------------------------------------------------


class Trainer(BaseTrainer):
    """A run of PPO: networks, optimisers and counters. `update()` plays and learns once."""

    def __init__(self, config: PPOConfig) -> None:
        self._intraop = torch.get_num_threads()
        torch.set_num_threads(1)  # here and in each thread: cores are shared out by task, not within an operation
        super().__init__(config)
        self.device = torch.device(config.device)
        self.dtype = config.dtype()
        sizes = [config.deals // PARTS + (p < config.deals % PARTS) for p in range(PARTS)]
        self._engines = [make_engine(self.rules, size, seed=0) for size in sizes]
        self.layout = self._engines[0].layout
        generator = torch.Generator().manual_seed(config.seed)
        self.actor = Learner(make_actor(config.network, self.rules, config.hidden, generator, config.words), config)
        self.central = config.advantage == "deal"
        inputs = input_bits(self.rules, config.words) + (32 * (self.rules.seats - 1) if self.central else 0)
        self.critic = Learner(Critic(inputs, config.critic_hidden, generator), config)
        self.learners = {"actor": self.actor, "critic": self.critic}
        self._pool = ThreadPoolExecutor(config.threads, "ppo", initializer=torch.set_num_threads, initargs=(1,))

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()
        torch.set_num_threads(self._intraop)

    def policy(self, name: str = "policy") -> Policy:
        """The agent that the present network is; it goes on learning with the network."""
        return Policy(self.actor.network, self.rules, name, words=self.config.words)

    def describe(self) -> dict[str, Any]:
        """What one must know to build the actor again, as plain data."""
        config = self.config
        return {
            "network": config.network, "hidden": config.hidden, "words": config.words,
            "bits": input_bits(self.rules, config.words), "actions": self.rules.num_actions,
        }  # fmt: skip

    # -- one update --

    def update(self) -> dict[str, float | npt.NDArray[np.float32]]:
        """Plays fresh deals and learns from them; returns figures by TensorBoard tag."""
        config = self.config
        progress = self.progress
        learning_rate = config.learning_rate + progress * (config.learning_rate_end - config.learning_rate)
        entropy_coef = config.entropy_coef + progress * (config.entropy_coef_end - config.entropy_coef)
        begin = time.perf_counter()
        played = self._together([lambda p=part: self._play(p) for part in range(PARTS)])  # type: ignore[misc]
        rollout = join([part.rollout for part in played])
        count = len(rollout.action)
        middle = time.perf_counter()
        rng = np.random.default_rng([self.config.seed, self.updates, PARTS])
        orders = [rng.permutation(count) for _ in range(config.epochs)]
        actor, critic = self._together(
            [
                lambda: self._learn_actor(rollout, orders, learning_rate, entropy_coef),
                lambda: self._learn_critic(rollout, orders, learning_rate),
            ]
        )
        end = time.perf_counter()
        self.updates += 1
        self.decisions += count
        self.deals += config.deals
        errors = rollout.advantage  # targets - values
        return {
            **_deal_figures(self.rules, [part.tally for part in played]),
            **actor,
            **critic,
            "losses/explained_variance": float(1 - errors.var() / max(rollout.target.var(), 1e-12)),
            "charts/learning_rate": learning_rate,
            "charts/entropy_coef": entropy_coef,
            "time/rollout_seconds": middle - begin,
            "time/learning_seconds": end - middle,
        }

    def _together(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Runs the tasks on the threads; their results in the order of the tasks."""
        return [future.result() for future in [self._pool.submit(task) for task in tasks]]

    # -- playing --

    def _play(self, part: int) -> _Played:
        """One part of an update's deals, played by the present network to their end, with advantages."""
        entropy = np.random.SeedSequence([self.config.seed, self.updates, part])
        engine: Engine = self._engines[part]
        engine.reset(seed=int(entropy.generate_state(1, np.uint64)[0]))
        rng = np.random.default_rng(entropy)
        seats, count = self.rules.seats, engine.num_envs
        leader = engine.leader()
        rewards = np.zeros((count, seats), np.float32)
        tally = _Tally(count)
        plies: list[tuple[npt.NDArray[Any], ...]] = []
        live = np.arange(count)
        mover = engine.to_move()  # never told from the plies: a turn may have several actions
        while len(live):
            bits = engine.legal_bits()
            actions = select_bit(bits, np.zeros(len(bits), np.uint8))
            free = np.flatnonzero(engine.legal_count() > 1)
            if len(free):
                seat = mover[free]
                obs = engine.observe(packed=True)[free]
                around = (seat[:, None] + np.arange(1, seats)) % seats
                hidden = np.take_along_axis(engine.hands()[free], around, axis=1).astype("<u4").view(np.uint8)
                obs, legal, flipped = straighten(obs, bits[free], self.layout)
                if self.config.words:
                    led = (leader[live[free]] - seat) % seats
                    obs = with_words(obs, engine.history()[free], led, self.rules)
                chosen, logprob = self._choose(obs, legal, rng.random(len(free)))
                actions[free] = mirrored(chosen, flipped)
                plies.append((obs, hidden, legal, chosen, logprob, live[free], seat))
            reward, done = engine.step(actions, autoreset=False)
            before, mover = mover, engine.to_move()
            tally.count(actions, mover != before, engine.finished)
            ended = np.flatnonzero(done)
            if len(ended):
                rewards[live[ended]] = reward[ended]
                going = np.flatnonzero(~done)
                live, mover = live[going], mover[going]
                tally.keep(going)
                if len(live):
                    engine = engine.take(going)
        tally.returns = float(rewards[np.arange(count), leader].sum())
        return _Played(self._judge(plies, leader, rewards), tally)

    def _choose(
        self, obs: npt.NDArray[np.uint8], legal: npt.NDArray[np.uint64], uniforms: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Samples an action for each observation; (n,) actions and (n,) their log-probabilities."""
        with torch.inference_mode():
            logits = self.actor.fast(to_bits(padded(obs, 64), self.dtype, self.device))[: len(obs)]
            policy = MaskedCategorical(logits, to_mask(legal, self.rules.num_actions, self.device))
            action = policy.sample(torch.from_numpy(uniforms).to(self.device))
            return action.cpu().numpy(), policy.log_prob(action).cpu().numpy()

    def _judge(
        self,
        plies: Sequence[tuple[npt.NDArray[Any], ...]],
        leader: npt.NDArray[np.int64],
        rewards: npt.NDArray[np.float32],
    ) -> Rollout:
        """The rollout of the plies, with what the critic says of them."""
        obs, hidden, legal, action, logprob, deal, seat = (
            np.concatenate(column) for column in zip(*plies, strict=True)
        )
        bounds = np.cumsum([0, *(len(ply[0]) for ply in plies)]).tolist()
        block = self.config.minibatch
        with torch.inference_mode():
            x = padded(self._critic_input(obs, hidden), block)
            bits = [to_bits(x[i : i + block], self.dtype, self.device) for i in range(0, len(x), block)]
            values = torch.cat([self.critic.fast(one) for one in bits])[: len(obs)].float().cpu().numpy()
        rewards = rewards / np.float32(self.config.reward_scale)
        seats = self.rules.seats
        if self.central:
            sequence = deal
            sign = np.where((seat - leader[deal]) % 2 == 0, np.float32(1), np.float32(-1))
            ends = rewards[np.arange(len(leader)), leader]
        else:
            sequence = deal * seats + seat
            sign = np.ones(len(deal), np.float32)
            ends = rewards.ravel()
        advantage = gae(values, sign, sequence, ends, bounds, self.config.gae_lambda)
        return Rollout(obs, hidden, legal, action, logprob, deal, seat, advantage, values + advantage)

    def _critic_input(self, obs: npt.NDArray[np.uint8], hidden: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Packed, what the critic reads: (n, bytes)."""
        return np.concatenate([obs, hidden], axis=1) if self.central else obs

    # -- learning --

    def _minibatches(self, order: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """An epoch's rows in minibatches of one size: the last rows are left out, or the first come twice."""
        size = self.config.minibatch
        if len(order) < 1.5 * size:
            return [order[:size]]
        return list(np.resize(order, (round(len(order) / size), size)))

    def _learn_actor(
        self, rollout: Rollout, orders: Sequence[npt.NDArray[np.int64]], learning_rate: float, entropy_coef: float
    ) -> dict[str, Any]:
        advantage = rollout.advantage
        advantage = (advantage - advantage.mean()) / (advantage.std() + np.float32(1e-8))
        seen: list[Surrogate] = []
        norms: list[float] = []
        for order in orders:
            seen.clear()
            for rows in self._minibatches(order):
                logits = self.actor.fast(to_bits(rollout.obs[rows], self.dtype, self.device))
                result = surrogate(
                    logits,
                    to_mask(rollout.legal[rows], self.rules.num_actions, self.device),
                    self._tensor(rollout.action[rows]),
                    self._tensor(rollout.logprob[rows]),
                    self._tensor(advantage[rows]),
                    self.config.clip,
                    entropy_coef,
                )
                norms.append(self.actor.step(logits, result.grad.to(logits.dtype), learning_rate))
                seen.append(result)
        entropy = torch.cat([one.entropy for one in seen]).cpu().numpy()
        return {
            "losses/policy_loss": float(torch.stack([one.loss for one in seen]).mean()),
            "losses/approx_kl": float(torch.stack([one.approx_kl for one in seen]).mean()),
            "losses/clipfrac": float(torch.stack([one.clipfrac for one in seen]).mean()),
            "losses/entropy": float(entropy.mean()),
            "losses/grad_norm": sum(norms) / len(norms),
            "policy/entropy": entropy,
        }

    def _learn_critic(
        self, rollout: Rollout, orders: Sequence[npt.NDArray[np.int64]], learning_rate: float
    ) -> dict[str, Any]:
        losses: list[Tensor] = []
        for order in orders:
            losses.clear()
            for rows in self._minibatches(order):
                x = self._critic_input(rollout.obs[rows], rollout.hidden[rows])
                values = self.critic.fast(to_bits(x, self.dtype, self.device))
                errors = values.detach().float() - self._tensor(rollout.target[rows])
                self.critic.step(values, errors.div(len(rows)).to(values.dtype), learning_rate)
                losses.append(errors.square().mean())
        return {"losses/value_loss": float(torch.stack(losses).mean())}

    def _tensor(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)


# -- counting --------------------------------------------------------------------------------------------------------


class _Tally:
    """How some deals go, counted step by step."""

    def __init__(self, deals: int) -> None:
        self.deals = deals
        self.actions = 0
        self.lays = 0
        self.passes = 0  # 56 in a turn without a lay; after one it is a stop (B3, R6)
        self.rolls = 0  # turns with a lay after which the next seat laid nothing in its turn
        self.ended = np.zeros(3, np.int64)  # deals by outcome
        self.points = 0.0  # of the winners
        self.returns = 0.0  # rewards of the leaders
        self._laid = np.zeros(deals, np.bool_)  # (deals that run,) the mover has laid in this turn
        self._before = np.zeros(deals, np.bool_)  # (deals that run,) the turn before this one had a lay

    def count(self, actions: npt.NDArray[np.int64], turned: npt.NDArray[np.bool_], finished: Finished) -> None:
        """Counts a step.

        Args:
            actions: (n,) one for each deal that runs; turned: (n,) bool, they ended the mover's turn.
            finished: the deals that ended.
        """
        lays = actions < PASS
        laid = self._laid | lays
        self.actions += len(actions)
        self.lays += int(lays.sum())
        self.passes += int((~laid & (actions == PASS)).sum())
        self.rolls += int((turned & ~laid & self._before).sum())
        self._before = np.where(turned, laid, self._before)
        self._laid = laid & ~turned
        if len(finished):
            self.ended += np.bincount(finished.outcome, minlength=3)
            self.points += float(finished.rewards.max(axis=1).sum())

    def keep(self, rows: npt.NDArray[np.int64]) -> None:
        """Goes on with these of the deals that run."""
        self._laid, self._before = self._laid[rows], self._before[rows]


@dataclass
class _Played:
    rollout: Rollout
    tally: _Tally


def _deal_figures(rules: Rules, tallies: Sequence[_Tally]) -> dict[str, float]:
    """How the deals of an update went, by TensorBoard tag."""

    def total(name: str) -> float:
        return float(sum(getattr(tally, name) for tally in tallies))

    deals, actions = total("deals"), total("actions")
    ended = np.sum([tally.ended for tally in tallies], axis=0) / deals
    figures = {
        "charts/episodic_return": total("returns") / deals,
        "charts/episodic_length": actions / deals,
        "domino/out_rate": float(ended[OUT]),
        "domino/block_rate": float(ended[BLOCK]),
        "domino/pass_rate": total("passes") / actions,
        "domino/rolled_rate": total("rolls") / max(total("lays"), 1),
        "domino/points": total("points") / deals,
    }
    return figures | ({"domino/guard_rate": float(ended[GUARD])} if rules.rows else {})
