"""Honest programs and tests of all kinds, across processes."""

# ruff: noqa: E501  one case per line

from __future__ import annotations

import time

import pytest

from text2grad.critics.code import CodeCritic
from text2grad.schema import Example, Feedback


def critique(critic: CodeCritic, completion: str, tests: str) -> Feedback:
    (feedback,) = critic.critique([Example(id="1", prompt="Write it.", completion=completion, tests=tests)])
    return feedback


def test_an_answer_that_ends_between_two_calls_does_not_block_the_judge(critic: CodeCritic) -> None:
    source = "import os, threading\ndef f(x):\n    threading.Timer(0.1, os._exit, [0]).start()\n    return 1\n"
    tests = (
        "def test_f():\n    import time\n    assert f(1) == 1\n    time.sleep(0.3)\n    assert f('a' * 500_000) == 1\n"
    )
    began = time.monotonic()
    assert critique(critic, source, tests).score == -1.0
    assert time.monotonic() - began < 10


STACK = """
class Stack:
    size = 0
    def __init__(self, items=()): self.items = list(items)
    def push(self, item):
        self.items.append(item)
        return self
    def pop(self): return self.items.pop()
    def __len__(self): return len(self.items)
    def __getitem__(self, index): return self.items[index]
    def __contains__(self, item): return item in self.items
    def __iter__(self): return iter(self.items)
    def __add__(self, other): return Stack(self.items + other.items)
    def __eq__(self, other): return self.items == other.items
    def __str__(self): return f"Stack{self.items}"
    def __enter__(self): return self
    def __exit__(self, *error): self.items.clear()
"""


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        (STACK, "s = Stack([1])\ns.push(2).push(3)\nassert s.pop() == 3\nassert len(s) == 3 and 2 in s and s[0] == 1\nassert s.items == [1, 2, 3]"),
        (STACK, "s = Stack([1]) + Stack([2])\nassert list(s) == [1, 2]\nassert [x for x in s] == [1, 2]\nassert str(s) == 'Stack[1, 2]'"),
        (STACK, "s = Stack()\ns.size = 5\nassert s.size == 5 and isinstance(s, Stack) and not isinstance(3, Stack)\nassert s == Stack() and s != Stack([1])"),
        (STACK, "with Stack([1]) as s:\n    assert len(s) == 1\nassert not s"),
        ("def f(g, xs): return [g(x) for x in xs]", "assert f(lambda x: x + 1, [1, 2]) == [2, 3]\nassert f(len, ['a', 'bc']) == [1, 2]"),
        ("def f(g): return lambda x: g(g(x))", "double = lambda x: 2 * x\nassert f(double)(3) == 12\nassert f(str)(5) == '5'"),
        ("def f(g):\n    try: return g(0)\n    except ZeroDivisionError: return 'caught'", "assert f(lambda x: 1 / x) == 'caught'\nassert f(lambda x: 7) == 7"),
        ("def f(x): x.sort(); x.append([len(x)])", "a = [3, 1, 2]\nf(a)\nassert a == [1, 2, 3, [3]]\nassert f([2]) is None"),
        ("def f(d): d['x'][0] = 5; d['y'] = 1", "d = {'x': [1]}\ninner = d['x']\nf(d)\nassert d == {'x': [5], 'y': 1} and inner == [5]"),
        ("def f(x):\n    while x: x.pop()\n    return 6", "a = [1, 2, 3]\nassert f(a) == sum(a)\nassert f([6]) == 6"),
        ("def f(n):\n    for i in range(n): yield i * i", "assert list(f(3)) == [0, 1, 4]\nassert sum(f(4)) == 14\ng = f(2)\nassert next(g) == 0"),
        ("def f(n): return map(str, range(n))", "assert list(f(2)) == ['0', '1']\nassert sorted(f(3), reverse=True) == ['2', '1', '0']"),
        ("def f(xs): return sum(xs)", "assert f(x for x in (1, 2)) == 3\nassert f(range(4)) == 6\nassert f(iter([5])) == 5"),
        ("from collections import Counter, namedtuple\nP = namedtuple('P', 'x y')\ndef f(s): return Counter(s)\ndef g(a): return P(a, a + 1)",
         "assert f('aab') == {'a': 2, 'b': 1}\nassert f('ab').most_common(1) == [('a', 1)]\nassert g(1) == (1, 2) and g(1).y == 2"),
        ("import re\ndef f(s): return re.match('a+', s)", "assert f('aab')\nassert not f('b')\nassert f('aab').group() == 'aa'"),
        ("class Odd(ValueError): pass\ndef f(n):\n    if n % 2: raise Odd(f'{n} is odd')\n    return n",
         "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        with self.assertRaises(Odd): f(1)\n    def test_b(self):\n"
         "        with self.assertRaisesRegex(ValueError, '3 is odd'): f(3)\n    def test_c(self): self.assertEqual(f(4), 4)"),
        ("def f(x): print(f'<{x}>')", "import io, contextlib\ndef test_f():\n    out = io.StringIO()\n    with contextlib.redirect_stdout(out): f(3)\n    assert out.getvalue() == '<3>\\n'"),
        ("def f(x): return x + LIMIT\nLIMIT = 3", "from answer import f, LIMIT\nassert f(1) == 4\nimport answer\nassert answer.f(2) == 2 + LIMIT"),
        ("def sum(a, b): return a * b", "assert sum(2, 5) == 10\nassert sum(3, 3) == 9"),
        ("def f(x): return math.floor(x)", "import math\nassert f(2.5) == math.floor(2.5)\nassert f(7.1) == 7"),
        ("def f(x): return x / 3", "assert math.isclose(f(1), 1 / 3)\nassert math.isclose(f(2), 2 / 3)"),
        ("import decimal\ndef f(x): return decimal.Decimal(x) / 4", "from decimal import Decimal\nassert f(1) == Decimal('0.25')\nassert f(2) == Decimal('0.5')"),
        ("import random\ndef f(n): return [random.random() < 2 for _ in range(n)]", "assert f(1) == [True]\nassert f(3) == [True] * 3"),
        ("f = lambda a, *b, c=1: (a, b, c)", "assert f(1, 2, c=3) == (1, (2,), 3)\nassert f(*[4]) == (4, (), 1)"),
        ("async def f(x): return x + 1", "assert f.__name__ == 'f'\nassert f(1) is not None"),
    ],
)  # fmt: skip
def test_a_right_program_passes(critic: CodeCritic, code: str, tests: str) -> None:
    feedback = critique(critic, code, tests)
    assert (feedback.status, feedback.score) == ("ok", 1.0), (feedback.error, feedback.critique)


