"""Metrics of a reward model against gold feedback: by token, by word and by span, and its calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from text2grad.evaluation.metrics import rouge_l
from text2grad.reward_model.calibration_metrics import (
    Array,
    average_precision,
    expected_calibration_error,
    precision_at_recall,
    reliability,
)
from text2grad.reward_model.familiarity import FAMILIAR, trust
from text2grad.reward_model.feedback import TokenProbabilities, word_means
from text2grad.reward_model.head import GOOD, POOR, token_labels
from text2grad.reward_model.model import SpanRewardModel
from text2grad.schema import Example, Feedback, Label, Range
from text2grad.text.whitespace import word_ranges

LABELS: tuple[tuple[Label, int], ...] = (("good", GOOD), ("poor", POOR))
MIN_IOU = 0.5  # intersection over union from which a predicted span matches a gold span


@dataclass(frozen=True)
class Prediction:
    """An example with gold feedback, the predicted feedback, and the head's probabilities."""

    example: Example
    predicted: Feedback
    tokens: TokenProbabilities

    @property
    def gold(self) -> Feedback:
        """The feedback that the example came with."""
        assert self.example.feedback is not None
        return self.example.feedback


def predict(model: SpanRewardModel, examples: Sequence[Example]) -> tuple[list[Prediction], dict[str, int]]:
    """Return predicted spans and probabilities of every example with gold feedback, and skipped counts by reason."""
    gold = [e for e in examples if e.feedback is not None and e.feedback.status == "ok"]
    with model.override(rewards="spans"):
        results = model.critique_and_score(gold)
    predictions = [
        Prediction(example, predicted, tokens)
        for example, (predicted, tokens) in zip(gold, results, strict=True)
        if isinstance(tokens, TokenProbabilities) and predicted.status == "ok"
    ]
    failures = Counter((feedback.error or "").split(":")[0] for feedback, _ in results if feedback.status == "failed")
    return predictions, {"no gold feedback": len(examples) - len(gold), **failures}


