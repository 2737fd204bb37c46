"""What is peculiar to ZeRO's stage 3; test_processes.py has what it shares with the others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest
from processes_support import launch, needs_deepspeed, train, trainer

from text2grad.checkpoint.run_folder import RunFolder
from text2grad.distributed.sharding import own_share
from text2grad.distributed.zero3 import make_zero3_learner
from text2grad.errors import UserError
from text2grad.models import logprobs
from text2grad.trainer.config import PolicySettings


def report_held(model: Path, folder: Path) -> None:
    """Write how many weights this process holds after a step: of the policy, of its reference, and gathered ones."""
    made = trainer(model, folder / "run", 2, lora=False, max_steps=1)
    made.train()
    policy, reference = made.policy.model, made.policy._reference
    held = [sum(own_share(p).numel() for p in part.parameters()) for part in (policy, reference)]
    gathered = sum(p.numel() for p in made.policy.parameters())
    (folder / f"held.{os.environ['RANK']}").write_text(json.dumps([*held, gathered]))


@needs_deepspeed
def test_each_process_holds_its_share_of_policy_and_reference(tiny_model: Path, tmp_path: Path) -> None:
    assert launch(report_held, tiny_model, tmp_path, division="zero3") == [0, 0]
    weights = sum(p.numel() for p in trainer(tiny_model, tmp_path / "one", 1, lora=False).policy.model.parameters())
    for rank in range(2):
        assert json.loads((tmp_path / f"held.{rank}").read_text()) == [weights // 2, weights // 2, 0]


def train_in_small_chunks(model: Path, folder: Path, settings: dict[str, Any]) -> None:
    logprobs.LOGITS_AT_ONCE = 3 * 320  # the vocabulary's size: three tokens
    train(model, folder, 2, lora=False, **settings)


@needs_deepspeed
def test_processes_may_need_different_numbers_of_chunks(tiny_model: Path, tmp_path: Path) -> None:
    """The output layer is called for each of them, and must not wait for a process that calls it less often."""
    settings = {"share_prompts": False, "max_tokens_per_batch": 60, "max_steps": 1}
    assert launch(train_in_small_chunks, tiny_model, tmp_path / "two", settings, division="zero3") == [0, 0]
    train(tiny_model, tmp_path / "one", 1, lora=False, **settings)
    one, two = (json.loads(RunFolder(tmp_path / name).metrics.read_text()) for name in ("one", "two"))
    assert two["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-4)


def test_compilation_is_refused() -> None:
    unused = cast(Any, None)
    with pytest.raises(UserError, match=r"torch_compile does not go with .* leave it out"):
        make_zero3_learner(unused, unused, unused, unused, PolicySettings(torch_compile=True))
