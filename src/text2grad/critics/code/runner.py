"""Runs programs against their test suites in the sandbox and parses the judge's reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, Literal

from pydantic import ValidationError
from pydantic.dataclasses import dataclass

from text2grad.align.answer.program import Extent, imported_modules
from text2grad.critics.code.cases import Case, Suite, parse_tests
from text2grad.critics.code.judging.bundle import judge_script
from text2grad.errors import UserError
from text2grad.sandbox import ExecutionResult, ResourceLimits, Sandbox, SandboxError, Script
from text2grad.sandbox.backends import readable_paths

CaseStatus = Literal["passed", "failed", "raised", "timeout", "died", "not_run"]
ParserExtent = tuple[int | None, int | None, int | None, int | None]  # as `Extent`, with columns in characters from 1

# Imported once per answer instead of once per test, before the answer runs.
_PRELOADED = {
    "abc", "array", "bisect", "calendar", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime",
    "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "io", "itertools", "json", "math", "numbers",
    "numpy", "operator", "queue", "random", "re", "statistics", "string", "textwrap", "time", "types", "typing",
    "unicodedata",
}  # fmt: skip
_JUDGE_CPU_SECONDS = 5.0  # beside the answer's
_WALL_SECONDS = 60.0  # a backstop: the judge counts processor time, and time for which the answer is blocked


@dataclass(frozen=True)
class CaseResult:
    """The result of one test case. Lines are those of the program's source, from 1.

    last_line: the line that ran last. num_calls: how often the test used the program. phase: where an exception was
    raised; is_answers: by the program. traceback: from the outermost call of the program to the exception. forbidden:
    (action, line).
    """

    case: Case
    status: CaseStatus
    executed_lines: frozenset[int] = frozenset()
    last_line: int = 0
    num_calls: int = 0
    actual: str | None = None
    expected: str | None = None
    phase: Literal["import", "setup", "test"] = "test"
    is_answers: bool = False
    exception: str = ""
    exception_bases: frozenset[str] = frozenset()
    message: str = ""
    missing_name: str | None = None
    traceback: tuple[Extent, ...] = ()
    exit_code: int | None = None
    forbidden: tuple[str, int] | None = None

    @property
    def passed(self) -> bool:
        """Whether the program passed the test."""
        return self.status == "passed"


@dataclass(frozen=True)
class InvalidSyntax:
    """The parser's message and position for a program that is not valid Python."""

    message: str
    extent: ParserExtent | None


@dataclass(frozen=True)
class ExecutionReport:
    """The results of all test cases, or why there are none.

    terminated_by: an exceeded limit, "crash", or "forgery" where the program's process sent what is no reply.
    unsupported: what the tests do that cannot be done. is_constant: the program does the same whatever its arguments.
    """

    results: tuple[CaseResult, ...] = ()
    invalid_syntax: InvalidSyntax | None = None
    terminated_by: str | None = None
    unsupported: str | None = None
    is_constant: bool = False


def run_suites(
    programs: Sequence[tuple[str, Suite]], sandbox: Sandbox, test_timeout: float, total_timeout: float
) -> Iterator[ExecutionReport | SandboxError]:
    """Run each source against its suite, in parallel; yield reports in order, an error where the sandbox failed.

    The same source with the same suite runs once: siblings often write the same program.
    """
    distinct = list(dict.fromkeys(programs))
    payloads = (make_payload(source, suite, test_timeout, total_timeout) for source, suite in distinct)
    scripts = (Script(judge_script(), stdin=json.dumps(payload)) for payload in payloads)
    limits = ResourceLimits(wall_seconds=_WALL_SECONDS, cpu_seconds=total_timeout + _JUDGE_CPU_SECONDS)
    finished = zip(distinct, sandbox.run_all(scripts, limits), strict=True)
    reports: dict[tuple[str, Suite], ExecutionReport | SandboxError] = {}
    for program in programs:
        while program not in reports:
            done, result = next(finished)
            reports[done] = result if isinstance(result, SandboxError) else _parse_report(result, done[1].cases)
        yield reports[program]


@cache
def check_judge(sandbox: Sandbox) -> None:
    """Raise UserError if a correct program does not pass its test here: then no score would mean anything."""
    suite = parse_tests("assert successor(1) == 2")
    assert suite is not None
    (report,) = run_suites([("def successor(n):\n    return n + 1\n", suite)], sandbox, 2.0, 5.0)
    if isinstance(report, SandboxError):
        raise UserError(f"code: {report}")
    if not any(result.passed for result in report.results):
        reason = report.terminated_by or [result.message or result.status for result in report.results]
        raise UserError(f"code: a correct program does not pass its test in the sandbox of this machine: {reason}")


def make_payload(source: str, suite: Suite, test_timeout: float, total_timeout: float) -> dict[str, Any]:
    """Return what the judge reads from standard input."""
    return {
        "source": source,
        "num_lines": source.count("\n") + source.count("\r") + 1,
        "setup": suite.setup,
        "names": sorted(suite.required_names),
        "modules": dict(suite.module_names),
        "imports": suite.import_statements,
        "preload": sorted(_PRELOADED & {*imported_modules(source), *suite.imports}),
        "preload_tests": suite.imports,
        "cases": [_case_payload(case, suite) for case in suite.cases],
        "all_shown": all(case.is_shown for case in suite.cases),
        "test_seconds": test_timeout,
        "total_seconds": total_timeout,
        "readable": readable_paths(),
    }


def _case_payload(case: Case, suite: Suite) -> dict[str, Any]:
    right_first = case.right is not None and not suite.required_names & set(re.findall(r"\w+", case.right))
    return {**asdict(case), "is_counted": case in suite.counted_cases, "right_first": right_first}


def _parse_report(result: ExecutionResult, cases: Sequence[Case]) -> ExecutionReport | SandboxError:
    """Parse the judge's report. Without one, the program has ended the judge, or both at a limit of the sandbox."""
    if not result.stdout:
        exceeded = result.termination if result.termination not in ("exit", "signal") else "crash"
        return ExecutionReport(terminated_by=exceeded)
    try:
        report = json.loads(result.stdout)
        if "error" in report:
            return SandboxError(report["error"])
        if "invalid" in report:
            return ExecutionReport(terminated_by="forgery")
        if "unsupported" in report:
            return ExecutionReport(unsupported=report["unsupported"])
        if syntax := report.get("invalid_syntax"):
            return ExecutionReport(invalid_syntax=InvalidSyntax(**syntax))
        results = zip(cases, report["results"], strict=True)
        found = tuple(CaseResult(case=case, **fields) for case, fields in results)
        return ExecutionReport(found, is_constant=report["is_constant"])
    except (ValueError, ValidationError, KeyError, TypeError):
        return ExecutionReport(terminated_by="crash")
