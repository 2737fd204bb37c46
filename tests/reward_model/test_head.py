"""Labels, weights, loss and calibration of the token head, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from text2grad.reward_model.head import (
    GOOD,
    NEUTRAL,
    POOR,
    Calibration,
    TokenHead,
    calibrate,
    class_weights,
    expected_reward,
    head_loss,
    token_labels,
)
from text2grad.schema import Feedback, Range, Span

OFFSETS: list[Range] = [(0, 3), (3, 7), (7, 7), (7, 9)]
SpanGiven = tuple[int, int, str, float]


def labels(*spans: SpanGiven) -> list[int]:
    given = [dict(zip(("start", "end", "label", "severity"), span, strict=True)) for span in spans]
    return token_labels(Feedback.model_validate({"critic": "c", "spans": given}), OFFSETS)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], [NEUTRAL] * 4),
        ([(0, 1, "good", 1.0)], [GOOD, NEUTRAL, NEUTRAL, NEUTRAL]),
        ([(2, 4, "poor", 0.1)], [POOR, POOR, NEUTRAL, NEUTRAL]),
        ([(0, 9, "good", 1.0)], [GOOD, GOOD, NEUTRAL, GOOD]),  # a token without characters has no label
        ([(0, 9, "good", 0.5), (7, 9, "poor", 0.6)], [GOOD, GOOD, NEUTRAL, POOR]),
        ([(0, 3, "good", 0.5), (0, 3, "poor", 0.5)], [NEUTRAL] * 4),
        ([(0, 3, "poor", 0.9), (0, 3, "good", 0.5)], [POOR, NEUTRAL, NEUTRAL, NEUTRAL]),
    ],
)
def test_a_token_has_the_label_of_the_more_severe_span(spans: list[SpanGiven], expected: list[int]) -> None:
    assert labels(*spans) == expected


@given(st.permutations([(0, 3, "good", 0.5), (0, 3, "poor", 0.5), (1, 2, "poor", 0.5), (0, 7, "poor", 0.2)]))
def test_labels_do_not_depend_on_the_order_of_spans(spans: list[SpanGiven]) -> None:
    assert labels(*spans) == [NEUTRAL, POOR, NEUTRAL, NEUTRAL]


def test_no_tokens_no_labels() -> None:
    assert token_labels(Feedback(critic="c", spans=[Span(start=0, end=1, label="good")]), []) == []


@pytest.mark.parametrize(
    ("counts", "balance", "weights"),
    [
        ([1, 8, 1], 0.0, [1, 1, 1]),
        ([1, 8, 1], 1.0, [10 / 3, 10 / 24, 10 / 3]),  # each class has a third of the weight
        ([0, 3, 1], 1.0, [0, 2 / 3, 2]),
        ([0, 0, 0], 0.5, [0, 0, 0]),
    ],
)
def test_class_weights(counts: list[int], balance: float, weights: list[float]) -> None:
    assert class_weights(counts, balance).tolist() == pytest.approx(weights)


@given(st.lists(st.integers(0, 10_000), min_size=3, max_size=3).filter(any), st.floats(0, 1))
def test_class_weights_have_mean_one_over_the_tokens(counts: list[int], balance: float) -> None:
    weights = class_weights(counts, balance).tolist()
    assert sum(w * c for w, c in zip(weights, counts, strict=True)) == pytest.approx(sum(counts), rel=1e-5)
    assert all((weight > 0) == (count > 0) for weight, count in zip(weights, counts, strict=True))


def test_the_loss_is_the_weighted_mean_of_cross_entropies() -> None:
    logits = torch.tensor([[math.log(0.5), math.log(0.25), math.log(0.25)], [0.0, 0.0, 0.0]], dtype=torch.bfloat16)
    labels, answers, weights = torch.tensor([GOOD, POOR]), torch.tensor([4, 4]), torch.tensor([2.0, 1.0, 0.5])
    loss = head_loss(logits.float(), labels, answers, weights)
    assert loss.item() == pytest.approx((2 * math.log(2) + 0.5 * math.log(3)) / 2, rel=1e-2)
    assert head_loss(logits, labels, answers, weights).dtype == torch.float32


def test_every_row_has_the_same_weight_whatever_its_length() -> None:
    """One token with loss log 2; three tokens with losses log 3, log 3 and log 6, another answer."""
    probabilities = torch.tensor(
        [[1 / 2, 1 / 4, 1 / 4], [1 / 3, 1 / 3, 1 / 3], [1 / 3, 1 / 3, 1 / 3], [1 / 6, 1 / 2, 1 / 3]]
    )
    loss = head_loss(probabilities.log(), torch.full((4,), GOOD), torch.tensor([0, 2, 2, 2]), torch.ones(3))
    assert loss.item() == pytest.approx((math.log(2) + (2 * math.log(3) + math.log(6)) / 3) / 2)


def test_without_labelled_tokens_the_loss_is_zero_and_has_a_gradient() -> None:
    logits = torch.zeros(0, 3, requires_grad=True)
    loss = head_loss(logits, torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long), torch.ones(3))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None


def test_expected_reward() -> None:
    assert expected_reward(np.array([[0.7, 0.2, 0.1], [0.0, 0.0, 1.0]])).tolist() == pytest.approx([0.6, -1.0])


def test_calibrated_probabilities() -> None:
    calibration = Calibration(scale=2.0, bias=(0.0, math.log(2), 0.0))
    (row,) = calibration.probabilities(torch.tensor([[math.log(3) / 2, 0.0, 0.0]]))
    assert row.tolist() == pytest.approx([0.5, 1 / 3, 1 / 6])


def test_calibration_recovers_scale_and_bias() -> None:
    """Labels drawn from softmax(2 x logits + bias): the fit finds them, the bias up to a common shift."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(40_000, 3, generator=generator)
    bias = torch.tensor([-1.0, 1.5, 0.0])
    drawn = torch.multinomial((2 * logits + bias).softmax(-1), 1, generator=generator).squeeze(-1)
    fitted = calibrate(logits, drawn)
    assert fitted.scale == pytest.approx(2.0, abs=0.06)
    shift = fitted.bias[0] - bias[0].item()
    assert [b - shift for b in fitted.bias] == pytest.approx(bias.tolist(), abs=0.06)
    predicted = fitted.probabilities(logits).mean(0)
    shares = (torch.bincount(drawn, minlength=3) / len(drawn)).tolist()
    assert predicted.tolist() == pytest.approx(shares, abs=1e-3)


