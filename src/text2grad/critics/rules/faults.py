"""What can be wrong with a summary: one pure function a rule, from the summary (and its source) to findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from text2grad.critics.rules.marks import Finding, Mark
from text2grad.critics.rules.source import Source
from text2grad.text.lexicon import (
    ARTICLES,
    AUXILIARIES,
    CONJUNCTIONS,
    IRREGULAR_VERBS,
    SUBJECTS,
    word_set,
)
from text2grad.text.words import Key, Text, consecutive_runs

NUMBER, NAME, WORD = 0.8, 0.7, 0.25
COPIED_LEAST, COPIED_PER_WORD, COPIED_PIECE = 0.6, 0.05, 20
REPEATED_LEAST, REPEATED_PER_WORD = 0.3, 0.05
LISTED_LEAST, LISTED_PER_WORD = 0.3, 0.1
PADDING_PER_WORD = 0.05
FILLER, BROKEN, LAYOUT, UNFINISHED = 0.5, 0.3, 0.2, 0.3

# A long fault is marked over a few words only: there it could still have been avoided.
REACH = 6
_PIECE = 2 * REACH

_REPEATED_RUN, _REPEATED_CONTENT = 4, 2
_RESTATED_CONTENT, _RESTATED_SHARE = 4, 0.8
_SHORTEST_SENTENCE = 4
_LEAST_FUNCTION_SHARE = 0.1
_ENUMERATION_STOPS, _ENUMERATION_STRIDE = 4, 5

_FINITE = word_set("is are was were has had will would")
_NEVER_AFTER = (
    dict.fromkeys(ARTICLES, ARTICLES | CONJUNCTIONS | (_FINITE - {"will"}) | word_set("be have of to from at with for"))
    | dict.fromkeys(word_set("of from with at for into"), CONJUNCTIONS | _FINITE | {"of"})
    | dict.fromkeys(word_set("in on to by"), _FINITE | {"of"})
)
_DOUBLED_RIGHTLY = frozenset({"had", "that"})
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
_LIST_MARK = r"[-*•#>]+[^\S\n]+"
_LINE_BREAK = re.compile(rf"(?<!\s)\s*\n\s*(?:{_LIST_MARK})?|\A{_LIST_MARK}")
_COMPLETE = re.compile(r"[.!?…。！？][\"'”’»)\]*]*\Z")


def unsupported_numbers(summary: Text, source: Source) -> Iterator[Finding]:
    for i, word in enumerate(summary.words):
        previous = None if word.starts_sentence else summary.words[i - 1]
        if word.lexeme.is_number and not source.supports_number(word, previous):
            yield Finding("number", range(i, i + 1), NUMBER, reach=1)


def unsupported_names(summary: Text, found: Iterable[range], source: Source) -> Iterator[Finding]:
    """One finding for each run of unsupported words in a name: of "Jo Falcato", only "Jo" if the source has Falcato."""
    for name in found:
        is_supported = source.supports_name(summary.words[name.start : name.stop])
        for run in consecutive_runs(i for i, supported in zip(name, is_supported, strict=True) if not supported):
            yield Finding("name", run, NAME, reach=len(run))


def unsupported_words(summary: Text, found: Iterable[range], source: Source) -> Iterator[Finding]:
    """Content words that are neither numbers nor part of the names `found`."""
    in_names = {i for name in found for i in name}
    for i, word in enumerate(summary.words):
        is_ordinary = word.is_content and not word.lexeme.is_number and i not in in_names
        if is_ordinary and not source.supports_word(word):
            yield Finding("word", range(i, i + 1), WORD, reach=1)


def fillers(summary: Text, source: Source) -> Iterator[Finding]:
    """Openings of sentences that talk about the text, unless the source itself talks so."""
    for sentence in summary.sentences:
        match = _FILLER.match(summary.string, summary.words[sentence.start].start)
        if match is None:
            continue
        opening = [i for i in sentence if summary.words[i].start < match.end()]
        if not all(source.supports_word(summary.words[i]) for i in opening if summary.words[i].is_content):
            yield Finding("filler", range(opening[0], opening[-1] + 1), FILLER, reach=REACH)


def copies(runs: Iterable[range]) -> Iterator[Finding]:
    """Blame lies where a copied run goes on, not where it begins: any summary shares a few words with its source."""
    for run in runs:
        for piece in _pieces(run, COPIED_PIECE):
            going_on = piece[min(REACH, len(piece) // 2) :]
            yield Finding("copied", going_on, max(COPIED_LEAST, COPIED_PER_WORD * len(piece)), REACH)


def repetitions(summary: Text) -> Iterator[Finding]:
    yield from _doubled_words(summary)
    runs = list(_repeated_runs(summary))
    yield from runs
    repeating = {summary.words[run.words.start].sentence for run in runs}
    yield from _restated_sentences(summary, besides=repeating)


def _doubled_words(summary: Text) -> Iterator[Finding]:
    for i in range(1, len(summary.words)):
        previous, word = summary.words[i - 1].text.lower(), summary.words[i].text.lower()
        if word == previous and summary.after(i - 1) == " " and word not in _DOUBLED_RIGHTLY:
            yield Finding("repeated", range(i, i + 1), REPEATED_LEAST, reach=1)


def _repeated_runs(summary: Text) -> Iterator[Finding]:
    """Runs of words, each within a sentence, that the summary has had before."""
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
                for piece in _pieces(range(i, end), COPIED_PIECE):
                    yield Finding("repeated", piece, max(REPEATED_LEAST, REPEATED_PER_WORD * len(piece)), REACH)


def _restated_sentences(summary: Text, besides: set[int]) -> Iterator[Finding]:
    said: set[Key] = set()
    for number, sentence in enumerate(summary.sentences):
        content = {summary.keys[i] for i in sentence if summary.words[i].is_content}
        is_restated = len(content) >= _RESTATED_CONTENT and len(content & said) >= _RESTATED_SHARE * len(content)
        if is_restated and number not in besides:
            yield Finding("repeated", sentence, max(REPEATED_LEAST, REPEATED_PER_WORD * len(sentence)), REACH)
        said |= content


def non_sentences(summary: Text) -> list[range]:
    """Sentences that are none: scraps, strings of key words without function words, enumerations, no sign of a verb."""
    return [
        sentence
        for sentence in summary.sentences
        if len(sentence) < _SHORTEST_SENTENCE
        or sum(not summary.words[i].is_content for i in sentence) < _LEAST_FUNCTION_SHARE * len(sentence)
        or _enumerates(summary, sentence)
        or not any(_hints_at_verb(summary, i, sentence) for i in sentence)
    ]


def _enumerates(summary: Text, sentence: range) -> bool:
    """Whether commas and conjunctions leave only a few words in a row, all through the sentence."""
    stops, stride, longest = 0, 0, 0
    for i in sentence[:-1]:
        is_conjunction = summary.words[i].text.lower() in CONJUNCTIONS
        stride = 0 if is_conjunction else stride + 1
        longest = max(longest, stride)
        if is_conjunction or _COMMA.search(summary.after(i)):
            stops, stride = stops + 1, 0
    return stops >= _ENUMERATION_STOPS and max(longest, stride + 1) <= _ENUMERATION_STRIDE


def _hints_at_verb(summary: Text, i: int, sentence: range) -> bool:
    """An auxiliary, a past form, a subject pronoun, or a word in -s that follows a noun and is not followed by one."""
    word = summary.words[i]
    lowered = word.text.lower()
    if lowered in AUXILIARIES or lowered in SUBJECTS:
        return True
    if not word.text.islower() or word.lexeme.is_number:
        return False
    if lowered in IRREGULAR_VERBS or (lowered.endswith("ed") and not lowered.endswith("eed")):
        return True
    if not lowered.endswith("s") or lowered.endswith(("ss", "us", "is")) or i in (sentence[0], sentence[-1]):
        return False
    before, after = summary.words[i - 1], summary.words[i + 1]
    follows_noun = before.is_content and not before.lexeme.is_number
    return follows_noun and (not after.is_content or after.lexeme.is_number or after.text[0].isupper())


def listings(non_sentences: Iterable[range]) -> Iterator[Finding]:
    for sentence in non_sentences:
        for piece in _pieces(sentence, _PIECE):
            yield Finding("listed", piece, max(LISTED_LEAST, LISTED_PER_WORD * len(piece)), REACH)


def broken_grammar(summary: Text) -> Iterator[Finding]:
    """Articles and prepositions before what never follows them: "the of", "a was", "from and"; "the" at the end."""
    for i, word in enumerate(summary.words):
        spelling = word.text.lower() if word.starts_sentence else word.text  # "A" inside a sentence is a label
        if spelling not in _NEVER_AFTER:
            continue
        gap = summary.after(i)
        if gap == " " and i + 1 < len(summary.words) and summary.words[i + 1].text in _NEVER_AFTER[spelling]:
            yield Finding("broken", range(i, i + 2), BROKEN, reach=2)
        elif gap[:1] in (".", "!", "?") and spelling in ("the", "an"):
            yield Finding("broken", range(i, i + 1), BROKEN, reach=1)


def padding(summary: Text, budget: int) -> Iterator[Finding]:
    """The words beyond the budget, sentence by sentence."""
    for sentence in summary.sentences:
        for piece in _pieces(range(max(budget, sentence.start), sentence.stop), _PIECE):
            yield Finding("padding", piece, PADDING_PER_WORD * len(piece), reach=REACH // 2)


def layout(summary: Text) -> Iterator[Mark]:
    """Line breaks and list marks between words. White space around the summary is no part of it."""
    body = summary.string.strip()
    offset = summary.string.find(body)
    for match in _LINE_BREAK.finditer(body):
        yield Mark("layout", offset + match.start(), offset + match.end(), LAYOUT)


def unfinished(summary: Text) -> Iterator[Finding]:
    if summary.words and not _COMPLETE.search(summary.string.rstrip()):
        last = len(summary.words) - 1
        yield Finding("unfinished", range(last, last + 1), UNFINISHED, reach=1)


def _pieces(words: range, size: int) -> Iterator[range]:
    for start in range(words.start, words.stop, size):
        yield range(start, min(start + size, words.stop))
