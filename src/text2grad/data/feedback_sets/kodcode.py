"""KodCode: programming questions with solutions and pytest functions (KodCode/KodCode-V1, Xu et al., 2025).

A prompt set with tests, for the code critic. Tested on files of that shape, not on the set itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from text2grad.data.feedback_sets.fields import optional_text, text_field
from text2grad.data.rows import Row
from text2grad.schema import Example

PROMPT = "{question}\n\nAnswer with the Python code alone."
_SOLUTION_IMPORT = re.compile(r"^[ \t]*from solution import .*(?:\n|\Z)|^[ \t]*import solution\b.*(?:\n|\Z)", re.M)
_MULTILINE_IMPORT = re.compile(r"^[ \t]*from solution import\s*\([^)]*\)[ \t]*(?:\n|\Z)", re.M)
_META = ("style", "subset", "gpt_difficulty", "gpt_pass_percentage")


def convert(row: Row) -> Iterator[Example]:
    """Yield the question with the reference solution and the tests.

    Tests import the answer from a module `solution`; that line is removed, since the code critic runs them beside the
    answer. The prompt names the function to write where the question does not (`test_info`).
    """
    fields = row.fields
    entry = _entry_point(fields)
    tests = _SOLUTION_IMPORT.sub("", _MULTILINE_IMPORT.sub("", text_field(fields, "test"))).strip() + "\n"
    if "solution." in tests:
        raise ValueError("the tests use the module solution by name, which the code critic does not have")
    question = text_field(fields, "question").strip()
    if entry and not re.search(rf"\b{re.escape(entry['name'])}\b", question):
        question += f"\n\nThe function is: {entry['declaration']}"
    yield Example(
        id=f"kodcode-{fields['question_id']}",
        prompt=PROMPT.format(question=question),
        reference=text_field(fields, "solution"),
        tests=tests,
        meta={
            **({"entry_point": entry["name"]} if entry else {}),
            **{name: fields[name] for name in _META if fields.get(name) is not None},
        },
    )


def _entry_point(fields: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the function that the tests call, where the row names exactly one."""
    functions = fields.get("test_info") or []
    if len(functions) != 1:
        return None
    name, declaration = (
        optional_text(functions[0], "function_name"),
        optional_text(functions[0], "function_declaration"),
    )
    return {"name": name, "declaration": declaration or f"def {name}"} if name else None
