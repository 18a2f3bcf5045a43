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

import copy
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from agents.base import make_agent
from agents.buffers import Rollout, gae, join
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
from domino_env.rules import Rules, get_rules
from domino_env.scoring import BLOCK, GUARD, OUT, Finished
from domino_env.tiles import PASS

T = TypeVar("T")

#: The deals of an update are always played in so many parts: the number of threads changes no result.
PARTS = 2

BETAS = (0.9, 0.999)  # of Adam

MAX_WIDTH = 8192  # of a layer; what is wider is a slip of the keyboard, and would fill the memory

_COUNTERS = ("updates", "decisions", "deals", "cpu_seconds", "seconds")


@dataclass
class PPOConfig:
    """Settings of a run; a YAML in configs/ holds only what differs."""

    seed: int = 1  # of all chance in the run
    runs_dir: str = "runs"  # where the run's folder is made
    rules: str = "sport_book"  # a preset's name
    rule_overrides: dict[str, Any] = field(default_factory=dict)  # fields of Rules
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
    opponents: list[str] = field(default_factory=lambda: ["random", "greedy", "club"])
    device: str = "cpu"
    threads: int = 2  # cores that are used; the result does not depend on it
    precision: Literal["auto", "bf16", "float32"] = "auto"  # auto: bf16 where the processor has it
    network: Literal["mlp", "public_private"] = "mlp"
    hidden: list[int] = field(default_factory=lambda: [256, 256])
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
    max_grad_norm: float = 0.5
    adam_eps: float = 1e-5

    def __post_init__(self) -> None:
        for key in ("keep_checkpoints", "threads", "deals", "epochs", "minibatch"):
            if getattr(self, key) < 1:
                raise ValueError(key, f"must be at least 1, got {getattr(self, key)}")
        for key in ("total_minutes", "checkpoint_every", "evaluate_every", "learning_rate", "reward_scale"):
            if getattr(self, key) <= 0:
                raise ValueError(key, f"must be above 0, got {getattr(self, key)}")
        for key in ("max_grad_norm", "adam_eps", "clip"):
            if getattr(self, key) <= 0:
                raise ValueError(key, f"must be above 0, got {getattr(self, key)}")
        for key in ("seed", "learning_rate_end", "entropy_coef", "entropy_coef_end", "dd_loss_boards"):
            if getattr(self, key) < 0:
                raise ValueError(key, f"must not be negative, got {getattr(self, key)}")
        for key in ("evaluate_boards", "eval_boards"):
            if getattr(self, key) < 2:
                raise ValueError(key, f"must be at least 2, for an interval, got {getattr(self, key)}")
        for key in ("hidden", "critic_hidden"):
            if not getattr(self, key) or min(getattr(self, key)) < 1:
                raise ValueError(key, f"must be one width or more, each at least 1, got {getattr(self, key)}")
        if self.total_updates is not None and self.total_updates < 1:
            raise ValueError("total_updates", f"must be at least 1, got {self.total_updates}")
        if not 0 <= self.gae_lambda <= 1:
            raise ValueError("gae_lambda", f"must be in 0..1, got {self.gae_lambda}")
        for key, most in (("seed", 2**63 - 1), ("deals", 2**20), ("minibatch", 2**20)):
            if getattr(self, key) > most:
                raise ValueError(key, f"must be at most {most}, got {getattr(self, key)}")
        for key in ("hidden", "critic_hidden"):
            if max(getattr(self, key)) > MAX_WIDTH:
                raise ValueError(key, f"widths must be at most {MAX_WIDTH}, got {getattr(self, key)}")
        if not self.runs_dir:
            raise ValueError("runs_dir", 'must name a folder, got ""; the present one is "."')
        if self.deals < PARTS:
            raise ValueError("deals", f"must be at least {PARTS}, got {self.deals}")
        try:
            device = torch.device(self.device)
        except RuntimeError:
            raise ValueError("device", f"must be cpu or cuda, got {self.device!r}") from None
        if device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError("device", f"{self.device} is not there; this machine has cpu")
        if device.type not in ("cpu", "cuda"):
            raise ValueError("device", f"must be cpu or cuda, got {self.device!r}")
        rules = self.get_rules()
        if self.advantage == "deal" and rules.num_sides != 2:
            raise ValueError("advantage", f"deal needs two sides, {rules.name} has {rules.num_sides}; use seat")
        if self.network == "public_private" and "hand" not in layout_of(rules).slices:
            raise ValueError("network", f"public_private needs a hand, and {rules.name} has none; use mlp")
        for name in self.opponents:  # now, not after an hour of training
            if self.opponents.count(name) > 1:
                raise ValueError("opponents", f"each is named once, {name} is not")
            try:
                make_agent(name, rules)
            except ValueError as error:
                raise ValueError("opponents", str(error)) from None

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


