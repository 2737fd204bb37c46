"""transformers' Trainer for the reward model, which brings Accelerate, FSDP, checkpoints and trackers."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np
import safetensors.torch
import torch
from torch.utils.data import Sampler
from transformers import Trainer, TrainerCallback, trainer_pt_utils

WEIGHTS_FILE = "model.safetensors"  # the name that the Trainer looks for


class SpanRewardTrainer(Trainer):
    """Logs both losses, groups rows by length, and saves only trainable weights in its checkpoints."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.model_accepts_loss_kwargs = False  # the loss is a mean over the micro-batch
        self._losses: dict[str, list[torch.Tensor]] = {"head_loss": [], "lm_loss": []}

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        outputs = model(**inputs)
        for name, values in self._losses.items():
            values.append(outputs[name])
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        for name, values in self._losses.items():
            if values and "loss" in logs:
                logs[name] = float(torch.stack(values).mean())
                values.clear()
        super().log(logs, start_time)

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        rows: Any = self.train_dataset if train_dataset is None else train_dataset
        lengths = [len(row["input_ids"]) for row in rows]
        batch_size = self.args.train_batch_size * self.args.gradient_accumulation_steps
        return LengthGroupedSampler(lengths, batch_size, int(self.args.seed), epoch=lambda: int(self.state.epoch or 0))

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        network: Any = self.model
        state = network.state_dict() if state_dict is None else state_dict
        trainable = sorted(name for name, parameter in network.named_parameters() if parameter.requires_grad)
        kept = {name: state[name].contiguous() for name in trainable if name in state}
        safetensors.torch.save_file(kept, folder / WEIGHTS_FILE, metadata={"format": "pt"})

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        network: Any = model or self.model
        state = safetensors.torch.load_file(Path(resume_from_checkpoint) / WEIGHTS_FILE)
        network.load_state_dict(state, strict=False)


class LengthGroupedSampler(trainer_pt_utils.LengthGroupedSampler):
    """Groups rows of similar length, in a different order each epoch.

    The order depends on seed and epoch alone, so that a resumed run sees the same rows as an uninterrupted one.
    """

    def __init__(self, lengths: list[int], batch_size: int, seed: int, epoch: Callable[[], int]) -> None:
        super().__init__(batch_size, lengths=lengths, generator=torch.Generator())
        self._seed = seed
        self._epoch = epoch

    def __iter__(self) -> Iterator[int]:
        key = int(np.random.SeedSequence([self._seed, self._epoch()]).generate_state(1)[0])
        self.generator.manual_seed(key)
        order: Iterator[int] = super().__iter__()  # type: ignore[no-untyped-call]
        return order


class StopOnSignal(TrainerCallback):
    """Saves a checkpoint and stops after the current step on SIGINT or SIGTERM; a second signal interrupts at once.

    A context manager that installs the signal handlers, which Python allows in the main thread only. With several
    processes each would stop at a different step and wait for the others, so `enabled` has to be false there.
    """

    def __init__(self, enabled: bool) -> None:
        self.requested = False
        self._enabled = enabled and threading.current_thread() is threading.main_thread()
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM) if self._enabled else ():
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.requested:
            control.should_save = control.should_training_stop = True

    def _handle(self, _: int, __: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        print("Saving a checkpoint after this step; press Ctrl-C again to stop at once.", file=sys.stderr, flush=True)
