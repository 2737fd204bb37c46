"""Registers everything with verl; loaded by `import verl` through the entry point group `verl.plugins`."""

from __future__ import annotations

from verl.trainer.ppo.core_algos import register_adv_est

from text2grad.integrations.verl.advantages import VERL_NAMES, advantage_function
from text2grad.integrations.verl.agent_loop import SpanAgentLoop
from text2grad.integrations.verl.reward_manager import SpanRewardManager

__all__ = ["SpanAgentLoop", "SpanRewardManager"]

for verl_name, estimator in VERL_NAMES.items():
    register_adv_est(verl_name)(advantage_function(estimator))