# -- learning --------------------------------------------------------------------------------------------------------


def _flatten(module: nn.Module) -> tuple[Tensor, list[Tensor]]:
    """Moves all parameters of a module into one vector; returns it, and a view of it for each parameter.

    Each begins at a multiple of 64 bytes, so that it is read no slower for lying there.
    """
    parameters = list(module.parameters())
    starts, size = [], 0
    for parameter in parameters:
        starts.append(size)
        size += -(-parameter.numel() // 32) * 32
    flat = torch.zeros(size, dtype=parameters[0].dtype, device=parameters[0].device)
    views = [flat[s : s + p.numel()].view_as(p) for s, p in zip(starts, parameters, strict=True)]
    for view, parameter in zip(views, parameters, strict=True):
        view.copy_(parameter.detach())
        parameter.data = view
    return flat, views


class Learner:
    """A network and its optimiser. Parameters are one float32 vector; a copy in the arithmetic's type computes."""

    def __init__(self, network: nn.Module, config: PPOConfig) -> None:
        dtype = config.dtype()
        self.network = network.to(config.device)  # float32: what is saved
        self.flat, self._views = _flatten(self.network)
        self.grad = torch.zeros_like(self.flat)
        self._grads = _views_like(self.grad, self._views, self.flat)
        self.fast = self.network  # what computes
        self._fast_flat: Tensor | None = None
        if dtype != torch.float32:
            self.fast = copy.deepcopy(self.network).to(dtype)
            self._fast_flat, _ = _flatten(self.fast)
        self.parameters = list(self.fast.parameters())
        self.max_grad_norm = config.max_grad_norm
        self.eps = config.adam_eps
        self.moments = (torch.zeros_like(self.flat), torch.zeros_like(self.flat))
        self.steps = 0

    def step(self, outputs: Tensor, grads: Tensor, learning_rate: float) -> float:
        """A step of Adam (Kingma and Ba 2015) down the gradient whose part above `outputs` is `grads`.

        Returns the gradient's norm before clipping. Adam is written out: importing torch.optim takes longer than a
        short run, and one vector needs no more than these lines.
        """
        for into, grad in zip(self._grads, torch.autograd.grad(outputs, self.parameters, grads), strict=True):
            into.copy_(grad)
        norm = float(torch.linalg.vector_norm(self.grad))
        if norm > self.max_grad_norm:
            self.grad.mul_(self.max_grad_norm / norm)
        self.steps += 1
        mean, square = self.moments
        mean.lerp_(self.grad, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(self.grad, self.grad, value=1 - BETAS[1])
        scale = square.sqrt().div_(math.sqrt(1 - BETAS[1] ** self.steps)).add_(self.eps)
        self.flat.addcdiv_(mean, scale, value=-learning_rate / (1 - BETAS[0] ** self.steps))
        self.refresh()
        return norm

    def refresh(self) -> None:
        """Brings the copy that computes up to date."""
        if self._fast_flat is not None:
            self._fast_flat.copy_(self.flat)

    def named_moments(self) -> dict[str, Tensor]:
        """Adam's moments of every parameter; not copies."""
        names = [name for name, _ in self.network.named_parameters()]
        return {
            f"{kind}.{name}": view
            for kind, moment in zip(("exp_avg", "exp_avg_sq"), self.moments, strict=True)
            for name, view in zip(names, _views_like(moment, self._views, self.flat), strict=True)
        }


def _views_like(flat: Tensor, views: Sequence[Tensor], base: Tensor) -> list[Tensor]:
    """Views of `flat` at the places that `views` have in `base`."""
    return [flat.as_strided(v.shape, v.stride(), v.storage_offset() - base.storage_offset()) for v in views]


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


def _padded(rows: npt.NDArray[np.uint8], multiple: int) -> npt.NDArray[np.uint8]:
    """The rows, and rows of zeros up to a multiple.

    For every new number of rows the CPU library builds and keeps a matrix product of its own; with few numbers playing
    takes half the time, and a run a gigabyte less.
    """
    padded = np.zeros((-(-len(rows) // multiple) * multiple, rows.shape[1]), np.uint8)
    padded[: len(rows)] = rows
    return padded


# -- training --------------------------------------------------------------------------------------------------------


class Trainer:
    """A run of PPO: networks, optimisers and counters. `update()` plays and learns once."""

    def __init__(self, config: PPOConfig) -> None:
        self._intraop = torch.get_num_threads()
        torch.set_num_threads(1)  # here and in each thread: cores are shared out by task, not within an operation
        self.config = config
        self.rules = config.get_rules()
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
        self.updates = 0  # so far, from the run's start; so are the next four
        self.decisions = 0  # learned from
        self.deals = 0
        self.cpu_seconds = 0.0  # of training, all threads together
        self.seconds = 0.0  # of training, by the clock
        self._learners = {"actor": self.actor, "critic": self.critic}
        self._pool = ThreadPoolExecutor(config.threads, "ppo", initializer=torch.set_num_threads, initargs=(1,))

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()
        torch.set_num_threads(self._intraop)

    @property
    def progress(self) -> float:
        """How much of the run is behind us, 0..1."""
        total = self.config.total_updates or self.config.total_minutes
        return min(1.0, self.elapsed / total)

    @property
    def elapsed(self) -> float:
        """How long the run is, in the unit of its total: updates, or minutes of CPU time a thread."""
        config = self.config
        return self.updates if config.total_updates is not None else self.cpu_seconds / (60 * config.threads)

    def policy(self, name: str = "policy") -> Policy:
        """The agent that the present network is; it goes on learning with the network."""
        return Policy(self.actor.network, self.rules, name, words=self.config.words)

    # -- keeping --

    def model(self) -> dict[str, Tensor]:
        """The parameters by name; they are the trainer's own, not copies."""
        return {
            f"{who}.{name}": tensor
            for who, learner in self._learners.items()
            for name, tensor in learner.network.state_dict().items()
        }

    def optimizer(self) -> dict[str, Tensor]:
        """The optimisers' moments by name; not copies."""
        return {
            f"{who}.{name}": tensor
            for who, learner in self._learners.items()
            for name, tensor in learner.named_moments().items()
        }

    def describe(self) -> dict[str, Any]:
        """What one must know to build the actor again, as plain data."""
        config = self.config
        return {
            "network": config.network, "hidden": config.hidden, "words": config.words,
            "bits": input_bits(self.rules, config.words), "actions": self.rules.num_actions,
        }  # fmt: skip

    def counters(self) -> dict[str, Any]:
        """All that counts on, as plain data."""
        counts = {name: getattr(self, name) for name in _COUNTERS}
        return counts | {f"{who}_steps": learner.steps for who, learner in self._learners.items()}

    def restore(self, counters: dict[str, Any]) -> None:
        """Goes on from these counters, after `model()` and `optimizer()` have been filled."""
        for name in _COUNTERS:
            setattr(self, name, type(getattr(self, name))(counters[name]))
        for who, learner in self._learners.items():
            learner.steps = int(counters[f"{who}_steps"])
            learner.refresh()

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
            logits = self.actor.fast(to_bits(_padded(obs, 64), self.dtype, self.device))[: len(obs)]
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
            x = _padded(self._critic_input(obs, hidden), block)
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
