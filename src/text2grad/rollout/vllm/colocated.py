"""An engine on the trainer's own GPU."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from text2grad.errors import UserError
from text2grad.rollout.samplers import SamplingRequest
from text2grad.rollout.sampling import Sampled
from text2grad.rollout.vllm.completions import Completion, TrainedPolicy, sampling_params, to_sampled


class VllmColocated:
    """An engine in a process of its own, which reads the weights from the trainer's GPU memory."""

    def __init__(self, trained: TrainedPolicy, dtype: str, gpu_memory_utilization: float) -> None:
        self._end_ids = trained.end_ids
        self._engine = import_engine()
        name, device = str(trained.model.config.name_or_path), trained.accelerator.device.index or 0
        self._llm = self._engine.start_engine(name, device, dtype, gpu_memory_utilization, trained.max_length)
        self._transfer = self._engine.transfer_to(self._llm, trained.model)

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, request: SamplingRequest) -> Sampled:
        self._transfer.send_weights()
        self._llm.reset_prefix_cache()  # computed with the old weights
        repeated = [list(ids) for ids in prompts for _ in range(num_generations)]
        outputs = self._engine.generate(self._llm, repeated, sampling_params(request, self._end_ids))
        completions = [
            Completion(
                list(output.token_ids),
                [step[token].logprob for token, step in zip(output.token_ids, output.logprobs, strict=True)],
                output.finish_reason,
            )
            for output in outputs
        ]
        return to_sampled(completions, self._end_ids, "the colocated vLLM engine")


def import_engine() -> Any:
    """Import the module that needs the package `vllm`."""
    try:
        return importlib.import_module("text2grad.rollout.vllm.engine")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "vllm":
            raise
        raise UserError(
            "this way to sample through vLLM needs its package; `pip install text2grad[vllm]`, set "
            "vllm_weight_transfer to adapter or disk, or set rollouts to transformers"
        ) from error
