"""The evaluation's page: whatever anybody wrote is text, and nothing is fetched from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from text2grad.report.reward_evaluation import (
    MAX_EXAMPLES,
    PLOT_SIZE,
    reliability_points,
    render_evaluation,
    split_by_mark,
)
from text2grad.reward_model.evaluate import Prediction, compute_metrics
from text2grad.reward_model.feedback import TokenProbabilities
from text2grad.schema import Example, Feedback, Omission, Span

EVIL = "<script>alert(1)</script>\"'&"


def said(*spans: tuple[int, int, str, float], **fields: Any) -> Feedback:
    given = [dict(zip(("start", "end", "label", "severity"), span, strict=True)) for span in spans]
    return Feedback.model_validate({"critic": "c", "spans": given, **fields})


def prediction(
    answer: str = "a bad dog", identity: str = "one", prompt: str = "Write.", critique: str = "No."
) -> Prediction:
    gold = said((2, 5, "poor", 1.0), critique=critique, omissions=[Omission(text=critique)])
    example = Example(id=identity, prompt=prompt, completion=answer, feedback=gold)
    predicted = said((0, 5, "good", 0.5), critique=critique, raw="x")
    return Prediction(example, predicted, TokenProbabilities([(0, len(answer))], np.array([[0.2, 0.3, 0.5]])))


def page(*given: Prediction, title: str = "Reward model") -> str:
    return render_evaluation(title, compute_metrics(given) | {"skipped": {}, "parse_rate": 1.0}, given)


class Elements(HTMLParser):
    """Every tag with its attributes, and the text of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("place", ["answer", "identity", "prompt", "critique"])
def test_what_anybody_wrote_is_escaped(place: str) -> None:
    shown = Elements(page(prediction(**{place: EVIL})))
    assert "script" not in [tag for tag, _ in shown.tags]
    # The answer is shown in segments; their text is whole.
    assert EVIL in shown.text


def test_the_title_is_escaped() -> None:
    shown = Elements(page(prediction(), title=EVIL))
    assert "script" not in [tag for tag, _ in shown.tags]
    assert EVIL in shown.text


def test_the_page_needs_nothing_else() -> None:
    text = page(prediction())
    shown = Elements(text)
    sources = [v for _, attributes in shown.tags for name, v in attributes.items() if name in ("src", "href")]
    assert sources == ["data:,"]
    assert not re.search(r"url\(|@import|https?://", text)
    policy = next(a["content"] for _, a in shown.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy


def test_gold_stands_beside_what_was_predicted() -> None:
    marks = re.findall(r'<mark class="(\w+)">([^<]*)</mark>', page(prediction()))
    assert marks == [("poor", "bad"), ("good", "a bad")]


def test_the_figures_are_shown() -> None:
    shown = Elements(page(prediction(), prediction()))
    assert "2 completions, 2 tokens, 6 words." in shown.text
    assert "ROUGE-L of the critiques: 1.000" in shown.text
    assert len([a for tag, a in shown.tags if tag == "circle" and a["class"] == "poor"]) == 1


def test_of_many_answers_the_first_are_shown() -> None:
    shown = Elements(page(*[prediction(identity=f"n{i}") for i in range(MAX_EXAMPLES + 5)]))
    assert f"{MAX_EXAMPLES} of {MAX_EXAMPLES + 5}." in shown.text
    assert len([tag for tag, a in shown.tags if tag == "section"]) == MAX_EXAMPLES


def test_the_more_severe_span_gives_the_colour() -> None:
    feedback = said((0, 6, "good", 0.5), (2, 4, "poor", 0.9), (5, 7, "poor", 0.1))
    assert split_by_mark("abcdefgh", feedback) == [
        ("ab", "good"),
        ("cd", "poor"),
        ("ef", "good"),
        ("g", "poor"),
        ("h", ""),
    ]
    assert split_by_mark("", Feedback(critic="c")) == []
    assert split_by_mark("ab", Feedback(critic="c", spans=[Span(start=0, end=2, label="good")])) == [("ab", "good")]


def test_points_of_the_reliability_plot() -> None:
    assert reliability_points([(0.25, 1.0, 1), (0.5, 0.0, 3)]) == [
        (PLOT_SIZE / 4, 0.0, pytest.approx(2.5 + 7.5 * 0.5)),
        (PLOT_SIZE / 2, PLOT_SIZE, pytest.approx(2.5 + 7.5 * 0.75**0.5)),
    ]
