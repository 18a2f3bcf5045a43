"""PPO self-play: all seats share one network and play each other (Schulman and others 2017). It plays every game.

An update is a number of fresh deals, played to their end; forced moves are played without asking the network and are
not learned from. The default critic sees all hands, and the advantages of a deal are one sequence through all its
seats, in the sign of the leader's side (`advantage: deal`): what one seat does is judged at the very next decision,
whoever makes it. That needs two sides. With `advantage: seat` every seat has a sequence of its own decisions, and the
critic sees what the seat sees; where each plays for itself, a critic that saw all hands was no better for its price.

With `deaf` some seats hear nothing of what others chose (agents/deafness.py), from the beginning of a deal to its end;
at 1 all do, which makes the deaf twin of a player. The critic sees all that it ever does.

At a share of the tables others may sit (`pool`): then only the learner's decisions are learned from, and the sequence
of a deal runs over these. With `owner_coef` the actor also learns to say who holds each hidden tile (agents/owner.py).

The actor and the critic share nothing, so each learns on a core of its own, and the result is the same to the bit
however the threads are scheduled and however many there are. All chance of an update follows from (seed, number of
the update). `torch.compile` is not used: at these sizes it takes longer to compile than it saves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from agents.algorithms import BaseTrainer, RunConfig
from agents.alternatives import (
    Branches,
    Expected,
    advantages,
    branches,
    expected_surrogate,
    join as join_branches,
    worth,
)
from agents.buffers import Rollout, gae, join
from agents.deafness import check_game
from agents.learner import Learner, padded
from agents.networks import (
    ILLEGAL,
    Critic,
    MaskedCategorical,
    Policy,
    deaf_view,
    describe_network,
    hidden_hands,
    input_bits,
    make_actor,
    mirrored,
    straighten,
    to_bits,
    to_mask,
    with_choices,
    with_words,
)
from agents.owner import OwnerLoss, Possible, add_head, held, owner_figures, owner_loss, owners_of, with_owners
from agents.pool import DEALS, Guests, Pool, PoolConfig
from agents.rollout import SELF, Played, Running, deal_figures, in_order, sequences
from agents.tasks import Tasks
from domino_env.engine import Engine, make_engine
from domino_env.line import LineEngine, select_bit
from domino_env.observation import layout_of

#: The deals of an update are always played in so many parts: the number of threads changes no result.
PARTS = 2

#: Apart from the numbers of the parts and of their guests, where chance is seeded: who is deaf.
_DEAF = 2 * PARTS + 1


@dataclass
class PPOConfig(RunConfig):
    """Settings of a run; a YAML in configs/ holds only what differs."""

    algorithm: Literal["ppo"] = "ppo"
    network: Literal["mlp", "public_private"] = "mlp"
    critic_hidden: list[int] = field(default_factory=lambda: [256, 256])
    words: bool = False  # the networks also read the words of the game (domino_env/words.py); playing takes longer
    choices: bool = True  # the actor also reads what each seat has opened and left alone (domino_env/choices.py)
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
    # Learns from all legal actions by what the critic says of them (agents/alternatives.py): where it sees all hands
    # and reads no words, the game is on an open line, and no guest of a pool sits at any table.
    alternatives: bool = True
    # How likely each seat of each deal is deaf: it sees what the rules need, and nothing of what others chose. 1: the
    # deaf twin; 0.25: a player that can be asked both what it does, and what it would do if it heard nothing.
    deaf: float = 0.0
    owner_coef: float = 0.0  # weight of the loss of saying who holds each hidden tile; 0: nothing of it
    pool: PoolConfig = field(default_factory=PoolConfig)  # whom it meets beside itself

    FIXED: ClassVar[tuple[str, ...]] = (
        *RunConfig.FIXED, "network", "critic_hidden", "words", "choices", "advantage", "deaf", "owner_coef",
        "reward_scale",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "epochs", "minibatch")
        self.at_least(PARTS, "deals")
        self.at_most(DEALS, "deals", "minibatch")
        self.above(0, "learning_rate", "reward_scale", "clip")
        self.not_negative("learning_rate_end", "entropy_coef", "entropy_coef_end", "owner_coef")
        self.within(0, 1, "gae_lambda", "deaf")
        self.widths("critic_hidden")
        rules = self.get_rules()
        if self.advantage == "deal" and rules.num_sides != 2:
            raise ValueError("advantage", f"deal needs two sides, {rules.name} has {rules.num_sides}; use seat")
        if self.network == "public_private" and "hand" not in layout_of(rules).slices:
            raise ValueError("network", f"public_private needs a hand, and {rules.name} has none; use mlp")
        if self.deaf:
            try:
                check_game(rules)
            except ValueError as error:
                raise ValueError("deaf", str(error)) from None
        if self.owner_coef:
            try:
                owners_of(rules)
            except ValueError as error:
                raise ValueError("owner_coef", str(error)) from None
        try:
            self.pool.check(rules, self.deals)
        except ValueError as error:
            if len(error.args) != 2:
                raise
            raise ValueError(f"pool.{error.args[0]}", error.args[1]) from None


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


Objective = Callable[[Tensor, npt.NDArray[np.int64]], Surrogate | Expected]  # logits of rows -> objective of them


def taken(
    rollout: Rollout, num_actions: int, device: torch.device, clip: float, entropy_coef: float
) -> Callable[[Tensor, npt.NDArray[np.int64]], Surrogate]:
    """The objective of rows of a rollout by what was played; advantages are normalised over all of it."""
    advantage = rollout.advantage
    advantage = (advantage - advantage.mean()) / (advantage.std() + np.float32(1e-8))

    def objective(logits: Tensor, rows: npt.NDArray[np.int64]) -> Surrogate:
        mask = to_mask(rollout.legal[rows], num_actions, device)
        action, old, better = (
            torch.from_numpy(one[rows]).to(device) for one in (rollout.action, rollout.logprob, advantage)
        )
        return surrogate(logits, mask, action, old, better, clip, entropy_coef)

    return objective


def objective_figures(seen: Sequence[Surrogate | Expected], norms: Sequence[float]) -> dict[str, Any]:
    """What the minibatches of an epoch come to, by TensorBoard tag; norms: of the gradients of all epochs."""
    entropy = torch.cat([one.entropy for one in seen]).cpu().numpy()
    return {
        "losses/policy_loss": float(torch.stack([one.loss for one in seen]).mean()),
        "losses/approx_kl": float(torch.stack([one.approx_kl for one in seen]).mean()),
        "losses/clipfrac": float(torch.stack([one.clipfrac for one in seen]).mean()),
        "losses/entropy": float(entropy.mean()),
        "losses/grad_norm": sum(norms) / len(norms),
        "policy/entropy": entropy,
    }


# -- training --------------------------------------------------------------------------------------------------------


class Trainer(BaseTrainer):
    """A run of PPO: networks, optimisers and counters. `update()` plays and learns once."""

    def __init__(self, config: PPOConfig) -> None:
        super().__init__(config)
        self._tasks = Tasks(config.threads, "ppo")
        self.device = torch.device(config.device)
        self.dtype = config.dtype()
        sizes = [config.deals // PARTS + (p < config.deals % PARTS) for p in range(PARTS)]
        self._engines = [make_engine(self.rules, size, seed=0) for size in sizes]
        self.layout = self._engines[0].layout
        generator = torch.Generator().manual_seed(config.seed)
        actor = make_actor(config.network, self.rules, config.hidden, generator, config.words, choices=config.choices)
        self._possible: Possible | None = None  # owners of hidden tiles; None: they are not asked for
        if config.owner_coef:
            add_head(actor, self.rules, config.hidden[-1], torch.Generator().manual_seed(config.seed))
            self._possible = Possible(self.rules, self.device)
        self.actor = Learner(actor, config)
        self.central = config.advantage == "deal"
        # Where guests sit the critic has no word on what comes next: it knows the learner's decisions alone.
        apart = self.rules.rows or config.words or config.pool.share
        self.branching = bool(config.alternatives and self.central and not apart)
        # A critic that sees all hands needs no choices to read them from.
        seen = input_bits(self.rules, config.words, config.choices and not self.central)
        self._read = seen // 8  # bytes of what the actor sees that the critic reads
        inputs = seen + (32 * (self.rules.seats - 1) if self.central else 0)
        self.critic = Learner(Critic(inputs, config.critic_hidden, generator), config)
        self.learners = {"actor": self.actor, "critic": self.critic}
        self.pool = Pool(config.pool, self.rules, PARTS)

    def close(self) -> None:
        """Ends the threads."""
        self._tasks.close()

    def policy(self, name: str = "policy") -> Policy:
        """The agent that the present network is; it goes on learning with the network."""
        config = self.config
        return Policy(
            self.actor.network,
            self.rules,
            name,
            words=config.words,
            choices=config.choices,
            deaf=config.deaf == 1,
            deafness=config.deaf,
        )

    def describe(self) -> dict[str, Any]:
        """What one must know to build the actor again, as plain data."""
        config = self.config
        reads = {"words": config.words, "choices": config.choices, "deaf": config.deaf}
        said = describe_network(config.network, config.hidden, self.rules, **reads)
        return said | ({"owners": list(self._possible.owners)} if self._possible is not None else {})

    # -- keeping --

    def memory(self) -> dict[str, Tensor]:
        """The past selves."""
        return self.pool.memory()

    def counters(self) -> dict[str, Any]:
        """All that counts on, as plain data."""
        counts = super().counters()
        return counts | ({"pool": self.pool.counters()} if self.config.pool.share else {})

    def restore(self, counters: Mapping[str, Any], memory: Mapping[str, Tensor]) -> None:
        """Goes on from there."""
        super().restore(counters, memory)
        self.pool.restore(counters.get("pool", {}), memory, self.actor)

    # -- one update --

    def update(self) -> dict[str, float | npt.NDArray[np.float32]]:
        """Plays fresh deals and learns from them; returns figures by TensorBoard tag."""
        config = self.config
        progress = self.progress
        learning_rate = config.learning_rate + progress * (config.learning_rate_end - config.learning_rate)
        entropy_coef = config.entropy_coef + progress * (config.entropy_coef_end - config.entropy_coef)
        begin = time.perf_counter()
        played = self._tasks.together(*(partial(self._play, part) for part in range(PARTS)))
        rollout = join([part.rollout for part in played])
        count = len(rollout.action)
        middle = time.perf_counter()
        rng = np.random.default_rng([self.config.seed, self.updates, PARTS])
        orders = [rng.permutation(count) for _ in range(config.epochs)]
        actor, critic = self._tasks.together(
            lambda: self._learn_actor(rollout, orders, learning_rate, entropy_coef),
            lambda: self._learn_critic(rollout, orders, learning_rate),
        )
        end = time.perf_counter()
        self.updates += 1
        self.decisions += count
        self.deals += config.deals
        met = self.pool.count([(part.seating, part.rewards) for part in played])
        self.pool.grow(self.updates, self.actor)
        errors = rollout.advantage  # targets - values
        return {
            **deal_figures(self.rules, [part.tally for part in played]),
            **met,
            **actor,
            **critic,
            "losses/explained_variance": float(1 - errors.var() / max(rollout.target.var(), 1e-12)),
            "charts/learning_rate": learning_rate,
            "charts/entropy_coef": entropy_coef,
            "time/rollout_seconds": middle - begin,
            "time/learning_seconds": end - middle,
        }

    # -- playing --

    def _play(self, part: int, branching: bool = True) -> Played:
        """One part of an update's deals, played to their end by the present network and its guests, with advantages.

        branching: ask what all legal actions are worth, in runs that learn from them.
        """
        entropy = np.random.SeedSequence([self.config.seed, self.updates, part])
        run = Running(self._engines[part], int(entropy.generate_state(1, np.uint64)[0]))
        rng = np.random.default_rng(entropy)
        guests = Guests(
            self.pool,
            part,
            len(run.live),
            [self.config.seed, self.updates, PARTS + 1 + part],
            self.updates * PARTS + part,
        )
        deaf = self._deaf(part, guests)
        plies: list[tuple[npt.NDArray[Any], ...]] = []
        others: list[Branches] = []
        while len(run.live):
            engine, live = run.engine, run.live
            bits = engine.legal_bits()
            actions = select_bit(bits, np.zeros(len(bits), np.uint8))
            who = guests.who[live, run.mover]
            free = np.flatnonzero((engine.legal_count() > 1) & guests.networks[who])
            if len(free):
                whole, legal, flipped = self._seen(engine, bits, free, run.leader[live])
                obs = whole
                if deaf is not None:
                    obs, legal, flipped = self._heard(whole, legal, flipped, deaf[live, run.mover][free])
                mine = who[free] == SELF
                chosen = np.empty(len(free), np.int64)
                if mine.any():
                    rows = free[mine]
                    chosen[mine], logprob = self._choose(obs[mine], legal[mine], rng.random(len(rows)))
                    ply = obs[mine], hidden_hands(engine, rows), legal[mine], chosen[mine], logprob
                    more = () if deaf is None else (whole[mine],)
                    plies.append((*ply, live[rows], run.mover[rows], *more))
                    if self.branching and branching:
                        others.append(branches(cast(LineEngine, engine), rows, flipped[mine], chosen[mine]))
                for number in np.unique(who[free[~mine]]).tolist():
                    its = who[free] == number
                    chosen[its] = self._choose_past(number, obs[its], legal[its], guests.rng.random(its.sum()))
                actions[free] = mirrored(chosen, flipped)
            guests.play(engine, who, live, actions)
            run.step(actions)
        rollout = self._judge(plies, run.leader, run.rewards)
        if others:
            rollout.worth = self._worth(join_branches(others), rollout)
        return Played(rollout, run.tally, guests.seating, run.rewards)

    def _seen(
        self, engine: Engine, bits: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64], leader: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """What the movers of some rows see, as networks are shown it.

        Args:
            bits: (N,) legal actions of all rows; rows: (n,); leader: (N,) seats.

        Returns:
            As of `straighten`, (n, …); with words and choices where the networks read them.
        """
        obs, legal, flipped = straighten(engine.observe(packed=True)[rows], bits[rows], self.layout)
        if self.config.words or self.config.choices:
            history = engine.history()[rows]
            if self.config.words:
                led = (leader[rows] - engine.to_move()[rows]) % self.rules.seats
                obs = with_words(obs, history, led, self.rules)
            if self.config.choices:
                obs = with_choices(obs, history, self.rules)
        return obs, legal, flipped

    def _deaf(self, part: int, guests: Guests) -> npt.NDArray[np.bool_] | None:
        """(D, seats) who is deaf at the tables of a part of the update; None where nobody ever is.

        A past self hears, unless no seat does: then its network knows nothing else either.
        """
        chance = self.config.deaf
        if not chance:
            return None
        rng = np.random.default_rng([self.config.seed, self.updates, _DEAF + part])
        drawn = rng.random(guests.who.shape) < chance
        return drawn if chance == 1 else drawn & (guests.who == SELF)

    def _heard(
        self,
        whole: npt.NDArray[np.uint8],
        legal: npt.NDArray[np.uint64],
        flipped: npt.NDArray[np.bool_],
        deaf: npt.NDArray[np.bool_],
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """What is left of `_seen` where (n,) seats are deaf; as there."""
        obs, legal, flipped = whole.copy(), legal.copy(), flipped.copy()
        obs[deaf], legal[deaf], turned = deaf_view(whole[deaf], legal[deaf], self.layout)
        flipped[deaf] ^= turned
        return obs, legal, flipped

    def _choose(
        self, obs: npt.NDArray[np.uint8], legal: npt.NDArray[np.uint64], uniforms: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Samples an action for each observation; (n,) actions and (n,) their log-probabilities."""
        with torch.inference_mode():
            policy = self._distribution(self.actor.fast, obs, legal)
            action = policy.sample(torch.from_numpy(uniforms).to(self.device))
            return action.cpu().numpy(), policy.log_prob(action).cpu().numpy()

    def _choose_past(
        self, number: int, obs: npt.NDArray[np.uint8], legal: npt.NDArray[np.uint64], uniforms: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        """What a past self plays, of the pool's members the one of that number: (n,) actions."""
        with torch.inference_mode():
            policy = self._distribution(self.pool.past_self(number).fast, obs, legal)
            if not self.config.pool.sample:
                return policy.mode().cpu().numpy()
            return policy.sample(torch.from_numpy(uniforms).to(self.device)).cpu().numpy()

    def _distribution(
        self, network: nn.Module, obs: npt.NDArray[np.uint8], legal: npt.NDArray[np.uint64]
    ) -> MaskedCategorical:
        """What a policy network says of straightened decisions."""
        logits = network(to_bits(padded(obs, 64), self.dtype, self.device))[: len(obs)]
        return MaskedCategorical(logits, to_mask(legal, self.rules.num_actions, self.device))

    def _judge(
        self,
        plies: Sequence[tuple[npt.NDArray[Any], ...]],
        leader: npt.NDArray[np.int64],
        rewards: npt.NDArray[np.float32],
    ) -> Rollout:
        """The rollout of the plies, with what the critic says of them."""
        obs, hidden, legal, action, logprob, deal, seat, *more = in_order(plies, self.rules)
        whole = more[0] if more else None
        bounds = np.cumsum([0, *(len(ply[0]) for ply in plies)]).tolist()
        values = self._values(self._critic_input(obs if whole is None else whole, hidden))
        rewards = rewards / np.float32(self.config.reward_scale)
        sequence, sign, ends = sequences(self.central, deal, seat, leader, rewards)
        advantage = gae(values, sign, sequence, ends, bounds, self.config.gae_lambda)
        return Rollout(obs, hidden, legal, action, logprob, deal, seat, advantage, values + advantage, whole=whole)

    def _values(self, seen: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """(n,) what the critic says of (n, bytes) packed rows."""
        if not len(seen):  # every other action ended its deal
            return np.zeros(0, np.float32)
        return self.critic.ask(seen, self.config.minibatch).float().cpu().numpy()

    def _worth(self, found: Branches, rollout: Rollout) -> npt.NDArray[np.float32]:
        """What every legal action is worth, (T, actions): by the critic, and what was played by its target."""
        table = worth(found, self._values(found.seen), self.rules.num_actions, self.config.reward_scale)
        table[np.arange(len(table)), rollout.action] = rollout.target
        return table

    def _critic_input(self, obs: npt.NDArray[np.uint8], hidden: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Packed, what the critic reads: (n, bytes)."""
        seen = obs[:, : self._read]
        return np.concatenate([seen, hidden], axis=1) if self.central else seen

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
        objective: Objective
        if rollout.worth is None:
            objective = taken(rollout, self.rules.num_actions, self.device, self.config.clip, entropy_coef)
        else:
            objective = self._all(rollout, entropy_coef)
        seen: list[Surrogate | Expected] = []
        owned: list[OwnerLoss] = []  # of the first epoch: of deals that nothing was learned from yet
        norms: list[float] = []
        for epoch, order in enumerate(orders):
            seen.clear()
            for rows in self._minibatches(order):
                x = to_bits(rollout.obs[rows], self.dtype, self.device)
                outputs = self.actor.fast(x) if self._possible is None else with_owners(self.actor.fast, x)
                result = objective(outputs[:, : self.rules.num_actions], rows)
                grad = result.grad
                if self._possible is not None:
                    said = self._owner_loss(outputs, x, rollout.hidden[rows])
                    owned += [said] if epoch == 0 else []
                    grad = torch.cat([grad, said.grad], dim=1)
                norms.append(self.actor.step(outputs, grad.to(outputs.dtype), learning_rate))
                seen.append(result)
        return objective_figures(seen, norms) | owner_figures(owned)

    def _all(self, rollout: Rollout, entropy_coef: float) -> Objective:
        """The objective of rows by what all legal actions are worth."""
        assert rollout.worth is not None
        mask = to_mask(rollout.legal, self.rules.num_actions, self.device)
        with torch.inference_mode():
            old = MaskedCategorical(self.actor.ask(rollout.obs, self.config.minibatch), mask).logprobs
            advantage = advantages(old, mask, self._tensor(rollout.worth))

        def objective(logits: Tensor, rows: npt.NDArray[np.int64]) -> Expected:
            at = self._tensor(rows)
            return expected_surrogate(logits, mask[at], old[at], advantage[at], self.config.clip, entropy_coef)

        return objective

    def _owner_loss(self, outputs: Tensor, x: Tensor, hidden: npt.NDArray[np.uint8]) -> OwnerLoss:
        """What the actor's outputs (B, actions + owners * 28) on bits (B, bits) say of these hidden hands."""
        assert self._possible is not None
        owner = self._tensor(held(hidden, len(self._possible.owners)))
        logits = outputs[:, self.rules.num_actions :]
        return owner_loss(logits, self._possible(x), owner, self.config.owner_coef)

    def _learn_critic(
        self, rollout: Rollout, orders: Sequence[npt.NDArray[np.int64]], learning_rate: float
    ) -> dict[str, Any]:
        losses: list[Tensor] = []
        seen = rollout.obs if rollout.whole is None else rollout.whole
        for order in orders:
            losses.clear()
            for rows in self._minibatches(order):
                x = self._critic_input(seen[rows], rollout.hidden[rows])
                losses.append(self.critic.regress(x, self._tensor(rollout.target[rows]), learning_rate))
        return {"losses/value_loss": float(torch.stack(losses).mean())}

    def _tensor(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)
