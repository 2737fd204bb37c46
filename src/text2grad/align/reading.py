"""Reading a comment: what each clause says of which part of the answer, what is missing, and what was not understood.

Clauses and their stance come from `clauses`, what each says by itself and where it points from `clause_reading`, the
places of the clauses of long comments from `clause_aligner`. Here they become spans, omissions and corrections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from text2grad.align.answer.document import Document
from text2grad.align.answer.fitting import lower_start
from text2grad.align.answer.proposals import Source
from text2grad.align.clause_aligner import add_paraphrases, drop_generalities, finish_clause
from text2grad.align.clause_reading import (
    NO_OPINION,
    NO_PLACE,
    NOT_MISSING,
    NOT_SURE,
    WHOLE_CONFIDENCE,
    ReadClause,
    Target,
    find_stated_omissions,
    rank_clause,
    read_clause,
    settle_stance,
)
from text2grad.align.clauses.clauses import Clause, ClauseStance, read_clauses
from text2grad.align.clauses.restatements import doubt_restatements
from text2grad.align.clauses.whole import is_no_comment, read_marks
from text2grad.align.comments import cited_quotations
from text2grad.align.corrections.corrected_spans import add_corrections
from text2grad.align.corrections.corrections import Correction, find_corrections
from text2grad.align.places.targets import MIN_LONG
from text2grad.schema import Label, MatchKind, Omission, Range, Span

if TYPE_CHECKING:
    from text2grad.align.learned.attention_features import Scorer  # imports transformers

__all__ = ["NOT_MISSING", "NOT_SURE", "NO_OPINION", "NO_PLACE", "Reading", "read_comment"]

_MATCH: dict[Source, MatchKind] = {
    "quotation": "exact", "value": "part", "part": "part", "kind": "part", "structure": "code", "behaviour": "code",
    "name": "exact", "mention": "part", "paraphrase": "freeform", "whole": "whole",
}  # fmt: skip
_EVIDENCE = re.compile(r"^\W*\".+?\" (?:\w+ ){1,7}(?:says?|said|states?):(?P<what> .+)$", re.MULTILINE)
_MIN_EXPLAINED = 12  # words of a comment that says what is wrong before it asks for a change: if that fits, so may this


@dataclass(frozen=True)
class Reading:
    """A comment as it was understood.

    spans: what is praised or blamed, with calibrated confidence. refused: (range of the comment, reason) of the clauses
    that have no effect. unmatched: quotations that the completion does not contain.
    """

    spans: list[Span]
    omissions: list[Omission]
    unmatched: list[str]
    refused: list[tuple[Range, str]]
    clauses: list[ReadClause]


def read_comment(
    comment: str,
    completion: str,
    prompt: str | None = None,
    *,
    scorer: Scorer | None = None,
    label: Label | None = None,
    critic: str = "",
) -> Reading:
    """Read a comment on a completion.

    prompt: the source or the question, where there is one. scorer: attention features for the learned aligner.
    label: overrides the stance of all clauses. A span's confidence is the probability that place and stance are right.
    """
    original, document = comment, Document(completion, prompt or "")
    if completion.strip() and (verdict := read_marks(comment, completion)):
        return _read_verdict(comment, label or verdict, document, critic)
    if comment.strip() and is_no_comment(comment):
        return Reading([], [], [], [((0, len(comment)), NO_OPINION)], [])
    comment = _blank(comment, [match.span("what") for match in _EVIDENCE.finditer(comment)])
    stated = list(find_stated_omissions(comment, document)) if completion.strip() else []
    comment = _blank(comment, [(item.clause.start, item.clause.end) for item in stated])
    found = read_clauses(comment, document, prompt or "") if completion.strip() else []
    clauses = [settle_stance(comment, clause, label, document) for clause in found]
    clauses = doubt_restatements(comment, clauses, document, prompt) if label is None else clauses
    quotations = cited_quotations(comment, completion) if clauses else []
    read = [*stated, *(read_clause(comment, clause, document, prompt or "", quotations) for clause in clauses)]
    read.sort(key=lambda item: item.clause.start)
    is_ranked = _has_parts(document) and len(comment.split()) < MIN_LONG
    if is_ranked:
        for item in read:
            rank_clause(comment, item, document, prompt or "", quotations)
    else:
        for stance in ("poor", "good"):
            add_paraphrases(comment, stance, read, document, prompt, scorer)
        for item in read:
            finish_clause(comment, item, document)
    if len(comment.split()) >= MIN_LONG:
        drop_generalities(read)
    spans, omissions = _spans(comment, read, critic), [item.omission for item in read if item.omission]
    if label != "good" and completion.strip():
        explains = len(comment.split()) >= _MIN_EXPLAINED
        corrections = find_corrections(original, completion, prompt)
        given = list(_given_values(comment, read, document, prompt or ""))
        if document.program is not None:  # code that is given for code is certain about how far each of them goes
            corrections = [each for each in corrections if not any(_is_same_request(each, other) for other in given)]
        corrections += [each for each in given if not _overlaps(each, corrections)]
        if explains and not any(span.label == "poor" for span in spans):
            corrections = [each for each in corrections if each.start == each.end or each.is_quoted]
        keep_rest = explains and not is_ranked  # the ranker places each clause by itself: a correction says it all
        spans, omissions = add_corrections(spans, omissions, corrections, original, critic=critic, keep_rest=keep_rest)
        for item in read:
            bounds = (item.clause.start, item.clause.end)
            if item.refused and any(each.is_asked_by(original, bounds) for each in corrections):
                item.refused = None
    return Reading(
        spans=spans,
        omissions=omissions,
        unmatched=[comment[slice(*phrase)] for phrase, match in quotations if match is None],
        refused=[((item.clause.start, item.clause.end), item.refused) for item in read if item.refused],
        clauses=read,
    )


def _given_values(comment: str, read: Sequence[ReadClause], document: Document, prompt: str) -> Iterator[Correction]:
    """Yield the values that clauses give in the place of the answer's."""
    for item in read:
        for target in item.targets:
            if target.source == "value" and target.phrase is not None:
                confidence = target.confidence * item.clause.probability
                bounds = (item.clause.start, item.clause.end)
                new = comment[slice(*target.phrase)]
                if document.program is None:
                    new = lower_start(new, document.text[slice(*target.place)], f"{document.text}\n{prompt}")
                yield Correction(*target.place, new, round(confidence, 4), bounds)


