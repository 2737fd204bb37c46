"""A linter as a critic: what ruff finds in an answer's Python code, at exactly the characters it points at.

The code is only read, never run. A linter blames and never praises, so the highest score, 0, is also that of code that
does nothing: combine it with a critic that knows what the code is for.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from text2grad.align.program import Program, extract_program
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Range, Span

SYNTAX = "invalid-syntax"
SELECT = ("E4", "E7", "E9", "F", "B", "PLE")
DEFAULT_SEVERITY = 0.3
SEVERITIES = {SYNTAX: 1.0, "E9": 1.0, "F82": 1.0, "PLE": 1.0, "F63": 0.8, "F70": 0.8, "B": 0.5, "W": 0.1, "D": 0.1}

# About the file and its folder, which are ours, not about what is written in it.
_ABOUT_THE_FILE = ("INP001", "N999", "EXE001", "EXE002")
_OK = (0, 1)
_REFUSED = 2
_CLEAN = "The linter has nothing to say about the code."
_COMPLAINT = re.compile(r"(?:Cause|error): (.*)")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Finding:
    """One diagnostic: the rule, what it says, and where; lines and columns count from 1, columns in characters."""

    rule: str
    message: str
    start: tuple[int, int]
    end: tuple[int, int]


class LintCritic:
    """Runs ruff over the code of an answer; every finding is a sentence of the critique and a poor span.

    select, ignore: ruff's rule selectors, as ("F", "B006"). Configuration files and `noqa` comments count for nothing.
    severities: severity in (0, 1] by the beginning of a rule's code, on top of SEVERITIES; the longest that fits
        counts, and DEFAULT_SEVERITY where none does. Syntax errors go by the name "invalid-syntax".
    target_version: the Python that the code is for, as "py311"; None is the one that is running.
    seconds: the most that ruff may take for one call.

    The score is minus the sum of the severities. An answer without code is failed feedback.
    """

    name = "lint"

    def __init__(
        self,
        select: Sequence[str] = SELECT,
        ignore: Sequence[str] = (),
        severities: Mapping[str, float] | None = None,
        target_version: str | None = None,
        seconds: float = 60.0,
    ) -> None:
        for family, severity in (severities or {}).items():
            if not 0 < severity <= 1:
                raise UserError(f"lint: the severity of {family} is {severity}; give a number above 0, at most 1")
        self.select = [select] if isinstance(select, str) else list(select)
        self.ignore = [ignore] if isinstance(ignore, str) else list(ignore)
        self.severities = SEVERITIES | dict(severities or {})
        self.target_version = target_version or f"py{sys.version_info.major}{sys.version_info.minor}"
        self.seconds = seconds

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """One Feedback for each example, in order; one run of ruff for all."""
        answers = [_answer(example) for example in examples]
        found = iter(self._lint([answer.source for answer in answers if answer is not None]))
        return [
            Feedback.failure(self.name, "the answer has no Python code in it")
            if answer is None
            else self._feedback(example, answer, next(found))
            for example, answer in zip(examples, answers, strict=True)
        ]

    def severity(self, rule: str) -> float:
        """The severity of a rule, by the longest beginning of its code that has one."""
        fitting = [family for family in self.severities if rule.startswith(family)]
        return self.severities[max(fitting, key=len)] if fitting else DEFAULT_SEVERITY

    def _feedback(self, example: Example, answer: Program, found: list[Finding] | None) -> Feedback:
        if found is None:
            return Feedback.failure(self.name, "ruff crashed or ran out of time on this code")
        critique = ""
        spans = []
        for finding in found:
            place = _place(finding, answer)
            if place is None and finding.rule == SYNTAX:
                return Feedback.failure(self.name, "the answer continues the prompt, and that is not Python")
            if place is None:
                continue
            start = len(critique) + bool(critique)
            line = answer.line_number(max(finding.start[0], answer.first_line))
            sentence = f"Line {line}: {finding.message.rstrip('.')} ({finding.rule})"
            critique += f"{' ' if critique else ''}{sentence}."
            spans.append(
                Span(
                    start=place[0],
                    end=place[1],
                    label="poor",
                    severity=self.severity(finding.rule),
                    phrase=(start, start + len(sentence)),
                    reason=f"{finding.rule}: {finding.message}",
                    critic=self.name,
                )
            )
        score = -round(sum(span.severity for span in spans), 6) if spans else 0.0
        return Feedback(critique=critique or _CLEAN, spans=spans, score=score, critic=self.name)

    def _lint(self, sources: Sequence[str]) -> list[list[Finding] | None]:
        """What ruff finds in each source; None for one that it cannot cope with.

        Code nested deep enough overflows ruff's stack and ends the process. Halving the batch finds the culprit, so
        that its neighbours get their feedback.
        """
        if not sources:
            return []
        found = self._run(sources)
        if found is not None:
            return [*found]
        if len(sources) == 1:
            return [None]
        half = len(sources) // 2
        return self._lint(sources[:half]) + self._lint(sources[half:])

    def _run(self, sources: Sequence[str]) -> list[list[Finding]] | None:
        """One run of ruff; None if it crashed or took too long."""
        with tempfile.TemporaryDirectory(prefix="lint-") as folder:
            for number, source in enumerate(sources):
                # a lone surrogate has no UTF-8; a question mark is as long
                Path(folder, f"answer_{number}.py").write_bytes(source.encode("utf-8", errors="replace"))
            try:
                done = subprocess.run(
                    self._command(), cwd=folder, env=_environment(), capture_output=True, timeout=self.seconds
                )
            except subprocess.TimeoutExpired:
                return None
        if done.returncode == _REFUSED:
            complaint = _COMPLAINT.search(done.stderr.decode(errors="replace"))
            why = complaint[1] if complaint else "no reason given"
            raise UserError(f"lint: ruff refuses its settings: {why}; check select, ignore and target_version")
        if done.returncode not in _OK:
            return None
        found: list[list[Finding]] = [[] for _ in sources]
        for diagnostic in json.loads(done.stdout):
            number = int(Path(diagnostic["filename"]).stem.removeprefix("answer_"))
            found[number].append(_finding(diagnostic))
        return [_telling(findings) for findings in found]

    def _command(self) -> list[str]:
        return [
            ruff_executable(),
            *("check", "--isolated", "--no-cache", "--no-fix", "--ignore-noqa", "--no-respect-gitignore"),
            *("--config", "exclude = []", "--output-format", "json", "--target-version", self.target_version),
            *("--select", ",".join(self.select), "--ignore", ",".join([*self.ignore, *_ABOUT_THE_FILE])),
            ".",
        ]


def ruff_executable() -> str:
    """The program that the package `ruff` brings along."""
    try:
        from ruff import find_ruff_bin  # type: ignore[import-untyped]

        return str(find_ruff_bin())
    except (ImportError, FileNotFoundError) as error:
        raise UserError("lint: ruff is not installed; install it with `pip install ruff`") from error


def _environment() -> dict[str, str]:
    """Variables such as RUFF_OUTPUT_FILE would change what comes back."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RUFF_")}


