"""Metrics and sample records of a training step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.align.tokens import decode
from text2grad.schema import Feedback
from text2grad.trainer.batch import Batch, Rollout, RolloutRewards
from text2grad.trainer.corrections import CorrectionBatch
from text2grad.trainer.losses import truncated_importance_weights
from text2grad.trainer.update import UpdateResult


def step_metrics(
    step: int,
    rollout: Rollout,
    feedback: Sequence[Feedback],
    rewards: RolloutRewards,
    batch: Batch,
    corrections: CorrectionBatch,
    kl: Tensor,
    result: UpdateResult,
) -> dict[str, Any]:
    """Means over the valid samples of a step; NaN where there is none. Failed critiques are counted, never averaged in.

    kl: (samples, tokens). `kl` is the sum over the tokens of a sample, `reward` its total.
    """
    valid = rewards.valid
    errors = [item.error for item in feedback if item.status == "failed"]
    tokens = rollout.mask[valid].sum()
    return {
        "step": step,
        "samples": len(feedback),
        "critic/failed": len(feedback) - int(valid.sum()),
        "critic/error": errors[-1] if errors else None,
        "reward": float(rewards.totals[valid].mean()),
        "kl": float(kl.sum(1)[valid].mean()),
        "kl_per_token": float(kl[valid].sum() / tokens),
        "completions/mean_length": float(rollout.mask.sum(1).mean()),
        "completions/clipped_ratio": 1 - sum(rollout.ended) / len(rollout.ended),
        "completions/repetition": fmean(map(repetition, rollout.completions)),
        "rewards/coverage": float((rewards.tokens[valid] != 0).sum() / tokens),
        "corrections/count": len(corrections),
        "corrections/refused": corrections.refused,
        "explained_variance": batch.explained_variance,
        "update_error": result.error,
        **result.stats,
    }


def sampling_metrics(trained: Tensor, sampled: Tensor | None, mask: Tensor, clip_max: float | None) -> dict[str, float]:
    """Distance between the sampler and the trainer over valid tokens, in nats; NaN where it is unknown.

    trained, sampled, mask: (batch, tokens). clip_max: None where nothing is corrected; the ratios are then not
    truncated. The mean importance ratio has expectation 1 where nothing is truncated, however large the difference.
    """
    names = ("sampling/logp_difference/mean", "sampling/logp_difference/max", "sampling/importance_ratio/mean")
    if sampled is None or not mask.any():
        return dict.fromkeys(names, math.nan)
    valid = mask.bool()
    difference = (trained - sampled)[valid].abs()
    ratios = truncated_importance_weights(trained, sampled, math.inf if clip_max is None else clip_max)[valid]
    values = (difference.mean().item(), difference.max().item(), ratios.mean().item())
    return dict(zip(names, values, strict=True))


def correction_change(before: Mapping[int, float], logprobs_after: Mapping[int, Tensor]) -> dict[str, float]:
    """How much more probable the update made the corrections of the logged completions; nothing where there is none.

    before: the mean probability of the tokens of each correction. logprobs_after: (tokens,) of the logged ones.
    """
    changes = [float(logprobs.exp().mean()) - before[k] for k, logprobs in logprobs_after.items() if k in before]
    return {"corrections/probability_change": fmean(changes)} if changes else {}


def repetition(ids: Sequence[int], width: int = 4) -> float:
    """Share of the n-grams of `width` ids that occurred before in the same completion; 0 for shorter completions."""
    ngrams = [tuple(ids[i : i + width]) for i in range(len(ids) - width + 1)]
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def sample_records(
    step: int,
    rollout: Rollout,
    feedback: Sequence[Feedback],
    rewards: RolloutRewards,
    batch: Batch,
    kl: Tensor,
    logprobs_after: Tensor,
    corrections: Sequence[Sequence[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """The first samples of a step, token by token; numbers have six significant digits.

    kl: (samples, tokens), to the reference before the update. logprobs_after: (logged samples, tokens), after the
    update. corrections: those of each logged sample, as `correction_records` returns them. Values are logged where
    there are any.
    """
    valid, totals = rewards.valid, rewards.totals
    has_values = bool(batch.old_values.any())
    return [
        {
            "step": step,
            "sample": i,
            **rollout.examples[i].model_dump(mode="json", include={"id", "prompt", "completion", "reference"}),
            "feedback": feedback[i].model_dump(mode="json", exclude_defaults=True),
            "total": float(totals[i]) if valid[i] else None,
            "outcome": float(rewards.outcomes[i]) if math.isfinite(rewards.outcomes[i]) else None,
            "truncated": not rollout.ended[i],
            "corrections": list(corrections[i]),
            "tokens": [
                {
                    "text": rollout.examples[i].completion[start:end],
                    "start": start,
                    "end": end,
                    "reward": _six_digits(rewards.tokens[i, t]) if valid[i] else None,
                    "advantage": _six_digits(batch.advantages[i, t]) if valid[i] else None,
                    "logprob_before": _six_digits(batch.old_logprobs[i, t]),
                    "logprob_after": _six_digits(logprobs_after[i, t]),
                    "kl": _six_digits(kl[i, t]),
                    **({"value": _six_digits(batch.old_values[i, t])} if has_values else {}),
                }
                for t, (start, end) in enumerate(rollout.offsets[i])
            ],
        }
        for i in range(len(logprobs_after))
    ]


def correction_records(
    rollout: Rollout,
    corrections: CorrectionBatch,
    before: Mapping[int, float],
    logprobs_after: Mapping[int, Tensor],
    tokenizer: PreTrainedTokenizerBase,
) -> list[list[dict[str, Any]]]:
    """The corrections of each sample: the tokens that they replace, their text, and its mean token probability.

    before, logprobs_after: as in `correction_change`. Corrections that were not scored after the update are left out.
    """
    records: list[list[dict[str, Any]]] = [[] for _ in rollout.examples]
    for k, logprobs in sorted(logprobs_after.items()):
        sample = corrections.sample(k)
        completion = rollout.completions[sample]
        prefix, ids = corrections.tokens(k, completion)
        written = decode(prefix, tokenizer) if prefix else ""
        start, end = corrections.replaced_range(k, completion)
        records[sample].append(
            {
                "start": start,
                "end": end,
                "text": decode([*prefix, *ids], tokenizer)[len(written) :],
                "before": _six_digits(before[k]) if k in before else None,
                "after": _six_digits(logprobs.exp().mean()),
            }
        )
    return records


def _six_digits(value: float | Tensor) -> float:
    return float(f"{float(value):.6g}")
