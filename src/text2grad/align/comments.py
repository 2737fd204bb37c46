"""The parts of a completion that a comment quotes, and the distinctive words of it that the comment names."""

from __future__ import annotations

import re
from functools import lru_cache

from text2grad.align.clauses.stance import detect_stances, sentence_around
from text2grad.align.quotes.normalize import splits_words
from text2grad.align.quotes.quotations import find_quotations
from text2grad.align.quotes.quotes import Match, locate_quotes
from text2grad.schema import Range

_MAX_NAME_WORDS = 8

_IDENTIFIER = r"[^\W\d]\w*_\w+|_+[^\W\d]\w*|[a-z]+[A-Z]\w*|[^\W\d][\w.]*(?=\(\))"
_NUMBER = r"[$€£]?\d+(?:[.,:/-]\d+)*%?"
_CAPITALISED = r"(?:(?:[A-Z]\.){2,}|[A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁ][\w-]*)"
_DISTINCTIVE = re.compile(
    rf"(?<![\w$€£])(?:(?P<identifier>{_IDENTIFIER})|(?P<number>{_NUMBER})"
    rf"|(?P<name>{_CAPITALISED}(?:\s+{_CAPITALISED})*))(?!\w)"
)
_ABOUT_TEXT = (
    r"(?:answers?|responses?|summar(?:y|ies)|outputs?|texts?|sources?|articles?|sentences?|paragraphs?|lines?|words?"
    r"|points?|errors?|mistakes?|problems?|issues?|bugs?|parts?|sections?|times|examples?)"
)
_COUNTS_AFTER = re.compile(rf"\s+(?:\w+\s+)?{_ABOUT_TEXT}\b", re.IGNORECASE)
_COUNTS_BEFORE = re.compile(rf"\b{_ABOUT_TEXT}\s+$", re.IGNORECASE)
_NOT_A_NAME = re.compile(
    rf"{_ABOUT_TEXT}|i|a|an|the|this|that|these|those|it|its|he|she|they|we|you|his|her|their|our|your|my|in|on|at|of"
    r"|to|for|from|by|with|and|or|but|if|when|while|where|what|why|how|who|which|there|here|no|not|yes|so|as|also"
    r"|however|although|though|because|after|before|good|great|nice|wrong|please",
    re.IGNORECASE,
)


def find_mentions(comment: str, completion: str) -> list[Range]:
    """Return the ranges of the comment that name words of the completion without quoting them.

    Only distinctive words count, and only if the completion has them as whole words in the same spelling: numbers (but
    not "2 errors" or "line 3"), identifiers (`snake_case`, `camelCase`, `call()`), and names (capitalised words);
    one that starts a sentence of the comment must be capitalised within a sentence of the completion. Of several
    capitalised words in a row, the longest run that the completion has.
    """
    return list(_find_mentions(comment, completion))


@lru_cache(maxsize=16)  # asked for each clause of a comment
def _find_mentions(comment: str, completion: str) -> tuple[Range, ...]:
    found: list[Range] = []
    for match in _DISTINCTIVE.finditer(comment):
        if match.lastgroup == "name":
            found += _find_names(comment, match.span(), completion)
        elif not (match.lastgroup == "number" and _counts_text(match)) and _find_whole(match[0], completion):
            found.append(match.span())
    return tuple(found)


def cited_quotations(comment: str, completion: str) -> list[tuple[Range, Match | None]]:
    """Return the quotations of what the completion says, each with its place, None where it is not found.

    What the comment suggests instead ('should be "X"') and the words of the source are left out (see `stance`).
    """
    ranges = find_quotations(comment)
    if not ranges:
        return []
    found = locate_quotes([comment[start:end] for start, end in ranges], completion)
    stances = detect_stances(comment, ranges, occurs=lambda i: found[i] is not None)
    cited = [bounds for bounds, stance in zip(ranges, stances, strict=True) if stance != "wanted"]
    quotes = [comment[start:end] for start, end in cited]
    contexts = [comment[slice(*sentence_around(comment, bounds, ranges))].strip() for bounds in cited]
    return list(zip(cited, locate_quotes(quotes, completion, contexts=contexts), strict=True))


def _find_names(comment: str, bounds: Range, completion: str) -> list[Range]:
    """Return the longest runs of the capitalised words in `bounds` that are names in the completion."""
    start, end = bounds
    words = [(start + word.start(), start + word.end()) for word in re.finditer(r"\S+", comment[start:end])]
    for size in range(min(len(words), _MAX_NAME_WORDS), 0, -1):
        for first in range(len(words) - size + 1):
            run = (words[first][0], words[first + size - 1][1])
            if _is_name(comment, run, completion):
                before, after = (start, run[0]), (run[1], end)
                return [*_find_names(comment, before, completion), run, *_find_names(comment, after, completion)]
    return []


def _is_name(comment: str, bounds: Range, completion: str) -> bool:
    start, end = bounds
    if _NOT_A_NAME.fullmatch(comment, start, end):
        return False
    places = _find_whole(comment[start:end], completion)
    if " " not in comment[start:end] and _starts_sentence(comment, start):
        return any(not _starts_sentence(completion, place) for place in places)
    return bool(places)


def _find_whole(word: str, text: str) -> list[int]:
    """Return the positions of `word` in `text` as whole words in this spelling."""
    parts = word.split()
    if any(part not in text for part in parts):
        return []  # most are not there, and to compile a pattern is slow
    pattern = r"\s+".join(map(re.escape, parts))
    return [match.start() for match in re.finditer(pattern, text) if not splits_words(text, match.span())]


def _counts_text(number: re.Match[str]) -> bool:
    """Whether the number counts parts of the text or errors in it: "2 errors", "line 3"."""
    comment, (start, end) = number.string, number.span()
    return bool(_COUNTS_AFTER.match(comment, end) or _COUNTS_BEFORE.search(comment[:start]))


def _starts_sentence(text: str, position: int) -> bool:
    before = text[:position].rstrip(" \t\"'“‘«(*-")
    return not before or before[-1] in ".!?:\n"
