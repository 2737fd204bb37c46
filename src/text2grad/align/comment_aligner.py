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
    return {"status": "failed", "error": describe_no_effect(_refusals(comment, reading))}


def describe_refusals(comment: str, reading: Reading) -> str:
    """Return why the clauses of a comment have no effect, each quoted with its reason."""
    return _describe(_refusals(comment, reading))


def describe_no_effect(refused: Sequence[tuple[str, str]]) -> str:
    """Return the error of feedback whose comment has no effect. refused: words of the comment, and the reason."""
    return f"the critique has no effect on the answer: {_describe(refused)}"


def _refusals(comment: str, reading: Reading) -> list[tuple[str, str]]:
    return [(comment[start:end].strip(), reason) for (start, end), reason in reading.refused]


def _describe(refused: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f'"{words}": {reason}' for words, reason in refused) or "it says nothing about the answer"
