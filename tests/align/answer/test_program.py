"""Programs in completions, their statements and their offsets."""

from __future__ import annotations

import pytest

from text2grad.align.answer.program import (
    Program,
    extract_program,
    find_calls,
    find_statements,
    innermost_loop,
    parse_python,
    top_level_names,
)

BODY = "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    "completion",
    [
        BODY,
        f"```python\n{BODY}```",
        f"Sure, here it is:\n\n```py\n{BODY}```\nIt returns x.",
        f"~~~\n{BODY}~~~",
        f"```python\n{BODY}",
        f"Here is the function:\n{BODY}It returns its argument.",
    ],
)
def test_finds_the_program_and_its_start(completion: str) -> None:
    program = extract_program(completion)
    assert program is not None
    assert program.code.strip() == BODY.strip()
    assert completion[program.start : program.start + len(program.code)] == program.code


def test_of_several_blocks_the_one_that_defines_an_entry_point() -> None:
    completion = "```python\ndef g(): return 'longer than the other one'\n```\nand\n```python\ndef f(): pass\n```"
    chosen = extract_program(completion, entry_points=frozenset({"f"}))
    longest = extract_program(completion)
    assert chosen is not None
    assert longest is not None
    assert "def f" in chosen.code
    assert "def g" in longest.code


def test_a_block_of_another_language_is_no_program() -> None:
    program = extract_program(f"```bash\npip install x\n```\n```python\n{BODY}```")
    assert program is not None
    assert program.code == BODY


def test_a_completion_may_continue_the_prompt() -> None:
    prompt = 'def f(x):\n    """Return x."""\n'
    program = extract_program("    return x\n", prompt, frozenset({"f"}))
    assert program == Program("    return x\n", 0, prompt)
    assert program is not None
    assert (program.first_line, program.line_number(3)) == (3, 1)
    assert program.line_span(3) == (4, 12)
    assert program.line_span(1) is None


def test_a_whole_program_does_not_continue_the_prompt() -> None:
    program = extract_program(BODY, "def f(x):\n", frozenset({"f"}))
    assert program == Program(BODY, 0)


def test_a_continuation_with_a_mistake_is_still_one() -> None:
    program = extract_program("    return (x\n", "def f(x):\n", frozenset({"f"}))
    assert program is not None
    assert program.prefix == "def f(x):\n"


@pytest.mark.parametrize("completion", ["", "  \n", "I do not know", "```python\n```"])
def test_there_may_be_no_program(completion: str) -> None:
    assert extract_program(completion) is None


def test_code_that_does_not_parse_is_returned() -> None:
    assert extract_program("def f(x:\n  pass") == Program("def f(x:\n  pass", 0)


def test_columns_are_bytes_and_lines_end_in_three_ways() -> None:
    code = 'é = "ü"\r\nß = é\rz = 1\n'
    program = Program(code, 0)
    assert [code[slice(*span)] for span in map(program.line_span, (1, 2, 3)) if span] == ['é = "ü"', "ß = é", "z = 1"]
    span = program.span(1, 5, 1, 9)  # é takes two bytes, so the literal begins at byte 5
    assert span is not None
    assert code[slice(*span)] == '"ü"'


def test_a_span_without_characters_is_none() -> None:
    assert Program("x = 1\n", 0).span(1, 2, 1, 2) is None
    assert Program("x = 1\n", 0).line_span(9) is None


def test_top_level_names() -> None:
    assert top_level_names("import a\ndef f(): pass\nclass C: pass\nx = 1\n") == {"f", "C", "x"}
    assert top_level_names("def f(") == frozenset()


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
PROGRAM = Program(CODE, 0)


def texts(program: Program) -> dict[int, str]:
    found = {}
    for line, statement in find_statements(program).items():
        span = program.span(*statement.extent())
        assert span is not None
        found[line] = program.source[slice(*span)]
    return found


def test_a_statement_excludes_nested_statements() -> None:
    assert texts(PROGRAM) == {
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


def test_statements_of_the_prompt_are_excluded() -> None:
    program = Program("    return x + 1\n", 0, "def f(x):\n")
    assert list(find_statements(program)) == [2]


def test_size_counts_nodes() -> None:
    sizes = {
        line: statement.size for line, statement in find_statements(Program("a = 0\nb = a + 1\npass\n", 0)).items()
    }
    assert sizes == {1: 3, 2: 6, 3: 1}  # Assign, Name, Constant; Assign, Name, BinOp, Name, Add, Constant; Pass


def test_the_loop_around_a_line() -> None:
    loop = innermost_loop(PROGRAM, 8)
    assert loop is not None
    assert loop.line == 6
    assert innermost_loop(PROGRAM, 13) is None


def test_calls_by_name() -> None:
    program = Program("import os\nos.kill(1, 9)\nfork()\nkill = 1\n", 0)
    assert find_calls(program, frozenset({"kill", "fork"})) == [(2, 0, 2, 13), (3, 0, 3, 6)]


def test_a_fence_that_closes_nothing_is_not_a_block() -> None:
    text = "```\n\nThe function takes a list.\n\n```python\ndef f(x):\n    return x\n```\n\nUse it like"
    program = extract_program(text)
    assert program is not None
    assert program.code == "def f(x):\n    return x\n"


def test_a_block_that_is_not_closed_ends_where_the_next_one_opens() -> None:
    text = "```python\ndef f(x):\n    return x\n```python\nf(1)\n```"
    program = extract_program(text, entry_points=frozenset({"f"}))
    assert program is not None
    assert program.code == "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    "source", ["x is None", "not x", "lambda x: x", "match x:\n  case 1: y = 1", "if x: y = 1", "\ny = 1"]
)
def test_two_words_with_a_keyword_may_begin_a_program(source: str) -> None:
    assert parse_python(source) is not None


@pytest.mark.parametrize("source", ["The man left.", "\n  The man = 1", "x y"])
def test_two_words_without_a_keyword_begin_no_program(source: str) -> None:
    assert parse_python(source) is None
