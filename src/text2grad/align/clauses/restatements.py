"""Clauses that only say again what the answer or its source says: they blame nothing, whatever words they have.

"The summary is supported by the source: that a man died, that he was not found" says what is supported, and "It was
indeed the fifth whale, the source says so" that the answer is right. "The article has 14" blames: the answer has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from text2grad.align.answer.document import Document
from text2grad.align.clauses.clause_split import EXCEPT
from text2grad.align.clauses.clauses import MIN_MISSING, Clause
from text2grad.align.learned.aligner import source_or_none
from text2grad.align.learned.roles import content_keys, parse_mentions
from text2grad.align.omissions import asks_to_change, is_removal
from text2grad.align.quotes.quotations import find_quotations
from text2grad.schema import Range
from text2grad.text.whitespace import key_set

_SUPPORT = re.compile(
    r"\b(?:consistent with|support(?:s|ed)|accordance|accurate|match(?:es|ed)?|found in the (?:source|text|article)"
    r"|correct because|(?:is|are|was|were) (?:all |also |indeed )?(?:correct|true|valid))\b",
    re.IGNORECASE,
)
_OBJECTION = re.compile(
    r"\b(?:but|however|except|although|though|yet|apart|wrong\w*|incorrect\w*|errors?|mistakes?|false\w*|inaccura\w+"
    r"|should|remove|replace|change|never|too|invent\w*|made up|unsupported)\b|(?:n['’]t|\bnot)\W*$",
    re.IGNORECASE,
)
_CLEAR_OBJECTION = re.compile(
    r"\b(?:wrong\w*|incorrect\w*|errors?|mistakes?|mistaken|false\w*|inaccura\w+|should|ought|needs? to"
    r"|(?:remove|replace|add|rewrite|modify|delete|omit|correct|fix) (?:the|this|that|all|any|it|a)\b|invent\w*"
    r"|ma[dk]e[sd]? up|unsupported|hallucinat\w*|mislead\w*|misrepresent\w*|misinterpret\w*|contradict\w*|instead"
    r"|rather than|actually|exaggerat\w*|missing|omit\w*|lack\w*|fails?|failed|unclear|confus\w+|unnecessary|irrelevant"
    r"|vague|assum\w+|fabricat\w*|nowhere|unverified|too)\b|\?",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|no|never|cannot|without|none|nothing|neither|nor|only)\b|n['’]t\b", re.IGNORECASE)
_NOT_EXPLICIT = re.compile(
    r"\b(?:not|n['’]t|never)\s+(?:been\s+|be\s+|being\s+)?(?:an?\s+)?(?:explicit\w*|directly|specifically|clearly|literally|exactly"
    r"|mentioned|stated|said)\b",
    re.IGNORECASE,
)
_INFERRED = re.compile(
    r"\b(?:infer(?:s|red|ence|ences)?|impl(?:y|ies|ied)|supports?|supported|understood|deduced?|conclu(?:de|ded|sion)"
    r"|suggests?|suggested|is valid|obvious)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_EXCEPTION = re.compile(rf"\b(?:{EXCEPT}|but|until|till|up\s+to)\b", re.IGNORECASE)  # between two clauses
_SENTENCE_BREAK = re.compile(r"[.!?…]\W*\s|\n")
_MIN_SOURCE_WORDS = 25  # a shorter prompt is a question or a task, whose words the answer shares without retelling it
_MIN_SHARED = 0.4  # of the content words of a clause that says again what the answer says


def doubt_restatements(comment: str, clauses: Sequence[Clause], document: Document, prompt: str | None) -> list[Clause]:
    """Return the clauses, with no stance where one blames nothing but says again what the answer or its source says.

    Apart from details of what is supported, this holds of answers of one sentence that have a source.
    """
    retells = len(document.sentences) == 1 and _has_source(prompt, document)
    details = _doubt_details_of_support(comment, clauses, document, crosses_sentences=retells)
    if not retells or _CLEAR_OBJECTION.search(comment):
        return details  # on a longer answer, who says again what a part of it says mostly corrects it
    if (stated := _NOT_EXPLICIT.search(comment)) and _INFERRED.search(comment, stated.end()):
        return [replace(c, stance="unsure") if c.stance == "poor" else c for c in details]
    if _NEGATION.search(comment) and not _NEGATION.search(document.text):
        return details
    answer = key_set(document.text)
    return [
        replace(c, stance="unsure") if _says_again(comment, c, answer) and not _is_explicit(comment, c, document) else c
        for c in details
    ]


def _has_source(prompt: str | None, document: Document) -> bool:
    """Whether the prompt is a text that the answer retells."""
    return len((prompt or "").split()) >= _MIN_SOURCE_WORDS and source_or_none(prompt, document.text) is not None


def _is_explicit(comment: str, clause: Clause, document: Document) -> bool:
    """Whether a clause quotes the answer, or asks to remove or change something: it says what it blames."""
    bounds = (clause.start, clause.end)
    if is_removal(comment, *bounds) or asks_to_change(comment, *bounds):
        return True
    quoted = [place for place in find_quotations(comment) if clause.start <= place[0] and place[1] <= clause.end]
    return any(_occurs(comment[slice(*place)], document) for place in quoted)


def _occurs(quoted: str, document: Document) -> bool:
    words = quoted.strip(" .,;:!?").casefold()
    return bool(words) and words in document.text.casefold()


def _says_again(comment: str, clause: Clause, answer: frozenset[str]) -> bool:
    """Whether a clause that was read as blame has the answer's words and no number that the answer lacks."""
    text = comment[clause.start : clause.end]
    if clause.stance != "poor" or clause.lacks >= MIN_MISSING:
        return False
    keys = content_keys(parse_mentions(text))
    if any(key_set(number).isdisjoint(answer) for number in _NUMBER.findall(text)):
        return False
    return bool(keys) and len(keys & answer) >= _MIN_SHARED * len(keys)


def _doubt_details_of_support(
    comment: str, clauses: Sequence[Clause], document: Document, *, crosses_sentences: bool
) -> list[Clause]:
    """Take no stance from what follows a statement of support and blames nothing in words of its own.

    crosses_sentences: in the next sentences as well. What is excepted ("all true except the price") is no detail.
    """
    settled: list[Clause] = []
    supported: Range | None = None
    for clause in clauses:
        if supported and not crosses_sentences and _SENTENCE_BREAK.search(comment, supported[1] - 1, clause.start):
            supported = None
        is_excepted = settled and _EXCEPTION.search(comment, settled[-1].end, clause.start)
        objects = is_excepted or _OBJECTION.search(comment[clause.start : clause.end])
        is_detail = supported and clause.stance == "poor" and clause.lacks < MIN_MISSING and not objects
        if is_detail and not _is_explicit(comment, clause, document):
            clause = replace(clause, stance="unsure")
        if clause.stance == "good" and _SUPPORT.search(comment, clause.start, clause.end):
            supported = (clause.start, clause.end)
        settled.append(clause)
    return settled
