"""DebugBench (Python): LeetCode solutions with a bug, the fixed solution and, for single bugs, an explanation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from text2grad.data.diff import diff_tokens
from text2grad.data.reading import read_rows
from text2grad.schema import Example, Feedback, Omission, Range, Span

PROMPT = "{description}\n\n{examples}\n\nConstraints:\n{constraints}\n\nWrite a Python solution."
_TOKEN = re.compile(r"\w+|[^\w\s]")


def read(path: str | Path) -> Iterator[Example]:
    """Stream the rows: the completion is the program with the bug, the reference the fixed program.

    Spans blame the code that the fix changed, see `changed_code`; a fix that only inserts code is an omission.
    """
    for number, row in enumerate(read_rows(path, "debugbench_python.jsonl.gz")):
        yield _example(number, row)


def changed_code(before: str, after: str) -> tuple[list[Range], list[str]]:
    """Return the ranges of `before` that `after` replaced or deleted, and the code that it only inserted.

    Names, numbers and punctuation are compared; white space is not.
    """
    ranges, inserted = diff_tokens(before, after, _TOKEN)
    return ranges, [after[start:end] for start, end in inserted]


def _example(number: int, row: dict[str, Any]) -> Example:
    buggy, fixed = row["buggy_code"].strip("\n"), row["oracle_code"].strip("\n")
    ranges, inserted = changed_code(buggy, fixed)
    spans = [Span(start=start, end=end, label="poor") for start, end in ranges]
    return Example(
        id=f"debugbench-{number}",
        prompt=PROMPT.format(
            description=row["description"], examples="\n\n".join(row["examples"]), constraints=row["constraints"]
        ),
        completion=buggy,
        reference=fixed,
        feedback=Feedback(
            critique=(row.get("explanations") or "").strip(),
            spans=spans,
            omissions=[] if spans else [Omission(text=code) for code in inserted],
            critic="debugbench",
        ),
        meta={"slug": row["slug"], "level": row["level"], "bug": row["bug"]},
    )
