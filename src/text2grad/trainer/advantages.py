"""Estimators of per-token advantages: pure functions over (samples, tokens) tensors.

Everywhere mask is 1 on the tokens of valid samples, which are contiguous from the left, and results are 0 where mask is
0. The samples of one prompt are neighbouring rows. `docs/estimators.md` says when to use which estimator.

To add an estimator, write its function, and add its name to `EstimatorName` and its entry to `ESTIMATORS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

EstimatorName = Literal["local", "gae", "reinforce", "rloo", "rloo_tokens"]
Normalization = Literal["scale", "whiten", "none"]


class AdvantageEstimate(NamedTuple):
    """advantages: weights of the policy gradient. returns: targets of the value head, 0 for estimators without one."""

    advantages: Tensor
    returns: Tensor


class EstimatorInputs(NamedTuple):
    """rewards, values, mask: (samples, tokens). group_size: samples per prompt, in neighbouring rows."""

    rewards: Tensor
    values: Tensor
    mask: Tensor
    group_size: int
    gamma: float
    lam: float


@dataclass(frozen=True)
class Estimator:
    """An estimator with its defaults and requirements.

    gamma, lam: used where the caller gives none.
    values: whether the estimator reads values, and its value head is trained; optional values default to 0.
    needs_groups: requires at least two samples per prompt.
    needs_decay: requires gamma * lam < 1.
    per_token: whether the tokens of a sample differ.
    """

    compute: Callable[[EstimatorInputs], AdvantageEstimate]
    gamma: float = 1.0
    lam: float = 1.0
    values: Literal["unused", "optional", "required"] = "unused"
    needs_groups: bool = False
    needs_decay: bool = False
    per_token: bool = True


def span_advantages(
    rewards: Tensor,
    mask: Tensor,
    estimator: EstimatorName = "local",
    values: Tensor | None = None,
    group_size: int = 1,
    gamma: float | None = None,
    lam: float | None = None,
    outcomes: Tensor | None = None,
    outcome_weight: float = 1.0,
) -> AdvantageEstimate:
    """Compute advantages from token rewards, for any trainer.

    rewards, mask, values: (samples, tokens); mask is 1 on valid completion tokens, contiguous from the left, and a row
        of zeros is a sample to ignore (a failed critique). values: the value head's outputs; required by `gae`.
    estimator: `local`, `gae`, `reinforce`, `rloo` or `rloo_tokens`.
    group_size: samples per prompt; they are neighbouring rows.
    gamma, lam: discount and trace decay; None is the estimator's default. `rloo` does not use them.
    outcomes: (samples,), what each whole completion earned besides its token rewards, as `token_rewards` returns it;
        NaN where it has none. `add_outcomes` says how they are credited.
    outcome_weight: of the whole completion beside its spans, where it has an outcome.
    Raises ValueError for an unknown estimator, and for arguments that do not fit each other.
    Returns (advantages, returns), both (samples, tokens), not normalised; returns are the targets of the value head.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f'unknown estimator "{estimator}": use one of {", ".join(ESTIMATORS)}')
    if mask.shape != rewards.shape:
        raise ValueError(f"mask has the shape {tuple(mask.shape)}, but rewards have {tuple(rewards.shape)}")
    mask = mask.to(rewards.dtype)
    if (mask[:, 1:] > mask[:, :-1]).any():
        raise ValueError("mask must be 1 from the left on: pad on the right")
    if values is not None and values.shape != rewards.shape:
        raise ValueError(f"values have the shape {tuple(values.shape)}, but rewards have {tuple(rewards.shape)}")
    if outcomes is not None and outcomes.shape != rewards.shape[:1]:
        raise ValueError(f"outcomes have the shape {tuple(outcomes.shape)}, but there are {len(rewards)} samples")
    settings = ESTIMATORS[estimator]
    gamma = settings.gamma if gamma is None else gamma
    lam = settings.lam if lam is None else lam
    if values is None and settings.values == "required":
        raise ValueError(f"estimator {estimator} needs values: pass the outputs of a value head")
    if settings.needs_decay and gamma * lam >= 1:
        raise ValueError(f"estimator {estimator} needs gamma * lam below 1: lower lam")
    if settings.needs_groups and group_size < 2:
        raise ValueError(f"estimator {estimator} needs a group_size of 2 or more")
    if group_size < 1 or len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} samples are not a multiple of group_size ({group_size})")
    values = torch.zeros_like(rewards) if values is None else values
    estimate = settings.compute(EstimatorInputs(rewards, values, mask, group_size, gamma, lam))
    if outcomes is None:
        return estimate
    decay = gamma * lam if settings.per_token else None
    return estimate._replace(
        advantages=add_outcomes(estimate.advantages, rewards, outcomes, mask, group_size, decay, outcome_weight)
    )


