"""The reader of failing programs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from text2grad.data.ilf_code import read
from text2grad.errors import UserError


def test_reads_the_failing_program_and_its_fix(tmp_path: Path) -> None:
    row = {
        "task_id": 7,
        "prompt": '"""Add one."""\ndef f(x):\n',
        "test": "def check(candidate):\n\tassert candidate(1) == 2",
        "Feedback": "It subtracts.",
        "original_model_completion": '"""Add one."""\ndef f(x):\n    return x - 1\n',
        "unedited_annotator_completion": '"""Add one."""\ndef f(x):\n    return x + 1\n',
    }
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress((json.dumps(row) + "\n").encode()))
    (example,) = read(path)
    assert (example.id, example.completion, example.reference) == ("ilf-7", "    return x - 1\n", "    return x + 1\n")
    assert example.feedback is not None
    assert example.feedback.critique == "It subtracts."


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.gz: no such file"):
        list(read(tmp_path / "nowhere.gz"))
