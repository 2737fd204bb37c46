"""The score of a summary: a product of factors between 0 and 1, so that one bad property cannot be bought off.

faithful    one minus the risk of an error, see `support`: the mean of the average and the worst sentence
informative 1 - exp(-n / 4), n: distinct content words of the source within the length limit, key facts counted thrice
original    1 until four fifths of the words are copied in runs of four or more; a copy of the source keeps a tenth
ordered     whether the words are in an order that makes sentences, see `word_order`
worded      the share of words in sentences: not in lists, key words or fragments
concise     the square of the length limit by the length, where it is longer
fresh       one minus twice the share of repeated words
finished    1, or a quarter where the text breaks off
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from text2grad.critics.rules.source import Source
from text2grad.critics.rules.support import SentenceSupport
from text2grad.critics.rules.word_order import sentence_order
from text2grad.text.words import Text

CONTENT_SCALE, FACT_BONUS = 4.0, 2.0
COPIED_FREE, COPIED_FULL, COPIED_FLOOR = 0.8, 0.95, 0.1
ORDER_LOW, ORDER_HIGH = -0.05, 0.1
REPEATED_WEIGHT = 2.0
UNFINISHED = 0.25


class Quality(NamedTuple):
    """The factors of a score, each from 0 to 1."""

    faithful: float
    informative: float
    original: float
    ordered: float
    worded: float
    concise: float
    fresh: float
    finished: float

    @classmethod
    def worst(cls) -> Quality:
        """Return the quality of an empty summary."""
        return cls(*(0.0 for _ in cls._fields))

    @property
    def score(self) -> float:
        """The product of all factors, from -1 to 1."""
        return round(2 * math.prod(self) - 1, 6)


def faithfulness(sentences: Sequence[SentenceSupport]) -> float:
    """Return one minus the mean of the average risk, by length, and the highest risk of a sentence."""
    num_words = sum(len(sentence.words) for sentence in sentences)
    average = sum(sentence.risk * len(sentence.words) for sentence in sentences) / num_words
    return 1 - (average + max(sentence.risk for sentence in sentences)) / 2


def informativeness(summary: Text, source: Source, ignored: set[int], num_facts: int) -> float:
    """Return how much of the source's content the summary has: distinct words, general ones excluded, and key facts."""
    content = {
        key
        for i, (word, key) in enumerate(zip(summary.words, summary.keys, strict=True))
        if i not in ignored and word.is_content and not word.lexeme.is_general and key in source.positions
    }
    return 1 - math.exp(-(len(content) + FACT_BONUS * num_facts) / CONTENT_SCALE)


def originality(summary: Text, copied: Iterable[range]) -> float:
    """Return 1 for a usual share of copied words, falling to COPIED_FLOOR for nothing but copied words."""
    share = sum(map(len, copied)) / len(summary.words)
    return 1 - (1 - COPIED_FLOOR) * _ramp(share, COPIED_FREE, COPIED_FULL)


def orderliness(summary: Text) -> float:
    """Return how far the order of words, averaged over sentences by length, is that of prose."""
    total = math.fsum(sentence_order(summary, sentence) * len(sentence) for sentence in summary.sentences)
    return _ramp(total / len(summary.words), ORDER_LOW, ORDER_HIGH)


def conciseness(summary: Text, limit: int) -> float:
    """Return the square of how far the length limit is exceeded: the limit by the length."""
    return min(1.0, limit / len(summary.words)) ** 2


def freshness(summary: Text, repeated: set[int]) -> float:
    """Return one minus the weighted share of repeated words, at least 0."""
    return max(0.0, 1 - REPEATED_WEIGHT * len(repeated) / len(summary.words))


def _ramp(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))
