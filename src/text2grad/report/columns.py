"""The metrics of a run as columns of numbers, of as many steps as a page shows."""

from typing import Any, TypeGuard

from text2grad.report.subsample import subsample
from text2grad.trainer.monitor import EVAL_SCORE

MAX_STEPS = 2_000


def select_steps(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Subsample all steps and, separately, the evaluated ones, which are few and would be missed."""
    evaluated = [i for i, record in enumerate(metrics) if EVAL_SCORE in record]
    selected = {*subsample(range(len(metrics)), MAX_STEPS), *subsample(evaluated, MAX_STEPS)}
    return [metrics[i] for i in sorted(selected)]


def metric_columns(records: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    """Return one column per metric, including `step`, with None where a step has no number."""
    numbers = [{name: shorten(value) for name, value in record.items() if is_number(value)} for record in records]
    names = dict.fromkeys(name for record in numbers for name in record)
    return {name: [record.get(name) for record in numbers] for name in names}


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value of a metrics file is a number; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def shorten(value: float | None, digits: int = 6) -> float | None:
    """Round to some significant digits, which saves most of the bytes of a page; integers are kept."""
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
