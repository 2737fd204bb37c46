import pytest

from text2grad.report.metrics_table import describe_change, interval_position, metric_rows
from text2grad.report.read import MetricChange


def test_a_row_prints_the_metric_with_the_interval_of_its_difference():
    (row,) = metric_rows({"score": MetricChange(before=-9.8, after=2.6, difference=12.4, low=10.0, high=14.5)})
    assert (row["title"], row["before"], row["after"]) == ("Critic’s score", "−9.80", "2.60")
    assert (row["difference"], row["bounds"], row["change"], row["significant"]) == (
        "+12.40",
        "+10.00 to +14.50",
        "rose",
        True,
    )


def test_an_unknown_metric_gets_a_readable_title():
    (row,) = metric_rows({"unsupported_words": MetricChange(before=1, after=0, difference=-1, low=-2, high=0.5)})
    assert row["title"] == "Unsupported words"
    assert (row["change"], row["significant"]) == ("no significant change", False)


def test_missing_numbers_are_dashes_not_zeros():
    (row,) = metric_rows({"score": MetricChange(before=1.0)})
    assert (row["after"], row["difference"], row["bounds"], row["change"]) == ("–", "–", "–", "not measured")
    assert row["interval"] is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.1, 0.3, "rose"),
        (-0.3, -0.1, "fell"),
        (-0.1, 0.1, "no significant change"),
        (0.0, 0.1, "no significant change"),
    ],
)
def test_a_change_is_significant_if_its_interval_excludes_zero(low: float, high: float, expected: str):
    assert describe_change(MetricChange(difference=(low + high) / 2, low=low, high=high)) == expected


def test_the_plot_has_zero_in_the_middle_and_the_farthest_bound_near_the_edge():
    shown = interval_position(MetricChange(difference=1, low=-1, high=2))
    assert shown == {"low": 27.5, "difference": 72.5, "high": 95.0}
    assert interval_position(MetricChange(difference=0, low=0, high=0)) == {"low": 50, "difference": 50, "high": 50}
