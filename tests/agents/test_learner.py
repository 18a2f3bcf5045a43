"""What every trainer learns with: Adam as torch has it, clipped by the norm, and a copy that computes."""

from typing import Any

import pytest
import torch

from agents.algorithms import RunConfig
from agents.learner import Learner
from agents.networks import MLP
from domino_env import get_rules


def learner(**settings: Any) -> Learner:
    network = MLP(get_rules("sport_book"), [24, 16], torch.Generator().manual_seed(1))
    return Learner(network, RunConfig(opponents=[], **{"precision": "float32", **settings}))


@pytest.mark.parametrize("most", [0.05, 1e9])
def test_a_step_is_torch_s_adam_after_clipping_by_the_norm(most: float) -> None:
    ours = learner(max_grad_norm=most, adam_eps=1e-4)
    theirs = MLP(get_rules("sport_book"), [24, 16], torch.Generator().manual_seed(1))
    adam = torch.optim.Adam(theirs.parameters(), lr=1.0, eps=1e-4)
    draw = torch.Generator().manual_seed(2)
    for rate in (1e-2, 3e-3, 1e-3, 1e-3):
        x = (torch.rand(32, 256, generator=draw) < 0.3).float()[:, : ours.network.torso[0].weight.shape[1]]  # type: ignore[index, union-attr]
        grads = torch.randn(32, 57, generator=draw)
        norm = ours.step(ours.fast(x), grads, rate)
        adam.zero_grad()
        theirs(x).backward(grads)
        assert norm == pytest.approx(float(torch.nn.utils.clip_grad_norm_(theirs.parameters(), most)), rel=1e-4)
        adam.param_groups[0]["lr"] = rate
        adam.step()
        for name, parameter in theirs.named_parameters():
            assert torch.allclose(ours.network.state_dict()[name], parameter, atol=2e-6), name
    assert ours.steps == 4
    names = {f"{kind}.{name}" for kind in ("exp_avg", "exp_avg_sq") for name, _ in theirs.named_parameters()}
    assert ours.named_moments().keys() == names


def test_the_copy_that_computes_follows_every_step() -> None:
    ours = learner(precision="bf16")
    assert ours.fast is not ours.network
    before = ours.flat.clone()
    ours.step(ours.fast(torch.ones(4, ours.parameters[0].shape[1], dtype=torch.bfloat16)), torch.ones(4, 57), 1e-2)
    assert not torch.equal(before, ours.flat) and ours.flat.dtype == torch.float32
    for slow, fast in zip(ours.network.parameters(), ours.fast.parameters(), strict=True):
        assert fast.dtype == torch.bfloat16 and torch.equal(slow.to(torch.bfloat16), fast)
