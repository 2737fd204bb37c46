"""Where in a completion one clause of a comment points: what all sources propose, combined.

A quotation outweighs everything. A named part ("the last sentence") is narrowed by a quotation, a name or a thing of a
kind inside it ("the second bullet is wrong about the price"). In a program, a named structure is narrowed by the code that
decides a behaviour inside it ("the loop is off by one"); without a structure, the behaviour decides. What none of these
explains is left to the learned aligner, to which names and kinds are hints.
"""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from text2grad.align.answer.document import Document
from text2grad.align.answer.kinds import find_kinds
from text2grad.align.answer.parts import find_parts
from text2grad.align.answer.proposals import Proposal, contains, overlap
from text2grad.align.answer.subjects import find_subjects
from text2grad.align.code.behaviour import find_behaviours
from text2grad.align.code.code_comments import find_code_places
from text2grad.align.comments import find_mentions
from text2grad.align.learned.roles import content_keys, parse_mentions
from text2grad.align.quotes.quotes import Match, locate_quote
from text2grad.schema import Range

_NAME_CONFIDENCE = 0.7
_PART_OF_CODE_CONFIDENCE = 0.5
MIN_LONG = 24  # words of a comment that says more than what it names
_MIN_CERTAIN, _MAX_OTHER_WORDS = 0.6, 4
_MAX_SHORT, _MAX_SHORT_NAME = 14, 8  # words of a short clause
_CONTRASTED = re.compile(
    r"\b(?:not|instead of|rather than|isn['’]t|wasn['’]t)\s+(?:in|on|at|the|by|for)?\s*$", re.IGNORECASE
)
_LEADS = re.compile(r"\W*(?:(?:but|and|however|yet|the|also|mentioning|naming)\s+)*\W*", re.IGNORECASE)
_JUDGED = re.compile(
    r"\W*(?:is|are|was|were|should|must|isn['’]t|wasn['’]t|looks|seems|sounds|has|needs)\b", re.IGNORECASE
)
_OF = re.compile(r"\s*,?\s*(?:of|in|from|under|inside|within)\s+(?:the\s+|this\s+|your\s+)?", re.IGNORECASE)


def find_targets(
    comment: str, clause: Range, document: Document, cited: Sequence[tuple[Range, Match | None]]
) -> list[Proposal]:
    """Return what the clause comment[start:end] points at explicitly, combined; nothing if only words could tell.

    cited: the comment's quotations of the answer, see `cited_quotations`. In a long comment, what it names is often only the context of what it is about, and left to the learned aligner.
    """
    quotations = [
        Proposal("quotation", phrase, ((match.start, match.end),), match.confidence)
        for phrase, match in cited
        if match is not None and overlap(clause, phrase)
    ]
    parts = _nest(comment, list(find_parts(comment, *clause, document)), document)
    if len(document.sentences) == 1:  # "the jail sentence", "a step closer"
        parts = [part for part in parts if part.places != (document.whole,)]
    if document.program is not None and (places := _code_targets(comment, clause, document)):
        return places
    if quotations:
        return [_within(quotation, comment, parts, document) for quotation in quotations]
    if document.program is not None:
        return [replace(part, confidence=_PART_OF_CODE_CONFIDENCE) for part in parts]
    if not parts and len(comment.split()) >= MIN_LONG:
        return []
    details = _details(comment, clause, document)
    if not parts:
        subjects = [detail for detail in details if _is_subject(detail, comment, clause)]
        return subjects or list(_short_subjects(comment, clause, document))
    inside = [_restrict(detail, parts) for detail in details]
    return [detail for detail in inside if detail is not None] or parts


def find_hints(comment: str, clause: Range, document: Document) -> list[Proposal]:
    """Return the names and the things of a kind that the clause mentions: hints, not targets."""
    return _details(comment, clause, document)


def _details(comment: str, clause: Range, document: Document) -> list[Proposal]:
    found = list(find_kinds(comment, *clause, document))
    names = [name for name in find_mentions(comment, document.text) if contains(clause, name)]
    for name in names:
        match = locate_quote(comment[slice(*name)], document.text, context=comment[slice(*clause)])
        if match is not None:
            found.append(Proposal("name", name, ((match.start, match.end),), _NAME_CONFIDENCE * match.confidence))
    return found


def _code_targets(comment: str, clause: Range, document: Document) -> list[Proposal]:
    assert document.program is not None
    named = find_code_places(comment, clause, document.program)
    behaviours = list(find_behaviours(comment, *clause, document.program))
    if named:
        inside = [_restrict(behaviour, named) for behaviour in behaviours]
        return [behaviour for behaviour in inside if behaviour is not None] or named
    return behaviours


def _is_subject(detail: Proposal, comment: str, clause: Range) -> bool:
    """Whether the clause is about this detail itself: it is short and certain, or the detail is what it contrasts."""
    start, end = detail.phrase
    if detail.source == "name":
        leads = _LEADS.fullmatch(comment[clause[0] : start]) and _JUDGED.match(comment, end, clause[1])
        is_short = len(comment[slice(*clause)].split()) <= _MAX_SHORT_NAME
        return bool(_CONTRASTED.search(comment[clause[0] : start])) or bool(leads and is_short)
    others = content_keys(parse_mentions(comment[clause[0] : start] + " " + comment[end : clause[1]]))
    return detail.confidence > _MIN_CERTAIN and len(others) <= _MAX_OTHER_WORDS


def _short_subjects(comment: str, clause: Range, document: Document) -> Iterator[Proposal]:
    """Yield the subject of a short clause on an answer of several sentences; longer ones are left to the aligner."""
    if len(comment[slice(*clause)].split()) <= _MAX_SHORT and len(document.sentences) > 1:
        yield from find_subjects(comment, *clause, document)


def _restrict(detail: Proposal, outer: Sequence[Proposal]) -> Proposal | None:
    """Return a proposal with those of its places that lie in a place of the outer ones; None if none does."""
    around = [place for proposal in outer for place in proposal.places]
    places = tuple(
        place for place in detail.places if any(contains(other, place) and other != place for other in around)
    )
    confidence = max(detail.confidence, max(proposal.confidence for proposal in outer) * 0.9)
    return Proposal(detail.source, detail.phrase, places, confidence) if places else None


def _within(quotation: Proposal, comment: str, parts: Sequence[Proposal], document: Document) -> Proposal:
    """Return the quotation, moved into a part that the clause names if it occurs there."""
    (place,) = quotation.places
    for part in parts:
        for start, end in part.places:
            if contains((start, end), place):
                return quotation
            match = locate_quote(comment[slice(*quotation.phrase)], document.text[start:end])
            if match is not None and match.kind == "exact":
                return Proposal("quotation", quotation.phrase, ((start + match.start, start + match.end),), 0.95)
    return quotation


def _nest(comment: str, parts: list[Proposal], document: Document) -> list[Proposal]:
    """Resolve "the last sentence of the first paragraph": a part of a part."""
    for inner in parts:
        for outer in parts:
            between = comment[inner.phrase[1] : outer.phrase[0]]
            if inner is outer or inner.phrase[1] > outer.phrase[0] or not _OF.fullmatch(between):
                continue
            places = []
            for start, end in outer.places:
                within = Document(document.text[start:end])
                for proposal in find_parts(comment, *inner.phrase, within):
                    places += [(start + begin, start + stop) for begin, stop in proposal.places]
            rest = [part for part in parts if part not in (inner, outer)]
            nested = Proposal("part", (inner.phrase[0], outer.phrase[1]), tuple(places), inner.confidence)
            return [*rest, nested] if places else [*rest, outer]
    return parts
