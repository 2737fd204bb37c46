"""The PPO update: several passes over one step's samples, one optimiser step each, with early stop and rollback."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from text2grad.distributed.learner import IDLE, Learner, MicroBatch
from text2grad.models.batching import TokenBatch
from text2grad.models.policy import Scores
from text2grad.trainer.batch import Batch, Rollout
from text2grad.trainer.config import PolicySettings
from text2grad.trainer.corrections import NO_CORRECTIONS, CorrectionBatch, corrections_loss
from text2grad.trainer.guards import take_snapshot
from text2grad.trainer.losses import approximate_kl, clipped_policy_loss, clipped_value_loss, kl_loss

MEANS = ("policy_loss", "value_loss", "entropy", "clip_fraction", "approx_kl")  # over valid tokens
CORRECTION_MEANS = ("corrections/loss", "corrections/probability")  # over corrections, where there are any


@dataclass(frozen=True)
class UpdateResult:
    """Metrics of an update. error: why it was aborted, or None.

    corrections: the mean probability of the tokens of each correction in the first pass, before the update.
    """

    stats: dict[str, float]
    error: str | None = None
    corrections: dict[int, float] = field(default_factory=dict)


def update(
    learner: Learner,
    rollout: Rollout,
    batch: Batch,
    args: PolicySettings,
    corrections: CorrectionBatch = NO_CORRECTIONS,
) -> UpdateResult:
    """Make up to `num_iterations` optimiser steps on the valid samples; `num_updates` counts them.

    The stats are means over valid tokens, or over corrections, of the last pass. Without a valid sample nothing
    changes. A pass that finds the policy further than `early_stop_kl` from the behaviour policy ends the update before
    its optimiser step. A loss or gradient that is not finite, or a KL above `rollback_kl`, aborts it: no further step
    is made and `skipped` is 1; with `rollback_kl` set, the steps already made are rolled back too.
    """
    stats = dict.fromkeys((*MEANS, "grad_norm"), math.nan) | {"num_updates": 0.0, "skipped": 0.0}
    valid = [i for i in range(len(batch.mask)) if batch.mask[i].any()]
    if not valid:
        return UpdateResult(stats)
    micro = learner.micro_batches(
        rollout.prompts, rollout.completions, valid, args.tokens_per_batch, corrections.branches
    )
    restore = None if args.rollback_kl is None else take_snapshot(learner.optimizer)
    before: dict[int, float] = {}
    error = _optimize(learner, batch, corrections, micro, args, stats, before)
    learner.optimizer.zero_grad()
    if error is None and args.rollback_kl is not None:
        stats["approx_kl"] = _mean_kl(learner, batch, micro, args)
        error = _kl_error(stats["approx_kl"], args)
    if error is not None:
        stats["skipped"] = 1.0
        if restore is not None:
            restore()
            stats["num_updates"] = 0.0
    return UpdateResult(stats, error, before)


def _optimize(
    learner: Learner,
    batch: Batch,
    corrections: CorrectionBatch,
    micro: list[MicroBatch],
    args: PolicySettings,
    stats: dict[str, float],
    before: dict[int, float],
) -> str | None:
    """Make the optimiser steps and update `stats`. Returns why they were aborted, or None.

    before: gets the probabilities of corrections in the first pass.
    """
    tokens = float(batch.mask.sum())
    # corrections become fewer as the policy learns: the last ones must not count as much as all of them did before
    num_shares = max(len(corrections), int(batch.mask.any(dim=1).sum()))
    counts = dict.fromkeys(MEANS, tokens) | dict.fromkeys(CORRECTION_MEANS, float(len(corrections)))
    learner.policy.train()
    for iteration in range(args.num_iterations):
        learner.optimizer.zero_grad()
        probabilities: dict[int, float] = {}
        sums = [0.0] * len(counts)
        for samples, rows in micro:
            more = _accumulate(learner, batch, corrections, samples, rows, (tokens, num_shares), args, probabilities)
            sums = [a + b for a, b in zip(sums, more, strict=True)]
        if len(corrections) and not iteration:
            before |= dict(learner.processes.gather(list(probabilities.items())))
        totals = zip(counts, learner.processes.sum(sums), strict=True)
        stats |= {name: total / counts[name] for name, total in totals if counts[name]}
        stats["grad_norm"] = learner.clip_gradients(args.max_grad_norm)
        error = _non_finite_error(stats) or _kl_error(stats["approx_kl"], args)
        if error is not None or (args.early_stop_kl is not None and stats["approx_kl"] > args.early_stop_kl):
            return error
        learner.optimizer.step()
        stats["num_updates"] += 1
    return None


def _accumulate(
    learner: Learner,
    batch: Batch,
    corrections: CorrectionBatch,
    samples: list[int],
    rows: TokenBatch,
    divisors: tuple[float, int],
    args: PolicySettings,
    probabilities: dict[int, float],
) -> list[float]:
    """Forward and backward of one micro-batch. Returns sums, in the order of MEANS and CORRECTION_MEANS.

    divisors: of the losses on tokens and on corrections. probabilities: gets the mean probability of the tokens of each
    correction. An idle micro-batch only takes part in the collectives of the pass, and contributes nothing.
    """
    indices, (tokens, num_shares) = samples or IDLE, divisors

    def select(tensor: Tensor) -> Tensor:
        return tensor[indices, : rows.width].to(learner.accelerator.device)

    mask, old_logprobs = select(batch.mask) * bool(samples), select(batch.old_logprobs)
    scored = learner.policy(rows, args.temperature, entropy_gradient=args.entropy_coef > 0)
    scores = Scores(*(lines[: len(indices), : mask.shape[1]] for lines in scored))
    weights = None if batch.importance_weights is None else select(batch.importance_weights)
    policy_loss, clipped = clipped_policy_loss(
        scores.logprobs, old_logprobs, select(batch.advantages), mask, args.epsilon, weights
    )
    value_loss = clipped_value_loss(
        scores.values, select(batch.old_values), select(batch.returns), mask, args.epsilon_value
    )
    entropy = (scores.entropy * mask).sum()
    loss = policy_loss + args.value_weight * value_loss
    if args.entropy_coef:
        loss = loss - args.entropy_coef * entropy
    if batch.kl_coef:
        loss = loss + batch.kl_coef * kl_loss(scores.logprobs, select(batch.reference_logprobs), mask)
    loss = loss / tokens
    corrected = [0.0] * len(CORRECTION_MEANS)
    if rows.branches:
        chosen = corrections.inside(rows.branches)
        logprobs = corrections.gather(scored.logprobs[len(indices) :], rows.branches, chosen)
        on_corrections = corrections_loss(scores.logprobs, logprobs, samples, chosen, corrections, args.corrections)
        loss = loss + args.corrections.weight * on_corrections / num_shares
        means: list[float] = corrections.probabilities(logprobs.detach(), chosen).tolist()
        probabilities |= dict(zip(chosen, means, strict=True))
        corrected = [on_corrections.item(), sum(means)]
    learner.backward(loss)
    kl = approximate_kl(scores.logprobs.detach(), old_logprobs, mask)
    return [*(value.item() for value in (policy_loss, value_loss, entropy, clipped, kl)), *corrected]


@torch.no_grad()
def _mean_kl(learner: Learner, batch: Batch, micro: list[MicroBatch], args: PolicySettings) -> float:
    """The approximate KL, in nats per token, from the policy that sampled to the current policy."""
    total = 0.0
    for samples, rows in micro:
        now = learner.policy(rows, args.temperature).logprobs.cpu()
        old, mask = (tensor[samples or IDLE, : rows.width] for tensor in (batch.old_logprobs, batch.mask))
        total += approximate_kl(now[: len(mask), : mask.shape[1]], old, mask * bool(samples)).item()
    learner.reshard()
    return learner.processes.sum([total])[0] / float(batch.mask.sum())


def _non_finite_error(stats: dict[str, float]) -> str | None:
    for name in ("policy_loss", "value_loss", "grad_norm"):
        if not math.isfinite(stats[name]):
            return f"the update's {name} is {stats[name]}"
    return None


def _kl_error(kl: float, args: PolicySettings) -> str | None:
    if args.rollback_kl is None or kl <= args.rollback_kl:
        return None
    return f"the update moved the policy by {kl:.3g} nats per token, more than rollback_kl ({args.rollback_kl:g})"
