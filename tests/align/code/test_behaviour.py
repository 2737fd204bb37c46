"""Behaviours of programs in words, and the code that decides them."""

# ruff: noqa: E501  one case per line

from __future__ import annotations

import pytest

from text2grad.align.answer.program import extract_program
from text2grad.align.code.behaviour import find_behaviours

MEAN = "def mean(values):\n    total = 0\n    for v in values:\n        total += v\n    return total / len(values)\n"
WAIT = "def wait(n):\n    while n != 0:\n        n -= 2\n    return n < 0\n"
READ = "def read(text, seen=[]):\n    seen.append(int(text))\n    if text == 'stop':\n        print(seen)\n    return seen[0:-1]\n"


def found(comment: str, code: str) -> list[str]:
    program = extract_program(code)
    assert program is not None
    proposals = find_behaviours(comment, 0, len(comment), program)
    return [code[slice(*place)] for proposal in proposals for place in proposal.places]


@pytest.mark.parametrize(
    ("comment", "code", "expected"),
    [
        ("breaks on an empty list", MEAN, ["total / len(values)"]),
        ("division by zero", MEAN, ["total / len(values)"]),
        ("an infinite loop", WAIT, ["while n != 0"]),
        ("fails for negative numbers", WAIT, ["n != 0", "n < 0"]),
        ("off by one", READ, ["seen[0:-1]"]),
        ("it modifies the input", READ, ["seen.append(int(text))"]),
        ("a mutable default", READ, ["[]"]),
        ("crashes for invalid input", READ, ["int(text)"]),
        ("prints instead of returning", READ, ["print(seen)"]),
        ("ignores upper case", READ, ["text == 'stop'"]),
        ("I like it", READ, []),
        ("get rid of the debugging output", READ, ["print(seen)"]),
        ("it never lowercases the word", READ, ["text == 'stop'"]),
        ("off by one", "x = (", []),
    ],
)
def test_the_code_that_decides(comment: str, code: str, expected: list[str]) -> None:
    assert found(comment, code) == expected
