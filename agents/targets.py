"""Learning to play as was shown: cross-entropy with actions, or with what all of them are worth."""

from __future__ import annotations

import torch
from torch import Tensor

from agents.networks import ILLEGAL


def imitation_loss(logits: Tensor, mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy between a target and the policy, and its gradient in closed form: (policy - target) / B.

    Args:
        logits: (B, A) of any float type; mask: (B, A) bool, legal actions, at least one a row.
        target: (B,) int64 legal actions; or (B, A) floats, probabilities that are 0 for illegal actions.

    Returns:
        () float32 mean over the rows, nats; (B, A) float32 its gradient with respect to the logits.
    """
    with torch.no_grad():
        masked = torch.where(mask, logits.float(), ILLEGAL)
        logprobs, grad = torch.log_softmax(masked, dim=1), torch.softmax(masked, dim=1)
        if target.dim() == 1:
            index = target[:, None]
            loss = -logprobs.gather(1, index).mean()
            grad.scatter_add_(1, index, torch.full_like(index, -1.0, dtype=torch.float32))
        else:
            wanted = target.float()
            loss = -torch.where(mask, wanted * logprobs, 0.0).sum(1).mean()
            grad.sub_(wanted)
        return loss, grad.div_(len(logits))


def soft_targets(values: Tensor, mask: Tensor, temperature: float) -> Tensor:
    """softmax(values / temperature) over the legal actions; only differences of values count.

    Args:
        values: (B, A) points, whatever where illegal; mask: (B, A) bool; temperature: points, above 0.

    Returns:
        (B, A) float32 probabilities, exactly 0 for illegal actions.
    """
    return torch.softmax(torch.where(mask, values.float() / temperature, ILLEGAL), dim=1)
