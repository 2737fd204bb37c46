"""The code critic: runs the program of each completion against the example's tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from text2grad.align.answer.program import Program, extract_program, find_statements
from text2grad.critics.code.cases import Suite, parse_tests
from text2grad.critics.code.mutations import add_correction, list_mutants
from text2grad.critics.code.review import Review
from text2grad.critics.code.runner import CaseResult, ExecutionReport, check_judge, run_suites
from text2grad.critics.code.scoring import judge_outcome, relevant_results
from text2grad.critics.code.shown import mark_shown
from text2grad.critics.code.spectrum import suspicions
from text2grad.errors import UserError
from text2grad.sandbox import Sandbox, SandboxError
from text2grad.schema import Example, Feedback, Omission

_FUNCTION = re.compile(r"^(?:async )?def (\w+)", re.M)
_NO_CODE = "The answer has no code in it"
_Run = tuple[Program, Suite, ExecutionReport | SandboxError]


class CodeCritic:
    """Runs the code of a completion against the example's tests and reviews it.

    `tests` is a script: asserts, a function `check(candidate)`, functions `test_...()`, or anything that raises when
    the code is wrong. `meta["entry_point"]` names the function to check where the script does not. An example without
    tests, or whose tests cannot run, gets failed feedback.

    The score is -1 for an answer without a program, for one that is not valid or does not run, that ends its process
    or exceeds a limit, or whose result never depends on its arguments; -0.9 for a program that runs and passes no test;
    1 for one that passes all, linear between. Passing a test that the prompt shows does not count, unless it
    shows all of them. Spans share out the passed tests as praise and the failed ones as blame, so that the severities
    of each sum to at most 1.

    The tests are evaluated in a process of their own, which the program cannot reach: it gets calls and returns plain
    data. Time limits count processor time, and time for which the program is blocked.

    test_timeout: seconds of one test. total_timeout: seconds of all tests of one completion; after two tests in
    which the program does not end or ends its process, the others are not tried. max_blamed_share: the share of a
    program's statements that may be blamed (at least one is). max_mutants: how many changes of one token are tried on a
    program that fails tests, to find the one with which it passes them all (`mutations`); 0, the default: none.

    Corrections: the name that the tests ask for, where the answer defines one function of another name; and what
    `mutations` finds.
    """

    name = "code"

    def __init__(
        self,
        *,
        test_timeout: float = 1.0,
        total_timeout: float = 3.0,
        max_blamed_share: float = 0.3,
        max_mutants: int = 0,
        sandbox: Sandbox | None = None,
        unsafe: bool = False,
    ) -> None:
        if max_mutants < 0:
            raise UserError(f"code: max_mutants is {max_mutants}; give 0 to try none, or how many to try per answer")
        self.test_timeout, self.total_timeout, self.max_blamed_share = test_timeout, total_timeout, max_blamed_share
        self.max_mutants = max_mutants
        self.sandbox = sandbox or Sandbox(unsafe=unsafe)

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order."""
        return [run if isinstance(run, Feedback) else self._feedback(*run) for run in self._run(examples)]

    def passes_tests(self, examples: Sequence[Example]) -> list[bool | None]:
        """Return whether the program of each completion passes all of its tests; None where they cannot be run."""
        found: list[bool | None] = []
        for run in self._run(examples):
            if isinstance(run, Feedback):
                found.append(None if run.status == "failed" else False)  # an answer without a program passes nothing
                continue
            _, suite, report = run
            if isinstance(report, SandboxError) or _find_problem(report, suite) is not None:
                found.append(None)
            else:
                found.append(bool(report.results) and all(result.passed for result in report.results))
        return found

    def _run(self, examples: Sequence[Example]) -> Iterator[Feedback | _Run]:
        """Yield the program of each completion with its tests and their report, or the feedback where none can run."""
        check_judge(self.sandbox)
        prepared = [self._prepare(example) for example in examples]
        jobs = [(item[0].source, item[1]) for item in prepared if not isinstance(item, Feedback)]
        reports = run_suites(jobs, self.sandbox, self.test_timeout, self.total_timeout)
        for item in prepared:
            yield item if isinstance(item, Feedback) else (*item, next(reports))

    def _prepare(self, example: Example) -> tuple[Program, Suite] | Feedback:
        if not example.tests or not example.tests.strip():
            return Feedback.failure(self.name, "the example has no tests")
        prompt = example.prompt if isinstance(example.prompt, str) else ""
        entry_point = example.meta.get("entry_point") or _last_function(prompt, example.completion)
        if entry_point is not None and not isinstance(entry_point, str):
            return Feedback.failure(self.name, f"meta.entry_point is {entry_point!r}, not the name of a function")
        suite = parse_tests(example.tests, entry_point)
        if suite is None:
            return Feedback.failure(self.name, "the example's tests are not valid Python, or need a test runner")
        suite = mark_shown(suite, example.prompt_text)
        program = extract_program(example.completion, prompt, suite.required_names)
        if program is None:
            omission = Omission(text="code", phrase=(0, len(_NO_CODE)))
            return Feedback(critique=f"{_NO_CODE}.", omissions=[omission], score=-1.0, critic=self.name)
        return program, suite

    def _feedback(self, program: Program, suite: Suite, report: ExecutionReport | SandboxError) -> Feedback:
        if isinstance(report, SandboxError):
            return Feedback.failure(self.name, str(report))
        if problem := _find_problem(report, suite):
            return Feedback.failure(self.name, f"the example's tests cannot run: {problem}")
        outcome = judge_outcome(report, program.source, suite)
        feedback = Review(self.name, program, suite, self.max_blamed_share, outcome).write_report(report)
        if self.max_mutants and outcome.score < 1 and not outcome.is_trivial:
            return self._correct_by_trial(feedback, program, suite, report)
        return feedback

    def _correct_by_trial(
        self, feedback: Feedback, program: Program, suite: Suite, report: ExecutionReport
    ) -> Feedback:
        """Add a change of one token with which all tests pass, if there are such on one line only."""
        failing = [result.executed_lines for result in report.results if not result.passed]
        passing = [result.executed_lines for result in report.results if result.passed]
        lines = suspicions(failing, passing, find_statements(program))
        mutants = list(islice(list_mutants(program, lines), self.max_mutants))
        jobs = [(mutant.source, suite) for mutant in mutants]
        reports = run_suites(jobs, self.sandbox, self.test_timeout, self.total_timeout)
        right = [
            mutant
            for mutant, tried in zip(mutants, reports, strict=True)
            if not isinstance(tried, SandboxError) and judge_outcome(tried, mutant.source, suite).score == 1
        ]
        is_clear = len({mutant.line for mutant in right}) == 1  # `i > 2` and `i >= 3` are the same correction
        return add_correction(feedback, right[0], program) if is_clear else feedback


def _find_problem(report: ExecutionReport, suite: Suite) -> str | None:
    """Return what is wrong with the tests themselves."""
    if report.unsupported:
        return report.unsupported
    for result in report.results:
        if _is_broken_test(result) and result.missing_name not in suite.required_names:
            return f"{result.exception}: {result.message}"
    if report.results and not relevant_results(report.results, suite):
        return "they never use the answer"
    return None


def _is_broken_test(result: CaseResult) -> bool:
    """Whether the set-up failed before it used the program, other than by asserting something."""
    is_own = not result.num_calls and not result.is_answers
    return result.phase == "setup" and result.status == "raised" and is_own


def _last_function(prompt: str, completion: str) -> str | None:
    """Return the function that the prompt leaves to be written, else the last one of the completion."""
    names = _FUNCTION.findall(prompt) or _FUNCTION.findall(completion)
    return names[-1] if names else None
