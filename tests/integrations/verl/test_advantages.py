"""Our estimators behind verl's signature are our estimators; no verl needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from text2grad.errors import UserError
from text2grad.integrations.verl.advantages import VERL_NAMES, advantage_function
from text2grad.trainer.advantages import EstimatorName, normalize, span_advantages

LENGTHS = [5, 3, 4, 5, 2, 5]
PROMPTS = ["a", "a", "b", "b", "c", "c"]


def samples() -> tuple[Tensor, Tensor, Tensor]:
    """Token rewards that are 0 on the last token, as of an end token; outcomes; mask."""
    generator = torch.Generator().manual_seed(0)
    mask = (torch.arange(5) < torch.tensor(LENGTHS).unsqueeze(1)).float()
    rewards = torch.randn(6, 5, generator=generator) * mask
    rewards[torch.arange(6), mask.sum(1).long() - 1] = 0
    return rewards, torch.randn(6, generator=generator), mask


def with_outcomes(rewards: Tensor, outcomes: Tensor, mask: Tensor) -> Tensor:
    folded = rewards.clone()
    folded[torch.arange(len(folded)), mask.sum(1).long().clamp(min=1) - 1] += outcomes
    return folded


def ours(
    estimator: EstimatorName, rewards: Tensor, mask: Tensor, outcomes: Tensor | None, how: Any = "scale"
) -> Tensor:
    estimate = span_advantages(rewards, mask, estimator, group_size=2, outcomes=outcomes)
    return normalize(estimate.advantages, mask, how)


def config(**section: Any) -> dict[str, Any]:
    return {"gamma": 0.99, "text2grad": section}  # verl's own gamma is not ours


@pytest.mark.parametrize("estimator", VERL_NAMES.values())
def test_advantages_are_ours(estimator: EstimatorName) -> None:
    rewards, outcomes, mask = samples()
    index = np.array(PROMPTS, dtype=object)
    compute = advantage_function(estimator)
    with_score, _ = compute(with_outcomes(rewards, outcomes, mask), mask.long(), config=config(), index=index)
    assert torch.equal(with_score, ours(estimator, rewards, mask, outcomes))
    assert (with_score != 0).sum() > mask.sum() / 2
    spans, _ = compute(rewards, mask.long(), config=config(credit={"total": "spans"}), index=index)
    assert torch.equal(spans, ours(estimator, rewards, mask, None))


def test_samples_of_a_prompt_need_not_be_neighbours() -> None:
    rewards, outcomes, mask = samples()
    folded = with_outcomes(rewards, outcomes, mask)
    order = torch.tensor([3, 0, 5, 2, 4, 1])
    compute = advantage_function("rloo_tokens")
    shuffled, _ = compute(folded[order], mask[order], config=config(), index=np.array(PROMPTS, dtype=object)[order])
    torch.testing.assert_close(shuffled, ours("rloo_tokens", rewards, mask, outcomes)[order])


@pytest.mark.parametrize("failed", ["nan", "masked"])
def test_a_failed_critique_has_no_advantage_and_moves_no_baseline(failed: str) -> None:
    rewards, outcomes, mask = samples()
    folded, response_mask = with_outcomes(rewards, outcomes, mask), mask.clone()
    if failed == "nan":
        folded[2] = torch.nan
    else:
        response_mask[2] = 0
    mask[2] = 0
    found, returns = advantage_function("rloo")(folded, response_mask, config=config(), index=np.array(PROMPTS))
    assert torch.equal(found, ours("rloo", rewards * mask, mask, outcomes))
    assert not found[2].any()
    assert returns.isfinite().all()


def test_groups_may_differ_in_size() -> None:
    """A sample less changes only its own group: the others are compared with the same siblings."""
    rewards, outcomes, mask = samples()
    folded = with_outcomes(rewards, outcomes, mask)
    keep = [0, 1, 2, 4, 5]
    found, _ = advantage_function("rloo")(
        folded[keep], mask[keep], config=config(advantage_normalization="none"), index=np.array(PROMPTS)[keep]
    )
    full = ours("rloo", rewards, mask, outcomes, "none")
    torch.testing.assert_close(found[[0, 1, 3, 4]].sum(1), full[[0, 1, 4, 5]].sum(1))


def test_a_second_turn_is_refused() -> None:
    mask = torch.tensor([[1, 1, 0, 1, 1]])
    with pytest.raises(UserError, match="single-turn responses; set adv_estimator"):
        advantage_function("reinforce")(torch.zeros(1, 5), mask)
