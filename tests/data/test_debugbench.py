from __future__ import annotations

import gzip
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.data.debugbench import _TOKEN, changed_code, read
from text2grad.errors import UserError
from text2grad.schema import Example

PUBLISHED = (
    Path(os.environ.get("TEXT2GRAD_DATA", "../shared/data")) / "debugbench_python" / "debugbench_python.jsonl.gz"
)

ROW: dict[str, Any] = {
    "slug": "two-sum",
    "level": "easy",
    "bug": "condition error",
    "description": "Find two numbers.",
    "examples": ["Input: [1, 2]", "Input: [3]"],
    "constraints": "n < 10",
    "buggy_code": "\ndef f(n):\n    return n >= 1\n",
    "oracle_code": "\ndef f(n):\n    return n > 1\n",
    "explanations": "\nn >= 1 is too wide; if n < 2 and n > 0 it fails.\n",
}


def first(folder: Path, **changes: Any) -> Example:
    path = folder / "debugbench.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.write(json.dumps(ROW | changes) + "\n")
    return next(read(path))


def test_what_the_fix_changed_is_blamed(tmp_path: Path) -> None:
    example = first(tmp_path)
    assert example.id == "debugbench-0"
    assert example.completion == "def f(n):\n    return n >= 1"
    assert example.reference == "def f(n):\n    return n > 1"
    assert example.prompt == (
        "Find two numbers.\n\nInput: [1, 2]\n\nInput: [3]\n\nConstraints:\nn < 10\n\nWrite a Python solution."
    )
    assert example.feedback is not None
    assert [example.completion[span.start : span.end] for span in example.feedback.spans] == ["="]
    assert {span.label for span in example.feedback.spans} == {"poor"}
    assert example.meta == {"slug": "two-sum", "level": "easy", "bug": "condition error"}


def test_explanations_keep_their_signs(tmp_path: Path) -> None:
    feedback = first(tmp_path).feedback
    assert feedback is not None
    assert feedback.critique == "n >= 1 is too wide; if n < 2 and n > 0 it fails."
    without = first(tmp_path, explanations=None).feedback
    assert without is not None
    assert without.critique == ""


def test_a_fix_that_only_inserts_is_an_omission(tmp_path: Path) -> None:
    feedback = first(tmp_path, buggy_code="x = 1", oracle_code="x = 1\nreturn x").feedback
    assert feedback is not None
    assert feedback.spans == []
    assert [omission.text for omission in feedback.omissions] == ["return x"]


def test_changed_code() -> None:
    before = "if a >= b:\n    total += x[i]\n    return None"
    ranges, inserted = changed_code(before, "if a > b:\n    total += x[i + 1]\n    return total")
    assert [before[start:end] for start, end in ranges] == ["=", "None"]
    assert inserted == ["+ 1"]


def test_layout_is_no_change() -> None:
    assert changed_code("f(a,b)\n\n  x", "f( a, b )\nx") == ([], [])


code = st.lists(st.sampled_from(["x", "y1", " ", "\n", "=", "(", ")", "if", "東"]), max_size=20).map("".join)


@given(code, code)
def test_the_code_outside_the_changes_is_in_the_fixed_program(before: str, after: str) -> None:
    ranges, _ = changed_code(before, after)
    assert all(0 <= start < end <= len(before) for start, end in ranges)
    assert all(one[1] <= other[0] for one, other in pairwise(ranges))
    # Blanks replace the changes, so that the tokens around one are not joined.
    kept = "".join(" " if any(a <= i < b for a, b in ranges) else c for i, c in enumerate(before))
    rest = iter(_TOKEN.findall(after))
    assert all(token in rest for token in _TOKEN.findall(kept)), "a subsequence of its tokens"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.jsonl: no such file; give the path of debugbench_python"):
        next(read(tmp_path / "absent.jsonl"))


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="needs DebugBench under TEXT2GRAD_DATA")
def test_the_published_file_is_read_whole() -> None:
    feedback = [example.feedback for example in read(PUBLISHED) if example.feedback]
    assert len(feedback) == 1414
    assert sum(bool(one.spans) for one in feedback) == 1105
    assert sum(bool(one.omissions) for one in feedback) == 268
    assert sum(bool(one.critique) for one in feedback) == 683
