"""One remark of one person, with or without a place in the answer, as Feedback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import ValidationError

from text2grad.align.comments import spans_from_comment
from text2grad.align.normalize import splits_word
from text2grad.align.quotes import locate_quote
from text2grad.align.stance import detect_stances
from text2grad.errors import UserError
from text2grad.schema import Feedback, Label, Omission, Range, Span, describe

Verdict = Literal["good", "poor", "missing"]
Units = Literal["characters", "browser"]

_WORDS: dict[Verdict, str] = {
    "good": "good positive praise praised correct right helpful great strength",
    "poor": "poor bad negative blame blamed error wrong incorrect unhelpful mistake weakness hallucination unsupported "
    "irrelevant redundant",
    "missing": "missing omission omitted incomplete",
}
LABELS: dict[str, Verdict] = {word: verdict for verdict, words in _WORDS.items() for word in words.split()}


@dataclass(frozen=True)
class Remark:
    """What somebody said. Places are optional: a remark without one is about what its comment quotes or names.

    label: the person's own word for it, see `Labels`. units: what start and end count; browsers count UTF-16 units.
    """

    comment: str = ""
    start: int | None = None
    end: int | None = None
    quote: str | None = None
    label: str | None = None
    severity: float = 1.0
    annotator: str | None = None
    units: Units = "characters"


class Labels:
    """What people's labels mean: `LABELS`, and what the user adds."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        for name, verdict in (own or {}).items():
            if verdict not in get_args(Verdict):
                raise UserError(f'label "{name}" is said to mean "{verdict}"; it must be good, poor or missing')
        self._meanings: dict[str, Any] = LABELS | {_plain(name): verdict for name, verdict in (own or {}).items()}

    def knows(self, label: str) -> bool:
        return _plain(label) in self._meanings

    def verdict(self, label: str | None, where: str) -> Verdict | None:
        if label is None or not label.strip():
            return None
        if not self.knows(label):
            example = f'labels={{"{label}": "poor"}}'
            raise UserError(f'{where}: label: "{label}" may be praise or blame; say which, as in {example}')
        verdict: Verdict = self._meanings[_plain(label)]
        return verdict


def feedback_of(remark: Remark, completion: str, labels: Labels, where: str) -> Feedback:
    """The remark as Feedback on the completion; `where` opens the error message.

    A place given by offsets must be right; a quotation that is not found is `unmatched`. Without a label, the comment's
    own stance counts.
    """
    verdict = labels.verdict(remark.label, where)
    critic = f"human:{remark.annotator}" if remark.annotator else "human"
    comment = remark.comment.strip()
    whole = (0, len(comment)) if comment else None
    reason = comment or remark.label
    try:
        if verdict == "missing":
            omission = Omission(text=reason or "", severity=remark.severity, phrase=whole)
            return Feedback(critique=comment, omissions=[omission], critic=critic)
        if remark.start is None and remark.end is None and not remark.quote:
            spans, unmatched = spans_from_comment(comment, completion, label=verdict, critic=critic)
            weighed = [span.model_copy(update={"severity": remark.severity}) for span in spans]
            return Feedback(critique=comment, spans=weighed, unmatched=unmatched, critic=critic)
        place = _place(remark, completion, where)
        if place is None:
            return Feedback(critique=comment, unmatched=[remark.quote or ""], critic=critic)
        span = place.model_copy(
            update={
                "label": verdict or _stance(comment),
                "severity": remark.severity,
                "phrase": whole,
                "reason": reason,
                "critic": critic,
            }
        )
        return Feedback(critique=comment, spans=[Span.model_validate(span.model_dump())], critic=critic)
    except ValidationError as error:
        raise UserError(f"{where}: {describe(error)}") from error


def _place(remark: Remark, completion: str, where: str) -> Span | None:
    """Where the remark points; its offsets count only where the words there are those that it quotes, if it does."""
    if remark.start is not None or remark.end is not None:
        start, end = _bounds(remark, completion, where)
        return Span(start=start, end=end, label="poor")
    match = locate_quote(remark.quote or "", completion, context=remark.comment or None)
    if match is None:
        return None
    return Span(start=match.start, end=match.end, label="poor", match=match.kind, confidence=match.confidence)


def _bounds(remark: Remark, completion: str, where: str) -> Range:
    if remark.start is None or remark.end is None:
        raise UserError(f"{where}: {'start' if remark.start is None else 'end'} is missing; give both or neither")
    characters = (remark.start, remark.end)
    browser = _from_browser(characters, completion)
    readings = [browser, characters] if remark.units == "browser" else [characters, browser]
    inside = [(start, end) for start, end in readings if 0 <= start < end <= len(completion)]
    if not inside:
        given = f"start is {remark.start} and end {remark.end}"
        raise UserError(f"{where}: {given}, but the completion has {len(completion)} characters")
    if remark.quote:
        fitting = [bounds for bounds in inside if _same(completion[slice(*bounds)], remark.quote)]
        if not fitting:
            there = completion[slice(*inside[0])]
            raise UserError(f'{where}: start and end point at "{there}", but the quote is "{remark.quote}"')
        return fitting[0]
    if remark.units == "browser":
        whole = [bounds for bounds in inside if not any(splits_word(completion, bound) for bound in bounds)]
        return (whole or inside)[0]
    return inside[0]


def _from_browser(bounds: Range, text: str) -> Range:
    """UTF-16 units to characters: a browser counts an emoji as two."""
    units = text.encode("utf-16-le", errors="surrogatepass")
    start, end = (len(units[: 2 * max(bound, 0)].decode("utf-16-le", errors="ignore")) for bound in bounds)
    return (start, end) if 2 * bounds[1] <= len(units) else (0, 0)


def _same(one: str, other: str) -> bool:
    """White space aside, which labelling pages show and save differently."""
    return one.split() == other.split()


def _stance(comment: str) -> Label:
    end = (len(comment), len(comment))
    return "good" if detect_stances(comment, [end], occurs=lambda _: True)[0] == "good" else "poor"


def _plain(label: str) -> str:
    return label.strip().casefold()
