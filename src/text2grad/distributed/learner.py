"""The policy together with its optimiser, for one process or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import Tensor

from text2grad.distributed.micro_batches import MicroBatch, micro_batches
from text2grad.distributed.processes import SINGLE_PROCESS, Processes
from text2grad.distributed.sharding import gather_full_tensor, reshard


@dataclass(frozen=True)
class Learner:
    """A policy and its optimiser: micro-batches, backward passes, gradient clipping, resharding."""

    policy: torch.nn.Module
    optimizer: torch.optim.Optimizer
    accelerator: Accelerator
    processes: Processes = SINGLE_PROCESS

    def micro_batches(
        self,
        prompts: Sequence[Sequence[int]],
        completions: Sequence[Sequence[int]],
        samples: Sequence[int],
        max_tokens: int,
    ) -> list[MicroBatch]:
        """Return this process's share of the samples in micro-batches, laid out for the policy on its device."""
        share_prompts, device = bool(self.policy.share_prompts), self.accelerator.device
        return micro_batches(prompts, completions, samples, max_tokens, share_prompts, device, self.processes)

    def backward(self, loss: Tensor) -> None:
        """Accumulate the gradients of a loss that is summed over the processes."""
        self.accelerator.backward(loss * self.processes.loss_scale)

    def clip_gradients(self, max_norm: float) -> float:
        """Reduce gradients over the processes and clip them. Returns the norm before clipping."""
        trained = optimizer_parameters(self.optimizer)
        self.processes.all_reduce_gradients(trained)
        return float(gather_full_tensor(torch.nn.utils.clip_grad_norm_(trained, max_norm)))

    def reshard(self) -> None:
        """Free the full weights that passes without a backward have left gathered."""
        reshard(self.policy)


def optimizer_parameters(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    """Return all parameters of an optimiser, in the order of its groups."""
    return [p for group in optimizer.param_groups for p in group["params"]]
