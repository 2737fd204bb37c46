"""Comments on code, and the code that they mean."""

# ruff: noqa: E501  one case per line

from __future__ import annotations

import time

import pytest

from text2grad.align.answer.program import extract_program
from text2grad.align.code.code_comments import _match_line_numbers, find_code_places

CODE = """Here it is:
```python
def mean(values, scale):
    count = 0
    total = 0
    for value in values:
        count += 1
        total += value
    if count == 0:
        return None
    return scale * total / count
```
I hope it helps."""


def found(comment: str, code: str = CODE) -> list[str]:
    program = extract_program(code)
    proposals = find_code_places(comment, (0, len(comment)), program) if program else []
    return [code[slice(*place)] for proposal in proposals for place in proposal.places]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("Line 3 is wrong.", ["total = 0"]),
        ("The bug is on lines 2-3.", ["count = 0", "total = 0"]),
        ("Lines 2 and 9 are wrong.", ["count = 0", "return scale * total / count"]),
        ("The loop is wrong.", ["for value in values:\n        count += 1\n        total += value"]),
        ("The `count` variable should start at 1.", ["count", "count"]),
        ("the count variable is off by one", ["count", "count"]),
        ("The last return value is wrong.", ["scale * total / count"]),
        ("The first return statement is wrong.", ["return None"]),
        ("The condition is wrong.", ["count == 0"]),
        ("The division is wrong.", ["scale * total / count"]),
        ("The function `mean` is misnamed.", ["def mean"]),
        ("`scale * total` is wrong.", ["scale * total"]),
        ('It fails:\n  File "a.py", line 9, in mean\n    return scale * total / count\nZeroDivisionError', ["return scale * total / count"]),
        ("I do not like it.", []),
        ("Line 42 is wrong.", []),
        ("The lambda is wrong.", []),
        ("You need to add a loop.", []),
        ("", []),
    ],
)  # fmt: skip
def test_what_a_comment_refers_to(comment: str, expected: list[str]) -> None:
    assert found(comment) == expected


def test_only_what_the_clause_says_counts() -> None:
    program = extract_program(CODE)
    assert program is not None
    comment = "The loop is fine, but the condition is wrong."
    (proposal,) = find_code_places(comment, (17, len(comment)), program)
    assert comment[slice(*proposal.phrase)] == "condition"


def test_a_traceback_points_at_its_innermost_frame_in_the_code() -> None:
    code = "def f(x):\n    return g(x)\ndef g(x):\n    return 1 / x\n"
    comment = (
        "Traceback (most recent call last):\n"
        '  File "test.py", line 1, in <module>\n    f(0)\n'
        '  File "a.py", line 2, in f\n    return g(x)\n'
        '  File "a.py", line 4, in g\n    return 1 / x\n'
        "ZeroDivisionError: division by zero"
    )
    assert found(comment, code) == ["return 1 / x"]


def test_line_numbers_come_before_structures() -> None:
    assert found("In line 3, the loop is wrong.") == ["total = 0"]


def test_ordinals_choose_among_loops() -> None:
    code = "for a in x:\n    for b in y:\n        print(a, b)\n"
    assert found("The inner loop is wrong.", code) == ["for b in y:\n        print(a, b)"]
    assert found("The second for loop is wrong.", code) == ["for b in y:\n        print(a, b)"]
    assert found("The outer loop is wrong.", code) == [code.strip()]
    assert found("The third loop is wrong.", code) == []


def test_an_ambiguous_phrase_is_skipped() -> None:
    code = "".join(f"if x == {n}:\n    x += {n}\n" for n in range(5))
    assert found("The condition is wrong.", code) == []
    assert found("The fourth condition is wrong.", code) == ["x == 3"]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("The loop condition is wrong.", ["x < 3"]),
        ("Nice exit condition.", ["x < 3"]),
        ("The if condition is wrong.", ["x > 9"]),
    ],
)
def test_the_condition_of_a_loop(comment: str, expected: list[str]) -> None:
    code = "x = 0\nwhile x < 3:\n    x += 1\nprint(1 if x else 2)\nif not x:\n    pass\n".replace("not x", "x > 9")
    assert found(comment, code)[-1:] == expected


def test_a_completion_that_continues_the_prompt() -> None:
    program = extract_program("    y = x\n    return x\n", "def f(x):\n")
    assert program is not None
    (proposal,) = find_code_places("Line 2 is wrong.", (0, 16), program)
    assert proposal.places == ((14, 22),)


def test_code_that_does_not_parse_still_has_lines() -> None:
    assert found("line 2 is wrong", "def f(x:\n    return x\n") == ["return x"]
    assert found("the loop is wrong", "for x in (:\n") == []


def test_absurd_line_numbers_take_no_time() -> None:
    from text2grad.align.answer.program import extract_program

    program = extract_program("x = 1\ny = 2\n", "", frozenset())
    assert program is not None
    began = time.perf_counter()
    found = [
        *_match_line_numbers("lines 1-9999999 are wrong", program),
        *_match_line_numbers(f"line {'9' * 5000} is wrong", program),
    ]
    assert len(found) == 2
    assert time.perf_counter() - began < 2
