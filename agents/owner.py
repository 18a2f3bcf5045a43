"""Who holds each hidden tile, said by the policy network beside its move: an auxiliary task while it learns.

A head on the last layer gives for each tile a softmax over its owners: the other seats clockwise from the left, and the
stock where the game leaves tiles over. Owners that what is public excludes have probability 0: a seat holds no suit
that was open when it passed (S3). The network has to work out for this what the others' moves say of their hands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agents import checkpoint
from agents.networks import ILLEGAL, Dense, Policy, straightened, to_bits
from domino_env.decisions import Decisions
from domino_env.observation import layout_of
from domino_env.rules import Rules
from domino_env.tiles import NUM_SUITS, NUM_TILES, SUIT_MASK, mask_of

HEAD = "owners"  # what the head is called in the network and in its checkpoint


def owners_of(rules: Rules) -> tuple[str, ...]:
    """The owners a hidden tile may have: the other seats clockwise as the observation calls them, then the stock.

    Raises:
        ValueError: a blind game, in which nobody holds a hand.
    """
    if rules.rows:
        raise ValueError(f"who holds a tile is asked in games on an open line, not in {rules.title}")
    seats = [name.removeprefix("played_") for name in layout_of(rules).slices if name.startswith("played_")]
    return (*seats[1:], *(["stock"] if rules.leftover else []))


def add_head(network: nn.Module, rules: Rules, width: int, generator: torch.Generator) -> None:
    """Gives a policy network the head; it plays as before. width: of its last layer."""
    network.add_module(HEAD, Dense(width, NUM_TILES * len(owners_of(rules)), False, 0.01, generator))


def with_owners(network: nn.Module, x: Tensor) -> Tensor:
    """Bits (N, bits) -> (N, actions + owners * 28): the logits of the moves, and behind them those of the owners."""
    net = cast(Any, network)
    features = net.features(x)
    return torch.cat([net.head(features), net.owners(features)], dim=1)


class Possible:
    """Which owners a hidden tile can have, by what one seat sees.

    It is looser than the support of `agents.search.beliefs.RulesBelief`: it knows passes, and neither that hands must
    come out at their sizes, nor what the lead (K1, B2), a re-deal (S4) or a deal that goes on (S5) tells.
    """

    def __init__(self, rules: Rules, device: torch.device | str = "cpu") -> None:
        self.owners = owners_of(rules)
        slices = layout_of(rules).slices
        names = self.owners[: rules.seats - 1]
        self._known = [slices["hand"], slices["played_me"], *(slices[f"played_{name}"] for name in names)]
        self._passed = [slices[f"passed_{name}"] for name in names]
        deck = mask_of(rules.tiles)
        self._deck = torch.tensor([deck >> tile & 1 == 1 for tile in range(NUM_TILES)], device=device)
        suits = [[bool(int(SUIT_MASK[suit]) >> tile & 1) for tile in range(NUM_TILES)] for suit in range(NUM_SUITS)]
        self._suits = torch.tensor(suits, device=device)  # (7, 28) the tile has the suit
        self._stock = bool(rules.leftover)

    def __call__(self, x: Tensor) -> Tensor:
        """(N, 28, owners) bool of observations as bits (N, bits), 0 and 1 of any float type; known tiles have none."""
        hidden = self._deck & ~(torch.stack([x[:, place] for place in self._known]) > 0).any(0)
        passed = torch.stack([x[:, place] for place in self._passed], dim=1)  # (N, seats - 1, 7)
        lacks = passed @ self._suits.to(x.dtype) > 0
        may = hidden[:, None] & ~lacks
        if self._stock:
            may = torch.cat([may, hidden[:, None]], dim=1)
        return may.transpose(1, 2)


def held(hidden: npt.NDArray[np.uint8], owners: int) -> npt.NDArray[np.int64]:
    """Who holds each tile, known tiles and those of the stock counted as the last owner's: (N, 28).

    Args:
        hidden: (N, 4 (seats - 1)) packed hands of the other seats, clockwise (`agents.buffers.Rollout`).
        owners: how many there are.
    """
    bits = np.unpackbits(hidden, axis=1, bitorder="little").reshape(len(hidden), -1, 32)[:, :, :NUM_TILES]
    return np.where(bits.any(axis=1), bits.argmax(axis=1), owners - 1)


@dataclass
class OwnerLoss:
    """The cross-entropy of one minibatch, and its gradient."""

    grad: Tensor  # (B, owners * 28) float32, of coef * loss with respect to the logits
    loss: Tensor  # () nats a hidden tile
    even: Tensor  # () the same of who thinks every possible owner as likely as another


def owner_loss(logits: Tensor, possible: Tensor, owner: Tensor, coef: float) -> OwnerLoss:
    """Mean cross-entropy over the hidden tiles of a minibatch, in closed form.

    Args:
        logits: (B, owners * 28), all tiles of the first owner first; possible: (B, 28, owners) bool.
        owner: (B, 28) int64, read of hidden tiles alone.
    """
    with torch.no_grad():
        may = possible.transpose(1, 2)  # owners apart, tiles side by side: a fifth of the time
        choices = may.sum(1)
        hidden = choices > 0
        count = hidden.sum().clamp(min=1)
        masked = torch.where(may, logits.float().view(may.shape), ILLEGAL)
        index = owner[:, None]
        loss = -F.log_softmax(masked, dim=1).gather(1, index).squeeze(1)
        # d -log p_o / d logits = p - onehot_o
        grad = F.softmax(masked, dim=1)
        grad.scatter_add_(1, index, torch.full_like(index, -1, dtype=grad.dtype))
        grad *= hidden[:, None] * (coef / count)
        return OwnerLoss(
            grad=grad.flatten(1),
            loss=torch.where(hidden, loss, 0.0).sum() / count,
            even=choices.clamp(min=1).log().sum() / count,
        )


def owner_figures(losses: Sequence[OwnerLoss]) -> dict[str, float]:
    """How well it was said who holds what, over some minibatches, by TensorBoard tag; nothing where nobody asked."""
    if not losses:
        return {}
    loss, even = (float(torch.stack(column).mean()) for column in zip(*((one.loss, one.even) for one in losses)))
    return {"losses/owner_loss": loss, "losses/owner_gain": (even - loss) / math.log(2)}


class Owners:
    """What a network with the head thinks of who holds what. It computes in float32."""

    def __init__(self, policy: Policy) -> None:
        """policy: its network has the head."""
        self.policy = policy
        self.names = owners_of(policy.rules)  # of the owners, in order
        self._possible = Possible(policy.rules)

    def probabilities(self, batch: Decisions) -> npt.NDArray[np.float32]:
        """P(owner holds tile): (N, 28, owners) float32; tiles that the asked seat sees have 0.

        Raises:
            ValueError: another game than it was trained for, or no history for a network that reads it.
        """
        policy = self.policy
        if batch.rules is not None and batch.rules != policy.rules:
            raise ValueError(f"{policy.name} was trained for {policy.rules.title}, not for {batch.rules.title}")
        obs, _, _ = straightened(batch, policy.layout, policy.deaf)
        past = policy.past(batch.history, "batch.history")
        obs = policy.shown(obs, past, batch.obs[:, policy.layout.slices["leader"]])
        x = to_bits(obs, torch.float32)
        with torch.inference_mode():
            possible = self._possible(x)
            logits = with_owners(policy.actor, x)[:, policy.rules.num_actions :]
            logits = logits.view(len(x), -1, NUM_TILES).transpose(1, 2)
            probabilities = F.softmax(torch.where(possible, logits, ILLEGAL), dim=2) * possible
        return cast(npt.NDArray[np.float32], probabilities.numpy())


def load_owners(folder: str | Path, rules: str | Rules | None = None) -> Owners:
    """The head that was saved with an agent.

    Args:
        folder: a checkpoint, or a run, of which the newest is taken.
        rules: the game; None: the one it was trained for.

    Raises:
        CheckpointError: the checkpoint cannot be used, is of other rules, or was trained without the head.
    """
    policy = checkpoint.load_policy(folder, rules)
    found = checkpoint.load(checkpoint.resolve(folder))
    stem = f"actor.{HEAD}."
    saved = {name: tensor for name, tensor in found.model.items() if name.startswith(stem)}
    if not saved:
        raise checkpoint.CheckpointError(f"{folder} does not say who holds what: it was trained with owner_coef=0")
    add_head(policy.actor, policy.rules, found.state["policy"]["hidden"][-1], torch.Generator())
    head = cast(nn.Module, getattr(policy.actor, HEAD))
    checkpoint.fill({stem + name: tensor for name, tensor in head.state_dict().items()}, saved, str(folder))
    policy.actor.requires_grad_(False)
    return Owners(policy)
