"""Exports of annotations: feedback to train on, and the formats of Label Studio and Argilla."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from text2grad.critics.combined import merge_feedback
from text2grad.errors import UserError
from text2grad.files import replace_text
from text2grad.schema import Example, Feedback, Message
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


def _prompt(example: Example) -> str:
    return example.prompt if isinstance(example.prompt, str) else json.dumps(_messages(example.prompt))


def _messages(messages: list[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _label_studio_task(number: int, example: Example, annotations: list[Annotation]) -> dict[str, Any]:
    """A task of Label Studio's JSON, for a config with Text `completion`, Labels `label` and TextAreas per region."""
    return {
        "id": number,
        "data": {"id": example.id, "prompt": _prompt(example), "completion": example.completion},
        "annotations": [
            {"completed_by": one.annotator, "was_cancelled": False, "result": _results(example, one.feedback)}
            for one in annotations
        ],
    }


def _results(example: Example, feedback: Feedback) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []

    def add(region: str, name: str, kind: str, value: dict[str, Any], **more: Any) -> None:
        results.append({"id": region, "from_name": name, "to_name": "completion", "type": kind, "value": value, **more})

    for i, span in enumerate(feedback.spans):
        bounds = {"start": span.start, "end": span.end, "text": example.completion[span.start : span.end]}
        add(f"span-{i}", "label", "labels", bounds | {"labels": [span.label]}, meta={"severity": span.severity})
        if span.reason:
            add(f"span-{i}", "comment", "textarea", bounds | {"text": [span.reason]})
        if span.replacement is not None:
            add(f"span-{i}", "replacement", "textarea", bounds | {"text": [span.replacement]})
    for i, omission in enumerate(feedback.omissions):
        add(f"missing-{i}", "label", "labels", {"labels": ["missing"], **_insertion_place(omission.insert_at)})
        add(f"missing-{i}", "comment", "textarea", {"text": [omission.text]})
        if omission.insertion is not None:
            add(f"missing-{i}", "replacement", "textarea", {"text": [omission.insertion]})
    if feedback.critique and not feedback.spans and not feedback.omissions:
        add("critique", "comment", "textarea", {"text": [feedback.critique]})
    return results


def _insertion_place(at: int | None) -> dict[str, int]:
    return {} if at is None else {"start": at, "end": at}


def _argilla_record(number: int, example: Example, annotations: list[Annotation]) -> dict[str, Any]:
    """A record of Argilla's, with the span question `spans` (offsets in UTF-16, as browsers count) and texts."""
    utf16 = _utf16_offsets(example.completion)
    responses: dict[str, list[dict[str, Any]]] = {"spans": [], "comment": [], "replacement": []}
    for one in annotations:
        user = {"user_id": one.annotator, "status": "submitted"}
        feedback = one.feedback
        spans = [{"start": utf16(s.start), "end": utf16(s.end), "label": s.label} for s in feedback.spans]
        if spans:
            responses["spans"].append({"value": spans, **user})
        if text := _summary(feedback):
            responses["comment"].append({"value": text, **user})
        if len(feedback.spans) == 1 and feedback.spans[0].replacement is not None:
            responses["replacement"].append({"value": feedback.spans[0].replacement or "[delete]", **user})
    return {
        "id": example.id,
        "fields": {"prompt": _prompt(example), "completion": example.completion},
        "metadata": {"number": number},
        "responses": {question: answers for question, answers in responses.items() if answers},
    }


def _summary(feedback: Feedback) -> str:
    """Return the critique, or the reasons where there is none; Argilla has no comments on single spans."""
    reasons = [span.reason for span in feedback.spans if span.reason] + [item.text for item in feedback.omissions]
    return feedback.critique or "\n".join(reasons)


def _utf16_offsets(text: str) -> Callable[[int], int]:
    return lambda at: len(text[:at].encode("utf-16-le")) // 2
