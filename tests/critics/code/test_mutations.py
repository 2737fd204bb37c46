"""Programs with one token changed."""

from __future__ import annotations

import pytest

from text2grad.align.answer.program import Program
from text2grad.critics.code.mutations import list_mutants


def changes(code: str, *lines: int) -> list[tuple[str, str]]:
    program = Program(code, start=10)
    found = list(list_mutants(program, lines))
    for mutant in found:
        start, end = (place - 10 for place in mutant.place)
        assert mutant.source == code[:start] + mutant.replacement + code[end:]
    return [(code[mutant.place[0] - 10 : mutant.place[1] - 10], mutant.replacement) for mutant in found]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x < 1\n", [("<", "<="), ("<", ">"), ("1", "2"), ("1", "0")]),
        ("x == True\n", [("==", "!="), ("True", "False")]),
        ("x = 0\n", [("0", "1")]),
        ("x = 1.5 + y\n", []),
        ("s = '<'\n", []),
    ],
)
def test_comparisons_whole_numbers_and_truth_values_change(code: str, expected: list[tuple[str, str]]) -> None:
    assert changes(code, 1) == expected


def test_only_the_given_lines_change_and_in_their_order() -> None:
    assert changes("a = 0\nb = 0\nc = 0\n", 3, 1) == [("0", "1"), ("0", "1")]
    assert [mutant.line for mutant in list_mutants(Program("a = 0\nb = 0\nc = 0\n", 0), [3, 1])] == [3, 1]


def test_the_prompts_part_stays() -> None:
    program = Program("    return x > 2\n", start=0, prefix="def f(x=1):\n")
    assert {mutant.replacement for mutant in list_mutants(program, [1, 2])} == {">=", "<", "3", "1"}


def test_what_cannot_be_tokenized_has_none() -> None:
    assert list(list_mutants(Program("x = (1\n", 0), [1])) == []
