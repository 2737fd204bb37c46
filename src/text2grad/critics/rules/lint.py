"""A linter as a critic: ruff's diagnostics on the Python code of a completion, at the characters they point to.

The code is parsed, never run. A linter blames and never praises, so code that does nothing has the highest score, 0:
combine this critic with one that checks what the code is for.
"""

from __future__ import annotations

import io
import itertools
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

from text2grad.align.answer.program import Program, extract_program
from text2grad.critics.writer import CritiqueWriter
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Range

SYNTAX = "invalid-syntax"
SELECT = ("E4", "E7", "E9", "F", "B", "PLE")
DEFAULT_SEVERITY = 0.3
SEVERITIES = {SYNTAX: 1.0, "E9": 1.0, "F82": 1.0, "PLE": 1.0, "F63": 0.8, "F70": 0.8, "B": 0.5, "W": 0.1, "D": 0.1}

# Rules about the file and its folder, which are ours, not about its content.
_FILE_RULES = ("INP001", "N999", "EXE001", "EXE002")
_MAX_FIX = 200  # characters
_EXIT_OK = (0, 1)
_EXIT_BAD_SETTINGS = 2
_CLEAN = "The linter has nothing to say about the code."
_ERROR_MESSAGE = re.compile(r"(?:Cause|error): (.*)")


Position = tuple[int, int]


@dataclass(frozen=True)
class Diagnostic:
    """A diagnostic of ruff; lines and columns count from 1, columns in characters.

    fix: the edits, as (start, end, content), that ruff would make without being told that they may change the program.
    """

    rule: str
    message: str
    start: Position
    end: Position
    fix: tuple[tuple[Position, Position, str], ...] = ()


