"""Things that one clause says the same of: "The month and the reason are wrong", "Wrong year, wrong city"."""

from __future__ import annotations

import re
from typing import NamedTuple

from text2grad.align.answer.document import Document
from text2grad.schema import Range

_LEAD = r"\W*(?:(?:but|and|however|yet|also|although|though|while|plus|sadly|unfortunately|again|only)\b,?\s+)*"
_NOUNS = r"(?P<things>(?:both\s+|neither\s+|either\s+)?[\w'’-][^;:.?!()\"“”]{2,90}?)"
_VERB = (
    r"(?:is|are|was|were|isn['’]t|aren['’]t|wasn['’]t|weren['’]t|seems?|sounds?|looks?|feels?|reads?|should|must|could|can|needs?|ha(?:s|ve)\s+to"
    r"|do(?:es)?n['’]t|do(?:es)?\s+not|make|deserve|contradict|clash"
    r"|(?:wrong|right|correct|incorrect|fine|good|off|invented|made\s+up|unnecessary|unsupported)(?=\W*$))"
)
_SUBJECTS = re.compile(
    rf"{_LEAD}{_NOUNS}\s+(?P<said>(?:(?:both|all|also|each)\s+)?{_VERB}\b[^,;:?!]{{0,60}})\W*", re.IGNORECASE
)
_OBJECTS = re.compile(
    rf"{_LEAD}(?P<said>(?:please\s+)?(?:remove|delete|drop|cut|fix|correct|change|check|rewrite|rework|improve|(?:(?:you|it|the\s+\w+)\s+)?(?:invents?|invented|made\s+up|makes?\s+up|hallucinate[sd]?)|(?:you|it|they)\s+(?:got|gets?|have|has|had)"
    rf"|i\s+(?:(?:really|also|quite|do)\s+)*(?:like|liked|love|loved|enjoyed|dislike|hated?|don['’]t\s+like)))\s+{_NOUNS}(?P<tail>\s+(?:all\s+)?(?:wrong|right|mixed\s+up|backwards))?(?:\s+please)?\W*",
    re.IGNORECASE,
)
_REPEATED = re.compile(
    r"\W*(?P<things>(?P<said>(?:wrong|incorrect|bad|good|nice|great|odd|weak|right|correct|lovely|invented|poor))\s+[\w'’-]+(?:\s+[\w'’-]+){0,2}?"
    r"(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?P=said)\s+[\w'’-]+(?:\s+[\w'’-]+){0,2}?)+)\W*",
    re.IGNORECASE,
)
_HEADED = re.compile(
    rf"{_LEAD}(?P<said>(?:what(?:['’]s|\s+(?:is|was))\s+)?(?:wrong|invented|incorrect|made\s+up|unsupported|right|correct|good|nice|errors|mistakes|problems|inventions|likes?|dislikes?)):"
    r"\s+(?P<things>[\w'’-][^;:.?!()\"“”]{2,90}?)\W*",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"\W*(?P<said>)(?P<things>(?:both\s+)?(?:the|its|his|her|your)\s[^,;:.?!()\"“”]{2,40}?(?:\s*,\s*(?:the|its|his|her|your)\s[^,;:.?!()\"“”]{2,40}?)*(?:\s*,)?\s+and"
    r"\s+(?:the|its|his|her|your)\s[^,;:.?!()\"“”]{2,40}?)\W*",
    re.IGNORECASE,
)  # of an exception: "apart from *the month and the reason*"
_ECHO = re.compile(
    rf"{_LEAD}(?P<first>[\w'’-][^,;:.?!()\"“”]{{1,40}}?)\s+(?P<said>(?:is|are|was|were|looks?|sounds?|seems?)\s+[\w'’-]+(?:\s+[\w'’-]+)?),?\s+(?:and\s+so|as)"
    r"\s+(?:is|are|was|were|do|does)\s+(?P<second>[\w'’-][^,;:.?!()\"“”]{1,40}?)\W*",
    re.IGNORECASE,
)
_JOINT = re.compile(r"\s*,\s*(?:and|or|nor)\s+|\s+(?:and|or|nor|as\s+well\s+as|&)\s+|\s*,\s*", re.IGNORECASE)
_CONJUNCTION = re.compile(r"\b(?:and|n?or|as\s+well\s+as)\b|&", re.IGNORECASE)
_BOTH = re.compile(r"(?:both|neither|either)\s+", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:the\s+)?(?:first|second|third|fourth|fifth|last|final|opening|closing)", re.IGNORECASE)
_NOT_A_THING = re.compile(
    r"(?:not|but|if|when|while|because|since|so|then|that|which|who|i|it|you|we|they|he|she|there|this|these|those|is|are|was|were"
    r"|has|have|had|only|rather|instead|between|with|without|of|in|to|from|for|how|why|what)\b|\W*\d+\W*$",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|says?|said|should|must|could|would|can|will|that|which|who|not)\b|n['’]t\b",
    re.IGNORECASE,
)
_MAX_WORDS, _MAX_THINGS = 6, 4


