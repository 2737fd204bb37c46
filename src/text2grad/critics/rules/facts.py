"""The key facts of a document that its summary should state."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from text2grad.text.lexicon import CALENDAR_WORDS, word_set
from text2grad.text.words import Key, Text, Word, consecutive_runs

MAX_FACTS = 6
# No single sentence has them all, so that copying the first one earns only a part.
FACTS_PER_SENTENCE = 2

# Roughly how often each kind of content of a short report occurs in a human summary of it.
_SALIENCE = {"name": 0.75, "number": 0.65, "year": 0.45, "spelt number": 0.45, "word": 0.3}
_REPETITION_BONUS = 0.4
_LATENESS_PENALTY = 0.5
# A word that occurs only once is a fact only where there are few others.
_ENOUGH_FACTS = 4
# More capitalised words in a row are a headline or a list.
_MAX_NAME = 8

_MIN_CONTEXT, _CONTEXT_WINDOW = 2, 8
_COUNT_CONNECTORS = word_set("of the a an and or per to more")


@dataclass(frozen=True, slots=True)
class Fact:
    """A name, a number or a central word of the source, with its context there.

    text: its wording in the source; a number includes what it counts.
    keys: the fact's own words.
    context: the other content words of the sentences that mention it.
    acronym: the initials of a name of several words.
    """

    text: str
    keys: tuple[Key, ...]
    context: frozenset[Key]
    acronym: str | None

    def mentions(self, text: Text) -> Iterator[range]:
        """Yield runs of words that name the fact: most of its words in a row, its last word, or its acronym."""
        for sentence in text.sentences:
            for run in consecutive_runs(
                i for i in sentence if text.keys[i] in self.keys or text.words[i].text == self.acronym
            ):
                if self._is_named_by(text.words[run.start : run.stop]):
                    yield run

    def is_stated(self, text: Text, mention: range) -> bool:
        """Whether enough of the fact's context is near the mention."""
        sentence = text.sentences[text.words[mention.start].sentence]
        window = range(
            max(sentence.start, mention.start - _CONTEXT_WINDOW), min(sentence.stop, mention.stop + _CONTEXT_WINDOW)
        )
        found = self.context.intersection(text.keys[window.start : window.stop])
        return len(found) >= min(_MIN_CONTEXT, len(self.context))

    def _is_named_by(self, words: Sequence[Word]) -> bool:
        last = words[-1]
        is_last_name = last.lexeme.key == self.keys[-1] and last.text[0].isupper()
        distinct = {word.lexeme.key for word in words}
        return is_last_name or last.text == self.acronym or 2 * len(distinct) > len(self.keys)


def match_facts(
    text: Text, facts: Sequence[Fact], ignored: set[int], not_stating: set[int]
) -> tuple[list[range], list[Fact]]:
    """Return the first statement of each fact that is stated, and the facts that are not even mentioned.

    ignored: words that do not count, such as those beyond the length limit.
    not_stating: words that may mention a fact but not state it, such as copied ones.
    """
    stated, missing = [], []
    for fact in facts:
        mentions = [mention for mention in fact.mentions(text) if ignored.isdisjoint(mention)]
        stating = (m for m in mentions if not_stating.isdisjoint(m) and fact.is_stated(text, m))
        statement = next(stating, None)
        if statement is not None:
            stated.append(statement)
        elif not mentions:
            missing.append(fact)
    return stated, missing


class _Candidate(NamedTuple):
    salience: float
    words: range
    is_plain: bool


def key_facts(text: Text) -> tuple[Fact, ...]:
    """Return the most salient names, numbers and words, at most MAX_FACTS, spread over the sentences, in order."""
    per_sentence = max(FACTS_PER_SENTENCE, math.ceil(MAX_FACTS / max(1, len(text.sentences))))
    selected: list[range] = []
    taken: set[Key] = set()
    used: Counter[int] = Counter()
    for candidate in sorted(_candidates(text), key=lambda c: (-c.salience, c.words.start)):
        sentence = text.words[candidate.words.start].sentence
        keys = {text.keys[i] for i in candidate.words if text.words[i].is_content}
        is_enough = len(selected) >= (_ENOUGH_FACTS if candidate.is_plain else MAX_FACTS)
        if is_enough or used[sentence] == per_sentence or keys & taken:
            continue
        selected.append(candidate.words)
        taken |= keys
        used[sentence] += 1
    return tuple(_fact(text, words) for words in sorted(selected, key=lambda words: words.start))


def _candidates(text: Text) -> Iterator[_Candidate]:
    counts = Counter(text.keys)
    found = list(text.names)
    in_names = {i for name in found for i in name}
    for words in [*found, *(range(i, i + 1) for i in range(len(text.words)) if i not in in_names)]:
        first = text.words[words.start]
        if not first.is_content or first.lexeme.is_general or first.text.lower() in CALENDAR_WORDS:
            continue
        if len(words) > _MAX_NAME:
            continue
        if first.lexeme.is_number and _follows_number(text, words.start):
            continue
        kind = "name" if words.start in in_names else _kind(first)
        count = max(counts[text.keys[i]] for i in words if text.words[i].is_content)
        lateness = first.sentence / len(text.sentences)
        salience = _SALIENCE[kind] + _REPETITION_BONUS * math.log2(count) - _LATENESS_PENALTY * lateness
        yield _Candidate(salience, words, is_plain=kind == "word" and count == 1)


def _kind(word: Word) -> str:
    if not word.lexeme.is_number:
        return "word"
    if not any(letter.isdigit() for letter in word.text):
        return "spelt number"
    return "year" if word.text.isdigit() and len(word.text) == 4 else "number"


def _follows_number(text: Text, i: int) -> bool:
    """Whether a number is close before: of "38 of the 51", "11-9" and "4 and 5 May", only the first is a fact."""
    start = text.sentences[text.words[i].sentence].start
    return any(text.words[j].lexeme.is_number for j in range(max(start, i - 3), i))


def _fact(text: Text, words: range) -> Fact:
    keys = tuple(text.keys[i] for i in words if text.words[i].is_content)
    sentences = {word.sentence for word in text.words if word.lexeme.key in keys}
    context = {word.lexeme.key for word in text.words if word.sentence in sentences and word.is_content}
    acronym = "".join(text.words[i].text[0] for i in words if text.words[i].is_content).upper()
    return Fact(_surface(text, words), keys, frozenset(context.difference(keys)), acronym if len(keys) > 1 else None)


def _surface(text: Text, words: range) -> str:
    """Return the fact's wording; a number with what it counts: "12,600 kettles", "41 per cent", "since 2015"."""
    first, last = text.words[words.start], text.words[words.stop - 1]
    if first.lexeme.is_number:
        sentence = text.sentences[first.sentence]
        counted = _counted(text, range(words.stop, min(words.stop + 4, sentence.stop)))
        if counted is not None:
            last = text.words[counted]
        elif words.start > sentence.start and text.after(words.start - 1) == " ":
            first = text.words[words.start - 1]
    return text.string[first.start : last.end]


def _counted(text: Text, words: range) -> int | None:
    """Return the index of the word that names what the number before `words` counts."""
    for i in words:
        word = text.words[i]
        if text.after(i - 1) not in (" ", "-") or not (word.is_content or word.text in _COUNT_CONNECTORS):
            return None
        if word.is_content and not word.lexeme.is_number:
            return i
    return None