class LintCritic:
    """Runs ruff on the code of a completion; every diagnostic is a sentence of the critique and a poor span.

    select, ignore: ruff's rule selectors, as ("F", "B006"). Configuration files and `noqa` comments are ignored.
    severities: severity in (0, 1] by prefix of a rule's code, added to SEVERITIES; the longest matching prefix counts,
        and DEFAULT_SEVERITY where none matches. Syntax errors have the code "invalid-syntax".
    target_version: the Python version of the code, as "py311"; default: the running one.
    timeout: seconds for one call of ruff.

    Where ruff has a safe fix, it is the replacement of the span, which covers all that the fix changes.
    The score is minus the sum of the severities, at least -1. A completion without code gets failed feedback.
    """

    name = "lint"

    def __init__(
        self,
        select: Sequence[str] = SELECT,
        ignore: Sequence[str] = (),
        severities: Mapping[str, float] | None = None,
        target_version: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        for prefix, severity in (severities or {}).items():
            if not 0 < severity <= 1:
                raise UserError(f"lint: the severity of {prefix} is {severity}; give a number above 0, at most 1")
        ruff_executable()
        self.select = [select] if isinstance(select, str) else list(select)
        self.ignore = [ignore] if isinstance(ignore, str) else list(ignore)
        self.severities = SEVERITIES | dict(severities or {})
        self.target_version = target_version or f"py{sys.version_info.major}{sys.version_info.minor}"
        self.timeout = timeout

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order, from one run of ruff."""
        programs = [
            extract_program(example.completion, example.prompt if isinstance(example.prompt, str) else "")
            for example in examples
        ]
        diagnostics = iter(self._lint([program.source for program in programs if program is not None]))
        return [
            Feedback.failure(self.name, "the answer has no Python code in it")
            if program is None
            else self._feedback(program, next(diagnostics))
            for program in programs
        ]

    def severity(self, rule: str) -> float:
        """Return the severity of a rule by the longest matching prefix of its code."""
        prefixes = [prefix for prefix in self.severities if rule.startswith(prefix)]
        return self.severities[max(prefixes, key=len)] if prefixes else DEFAULT_SEVERITY

    def _feedback(self, program: Program, diagnostics: list[Diagnostic] | None) -> Feedback:
        if diagnostics is None:
            return Feedback.failure(self.name, "ruff crashed or ran out of time on this code")
        writer = CritiqueWriter(self.name)
        for diagnostic in diagnostics:
            place = _locate(diagnostic, program)
            if place is None and diagnostic.rule == SYNTAX:
                return Feedback.failure(self.name, "the answer continues the prompt, and that is not Python")
            if place is None:
                continue
            line = program.line_number(max(diagnostic.start[0], program.first_line))
            phrase = writer.write(f"Line {line}: {diagnostic.message.rstrip('.')} ({diagnostic.rule})")
            writer.write(". ")
            place, replacement = _apply_fix(diagnostic, program, place)
            fields: dict[str, Any] = {"reason": f"{diagnostic.rule}: {diagnostic.message}", "replacement": replacement}
            writer.mark(place, phrase, severity=self.severity(diagnostic.rule), **fields)
        score = max(-1.0, -round(sum(span.severity for span in writer.spans), 6)) if writer.spans else 0.0
        return writer.feedback(score, default=_CLEAN)

    def _lint(self, sources: Sequence[str]) -> list[list[Diagnostic] | None]:
        """Return the diagnostics of each source; None for one that ruff crashes on or does not finish.

        Deeply nested code overflows ruff's stack. Halving the batch isolates it.
        """
        if not sources:
            return []
        diagnostics = self._run(sources)
        if diagnostics is not None:
            return [*diagnostics]
        if len(sources) == 1:
            return [None]
        half = len(sources) // 2
        return self._lint(sources[:half]) + self._lint(sources[half:])

    def _run(self, sources: Sequence[str]) -> list[list[Diagnostic]] | None:
        """Run ruff once; return None if it crashed or timed out."""
        with tempfile.TemporaryDirectory(prefix="lint-") as folder:
            for number, source in enumerate(sources):
                # an unpaired surrogate has no UTF-8; a question mark is as long
                Path(folder, f"answer_{number}.py").write_bytes(source.encode("utf-8", errors="replace"))
            # variables such as RUFF_OUTPUT_FILE would change the output
            env = {name: value for name, value in os.environ.items() if not name.startswith("RUFF_")}
            try:
                done = subprocess.run(self._command(), cwd=folder, env=env, capture_output=True, timeout=self.timeout)
            except subprocess.TimeoutExpired:
                return None
        if done.returncode == _EXIT_BAD_SETTINGS:
            message = _ERROR_MESSAGE.search(done.stderr.decode(errors="replace"))
            reason = message[1] if message else "no reason given"
            raise UserError(f"lint: ruff rejects its settings: {reason}; check select, ignore and target_version")
        if done.returncode not in _EXIT_OK:
            return None
        diagnostics: list[list[Diagnostic]] = [[] for _ in sources]
        for record in json.loads(done.stdout):
            number = int(Path(record["filename"]).stem.removeprefix("answer_"))
            diagnostics[number].append(_parse_diagnostic(record))
        return [_relevant(found) for found in diagnostics]

    def _command(self) -> list[str]:
        return [
            ruff_executable(),
            *("check", "--isolated", "--no-cache", "--no-fix", "--ignore-noqa", "--no-respect-gitignore"),
            *("--config", "exclude = []", "--output-format", "json", "--target-version", self.target_version),
            *("--select", ",".join(self.select), "--ignore", ",".join([*self.ignore, *_FILE_RULES])),
            ".",
        ]


def ruff_executable() -> str:
    """Return the path of the program in the package `ruff`."""
    try:
        from ruff import find_ruff_bin  # type: ignore[import-untyped]

        return str(find_ruff_bin())
    except (ImportError, FileNotFoundError) as error:
        raise UserError('the lint critic needs ruff: pip install "text2grad[code]"') from error


def _parse_diagnostic(record: dict[str, Any]) -> Diagnostic:
    start, end = record["location"], record["end_location"]
    return Diagnostic(
        rule=record["code"] or SYNTAX,
        message=" ".join(record["message"].split()),
        start=(start["row"], start["column"]),
        end=(end["row"], end["column"]),
        fix=_parse_fix(record.get("fix") or {}),
    )


def _parse_fix(fix: dict[str, Any]) -> tuple[tuple[Position, Position, str], ...]:
    if fix.get("applicability") != "safe":
        return ()
    return tuple(
        (
            (edit["location"]["row"], edit["location"]["column"]),
            (edit["end_location"]["row"], edit["end_location"]["column"]),
            edit["content"],
        )
        for edit in fix["edits"]
    )


def _relevant(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Return diagnostics in reading order; only the first syntax error, since the others may follow from it."""
    ordered = sorted(diagnostics, key=lambda diagnostic: diagnostic.start)
    syntax_errors = [diagnostic for diagnostic in ordered if diagnostic.rule == SYNTAX]
    return syntax_errors[:1] or ordered


def _locate(diagnostic: Diagnostic, program: Program) -> Range | None:
    """Return the characters of the completion, or None for a diagnostic in the prompt's part.

    An empty range, as for a missing line end, becomes the character before it.
    """
    source = program.source
    start, end = (_offset(source, *position) for position in (diagnostic.start, diagnostic.end))
    if end <= start:
        end = max(len(source[:start].rstrip()), 1)
        start = end - 1
    own = len(program.prefix)
    if end <= own:
        return None
    return max(start, own) - own + program.start, end - own + program.start


def _apply_fix(diagnostic: Diagnostic, program: Program, place: Range) -> tuple[Range, str | None]:
    """Return the place, widened to what ruff's fix changes, and what it becomes; no fix if that is too much."""
    shift = program.start - len(program.prefix)
    edits = [
        (_offset(program.source, *start) + shift, _offset(program.source, *end) + shift, content)
        for start, end, content in sorted(diagnostic.fix)
    ]
    if not edits:
        return place, None
    start, end = min(place[0], edits[0][0]), max(place[1], max(end for _, end, _ in edits))
    if start < program.start or end - start > _MAX_FIX:
        return place, None
    fixed, done = "", start
    for first, last, content in edits:
        fixed += program.code[done - program.start : first - program.start] + content
        done = last
    return (start, end), fixed + program.code[done - program.start : end - program.start]


def _offset(source: str, line: int, column: int) -> int:
    """Convert a line and a column, both from 1, to an offset; ruff does not count a byte order mark."""
    start = sum(map(len, itertools.islice(io.StringIO(source, newline=""), line - 1)))
    mark = source.startswith("\ufeff") and line == 1
    return min(start + column - 1 + mark, len(source))
