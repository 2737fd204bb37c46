"""The evaluation of a reward model as one HTML file: metrics, reliability, examples. It contains no script."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Literal

from text2grad.report.html import render_page
from text2grad.reward_model.evaluate import Prediction
from text2grad.schema import Feedback

Mark = Literal["good", "poor", ""]
MAX_EXAMPLES = 60
PLOT_SIZE = 200  # side of the reliability plot, in SVG units


def split_by_mark(text: str, feedback: Feedback) -> list[tuple[str, Mark]]:
    """Return the segments of a completion with their marks; of overlapping spans the most severe one wins."""
    marks: list[Mark] = [""] * len(text)
    for span in sorted(feedback.spans, key=lambda span: span.severity):
        marks[span.start : span.end] = [span.label] * (span.end - span.start)
    runs = groupby(zip(text, marks, strict=True), key=lambda character: character[1])
    return [("".join(character for character, _ in run), mark) for mark, run in runs]


def replacements(text: str, feedback: Feedback) -> list[tuple[str, str]]:
    """Return what the feedback replaces in a completion, and by what."""
    spans = feedback.spans
    return [(text[span.start : span.end], span.replacement) for span in spans if span.replacement is not None]


def reliability_points(bins: Sequence[tuple[float, float, int]]) -> list[tuple[float, float, float]]:
    """Return (x, y, radius) of each bin: predicted probability, observed frequency, and a size by its count."""
    total = sum(count for _, _, count in bins)
    return [
        (predicted * PLOT_SIZE, (1 - observed) * PLOT_SIZE, 2.5 + 7.5 * (count / total) ** 0.5)
        for predicted, observed, count in bins
    ]


def render_evaluation(title: str, metrics: dict[str, Any], predictions: Sequence[Prediction]) -> str:
    """Return the page. All text from models and people is escaped."""
    plots = {
        label: reliability_points(metrics["words"][label]["reliability"])
        for label in ("poor", "good")
        if metrics["words"][label]["frequency"]
    }
    return render_page(
        "reward_evaluation.html.j2",
        ["reward_evaluation.css"],
        title=title,
        metrics=metrics,
        plots=plots,
        size=PLOT_SIZE,
        examples=[_example_view(prediction) for prediction in predictions[:MAX_EXAMPLES]],
        total=len(predictions),
    )


def _example_view(prediction: Prediction) -> dict[str, Any]:
    example = prediction.example
    return {
        "id": example.id,
        "prompt": example.prompt_text,
        "sides": [
            (name, split_by_mark(example.completion, feedback), feedback, replacements(example.completion, feedback))
            for name, feedback in (("gold", prediction.gold), ("predicted", prediction.predicted))
        ],
    }
