"""transformers' Trainer for the reward model: Accelerate, FSDP, DeepSpeed, resuming and trackers come with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch.utils.data import Sampler
from transformers import Trainer
from transformers.trainer_pt_utils import get_length_grouped_indices

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

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        rows: Any = self.train_dataset if train_dataset is None else train_dataset
        lengths = [len(row["input_ids"]) for row in rows]
        step = self.args.train_batch_size * self.args.gradient_accumulation_steps
        return ByLength(lengths, step, int(self.args.seed), epoch=lambda: int(self.state.epoch or 0))

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
        network.load_state_dict(state, strict=False)


class ByLength(Sampler[int]):
    """Rows of like length side by side, in another order each epoch.

    The order hangs on the seed and the epoch alone: a run that is resumed meets the rows that it would have met.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int, epoch: Callable[[], int]) -> None:
        self._lengths = list(lengths)
        self._batch_size = batch_size
        self._seed = seed
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        key = int(np.random.SeedSequence([self._seed, self._epoch()]).generate_state(1)[0])
        generator = torch.Generator().manual_seed(key)
        order: list[int] = get_length_grouped_indices(  # type: ignore[no-untyped-call]
            self._lengths, self._batch_size, generator=generator
        )
        return iter(order)


def _trained(network: torch.nn.Module) -> list[str]:
    return sorted(name for name, parameter in network.named_parameters() if parameter.requires_grad)
