"""Micro-batches of scoring and update passes: each process's rows, laid out for the model."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from text2grad.distributed.processes import SINGLE_PROCESS, Processes
from text2grad.models.batching import TokenBatch, split_by_token_budget
from text2grad.models.packing import MAX_PADDING_RATIO, Row, pack_rows, pad_rows, row_length, shared_rows

MicroBatch = tuple[list[int], TokenBatch]  # sample indices, and their tokens
IDLE: Row = [0]  # the row of an idle micro-batch, which has no samples of its own


def micro_batches(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    samples: Sequence[int],
    max_tokens: int,
    share_prompts: bool,
    device: torch.device,
    processes: Processes = SINGLE_PROCESS,
) -> list[MicroBatch]:
    """Return this process's share of the samples in micro-batches of at most `max_tokens` tokens, or of one row.

    Each is (samples, batch): `batch.scatter` returns one line per sample, in their order. Rows are never split, so the
    processes together compute what one alone would. Where all need equally many passes, a process that has fewer gets
    idle ones: no samples, and the row `IDLE`, whose results are ignored.
    """
    if share_prompts:
        rows, max_padding, lay_out = (
            shared_rows(prompts, completions, samples, max_tokens),
            MAX_PADDING_RATIO,
            pack_rows,
        )
    else:
        rows, max_padding, lay_out = [[i] for i in samples], 1.0, pad_rows
    lengths = [row_length(prompts, completions, row) for row in rows]
    local = processes.local_rows(lengths)
    planned = split_by_token_budget([lengths[i] for i in local], max_tokens, max_padding)
    batches = processes.pad_passes([[rows[local[i]] for i in batch] for batch in planned], idle=[])
    return [
        ([i for row in batch for i in row], lay_out(prompts, completions, batch or [IDLE], device)) for batch in batches
    ]
