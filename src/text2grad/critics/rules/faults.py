"""Faults of a summary: one pure function per rule, from the summary (and its source) to findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from text2grad.critics.rules.findings import Finding
from text2grad.critics.rules.source import Source
from text2grad.text.lexicon import ARTICLES, CONJUNCTIONS, word_set
from text2grad.text.words import Key, Text, consecutive_runs

NUMBER, NAME, WORD = 0.8, 0.7, 0.25
REPEATED_MIN, REPEATED_PER_WORD, REPEATED_CHUNK = 0.3, 0.05, 20
FILLER, BROKEN, UNFINISHED = 0.5, 0.3, 0.3

_REPEATED_RUN, _REPEATED_CONTENT = 4, 2
_RESTATED_CONTENT, _RESTATED_SHARE = 4, 0.8
_MIN_SENTENCE = 5
_MIN_FUNCTION_SHARE = 0.1
_ENUMERATION_SEPARATORS, _ENUMERATION_ITEM = 4, 5

_FINITE = word_set("is are was were has had will would")
_NEVER_AFTER = (
    dict.fromkeys(ARTICLES, ARTICLES | CONJUNCTIONS | (_FINITE - {"will"}) | word_set("be have of to from at with for"))
    | dict.fromkeys(word_set("of from with at for into"), CONJUNCTIONS | _FINITE | {"of"})
    | dict.fromkeys(word_set("in on to by"), _FINITE | {"of"})
)
_DOUBLED_CORRECTLY = frozenset({"had", "that"})
_FILLER = re.compile(
    r"""
    (?:sure|certainly|of\ course|here(?:['’]s|\ is|\ are)|below\ is)\b[^.!?\n]{0,60}?[:,!]
    |(?:in\ (?:summary|short|conclusion)|to\ (?:summari[sz]e|sum\ up))\b
    |(?:in\ )?(?:this|the)\ (?:text|article|passage|document|paper|report|story|piece|essay|study|summary|author
     |writer)s?\b(?:[,\ ]+\w+){0,3}?[,\ ]+(?:discuss|describ|highlight|explor|explain|present|provid|focus|examin
     |mention|outlin|talk|tell|detail|emphasi[sz]|propos|investigat|introduc|show|say|state|report)\w*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_COMMA = re.compile("[,;:|/]")
_COMPLETE = re.compile(r"[.!?…。！？][\"'”’»)\]*]*\Z")


def unsupported_numbers(summary: Text, source: Source) -> Iterator[Finding]:
    """Yield numbers whose value the source does not have."""
    for i, word in enumerate(summary.words):
        previous = None if word.starts_sentence else summary.words[i - 1]
        if word.lexeme.is_number and not source.supports_number(word, previous):
            yield Finding("number", range(i, i + 1), NUMBER, max_words=1)


def unsupported_names(summary: Text, found: Iterable[range], source: Source) -> Iterator[Finding]:
    """Yield each run of unsupported words in a name: of "Jo Falcato", only "Jo" if the source has Falcato."""
    for name in found:
        is_supported = source.supports_name(summary.words[name.start : name.stop])
        for run in consecutive_runs(i for i, supported in zip(name, is_supported, strict=True) if not supported):
            yield Finding("name", run, NAME, max_words=len(run))


def unsupported_words(summary: Text, found: Iterable[range], source: Source) -> Iterator[Finding]:
    """Yield unsupported content words that are neither numbers nor part of the names `found`."""
    in_names = {i for name in found for i in name}
    for i, word in enumerate(summary.words):
        is_ordinary = word.is_content and not word.lexeme.is_number and i not in in_names
        if is_ordinary and not source.supports_word(word):
            yield Finding("word", range(i, i + 1), WORD, max_words=1)


def fillers(summary: Text, source: Source) -> Iterator[Finding]:
    """Yield sentence openings that are about the text, unless the source uses the same words."""
    for sentence in summary.sentences:
        match = _FILLER.match(summary.string, summary.words[sentence.start].start)
        if match is None:
            continue
        opening = [i for i in sentence if summary.words[i].start < match.end()]
        if not all(source.supports_word(summary.words[i]) for i in opening if summary.words[i].is_content):
            yield Finding("filler", range(opening[0], opening[-1] + 1), FILLER)


def repetitions(summary: Text) -> Iterator[Finding]:
    """Yield doubled words, runs of words that occurred before, and sentences with little new content."""
    yield from _doubled_words(summary)
    runs = list(_repeated_runs(summary))
    yield from runs
    repeating = {summary.words[run.words.start].sentence for run in runs}
    yield from _restated_sentences(summary, excluded=repeating)


def _doubled_words(summary: Text) -> Iterator[Finding]:
    for i in range(1, len(summary.words)):
        previous, word = summary.words[i - 1].text.lower(), summary.words[i].text.lower()
        if word == previous and summary.after(i - 1) == " " and word not in _DOUBLED_CORRECTLY:
            yield Finding("repeated", range(i, i + 1), REPEATED_MIN, max_words=1)


def _repeated_runs(summary: Text) -> Iterator[Finding]:
    """Yield runs of words, each within a sentence, that occurred earlier in the summary."""
    keys = summary.keys
    first_at: dict[tuple[Key, ...], int] = {}
    for sentence in summary.sentences:
        repeated_until = sentence.start
        for i in range(sentence.start, sentence.stop - _REPEATED_RUN + 1):
            earlier = first_at.setdefault(keys[i : i + _REPEATED_RUN], i)
            if earlier == i or i < repeated_until:
                continue
            end = i + _REPEATED_RUN
            while end < sentence.stop and keys[end] == keys[earlier + end - i]:
                end += 1
            repeated_until = end
            if sum(summary.words[j].is_content for j in range(i, end)) >= _REPEATED_CONTENT:
                for chunk in _chunks(range(i, end), REPEATED_CHUNK):
                    yield Finding("repeated", chunk, max(REPEATED_MIN, REPEATED_PER_WORD * len(chunk)))


def _restated_sentences(summary: Text, excluded: set[int]) -> Iterator[Finding]:
    seen: set[Key] = set()
    for number, sentence in enumerate(summary.sentences):
        content = {summary.keys[i] for i in sentence if summary.words[i].is_content}
        is_restated = len(content) >= _RESTATED_CONTENT and len(content & seen) >= _RESTATED_SHARE * len(content)
        if is_restated and number not in excluded:
            yield Finding("repeated", sentence, max(REPEATED_MIN, REPEATED_PER_WORD * len(sentence)))
        seen |= content


def non_sentences(summary: Text) -> list[range]:
    """Return what is no sentence: fragments, key words without function words, enumerations."""
    return [
        sentence
        for sentence in summary.sentences
        if len(sentence) < _MIN_SENTENCE
        or sum(not summary.words[i].is_content for i in sentence) < _MIN_FUNCTION_SHARE * len(sentence)
        or _is_enumeration(summary, sentence)
    ]


def _is_enumeration(summary: Text, sentence: range) -> bool:
    """Whether commas and conjunctions separate only a few words at a time, all through the sentence."""
    separators, length, longest = 0, 0, 0
    for i in sentence[:-1]:
        is_conjunction = summary.words[i].text.lower() in CONJUNCTIONS
        length = 0 if is_conjunction else length + 1
        longest = max(longest, length)
        if is_conjunction or _COMMA.search(summary.after(i)):
            separators, length = separators + 1, 0
    return separators >= _ENUMERATION_SEPARATORS and max(longest, length + 1) <= _ENUMERATION_ITEM


def broken_grammar(summary: Text) -> Iterator[Finding]:
    """Yield articles and prepositions before words that never follow them ("the of", "a was"), and a final "the"."""
    for i, word in enumerate(summary.words):
        spelling = word.text.lower() if word.starts_sentence else word.text  # "A" inside a sentence is a label
        if spelling not in _NEVER_AFTER:
            continue
        gap = summary.after(i)
        if gap == " " and i + 1 < len(summary.words) and summary.words[i + 1].text in _NEVER_AFTER[spelling]:
            yield Finding("broken", range(i, i + 2), BROKEN, max_words=2)
        elif gap[:1] in (".", "!", "?") and spelling in ("the", "an"):
            yield Finding("broken", range(i, i + 1), BROKEN, max_words=1)


def unfinished(summary: Text) -> Iterator[Finding]:
    """Yield the last word if no full stop follows it."""
    if summary.words and not ends_with_full_stop(summary):
        last = len(summary.words) - 1
        yield Finding("unfinished", range(last, last + 1), UNFINISHED, max_words=1)


def ends_with_full_stop(summary: Text) -> bool:
    """Whether the text ends with a full stop, a question mark or the like."""
    return _COMPLETE.search(summary.string.rstrip()) is not None


def _chunks(words: range, size: int) -> Iterator[range]:
    for start in range(words.start, words.stop, size):
        yield range(start, min(start + size, words.stop))
