"""Spectrum-based fault localisation: lines that failing tests run and passing ones do not are suspicious."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from text2grad.align.answer.program import Statement


def ochiai(failing: Sequence[Collection[int]], passing: Sequence[Collection[int]], line: int) -> float:
    """Return ef / sqrt(F * (ef + ep)), in [0, 1]: of F failing tests, ef run the line; of the passing ones, ep do."""
    num_failing = sum(line in lines for lines in failing)
    num_running = num_failing + sum(line in lines for lines in passing)
    return num_failing / math.sqrt(len(failing) * num_running) if num_failing else 0.0


def suspicions(
    failing: Sequence[Collection[int]], passing: Sequence[Collection[int]], statements: Mapping[int, Statement]
) -> dict[int, float]:
    """Return the suspicion of each statement that a failing test ran, in (0, 1], most suspicious first.

    Ochiai's measure decides. Short programs have few tests, and often many lines have the same spectrum: of those, the
    statement with the larger product of size and 1 + relative position comes first. A long expression can be wrong in
    more ways than `return total`, and what comes later is closer to the result. That rule was chosen on mutants of
    MBPP programs (`benchmarks/code_blame.py` measures it on others).
    """
    weights = {
        line: statement.size * (1 + index / max(1, len(statements) - 1))
        for index, (line, statement) in enumerate(statements.items())
    }
    heaviest = max(weights.values(), default=1.0)
    found = {line: (ochiai(failing, passing, line), weight / heaviest) for line, weight in weights.items()}
    ranked = sorted(found.items(), key=lambda item: (item[1], item[0]), reverse=True)
    return {line: value * (0.9 + 0.1 * weight) for line, (value, weight) in ranked if value > 0}
