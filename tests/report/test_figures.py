import pytest

from text2grad.report.figures import Interval, figure_rows, interval, verdict
from text2grad.report.read import Figure


def test_a_row_prints_the_figure_with_the_interval_of_its_difference():
    (row,) = figure_rows({"score": Figure(before=-9.8, after=2.6, difference=12.4, low=10.0, high=14.5)})
    assert (row.title, row.before, row.after) == ("Critic’s score", "−9.80", "2.60")
    assert (row.difference, row.bounds, row.verdict, row.sure) == ("+12.40", "+10.00 to +14.50", "rose", True)


def test_an_unknown_figure_gets_a_readable_title():
    (row,) = figure_rows({"unsupported_words": Figure(before=1, after=0, difference=-1, low=-2, high=0.5)})
    assert row.title == "Unsupported words"
    assert (row.verdict, row.sure) == ("no clear change", False)


def test_missing_numbers_are_dashes_not_zeros():
    (row,) = figure_rows({"score": Figure(before=1.0)})
    assert (row.after, row.difference, row.bounds, row.verdict) == ("–", "–", "–", "not measured")
    assert row.interval is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.1, 0.3, "rose"), (-0.3, -0.1, "fell"), (-0.1, 0.1, "no clear change"), (0.0, 0.1, "no clear change")],
)
def test_the_verdict_needs_an_interval_without_zero(low: float, high: float, expected: str):
    assert verdict(Figure(difference=(low + high) / 2, low=low, high=high)) == expected


def test_the_graphic_has_zero_in_the_middle_and_the_farthest_bound_near_the_edge():
    assert interval(Figure(difference=1, low=-1, high=2)) == Interval(low=27.5, difference=72.5, high=95.0)
    assert interval(Figure(difference=0, low=0, high=0)) == Interval(50, 50, 50)
