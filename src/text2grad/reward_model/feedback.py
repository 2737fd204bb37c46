"""Feedback from the reward model's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from text2grad.reward_model.critique_format import WrittenCritique
from text2grad.reward_model.head import GOOD, NEUTRAL, POOR, Probabilities, expected_reward
from text2grad.schema import Feedback, Label, Omission, Range, Span
from text2grad.settings import Settings
from text2grad.text.whitespace import word_ranges

_MIN_SEVERITY = 0.01  # a span that was generated counts, however improbable the head finds its label


class FeedbackSettings(Settings):
    """How predictions become feedback.

    method: `head` takes one forward pass and writes no critique; `generative` generates the critique and quotations.
    rewards: `graded` gives every word its expected reward P(good) - P(poor); `spans` gives only the words for which
        good or poor is the most probable class, adjacent ones joined, with that probability as severity.
    centered: graded rewards are relative to the class frequencies of the training data, so that an average word earns
        0. Where people blame more than they praise, every word would otherwise cost something, and the best completion
        would be an empty one.
    threshold: rewards closer to 0 than this are 0.
    weaken_unfamiliar: feedback on a completion unlike the training data counts less, the further it is.
    """

    method: Literal["head", "generative"] = "head"
    rewards: Literal["graded", "spans"] = "graded"
    centered: bool = True
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.1
    weaken_unfamiliar: bool = True


@dataclass(frozen=True)
class TokenProbabilities:
    """The head's prediction for one completion: the characters of each token, and (tokens, 3) probabilities.

    distance: how unlike the training data the completion is; None for a model that does not know.
    """

    offsets: list[Range]
    probabilities: Probabilities
    distance: float | None = None


def graded_feedback(
    completion: str, predicted: TokenProbabilities, threshold: float, critic: str, centre: float = 0.0
) -> Feedback:
    """Return a score for every word whose expected reward differs from `centre` by at least `threshold`.

    The score of the completion is the mean over all of its words, so that it does not grow with their number.
    """
    words, values = word_means(completion, predicted.offsets, expected_reward(predicted.probabilities) - centre)
    values = values.clip(-1.0, 1.0)
    threshold = max(threshold, 1e-9)
    scores = [(start, end, float(v)) for (start, end), v in zip(words, values, strict=True) if abs(v) >= threshold]
    score = float(values.mean()) if len(values) else 0.0
    return Feedback(critic=critic, scores=scores, score=score, critique=_summary(completion, scores))


def span_feedback(completion: str, predicted: TokenProbabilities, threshold: float, critic: str) -> Feedback:
    """Return a span for every run of words whose most probable class is good, or poor.

    The mean probability of the class is the span's severity; spans below `threshold` are dropped. The score of the
    completion is the mean over its words (`mean_over_words`).
    """
    words, probabilities = word_means(completion, predicted.offsets, predicted.probabilities)
    classes = most_probable_classes(probabilities)
    spans: list[Span] = []
    for column, run in groupby(range(len(words)), key=lambda i: int(classes[i])):
        indices = list(run)
        first, last = indices[0], indices[-1]
        severity = min(float(probabilities[first : last + 1, column].mean()), 1.0)  # rounded sums can exceed 1
        if column != NEUTRAL and severity >= threshold:
            label: Label = "good" if column == GOOD else "poor"
            start, end = words[first][0], words[last][1]
            spans.append(Span(start=start, end=end, label=label, severity=severity))
    signed = [(span.start, span.end, span.severity if span.label == "good" else -span.severity) for span in spans]
    score = mean_over_words(completion, spans)
    return Feedback(critic=critic, spans=spans, score=score, critique=_summary(completion, signed))


def written_feedback(
    completion: str, written: WrittenCritique, predicted: TokenProbabilities, critic: str, raw: str
) -> Feedback:
    """Return the generated critique; the severity of a span is the head's mean probability of its class there.

    The score of the completion is the mean over its words (`mean_over_words`).
    """
    spans = []
    for label, (start, end) in written.spans():
        inside = [i for i, (a, b) in enumerate(predicted.offsets) if a < end and b > start]
        column = GOOD if label == "good" else POOR
        # A character that a tokenizer composes with the one before it, such as an accent, has no token of its own.
        mean = float(predicted.probabilities[inside, column].mean()) if inside else 0.0
        severity = min(max(mean, _MIN_SEVERITY), 1.0)
        spans.append(
            Span(
                start=start,
                end=end,
                label=label,
                severity=severity,
                replacement=written.replacements.get((start, end)) if label == "poor" else None,
                match="exact",
            )
        )
    return Feedback(
        critic=critic,
        reasoning=written.reasoning,
        critique=written.critique or "",
        spans=spans,
        omissions=[Omission(text=text) for text in written.missing],
        score=mean_over_words(completion, spans),
        raw=raw,
    )


def mean_over_words(completion: str, spans: Sequence[Span]) -> float:
    """Return the mean reward of the words: the severity of the span that a word is in, negative for blame, else 0."""
    words = word_ranges(completion)
    total = sum(
        (span.severity if span.label == "good" else -span.severity)
        * sum(start < span.end and end > span.start for start, end in words)
        for span in spans
    )
    return total / len(words) if words else 0.0


def most_probable_classes(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the class that is strictly more probable than both others, else NEUTRAL. (items, 3) -> (items,)."""
    good, neutral, poor = probabilities.T
    return np.select([good > np.maximum(neutral, poor), poor > np.maximum(neutral, good)], [GOOD, POOR], NEUTRAL)


def word_means(
    completion: str, offsets: list[Range], values: NDArray[np.float64]
) -> tuple[list[Range], NDArray[np.float64]]:
    """Return the words, and the mean of the values of the tokens that overlap each. (tokens, ...) -> (words, ...).

    Offsets are in ascending order, so the tokens of a word are adjacent. A word without tokens has mean 0.
    """
    words = word_ranges(completion)
    starts, ends = np.asarray(offsets, dtype=np.int64).reshape(-1, 2).T
    word_starts, word_ends = np.asarray(words, dtype=np.int64).reshape(-1, 2).T
    first, beyond = np.searchsorted(ends, word_starts, side="right"), np.searchsorted(starts, word_ends, side="left")
    sums = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    count = np.maximum(beyond - first, 0).reshape(-1, *[1] * (values.ndim - 1))
    return words, np.where(count > 0, sums[np.maximum(beyond, first)] - sums[first], 0.0) / np.maximum(count, 1)


def _summary(completion: str, signed: list[tuple[int, int, float]]) -> str:
    """Return one sentence per label, since the head writes no critique."""
    sentences = []
    for name, sign in (("Poor", -1), ("Good", 1)):
        quotes = [f'"{completion[start:end]}"' for start, end, value in signed if value * sign > 0]
        if quotes:
            sentences.append(f"{name}: {', '.join(quotes)}.")
    return " ".join(sentences)
