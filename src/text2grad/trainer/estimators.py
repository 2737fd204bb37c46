"""From token rewards to advantages and value targets: pure functions over (samples, tokens) tensors.

In all of them mask is 1 on the tokens of usable samples, which are contiguous from the left, and what they return is 0
where mask is 0. `docs/estimators.md` says when to use which.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from text2grad.trainer.advantage import gae

Estimator = Literal["gae", "reinforce", "group", "local"]
USE_VALUES: tuple[Estimator, ...] = ("gae", "local")  # the others leave the value head alone


class Estimate(NamedTuple):
    """advantages: what the policy learns from. returns: what the value head learns, where it is used."""

    advantages: Tensor
    returns: Tensor


def estimate(
    estimator: Estimator,
    rewards: Tensor,
    values: Tensor,
    mask: Tensor,
    group_size: int,
    gamma: float,
    lam: float,
) -> Estimate:
    """Advantages by the estimator's name.

    rewards, values, mask: (samples, tokens). group_size: answers to each prompt; they are neighbours.
    `reinforce` and `group` need no values: credit reaches back by gamma * lam a token. In `local` the values are a
    baseline and nothing else: they learn the credit itself, not the return.
    """
    match estimator:
        case "gae":
            return Estimate(*gae(rewards, values, mask, gamma, lam))
        case "reinforce":
            advantages = return_to_go(rewards, mask, gamma * lam)
        case "group":
            advantages = less_siblings(return_to_go(rewards, mask, gamma * lam), mask, group_size)
        case "local":
            credit = local_credit(rewards, mask, group_size, gamma, lam)
            return Estimate((credit - values) * mask, credit)
    return Estimate(advantages, torch.zeros_like(rewards))


def return_to_go(rewards: Tensor, mask: Tensor, discount: float) -> Tensor:
    """G_t = sum_l discount^l * r_{t+l}, over the tokens of the row.

    rewards, mask, result: (samples, tokens). It is generalised advantage estimation with values of 0.
    """
    advantages, _ = gae(rewards, torch.zeros_like(rewards), mask, discount, 1.0)
    return advantages


def less_siblings(returns: Tensor, mask: Tensor, group_size: int) -> Tensor:
    """Each token's return less the mean of its siblings' returns at the same index: the leave-one-out baseline.

    returns, mask, result: (groups * group_size, tokens); the rows of a group are neighbours. A sibling that has ended
    counts as 0 there: nothing is left to earn. One without any valid token is left out. A row without another sibling
    has no baseline and keeps its return, so that a failed critique does not take its neighbours along.
    """
    usable = mask.any(1).to(returns.dtype)
    grouped = (returns * mask).view(-1, group_size, mask.shape[1])
    baseline, _ = _mean_and_count_of_others(grouped, usable.view(-1, group_size, 1))
    return (returns - baseline.flatten(0, 1)) * mask


def local_credit(rewards: Tensor, mask: Tensor, group_size: int, gamma: float, lam: float) -> Tensor:
    """Words are credited with what is said about them; the answer's end is credited to the road that led there.

    rewards, mask, result: (samples, tokens). With s the last token of an answer, w its rewards before s and, from s on,
    what a word of the other answers earned on average, c = r_s what ending there cost (omissions, being cut), and b the
    mean c of the other answers,

        credit_t = sum_l (gamma * lam)^l * w_{t+l}  +  gamma^(s - t) * (c - b)

    Blame and praise reach back by gamma * lam only, so a small lam keeps them on their spans. The cost of the end has
    no place in the text and needs the longer reach. Stopping is weighed both ways: were the end token charged with c
    itself, it would be pushed down in every answer that lacks anything, and the policy would learn never to stop; were
    it worth 0 where words cost something, the policy would learn to say nothing.
    gamma * lam must be below 1: the w after the end are a geometric series.
    """
    rewards = rewards * mask
    usable, rows, words_said = mask.any(1), torch.arange(len(rewards)), mask.sum(1).long().clamp(min=1) - 1
    cost = rewards[rows, words_said]
    ends = torch.zeros_like(rewards)
    ends[rows, words_said] = cost - mean_of_others(cost, usable, group_size)
    words = rewards.clone()
    words[rows, words_said] = 0
    a_word = words.sum(1) / words_said.clamp(min=1)
    words[rows, words_said] = mean_of_others(a_word, words_said > 0, group_size) / (1 - gamma * lam)
    return return_to_go(words * mask, mask, gamma * lam) + return_to_go(ends, mask, gamma)


def mean_of_others(figures: Tensor, usable: Tensor, group_size: int) -> Tensor:
    """The mean figure of the other usable samples: of the siblings where one is usable, else of all, else 0.

    figures: (groups * group_size,); usable: the same, bool. Returns the same shape.
    """
    present = usable.to(figures.dtype)
    of_all, _ = _mean_and_count_of_others(figures.unsqueeze(0), present.unsqueeze(0))
    shape = (-1, group_size)
    of_siblings, siblings = _mean_and_count_of_others(figures.view(shape), present.view(shape))
    return torch.where(siblings > 0, of_siblings, of_all.view(shape)).flatten()


def _mean_and_count_of_others(figures: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """Leave-one-out within the groups of (groups, group size, ...) tensors; the mean of nobody is 0."""
    figures = figures * present
    count = present.sum(1, keepdim=True) - present
    return (figures.sum(1, keepdim=True) - figures) / count.clamp(min=1), count
