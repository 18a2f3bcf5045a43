"""Neural fictitious self-play (Heinrich and Silver 2016) on the double DQN of `agents/dqn.py`.

Two networks: action values that learn the best response to how everyone plays, and an average policy that imitates what
the best response has done in the whole run. Before a deal each side of it, a pair or a seat for itself, draws how it
plays the whole deal: with probability `eta` epsilon-greedily by the values, else by the average policy's probabilities.
Every decision is a transition of the replay; of the sides that play the best response the decisions also come into a
reservoir, an even sample of the run, which the average policy learns.

The reservoir holds the action of the highest value also where exploration played another one: a random action is no
response to anything. (In the paper it holds what was played.) The agent that the run makes is the average policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.algorithms import BaseTrainer
from agents.buffers import Reservoir
from agents.dqn import (
    Bytes,
    Ints,
    Played,
    Player,
    ValueConfig,
    Values,
    Words,
    bits_like,
    column,
    epsilon_greedy,
    linear,
    named,
    part,
    play,
    transitions,
)
from agents.learner import Learner
from agents.networks import MaskedCategorical, Policy, describe_network, make_actor, to_mask
from agents.rollout import deal_figures
from agents.targets import imitation_loss
from agents.tasks import Tasks, timed
from domino_env.engine import make_engine
from domino_env.observation import layout_of


@dataclass
class NFSPConfig(ValueConfig):
    """Settings of a run; a YAML in configs/ holds only what differs."""

    algorithm: Literal["nfsp"] = "nfsp"
    epsilon: float = 0.1  # the average policy explores by its own chance, so best responses need less of it
    epsilon_end: float = 0.02
    eta: float = 0.25  # part of the deals that a side plays by its best response
    reservoir: int = 2**19  # decisions of best responses that are kept, an even sample of the run's
    average_steps: int = 8  # minibatches that the average policy learns in each update
    average_learning_rate: float = 1e-3
    average_learning_rate_end: float = 1e-4

    FIXED: ClassVar[tuple[str, ...]] = (*ValueConfig.FIXED, "reservoir")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.within(0, 1, "eta")
        self.at_least(1, "reservoir", "average_steps")
        self.at_most(2**24, "reservoir")
        self.at_most(2**20, "average_steps")
        self.above(0, "average_learning_rate")
        self.not_negative("average_learning_rate_end")


def move_type(nbytes: int) -> np.dtype[Any]:
    """A row of the reservoir, for observations of `nbytes` bytes; all of it straightened."""
    return np.dtype([("legal", "<u8"), ("obs", "u1", nbytes), ("action", "u1")])


class Trainer(BaseTrainer):
    """A run of NFSP. `update()` plays fresh deals, and both networks learn from what was played before them."""

    def __init__(self, config: NFSPConfig) -> None:
        super().__init__(config)
        self._tasks = Tasks(config.threads, "nfsp")
        self._engine = make_engine(self.rules, config.deals, seed=0)
        generator = torch.Generator().manual_seed(config.seed)
        self.values = Values(config, self.rules, generator)
        self.average = Learner(make_actor(config.network, self.rules, config.hidden, generator), config)
        self._averaged = Player(self.average)
        self.reservoir = Reservoir(config.reservoir, move_type(layout_of(self.rules).nbytes))
        self.learners = {"actor": self.average, "q": self.values.online}

    def close(self) -> None:
        """Ends the threads."""
        self._tasks.close()

    @property
    def epsilon(self) -> float:
        """Part of the best responses' decisions that explore now."""
        config = self.config
        return linear(config.epsilon, config.epsilon_end, config.epsilon_decisions, self.decisions)

    def policy(self, name: str = "policy") -> Policy:
        """The average policy; it goes on learning with the run."""
        return Policy(self.average.network, self.rules, name)

    def describe(self) -> dict[str, Any]:
        """What one must know to build the average policy again, as plain data."""
        return describe_network(self.config.network, self.config.hidden, self.rules)

    # -- one update --

    def update(self) -> dict[str, float | npt.NDArray[np.float32]]:
        """Plays fresh deals and learns; returns figures by TensorBoard tag."""
        config, values, epsilon = self.config, self.values, self.epsilon
        rate = config.learning_rate + self.progress * (config.learning_rate_end - config.learning_rate)
        first, last = config.average_learning_rate, config.average_learning_rate_end
        average_rate = first + self.progress * (last - first)
        values.player.refresh()
        self._averaged.refresh()
        (both, rollout), (learned, one), (imitated, other) = self._tasks.together(
            timed(lambda: self._play(epsilon)),
            timed(lambda: values.learn(self._generator(1), rate)),
            timed(lambda: self._imitate(self._generator(2), average_rate)),
        )
        played, moves = both
        values.replay.add(transitions(played, config.n_step, config.discount, config.reward_scale))
        self.reservoir.add(moves, self._generator(3))
        self.updates += 1
        self.decisions += len(played.action)
        self.deals += config.deals
        return {
            **deal_figures(self.rules, [played.tally]),
            **learned,
            **imitated,
            "charts/learning_rate": rate,
            "charts/epsilon": epsilon,
            "time/rollout_seconds": rollout,
            "time/learning_seconds": one + other,
        }

    def _generator(self, purpose: int) -> np.random.Generator:
        """Chance for one purpose of this update."""
        return np.random.default_rng([self.config.seed, self.updates, purpose])

    def _play(self, epsilon: float) -> tuple[Played, npt.NDArray[Any]]:
        """An update's deals, and the best responses in them: rows of the reservoir's type."""
        rng = self._generator(0)
        seed = int(rng.integers(2**63))
        sides = self.rules.num_sides
        responds = rng.random((self.config.deals, sides)) < self.config.eta  # for the whole deal
        moves = [np.zeros(0, self.reservoir.rows.dtype)]

        def choose(obs: Bytes, legal: Words, deal: Ints, seat: Ints) -> Ints:
            action = np.empty(len(deal), np.int64)
            response = responds[deal, seat % sides]
            for rows, chooses in ((response, respond), (~response, self._by_average)):
                if rows.any():
                    action[rows] = chooses(obs[rows], legal[rows], rng)
            return action

        def respond(obs: Bytes, legal: Words, rng: np.random.Generator) -> Ints:
            best = self.values.best(obs, legal)
            move: npt.NDArray[Any] = np.empty(len(best), moves[0].dtype)
            move["obs"], move["legal"], move["action"] = obs, legal, best
            moves.append(move)
            return epsilon_greedy(best, legal, epsilon, rng)

        return play(self._engine, seed, choose), np.concatenate(moves)

    def _by_average(self, obs: Bytes, legal: Words, rng: np.random.Generator) -> Ints:
        """(n,) actions, sampled from the average policy's copy that plays."""
        logits, mask = self._averaged.masked(obs, legal, self.rules.num_actions)
        with torch.inference_mode():
            uniforms = torch.from_numpy(rng.random(len(obs))).to(logits.device)
            return MaskedCategorical(logits, mask).sample(uniforms).cpu().numpy()

    def _imitate(self, rng: np.random.Generator, learning_rate: float) -> dict[str, float]:
        """The average policy's minibatches; figures by TensorBoard tag, none before the reservoir holds one."""
        config, network = self.config, self.average.fast
        if len(self.reservoir) < config.minibatch:
            return {}
        losses: list[Tensor] = []
        for _ in range(config.average_steps):
            rows = self.reservoir.sample(config.minibatch, rng)
            logits = network(bits_like(network, rows["obs"]))
            mask = to_mask(np.ascontiguousarray(rows["legal"]), self.rules.num_actions, logits.device)
            loss, grad = imitation_loss(logits, mask, column(rows, "action", logits.device).long())
            self.average.step(logits, grad.to(logits.dtype), learning_rate)
            losses.append(loss)
        return {"losses/average_loss": float(torch.stack(losses).mean())}

    # -- keeping --

    def model(self) -> dict[str, Tensor]:
        """The parameters by name: "actor." the average policy, "q." the action values, "target." their target."""
        return super().model() | self.values.named_target()

    def refresh(self) -> None:
        """Brings all that computes up to date, the target network too."""
        super().refresh()
        self.values.target.refresh()

    def memory(self) -> dict[str, Tensor]:
        """The replay and the reservoir."""
        return self.values.memory() | named("reservoir", self.reservoir.tensors())

    def restore(self, counters: Mapping[str, Any], memory: Mapping[str, Tensor]) -> None:
        """Goes on from there, after `model()` and `optimizer()` have been filled."""
        super().restore(counters, memory)
        self.values.restore(memory)
        self.reservoir.restore(part("reservoir", memory))
