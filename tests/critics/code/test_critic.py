"""Completions with one fault each, and the feedback on them."""

# ruff: noqa: E501  one fault per line

from __future__ import annotations

import pytest

from text2grad.critics.base import collect_feedback
from text2grad.critics.code import CodeCritic
from text2grad.errors import UserError
from text2grad.sandbox import Backend, ExecutionResult, ResourceLimits, Sandbox, SandboxError, Script
from text2grad.sandbox.execution import execute
from text2grad.schema import Example, Feedback


@pytest.fixture(scope="module")
def critic() -> CodeCritic:
    try:
        sandbox = Sandbox()
    except UserError as error:
        pytest.skip(str(error))
    return CodeCritic(test_timeout=1.0, total_timeout=8.0, sandbox=sandbox)


def critique(
    critic: CodeCritic, completion: str, tests: str = "assert f(1) == 2", prompt: str = "Write f."
) -> Feedback:
    (feedback,) = critic.critique([Example(id="1", prompt=prompt, completion=completion, tests=tests)])
    assert feedback.status == "ok", feedback.error
    for span in feedback.spans:
        assert span.match == "code"
        assert span.critic == "code"
        assert span.phrase is not None
        assert span.reason is not None
        assert span.reason in feedback.critique
    return feedback


def spans(feedback: Feedback, completion: str, label: str = "poor") -> dict[str, str]:
    """What is blamed or praised, and the words of the critique that do so."""
    return {
        completion[span.start : span.end]: feedback.critique[slice(*(span.phrase or (0, 0)))]
        for span in feedback.spans
        if span.label == label
    }


def test_a_right_answer_is_praised(critic: CodeCritic) -> None:
    code = "def f(x):\n    if x > 5:\n        return 0\n    y = x + 1\n    return y\n"
    feedback = critique(critic, code, "assert f(1) == 2\nassert f(2) == 3\n")
    assert feedback.score == 1.0
    assert feedback.critique.startswith("All 2 tests pass.")
    assert spans(feedback, code, "good") == {"if x > 5": "Line 2", "y = x + 1\n    return y": "Lines 4 to 5"}
    assert spans(feedback, code) == {}


def test_a_wrong_value_is_reported_with_the_expected_one_and_the_suspect(critic: CodeCritic) -> None:
    code = "Sure!\n```python\ndef f(a, b):\n    total = a - b\n    return total\n```\n"
    feedback = critique(critic, code, "assert f(1, 2) == 3\nassert f(0, 0) == 0\n")
    assert feedback.score == 0.05
    assert feedback.critique == (
        "1 of 2 tests passes. `f(1, 2)` should be `3` but is `-1`. The fault is most likely in line 2, `total = a - b`."
    )
    assert spans(feedback, code) == {"total = a - b": "line 2, `total = a - b`"}
    assert feedback.spans[0].severity == 0.5


def test_the_branch_that_only_failing_tests_take_is_blamed(critic: CodeCritic) -> None:
    code = "def f(x):\n    if x < 0:\n        return x * 1\n    y = x\n    z = y\n    return z + 0\n"
    feedback = critique(critic, code, "assert f(-1) == 1\nassert f(2) == 2\nassert f(3) == 3\n")
    assert list(spans(feedback, code)) == ["return x * 1"]
    assert list(spans(feedback, code, "good")) == ["y = x\n    z = y\n    return z + 0"]
    assert [span.severity for span in feedback.spans if span.label == "good"] == [0.6667]


@pytest.mark.parametrize(
    ("code", "sentence", "blamed"),
    [
        ("def f(x):\n    y = [1]\n    return y[x] + 1", "`f(1)` raises IndexError (list index out of range) in line 3, `y[x]`", "y[x]"),
        ("def f(x):\n    import no_such_module\n", "imports `no_such_module`, which is not installed, in line 2", "import no_such_module"),
        ("import no_such_module\ndef f(x): return x + 1", "imports `no_such_module`, which is not installed, in line 1", "import no_such_module"),
        ("import sys\ndef f(x):\n    sys.exit(3)", "`f(1)` ends the program with exit code 3 instead of giving a result", "sys.exit(3)"),
        ("def f(x):\n    exit()", "`f(1)` ends the program instead of giving a result", "exit()"),
        ("import os\ndef f(x):\n    os._exit(0)", "`f(1)` ends the whole process in line 3", "os._exit(0)"),
        ("def f(x):\n    return f(x)", "`f(1)` calls itself without end (RecursionError) in line 2", "f(x)"),
        ("def f(x):\n    return bytearray(1 << 40)", "needs more memory than it may have (MemoryError) in line 2", "bytearray(1 << 40)"),
        ("def f(x):\n    return input()", "`f(1)` raises EOFError (there is no input) in line 2", "input()"),
        ("def f():\n    return 2", "cannot be evaluated (f() takes 0 positional arguments but 1 was given)", "def f():"),
        ("def g(x):\n    return 2", "The tests use `f`, which the answer does not define; it has only line 1", "def g(x):"),
        ("def f(x):\n    return (x", "The answer is not valid Python: '(' was never closed in line 2", "return (x"),
        ("def f(x):\n    return x +* 1", "The answer is not valid Python: invalid syntax in line 2", "return x +* 1"),
        ("1 / 0\ndef f(x): return x + 1", "Loading the answer raises ZeroDivisionError (division by zero) in line 1", "1 / 0"),
        ("import os\nos.kill(-1, 9)\ndef f(x): return x + 1", "sends a signal to a process, which is forbidden here, in line 2", "os.kill(-1, 9)"),
    ],
)  # fmt: skip
def test_each_fault_has_its_sentence(critic: CodeCritic, code: str, sentence: str, blamed: str) -> None:
    feedback = critique(critic, code)
    assert sentence in feedback.critique
    assert list(spans(feedback, code)) == [blamed]
    assert feedback.score == -1.0


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        ("__import__('socket').create_connection(('127.0.0.1', 9))", "looks up a network address"),
        ("open('/etc/passwd').read()", "reads the file '/etc/passwd'"),
        ("open('/var/x', 'w')", "writes the file '/var/x'"),
        ("__import__('subprocess').run(['true'])", "starts another program"),
        ("__import__('os').system('true')", "runs a shell command"),
    ],
)
def test_forbidden_actions(critic: CodeCritic, action: str, sentence: str) -> None:
    code = f"def f(x):\n    try:\n        {action}\n    except OSError:\n        pass\n    return x + 1\n"
    feedback = critique(critic, code)
    assert f"The answer {sentence}, which is forbidden here, in line 3" in feedback.critique
    assert list(spans(feedback, code)) == [action]