def _is_same_request(correction: Correction, other: Correction) -> bool:
    """Whether the same words of the comment ask for both."""
    return correction.phrase[0] < other.phrase[1] and other.phrase[0] < correction.phrase[1]


def _overlaps(correction: Correction, others: Sequence[Correction]) -> bool:
    return any(correction.start < other.end and other.start < correction.end for other in others)


def _read_verdict(comment: str, stance: ClauseStance, document: Document, critic: str) -> Reading:
    bounds = (0, len(comment))
    if stance == "unsure":
        read = [ReadClause(Clause(*bounds, stance, 1.0), refused=NOT_SURE)]
        return Reading([], [], [], [(bounds, NOT_SURE)], read)
    target = Target("whole", document.whole, bounds, WHOLE_CONFIDENCE)
    read = [ReadClause(Clause(*bounds, stance, 1.0), [target])]
    return Reading(_spans(comment, read, critic), omissions=[], unmatched=[], refused=[], clauses=read)


def _blank(comment: str, ranges: Sequence[Range]) -> str:
    """Return the comment with these ranges replaced by spaces."""
    for start, end in ranges:
        comment = comment[:start] + " " * (end - start) + comment[end:]
    return comment


def _has_parts(document: Document) -> bool:
    """Whether the answer has parts among which the ranker can choose."""
    return document.program is not None or len(document.sentences) > 1


def _spans(comment: str, read: Sequence[ReadClause], critic: str) -> list[Span]:
    """Return the targets of the clauses that praise or blame as spans, in order, each place and label once."""
    spans: dict[tuple[int, int, str], Span] = {}
    for item in read:
        clause = item.clause
        if clause.stance == "unsure" or item.refused:
            continue
        reason = re.sub(r"^(?:but|and|however|yet)\s+", "", comment[clause.start : clause.end].strip(" ,;"))
        for target in item.targets:
            (start, end), confidence = target.place, target.confidence * clause.probability
            span = Span(
                start=start,
                end=end,
                label=clause.stance,
                phrase=target.phrase,
                reason=reason or None,
                critic=critic,
                match=_MATCH[target.source],
                confidence=round(min(1.0, confidence), 4),
            )
            key = (start, end, clause.stance)
            if key not in spans or spans[key].confidence < span.confidence:
                spans[key] = span
    return sorted(spans.values(), key=lambda span: (span.start, span.end))
