"""The few facts of a document that a summary of it should tell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from text2grad.text.lexicon import CALENDAR_WORDS, word_set
from text2grad.text.words import Key, Text, Word, consecutive_runs, find_names

MAX_FACTS = 6
# So that no single sentence holds them all: copying the first one earns a part at most.
FACTS_PER_SENTENCE = 2

# Roughly how often each kind of a short report's content turns up in a person's summary of it.
_SALIENCE = {"name": 0.75, "number": 0.65, "year": 0.45, "spelt number": 0.45, "word": 0.3}
_REPETITION_BONUS = 0.4
_LATENESS_MALUS = 0.5
# A word that is said only once is a fact only where there are few others.
_ENOUGH_FACTS = 4
# More capitals in a row are a headline or a list.
_LONGEST_NAME = 8

_COMPANIONS_NEEDED, _COMPANY = 2, 8
_COUNT_JOINTS = word_set("of the a an and or per to more")


@dataclass(frozen=True, slots=True)
class Fact:
    """A name, a number or a central word of the source, with the words that stand around it there.

    text: how the source puts it; a number comes with what it counts.
    keys: the fact's own words.
    companions: the content words of the sentences that speak of it.
    acronym: the initials of a name of several words.
    """

    text: str
    keys: tuple[Key, ...]
    companions: frozenset[Key]
    acronym: str | None

    def mentions(self, text: Text) -> Iterator[range]:
        """Runs of words that name the fact: most of its words in a row, its last word as a name, or its acronym."""
        for sentence in text.sentences:
            for run in consecutive_runs(
                i for i in sentence if text.keys[i] in self.keys or text.words[i].text == self.acronym
            ):
                if self._is_named_by(text.words[run.start : run.stop]):
                    yield run

    def is_told(self, text: Text, mention: range) -> bool:
        """Whether the mention is connected with what the source connects the fact with."""
        sentence = text.sentences[text.words[mention.start].sentence]
        window = range(max(sentence.start, mention.start - _COMPANY), min(sentence.stop, mention.stop + _COMPANY))
        found = self.companions.intersection(text.keys[window.start : window.stop])
        return len(found) >= min(_COMPANIONS_NEEDED, len(self.companions))

    def _is_named_by(self, words: Sequence[Word]) -> bool:
        last = words[-1]
        is_last_name = last.lexeme.key == self.keys[-1] and last.text[0].isupper()
        distinct = {word.lexeme.key for word in words}
        return is_last_name or last.text == self.acronym or 2 * len(distinct) > len(self.keys)


class _Candidate(NamedTuple):
    salience: float
    words: range
    is_plain: bool


def key_facts(text: Text) -> tuple[Fact, ...]:
    """The most salient names, numbers and words, at most MAX_FACTS and spread over the sentences, in reading order."""
    per_sentence = max(FACTS_PER_SENTENCE, math.ceil(MAX_FACTS / max(1, len(text.sentences))))
    chosen: list[range] = []
    taken: set[Key] = set()
    used: Counter[int] = Counter()
    for candidate in sorted(_candidates(text), key=lambda c: (-c.salience, c.words.start)):
        sentence = text.words[candidate.words.start].sentence
        keys = {text.keys[i] for i in candidate.words if text.words[i].is_content}
        is_enough = len(chosen) >= (_ENOUGH_FACTS if candidate.is_plain else MAX_FACTS)
        if is_enough or used[sentence] == per_sentence or keys & taken:
            continue
        chosen.append(candidate.words)
        taken |= keys
        used[sentence] += 1
    return tuple(_fact(text, words) for words in sorted(chosen, key=lambda words: words.start))


def _candidates(text: Text) -> Iterator[_Candidate]:
    counts = Counter(text.keys)
    found = list(find_names(text))
    in_names = {i for name in found for i in name}
    for words in [*found, *(range(i, i + 1) for i in range(len(text.words)) if i not in in_names)]:
        first = text.words[words.start]
        if not first.is_content or first.lexeme.is_general or first.text.lower() in CALENDAR_WORDS:
            continue
        if len(words) > _LONGEST_NAME:
            continue
        if first.lexeme.is_number and _follows_number(text, words.start):
            continue
        kind = "name" if words.start in in_names else _kind(first)
        count = max(counts[text.keys[i]] for i in words if text.words[i].is_content)
        lateness = first.sentence / len(text.sentences)
        salience = _SALIENCE[kind] + _REPETITION_BONUS * math.log2(count) - _LATENESS_MALUS * lateness
        yield _Candidate(salience, words, is_plain=kind == "word" and count == 1)


def _kind(word: Word) -> str:
    if not word.lexeme.is_number:
        return "word"
    if not any(letter.isdigit() for letter in word.text):
        return "spelt number"
    return "year" if word.text.isdigit() and len(word.text) == 4 else "number"


def _follows_number(text: Text, i: int) -> bool:
    """Of "38 of the 51", "11-9" and "4 and 5 May", the first number stands for both."""
    start = text.sentences[text.words[i].sentence].start
    return any(text.words[j].lexeme.is_number for j in range(max(start, i - 3), i))


def _fact(text: Text, words: range) -> Fact:
    keys = tuple(text.keys[i] for i in words if text.words[i].is_content)
    around = {word.sentence for word in text.words if word.lexeme.key in keys}
    companions = {word.lexeme.key for word in text.words if word.sentence in around and word.is_content}
    acronym = "".join(text.words[i].text[0] for i in words if text.words[i].is_content).upper()
    return Fact(_surface(text, words), keys, frozenset(companions.difference(keys)), acronym if len(keys) > 1 else None)


def _surface(text: Text, words: range) -> str:
    """The fact's own words; a number together with what it counts: "12,600 kettles", "41 per cent", "since 2015"."""
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
    """The word of `words` that names what the number before them counts."""
    for i in words:
        word = text.words[i]
        if text.after(i - 1) not in (" ", "-") or not (word.is_content or word.text in _COUNT_JOINTS):
            return None
        if word.is_content and not word.lexeme.is_number:
            return i
    return None
