"""Parsers for the exports of annotation tools: Label Studio, Argilla and doccano."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from text2grad.critics.human.comment_feedback import HumanComment, LabelMeanings
from text2grad.errors import UserError

PROMPTS = ("prompt", "instruction", "question", "input", "query", "source", "document", "article")
COMMENTS = ("comment", "feedback", "critique", "note", "why", "reason", "explanation")
REPLACEMENT = "replacement"  # the text field or question that says what should stand in the place of a span
SEVERITY = "severity"  # the number of a region of Label Studio that says how much it matters
SPAN_COMMENTS, MISSING = "span_comments", "missing"  # text questions of Argilla with a line per span, or per omission
COMPLETIONS = ("completion", "response", "answer", "output", "summary", "text")


class FieldNames(NamedTuple):
    """The fields of a record that hold the prompt, the completion and the comment; None: the usual names."""

    prompt: str | None = None
    completion: str | None = None
    comment: str | None = None


class AnnotatedCompletion(NamedTuple):
    """A completion and its annotations.

    fields: id, prompt and completion. ratings: (annotator, label) pairs on the whole completion.
    """

    fields: dict[str, Any]
    comments: list[HumanComment]
    ratings: list[tuple[str | None, str]]
    meta: dict[str, list[Any]]


def parse_export(record: Mapping[str, Any], fields: FieldNames, labels: LabelMeanings) -> AnnotatedCompletion | None:
    """Parse a record of an export; None for a record of none of these tools."""
    if _is_label_studio(record):
        return _parse_label_studio(record, fields, labels)
    if _is_label_studio_min(record):
        return _parse_label_studio_min(record, fields, labels)
    if _is_argilla(record):
        return _parse_argilla(record, fields, labels)
    if _doccano_spans(record) is not None:
        return _parse_doccano(record, fields, labels)
    return None


def is_export(record: Mapping[str, Any]) -> bool:
    """Whether a record is from one of the tools."""
    tools = (_is_label_studio, _is_label_studio_min, _is_argilla)
    return any(is_one(record) for is_one in tools) or _doccano_spans(record) is not None


def _is_label_studio(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("data"), dict) and "annotations" in record


def _is_label_studio_min(record: Mapping[str, Any]) -> bool:
    return "annotation_id" in record and any(_regions(value) for value in record.values())


def _regions(value: Any) -> list[dict[str, Any]]:
    """Return the labelled regions of a field of JSON-MIN, or of a cell of Label Studio's CSV; empty for another one."""
    if isinstance(value, str) and value.startswith("[{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    is_list = isinstance(value, list) and all(isinstance(item, dict) and "labels" in item for item in value)
    return value if is_list else []


def _is_argilla(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("fields"), dict) or any(name.endswith(".responses") for name in record)


def _parse_label_studio(record: Mapping[str, Any], fields: FieldNames, labels: LabelMeanings) -> AnnotatedCompletion:
    """Parse a task of the JSON export. Cancelled annotations, predictions and marks on the prompt are skipped."""
    data = record["data"]
    prompt, completion = _find_fields(data, fields)
    own = {"id": data.get("id", record.get("id")), "prompt": data[prompt], "completion": data[completion]}
    parsed = AnnotatedCompletion(own, [], [], {})
    for annotation in record["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        annotator = _annotator(annotation.get("completed_by"))
        # relations between regions have no value
        results = [
            result for result in annotation.get("result", []) if "value" in result and result.get("to_name") != prompt
        ]
        regions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for result in results:
            regions[str(result.get("id"))].append(result)
        for region in regions.values():
            parsed.comments.extend(_region_comments(region, annotator, fields.comment))
        for result in results:
            value, name = result["value"], str(result.get("from_name"))
            for choice in value.get("choices", []):
                if choice in labels and "start" not in value:
                    parsed.ratings.append((annotator, choice))
                else:
                    parsed.meta.setdefault(name, []).append(choice)
            if "rating" in value:
                parsed.meta.setdefault(name, []).append(value["rating"])
    return parsed


def _parse_label_studio_min(
    record: Mapping[str, Any], fields: FieldNames, labels: LabelMeanings
) -> AnnotatedCompletion:
    """Parse a record of JSON-MIN or CSV, one per annotation. Comments are not linked to regions there: one comment
    beside one region is about it, others are about the whole.
    """
    prompt, completion = _find_fields(record, fields)
    parsed = AnnotatedCompletion(
        {"id": record.get("id"), "prompt": record[prompt], "completion": record[completion]}, [], [], {}
    )
    annotator = _annotator(record.get("annotator"))
    comment_names = (fields.comment,) if fields.comment else COMMENTS
    texts = [str(text) for name in comment_names for text in to_list(record.get(name) or [])]
    regions = [region for value in record.values() for region in _regions(value)]
    about_region = texts if len(regions) == 1 else []
    for region in regions:
        position = {"start": region.get("start"), "end": region.get("end"), "quote": region.get("text")}
        for label in region["labels"]:
            parsed.comments.append(
                HumanComment(comment="\n".join(about_region), **position, label=label, annotator=annotator)
            )
    if texts and not about_region:
        parsed.comments.append(HumanComment(comment="\n".join(texts), annotator=annotator))
    for name, value in record.items():
        if name not in (prompt, completion) and isinstance(value, str) and value in labels:
            parsed.ratings.append((annotator, value))
    return parsed


def _parse_argilla(record: Mapping[str, Any], fields: FieldNames, labels: LabelMeanings) -> AnnotatedCompletion:
    """Parse a record of `records.to_json`, of a hub dataset, or of the 1.x client; skip discarded responses."""
    data = record["fields"] if isinstance(record.get("fields"), dict) else record
    prompt, completion = _find_fields(data, fields)
    record_id = record.get("id") or record.get("external_id")
    own = {"id": record_id, "prompt": data[prompt], "completion": data[completion]}
    parsed = AnnotatedCompletion(own, [], [], {})
    said: dict[str, dict[str | None, str]] = {REPLACEMENT: {}, SPAN_COMMENTS: {}}
    for question, value, annotator in _responses(record):
        if question in said and isinstance(value, str):
            said[question][annotator] = value
            continue
        if question == MISSING and isinstance(value, str) and value not in labels:
            parsed.comments.extend(
                HumanComment(comment=unescape_line(line), label=MISSING, annotator=annotator)
                for line in value.splitlines()
                if line.strip()
            )
            continue
        for item in to_list(value):
            if isinstance(item, dict) and "start" in item:
                span = {name: item.get(name) for name in ("start", "end", "label")}
                parsed.comments.append(HumanComment(**span, annotator=annotator, units="utf16"))
            elif isinstance(item, str) and item in labels:
                parsed.ratings.append((annotator, item))
            elif isinstance(item, str) and not isinstance(value, list) and fields.comment in (None, question):
                parsed.comments.append(HumanComment(comment=item, annotator=annotator))
            else:
                parsed.meta.setdefault(question, []).append(item)
    comments = _with_lines(parsed.comments, "replacement", said[REPLACEMENT])
    return parsed._replace(comments=_with_lines(comments, "comment", said[SPAN_COMMENTS]))


def _with_lines(comments: list[HumanComment], field: str, said: Mapping[str | None, str]) -> list[HumanComment]:
    """Give each span a line of what its annotator said about the spans, in their order; an empty one says nothing.

    A single span gets the whole text. Where the lines are not as many as the spans, it is not known which is meant.
    """
    result = list(comments)
    for annotator, text in said.items():
        places = [i for i, one in enumerate(comments) if one.start is not None and one.annotator == annotator]
        lines = [text] if len(places) == 1 else text.split("\n")
        if len(lines) == len(places):
            for place, line in zip(places, map(unescape_line, lines), strict=True):
                if line:
                    result[place] = HumanComment.model_validate(result[place].model_dump() | {field: line})
    return result


def escape_line(text: str) -> str:
    """Return a text on one line: line breaks become `\\n`."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def unescape_line(line: str) -> str:
    """Return the text that `escape_line` put on one line."""
    return re.sub(r"\\([\\n])", lambda escaped: "\n" if escaped[1] == "n" else "\\", line)


def _parse_doccano(record: Mapping[str, Any], fields: FieldNames, labels: LabelMeanings) -> AnnotatedCompletion:
    """Parse a line of a sequence labelling project: `text` is the completion, and other columns were imported with it.

    Comments are on the whole text; doccano does not say which span they belong to.
    """
    prompt, completion = _find_fields(record, FieldNames(fields.prompt, fields.completion or "text"))
    parsed = AnnotatedCompletion(
        {"id": record.get("id"), "prompt": record[prompt], "completion": record[completion]}, [], [], {}
    )
    for start, end, label in _doccano_spans(record) or []:
        parsed.comments.append(HumanComment(start=start, end=end, label=label))
    for comment in to_list(record.get("Comments") or record.get("comments") or []):
        text = comment.get("comment") if isinstance(comment, dict) else comment
        parsed.comments.append(HumanComment(comment=str(text)))
    for category in to_list(record.get("cats") or []):
        if category in labels:
            parsed.ratings.append((None, category))
        else:
            parsed.meta.setdefault("cats", []).append(category)
    return parsed


def _doccano_spans(record: Mapping[str, Any]) -> list[tuple[int, int, str]] | None:
    """Return the labelled spans of a line of doccano's, None for another record; `entities` may have relations."""
    if not isinstance(record.get("text"), str):
        return None
    entities = record.get("entities")
    if isinstance(entities, list) and all(isinstance(item, dict) and "start_offset" in item for item in entities):
        return [(item["start_offset"], item["end_offset"], item["label"]) for item in entities]
    for name in ("label", "labels", "entities"):
        spans = record.get(name)
        if isinstance(spans, list) and all(isinstance(item, list) and len(item) == 3 for item in spans):
            return [(start, end, label) for start, end, label in spans]
    return None


def _region_comments(
    results: list[dict[str, Any]], annotator: str | None, comment_field: str | None
) -> Iterator[HumanComment]:
    """Parse the results that share an id: a labelled region with its comment, or a comment on the whole."""
    texts = {
        str(result.get("from_name")): [str(line) for line in to_list(result["value"].get("text") or [])]
        for result in results
        if result.get("type") == "textarea"
    }
    replacement = texts.pop(REPLACEMENT, None)
    lines = [line for name, said in texts.items() if comment_field in (None, name) for line in said]
    text = "\n".join(lines)
    severity = [result["value"]["number"] for result in results if result.get("from_name") == SEVERITY]
    weight = {"severity": severity[0]} if severity else {}
    labelled = [result for result in results if str(result.get("type")).endswith("labels")]
    for result in labelled:
        value = result["value"]
        if result["type"] != "labels":
            raise UserError(f'result type "{result["type"]}" has no offsets in a text; use Text and Labels tags')
        position = {"start": value.get("start"), "end": value.get("end"), "quote": value.get("text")}
        for label in value.get("labels") or [None]:
            instead = None if replacement is None else "\n".join(replacement)
            yield HumanComment(
                comment=text, **position, **weight, label=label, annotator=annotator, replacement=instead
            )
    if not labelled and lines:
        yield HumanComment(comment=text, annotator=annotator)


def to_list(value: Any) -> list[Any]:
    """Return a list as it is, and any other value in a list."""
    return value if isinstance(value, list) else [value]


def _responses(record: Mapping[str, Any]) -> Iterator[tuple[str, Any, str | None]]:
    """Yield (question, value, annotator) of every response that was not discarded."""
    responses = record.get("responses")
    if isinstance(responses, dict):
        for question, answers in responses.items():
            for response in answers or []:
                if response.get("status") != "discarded":
                    yield question, response.get("value"), _annotator(response.get("user_id"))
    elif isinstance(responses, list):
        for response in responses:
            if response.get("status") != "discarded":
                for question, answer in (response.get("values") or {}).items():
                    yield question, answer.get("value"), _annotator(response.get("user_id"))
    for name, values in record.items():
        if name.endswith(".responses") and values:
            users = record.get(f"{name}.users") or [None] * len(values)
            statuses = record.get(f"{name}.status") or [None] * len(values)
            for value, user, status in zip(values, users, statuses, strict=True):
                if status != "discarded":
                    yield name.removesuffix(".responses"), value, _annotator(user)


def _find_fields(data: Mapping[str, Any], fields: FieldNames) -> tuple[str, str]:
    """Return the names of the prompt's and the completion's fields."""
    prompt = _find_field(data, fields.prompt, PROMPTS, "prompt")
    completion = _find_field(data, fields.completion, COMPLETIONS, "completion")
    if not isinstance(data[completion], str):
        raise UserError(f"{completion} is not a text; name the completion's field, as in completion=NAME")
    return prompt, completion


def _find_field(data: Mapping[str, Any], name: str | None, usual: tuple[str, ...], role: str) -> str:
    candidates = (name,) if name else usual
    found = [candidate for candidate in candidates if data.get(candidate) is not None]
    if not found:
        there = ", ".join(map(str, data))
        missing = " or ".join(candidates)
        raise UserError(f"no field {missing} for the {role}; there are {there}: give {role}=NAME")
    return found[0]


def _annotator(value: Any) -> str | None:
    """Return a user's id or email; Label Studio may export an object."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    return None if value in (None, "None") else str(value)
