"""Ruff's findings at exactly the characters it means, whatever the answer throws at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from text2grad.critics.rules.lint import LintCritic
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback

TOO_DEEP = "x = " + "-" * 50_000 + "1\n"


def critique(completion: str, prompt: str = "Write a function.", **options: object) -> Feedback:
    return LintCritic(**options).critique([Example(id="it", prompt=prompt, completion=completion)])[0]  # type: ignore[arg-type]


def marked(feedback: Feedback, completion: str) -> list[tuple[str, str, float]]:
    """Rule, characters, severity."""
    return [
        (str(span.reason).partition(":")[0], completion[span.start : span.end], span.severity)
        for span in feedback.spans
    ]


def test_a_finding_is_a_sentence_and_a_span_that_belong_together():
    code = "import os\n\n\ndef double(x):\n    return x + y\n"

    feedback = critique(code)

    assert feedback.critique == "Line 1: `os` imported but unused (F401). Line 5: Undefined name `y` (F821)."
    assert marked(feedback, code) == [("F401", "import os\n", 0.3), ("F821", "y", 1.0)]
    assert [feedback.critique[slice(*span.phrase)] for span in feedback.spans if span.phrase] == [
        "Line 1: `os` imported but unused (F401)",
        "Line 5: Undefined name `y` (F821)",
    ]
    assert feedback.score == -1
    assert {(span.label, span.critic, span.match) for span in feedback.spans} == {("poor", "lint", "offset")}


@pytest.mark.parametrize(
    "before",
    [
        's = "😀日本é"; ',  # beyond the first plane, wide, and two bytes long
        's = "👩‍👩‍👧"; ',  # one picture of five characters
        "if True:\n\t\t",  # a tab is one column
        's = """a\u2028b\x0bc""" ; ',  # these end a line for str.splitlines, not for Python
        "a = 1\r\nb = 2\rc = 3\n",
        "\x0c\n",
    ],
)
def test_columns_are_characters(before: str) -> None:
    code = f"{before}print(nowhere)\n"

    assert marked(critique(code, select=["F821"]), code) == [("F821", "nowhere", 1.0)]


def test_a_byte_order_mark_is_no_column():
    code = "```python\n\ufeffprint(nowhere)\n```"

    assert marked(critique(code), code) == [("F821", "nowhere", 1.0)]


def test_code_in_a_fence_is_marked_where_it_stands_in_the_answer():
    answer = "Sure 😀, here it is:\n```python\nx = 1\nprint(nowhere)\n```\nIt prints `nowhere`."

    feedback = critique(answer)

    assert feedback.critique == "Line 2: Undefined name `nowhere` (F821)."
    assert [(span.start, span.end) for span in feedback.spans] == [
        (answer.index("nowhere"), answer.index("nowhere") + 7)
    ]


def test_code_that_continues_the_prompt_is_read_with_it_and_only_the_answer_is_marked():
    prompt = "import os\n\ndef join(a, b):\n"
    answer = "    return os.path.join(a, c)\n"

    feedback = critique(answer, prompt)

    assert feedback.critique == "Line 1: Undefined name `c` (F821)."
    assert marked(feedback, answer) == [("F821", "c", 1.0)]
    unused = critique("    return a + b\n", prompt)
    assert (unused.status, unused.spans) == ("ok", [])  # the unused import is the prompt's


def test_of_a_syntax_error_only_the_first_mistake_counts():
    code = "```python\nimport os\ndef f(:\n    return (1\n```"

    feedback = critique(code)

    assert marked(feedback, code) == [("invalid-syntax", ":", 1.0)]
    assert feedback.score == -1


def test_what_has_no_width_is_marked_at_the_character_before_it():
    assert marked(critique("x = 1", select=["W292"]), "x = 1") == [("W292", "1", 0.1)]
    cut_off = "x = [1,\n\n"
    assert marked(critique(cut_off), cut_off) == [("invalid-syntax", ",", 1.0)]


def test_clean_code_is_ok_and_says_so():
    feedback = critique("def double(x):\n    return 2 * x\n")

    assert (feedback.status, feedback.spans, feedback.score) == ("ok", [], 0.0)
    assert feedback.critique == "The linter has nothing to say about the code."


@pytest.mark.parametrize("answer", ["", "   \n", "I cannot help with that.", "```python\n```"])
def test_an_answer_without_code_fails(answer: str) -> None:
    feedback = critique(answer)

    assert (feedback.status, feedback.error) == ("failed", "the answer has no Python code in it")


def test_a_batch_is_one_process_and_keeps_its_order(monkeypatch: pytest.MonkeyPatch):
    runs = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: runs.append(args) or run(*args, **options))
    answers = [f"x_{i} = {'unknown' if i % 3 == 0 else 0}\n" for i in range(30)]
    answers[7] = "No code here."

    feedback = LintCritic().critique([Example(id=str(i), prompt="", completion=a) for i, a in enumerate(answers)])

    assert len(runs) == 1
    assert [i for i, one in enumerate(feedback) if one.spans] == list(range(0, 30, 3))
    assert [i for i, one in enumerate(feedback) if one.status == "failed"] == [7]


def test_code_that_crashes_the_linter_fails_alone():
    answers = ["import os\n", TOO_DEEP, "import re\n", "x = 1\n", TOO_DEEP]

    feedback = LintCritic().critique([Example(id="", prompt="", completion=answer) for answer in answers])

    assert [one.status for one in feedback] == ["ok", "failed", "ok", "ok", "failed"]
    assert feedback[1].error == "ruff crashed or ran out of time on this code"
    assert [len(one.spans) for one in feedback] == [1, 0, 1, 0, 0]


def test_an_answer_cannot_silence_the_linter():
    code = "# ruff: noqa\n# flake8: noqa\nimport os  # noqa\nimport re  # ruff: ignore[F401]\n"

    assert [quote for _, quote, _ in marked(critique(code), code)] == [
        "import os  # noqa\n",
        "import re  # ruff: ignore[F401]\n",
    ]


def test_neither_the_environment_nor_a_configuration_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "ruff.toml").write_text('lint.select = ["W"]\nexclude = ["*.py"]\n')
    (tmp_path / ".gitignore").write_text("*.py\n")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("RUFF_OUTPUT_FILE", str(tmp_path / "elsewhere.json"))

    assert len(critique("import os\n").spans) == 1


def test_which_rules_count_and_how_much_is_a_setting():
    code = "import os\n\n\ndef f(a=[]):\n    l = 1\n    return a\n"

    assert {rule for rule, _, _ in marked(critique(code), code)} == {"F401", "B006", "E741", "F841"}
    assert {rule for rule, _, _ in marked(critique(code, select=["F"], ignore=["F841"]), code)} == {"F401"}
    heavy = critique(code, severities={"F": 0.9, "F841": 0.4})
    assert marked(heavy, code) == [
        ("F401", "import os\n", 0.9),
        ("B006", "[]", 0.5),
        ("E741", "l", 0.3),
        ("F841", "l", 0.4),
    ]


def test_all_rules_say_nothing_about_our_own_files():
    feedback = critique("#!/usr/bin/env python\nx = 1\n", select=["ALL"], ignore=["D"])

    assert not {"INP001", "N999", "EXE001", "EXE002"} & {str(span.reason).partition(":")[0] for span in feedback.spans}


def test_without_ruff_the_critic_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ruff", None)

    with pytest.raises(UserError, match=r'the lint critic needs ruff: pip install "text2grad\[code\]"'):
        LintCritic()


def test_bad_settings_are_named():
    with pytest.raises(UserError, match="Unknown rule selector `QQ`"):
        critique("x = 1\n", select=["QQ"])
    with pytest.raises(UserError, match=r"severity of F is 2; give a number above 0"):
        LintCritic(severities={"F": 2})
    with pytest.raises(UserError, match="py99"):
        critique("x = 1\n", target_version="py99")


def test_text_that_is_no_valid_unicode_is_linted_too():
    code = 's = "\ud800"; print(nowhere)\n'

    assert marked(critique(code, select=["F821"]), code) == [("F821", "nowhere", 1.0)]


def test_syntax_of_a_newer_python_is_an_error_for_an_older_one():
    code = "type Pair = tuple[int, int]\n"

    assert critique(code, target_version="py312").spans == []
    assert marked(critique(code, target_version="py311"), code) == [("invalid-syntax", "type", 1.0)]


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("import os\nx = 1\n", "import os\n", ""),
        ("from os import path, sep\nprint(sep)\n", "from os import path, sep", "from os import sep"),
        ("x = 1\nprint(x is 1)\n", "x is 1", "x == 1"),
        ("x = []\nprint(not 1 in x)\n", "not 1 in x", "1 not in x"),
        ("print(f'a')\n", "f'a'", "'a'"),
        ("x = 1\nprint(x == None)\n", "None", None),  # ruff's fix may change what the program does
        ("print(nowhere)\n", "nowhere", None),
    ],
)
def test_a_safe_fix_is_the_replacement(code: str, old: str, new: str | None):
    (span,) = critique(code).spans
    assert (code[span.start : span.end], span.replacement) == (old, new)


def test_a_fix_is_placed_in_the_answer_around_the_code():
    answer = "Sure:\n```python\nimport os\nx = f'a'\nprint(x)\n```\nDone."
    fixed = answer
    for span in sorted(critique(answer).spans, key=lambda span: -span.start):
        assert span.replacement is not None
        fixed = fixed[: span.start] + span.replacement + fixed[span.end :]
    assert fixed == "Sure:\n```python\nx = 'a'\nprint(x)\n```\nDone."


def test_a_fix_of_the_prompts_own_lines_is_none():
    prompt = "import os\nfrom sys import argv\n\ndef f(x):\n"
    assert all(
        span.replacement is None for span in critique("    return not x in [1]\n", prompt, select=["F401"]).spans
    )
