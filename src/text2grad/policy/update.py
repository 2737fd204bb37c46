"""The PPO update: several passes over one step's answers, one optimiser step each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from accelerate import Accelerator
from torch import Tensor

from text2grad.policy.batching import by_token_budget, pad_right
from text2grad.policy.config import PolicySettings
from text2grad.policy.loss import clipped_policy_loss, clipped_value_loss

if TYPE_CHECKING:
    from text2grad.policy.batch import Rollout


@dataclass(frozen=True)
class Batch:
    """What the update needs to know of one step's answers; tensors are (samples, tokens).

    mask: 1 on tokens of samples whose critique is valid.
    """

    mask: Tensor
    old_logprobs: Tensor
    old_values: Tensor
    advantages: Tensor
    returns: Tensor
    explained_variance: float


def update(
    policy: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    accelerator: Accelerator,
    rollout: Rollout,
    batch: Batch,
    args: PolicySettings,
) -> dict[str, float]:
    """Make `num_iterations` optimiser steps on the valid samples. Returns means over valid tokens of the last pass.

    A gradient that is not finite skips its step and is counted in `skipped`. Without a valid sample nothing moves.
    """
    valid_rows = [i for i in range(len(batch.mask)) if batch.mask[i].any()]
    tokens = float(batch.mask.sum())
    stats = {"policy_loss": float("nan"), "value_loss": float("nan"), "entropy": float("nan")}
    stats |= {"clip_fraction": float("nan"), "grad_norm": float("nan"), "skipped": 0}
    if not valid_rows:
        return stats
    lengths = [rollout.lengths[i] for i in valid_rows]
    micro_batches = [[valid_rows[i] for i in m] for m in by_token_budget(lengths, args.max_tokens_per_batch)]
    policy.train()
    for _ in range(args.num_iterations):
        sums = dict.fromkeys(("policy_loss", "value_loss", "entropy", "clip_fraction"), 0.0)
        for rows in micro_batches:
            for name, value in _accumulate(policy, accelerator, rollout, batch, rows, tokens, args).items():
                sums[name] += value / tokens
        trainable = [p for group in optimizer.param_groups for p in group["params"]]
        norm = float(accelerator.clip_grad_norm_(trainable, args.max_grad_norm))
        if torch.isfinite(torch.tensor(norm)):
            optimizer.step()
        else:
            stats["skipped"] += 1
        optimizer.zero_grad()
        stats |= sums | {"grad_norm": norm}
    return stats


def _accumulate(
    policy: torch.nn.Module,
    accelerator: Accelerator,
    rollout: Rollout,
    batch: Batch,
    rows: list[int],
    tokens: float,
    args: PolicySettings,
) -> dict[str, float]:
    """Forward and backward of one micro-batch. Returns sums over its valid tokens."""
    device = accelerator.device
    padded = pad_right([rollout.prompts[i] for i in rows], [rollout.completions[i] for i in rows], device)

    def of_rows(tensor: Tensor) -> Tensor:
        return tensor[rows, : padded.width].to(device)

    mask = of_rows(batch.mask)
    scores = policy(padded, args.temperature)
    policy_loss, clipped = clipped_policy_loss(
        scores.logprobs, of_rows(batch.old_logprobs), of_rows(batch.advantages), mask, args.epsilon
    )
    value_loss = clipped_value_loss(
        scores.values, of_rows(batch.old_values), of_rows(batch.returns), mask, args.epsilon_value
    )
    accelerator.backward((policy_loss + args.vf_coef * value_loss) / tokens)
    return {
        "policy_loss": policy_loss.item(),
        "value_loss": value_loss.item(),
        "entropy": (scores.entropy.detach() * mask).sum().item(),
        "clip_fraction": clipped.item(),
    }
