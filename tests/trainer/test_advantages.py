"""Values that can be worked out by hand, then a slow implementation in float64 that shares no code with ours."""

import math
from typing import Any, get_args

import pytest
import slow_policy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor

from text2grad.trainer.advantages import (
    ESTIMATORS,
    EstimatorName,
    add_outcomes,
    explained_variance,
    gae,
    leave_one_out_baseline,
    local_credit,
    mean_of_others,
    normalize,
    return_to_go,
    rloo,
    rloo_tokens,
    span_advantages,
)
from text2grad.trainer.config import PolicySettings


def test_gae_spreads_a_late_blame_backwards() -> None:
    rewards = torch.tensor([[0.0, 0.0, -1.0]])
    advantages, _ = gae(rewards, values=torch.zeros(1, 3), mask=torch.ones(1, 3), gamma=1.0, lam=0.5)
    assert advantages.tolist() == [[-0.25, -0.5, -1.0]]


def test_gae_by_hand_with_values() -> None:
    # delta_1 = 2 - 1 = 1; delta_0 = 1 + 0.5 * 1 - 0.5 = 1; A_0 = 1 + 0.5 * 0.5 * 1 = 1.25
    advantages, returns = gae(
        torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 1.0]]), torch.ones(1, 2), gamma=0.5, lam=0.5
    )
    assert advantages.tolist() == [[1.25, 1.0]]
    assert returns.tolist() == [[1.75, 2.0]]


def test_gamma_zero_is_local_credit() -> None:
    rewards = torch.tensor([[0.0, -1.0, 0.5]])
    advantages, _ = gae(rewards, torch.zeros(1, 3), torch.ones(1, 3), gamma=0.0, lam=0.95)
    assert advantages.tolist() == rewards.tolist()


def test_gae_stops_at_the_end_of_each_row() -> None:
    rewards = torch.tensor([[1.0, 9.0, 9.0], [1.0, 1.0, 1.0]])
    values = torch.full((2, 3), 0.5)
    mask = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    advantages, returns = gae(rewards, values, mask, gamma=1.0, lam=1.0)
    assert advantages.tolist() == [[0.5, 0.0, 0.0], [2.5, 1.5, 0.5]]
    assert returns.tolist() == [[1.0, 0.0, 0.0], [3.0, 2.0, 1.0]]


def test_scaling_keeps_neutral_tokens_at_zero_and_whitening_does_not() -> None:
    advantages = torch.tensor([[0.0, 0.0, 0.0, -2.0]])
    mask = torch.ones(1, 4)
    deviation = math.sqrt(0.75)  # mean -0.5, squares (3 * 0.25 + 2.25) / 4
    assert normalize(advantages, mask, "scale")[0].tolist() == pytest.approx([0, 0, 0, -2 / deviation], abs=1e-4)
    assert normalize(advantages, mask, "whiten")[0, 0] == pytest.approx(0.5 / deviation, abs=1e-4)
    assert normalize(advantages, mask, "none").tolist() == advantages.tolist()


def test_normalisation_ignores_masked_tokens() -> None:
    advantages = torch.tensor([[1.0, -1.0, 100.0]])
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    assert normalize(advantages, mask, "scale")[0].tolist() == pytest.approx([1.0, -1.0, 0.0], abs=1e-4)


def test_explained_variance() -> None:
    returns, mask = torch.tensor([[1.0, 3.0, 50.0]]), torch.tensor([[1.0, 1.0, 0.0]])
    assert explained_variance(returns, returns, mask) == 1.0
    assert explained_variance(torch.zeros(1, 3), returns, mask) == 0.0
    assert math.isnan(explained_variance(returns, torch.ones(1, 3), mask))


def test_advantages_that_are_all_alike_do_not_become_huge() -> None:
    same = torch.full((2, 3), -0.4)
    torch.testing.assert_close(normalize(same, torch.ones(2, 3), "scale"), torch.full((2, 3), -10.0), atol=1e-3, rtol=0)
    assert not normalize(same, torch.ones(2, 3), "whiten").any()


