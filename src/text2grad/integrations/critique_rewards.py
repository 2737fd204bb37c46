"""From sampled ids to token rewards in one call: the way in for other trainers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.align.tokens import decode, offsets
from text2grad.critics.base import Critic, collect_feedback
from text2grad.models.batching import stack_rows
from text2grad.rewards.credit import DEFAULT_CREDIT, Credit, TokenRewards, token_rewards
from text2grad.schema import Example, Feedback
from text2grad.trainer.batch import stack_rewards


class RewardTensors(NamedTuple):
    """What `span_advantages` takes. rewards, mask: (completions, longest completion). outcomes: (completions,).

    mask: 1 on sampled tokens, 0 on padding and on completions without usable feedback. outcomes: NaN where none is.
    """

    rewards: Tensor
    mask: Tensor
    outcomes: Tensor


@dataclass(frozen=True)
class CritiqueRewards:
    """The feedback on a batch of completions, and what their tokens earn; one entry per completion.

    tokens: `rewards` of shape (tokens,), `outcome` of the whole, whether it is `valid`, and the `total`.
    truncated: whether the completion was cut at the length limit.
    """

    tokens: list[TokenRewards]
    feedback: list[Feedback]
    truncated: list[bool]

    def tensors(self) -> RewardTensors:
        """Return the rewards as tensors that are padded on the right."""
        stacked = stack_rewards(self.tokens)
        sampled = stack_rows([torch.ones(len(one.rewards)) for one in self.tokens], stacked.tokens.shape[1])
        return RewardTensors(stacked.tokens, sampled * stacked.valid.unsqueeze(1), stacked.outcomes)


def critique_to_rewards(
    critic: Critic,
    examples: Sequence[Example],
    completion_ids: Sequence[Sequence[int]],
    tokenizer: PreTrainedTokenizerBase,
    *,
    truncated: Sequence[bool] | None = None,
    credit: Credit = DEFAULT_CREDIT,
    rng: np.random.Generator | None = None,
) -> CritiqueRewards:
    """Ask a critic about sampled completions and turn what it says into the reward of every sampled token.

    examples: the prompt of each completion, with what the critic needs besides; their completions are ignored.
    completion_ids: sampled ids, the end token included; the text is decoded from them and never encoded again.
    truncated: whether each completion was cut at the length limit; None: those that do not end with `eos_token_id`.
    credit, rng: as in `token_rewards`.

    A critic that raises or returns something invalid fails its completions: they are not valid, and `tensors()` masks
    them. With the advantages of any estimator, for four completions per prompt in neighbouring places:

        rewards, mask, outcomes = critique_to_rewards(critic, examples, completion_ids, tokenizer).tensors()
        advantages, _ = span_advantages(rewards, mask, group_size=4, outcomes=outcomes)
    """
    if truncated is None:
        truncated = [not len(ids) or ids[-1] != tokenizer.eos_token_id for ids in completion_ids]
    completed = [
        example.model_copy(update={"completion": decode(ids, tokenizer), "feedback": None})
        for example, ids in zip(examples, completion_ids, strict=True)
    ]
    feedback = collect_feedback(critic, completed)
    tokens = [
        token_rewards(one, offsets(ids, tokenizer), text=example.completion, truncated=cut, credit=credit, rng=rng)
        for one, example, ids, cut in zip(feedback, completed, completion_ids, truncated, strict=True)
    ]
    return CritiqueRewards(tokens, feedback, list(truncated))
