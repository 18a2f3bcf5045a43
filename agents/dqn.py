"""Double DQN by self-play (van Hasselt, Guez and Silver 2016): all seats share one network of action values.

An update plays fresh deals to their end, epsilon-greedily, and learns minibatches of a replay that holds the newest
transitions. A transition leads from a decision of a seat to a later real decision of the same seat in the same deal,
or to the deal's end and the seat's reward; forced moves are neither asked nor learned from. Rewards are points divided
by `reward_scale`, and so are the values. Every maximum is over legal actions alone.

While an update learns, a copy of the network as it was at its beginning plays: the two share nothing, so each has a
core of its own, and the result is the same to the bit however many threads there are. All chance of an update follows
from (seed, number of the update). The parts that `agents/nfsp.py` also stands on are functions and small classes here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.algorithms import BaseTrainer, RunConfig
from agents.buffers import Replay
from agents.learner import Learner, padded
from agents.networks import ILLEGAL, Policy, describe_network, make_actor, mirrored, straighten, to_bits, to_mask
from agents.rollout import Running, Tally, deal_figures, in_order
from agents.tasks import Tasks, timed
from domino_env.engine import Engine, make_engine
from domino_env.line import select_bit
from domino_env.observation import layout_of
from domino_env.rules import Rules

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

#: What decides: packed observations (n, nbytes), legal actions (n,), both straightened, which deal (n,) and which seat
#: (n,) -> (n,) actions.
Choose = Callable[[Bytes, Words, Ints, Ints], Ints]


@dataclass
class ValueConfig(RunConfig):
    """Settings of what learns action values."""

    network: Literal["mlp", "public_private"] = "mlp"
    deals: int = 512  # played in each update
    replay: int = 2**18  # transitions that are kept, the newest
    warmup: int = 16_384  # transitions before it learns
    steps: int = 16  # minibatches learned in each update
    minibatch: int = 1024
    target_every: int = 100  # minibatches between two refreshes of the target network
    n_step: int = 1  # own decisions from one end of a transition to the other
    discount: float = 1.0  # a decision
    huber: float = 1.0  # errors beyond it, in scaled rewards, pull no harder
    learning_rate: float = 1e-3
    learning_rate_end: float = 1e-4
    epsilon: float = 1.0  # part of the decisions that explore: at the start,
    epsilon_end: float = 0.05  # after
    epsilon_decisions: int = 400_000  # so many decisions of the run, and from there on; in a straight line
    reward_scale: float = 20.0  # rewards are divided by it

    FIXED: ClassVar[tuple[str, ...]] = (
        *RunConfig.FIXED, "network", "replay", "reward_scale", "discount", "n_step",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "deals", "steps", "minibatch", "target_every", "n_step", "warmup", "epsilon_decisions")
        self.at_most(2**20, "deals", "minibatch", "steps")
        self.at_most(2**24, "replay")
        self.above(0, "learning_rate", "reward_scale", "huber")
        self.not_negative("learning_rate_end")
        self.within(0, 1, "epsilon", "epsilon_end", "discount")
        if self.warmup > self.replay:
            raise ValueError("warmup", f"must be at most replay, {self.replay}, got {self.warmup}")
        rules = self.get_rules()
        if self.network == "public_private" and "hand" not in layout_of(rules).slices:
            raise ValueError("network", f"public_private needs a hand, and {rules.name} has none; use mlp")


@dataclass
class DQNConfig(ValueConfig):
    """Settings of a run; a YAML in configs/ holds only what differs."""

    algorithm: Literal["dqn"] = "dqn"
    # Points. The agent plays the action of the highest value; what it says of its probabilities to who reads its moves
    # is softmax(value in points / temperature).
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.above(0, "temperature")


# -- the objective ---------------------------------------------------------------------------------------------------


def linear(begin: float, end: float, span: int, step: int) -> float:
    """From `begin` at step 0 in a straight line to `end` at step `span`, and there it stays."""
    return begin + (end - begin) * min(1.0, step / span)


def double_q(online: Tensor, target: Tensor, legal: Tensor, reward: Tensor, discount: Tensor) -> Tensor:
    """What values should have said: the online network chooses the next action, the target network judges it.

    Args:
        online: (B, A) values of the next decision by the online network; target: (B, A) by the target network.
        legal: (B, A) bool, legal actions of the next decision; none where the deal is over.
        reward: (B,) up to the next decision; discount: (B,) of its value, 0 where the deal is over.

    Returns:
        (B,) float32. Illegal actions count nowhere, whatever their values.
    """
    chosen = torch.where(legal, online.float(), ILLEGAL).argmax(1, keepdim=True)
    value = target.float().gather(1, chosen).squeeze(1)
    return reward + torch.where(discount > 0, discount * value, 0.0)


@dataclass
class TD:
    """The loss of one minibatch, and its gradient."""

    grad: Tensor  # (B, A) float32, of the loss with respect to the values
    loss: Tensor  # () mean Huber loss
    values: Tensor  # (B,) float32 of the actions taken


def temporal_difference(values: Tensor, action: Tensor, target: Tensor, huber: float) -> TD:
    """Huber's loss (1964) of the actions taken: half the square of the error up to `huber`, straight beyond it.

    Args:
        values: (B, A); action: (B,) int64; target: (B,).
    """
    with torch.no_grad():
        index = action[:, None]
        taken = values.float().gather(1, index).squeeze(1)
        error = taken - target
        pull = error.clamp(-huber, huber)
        grad = torch.zeros(values.shape, device=values.device)
        grad.scatter_(1, index, (pull / len(action))[:, None])
        return TD(grad=grad, loss=(pull * (error - 0.5 * pull)).mean(), values=taken)


def epsilon_greedy(best: Ints, legal: Words, epsilon: float, rng: np.random.Generator) -> Ints:
    """(n,) actions: with probability epsilon any legal one, each as likely, else the best."""
    explores = rng.random(len(best)) < epsilon
    rank = (rng.random(len(best)) * np.bitwise_count(legal)).astype(np.uint8)
    return np.where(explores, select_bit(legal, rank), best)


# -- playing ---------------------------------------------------------------------------------------------------------


@dataclass
class Played:
    """T real decisions of D deals in the order of play, and how the deals went."""

    obs: Bytes  # (T, nbytes) packed, straightened
    legal: Words  # (T,) bit a for action a, straightened like the action
    action: Ints  # (T,)
    deal: Ints  # (T,) 0..D-1
    seat: Ints  # (T,) absolute seat that decides
    rewards: npt.NDArray[np.float32]  # (D, seats) points at the end
    tally: Tally


def play(engine: Engine, seed: int, choose: Choose) -> Played:
    """Plays the engine's deals of this seed to their end; only where there is a choice `choose` is asked."""
    run, layout = Running(engine, seed), engine.layout
    plies: list[tuple[npt.NDArray[Any], ...]] = []
    while len(run.live):
        bits = run.engine.legal_bits()
        actions = select_bit(bits, np.zeros(len(bits), np.uint8))
        free = np.flatnonzero(run.engine.legal_count() > 1)
        if len(free):
            obs, legal, flipped = straighten(run.engine.observe(packed=True)[free], bits[free], layout)
            deal, seat = run.live[free], run.mover[free]
            chosen = choose(obs, legal, deal, seat)
            actions[free] = mirrored(chosen, flipped)
            plies.append((obs, legal, chosen, deal, seat))
        run.step(actions)
    obs, legal, action, deal, seat = in_order(plies, engine.rules)
    return Played(obs, legal, action, deal, seat, run.rewards, run.tally)


