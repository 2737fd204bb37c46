import pytest

from text2grad.evaluation import significance
from text2grad.evaluation.significance import bootstrap, paired_bootstrap


def test_a_constant_difference_has_no_spread() -> None:
    assert paired_bootstrap([1.0, 5.0, 9.0], [3.0, 7.0, 11.0], resamples=100, seed=0) == (2.0, 2.0, 2.0)


def test_interval_of_a_known_distribution() -> None:
    # 100 differences of +1 and -1: the mean is 0 and its standard error 0.1
    interval = paired_bootstrap([0.0] * 100, [1.0, -1.0] * 50, resamples=20_000, seed=0)
    assert interval.difference == 0
    assert interval.low == pytest.approx(-0.196, abs=0.02)
    assert interval.high == pytest.approx(0.196, abs=0.02)


def test_pairing_matters() -> None:
    before, after = [float(i) for i in range(50)], [i + 0.5 for i in range(50)]
    assert paired_bootstrap(before, after, 1000, 0).low == 0.5


def test_the_interval_of_a_mean_is_that_of_its_differences_from_zero() -> None:
    values = [0.5, 1.0, -2.0, 4.0]
    assert tuple(bootstrap(values, 500, 3)) == tuple(paired_bootstrap([0.0] * 4, values, 500, 3))


def test_many_items_are_resampled_in_parts_with_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [float(i % 7) for i in range(101)]
    whole = bootstrap(values, 300, 0)
    monkeypatch.setattr(significance, "_MAX_PICKS", 1000)
    assert bootstrap(values, 300, 0) == whole
