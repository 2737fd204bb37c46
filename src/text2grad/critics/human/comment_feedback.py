"""Conversion of a single human comment, with or without a position in the completion, to Feedback."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from text2grad.align.clauses.clauses import read_clauses
from text2grad.align.clauses.whole import read_marks
from text2grad.align.comment_aligner import describe_failure
from text2grad.align.quotes.normalize import splits_word
from text2grad.align.quotes.quotes import locate_quote
from text2grad.align.reading import read_comment
from text2grad.errors import UserError
from text2grad.schema import Feedback, Label, Omission, Range, Severity, Span

Meaning = Literal["good", "poor", "missing"]
Units = Literal["characters", "utf16"]
DELETE = "[delete]"  # a replacement by nothing, where an empty cell says nothing

_WORDS: dict[Meaning, str] = {
    "good": "good positive praise praised correct right helpful great strength",
    "poor": "poor bad negative blame blamed error wrong incorrect unhelpful mistake weakness hallucination unsupported "
    "irrelevant redundant",
    "missing": "missing omission omitted incomplete",
}
LABELS: dict[str, Meaning] = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}


class HumanComment(BaseModel):
    """A comment; one without offsets or a quote is about what it quotes or names.

    label: the annotator's own label, see `LabelMeanings`. units: of the offsets; browsers count UTF-16 code units.
    replacement: what should stand there instead; "" or `[delete]` nothing. Of what is missing, what belongs at `start`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    comment: str = ""
    start: Annotated[int, Field(ge=0)] | None = None
    end: Annotated[int, Field(ge=0)] | None = None
    quote: str | None = None
    label: str | None = None
    severity: Severity = 1.0
    annotator: str | None = None
    units: Units = "characters"
    replacement: str | None = None

    @field_validator("replacement")
    @classmethod
    def _read_deletion(cls, value: str | None) -> str | None:
        return "" if value is not None and value.strip() == DELETE else value

    @property
    def critic(self) -> str:
        """The name of the critic in feedback: "human", with the annotator if there is one."""
        return f"human:{self.annotator}" if self.annotator else "human"


