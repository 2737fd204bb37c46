"""Whether words are in an order that makes sentences, judged by which classes of words follow each other.

Function words, commas and sentence boundaries are classes of their own; other words are classed by their ending, as
numbers and names. The pointwise mutual information of neighbouring classes, log P(a, b) / (P(a) P(b)), is positive on
average in any prose, about 0 for shuffled words and for lists of key words, and very low where a sentence ends in
"the". `benchmarks/train_grounding.py` counts the classes; the table ships as `weights/word_order.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from text2grad.text.lexicon import IRREGULAR_VERBS
from text2grad.text.stems import lower_word
from text2grad.text.words import Text, Word

BEGIN, END, COMMA, NUMBER, NAME, OTHER, RARE = "<begin>", "<end>", ",", "<number>", "<name>", "<other>", "<rare>"
_ENDINGS = ("ing", "ed", "ly", "s")
_MIN_ROOT = 3
_COMMA = re.compile("[,;:()—–]")
# The table holds integers: tenths of nats.
SCALE = 10
MIN_END = -1.5


class Transition(NamedTuple):
    """A pair of neighbouring classes. word: index of the first word, or of the sentence's first word at its begin."""

    word: int
    first: str
    second: str


@lru_cache(maxsize=1)
def information_table() -> dict[tuple[str, str], float]:
    """Load the mutual information of neighbouring classes, in nats."""
    path = files("text2grad.critics.rules").joinpath("weights", "word_order.json")
    data = json.loads(path.read_text("utf-8"))
    classes = data["classes"]
    return {
        (a, b): value / SCALE
        for a, row in zip(classes, data["information"], strict=True)
        for b, value in zip(classes, row, strict=True)
    }


@lru_cache(maxsize=1)
def _classes() -> frozenset[str]:
    return frozenset(a for a, _ in information_table())


def sentence_order(text: Text, sentence: range) -> float:
    """Return the mean information of the sentence's transitions."""
    values = [value for _, value in transition_information(text, sentence)]
    return sum(values) / len(values)


def ends_sentence(text: Text, sentence: range) -> bool:
    """Whether a sentence may end with the last word of this one."""
    *_, (_, information) = transition_information(text, sentence)
    return information > MIN_END


def transition_information(text: Text, sentence: range) -> Iterator[tuple[int, float]]:
    """Yield the information of each transition, with the index of its first word."""
    table, known = information_table(), _classes()
    for word, first, second in transitions(text, sentence):
        yield word, table[first if first in known else RARE, second if second in known else RARE]


def transitions(text: Text, sentence: range) -> Iterator[Transition]:
    """Yield the neighbouring classes of a sentence, from its begin to its end."""
    last = BEGIN
    for i in sentence:
        current = word_class(text.words[i])
        yield Transition(max(i - 1, sentence.start), last, current)
        last = current
        if i < sentence.stop - 1 and _COMMA.search(text.after(i)):
            yield Transition(i, last, COMMA)
            last = COMMA
    yield Transition(sentence.stop - 1, last, END)


def word_class(word: Word) -> str:
    """Return the class of a word; a function word is its own class."""
    lowered = lower_word(word.text)
    if word.lexeme.is_number:
        return NUMBER
    if word.lexeme.is_function:
        return lowered
    if word.text[0].isupper() and not word.starts_sentence:
        return NAME
    if lowered in IRREGULAR_VERBS:
        return "-ed"
    for ending in _ENDINGS:
        if lowered.endswith(ending) and len(lowered) >= len(ending) + _MIN_ROOT:
            return f"-{ending}"
    return OTHER
