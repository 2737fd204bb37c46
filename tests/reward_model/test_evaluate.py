"""The metrics of an evaluation, on completions small enough to count by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reward_support import labelled, tiny_reward_model, unlabelled

from text2grad.reward_model.critique_format import CritiqueFormat, CritiqueLimits
from text2grad.reward_model.evaluate import (
    Prediction,
    compute_metrics,
    count_matches,
    intersection_over_union,
    predict,
    ranking_metrics,
    sign_errors,
    span_agreement,
    transfer_metrics,
    word_table,
)
from text2grad.reward_model.feedback import TokenProbabilities
from text2grad.reward_model.head import GOOD, NEUTRAL, POOR
from text2grad.reward_model.inputs import InputSettings
from text2grad.schema import Example, Feedback, Range, Span

# Eighths, so that means over words of any length are equal to the last bit.
SURE = {GOOD: (0.75, 0.125, 0.125), NEUTRAL: (0.125, 0.75, 0.125), POOR: (0.125, 0.125, 0.75)}


def prediction(answer: str, gold: list[tuple[int, int, str]], predicted: list[tuple[int, int, str]]) -> Prediction:
    """One token a character; the head is as sure of what it predicts as of anything."""
    spans, guesses = (
        [Span.model_validate({"start": a, "end": b, "label": label}) for a, b, label in given]
        for given in (gold, predicted)
    )
    classes = [NEUTRAL] * len(answer)
    for span in guesses:
        classes[span.start : span.end] = [GOOD if span.label == "good" else POOR] * (span.end - span.start)
    example = Example(id="1", prompt="p", completion=answer, feedback=Feedback(critic="human", spans=spans))
    offsets = [(i, i + 1) for i in range(len(answer))]
    return Prediction(
        example, Feedback(critic="r", spans=guesses), TokenProbabilities(offsets, np.array([SURE[c] for c in classes]))
    )


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [((0, 4), (0, 4), 1.0), ((0, 4), (2, 6), 2 / 6), ((0, 4), (1, 3), 0.5), ((0, 2), (2, 4), 0.0), ((0, 1), (5, 9), 0)],
)
def test_overlap_is_intersection_over_union(one: Range, other: Range, value: float) -> None:
    assert intersection_over_union(one, other) == intersection_over_union(other, one) == pytest.approx(value)


@pytest.mark.parametrize(
    ("predicted", "gold", "count"),
    [
        ([(0, 4)], [(0, 4)], 1),
        ([(0, 4)], [(1, 3)], 1),  # half is enough
        ([(0, 5)], [(1, 3)], 0),
        ([(0, 4), (0, 3)], [(0, 4)], 1),  # each is counted once
        ([(0, 4)], [(0, 2), (2, 4)], 1),
        ([(0, 4), (6, 8)], [(6, 8), (0, 4)], 2),
        ([], [(0, 1)], 0),
    ],
)
def test_matches(predicted: list[Range], gold: list[Range], count: int) -> None:
    assert count_matches(predicted, gold) == count_matches(gold, predicted) == count


def test_sign_errors_are_the_confusions_of_praise_and_blame() -> None:
    gold = np.array([GOOD, GOOD, POOR, POOR, NEUTRAL])
    predicted = np.array([POOR, NEUTRAL, GOOD, GOOD, POOR])
    assert sign_errors(gold, predicted) == {"good_predicted_poor": 1, "poor_predicted_good": 2}


def test_span_agreement_counts_over_all_answers() -> None:
    answers = [
        prediction("a bad dog", [(2, 5, "poor")], [(2, 5, "poor"), (6, 9, "poor")]),
        prediction("a bad fox", [(2, 5, "poor"), (6, 9, "good")], [(6, 9, "poor")]),
    ]
    assert span_agreement(answers, "poor") == pytest.approx({"precision": 1 / 3, "recall": 1 / 2, "f1": 0.4})
    assert span_agreement(answers, "good") == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_all_figures() -> None:
    answers = [
        prediction("a bad dog", [(2, 5, "poor")], [(2, 5, "poor")]),
        prediction("my fox", [(3, 6, "good")], [(0, 2, "poor"), (3, 6, "poor")]),
    ]
    metrics = compute_metrics(answers)
    assert metrics["examples"] == 2
    assert metrics["tokens"]["count"] == 9 + 6
    assert metrics["words"]["count"] == 3 + 2
    assert metrics["tokens"]["sign_errors"] == {"good_predicted_poor": 3, "poor_predicted_good": 0}
    poor = metrics["tokens"]["poor"]
    # Three of the eight characters that were called poor are; no other is.
    assert (poor["precision"], poor["recall"]) == (3 / 8, 1)
    assert poor["frequency"] == pytest.approx(3 / 15)
    assert poor["average_precision"] == pytest.approx(3 / 8)  # all eight have the same probability
    assert metrics["tokens"]["good"]["recall"] == 0
    # Words: bad, my and fox have P(poor) = .75, of which one is gold; the others .125.
    assert metrics["words"]["poor"]["average_precision"] == pytest.approx(1 / 3)
    assert metrics["words"]["poor"]["ece"] == pytest.approx((3 * abs(0.75 - 1 / 3) + 2 * 0.125) / 5)
    assert metrics["spans"]["poor"] == pytest.approx({"precision": 1 / 3, "recall": 1.0, "f1": 0.5})
    assert metrics["spans_per_completion"] == 1.5
    assert metrics["coverage"] == pytest.approx(8 / 15)
    assert metrics["gold_coverage"] == pytest.approx(6 / 15)
    assert metrics["critique_rouge_l"] is None
    json.dumps(metrics, allow_nan=False)


def test_transfer_is_ranking_and_distance() -> None:
    near, far = (prediction("a bad dog", [(2, 5, "poor")], []) for _ in range(2))
    near = replace(near, tokens=replace(near.tokens, distance=1.0))
    far = replace(far, tokens=replace(far.tokens, distance=3.0))
    metrics = transfer_metrics([near, far])
    assert (metrics["examples"], metrics["distance"], metrics["unfamiliar"]) == (2, 2.0, 0.5)
    assert metrics["trust"] == pytest.approx((1 + math.exp(-1)) / 2)
    assert metrics["poor"]["frequency"] == pytest.approx(1 / 3)
    unknown = transfer_metrics([prediction("a bad dog", [], [])])
    assert (unknown["distance"], unknown["trust"], unknown["unfamiliar"]) == (None, 1.0, 0.0)


def test_a_word_is_poor_where_any_of_it_is() -> None:
    gold, probabilities = word_table([prediction("a bad dog", [(3, 7, "poor")], [])])
    assert gold.tolist() == [NEUTRAL, POOR, POOR]
    assert probabilities.tolist() == [pytest.approx(SURE[NEUTRAL])] * 3


def test_answers_of_nothing_but_space_have_figures() -> None:
    metrics = compute_metrics([prediction(" \n", [], [])])
    assert metrics["words"]["count"] == 0
    assert metrics["words"]["poor"]["frequency"] == 0
    json.dumps(metrics, allow_nan=False)


def test_critiques_are_compared_where_both_are_there() -> None:
    one = prediction("a dog", [], [])
    assert one.example.feedback is not None
    gold = one.example.feedback.model_copy(update={"critique": "the dog is bad"})
    example = one.example.model_copy(update={"feedback": gold})
    written = Feedback(critic="r", critique="the dog is bad", raw="written")
    assert compute_metrics([Prediction(example, written, one.tokens), one])["critique_rouge_l"] == 1.0


def test_the_share_of_nothing_is_zero() -> None:
    assert ranking_metrics(np.zeros(0), np.zeros(0, dtype=bool))["frequency"] == 0


def test_predict_counts_skipped_examples(tiny_model: Path) -> None:
    model = tiny_reward_model(tiny_model, inputs=InputSettings(max_length=200))
    gold = labelled("gold", "a dog and a fox", {"dog": "poor"})
    failed = Example(id="failed", prompt="p", completion="x", feedback=Feedback.failure("c", "timeout"))
    long = labelled("long", "Q" * 150, {})
    found, skipped = predict(model, [*unlabelled(["x"]), gold, failed, long])
    assert [j.example.id for j in found] == ["gold"]
    assert skipped == {"no gold feedback": 2, "too long": 1}
    assert found[0].predicted.scores is None, "hard spans, whatever the model's own setting"
    assert model.settings.feedback.rewards == "graded"
    assert found[0].tokens.probabilities.shape == (len(found[0].tokens.offsets), 3)


def test_the_generative_method_is_evaluated_by_what_it_generates(tiny_model: Path) -> None:
    model = tiny_reward_model(
        tiny_model, critique_format=CritiqueFormat(limits=CritiqueLimits(critique=20, quote=40, spans=1, omissions=0))
    )
    examples = [labelled(str(i), "a dog and a fox", {"dog": "poor"}) for i in range(2)]
    with model.override(method="generative"):
        found, skipped = predict(model, examples)
    assert skipped == {"no gold feedback": 0}
    assert all(j.predicted.raw for j in found)
    assert compute_metrics(found)["critique_rouge_l"] is not None
