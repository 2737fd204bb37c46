"""Stance detection: whether a comment blames what it quotes, praises it, or says that it should be there.

The rules, per quotation, in this order:

1. It is *wanted*, neither blamed nor praised, where the comment suggests it as what should be there: 'should be "X"',
   'not "A" but "X"', '"A" -> "X"', 'replace "A" with "X"', 'the correct date is "X"', 'it never mentions "X"' (nor does
   it), or as the words of the source: 'the article says "X"'. '"A" instead of "B"' and '"A", not "B"' are ambiguous;
   the one that the completion contains is blamed, the other is wanted.
2. Otherwise the stance of the clause around it counts (`clauses`).
3. Where that is not sure, it is blamed: people seldom quote what is fine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from text2grad.align.clauses.clauses import Clause, read_masked
from text2grad.align.quotes.normalize import OPENING_MARKS
from text2grad.align.stance.stance_features import MASK
from text2grad.schema import Range

Stance = Literal["poor", "good", "wanted"]

_SENTENCE_END = re.compile(r"(?=\s)(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)\s+|[;\n]+")

# Words allowed between a cue and its quotation.
_FILL = (
    r"(?:\s+(?:the|a|an|as|to|in|on|at|by|for|of|with|like|just|simply|something|written|called|spelt|spelled|phrased"
    r"|named|words?|values?|phrases?|names?)){0,3}[\s:]*$"
)
_SOURCE = r"\b(?:source|article|document|passage|question|prompt|reference|context|original|paper|user|task|spec\w*)\b"
_CLOSED = rf"{MASK}[\"'`”’»]*"
_WANTED = re.compile(
    "|".join(
        f"(?:{pattern}){_FILL}"
        for pattern in (
            r"\b(?:should|must|ought to|needs? to|ha(?:s|ve) to)(?:\s+(?:really|rather|actually|probably|instead))?"
            r"\s+(?:have\s+)?(?:be|been|read|say|said|use|used|write|mention\w*|include\w*|state\w*|call\w*|return\w*)",
            r"\bwould(?:\s+have)?\s+be(?:en)?|\b(?:would|could)\s+(?:say|read|use|write|mention|include|state|add)",
            r"\b(?:replace|chang|correct|fix|rewr[io]|rephras|renam|turn)\w*\b[^.;]*\s(?:with|by|to|as|into)",
            r"\b(?:correct|right|actual|real|true|proper|expected|intended|better)(?:\s+(?!that\b|to\b|in\b)\w+){0,2}?"
            r"\s+(?:is|are|was|were|being)",
            r"\b(?:expect(?:s|ed)?|meant|supposed to be|missing|omit(?:s|ted)?|lack(?:s|ed)?|forg[eo]t(?:s|ten)?"
            r"|leaves? out|left out)",
            rf"\bnot\b[^{MASK}.;]*{MASK}+[\"'`”’»]*,?\s+but",
            rf"{_CLOSED}\s*(?:->|=>|→)",
            r"(?:^|[,:]\s*|\b(?:please|rather|just)\s+)(?:use|write|say|try|put)",
            rf"{_SOURCE}(?:(?!\bnot\b|n['’]t\b|\bnever\b|\bno\b)[^{MASK}.;,])*?"
            r"\b(?:says?|said|states?|stated|reads?|mentions?|mentioned|gives?|gave|has|had|asks?|asked|wants?|wanted"
            r"|calls?|called|is|was),?",
        )
    ),
    re.IGNORECASE,
)
_NOT_MENTIONED = re.compile(
    rf"\b(?:not|\w+n['’]t|never|fails? to|failed to|without)\s+(?:mention|includ|cover|cit|say|stat)\w*{_FILL}",
    re.IGNORECASE,
)
_ANY_SOURCE = re.compile(_SOURCE, re.IGNORECASE)
_ALTERNATIVE = re.compile(
    rf"{_CLOSED}(?P<not>,?\s+(?:and\s+)?not){_FILL}|\b(?:instead of|rather than|in place of){_FILL}", re.IGNORECASE
)


def detect_stances(comment: str, ranges: Sequence[Range], occurs: Callable[[int], bool]) -> list[Stance]:
    """Return the stance of `comment` on each of its quotations, by the rules in the module's docstring.

    ranges: the quotations' contents, in order, without overlap. occurs(i): whether the completion contains the i-th.
    """
    masked = _mask(comment, ranges)
    clauses = read_masked(masked)
    sentences = [sentence_around(comment, bounds, ranges) for bounds in ranges]
    found: list[Stance] = []
    for i, (sentence, bounds) in enumerate(zip(sentences, ranges, strict=True)):
        before = masked[sentence[0] : bounds[0]].rstrip(OPENING_MARKS)
        found.append("wanted" if _is_wanted(before, i, occurs) else _polarity(clauses, bounds))
        if alternative := _ALTERNATIVE.search(before):
            previous = i - 1 if i and sentences[i - 1] == sentences[i] else None
            _settle_alternatives(found, previous, i, occurs, second_is_blamed=bool(alternative["not"]))
    return found


def sentence_around(comment: str, bounds: Range, ranges: Sequence[Range]) -> Range:
    """Return the sentence of `comment` around the quotation `bounds`; punctuation inside quotations is ignored."""
    breaks = [match.span() for match in _SENTENCE_END.finditer(_mask(comment, ranges))]
    return _segment_around(bounds, breaks, len(comment))


def _is_wanted(before: str, i: int, occurs: Callable[[int], bool]) -> bool:
    if _NOT_MENTIONED.search(before):
        return not _ANY_SOURCE.search(before) and not occurs(i)
    return _WANTED.search(before) is not None


def _settle_alternatives(
    found: list[Stance], first: int | None, second: int, occurs: Callable[[int], bool], second_is_blamed: bool
) -> None:
    """Of two alternatives, blame one and mark the other as wanted: by the wording, else by which one occurs."""
    if first is None:
        found[second] = "poor" if occurs(second) else "wanted"
        return
    if found[first] == "wanted" or occurs(first) == occurs(second):
        blame_second = found[first] == "wanted" or second_is_blamed
    else:
        blame_second = occurs(second)
    found[first], found[second] = ("wanted", "poor") if blame_second else ("poor", "wanted")


def _polarity(clauses: Sequence[Clause], bounds: Range) -> Stance:
    """Return the stance of the clause around a quotation, or else of the last one before it; "poor" if not sure."""
    before = [clause for clause in clauses if clause.start <= bounds[0]]
    return "good" if before and before[-1].stance == "good" else "poor"


def _mask(comment: str, ranges: Sequence[Range]) -> str:
    for start, end in ranges:
        comment = comment[:start] + MASK * (end - start) + comment[end:]
    return comment


def _segment_around(bounds: Range, breaks: Sequence[Range], length: int) -> Range:
    """Return the range between the last break before `bounds` and the first one after it."""
    start = max((after for _, after in breaks if after <= bounds[0]), default=0)
    end = min((before for before, _ in breaks if before >= bounds[1]), default=length)
    return start, end
