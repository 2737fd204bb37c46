"""Rows of the table of held-out metrics, each with the geometry of its confidence interval."""

from typing import Any

from text2grad.evaluation.significance import FEW
from text2grad.report.read import MetricChange

TITLES = {
    "score": "Critic’s score",
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
    "bleu": "BLEU",
    "token_f1": "Token F1",
    "passed": "Tests passed",
    "sentence_bleu": "Sentence BLEU",
}


def metric_rows(metrics: dict[str, MetricChange], rise: str = "rose", fall: str = "fell") -> list[dict[str, Any]]:
    """Return the fields of each row, in the order of the evaluation file. rise, fall: words for a significant one."""
    words = {"rose": rise, "fell": fall}
    rows = [_row(TITLES.get(name, name.replace("_", " ").capitalize()), metric) for name, metric in metrics.items()]
    return [row | {"change": words.get(row["change"], row["change"])} for row in rows]


def _row(title: str, metric: MetricChange) -> dict[str, Any]:
    digits = _num_decimals(metric)
    known = metric.low is not None and metric.high is not None
    change = describe_change(metric)
    return {
        "title": title,
        "before": _format(metric.before, digits),
        "after": _format(metric.after, digits),
        "difference": _format(metric.difference, digits, sign="+"),
        "bounds": f"{_format(metric.low, digits, '+')} to {_format(metric.high, digits, '+')}" if known else "–",
        "change": change,
        "significant": change in ("rose", "fell"),
        "interval": interval_position(metric),
    }


def describe_change(metric: MetricChange) -> str:
    """Return the direction of a significant change in words; whether a rise is good depends on the metric."""
    if metric.low is None or metric.high is None:
        return "not measured"
    if metric.n is not None and metric.n < FEW:
        return "too few prompts"
    if metric.low > 0:
        return "rose"
    return "fell" if metric.high < 0 else "no significant change"


def interval_position(metric: MetricChange) -> dict[str, float] | None:
    """Return positions on an axis from 0 to 100 with zero in the middle; None where a bound is missing.

    The interval is scaled so that its farthest bound is 45 from the centre.
    """
    if metric.low is None or metric.high is None or metric.difference is None:
        return None
    bounds = {"low": metric.low, "difference": metric.difference, "high": metric.high}
    reach = max(map(abs, bounds.values())) or 1.0
    return {name: round(50 + 45 * value / reach, 2) for name, value in bounds.items()}


def _num_decimals(metric: MetricChange) -> int:
    """Decimals that give the larger of the two values about three significant digits."""
    largest = max(abs(value) for value in (metric.before, metric.after, 0.0) if value is not None)
    return next(digits for digits, below in ((3, 2), (2, 20), (1, 200), (0, float("inf"))) if largest < below)


def _format(value: float | None, digits: int, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.{digits}f}".replace("-", "−")
