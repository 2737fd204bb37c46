"""The code task: the test that decides is one that neither the prompt nor the critic has."""

from evidence_code import hold_back

from text2grad.schema import Example


def problem(tests: str) -> Example:
    return Example(id="1", prompt="Add.", tests=tests, meta={"source": "here"})


def test_the_last_assert_is_held_back_and_both_parts_keep_the_set_up() -> None:
    (held,) = hold_back([problem("import math\nassert f(1) == 2\nassert f(2) == 3\nassert f(3) == math.sqrt(16)")])
    assert held.tests == "import math\nassert f(1) == 2\nassert f(2) == 3"
    assert held.meta == {"source": "here", "held_back": "import math\nassert f(3) == math.sqrt(16)"}


def test_a_problem_with_two_tests_cannot_be_split() -> None:
    assert hold_back([problem("assert f(1) == 2\nassert f(2) == 3")]) == []