def test_calibration_of_separable_data_stays_finite() -> None:
    labels = torch.tensor([GOOD, NEUTRAL, POOR] * 10)
    fitted = calibrate(torch.nn.functional.one_hot(labels, 3).float(), labels)
    assert 1 < fitted.scale < 1000
    probabilities = fitted.probabilities(torch.eye(3))
    assert np.isfinite(probabilities).all()
    assert (probabilities.argmax(-1) == [0, 1, 2]).all()


def test_a_class_that_never_occurs_keeps_its_bias() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(500, 3, generator=generator)
    fitted = calibrate(logits, torch.where(logits[:, POOR] > 1, POOR, NEUTRAL))
    assert fitted.bias[GOOD] == 0
    assert all(math.isfinite(value) for value in (fitted.scale, *fitted.bias))


def test_calibration_preserves_the_ranking() -> None:
    labels = torch.tensor([GOOD, POOR] * 20)
    wrong = torch.nn.functional.one_hot(POOR - labels, 3).float()
    assert calibrate(wrong, labels).scale > 0


@pytest.mark.parametrize("labels", [[], [NEUTRAL, NEUTRAL]])
def test_nothing_to_calibrate_on_changes_nothing(labels: list[int]) -> None:
    assert calibrate(torch.zeros(len(labels), 3), torch.tensor(labels, dtype=torch.long)) == Calibration()


def test_the_head_starts_undecided_and_computes_in_float32() -> None:
    head = TokenHead(8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = head(torch.randn(4, 8, dtype=torch.bfloat16))
    assert logits.dtype == torch.float32
    assert logits.softmax(-1).tolist() == [pytest.approx([1 / 3] * 3)] * 4


def test_graded_scores_are_labels_too() -> None:
    feedback = Feedback(critic="c", scores=[(0, 3, 0.4), (3, 7, -0.2), (7, 9, 0.0)])
    assert token_labels(feedback, OFFSETS) == [GOOD, POOR, NEUTRAL, NEUTRAL]
