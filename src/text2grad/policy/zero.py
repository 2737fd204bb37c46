"""ZeRO's stages 1 and 2 by DeepSpeed: every process holds all weights, and its share of moments and gradients.

DeepSpeed's engine wants to make the step itself, gradients unseen. Here it wears the face of a torch optimiser over the
policy's own parameters: the update looks at a gradient before its step, undoes a step, and saves the moments whole, as
it does without DeepSpeed.
"""

from __future__ import annotations

import logging
from typing import Any, cast

import torch
from accelerate import Accelerator
from accelerate.utils import DeepSpeedPlugin
from torch import Tensor

from text2grad.policy.config import PolicySettings
from text2grad.policy.learner import Learner
from text2grad.policy.model import Policy
from text2grad.policy.processes import Processes

MOMENTS = ("exp_avg", "exp_avg_sq")


def make_zero_learner(
    policy: Policy,
    optimizer: torch.optim.AdamW,
    accelerator: Accelerator,
    processes: Processes,
    args: PolicySettings,
) -> ZeroLearner:
    """Hand the policy and a new optimiser over to DeepSpeed."""
    compute = torch.autocast(accelerator.device.type, torch.bfloat16, enabled=args.bf16)
    policy.forward = compute(policy.forward)  # type: ignore[method-assign]
    zero = ZeroOptimizer(policy, optimizer, args.max_grad_norm)
    return ZeroLearner(zero.engine, cast(torch.optim.Optimizer, zero), accelerator, processes)


class ZeroLearner(Learner):
    """A learner whose gradients DeepSpeed reduces, divides and clips."""

    @property
    def zero(self) -> ZeroOptimizer:
        return cast(ZeroOptimizer, self.optimizer)

    def backward(self, loss: Tensor, last: bool) -> None:
        self.zero.backward(loss * self.processes.loss_scale, last)

    def clip_gradients(self, max_norm: float) -> float:
        return self.zero.gradient_norm()  # the engine clips when it steps


class ZeroOptimizer:
    """A DeepSpeed engine as a torch optimiser; every process must call every method."""

    def __init__(self, policy: Policy, optimizer: torch.optim.AdamW, max_grad_norm: float) -> None:
        import deepspeed

        deepspeed.utils.logger.setLevel(logging.WARNING)
        self.param_groups: list[dict[str, Any]] = [
            {**group, "params": list(group["params"])} for group in optimizer.param_groups
        ]
        config = dict(DeepSpeedPlugin().deepspeed_config)  # as the launcher's settings describe it
        config.pop("train_batch_size", None)
        config |= {
            "train_micro_batch_size_per_gpu": 1,  # micro-batches are ours: by tokens, as many as there are
            "gradient_accumulation_steps": 1,
            "gradient_clipping": max_grad_norm,
            "zero_allow_untested_optimizer": True,
        }
        self.engine, self._zero, *_ = deepspeed.initialize(model=policy, optimizer=optimizer, config=config)
        self._pending = False
        self._make_moments()

    @property
    def _parameters(self) -> list[torch.nn.Parameter]:
        return [p for group in self.param_groups for p in group["params"]]

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add to the gradients. last: no more will be added before the step."""
        self.engine.set_gradient_accumulation_boundary(last)
        self.engine.backward(loss, scale_wrt_gas=False)
        self._pending = last

    def gradient_norm(self) -> float:
        """Before clipping, over all processes."""
        from deepspeed.utils import safe_get_full_grad

        return float(sum(safe_get_full_grad(p).double().square().sum() for p in self._parameters) ** 0.5)

    def step(self) -> None:
        for group, inner in zip(self.param_groups, self._zero.param_groups, strict=True):
            inner["lr"] = group["lr"]
        self.engine.step()
        self._pending = False

    def zero_grad(self) -> None:
        """Forget gradients that no step was made with."""
        from deepspeed.utils import safe_set_full_grad

        if self._pending:
            for parameter in self._parameters:
                safe_set_full_grad(parameter, torch.zeros_like(parameter))
        self._pending = False

    def state_dict(self) -> dict[str, Any]:
        """As torch's AdamW has it, whole."""
        from deepspeed.utils import safe_get_full_optimizer_state

        steps = [self._steps(group).clone() for group, entry in enumerate(self.param_groups) for _ in entry["params"]]
        state = {
            index: {"step": steps[index]} | {name: safe_get_full_optimizer_state(p, name) for name in MOMENTS}
            for index, p in enumerate(self._parameters)
        }
        return {"state": state, "param_groups": []}

    @torch.no_grad()
    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over whole moments, none for zeros, and the weights that are in the policy's parameters now."""
        from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

        index = 0
        for group, entry in enumerate(self.param_groups):
            self._steps(group).fill_(float(saved["state"][index]["step"]) if saved["state"] else 0.0)
            for parameter in entry["params"]:
                safe_set_full_fp32_param(parameter, parameter.detach())
                moments = saved["state"].get(index, dict.fromkeys(MOMENTS, torch.zeros_like(parameter)))
                for name in MOMENTS:
                    safe_set_full_optimizer_state(parameter, moments[name].to(parameter.device), name)
                index += 1

    def _steps(self, group: int) -> Tensor:
        (flat,) = self._zero.param_groups[group]["params"]
        steps: Tensor = self._zero.optimizer.state[flat]["step"]
        return steps

    def _make_moments(self) -> None:
        """DeepSpeed would make moments at its first step, and then find those of the first group only."""
        from deepspeed.utils import lazy_init_hp_params_optimizer_state

        state = self._zero.optimizer.state
        for group, inner in zip(self.param_groups, self._zero.param_groups, strict=True):
            (flat,) = inner["params"]
            state[flat] = {"step": torch.zeros(())} | {name: torch.zeros_like(flat) for name in MOMENTS}
            lazy_init_hp_params_optimizer_state(group["params"], flat, state)
