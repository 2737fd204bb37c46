"""The code critic: runs the program of each completion against the example's tests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from text2grad.align.program import Program, extract_program
from text2grad.critics.code.cases import Suite, parse_tests
from text2grad.critics.code.review import Review
from text2grad.critics.code.runner import CaseResult, ExecutionReport, run_suites
from text2grad.sandbox import Sandbox, SandboxError
from text2grad.schema import Example, Feedback, Omission

_FUNCTION = re.compile(r"^(?:async )?def (\w+)", re.M)
_NO_CODE = "The answer has no code in it"


class CodeCritic:
    """Runs the code of a completion against the example's tests and reviews it.

    `tests` is a script: asserts, a function `check(candidate)`, functions `test_...()`, or anything that raises when
    the code is wrong. `meta["entry_point"]` names the function to check where the script does not. The score is
    2 * passed / tests - 1. An example without tests, or whose tests cannot run, gets failed feedback.

    test_timeout: CPU seconds of one test. total_timeout: seconds of all tests of one completion.
    max_blamed_share: the share of a program's statements that may be blamed (at least one is).
    """

    name = "code"

    def __init__(
        self,
        *,
        test_timeout: float = 3.0,
        total_timeout: float = 15.0,
        max_blamed_share: float = 0.3,
        sandbox: Sandbox | None = None,
        unsafe: bool = False,
    ) -> None:
        self.test_timeout, self.total_timeout, self.max_blamed_share = test_timeout, total_timeout, max_blamed_share
        self.sandbox = sandbox or Sandbox(unsafe=unsafe)

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order."""
        prepared = [self._prepare(example) for example in examples]
        jobs = [(item[0].source, item[1]) for item in prepared if not isinstance(item, Feedback)]
        reports = run_suites(jobs, self.sandbox, self.test_timeout, self.total_timeout)
        return [item if isinstance(item, Feedback) else self._feedback(*item, next(reports)) for item in prepared]

    def _prepare(self, example: Example) -> tuple[Program, Suite] | Feedback:
        if not example.tests or not example.tests.strip():
            return Feedback.failure(self.name, "the example has no tests")
        prompt = example.prompt if isinstance(example.prompt, str) else ""
        entry_point = example.meta.get("entry_point") or _last_function(prompt, example.completion)
        suite = parse_tests(example.tests, entry_point)
        if suite is None:
            return Feedback.failure(self.name, "the example's tests are not valid Python, or need a test runner")
        program = extract_program(example.completion, prompt, suite.required_names)
        if program is None:
            omission = Omission(text="code", phrase=(0, len(_NO_CODE)))
            return Feedback(critique=f"{_NO_CODE}.", omissions=[omission], score=-1.0, critic=self.name)
        return program, suite

    def _feedback(self, program: Program, suite: Suite, report: ExecutionReport | SandboxError) -> Feedback:
        if isinstance(report, SandboxError):
            return Feedback.failure(self.name, str(report))
        broken = next((result for result in report.results if _is_broken_test(result)), None)
        if broken is not None and broken.missing_name not in suite.required_names:
            error = f"the example's tests cannot run: {broken.exception}: {broken.message}"
            return Feedback.failure(self.name, error)
        return Review(self.name, program, suite.required_names, self.max_blamed_share).write_report(report)


def _is_broken_test(result: CaseResult) -> bool:
    """Whether the set-up failed, other than by calling the program or asserting something about it."""
    return result.phase == "setup" and not result.traceback and result.exception != "AssertionError"


def _last_function(prompt: str, completion: str) -> str | None:
    """Return the function that the prompt leaves to be written, else the last one of the completion."""
    names = _FUNCTION.findall(prompt) or _FUNCTION.findall(completion)
    return names[-1] if names else None