def test_return_to_go_by_hand() -> None:
    rewards = torch.tensor([[1.0, 0.0, -4.0], [2.0, 9.0, 9.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    assert return_to_go(rewards, mask, 0.5).tolist() == [[0.0, -2.0, -4.0], [2.0, 0.0, 0.0]]


def test_the_baseline_of_a_token_is_the_mean_of_its_siblings_which_count_0_after_their_end() -> None:
    returns = torch.tensor([[3.0, 2.0, 1.0], [1.0, 0.0, 0.0], [2.0, 4.0, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    expected = torch.tensor([[1.5, 2, 0], [2.5, 0, 0], [2, 1, 0]])
    assert torch.equal(leave_one_out_baseline(returns, mask, 3) * mask, expected)


def test_a_blamed_span_stays_blamed_where_all_siblings_total_the_same() -> None:
    """One advantage per sequence teaches nothing here; at the same index the siblings differ."""
    rewards = torch.tensor([[-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    assert not rloo(rewards, torch.ones(2, 3), 2).any()
    assert rloo_tokens(rewards, torch.ones(2, 3), 2, 0.0).tolist() == [[-1.0, 0.0, 1.0], [1.0, 0.0, -1.0]]


def test_failed_siblings_are_ignored_and_a_lone_sample_keeps_its_return() -> None:
    returns = torch.tensor([[4.0], [2.0], [100.0], [5.0], [100.0], [100.0]])
    mask = torch.tensor([[1.0], [1.0], [0.0], [1.0], [0.0], [0.0]])
    expected = [2.0, -2.0, 0.0, 5.0, 0.0, 0.0]
    assert rloo_tokens(returns, mask, 3, 1.0).flatten().tolist() == expected
    assert rloo(returns, mask, 3).flatten().tolist() == expected


@pytest.mark.parametrize("estimator", ["local", "rloo", "reinforce"])
def test_a_score_without_another_to_compare_it_with_teaches_nothing(estimator: Any) -> None:
    mask = torch.tensor([[1.0, 1, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]])
    outcomes = torch.tensor([0.7, math.nan, math.nan, math.nan])
    found = span_advantages(torch.zeros(4, 3), mask, estimator, group_size=2, outcomes=outcomes).advantages
    assert not found.any()


def test_rloo_has_one_advantage_per_sequence_where_lengths_differ() -> None:
    mask = torch.tensor([[1.0, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]])
    rewards = torch.zeros(4, 4)
    rewards[0, 1], rewards[3, 0] = -0.5, 0.4
    outcomes = torch.tensor([0.9, 0.2, 0.5, 0.1])  # totals .4, .2, .5, .5
    found = span_advantages(rewards, mask, "rloo", group_size=2, outcomes=outcomes).advantages
    torch.testing.assert_close(found, torch.tensor([[0.2], [-0.2], [0.0], [0.0]]) * mask)


def test_rloo_by_hand() -> None:
    rewards = torch.tensor([[1.0, 0.0, -4.0], [2.0, 9.0, 9.0], [0.0, 5.0, 0.0]])  # totals -3, 2 and 5
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    assert rloo(rewards, mask, 3).tolist() == [[-6.5, -6.5, -6.5], [1.0, 0.0, 0.0], [5.5, 5.5, 0.0]]


def test_rloo_is_the_formula_of_trl() -> None:
    """RLOOTrainer: (grouped sum - own reward) / (num_generations - 1), subtracted, for every token of the sample."""
    generator = torch.Generator().manual_seed(0)
    token_rewards = torch.randn(8, 5, generator=generator)
    rewards, num_generations = token_rewards.sum(1), 4
    grouped_rewards = rewards.view(-1, num_generations)
    grouped_sum = grouped_rewards.sum(dim=1, keepdim=True)
    baselines = ((grouped_sum - grouped_rewards) / (num_generations - 1)).view(-1)
    advantages = span_advantages(token_rewards, torch.ones(8, 5), "rloo", group_size=num_generations).advantages
    torch.testing.assert_close(advantages, (rewards - baselines).unsqueeze(1).expand(8, 5))


def test_local_credit_leaves_unmentioned_words_at_zero() -> None:
    rewards = torch.tensor([[0.0, -1.0, 0.0, 0.0]])
    assert local_credit(rewards, torch.ones(1, 4), 1, gamma=1.0, lam=0.0).tolist() == rewards.tolist()


def test_blame_reaches_back_by_lam_and_the_cost_of_the_end_by_gamma() -> None:
    # The second sample ended at no cost, so the first one's 8 counts in full, and the other's 0 is 8 better. Praise and
    # blame of the first are even, so its words are worth 0, like those of the second.
    rewards = torch.tensor([[1.0, -1.0, 0.0, -8.0], [0.0, 0.0, 9.0, 9.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    credit = local_credit(rewards, mask, 1, gamma=0.5, lam=0.5)
    assert credit.tolist() == [[1 - 0.25 - 1, -1 - 2, -4.0, -8.0], [4.0, 8.0, 0.0, 0.0]]


def test_the_end_is_worth_an_average_word_of_the_others() -> None:
    """Were it worth 0 where words cost something, an empty completion would be the best."""
    rewards = torch.tensor([[-1.0, -3.0, 0.0], [-6.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # the last one says nothing
    credit = local_credit(rewards, mask, 1, gamma=0.5, lam=0.0)
    assert credit.tolist() == [[-1.0, -3.0, -6.0], [-6.0, -2.0, 0.0], [-4.0, 0.0, 0.0]]
    longer = local_credit(rewards, mask, 1, gamma=0.5, lam=0.5)
    assert longer[2, 0].item() == pytest.approx(-4 / (1 - 0.25)), "and so would be all words after it"


def test_local_credit_without_decay_is_rejected() -> None:
    with pytest.raises(ValidationError, match="lower lam"):
        PolicySettings(estimator="local", gamma=1.0, lam=1.0)


def test_a_charge_that_every_sample_pays_does_not_teach_never_to_stop() -> None:
    rewards = torch.tensor([[0.0, -2.0], [0.0, -2.0], [0.0, -3.0]])
    credit = local_credit(rewards, torch.ones(3, 2), 1, gamma=0.0, lam=0.0)
    assert credit[:, 1].tolist() == [0.5, 0.5, -1.0], "the last one, which was cut and paid more, is the odd one out"


def test_the_cost_of_the_end_is_compared_with_siblings_before_strangers() -> None:
    cost, usable = torch.tensor([1.0, 3.0, 10.0, 70.0]), torch.tensor([True, True, True, False])
    assert mean_of_others(cost, usable, 2).tolist() == [3.0, 1.0, 2.0, 10.0]
    assert mean_of_others(cost[:1], usable[:1], 1).tolist() == [0.0]


@pytest.mark.parametrize("estimator", ["rloo", "rloo_tokens"])
def test_groups_without_siblings_are_rejected(estimator: EstimatorName) -> None:
    with pytest.raises(ValidationError, match="set num_generations to 2 or more"):
        PolicySettings(estimator=estimator)


@st.composite
def steps(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, int]:
    """(rewards, values, mask, group size) of a step with samples of different lengths, some of them failed."""
    group_size, groups, width = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 6))
    count = group_size * groups
    lengths = draw(st.lists(st.integers(0, width), min_size=count, max_size=count))
    number = st.floats(-3, 3, width=32)
    cells = draw(st.lists(number, min_size=2 * count * width, max_size=2 * count * width))
    rewards, values = torch.tensor(cells, dtype=torch.double).view(2, count, width)
    mask = (torch.arange(width) < torch.tensor(lengths).unsqueeze(1)).double()
    return rewards, values, mask, group_size


@settings(max_examples=150, deadline=None)
@given(steps(), st.floats(0, 1), st.floats(0, 1))
def test_every_estimator_is_the_slow_one(step: tuple[Tensor, Tensor, Tensor, int], gamma: float, lam: float) -> None:
    rewards, values, mask, group_size = step
    lengths = mask.sum(1).long().tolist()
    rows = [row[:n].tolist() for row, n in zip(rewards, lengths, strict=True)]
    guesses = [row[:n].tolist() for row, n in zip(values, lengths, strict=True)]
    for name in get_args(EstimatorName):
        if name == "local":
            lam = min(lam, 0.95)
        if ESTIMATORS[name].needs_groups and group_size < 2:
            continue
        ours = span_advantages(rewards, mask, name, values, group_size, gamma, lam)
        slow = slow_policy.estimate(name, rows, guesses, group_size, gamma, lam)
        for one, other in ((ours.advantages, slow.advantages), (ours.returns, slow.returns)):
            padded = [row + [0.0] * (mask.shape[1] - len(row)) for row in other]
            torch.testing.assert_close(one, torch.tensor(padded, dtype=torch.double), rtol=1e-9, atol=1e-9)


def test_what_the_value_head_learns() -> None:
    rewards, values, mask = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 1.0]]), torch.ones(1, 2)
    assert span_advantages(rewards, mask, "gae", values, 1, 0.5, 0.5).returns.tolist() == [[1.75, 2.0]]
    local = span_advantages(rewards, mask, "local", values, 1, 0.5, 0.5)
    assert local.returns.tolist() == [[2.0, 2.0]], "its own credit: 1 + 0.5 * 2, and 2"
    assert local.advantages.tolist() == [[1.5, 1.0]]


def test_every_estimator_is_registered() -> None:
    assert set(ESTIMATORS) == set(get_args(EstimatorName))


@pytest.mark.parametrize(
    ("estimator", "gamma", "lam"),
    [("local", 0.7, 0.3), ("gae", 1.0, 0.95), ("reinforce", 1.0, 1.0), ("rloo", 1.0, 1.0), ("rloo_tokens", 1.0, 1.0)],
)
def test_defaults_follow_the_estimator_and_explicit_values_win(
    estimator: EstimatorName, gamma: float, lam: float
) -> None:
    settings = {"estimator": estimator, "num_generations": 2}
    resolved = PolicySettings.model_validate({**settings, "gamma": None})
    assert (resolved.gamma, resolved.lam) == (gamma, lam)
    assert resolved.model_dump()["gamma"] == gamma, "a saved config shows what was used"
    explicit = PolicySettings.model_validate({**settings, "gamma": 0.5, "lam": 0.0})
    assert (explicit.gamma, explicit.lam) == (0.5, 0.0)
    rewards, values, mask = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.ones(2, 2), torch.ones(2, 2)
    ours = span_advantages(rewards, mask, estimator, values, group_size=2)
    assert torch.equal(ours.advantages, span_advantages(rewards, mask, estimator, values, 2, gamma, lam).advantages)


def test_advantages_without_a_trainer() -> None:
    """Two blamed words: with the default estimator the blame stays near them, and values are optional."""
    rewards = torch.tensor([[0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    advantages, returns = span_advantages(rewards, torch.ones(2, 4))
    assert advantages[0, 1] < advantages[0, 0] < 0 < 0.25 < -advantages[0, 1]
    assert torch.equal(advantages, returns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": "gae"}, "estimator gae needs values"),
        ({"gamma": 1.0, "lam": 1.0}, "estimator local needs gamma"),
        ({"estimator": "rloo"}, "estimator rloo needs a group_size of 2"),
        ({"estimator": "rloo", "group_size": 2}, "3 samples are not a multiple of group_size"),
    ],
)
def test_what_an_estimator_needs_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        span_advantages(torch.zeros(3, 2), torch.ones(3, 2), **arguments)


def test_outcomes_by_hand() -> None:
    # totals: 0 - 1 + 0.5 = -0.5 and 0 + 0.5 = 0.5; credit: (0 - 0, -1 - 0) and (0 - 0, 0 + 1), of means -0.5 and 0.5
    rewards = torch.tensor([[0.0, -1.0], [0.0, 0.0]])
    result = add_outcomes(rewards, rewards, torch.tensor([0.5, 0.5]), torch.ones(2, 2), group_size=2, decay=0.0)
    assert result.tolist() == [[-0.5, -1.5], [0.5, 1.5]]
    # with a decay of 1, a reward reaches both tokens and is halved
    result = add_outcomes(rewards, rewards, torch.tensor([0.5, 0.5]), torch.ones(2, 2), group_size=2, decay=1.0)
    assert result.tolist() == [[-0.75, -1.25], [0.75, 1.25]]
    # with half the weight, only the mean changes
    result = add_outcomes(rewards, rewards, torch.tensor([0.5, 0.5]), torch.ones(2, 2), 2, 1.0, weight=0.5)
    assert result.tolist() == [[-0.25, -0.75], [0.25, 0.75]]


def test_a_sample_without_an_outcome_keeps_its_advantages_and_is_not_compared_with() -> None:
    rewards = torch.tensor([[0.25, -1.0], [0.0, 0.0], [0.5, 0.0]])
    outcomes = torch.tensor([math.nan, 1.0, 2.0])
    result = add_outcomes(rewards, rewards, outcomes, torch.ones(3, 2), group_size=3, decay=0.0)
    assert result[0].tolist() == rewards[0].tolist()
    assert result[1:].mean(1).tolist() == [1.0 - 2.5, 2.5 - 1.0]


@pytest.mark.parametrize("estimator", get_args(EstimatorName))
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_mean_advantage_of_a_completion_is_its_total_against_its_siblings(estimator: Any, data: Any) -> None:
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=4, max_size=4))
    numbers = st.floats(-1, 1, width=32)
    weight = data.draw(st.sampled_from([1.0, 0.25]))
    mask = torch.tensor([[1.0] * n + [0.0] * (6 - n) for n in lengths])
    rewards = (
        torch.tensor(data.draw(st.lists(st.lists(numbers, min_size=6, max_size=6), min_size=4, max_size=4))) * mask
    )
    outcomes = torch.tensor(data.draw(st.lists(numbers, min_size=4, max_size=4)))
    values = torch.zeros(4, 6)
    advantages, _ = span_advantages(
        rewards, mask, estimator, values, group_size=2, outcomes=outcomes, outcome_weight=weight
    )
    totals = rewards.sum(1) + outcomes
    expected = weight * (totals - totals.view(2, 2).flip(1).flatten())
    assert (advantages.sum(1) / mask.sum(1)).tolist() == pytest.approx(expected.tolist(), abs=1e-4)


@pytest.mark.parametrize("estimator", get_args(EstimatorName))
def test_without_spans_every_estimator_is_scalar_reinforcement_learning(estimator: Any) -> None:
    mask, scores = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]), torch.tensor([0.5, -1.0])
    advantages, _ = span_advantages(mask * 0, mask, estimator, mask * 0, group_size=2, outcomes=scores)
    assert advantages.tolist() == [[1.5, 1.5, 1.5], [-1.5, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator": "ppo"}, 'unknown estimator "ppo": use one of local, gae'),
        ({"mask": torch.tensor([[0.0, 1.0, 1.0]])}, "pad on the right"),
        ({"mask": torch.ones(1, 2)}, r"mask has the shape \(1, 2\), but rewards have \(1, 3\)"),
        ({"values": torch.ones(1, 1)}, r"values have the shape \(1, 1\), but rewards have \(1, 3\)"),
        ({"outcomes": torch.ones(1, 1)}, r"outcomes have the shape \(1, 1\), but there are 1 samples"),
        ({"group_size": 0}, r"1 samples are not a multiple of group_size \(0\)"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"rewards": torch.zeros(1, 3), "mask": torch.ones(1, 3), **changes}
    with pytest.raises(ValueError, match=message):
        span_advantages(**arguments)


def test_a_mask_of_truth_values_is_a_mask() -> None:
    rewards, outcomes = torch.tensor([[0.0, -1.0], [0.0, 0.0]]), torch.tensor([0.5, 0.0])
    mask = torch.tensor([[True, True], [True, False]])
    expected = span_advantages(rewards, mask.float(), outcomes=outcomes).advantages
    assert torch.equal(span_advantages(rewards, mask, outcomes=outcomes).advantages, expected)
