from hypothesis import given
from hypothesis import strategies as st

from text2grad.report.select import even_selection, spread


def test_few_records_are_all_kept():
    assert even_selection([1, 1, 2], limit=3) == [0, 1, 2]


def test_every_step_gives_its_first_record_before_any_gives_its_second():
    steps = [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert even_selection(steps, limit=3) == [0, 3, 6]
    assert even_selection(steps, limit=5) == [0, 1, 3, 6, 7]


def test_too_many_steps_are_thinned_at_even_distances():
    assert even_selection(range(9), limit=3) == [0, 4, 8]
    assert even_selection(range(9), limit=1) == [0]


def test_a_step_with_few_records_leaves_its_room_to_the_others():
    assert even_selection([1, 2, 2, 2, 2], limit=4) == [0, 1, 2, 3]


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 50))
def test_a_selection_is_full_sorted_and_without_repeats(steps: list[int], limit: int):
    chosen = even_selection(steps, limit)
    assert len(chosen) == min(limit, len(steps))
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(range(len(steps)))


@given(st.integers(0, 60), st.integers(2, 60))
def test_spread_keeps_both_ends_and_repeats_nothing(count: int, limit: int):
    kept = spread(range(count), limit)
    assert kept[:1] == [0][:count]
    assert kept[-1:] == [count - 1][:count]
    assert len(set(kept)) == len(kept) == min(count, limit)
