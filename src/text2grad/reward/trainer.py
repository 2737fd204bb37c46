"""transformers' Trainer for the reward model: Accelerate, FSDP, DeepSpeed, resuming and trackers come with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from transformers import Trainer

from text2grad.errors import UserError

WEIGHTS_FILE = "model.safetensors"  # the name that the trainer looks for


class SpanRewardTrainer(Trainer):
    """Logs both losses, and keeps only what is trained in its checkpoints."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.model_accepts_loss_kwargs = False  # the loss is a mean over the micro-batch
        self._parts: dict[str, list[torch.Tensor]] = {"head_loss": [], "lm_loss": []}

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        outputs = model(**inputs)
        for name, values in self._parts.items():
            values.append(outputs[name])
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        for name, values in self._parts.items():
            if values and "loss" in logs:
                logs[name] = float(torch.stack(values).mean())
                values.clear()
        super().log(logs, start_time)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        network: Any = self.model
        state = network.state_dict() if state_dict is None else state_dict
        kept = {name: state[name].contiguous() for name in _trained(network) if name in state}
        safetensors.torch.save_file(kept, folder / WEIGHTS_FILE, metadata={"format": "pt"})

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        network: Any = model or self.model
        state = safetensors.torch.load_file(Path(resume_from_checkpoint) / WEIGHTS_FILE)
        missing = [name for name in _trained(network) if name not in state]
        if missing:
            raise UserError(f"{resume_from_checkpoint} was made with other settings: it lacks {missing[0]}")
        network.load_state_dict(state, strict=False)


def _trained(network: torch.nn.Module) -> list[str]:
    return sorted(name for name, parameter in network.named_parameters() if parameter.requires_grad)
