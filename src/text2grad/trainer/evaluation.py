"""Evaluation on held-out prompts during training.

Completions are sampled from a random stream of their own, the same at every evaluation: training is not affected, and
two evaluations differ by what was learned, not by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from text2grad.evaluation.metrics import critic_score, rouge_l
from text2grad.schema import Example
from text2grad.trainer.callbacks import Metrics
from text2grad.trainer.config import PolicySettings
from text2grad.trainer.monitor import EVAL_SCORE


def should_evaluate(step: int, args: PolicySettings) -> bool:
    """Whether to evaluate after this step: every `eval_steps` steps, and after the last one, which may be the best."""
    return args.eval_steps is not None and (step % args.eval_steps == 0 or step == args.max_steps)


def fixed_subset(examples: Sequence[Example], limit: int | None) -> list[Example]:
    """Return at most `limit` examples at even distances, so that sorted data are covered."""
    count = len(examples) if limit is None else min(limit, len(examples))
    return [examples[i * len(examples) // count] for i in range(count)]


def eval_metrics(examples: Sequence[Example]) -> Metrics:
    """Means over the completions whose critique did not fail, NaN where there is none; failures are counted.

    ROUGE-L is over those with a reference, and absent where there is none.
    """
    valid = [(e, e.feedback) for e in examples if e.feedback is not None and e.feedback.status == "ok"]
    overlaps = [rouge_l(example.completion, example.reference) for example, _ in valid if example.reference is not None]
    return {
        EVAL_SCORE: _mean([critic_score(feedback) for _, feedback in valid]),
        **({"eval/rouge_l": fmean(overlaps)} if overlaps else {}),
        "eval/words": _mean([len(example.completion.split()) for example, _ in valid]),
        "eval/samples": len(examples),
        "eval/failed": len(examples) - len(valid),
    }


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan
