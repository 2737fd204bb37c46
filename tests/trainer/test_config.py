"""Settings that are resolved from others."""

from __future__ import annotations

import pytest

from text2grad.trainer.config import PolicySettings


@pytest.mark.parametrize(("device", "checkpointing", "tokens"), [("cpu", False, 4096), ("cuda", True, 32_768)])
def test_a_gpu_uses_gradient_checkpointing_and_larger_micro_batches(
    device: str, checkpointing: bool, tokens: int
) -> None:
    resolved = PolicySettings().for_device(device)
    assert resolved.gradient_checkpointing is checkpointing
    assert resolved.tokens_per_batch == tokens


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_explicit_settings_win(device: str) -> None:
    resolved = PolicySettings(gradient_checkpointing=False, max_tokens_per_batch=77).for_device(device)
    assert resolved.gradient_checkpointing is False
    assert resolved.tokens_per_batch == 77
