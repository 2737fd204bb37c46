"""Prompt-only reflection: the model reads what is wrong with its answer and answers again; no weight changes."""

from __future__ import annotations

from collections.abc import Sequence

from evidence_answers import sample_answers, to_examples

from text2grad import Text2GradTrainer
from text2grad.critics.base import Critic, collect_feedback
from text2grad.schema import Example, Feedback, Message

AGAIN = "Your answer has these faults:\n{faults}\nWrite the corrected answer, and nothing else."


def reflect(trainer: Text2GradTrainer, critic: Critic, examples: Sequence[Example]) -> list[list[int]]:
    """Return the second answer where the critic names faults of the first, else the first."""
    first = sample_answers(trainer, examples)
    answered = to_examples(trainer, examples, first)
    faults = [
        list_faults(item, e.completion) for item, e in zip(collect_feedback(critic, answered), answered, strict=True)
    ]
    asked = [i for i, named in enumerate(faults) if named]
    if not asked:
        return first
    second = sample_answers(trainer, [ask_again(answered[i], faults[i]) for i in asked])
    return [dict(zip(asked, second, strict=True)).get(i, answer) for i, answer in enumerate(first)]


def ask_again(example: Example, faults: Sequence[str]) -> Example:
    """Return the conversation with the answer and its faults, to be answered."""
    prompt = [Message(role="user", content=example.prompt)] if isinstance(example.prompt, str) else list(example.prompt)
    return example.model_copy(
        update={
            "prompt": [
                *prompt,
                Message(role="assistant", content=example.completion),
                Message(role="user", content=AGAIN.format(faults="\n".join(faults))),
            ]
        }
    )


def list_faults(feedback: Feedback, completion: str) -> list[str]:
    """Return a line for each fault that is named, with its correction: what the other arms learn from, as words."""
    lines = []
    for span in feedback.spans:
        if span.label == "poor":
            right = f' It should be "{span.replacement}".' if span.replacement is not None else ""
            lines.append(
                f'- "{completion[span.start : span.end]}": {span.reason or "wrong"}.{right}'.replace("..", ".")
            )
    return lines + [f"- Missing: {omission.text}." for omission in feedback.omissions]
