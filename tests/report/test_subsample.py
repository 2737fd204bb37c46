from hypothesis import given
from hypothesis import strategies as st

from text2grad.report.subsample import subsample, subsample_by_step


def test_few_records_are_all_kept():
    assert subsample_by_step([1, 1, 2], limit=3) == [0, 1, 2]


def test_every_step_contributes_one_record_before_any_contributes_two():
    steps = [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert subsample_by_step(steps, limit=3) == [0, 3, 6]
    assert subsample_by_step(steps, limit=5) == [0, 1, 3, 6, 7]


def test_too_many_steps_are_subsampled_at_even_distances():
    assert subsample_by_step(range(9), limit=3) == [0, 4, 8]
    assert subsample_by_step(range(9), limit=1) == [0]


def test_a_step_with_few_records_leaves_its_share_to_the_others():
    assert subsample_by_step([1, 2, 2, 2, 2], limit=4) == [0, 1, 2, 3]


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 50))
def test_a_subsample_is_full_sorted_and_without_repeats(steps: list[int], limit: int):
    selected = subsample_by_step(steps, limit)
    assert len(selected) == min(limit, len(steps))
    assert selected == sorted(set(selected))
    assert set(selected) <= set(range(len(steps)))


@given(st.integers(0, 60), st.integers(2, 60))
def test_subsample_keeps_both_ends_and_repeats_nothing(count: int, limit: int):
    kept = subsample(range(count), limit)
    assert kept[:1] == [0][:count]
    assert kept[-1:] == [count - 1][:count]
    assert len(set(kept)) == len(kept) == min(count, limit)
