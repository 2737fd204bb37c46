"""A critic that comments as people do: it names one fault of an answer and stops."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np

from text2grad.critics.base import Critic, collect_feedback
from text2grad.schema import Example, Feedback, Omission, Span

Score = Literal["comment", "whole"]


class OneFault:
    """Names one of the faults that another critic finds, drawn with a fixed seed.

    score: None gives none, since such a comment does not say how good the whole answer is. `comment` is the comment as
    a number, for arms that learn from nothing else: 0 less the severity of the fault, 0 where there is none. `whole` is
    the other critic's own score, which knows more than the comment.
    """

    def __init__(self, critic: Critic, score: Score | None = None) -> None:
        self.critic, self.score = critic, score

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        found = collect_feedback(self.critic, list(examples))
        return [self._one(example, feedback) for example, feedback in zip(examples, found, strict=True)]

    def _one(self, example: Example, feedback: Feedback) -> Feedback:
        if feedback.status == "failed":
            return feedback
        blamed: list[Span | Omission] = [span for span in feedback.spans if span.label == "poor"]
        faults = blamed + list(feedback.omissions)
        seed = hashlib.blake2b(f"{example.id}\n{example.completion}".encode(), digest_size=8).digest()
        named = faults[np.random.default_rng(list(seed)).integers(len(faults))] if faults else None
        scores = {None: None, "comment": -named.severity if named else 0.0, "whole": feedback.score}
        return feedback.model_copy(
            update={
                "spans": [named] if isinstance(named, Span) else [],
                "omissions": [named] if isinstance(named, Omission) else [],
                "score": scores[self.score],
                "scores": None,
            }
        )
