"""What the moves that were not made are worth: the central critic's word on every legal action of a decision.

Where a critic sees all hands, every legal action can be judged by the position that it leads to in the deal as it lies.
The actor then learns from all of them and not only from the one that was played: expected policy gradients (Ciosek and
Whiteson 2018; mean actor-critic, Allen and others 2017), here in PPO's clipped form. What was played keeps its target
of generalised advantages. An update takes longer and teaches more: the critic has a word on moves that are hardly ever
played.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.moves import make_moves
from agents.networks import ILLEGAL, all_hands, mirrored
from domino_env.line import LineEngine

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@dataclass
class Branches:
    """The E legal actions of D decisions that were not played, and where each leads to."""

    count: int  # D
    row: Ints  # (E,) which decision, 0..D-1
    action: Ints  # (E,) straightened as the decision is
    points: Floats  # (E,) of the side that decides, where the deal ends; else 0
    going: Ints  # (G,) which of the E lead to a seat with a choice
    seen: npt.NDArray[np.uint8]  # (G, bytes) packed observation there, straightened, and the hands of the other seats
    sign: Floats  # (G,) +1 where the side that decided is to move there, else -1


def branches(engine: LineEngine, rows: Ints, flipped: npt.NDArray[np.bool_], played: Ints) -> Branches:
    """What the movers of some rows might do in place of what they do.

    Args:
        rows: (D,) of the engine, which stays as it is; flipped: (D,) whether the decision was turned by `straighten`;
            played: (D,) what they do, straightened.
    """
    seats, layout = engine.rules.seats, engine.layout
    legal = engine.legal()[rows]
    legal[np.arange(len(rows)), mirrored(played, flipped)] = 0
    row, action = np.nonzero(legal)
    child = engine.take(rows[row])
    asking = child.to_move()
    rewards, over = make_moves(child, action)
    points = rewards[np.arange(len(row)), asking]
    going = np.flatnonzero(~over)
    straight = mirrored(action, flipped[row])
    if not len(going):
        seen = np.zeros((0, layout.size // 8 + 4 * (seats - 1)), np.uint8)
        return Branches(len(rows), row, straight, points, going, seen, np.zeros(0, np.float32))
    left = child.take(going)
    sign = np.where((left.to_move() - asking[going]) % 2 == 1, np.float32(-1), np.float32(1))
    return Branches(len(rows), row, straight, points, going, all_hands(left), sign)


def join(parts: Sequence[Branches]) -> Branches:
    """The branches of several plies as one."""
    rows = np.cumsum([0, *(part.count for part in parts)])
    places = np.cumsum([0, *(len(part.row) for part in parts)])
    return Branches(
        int(rows[-1]),
        np.concatenate([part.row + start for part, start in zip(parts, rows)]),
        np.concatenate([part.action for part in parts]),
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.going + start for part, start in zip(parts, places)]),
        np.concatenate([part.seen for part in parts]),
        np.concatenate([part.sign for part in parts]),
    )


def worth(found: Branches, values: Floats, num_actions: int, scale: float) -> Floats:
    """What they are worth: (D, num_actions) in scaled reward of the side that decides, 0 for all other actions.

    Args:
        values: (G,) what the critic says of the positions, in scaled reward of the seat to move there.
        scale: points of a scaled reward of 1.
    """
    each = found.points / np.float32(scale)
    each[found.going] = values * found.sign
    table = np.zeros((found.count, num_actions), np.float32)
    table[found.row, found.action] = each
    return table


@dataclass
class Expected:
    """The clipped objective over all legal actions of one minibatch, and its gradient."""

    grad: Tensor  # (B, A) float32, of (policy loss - coef * entropy) with respect to the logits
    loss: Tensor  # () clipped policy loss
    entropy: Tensor  # (B,) nats
    approx_kl: Tensor  # () mean KL divergence of the policy from the old one
    clipfrac: Tensor  # () part of the old policy's ratios outside the clip range


def advantages(old: Tensor, mask: Tensor, values: Tensor) -> Tensor:
    """(N, A) how much better each action is than the old policy is on average, over their root mean square; 0 where
    not legal.

    Args:
        old: (N, A) log-probabilities; mask: (N, A) bool; values: (N, A).
    """
    chances = old.exp()
    better = torch.where(mask, values - (chances * values).sum(1, keepdim=True), 0.0)
    return better / ((chances * better.square()).sum(1).mean().sqrt() + 1e-8)


def expected_surrogate(
    logits: Tensor, mask: Tensor, old: Tensor, advantage: Tensor, clip: float, entropy_coef: float
) -> Expected:
    """The mean of PPO's clipped objective over the actions that the old policy would choose, with an entropy bonus.

    loss = -sum_a old(a) min(r(a) A(a), clip(r(a)) A(a)), r = new / old, in closed form.

    Args:
        logits: (B, A); mask: (B, A) bool; old: (B, A) log-probabilities when played; advantage: (B, A), 0 for others.
    """
    with torch.no_grad():
        masked = torch.where(mask, logits.float(), ILLEGAL)
        logprobs, probs = torch.log_softmax(masked, dim=1), torch.softmax(masked, dim=1)
        entropy = -(probs * logprobs).sum(1)
        chances = torch.where(mask, old, ILLEGAL).exp()
        logratio = torch.where(mask, logprobs - old, 0.0)
        ratio = logratio.exp()
        plain, clipped = ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage
        gain = chances * torch.minimum(plain, clipped)
        # d loss / d logprob of each action: 0 where the clipped branch is the smaller.
        pull = torch.where(plain <= clipped, gain, 0.0).div_(-len(logits))
        # d logprob_a / d logits = onehot_a - probs;  d entropy / d logits = -probs (logprobs + entropy).
        grad = (logprobs + entropy[:, None]) * (entropy_coef / len(logits)) * probs
        grad += pull - probs * pull.sum(1, keepdim=True)
        return Expected(
            grad=torch.where(mask, grad, 0.0),
            loss=-gain.sum(1).mean(),
            entropy=entropy,
            approx_kl=(chances * ((ratio - 1) - logratio)).sum(1).mean(),
            clipfrac=(chances * ((ratio - 1).abs() > clip)).sum(1).mean(),
        )
