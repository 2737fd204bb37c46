"""A full training step, ours against TRL's GRPO: seconds and peak memory, one run, same machine.

Both sample 192 completions of at most 40 tokens (four per prompt, SciTLDR abstracts, temperature 1) from the default
model, score them with the same trivial reward (the share of vowels), compute reference log-probabilities, and make two
passes of one optimiser step each, beta .02, float32 weights with bfloat16 compute. Each trainer runs in its own
process. Warm-up steps are ignored; the result is the median of the rest. TRL is measured with its defaults (gradient
checkpointing, one micro-batch) and without checkpointing in two micro-batches; the faster one counts for the time, the
smaller one for the memory. Ours has its defaults.
On the CPU, and with --quick, a tiny random model and 8 completions are used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
from harness import Bar, data_folder, options, report, show
from small_model import small_model

from text2grad.data import scitldr
from text2grad.models.loading import DEFAULT_MODEL, resolve
from text2grad.schema import Example, Feedback

WARM_UP, STEPS = 1, 5
GENERATIONS, LONGEST, PASSES, BETA = 4, 40, 2, 0.02
TRL: dict[str, dict[str, Any]] = {
    "TRL as it comes": {"gradient_checkpointing": True, "micro_batches": 1},
    "TRL in two": {"gradient_checkpointing": False, "micro_batches": 2},
}


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        print(json.dumps(measure(sys.argv[2], json.loads(sys.argv[3]))))
        return
    args = options(__doc__ or "")
    small = args.quick or args.device == "cpu"
    with tempfile.TemporaryDirectory() as scratch:
        setup = {
            "model": small_model(Path(scratch, "model")) if small else resolve(DEFAULT_MODEL),
            "completions": 8 if small else 192,
        }
        results = {name: run_in_process(name, setup) for name in ("ours", *TRL)}
    rows = [
        [name, f"{r['seconds']:.3f}", f"{r['gib']:.2f}", "  ".join(f"{k} {v:.3f}" for k, v in r["parts"].items())]
        for name, r in results.items()
    ]
    show("One step", ["", "seconds", "GiB", "stages"], rows)
    fastest = min((name for name in TRL), key=lambda name: results[name]["seconds"])
    summary: dict[str, Any] = {
        "completions": setup["completions"],
        **{f"{name}": result for name, result in results.items()},
        "share_of_trl_time": results["ours"]["seconds"] / results[fastest]["seconds"],
        "share_of_trl_memory": results["ours"]["gib"] / min(results[name]["gib"] for name in TRL),
    }
    bars = {"share_of_trl_time": Bar(at_most=0.5), "share_of_trl_memory": Bar(at_most=1.0)}
    report("trl_speed" if not small else "trl_speed_cpu", summary, bars, args)


def run_in_process(name: str, setup: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", name, json.dumps(setup)]
    environment = os.environ | {"TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def measure(name: str, setup: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        times, parts = (ours if name == "ours" else lambda *a: trl(*a, **TRL[name]))(setup, folder)
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else _resident()
    return {"seconds": median(times[WARM_UP:]), "gib": peak / 2**30, "parts": parts, "all_seconds": times}


def ours(setup: dict[str, Any], folder: str) -> tuple[list[float], dict[str, float]]:
    from text2grad import Text2GradConfig, Text2GradTrainer
    from text2grad.files import read_json_lines
    from text2grad.trainer.callbacks import Callback

    class Clock(Callback):
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step(self, metrics: dict[str, Any]) -> None:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.ends.append(time.perf_counter())

    trainer = Text2GradTrainer(
        model=setup["model"],
        critic=Vowels(),
        args=Text2GradConfig(
            output_dir=Path(folder, "run"),
            max_steps=WARM_UP + STEPS,
            per_device_train_batch_size=setup["completions"],
            num_generations=GENERATIONS,
            num_iterations=PASSES,
            max_completion_length=LONGEST,
            beta=BETA,
            learning_rate=1e-6,
            estimator="rloo_tokens",
            bf16=torch.cuda.is_available(),
            num_logged_completions=0,
            save_steps=1_000_000,
        ),
        train_dataset=prompts(setup["completions"]),
        callbacks=[clock := Clock()],
    )
    began = time.perf_counter()
    trainer.train()
    steps = [metrics for _, metrics in read_json_lines(trainer.run.metrics)]
    stages = {
        name: median(float(step[f"time/{name}"]) for step in steps[WARM_UP:])
        for name in ("rollout", "critique_and_score", "update")
    }
    return [after - before for before, after in pairwise([began, *clock.ends])], stages


def trl(
    setup: dict[str, Any], folder: str, gradient_checkpointing: bool, micro_batches: int
) -> tuple[list[float], dict[str, float]]:
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.ends.append(time.perf_counter())

    def reward(completions: list[Any], **_: Any) -> list[float]:
        return [vowels(c[-1]["content"] if isinstance(c, list) else c) for c in completions]

    clock = Clock()
    rows = [{"prompt": [{"role": "user", "content": e.prompt_text}]} for e in prompts(setup["completions"])]
    trainer = GRPOTrainer(
        model=setup["model"],
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=setup["completions"] // micro_batches,
            gradient_accumulation_steps=micro_batches,
            num_generations=GENERATIONS,
            num_iterations=PASSES,
            max_completion_length=LONGEST,
            beta=BETA,
            learning_rate=1e-6,
            bf16=torch.cuda.is_available(),
            use_cpu=not torch.cuda.is_available(),
            gradient_checkpointing=gradient_checkpointing,
            max_steps=PASSES * (WARM_UP + STEPS),
            model_init_kwargs={"dtype": "float32"},
            logging_steps=1_000,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list(rows),
        callbacks=[clock],
    )
    began = time.perf_counter()
    trainer.train()
    cycles = [began, *clock.ends[PASSES - 1 :: PASSES]]  # one generation serves two optimiser steps
    return [after - before for before, after in pairwise(cycles)], {}


class Vowels:
    """The trivial reward as a critic."""

    def critique(self, examples: list[Example]) -> list[Feedback]:
        return [
            Feedback(critic="vowels", scores=[(0, len(e.completion), vowels(e.completion))] if e.completion else [])
            for e in examples
        ]


def vowels(text: str) -> float:
    return sum(letter in "aeiou" for letter in text) / max(len(text), 1)


def prompts(num_completions: int) -> list[Example]:
    """Enough prompts for a whole run, without duplicates."""
    needed = (WARM_UP + STEPS) * num_completions // GENERATIONS
    found = list(islice(scitldr.read(data_folder() / "scitldr_a" / "train.jsonl.gz"), needed))
    return [e.model_copy(update={"reference": None, "meta": {}}) for e in found]


def _resident() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
