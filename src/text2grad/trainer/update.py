"""The PPO update: several passes over one step's answers, one optimiser step each, and when to stop short."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from text2grad.distributed.learner import Learner
from text2grad.distributed.micro_batches import IDLE, MicroBatch, micro_batches
from text2grad.models.batching import TokenBatch
from text2grad.trainer.config import PolicySettings
from text2grad.trainer.losses import approximate_kl, clipped_policy_loss, clipped_value_loss, kl_loss
from text2grad.trainer.snapshot import Snapshot

if TYPE_CHECKING:
    from text2grad.trainer.batch import Rollout

MEANS = ("policy_loss", "value_loss", "entropy", "clip_fraction", "approx_kl")  # over valid tokens


@dataclass(frozen=True)
class Batch:
    """What the update needs to know of one step's answers; tensors are (samples, tokens).

    mask: 1 on tokens of samples that are learned from.
    anchor: weight of the divergence from the reference in the loss; 0 where the rewards have paid for it.
    weights: of each token's policy loss, for a sampler that was not quite the policy; None leaves it as it is.
    """

    mask: Tensor
    old_logprobs: Tensor
    reference_logprobs: Tensor
    old_values: Tensor
    advantages: Tensor
    returns: Tensor
    explained_variance: float
    anchor: float = 0.0
    weights: Tensor | None = None


@dataclass(frozen=True)
class Outcome:
    """What an update did. broken: why it was abandoned, None where it was not."""

    stats: dict[str, float]
    broken: str | None = None


def update(learner: Learner, rollout: Rollout, batch: Batch, args: PolicySettings) -> Outcome:
    """Make up to `num_iterations` optimiser steps on the valid samples; `passes` says how many were made.

    The stats are means over valid tokens of the last pass. Without a valid sample nothing changes. A pass that finds
    the policy further than `early_stop_kl` from the behaviour policy ends the update before its optimiser step. A loss
    or gradient that is not finite, or a KL above `rollback_kl`, aborts it: no further step is made and `skipped` is 1;
    with `rollback_kl` set, the steps already made are rolled back too.
    """
    stats = dict.fromkeys((*MEANS, "grad_norm"), math.nan) | {"passes": 0.0, "skipped": 0.0}
    valid = [i for i in range(len(batch.mask)) if batch.mask[i].any()]
    if not valid:
        return Outcome(stats)
    micro = micro_batches(
        rollout.prompts,
        rollout.completions,
        valid,
        args.tokens_per_batch,
        bool(learner.policy.share_prompts),
        learner.accelerator.device,
        learner.processes,
    )
    snapshot = None if args.rollback_kl is None else Snapshot.take(learner.optimizer)
    broken = _passes(learner, batch, micro, args, stats)
    learner.optimizer.zero_grad()
    if broken is None and args.rollback_kl is not None:
        stats["approx_kl"] = _divergence(learner, batch, micro, args)
        broken = _explosion(stats["approx_kl"], args)
    if broken is not None:
        stats["skipped"] = 1.0
        if snapshot is not None:
            snapshot.restore(learner.optimizer)
            stats["passes"] = 0.0
    return Outcome(stats, broken)


def _passes(
    learner: Learner, batch: Batch, micro: list[MicroBatch], args: PolicySettings, stats: dict[str, float]
) -> str | None:
    """The optimiser steps, with `stats` kept up to date. Returns why they were broken off, or None."""
    tokens = float(batch.mask.sum())
    learner.policy.train()
    for _ in range(args.num_iterations):
        learner.optimizer.zero_grad()
        sums = [0.0] * len(MEANS)
        for samples, rows in micro:
            more = _accumulate(learner, batch, samples, rows, tokens, args)
            sums = [a + b for a, b in zip(sums, more, strict=True)]
        stats |= {name: total / tokens for name, total in zip(MEANS, learner.processes.sum(sums), strict=True)}
        stats["grad_norm"] = learner.clip_gradients(args.max_grad_norm)
        broken = _not_finite(stats) or _explosion(stats["approx_kl"], args)
        if broken is not None or (args.early_stop_kl is not None and stats["approx_kl"] > args.early_stop_kl):
            return broken
        learner.optimizer.step()
        stats["passes"] += 1
    return None


def _accumulate(
    learner: Learner, batch: Batch, samples: list[int], rows: TokenBatch, tokens: float, args: PolicySettings
) -> list[float]:
    """Forward and backward of one micro-batch. Returns sums over its valid tokens, in the order of MEANS.

    An idle one takes the pass that other processes wait for, and learns nothing from it.
    """
    taken = samples or IDLE

    def of_samples(tensor: Tensor) -> Tensor:
        return tensor[taken, : rows.width].to(learner.accelerator.device)

    mask, old_logprobs = of_samples(batch.mask) * bool(samples), of_samples(batch.old_logprobs)
    scores = learner.policy(rows, args.temperature, entropy_gradient=args.entropy_coef > 0)
    weights = None if batch.weights is None else of_samples(batch.weights)
    policy_loss, clipped = clipped_policy_loss(
        scores.logprobs, old_logprobs, of_samples(batch.advantages), mask, args.epsilon, weights
    )
    value_loss = clipped_value_loss(
        scores.values, of_samples(batch.old_values), of_samples(batch.returns), mask, args.epsilon_value
    )
    entropy = (scores.entropy * mask).sum()
    loss = policy_loss + args.value_weight * value_loss
    if args.entropy_coef:
        loss = loss - args.entropy_coef * entropy
    if batch.anchor:
        loss = loss + batch.anchor * kl_loss(scores.logprobs, of_samples(batch.reference_logprobs), mask)
    learner.backward(loss / tokens)
    kl = approximate_kl(scores.logprobs.detach(), old_logprobs, mask)
    return [value.item() for value in (policy_loss, value_loss, entropy, clipped, kl)]


@torch.no_grad()
def _divergence(learner: Learner, batch: Batch, micro: list[MicroBatch], args: PolicySettings) -> float:
    """The approximate KL, in nats a token, from the policy that sampled to the policy as it is now."""
    total = 0.0
    for samples, rows in micro:
        now = learner.policy(rows, args.temperature).logprobs.cpu()
        old, mask = (tensor[samples or IDLE, : rows.width] for tensor in (batch.old_logprobs, batch.mask))
        total += approximate_kl(now, old, mask * bool(samples)).item()
    learner.reshard()
    return learner.processes.sum([total])[0] / float(batch.mask.sum())


def _not_finite(stats: dict[str, float]) -> str | None:
    for name in ("policy_loss", "value_loss", "grad_norm"):
        if not math.isfinite(stats[name]):
            return f"the update's {name} is {stats[name]}"
    return None


def _explosion(kl: float, args: PolicySettings) -> str | None:
    if args.rollback_kl is None or kl <= args.rollback_kl:
        return None
    return f"the update moved the policy by {kl:.3g} nats a token, more than rollback_kl ({args.rollback_kl:g})"
