"""Values that can be worked out by hand, then a slow implementation in float64 that shares no code with ours."""

from typing import get_args

import pytest
import slow_policy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor

from text2grad.trainer.config import PolicySettings
from text2grad.trainer.estimators import Estimator, estimate, less_siblings, local_credit, mean_of_others, return_to_go


def test_return_to_go_by_hand() -> None:
    rewards = torch.tensor([[1.0, 0.0, -4.0], [2.0, 9.0, 9.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    assert return_to_go(rewards, mask, 0.5).tolist() == [[0.0, -2.0, -4.0], [2.0, 0.0, 0.0]]


def test_siblings_are_the_baseline_at_each_index_and_count_0_after_their_end() -> None:
    returns = torch.tensor([[3.0, 2.0, 1.0], [1.0, 0.0, 0.0], [2.0, 4.0, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    expected = [[3 - 1.5, 2 - 2, 1 - 0], [1 - 2.5, 0, 0], [2 - 2, 4 - 1, 0]]
    assert less_siblings(returns, mask, 3).tolist() == expected


def test_a_blamed_span_stays_blamed_where_all_siblings_total_the_same() -> None:
    """One number an answer would leave nothing to learn here; at the same index the siblings differ."""
    rewards = torch.tensor([[-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    advantages = less_siblings(return_to_go(rewards, torch.ones(2, 3), 0.0), torch.ones(2, 3), 2)
    assert advantages.tolist() == [[-1.0, 0.0, 1.0], [1.0, 0.0, -1.0]]


def test_failed_siblings_are_left_out_and_a_lone_answer_keeps_its_return() -> None:
    returns = torch.tensor([[4.0], [2.0], [100.0], [5.0], [100.0], [100.0]])
    mask = torch.tensor([[1.0], [1.0], [0.0], [1.0], [0.0], [0.0]])
    assert less_siblings(returns, mask, 3).flatten().tolist() == [2.0, -2.0, 0.0, 5.0, 0.0, 0.0]


def test_local_credit_leaves_unmentioned_words_at_zero() -> None:
    rewards = torch.tensor([[0.0, -1.0, 0.0, 0.0]])
    assert local_credit(rewards, torch.ones(1, 4), 1, gamma=1.0, lam=0.0).tolist() == rewards.tolist()


def test_blame_reaches_back_by_lam_and_the_cost_of_the_end_by_gamma() -> None:
    # The second answer ended at no cost, so the first one's 8 counts in full, and the other's 0 is 8 better. Praise and
    # blame of the first are even, so its words are worth 0, like those of the second.
    rewards = torch.tensor([[1.0, -1.0, 0.0, -8.0], [0.0, 0.0, 9.0, 9.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    credit = local_credit(rewards, mask, 1, gamma=0.5, lam=0.5)
    assert credit.tolist() == [[1 - 0.25 - 1, -1 - 2, -4.0, -8.0], [4.0, 8.0, 0.0, 0.0]]


def test_the_end_is_worth_an_average_word_of_the_others() -> None:
    """Were it worth 0 where words cost something, an answer without words would be the best."""
    rewards = torch.tensor([[-1.0, -3.0, 0.0], [-6.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # the last one says nothing
    credit = local_credit(rewards, mask, 1, gamma=0.5, lam=0.0)
    assert credit.tolist() == [[-1.0, -3.0, -6.0], [-6.0, -2.0, 0.0], [-4.0, 0.0, 0.0]]
    longer = local_credit(rewards, mask, 1, gamma=0.5, lam=0.5)
    assert longer[2, 0].item() == pytest.approx(-4 / (1 - 0.25)), "and so would be all words after it"


def test_local_credit_that_reaches_back_for_ever_is_refused() -> None:
    with pytest.raises(ValidationError, match="lower lam"):
        PolicySettings(estimator="local", gamma=1.0, lam=1.0)


def test_a_charge_that_every_answer_pays_does_not_teach_never_to_stop() -> None:
    rewards = torch.tensor([[0.0, -2.0], [0.0, -2.0], [0.0, -3.0]])
    credit = local_credit(rewards, torch.ones(3, 2), 1, gamma=0.0, lam=0.0)
    assert credit[:, 1].tolist() == [0.5, 0.5, -1.0], "the last one, which was cut and paid more, is the odd one out"


def test_the_cost_of_the_end_is_compared_with_siblings_before_strangers() -> None:
    cost, usable = torch.tensor([1.0, 3.0, 10.0, 70.0]), torch.tensor([True, True, True, False])
    assert mean_of_others(cost, usable, 2).tolist() == [3.0, 1.0, 2.0, 10.0]
    assert mean_of_others(cost[:1], usable[:1], 1).tolist() == [0.0]


def test_group_without_siblings_is_refused() -> None:
    with pytest.raises(ValidationError, match="set num_generations to 2 or more"):
        PolicySettings(estimator="group")


@st.composite
def steps(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, int]:
    """(rewards, values, mask, group size) of a step with answers of different lengths, some of them failed."""
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
    for name in get_args(Estimator):
        if name == "local":
            lam = min(lam, 0.95)
        ours = estimate(name, rewards, values, mask, group_size, gamma, lam)
        slow = slow_policy.estimate(name, rows, guesses, group_size, gamma, lam)
        for one, other in ((ours.advantages, slow.advantages), (ours.returns, slow.returns)):
            padded = [row + [0.0] * (mask.shape[1] - len(row)) for row in other]
            torch.testing.assert_close(one, torch.tensor(padded, dtype=torch.double), rtol=1e-9, atol=1e-9)


def test_what_the_value_head_learns() -> None:
    rewards, values, mask = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 1.0]]), torch.ones(1, 2)
    assert estimate("gae", rewards, values, mask, 1, 0.5, 0.5).returns.tolist() == [[1.75, 2.0]]
    local = estimate("local", rewards, values, mask, 1, 0.5, 0.5)
    assert local.returns.tolist() == [[2.0, 2.0]], "its own credit: 1 + 0.5 * 2, and 2"
    assert local.advantages.tolist() == [[1.5, 1.0]]
