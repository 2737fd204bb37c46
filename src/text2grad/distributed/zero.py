"""ZeRO by DeepSpeed; in its stages 1 and 2 every process holds all weights, and its share of moments and gradients.

DeepSpeed's engine wants to make the step itself, gradients unseen. Here it wears the face of a torch optimiser over the
policy's own parameters: the update looks at a gradient before its step, undoes a step, and saves the moments whole, as
it does without DeepSpeed. Stage 3 has more to divide, see zero3.py.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar, cast

import torch
from accelerate import Accelerator
from accelerate.utils import DeepSpeedPlugin
from torch import Tensor

from text2grad.distributed.learner import Learner
from text2grad.distributed.parts import Part
from text2grad.distributed.processes import Processes
from text2grad.models.policy import Policy
from text2grad.trainer.config import PolicySettings

MOMENTS = ("exp_avg", "exp_avg_sq")


class ZeroLearner(Learner):
    """A learner whose gradients DeepSpeed reduces, divides and clips."""

    @property
    def zero(self) -> ZeroOptimizer:
        return cast(ZeroOptimizer, self.optimizer)

    def backward(self, loss: Tensor, last: bool) -> None:
        self.zero.backward(loss * self.processes.loss_scale, last)

    def clip_gradients(self, max_norm: float) -> float:
        return self.zero.gradient_norm()  # the engine clips when it steps

    def reshard(self) -> None:
        self.zero.reshard()


class ZeroOptimizer:
    """A DeepSpeed engine as a torch optimiser; every process must call every method."""

    last_stage: ClassVar[int] = 2  # a process that is alone is asked to do stage 3 like this
    defaults: ClassVar[dict[str, Any]] = {}  # of DeepSpeed's "zero_optimization"

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
        zero = config["zero_optimization"]
        config["zero_optimization"] = self.defaults | zero | {"stage": min(zero["stage"], self.last_stage)}
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

    def reshard(self) -> None:
        """Drop what passes without a backward have left behind: nothing, where every process holds all weights."""

    def state_dict(self) -> dict[str, Any]:
        """As torch's AdamW has it; moments are whole, or as `whole` understands them."""
        steps = [self._steps(group).clone() for group, entry in enumerate(self.param_groups) for _ in entry["params"]]
        state = {
            index: {"step": steps[index], **{name: self._moment(p, name) for name in MOMENTS}}
            for index, p in enumerate(self._parameters)
        }
        return {"state": state, "param_groups": []}

    @torch.no_grad()
    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over moments, none for zeros, and the weights that are in the policy's parameters now."""
        index = 0
        for group, entry in enumerate(self.param_groups):
            self._set_steps(group, float(saved["state"][index]["step"]) if saved["state"] else 0.0)
            for parameter in entry["params"]:
                self._set_weight(parameter)
                for name in MOMENTS:
                    self._set_moment(parameter, name, saved["state"].get(index, {}).get(name))
                index += 1

    def _set_weight(self, parameter: torch.nn.Parameter) -> None:
        from deepspeed.utils import safe_set_full_fp32_param

        safe_set_full_fp32_param(parameter, parameter.detach())

    def _moment(self, parameter: torch.nn.Parameter, name: str) -> Tensor | Part:
        from deepspeed.utils import safe_get_full_optimizer_state

        moment: Tensor = safe_get_full_optimizer_state(parameter, name)
        return moment

    def _set_moment(self, parameter: torch.nn.Parameter, name: str, value: Any) -> None:
        from deepspeed.utils import safe_set_full_optimizer_state

        moment = torch.zeros_like(parameter) if value is None else value.to(parameter.device)
        safe_set_full_optimizer_state(parameter, moment, name)

    def _flats(self, group: int) -> list[Tensor]:
        """The flat tensors that stand for a group of parameters in DeepSpeed's own optimiser."""
        return list(self._zero.param_groups[group]["params"])

    def _steps(self, group: int) -> Tensor:
        steps: Tensor = self._zero.optimizer.state[self._flats(group)[0]]["step"]
        return steps

    def _set_steps(self, group: int, steps: float) -> None:
        for flat in self._flats(group):
            self._zero.optimizer.state[flat]["step"].fill_(steps)

    def _make_moments(self) -> None:
        """DeepSpeed would make moments at its first step, and then find those of the first group only."""
        from deepspeed.utils import lazy_init_hp_params_optimizer_state

        state = self._zero.optimizer.state
        for number, group in enumerate(self.param_groups):
            (flat,) = self._flats(number)
            state[flat] = zero_moments(flat)
            lazy_init_hp_params_optimizer_state(group["params"], flat, state)


def zero_moments(flat: Tensor) -> dict[str, Tensor]:
    """AdamW's state of a tensor before its first step."""
    return {"step": torch.zeros(())} | {name: torch.zeros_like(flat) for name in MOMENTS}


def make_zero_learner(
    policy: Policy,
    optimizer: torch.optim.AdamW,
    accelerator: Accelerator,
    processes: Processes,
    args: PolicySettings,
    kind: type[ZeroOptimizer] = ZeroOptimizer,
) -> ZeroLearner:
    """Hand the policy and a new optimiser over to DeepSpeed. kind: of the optimiser that comes back."""
    compute = torch.autocast(accelerator.device.type, torch.bfloat16, enabled=args.bf16)
    policy.forward = compute(policy.forward)  # type: ignore[method-assign]
    zero = kind(policy, optimizer, args.max_grad_norm)
    return ZeroLearner(zero.engine, cast(torch.optim.Optimizer, zero), accelerator, processes)
