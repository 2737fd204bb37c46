"""Statements, each with its own part of the program."""

from __future__ import annotations

from text2grad.align.program import Answer
from text2grad.align.statements import calls, loop_around, statements

CODE = '''def f(values):
    """Sum."""
    total = 0
    for value in values:
        total += value
    while (total
           > 9):
        total -= 9
    try:
        check(total)
    except ValueError:
        pass
    return total
'''
ANSWER = Answer(CODE, 0)


def texts(answer: Answer) -> dict[int, str]:
    found = {}
    for line, statement in statements(answer).items():
        span = answer.span(*statement.place())
        assert span is not None
        found[line] = answer.source[slice(*span)]
    return found


def test_each_statement_is_its_own_part() -> None:
    assert texts(ANSWER) == {
        1: "def f",
        3: "total = 0",
        4: "for value in values",
        5: "total += value",
        6: "while (total\n           > 9",
        8: "total -= 9",
        9: "try",
        10: "check(total)",
        12: "pass",
        13: "return total",
    }


def test_statements_of_the_prompt_are_not_the_answers() -> None:
    answer = Answer("    return x + 1\n", 0, "def f(x):\n")
    assert list(statements(answer)) == [2]


def test_size_counts_nodes() -> None:
    sizes = {line: statement.size for line, statement in statements(Answer("a = 0\nb = a + 1\npass\n", 0)).items()}
    assert sizes == {1: 3, 2: 6, 3: 1}  # Assign, Name, Constant; Assign, Name, BinOp, Name, Add, Constant; Pass


def test_the_loop_around_a_line() -> None:
    loop = loop_around(ANSWER, 8)
    assert loop is not None
    assert loop.line == 6
    assert loop_around(ANSWER, 13) is None


def test_calls_by_name() -> None:
    answer = Answer("import os\nos.kill(1, 9)\nfork()\nkill = 1\n", 0)
    assert calls(answer, frozenset({"kill", "fork"})) == [(2, 0, 2, 13), (3, 0, 3, 6)]
