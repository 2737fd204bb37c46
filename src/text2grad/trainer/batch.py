"""One step's answers as they walk through the optimiser: ids first, then rewards, then advantages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.align.tokens import decode, offsets
from text2grad.models.batching import stack_rows
from text2grad.rewards.mapping import Credit, token_rewards
from text2grad.rollout.rng import Stream, stream
from text2grad.rollout.sampling import Sampled
from text2grad.schema import Example, Feedback, Range


@dataclass(frozen=True)
class Rollout:
    """Sampled answers. The text in `examples` is derived from the ids; nothing is ever encoded again.

    sampled_logprobs: (samples, longest completion), how probable each token was to whoever sampled it, 0 after an
    answer's end; None where that is unknown.
    """

    prompts: list[list[int]]
    completions: list[list[int]]
    ended: list[bool]
    offsets: list[list[Range]]
    examples: list[Example]
    sampled_logprobs: Tensor | None = None

    @property
    def lengths(self) -> list[int]:
        """Prompt and completion tokens of each row."""
        return [len(p) + len(c) for p, c in zip(self.prompts, self.completions, strict=True)]

    @property
    def mask(self) -> Tensor:
        """(samples, longest completion): 1 on sampled tokens."""
        return stack_rows([torch.ones(len(c)) for c in self.completions], max(map(len, self.completions)))


def make_rollout(
    examples: Sequence[Example],
    prompts: list[list[int]],
    sampled: Sampled,
    end_ids: Sequence[int],
    tokenizer: PreTrainedTokenizerBase,
) -> Rollout:
    """Attach the decoded text to each example, with the place of every sampled token in it."""
    completions, logprobs = sampled
    width = max(map(len, completions))
    return Rollout(
        prompts=prompts,
        completions=completions,
        ended=[ids[-1] in end_ids for ids in completions],
        offsets=[offsets(ids, tokenizer) for ids in completions],
        examples=[
            example.model_copy(update={"completion": decode(ids, tokenizer), "feedback": None})
            for example, ids in zip(examples, completions, strict=True)
        ],
        sampled_logprobs=None if logprobs is None else stack_rows([torch.tensor(row) for row in logprobs], width),
    )


def rollout_rewards(
    rollout: Rollout, feedback: Sequence[Feedback], credit: Credit, seed: int, step: int
) -> tuple[Tensor, Tensor]:
    """Token rewards of a rollout: (rewards (samples, tokens), valid (samples,) bool)."""
    rows, valid = [], []
    for i, (said, ranges, ended) in enumerate(zip(feedback, rollout.offsets, rollout.ended, strict=True)):
        end = len(ranges) - 1 if ended else None
        rewards, usable = token_rewards(said, ranges, end, credit, stream(Stream.SHUFFLED_CREDIT, seed, step, i))
        rows.append(torch.from_numpy(np.asarray(rewards)))
        valid.append(usable)
    return stack_rows(rows, max(map(len, rollout.completions))), torch.tensor(valid)
