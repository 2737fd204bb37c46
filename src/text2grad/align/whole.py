"""Whether a clause speaks of the whole answer: "Great answer!", "too long", "off topic"."""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re

from text2grad.align.clauses import Clause
from text2grad.align.document import Document
from text2grad.schema import Label
from text2grad.text.whitespace import is_function_part, key_set, part_key, split_parts

_ANSWER = (
    "answer response reply summary text output code program function solution script implementation letter email mail "
    "message note recipe instruction instructions explanation article essay story poem post draft version piece work job "
    "everything all overall whole entire result one attempt write-up writing tone style length reading read "
    "structure format layout wording language grammar spelling logic approach idea content information facts"
)
_OPINION = (
    "good great nice excellent perfect fine wonderful amazing awesome brilliant fantastic superb lovely sweet solid decent "
    "bad poor terrible awful weak wrong useless boring dull vague generic confusing unclear clear concise short long brief "
    "wordy verbose rambling dry polite rude formal informal casual friendly professional correct incorrect accurate "
    "inaccurate right true false helpful unhelpful useful complete incomplete thorough detailed shallow off-topic topic "
    "irrelevant relevant readable unreadable elegant messy clean neat works work working fails fail runs crash crashes "
    "like love hate enjoy enjoyed liked loved thanks thank well done bravo kudos spot point easy hard simple complicated "
    "complex too very so much really quite rather pretty extremely super absolutely far bit way more less could should "
    "would be better worse best worst ok okay impressive disappointing mess beautiful hallucinated nonsense garbage "
    "question answered ask asked needs need again rewrite redo scratch keep up exactly wanted looking for understand "
    "follow sense makes make written wrote reads sounds feels seems tight crisp balanced engaging"
)
_ANSWER_KEYS = {part_key(part) for part in split_parts(_ANSWER)}
_KEYS = _ANSWER_KEYS | {part_key(part) for part in split_parts(_OPINION)}
_WHOLE = re.compile(
    r"\b(?:overall|as a whole|in general|all in all|the (?:whole|entire|full) (?:thing|answer|text|response|summary|letter|code"
    r"|program|recipe|e?-?mail|function)|everything|throughout|too (?:long|short|wordy|verbose|vague|formal|informal|dry"
    r"|generic|brief|complicated)|off[ -]?topic|(?:great|good|nice|excellent|perfect|bad|terrible|poor|lovely|wonderful|sweet|clear"
    r"|concise|solid|decent|weak|awful) (?:answer|summary|response|reply|letter|e?-?mail|recipe|code|program|solution|job|work"
    r"|function|explanation|overview|message|note|text))\b",
    re.IGNORECASE,
)
# Verdicts without words: thumbs, ticks and crosses, faces. Skin tones and variation selectors may follow.
_AROUND = r"[\s.!,\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]"
_MARKS: dict[Label, str] = {
    "good": r"[👍👌👏🙌🎉💯✅✓✔❤💚🥇😀😃😄😊🙂😍]|\+1\b|\blgtm\b",
    "poor": r"[👎❌✗✘✖🚫💩🙁☹😞😠😡🤦🤮]|-1\b",
}
_VERDICTS: dict[Label, re.Pattern[str]] = {
    label: re.compile(rf"{_AROUND}*(?:(?:{marks}){_AROUND}*)+", re.IGNORECASE) for label, marks in _MARKS.items()
}
_MAX_OTHER_WORDS = 1  # content words beyond those about answers and opinions, if the answer is named


def read_marks(comment: str) -> Label | None:
    """Return the verdict of a comment that has none but marks: a raised thumb, a cross, "+1"; None for all others."""
    return next((label for label, pattern in _VERDICTS.items() if pattern.fullmatch(comment)), None)


def speaks_of_whole(comment: str, clause: Clause, document: Document) -> bool:
    """Whether the clause has no content but opinion and names for the answer."""
    text = comment[clause.start : clause.end]
    parts = [part for part in split_parts(text) if not is_function_part(part)]
    if document.program is not None and document.names.intersection(re.findall(r"\w+", text)):
        return False
    others = [part for part in parts if part_key(part) not in _KEYS]
    if not others:
        return bool(parts)
    answer = key_set(document.text)
    if any(part_key(part) in answer for part in others):
        return False
    named = any(part_key(part) in _ANSWER_KEYS for part in parts)
    return (named and len(others) <= _MAX_OTHER_WORDS) or _WHOLE.search(text) is not None


def whole_words(text: str) -> tuple[int, int]:
    """Return how many content words of a text are opinions or names for the answer, and how many are others."""
    parts = [part for part in split_parts(text) if not is_function_part(part)]
    known = sum(part_key(part) in _KEYS for part in parts)
    return known, len(parts) - known
