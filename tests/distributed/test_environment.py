from __future__ import annotations

import pytest

from text2grad.distributed.environment import (
    is_local_main_process,
    is_main_process,
    requested_parallelism,
    world_size,
)
from text2grad.errors import UserError

FSDP2 = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}


def test_rank_and_world_size_come_from_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (world_size(), is_main_process(), is_local_main_process()) == (1, True, True)
    for name, value in {"RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    assert (world_size(), is_main_process(), is_local_main_process()) == (4, False, True)


@pytest.mark.parametrize(("variables", "parallelism"), [({}, "ddp"), (FSDP2, "fsdp2")])
def test_the_launcher_requests_the_parallelism(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], parallelism: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert requested_parallelism() == parallelism


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (FSDP2 | {"FSDP_VERSION": "1"}, "fsdp_version is 1"),
        (FSDP2 | {"FSDP_OFFLOAD_PARAMS": "true"}, "fsdp_offload_params is not supported"),
        (FSDP2 | {"FSDP_CPU_RAM_EFFICIENT_LOADING": "true"}, "fsdp_cpu_ram_efficient_loading is not supported"),
        (FSDP2 | {"FSDP_ACTIVATION_CHECKPOINTING": "true"}, "gradient_checkpointing instead"),
        ({"ACCELERATE_USE_DEEPSPEED": "true"}, r"does not support DeepSpeed.*config/accelerate/fsdp2\.yaml"),
    ],
)
def test_unsupported_settings_are_rejected(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=message):
        requested_parallelism()
