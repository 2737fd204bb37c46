"""Which part of a completion is the program, and where its characters stand."""

from __future__ import annotations

import pytest

from text2grad.align.program import Answer, defined, extract

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
def test_finds_the_program_and_its_place(completion: str) -> None:
    answer = extract(completion)
    assert answer is not None
    assert answer.code.strip() == BODY.strip()
    assert completion[answer.start : answer.start + len(answer.code)] == answer.code


def test_of_several_blocks_the_one_that_defines_what_is_wanted() -> None:
    completion = "```python\ndef g(): return 'longer than the other one'\n```\nand\n```python\ndef f(): pass\n```"
    chosen = extract(completion, wanted=frozenset({"f"}))
    longest = extract(completion)
    assert chosen is not None
    assert longest is not None
    assert "def f" in chosen.code
    assert "def g" in longest.code


def test_a_block_of_another_language_is_no_program() -> None:
    answer = extract(f"```bash\npip install x\n```\n```python\n{BODY}```")
    assert answer is not None
    assert answer.code == BODY


def test_a_completion_may_continue_the_prompt() -> None:
    prompt = 'def f(x):\n    """Return x."""\n'
    answer = extract("    return x\n", prompt, frozenset({"f"}))
    assert answer == Answer("    return x\n", 0, prompt)
    assert answer is not None
    assert (answer.first_line, answer.line_number(3)) == (3, 1)
    assert answer.line_span(3) == (4, 12)
    assert answer.line_span(1) is None


def test_a_whole_program_does_not_continue_the_prompt() -> None:
    answer = extract(BODY, "def f(x):\n", frozenset({"f"}))
    assert answer == Answer(BODY, 0)


def test_a_continuation_with_a_mistake_is_still_one() -> None:
    answer = extract("    return (x\n", "def f(x):\n", frozenset({"f"}))
    assert answer is not None
    assert answer.prefix == "def f(x):\n"


@pytest.mark.parametrize("completion", ["", "  \n", "I do not know", "```python\n```"])
def test_there_may_be_no_program(completion: str) -> None:
    assert extract(completion) is None


def test_code_that_does_not_parse_is_an_answer() -> None:
    assert extract("def f(x:\n  pass") == Answer("def f(x:\n  pass", 0)


def test_columns_are_bytes_and_lines_end_in_three_ways() -> None:
    code = 'é = "ü"\r\nß = é\rz = 1\n'
    answer = Answer(code, 0)
    assert [code[slice(*span)] for span in map(answer.line_span, (1, 2, 3)) if span] == ['é = "ü"', "ß = é", "z = 1"]
    span = answer.span(1, 5, 1, 9)  # é takes two bytes, so the literal begins at byte 5
    assert span is not None
    assert code[slice(*span)] == '"ü"'


def test_a_span_without_characters_is_none() -> None:
    assert Answer("x = 1\n", 0).span(1, 2, 1, 2) is None
    assert Answer("x = 1\n", 0).line_span(9) is None


def test_defined_names() -> None:
    assert defined("import a\ndef f(): pass\nclass C: pass\nx = 1\n") == {"f", "C", "x"}
    assert defined("def f(") == frozenset()
