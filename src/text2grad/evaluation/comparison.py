"""Paired comparison of held-out completions before and after training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from text2grad.errors import UserError
from text2grad.evaluation.answers import METRICS
from text2grad.evaluation.significance import paired_bootstrap
from text2grad.schema import Example, Feedback

SHOWN = ("score", "rouge_l", "praised spans", "blamed spans", "omissions", "words")


def _feedback(example: Example) -> Feedback:
    assert example.feedback is not None, "completions are compared with their feedback attached"
    return example.feedback


def compare(before: Sequence[Example], after: Sequence[Example], resamples: int, seed: int) -> dict[str, Any]:
    """Compute metrics before and after with the 95% interval of each difference, over pairs with valid feedback.

    ROUGE-L needs a reference on every example, and is absent otherwise.
    """
    pairs = [pair for pair in zip(before, after, strict=True) if all(_feedback(one).status == "ok" for one in pair)]
    if not pairs:
        errors = [_feedback(one).error for pair in zip(before, after, strict=True) for one in pair]
        reason = next(error for error in reversed(errors) if error)
        raise UserError(f"every critique of the held-out completions failed, last: {reason}; nothing can be compared")
    results = {}
    for name in SHOWN:
        old, new = (_values(name, side) for side in zip(*pairs, strict=True))
        if len(old) == len(new) == len(pairs):
            interval = paired_bootstrap(old, new, resamples, seed)
            results[name] = {"before": float(np.mean(old)), "after": float(np.mean(new)), **interval._asdict()}
    return {"n": len(pairs), "failed": len(before) - len(pairs), "metrics": results, "examples": _side_by_side(pairs)}


def _values(name: str, examples: Sequence[Example]) -> list[float]:
    """Return the values of a metric where it applies."""
    return [value for value in map(METRICS[name], examples) if value is not None]


def _side_by_side(pairs: Sequence[tuple[Example, Example]]) -> list[dict[str, Any]]:
    return [
        before.model_dump(mode="json", include={"id", "prompt", "reference"})
        | {"before": _completion(before), "after": _completion(after)}
        for before, after in pairs
    ]


def _completion(example: Example) -> dict[str, Any]:
    feedback = _feedback(example).model_dump(mode="json", exclude_defaults=True)
    return {"completion": example.completion, "feedback": feedback}  # also an empty completion
