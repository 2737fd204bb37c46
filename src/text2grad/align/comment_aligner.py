"""A critic that adds spans to feedback that has only a written critique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from text2grad.align.comments import spans_from_comment
from text2grad.align.learned import aligner
from text2grad.align.quotations import find_quotations
from text2grad.schema import Example, Feedback, Span

if TYPE_CHECKING:
    from text2grad.align.learned.attention_features import Scorer  # imports transformers


def is_alignable(feedback: Feedback) -> bool:
    """Whether feedback has a critique, and nothing yet that says which words it is about."""
    return feedback.status == "ok" and not feedback.spans and not feedback.scores and bool(feedback.critique.strip())


class CommentAligner:
    """Find the parts of the completion that the existing critique is about.

    Feedback that has spans or scores, has no critique, or has failed is returned unchanged. A critique that matches no
    part of the completion becomes a failure, unless the feedback has omissions.
    """

    reads_feedback = True  # a cached result is valid only for the same completion and the same comment

    def __init__(self, scorer: Scorer | None = None) -> None:
        self.scorer = scorer

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return the feedback of each example with spans added."""
        return [self._align(example) for example in examples]

    def _align(self, example: Example) -> Feedback:
        feedback = example.feedback
        if feedback is None:
            return Feedback.failure("align", "there is no feedback to align; annotate the record first")
        if not is_alignable(feedback):
            return feedback
        spans, unmatched = self._find_spans(feedback.critique, example)
        if not spans and not feedback.omissions:
            error = "the critique is about no part of the answer that could be found"
            return feedback.model_copy(update={"status": "failed", "error": error, "unmatched": unmatched})
        spans = [span.model_copy(update={"critic": feedback.critic}) for span in spans]
        return feedback.model_copy(update={"spans": spans, "unmatched": unmatched})

    def _find_spans(self, critique: str, example: Example) -> tuple[list[Span], list[str]]:
        """Return the quoted parts; without quotations what the learned aligner finds, else the words that are named."""
        spans, unmatched = spans_from_comment(critique, example.completion)
        if unmatched or (spans and find_quotations(critique)):
            return spans, unmatched  # a quotation that is not found is reported, not replaced by a guess
        prompt = example.prompt_text or None
        return aligner.align_comment(critique, example.completion, prompt, scorer=self.scorer) or spans, unmatched