def test_tests_that_pass_objects_of_their_own_cannot_run(critic: CodeCritic) -> None:
    tests = "class Node:\n    pass\nassert f(Node()) == 1\nassert f(Node()) == 2"
    feedback = critique(critic, "def f(n): return 1", tests)
    assert feedback.status == "failed"
    assert "they pass an object of type 'Node' to the answer" in (feedback.error or "")


def test_tests_that_never_use_the_answer_cannot_run(critic: CodeCritic) -> None:
    feedback = critique(critic, "def f(n): return 1", "assert len([1]) == 1\nassert sorted([2, 1]) == [1, 2]")
    assert feedback.status == "failed"
    assert "never use the answer" in (feedback.error or "")


def test_critiques_are_the_same_in_every_run(critic: CodeCritic) -> None:
    code = (
        "class A: pass\ndef f(x):\n    if x == 1: return {str(n) for n in range(20)}\n    if x == 2: raise ValueError(A())\n"
        "    n = 0\n    while True:\n        for i in range(7):\n            n += i\n"
    )
    tests = "assert f(1) == {'a'}\nassert f(2) == 1\nassert f(3) == 1\nassert str(f) == 'x'"
    first, second = (critique(critic, code, tests) for _ in range(2))
    assert first == second
    assert "0x" not in first.critique


def test_a_process_for_each_test(critic: CodeCritic) -> None:
    code = "calls = []\ndef f(x):\n    calls.append(x)\n    return len(calls) + x\n"
    assert critique(critic, code, "assert f(1) == 2\nassert f(2) == 3\n").score == 1.0