def test_infinite_loops_are_found_and_other_tests_still_run(critic: CodeCritic) -> None:
    code = "def f(x):\n    while x == 1:\n        pass\n    return x + 1\n"
    feedback = critique(critic, code, "assert f(1) == 2\nassert f(2) == 3\n")
    assert feedback.score == 0.0
    assert "`f(1)` does not end: it keeps running in the loop of line 2, `while x == 1`." in feedback.critique
    assert list(spans(feedback, code)) == ["while x == 1"]


def test_a_slow_call_that_is_no_loop(critic: CodeCritic) -> None:
    code = "import time\ndef f(x):\n    time.sleep(60)\n"
    feedback = critique(critic, code)
    assert "`f(1)` does not finish in time; it is still busy in line 3, `time.sleep(60)`." in feedback.critique


def test_tests_that_fail_alike_are_reported_once(critic: CodeCritic) -> None:
    code = "def f(x):\n    return x.y\n"
    feedback = critique(critic, code, "".join(f"assert f({n}) == {n}\n" for n in range(5)))
    assert feedback.critique.count("AttributeError") == 1
    assert "; 4 more fail alike." in feedback.critique


def test_humaneval_style(critic: CodeCritic) -> None:
    completion = "    return x - 1\n"
    tests = "def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(5) == 6\n"
    feedback = critique(critic, completion, tests, prompt='def f(x):\n    """Add one."""\n')
    assert feedback.critique.startswith("None of the 2 tests passes. `f(1)` should be `2` but is `0`.")
    assert spans(feedback, completion) == {"return x - 1": "line 1, `return x - 1`"}


def test_offsets_count_characters_not_bytes(critic: CodeCritic) -> None:
    code = "Voilà 🎉:\r\n```python\r\ndef f(é):\r\n    return é + 'ü'\r\n```"
    assert list(spans(critique(critic, code), code)) == ["é + 'ü'"]


def test_no_code_is_an_omission(critic: CodeCritic) -> None:
    feedback = critique(critic, "I cannot do that.")
    assert (feedback.critique, feedback.score) == ("The answer has no code in it.", -1.0)
    assert [omission.text for omission in feedback.omissions] == ["code"]


@pytest.mark.parametrize(
    ("tests", "error"),
    [
        (None, "no tests"),
        ("assert f(", "not valid Python"),
        ("import no_such_module\nassert f(1) == 2", "the example's tests cannot run: ModuleNotFoundError"),
    ],
)
def test_tests_that_cannot_run_fail_their_own_example_only(critic: CodeCritic, tests: str | None, error: str) -> None:
    good = Example(id="2", prompt="p", completion="def f(x): return x + 1", tests="assert f(1) == 2")
    broken = Example(id="1", prompt="p", completion="def f(x): return x + 1", tests=tests)
    first, second, third = critic.critique([good, broken, good])
    assert (first.score, third.score) == (1.0, 1.0)
    assert second.status == "failed"
    assert error in (second.error or "")


@pytest.mark.parametrize(
    "trick",
    [
        "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'{\"status\": \"passed\"}')\n    except OSError: pass\nos._exit(0)",
        "print('{\"results\": [{\"status\": \"passed\"}]}')\nimport os\nos._exit(0)",
        "import builtins\nbuiltins.eval = builtins.exec = builtins.compile = lambda *_: True\nbuiltins.bool = lambda _: True",
        "import __main__\n__main__._check_case = lambda *_: {'status': 'passed'}",
        "import json, os\njson.dumps = lambda *_: '{\"status\": \"passed\"}'",
        "import sys\nsys.settrace(None)\nsys.exit = lambda *_: None",
    ],
)  # fmt: skip
def test_an_answer_cannot_write_its_own_report(critic: CodeCritic, trick: str) -> None:
    code = f"{trick}\ndef f(x):\n    return 0\n"
    assert critique(critic, code).score == -1.0


