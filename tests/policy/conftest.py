"""A trainer factory for the optimiser's tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from peft import LoraConfig
from support import PROMPTS, MakeTrainer, VowelCritic

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.policy.callbacks import Callback
from text2grad.schema import Example


@pytest.fixture
def make_trainer(tiny_model: Path, tmp_path: Path) -> MakeTrainer:
    def make(
        folder: str = "run",
        critic: Any = None,
        lora: bool = True,
        eval_dataset: Sequence[Example] = (),
        callbacks: Sequence[Callback] = (),
        **settings: Any,
    ) -> Text2GradTrainer:
        defaults: dict[str, Any] = {
            "max_steps": 3,
            "per_device_train_batch_size": 4,
            "max_completion_length": 10,
            "learning_rate": 1e-2,
            "bf16": False,
        }
        return Text2GradTrainer(
            model=tiny_model,
            critic=critic or VowelCritic(),
            args=Text2GradConfig(output_dir=tmp_path / folder, **(defaults | settings)),
            train_dataset=PROMPTS,
            peft_config=LoraConfig(r=4, lora_alpha=8, target_modules="all-linear") if lora else None,
            eval_dataset=eval_dataset,
            callbacks=callbacks,
        )

    return make