def add_outcomes(
    advantages: Tensor,
    rewards: Tensor,
    outcomes: Tensor,
    mask: Tensor,
    group_size: int,
    decay: float | None,
    weight: float = 1.0,
) -> Tensor:
    """Turn the advantages of token rewards into those of completions with an outcome.

    advantages, rewards, mask, result: (samples, tokens); outcomes: (samples,), NaN for samples to leave as they are.
    decay: gamma * lambda; None for one advantage per sample, weight * (S_i - b_i).
    With S_i the sum of the token rewards and the outcome of sample i, b_i the mean S of the other samples of its prompt
    (of the batch where it is the only one), a the estimator's advantages, and m the mean a of the other samples of the
    batch at the same index,

        A_t = weight * (S_i - b_i) + (c_t - mean_t c_t) / n_i,    c_t = a_t - m_t,    n_i = sum_{t < T_i} decay^t

    The whole completion is compared by its total, as in scalar RL; the estimator decides how that is distributed over
    its tokens. The mean advantage is weight * (S_i - b_i) whatever the estimator's reach: a completion with a lower
    total is not raised over one with a higher total, and ending early is worth what the total says. A smaller weight
    leaves that order as it is and lets spans decide more of the gradient: the total is what scalar RL knows, as noisy
    as there. A token reward reaches up to n_i
    tokens; divided by that, it weighs as much with a long reach as with a short one, and less than a difference in
    score, which every token gets. Otherwise blame would drive a policy away from all that is ever blamed, such as
    writing code, where most completions score alike. Without m, a long reach would favour late tokens over early ones
    wherever there is more blame than praise. A sample that is the only one with an outcome has nothing to be compared
    with: its level is 0.
    """
    lengths = mask.sum(1)
    scored = (lengths > 0) & ~outcomes.isnan()
    totals = (rewards * mask).sum(1) + outcomes.nan_to_num()
    levels = (totals - mean_of_others(totals, scored, group_size)) * (scored.sum() > 1)
    if decay is None:
        return torch.where(scored.unsqueeze(1), weight * levels.unsqueeze(1), advantages) * mask
    credit = (advantages - leave_one_out_baseline(advantages, mask, len(mask))) * mask
    credit = credit - (credit.sum(1) / lengths.clamp(min=1)).unsqueeze(1)
    reach = (decay ** torch.arange(mask.shape[1], dtype=mask.dtype, device=mask.device) * mask).sum(1).clamp(min=1)
    shaped = weight * levels.unsqueeze(1) + credit / reach.unsqueeze(1)
    return torch.where(scored.unsqueeze(1), shaped, advantages) * mask


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> AdvantageEstimate:
    """Generalised advantage estimation over token rewards.

    rewards, values, mask: (samples, tokens).
    A_t = sum_l (gamma * lam)^l * (r_{t+l} + gamma * V_{t+l+1} - V_{t+l}); V after the last valid token is 0.
    Returns (advantages, advantages + values), both (samples, tokens).
    """
    rewards, values = rewards * mask, values * mask
    advantages = torch.zeros_like(rewards)
    carried = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        next_value = values[:, t + 1] if t + 1 < rewards.shape[1] else torch.zeros_like(carried)
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        carried = (delta + gamma * lam * carried) * mask[:, t]
        advantages[:, t] = carried
    return AdvantageEstimate(advantages, advantages + values)


def return_to_go(rewards: Tensor, mask: Tensor, discount: float) -> Tensor:
    """G_t = sum_l discount^l * r_{t+l} over the tokens of a row: GAE with values of 0.

    rewards, mask, result: (samples, tokens).
    """
    return gae(rewards, torch.zeros_like(rewards), mask, discount, 1.0).advantages


def rloo(rewards: Tensor, mask: Tensor, group_size: int) -> Tensor:
    """REINFORCE leave-one-out with one advantage per sequence, as TRL's RLOOTrainer.

    A_t = sum of the sample's rewards - mean of that sum over the other valid samples of its prompt, on every token.
    rewards, mask, result: (samples, tokens).
    """
    totals = (rewards * mask).sum(1, keepdim=True)
    valid = mask.any(1, keepdim=True).to(totals.dtype)
    return (totals - leave_one_out_baseline(totals, valid, group_size)) * mask


def rloo_tokens(rewards: Tensor, mask: Tensor, group_size: int, discount: float) -> Tensor:
    """Leave-one-out per token: the return to go minus the mean return to go of the siblings at the same index.

    rewards, mask, result: (samples, tokens).
    """
    returns = return_to_go(rewards, mask, discount)
    return (returns - leave_one_out_baseline(returns, mask, group_size)) * mask


def leave_one_out_baseline(returns: Tensor, mask: Tensor, group_size: int) -> Tensor:
    """Mean of the siblings' returns at the same index.

    returns, mask, result: (samples, tokens). A sibling that has ended counts as 0 there: nothing is left to earn. A
    sibling without a valid token is ignored. A row without valid siblings has a baseline of 0.
    """
    valid = mask.any(1).to(returns.dtype)
    grouped = (returns * mask).view(-1, group_size, mask.shape[1])
    baseline, _ = _leave_one_out(grouped, valid.view(-1, group_size, 1))
    return baseline.flatten(0, 1)


