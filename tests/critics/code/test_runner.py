from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from text2grad.critics.code.cases import parse_tests
from text2grad.critics.code.runner import ExecutionReport, check_judge, run_suites
from text2grad.errors import UserError
from text2grad.sandbox import ExecutionResult, Sandbox, SandboxError, Script


def test_a_sandbox_in_which_nothing_passes_is_an_error_and_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> Iterator[ExecutionResult]:
        yield ExecutionResult("exit", 1, "", "", 0.1, 0.1, 0)

    sandbox = Sandbox()
    monkeypatch.setattr(sandbox, "run_all", crash)
    with pytest.raises(UserError, match=r"a correct program does not pass its test in the sandbox of this .*: crash"):
        check_judge(sandbox)


def test_the_same_program_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    suite, other = parse_tests("assert f(1) == 1"), parse_tests("assert f(2) == 2")
    assert suite is not None
    assert other is not None
    right, wrong = "def f(x):\n    return x\n", "def f(x):\n    return 1\n"
    sandbox, ran = Sandbox(), []
    run_all = sandbox.run_all

    def counting(programs: Iterable[Script], *rest: Any) -> Iterator[ExecutionResult | SandboxError]:
        scripts = list(programs)
        ran.append(len(scripts))
        return run_all(scripts, *rest)

    monkeypatch.setattr(sandbox, "run_all", counting)
    jobs = [(right, suite), (wrong, other), (right, suite), (wrong, suite), (wrong, other)]
    passed = [
        isinstance(report, ExecutionReport) and report.results[0].passed
        for report in run_suites(jobs, sandbox, 2.0, 5.0)
    ]
    assert passed == [True, False, True, True, False]
    assert ran == [3]
