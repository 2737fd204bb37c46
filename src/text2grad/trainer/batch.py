"""The samples of one step: sampled ids, token rewards, and the batch of the update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.align.tokens import decode
from text2grad.align.tokens import offsets as token_offsets
from text2grad.models.batching import stack_rows
from text2grad.models.policy import Scores
from text2grad.rewards.credit import Credit, TokenRewards, token_rewards
from text2grad.rollout.rng import Stream, stream
from text2grad.rollout.sampling import Sampled
from text2grad.schema import Example, Feedback, Range
from text2grad.trainer.advantages import explained_variance, normalize, span_advantages
from text2grad.trainer.config import PolicySettings
from text2grad.trainer.losses import truncated_importance_weights
from text2grad.trainer.state import RunningScale, TrainerState


@dataclass(frozen=True)
class Rollout:
    """The completions of a step. The text in `examples` is decoded from sampled ids; nothing is ever encoded again.

    ended: whether the completion has an end token, or was truncated. offsets: the character range of each token.
    sampled_logprobs: (samples, longest completion), the sampler's log-probability of each token, 0 after the end; None
    where it is unknown. logged: whether completions and feedback are given; another policy may have written them.
    """

    prompts: list[list[int]]
    completions: list[list[int]]
    ended: list[bool]
    offsets: list[list[Range]]
    examples: list[Example]
    sampled_logprobs: Tensor | None = None
    logged: bool = False

    @property
    def mask(self) -> Tensor:
        """(samples, longest completion): 1 on sampled tokens."""
        return stack_rows([torch.ones(len(c)) for c in self.completions], max(map(len, self.completions)))


class RolloutRewards(NamedTuple):
    """Rewards of a rollout. tokens: (samples, tokens). outcomes, valid: (samples,); an outcome is NaN where none is."""

    tokens: Tensor
    outcomes: Tensor
    valid: Tensor

    @property
    def totals(self) -> Tensor:
        """(samples,): what each completion earned in all."""
        return self.tokens.sum(1) + self.outcomes.nan_to_num()


@dataclass(frozen=True)
class Batch:
    """What the update needs from one step's samples; tensors are (samples, tokens).

    mask: 1 on the tokens of samples that are trained on.
    kl_coef: coefficient of the KL penalty in the loss; 0 where it is in the rewards.
    importance_weights: of each token's policy loss, where the sampler differs from the policy; None is 1.
    """

    mask: Tensor
    old_logprobs: Tensor
    reference_logprobs: Tensor
    old_values: Tensor
    advantages: Tensor
    returns: Tensor
    explained_variance: float
    kl_coef: float = 0.0
    importance_weights: Tensor | None = None


def make_rollout(
    examples: Sequence[Example],
    prompts: list[list[int]],
    sampled: Sampled,
    end_ids: Sequence[int],
    tokenizer: PreTrainedTokenizerBase,
) -> Rollout:
    """Decode sampled ids into the examples' completions, with the offsets of every token."""
    completions, logprobs = sampled
    width = max(map(len, completions))
    return Rollout(
        prompts=prompts,
        completions=completions,
        ended=[ids[-1] in end_ids for ids in completions],
        offsets=[token_offsets(ids, tokenizer) for ids in completions],
        examples=[
            example.model_copy(update={"completion": decode(ids, tokenizer), "feedback": None})
            for example, ids in zip(examples, completions, strict=True)
        ],
        sampled_logprobs=None if logprobs is None else stack_rows([torch.tensor(row) for row in logprobs], width),
    )


def prompt_indices(step: int, num_prompts: int, num_examples: int, seed: int) -> list[int]:
    """Return the prompts of a step, counted from 1: every epoch is a new permutation, keyed by (seed, epoch)."""
    positions = [divmod(i, num_examples) for i in range((step - 1) * num_prompts, step * num_prompts)]
    epochs = {epoch for epoch, _ in positions}
    orders = {epoch: stream(Stream.DATA_ORDER, seed, epoch).permutation(num_examples) for epoch in epochs}
    return [int(orders[epoch][i]) for epoch, i in positions]


