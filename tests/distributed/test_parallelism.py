from __future__ import annotations

import json
from pathlib import Path

import pytest

from text2grad.distributed.parallelism import requested_parallelism
from text2grad.errors import UserError

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
    assert requested_parallelism() == division


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
        requested_parallelism()


@pytest.mark.parametrize(
    ("setting", "value"), [("zero_quantized_nontrainable_weights", True), ("zero_hpz_partition_size", 2)]
)
def test_weights_in_more_than_plain_parts_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str, value: object
) -> None:
    file = tmp_path / "deepspeed.json"
    file.write_text(json.dumps({"zero_optimization": {"stage": 3, setting: value}}))
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_CONFIG_FILE", str(file))
    with pytest.raises(UserError, match=f"{setting} is not supported"):
        requested_parallelism()
