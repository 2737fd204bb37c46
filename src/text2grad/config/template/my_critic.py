"""An example critic: change `comment` to say what you think of a completion.

A critic is any class with `critique(examples) -> list[Feedback]`. Spans mark what is good or poor, in characters of the
completion; an omission says what is missing. Text without spans earns no reward.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from text2grad import Example, Feedback, Omission, Span

WORD = re.compile(r"\w+")


class ConciseCritic:
    """Praises words that take up the prompt; blames repetition, length and silence."""

    def __init__(self, max_words: int = 40) -> None:
        self.max_words = max_words

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example."""
        return [self.comment(example) for example in examples]

    def comment(self, example: Example) -> Feedback:
        """Return the feedback on one completion."""
        words = list(WORD.finditer(example.completion))
        if not words:
            missing = "It says nothing."
            return Feedback(critic="concise", critique=missing, omissions=[Omission(text=missing)])
        spans: list[Span] = []
        topic = {word.lower() for word in WORD.findall(example.prompt_text) if len(word) > 4}
        seen: set[str] = set()
        for word in words[: self.max_words]:
            lower = word[0].lower()
            if lower in topic - seen:
                reason = f'"{word[0]}" takes up the prompt.'
                spans.append(Span(start=word.start(), end=word.end(), label="good", severity=0.5, reason=reason))
            elif lower in seen and len(lower) > 4:
                reason = f'It repeats "{word[0]}".'
                spans.append(Span(start=word.start(), end=word.end(), label="poor", reason=reason))
            seen.add(lower)
        if len(words) > self.max_words:
            reason = f"It is longer than {self.max_words} words."
            start, end = words[self.max_words].start(), len(example.completion)
            spans.append(Span(start=start, end=end, label="poor", reason=reason))
        critique = " ".join(span.reason or "" for span in spans) or "It is short and does not repeat itself."
        return Feedback(critic="concise", critique=critique, spans=spans)
