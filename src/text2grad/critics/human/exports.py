"""Records of labelling tools: what people marked and wrote in Label Studio and Argilla."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from text2grad.critics.human.remarks import Labels, Remark
from text2grad.errors import UserError

PROMPTS = ("prompt", "instruction", "question", "input", "query", "source", "document", "article")
COMPLETIONS = ("completion", "response", "answer", "output", "summary", "text")


class Fields(NamedTuple):
    """Which fields of a record hold the prompt, the completion and the comment; None finds the usual names."""

    prompt: str | None = None
    completion: str | None = None
    comment: str | None = None


class Commented(NamedTuple):
    """An answer, and what people said about it. `overall` are verdicts on the whole of it, by annotator."""

    prompt: Any
    completion: str
    remarks: list[Remark]
    overall: list[tuple[str | None, str]]
    id: str | None
    meta: dict[str, Any]


def is_label_studio(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("data"), dict) and "annotations" in record


def is_argilla(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("fields"), dict) or any(name.endswith(".responses") for name in record)


def label_studio(record: Mapping[str, Any], fields: Fields, labels: Labels, where: str) -> Commented:
    """A task of the JSON export. Cancelled annotations, predictions and marks on the prompt count for nothing."""
    prompt, completion = _names(record["data"], fields, where)
    remarks: list[Remark] = []
    overall: list[tuple[str | None, str]] = []
    other: dict[str, Any] = {}
    for annotation in record["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        annotator = _person(annotation.get("completed_by"))
        # relations between regions have no value
        results = [result for result in annotation.get("result", []) if "value" in result]
        regions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for result in results:
            if result.get("to_name") != prompt:
                regions[str(result.get("id"))].append(result)
        for region in regions.values():
            remarks += _region(region, annotator, fields.comment, where)
        for result in results:
            if result.get("to_name") == prompt:
                continue
            value, name = result["value"], str(result.get("from_name"))
            for choice in value.get("choices", []):
                if labels.knows(choice) and "start" not in value:
                    overall.append((annotator, choice))
                else:
                    other.setdefault(name, []).append(choice)
            if "rating" in value:
                other.setdefault(name, []).append(value["rating"])
    return _commented(record["data"], prompt, completion, remarks, overall, record.get("id"), other)


def argilla(record: Mapping[str, Any], fields: Fields, labels: Labels, where: str) -> Commented:
    """A record of `records.to_json`, of a data set on the hub, or of the 1.x client, without discarded responses."""
    data = record["fields"] if isinstance(record.get("fields"), dict) else record
    remarks: list[Remark] = []
    overall: list[tuple[str | None, str]] = []
    other: dict[str, Any] = {}
    for question, value, annotator in _responses(record):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict) and "start" in item:
                remarks.append(_marked(item, annotator))
            elif isinstance(item, str) and labels.knows(item):
                overall.append((annotator, item))
            elif isinstance(item, str) and not isinstance(value, list) and fields.comment in (None, question):
                remarks.append(Remark(comment=item, annotator=annotator))
            else:
                other.setdefault(question, []).append(item)
    name = record.get("id") or record.get("external_id")
    return _commented(data, *_names(data, fields, where), remarks, overall, name, other)


def _region(
    results: list[dict[str, Any]], annotator: str | None, comment_name: str | None, where: str
) -> Iterator[Remark]:
    """The results that share an id: a marked region with what was written about it, or a comment on the whole."""
    written = [
        str(line)
        for result in results
        if result.get("type") == "textarea" and comment_name in (None, result.get("from_name"))
        for line in _lines(result["value"].get("text"))
    ]
    marked = [result for result in results if str(result.get("type")).endswith("labels")]
    for result in marked:
        value = result["value"]
        if result["type"] != "labels":
            raise UserError(
                f'{where}: result type "{result["type"]}" has no offsets in a text; use Text and Labels tags'
            )
        for label in value.get("labels") or [None]:
            yield Remark(
                comment="\n".join(written),
                start=_integer(value.get("start")),
                end=_integer(value.get("end")),
                quote=value.get("text"),
                label=label,
                annotator=annotator,
            )
    if not marked and written:
        yield Remark(comment="\n".join(written), annotator=annotator)


def _lines(text: Any) -> list[str]:
    return text if isinstance(text, list) else [text] if text else []


def _marked(item: Mapping[str, Any], annotator: str | None) -> Remark:
    return Remark(
        start=_integer(item["start"]),
        end=_integer(item.get("end")),
        label=item.get("label"),
        annotator=annotator,
        units="browser",
    )


def _responses(record: Mapping[str, Any]) -> Iterator[tuple[str, Any, str | None]]:
    """(question, value, user) of every response that was not discarded."""
    responses = record.get("responses")
    if isinstance(responses, dict):
        for question, given in responses.items():
            for response in given or []:
                if response.get("status") != "discarded":
                    yield question, response.get("value"), _person(response.get("user_id"))
    elif isinstance(responses, list):
        for response in responses:
            if response.get("status") != "discarded":
                for question, answer in (response.get("values") or {}).items():
                    yield question, answer.get("value"), _person(response.get("user_id"))
    for name, values in record.items():
        if name.endswith(".responses") and values:
            users = record.get(f"{name}.users") or [None] * len(values)
            statuses = record.get(f"{name}.status") or [None] * len(values)
            for value, user, status in zip(values, users, statuses, strict=True):
                if status != "discarded":
                    yield name.removesuffix(".responses"), value, _person(user)


def _commented(
    data: Mapping[str, Any],
    prompt: str,
    completion: str,
    remarks: list[Remark],
    overall: list[tuple[str | None, str]],
    name: Any,
    other: dict[str, Any],
) -> Commented:
    return Commented(data[prompt], data[completion], remarks, overall, None if name is None else str(name), other)


def _names(data: Mapping[str, Any], fields: Fields, where: str) -> tuple[str, str]:
    """The names of the prompt's and the completion's fields."""
    prompt = _field(data, fields.prompt, PROMPTS, "prompt", where)
    completion = _field(data, fields.completion, COMPLETIONS, "completion", where)
    if not isinstance(data[completion], str):
        raise UserError(f"{where}: {completion} is not a text; name the answer's field, as in completion=NAME")
    return prompt, completion


def _field(data: Mapping[str, Any], name: str | None, usual: tuple[str, ...], what: str, where: str) -> str:
    names = (name,) if name else usual
    found = [candidate for candidate in names if data.get(candidate) is not None]
    if not found:
        there = ", ".join(map(str, data))
        raise UserError(f"{where}: no field {' or '.join(names)} for the {what}; there are {there}: say {what}=NAME")
    return found[0]


def _person(value: Any) -> str | None:
    """A user's id or name; Label Studio may give an object."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    return None if value in (None, "None") else str(value)


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, int | str) and str(value).isdigit() else None
