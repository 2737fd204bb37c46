"""What a source has in the place of a number or name that it does not support: only where there is one candidate.

A number's kind is its unit: a year, a percentage, a currency, what it counts ("40 people"). A weekday and a month are
kinds too. A name's kind is the rest of the name ("Anna Falcato" for Inês Falcato) or the title before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from text2grad.critics.rules.source import Source
from text2grad.text.lexicon import word_set
from text2grad.text.words import Text, Word

Kind = tuple[str, ...]

_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_AGE = re.compile(r"-year-old\b")
_WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_MONTHS = word_set("january february march april june july august september october november december")
_DAYS_AND_MONTHS = _WEEKDAYS | _MONTHS
_MAX_GAP = 2  # words between a number and what it counts


def suggest(text: Text, words: range, source: Source) -> str | None:
    """Return text.words[words] as the source has it: with its number or name in the place of the unsupported one.

    None unless exactly one word or name is unsupported, and the source has exactly one candidate of its kind.
    """
    start, end = text.words[words.start].start, text.words[words.stop - 1].end
    found = [*_numbers(text, words, source), *_names(text, words, source)]
    if len(found) != 1:
        return None
    (place, replacement) = found[0]
    return text.string[start : place.start] + replacement + text.string[place.stop : end] if replacement else None


def _numbers(text: Text, words: range, source: Source) -> Iterator[tuple[range, str | None]]:
    """Yield the characters of each unsupported number or calendar word, and the source's only one of its kind."""
    for i in words:
        word = text.words[i]
        is_date = word.text.lower() in _DAYS_AND_MONTHS
        previous = text.words[i - 1] if i else None
        is_wrong_date = is_date and not source.supports_word(word)
        if is_wrong_date or (word.lexeme.is_number and not source.supports_number(word, previous)):
            yield range(word.start, word.end), _only(source, _kind(text, i), text)


def _only(source: Source, kind: Kind | None, text: Text) -> str | None:
    """Return the only number of this kind in the source that the text does not have already."""
    if kind is None:
        return None
    found = {
        source.text.keys[i]: word.text
        for i, word in enumerate(source.text.words)
        if _may_have_kind(word) and _kind(source.text, i) == kind and source.text.keys[i] not in text.keys
    }
    return next(iter(found.values())) if len(found) == 1 else None


def _may_have_kind(word: Word) -> bool:
    return word.lexeme.is_number or word.text.lower() in _DAYS_AND_MONTHS


def _kind(text: Text, i: int) -> Kind | None:
    word = text.words[i]
    lowered = word.text.lower()
    if lowered in _WEEKDAYS:
        return ("weekday",)
    if lowered in _MONTHS:
        return ("month",)
    if _YEAR.fullmatch(word.text):
        return ("year",)
    if word.text[-1] == "%":
        return ("%",)
    if word.text[0] in "$£€¥":
        return (word.text[0],)
    if _AGE.match(text.string, word.end):
        return ("age",)
    following = text.words[i + 1 : i + 1 + _MAX_GAP]
    counted = next((other for other in following if other.is_content and other.sentence == word.sentence), None)
    return ("counts", counted.lexeme.stem) if counted and not counted.lexeme.is_number else None


def _names(text: Text, words: range, source: Source) -> Iterator[tuple[range, str | None]]:
    """Yield the characters of the unsupported part of each name, and what the source has there."""
    for name in text.names:
        supported = source.supports_name([text.words[i] for i in name])
        wrong = [i for i, is_supported in zip(name, supported, strict=True) if not is_supported]
        if not wrong or not set(wrong) & set(words) or text.words[name.start].text.lower() in _DAYS_AND_MONTHS:
            continue
        run = range(wrong[0], wrong[-1] + 1)
        place = range(text.words[run.start].start, text.words[run.stop - 1].end)
        is_whole = set(run) <= set(words) and len(run) == len(wrong)
        yield place, _only_name(text, name, run, source) if is_whole else None


def _only_name(text: Text, name: range, wrong: range, source: Source) -> str | None:
    """Return the words that the source's names have around the same rest, or after the same title."""
    before, after = text.keys[name.start : wrong.start], text.keys[wrong.stop : name.stop]
    title = text.words[name.start - 1] if name.start else None
    keys, candidates = source.text.keys, set()
    for other in source.text.names:
        stop = other.stop - len(after)
        if keys[stop : other.stop] != after:
            continue
        if before:
            firsts = [i for i in range(other.start + len(before), stop) if keys[i - len(before) : i] == before]
        elif after:
            firsts = [stop - len(wrong)]
        else:
            previous = source.text.words[other.start - 1] if other.start else None
            is_alike = title and previous and title.is_content and title.lexeme.stem == previous.lexeme.stem
            firsts = [other.start] if is_alike else []
        for first in firsts:
            if other.start <= first < stop:
                start, end = source.text.words[first].start, source.text.words[stop - 1].end
                candidates.add(source.text.string[start:end])
    return candidates.pop() if len(candidates) == 1 else None
