"""Comments with corrections on summaries, as a person would mark them, written by rule from the critic's findings.

Filler: openings about the text instead of its content, what goes beyond the length of a summary, and repetition. It
should go. Invention: numbers, names and words that the source does not support. Where the source has exactly one
candidate, it is the correction; where the invention is in a clause of its own, the clause should go; else it is blamed.
Key facts that are right are praised, as the critic does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from text2grad.critics.rules import faults
from text2grad.critics.rules.grounding import GroundingCritic, length_limit
from text2grad.critics.rules.source import Source
from text2grad.schema import Example, Feedback, Span
from text2grad.text.words import Text, parse_text

KINDS = ("filler", "invention")
INVENTIONS = {
    "number that is not in the source",
    "name that is not in the source",
    "word that the source does not support",
}
FILLERS = {"beyond the length of a summary", "said before"}
MIN_WORDS = 6  # that have to be left before a clause that goes
ADDS = frozenset(("and", "with", "while", "which", "who", "where", "but", "after", "before", "during", "as", "for"))
CLAUSE_END = re.compile(r"[,.](?=\s|$)")
CRITIC = GroundingCritic()


def count_faults(example: Example) -> Counter[str]:
    """Return the number of faults of each kind in an answer."""
    (feedback,) = CRITIC.critique([example])
    reasons = Counter(str(span.reason) for span in feedback.spans)
    return Counter(
        filler=len(list(faults.fillers(*_parse(example)))) + sum(reasons[reason] for reason in FILLERS),
        invention=sum(reasons[reason] for reason in INVENTIONS),
    )


def comment(example: Example) -> Feedback:
    """Return the comment on an answer; it has no spans where the critic finds neither filler nor invention."""
    summary, source = _parse(example)
    (found,) = CRITIC.critique([example])
    spans: list[Span] = []

    def add(start: int, end: int, reason: str, replacement: str | None) -> None:
        if all(end <= other.start or other.end <= start for other in spans):
            spans.append(Span(start=start, end=end, label="poor", severity=0.5, reason=reason, replacement=replacement))

    for start in _surplus(summary, length_limit(source)):
        add(start, len(summary.string), "filler", ".")
    for finding in faults.fillers(summary, source):
        add(summary.words[finding.words[0]].start, summary.words[finding.words[-1]].end, "filler", None)
    for span in found.spans:
        if span.reason in INVENTIONS:
            clause = None if span.replacement else _clause(summary, span.start, span.end)
            start, end, replacement = clause or (span.start, span.end, span.replacement)
            add(start, end, "invention", replacement)
    praised = [span.model_copy(update={"phrase": None}) for span in found.spans if span.label == "good"]
    spans += [good for good in praised if all(good.end <= bad.start or bad.end <= good.start for bad in spans)]
    return Feedback(critic="rule", spans=sorted(spans, key=lambda span: span.start))


def _parse(example: Example) -> tuple[Text, Source]:
    return parse_text(example.completion), Source(parse_text(str(example.meta["document"])))


def _surplus(summary: Text, limit: int) -> Iterator[int]:
    """Yield where a summary that is too long should have ended: after a sentence, or before a clause that adds more."""
    if len(summary.words) <= limit:
        return
    inside = range(MIN_WORDS - 1, min(limit, len(summary.words) - 1))
    stops = [i for i in inside if summary.after(i)[:1] == "."]
    commas = [i for i in inside if summary.after(i)[:1] == "," and summary.words[i + 1].text in ADDS]
    if stops or commas:
        yield summary.words[(stops or commas)[-1]].end


def _clause(summary: Text, start: int, end: int) -> tuple[int, int, str] | None:
    """Return the clause between commas, or from a comma to the full stop, around some words, and what replaces it."""
    text = summary.string
    comma = text.rfind(", ", 0, start)
    if comma < 0 or ". " in text[comma:start] or len(text[:comma].rpartition(". ")[2].split()) < MIN_WORDS:
        return None
    stop = CLAUSE_END.search(text, end)
    if stop is None:
        return None
    return (comma, stop.start(), "") if stop.group() == "," else (comma, stop.end(), ".")
