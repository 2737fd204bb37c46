"""Test scripts, split into cases."""

# ruff: noqa: E501  one case per line

from __future__ import annotations

from text2grad.critics.code.cases import Case, Suite, parse_tests


def suite(tests: str, entry_point: str | None = None) -> Suite:
    found = parse_tests(tests, entry_point)
    assert found is not None
    return found


def test_each_assert_is_a_case() -> None:
    found = suite("import math\nassert f(1) == 2\nassert not f(0), 'zero'\nassert math.isclose(f(3), 0.5)\n")
    assert found.setup == "import math\n"
    assert found.cases == (
        Case("assert f(1) == 2", left="f(1)", operator="==", right="2"),
        Case("assert not f(0)", left="f(0)", operator="falsy"),
        Case("assert math.isclose(f(3), 0.5)", left="math.isclose(f(3), 0.5)", operator="truthy"),
    )
    assert found.required_names == {"f"}
    assert found.imports == ("math",)


def test_check_is_split_and_names_the_function() -> None:
    tests = "def check(candidate):\n    x = 1\n    assert candidate(x) == 2\n    for i in range(3):\n        assert candidate(i)\n"
    found = suite(tests, "f")
    assert [case.source for case in found.cases] == ["assert f(x) == 2", "for i in range(3):\n    assert f(i)"]
    assert [case.setup for case in found.cases] == ["candidate = f\nx = 1\n"] * 2
    assert found.required_names == {"f"}


def test_the_script_itself_may_call_check() -> None:
    found = suite("def check(candidate):\n    assert candidate(1) == 2\ncheck(g)\n", "f")
    assert found.required_names == {"g"}
    assert found.setup == ""


def test_functions_named_test_are_cases() -> None:
    found = suite("def test_one():\n    assert f(1)\ndef helper(x):\n    assert x\n")
    assert [case.source for case in found.cases] == ["test_one()"]
    assert "def helper" in found.setup


def test_any_other_script_is_one_case() -> None:
    assert suite("import sys\nif f(1) != 2:\n    sys.exit(1)\n").cases[0].source.startswith("import sys")


def test_tests_that_do_not_parse() -> None:
    assert parse_tests("assert f(") is None


def test_what_stands_before_an_assert_runs_before_it() -> None:
    found = suite("import math\nr = f(1)\nassert r == 2\nr = f(5)\nassert r == 6\n")
    assert found.setup == "import math\nr = f(1)\n"
    assert [case.setup for case in found.cases] == ["", "r = f(5)\n"]


def test_a_loop_that_asserts_is_repeated_for_the_cases_after_it() -> None:
    tests = "def check(g):\n    out = []\n    for i in range(2):\n        out.append(g(i))\n        assert out\n    assert out == [1, 2]\n"
    _, last = suite(tests, "f").cases
    assert "except AssertionError" in last.setup
    names = {"f": lambda i: i + 1}
    exec(last.setup + last.source, names)
    assert names["out"] == [1, 2]


def test_classes_coroutines_and_the_main_block_are_run() -> None:
    tests = """
import unittest
class TestPlain:
    def test_a(self): assert f(1) == 2
class Cases(unittest.TestCase):
    def test_b(self): self.assertEqual(f(1), 2)
async def test_c(n=1): assert f(n) == 2
if __name__ == "__main__":
    assert f(2) == 3
    unittest.main()
"""
    assert [case.source for case in suite(tests).cases] == [
        "TestPlain().test_a()",
        "Cases('test_b').debug()",
        "asyncio.run(test_c())",
        "assert f(2) == 3",
    ]


def test_tests_that_need_a_runner_are_not_passed_by_running_nothing() -> None:
    assert parse_tests("@pytest.mark.parametrize('n', [1])\ndef test_a(n): assert f(n)\n") is None
    assert parse_tests("def test_a(tmp_path): assert f(tmp_path)\n") is None
    assert parse_tests("class TestF:\n    def test_a(self, tmp_path): assert f(1)\n") is None
