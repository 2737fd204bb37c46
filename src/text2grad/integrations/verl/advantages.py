"""Our estimators with verl's signature: pure functions over tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from text2grad.errors import UserError
from text2grad.integrations.verl.scoring import VerlSettings
from text2grad.trainer.advantages import ESTIMATORS, EstimatorName, normalize, span_advantages

AdvantageFunction = Callable[..., tuple[Tensor, Tensor]]
# verl gives values only to its own gae, which takes token rewards as they are.
VERL_NAMES: dict[str, EstimatorName] = {
    f"text2grad_{name}": name for name, estimator in ESTIMATORS.items() if estimator.values != "required"
}


def advantage_function(estimator: EstimatorName) -> AdvantageFunction:
    """Return the function to register with verl's `register_adv_est`."""

    def compute(
        token_level_rewards: Tensor, response_mask: Tensor, config: Any = None, index: Any = None, **_: Any
    ) -> tuple[Tensor, Tensor]:
        """Return (advantages, returns), both (samples, tokens).

        token_level_rewards, response_mask: (samples, tokens). A sample whose rewards are NaN, or whose mask is 0, is
        ignored. index: (samples,), the prompt of each; samples of one prompt need not be neighbours.
        """
        settings = VerlSettings.from_algorithm(config)
        prompts = range(len(token_level_rewards)) if index is None else index.tolist()
        mask = response_mask.to(token_level_rewards.dtype)
        mask = mask * (~(token_level_rewards.isnan() & mask.bool()).any(1)).unsqueeze(1)
        check_contiguous(mask)
        rewards = torch.where(mask.bool(), token_level_rewards, 0.0)
        outcomes = None
        if settings.credit.total == "score":
            rewards, outcomes = split_outcomes(rewards, mask)
        rows, group_size = group_rows(prompts)
        places = [row for row in rows if row is not None]
        estimate = span_advantages(
            scatter(rewards, rows),
            scatter(mask, rows),
            estimator=estimator,
            group_size=group_size,
            gamma=settings.gamma,
            lam=settings.lam,
            outcomes=None if outcomes is None else scatter(outcomes, rows),
        )
        advantages, returns = torch.zeros_like(rewards), torch.zeros_like(rewards)
        filled = [i for i, row in enumerate(rows) if row is not None]
        advantages[places], returns[places] = estimate.advantages[filled], estimate.returns[filled]
        return normalize(advantages, mask, settings.advantage_normalization), returns

    return compute


def split_outcomes(rewards: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Take the outcomes off the last tokens: (rewards (samples, tokens), outcomes (samples,)).

    A token that ends a completion is in no span, so all that it has is the outcome. The last token of a truncated
    completion may be in a span; what that earned counts for the whole completion then.
    """
    rewards, last = rewards.clone(), mask.sum(1).long().clamp(min=1) - 1
    samples = torch.arange(len(rewards), device=rewards.device)
    outcomes = rewards[samples, last]
    rewards[samples, last] = 0.0
    return rewards, outcomes


def group_rows(prompts: Sequence[Any]) -> tuple[list[int | None], int]:
    """Return the order in which samples of one prompt are neighbours, and the size of all groups.

    None stands for a sample to ignore: it fills a group that has fewer than the largest.
    """
    groups: dict[Any, list[int | None]] = {}
    for row, prompt in enumerate(prompts):
        groups.setdefault(prompt, []).append(row)
    size = max(map(len, groups.values()))
    return [row for group in groups.values() for row in group + [None] * (size - len(group))], size


def scatter(tensor: Tensor, rows: Sequence[int | None]) -> Tensor:
    """Return the rows of a tensor in an order; a row that is None is 0."""
    zeros = torch.zeros_like(tensor[:1])
    return torch.cat([zeros if row is None else tensor[row : row + 1] for row in rows])


def check_contiguous(mask: Tensor) -> None:
    """Reject conversations of several turns, whose mask has holes."""
    if (mask[:, 1:] > mask[:, :-1]).any():
        raise UserError(
            "a response has masked tokens before others, as of a tool or a second turn: span advantages are for "
            "single-turn responses; set adv_estimator to one of verl's own for these"
        )
