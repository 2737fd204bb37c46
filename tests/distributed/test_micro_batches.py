"""Every sample is in one micro-batch, within the budget, on one process."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from text2grad.distributed.learner import micro_batches
from text2grad.distributed.processes import Processes
from text2grad.models.batching import Branch, TokenBatch
from text2grad.models.packing import MAX_PADDING_RATIO

CPU = torch.device("cpu")


def test_single_completions_need_no_mask() -> None:
    ((samples, rows),) = micro_batches([[1], [2, 3]], [[4], [5]], range(2), 100, True, CPU)
    assert samples == [0, 1]
    assert rows.model_inputs(torch.float32)["packed_rows"].mask is None
    assert rows.ids.tolist() == [[1, 4, 2, 3, 5]]


def test_padding_that_attention_sees_is_bounded() -> None:
    """Ten rows of 2 tokens would be padded to ten of 30."""
    prompts, completions = [[i] for i in range(10)] + [[20] * 29], [[3]] * 11
    made = micro_batches(prompts, completions, range(11), 100, True, CPU)
    shapes = [(rows.packed.rows, rows.packed.width) for _, rows in made if rows.packed is not None]
    assert len(shapes) == len(made) == 2
    assert all(rows * width <= MAX_PADDING_RATIO * 100 for rows, width in shapes)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9)), min_size=1, max_size=12),
    st.integers(1, 80),
    st.booleans(),
)
def test_every_sample_comes_once_within_the_budget(sizes: list[tuple[int, int]], budget: int, share: bool) -> None:
    """A prompt is its own length; completion i is made of i."""
    prompts = [[99] * (5 * prompt) for prompt, _ in sizes]
    completions = [[i] * length for i, (_, length) in enumerate(sizes)]
    made = micro_batches(prompts, completions, range(len(sizes)), budget, share, CPU)
    assert sorted(i for samples, _ in made for i in samples) == list(range(len(sizes)))
    for samples, rows in made:
        assert rows.ids.numel() <= budget or len(samples) == 1
        tokens = rows.ids[rows.rows, rows.columns]
        expected = [completions[i] + [0] * (rows.width - len(completions[i])) for i in samples]
        assert rows.scatter(tokens).tolist() == expected
        before = rows.ids[rows.rows, rows.state_columns]
        assert [int(t) for t, slot in zip(before, rows.token_indices, strict=True) if slot == 0] == [99] * len(samples)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=8),
    st.data(),
    st.integers(1, 80),
    st.booleans(),
)
def test_every_branch_comes_once_with_its_sample(
    sizes: list[tuple[int, int]], data: st.DataObject, budget: int, share: bool
) -> None:
    prompts = [[99] * prompt for prompt, _ in sizes]
    completions = [[i] * length for i, (_, length) in enumerate(sizes)]
    drawn = data.draw(st.lists(st.tuples(st.integers(0, len(sizes) - 1), st.integers(0, 9), st.integers(1, 5))))
    branches = [
        Branch(i, min(start, len(completions[i])), [20 + k] * length) for k, (i, start, length) in enumerate(drawn)
    ]
    made = micro_batches(prompts, completions, range(len(sizes)), budget, share, CPU, branches=branches)
    assert sorted(k for _, rows in made for k in rows.branches) == list(range(len(branches)))
    for samples, rows in made:
        assert {branches[k].sample for k in rows.branches} <= set(samples)
        lines = rows.scatter(rows.ids[rows.rows, rows.columns]).tolist()
        wanted = [*(completions[i] for i in samples), *(branches[k].ids for k in rows.branches)]
        assert lines == [[*line, *[0] * (rows.width - len(line))] for line in wanted]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=12),
    st.integers(1, 4),
    st.booleans(),
)
def test_processes_split_whole_rows(answers: list[tuple[int, int]], count: int, share: bool) -> None:
    prompts = [[10 + prompt] * (3 + prompt) for prompt, _ in answers]
    completions = [[7] * length for _, length in answers]
    everyone = range(len(answers))

    def rows(processes: Processes) -> list[list[int]]:
        made = micro_batches(prompts, completions, everyone, 24, share, CPU, processes)
        return [
            [i for place, i in enumerate(samples) if row_of(laid, place) == row]
            for samples, laid in made
            for row in range(len(laid.ids) if laid.positions is None else int((laid.positions == 0).sum()))
        ]

    def row_of(laid: TokenBatch, sample: int) -> int:
        first = laid.samples.tolist().index(sample)
        if laid.positions is None:
            return int(laid.rows[first])
        return int((laid.positions[: laid.columns[first]] == 0).sum()) - 1  # a row starts with its prompt

    split = [row for index in range(count) for row in rows(Processes(index, count))]
    assert sorted(split) == sorted(rows(Processes()))


def test_a_process_without_rows_takes_idle_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "gather", lambda self, items: [1, 0])
    second = Processes(1, 2, parallelism="fsdp2")
    ((samples, rows),) = micro_batches([[1], [2, 3]], [[4], [5]], [1], 100, True, CPU, second)
    assert samples == []
    assert rows.ids.tolist() == [[1, 4]]
    branches = [Branch(0, 0, [7]), Branch(1, 1, [8])]
    ((_, rows),) = micro_batches([[1], [2, 3]], [[4], [5]], [1], 100, True, CPU, second, branches)
    assert rows.ids.tolist() == [[1, 4]]
    assert rows.branches == ()
