"""The score of a program: the share of its tests that it passes, from -1 to 1, with a floor for honest attempts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from text2grad.critics.code.cases import Suite
from text2grad.critics.code.runner import CaseResult, ExecutionReport
from text2grad.critics.code.trivial import repeats_shown_test, returns_argument, returns_one_constant

_RUNS = 0.1  # what a program that runs and is wrong earns more than none
_ENDS_PROCESS = frozenset({"SystemExit", "MemoryError", "KeyboardInterrupt"})


@dataclass(frozen=True)
class Outcome:
    """What the tests that count say.

    passed_share: how many passed. runs: whether a call of the program returned something, none ended its process or
    exceeded a limit, and its results depend on its arguments. is_trivial: they do not, so that it passes nothing.
    """

    passed_share: float
    runs: bool
    is_trivial: bool = False

    @property
    def score(self) -> float:
        """-1 for what does not run, -0.9 for a program that passes nothing, 1 for one that passes all; linear."""
        return round(self.passed_share - (1 - self.passed_share) * (1 - _RUNS * self.runs), 6)


def judge_outcome(report: ExecutionReport, source: str, suite: Suite) -> Outcome:
    """Return the outcome of a report with at least one relevant result, or without results.

    Tests that the prompt shows count where they fail; where they pass, only if it shows all.
    """
    counted = set(suite.counted_cases)
    relevant = relevant_results(report.results, suite)
    results = [result for result in relevant if result.case in counted or not result.passed]
    if not results or _is_trivial(report, source, suite):
        return Outcome(0.0, runs=False, is_trivial=bool(results))
    returned = any(result.num_calls and result.status != "died" and not result.is_answers for result in results)
    share = sum(result.passed for result in results) / len(results)
    return Outcome(share, runs=returned and not any(map(_breaks_limits, results)))


def _is_trivial(report: ExecutionReport, source: str, suite: Suite) -> bool:
    """Whether the program does the same whatever its arguments are, or gives an argument back.

    A right program can seem to, where all tests expect the same: one that passes all has to be written that way.
    """
    passes_all = all(result.passed for result in report.results)
    if not report.is_constant or not passes_all:
        return report.is_constant or (not passes_all and returns_argument(source, suite.required_names))
    return returns_one_constant(source, suite.required_names) or repeats_shown_test(source, suite)


def relevant_results(results: Sequence[CaseResult], suite: Suite) -> list[CaseResult]:
    """Return the results without passed tests that never used the program."""
    return [result for result in results if result.num_calls or not result.passed or _names_answer(result, suite)]


def _names_answer(result: CaseResult, suite: Suite) -> bool:
    return bool(suite.required_names & set(re.findall(r"\w+", result.case.source)))


def _breaks_limits(result: CaseResult) -> bool:
    return result.status in ("timeout", "died", "not_run") or bool(result.exception_bases & _ENDS_PROCESS)