def transition_type(nbytes: int) -> np.dtype[Any]:
    """A row of the replay, for observations of `nbytes` bytes."""
    return np.dtype(
        [
            ("next_legal", "<u8"),  # 0 where the deal is over
            ("reward", "<f4"),  # scaled and discounted, up to the next decision
            ("discount", "<f4"),  # of the next decision's value; 0 where the deal is over
            ("obs", "u1", nbytes),
            ("next_obs", "u1", nbytes),  # zeros where the deal is over
            ("action", "u1"),
        ]
    )


def transitions(played: Played, steps: int, discount: float, scale: float) -> npt.NDArray[Any]:
    """The rows of the replay that decisions make: each leads to the same seat's decision `steps` decisions on.

    Only the end of a deal is rewarded, by points / scale. A decision after which its seat makes fewer than `steps`
    more leads to the end; nothing leads past it.

    Returns:
        (T,) of `transition_type`.
    """
    count, seats = len(played.action), played.rewards.shape[1]
    sequence = played.deal * seats + played.seat
    order = np.argsort(sequence, kind="stable")  # those of one seat of one deal together, in the order of play
    place = np.arange(count)
    last = np.cumsum(np.bincount(sequence, minlength=played.rewards.size))[sequence[order]] - 1
    left = np.empty(count, np.int64)  # decisions of the same seat that follow
    left[order] = last - place
    following = np.empty(count, np.int64)
    following[order] = order[np.minimum(place + steps, last)]
    going = left >= steps
    rows = np.zeros(count, transition_type(played.obs.shape[1]))
    rows["obs"], rows["action"] = played.obs, played.action
    rows["next_obs"] = np.where(going[:, None], played.obs[following], 0)
    rows["next_legal"] = np.where(going, played.legal[following], 0)
    rows["discount"] = np.where(going, discount**steps, 0)
    ends = played.rewards.ravel()[sequence] / scale * discount**left
    rows["reward"] = np.where(going, 0, ends)
    return rows


