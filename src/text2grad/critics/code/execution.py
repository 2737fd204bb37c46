"""Answers and their tests go into the sandbox; what happened in each case comes back."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from text2grad.critics.code.cases import Case, Suite
from text2grad.sandbox import ExecutionResult, Program, ResourceLimits, Sandbox, SandboxError
from text2grad.sandbox.backends import readable_paths

Verdict = Literal["passed", "failed", "raised", "timeout", "vanished", "not run"]
Place = tuple[int, int, int, int]  # line, UTF-8 column, end line, end column
ParserPlace = tuple[int | None, int | None, int | None, int | None]  # the same, in characters from 1, where known

_DRIVER = Path(__file__).with_name("driver.py").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Result:
    """What one case showed. Lines are those of the answer's source, from 1; `places` lead to the exception."""

    case: Case
    verdict: Verdict
    lines: frozenset[int] = frozenset()
    last: int = 0
    got: str | None = None
    expected: str | None = None
    phase: Literal["import", "setup", "test"] = "test"
    kind: str = ""
    family: tuple[str, ...] = ()
    message: str = ""
    name: str | None = None
    places: tuple[Place, ...] = ()
    stack: tuple[int, ...] = ()
    status: int | None = None
    forbidden: tuple[str, int] | None = None

    @property
    def passed(self) -> bool:
        return self.verdict == "passed"


@dataclass(frozen=True)
class Mistake:
    """Why a program is none: the parser's message, and where, in characters from 1 as the parser counts them."""

    kind: str
    message: str
    place: ParserPlace | None


@dataclass(frozen=True)
class Trial:
    """A program's results, case by case, or the mistake that kept it from starting, or the limit that it hit."""

    results: tuple[Result, ...] = ()
    mistake: Mistake | None = None
    ended: str | None = None


def program(source: str, suite: Suite, seconds: float, budget: float) -> tuple[Program, str]:
    """The driver with its payload, and the token that its report begins with."""
    token = secrets.token_hex(16)
    payload = {
        "token": token,
        "source": source,
        "setup": suite.setup,
        "imports": suite.imports,
        "cases": [asdict(case) for case in suite.cases],
        "seconds": seconds,
        "budget": budget,
        "readable": readable_paths(),
    }
    return Program(_DRIVER, stdin=json.dumps(payload)), token


def try_all(
    answers: Iterable[tuple[str, Suite]], sandbox: Sandbox, seconds: float, budget: float, limits: ResourceLimits
) -> Iterator[Trial | SandboxError]:
    """Run each source against its suite, side by side, results in order; an error where the sandbox itself broke."""
    prepared = [(*program(source, suite, seconds, budget), suite) for source, suite in answers]
    outcomes = sandbox.run_all((job for job, _, _ in prepared), limits)
    for outcome, (_, token, suite) in zip(outcomes, prepared, strict=True):
        yield outcome if isinstance(outcome, SandboxError) else read(outcome, token, suite.cases)


def read(outcome: ExecutionResult, token: str, cases: Sequence[Case]) -> Trial:
    """What the driver reported; lines without its token are the answer's own and count for nothing."""
    reports = [line for line in outcome.stdout.splitlines() if line.startswith(token)]
    if not reports:
        return Trial(ended=outcome.termination if outcome.termination not in ("exit", "signal") else "crash")
    report = json.loads(reports[0].removeprefix(token))
    if "syntax" in report:
        found = report["syntax"]
        place = found.get("place")
        return Trial(mistake=Mistake(found["kind"], found["message"], tuple(place) if place else None))
    return Trial(tuple(_result(case, said) for case, said in zip(cases, report["results"], strict=True)))


def _result(case: Case, said: dict[str, Any]) -> Result:
    forbidden = said.get("forbidden")
    return Result(
        case=case,
        verdict=said["verdict"],
        lines=frozenset(said.get("lines", ())),
        last=said.get("last", 0),
        got=said.get("got"),
        expected=said.get("expected"),
        phase=said.get("phase", "test"),
        kind=said.get("kind", ""),
        family=tuple(said.get("family", ())),
        message=said.get("message", ""),
        name=said.get("name"),
        places=tuple(_place(place) for place in said.get("places", ())),
        stack=tuple(said.get("stack", ())),
        status=said.get("status"),
        forbidden=(forbidden[0][0], forbidden[0][1]) if forbidden else None,
    )


def _place(place: Sequence[int | None]) -> Place:
    """A place without columns is a whole line: column 0 to 0 of the next."""
    line, column, end_line, end_column = place
    if line is None or column is None or end_line is None or end_column is None:
        return (line or 0, 0, (line or 0) + 1, 0)
    return (line, column, end_line, end_column)
