"""What the reward model found, as Feedback."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from text2grad.reward_model.head import GOOD, NEUTRAL, POOR, expectation
from text2grad.reward_model.judgement import Judgement
from text2grad.schema import Feedback, Omission, Range, Span

if TYPE_CHECKING:
    from text2grad.reward_model.model import Scored

_WORD = re.compile(r"\S+")
_LEAST_SEVERITY = 0.01  # a span that was written counts, however little the head thinks of it


def graded_feedback(answer: str, scored: Scored, floor: float, critic: str, centre: float = 0.0) -> Feedback:
    """Every word whose expectation P(good) - P(poor) is at least `floor` from `centre`; the difference is its score."""
    words, values = word_means(answer, scored.offsets, expectation(scored.probabilities) - centre)
    values = values.clip(-1.0, 1.0)
    kept = [(start, end, float(v)) for (start, end), v in zip(words, values, strict=True) if abs(v) >= max(floor, 1e-9)]
    return Feedback(critic=critic, scores=kept, score=float(values.sum()), critique=_summary(answer, kept))


def span_feedback(answer: str, scored: Scored, floor: float, critic: str) -> Feedback:
    """Words that are more probably good, or poor, than anything else; neighbours of one class make one span.

    The mean probability of the class is the span's severity. floor: spans with less are left out.
    """
    words, probabilities = word_probabilities(answer, scored)
    classes = likeliest(probabilities)
    spans: list[Span] = []
    at = 0
    while at < len(words):
        end = at + 1
        while end < len(words) and classes[end] == classes[at]:
            end += 1
        severity = min(float(probabilities[at:end, classes[at]].mean()), 1.0)  # sums that are rounded can pass it
        if classes[at] in (GOOD, POOR) and severity >= floor:
            label = "good" if classes[at] == GOOD else "poor"
            spans.append(
                Span(
                    start=words[at][0],
                    end=words[end - 1][1],
                    label=label,
                    severity=severity,
                    confidence=severity,
                )
            )
        at = end
    ranges = [(span.start, span.end, span.severity if span.label == "good" else -span.severity) for span in spans]
    return Feedback(critic=critic, spans=spans, score=sum(r[2] for r in ranges), critique=_summary(answer, ranges))


def written_feedback(judgement: Judgement, scored: Scored, critic: str, raw: str) -> Feedback:
    """What the model wrote; the severity of a span is the head's mean probability of its class there."""
    spans = []
    for label, (start, end) in judgement.spans():
        inside = [i for i, (a, b) in enumerate(scored.offsets) if a < end and b > start]
        column = GOOD if label == "good" else POOR
        # What a tokenizer composes with the character before it, an accent say, belongs to no token of its own.
        found = float(scored.probabilities[inside, column].mean()) if inside else 0.0
        severity = min(max(found, _LEAST_SEVERITY), 1.0)
        spans.append(Span(start=start, end=end, label=label, severity=severity, confidence=severity, match="exact"))
    return Feedback(
        critic=critic,
        reasoning=judgement.reasoning,
        critique=judgement.critique or "",
        spans=spans,
        omissions=[Omission(text=text) for text in judgement.missing],
        score=sum(span.severity if span.label == "good" else -span.severity for span in spans),
        raw=raw,
    )


def likeliest(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """The class that is more probable than both others, NEUTRAL where none is. (items, 3) -> (items,)."""
    good, neutral, poor = probabilities.T
    return np.select([good > np.maximum(neutral, poor), poor > np.maximum(neutral, good)], [GOOD, POOR], NEUTRAL)


def words_of(answer: str) -> list[Range]:
    """What stands between white space."""
    return [match.span() for match in _WORD.finditer(answer)]


def word_probabilities(answer: str, scored: Scored) -> tuple[list[Range], NDArray[np.float64]]:
    """Words and their (words, 3) probabilities: the mean over the tokens that overlap a word."""
    return word_means(answer, scored.offsets, scored.probabilities)


def word_means(
    answer: str, offsets: list[Range], values: NDArray[np.float64]
) -> tuple[list[Range], NDArray[np.float64]]:
    """Words, and the mean of the tokens' values over each. values: (tokens, ...); returns (words, ...).

    The places of tokens never go back, so the tokens of a word are neighbours. A word without tokens has 0.
    """
    words = words_of(answer)
    starts, ends = np.asarray(offsets, dtype=np.int64).reshape(-1, 2).T
    word_starts, word_ends = np.asarray(words, dtype=np.int64).reshape(-1, 2).T
    first, beyond = np.searchsorted(ends, word_starts, side="right"), np.searchsorted(starts, word_ends, side="left")
    sums = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    count = np.maximum(beyond - first, 0).reshape(-1, *[1] * (values.ndim - 1))
    return words, np.where(count > 0, sums[np.maximum(beyond, first)] - sums[first], 0.0) / np.maximum(count, 1)


def _summary(answer: str, ranges: list[tuple[int, int, float]]) -> str:
    """One sentence a polarity, since the head writes nothing itself."""
    sentences = []
    for name, sign in (("Poor", -1), ("Good", 1)):
        quotes = [f'"{answer[start:end]}"' for start, end, value in ranges if value * sign > 0]
        if quotes:
            sentences.append(f"{name}: {', '.join(quotes)}.")
    return " ".join(sentences)