# -- learning --------------------------------------------------------------------------------------------------------


class Player:
    """A copy of a learner's network that stays as it is while the learner goes on."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._network = copy.deepcopy(learner.fast)

    def refresh(self) -> None:
        """Becomes what the learner is now."""
        with torch.no_grad():
            for into, parameter in zip(self._network.parameters(), self._learner.parameters, strict=True):
                into.copy_(parameter)

    def masked(self, obs: Bytes, legal: Words, actions: int) -> tuple[Tensor, Tensor]:
        """(n, actions) what the network says of straightened observations, and (n, actions) bool what is legal."""
        with torch.inference_mode():
            outputs = self._network(bits_like(self._network, padded(obs, 64)))[: len(obs)]
            return outputs, to_mask(legal, actions, outputs.device)


def bits_like(network: torch.nn.Module, packed: Bytes) -> Tensor:
    """(N, nbytes) packed observations as a network's input, in its own type and on its device."""
    like = next(network.parameters())
    return to_bits(packed, like.dtype, like.device)


def column(rows: npt.NDArray[Any], name: str, device: torch.device) -> Tensor:
    """(n,) one field of rows, as a tensor."""
    return torch.from_numpy(np.ascontiguousarray(rows[name])).to(device)


class Values:
    """Action values that learn from a replay, with their target network and the copy that plays."""

    def __init__(self, config: ValueConfig, rules: Rules, generator: torch.Generator) -> None:
        self.config = config
        self.actions = rules.num_actions
        self.replay = Replay(config.replay, transition_type(layout_of(rules).nbytes))
        self.online = Learner(make_actor(config.network, rules, config.hidden, generator), config)
        self.target = Learner(copy.deepcopy(self.online.network), config)  # never steps, it is only copied into
        self.player = Player(self.online)

    def best(self, obs: Bytes, legal: Words) -> Ints:
        """(n,) legal actions of the highest value, by the copy that plays; of equals the first."""
        values, mask = self.player.masked(obs, legal, self.actions)
        return torch.where(mask, values.float(), ILLEGAL).argmax(1).cpu().numpy()

    def learn(self, rng: np.random.Generator, learning_rate: float) -> dict[str, float]:
        """An update's minibatches; figures by TensorBoard tag, none before the replay holds enough."""
        config = self.config
        if self.replay.added < config.warmup:
            return {}
        seen: list[TD] = []
        norms: list[float] = []
        for _ in range(config.steps):
            rows = self.replay.sample(config.minibatch, rng)
            with torch.no_grad():
                following = bits_like(self.online.fast, rows["next_obs"])
                target = double_q(
                    self.online.fast(following),
                    self.target.fast(following),
                    to_mask(np.ascontiguousarray(rows["next_legal"]), self.actions, following.device),
                    column(rows, "reward", following.device),
                    column(rows, "discount", following.device),
                )
            values = self.online.fast(bits_like(self.online.fast, rows["obs"]))
            action = column(rows, "action", values.device).long()
            result = temporal_difference(values, action, target, config.huber)
            norms.append(self.online.step(values, result.grad.to(values.dtype), learning_rate))
            seen.append(result)
            if self.online.steps % config.target_every == 0:
                self.target.flat.copy_(self.online.flat)
                self.target.refresh()
        return {
            "losses/td_loss": float(torch.stack([one.loss for one in seen]).mean()),
            "losses/q_values": float(torch.stack([one.values.mean() for one in seen]).mean()),
            "losses/grad_norm": sum(norms) / len(norms),
        }

    def named_target(self) -> dict[str, Tensor]:
        """The target network's parameters as they stand in a checkpoint; not copies."""
        return {f"target.{name}": tensor for name, tensor in self.target.network.state_dict().items()}

    def memory(self) -> dict[str, Tensor]:
        """The replay as it stands in a checkpoint; not a copy."""
        return named("replay", self.replay.tensors())

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Goes on from there."""
        self.replay.restore(part("replay", memory))


def named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, their names with a prefix and a dot before them."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def part(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names have the prefix, without it."""
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


