"""How the policy's weights reach a vLLM server.

- `nccl`: from GPU to GPU; the trainer needs the package `vllm`, and the server GPUs of its own.
- `adapter`: a LoRA adapter is saved in the run folder and the server loads it from there.
- `disk`: all weights, merged with an adapter, are saved in the run folder and the server reloads them from there.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Literal, Protocol

from peft import PeftModel
from safetensors.torch import save_file

from text2grad.errors import UserError
from text2grad.rollout.merged_weights import base_parameters, merged_weights
from text2grad.rollout.vllm.colocated import import_engine
from text2grad.rollout.vllm.completions import TrainedPolicy
from text2grad.rollout.vllm.connection import Connection, ServerDownError

TransferName = Literal["nccl", "adapter", "disk"]


class WeightTransfer(Protocol):
    """Gives the server the policy's weights."""

    def connect(self) -> None:
        """Prepare a server that has just been started; raise UserError where it lacks what is needed."""
        ...

    def send(self, served_model: str) -> str:
        """Send the current weights. Returns the name of the model to sample from. served_model: of the base model."""
        ...


def server_command(transfer: TransferName, model: Any) -> str:
    """Return the command that starts a server for a way to transfer weights."""
    serve = "vllm serve MODEL --logprobs-mode processed_logprobs"
    if transfer == "adapter":
        rank = max((config.r for config in getattr(model, "peft_config", {}).values()), default=16)
        return f"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 {serve} --enable-lora --max-lora-rank {rank}"
    backend = """ --weight-transfer-config '{"backend": "nccl"}'""" if transfer == "nccl" else ""
    return f"VLLM_SERVER_DEV_MODE=1 {serve}{backend}"


class NcclTransfer:
    """Over NCCL, with vLLM's own client."""

    def __init__(self, connection: Connection, trained: TrainedPolicy) -> None:
        self._connection, self._model = connection, trained.model
        self._engine = import_engine()
        self._transfer: Any = None

    def connect(self) -> None:
        num_workers = self._connection.call("/get_world_size")["world_size"]
        self._transfer = self._engine.transfer_to_server(self._connection.url, self._model, num_workers)

    def send(self, served_model: str) -> str:
        paused(self._connection, self._send_weights)
        return served_model

    def _send_weights(self) -> None:
        try:
            self._transfer.send_weights()
        except OSError as error:
            if not self._connection.is_healthy():
                raise ServerDownError(str(error)) from error
            raise UserError(
                f"the vLLM server at {self._connection.url} did not accept the policy's weights ({error}); serve the "
                f"model that is trained: {self._connection.command}"
            ) from error


class AdapterTransfer:
    """As a LoRA adapter with a new name each time: the server's prefix cache is keyed by it, so no entry is stale."""

    def __init__(self, connection: Connection, trained: TrainedPolicy) -> None:
        if not isinstance(trained.model, PeftModel):
            raise UserError("vllm_weight_transfer is adapter, but all weights are trained; set it to disk or nccl")
        base_parameters(trained.model)  # rejects what is not plain LoRA
        self._connection, self._model, self._folder = connection, trained.model, trained.folder / "adapter"
        self._run, self._version = uuid.uuid4().hex[:8], 0
        self._loaded: str | None = None

    def connect(self) -> None:
        self._loaded = None
        self.send("")

    def send(self, served_model: str) -> str:
        self._model.save_pretrained(str(self._folder), save_embedding_layers=False)
        self._version += 1
        name = f"text2grad-{self._run}-{self._version}"
        self._connection.send("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(self._folder.resolve())})
        if self._loaded is not None:
            self._connection.send("/v1/unload_lora_adapter", {"lora_name": self._loaded})
        self._loaded = name
        return name


class DiskTransfer:
    """All weights, through a folder that the server can read."""

    def __init__(self, connection: Connection, trained: TrainedPolicy) -> None:
        base_parameters(trained.model)  # rejects what cannot be merged
        require_untied_or_frozen_embeddings(trained.model)
        self._connection, self._model, self._folder = connection, trained.model, trained.folder / "weights"

    def connect(self) -> None:
        self._connection.call("/is_paused")  # a route of VLLM_SERVER_DEV_MODE

    def send(self, served_model: str) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        weights = {name: weight.contiguous() for name, weight in merged_weights(self._model)}
        save_file(weights, self._folder / "model.safetensors", metadata={"format": "pt"})
        paused(self._connection, self._reload)
        return served_model

    def _reload(self) -> None:
        arguments = {"weights_path": str(self._folder.resolve())}
        self._connection.send("/collective_rpc", {"method": "reload_weights", "kwargs": arguments})


TRANSFERS: dict[TransferName, Callable[[Connection, TrainedPolicy], WeightTransfer]] = {
    "nccl": NcclTransfer,
    "adapter": AdapterTransfer,
    "disk": DiskTransfer,
}


def require_untied_or_frozen_embeddings(model: Any) -> None:
    """Reject the training of embeddings that are the output layer too: vLLM reloads them in one of the two places only.

    Measured with vLLM 0.32 on a CPU, where the output layer keeps a packed copy.
    """
    if model.config.tie_word_embeddings and model.get_input_embeddings().weight.requires_grad:
        raise UserError(
            "vllm_weight_transfer is disk, but the embeddings that are trained are tied to the output layer, which "
            "vLLM does not reload with them; train LoRA, or a copy of the model that was saved with "
            "tie_word_embeddings false"
        )


def paused(connection: Connection, update: Callable[[], None]) -> None:
    """Update the weights of a paused server; pausing also drops the cache of the old weights."""
    connection.call("/pause", {})
    try:
        update()
    finally:
        connection.call("/resume", {})  # a paused server would block the next run