def compute_metrics(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Compute precision and recall of hard predictions, average precision and calibration of probabilities."""
    gold_tokens = np.concatenate([token_labels(p.gold, p.tokens.offsets) for p in predictions])
    hard_tokens = np.concatenate([token_labels(p.predicted, p.tokens.offsets) for p in predictions])
    token_probabilities = np.concatenate([p.tokens.probabilities for p in predictions])
    gold_words, word_scores = word_table(predictions)
    metrics: dict[str, Any] = {
        "examples": len(predictions),
        "tokens": {"count": len(gold_tokens), "sign_errors": sign_errors(gold_tokens, hard_tokens)},
        "words": {"count": len(gold_words)},
        "spans": {},
    }
    for label, column in LABELS:
        predicted, gold = hard_tokens == column, gold_tokens == column
        agreement = _precision_recall_f1(int((predicted & gold).sum()), int(predicted.sum()), int(gold.sum()))
        metrics["tokens"][label] = agreement | ranking_metrics(token_probabilities[:, column], gold)
        metrics["words"][label] = ranking_metrics(word_scores[:, column], gold_words == column)
        metrics["spans"][label] = span_agreement(predictions, label)
    metrics["critique_rouge_l"] = _critique_rouge_l(predictions)
    metrics["spans_per_completion"] = _mean(len(p.predicted.spans) for p in predictions)
    metrics["coverage"] = float(np.isin(hard_tokens, (GOOD, POOR)).mean())
    metrics["gold_coverage"] = float(np.isin(gold_tokens, (GOOD, POOR)).mean())
    return metrics


def transfer_metrics(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Compute the ranking and calibration of words, and how unlike the training data the completions are.

    trust: the mean factor of the feedback, see `familiarity`. unfamiliar: the share of completions whose factor is
    below 1.
    """
    gold, scores = word_table(predictions)
    distances = [p.tokens.distance for p in predictions if p.tokens.distance is not None]
    metrics: dict[str, Any] = {"examples": len(predictions)}
    for label, column in LABELS:
        metrics[label] = ranking_metrics(scores[:, column], gold == column)
    metrics["distance"] = _mean(distances) if distances else None
    metrics["trust"] = _mean(map(trust, distances)) if distances else 1.0
    metrics["unfamiliar"] = _mean(distance > FAMILIAR for distance in distances)
    return metrics


def ranking_metrics(probabilities: Array, gold: NDArray[np.bool_]) -> dict[str, Any]:
    """Compute ranking and calibration metrics of probabilities against gold, both (items,)."""
    return {
        "frequency": _mean(gold),
        "average_precision": average_precision(probabilities, gold),
        "precision_at_recall_25": precision_at_recall(probabilities, gold, 0.25),
        "ece": expected_calibration_error(probabilities, gold),
        "reliability": reliability(probabilities, gold),
    }


def word_table(predictions: Sequence[Prediction]) -> tuple[NDArray[np.int64], Array]:
    """Return the gold class of every word, (words,), and the head's probabilities, (words, 3)."""
    gold = [token_labels(p.gold, word_ranges(p.example.completion)) for p in predictions]
    scores = [word_means(p.example.completion, p.tokens.offsets, p.tokens.probabilities)[1] for p in predictions]
    return np.concatenate(gold), np.concatenate(scores)


def sign_errors(gold: NDArray[np.int64], predicted: NDArray[np.int64]) -> dict[str, int]:
    """Count tokens whose label has the wrong sign: these errors reverse a gradient instead of weakening it."""
    return {
        "good_predicted_poor": int(((gold == GOOD) & (predicted == POOR)).sum()),
        "poor_predicted_good": int(((gold == POOR) & (predicted == GOOD)).sum()),
    }


def span_agreement(predictions: Sequence[Prediction], label: Label) -> dict[str, float]:
    """Compute precision, recall and F1 of whole spans; each span is matched at most once."""
    pairs = [(_label_ranges(p.predicted, label), _label_ranges(p.gold, label)) for p in predictions]
    matched = sum(count_matches(predicted, gold) for predicted, gold in pairs)
    return _precision_recall_f1(matched, sum(len(p) for p, _ in pairs), sum(len(g) for _, g in pairs))


def count_matches(predicted: Sequence[Range], gold: Sequence[Range]) -> int:
    """Count the pairs of spans with an IoU of at least MIN_IOU, matched greedily from the highest IoU."""
    candidates = sorted(
        ((intersection_over_union(p, g), i, k) for i, p in enumerate(predicted) for k, g in enumerate(gold)),
        reverse=True,
    )
    used_predicted: set[int] = set()
    used_gold: set[int] = set()
    for iou, i, k in candidates:
        if iou >= MIN_IOU and i not in used_predicted and k not in used_gold:
            used_predicted.add(i)
            used_gold.add(k)
    return len(used_gold)


def intersection_over_union(one: Range, other: Range) -> float:
    """Return the number of characters in both ranges over the number in either."""
    both = min(one[1], other[1]) - max(one[0], other[0])
    return both / (max(one[1], other[1]) - min(one[0], other[0])) if both > 0 else 0.0


def _label_ranges(feedback: Feedback, label: Label) -> list[Range]:
    return sorted({(span.start, span.end) for span in feedback.spans if span.label == label})


def _precision_recall_f1(matched: int, predicted: int, gold: int) -> dict[str, float]:
    precision = matched / predicted if predicted else 0.0
    recall = matched / gold if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if matched else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def _critique_rouge_l(predictions: Sequence[Prediction]) -> float | None:
    """Return ROUGE-L of generated against gold critiques; None for the head, which generates none."""
    pairs = [(p.predicted.critique, p.gold.critique) for p in predictions if p.predicted.raw and p.gold.critique]
    return _mean(rouge_l(generated, gold) for generated, gold in pairs) if pairs else None


def _mean(values: Any) -> float:
    numbers = list(values)
    return float(np.mean(numbers)) if numbers else 0.0