class LabelMeanings:
    """The meanings of annotators' labels: `LABELS`, marks such as a raised thumb, and the user's own."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        for name, meaning in (own or {}).items():
            if meaning not in get_args(Meaning):
                raise UserError(f'label "{name}" is given the meaning "{meaning}"; it must be good, poor or missing')
        self._meanings: dict[str, Any] = LABELS | {_normalize(name): value for name, value in (own or {}).items()}

    def __contains__(self, label: str) -> bool:
        return self._find(label) is not None

    def resolve(self, label: str | None) -> Meaning | None:
        """Return the meaning of a label, None without a label; raise UserError for an unknown one."""
        if label is None or not label.strip():
            return None
        meaning = self._find(label)
        if meaning is None:
            option = shlex.quote(f"{label}=poor")
            raise UserError(
                f'the meaning of label "{label}" is unknown; give it, as in --label {option} or in Python '
                f'labels={{"{label}": "poor"}}'
            )
        return meaning

    def _find(self, label: str) -> Meaning | None:
        meaning: Meaning | None = self._meanings.get(_normalize(label))
        verdict = read_marks(label)
        return meaning or (None if verdict == "unsure" else verdict)


def comment_to_feedback(
    comment: HumanComment, completion: str, labels: LabelMeanings, prompt: str | None = None
) -> Feedback:
    """Convert a comment to Feedback.

    Offsets must be valid. Without a label, the text's stance counts. Failed are a quote that is not found, and a text
    without a position or label that has no effect on the completion; with a label, that judges the whole completion.
    """
    meaning = verdict = labels.resolve(comment.label)
    text = comment.comment.strip()
    phrase = (0, len(text)) if text else None
    reason = text or comment.label
    if meaning == "missing":
        place = _insertion(comment, completion)
        omission = Omission(text=reason or "", severity=comment.severity, phrase=phrase, **place)
        return Feedback(critique=text, omissions=[omission], critic=comment.critic)
    if comment.replacement is not None and meaning is None:
        meaning = "poor"
    if comment.start is None and comment.end is None and not comment.quote:
        reading = read_comment(text, completion, prompt, label=meaning, critic=comment.critic)
        changes: dict[str, Any] = {"severity": comment.severity}
        omissions = [omission.model_copy(update=changes) for omission in reading.omissions]
        if comment.replacement is not None and len(reading.spans) == 1:  # of several it is not known which it replaces
            changes["replacement"] = comment.replacement
        failed: dict[str, Any] = {} if reading.spans or omissions else describe_failure(text, reading)
        if failed and verdict is not None:
            failed |= {"status": "ok", "score": whole_score(verdict, comment.severity)}
        return Feedback(
            critique=text,
            spans=[Span.model_validate(span.model_dump() | changes) for span in reading.spans],
            omissions=omissions,
            unmatched=reading.unmatched,
            critic=comment.critic,
            **failed,
        )
    location = _locate(comment, completion)
    if location is None:
        quote = comment.quote or ""
        error = f"the quotation is not found: {describe_unmatched(quote)}"
        return Feedback(critique=text, unmatched=[quote], critic=comment.critic, status="failed", error=error)
    label = meaning or _stance(text)
    span = Span(
        **location,
        label=label,
        severity=comment.severity,
        phrase=phrase,
        reason=reason,
        replacement=comment.replacement,
    )
    return Feedback(critique=text, spans=[span], critic=comment.critic)


def whole_score(verdict: Meaning, severity: float) -> float:
    """Return the score of a completion that a label praises or blames as a whole."""
    return severity if verdict == "good" else -severity


def describe_unmatched(quote: str) -> str:
    """Return what is wrong with a quotation that is not found."""
    return f'"{quote}" is not in the completion'


def _insertion(comment: HumanComment, completion: str) -> dict[str, Any]:
    """Return the fields of an Omission that tell what belongs where; none where the comment does not say both."""
    if comment.start is None or not comment.replacement:
        return {}
    bounds = (comment.start, comment.start)
    start = _from_utf16(bounds, completion)[0] if comment.units == "utf16" else comment.start
    if start > len(completion):
        raise UserError(f"start is {comment.start}, but the completion has {len(completion)} characters")
    return {"insert_at": start, "insertion": comment.replacement}


def _locate(comment: HumanComment, completion: str) -> dict[str, Any] | None:
    """Return the fields of a Span that tell its position; None if the quote is not found."""
    if comment.start is not None or comment.end is not None:
        start, end = _resolve_offsets(comment, completion)
        return {"start": start, "end": end}
    match = locate_quote(comment.quote or "", completion, context=comment.comment or None)
    if match is None:
        return None
    return {"start": match.start, "end": match.end, "match": match.kind, "confidence": match.confidence}


def _resolve_offsets(comment: HumanComment, completion: str) -> Range:
    """Return offsets in characters, in the units that agree with the quote or, without one, with word boundaries."""
    if comment.start is None or comment.end is None:
        raise UserError(f"{'start' if comment.start is None else 'end'} is missing; give both or neither")
    characters = (comment.start, comment.end)
    utf16 = _from_utf16(characters, completion)
    candidates = [utf16, characters] if comment.units == "utf16" else [characters, utf16]
    inside = [(start, end) for start, end in candidates if 0 <= start < end <= len(completion)]
    if not inside:
        given = f"start is {comment.start} and end {comment.end}"
        raise UserError(f"{given}, but the completion has {len(completion)} characters")
    if comment.quote:
        # labelling tools change white space
        matching = [bounds for bounds in inside if completion[slice(*bounds)].split() == comment.quote.split()]
        if not matching:
            found = completion[slice(*inside[0])]
            raise UserError(f'start and end point at "{found}", but the quote is "{comment.quote}"')
        return matching[0]
    if comment.units == "utf16":
        whole = [bounds for bounds in inside if not any(splits_word(completion, bound) for bound in bounds)]
        return (whole or inside)[0]
    return inside[0]


def _from_utf16(bounds: Range, text: str) -> Range:
    """Convert UTF-16 code units to characters: an emoji is two of the former."""
    units = text.encode("utf-16-le", errors="surrogatepass")
    start, end = (len(units[: 2 * max(bound, 0)].decode("utf-16-le", errors="ignore")) for bound in bounds)
    return (start, end) if 2 * bounds[1] <= len(units) else (0, 0)


def _stance(comment: str) -> Label:
    """Return the stance of the last clause that has one ("good idea, but wrong"); people seldom mark what is fine."""
    decided = [clause.stance for clause in read_clauses(comment) if clause.stance != "unsure"]
    return "good" if decided and decided[-1] == "good" else "poor"


def _normalize(label: str) -> str:
    return label.strip().casefold()
