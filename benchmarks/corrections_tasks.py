"""The tasks of corrections_learning.py: copy_fields with a tiny model, and questions of XQuAD with the default model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from copy_fields import ARMS as COPY_ARMS
from copy_fields import OURS, make_base_model
from copy_fields_task import LONGEST_ANSWER, CopyCritic, CorrectingCritic, make_examples

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.critics.base import collect_feedback
from text2grad.schema import Example

# Without rewards, and so without a policy loss: what is left is the correction loss.
NO_SPANS = {"reward_clip": 1e-9, "advantage_normalization": "none", "beta": 0.0}


class Task(NamedTuple):
    """steps, every: of training, and between evaluations. rates: to choose from. heldout: prompts."""

    steps: int
    tuning_steps: int
    every: int
    rates: tuple[float, ...]
    heldout: int


TASKS = {
    "copy_fields": Task(120, 60, 5, (5e-4, 1e-3, 2e-3, 4e-3), 128),
}


def make_trainer(setup: Any) -> tuple[Text2GradTrainer, list[Example], Any]:
    """Return the trainer of a run, the held-out prompts, and the critic that judges them."""
    return make_copy_trainer(setup)


def arm_settings(arm: str) -> dict[str, Any]:
    """Return the settings in which an arm differs; the supervised ones use only the sampling of the trainer."""
    if arm == "corrections":
        return NO_SPANS
    return {"corrections": {"weight": 0.0}} if arm == "spans" else {}


def make_copy_trainer(setup: Any) -> tuple[Text2GradTrainer, list[Example], Any]:
    model, tokenizer = make_base_model(setup.seed)
    settings: dict[str, Any] = {
        "max_steps": setup.steps,
        "per_device_train_batch_size": setup.batch,
        "max_completion_length": LONGEST_ANSWER,
        "learning_rate": setup.rate,
        "beta": 0.01,
        "temperature": 1.0,
        "bf16": False,
        "num_logged_completions": 0,
        "value_learning_rate": 1e-2,
    }
    trainer = Text2GradTrainer(
        copy.deepcopy(model),
        CorrectingCritic(one_fault=setup.faults == "one"),
        Text2GradConfig(
            output_dir=Path("never written"),
            seed=setup.seed,
            **(settings | COPY_ARMS[OURS] | arm_settings(setup.arm)),
        ),
        make_examples(setup.batch * setup.steps, setup.seed),
        processing_class=tokenizer,
        plain_prompts=True,
    )
    return trainer, make_examples(TASKS["copy_fields"].heldout, 1000 + setup.seed), CopyCritic()


def measure_drift(trainer: Text2GradTrainer, task: Task) -> dict[str, float]:
    """How far the model has moved on prompts of another task; nothing where there is none."""
    return {}
