"""The page of a comparison: metrics with intervals, curves of the runs, and answers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from text2grad.evaluation.answers import METRICS, Prompt
from text2grad.evaluation.pairwise import AnswerSet
from text2grad.report.columns import metric_columns, select_steps, shorten
from text2grad.report.html import embed_json, render_page
from text2grad.report.metrics_table import metric_rows
from text2grad.report.read import MetricChange
from text2grad.report.subsample import subsample
from text2grad.report.text_diff import diff_words
from text2grad.schema import Example

COMPONENTS = ("tooltip", "curves", "compare_curves", "completion", "critique", "samples", "examples", "compare")
STYLES = ("metrics.css", "filters.css", *(f"{name}.css" for name in COMPONENTS))
SCRIPTS = ("dom.js", "theme.js", *(f"{name}.js" for name in COMPONENTS))
MAX_SHOWN = 200
_ON_ANSWER = ("score", "passed", "rouge_l", "token_f1")  # metrics beside each answer
_FEEDBACK = {"critic", "critique", "spans", "omissions", "unmatched", "score", "status", "error", "reasoning"}


@dataclass(frozen=True)
class Contender:
    """What is compared with the baseline: metrics as of `compare_sets`, the judge's verdicts and their summary."""

    answers: AnswerSet
    metrics: dict[str, dict[str, float]]
    judged: dict[str, Any] | None = None
    verdicts: dict[Prompt, str | None] | None = None


def render_comparison(baseline: AnswerSet, contenders: Sequence[Contender], prompts: Sequence[Prompt]) -> str:
    """Render the page; texts of models and people are escaped."""
    sets = [baseline, *(contender.answers for contender in contenders)]
    shown = [prompts[i] for i in subsample(range(len(prompts)), MAX_SHOWN)]
    runs = [{"index": i, "metrics": metric_columns(select_steps(one.steps))} for i, one in enumerate(sets) if one.steps]
    return render_page(
        "compare.html.j2",
        STYLES,
        SCRIPTS,
        names=[one.name for one in sets],
        tables=[_table(contender) for contender in contenders if contender.metrics],
        num_runs=len(runs),
        num_prompts=len(prompts),
        num_shown=len(shown),
        data=embed_json(
            {
                "names": [one.name for one in sets],
                "runs": runs,
                "examples": [_example(prompt, baseline, contenders) for prompt in shown],
            }
        ),
    )


def _table(contender: Contender) -> dict[str, Any]:
    changes = {name: MetricChange.model_validate(metric) for name, metric in contender.metrics.items()}
    preference = (contender.judged or {}).get("preference")
    return {
        "name": contender.answers.name,
        "rows": metric_rows(changes, "higher", "lower"),
        "judged": contender.judged,
        "preference": _describe(preference) if preference else None,
    }


def _describe(estimate: dict[str, float]) -> str:
    mean, low, high = (f"{estimate[name]:+.2f}".replace("-", "−") for name in ("mean", "low", "high"))
    return f"{mean}, 95% interval {low} to {high}"


def _example(prompt: Prompt, baseline: AnswerSet, contenders: Sequence[Contender]) -> dict[str, Any]:
    """Return the first answers of all to a prompt; that of the baseline is marked only if there is one contender."""
    first = baseline.groups[prompt][0]
    others = [contender.answers.groups[prompt][0] for contender in contenders]
    diffs = [diff_words(first.completion, other.completion) for other in others]
    own = diffs[0][0] if len(diffs) == 1 else [(first.completion, False)]
    verdicts = [(contender.verdicts or {}).get(prompt) for contender in contenders]
    context = first.model_dump(mode="json", exclude_none=True, include={"id", "prompt", "reference"})
    sides = [
        _side(first, own, None),
        *(_side(*side) for side in zip(others, (d[1] for d in diffs), verdicts, strict=True)),
    ]
    return context | {"sides": sides}


def _side(answer: Example, segments: list[tuple[str, bool]], verdict: str | None) -> dict[str, Any]:
    measured = {name: METRICS[name](answer) for name in _ON_ANSWER}
    record: dict[str, Any] = {
        "completion": answer.completion,
        "segments": segments,
        "metrics": {name: shorten(value) for name, value in measured.items() if value is not None},
    }
    if answer.feedback is not None:
        record["feedback"] = answer.feedback.model_dump(mode="json", exclude_none=True, include=_FEEDBACK)
    return record | ({"verdict": verdict} if verdict else {})
