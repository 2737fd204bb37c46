"""The reward manager for verl's colocated path, where completions are rewarded after all of them have been sampled."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from verl import DataProto
from verl.experimental.reward_loop.reward_manager import register
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from text2grad.integrations.verl.rows import to_example
from text2grad.integrations.verl.scoring import make_scorer


@register("text2grad")
class SpanRewardManager(RewardManagerBase):  # type: ignore[misc]
    """Rewards every token: `reward.reward_manager.name=text2grad`.

    The llm critic asks the model that verl serves as its reward model, unless its options name another.
    """

    def __init__(
        self,
        config: Any,
        tokenizer: Any,
        compute_score: Any,
        reward_router_address: str | None = None,
        reward_model_tokenizer: Any = None,
    ) -> None:
        super().__init__(config, tokenizer, compute_score)
        url = None if reward_router_address is None else f"http://{reward_router_address}/v1"
        self._scorer = make_scorer(config, tokenizer, url)

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """Return the rewards of one response; NaN where the critique failed, which our estimators ignore."""
        item = data[-1]
        length = int(item.batch["attention_mask"][item.batch["prompts"].shape[-1] :].sum())
        scored = await self._scorer.score(to_example(item.non_tensor_batch), item.batch["responses"][:length].tolist())
        return {"reward_score": scored.rewards, "reward_extra_info": scored.extra_info}

    @classmethod
    def assemble_rm_scores(cls, data: DataProto, scores: list[list[float]]) -> Tensor:
        """Return (samples, tokens): the rewards of all responses, 0 on padding."""
        assembled = torch.zeros_like(data.batch["responses"], dtype=torch.float32)
        for row, rewards in enumerate(scores):
            assembled[row, : len(rewards)] = torch.tensor(rewards)
        return assembled
