"""An agent loop that asks the critic as soon as a completion is there, and hands verl a reward for every token."""

from __future__ import annotations

from typing import Any

import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, register
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop

from text2grad.integrations.verl.rows import to_example
from text2grad.integrations.verl.scoring import ScoredCompletion, make_scorer


class SpanAgentLoopOutput(AgentLoopOutput):  # type: ignore[misc]
    """verl's output with `token_rewards`, one per response id, which become `rm_scores`."""

    token_rewards: list[float]

    @classmethod
    def with_rewards(cls, output: AgentLoopOutput, scored: ScoredCompletion) -> SpanAgentLoopOutput:
        """Add rewards to an output. The sample of a failed critique is masked, and verl counts it as aborted."""
        rewards = scored.rewards if scored.valid else [0.0] * len(scored.rewards)
        fields = {name: getattr(output, name) for name in output.model_fields_set}
        fields["extra_fields"] = output.extra_fields | {"reward_extra_info": scored.extra_info}
        if not scored.valid:
            fields["response_mask"] = [0] * len(output.response_mask)
        return cls(**fields | {"reward_score": sum(rewards), "token_rewards": rewards})

    def as_dict(self) -> dict[str, Any]:
        """As verl's, with a reward on every token in `rm_scores` instead of the total on the last."""
        output: dict[str, Any] = super().as_dict()
        output["rm_scores"] = torch.tensor(output.pop("token_rewards"), dtype=torch.float32)
        return output


@register("text2grad")
class SpanAgentLoop(SingleTurnAgentLoop):  # type: ignore[misc]
    """One completion and its critique: `actor_rollout_ref.rollout.agent.default_agent_loop=text2grad`."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> SpanAgentLoopOutput:
        output = await super().run(sampling_params, **kwargs)
        scored = await make_scorer(self.config, self.tokenizer).score(to_example(kwargs), output.response_ids)
        return SpanAgentLoopOutput.with_rewards(output, scored)
