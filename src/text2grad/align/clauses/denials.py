"""Clauses that deny what the answer says: "Delivery isn't free" of "Delivery is free", "right, not left"."""

from __future__ import annotations

import re

from text2grad.align.answer.document import Document
from text2grad.align.stance.stance_features import find_roles
from text2grad.schema import Range
from text2grad.text.whitespace import split_words

_DENIAL = re.compile(
    r"\W*(?:(?:but|and|however|no|sorry|well|actually|also)\b[,\s]*)*(?P<subject>[^,.;:!?]{2,60}?)\s+"
    r"(?:is|are|was|were|has|have|do|does|did|can|will)(?:n['’]t|\s+not|\s+never)\s+(?P<predicate>[^,.;:!?]{2,60})\W*",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"\W*(?:it['’]s\s+|it\s+(?:is|was)\s+)?(?P<right>[\w'’-]+(?:\s[\w'’-]+)?),?\s+not\s+(?P<wrong>[\w'’-]+(?:\s[\w'’-]+)?)\W*",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|no|never|cannot|without|none|nothing|neither|nor)\b|n['’]t\b", re.IGNORECASE)
_PRAISE = frozenset("PF")


def find_denied(comment: str, clause: Range, document: Document) -> Range | None:
    """Return the words that a clause denies, if exactly one sentence of the answer says that, without a negation."""
    match = _DENIAL.fullmatch(comment, *clause)
    if match is None or document.program is not None:
        return None
    subject, predicate = _content(match["subject"]), _content(match["predicate"])
    if not subject or not predicate:
        return None
    found = [place for sentence in document.sentences if (place := _said(subject | predicate, sentence, document))]
    return found[0] if len(found) == 1 else None


def find_contrasted(comment: str, clause: Range, document: Document) -> list[Range]:
    """Return where the answer has the words that come after "not" in a clause that is nothing but "right, not left"."""
    match = _CONTRAST.fullmatch(comment, *clause)
    if match is None or (match["right"].lower() != "right" and not _PRAISE.isdisjoint(find_roles([match["right"]])[0])):
        return []
    wrong = re.escape(match["wrong"])
    return [use.span() for use in re.finditer(rf"(?<!\w){wrong}(?!\w)", document.text, re.IGNORECASE)]


def _content(text: str) -> set[str]:
    return {key for word in split_words(text) if word.is_content for key in word.keys}


def _said(keys: set[str], sentence: Range, document: Document) -> Range | None:
    """Return the words of a sentence from the first to the last that has one of the keys, if it has all of them."""
    text = document.text[slice(*sentence)]
    own = [word for word in split_words(text) if not keys.isdisjoint(word.keys)]
    if _NEGATION.search(text) or not keys <= {key for word in own for key in word.keys}:
        return None
    said = text[own[0].start : own[-1].end].rstrip(".,;:!?")
    return sentence[0] + own[0].start, sentence[0] + own[0].start + len(said)
