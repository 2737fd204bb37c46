"""Spectrum-based fault localisation: lines that failing tests run and passing ones do not are suspicious."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from text2grad.align.program import Statement


def ochiai(failing: Sequence[Collection[int]], passing: Sequence[Collection[int]], line: int) -> float:
    """Return ef / sqrt(F * (ef + ep)), in [0, 1]: of F failing tests, ef run the line; of the passing ones, ep do."""
    num_failing = sum(line in lines for lines in failing)
    num_running = num_failing + sum(line in lines for lines in passing)
    return num_failing / math.sqrt(len(failing) * num_running) if num_failing else 0.0


def suspicions(
    failing: Sequence[Collection[int]], passing: Sequence[Collection[int]], statements: Mapping[int, Statement]
) -> dict[int, float]:
    """Return the suspicion of each statement that a failing test ran, in (0, 1], most suspicious first.

    Short programs have few tests, and often every line has the same spectrum. A long expression can be wrong in more
    ways than `return total`, so Ochiai is weighted with the square root of the statement's size relative to the
    largest. Of equals, the later one comes first: it is closer to the result.
    """
    largest = max((statement.size for statement in statements.values()), default=1)
    found = {
        line: ochiai(failing, passing, line) * math.sqrt(statement.size / largest)
        for line, statement in statements.items()
    }
    ranked = sorted(found.items(), key=lambda item: (-item[1], -item[0]))
    return {line: suspicion for line, suspicion in ranked if suspicion > 0}
