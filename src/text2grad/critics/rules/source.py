"""A source document, indexed to check whether it supports a word, a name or a number."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from text2grad.critics.rules.facts import Fact, key_facts
from text2grad.text.lexicon import word_set
from text2grad.text.words import Key, Text, Word

_MIN_PREFIX, _MAX_PREFIX = 5, 20
_DEMONYM = re.compile("(?:ish|ian|an|ese|ic|i)$")
_DEMONYM_ROOT = 4
_MAX_ACRONYM = 6
_ROUNDING_TOLERANCE = 0.1
_ROUNDING_WORDS = word_set("about around almost nearly over roughly approximately some than least under")


@dataclass(frozen=True)
class Source:
    """A source text; its indices are computed on first use and cached."""

    text: Text

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """The key facts that a summary should state."""
        return key_facts(self.text)

    @cached_property
    def trigrams(self) -> dict[tuple[Key, ...], list[int]]:
        """The positions of each run of three words."""
        positions: dict[tuple[Key, ...], list[int]] = defaultdict(list)
        for start in range(len(self.text.keys) - 2):
            positions[self.text.keys[start : start + 3]].append(start)
        return dict(positions)

    @cached_property
    def positions(self) -> dict[Key, list[int]]:
        """The positions of each word."""
        positions: dict[Key, list[int]] = defaultdict(list)
        for position, key in enumerate(self.text.keys):
            positions[key].append(position)
        return dict(positions)

    @cached_property
    def sentence_content(self) -> tuple[frozenset[Key], ...]:
        """The content words of each sentence."""
        text = self.text
        return tuple(frozenset(text.keys[i] for i in s if text.words[i].is_content) for s in text.sentences)

    def supports_word(self, word: Word) -> bool:
        """Whether the source has the word, an inflection of it, or a compound that shares a prefix with it."""
        if word.lexeme.stem in self._stems or word.lexeme.is_general:
            return True
        lowered = word.text.lower()
        return lowered in self._prefixes or not self._spellings.isdisjoint(_prefixes(lowered))

    def supports_name(self, name: Sequence[Word]) -> list[bool]:
        """Return for each word of a name whether the source has it, its demonym, its acronym or its expansion."""
        content = [word for word in name if word.is_content]
        initials = "".join(word.text[0] for word in content).lower()
        is_expansion = len(content) > 1 and initials in self._spellings
        return [is_expansion or not word.is_content or self._supports_name_word(word) for word in name]

    def supports_number(self, word: Word, previous: Word | None) -> bool:
        """Whether the source has the number; after "about" or "more than", one within 10% of it."""
        if word.lexeme.is_general or not self._values.isdisjoint(word.lexeme.values):
            return True
        if previous is None or previous.text.lower() not in _ROUNDING_WORDS:
            return False
        return any(
            abs(value - known) <= _ROUNDING_TOLERANCE * known for value in word.lexeme.values for known in self._values
        )

    def _supports_name_word(self, word: Word) -> bool:
        plain = word.text.lower().replace(".", "")
        if word.lexeme.stem in self._stems or plain in self._initials:
            return True
        return plain[:_DEMONYM_ROOT] in self._name_roots and _DEMONYM.search(plain) is not None

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(word.lexeme.stem for word in self.text.words)

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return frozenset(word.text.lower().replace(".", "") for word in self.text.words)

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(part for spelling in self._spellings for part in _prefixes(spelling))

    @cached_property
    def _values(self) -> frozenset[float]:
        return frozenset(value for word in self.text.words for value in word.lexeme.values)

    @cached_property
    def _name_roots(self) -> frozenset[str]:
        return frozenset(word.text.lower()[:_DEMONYM_ROOT] for word in self.text.words if word.text[0].isupper())

    @cached_property
    def _initials(self) -> frozenset[str]:
        """Possible acronyms of the source's phrases, with and without function words."""
        found: set[str] = set()
        for sentence in self.text.sentences:
            words = [self.text.words[i] for i in sentence]
            for phrase in (words, [word for word in words if word.is_content]):
                letters = "".join(word.text[0] for word in phrase).lower()
                for length in range(2, _MAX_ACRONYM + 1):
                    found.update(letters[i : i + length] for i in range(len(letters) - length + 1))
        return frozenset(found)


def _prefixes(spelling: str) -> list[str]:
    return [spelling[:length] for length in range(_MIN_PREFIX, min(_MAX_PREFIX, len(spelling)))]