def local_credit(rewards: Tensor, mask: Tensor, group_size: int, gamma: float, lam: float) -> Tensor:
    """Credit that keeps praise and blame on their spans, and passes the cost of the end further back.

    rewards, mask, result: (samples, tokens). With s the last token of a sample, c = r_s the cost of ending there
    (omissions, truncation), b the mean c of the other samples, and w the rewards before s, continued from s on by the
    mean token reward of the other samples,

        credit_t = sum_l (gamma * lam)^l * w_{t+l}  +  gamma^(s - t) * (c - b)

    With a small lam, praise and blame stay on their spans. The cost of the end has no place in the text and is passed
    back by gamma. Stopping is compared both ways: were the end token charged c itself, every sample that lacks anything
    would push it down and the policy would learn never to stop; were it worth 0 where tokens cost something, the policy
    would learn to return nothing. gamma * lam must be below 1: the w after the end are a geometric series.
    """
    rewards = rewards * mask
    valid, rows, last = mask.any(1), torch.arange(len(rewards)), mask.sum(1).long().clamp(min=1) - 1
    end_costs = rewards[rows, last]
    ends = torch.zeros_like(rewards)
    ends[rows, last] = end_costs - mean_of_others(end_costs, valid, group_size)
    before_end = rewards.clone()
    before_end[rows, last] = 0
    token_means = before_end.sum(1) / last.clamp(min=1)
    before_end[rows, last] = mean_of_others(token_means, last > 0, group_size) / (1 - gamma * lam)
    return return_to_go(before_end * mask, mask, gamma * lam) + return_to_go(ends, mask, gamma)


def mean_of_others(numbers: Tensor, valid: Tensor, group_size: int) -> Tensor:
    """Mean over the other valid samples of the same prompt; without one, over all other valid samples; else 0.

    numbers, result: (samples,); valid: (samples,), bool.
    """
    weights = valid.to(numbers.dtype)
    of_all, _ = _leave_one_out(numbers.unsqueeze(0), weights.unsqueeze(0))
    shape = (-1, group_size)
    of_siblings, siblings = _leave_one_out(numbers.view(shape), weights.view(shape))
    return torch.where(siblings > 0, of_siblings, of_all.view(shape)).flatten()


def _leave_one_out(numbers: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and number of the other valid entries in each group; both inputs (groups, group_size, ...)."""
    numbers = numbers * valid
    count = valid.sum(1, keepdim=True) - valid
    return (numbers.sum(1, keepdim=True) - numbers) / count.clamp(min=1), count


def _local(x: EstimatorInputs) -> AdvantageEstimate:
    """`local_credit` minus the values, which are a baseline only: they learn the credit itself, not the return."""
    credit = local_credit(x.rewards, x.mask, x.group_size, x.gamma, x.lam)
    return AdvantageEstimate((credit - x.values) * x.mask, credit)


def _without_values(advantages: Tensor) -> AdvantageEstimate:
    return AdvantageEstimate(advantages, torch.zeros_like(advantages))


ESTIMATORS: dict[EstimatorName, Estimator] = {
    "local": Estimator(_local, gamma=0.7, lam=0.3, values="optional", needs_decay=True),
    "gae": Estimator(lambda x: gae(x.rewards, x.values, x.mask, x.gamma, x.lam), lam=0.95, values="required"),
    "reinforce": Estimator(lambda x: _without_values(return_to_go(x.rewards, x.mask, x.gamma * x.lam))),
    "rloo": Estimator(
        lambda x: _without_values(rloo(x.rewards, x.mask, x.group_size)), needs_groups=True, per_token=False
    ),
    "rloo_tokens": Estimator(
        lambda x: _without_values(rloo_tokens(x.rewards, x.mask, x.group_size, x.gamma * x.lam)), needs_groups=True
    ),
}


def normalize(advantages: Tensor, mask: Tensor, how: Normalization) -> Tensor:
    """Scale advantages to unit size over the valid tokens of the whole step.

    advantages, mask, result: (samples, tokens). `scale` divides by the standard deviation and keeps the mean:
    subtracting it would make unmentioned tokens positive wherever blame is sparse, which rewards length. `whiten`
    subtracts it too. Where all are nearly equal, `scale` divides by a tenth of their size, so that none becomes huge.
    """
    if how == "none" or mask.sum() < 2:
        return advantages * mask
    valid = advantages[mask.bool()]
    spread = valid.std(correction=0)
    if how == "whiten":
        return (advantages - valid.mean()) / (spread + 1e-6) * mask
    return advantages / (torch.maximum(spread, 0.1 * valid.square().mean().sqrt()) + 1e-6) * mask


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor) -> float:
    """1 - Var(returns - values) / Var(returns) over valid tokens: 1 for a perfect value head, 0 for a useless one.

    NaN where the returns do not vary.
    """
    valid = mask.bool()
    if valid.sum() < 2 or (spread := returns[valid].var(correction=0)) == 0:
        return float("nan")
    return float(1 - (returns - values)[valid].var(correction=0) / spread)
