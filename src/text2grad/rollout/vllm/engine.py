"""All calls into the package `vllm`; imported only where it is installed (see colocated.py).

Written against the documentation of vLLM 0.32: weight transfer, offline inference, engine arguments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from torch import Tensor
from vllm import LLM, SamplingParams
from vllm.config import WeightTransferConfig
from vllm.distributed.weight_transfer import (
    HTTPVLLMWeightSyncClient,
    ParamMeta,
    WeightSource,
    WeightTransferTrainerFactory,
)
from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo
from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo
from vllm.utils.network_utils import get_ip, get_open_port

from text2grad.rollout.merged_weights import base_parameters, merged_weights


class PolicySource(WeightSource):  # type: ignore[misc]
    """A policy's weights in vLLM's interface: metadata first, then the weights."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def metadata(self) -> list[Any]:
        return [ParamMeta(e.name, e.parameter.dtype, tuple(e.parameter.shape)) for e in base_parameters(self._model)]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        return merged_weights(self._model)


class ColocatedClient:
    """The four calls of a weight update, for an engine in this process."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._llm.init_weight_transfer_engine({"init_info": init_info})

    def start_weight_update(self) -> None:
        self._llm.start_weight_update()

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self._llm.update_weights({"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._llm.finish_weight_update(weight_version)


def transfer_to_server(url: str, model: Any, num_workers: int) -> Any:
    """Return a transfer over NCCL; `send_weights()` sends. num_workers: processes of the server that hold weights."""
    info = NCCLTrainerInitInfo(
        master_address=get_ip(), master_port=get_open_port(), world_size=num_workers + 1, rank=0, packed=True
    )
    client = HTTPVLLMWeightSyncClient(url)
    return WeightTransferTrainerFactory.trainer_init(init_info=info, client=client, source=PolicySource(model))


def transfer_to(llm: Any, model: Any) -> Any:
    """Return a transfer through shared GPU memory; `send_weights()` sends."""
    info = IPCTrainerInitInfo(rank=0, packed=True)
    return WeightTransferTrainerFactory.trainer_init(
        init_info=info, client=ColocatedClient(llm), source=PolicySource(model)
    )


def start_engine(name: str, device: int, dtype: str, gpu_memory_utilization: float, max_length: int) -> Any:
    """Start an engine on the trainer's GPU, in a process of its own.

    max_length: tokens of a prompt with its completion.
    """
    # Handles to GPU memory are pickled, between this process and its own child only.
    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
    return LLM(
        model=name,
        dtype=dtype,
        device_ids=[device],
        gpu_memory_utilization=gpu_memory_utilization,
        max_model_len=max_length,
        logprobs_mode="processed_logprobs",  # of logits / temperature
        weight_transfer_config=WeightTransferConfig(backend="ipc"),
    )


def generate(llm: Any, prompts: list[list[int]], params: list[dict[str, Any]]) -> list[Any]:
    """Return one `CompletionOutput` per prompt, without text."""
    parameters = [SamplingParams(**values, detokenize=False) for values in params]
    outputs = llm.generate([{"prompt_token_ids": ids} for ids in prompts], parameters, use_tqdm=False)
    return [output.outputs[0] for output in outputs]
