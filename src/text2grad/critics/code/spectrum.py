"""Which lines to suspect when a test fails without an exception: what failing tests run and passing ones do not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from text2grad.align.program import Statement


def ochiai(failing: Sequence[Collection[int]], passing: Sequence[Collection[int]], line: int) -> float:
    """ef / sqrt(F * (ef + ep)): of F failing tests, ef run the line; of the passing ones, ep do. In [0, 1]."""
    run_and_failed = sum(line in lines for lines in failing)
    run = run_and_failed + sum(line in lines for lines in passing)
    return run_and_failed / math.sqrt(len(failing) * run) if run_and_failed else 0.0


def suspicions(
    failing: Sequence[Collection[int]], passing: Sequence[Collection[int]], statements: Mapping[int, Statement]
) -> dict[int, float]:
    """How suspicious each statement is, in [0, 1], most suspicious first; those that no failing test ran are left out.

    Short programs have few tests, and often every line has the same spectrum. A long expression has more in it that can
    be wrong than `return total` has, so Ochiai is weighted with the square root of the statement's size, relative to
    the largest. Of equals, the later one is closer to the result.
    """
    largest = max((statement.size for statement in statements.values()), default=1)
    found = {
        line: ochiai(failing, passing, line) * math.sqrt(statement.size / largest)
        for line, statement in statements.items()
    }
    ranked = sorted(found.items(), key=lambda item: (-item[1], -item[0]))
    return {line: suspicion for line, suspicion in ranked if suspicion > 0}
