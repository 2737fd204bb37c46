"""Training through a real vLLM server on the CPU: five steps; the server is killed in the middle of the third rollout.

The server samples from the default model in float32 with the weights of each step: a LoRA adapter that it loads, then
in a second run all weights, the adapter merged, from a folder. Measured are the gap between the log-probabilities of
server and trainer, in nats per token; the gap that the weights before training would leave, to show that stale weights
would be seen; and what the llm critic makes of the server's replies. Needs the `vllm` program: on the PATH, or named by
TEXT2GRAD_VLLM. With --quick each run has three steps or one.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from harness import Bar, options, report, show
from peft import LoraConfig
from vllm_engine import VllmEngine, find_vllm

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.critics.llm.reply import SCHEMA
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.data import summaries
from text2grad.models.loading import DEFAULT_MODEL, resolve
from text2grad.schema import read_examples, write_examples
from text2grad.trainer.callbacks import Callback

STEPS, QUICK_STEPS, KILLED_AFTER = 5, 3, 2
DISK_STEPS, QUICK_DISK_STEPS = 2, 1
JUDGED = 4  # completions that the llm critic comments on
TEMPERATURE = 0.7


def main() -> None:
    args = options(__doc__ or "")
    program = find_vllm()
    if program is None:
        sys.exit("no vllm program: set TEXT2GRAD_VLLM to it, or put it on the PATH (docs/rollouts.md)")
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        model = resolve(DEFAULT_MODEL)
        with VllmEngine(program, model, scratch / "vllm.log", max_model_len=2048) as engine:
            try:
                figures = measure(engine, model, scratch, args)
            except BaseException:
                print(engine.log.read_text(errors="replace")[-5000:], file=sys.stderr)
                raise
    bars = {
        "steps": Bar(at_least=QUICK_STEPS if args.quick else STEPS),
        "restarts": Bar(at_least=1),
        "adapter_gap_mean": Bar(at_most=0.05),
        "disk_gap_mean": Bar(at_most=0.05),
    }
    report("vllm_rollouts", figures, bars, args)


def measure(engine: VllmEngine, model: str, scratch: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Train through the server in both ways and let it judge; the trainer itself waits for the server to come up."""
    lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
    killer = Killer(engine)
    adapter = train(engine, model, scratch / "adapter", lora, "adapter", QUICK_STEPS if args.quick else STEPS, [killer])
    disk = train(engine, model, scratch / "disk", lora, "disk", QUICK_DISK_STEPS if args.quick else DISK_STEPS, [])
    rows = [
        [
            f"{name} {step['step']}",
            f"{step['gap_mean']:.2e}",
            f"{step['gap_max']:.2e}",
            f"{step['rollout_seconds']:.1f}",
        ]
        for name, run in (("adapter", adapter), ("disk", disk))
        for step in run["steps"]
    ]
    show("Server against trainer", ["step", "mean gap", "largest gap", "rollout, s"], rows)
    return {
        "steps": len(adapter["steps"]),
        "restarts": killer.restarts,
        "adapter_gap_mean": max(step["gap_mean"] for step in adapter["steps"]),
        "adapter_gap_max": max(step["gap_max"] for step in adapter["steps"]),
        "adapter_stale_gap_mean": adapter["stale_gap_mean"],
        "disk_gap_mean": max(step["gap_mean"] for step in disk["steps"]),
        "disk_gap_max": max(step["gap_max"] for step in disk["steps"]),
        "disk_stale_gap_mean": disk["stale_gap_mean"],
        "adapter": adapter["steps"],
        "disk": disk["steps"],
        "annotate_llm": {} if args.quick else judge(engine, adapter["samples"], scratch),
    }


class Killer(Callback):
    """Kills the server once it works on the rollout after step `KILLED_AFTER`, and starts it again."""

    def __init__(self, engine: VllmEngine) -> None:
        self.engine, self.restarts = engine, 0

    def on_step(self, metrics: dict[str, Any]) -> None:
        if metrics["step"] == KILLED_AFTER:
            threading.Thread(target=self._kill_and_restart).start()

    def _kill_and_restart(self) -> None:
        while not self.engine.running_requests():
            time.sleep(0.2)
        self.engine.stop()
        self.restarts += 1
        self.engine.start()


def train(
    engine: VllmEngine,
    model: str,
    folder: Path,
    lora: LoraConfig,
    transfer: str,
    steps: int,
    callbacks: list[Callback],
) -> dict[str, Any]:
    """Return the gap at each step, and the one between the trained and the initial weights on the last samples."""
    trainer = Text2GradTrainer(
        model,
        GroundingCritic(),
        Text2GradConfig(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=4,
            num_generations=2,
            max_completion_length=24,
            temperature=TEMPERATURE,
            learning_rate=1e-3,
            bf16=False,
            max_tokens_per_batch=1024,
            corrections={"weight": 0},
            num_logged_completions=0,
            rollouts="vllm_server",
            vllm_server_base_url=engine.url,
            vllm_server_timeout=400,
            vllm_weight_transfer=transfer,
        ),
        list(summaries.load("train")),
        peft_config=lora,
        callbacks=callbacks,
    )
    trainer.train()
    rollout = trainer.rollout(steps + 1)
    current, initial = trainer.score(rollout), trainer.score(rollout, reference=True)
    stale = ((current.logprobs - initial.logprobs).abs() * rollout.mask).sum() / rollout.mask.sum()
    return {
        "steps": [
            {
                "step": metrics["step"],
                "gap_mean": metrics["sampling/logp_difference/mean"],
                "gap_max": metrics["sampling/logp_difference/max"],
                "rollout_seconds": metrics["time/rollout"],
            }
            for metrics in trainer.run.steps()
        ],
        "stale_gap_mean": float(stale),
        "samples": rollout.examples,
    }


def judge(engine: VllmEngine, samples: list[Any], scratch: Path) -> dict[str, int]:
    """Count what becomes of `annotate --critic llm` with the served base model as the judge."""
    answers, feedback = scratch / "answers.jsonl", scratch / "feedback.jsonl"
    write_examples(answers, samples[:JUDGED])
    with urllib.request.urlopen(f"{engine.url}/v1/models", timeout=10) as response:
        name = json.load(response)["data"][0]["id"]
    command = [sys.executable, "-m", "text2grad", "annotate", str(answers), "--critic", "llm", "-o", str(feedback)]
    command += ["--base-url", f"{engine.url}/v1", "--llm-model", name, "--task", "summarise", "--max-tokens", "600"]
    schema = {"type": "json_schema", "json_schema": {"name": "critique", "schema": bounded(SCHEMA)}}
    command += ["--option", f"extra_body={json.dumps({'response_format': schema})}"]
    done = subprocess.run(command, check=False)
    judged = [example.feedback for example in read_examples(feedback)]
    return {
        "exit_code": done.returncode,
        "examples": len(judged),
        "parsed": sum(item is not None and item.status != "failed" for item in judged),
        "spans": sum(len(item.spans) for item in judged if item is not None),
    }


def bounded(schema: Any) -> Any:
    """Return the schema of a reply with short texts and lists: a small model would not come to an end by itself."""
    if not isinstance(schema, dict):
        return schema
    limits = {"maxItems": 2} if schema.get("type") == "array" else {}
    if schema.get("type") == "string" and "enum" not in schema:
        limits = {"maxLength": 120}
    return {key: bounded(value) for key, value in schema.items()} | limits


if __name__ == "__main__":
    main()
