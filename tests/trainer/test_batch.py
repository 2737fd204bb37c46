"""From sampled ids and feedback to the batch of an update, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerBase

from text2grad.models.loading import load_tokenizer
from text2grad.models.policy import Scores
from text2grad.rewards.credit import Credit
from text2grad.rollout.sampling import Sampled
from text2grad.schema import Example, Feedback, Span
from text2grad.trainer.batch import (
    Batch,
    Rollout,
    RolloutRewards,
    make_batch,
    make_rollout,
    prompt_indices,
    rollout_rewards,
    scale_rewards,
)
from text2grad.trainer.config import PolicySettings
from text2grad.trainer.state import KLController, RunningScale, TrainerState

NOTHING = math.nan


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Path) -> PreTrainedTokenizerBase:
    return load_tokenizer(tiny_model)


def test_sampled_ids_are_decoded_into_the_examples(tokenizer: PreTrainedTokenizerBase) -> None:
    end = tokenizer.eos_token_id
    x, y = (tokenizer.encode(letter, add_special_tokens=False)[0] for letter in "XY")
    old = Feedback(critic="c", spans=[Span(start=0, end=1, label="poor")])
    examples = [
        Example(id="a", prompt="p", completion="old", feedback=old),
        Example(id="b", prompt="q", reference="r"),
    ]
    sampled = Sampled([[x, y, end], [y, x]], [[-1.0, -2.0, -3.0], [-4.0, -5.0]])
    rollout = make_rollout(examples, [[1], [2]], sampled, [end], tokenizer)
    assert (rollout.prompts, rollout.completions) == ([[1], [2]], [[x, y, end], [y, x]])
    assert rollout.ended == [True, False]
    assert rollout.offsets == [[(0, 1), (1, 2), (2, 2)], [(0, 1), (1, 2)]]
    assert rollout.examples == [
        Example(id="a", prompt="p", completion="XY"),
        Example(id="b", prompt="q", completion="YX", reference="r"),
    ]
    assert rollout.sampled_logprobs is not None
    assert rollout.sampled_logprobs.tolist() == [[-1.0, -2.0, -3.0], [-4.0, -5.0, 0.0]]
    assert rollout.mask.tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]
    assert make_rollout(examples, [[1], [2]], Sampled(sampled[0], None), [end], tokenizer).sampled_logprobs is None
    with pytest.raises(ValueError, match="zip"):
        make_rollout(examples[:1], [[1]], sampled, [end], tokenizer)


def test_the_prompts_of_a_step_continue_through_permutations_of_all() -> None:
    epochs = [np.random.default_rng([2, 7, epoch]).permutation(5).tolist() for epoch in range(3)]
    order = [i for epoch in epochs for i in epoch]
    assert [prompt_indices(step, 4, 5, seed=7) for step in (1, 2, 3)] == [order[:4], order[4:8], order[8:12]]
    assert prompt_indices(1, 12, 5, seed=7) == order[:12]
    assert prompt_indices(1, 5, 5, seed=8) != order[:5]
    assert all(type(i) is int for i in prompt_indices(1, 4, 5, seed=7))


def rollout_of(lengths: list[int], ended: list[bool], sampled: torch.Tensor | None = None) -> Rollout:
    """Completions of tokens of one character."""
    return Rollout(
        prompts=[[1]] * len(lengths),
        completions=[[3] * n for n in lengths],
        ended=ended,
        offsets=[[(t, t + 1) for t in range(n)] for n in lengths],
        examples=[Example(id=str(i), prompt="p", completion="x" * n) for i, n in enumerate(lengths)],
        sampled_logprobs=sampled,
    )


def test_the_rewards_of_a_rollout() -> None:
    feedback = [
        Feedback(critic="c", spans=[Span(start=0, end=1, label="poor", severity=0.5)], score=0.25),
        Feedback(critic="c", spans=[Span(start=1, end=2, label="good", severity=0.5)]),
        Feedback.failure("c", "no answer"),
    ]
    rollout = rollout_of([1, 3, 2], [False, False, True])
    rewards = rollout_rewards(rollout, feedback, Credit(truncation_penalty=0.125), seed=0, step=1)
    assert rewards.tokens.tolist() == [[-0.5, 0, 0], [0, 0.5, -0.125], [0, 0, 0]]
    assert rewards.outcomes[0].item() == 0.625
    assert rewards.outcomes[1:].isnan().all()
    assert rewards.valid.tolist() == [True, True, False]
    assert rewards.totals.tolist() == [0.125, 0.375, 0.0]
    with pytest.raises(ValueError, match="zip"):
        rollout_rewards(rollout, feedback[:2], Credit(), seed=0, step=1)


def test_shuffled_rewards_are_keyed_by_seed_step_and_sample() -> None:
    praise = Feedback(critic="c", scores=[(t, t + 1, (t + 1) / 16) for t in range(12)])
    rollout = rollout_of([12, 12], [True, True])
    credit = Credit(mode="shuffled")
    rewards = rollout_rewards(rollout, [praise, praise], credit, seed=5, step=9).tokens
    for i in range(2):
        order = np.random.default_rng([3, 5, 9, i]).permutation(11)
        assert rewards[i].tolist() == [*((order + 1) / 16).tolist(), 0.75]


OLD = Scores(
    logprobs=torch.tensor([[-1.0, -2.0], [-3.0, 9.0]]),
    entropy=torch.zeros(2, 2),
    values=torch.tensor([[0.5, -0.5], [0.25, 9.0]]),
)
REFERENCE = OLD._replace(logprobs=torch.tensor([[-1.5, -2.0], [-2.0, -9.0]]))
PLAIN = {"estimator": "reinforce", "gamma": 0.0, "advantage_normalization": "none", "beta": 0.0, "num_generations": 1}


def batch_of(
    tokens: list[list[float]],
    outcomes: list[float],
    valid: list[bool] | None = None,
    rollout: Rollout | None = None,
    state: TrainerState | None = None,
    **settings: object,
) -> Batch:
    """The batch of two samples with two tokens and one; rewards are not scaled unless a state is given."""
    args = PolicySettings.model_validate(PLAIN | settings)
    rewards = RolloutRewards(torch.tensor(tokens), torch.tensor(outcomes), torch.tensor(valid or [True, True]))
    unscaled = TrainerState(0, KLController(args.beta), RunningScale(1e12, 0.0, 1e12))
    return make_batch(rollout or rollout_of([2, 1], [True, False]), rewards, OLD, REFERENCE, args, state or unscaled)


def rows(tensor: torch.Tensor) -> list[float]:
    return [round(x, 5) + 0.0 for x in tensor.flatten().tolist()]


def test_without_outcome_penalty_or_normalisation_advantages_are_the_rewards() -> None:
    batch = batch_of([[0.5, -0.25], [1.0, 9.0]], [NOTHING, NOTHING])
    assert rows(batch.advantages) == [0.5, -0.25, 1.0, 0.0]
    assert batch.mask.tolist() == [[1, 1], [1, 0]]
    assert batch.old_logprobs is OLD.logprobs
    assert batch.old_values is OLD.values
    assert batch.reference_logprobs is REFERENCE.logprobs
    assert (batch.kl_coef, batch.importance_weights) == (0.0, None)
    assert not batch.returns.any()
    assert math.isnan(batch.explained_variance)


def test_the_kl_is_a_part_of_the_rewards_or_of_the_loss() -> None:
    # log pi - log pi_ref: 0.5 and 0, and -1
    in_reward = batch_of([[0.5, -0.25], [1.0, 9.0]], [NOTHING, NOTHING], beta=0.2)
    assert rows(in_reward.advantages) == [0.4, -0.25, 1.2, 0.0]
    assert in_reward.kl_coef == 0
    in_loss = batch_of([[0.5, -0.25], [1.0, 9.0]], [NOTHING, NOTHING], beta=0.2, kl_placement="loss")
    assert rows(in_loss.advantages) == [0.5, -0.25, 1.0, 0.0]
    assert in_loss.kl_coef == 0.2


def test_rewards_and_outcomes_are_divided_by_the_deviation_of_totals_and_clipped() -> None:
    state = TrainerState(0, KLController(0.0), RunningScale(2, 0.0, 8.0))  # totals of -2 and 2 before
    batch = batch_of([[1.0, 0.5], [-8.0, 0.0]], [0.5, 6.0], state=state, reward_clip=1.5)
    # totals of 2 and -2 join them: a deviation of 2. Scaled 0.5, 0.25 | -4 -> -1.5; outcomes 0.25 | 3
    assert (state.reward_scale.count, state.reward_scale.mean, state.reward_scale.std) == (4, 0.0, 2.0)
    # Totals 1 and 1.5. Credit: (0.5, 0.25) - (-1.5, 0) = (2, 0.25), mean 1.125; and -1.5 - 0.5 = -2
    assert rows(batch.advantages) == [-0.5 + 2 - 1.125, -0.5 + 0.25 - 1.125, 0.5, 0.0]


def test_outcomes_are_clipped_around_their_mean() -> None:
    rewards = RolloutRewards(
        torch.zeros(4, 1), torch.tensor([-9.0, -8.0, -1.0, 50.0]), torch.tensor([True] * 3 + [False])
    )
    scaled = scale_rewards(rewards, RunningScale(2, 0.0, 2.0), clip=2.0)  # a deviation of 1; the mean is -6
    assert scaled.outcomes[:3].tolist() == [-8.0, -8.0, -4.0]


def test_scores_that_are_nearly_alike_and_far_from_zero_still_differ() -> None:
    # a deviation of 0.01: scaled -100 and -98; both are beyond the clip of 10
    batch = batch_of([[0.0, 0.0], [0.0, 0.0]], [-1.0, -0.98], state=TrainerState(0, KLController(0.0), RunningScale()))
    assert rows(batch.advantages) == [-2.0, -2.0, 2.0, 0.0]


def test_a_failed_critique_is_not_trained_on_and_does_not_count_for_the_scale() -> None:
    state = TrainerState(0, KLController(0.0), RunningScale())
    batch = batch_of([[0.5, 0.5], [1.0, 9.0]], [NOTHING, NOTHING], valid=[True, False], state=state)
    assert batch.mask.tolist() == [[1, 1], [0, 0]]
    assert (state.reward_scale.count, state.reward_scale.mean) == (1, 1.0)
    assert rows(batch.advantages) == [0.5, 0.5, 0.0, 0.0]


def test_truncated_completions_can_be_left_out_and_still_count_for_the_scale() -> None:
    state = TrainerState(0, KLController(0.0), RunningScale())
    rewards = [[0.5, 0.5], [3.0, 0.0]], [NOTHING, NOTHING]
    batch = batch_of(*rewards, state=state, mask_truncated_completions=True)
    assert batch.mask.tolist() == [[1, 1], [0, 0]]
    assert (state.reward_scale.count, state.reward_scale.mean) == (2, 2.0)
    both = batch_of(*rewards, valid=[False, True], mask_truncated_completions=True)
    assert not both.mask.any()


def test_estimator_groups_discounts_and_values_are_passed_on() -> None:
    rewards = [[1.0, 0.5], [2.0, 0.0]], [NOTHING, NOTHING]
    gae = batch_of(*rewards, estimator="gae", gamma=0.5, lam=0.5)
    # delta: 1 + 0.5 * -0.5 - 0.5 = 0.25 and 0.5 + 0.5 = 1; A = 0.25 + 0.25 * 1; second 2 - 0.25
    assert rows(gae.advantages) == [0.5, 1.0, 1.75, 0.0]
    assert rows(gae.returns) == [1.0, 0.5, 2.0, 0.0]
    # returns 1, 0.5, 2 (mean 7/6, variance 7/18); errors 0.5, 1, 1.75 (mean 13/12, variance 19/72)
    assert gae.explained_variance == pytest.approx(1 - (19 / 72) / (7 / 18))
    assert math.isnan(batch_of(*rewards, estimator="gae", vf_coef=0.0).explained_variance)
    pairs = batch_of(*rewards, estimator="rloo", num_generations=2, per_device_train_batch_size=2)
    assert rows(pairs.advantages) == [-0.5, -0.5, 0.5, 0.0]


def test_advantages_are_normalised_over_the_valid_tokens() -> None:
    whitened = batch_of([[1.0, 3.0], [2.0, 50.0]], [NOTHING, NOTHING], advantage_normalization="whiten").advantages
    assert rows(whitened) == [round(x, 5) for x in (-math.sqrt(1.5), math.sqrt(1.5), 0.0, 0.0)]


@pytest.mark.parametrize(
    ("clip_max", "expected"), [(2.0, [math.exp(-0.5), 1.0, 2.0]), (4.0, [math.exp(-0.5), 1.0, math.e])]
)
def test_importance_weights_are_of_the_policy_over_the_sampler(clip_max: float, expected: list[float]) -> None:
    sampled = torch.tensor([[-0.5, -2.0], [-4.0, 0.0]])
    rollout = rollout_of([2, 1], [True, False], sampled)
    rewards = [[1.0, 3.0], [2.0, 50.0]], [NOTHING, NOTHING]
    weights = batch_of(*rewards, rollout=rollout, importance_sampling_clip_max=clip_max).importance_weights
    assert weights is not None
    assert weights.flatten()[:3].tolist() == pytest.approx(expected)
    assert batch_of(*rewards, rollout=rollout, importance_sampling_clip_max=None).importance_weights is None
    assert batch_of(*rewards, importance_sampling_clip_max=clip_max).importance_weights is None
