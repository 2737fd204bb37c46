"""Runs programs against their test suites in the sandbox and parses the reports."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass

from text2grad.align.program import Extent
from text2grad.critics.code.cases import Case, Suite
from text2grad.sandbox import ExecutionResult, ResourceLimits, Sandbox, SandboxError, Script
from text2grad.sandbox.backends import readable_paths

CaseStatus = Literal["passed", "failed", "raised", "timeout", "died", "not_run"]
ParserExtent = tuple[int | None, int | None, int | None, int | None]  # as `Extent`, with columns in characters from 1

_DRIVER = Path(__file__).with_name("driver.py").read_text(encoding="utf-8")


@dataclass(frozen=True)
class CaseResult:
    """The result of one test case. Lines are those of the program's source, from 1.

    last_line: the line that ran last. phase: where an exception was raised. traceback: from the outermost call of the
    program to the exception. stack: from the innermost call outwards, at a timeout. forbidden: (action, line).
    """

    case: Case
    status: CaseStatus
    executed_lines: frozenset[int] = frozenset()
    last_line: int = 0
    actual: str | None = None
    expected: str | None = None
    phase: Literal["import", "setup", "test"] = "test"
    exception: str = ""
    exception_bases: frozenset[str] = frozenset()
    message: str = ""
    missing_name: str | None = None
    traceback: tuple[Extent, ...] = ()
    stack: tuple[int, ...] = ()
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
    """The results of all test cases, or why there are none: a syntax error, an exceeded limit or "crash"."""

    results: tuple[CaseResult, ...] = ()
    invalid_syntax: InvalidSyntax | None = None
    terminated_by: str | None = None

    @property
    def score(self) -> float:
        """-1 if no test passes, 1 if all do, linear between."""
        if not self.results:
            return -1.0
        return 2 * sum(result.passed for result in self.results) / len(self.results) - 1


def run_suites(
    programs: Sequence[tuple[str, Suite]], sandbox: Sandbox, test_timeout: float, total_timeout: float
) -> Iterator[ExecutionReport | SandboxError]:
    """Run each source against its suite, in parallel; yield reports in order, an error where the sandbox failed."""
    tokens, scripts = [], []
    for source, suite in programs:
        tokens.append(secrets.token_hex(16))
        payload = {
            "token": tokens[-1],
            "source": source,
            "setup": suite.setup,
            "imports": suite.imports,
            "cases": [asdict(case) for case in suite.cases],
            "test_timeout": test_timeout,
            "total_timeout": total_timeout,
            "readable": readable_paths(),
        }
        scripts.append(Script(_DRIVER, stdin=json.dumps(payload)))
    seconds = 2 * total_timeout + 5
    results = sandbox.run_all(scripts, ResourceLimits(wall_seconds=seconds, cpu_seconds=seconds))
    for result, token, (_, suite) in zip(results, tokens, programs, strict=True):
        yield result if isinstance(result, SandboxError) else _parse_report(result, token, suite.cases)


def _parse_report(result: ExecutionResult, token: str, cases: Sequence[Case]) -> ExecutionReport:
    """Parse the driver's report; lines without its token are printed by the program and do not count."""
    lines = [line for line in result.stdout.splitlines() if line.startswith(token)]
    if not lines:
        exceeded = result.termination if result.termination not in ("exit", "signal") else "crash"
        return ExecutionReport(terminated_by=exceeded)
    report = json.loads(lines[0].removeprefix(token))
    if syntax := report.get("invalid_syntax"):
        return ExecutionReport(invalid_syntax=InvalidSyntax(**syntax))
    results = zip(cases, report["results"], strict=True)
    return ExecutionReport(tuple(CaseResult(case=case, **fields) for case, fields in results))
