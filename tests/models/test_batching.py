import torch
from hypothesis import given
from hypothesis import strategies as st

from text2grad.models.batching import (
    pad_left,
    pad_right,
    pad_right_rows,
    round_up_to_8,
    split_by_token_budget,
    stack_rows,
)

CPU = torch.device("cpu")


def test_right_padding_masks_by_length_even_where_the_pad_id_is_a_real_token() -> None:
    batch = pad_right([[5, 0], [7]], [[0], [0, 8, 0]], CPU)
    assert batch.ids.tolist() == [[5, 0, 0, 0], [7, 0, 8, 0]]
    assert batch.ids[batch.rows, batch.columns].tolist() == [0, 0, 8, 0]
    assert batch.scatter(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [[1, 0, 0], [2, 3, 4]]


def test_left_padding_puts_prompts_at_the_right() -> None:
    ids, mask = pad_left([[4, 5, 6], [2]], pad_id=2, device=CPU)
    assert ids.tolist() == [[4, 5, 6], [2, 2, 2]]
    assert mask.tolist() == [[1, 1, 1], [0, 0, 1]]


def test_right_padded_rows() -> None:
    assert pad_right_rows([[4, 0], [2, 3, 0]], CPU).tolist() == [[4, 0, 0], [2, 3, 0]]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(1, 200))
def test_micro_batches_hold_every_row_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = split_by_token_budget(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


def test_the_padding_ratio_allows_padding_beyond_the_budget() -> None:
    assert split_by_token_budget([1, 1, 4], 6) == [[0, 1], [2]]
    assert split_by_token_budget([1, 1, 4], 6, max_padding_ratio=2.0) == [[0, 1, 2]]
    assert split_by_token_budget([1, 1, 4], 6, max_padding_ratio=1.9) == [[0, 1], [2]]


def test_lengths_are_rounded_up() -> None:
    assert [round_up_to_8(n) for n in (1, 8, 9)] == [8, 8, 16]


def test_stacked_rows_are_padded_with_zero() -> None:
    assert stack_rows([torch.tensor([1.0]), torch.tensor([2.0, 3.0])], 3).tolist() == [[1, 0, 0], [2, 3, 0]]
