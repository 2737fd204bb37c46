"""Rows of any data set as Examples: which column holds what, and prompts in chat format."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from text2grad.data.messages import is_conversation, parse_messages, text_of
from text2grad.data.rows import Row
from text2grad.errors import UserError
from text2grad.schema import Example, validate
from text2grad.settings import did_you_mean

CONVERSATIONS = ("messages", "conversations", "conversation")  # taken for the prompt where there is no such column
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_JSON = ("feedback", "meta")  # columns of `to_dataset` that hold JSON


def check_columns(columns: Mapping[str, str]) -> None:
    """Raise UserError where a field of the mapping is none of an Example's."""
    for field in columns:
        if field not in Example.model_fields:
            raise UserError(f'columns: "{field}" is no field of an example{did_you_mean(field, Example.model_fields)}')


def row_to_example(row: Row, columns: Mapping[str, str]) -> Example:
    """Return the Example of a row; UserError where it is broken.

    columns: the column of each field, as {"prompt": "question"}, or a text with columns in it, as
    {"prompt": "{context}\\n\\n{question}"}; fields that it does not name are in the columns of their own name.
    A prompt in chat format that ends with an answer is cut there, and the answer becomes the reference where there is
    none. All other columns go to `meta`.
    """
    if row.error is not None:
        raise UserError(f"{row.where}: {row.error}")
    try:
        return validate(Example, _fields(row, columns), row.where)
    except (ValueError, RecursionError) as error:  # the latter of JSON in a cell, nested too deeply
        raise UserError(f"{row.where}: {error}") from error


def _fields(row: Row, columns: Mapping[str, str]) -> dict[str, Any]:
    found = {field: _lookup(row, field, column) for field, column in columns.items()}
    used = {name for column in columns.values() for name in _columns_in(column)}
    rest = {name: value for name, value in row.fields.items() if name not in used and value is not None}
    fields = {name: rest.pop(name) for name in Example.model_fields if name in rest and name not in found} | found
    if "prompt" not in fields:
        conversation = next((name for name in CONVERSATIONS if name in rest), None)
        if conversation is None:
            there = ", ".join(row.fields)
            raise UserError(
                f"{row.where}: no column prompt; there are {there}: name it, as in data.columns={{prompt: NAME}} "
                "or --column prompt=NAME"
            )
        fields["prompt"] = rest.pop(conversation)
    if is_conversation(fields["prompt"]):
        fields |= _split_conversation(fields)
    if is_conversation(fields.get("completion")):
        fields["completion"] = text_of(fields["completion"])
    for name in _JSON:
        if isinstance(fields.get(name), str):
            fields[name] = json.loads(fields[name])
    rest = {name: value for name, value in ((name, _plain(value)) for name, value in rest.items()) if value is not None}
    identity = fields.get("id")
    fields["id"] = row.name if identity is None else str(identity)
    return {name: value for name, value in fields.items() if value is not None} | {
        "meta": {**(fields.get("meta") or {}), **rest}
    }


def _lookup(row: Row, field: str, column: str) -> Any:
    """Return the value of a column, or the text with columns filled in; an empty cell fills in nothing."""
    for name in _columns_in(column):
        if name not in row.fields:
            raise UserError(f"{row.where}: no column {name} for {field}; there are {', '.join(row.fields)}")
    if column in row.fields or not _PLACEHOLDER.search(column):
        return row.fields[column]
    return _PLACEHOLDER.sub(lambda found: "" if (cell := row.fields[found[1]]) is None else str(cell), column)


def _columns_in(column: str) -> list[str]:
    return _PLACEHOLDER.findall(column) or [column]


def _split_conversation(fields: dict[str, Any]) -> dict[str, Any]:
    """Return prompt and reference of a conversation; an answer at its end is not part of the prompt."""
    messages = parse_messages(fields["prompt"])
    if messages and messages[-1]["role"] == "assistant" and len(messages) > 1:
        reference = fields.get("reference")
        return {"prompt": messages[:-1], "reference": messages[-1]["content"] if reference is None else reference}
    return {"prompt": messages}


def _plain(value: Any) -> Any:
    """Return what JSON can hold of a value: None for bytes, images and numbers that are not finite."""
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    return value.isoformat() if hasattr(value, "isoformat") else None
