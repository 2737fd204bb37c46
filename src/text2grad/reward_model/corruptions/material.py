"""What corruptions are made of: the parsed texts, and words, phrases and sentences of all of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from random import Random

from text2grad.schema import Example
from text2grad.text.lexicon import CALENDAR_WORDS, word_set
from text2grad.text.words import Text, Word, parse_text

_CLAUSE = re.compile(r", (?:which|who|where|after|as|because|while|although|with) [^,.;:()\"\n]{15,90}(?=[.,;])")
_PREPOSITIONS = word_set("in at on near from during after before with by for against under across since until")
_SENTENCE_WORDS = range(6, 31)
_SUFFIX = 3


@dataclass(frozen=True)
class FaithfulText:
    """A completion that agrees with its source. source: empty if the prompt has none."""

    example: Example
    source_text: str

    @cached_property
    def completion(self) -> Text:
        """The parsed completion."""
        return parse_text(self.example.completion)

    @cached_property
    def source(self) -> Text:
        """The parsed source."""
        return _parse_source(self.source_text)

    @cached_property
    def passage(self) -> Text:
        """What the answer was taken from, though the prompt may not have it: `meta["passage"]`, or the source."""
        passage = self.example.meta.get("passage")
        return self.source if passage is None else _parse_source(str(passage))

    @cached_property
    def known_keys(self) -> frozenset[object]:
        """The words of prompt and completion."""
        return frozenset([*self.source.keys, *self.completion.keys, *parse_text(self.example.prompt_text[-400:]).keys])

    def is_new(self, phrase: str) -> bool:
        """Whether a content word of the phrase is neither in the source nor in the completion."""
        return any(word.is_content and word.lexeme.key not in self.known_keys for word in parse_text(phrase).words)


@lru_cache(maxsize=1 << 10)
def _parse_source(text: str) -> Text:
    """Parse a source; several completions share one."""
    return parse_text(text)


def faithful_text(example: Example) -> FaithfulText:
    """The source is `meta["document"]`, where it is given: empty if there is none; otherwise the prompt."""
    return FaithfulText(example, str(example.meta.get("document", example.prompt_text)))


@dataclass(frozen=True)
class Pool:
    """Names, phrases, clauses, sentences and words of many texts; words by their last letters."""

    names: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    clauses: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    words: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def build_pool(texts: Sequence[FaithfulText]) -> Pool:
    """Collect the material of the sources, and of the completions without one."""
    pool = Pool()
    for text in {text.source_text or text.example.completion: text for text in texts}.values():
        parsed = text.source if text.source_text else text.completion
        pool.names.extend(sorted(set(names_of(parsed))))
        pool.phrases.extend(_phrases(parsed))
        pool.clauses.extend(_CLAUSE.findall(parsed.string))
        pool.sentences.extend(sentences_of(parsed))
        for word in sorted({word.text for word in parsed.words if is_replaceable(word)}):
            pool.words[word[-_SUFFIX:]].append(word)
    return pool


def pick_new(choices: Sequence[str], text: FaithfulText, rng: Random, tries: int = 8) -> str | None:
    """Return a random choice that says something new to this text; None if none is found in so many tries."""
    for _ in range(tries if choices else 0):
        choice = choices[rng.randrange(len(choices))]
        if text.is_new(choice):
            return choice
    return None


def names_of(text: Text) -> Iterator[str]:
    """Yield the names of a text, without dates."""
    for words in text.names:
        if not any(text.words[i].text.lower() in CALENDAR_WORDS for i in words):
            yield text.string[slice(*name_range(text, words))]


def name_range(text: Text, words: range) -> tuple[int, int]:
    """Return the characters of a name, without a possessive ending."""
    last = text.words[words[-1]]
    return text.words[words[0]].start, last.end - 2 * last.text.endswith(("'s", "’s"))


def is_replaceable(word: Word) -> bool:
    """Whether the word is lower case, long, and more than a general word: fit for an exchange."""
    plain = word.text.isalpha() and word.text.islower() and len(word.text) > _SUFFIX + 1
    return plain and word.is_content and not word.lexeme.is_number and not word.lexeme.is_general


def sentences_of(text: Text) -> Iterator[str]:
    """Yield sentences of ordinary length on one line, with the mark that ends them."""
    for sentence in text.sentences:
        start, last = text.words[sentence[0]].start, sentence[-1]
        string = text.string[start : text.words[last].end] + re.split(r"\s", text.after(last), maxsplit=1)[0]
        if len(sentence) in _SENTENCE_WORDS and string[-1] in ".!?" and "\n" not in string and string[0].isupper():
            yield string


def _phrases(text: Text) -> Iterator[str]:
    """Yield prepositional phrases that end in a name or a number: "in the town of Marburg", "since 1996"."""
    numbers = [range(i, i + 1) for i, word in enumerate(text.words) if word.lexeme.is_number and word.text[0].isdigit()]
    for words in [*text.names, *numbers]:
        following = text.words[words.stop] if words.stop < len(text.words) else None
        if following is not None and following.is_content and text.after(words[-1]) == " ":
            continue  # the phrase goes on: "for 85 dollars", "by Canadian musicians"
        for k in range(words[0] - 1, max(words[0] - 4, -1), -1):
            if text.after(k) != " " or text.words[k].starts_sentence:
                break
            if text.words[k].text in _PREPOSITIONS:
                yield text.string[text.words[k].start : name_range(text, words)[1]]
                break
