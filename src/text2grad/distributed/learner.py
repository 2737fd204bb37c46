"""The policy with its optimiser, and the micro-batches of its passes, for one process or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from text2grad.distributed.processes import SINGLE_PROCESS, Processes, balance_rows
from text2grad.distributed.sharding import gather_full_tensor, reshard
from text2grad.models.batching import Branch, TokenBatch, TokenIds, split_by_token_budget
from text2grad.models.packing import (
    MAX_PADDING_RATIO,
    TOKEN_IN_PAIRS,
    Row,
    pack_rows,
    pad_rows,
    row_length,
    sample_lengths,
    shared_rows,
    token_in_pairs,
)

MicroBatch = tuple[list[int], TokenBatch]  # sample indices, and their tokens
IDLE: Row = [0]  # the row of an idle micro-batch, which has no samples of its own


@dataclass(frozen=True)
class Learner:
    """A policy and its optimiser: micro-batches, backward passes, gradient clipping, resharding."""

    policy: torch.nn.Module
    optimizer: torch.optim.Optimizer
    accelerator: Accelerator
    processes: Processes = SINGLE_PROCESS

    def micro_batches(
        self,
        prompts: TokenIds,
        completions: TokenIds,
        samples: Sequence[int],
        max_tokens: int,
        branches: Sequence[Branch] = (),
    ) -> list[MicroBatch]:
        """Return this process's share of the samples in micro-batches, laid out for the policy on its device."""
        policy: Any = self.policy
        share, device = bool(policy.share_prompts), self.accelerator.device
        pairs = token_in_pairs(policy.model) if share else 0
        return micro_batches(prompts, completions, samples, max_tokens, share, device, self.processes, branches, pairs)

    def backward(self, loss: Tensor) -> None:
        """Accumulate the gradients of a loss that is summed over the processes.

        Not `accelerator.backward`: it divides by accumulation steps, a number that all accelerators of a process share.
        """
        torch.autograd.backward(loss * self.processes.loss_scale)

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


def micro_batches(
    prompts: TokenIds,
    completions: TokenIds,
    samples: Sequence[int],
    max_tokens: int,
    share_prompts: bool,
    device: torch.device,
    processes: Processes = SINGLE_PROCESS,
    branches: Sequence[Branch] = (),
    pairs: int = TOKEN_IN_PAIRS,
) -> list[MicroBatch]:
    """Return this process's share of the samples in micro-batches of at most `max_tokens` tokens, or of one row.

    pairs: see `token_in_pairs`; for rows that share a prompt.
    Each is (samples, batch): `batch.scatter` returns one line per sample, in their order, then one for each of
    `batch.branches`. Branches go with their sample; those of samples that are not asked for are left out. Rows are
    never split, so the processes together compute what one alone would. Where all need equally many passes, a process
    that has fewer gets idle ones: no samples, and the row `IDLE`, whose results are ignored.
    """
    own_tokens = sample_lengths(completions, branches)
    if share_prompts:
        rows = shared_rows(prompts, completions, samples, max_tokens, branches, pairs)
        max_padding, lay_out = MAX_PADDING_RATIO, pack_rows
    else:
        rows = [[i] for i in samples]
        max_padding, lay_out = 1.0, pad_rows
        for branch in branches:  # in a row of its own, with the tokens that it continues
            own_tokens[branch.sample] += len(prompts[branch.sample]) + branch.start
    lengths = [row_length(prompts, own_tokens, row) for row in rows]
    local = balance_rows(lengths, processes.world_size)[processes.rank]
    planned = split_by_token_budget([lengths[i] for i in local], max_tokens, max_padding)
    batches = processes.pad_passes([[rows[local[i]] for i in batch] for batch in planned], idle=[])
    return [
        (
            [i for row in batch for i in row],
            lay_out(prompts, completions, batch or [IDLE], device, branches if batch else ()),
        )
        for batch in batches
    ]
