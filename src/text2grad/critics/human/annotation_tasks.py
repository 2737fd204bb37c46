"""Feedback as tasks of annotation tools, for people to look at and change; `text2grad import` reads their exports.

Spans come back as they were, with label, reason, severity (Label Studio) and replacement; omissions come back with
their text, in Label Studio with the words to insert. Argilla has one answer per question and record, so what is said
about each span is a line of its own, in the order of the spans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from text2grad.critics.human.comment_feedback import DELETE
from text2grad.critics.human.exports import MISSING, REPLACEMENT, SEVERITY, SPAN_COMMENTS, escape_line
from text2grad.schema import Example, Feedback, Omission, Span

LABEL_STUDIO_CONFIG = f"""<View>
  <Text name="prompt" value="$prompt"/>
  <Text name="completion" value="$completion"/>
  <Labels name="label" toName="completion">
    <Label value="good"/><Label value="poor"/><Label value="missing"/>
  </Labels>
  <TextArea name="comment" toName="completion" perRegion="true"/>
  <TextArea name="{REPLACEMENT}" toName="completion" perRegion="true"/>
  <Number name="{SEVERITY}" toName="completion" perRegion="true" min="0" max="1" step="any"/>
</View>
"""


def to_label_studio(example: Example) -> dict[str, Any]:
    """Return a task with an annotation, for a project with `LABEL_STUDIO_CONFIG`."""
    data = {"prompt": prompt_cell(example), "completion": example.completion, "id": example.id}
    return {"data": data, "annotations": [{"result": label_studio_results(_feedback(example), example.completion)}]}


def label_studio_results(feedback: Feedback, completion: str) -> list[dict[str, Any]]:
    """Return the regions of an annotation: spans and omissions, with what is said about each."""
    regions: list[Span | Omission] = [*feedback.spans, *feedback.omissions]
    return [result for number, region in enumerate(regions, 1) for result in _region(region, f"r{number}", completion)]


def to_argilla(example: Example) -> dict[str, Any]:
    """Return a record with suggestions, as `dataset.records.from_json` reads it.

    Its fields are prompt, completion and critique; its questions: spans (good, poor), span_comments, replacement and
    missing.
    """
    feedback = _feedback(example)
    answers = argilla_answers(feedback, example.completion)
    return {
        "id": example.id,
        "fields": {"prompt": prompt_cell(example), "completion": example.completion, "critique": feedback.critique},
        "suggestions": {question: {"value": value} for question, value in answers.items()},
    }


def argilla_answers(feedback: Feedback, completion: str) -> dict[str, Any]:
    """Return the answers to the questions about spans and omissions, without those that would be empty."""
    spans = [
        {"label": span.label, "start": _utf16(completion[: span.start]), "end": _utf16(completion[: span.end])}
        for span in feedback.spans
    ]
    answers = {
        "spans": spans,
        SPAN_COMMENTS: _lines([span.reason for span in feedback.spans]),
        REPLACEMENT: _lines([_replacement(span) for span in feedback.spans]),
        MISSING: "\n".join(escape_line(omission.text) for omission in feedback.omissions),
    }
    return {question: value for question, value in answers.items() if value}


TOOLS: dict[str, Callable[[Example], dict[str, Any]]] = {"label-studio": to_label_studio, "argilla": to_argilla}


def prompt_cell(example: Example) -> str:
    """Return the prompt; a conversation as JSON, which comes back as one."""
    return example.prompt if isinstance(example.prompt, str) else to_json(example.prompt).decode()


def _feedback(example: Example) -> Feedback:
    """Return the feedback of an example; one without, or whose feedback failed, is a task for people."""
    if example.feedback is None or example.feedback.status == "failed":
        return Feedback(critic="")
    return example.feedback


def _region(part: Span | Omission, identity: str, completion: str) -> list[dict[str, Any]]:
    """Return the results of one region: its label, its comment, what should stand there, how much it matters."""
    label: str
    if isinstance(part, Span):
        start, end, label, said, instead = part.start, part.end, part.label, part.reason, _replacement(part)
    else:
        start = 0 if part.insert_at is None else part.insert_at
        end = len(completion) if part.insert_at is None else min(start + 1, len(completion))
        label, said, instead = MISSING, part.text, part.insertion
    place = {"start": start, "end": end}
    common = {"id": identity, "to_name": "completion"}
    results: list[dict[str, Any]] = [
        {"from_name": "label", "type": "labels", "value": place | {"text": completion[start:end], "labels": [label]}}
    ]
    for name, text in (("comment", said), (REPLACEMENT, instead)):
        if text is not None:
            results.append({"from_name": name, "type": "textarea", "value": place | {"text": [text]}})
    if part.severity < 1:
        results.append({"from_name": SEVERITY, "type": "number", "value": place | {"number": part.severity}})
    return [common | result for result in results]


def _replacement(span: Span) -> str | None:
    return DELETE if span.replacement == "" else span.replacement


def _lines(texts: list[str | None]) -> str:
    """Return one line per text, empty where there is none; nothing at all where there is no text."""
    return "\n".join(escape_line(text or "") for text in texts) if any(texts) else ""


def _utf16(text: str) -> int:
    """Return the length in UTF-16 code units, in which browsers count."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2