def test_an_entry_point_that_is_no_name_fails_its_own_example_only(critic: CodeCritic) -> None:
    right = Example(id="1", prompt="p", completion="def f(x):\n    return x + 1\n", tests="assert f(1) == 2")
    damaged = right.model_copy(update={"meta": {"entry_point": ["f"]}})
    first, second = collect_feedback(critic, [right, damaged])
    assert first.score == 1.0
    assert second.error == "meta.entry_point is ['f'], not the name of a function"


def test_only_a_share_of_the_statements_is_blamed(critic: CodeCritic) -> None:
    lines = "".join(f"    y{n} = x + {n}\n" for n in range(19))
    code = f"def f(x):\n{lines}    return 0\n"
    assert len(spans(critique(critic, code), code)) == 6  # 30% of 21


def test_a_broken_sandbox_fails_one_answer_only(critic: CodeCritic, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_once(program: Script, limits: ResourceLimits, backend: Backend) -> ExecutionResult:
        if "broken" in program.stdin:
            raise SandboxError("no more processes")
        return execute(program, limits, backend)

    monkeypatch.setattr("text2grad.sandbox.execute", breaks_once)
    completions = ["def f(x): return x + 1", "broken = 1\ndef f(x): return x + 1", "def f(x): return x + 1"]
    examples = [Example(id="1", prompt="p", completion=text, tests="assert f(1) == 2") for text in completions]
    assert [feedback.score for feedback in critic.critique(examples)] == [1.0, None, 1.0]


def replacements(feedback: Feedback, completion: str) -> dict[str, str]:
    return {completion[s.start : s.end]: s.replacement for s in feedback.spans if s.replacement is not None}


@pytest.mark.parametrize(
    ("code", "tests", "expected"),
    [
        ("def g(x):\n    return x + 1", "assert f(1) == 2", {"def g(x):": "def f(x):"}),
        ("def g(x):\n    return x + 1\ndef h(x):\n    return 2", "assert f(1) == 2", {}),
        ("def g(x):\n    return x + 1", "assert f(1) == h(2)", {}),
    ],
)
def test_the_name_that_the_tests_ask_for_replaces_the_only_other_one(
    critic: CodeCritic, code: str, tests: str, expected: dict[str, str]
) -> None:
    assert replacements(critique(critic, code, tests), code) == expected


OFF_BY_ONE = "def f(xs):\n    n = 0\n    for x in xs:\n        if x > 3:\n            n += 1\n    return n\n"
OFF_BY_ONE_TESTS = "assert f([1, 3, 5]) == 2\nassert f([4]) == 1\nassert f([2]) == 0\nassert f([3, 3, 2]) == 2"


def test_a_token_with_which_all_tests_pass_is_tried_only_on_request(critic: CodeCritic) -> None:
    assert replacements(critique(critic, OFF_BY_ONE, OFF_BY_ONE_TESTS), OFF_BY_ONE) == {}

    patient = CodeCritic(test_timeout=1.0, total_timeout=8.0, sandbox=critic.sandbox, max_mutants=30)
    feedback = critique(patient, OFF_BY_ONE, OFF_BY_ONE_TESTS)
    assert replacements(feedback, OFF_BY_ONE) == {">": ">="}
    assert "With `>=` for `>` in line 4, all tests pass." in feedback.critique
    assert sum(span.severity for span in feedback.spans if span.label == "poor") <= 1


def test_no_token_is_named_where_none_helps(critic: CodeCritic) -> None:
    code = "def f(x):\n    return x * 1 if x > 2 else x"
    patient = CodeCritic(test_timeout=1.0, total_timeout=8.0, sandbox=critic.sandbox, max_mutants=8)
    assert replacements(critique(patient, code, "assert f(5) == 'five'\nassert f(1) == 'one'"), code) == {}


def test_a_negative_number_of_trials_is_refused(critic: CodeCritic) -> None:
    with pytest.raises(UserError, match="max_mutants is -1"):
        CodeCritic(max_mutants=-1, sandbox=critic.sandbox)


def test_a_program_passes_if_it_passes_all_tests(critic: CodeCritic) -> None:
    tests = "assert f(1) == 2\nassert f(2) == 3"
    programs = {
        "def f(x):\n    return x + 1\n": True,
        "def f(x):\n    return 2\n": False,
        "def f(x)\n": False,
        "I cannot.": False,
    }
    examples = [Example(id="1", prompt="Write f.", completion=program, tests=tests) for program in programs]
    assert critic.passes_tests(examples) == list(programs.values())
    broken = [examples[0].model_copy(update={"tests": source}) for source in (None, "assert (", "undefined()\n")]
    assert critic.passes_tests(broken)[:2] == [None, None]
