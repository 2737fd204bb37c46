"""Who learns: the policy, the optimiser of its weights, and where they live."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import Tensor

from text2grad.distributed.processes import SINGLE_PROCESS, Processes
from text2grad.distributed.sharding import reshard, whole
from text2grad.models.policy import Policy
from text2grad.trainer.config import PolicySettings


@dataclass(frozen=True)
class Learner:
    """A policy that gradients can be taken of and steps be made with, on one process or several."""

    policy: torch.nn.Module
    optimizer: torch.optim.Optimizer
    accelerator: Accelerator
    processes: Processes = SINGLE_PROCESS

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add the loss's gradients, which are to be summed over the processes. last: no more will be added."""
        self.accelerator.backward(loss * self.processes.loss_scale)

    def clip_gradients(self, max_norm: float) -> float:
        """Complete the gradients and bring them to this norm at most. Returns the norm that they had."""
        trained = optimizer_parameters(self.optimizer)
        self.processes.sum_gradients(trained)
        return float(whole(torch.nn.utils.clip_grad_norm_(trained, max_norm)))

    def reshard(self) -> None:
        """Drop the whole weights that passes without a backward have left behind, where they are divided."""
        reshard(self.policy)


def optimizer_parameters(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    """Return all parameters of an optimiser, in the order of its groups."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def make_learner(
    policy: Policy,
    optimizer: torch.optim.AdamW,
    accelerator: Accelerator,
    processes: Processes,
    args: PolicySettings,
) -> Learner:
    """The learner that the processes' division asks for."""
    if processes.division == "zero":
        from text2grad.distributed.zero import make_zero_learner

        return make_zero_learner(policy, optimizer, accelerator, processes, args)
    if processes.division == "zero3":
        from text2grad.distributed.zero3 import make_zero3_learner

        return make_zero3_learner(policy, optimizer, accelerator, processes, args)
    return Learner(policy, accelerator.prepare_optimizer(optimizer), accelerator, processes)
