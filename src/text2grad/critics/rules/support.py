"""How likely each word of a summary is part of an error, given the source: a logistic regression over a few features.

No feature looks at the identity of a word; closed classes ("in", "Monday") and words too general to be wrong are known
from the lexicon. So what was learned from short news summaries holds for other texts. People marked the errors;
`benchmarks/train_grounding.py` fits the weights, which ship as `weights/support.json`.

A sentence's words are compared with the source word by word and with their neighbours: a wrong statement often consists
of words that the source has, in another place.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from text2grad.critics.rules.source import Source
from text2grad.text.lexicon import word_set
from text2grad.text.words import Text, Word

FEATURES = (
    "content",  # no function word
    "general",  # said of almost anything
    "name",
    "unsupported_name",  # not in the source, in no form
    "unsupported_names",  # share of the name words of the sentence
    "number",
    "unsupported_number",
    "new_before_name",  # not in the source in this form, as in "striker Jo Falcato"
    "after_new",
    "before_new",
    "after_place_preposition",
    "copied_trigram",  # with both neighbours as in the source
    "near_next",  # how close the source has it to the next content word
    "alignment",  # share of the sentence's content words in the best source sentence that has this word
    "best_alignment",  # the same for the best source sentence
)
_PLACE_PREPOSITIONS = word_set("in at near")
# Common words have many positions; the limit bounds the time for long sources.
_MAX_POSITIONS = 40
_MAX_COUNT = 10
_POWER = 3


class SupportWeights(NamedTuple):
    """Weights of the two regressions: of a word's features, and of the logit of a sentence's combined risk."""

    intercept: float
    weights: tuple[float, ...]
    sentence_intercept: float
    sentence_slope: float
    threshold: float


class SentenceSupport(NamedTuple):
    """words: the sentence. risks: of each word, the probability to be in an error. risk: that the sentence has one."""

    words: range
    risks: tuple[float, ...]
    risk: float


@lru_cache(maxsize=1)
def support_weights() -> SupportWeights:
    """Load the weights that ship with the package."""
    path = files("text2grad.critics.rules").joinpath("weights", "support.json")
    data = json.loads(path.read_text("utf-8"))
    return SupportWeights(
        intercept=data["intercept"],
        weights=tuple(data["weights"][name] for name in FEATURES),
        sentence_intercept=data["sentence_intercept"],
        sentence_slope=data["sentence_slope"],
        threshold=data["threshold"],
    )


def assess_support(summary: Text, source: Source) -> list[SentenceSupport]:
    """Return the risks of all words and sentences of a summary."""
    weights = support_weights()
    assessed = []
    for sentence, rows in zip(summary.sentences, support_features(summary, source), strict=True):
        risks = tuple(_sigmoid(weights.intercept + _dot(weights.weights, row)) for row in rows)
        risk = _sigmoid(weights.sentence_intercept + weights.sentence_slope * _logit(combined_risk(risks)))
        assessed.append(SentenceSupport(sentence, risks, risk))
    return assessed


def combined_risk(risks: Sequence[float]) -> float:
    """Return the cubic mean, between the mean and the maximum: one bad word counts, two count more."""
    return math.pow(math.fsum(math.pow(risk, _POWER) for risk in risks) / len(risks), 1 / _POWER)


def support_features(summary: Text, source: Source) -> list[list[list[float]]]:
    """Return the FEATURES of each word of each sentence."""
    in_names = {i for name in summary.names for i in name}
    unsupported = unsupported_words(summary, source)
    return [_sentence_features(summary, sentence, in_names, unsupported, source) for sentence in summary.sentences]


def _sentence_features(
    summary: Text, sentence: range, in_names: set[int], unsupported: set[int], source: Source
) -> list[list[float]]:
    content = [i for i in sentence if summary.words[i].is_content]
    keys = {summary.keys[i] for i in content}
    overlaps = [len(keys & source_keys) / max(1, len(content)) for source_keys in source.sentence_content]
    new = {i for i in content if i in unsupported or summary.keys[i] not in source.positions}
    names = [i for i in sentence if i in in_names]
    unsupported_names = sum(i in unsupported for i in names) / max(1, len(names))
    rows = []
    for i in sentence:
        word = summary.words[i]
        is_name, is_opening, is_last = i in in_names, i == sentence.start, i == sentence.stop - 1
        positions = source.positions.get(summary.keys[i], []) if word.is_content else []
        following = next(iter(content[bisect_right(content, i) :]), None)
        rows.append(
            [
                float(word.is_content),
                float(word.lexeme.is_general),
                float(is_name),
                float(is_name and i in unsupported),
                unsupported_names,
                float(word.lexeme.is_number),
                float(word.lexeme.is_number and i in unsupported),
                float(i in new and not is_name and not is_last and i + 1 in in_names),
                float(i - 1 in new),
                float(i + 1 in new),
                float(not is_opening and summary.words[i - 1].text.lower() in _PLACE_PREPOSITIONS),
                float(not is_opening and not is_last and summary.keys[i - 1 : i + 2] in source.trigrams),
                _proximity(summary, i, following, source),
                max((overlaps[source.text.words[p].sentence] for p in positions), default=0.0),
                max(overlaps, default=0.0),
            ]
        )
    return rows


def unsupported_words(summary: Text, source: Source) -> set[int]:
    """Return the numbers, the words of names and the other content words that the source does not have in any form.

    Small numbers in words are not among them.
    """
    unsupported: set[int] = set()
    in_names: set[int] = set()
    for name in summary.names:
        in_names.update(name)
        supported = source.supports_name(summary.words[name.start : name.stop])
        unsupported |= {i for i, is_supported in zip(name, supported, strict=True) if not is_supported}
    for i, word in enumerate(summary.words):
        if word.lexeme.is_number:
            previous = None if word.starts_sentence else summary.words[i - 1]
            is_supported = _is_count(word) or source.supports_number(word, previous)
        else:
            is_supported = i in in_names or not word.is_content or source.supports_word(word)
        if not is_supported:
            unsupported.add(i)
    return unsupported


def _is_count(word: Word) -> bool:
    """Whether the word may count what the source only lists: "two", "third"."""
    return word.text.isalpha() and word.lexeme.values[0] <= _MAX_COUNT


def _proximity(summary: Text, i: int, neighbour: int | None, source: Source) -> float:
    """Return 1 where the source has the two words side by side, less with their distance, 0 if it lacks one."""
    if neighbour is None:
        return 0.0
    here = source.positions.get(summary.keys[i], [])[:_MAX_POSITIONS]
    there = source.positions.get(summary.keys[neighbour], [])[:_MAX_POSITIONS]
    if not here or not there:
        return 0.0
    distance = min(abs(a - b) for a in here for b in there)
    return 1 / (1 + math.log(max(1, distance)))


def _dot(weights: Sequence[float], row: Sequence[float]) -> float:
    return math.fsum(weight * value for weight, value in zip(weights, row, strict=True))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def _logit(probability: float) -> float:
    return math.log(probability / (1 - probability))
