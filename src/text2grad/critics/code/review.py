"""The critique of a program after its tests: what failed, how, and where the fault is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from text2grad.align.answer.program import (
    Extent,
    Program,
    Statement,
    find_calls,
    find_statements,
    innermost_loop,
    top_level_names,
)
from text2grad.critics.code.cases import Suite
from text2grad.critics.code.runner import CaseResult, ExecutionReport, InvalidSyntax, ParserExtent
from text2grad.critics.code.scoring import Outcome, relevant_results
from text2grad.critics.code.spectrum import suspicions
from text2grad.critics.writer import CritiqueWriter
from text2grad.schema import Feedback, Label, Omission, Range
from text2grad.text.words import consecutive_runs

_MAX_CASES = 3
_MAX_CODE = 100
_LOCALISATION_CONFIDENCE = 0.6  # how often a line that is suspected by its spectrum alone is one to change
_MIN_BLAME = 0.1  # in total, for what is forbidden in a program that passes its tests
_PROCESS_CALLS = frozenset({"kill", "killpg", "fork", "forkpty", "abort", "system", "Popen", "Process"})
_LIMITS = {
    "memory": "The answer uses more memory than it may have",
    "cpu": "The answer uses more processor time than it may have",
    "time": "The answer does not finish in the time that it may have",
    "output": "The answer prints more than it may",
    "crash": "The answer brings down the program that tests it",
    "forgery": "The answer's process sends something that is no result",
}


class Review(CritiqueWriter):
    """Writes about a program; at most `max_blamed_share` of its statements are blamed, but at least one.

    The severities of what is praised sum to the share of tests that passed, those of what is blamed or missing to the
    share that failed.
    """

    def __init__(self, critic: str, program: Program, suite: Suite, max_blamed_share: float, outcome: Outcome) -> None:
        super().__init__(critic)
        self.program, self.suite, self.outcome = program, suite, outcome
        self.statements = find_statements(program)
        self.max_blamed = max(1, int(max_blamed_share * len(self.statements)))
        self.failing: list[CaseResult] = []
        self.passing: list[CaseResult] = []

    def write_report(self, report: ExecutionReport) -> Feedback:
        """Return the feedback on a program with this report."""
        if report.invalid_syntax:
            self._write_invalid_syntax(report.invalid_syntax)
        elif report.terminated_by:
            self._write_termination(report.terminated_by)
        else:
            self._write_results(relevant_results(report.results, self.suite))
        self._share_out()
        return self.feedback(self.outcome.score)

    def _share_out(self) -> None:
        """Scale severities to the share of tests that passed, and to that of those that failed."""
        good = [span for span in self.spans if span.label == "good"]
        poor: list[Any] = [*(span for span in self.spans if span.label == "poor"), *self.omissions]
        failed = sum(not result.passed for result in self.failing) / max(1, len(self.failing) + len(self.passing))
        blame = max(1 - self.outcome.passed_share, failed) or _MIN_BLAME
        for parts, total in ((good, self.outcome.passed_share), (poor, blame)):
            scale = total / max(sum(part.severity for part in parts), 1e-9)
            for part in parts:
                part.severity = min(1.0, max(1e-3, round(part.severity * scale, 4)))

    def _write_invalid_syntax(self, error: InvalidSyntax) -> None:
        with self._sentence(f"The answer is not valid Python: {error.message.rstrip('.')}"):
            if error.extent and error.extent[0]:
                line = error.extent[0]
                span = _parser_span(self.program, error.extent) or _last_line_before(self.program, line)
                self.write(" in ")
                self._point_to_line(line, span)

    def _write_termination(self, limit: str) -> None:
        """Name the calls that can end a whole test run: which of them did is unknown."""
        with self._sentence(_LIMITS[limit]):
            for number, extent in enumerate(find_calls(self.program, _PROCESS_CALLS)):
                self.write("; look at " if number == 0 else " and ")
                self._point_to_line(extent[0], self.program.span(*extent))

    def _write_results(self, results: Sequence[CaseResult]) -> None:
        self.failing = [result for result in results if not result.passed]
        self.passing = [result for result in results if result.passed]
        self._write_summary()
        for action, line in dict.fromkeys(result.forbidden for result in results if result.forbidden):
            with self._sentence(f"The answer {action}, which is forbidden here, in "):
                self._blame(line)
        groups = self._group_failures()
        for group in groups[:_MAX_CASES]:
            with self._sentence():
                self._write_failure(group[0])
                if len(group) > 1:
                    self.write(f"; {len(group) - 1} more fail{'s' if len(group) == 2 else ''} alike")
        if count := sum(map(len, groups[_MAX_CASES:])):
            self.write(f"{count} more test{'s fail' if count > 1 else ' fails'}. ")
        if self.outcome.is_trivial:
            self.write("The answer does the same whatever its arguments are, so no test counts as passed. ")
        self._write_suspects(self.failing or (self.passing if self.outcome.is_trivial else []))
        self._write_praise()

    @contextmanager
    def _sentence(self, opening: str = "") -> Iterator[None]:
        """Close a sentence; it becomes the reason of the spans that its words point to."""
        start, _ = self.write(opening)
        yield
        self.write(". ")
        for span in self.spans:
            if span.phrase is not None and span.phrase[0] >= start:
                span.reason = self.text[start:].strip()

    def _point(self, words: str, span: Range | None, label: Label, **fields: float) -> None:
        """Write words that point to a span of the completion, unless earlier ones do already.

        fields: `severity` and `confidence` of the span.
        """
        phrase = self.write(words)
        if span is not None and all((known.start, known.end) != span for known in self.spans):
            self.mark(span, phrase, label, match="code", **fields)

    def _point_to_line(self, line: int, shown: Range | None, blamed: bool = True, **fields: float) -> None:
        """Point to a line of the source by its number in the completion's code and the code itself."""
        words = f"line {self.program.line_number(line)}"
        if shown:
            start, end = (offset - self.program.start for offset in shown)
            words += f", {_format_code(self.program.code[start:end])}"
        self._point(words, shown if blamed else None, "poor", **fields)

    def _write_summary(self) -> None:
        passed, total = len(self.passing), len(self.passing) + len(self.failing)
        if not self.failing:
            words = "The test passes" if total == 1 else f"All {total} tests pass"
        elif not passed:
            words = "The test fails" if total == 1 else f"None of the {total} tests passes"
        else:
            words = f"{passed} of {total} tests pass{'es' if passed == 1 else ''}"
        self.write(f"{words}. ")

    def _group_failures(self) -> list[list[CaseResult]]:
        """Group cases with the same exception at the same place; a wrong value is a group of its own."""

        def key(result: CaseResult) -> tuple[object, ...]:
            if result.status == "failed":
                return ("failed", result.case.source)
            return (result.status, result.exception, result.traceback[-1:])

        groups: dict[tuple[object, ...], list[CaseResult]] = {}
        for result in self.failing:
            groups.setdefault(key(result), []).append(result)
        return list(groups.values())

    def _write_failure(self, result: CaseResult) -> None:
        call = _format_code(result.case.left or result.case.source)
        if result.status == "failed":
            self._write_wrong_value(result, call)
        elif result.status == "timeout":
            self._write_timeout(result, call)
        elif result.status == "died":
            self._write_death(result, call)
        elif result.status == "not_run":
            self.write(f"{call} was not tried, because the time was used up")
        else:
            self._write_exception(result, "Loading the answer" if result.phase == "import" else call)

    def _write_wrong_value(self, result: CaseResult, call: str) -> None:
        if result.actual is None:
            message = f" ({result.message})" if result.message else ""
            self.write(f"The test {_format_code(result.case.source)} fails{message}")
            return
        operator, expected = result.case.operator, _format_code(result.expected or "")
        if operator in ("truthy", "falsy"):
            expected = "true" if operator == "truthy" else "false"
        elif operator != "==":
            expected = f"{operator} {expected}"
        self.write(f"{call} should be {expected} but is {_format_code(result.actual)}")

    def _write_timeout(self, result: CaseResult, call: str) -> None:
        line = result.last_line
        loop = innermost_loop(self.program, line) if line else None
        if loop and loop.line >= self.program.first_line:
            self.write(f"{call} does not end: it keeps running in the loop of ")
            self._blame(loop.line, loop.extent())
        else:
            self.write(f"{call} does not finish in time")
            if line:
                self.write("; it is still busy in ")
                self._blame(line)

    def _write_death(self, result: CaseResult, call: str) -> None:
        crashed = result.exit_code is not None and result.exit_code < 0
        what = f"crashes the interpreter (signal {-(result.exit_code or 0)})" if crashed else "ends the whole process"
        self.write(f"{call} {what}")
        if result.last_line:
            self.write(" in ")
            self._blame(result.last_line)

    def _write_exception(self, result: CaseResult, call: str) -> None:
        bases = result.exception_bases
        if "NameError" in bases and not result.traceback and result.missing_name in self.suite.required_names:
            self._write_not_defined(result.missing_name or "")
            return
        if "TypeError" in bases and not result.traceback:
            self._write_not_callable(result, call)
            return
        if "ModuleNotFoundError" in bases and result.missing_name:
            self.write(f"The answer imports {_format_code(result.missing_name)}, which is not installed, in ")
        elif "SystemExit" in bases:
            code = f" with exit code {result.message}" if result.message not in ("", "None") else ""
            self.write(f"{call} ends the program{code} instead of giving a result, in ")
        elif "RecursionError" in bases:
            self.write(f"{call} calls itself without end (RecursionError) in ")
        elif "MemoryError" in bases:
            self.write(f"{call} needs more memory than it may have (MemoryError) in ")
        else:
            message = f" ({result.message.rstrip('.')})" if result.message else ""
            self.write(f"{call} raises {result.exception}{message}")
            if not result.traceback:
                return
            self.write(" in ")
        self._blame_exception(result)

    def _write_not_defined(self, name: str) -> None:
        phrase = self.write(f"The tests use {_format_code(name)}, which the answer does not define")
        self.omissions.append(Omission(text=f"a definition of {name}", phrase=phrase))
        definitions = [one for one in self.statements.values() if getattr(one.node, "name", None) is not None]
        outer = [statement for statement in definitions if statement.node.col_offset == 0]
        if len(outer) == 1 and top_level_names(self.program.source):
            self.write("; it has only ")
            self._blame(outer[0].line)
            if self.suite.required_names - top_level_names(self.program.source) == {name}:
                self._rename(outer[0], name)

    def _rename(self, definition: Statement, name: str) -> None:
        """Say what the blamed definition should be: the same with the name that the tests ask for."""
        blamed = self.program.line_span(definition.line)
        for span in self.spans:
            if (span.start, span.end) == blamed:
                start, end = (offset - self.program.start for offset in blamed)
                own = re.escape(getattr(definition.node, "name", ""))
                span.replacement = re.sub(rf"\b{own}\b", name, self.program.code[start:end], count=1)

    def _write_not_callable(self, result: CaseResult, call: str) -> None:
        self.write(f"{call} cannot be evaluated ({result.message.rstrip('.')})")
        for statement in self.statements.values():
            if f"{getattr(statement.node, 'name', None)}()" in result.message:
                self.write("; it is defined in ")
                self._blame(statement.line)
                return

    def _blame_exception(self, result: CaseResult) -> None:
        """Blame the expression that raised; nothing where that is not the completion's own code."""
        own = [extent for extent in result.traceback if extent[0] >= self.program.first_line]
        if own:
            is_recursion = "RecursionError" in result.exception_bases
            extent = Counter(own).most_common(1)[0][0] if is_recursion else own[-1]
            self._blame(extent[0], extent)
        else:
            self.write("code that is not the answer's own")

    def _blame(self, line: int, extent: Extent | None = None) -> None:
        span = self.program.span(*extent) if extent else None
        if line >= self.program.first_line:
            span = span or self.program.line_span(line)
        self._point_to_line(line, span, blamed=self._num_blamed() < self.max_blamed)

    def _num_blamed(self) -> int:
        return sum(span.label == "poor" for span in self.spans)

    def _write_suspects(self, results: Sequence[CaseResult]) -> None:
        """For wrong values: blame the most suspicious lines, up to the maximum."""
        wrong = [result.executed_lines for result in results if result.status in ("failed", "passed")]
        free = max(0, self.max_blamed - self._num_blamed())
        ranked = suspicions(wrong, [result.executed_lines for result in self.passing], self.statements)
        selected = list(ranked.items())[:free]
        if not selected:
            return
        with self._sentence():
            for number, (line, suspicion) in enumerate(selected):
                self.write("The fault is most likely in " if number == 0 else ", or in ")
                span = self.program.span(*self.statements[line].extent())
                severity = round(suspicion, 3)
                self._point_to_line(line, span, severity=severity, confidence=_LOCALISATION_CONFIDENCE)

    def _write_praise(self) -> None:
        """Praise the lines that every passing test ran, or else those that any did, and no failing one."""
        if not self.passing or not self.outcome.passed_share:
            return
        runs = [result.executed_lines for result in self.passing]
        shared = frozenset.intersection(*runs) or frozenset().union(*runs)
        doubtful = frozenset().union(*(result.executed_lines for result in self.failing))
        statements = list(self.statements.values())
        for run in consecutive_runs(i for i, one in enumerate(statements) if one.line in shared - doubtful):
            first, last = statements[run[0]], statements[run[-1]]
            numbers = [self.program.line_number(statement.line) for statement in (first, last)]
            words = f"Line {numbers[0]}" if first == last else f"Lines {numbers[0]} to {numbers[1]}"
            with self._sentence():
                span = self.program.span(*first.extent()[:2], *last.extent()[2:])
                self._point(words, span, "good")
                self.write(" ran in tests that pass")


def _parser_span(program: Program, extent: ParserExtent) -> Range | None:
    """Return what the parser points to, if that is more than one character, else the whole line."""
    line, column, end_line, end_column = extent
    whole = program.line_span(line or 1)
    if line is None or not column or end_line != line or not end_column or end_column - column < 2 or whole is None:
        return whole
    text = program.source.splitlines()[line - 1]
    bounds = (len(text[: column - 1].encode()), len(text[: end_column - 1].encode()))
    return program.span(line, bounds[0], line, bounds[1]) or whole


def _last_line_before(program: Program, line: int) -> Range | None:
    """Return the last line with code: a syntax error at the end of the file is reported after it."""
    spans = (program.line_span(earlier) for earlier in range(line, 0, -1))
    return next((span for span in spans if span), None)


def _format_code(code: str) -> str:
    """Return code for a sentence: in backticks, on one line, shortened."""
    line = " ".join(code.split())
    return f"`{line if len(line) <= _MAX_CODE else line[: _MAX_CODE - 1] + '…'}`"