class Thing(NamedTuple):
    """One of several things of which a clause says the same: its words, and a clause that says it of this one alone."""

    phrase: Range
    alone: str


def find_things(comment: str, bounds: Range, document: Document) -> list[Thing]:
    """Return the things of which comment[start:end] says the same; nothing if there are not several.

    Words that the answer itself has together ("fish and chips") are one thing.
    """
    text = comment[slice(*bounds)]
    if "," not in text and not any(word in text for word in (" and ", " nor ", " & ", " as ", " or ")):
        return []
    if echo := _ECHO.fullmatch(comment, *bounds):
        phrases = [echo.span("first"), echo.span("second")]
        return [Thing(phrase, f"{comment[slice(*phrase)]} {echo['said']}") for phrase in phrases]
    for pattern in (_REPEATED, _HEADED, _OBJECTS, _SUBJECTS, _BARE):
        if (match := pattern.fullmatch(comment, *bounds)) and (phrases := _split(match, document)):
            return [Thing(phrase, _say_alone(match, _noun(comment, phrase, phrases))) for phrase in phrases]
    return []


def _split(match: re.Match[str], document: Document) -> list[Range]:
    """Return the phrases that are joined, if there are several and each may name a thing."""
    comment, (start, end) = match.string, match.span("things")
    if comment[start:end].lower() in document.text.lower():
        return []
    if match.re not in (_REPEATED, _HEADED) and not _CONJUNCTION.search(comment, start, end):
        return []
    if both := _BOTH.match(comment, start, end):
        start = both.end()
    phrases = []
    for joint in _JOINT.finditer(comment, start, end):
        phrases.append((start, joint.start()))
        start = joint.end()
    phrases.append((start, end))
    texts = [comment[slice(*phrase)] for phrase in phrases]
    is_list = 1 < len(texts) <= _MAX_THINGS and all(0 < len(text.split()) <= _MAX_WORDS for text in texts)
    if not is_list or any(_NOT_A_THING.match(text) or _FINITE.search(text) for text in texts):
        return []
    return phrases


def _noun(comment: str, phrase: Range, phrases: list[Range]) -> str:
    """Return the words of one thing; "the first and the last sentence" are two sentences."""
    text = comment[slice(*phrase)]
    return f"{text} {comment[slice(*phrases[-1])].split()[-1]}" if _ORDINAL.fullmatch(text) else text


def _say_alone(match: re.Match[str], thing: str) -> str:
    groups = match.groupdict()
    if match.re is _SUBJECTS:
        return f"{thing} {groups['said']}"
    if match.re is _HEADED:
        return f"{groups['said']}: {thing}"
    return thing if match.re in (_REPEATED, _BARE) else f"{groups['said']} {thing}{groups['tail'] or ''}"
