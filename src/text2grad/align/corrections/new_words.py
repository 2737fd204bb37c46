"""The words of a comment that should be written: which of them, where the comment does not quote them."""

from __future__ import annotations

import re

from text2grad.align.answer.document import Document
from text2grad.align.answer.fitting import DETERMINERS
from text2grad.align.quotes.quotes import Match
from text2grad.text.lexicon import FUNCTION_WORDS, NUMBER_WORDS, PREPOSITIONS, word_set
from text2grad.text.whitespace import PUNCTUATION

WORD = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*%?|[$€£][\d.,]+\w*")
NAME = re.compile(r"[A-ZÀ-Þ][\w'’.-]*(?:\s+(?:(?:of|de|van|von|the)\s+)?[A-ZÀ-Þ][\w'’.-]*)*")
CLAUSE_END = re.compile(
    r"[,.;:!?()]\s|[.!?]$|\s(?:because|since|as|but|and|which|who|according|in\s+the\s+(?:source|article|text))\b"
)
_NUMBER = re.compile(
    r"(?<!\w)(?:[$€£]?\d+(?:[.,:/-]\d+)*(?:%|[a-z]{1,3}\b)?|(?:"
    + "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
    + r")\b)(?:\s(?:million|billion|thousand|percent|per cent)\b)?",
    re.IGNORECASE,
)
_DESCRIPTION = re.compile(
    r"^(?:(?:the|a|an|its|his|her|their|some)\s+)?(?:\w+\s+)?(?:names?|full\s+name|number|amount|location|date|title|description|details?|fact|"
    r"information|one|kind|type|class|word|person|place|time)\b(?:\s+(?:of|that|about|where|who|which|it|from|in|when)\b|$)"
    r"|^(?:what|who|whom|where|when|why|how|whether|something|someone|somewhere|anything|nothing|more|that|just)\b"
    r"|^(?:clarify|include|mention|make|reflect|indicate|show|state|explain|match|use|say)\b"
    r"|^(?:(?:the|an?|your|its)\s+)?(?:ending|opening|end|start|beginning|conclusion|focus|headline|heading|title|subject|centre|center|topic|highlight|punchline|sentence"
    r"|paragraph|line|point|step|item|bullet|example|exception|default|goal|aim|theme|hook)\W*$"
    r"|^(?:being|been|becoming|having|using|there\s+being)\b|\bbeing\b"
    r"|^(?:the\s+)?(?:actual|correct|right|real|true|proper|exact|specific|accurate|general|appropriate)\b",
    re.IGNORECASE,
)
_SENTENCE_START = re.compile(
    r"(?:please\s+)?(?:use|say|write|try|put|it|this|that|the|prefer|i|we|should|must|ought\s+to|(?:have\s+)?(?:said|read|been)|be"
    r"|read)\b['’]?\w*\s+",
    re.IGNORECASE,
)
# After these comes what should be written.
_SAYING = re.compile(r"\b(?:use|say|write|try|put|prefer|read|see|add|said|been)\b", re.IGNORECASE)
_ASIDE = word_set("please instead here there too then now actually really thanks imo though again")
_JOINING = word_set("to of and")  # within what should be written: "seven to four"
_MAX_NEW_WORDS, _MAX_UNQUOTED = 10, 6


def is_wording(text: str) -> bool:
    """Whether the words can stand in the answer, rather than describe what should."""
    return bool(text) and len(text.split()) <= _MAX_NEW_WORDS and not _DESCRIPTION.match(text)


def word_before(match: Match, completion: str) -> str | None:
    """Return the word before a place, "" at the start; None in a program, where sentences say nothing of extents."""
    if Document(completion).program is not None:
        return None
    words = completion[: match.start].split()
    return words[-1] if words else ""


def words_alike(text: str, model: str, at_end: bool, before: str | None) -> str:
    """Return the words at the start or the end of `text` that are of the same kind as `model`: a number, a name, words.

    before: see `word_before`. "" if there are none, or if it is not clear how many they are.
    """
    is_order = False
    if at_end:
        while start := _SENTENCE_START.match(text):
            is_order = is_order or _SAYING.search(start[0]) is not None
            text = text[start.end() :]
        if said := list(_SAYING.finditer(text)):
            is_order, text = True, text[said[-1].end() :].lstrip()
    for pattern in (_NUMBER, NAME):
        if pattern.fullmatch(model):
            places = list(pattern.finditer(text))
            if pattern is _NUMBER and len(places) == 1:
                return places[0][0]
            if at_end:
                return places[-1][0] if places and not text[places[-1].end() :].strip(" .") else ""
            return places[0][0].rstrip(".") if places and not text[: places[0].start()].strip() else ""
    clause = CLAUSE_END.search(text) if not at_end else None
    words = list(WORD.finditer(text[: clause.start()] if clause else text))
    count = len(WORD.findall(model))
    first = model.split()[0].lower()
    if not at_end and len(words) > count and words[0][0].lower() in DETERMINERS and first not in FUNCTION_WORDS:
        words = words[1:]  # "The kettle should be a pot"
    if at_end and first in PREPOSITIONS:
        starts = [i for i, word in enumerate(words) if word[0].lower() in PREPOSITIONS]
        words = words[starts[-1] :] if starts else []
        count = len(words)
    if before is None:
        chosen = words[-count:] if at_end else words[:count]
    else:
        chosen = _last_words(words, count, before, is_order) if at_end else _first_words(words, count)
        count = len(chosen)
    if not chosen or len(chosen) > _MAX_UNQUOTED or (count > 1 and len(chosen) != count and at_end):
        return ""
    run = text[chosen[0].start() : chosen[-1].end()]
    if first not in FUNCTION_WORDS and chosen[0][0].lower() in FUNCTION_WORDS - {"no"}:
        return ""
    if run[:1] in "$€£" and not model[-1:].isdigit():
        return ""  # "the cost should be $25": an amount takes the place of an amount, not of the word
    return run


def _first_words(words: list[re.Match[str]], count: int) -> list[re.Match[str]]:
    """Return as many words as are replaced, and content that follows: "[carbon dioxide]", "[Monday] in the title"."""
    while count < len(words) and words[count][0].lower() not in FUNCTION_WORDS | _ASIDE:
        count += 1
    return words[:count]


def _last_words(words: list[re.Match[str]], count: int, before: str, is_order: bool) -> list[re.Match[str]]:
    """Return the words that end a statement: those after the word that also precedes what is replaced, all of an order.

    Otherwise as many as are replaced, if no content stands before them that may belong to them.
    """
    keys = [word[0].lower() for word in words]
    anchor = before.strip(PUNCTUATION).lower()
    is_anchored = anchor in keys[:-1]
    if is_anchored:
        first = len(keys) - keys[::-1].index(anchor)
        words, keys = words[first:], keys[first:]
    if (is_order or is_anchored) and not FUNCTION_WORDS.difference(_JOINING).intersection(keys):
        return words
    is_clear = len(words) <= count or keys[-count - 1] in FUNCTION_WORDS
    return words[-count:] if is_clear else []
