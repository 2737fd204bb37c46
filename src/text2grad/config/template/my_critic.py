"""An example critic: change `comment` to say what you think of a completion.

A critic is any class with `critique(examples) -> list[Feedback]`. Spans mark what is good or poor, in characters of the
completion; an omission says what is missing; the score says how good the whole is, and spans then say where it comes
from. `text2grad critic check my_critic:ReferenceCritic prompts.jsonl` tells what a model could get away with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from text2grad import Example, Feedback, Omission, Span
from text2grad.evaluation.metrics import rouge_l

WORD = re.compile(r"\w+")


class ReferenceCritic:
    """Compares a completion with its reference: praises what they share, blames the rest, names what is missing."""

    def __init__(self, min_letters: int = 4) -> None:
        """min_letters: of a word that counts."""
        self.min_letters = min_letters

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example."""
        return [self.comment(example) for example in examples]

    def comment(self, example: Example) -> Feedback:
        """Return the feedback on one completion."""
        if not isinstance(example.reference, str):
            return Feedback.failure("reference", "there is no reference to compare with")
        wanted = [word.lower() for word in WORD.findall(example.reference) if len(word) >= self.min_letters]
        said: set[str] = set()
        spans: list[Span] = []
        for word in WORD.finditer(example.completion):
            place, lower = {"start": word.start(), "end": word.end()}, word[0].lower()
            if lower in wanted and lower not in said:
                spans.append(Span(**place, label="good", severity=0.5, reason=f'"{word[0]}" belongs here.'))
            elif len(lower) >= self.min_letters:
                spans.append(Span(**place, label="poor", severity=0.25, reason=f'"{word[0]}" does not help.'))
            said.add(lower)
        omissions = [Omission(text=word, severity=0.25) for word in dict.fromkeys(wanted) if word not in said]
        remarks = [span.reason or "" for span in spans] + [f'It does not mention "{o.text}".' for o in omissions]
        return Feedback(
            critic="reference",
            critique=" ".join(remarks) or "It says what the reference says.",
            spans=spans,
            omissions=omissions,
            score=2 * rouge_l(example.completion, example.reference) - 1,
        )
