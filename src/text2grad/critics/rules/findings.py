"""Findings of the rules: placed on characters without overlap, limited in number, and written as feedback."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from text2grad.align.answer.fitting import fit_replacement
from text2grad.critics.writer import CritiqueWriter
from text2grad.schema import Feedback, Label, Omission, Range, Span
from text2grad.text.words import Text, consecutive_runs

PRAISE = frozenset({"fact", "correct", "relevant"})
# A long fault is marked over a few words only: there it could still have been avoided.
MAX_MARKED_WORDS = 6
MAX_QUOTE = 80
MIN_SEVERITY = 0.001
_NO_FINDINGS = "There is nothing to praise and nothing to blame."


class Finding(NamedTuple):
    """A range of words that a rule praises or blames; at most `max_words` of them are marked.

    `replacement` is what should stand in the place of all of them, if the rule knows it.
    """

    kind: str
    words: range
    severity: float
    max_words: int = MAX_MARKED_WORDS
    replacement: str | None = None


def spread(kind: str, runs: Sequence[tuple[range, float]], loss: float, max_words: int | None = None) -> list[Finding]:
    """Return one finding per run of words; their severities are in proportion to the weights and sum to `loss`."""
    total = math.fsum(weight for _, weight in runs)
    return [
        Finding(kind, words, max(MIN_SEVERITY, loss * weight / total), max_words or len(words))
        for words, weight in runs
        if loss > 0 and total > 0
    ]


class PlacedFinding(NamedTuple):
    """A finding on the characters `start` to `end` of the text; `replacement` is what should stand there, if known."""

    kind: str
    start: int
    end: int
    severity: float
    replacement: str | None = None

    @property
    def label(self) -> Label:
        """Whether the finding is praise or blame."""
        return "good" if self.kind in PRAISE else "poor"


def word_indices(ranges: Iterable[range]) -> set[int]:
    """Return the indices of all words in the ranges."""
    return {i for words in ranges for i in words}


def longest_free_run(words: range, taken: set[int]) -> range:
    """Return the longest run of `words` without the taken ones; empty if there is none."""
    return max(consecutive_runs(i for i in words if i not in taken), key=len, default=range(0))


def place_findings(findings: Iterable[Finding], text: Text, only_marked: bool = True) -> list[PlacedFinding]:
    """Place each finding on its longest run of words that no earlier finding has, cut to `max_words`.

    Findings without a free word are dropped. only_marked: a finding has only the words that it marks, not all its own.
    """
    taken: set[int] = set()
    placed = []
    for finding in findings:
        run = longest_free_run(finding.words, taken)[: finding.max_words]
        if run:
            taken.update(run if only_marked else finding.words)
            start, end = text.words[run[0]].start, text.words[run[-1]].end
            new = finding.replacement
            if new is not None and run == finding.words:
                start, end, new = fit_replacement(start, end, new, text.string)
            severity = round(min(1.0, finding.severity), 3)
            placed.append(PlacedFinding(finding.kind, start, end, severity, new if run == finding.words else None))
    return placed


def select_most_severe(findings: Iterable[PlacedFinding], max_characters: int) -> list[PlacedFinding]:
    """Return the most severe findings that cover at most `max_characters` together, in reading order.

    Marks on most of a text do not tell where it went wrong.
    """
    selected = []
    for finding in sorted(findings, key=lambda finding: (-finding.severity, finding.start)):
        if finding.end - finding.start <= max_characters:
            max_characters -= finding.end - finding.start
            selected.append(finding)
    return sorted(selected, key=lambda finding: finding.start)


class FindingsWriter(CritiqueWriter):
    """Writes one sentence per kind of finding, with a quotation of each."""

    def add_findings(
        self, findings: Sequence[PlacedFinding], string: str, remarks: Mapping[str, tuple[str, str]]
    ) -> None:
        """Write one sentence per kind, in the order of `remarks`: (opening of the sentence, reason of the spans)."""
        for kind, (opening, reason) in remarks.items():
            alike = [finding for finding in findings if finding.kind == kind]
            phrases = self._write_sentence(opening, [_shorten(string[item.start : item.end]) for item in alike])
            for finding, phrase in zip(alike, phrases, strict=True):
                place = (finding.start, finding.end)
                fields = {"severity": finding.severity, "reason": reason, "replacement": finding.replacement}
                self.mark(place, phrase, finding.label, **fields)

    def add_omissions(
        self, opening: str, missing: Sequence[tuple[str, float]], quote: str = '"', shorten: bool = False
    ) -> None:
        """Write one sentence that names what is missing, given as (text, severity)."""
        shown = [_shorten(text) if shorten else text for text, _ in missing]
        phrases = self._write_sentence(opening, shown, quote)
        for (text, severity), phrase in zip(missing, phrases, strict=True):
            self.omissions.append(Omission(text=text, severity=severity, phrase=phrase))

    def scored_feedback(self, score: float | None = None) -> Feedback:
        """Return the finished feedback, with the spans in reading order; default score: the sum of all severities."""
        self.spans.sort(key=lambda span: span.start)
        total = total_severity(self.spans, self.omissions) if score is None else score
        return self.feedback(total, default=_NO_FINDINGS)

    def _write_sentence(self, opening: str, items: Sequence[str], quote: str = '"') -> list[Range]:
        distinct = list(dict.fromkeys(items))
        if not distinct:
            return []
        self.write(f" {opening}" if self.text else opening)
        phrases: dict[str, Range] = {}
        for number, item in enumerate(distinct):
            separator = " " if number == 0 else " and " if number == len(distinct) - 1 else ", "
            self.write(separator + quote)
            phrases[item] = self.write(item)
            self.write(quote)
        self.write(".")
        return [phrases[item] for item in items]


def total_severity(spans: Sequence[Span], omissions: Sequence[Omission]) -> float:
    """Return the sum of all severities: praise is positive, blame and omissions are negative."""
    praise = math.fsum(span.severity for span in spans if span.label == "good")
    blame = math.fsum(span.severity for span in spans if span.label == "poor")
    return round(praise - blame - math.fsum(omission.severity for omission in omissions), 6)


def _shorten(quote: str) -> str:
    return quote if len(quote) <= MAX_QUOTE else f"{quote[: MAX_QUOTE - 1]}…"
