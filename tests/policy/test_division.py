from __future__ import annotations

import pytest

from text2grad.errors import UserError
from text2grad.policy.division import wanted_division

DEEPSPEED = {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"}
STAGE_3 = DEEPSPEED | {"ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"}
FSDP2 = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}


@pytest.mark.parametrize(
    ("variables", "division"), [({}, "none"), (FSDP2, "fsdp2"), (DEEPSPEED, "zero"), (STAGE_3, "zero3")]
)
def test_the_launcher_says_what_is_divided(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], division: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wanted_division() == division


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (FSDP2 | {"FSDP_VERSION": "1"}, "fsdp_version is 1"),
        (FSDP2 | {"FSDP_OFFLOAD_PARAMS": "true"}, "fsdp_offload_params is not supported"),
        (FSDP2 | {"FSDP_CPU_RAM_EFFICIENT_LOADING": "true"}, "fsdp_cpu_ram_efficient_loading is not supported"),
        (FSDP2 | {"FSDP_ACTIVATION_CHECKPOINTING": "true"}, "gradient_checkpointing instead"),
        (DEEPSPEED | {"ACCELERATE_DEEPSPEED_ZERO_STAGE": "0"}, "zero_stage 0 is not supported"),
        (DEEPSPEED | {"ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE": "cpu"}, "offload_optimizer_device"),
        (STAGE_3 | {"ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE": "cpu"}, "offload_param_device"),
    ],
)
def test_what_is_not_supported_is_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=message):
        wanted_division()
