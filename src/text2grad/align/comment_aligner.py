"""Spans for feedback that is only words: what a comment quotes, or else what it is about."""

from __future__ import annotations

from collections.abc import Sequence

from text2grad.align.comments import quoted, spans_from_comment
from text2grad.align.learned import freeform
from text2grad.align.learned.attention import Scorer
from text2grad.schema import Example, Feedback, Span


class CommentAligner:
    """A critic that adds nothing of its own: it finds the places that the critique already there is about.

    Feedback that has spans or scores, has no critique, or has failed is returned as it is. A critique that is found
    nowhere in the answer is a failure, unless it speaks of what is missing.
    """

    reads_feedback = True  # the same answer with another comment is another question

    def __init__(self, scorer: Scorer | None = None) -> None:
        self.scorer = scorer

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [self._aligned(example) for example in examples]

    def _aligned(self, example: Example) -> Feedback:
        feedback = example.feedback
        if feedback is None:
            return Feedback.failure("align", "there is no feedback to align; annotate the record first")
        if feedback.status == "failed" or feedback.spans or feedback.scores or not feedback.critique.strip():
            return feedback
        spans, unmatched = self._spans(feedback.critique, example)
        if not spans and not feedback.omissions:
            error = "the critique is about no part of the answer that could be found"
            return feedback.model_copy(update={"status": "failed", "error": error, "unmatched": unmatched})
        signed = [span.model_copy(update={"critic": feedback.critic}) for span in spans]
        return feedback.model_copy(update={"spans": signed, "unmatched": unmatched})

    def _spans(self, critique: str, example: Example) -> tuple[list[Span], list[str]]:
        """What is quoted; else what it is about; else what it names."""
        named, unmatched = spans_from_comment(critique, example.completion)
        if unmatched or (quoted(critique) and named):
            return named, unmatched  # a quotation that is not there is reported, not guessed around
        about = freeform.locate(critique, example.completion, example.prompt_text or None, scorer=self.scorer)
        return about or named, unmatched
