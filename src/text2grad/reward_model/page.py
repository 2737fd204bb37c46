"""The evaluation as one HTML file: figures, reliability, and examples with gold beside predicted. No script in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import Any, Literal

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from text2grad.report.html import content_security_policy
from text2grad.reward_model.evaluate import Judged
from text2grad.schema import Feedback

Mark = Literal["good", "poor", ""]
MOST_EXAMPLES = 60
PLOT = 200  # side of the reliability plot, in its own units


@dataclass(frozen=True)
class Piece:
    """A stretch of the answer with one colour."""

    text: str
    mark: Mark


def pieces(text: str, feedback: Feedback) -> list[Piece]:
    """The answer cut where colours change; where spans overlap, the more severe one gives the colour."""
    marks: list[Mark] = [""] * len(text)
    for span in sorted(feedback.spans, key=lambda span: span.severity):
        marks[span.start : span.end] = [span.label] * (span.end - span.start)
    cuts = [i for i in range(1, len(text)) if marks[i] != marks[i - 1]]
    bounds = [0, *cuts, len(text)]
    return [Piece(text[a:b], marks[a]) for a, b in pairwise(bounds) if a < b]


def reliability_points(bins: Sequence[tuple[float, float, int]]) -> list[tuple[float, float, float]]:
    """(x, y, radius) in the plot: what was predicted to the right, what came upwards; larger where there is more."""
    total = sum(items for _, _, items in bins)
    return [(said * PLOT, (1 - came) * PLOT, 2.5 + 7.5 * (items / total) ** 0.5) for said, came, items in bins]


def render(title: str, figures: dict[str, Any], judged: Sequence[Judged]) -> str:
    """The page. Whatever a model or a person wrote is escaped."""
    style = "\n".join((_asset("text2grad.report", "base.css"), _asset("text2grad.reward_model", "evaluation.css")))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    plots = {
        label: reliability_points(figures["words"][label]["reliability"])
        for label in ("poor", "good")
        if figures["words"][label]["share"]
    }
    return environment.from_string(_asset("text2grad.reward_model", "evaluation.html.j2")).render(
        title=title,
        style=Markup(style),
        policy=content_security_policy(style, ""),
        figures=figures,
        plots=plots,
        size=PLOT,
        examples=[_shown(j) for j in judged[:MOST_EXAMPLES]],
        total=len(judged),
    )


def _shown(judged: Judged) -> dict[str, Any]:
    example, gold = judged.example, judged.example.feedback
    assert gold is not None
    return {
        "id": example.id,
        "prompt": example.prompt_text,
        "sides": [
            ("gold", pieces(example.completion, gold), gold),
            ("predicted", pieces(example.completion, judged.predicted), judged.predicted),
        ],
    }


def _asset(package: str, name: str) -> str:
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")
