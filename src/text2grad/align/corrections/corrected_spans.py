"""Put the corrections that a comment asks for into its spans and omissions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from text2grad.align.corrections.corrections import Correction
from text2grad.schema import Omission, Range, Span

NAMED = ("exact", "code")  # how a span was found that is about one thing, not about all of a part of the answer


def add_corrections(
    spans: Iterable[Span],
    omissions: Iterable[Omission],
    corrections: Iterable[Correction],
    comment: str,
    *,
    critic: str = "",
    keep_rest: bool = False,
) -> tuple[list[Span], list[Omission]]:
    """Return spans and omissions of a comment with the corrections found in it (`find_corrections`).

    A correction narrows the blame that overlaps it to the words that it replaces, or is blame of its own; praise of
    these words goes, since the comment wants others. What it inserts is an omission, in the place of one that the same
    sentence of the comment has given; the words beside it, which say where, are not blamed for that. Things that
    another sentence quotes or names stay blamed around a correction.
    keep_rest: so does what the learned aligner blames there, since the comment says more than the correction.
    """
    found, missing = list(spans), list(omissions)
    for correction in corrections:
        if correction.start == correction.end:
            missing = [omission for omission in missing if not _overlap(omission.phrase, correction.phrase)]
            missing.append(_insertion(correction))
            found = [span for span in found if not _is_anchor(span, correction)]
            continue
        place = (correction.start, correction.end)
        if correction.replacement:
            missing = [omission for omission in missing if not correction.is_asked_by(comment, omission.phrase)]
        touching = [span for span in found if _overlap((span.start, span.end), place)]
        blame = [span for span in touching if span.label == "poor" and span.replacement is None]
        found = [span for span in found if span not in touching or span.replacement is not None]
        others = [s for s in blame if s.match in NAMED and s.phrase and not _overlap(s.phrase, correction.phrase)]
        kept = [span for span in blame if span in others or (keep_rest and span.match == "freeform")]
        found += [piece for span in kept for piece in _rest(span, place)]
        nearest = max((span for span in blame if span not in others), key=partial(_num_shared, place), default=None)
        found.append(_blame(correction, nearest, comment, critic))
    return sorted(found, key=lambda span: (span.start, span.end)), missing


def _is_anchor(span: Span, insertion: Correction) -> bool:
    """Whether a span blames words of the answer only because the same sentence says that something goes beside them."""
    touches = span.start - 1 <= insertion.start <= span.end + 1
    is_plain_blame = span.label == "poor" and span.replacement is None
    return touches and is_plain_blame and _overlap(span.phrase, insertion.phrase)


def _rest(span: Span, place: Range) -> list[Span]:
    """Return what a span has before and after a place."""
    pieces = [(span.start, min(span.end, place[0])), (max(span.start, place[1]), span.end)]
    return [span.model_copy(update={"start": start, "end": end}) for start, end in pieces if end - start > 1]


def _blame(correction: Correction, blame: Span | None, comment: str, critic: str) -> Span:
    fields: dict[str, Any] = {
        "start": correction.start,
        "end": correction.end,
        "replacement": correction.replacement,
        "confidence": correction.confidence,
    }
    if blame is not None:
        return blame.model_copy(update=fields)
    reason = comment[slice(*correction.phrase)]
    return Span(**fields, label="poor", phrase=correction.phrase, reason=reason, critic=critic, match="exact")


def _insertion(correction: Correction) -> Omission:
    return Omission(
        text=correction.replacement.strip(),
        phrase=correction.phrase,
        insert_at=correction.start,
        insertion=correction.replacement,
    )


def _overlap(one: Range | None, other: Range) -> bool:
    return one is not None and one[0] < other[1] and other[0] < one[1]


def _num_shared(place: Range, span: Span) -> int:
    return min(span.end, place[1]) - max(span.start, place[0])