# -- training --------------------------------------------------------------------------------------------------------


class Trainer(BaseTrainer):
    """A run of DQN. `update()` plays fresh deals and learns from what was played before them."""

    def __init__(self, config: DQNConfig) -> None:
        super().__init__(config)
        self._tasks = Tasks(config.threads, "dqn")
        self._engine = make_engine(self.rules, config.deals, seed=0)
        self.values = Values(config, self.rules, torch.Generator().manual_seed(config.seed))
        self.learners = {"actor": self.values.online}

    def close(self) -> None:
        """Ends the threads."""
        self._tasks.close()

    @property
    def epsilon(self) -> float:
        """Part of the decisions that explore now."""
        config = self.config
        return linear(config.epsilon, config.epsilon_end, config.epsilon_decisions, self.decisions)

    def policy(self, name: str = "policy") -> Policy:
        """The agent that the present network is: it plays the action of the highest value; it goes on learning."""
        return Policy(self.values.online.network, self.rules, name, temperature=self._temperature())

    def describe(self) -> dict[str, Any]:
        """What one must know to build the agent again, as plain data."""
        network = describe_network(self.config.network, self.config.hidden, self.rules)
        return network | {"temperature": self._temperature()}

    def _temperature(self) -> float:
        """In scaled rewards, as the network's values are."""
        return float(self.config.temperature / self.config.reward_scale)

    def update(self) -> dict[str, float | npt.NDArray[np.float32]]:
        """Plays fresh deals and learns; returns figures by TensorBoard tag."""
        config, values, epsilon = self.config, self.values, self.epsilon
        rate = config.learning_rate + self.progress * (config.learning_rate_end - config.learning_rate)
        values.player.refresh()
        (played, rollout), (learned, learning) = self._tasks.together(
            timed(lambda: self._play(epsilon)), timed(lambda: values.learn(self._generator(1), rate))
        )
        values.replay.add(transitions(played, config.n_step, config.discount, config.reward_scale))
        self.updates += 1
        self.decisions += len(played.action)
        self.deals += config.deals
        return {
            **deal_figures(self.rules, [played.tally]),
            **learned,
            "charts/learning_rate": rate,
            "charts/epsilon": epsilon,
            "time/rollout_seconds": rollout,
            "time/learning_seconds": learning,
        }

    def _generator(self, purpose: int) -> np.random.Generator:
        """Chance for one purpose of this update."""
        return np.random.default_rng([self.config.seed, self.updates, purpose])

    def _play(self, epsilon: float) -> Played:
        rng = self._generator(0)

        def choose(obs: Bytes, legal: Words, deal: Ints, seat: Ints) -> Ints:
            return epsilon_greedy(self.values.best(obs, legal), legal, epsilon, rng)

        return play(self._engine, int(rng.integers(2**63)), choose)

    # -- keeping --

    def model(self) -> dict[str, Tensor]:
        """The parameters by name, the target network's too."""
        return super().model() | self.values.named_target()

    def refresh(self) -> None:
        """Brings all that computes up to date, the target network too."""
        super().refresh()
        self.values.target.refresh()

    def memory(self) -> dict[str, Tensor]:
        """The replay."""
        return self.values.memory()

    def restore(self, counters: Mapping[str, Any], memory: Mapping[str, Tensor]) -> None:
        """Goes on from there, after `model()` and `optimizer()` have been filled."""
        super().restore(counters, memory)
        self.values.restore(memory)
