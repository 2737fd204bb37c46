"""Held-out figures as rows of a table, each with the geometry of its interval."""

from dataclasses import dataclass

from text2grad.report.read import Figure

TITLES = {"score": "Critic’s score", "rouge_1": "ROUGE-1", "rouge_2": "ROUGE-2", "rouge_l": "ROUGE-L", "bleu": "BLEU"}


@dataclass(frozen=True)
class Interval:
    """Where low, difference and high lie on an axis from 0 to 100 that has zero at 50."""

    low: float
    difference: float
    high: float


@dataclass(frozen=True)
class Row:
    """One figure, ready to print."""

    title: str
    before: str
    after: str
    difference: str
    bounds: str
    verdict: str
    sure: bool
    interval: Interval | None


def figure_rows(figures: dict[str, Figure]) -> list[Row]:
    """One row a figure, in the order of the file."""
    return [_row(name, figure) for name, figure in figures.items()]


def _row(name: str, figure: Figure) -> Row:
    digits = _digits(figure)
    known = figure.low is not None and figure.high is not None
    return Row(
        title=TITLES.get(name, name.replace("_", " ").capitalize()),
        before=_print(figure.before, digits),
        after=_print(figure.after, digits),
        difference=_print(figure.difference, digits, sign="+"),
        bounds=f"{_print(figure.low, digits, '+')} to {_print(figure.high, digits, '+')}" if known else "–",
        verdict=verdict(figure),
        sure=verdict(figure) in ("rose", "fell"),
        interval=interval(figure),
    )


def verdict(figure: Figure) -> str:
    """What the interval says; whether a rise is good depends on the figure, so it does not judge."""
    if figure.low is None or figure.high is None:
        return "not measured"
    if figure.low > 0:
        return "rose"
    return "fell" if figure.high < 0 else "no clear change"


def interval(figure: Figure) -> Interval | None:
    """The geometry, or None where a bound is missing. A figure that did not move at all is a point on zero."""
    if figure.low is None or figure.high is None or figure.difference is None:
        return None
    reach = max(abs(figure.low), abs(figure.difference), abs(figure.high)) or 1.0
    low, difference, high = (50 + 45 * value / reach for value in (figure.low, figure.difference, figure.high))
    return Interval(round(low, 2), round(difference, 2), round(high, 2))


def _digits(figure: Figure) -> int:
    """Decimals that give the larger of the two values three significant digits or so."""
    largest = max(abs(value) for value in (figure.before, figure.after, 0.0) if value is not None)
    return next(digits for digits, below in ((3, 2), (2, 20), (1, 200), (0, float("inf"))) if largest < below)


def _print(value: float | None, digits: int, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.{digits}f}".replace("-", "−")
