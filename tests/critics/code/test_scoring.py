"""What programs earn: degenerate ones nothing, shown tests nothing, praise and blame at most 1."""

from __future__ import annotations

import pytest

from text2grad.critics.code import CodeCritic
from text2grad.critics.code.cases import parse_tests
from text2grad.critics.code.shown import mark_shown
from text2grad.critics.code.trivial import repeats_shown_test, returns_one_constant
from text2grad.schema import Example, Feedback

PROMPT = "Write is_even(n).\nYour code should pass this test:\n\nassert is_even(4)==True\n\nAnswer with the code alone."
TESTS = "assert is_even(4)==True\nassert is_even(7)==False\nassert is_even(10) == True"
RIGHT = "def is_even(n):\n    return n % 2 == 0\n"


def critique(critic: CodeCritic, completion: str, tests: str = TESTS, prompt: str = PROMPT) -> Feedback:
    (feedback,) = critic.critique([Example(id="1", prompt=prompt, completion=completion, tests=tests)])
    assert feedback.status == "ok", feedback.error
    return feedback


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        (RIGHT, 1.0),
        ("def is_even(n):\n    return n % 4 == 0\n", 0.05),  # one of the two tests that are not shown: 1/2 - 1/2 * 0.9
        ("def is_even(n):\n    return n\n", -1.0),
        ("def is_even(n):\n    return n % 2 + 3\n", -0.9),
        ("def is_even(n):\n    return True\n", -1.0),  # passes two of three
        ("def is_even(n):\n    return n == n\n", -1.0),
        ("def is_even(n):\n    if n == 4: return True\n    return False\n", -1.0),
        ("def is_even(*args): pass\n", -1.0),
        ("def is_even(n):\n    raise ValueError(n)\n", -1.0),
        ("def is_odd(n):\n    return n % 2 == 1\n", -1.0),
        ("def is_even(n):\n    return n % 2 == \n", -1.0),
        ("# def is_even(n):\n#     return n % 2 == 0\n", -1.0),
        ("assert is_even(4)==True\nassert is_even(7)==False\n", -1.0),
        ("```python\n```", -1.0),
        ("I do not know.", -1.0),
        ("", -1.0),
    ],
)  # fmt: skip
def test_scores(critic: CodeCritic, completion: str, score: float) -> None:
    assert critique(critic, completion).score == score


def test_a_shown_test_that_fails_counts(critic: CodeCritic) -> None:
    score = critique(critic, "def is_even(n):\n    return n % 5 == 0\n").score
    assert score == pytest.approx(2 / 3 - 1 / 3 * 0.9, abs=1e-5)  # both others pass


def test_where_all_tests_are_shown_they_count_but_not_for_a_list_of_them(critic: CodeCritic) -> None:
    prompt = f"Write is_even so that it passes\n{TESTS}"
    table = "def is_even(n):\n    return {4: True, 7: False, 10: True}.get(n)\n"
    errors = "def is_even(n):\n    return {4: True, 7: False, 10: True}[n]\n"
    scores = [critique(critic, code, prompt=prompt).score for code in (RIGHT, table, errors)]
    assert scores[0] == 1.0
    assert max(scores[1:]) == -1.0  # type: ignore[type-var]


def test_dead_branches_and_trivial_tests_change_no_total(critic: CodeCritic) -> None:
    dead = "".join(f"    if n == 1e{k}:\n        return {k}\n" for k in range(20, 40))
    padded = RIGHT.replace("    return", dead + "    return", 1)
    for code in (RIGHT, padded):
        feedback = critique(critic, code, tests=f"{TESTS}\nassert True\nassert len('a') == 1")
        assert feedback.score == 1.0
        assert sum(span.severity for span in feedback.spans) == pytest.approx(1.0, abs=0.01)
    wrong = padded.replace("== 0", "== 7")
    feedback = critique(critic, wrong)
    assert feedback.score is not None
    assert feedback.score < 0.1
    assert sum(span.severity for span in feedback.spans if span.label == "good") <= 0.51


def test_a_right_program_is_praised_though_its_tests_share_no_line(critic: CodeCritic) -> None:
    code = "def f(x): return x + 1\n\n\ndef g(x): return x - 1\n"
    feedback = critique(critic, code, tests="assert f(1) == 2\nassert g(1) == 0")
    assert [span.label for span in feedback.spans] == ["good"]


@pytest.mark.parametrize(
    ("test", "prompt", "shown"),
    [
        ("assert f([1, 2], 'a') == (3,)", 'such as f([1,2], "a") == (3,)', True),
        ("assert f(1) == 2", ">>> f(1)\n2\n>>> f(2)\n3", True),
        ("assert f(1) == 2", "Example: f(1)=(2)", True),
        ("assert f(1) == 2", "f(1) returns 3", False),
        ("assert f(11) == 2", "f(1) == 2", False),
        ("assert f(1)", "f(1) holds", True),
        ("for i in range(3):\n    assert f(i) == i", "f(0) == 0", False),
    ],
)
def test_shown_tests(test: str, prompt: str, shown: bool) -> None:
    suite = parse_tests(test)
    assert suite is not None
    assert [case.is_shown for case in mark_shown(suite, prompt).cases] == [shown]


@pytest.mark.parametrize(
    ("code", "constant"),
    [
        ("def f(x): pass", True),
        ("def f(x):\n    x += 1\n    return [1, 'a']", True),
        ("def f(x):\n    if x: return 1\n    return 1", True),
        ("def f(x):\n    if x: return 1\n    return 2", False),
        ("def f(x): return g()\ndef g(): return 1", False),
        ("def f(x): yield 1", False),
        ("def g(x): return 1", False),
    ],
)
def test_constant_programs(code: str, constant: bool) -> None:
    assert returns_one_constant(code, frozenset({"f"})) is constant


def test_programs_that_repeat_a_shown_test() -> None:
    suite = parse_tests("assert f('python', 1) == 3\nassert f('ab', 2) == 5")
    assert suite is not None
    suite = mark_shown(suite, "f('python', 1) == 3")
    assert repeats_shown_test("def f(a, b): return 3 if (a, b) == ('python', 1) else 5", suite)
    assert not repeats_shown_test("def f(a, b): return 3 if 'ab' == a else 5", suite)
