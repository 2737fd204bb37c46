"""A real vLLM server on the CPU, killed and started again. TEXT2GRAD_VLLM names the program, or it is on the PATH."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from peft import LoraConfig
from support import PROMPTS, Seen, VowelCritic
from vllm_engine import VllmEngine, find_vllm

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.trainer.callbacks import Callback

pytestmark = [
    pytest.mark.slow,
    pytest.mark.model,
    pytest.mark.skipif(find_vllm() is None, reason="no vllm program: set TEXT2GRAD_VLLM (docs/rollouts.md)"),
]


class Restart(Callback):
    """Kills the server after the first step and starts it again; the next rollout has to wait for it."""

    def __init__(self, engine: VllmEngine) -> None:
        self.engine = engine

    def on_step(self, metrics: dict[str, Any]) -> None:
        if metrics["step"] == 1:
            self.engine.stop()
            self.engine.start()


@pytest.mark.parametrize("weight_transfer", ["adapter", "disk"])
def test_the_real_server_draws_from_the_policy_before_and_after_a_restart(
    smollm2: str, tmp_path: Path, weight_transfer: Any
) -> None:
    """Old weights would leave a far wider gap: a step of this size moves log-probabilities by tenths."""
    program = find_vllm()
    assert program is not None
    seen = Seen()
    with VllmEngine(program, smollm2, tmp_path / "vllm.log") as engine:
        args = Text2GradConfig(
            output_dir=tmp_path / "run",
            max_steps=3,
            per_device_train_batch_size=2,
            max_completion_length=12,
            temperature=0.8,
            learning_rate=1e-3,
            bf16=False,
            rollouts="vllm_server",
            vllm_server_base_url=engine.url,
            vllm_server_timeout=400,
            vllm_weight_transfer=weight_transfer,
        )
        lora = LoraConfig(r=8, target_modules="all-linear")
        callbacks = [seen, *([Restart(engine)] if weight_transfer == "adapter" else [])]
        Text2GradTrainer(smollm2, VowelCritic(), args, PROMPTS, peft_config=lora, callbacks=callbacks).train()
    gaps = [metrics["sampling/logp_difference/max"] for metrics in seen.steps]
    assert len(gaps) == 3
    assert max(gaps) < 0.01