def _answer(example: Example) -> Program | None:
    return extract_program(example.completion, example.prompt if isinstance(example.prompt, str) else "")


def _finding(diagnostic: dict[str, Any]) -> Finding:
    start, end = diagnostic["location"], diagnostic["end_location"]
    return Finding(
        rule=diagnostic["code"] or SYNTAX,
        message=" ".join(diagnostic["message"].split()),
        start=(start["row"], start["column"]),
        end=(end["row"], end["column"]),
    )


def _telling(findings: list[Finding]) -> list[Finding]:
    """In reading order; of code that does not parse only the first error, since the others may follow from it."""
    ordered = sorted(findings, key=lambda finding: finding.start)
    mistakes = [finding for finding in ordered if finding.rule == SYNTAX]
    return mistakes[:1] or ordered


def _place(finding: Finding, answer: Program) -> Range | None:
    """The characters of the completion, None for a finding in what the prompt gave.

    What has no width, as a missing line end, is marked at the character before it.
    """
    source = answer.source
    start, end = (_offset(source, *position) for position in (finding.start, finding.end))
    if end <= start:
        end = max(len(source[:start].rstrip()), 1)
        start = end - 1
    own = len(answer.prefix)
    if end <= own:
        return None
    return max(start, own) - own + answer.start, end - own + answer.start


def _offset(source: str, line: int, column: int) -> int:
    """Where a line and column, both from 1, stand in the source; ruff does not count a byte order mark."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(source))]
    if line > len(starts):
        return len(source)
    mark = source.startswith("\ufeff") and line == 1
    return min(starts[line - 1] + column - 1 + mark, len(source))
