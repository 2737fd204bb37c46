"""What a run writes down about a step: metrics for the curves, samples for the browser."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from torch import Tensor

from text2grad.schema import Feedback
from text2grad.trainer.batch import Rollout
from text2grad.trainer.update import Batch, Outcome


def step_metrics(
    step: int,
    rollout: Rollout,
    feedback: Sequence[Feedback],
    rewards: Tensor,
    valid: Tensor,
    batch: Batch,
    kl: Tensor,
    outcome: Outcome,
) -> dict[str, Any]:
    """Means over the valid samples of a step; NaN where there is none. Failed critiques are counted, never averaged in.

    rewards, kl: (samples, tokens); valid: (samples,). `kl` and `reward` are sums over an answer's tokens.
    """
    errors = [said.error for said in feedback if said.status == "failed"]
    tokens = rollout.mask[valid].sum()
    return {
        "step": step,
        "samples": len(feedback),
        "failed": len(feedback) - int(valid.sum()),
        "failure": errors[-1] if errors else None,
        "reward": float(rewards.sum(1)[valid].mean()),
        "kl": float(kl.sum(1)[valid].mean()),
        "kl_per_token": float(kl[valid].sum() / tokens),
        "length": float(rollout.mask.sum(1).mean()),
        "truncated": 1 - sum(rollout.ended) / len(rollout.ended),
        "coverage": float((rewards[valid] != 0).sum() / tokens),
        "repetition": fmean(map(repetition, rollout.completions)),
        "explained_variance": batch.explained_variance,
        "broken": outcome.broken,
        **outcome.stats,
    }


def repetition(ids: Sequence[int], width: int = 4) -> float:
    """Share of the runs of `width` ids that occurred before in the same answer; 0 for answers shorter than that."""
    runs = [tuple(ids[i : i + width]) for i in range(len(ids) - width + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def sample_records(
    step: int,
    rollout: Rollout,
    feedback: Sequence[Feedback],
    rewards: Tensor,
    valid: Tensor,
    batch: Batch,
    logprobs_after: Tensor,
) -> list[dict[str, Any]]:
    """The first samples of a step, token by token. logprobs_after: (kept samples, tokens), after the update."""
    return [
        {
            "step": step,
            "sample": i,
            **rollout.examples[i].model_dump(mode="json", include={"id", "prompt", "completion", "reference"}),
            "feedback": feedback[i].model_dump(mode="json", exclude_defaults=True),
            "total": float(rewards[i].sum()) if valid[i] else None,
            "truncated": not rollout.ended[i],
            "tokens": [
                {
                    "text": rollout.examples[i].completion[start:end],
                    "start": start,
                    "end": end,
                    "reward": float(rewards[i, t]) if valid[i] else None,
                    "advantage": float(batch.advantages[i, t]) if valid[i] else None,
                    "logprob_before": float(batch.old_logprobs[i, t]),
                    "logprob_after": float(logprobs_after[i, t]),
                }
                for t, (start, end) in enumerate(rollout.offsets[i])
            ],
        }
        for i in range(len(logprobs_after))
    ]
