"""Evaluation on held-out prompts during training.

Completions are sampled from a random stream of their own, the same at every evaluation: training is not affected, and
two evaluations differ by what was learned, not by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from text2grad.evaluation.answers import METRICS, valid_feedback
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
    valid = [example for example in examples if valid_feedback(example) is not None]
    scores, overlaps, words = (
        [value for value in map(METRICS[name], valid) if value is not None] for name in ("score", "rouge_l", "words")
    )
    return {
        EVAL_SCORE: _mean(scores),
        **({"eval/rouge_l": fmean(overlaps)} if overlaps else {}),
        "eval/words": _mean(words),
        "eval/samples": len(examples),
        "eval/failed": len(examples) - len(valid),
    }


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan
