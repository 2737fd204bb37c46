"""Spans for the parts of a completion that a comment quotes or names, labelled with the comment's stance."""

from __future__ import annotations

import re

from text2grad.align.normalize import splits_words
from text2grad.align.quotations import find_quotations
from text2grad.align.quotes import locate_quotes
from text2grad.align.stance import detect_stances, sentence_around
from text2grad.schema import Label, Range, Span

_MAX_NAME_WORDS = 8
_NAMED_CONFIDENCE = 0.8  # a word that is not quoted may refer to something else

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
    found: list[Range] = []
    for match in _DISTINCTIVE.finditer(comment):
        if match.lastgroup == "name":
            found += _find_names(comment, match.span(), completion)
        elif not (match.lastgroup == "number" and _counts_text(match)) and _find_whole(match[0], completion):
            found.append(match.span())
    return found


def spans_from_comment(
    comment: str, completion: str, *, label: Label | None = None, critic: str = ""
) -> tuple[list[Span], list[str]]:
    """Return spans on the parts of `completion` that `comment` is about, and the quotations that it does not contain.

    Quotations count; if none of them is blamed or praised, so do words that are named. `label` overrides the comment's
    own stance on each (see `stance`). What the comment suggests instead is neither a span nor unmatched.
    A span's phrase is the quotation in the comment, its reason the sentence around the quotation.
    """
    quotations = find_quotations(comment)
    names: list[Range] = []
    labelled = _label_ranges(comment, quotations, completion)
    if not labelled:
        mentions = find_mentions(comment, completion)
        quoted = {position for start, end in quotations for position in range(start, end)}
        names = [name for name in mentions if quoted.isdisjoint(range(*name))]
        quotations = sorted(quotations + names)
        labelled = _label_ranges(comment, quotations, completion)

    quotes = [comment[start:end] for (start, end), _ in labelled]
    sentences = [comment[slice(*sentence_around(comment, phrase, quotations))].strip() for phrase, _ in labelled]
    matches = locate_quotes(quotes, completion, contexts=sentences)
    spans: dict[tuple[int, int, Label], Span] = {}
    for sentence, (phrase, stance), match in zip(sentences, labelled, matches, strict=True):
        if match is None:
            continue
        span = Span(
            start=match.start,
            end=match.end,
            label=label or stance,
            phrase=phrase,
            reason=sentence,
            critic=critic,
            match=match.kind,
            confidence=match.confidence * (_NAMED_CONFIDENCE if phrase in names else 1.0),
        )
        spans.setdefault((span.start, span.end, span.label), span)
    return list(spans.values()), [quote for quote, match in zip(quotes, matches, strict=True) if match is None]


def _label_ranges(comment: str, ranges: list[Range], completion: str) -> list[tuple[Range, Label]]:
    """Return the ranges that the comment blames or praises, with their labels."""
    found = locate_quotes([comment[start:end] for start, end in ranges], completion)
    stances = detect_stances(comment, ranges, occurs=lambda i: found[i] is not None)
    return [(bounds, stance) for bounds, stance in zip(ranges, stances, strict=True) if stance != "wanted"]


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
    pattern = r"\s+".join(re.escape(part) for part in word.split())
    return [match.start() for match in re.finditer(pattern, text) if not splits_words(text, match.span())]


def _counts_text(number: re.Match[str]) -> bool:
    """Whether the number counts parts of the text or errors in it: "2 errors", "line 3"."""
    comment, (start, end) = number.string, number.span()
    return bool(_COUNTS_AFTER.match(comment, end) or _COUNTS_BEFORE.search(comment[:start]))


def _starts_sentence(text: str, position: int) -> bool:
    before = text[:position].rstrip(" \t\"'“‘«(*-")
    return not before or before[-1] in ".!?:\n"
