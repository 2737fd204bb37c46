"""A critique in the making: sentences, and the spans that their phrases point at."""

from __future__ import annotations

from text2grad.align.program import Program
from text2grad.schema import Label, Omission, Span

_SHOWN = 100


class Critique:
    """Text that grows at its end. A span gets the words that were written for it as its phrase."""

    def __init__(self, answer: Program | None, completion: str) -> None:
        self.text = ""
        self.spans: list[Span] = []
        self.omissions: list[Omission] = []
        self._answer = answer
        self._completion = completion

    def say(self, words: str) -> None:
        self.text += words

    def end_sentence(self, reason_from: int) -> None:
        """Close the sentence that began at `reason_from`; it is the reason for the spans in it."""
        self.text += ". "
        for span in self.spans:
            if span.phrase is not None and span.phrase[0] >= reason_from:
                span.reason = self.text[reason_from:].strip()

    def point(
        self,
        words: str,
        place: tuple[int, int] | None,
        label: Label,
        severity: float = 1.0,
        confidence: float = 1.0,
    ) -> None:
        """Say `words`; they point at `place` of the completion, unless an earlier sentence does already."""
        begin = len(self.text)
        self.text += words
        known = {(span.start, span.end) for span in self.spans}
        if place is not None and place not in known:
            span = Span(
                start=place[0],
                end=place[1],
                label=label,
                severity=severity,
                phrase=(begin, len(self.text)),
                match="code",
                confidence=confidence,
            )
            self.spans.append(span)

    def omit(self, words: str, what: str) -> None:
        """Say `words`, about something that should be there and is not."""
        begin = len(self.text)
        self.text += words
        self.omissions.append(Omission(text=what, phrase=(begin, len(self.text))))

    def line(self, line: int, place: tuple[int, int] | None) -> str:
        """A line of the answer's source, as a reader finds it: its number, and its code in ticks."""
        number = self._answer.line_number(line) if self._answer else line
        code = self._completion[slice(*place)] if place else ""
        return f"line {number}, {ticked(code)}" if code else f"line {number}"


def ticked(code: str) -> str:
    """Code for a sentence: one line, not too long."""
    line = " ".join(code.split())
    return f"`{line if len(line) <= _SHOWN else line[: _SHOWN - 1] + '…'}`"