def rollout_rewards(
    rollout: Rollout, feedback: Sequence[Feedback], credit: Credit, seed: int, step: int
) -> RolloutRewards:
    """Return the token rewards, the outcomes and the validity of all samples of a rollout."""
    found = [
        token_rewards(
            item,
            offsets,
            text=example.completion,
            truncated=not ended,
            credit=credit,
            rng=stream(Stream.SHUFFLED_CREDIT, seed, step, i),
        )
        for i, (item, example, offsets, ended) in enumerate(
            zip(feedback, rollout.examples, rollout.offsets, rollout.ended, strict=True)
        )
    ]
    return stack_rewards(found)


def stack_rewards(found: Sequence[TokenRewards]) -> RolloutRewards:
    """Return the rewards of all samples as tensors that are padded on the right with 0."""
    return RolloutRewards(
        tokens=stack_rows([torch.from_numpy(one.rewards) for one in found], max(len(one.rewards) for one in found)),
        outcomes=torch.tensor([math.nan if one.outcome is None else one.outcome for one in found]),
        valid=torch.tensor([one.valid for one in found]),
    )


def scale_rewards(rewards: RolloutRewards, scale: RunningScale, clip: float) -> RolloutRewards:
    """Divide token rewards and outcomes by the standard deviation of all totals so far, and clip them.

    Token rewards are clipped around 0, outcomes around their mean in the batch: where all completions score nearly
    alike, far from 0, all outcomes would be clipped to the same number, and what little tells them apart be lost.
    """
    tokens, outcomes = rewards.tokens / scale.std, rewards.outcomes / scale.std
    center = outcomes[rewards.valid].nanmean().nan_to_num()
    return RolloutRewards(tokens.clamp(-clip, clip), center + (outcomes - center).clamp(-clip, clip), rewards.valid)


def make_batch(
    rollout: Rollout,
    rewards: RolloutRewards,
    old: Scores,
    reference: Scores,
    args: PolicySettings,
    state: TrainerState,
) -> Batch:
    """Compute the batch of an update: r_t = clip(d_t / scale) - beta * KL_t, the estimator, then normalisation.

    KL_t = log pi(y_t) - log pi_ref(y_t), the single-sample estimate of the KL divergence at a token.

    rewards: the d_t, and outcomes of whole completions, which are scaled and clipped alike. old, reference: scores
    under the policy that sampled and under the reference. With `kl_placement: loss` the KL is part of the loss instead.
    Updates `state.reward_scale`.
    """
    beta, in_reward = state.kl_controller.beta, args.kl_placement == "reward"
    valid = rewards.valid
    trained_on = valid & torch.tensor(rollout.ended) if args.mask_truncated_completions else valid
    mask = rollout.mask * trained_on.unsqueeze(1)
    state.reward_scale.update(rewards.totals[valid])
    scaled = scale_rewards(rewards, state.reward_scale, args.reward_clip)
    penalised = scaled.tokens - beta * (old.logprobs - reference.logprobs) if in_reward else scaled.tokens
    advantages, returns = span_advantages(
        penalised,
        mask,
        args.estimator,
        old.values,
        args.num_generations,
        args.gamma,
        args.lam,
        scaled.outcomes,
        args.outcome_weight,
    )
    clip_max, sampled = args.importance_sampling_clip_max, rollout.sampled_logprobs
    weights = None
    if clip_max is not None and sampled is not None:
        weights = truncated_importance_weights(old.logprobs, sampled, clip_max)
    return Batch(
        mask=mask,
        old_logprobs=old.logprobs,
        reference_logprobs=reference.logprobs,
        old_values=old.values,
        advantages=normalize(advantages, mask, args.advantage_normalization),
        returns=returns,
        explained_variance=explained_variance(old.values, returns, mask) if args.value_weight else float("nan"),
        kl_coef=0.0 if in_reward else beta,
        importance_weights=weights,
    )
