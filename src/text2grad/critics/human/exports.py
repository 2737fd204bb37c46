"""Parsers for the exports of annotation tools: Label Studio and Argilla."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from text2grad.critics.human.comment_feedback import HumanComment, LabelMeanings
from text2grad.errors import UserError

PROMPTS = ("prompt", "instruction", "question", "input", "query", "source", "document", "article")
REPLACEMENT = "replacement"  # the text field or question that says what should stand in the place of a span
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
    """Parse a record of an export; None for a record of neither tool."""
    if isinstance(record.get("data"), dict) and "annotations" in record:
        return _parse_label_studio(record, fields, labels)
    if isinstance(record.get("fields"), dict) or any(name.endswith(".responses") for name in record):
        return _parse_argilla(record, fields, labels)
    return None


def _parse_label_studio(record: Mapping[str, Any], fields: FieldNames, labels: LabelMeanings) -> AnnotatedCompletion:
    """Parse a task of the JSON export. Cancelled annotations, predictions and marks on the prompt are skipped."""
    data = record["data"]
    prompt, completion = _find_fields(data, fields)
    own = {"id": record.get("id"), "prompt": data[prompt], "completion": data[completion]}
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


def _parse_argilla(record: Mapping[str, Any], fields: FieldNames, labels: LabelMeanings) -> AnnotatedCompletion:
    """Parse a record of `records.to_json`, of a hub dataset, or of the 1.x client; skip discarded responses."""
    data = record["fields"] if isinstance(record.get("fields"), dict) else record
    prompt, completion = _find_fields(data, fields)
    record_id = record.get("id") or record.get("external_id")
    own = {"id": record_id, "prompt": data[prompt], "completion": data[completion]}
    parsed = AnnotatedCompletion(own, [], [], {})
    replacements: dict[str | None, str] = {}
    for question, value, annotator in _responses(record):
        if question == REPLACEMENT and isinstance(value, str):
            replacements[annotator] = value
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
    return parsed._replace(comments=_with_replacements(parsed.comments, replacements))


def _with_replacements(comments: list[HumanComment], replacements: Mapping[str | None, str]) -> list[HumanComment]:
    """Give each annotator's replacement to the span that they marked, if it is the only one."""
    spans = Counter(comment.annotator for comment in comments if comment.start is not None)
    return [
        comment.model_copy(update={"replacement": HumanComment(replacement=said).replacement})
        if comment.start is not None
        and spans[comment.annotator] == 1
        and (said := replacements.get(comment.annotator)) is not None
        else comment
        for comment in comments
    ]


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
    labelled = [result for result in results if str(result.get("type")).endswith("labels")]
    for result in labelled:
        value = result["value"]
        if result["type"] != "labels":
            raise UserError(f'result type "{result["type"]}" has no offsets in a text; use Text and Labels tags')
        position = {"start": value.get("start"), "end": value.get("end"), "quote": value.get("text")}
        for label in value.get("labels") or [None]:
            instead = None if replacement is None else "\n".join(replacement)
            yield HumanComment(comment=text, **position, label=label, annotator=annotator, replacement=instead)
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
