"""Held-out answers before and after training, compared pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from text2grad.errors import UserError
from text2grad.evaluation.metrics import critic_score, rouge_l
from text2grad.evaluation.significance import paired_bootstrap
from text2grad.schema import Example, Feedback

Measure = Callable[[Example], float]


def _feedback(example: Example) -> Feedback:
    assert example.feedback is not None, "held-out answers are compared with their feedback attached"
    return example.feedback


def _rouge(example: Example) -> float:
    assert example.reference is not None
    return rouge_l(example.completion, example.reference)


def _count(label: str) -> Measure:
    return lambda example: sum(span.label == label for span in _feedback(example).spans)


MEASURES: dict[str, Measure] = {
    "score": lambda example: critic_score(_feedback(example)),
    "rouge_l": _rouge,
    "praised spans": _count("good"),
    "blamed spans": _count("poor"),
    "omissions": lambda example: len(_feedback(example).omissions),
    "words": lambda example: len(example.completion.split()),
}


def compare(before: Sequence[Example], after: Sequence[Example], resamples: int, seed: int) -> dict[str, Any]:
    """Figures before and after with the 95% interval of each difference, over the pairs that both have feedback.

    ROUGE-L needs a reference on every example; without it the figure is left out.
    """
    pairs = [(b, a) for b, a in zip(before, after, strict=True) if _usable(b) and _usable(a)]
    if not pairs:
        raise UserError("every critique of the held-out answers failed, so there is nothing to compare")
    measures = dict(MEASURES)
    if any(example.reference is None for example, _ in pairs):
        del measures["rouge_l"]
    figures = {}
    for name, measure in measures.items():
        old, new = [measure(b) for b, _ in pairs], [measure(a) for _, a in pairs]
        interval = paired_bootstrap(old, new, resamples, seed)
        figures[name] = {"before": float(np.mean(old)), "after": float(np.mean(new)), **interval._asdict()}
    return {"n": len(pairs), "failed": len(before) - len(pairs), "metrics": figures, "examples": _side_by_side(pairs)}


def _usable(example: Example) -> bool:
    return _feedback(example).status == "ok"


def _side_by_side(pairs: Sequence[tuple[Example, Example]]) -> list[dict[str, Any]]:
    shared, own = {"id", "prompt", "reference"}, {"completion", "feedback"}
    return [
        before.model_dump(mode="json", include=shared)
        | {
            "before": before.model_dump(mode="json", include=own, exclude_defaults=True),
            "after": after.model_dump(mode="json", include=own, exclude_defaults=True),
        }
        for before, after in pairs
    ]
