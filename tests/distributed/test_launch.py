"""The command under `accelerate launch`, with the packaged configurations, on the CPU."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from support import PROMPTS

import text2grad
from text2grad.cli.display import TerminalDisplay
from text2grad.config.run import load_config
from text2grad.pipeline import run
from text2grad.schema import Example, write_examples

TESTS = Path(__file__).parents[1]
CONFIGS = Path(text2grad.__file__).parent / "config" / "accelerate"
SOURCE = Path(text2grad.__file__).parent.parent


def free_port() -> int:
    """Below those that the system hands out: until it is used, no connection of another test can be given it."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def run_launcher(kind: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `text2grad` with these arguments on two processes."""
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(CONFIGS / f"{kind}.yaml")]
    launcher += ["--num_processes", "2", "--main_process_port", str(free_port())]
    command = [*launcher, "-m", "text2grad", *map(str, arguments)]
    path = os.pathsep.join([str(TESTS), str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | variables, timeout=120, check=False)


@pytest.fixture
def config(tmp_path: Path, tiny_model: Path) -> Path:
    write_examples(tmp_path / "prompts.jsonl", PROMPTS)
    write_examples(tmp_path / "heldout.jsonl", [Example(id=f"h{i}", prompt=f"Say {i}.") for i in range(3)])
    path = tmp_path / "config.yaml"
    path.write_text(
        f"model: {{name: {tiny_model}, lora: {{r: 4, alpha: 8}}}}\n"
        f"data: {{train: {tmp_path}/prompts.jsonl, eval: {tmp_path}/heldout.jsonl}}\n"
        f"critic: {{name: 'support:VowelCritic'}}\n"
        f"evaluate: {{resamples: 50}}\n"
        f"policy: {{max_steps: 2, max_completion_length: 8, bf16: false, learning_rate: 0.01,\n"
        f"  eval_steps: 1, load_best_model_at_end: true, report_to: tensorboard}}\n"
    )
    return path


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_a_run_on_two_processes_is_the_run_on_one(config: Path, tmp_path: Path, kind: str) -> None:
    alone, both = tmp_path / "alone", tmp_path / "both"
    settings = [f"output_dir={alone}", "policy.per_device_train_batch_size=4"]
    run(load_config(config, settings), TerminalDisplay(Console(quiet=True)))
    done = run_launcher(kind, "run", config, f"output_dir={both}", "policy.per_device_train_batch_size=2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Report:") == done.stdout.count("step 2/2") == 1  # printed by one process
    assert sorted(p.name for p in alone.iterdir()) == sorted(p.name for p in both.iterdir())
    for name in ("before.jsonl", "evaluation.json"):
        assert (alone / name).read_text() == (both / name).read_text()
    adapters = [load_file(folder / "checkpoints" / "final" / "adapter_model.safetensors") for folder in (alone, both)]
    torch.testing.assert_close(*adapters, atol=1e-4, rtol=1e-4)


def test_a_user_error_is_printed_once_and_ends_all_processes(config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text(json.dumps({"step": 1}) + "\n")
    done = run_launcher("ddp", "run", config, f"output_dir={folder}")
    assert done.returncode == 1
    assert done.stderr.count("already holds a run") == 1


def test_deepspeed_is_rejected_with_the_config_to_use(config: Path, tmp_path: Path) -> None:
    variables = os.environ | {"ACCELERATE_USE_DEEPSPEED": "true", "PYTHONPATH": f"{TESTS}{os.pathsep}{SOURCE}"}
    command = [sys.executable, "-m", "text2grad", "run", str(config), f"output_dir={tmp_path / 'run'}"]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=120, check=False)
    assert done.returncode == 1
    assert "does not support DeepSpeed" in done.stderr
    assert "fsdp2.yaml" in done.stderr
