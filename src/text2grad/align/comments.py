"""A written comment to spans: what it quotes or names, where that stands in the answer, and whether it is blamed."""

from __future__ import annotations

import re

from text2grad.align.normalize import splits_word
from text2grad.align.quotes import locate_all
from text2grad.align.stance import sentence_around, stances
from text2grad.schema import Label, Range, Span

_LONGEST_NAME = 8  # words
_NAMED_CONFIDENCE = 0.8  # a word that is merely named may be meant elsewhere

# Opening mark, contents, closing mark. A mark inside a word or after a number is an apostrophe or a unit, and single
# marks hold no further opening one: "the '90s were 'fun'" quotes "fun" alone.
_QUOTED = re.compile(
    r"```[\w+-]*\n(?P<fence>.+?)\n?```"
    r"|``(?P<ticks>.+?)``"
    r"|`(?P<tick>[^`\n]+)`"
    r'|(?<!\w)"(?P<straight>(?:(?!\n\s*\n)[^"])*)"(?!\w)'
    r"|“(?P<curly>(?:(?!\n\s*\n)[^“”])+)”"
    r"|„(?P<low>(?:(?!\n\s*\n)[^„“”])+)[“”]"
    r"|«(?P<angle>(?:(?!\n\s*\n)[^«»])+)»"
    r"|「(?P<corner>[^「」]+)」"
    r"|(?<!\w)'(?=\S)(?P<single>(?:(?!(?<!\w)')[^\n])*?[^\s'])'(?!\w)"
    r"|(?<!\w)‘(?=\S)(?P<curly_single>(?:(?!‘)[^\n])*?[^\s’])’(?!\w)",
    re.DOTALL,
)

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
_NO_NAME = re.compile(
    rf"{_ABOUT_TEXT}|i|a|an|the|this|that|these|those|it|its|he|she|they|we|you|his|her|their|our|your|my|in|on|at|of"
    r"|to|for|from|by|with|and|or|but|if|when|while|where|what|why|how|who|which|there|here|no|not|yes|so|as|also"
    r"|however|although|though|because|after|before|good|great|nice|wrong|please",
    re.IGNORECASE,
)


def quoted(comment: str) -> list[Range]:
    """The quotations in a comment: ranges of their contents, without the marks.

    Marks are "...", “...”, „...“, «...», 「...」, '...' and ‘...’ where they are no apostrophes, and code ticks, also
    double or as a fence. Of nested quotations the outer one counts; an opening mark that is never closed opens none.
    """
    ranges = [match.span(match.lastgroup or 0) for match in _QUOTED.finditer(comment)]
    return [(start, end) for start, end in ranges if comment[start:end].strip()]


def named(comment: str, completion: str) -> list[Range]:
    """The words of the completion that a comment names without quoting them; ranges in the comment.

    Only what is distinctive counts, and only if the completion has it as whole words in the same spelling: numbers
    (but not "2 errors" or "line 3"), identifiers (`snake_case`, `camelCase`, `call()`), and names, that is capitalised
    words, at the start of a sentence only if the completion has them capitalised amid a sentence. Of several
    capitalised words in a row, the longest run that the completion has.
    """
    found: list[Range] = []
    for match in _DISTINCTIVE.finditer(comment):
        if match.lastgroup == "name":
            found += _names(comment, match.span(), completion)
        elif not (match.lastgroup == "number" and _counts_text(match)) and _places(match[0], completion):
            found.append(match.span())
    return found


def spans_from_comment(
    comment: str, completion: str, *, label: Label | None = None, critic: str = ""
) -> tuple[list[Span], list[str]]:
    """The parts of `completion` that `comment` is about, and the quotations that were not found in it.

    What the comment quotes counts; if it blames or praises nothing that it quotes, what it names. `label` overrides
    the comment's own stance on each (see `stance`). What it wants to see instead is neither a span nor unfound.
    A span's phrase is the quotation in the comment, its reason the sentence around that.
    """
    quotations = quoted(comment)
    names: list[Range] = []
    pointed = _pointed(comment, quotations, completion)
    if not pointed:
        names = [name for name in named(comment, completion) if not any(_overlap(name, other) for other in quotations)]
        quotations = sorted(quotations + names)
        pointed = _pointed(comment, quotations, completion)

    quotes = [comment[start:end] for (start, end), _ in pointed]
    sentences = [_sentence(comment, phrase, quotations) for phrase, _ in pointed]
    spans: dict[tuple[int, int, Label], Span] = {}
    unmatched: list[str] = []
    for quote, sentence, (phrase, stance), match in zip(
        quotes, sentences, pointed, locate_all(quotes, completion, contexts=sentences), strict=True
    ):
        if match is None:
            unmatched.append(quote)
            continue
        span = Span(
            start=match.start,
            end=match.end,
            label=label or stance,
            phrase=phrase,
            reason=sentence,
            critic=critic,
            match=match.how,
            confidence=match.confidence * (_NAMED_CONFIDENCE if phrase in names else 1.0),
        )
        spans.setdefault((span.start, span.end, span.label), span)
    return list(spans.values()), unmatched


def _pointed(comment: str, ranges: list[Range], completion: str) -> list[tuple[Range, Label]]:
    """Those of the ranges that the comment blames or praises."""
    found = locate_all([comment[start:end] for start, end in ranges], completion)
    views = stances(comment, ranges, occurs=lambda i: found[i] is not None)
    return [(bounds, view) for bounds, view in zip(ranges, views, strict=True) if view != "wanted"]


def _sentence(comment: str, phrase: Range, ranges: list[Range]) -> str:
    start, end = sentence_around(comment, phrase, ranges)
    return comment[start:end].strip()


def _names(comment: str, bounds: Range, completion: str) -> list[Range]:
    """The longest runs of the capitalised words in `bounds` that are names in the completion."""
    start, end = bounds
    words = [(start + word.start(), start + word.end()) for word in re.finditer(r"\S+", comment[start:end])]
    for size in range(min(len(words), _LONGEST_NAME), 0, -1):
        for first in range(len(words) - size + 1):
            run = (words[first][0], words[first + size - 1][1])
            if _is_name(comment, run, completion):
                before, after = (start, run[0]), (run[1], end)
                return [*_names(comment, before, completion), run, *_names(comment, after, completion)]
    return []


def _is_name(comment: str, bounds: Range, completion: str) -> bool:
    start, end = bounds
    if _NO_NAME.fullmatch(comment, start, end):
        return False
    places = _places(comment[start:end], completion)
    if " " not in comment[start:end] and _starts_sentence(comment, start):
        return any(not _starts_sentence(completion, place) for place in places)
    return bool(places)


def _places(word: str, text: str) -> list[int]:
    """Where `text` has `word`, in this spelling and whole."""
    pattern = r"\s+".join(re.escape(part) for part in word.split())
    return [
        match.start()
        for match in re.finditer(pattern, text)
        if not splits_word(text, match.start()) and not splits_word(text, match.end())
    ]


def _counts_text(number: re.Match[str]) -> bool:
    """Whether the number counts parts of the text or errors in it: "2 errors", "line 3"."""
    return bool(
        _COUNTS_AFTER.match(number.string, number.end()) or _COUNTS_BEFORE.search(number.string[: number.start()])
    )


def _starts_sentence(text: str, position: int) -> bool:
    before = text[:position].rstrip(" \t\"'“‘«(*-")
    return not before or before[-1] in ".!?:\n"


def _overlap(one: Range, other: Range) -> bool:
    return one[0] < other[1] and other[0] < one[1]
