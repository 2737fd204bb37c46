"""DebugBench (Python): LeetCode solutions with a bug, the fixed solution, and, for single bugs, an explanation."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from text2grad.data.reading import open_dataset_file
from text2grad.schema import Example, Feedback, Omission, Range, Span

PROMPT = "{description}\n\n{examples}\n\nConstraints:\n{constraints}\n\nWrite a Python solution."
_TOKEN = re.compile(r"\w+|[^\w\s]")


def read(path: str | Path) -> Iterator[Example]:
    """Stream the rows, plain or gzipped JSON lines. The completion is the program with the bug, the reference the fix.

    What the fix changed is blamed, see `changed_code`; a fix that only inserts is an omission.
    """
    with open_dataset_file(path, "debugbench_python.jsonl.gz") as lines:
        for number, line in enumerate(lines):
            yield _example(number, json.loads(line))


def changed_code(before: str, after: str) -> tuple[list[Range], list[str]]:
    """The ranges of `before` that `after` replaced or deleted, and the code that it only inserted.

    Names, numbers and marks are compared; layout is not.
    """
    old, new = list(_TOKEN.finditer(before)), list(_TOKEN.finditer(after))
    matcher = difflib.SequenceMatcher(None, [t[0] for t in old], [t[0] for t in new], autojunk=False)
    ranges, inserted = [], []
    for what, start, end, new_start, new_end in matcher.get_opcodes():
        if what in ("replace", "delete"):
            ranges.append((old[start].start(), old[end - 1].end()))
        elif what == "insert":
            inserted.append(after[new[new_start].start() : new[new_end - 1].end()])
    return ranges, inserted


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
