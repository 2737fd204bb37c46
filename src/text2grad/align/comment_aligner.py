"""A critic that adds spans and omissions to feedback that has only a written critique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from text2grad.align.reading import Reading, read_comment
from text2grad.schema import Example, Feedback

if TYPE_CHECKING:
    from text2grad.align.learned.attention_features import Scorer  # imports transformers


def is_alignable(feedback: Feedback) -> bool:
    """Whether feedback has a critique, and nothing yet that says which words it is about."""
    return feedback.status == "ok" and not feedback.spans and not feedback.scores and bool(feedback.critique.strip())


class CommentAligner:
    """Find the parts of the completion that the existing critique is about, and what it says is missing.

    Feedback that has spans or scores, has no critique, or has failed is returned unchanged. A critique that has no
    effect becomes a failure with the reasons, unless the feedback has omissions.
    """

    reads_feedback = True  # a cached result is valid only for the same completion and the same comment

    def __init__(self, scorer: Scorer | None = None) -> None:
        self.scorer = scorer
        self.independent = scorer is None  # a model is not sent to other processes

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return the feedback of each example with spans and omissions added."""
        return [self._align(example) for example in examples]

    def _align(self, example: Example) -> Feedback:
        feedback = example.feedback
        if feedback is None:
            return Feedback.failure("align", "there is no feedback to align; annotate the record first")
        if not is_alignable(feedback):
            return feedback
        prompt = example.prompt_text or None
        reading = read_comment(
            feedback.critique, example.completion, prompt, scorer=self.scorer, critic=feedback.critic
        )
        found = {"unmatched": reading.unmatched, "omissions": [*feedback.omissions, *reading.omissions]}
        if not reading.spans and not found["omissions"]:
            failed = describe_failure(feedback.critique, reading)
            return feedback.model_copy(update={**failed, "unmatched": reading.unmatched})
        return feedback.model_copy(update={"spans": reading.spans, **found})


def describe_failure(comment: str, reading: Reading) -> dict[str, Any]:
    """Return the status and the error of feedback whose comment has no effect."""
    reasons = describe_refusals(comment, reading)
    return {"status": "failed", "error": f"the critique has no effect on the answer: {reasons}"}


def describe_refusals(comment: str, reading: Reading) -> str:
    """Return why the clauses of a comment have no effect, each quoted with its reason."""
    reasons = [f'"{comment[start:end].strip()}": {reason}' for (start, end), reason in reading.refused]
    return "; ".join(reasons) or "it says nothing about the answer"
