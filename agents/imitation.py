"""Imitation: a network learns from decisions that `domino export` wrote, to play as was played there, or better.

With `target: action` it learns what was played (behavioural cloning, cross-entropy). With `target: values` it learns
from the double-dummy values of all legal actions: the target is softmax(values / temperature), so what costs little is
nearly as good as the best. A part of the deals is held out and never learned from.

An update is a number of minibatches. Which rows they have follows from (seed, number of the update), so a run goes on
to the bit.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.algorithms import BaseTrainer, RunConfig
from agents.dataset import DataError, DataSet, Rows, Shuffled
from agents.learner import Learner
from agents.networks import (
    ILLEGAL,
    Policy,
    describe_network,
    make_actor,
    mirrored,
    mirrored_columns,
    straighten,
    to_bits,
    to_mask,
)
from agents.targets import imitation_loss, soft_targets
from domino_env.deals import mix
from domino_env.observation import layout_of


@dataclass
class ImitationConfig(RunConfig):
    """Settings of a run; a YAML in configs/ holds only what differs. The rules are those of the data."""

    algorithm: Literal["imitation"] = "imitation"
    data: str = ""  # folder of `domino export`
    target: Literal["action", "values"] = "action"  # what is learned from; values need `domino export --values`
    temperature: float = 4.0  # points: a move that costs so much weighs 1/e of the best
    network: Literal["mlp", "public_private"] = "mlp"
    steps: int = 64  # minibatches of an update
    minibatch: int = 1024
    learning_rate: float = 2e-3
    learning_rate_end: float = 1e-4
    held_out: float = 0.05  # part of the deals
    held_out_rows: int = 8192  # of these at most are looked at after each update
    threads: int = 1  # the minibatches come one after the other

    FIXED: ClassVar[tuple[str, ...]] = (*RunConfig.FIXED, "target", "network", "steps", "minibatch", "held_out")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "steps", "minibatch", "held_out_rows")
        self.at_most(2**20, "steps", "minibatch", "held_out_rows")
        self.above(0, "learning_rate", "temperature")
        self.not_negative("learning_rate_end")
        self.within(0.001, 0.5, "held_out")
        if self.network == "public_private" and "hand" not in layout_of(self.get_rules()).slices:
            raise ValueError("network", f"public_private needs a hand, and {self.rules} has none; use mlp")


# -- training --------------------------------------------------------------------------------------------------------


def held_out(deals: npt.NDArray[np.int64], share: float) -> npt.NDArray[np.bool_]:
    """Which deals are held out: (n,) numbers -> (n,) bool. It hangs on the number alone, not on its remainders."""
    return (mix(deals.astype(np.uint64) + np.uint64(1)) >> np.uint64(11)) * 2.0**-53 < share


class Trainer(BaseTrainer):
    """A run of imitation: one network, its optimiser, and the data. `update()` learns some minibatches."""

    def __init__(self, config: ImitationConfig) -> None:
        super().__init__(config)
        self.device, self.dtype = torch.device(config.device), config.dtype()
        self.layout = layout_of(self.rules)
        self._columns = ["obs", "mask", "action", *(["values"] if config.target == "values" else [])]
        data = self._open()
        self.data_sum = hashlib.sha256(json.dumps(data.manifest["parts"]).encode()).hexdigest()
        self._rows = Shuffled(
            data, config.minibatch, config.seed, self._columns, lambda deals: ~held_out(deals, config.held_out)
        )
        self._held = self._read_held(data)
        self._intraop = torch.get_num_threads()
        torch.set_num_threads(1)  # the result shall not depend on how many there are
        generator = torch.Generator().manual_seed(config.seed)
        self.actor = Learner(make_actor(config.network, self.rules, config.hidden, generator), config)
        self.learners = {"actor": self.actor}

    def _open(self) -> DataSet:
        config = self.config
        if not config.data:
            raise DataError(
                "data names no folder of decisions; give data=FOLDER, which `domino export AGENT --out FOLDER` makes"
            )
        data = DataSet(config.data)
        if data.rules != self.rules:
            raise DataError(f"data={config.data} is of {data.rules.title}; this run is of {self.rules.title}")
        data.check(self._columns)
        return data

    def _read_held(self, data: DataSet) -> Rows:
        """The first rows of the deals that are held out."""
        config, parts, count = self.config, list[Rows](), 0
        for part, group, _ in data.groups.tolist():
            rows = data.group(part, group, [*self._columns, "deal"])
            chosen = np.flatnonzero(held_out(rows["deal"], config.held_out))[: config.held_out_rows - count]
            parts.append({name: rows[name][chosen] for name in self._columns})
            count += len(chosen)
            if count == config.held_out_rows:
                break
        if not count:
            raise DataError(f"data={config.data}: none of its {data.rows} rows is held out; export more decisions")
        return {name: np.concatenate([part[name] for part in parts]) for name in self._columns}

    def close(self) -> None:
        """Gives torch its threads back."""
        torch.set_num_threads(self._intraop)

    def policy(self, name: str = "policy") -> Policy:
        """The agent that the present network is; it goes on learning with the network."""
        return Policy(self.actor.network, self.rules, name)

    def describe(self) -> dict[str, Any]:
        """What one must know to build the actor again, as plain data."""
        return describe_network(self.config.network, self.config.hidden, self.rules)

    def counters(self) -> dict[str, Any]:
        """All that counts on, and the sum of the data that it was learned from."""
        return {**super().counters(), "data_sum": self.data_sum}

    def restore(self, counters: Mapping[str, Any], memory: Mapping[str, Tensor]) -> None:
        """Goes on from there; ValueError where the data are others."""
        if counters["data_sum"] != self.data_sum:
            raise ValueError(f"data={self.config.data} holds other decisions than this run has learned from")
        super().restore(counters, memory)

    def update(self) -> dict[str, float | npt.NDArray[np.float32]]:
        """Learns `steps` minibatches; returns figures by TensorBoard tag."""
        config = self.config
        rate = config.learning_rate + self.progress * (config.learning_rate_end - config.learning_rate)
        begin = time.perf_counter()
        losses: list[Tensor] = []
        norms: list[float] = []
        count = 0
        for number in range(self.updates * config.steps, (self.updates + 1) * config.steps):
            obs, mask, _, target = self._prepared(self._rows.batch(number))
            logits = self.actor.fast(to_bits(obs, self.dtype, self.device))
            loss, grad = imitation_loss(logits, mask, target)
            norms.append(self.actor.step(logits, grad.to(logits.dtype), rate))
            losses.append(loss)
            count += len(obs)
        self.updates += 1
        self.decisions += count
        return {
            "losses/imitation_loss": float(torch.stack(losses).mean()),
            "losses/grad_norm": sum(norms) / len(norms),
            **self._look(),
            "charts/learning_rate": rate,
            "time/learning_seconds": time.perf_counter() - begin,
        }

    def _prepared(self, rows: Rows) -> tuple[npt.NDArray[np.uint8], Tensor, npt.NDArray[np.bool_], Tensor]:
        """Rows as the network is shown them, lines straightened: packed observations, legal actions, which rows were
        turned, and the target, (n,) actions or (n, actions) probabilities."""
        obs, legal, flipped = straighten(rows["obs"], rows["mask"], self.layout)
        mask = to_mask(legal, self.rules.num_actions, self.device)
        if "values" not in rows:
            action = mirrored(rows["action"].astype(np.int64), flipped)
            return obs, mask, flipped, torch.from_numpy(action).to(self.device)
        values = torch.from_numpy(mirrored_columns(rows["values"], flipped)).to(self.device)
        return obs, mask, flipped, soft_targets(values, mask, self.config.temperature)

    def _look(self) -> dict[str, float]:
        """How well the network does on rows that it never learned from."""
        obs, mask, flipped, target = self._prepared(self._held)
        with torch.inference_mode():
            logits = self.actor.ask(obs, self.config.minibatch).float()
            loss, _ = imitation_loss(logits, mask, target)
            choice = torch.where(mask, logits, ILLEGAL).argmax(1).cpu().numpy()
        if "values" not in self._held:
            right = choice == target.cpu().numpy()
            return {"losses/held_out_loss": float(loss), "losses/held_out_accuracy": float(right.mean())}
        values = self._held["values"]
        lost = values.max(axis=1) - values[np.arange(len(values)), mirrored(choice, flipped)]
        return {
            "losses/held_out_loss": float(loss),
            "losses/held_out_accuracy": float((lost == 0).mean()),
            "losses/held_out_regret": float(lost.mean()),
        }
