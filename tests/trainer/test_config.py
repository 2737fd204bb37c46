"""What the settings of the optimiser settle by themselves."""

from __future__ import annotations

import pytest

from text2grad.trainer.config import PolicySettings


@pytest.mark.parametrize(("device", "checkpointing", "tokens"), [("cpu", False, 4096), ("cuda", True, 32_768)])
def test_on_a_gpu_activations_are_computed_again_and_more_tokens_pass_at_once(
    device: str, checkpointing: bool, tokens: int
) -> None:
    settled = PolicySettings().on(device)
    assert settled.gradient_checkpointing is checkpointing
    assert settled.tokens_per_batch == tokens


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_is_set_stays(device: str) -> None:
    settled = PolicySettings(gradient_checkpointing=False, max_tokens_per_batch=77).on(device)
    assert settled.gradient_checkpointing is False
    assert settled.tokens_per_batch == 77
