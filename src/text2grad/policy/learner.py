"""Who learns: the policy, the optimiser of its weights, and where they live."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import Tensor

from text2grad.policy.config import PolicySettings
from text2grad.policy.model import Policy
from text2grad.policy.processes import ALONE, Processes
from text2grad.policy.sharding import put_away, whole
from text2grad.policy.snapshot import parameters


@dataclass(frozen=True)
class Learner:
    """A policy that gradients can be taken of and steps be made with, on one process or several."""

    policy: torch.nn.Module
    optimizer: torch.optim.Optimizer
    accelerator: Accelerator
    processes: Processes = ALONE

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add the loss's gradients, which are to be summed over the processes. last: no more will be added."""
        self.accelerator.backward(loss * self.processes.loss_scale)

    def clip_gradients(self, max_norm: float) -> float:
        """Complete the gradients and bring them to this norm at most. Returns the norm that they had."""
        trained = parameters(self.optimizer)
        self.processes.sum_gradients(trained)
        return float(whole(torch.nn.utils.clip_grad_norm_(trained, max_norm)))

    def put_away(self) -> None:
        """Drop the whole weights that passes without a backward have left behind, where they are divided."""
        put_away(self.policy)


def make_learner(
    policy: Policy,
    optimizer: torch.optim.AdamW,
    accelerator: Accelerator,
    processes: Processes,
    args: PolicySettings,
) -> Learner:
    """The learner that the processes' division asks for."""
    if processes.division == "zero":
        from text2grad.policy.zero import make_zero_learner

        return make_zero_learner(policy, optimizer, accelerator, processes, args)
    if processes.division == "zero3":
        from text2grad.policy.zero3 import make_zero3_learner

        return make_zero3_learner(policy, optimizer, accelerator, processes, args)
    return Learner(policy, accelerator.prepare_optimizer(optimizer), accelerator, processes)
