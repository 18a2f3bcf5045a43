"""Networks for one seat of the table, the critic that sees all hands, and the masked categorical.

All networks read bits. `MLP` reads an observation as it is. `PublicPrivate` reads what everyone sees in one branch
and the own hand in another, multiplies the two and gives logits: to ask "what would you play with that hand?" of many
hands costs only the private branch (signaling.md 4.4).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from domino_env.decisions import Decisions
from domino_env.observation import Layout, layout_of, unpack
from domino_env.rules import Rules
from domino_env.tiles import NUM_ACTIONS, NUM_TILES, PASS

#: Logit of an illegal action: its probability is exactly 0 beside any other; and it is finite: no NaN comes of it.
ILLEGAL = torch.finfo(torch.float32).min

#: The bfloat16 number 1 as a 16-bit pattern; a bit times this is the bit as bfloat16.
_ONE = 0x3F80

NETWORKS = ("mlp", "public_private")


# -- bits ------------------------------------------------------------------------------------------------------------


def to_bits(packed: npt.NDArray[np.uint8], dtype: torch.dtype, device: torch.device | str = "cpu") -> Tensor:
    """(N, nbytes) uint8 packed observations as (N, 8 nbytes) numbers 0 and 1 of a float type."""
    bits = unpack(packed)
    if dtype == torch.bfloat16:
        # Twice as fast as a conversion: no arithmetic of floats is needed to write a 0 or a 1.
        words = torch.from_numpy((bits * np.uint16(_ONE)).view(np.int16))
        return words.to(device).view(torch.bfloat16)
    return torch.from_numpy(bits).to(device).to(dtype)


def to_mask(legal: npt.NDArray[np.uint64], device: torch.device | str = "cpu") -> Tensor:
    """(N,) uint64 legal actions, bit a for action a, as (N, 57) bool."""
    data = legal.astype("<u8", copy=False).view(np.uint8).reshape(len(legal), 8)
    bits = np.unpackbits(data, axis=1, count=NUM_ACTIONS, bitorder="little")
    return torch.from_numpy(bits.view(np.bool_)).to(device)


# -- the mirror of the line ------------------------------------------------------------------------------------------


def straighten(
    obs: npt.NDArray[np.uint8], legal: npt.NDArray[np.uint64], layout: Layout
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """The same decisions with the line turned so that its left end is not the larger one.

    The mirror of a line is the same game with left and right exchanged: networks need to know only one of the two.

    Args:
        obs: (N, nbytes) packed observations; legal: (N,) uint64, bit a for action a.

    Returns:
        obs and legal as networks are shown them, and (N,) bool, which were turned: see `mirrored`.
    """
    place = layout.slices["end_left"]
    suits = place.stop - place.start
    if layout.slices["end_right"].start != place.stop or place.start // 32 != (place.stop + suits - 1) // 32:
        raise ValueError("the two ends must lie side by side in one word of the layout")
    words = obs.view("<u4").copy()
    ends = words[:, place.start // 32] >> np.uint32(place.start % 32)
    left, right = ends & np.uint32((1 << suits) - 1), ends >> np.uint32(suits) & np.uint32((1 << suits) - 1)
    flipped = left > right
    swap = (left ^ right) * flipped
    words[:, place.start // 32] ^= (swap | swap << np.uint32(suits)) << np.uint32(place.start % 32)
    half = np.uint64(NUM_TILES)
    exchange = (legal ^ legal >> half) & np.uint64((1 << NUM_TILES) - 1)
    exchange *= flipped
    return words.view(np.uint8), legal ^ (exchange | exchange << half), flipped


def mirrored(actions: npt.NDArray[np.int64], flipped: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The actions (N,) with left and right exchanged in the rows that are `flipped`."""
    other = np.where(actions < NUM_TILES, actions + NUM_TILES, actions - NUM_TILES)
    return np.where(flipped & (actions != PASS), other, actions)


# -- the masked categorical ------------------------------------------------------------------------------------------


