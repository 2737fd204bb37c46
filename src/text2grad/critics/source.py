"""What a source document says: the words it supports and the few facts that a summary of it should tell."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from text2grad.critics.lexicon import CALENDAR_WORDS
from text2grad.critics.words import Text, Word, read

MAX_FACTS = 6
# Facts of one sentence, so that no single sentence holds them all.
FACTS_PER_SENTENCE = 2

# How often the kinds turn up in summaries that people write of short reports; only their order matters.
_SALIENCE = {"name": 0.75, "number": 0.65, "year": 0.45, "spelt number": 0.45, "word": 0.3}
_REPETITION_BONUS = 0.4
_LATENESS_MALUS = 0.5
# A word that is said only once is a fact only where there are few others.
_ENOUGH_FACTS = 4

_NAME_JOINTS = (" ", "-")
_COUNT_JOINTS = frozenset("of the a an and or per to more".split())
_NAME_PARTICLES = frozenset("of de del da do du des la le el al van von der den bin".split())

_SHORTEST_PREFIX = 5
_DEMONYM = re.compile("(?:ish|ian|an|ese|ic|i)$")
_DEMONYM_ROOT = 4
_ROUNDING = 0.1
_ROUNDERS = frozenset("about around almost nearly over roughly approximately some than least under".split())


@dataclass(frozen=True, slots=True)
class Fact:
    """A name, a number or a central word of the source, with the words that stand around it there.

    keys: the fact's own words, as `Lexeme.key`; a mention has at least half of them.
    companions: the keys of the sentences that speak of it. Telling a fact means to connect it with some of them.
    """

    text: str
    keys: tuple[str | float, ...]
    companions: frozenset[str | float]
    acronym: str | None = None


@dataclass(frozen=True)
class Source:
    """A document, read once and asked often."""

    text: Text

    @cached_property
    def keys(self) -> list[str | float]:
        return [word.lexeme.key for word in self.text.words]

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        return key_facts(self.text)

    @cached_property
    def trigrams(self) -> dict[tuple[str | float, ...], list[int]]:
        """Where each run of three words begins."""
        places: dict[tuple[str | float, ...], list[int]] = defaultdict(list)
        for start in range(len(self.keys) - 2):
            places[tuple(self.keys[start : start + 3])].append(start)
        return places

    def supports_word(self, word: Word) -> bool:
        """Whether the source has the word, an inflection of it, or a compound that begins with it or that it begins."""
        stem = word.lexeme.stem
        if stem in self._stems or word.lexeme.is_general:
            return True
        lowered = word.text.lower()
        return lowered in self._prefixes or any(
            lowered[:length] in self._spellings for length in range(_SHORTEST_PREFIX, len(lowered))
        )

    def supports_name(self, name: Sequence[Word]) -> list[bool]:
        """For each word of a name, whether the source has it, its demonym, its acronym or what it is an acronym of."""
        if "".join(word.text[0] for word in name).lower() in self._spellings and len(name) > 1:
            return [True] * len(name)
        return [self._supports_name_word(word) for word in name]

    def supports_number(self, word: Word, previous: Word | None) -> bool:
        """Whether the source has the number; after "about" or "more than", one within a tenth of it will do."""
        if word.lexeme.is_general or not self._values.isdisjoint(word.lexeme.values):
            return True
        if previous is None or previous.text.lower() not in _ROUNDERS:
            return False
        return any(abs(ours - theirs) <= _ROUNDING * theirs for ours in word.lexeme.values for theirs in self._values)

    def _supports_name_word(self, word: Word) -> bool:
        if word.lexeme.stem in self._stems:
            return True
        plain = word.text.lower().replace(".", "")
        if plain in self._initials:
            return True
        return bool(_DEMONYM.search(plain)) and plain[:_DEMONYM_ROOT] in self._name_roots

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(word.lexeme.stem for word in self.text.words)

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return frozenset(word.text.lower().replace(".", "") for word in self.text.words)

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(s[:length] for s in self._spellings for length in range(_SHORTEST_PREFIX, len(s)))

    @cached_property
    def _values(self) -> frozenset[float]:
        return frozenset(value for word in self.text.words for value in word.lexeme.values)

    @cached_property
    def _name_roots(self) -> frozenset[str]:
        return frozenset(word.text.lower()[:_DEMONYM_ROOT] for word in self.text.words if word.text[0].isupper())

    @cached_property
    def _initials(self) -> frozenset[str]:
        """Acronyms of runs of two to six words, with and without the little words among them."""
        found = set()
        for sentence in self.text.sentences:
            words = [self.text.words[i] for i in sentence]
            for letters in ([w.text[0] for w in words], [w.text[0] for w in words if w.is_content]):
                initials = "".join(letters).lower()
                found |= {initials[i : i + size] for size in range(2, 7) for i in range(len(initials) - size + 1)}
        return frozenset(found)


def name_runs(text: Text) -> Iterator[range]:
    """Ranges of words that form names: neighbours with capitals, with at most one particle ("de", "of") between two."""
    for sentence in text.sentences:
        start = end = sentence.start
        for i in sentence:
            if not _is_name_word(text, i, sentence):
                continue
            if start < end and _continues_name(text, end, i):
                end = i + 1
                continue
            if start < end:
                yield range(start, end)
            start, end = i, i + 1
        if start < end:
            yield range(start, end)


def _is_name_word(text: Text, i: int, sentence: range) -> bool:
    word = text.words[i]
    if not word.opens or word.looks_like_name:
        return word.looks_like_name
    # the capital of an opening word means nothing, unless a name goes on after it: "Kofi Asante-Boateng started ..."
    before_name = i + 1 in sentence and text.words[i + 1].looks_like_name and text.between(i) in _NAME_JOINTS
    return before_name and word.is_content and not word.lexeme.is_number and word.text[0].isupper()


def _continues_name(text: Text, end: int, i: int) -> bool:
    if any(text.between(j) not in _NAME_JOINTS for j in range(end - 1, i)):
        return False
    return i == end or (i == end + 1 and text.words[end].text in _NAME_PARTICLES)


class _Candidate(NamedTuple):
    salience: float
    words: range
    is_plain: bool


def key_facts(text: Text) -> tuple[Fact, ...]:
    """The most salient names, numbers and words, at most MAX_FACTS and spread over the sentences, in reading order."""
    per_sentence = max(FACTS_PER_SENTENCE, -(-MAX_FACTS // max(1, len(text.sentences))))
    chosen: list[range] = []
    taken: set[str | float] = set()
    used: Counter[int] = Counter()
    for candidate in sorted(_candidates(text), key=lambda c: (-c.salience, c.words.start)):
        sentence = text.words[candidate.words.start].sentence
        keys = {text.words[i].lexeme.key for i in candidate.words}
        enough = len(chosen) >= (_ENOUGH_FACTS if candidate.is_plain else MAX_FACTS)
        if enough or used[sentence] == per_sentence or keys & taken:
            continue
        chosen.append(candidate.words)
        taken |= keys
        used[sentence] += 1
    return tuple(_fact(text, words) for words in sorted(chosen, key=lambda words: words.start))


def _candidates(text: Text) -> Iterator[_Candidate]:
    counts = Counter(word.lexeme.key for word in text.words)
    names = list(name_runs(text))
    in_names = {i for name in names for i in name}
    others = [range(i, i + 1) for i in range(len(text.words)) if i not in in_names]
    for words in names + others:
        first = text.words[words.start]
        if not first.is_content or first.lexeme.is_general or first.text.lower() in CALENDAR_WORDS:
            continue
        if first.lexeme.is_number and _follows_number(text, words.start):
            continue
        kind = "name" if words.start in in_names else _kind(first)
        count = max(counts[text.words[i].lexeme.key] for i in words)
        lateness = first.sentence / len(text.sentences)
        salience = _SALIENCE[kind] + _REPETITION_BONUS * math.log2(count) - _LATENESS_MALUS * lateness
        yield _Candidate(salience, words, is_plain=kind == "word" and count == 1)


def _kind(word: Word) -> str:
    if not word.lexeme.is_number:
        return "word"
    if word.text.isdigit() and len(word.text) == 4:
        return "year"
    return "number" if word.text[-1].isdigit() or word.text[0].isdigit() else "spelt number"


def _follows_number(text: Text, i: int) -> bool:
    """Of "38 of the 51", "11-9" and "4 and 5 May", the first number stands for both."""
    return any(text.words[j].lexeme.is_number for j in range(max(text.sentences[text.words[i].sentence].start, i - 3), i))


def _fact(text: Text, words: range) -> Fact:
    own = [text.words[i] for i in words]
    keys = tuple(word.lexeme.key for word in own)
    around = {word.sentence for word in text.words if word.lexeme.key in keys}
    companions = {word.lexeme.key for word in text.words if word.sentence in around and word.is_content}
    acronym = "".join(word.text[0] for word in own).lower() if len(own) > 1 else None
    return Fact(_surface(text, words), keys, frozenset(companions.difference(keys)), acronym)


def _surface(text: Text, words: range) -> str:
    """The fact's own words; a number together with what it counts: "12,600 kettles", "41 per cent", "since 2015"."""
    first, last = text.words[words.start], text.words[words.stop - 1]
    if first.lexeme.is_number:
        sentence = text.sentences[first.sentence]
        after = _counted(text, range(words.stop, min(words.stop + 4, sentence.stop)))
        if after is not None:
            last = text.words[after]
        elif words.start > sentence.start and text.between(words.start - 1) == " ":
            first = text.words[words.start - 1]
    return text.string[first.start : last.end]


def _counted(text: Text, words: range) -> int | None:
    """The word of `words` that names what the number before them counts."""
    for i in words:
        word = text.words[i]
        if text.between(i - 1) not in _NAME_JOINTS or not (word.is_content or word.text in _COUNT_JOINTS):
            return None
        if word.is_content and not word.lexeme.is_number:
            return i
    return None


def read_source(document: str) -> Source:
    return Source(read(document))
