"""What every trainer here learns with: a network, its optimiser, and rows padded to few sizes."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from agents.algorithms import RunConfig
from agents.networks import to_bits

BETAS = (0.9, 0.999)  # of Adam


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

    def __init__(self, network: nn.Module, config: RunConfig) -> None:
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

    def ask(self, rows: npt.NDArray[np.uint8], block: int) -> Tensor:
        """What the network says of (N, nbytes) packed rows, in blocks of one size: (N, ...), without a graph."""
        like = self.parameters[0]
        x = padded(rows, block)
        with torch.inference_mode():
            bits = [to_bits(x[i : i + block], like.dtype, like.device) for i in range(0, len(x), block)]
            return torch.cat([self.fast(one) for one in bits])[: len(rows)]

    def regress(self, rows: npt.NDArray[np.uint8], target: Tensor, learning_rate: float) -> Tensor:
        """A step towards targets (N,) of (N, nbytes) packed rows by least squares; () the mean square before it."""
        like = self.parameters[0]
        values = self.fast(to_bits(rows, like.dtype, like.device))
        errors = values.detach().float() - target
        self.step(values, errors.div(len(rows)).to(values.dtype), learning_rate)
        return errors.square().mean()

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


def padded(rows: npt.NDArray[np.uint8], multiple: int) -> npt.NDArray[np.uint8]:
    """The rows, and rows of zeros up to a multiple.

    For every new number of rows the CPU library builds and keeps a matrix product of its own; with few numbers playing
    takes half the time, and a run a gigabyte less.
    """
    padded = np.zeros((-(-len(rows) // multiple) * multiple, rows.shape[1]), np.uint8)
    padded[: len(rows)] = rows
    return padded
