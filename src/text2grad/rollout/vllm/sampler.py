"""The sampler that the setting `rollouts` names."""

from __future__ import annotations

from typing import Literal

from accelerate import Accelerator

from text2grad.errors import UserError
from text2grad.rollout.samplers import Sampler
from text2grad.rollout.vllm.colocated import VllmColocated
from text2grad.rollout.vllm.completions import TrainedPolicy
from text2grad.rollout.vllm.connection import Connection
from text2grad.rollout.vllm.server import VllmServer
from text2grad.rollout.vllm.transfer import TRANSFERS, TransferName, server_command


def vllm_sampler(
    rollouts: Literal["vllm_server", "vllm_colocated"],
    trained: TrainedPolicy,
    *,
    temperature: float,
    bf16: bool,
    server_base_url: str,
    server_timeout: float,
    weight_transfer: TransferName,
    gpu_memory_utilization: float,
) -> Sampler:
    """Return the sampler; for the settings see `PolicySettings`."""
    if trained.accelerator.num_processes > 1:
        raise UserError(
            f"rollouts: {rollouts} serves one training process, but {trained.accelerator.num_processes} were "
            f"launched; set rollouts to transformers, or start one process"
        )
    if rollouts == "vllm_colocated":
        require_gpu(trained.accelerator, "rollouts: vllm_colocated", "set rollouts to vllm_server or transformers")
        return VllmColocated(trained, "bfloat16" if bf16 else "float32", gpu_memory_utilization)
    if weight_transfer == "nccl":
        require_gpu(trained.accelerator, "vllm_weight_transfer: nccl", "set vllm_weight_transfer to adapter or disk")
    connection = Connection(server_base_url, server_timeout, server_command(weight_transfer, trained.model))
    return VllmServer(connection, trained, TRANSFERS[weight_transfer](connection, trained), temperature)


def require_gpu(accelerator: Accelerator, setting: str, remedy: str) -> None:
    """Reject a trainer on the CPU where weights are sent from GPU to GPU."""
    if accelerator.device.type != "cuda":
        raise UserError(f"{setting} needs the trainer on a GPU; {remedy}")
