"""A compiled policy is the same policy: the same scores, the same update, the same names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from support import MakeTrainer
from torch import nn

from text2grad import Text2GradTrainer
from text2grad.errors import UserError
from text2grad.models import backbone
from text2grad.models.backbone import BackboneCompiler, has_cxx_compiler
from text2grad.models.loading import load_model
from text2grad.models.policy import Policy

needs_compiler = pytest.mark.skipif(not has_cxx_compiler(), reason="needs a C++ compiler")
COMPARED = ("policy_loss", "value_loss", "entropy", "approx_kl", "grad_norm", "kl", "sampling/logp_difference/mean")


class Doubles(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


class Wrapped(nn.Module):
    """As `torch.compile` returns it: a module with the original inside."""

    def __init__(self, original: nn.Module) -> None:
        super().__init__()
        self._orig_mod = original

    def forward(self, **inputs: Any) -> Any:
        return self._orig_mod(**inputs)


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[nn.Module]:
    """What was compiled; `torch.compile` itself takes half a minute."""
    seen: list[nn.Module] = []

    def record(module: nn.Module, dynamic: bool) -> nn.Module:
        assert dynamic
        seen.append(module)
        return Wrapped(module)

    monkeypatch.setattr(torch, "compile", record)
    monkeypatch.setattr(backbone, "has_cxx_compiler", lambda: True)
    return seen


def test_each_backbone_is_compiled_once_and_only_if_enabled(compiles: list[nn.Module]) -> None:
    first, second = Doubles(), Doubles()
    assert BackboneCompiler(False).get(first) is first
    compiler = BackboneCompiler(True)
    assert compiler.get(first) is compiler.get(first) is not compiler.get(second)
    assert compiles == [first, second]


def test_names_of_weights_are_those_without_compilation(
    make_trainer: MakeTrainer, compiles: list[nn.Module], tiny_model: Path
) -> None:
    """And a checkpoint of the one is one of the other."""
    trainer = make_trainer(torch_compile=True, max_steps=1)
    trainer.train()
    assert compiles
    assert not any("orig_mod" in name for name in trainer.policy.state_dict())
    assert list(trainer.policy.trainable()) == list(make_trainer("plain").policy.trainable())
    resumed = make_trainer(max_steps=2)
    resumed.train(resume=True)
    assert resumed.state.step == 2


def test_sampling_is_not_compiled(compiles: list[nn.Module], make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(torch_compile=True)
    rollout = trainer.rollout(1)
    assert not compiles
    trainer.score(rollout)
    assert len(compiles) == 1


def test_a_missing_compiler_is_reported(monkeypatch: pytest.MonkeyPatch, tiny_model: Path) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(UserError, match="torch_compile is set but there is no C\\+\\+ compiler; install"):
        Policy(load_model(tiny_model), torch_compile=True)


def stepped(trainer: Text2GradTrainer) -> list[float]:
    """Return the metrics of two steps; the second depends on the first one's update."""
    return [metrics[name] for metrics in (trainer.step(1)[0], trainer.step(2)[0]) for name in COMPARED]


@pytest.mark.slow
@needs_compiler
@pytest.mark.filterwarnings("default")  # inductor's own
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("lora", [False, True])
def test_losses_agree(make_trainer: MakeTrainer, lora: bool, checkpointing: bool) -> None:
    """Two micro-batches, one of them a single row; about a minute each."""
    torch.compiler.reset()
    settings = {"lora": lora, "gradient_checkpointing": checkpointing, "max_tokens_per_batch": 100}
    plain, compiled = (make_trainer(f"{on}", torch_compile=on, num_iterations=2, **settings) for on in (False, True))
    metrics = stepped(compiled)
    assert all(map(math.isfinite, metrics))
    assert metrics == pytest.approx(stepped(plain), abs=1e-4)
