"""How good a reward model is: against gold feedback, by token, by word and by span, and how well it is calibrated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from text2grad.evaluation.metrics import rouge_l
from text2grad.reward_model.curves import (
    Array,
    average_precision,
    expected_calibration_error,
    precision_at_recall,
    reliability,
)
from text2grad.reward_model.feedback import word_probabilities, words_of
from text2grad.reward_model.head import GOOD, POOR, token_labels
from text2grad.reward_model.model import Scored, SpanRewardModel
from text2grad.schema import Example, Feedback, Label, Range

LABELS: tuple[tuple[Label, int], ...] = (("good", GOOD), ("poor", POOR))
OVERLAP = 0.5  # of intersection and union of the characters, from which two spans are the same


@dataclass(frozen=True)
class Judged:
    """An example with gold feedback, what the model predicts for it, and the head's probabilities."""

    example: Example
    predicted: Feedback
    scored: Scored


def judge(model: SpanRewardModel, examples: Sequence[Example]) -> tuple[list[Judged], dict[str, int]]:
    """The model's hard spans and probabilities for every example with usable gold; and what was left out, counted."""
    gold = [e for e in examples if e.feedback is not None and e.feedback.status == "ok"]
    with model.using(rewards="spans"):
        predictions = model.critique_and_score(gold)
    judged = [
        Judged(example, predicted, scored)
        for example, (predicted, scored) in zip(gold, predictions, strict=True)
        if isinstance(scored, Scored) and predicted.status == "ok"
    ]
    failures = Counter((said.error or "").split(":")[0] for said, _ in predictions if said.status == "failed")
    return judged, {"no gold feedback": len(examples) - len(gold), **failures}


def evaluate(judged: Sequence[Judged]) -> dict[str, Any]:
    """All figures. Precision and recall are of hard predictions, average precision and calibration of probabilities."""
    gold_tokens = np.concatenate([token_labels(_gold(j), j.scored.offsets) for j in judged])
    hard_tokens = np.concatenate([token_labels(j.predicted, j.scored.offsets) for j in judged])
    token_probabilities = np.concatenate([j.scored.probabilities for j in judged])
    gold_words, word_scores = word_table(judged)
    figures: dict[str, Any] = {
        "examples": len(judged),
        "tokens": {"items": len(gold_tokens), "sign_errors": sign_errors(gold_tokens, hard_tokens)},
        "words": {"items": len(gold_words)},
        "spans": {},
    }
    for label, column in LABELS:
        figures["tokens"][label] = {
            **_agreement(hard_tokens == column, gold_tokens == column),
            **ranking(token_probabilities[:, column], gold_tokens == column),
        }
        figures["words"][label] = ranking(word_scores[:, column], gold_words == column)
        figures["spans"][label] = span_agreement(judged, label)
    figures["critique_rouge_l"] = _critique_rouge(judged)
    figures["spans_per_answer"] = _mean(len(j.predicted.spans) for j in judged)
    figures["coverage"] = float(np.isin(hard_tokens, (GOOD, POOR)).mean())
    figures["gold_coverage"] = float(np.isin(gold_tokens, (GOOD, POOR)).mean())
    return figures


def ranking(probabilities: Array, gold: NDArray[np.bool_]) -> dict[str, Any]:
    """Figures of probabilities against gold, both (items,)."""
    return {
        "share": _mean(gold),
        "average_precision": average_precision(probabilities, gold),
        "precision_at_recall_25": precision_at_recall(probabilities, gold, 0.25),
        "ece": expected_calibration_error(probabilities, gold),
        "reliability": reliability(probabilities, gold),
    }


def word_table(judged: Sequence[Judged]) -> tuple[NDArray[np.int64], Array]:
    """The class of every word, (words,), and the head's probabilities for it, (words, 3)."""
    gold = [token_labels(_gold(j), words_of(j.example.completion)) for j in judged]
    scores = [word_probabilities(j.example.completion, j.scored)[1] for j in judged]
    return np.concatenate(gold), np.concatenate(scores)


def sign_errors(gold: NDArray[np.int64], predicted: NDArray[np.int64]) -> dict[str, int]:
    """Tokens whose praise and blame were confused: the errors that corrupt a gradient instead of thinning it."""
    return {
        "good_called_poor": int(((gold == GOOD) & (predicted == POOR)).sum()),
        "poor_called_good": int(((gold == POOR) & (predicted == GOOD)).sum()),
    }


def span_agreement(judged: Sequence[Judged], label: Label) -> dict[str, float]:
    """Precision, recall and F1 of whole spans: two are the same if they overlap by half, each counted once."""
    pairs = [(_ranges(j.predicted, label), _ranges(_gold(j), label)) for j in judged]
    matched = sum(matches(predicted, gold) for predicted, gold in pairs)
    return _scores(matched, sum(len(p) for p, _ in pairs), sum(len(g) for _, g in pairs))


def matches(predicted: Sequence[Range], gold: Sequence[Range]) -> int:
    """How many spans can be paired, best overlap first, where intersection / union is at least OVERLAP."""
    candidates = sorted(
        ((overlap(p, g), i, k) for i, p in enumerate(predicted) for k, g in enumerate(gold)), reverse=True
    )
    used_predicted: set[int] = set()
    used_gold: set[int] = set()
    for value, i, k in candidates:
        if value >= OVERLAP and i not in used_predicted and k not in used_gold:
            used_predicted.add(i)
            used_gold.add(k)
    return len(used_gold)


def overlap(one: Range, other: Range) -> float:
    """Characters in both / characters in either."""
    both = min(one[1], other[1]) - max(one[0], other[0])
    return max(both, 0) / (max(one[1], other[1]) - min(one[0], other[0])) if both > 0 else 0.0


def _gold(judged: Judged) -> Feedback:
    assert judged.example.feedback is not None
    return judged.example.feedback


def _ranges(feedback: Feedback, label: Label) -> list[Range]:
    return sorted({(span.start, span.end) for span in feedback.spans if span.label == label})


def _agreement(predicted: NDArray[np.bool_], gold: NDArray[np.bool_]) -> dict[str, float]:
    return _scores(int((predicted & gold).sum()), int(predicted.sum()), int(gold.sum()))


def _scores(matched: int, predicted: int, gold: int) -> dict[str, float]:
    precision = matched / predicted if predicted else 0.0
    recall = matched / gold if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if matched else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def _critique_rouge(judged: Sequence[Judged]) -> float | None:
    """ROUGE-L of the written critiques against people's; None for the head, which writes none."""
    pairs = [(j.predicted.critique, _gold(j).critique) for j in judged if j.predicted.raw and _gold(j).critique]
    return _mean(rouge_l(ours, theirs) for ours, theirs in pairs) if pairs else None


def _mean(values: Any) -> float:
    numbers = list(values)
    return float(np.mean(numbers)) if numbers else 0.0
