"""Ranking and calibration, against values that can be redone by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.reward_model.calibration_metrics import (
    average_precision,
    expected_calibration_error,
    precision_at_recall,
    precision_recall,
    reliability,
)

SCORES = np.array([0.1, 0.9, 0.8, 0.3])
GOLD = np.array([False, True, False, True])


def test_precision_and_recall_at_every_threshold() -> None:
    precision, recall, thresholds = precision_recall(SCORES, GOLD)
    assert thresholds.tolist() == [0.9, 0.8, 0.3, 0.1]
    assert precision.tolist() == pytest.approx([1, 1 / 2, 2 / 3, 1 / 2])
    assert recall.tolist() == [0.5, 0.5, 1, 1]


def test_average_precision() -> None:
    # Half of the gold at precision 1, the other half at 2/3.
    assert average_precision(SCORES, GOLD) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert average_precision(-SCORES, GOLD) == pytest.approx(0.5 * 1 / 2 + 0.5 * 2 / 4)


def test_ties_are_taken_together() -> None:
    # 0.5 is shared by two, one of them gold: it comes first in neither order.
    scores, gold = np.array([0.5, 0.5, 0.2]), np.array([True, False, True])
    assert average_precision(scores, gold) == pytest.approx(0.5 * 1 / 2 + 0.5 * 2 / 3)
    assert average_precision(scores[[1, 0, 2]], gold[[1, 0, 2]]) == average_precision(scores, gold)


def test_scores_that_say_nothing_have_the_base_rate() -> None:
    assert average_precision(np.full(8, 0.3), np.arange(8) < 2) == 0.25


def test_without_gold_or_items_everything_is_zero() -> None:
    nothing = np.zeros(0)
    assert average_precision(SCORES, np.zeros(4, dtype=bool)) == 0
    assert precision_at_recall(SCORES, np.zeros(4, dtype=bool), 0.25) == 0
    assert average_precision(nothing, nothing.astype(bool)) == 0
    assert precision_at_recall(nothing, nothing.astype(bool), 0.25) == 0
    assert expected_calibration_error(nothing, nothing.astype(bool)) == 0


def test_precision_at_recall_is_the_best_that_finds_enough() -> None:
    assert precision_at_recall(SCORES, GOLD, 0.25) == 1
    assert precision_at_recall(SCORES, GOLD, 0.5) == 1
    assert precision_at_recall(SCORES, GOLD, 0.51) == pytest.approx(2 / 3)


items = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40)


@given(items, st.randoms())
def test_neither_order_nor_scale_matter(given: list[tuple[int, bool]], shuffle: st.randoms) -> None:
    scores, gold = np.array([float(s) for s, _ in given]), np.array([g for _, g in given])
    order = list(range(len(given)))
    shuffle.shuffle(order)
    value = average_precision(scores, gold)
    assert average_precision(scores[order], gold[order]) == pytest.approx(value)
    assert average_precision(3 * scores - 7, gold) == pytest.approx(value)
    assert 0 <= value <= 1
    if gold.any():
        assert average_precision(gold.astype(float), gold) == 1


def test_reliability_and_calibration_error() -> None:
    probabilities, gold = np.array([0.05, 0.15, 0.1, 1.0]), np.array([False, True, False, True])
    bins = reliability(probabilities, gold)
    assert bins == [
        (pytest.approx(0.05), 0.0, 1),
        (pytest.approx(0.125), 0.5, 2),
        (pytest.approx(1.0), 1.0, 1),
    ]
    assert expected_calibration_error(probabilities, gold) == pytest.approx((0.05 + 2 * 0.375 + 0) / 4)


def test_probabilities_that_come_true_have_no_error() -> None:
    probabilities = np.repeat([0.2, 0.8], 10)
    gold = np.concatenate([np.arange(10) < 2, np.arange(10) < 8])
    assert expected_calibration_error(probabilities, gold) == pytest.approx(0)
