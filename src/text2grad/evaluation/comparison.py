"""Paired comparison of held-out completions before and after training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from text2grad.errors import UserError
from text2grad.evaluation.metrics import critic_score, rouge_l
from text2grad.evaluation.significance import paired_bootstrap
from text2grad.schema import Example, Feedback

Metric = Callable[[Example], float]


def _feedback(example: Example) -> Feedback:
    assert example.feedback is not None, "completions are compared with their feedback attached"
    return example.feedback


def _count_spans(label: str) -> Metric:
    return lambda example: sum(span.label == label for span in _feedback(example).spans)


METRICS: dict[str, Metric] = {
    "score": lambda example: critic_score(_feedback(example)),
    "rouge_l": lambda example: rouge_l(example.completion, example.reference or ""),
    "praised spans": _count_spans("good"),
    "blamed spans": _count_spans("poor"),
    "omissions": lambda example: len(_feedback(example).omissions),
    "words": lambda example: len(example.completion.split()),
}


def compare(before: Sequence[Example], after: Sequence[Example], resamples: int, seed: int) -> dict[str, Any]:
    """Compute metrics before and after with the 95% interval of each difference, over pairs with valid feedback.

    ROUGE-L needs a reference on every example, and is absent otherwise.
    """
    pairs = [pair for pair in zip(before, after, strict=True) if all(_feedback(one).status == "ok" for one in pair)]
    if not pairs:
        errors = [_feedback(one).error for pair in zip(before, after, strict=True) for one in pair]
        reason = next(error for error in reversed(errors) if error)
        raise UserError(f"every critique of the held-out completions failed, last: {reason}; nothing can be compared")
    metrics = dict(METRICS)
    if any(example.reference is None for example, _ in pairs):
        del metrics["rouge_l"]
    results = {}
    for name, metric in metrics.items():
        old, new = [metric(b) for b, _ in pairs], [metric(a) for _, a in pairs]
        interval = paired_bootstrap(old, new, resamples, seed)
        results[name] = {"before": float(np.mean(old)), "after": float(np.mean(new)), **interval._asdict()}
    return {"n": len(pairs), "failed": len(before) - len(pairs), "metrics": results, "examples": _side_by_side(pairs)}


def _side_by_side(pairs: Sequence[tuple[Example, Example]]) -> list[dict[str, Any]]:
    return [
        before.model_dump(mode="json", include={"id", "prompt", "reference"})
        | {"before": _completion(before), "after": _completion(after)}
        for before, after in pairs
    ]


def _completion(example: Example) -> dict[str, Any]:
    feedback = _feedback(example).model_dump(mode="json", exclude_defaults=True)
    return {"completion": example.completion, "feedback": feedback}  # also an empty completion
