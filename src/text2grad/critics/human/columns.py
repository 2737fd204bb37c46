"""Which column of a table of comments holds what: guessed from the names, or given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from text2grad.errors import UserError
from text2grad.settings import did_you_mean

# The usual names of each field's column, the most telling first.
NAMES = {
    "prompt": "prompt instruction question input query request task source document article messages conversations",
    "completion": "completion response answer output reply generation summary text",
    "comment": "comment comments feedback critique note notes remark remarks review explanation reason why",
    "label": "label labels verdict category type",
    "quote": "quote quotation excerpt span phrase",
    "start": "start begin",
    "end": "end stop",
    "severity": "severity weight",
    "replacement": "replacement correction corrected instead",
    "annotator": "annotator reviewer author rater user",
    "reference": "reference references gold",
    "id": "id identifier",
}
FIELDS = tuple(NAMES)
_REQUIRED = ("prompt", "completion", "comment")
# Words that tell within a longer name where nothing else does: "Guest asked", "What the model said".
_WITHIN = {"prompt": "asked", "completion": "answered replied said wrote", "comment": "think thoughts opinion wrong"}
_DELETION = ("replacement", "")
_CONVERSATIONS = ("messages", "conversations")


def guess_columns(there: Iterable[str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the column of each field that has one.

    given: columns that are known, by field; the others are guessed. A column is taken whose name is one of the usual
    ones, in any case and with any separator ("Model_Answer" is "model answer"), or else ends with one ("answer"). Where
    question, answer or comment is still missing, the name only has to have such a word ("Comment (in English)").
    Raises UserError where a given column does not exist.
    """
    names = list(there)
    found = _check_given(names, given or {})
    for match in (_is_word, _ends_with, _has_word):
        for field in FIELDS if match is not _has_word else _missing(found):
            if field not in found:
                usual = [*NAMES[field].split(), *(_WITHIN.get(field, "").split() if match is _has_word else ())]
                column = _find([name for name in names if name not in found.values()], usual, match)
                if column is not None:
                    found[field] = column
    return {field: found[field] for field in (*FIELDS, *found) if field in found}


def require_columns(found: Mapping[str, str], there: Iterable[str]) -> None:
    """Raise UserError where a column is missing that a comment cannot do without."""
    names = list(there)
    missing = _missing(found)
    if missing:
        free = [name for name in names if name and name not in found.values()] or names
        example = f"--column {missing[0]}={shlex.quote(free[0])}"
        raise UserError(
            f"no column {', '.join(missing)}; there are {', '.join(filter(None, names))}: "
            f"name {'it' if len(missing) == 1 else 'them'}, as in {example}"
        )


def _missing(found: Mapping[str, str]) -> list[str]:
    """Return the fields that a comment cannot do without and that have no column."""
    optional = {"comment"} if {"label", "replacement"} & found.keys() else set()
    if found.get("prompt", "").casefold() in _CONVERSATIONS:
        optional.add("completion")
    return [field for field in _REQUIRED if field not in found and field not in optional]


def apply_columns(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the record with the fields' names for its columns; what is empty is left out, but not a replacement."""
    fields = {column: field for field, column in columns.items()}
    named = {fields.get(name, name): value for name, value in record.items()}
    return {name: value for name, value in named.items() if value not in (None, "") or (name, value) == _DELETION}


def _check_given(names: list[str], given: Mapping[str, str]) -> dict[str, str]:
    for field, column in given.items():
        if field not in FIELDS:
            raise UserError(f'"{field}" is no field of a comment{did_you_mean(field, FIELDS)}')
        if column not in names:
            raise UserError(f"no column {column} for the {field}; there are {', '.join(names)}")
    return dict(given)


def _find(names: list[str], usual: list[str], match: Callable[[str, str], bool]) -> str | None:
    words = {name: re.sub(r"[\W_]+", " ", name).casefold().strip() for name in names}
    return next((name for word in usual for name in names if match(words[name], word)), None)


def _is_word(name: str, word: str) -> bool:
    return name == word


def _ends_with(name: str, word: str) -> bool:
    return name.endswith(f" {word}")


def _has_word(name: str, word: str) -> bool:
    return word in name.split()
