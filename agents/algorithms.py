"""The algorithms by name, the settings that every run has, and what a trainer owes to whoever runs it.

An algorithm is a file of this folder with a config dataclass at its top and a trainer; a YAML's `algorithm:` chooses.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.base import make_agent
from agents.networks import Policy
from domino_env.rules import Rules, get_rules

#: name -> module, config class, trainer class. Modules are imported when one is asked for.
_ALGORITHMS = {
    "ppo": ("agents.ppo", "PPOConfig", "Trainer"),
    "expert": ("agents.expert", "ExpertConfig", "Trainer"),
    "recurrent": ("agents.recurrent", "RecurrentConfig", "Trainer"),
    "dqn": ("agents.dqn", "DQNConfig", "Trainer"),
    "nfsp": ("agents.nfsp", "NFSPConfig", "Trainer"),
    "imitation": ("agents.imitation", "ImitationConfig", "Trainer"),
}
ALGORITHMS = tuple(_ALGORITHMS)

MAX_WIDTH = 8192  # of a layer; what is wider is a slip of the keyboard, and would fill the memory
MAX_SEED = 2**63 - 1


@dataclass
class RunConfig:
    """Settings that every run has, whatever the algorithm; a YAML in configs/ holds only what differs."""

    seed: int = 1  # of all chance in the run
    runs_dir: str = "runs"  # where the run's folder is made
    rules: str = "sport_book"  # a preset's name
    rule_overrides: dict[str, Any] = field(default_factory=dict)  # fields of Rules
    start: str | None = None  # a run or checkpoint of the same networks, whose parameters are the first; None: chance
    total_minutes: float = 10.0  # CPU time of training / threads: minutes by the clock where the cores are free
    total_updates: int | None = None  # where given, it counts instead of total_minutes
    checkpoint_every: float = 1.0  # in the unit of the total: minutes, or updates
    keep_checkpoints: int = 3  # the newest that stay
    evaluate_every: float = 0.5  # in the unit of the total
    evaluate_boards: int = 500  # duplicate boards of an evaluation on the way
    eval_boards: int = 4000  # duplicate boards of the evaluation at the end, others than on the way
    # Boards of each evaluation whose moves are held against double-dummy; 0: none, as where Numba is not installed, and
    # in games that the solver does not play.
    dd_loss_boards: int = 64
    # Deals of each evaluation that the policy plays against itself, and whose late moves are asked what they tell the
    # partner (experiments/signaling/watching.py); 0: none, as where Numba is not installed. For games of pairs.
    signal_deals: int = 0
    opponents: list[str] = field(default_factory=lambda: ["random", "greedy", "club"])
    device: str = "cpu"
    threads: int = 2  # cores that are used; the result does not depend on it
    precision: Literal["auto", "bf16", "float32"] = "auto"  # auto: bf16 where the processor has it
    hidden: list[int] = field(default_factory=lambda: [256, 256])  # widths of the layers
    max_grad_norm: float = 0.5
    adam_eps: float = 1e-5

    #: What a resume cannot change, beside these: another game or network, or what its values are counted in.
    FIXED: ClassVar[tuple[str, ...]] = ("algorithm", "seed", "runs_dir", "rules", "rule_overrides", "hidden")

    def __post_init__(self) -> None:
        self.at_least(1, "keep_checkpoints", "threads")
        self.above(0, "total_minutes", "checkpoint_every", "evaluate_every", "max_grad_norm", "adam_eps")
        self.not_negative("seed", "dd_loss_boards", "signal_deals")
        for key in ("evaluate_boards", "eval_boards"):
            if getattr(self, key) < 2:
                raise ValueError(key, f"must be at least 2, for an interval, got {getattr(self, key)}")
        self.widths("hidden")
        if self.total_updates is not None and self.total_updates < 1:
            raise ValueError("total_updates", f"must be at least 1, got {self.total_updates}")
        self.at_most(MAX_SEED, "seed")
        if not self.runs_dir:
            raise ValueError("runs_dir", 'must name a folder, got ""; the present one is "."')
        try:
            device = torch.device(self.device)
        except RuntimeError:
            raise ValueError("device", f"must be cpu or cuda, got {self.device!r}") from None
        if device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError("device", f"{self.device} is not there; this machine has cpu")
        if device.type not in ("cpu", "cuda"):
            raise ValueError("device", f"must be cpu or cuda, got {self.device!r}")
        rules = self.get_rules()
        if self.signal_deals and (rules.rows or rules.chains or not rules.pairs):
            games = "games of pairs with one tile a turn on an open line"
            raise ValueError(
                "signal_deals", f"what partners tell is asked in {games}, not in {rules.title}; set it to 0"
            )
        for name in self.opponents:  # now, not after an hour of training
            if self.opponents.count(name) > 1:
                raise ValueError("opponents", f"each is named once, {name} is not")
            try:
                make_agent(name, rules)
            except ValueError as error:
                raise ValueError("opponents", str(error)) from None

    # -- checks of one or more keys; the error is ValueError(key, why) --

    def at_least(self, least: float, *keys: str) -> None:
        """Refuses a smaller number."""
        for key in keys:
            if getattr(self, key) < least:
                raise ValueError(key, f"must be at least {least}, got {getattr(self, key)}")

    def at_most(self, most: float, *keys: str) -> None:
        """Refuses a larger number."""
        for key in keys:
            if getattr(self, key) > most:
                raise ValueError(key, f"must be at most {most}, got {getattr(self, key)}")

    def above(self, bound: float, *keys: str) -> None:
        """Refuses a number that is not larger."""
        for key in keys:
            if getattr(self, key) <= bound:
                raise ValueError(key, f"must be above {bound}, got {getattr(self, key)}")

    def not_negative(self, *keys: str) -> None:
        """Refuses a number below 0."""
        for key in keys:
            if getattr(self, key) < 0:
                raise ValueError(key, f"must not be negative, got {getattr(self, key)}")

    def within(self, low: float, high: float, *keys: str) -> None:
        """Refuses a number outside low..high."""
        for key in keys:
            if not low <= getattr(self, key) <= high:
                raise ValueError(key, f"must be in {low}..{high}, got {getattr(self, key)}")

    def widths(self, *keys: str) -> None:
        """Refuses what are no widths of layers."""
        for key in keys:
            if not getattr(self, key) or min(getattr(self, key)) < 1:
                raise ValueError(key, f"must be one width or more, each at least 1, got {getattr(self, key)}")
            if max(getattr(self, key)) > MAX_WIDTH:
                raise ValueError(key, f"widths must be at most {MAX_WIDTH}, got {getattr(self, key)}")

    def get_rules(self) -> Rules:
        """The game; ValueError("rules", why) for one that is not."""
        try:
            return get_rules(self.rules, **self.rule_overrides)
        except (ValueError, TypeError) as error:
            raise ValueError("rule_overrides" if self.rule_overrides else "rules", str(error)) from None

    def dtype(self) -> torch.dtype:
        """What the networks compute in; parameters, losses and optimisers are always float32."""
        if self.precision == "auto":
            cuda = torch.device(self.device).type == "cuda"
            fast = torch.cuda.is_bf16_supported() if cuda else torch.cpu._is_avx512_bf16_supported()
            return torch.bfloat16 if fast else torch.float32
        return torch.bfloat16 if self.precision == "bf16" else torch.float32


class _Learner(Protocol):
    """What a trainer keeps of a network that learns; `agents.learner.Learner` is one."""

    steps: int
    network: torch.nn.Module

    def named_moments(self) -> dict[str, Tensor]: ...

    def refresh(self) -> None: ...


class BaseTrainer:
    """What `domino train` asks of a run: it counts, says how far it is, and can be kept and restored to the bit.

    A trainer fills `learners`, has `update()` and `policy()`, and adds to the other methods where it holds more.
    """

    #: Counters as they stand in a checkpoint; a trainer with more of its own names them too.
    COUNTERS: ClassVar[tuple[str, ...]] = ("updates", "decisions", "deals", "cpu_seconds", "seconds")

    def __init__(self, config: RunConfig) -> None:
        self.config: Any = config
        self.rules = config.get_rules()
        self.learners: dict[str, Any] = {}  # name, as it stands in the checkpoint -> Learner
        self.updates = 0  # so far, from the run's start; so are the next four
        self.decisions = 0  # learned from
        self.deals = 0
        self.cpu_seconds = 0.0  # of training, all threads together
        self.seconds = 0.0  # of training, by the clock
        self.minutes = 0.0  # of training, CPU time / threads, which a resume may change

    def close(self) -> None:
        """Ends what runs beside."""

    @property
    def progress(self) -> float:
        """How much of the run is behind us, 0..1."""
        total = self.config.total_updates or self.config.total_minutes
        return min(1.0, self.elapsed / total)

    @property
    def elapsed(self) -> float:
        """How long the run is, in the unit of its total: updates, or minutes of CPU time a thread."""
        return float(self.updates if self.config.total_updates is not None else self.minutes)

    def spend(self, cpu: float, wall: float) -> None:
        """Counts seconds of training: of CPU time, all threads together, and by the clock."""
        self.cpu_seconds += cpu
        self.seconds += wall
        self.minutes += cpu / (60 * self.config.threads)

    def update(self) -> dict[str, float | npt.NDArray[np.float32]]:
        """Plays and learns once; returns figures by TensorBoard tag, and "policy/entropy" as an array where it has it.

        All chance in it follows from (seed, number of the update) and from what the checkpoint holds.
        """
        raise NotImplementedError

    def policy(self, name: str = "policy") -> Policy:
        """The agent that the run has made so far; it goes on learning with the run."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """What one must know to build the agent again, as plain data (see `agents.checkpoint.load_policy`)."""
        raise NotImplementedError

    # -- keeping --

    def model(self) -> dict[str, Tensor]:
        """The parameters by name; they are the trainer's own, not copies. Those of the agent begin with "actor."."""
        return {
            f"{who}.{name}": tensor
            for who, learner in self.learners.items()
            for name, tensor in learner.network.state_dict().items()
        }

    def optimizer(self) -> dict[str, Tensor]:
        """The optimisers' moments by name; not copies."""
        return {
            f"{who}.{name}": tensor
            for who, learner in self.learners.items()
            for name, tensor in learner.named_moments().items()
        }

    def memory(self) -> dict[str, Tensor]:
        """What else going on to the bit needs, by name: replay, past selves. Sizes may differ from save to save."""
        return {}

    def refresh(self) -> None:
        """Brings all that computes up to date, after `model()` has been filled."""
        for learner in self.learners.values():
            learner.refresh()

    def counters(self) -> dict[str, Any]:
        """All that counts on, as plain data."""
        counts = {name: getattr(self, name) for name in (*self.COUNTERS, "minutes")}
        return counts | {f"{who}_steps": learner.steps for who, learner in self.learners.items()}

    def restore(self, counters: Mapping[str, Any], memory: Mapping[str, Tensor]) -> None:
        """Goes on from there, after `model()` and `optimizer()` have been filled.

        Raises KeyError, TypeError or ValueError for what is missing or cannot be.
        """
        for name in self.COUNTERS:
            setattr(self, name, type(getattr(self, name))(counters[name]))
        # Runs that were begun before minutes were counted have none.
        self.minutes = float(counters.get("minutes", self.cpu_seconds / (60 * self.config.threads)))
        for who, learner in self.learners.items():
            learner.steps = int(counters[f"{who}_steps"])
        self.refresh()


def config_class(algorithm: Any) -> type[RunConfig]:
    """The config of an algorithm; ValueError for an unknown one."""
    return cast(type[RunConfig], _named(algorithm, 1))


def make_trainer(config: RunConfig) -> BaseTrainer:
    """The trainer of a run; it has an `algorithm` that says which."""
    return cast(BaseTrainer, _named(getattr(config, "algorithm", None), 2)(config))


def _named(algorithm: Any, which: int) -> Any:
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"algorithm {algorithm!r} is unknown; choose from {', '.join(ALGORITHMS)}")
    names = _ALGORITHMS[algorithm]
    return getattr(importlib.import_module(names[0]), names[which])
