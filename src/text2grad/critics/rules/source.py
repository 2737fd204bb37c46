"""A source document, read once and asked often: does it support this word, name or number?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from text2grad.critics.rules.facts import Fact, key_facts
from text2grad.text.lexicon import word_set
from text2grad.text.words import Key, Text, Word

_SHORTEST_PART, _LONGEST_PART = 5, 20
_DEMONYM = re.compile("(?:ish|ian|an|ese|ic|i)$")
_DEMONYM_ROOT = 4
_LONGEST_ACRONYM = 6
_ROUNDING = 0.1
_ROUNDERS = word_set("about around almost nearly over roughly approximately some than least under")


@dataclass(frozen=True)
class Source:
    """What is derived from `text` is computed when it is first asked for, and kept."""

    text: Text

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        return key_facts(self.text)

    @cached_property
    def trigrams(self) -> dict[tuple[Key, ...], list[int]]:
        """Where each run of three words begins."""
        places: dict[tuple[Key, ...], list[int]] = defaultdict(list)
        for start in range(len(self.text.keys) - 2):
            places[self.text.keys[start : start + 3]].append(start)
        return dict(places)

    def supports_word(self, word: Word) -> bool:
        """Whether the source has the word or an inflection of it, or a compound of which one begins with the other."""
        if word.lexeme.stem in self._stems or word.lexeme.is_general:
            return True
        lowered = word.text.lower()
        return lowered in self._beginnings or not self._spellings.isdisjoint(_beginnings(lowered))

    def supports_name(self, name: Sequence[Word]) -> list[bool]:
        """For each word of a name, whether the source has it, its demonym, its acronym or what it is an acronym of."""
        content = [word for word in name if word.is_content]
        initials = "".join(word.text[0] for word in content).lower()
        is_spelt_out = len(content) > 1 and initials in self._spellings
        return [is_spelt_out or not word.is_content or self._supports_name_word(word) for word in name]

    def supports_number(self, word: Word, previous: Word | None) -> bool:
        """Whether the source has the number; after "about" or "more than", one within a tenth of it will do."""
        if word.lexeme.is_general or not self._values.isdisjoint(word.lexeme.values):
            return True
        if previous is None or previous.text.lower() not in _ROUNDERS:
            return False
        return any(abs(ours - theirs) <= _ROUNDING * theirs for ours in word.lexeme.values for theirs in self._values)

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
    def _beginnings(self) -> frozenset[str]:
        return frozenset(part for spelling in self._spellings for part in _beginnings(spelling))

    @cached_property
    def _values(self) -> frozenset[float]:
        return frozenset(value for word in self.text.words for value in word.lexeme.values)

    @cached_property
    def _name_roots(self) -> frozenset[str]:
        return frozenset(word.text.lower()[:_DEMONYM_ROOT] for word in self.text.words if word.text[0].isupper())

    @cached_property
    def _initials(self) -> frozenset[str]:
        """Acronyms of the source's phrases, with and without the little words in them."""
        found: set[str] = set()
        for sentence in self.text.sentences:
            words = [self.text.words[i] for i in sentence]
            for phrase in (words, [word for word in words if word.is_content]):
                letters = "".join(word.text[0] for word in phrase).lower()
                for length in range(2, _LONGEST_ACRONYM + 1):
                    found.update(letters[i : i + length] for i in range(len(letters) - length + 1))
        return frozenset(found)


def _beginnings(spelling: str) -> list[str]:
    return [spelling[:length] for length in range(_SHORTEST_PART, min(_LONGEST_PART, len(spelling)))]
