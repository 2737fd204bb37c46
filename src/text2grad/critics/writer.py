"""A critique under construction: its text, and the spans and omissions that phrases of the text refer to."""

from __future__ import annotations

from typing import Any

from text2grad.schema import Feedback, Label, Omission, Range, Span


class CritiqueWriter:
    """Appends to the text of a critique; `write` returns the range to use as the phrase of a span or omission."""

    def __init__(self, critic: str) -> None:
        self.critic = critic
        self.text = ""
        self.spans: list[Span] = []
        self.omissions: list[Omission] = []

    def write(self, words: str) -> Range:
        """Append words and return their range in the text."""
        start = len(self.text)
        self.text += words
        return start, len(self.text)

    def mark(self, place: Range, phrase: Range, label: Label = "poor", **fields: Any) -> None:
        """Add a span over `place` of the completion; `fields` are the other fields of Span."""
        self.spans.append(Span(start=place[0], end=place[1], label=label, phrase=phrase, **fields))

    def feedback(self, score: float, default: str = "") -> Feedback:
        """Return the finished feedback; `default` is the critique where nothing was written."""
        return Feedback(
            critique=self.text.rstrip() or default,
            spans=self.spans,
            omissions=self.omissions,
            score=score,
            critic=self.critic,
        )
