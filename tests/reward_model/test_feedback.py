"""Feedback from probabilities and generated critiques, computed by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.reward_model.critique_format import WrittenCritique
from text2grad.reward_model.feedback import (
    TokenProbabilities,
    graded_feedback,
    most_probable_classes,
    span_feedback,
    word_means,
    written_feedback,
)
from text2grad.reward_model.head import GOOD, NEUTRAL, POOR
from text2grad.schema import Range

ANSWER = "The big fox  naps."
# "The", " big", " fo", "x", "  ", "naps", ".": words have one token, two, or share none with their neighbours.
OFFSETS: list[Range] = [(0, 3), (3, 7), (7, 10), (10, 11), (11, 13), (13, 17), (17, 18)]


def scored(*rows: tuple[float, float, float], offsets: list[Range] = OFFSETS) -> TokenProbabilities:
    return TokenProbabilities(offsets, np.array(rows).reshape(-1, 3))


MIXED = scored(
    (0.2, 0.7, 0.1),  # The
    (0.1, 0.3, 0.6),  # big
    (0.0, 0.1, 0.9),  # fo
    (0.1, 0.4, 0.5),  # x
    (0.9, 0.0, 0.1),  # white space
    (0.8, 0.1, 0.1),  # naps
    (0.4, 0.4, 0.2),  # .
)


def test_a_words_value_is_the_mean_over_its_tokens() -> None:
    words, values = word_means(ANSWER, OFFSETS, np.array([1.0, 2.0, 3.0, 5.0, 100.0, 6.0, 8.0]))
    assert words == [(0, 3), (4, 7), (8, 11), (13, 18)]
    assert values.tolist() == [1.0, 2.0, 4.0, 7.0]
    assert word_means(ANSWER, MIXED.offsets, MIXED.probabilities)[1][2].tolist() == pytest.approx([0.05, 0.25, 0.7])


@given(st.text(alphabet="ab \n", max_size=30), st.data())
def test_word_means_are_those_of_the_overlapping_tokens(answer: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=8)))
    bounds = [0, *cuts, len(answer)]
    offsets = list(pairwise(bounds))
    values = np.arange(2.0 * len(offsets)).reshape(-1, 2)
    words, means = word_means(answer, offsets, values)
    for (start, end), mean in zip(words, means, strict=True):
        inside = [i for i, (a, b) in enumerate(offsets) if a < end and b > start]
        assert mean.tolist() == pytest.approx(values[inside].mean(0).tolist())


def test_graded_feedback_gives_each_word_its_expected_reward() -> None:
    feedback = graded_feedback(ANSWER, MIXED, threshold=0.2, critic="reward")
    assert feedback.scores is not None
    assert [(start, end) for start, end, _ in feedback.scores] == [(4, 7), (8, 11), (13, 18)]
    assert [value for *_, value in feedback.scores] == pytest.approx([-0.5, -0.65, 0.45])
    assert feedback.score == pytest.approx((0.1 - 0.5 - 0.65 + 0.45) / 4)  # of all words, those below the threshold too
    assert feedback.critique == 'Poor: "big", "fox". Good: "naps.".'
    assert (feedback.spans, feedback.critic) == ([], "reward")


def test_centred_rewards_are_differences_to_an_average_word() -> None:
    feedback = graded_feedback(ANSWER, MIXED, threshold=0.2, critic="reward", centre=-0.4)
    assert feedback.scores is not None
    assert [(start, end) for start, end, _ in feedback.scores] == [(0, 3), (8, 11), (13, 18)]
    assert [value for *_, value in feedback.scores] == pytest.approx([0.5, -0.25, 0.85])


def test_neutral_is_zero() -> None:
    undecided = scored(*[(1 / 3, 1 / 3, 1 / 3)] * 7)
    assert graded_feedback(ANSWER, undecided, threshold=0.0, critic="r").scores == []
    assert span_feedback(ANSWER, undecided, threshold=0.0, critic="r").spans == []
    assert graded_feedback(ANSWER, undecided, threshold=0.0, critic="r").critique == ""


def test_neighbours_of_one_class_are_one_span() -> None:
    feedback = span_feedback(ANSWER, MIXED, threshold=0.1, critic="reward")
    assert [(s.start, s.end, s.label) for s in feedback.spans] == [(4, 11, "poor"), (13, 18, "good")]
    severities = [(0.6 + 0.7) / 2, 0.6]
    assert [s.severity for s in feedback.spans] == pytest.approx(severities)
    assert [s.confidence for s in feedback.spans] == [1.0, 1.0]  # the severity already says how certain it is
    assert feedback.score == pytest.approx((severities[1] - 2 * severities[0]) / 4)
    assert feedback.critique == 'Poor: "big fox". Good: "naps.".'
    assert feedback.scores is None


def test_a_neutral_word_parts_two_spans() -> None:
    poor, neutral = (0.0, 0.2, 0.8), (0.0, 0.8, 0.2)
    feedback = span_feedback("a b c", scored(poor, neutral, poor, offsets=[(0, 1), (1, 3), (3, 5)]), 0.1, "r")
    assert [(s.start, s.end) for s in feedback.spans] == [(0, 1), (4, 5)]


def test_spans_below_the_threshold_are_dropped() -> None:
    feedback = span_feedback(ANSWER, MIXED, threshold=0.62, critic="r")
    assert [(s.start, s.end) for s in feedback.spans] == [(4, 11)]


def test_a_class_must_beat_both_others() -> None:
    rows = np.array([[0.5, 0.5, 0.0], [0.4, 0.2, 0.4], [0.5, 0.3, 0.2], [0.1, 0.3, 0.6], [0.0, 0.5, 0.5]])
    assert most_probable_classes(rows).tolist() == [NEUTRAL, NEUTRAL, GOOD, POOR, NEUTRAL]


def test_a_completion_without_words_has_no_rewards() -> None:
    blank = scored((0.9, 0.0, 0.1), offsets=[(0, 2)])
    for make in (graded_feedback, span_feedback):
        feedback = make(" \n", blank, 0.1, "r")
        assert (feedback.spans, feedback.scores or [], feedback.score, feedback.critique) == ([], [], 0.0, "")


def test_the_severity_of_a_generated_span_is_the_heads_probability() -> None:
    written = WrittenCritique("It is dull.", "I think.", good=[(13, 17)], poor=[(8, 11), (0, 3)], missing=["the day"])
    feedback = written_feedback(ANSWER, written, MIXED, "reward", raw="as written")
    assert [(s.start, s.end, s.label, s.match) for s in feedback.spans] == [
        (13, 17, "good", "exact"),
        (8, 11, "poor", "exact"),
        (0, 3, "poor", "exact"),
    ]
    assert [s.severity for s in feedback.spans] == pytest.approx([0.8, 0.7, 0.1])
    assert feedback.score == pytest.approx((0.8 - 0.7 - 0.1) / 4)
    assert (feedback.critique, feedback.reasoning, feedback.raw) == ("It is dull.", "I think.", "as written")
    assert [omission.text for omission in feedback.omissions] == ["the day"]


def test_a_generated_replacement_is_the_spans() -> None:
    written = WrittenCritique(
        "x", good=[(13, 17)], poor=[(8, 11), (0, 3)], replacements={(8, 11): "hen", (0, 3): "", (13, 17): "no"}
    )
    spans = written_feedback(ANSWER, written, MIXED, "reward", raw="x").spans
    assert [span.replacement for span in spans] == [None, "hen", ""]


def test_a_generated_span_counts_even_where_the_head_disagrees() -> None:
    sure = scored((1.0, 0.0, 0.0), offsets=[(0, 1)])
    (span,) = written_feedback("a", WrittenCritique(None, poor=[(0, 1)]), sure, "r", raw="x").spans
    assert span.severity == 0.01


def test_a_quotation_without_a_token_of_its_own_counts_a_little() -> None:
    """An accent that the tokenizer has composed with the letter before it."""
    composed = scored((0.1, 0.1, 0.8), (0.3, 0.4, 0.3), offsets=[(0, 1), (2, 3)])
    found = written_feedback(
        "abc", WrittenCritique(critique="x", good=[], poor=[(1, 2)], missing=[]), composed, "reward", raw=""
    )
    assert [(span.start, span.end, span.severity) for span in found.spans] == [(1, 2, 0.01)]


def test_rounding_makes_no_probability_more_than_one() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        logits = generator.normal(size=(60, 3)) * 40
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        sure = TokenProbabilities([(2 * i, 2 * i + 1) for i in range(60)], shares / shares.sum(axis=1, keepdims=True))
        assert all(span.severity <= 1 for span in span_feedback("x " * 60, sure, 0.0, "reward").spans)
