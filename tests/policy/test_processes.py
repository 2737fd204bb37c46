"""One process and two must do the same. The processes are real and talk over gloo."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from processes_support import launch, train
from safetensors.torch import load_file

from text2grad.runs import RunFolder


def curves(folder: Path) -> list[dict[str, Any]]:
    lines = RunFolder(folder).metrics.read_text().splitlines()
    clocks = ("seconds", "tokens_per_second")
    return [{k: v for k, v in json.loads(line).items() if not k.startswith(clocks)} for line in lines]


def assert_same_run(one: Path, other: Path) -> None:
    for name in ("policy", "optimizer"):
        expected, found = (load_file(RunFolder(f).checkpoint / f"{name}.safetensors") for f in (one, other))
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    for expected, found in zip(curves(one), curves(other), strict=True):
        words = {name for name, value in expected.items() if not isinstance(value, int | float)}
        assert [found.pop(name) for name in words] == [expected.pop(name) for name in words]
        assert found == pytest.approx(expected, abs=1e-4, rel=1e-4)
    final = RunFolder(one).final
    for path in final.glob("*.safetensors"):
        expected, found = load_file(path), load_file(RunFolder(other).final / path.name)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("lora", [True, False])
def test_two_processes_sample_and_learn_as_one_does(tiny_model: Path, tmp_path: Path, lora: bool, sharded: bool) -> None:
    train(tiny_model, tmp_path / "one", 1, lora)
    assert launch(train, tiny_model, tmp_path / "two", 2, lora, sharded=sharded) == [0, 0]
    assert_same_run(tmp_path / "one", tmp_path / "two")
    assert math.isfinite(curves(tmp_path / "two")[-1]["grad_norm"])
    texts = [RunFolder(tmp_path / name).samples.read_text().splitlines() for name in ("one", "two")]
    said = [[json.loads(line)["completion"] for line in lines] for lines in texts]
    assert said[0] == said[1]
