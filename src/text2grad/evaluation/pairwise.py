"""Paired comparison of several sets of answers to the same prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from text2grad.errors import UserError
from text2grad.evaluation.answers import METRICS, Metric, Prompt, group_answers, prompt_values
from text2grad.evaluation.significance import bootstrap, paired_bootstrap
from text2grad.schema import Example

JUDGED = {"first": -1.0, "tie": 0.0, "second": 1.0}


@dataclass(frozen=True)
class AnswerSet:
    """The answers of one model to each prompt, and the metrics of the steps of the run that trained it, if any."""

    name: str
    groups: dict[Prompt, list[Example]]
    steps: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, answers: Sequence[Example], steps: list[dict[str, Any]] | None = None) -> AnswerSet:
        """Group answers by their prompt."""
        return cls(name, group_answers(answers), steps or [])


def shared_prompts(sets: Sequence[AnswerSet]) -> list[Prompt]:
    """Return the prompts that all sets have answers to, in the order of the first; UserError where there is none."""
    first, *others = sets
    shared = [prompt for prompt in first.groups if all(prompt in other.groups for other in others)]
    if not shared:
        raise UserError(
            f"{' and '.join(one.name for one in sets)} have no prompt in common (the same id and text); evaluate them "
            f"on the same data"
        )
    return shared


def compare_sets(
    baseline: AnswerSet,
    other: AnswerSet,
    prompts: Sequence[Prompt],
    resamples: int,
    seed: int,
    metrics: dict[str, Metric] = METRICS,
) -> dict[str, dict[str, float]]:
    """Return each metric of both sets, with the difference and its 95% interval over the prompts that both have it for.

    before is the baseline, after the other one, as in the comparison of a run; n is the number of prompts.
    """
    results = {}
    for name, metric in metrics.items():
        old, new = (prompt_values(one.groups, metric) for one in (baseline, other))
        both = [prompt for prompt in prompts if prompt in old and prompt in new]
        if both:
            before, after = [old[prompt] for prompt in both], [new[prompt] for prompt in both]
            interval = paired_bootstrap(before, after, resamples, seed)
            means = {"before": float(np.mean(before)), "after": float(np.mean(after))}
            results[name] = {**means, **interval._asdict(), "n": len(both)}
    return results


def summarise_verdicts(verdicts: Sequence[str | None], resamples: int, seed: int) -> dict[str, Any]:
    """Return how often each answer won, and the mean preference for the second: 1 for a win, 0 a tie, -1 a loss."""
    counts = Counter(verdicts)
    judged = [JUDGED[verdict] for verdict in verdicts if verdict is not None]
    preference = bootstrap(judged, resamples, seed)._asdict() if judged else None
    return {
        "wins": counts["second"],
        "losses": counts["first"],
        "ties": counts["tie"],
        "failed": counts[None],
        "preference": preference,
    }
