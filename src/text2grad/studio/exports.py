"""Exports of annotations: feedback to train on, and the formats of Label Studio and Argilla."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from text2grad.critics.combined import merge_feedback
from text2grad.critics.human.annotation_tasks import argilla_answers, label_studio_results, prompt_cell
from text2grad.errors import UserError
from text2grad.files import replace_text
from text2grad.schema import Example, Feedback
from text2grad.studio.project import Project
from text2grad.studio.store import Annotation

Format = Literal["feedback", "label-studio", "argilla"]
ADJUDICATOR = "adjudicated"  # the annotator whose word is final
SUFFIXES: dict[Format, str] = {"feedback": "jsonl", "label-studio": "json", "argilla": "json"}


def annotated(project: Project, annotator: str | None = None) -> Iterator[tuple[Example, list[Annotation]]]:
    """Yield the answers with finished or started annotations, in the order of the source; skipped ones are left out.

    annotator: only this one's. Answers that the source no longer has come last.
    """
    positions = {key: index for index, key in enumerate(project.keys)}
    examples = project.store.examples() | dict(zip(project.keys, project.examples, strict=True))
    by_key = project.store.annotations()
    for key in sorted(by_key, key=lambda key: positions.get(key, len(positions))):
        chosen = [one for one in by_key[key] if annotator in (None, one.annotator) and says_something(one)]
        if chosen:
            yield examples[key].model_copy(update={"feedback": None}), chosen


def says_something(annotation: Annotation) -> bool:
    """Whether an annotation is more than an answer that was opened: marked, criticised, or declared done."""
    feedback = annotation.feedback
    has_content = bool(feedback.spans or feedback.omissions or feedback.critique)
    return annotation.status != "skipped" and (has_content or annotation.status == "done")


def decided(annotations: Sequence[Annotation]) -> Feedback:
    """Return the feedback that counts: the adjudicated one, else that of all annotators together."""
    final = [one for one in annotations if one.annotator == ADJUDICATOR]
    return merge_feedback([one.feedback for one in final or annotations])


def feedback_examples(project: Project, annotator: str | None = None) -> list[Example]:
    """Return the annotated answers with the feedback on them."""
    pairs = annotated(project, annotator)
    return [example.model_copy(update={"feedback": decided(annotations)}) for example, annotations in pairs]


def render(project: Project, form: Format, annotator: str | None = None) -> str:
    """Return the content of the exported file."""
    if form == "feedback":
        examples = feedback_examples(project, annotator)
        return "".join(example.model_dump_json(exclude_defaults=True) + "\n" for example in examples)
    convert = _label_studio_task if form == "label-studio" else _argilla_record
    records = [convert(number, *pair) for number, pair in enumerate(annotated(project, annotator), 1)]
    return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


def write(project: Project, path: Path, form: Format, annotator: str | None = None) -> int:
    """Write an export, replacing an older one, and return how many answers it has; UserError where there is none."""
    count = sum(1 for _ in annotated(project, annotator))
    if not count:
        who = f" by {annotator}" if annotator else ""
        raise UserError(
            f"{path} is not written: no answer was marked{who} in the studio; `text2grad import` reads the comments "
            f"that a file has already"
        )
    replace_text(path, render(project, form, annotator))
    return count


def _label_studio_task(number: int, example: Example, annotations: list[Annotation]) -> dict[str, Any]:
    """A task of Label Studio's JSON, for a project with `LABEL_STUDIO_CONFIG`; each annotator has an annotation."""
    return {
        "id": number,
        "data": {"id": example.id, "prompt": prompt_cell(example), "completion": example.completion},
        "annotations": [
            {"completed_by": one.annotator, "was_cancelled": False, "result": _results(example, one.feedback)}
            for one in annotations
        ],
    }


def _results(example: Example, feedback: Feedback) -> list[dict[str, Any]]:
    if _is_critique_alone(feedback):
        whole = {"id": "critique", "from_name": "comment", "to_name": "completion", "type": "textarea"}
        return [whole | {"value": {"text": [feedback.critique]}}]
    return label_studio_results(feedback, example.completion)


def _argilla_record(number: int, example: Example, annotations: list[Annotation]) -> dict[str, Any]:
    """A record of Argilla's with the responses of each annotator, to the questions of `to_argilla` and `comment`."""
    responses: dict[str, list[dict[str, Any]]] = {}
    for one in annotations:
        feedback = one.feedback
        alone = _is_critique_alone(feedback)
        answers = {"comment": feedback.critique} if alone else argilla_answers(feedback, example.completion)
        for question, value in answers.items():
            said = {"value": value, "user_id": one.annotator, "status": "submitted"}
            responses.setdefault(question, []).append(said)
    return {
        "id": example.id,
        "fields": {"prompt": prompt_cell(example), "completion": example.completion},
        "metadata": {"number": number},
        "responses": responses,
    }


def _is_critique_alone(feedback: Feedback) -> bool:
    """Whether nothing was marked, so that the critique is all there is; else it repeats what is said of the parts."""
    return bool(feedback.critique) and not feedback.spans and not feedback.omissions
