"""A critic that checks what the comments ask for: phrases to avoid, phrases to use, a length.

Its options are in config.yaml. Change the class where your comments ask for more than that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from text2grad import Example, Feedback, Omission, Span


class HouseStyle:
    """Praises phrases to use and misses them; blames phrases to avoid, and words beyond the limit."""

    def __init__(self, avoid: Sequence[str] = (), use: Sequence[str] = (), max_words: int = 40) -> None:
        self.avoid, self.use, self.max_words = avoid, use, max_words

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example."""
        return [self.comment(example.completion) for example in examples]

    def comment(self, answer: str) -> Feedback:
        """Return the feedback on one answer; the score is 1 without faults, and -1 for silence."""
        spans = [*self.find(answer, self.avoid, "poor"), *self.find(answer, self.use, "good")]
        missing = [phrase for phrase in self.use if phrase.lower() not in answer.lower()]
        words = list(re.finditer(r"\S+", answer))
        if len(words) > self.max_words:
            reason = f"It is longer than {self.max_words} words."
            spans.append(Span(start=words[self.max_words].start(), end=len(answer), label="poor", reason=reason))
        faults = sum(span.label == "poor" for span in spans) + len(missing)
        checks = len(self.avoid) + len(self.use) + 1
        critique = " ".join(
            [*(span.reason or "" for span in spans), *(f'"{phrase}" is missing.' for phrase in missing)]
        )
        omissions = [Omission(text=phrase) for phrase in missing]
        score = -1.0 if not words else max(-1.0, 1 - 2 * faults / checks)
        return Feedback(critic="house style", critique=critique, spans=spans, omissions=omissions, score=score)

    def find(self, answer: str, phrases: Sequence[str], label: str) -> list[Span]:
        """Return a span for each place where one of the phrases stands."""
        return [
            Span(start=found.start(), end=found.end(), label=label, reason=f'"{found[0]}" is {label}.')
            for phrase in phrases
            for found in re.finditer(re.escape(phrase), answer, re.IGNORECASE)
        ]