class MaskedCategorical:
    """A distribution over the legal actions of each row (B01).

    Illegal actions have probability exactly 0; everything is finite for every finite logit, and so are the gradients;
    with one legal action its log-probability and the entropy are exactly 0.
    """

    def __init__(self, logits: Tensor, mask: Tensor) -> None:
        """logits (N, A) of any float type, mask (N, A) bool with at least one True a row."""
        masked = torch.where(mask, logits.float(), ILLEGAL)
        self.logprobs = F.log_softmax(masked, dim=1)  # (N, A) float32
        self.probs = F.softmax(masked, dim=1)  # (N, A) float32; exp(logprobs) would be slow where that is 0

    def entropy(self) -> Tensor:
        """(N,) nats."""
        return -(self.probs * self.logprobs).sum(1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """(N,) log-probabilities of (N,) int64 actions."""
        return self.logprobs.gather(1, actions[:, None]).squeeze(1)

    def sample(self, uniforms: Tensor) -> Tensor:
        """(N,) int64 actions, one from each uniform number in [0, 1): the one in whose stretch of it that falls."""
        cumulative = self.probs.cumsum(1)
        total = cumulative[:, -1:]
        # The last stretch ends at the total, which rounding may leave below the uniform.
        target = torch.minimum(uniforms[:, None].float() * total, torch.nextafter(total, torch.zeros_like(total)))
        return torch.searchsorted(cumulative, target, right=True).squeeze(1)

    def mode(self) -> Tensor:
        """(N,) int64 likeliest actions; of equals the first."""
        return self.probs.argmax(1)


# -- layers ----------------------------------------------------------------------------------------------------------


class _Linear(torch.autograd.Function):
    """x W^T + b, rectified or not. Autograd's own linear takes a slower path on CPUs and keeps one array more."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, rectified: bool) -> Tensor:
        y = F.linear(x, weight, bias)
        if rectified:
            y.relu_()
        ctx.save_for_backward(x, weight, y if rectified else None)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None]:
        x, weight, y = ctx.saved_tensors
        grad = grads[0]
        if y is not None:
            grad = torch.ops.aten.threshold_backward(grad, y, 0)
        below = grad.mm(weight) if ctx.needs_input_grad[0] else None  # observations need none
        return below, grad.t().mm(x), grad.sum(0), None


class Dense(nn.Module):
    """A layer: (N, inputs) -> (N, outputs), rectified where asked."""

    def __init__(self, inputs: int, outputs: int, rectified: bool, gain: float, generator: torch.Generator) -> None:
        super().__init__()
        # In double precision: where another machine rounds otherwise, that is lost in rounding to float32.
        weight = nn.init.orthogonal_(torch.empty(outputs, inputs, dtype=torch.float64), gain, generator=generator)
        self.weight = nn.Parameter(weight.float())
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.rectified = rectified

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, _Linear.apply(x, self.weight, self.bias, self.rectified))


def _torso(inputs: int, hidden: Sequence[int], generator: torch.Generator) -> nn.Sequential:
    widths = [inputs, *hidden]
    return nn.Sequential(*(Dense(a, b, True, math.sqrt(2), generator) for a, b in itertools.pairwise(widths)))


# -- networks --------------------------------------------------------------------------------------------------------


class MLP(nn.Module):
    """Observation (N, bits) -> logits (N, 57)."""

    def __init__(self, layout: Layout, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.torso = _torso(layout.size, hidden, generator)
        self.head = Dense(hidden[-1], NUM_ACTIONS, False, 0.01, generator)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.torso(x)))


class PublicPrivate(nn.Module):
    """Observation (N, bits) -> logits (N, 57) = head(public(what all see) * private(own hand))."""

    def __init__(self, layout: Layout, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        hand = layout.slices["hand"]
        if hand.start != 0:
            raise ValueError(f"the hand must be the first slice of the layout, it begins at bit {hand.start}")
        self.split = hand.stop
        self.public_torso = _torso(layout.size - self.split, hidden, generator)
        self.private_torso = _torso(self.split, hidden, generator)
        self.head = Dense(hidden[-1], NUM_ACTIONS, False, 0.01, generator)

    def public(self, x: Tensor) -> Tensor:
        """(N, width) of observations (N, bits); the own hand is not read."""
        return cast(Tensor, self.public_torso(x[:, self.split :].contiguous()))

    def private(self, hands: Tensor) -> Tensor:
        """(N, width) of own hands (N, 28)."""
        return cast(Tensor, self.private_torso(hands))

    def join(self, public: Tensor, private: Tensor) -> Tensor:
        """(N, 57) logits of the two branches."""
        return cast(Tensor, self.head(public * private))

    def forward(self, x: Tensor) -> Tensor:
        return self.join(self.public(x), self.private(x[:, : self.split].contiguous()))


class Critic(nn.Module):
    """Bits (N, inputs) -> value (N,), the expected scaled reward of the mover."""

    def __init__(self, inputs: int, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.torso = _torso(inputs, hidden, generator)
        self.head = Dense(hidden[-1], 1, False, 1.0, generator)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.torso(x)).squeeze(1))


def make_actor(kind: str, layout: Layout, hidden: Sequence[int], generator: torch.Generator) -> nn.Module:
    """The policy network called `kind`, "mlp" or "public_private"."""
    if kind == "mlp":
        return MLP(layout, hidden, generator)
    if kind == "public_private":
        return PublicPrivate(layout, hidden, generator)
    raise ValueError(f"unknown network {kind!r}; choose from {', '.join(NETWORKS)}")


# -- a network at the table ------------------------------------------------------------------------------------------


class Policy:
    """The agent that a policy network is. It plays the likeliest action, or samples one from `batch.rng`.

    It computes in float32 and in blocks of one size, so that what it plays depends neither on the machine's bfloat16
    nor on how decisions are batched.
    """

    sees_everything = False
    needs_history = False

    BLOCK = 256

    def __init__(self, actor: nn.Module, rules: Rules, name: str = "policy", *, sample: bool = False) -> None:
        self.actor = actor
        self.rules = rules
        self.layout = layout_of(rules)
        self.name = name
        self.sample = sample

    def act(self, batch: Decisions, /) -> npt.NDArray[np.int64]:
        """(N,) int64 legal actions."""
        policy, flipped = self._distribution(batch)
        if not self.sample:
            return mirrored(policy.mode().numpy(), flipped)
        if batch.rng is None:
            raise ValueError("a policy that samples needs batch.rng")
        return mirrored(policy.sample(torch.from_numpy(batch.rng.random(len(batch)))).numpy(), flipped)

    def probabilities(self, batch: Decisions) -> npt.NDArray[np.float32]:
        """(N, 57) float32 probabilities of the actions, exactly 0 for illegal ones."""
        policy, flipped = self._distribution(batch)
        probabilities = policy.probs.numpy()
        actions = np.arange(NUM_ACTIONS)
        turned = probabilities[:, mirrored(actions, np.ones(NUM_ACTIONS, np.bool_))]
        return np.where(flipped[:, None], turned, probabilities)

    def _distribution(self, batch: Decisions) -> tuple[MaskedCategorical, npt.NDArray[np.bool_]]:
        """The distribution over straightened actions, and which rows were turned for it."""
        if batch.rules is not None and batch.rules != self.rules:
            raise ValueError(f"{self.name} was trained for {self.rules}, not for {batch.rules}")
        count = len(batch)
        legal = np.zeros((count, 8), np.uint8)
        legal[:] = np.packbits(batch.mask != 0, axis=1, bitorder="little")
        packed = np.packbits(batch.obs, axis=1, bitorder="little")
        obs, words, flipped = straighten(packed, legal.view("<u8")[:, 0], self.layout)
        x = torch.zeros(-(-max(count, 1) // self.BLOCK) * self.BLOCK, self.layout.size)
        x[:count] = to_bits(obs, torch.float32)
        device = next(self.actor.parameters()).device
        with torch.inference_mode():
            logits = torch.cat([self.actor(block.to(device)).cpu() for block in x.split(self.BLOCK)])[:count]
            return MaskedCategorical(logits, to_mask(words)), flipped
