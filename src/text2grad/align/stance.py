"""Stance detection: whether a comment blames what it quotes, praises it, or says that it should be there.

The rules, per quotation, in this order:

1. It is *wanted*, neither blamed nor praised, where the comment suggests it as what should be there: 'should be "X"',
   'not "A" but "X"', '"A" -> "X"', 'replace "A" with "X"', 'the correct date is "X"', 'it never mentions "X"' (nor does
   it), or as the words of the source: 'the article says "X"'. '"A" instead of "B"' and '"A", not "B"' are ambiguous;
   the one that the completion contains is blamed, the other is wanted.
2. Otherwise the nearest cue of the same clause decides: "wrong", "not", "should", ... blame; "right", "good", "well",
   ... praise; a negation turns praise into blame ("not good") and a flaw into praise ("nothing wrong with"). Cues
   after the last "but" outweigh those before it.
3. Without any cue it is blamed: people seldom quote what is fine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from text2grad.align.normalize import OPENING_MARKS
from text2grad.schema import Range

Stance = Literal["poor", "good", "wanted"]

_MASK = "\ue000"  # replaces every character of a quotation, so that its own words are not taken for cues

_SENTENCE_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)(?<=[.!?])\s+|[;\n]+")
_CLAUSE_END = re.compile(r",\s+|\s(?=(?:and|but|while|whereas|although|though|however|yet)\b)", re.IGNORECASE)

_FLAW = (
    r"wrong\w*|incorrect\w*|inaccura\w+|false\w*|bad|badly|errors?|mistakes?|mistaken\w*|mislead\w+|problems?|"
    r"problematic|issues?|fail(?:s|ed|ure|ures)?|bugs?|buggy|confus\w+|unclear|missing|flaws?|faults?|complaints?"
)
_BLAME = (
    rf"{_FLAW}|not|\w+n['’]t|never|no|nor|none|nowhere|cannot|poor\w*|unsupported|invent\w*|made[ -]up|hallucinat\w*|"
    r"fabricat\w*|contradict\w*|vague\w*|irrelevant\w*|unnecessar\w+|redundan\w+|repeat\w*|repetiti\w+|lacks?|lacking|"
    r"too|should|must|instead|rather than|remov\w+|delet\w+|drop\w*|chang\w+|replac\w+|fix\w*|typos?|misspel\w+|"
    r"unhelpful\w*|useless|broken|crash\w*|awkward\w*|wordy|untrue|doubtful|exaggerat\w*|overstat\w*|off-topic|"
    r"nonsens\w*|meaningless|weird|odd|strange|ugly|harmful|rude|biased|outdated|crude"
)
_MERIT = (
    r"good|great|nice\w*|excellent\w*|correct|correctly|right|rightly|accurate|accurately|(?<!as )well|clear|clearly|"
    r"helpful\w*|useful|precise|precisely|perfect|perfectly|fine|true|proper|properly|elegant\w*|strong|apt|aptly|"
    r"supported|faithful\w*|concise\w*|love|loved|best|works|relevant|brilliant\w*|spot on|liked|enjoy\w*|appreciat\w*|"
    r"praise\w*|thanks|kudos|impress\w*|I(?:\s+\w+)?\s+like|amazing\w*|fantastic\w*|wonderful\w*|superb\w*|flawless\w*|"
    r"outstanding\w*|beautiful\w*|interesting|informative|strongest"
)
_NEGATION = (
    r"(?:not|cannot|\w+n['’]t|never|no|nothing|hardly|barely|without|free (?:of|from)|far from|anything but|less than"
    r"|neither)(?!\s+(?:only|just)\b)"
)
# Praise in the words of faults or changes.
_NO_CHANGE_NEEDED = (
    r"(?:could(?:\s+not|n['’]t)|can(?:\s?not|['’]t))\s+be\s+(?:better|improved)|would(?:\s+not|n['’]t)\s+change|(?:should|must)\s+keep|"
    r"(?:error|bug)-free"
)
_CUE = re.compile(
    rf"\b(?:(?P<no_flaw>{_NO_CHANGE_NEEDED}|{_NEGATION}\s+(?:\w+\s+){{0,2}}?(?:{_FLAW}))"
    rf"|(?P<no_merit>{_NEGATION}\s+(?:\w+\s+){{0,2}}?(?:{_MERIT}))"
    rf"|(?P<blame>{_BLAME})|(?P<merit>{_MERIT}))(?!\w)",
    re.IGNORECASE,
)
_CONTRAST = re.compile(r"\b(?:but|however|yet|except)\b", re.IGNORECASE)

# Words allowed between a cue and its quotation.
_FILL = (
    r"(?:\s+(?:the|a|an|as|to|in|on|at|by|for|of|with|like|just|simply|something|written|called|spelt|spelled|phrased"
    r"|named|words?|values?|phrases?|names?)){0,3}[\s:]*$"
)
_SOURCE = r"\b(?:source|article|document|passage|question|prompt|reference|context|original|paper|user|task|spec\w*)\b"
_CLOSED = rf"{_MASK}[\"'`”’»]*"
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
            rf"\bnot\b[^{_MASK}.;]*{_MASK}+[\"'`”’»]*,?\s+but",
            rf"{_CLOSED}\s*(?:->|=>|→)",
            r"(?:^|[,:]\s*|\b(?:please|rather|just)\s+)(?:use|write|say|try|put)",
            rf"{_SOURCE}(?:(?!\bnot\b|n['’]t\b|\bnever\b|\bno\b)[^{_MASK}.;,])*?"
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
    sentences = [sentence_around(comment, bounds, ranges) for bounds in ranges]
    found: list[Stance] = []
    for i, (sentence, bounds) in enumerate(zip(sentences, ranges, strict=True)):
        before = masked[sentence[0] : bounds[0]].rstrip(OPENING_MARKS)
        found.append("wanted" if _is_wanted(before, i, occurs) else _polarity(masked, sentence, bounds, ranges))
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


def _polarity(masked: str, sentence: Range, bounds: Range, ranges: Sequence[Range]) -> Stance:
    """Return the stance of the nearest cue in the quotation's clause, else in its sentence, else "poor"."""
    clause = _clause_around(masked, sentence, bounds, ranges)
    for start, end in (clause, sentence):
        cues = list(_CUE.finditer(masked, start, end))
        contrasts = [match.end() for match in _CONTRAST.finditer(masked, start, end)]
        cues = [cue for cue in cues if contrasts and cue.start() > contrasts[-1]] or cues
        if cues:
            nearest = min(cues, key=lambda cue: max(bounds[0] - cue.end(), cue.start() - bounds[1]))
            return "good" if nearest.lastgroup in ("merit", "no_flaw") else "poor"
    return "poor"


def _clause_around(masked: str, sentence: Range, bounds: Range, ranges: Sequence[Range]) -> Range:
    """Return the clause around a quotation; a sentence is split where both sides have a quotation and a cue."""

    def is_complete(start: int, end: int) -> bool:
        quotes = any(start <= begin and stop <= end for begin, stop in ranges)
        return quotes and _CUE.search(masked, start, end) is not None

    start, breaks = sentence[0], []
    for position in (match.end() for match in _CLAUSE_END.finditer(masked, *sentence)):
        if is_complete(start, position) and is_complete(position, sentence[1]):
            breaks.append((position, position))
            start = position
    begin, stop = _segment_around(bounds, breaks, sentence[1])
    return max(begin, sentence[0]), stop


def _mask(comment: str, ranges: Sequence[Range]) -> str:
    for start, end in ranges:
        comment = comment[:start] + _MASK * (end - start) + comment[end:]
    return comment


def _segment_around(bounds: Range, breaks: Sequence[Range], length: int) -> Range:
    """Return the range between the last break before `bounds` and the first one after it."""
    start = max((after for _, after in breaks if after <= bounds[0]), default=0)
    end = min((before for before, _ in breaks if before >= bounds[1]), default=length)
    return start, end
