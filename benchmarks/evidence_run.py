"""One training run of `evidence.py`, and the shared starting models."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import torch
from evidence_arms import ARMS
from evidence_tasks import TASKS, OneFault, Task
from peft import LoraConfig
from torch.nn.utils.rnn import pad_sequence

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.critics.base import Critic
from text2grad.evaluation.metrics import critic_score
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.models.prompts import encode_prompts
from text2grad.schema import Example

Said = Literal["all", "one"]  # what the critic names: every fault, or one per answer
STEPS, EVAL_STEPS, EVAL_PROMPTS = 80, 10, 96
QUICK_STEPS = 2  # a run of no more is a trial of the harness, on four prompts
WARM_UP_STEPS, WARM_UP_BATCH, WARM_UP_RATE = 120, 32, 1e-4


def start_folder(task: Task, folder: Path) -> str:
    """Return the starting model of a task: the default model, or the one that `warm_up` wrote."""
    return str(folder / task.name) if task.warm_up else DEFAULT_MODEL


def warm_up(task: Task, folder: Path, device: str, steps: int = WARM_UP_STEPS) -> None:
    """Write the model that all arms of a task start from: a few supervised steps on answers with faults."""
    name = DEFAULT_MODEL
    assert task.warm_up is not None
    tokenizer, examples = load_tokenizer(name), task.warm_up()
    model: Any = load_model(name, torch.float32).to(device)
    prompts = encode_prompts(examples, tokenizer, False, model.config.max_position_embeddings, 512)
    optimizer = torch.optim.AdamW(model.parameters(), lr=WARM_UP_RATE)
    for step in range(steps):
        rows = [(step * WARM_UP_BATCH + i) % len(examples) for i in range(WARM_UP_BATCH)]
        answers = [
            [*tokenizer(examples[i].completion, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
            for i in rows
        ]
        ids = [prompts[i] + answer for i, answer in zip(rows, answers, strict=True)]
        labels = [[-100] * len(prompts[i]) + answer for i, answer in zip(rows, answers, strict=True)]
        batch = {
            "input_ids": _pad(ids, tokenizer.pad_token_id),
            "labels": _pad(labels, -100),
            "attention_mask": _pad([[1] * len(row) for row in ids], 0),
        }
        loss = model(**{key: value.to(device) for key, value in batch.items()}).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder / task.name)
    tokenizer.save_pretrained(folder / task.name)


def run(
    task_name: str, arm_name: str, said: Said, seed: int, half: str, starts: Path, steps: int, changes: dict[str, Any]
) -> dict[str, Any]:
    """Train once and return the curve, and the metrics of every held-out answer before and after."""
    task, arm = TASKS[task_name], ARMS[arm_name]
    critic = make_critic(task, said, arm.holistic)
    settings = task.settings | {"max_steps": steps, "num_logged_completions": 0} | arm.settings | changes
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Text2GradTrainer(
            start_folder(task, starts),
            critic,
            Text2GradConfig(output_dir=Path(folder), seed=seed, bf16=torch.cuda.is_available(), **settings),
            task.train(),
            peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
        )
        heldout = task.half(half)[: 4 if steps <= QUICK_STEPS else None]
        before = evaluate(trainer, task, heldout)
        curve = [curve_point(0, before[:EVAL_PROMPTS])]
        logged = []
        for step in range(1, steps + 1):
            metrics, _ = trainer.step(step)
            logged.append({key: metrics[key] for key in LOGGED if key in metrics})
            if step % EVAL_STEPS == 0 and step < steps:
                curve.append(curve_point(step, evaluate(trainer, task, heldout[:EVAL_PROMPTS])))
        after = evaluate(trainer, task, heldout)
        curve.append(curve_point(steps, after[:EVAL_PROMPTS]))
    return {
        "task": task_name,
        "arm": arm_name,
        "said": said,
        "seed": seed,
        "half": half,
        "steps": steps,
        "seconds": time.perf_counter() - began,
        "curve": curve,
        "before": before,
        "after": after,
        "logged": logged,
        "settings": json.loads(json.dumps(settings, default=str)),
    }


LOGGED = ("kl", "reward/total_mean", "completions/mean_length", "corrections/count", "time/step")


def make_critic(task: Task, said: Said, holistic: bool) -> Critic:
    return task.critic() if said == "all" else OneFault(task.critic(), holistic)


def evaluate(trainer: Text2GradTrainer, task: Task, heldout: Sequence[Example]) -> list[dict[str, float]]:
    """Return for every held-out prompt the metrics of a sampled answer, the full critic's score and its length."""
    completed = trainer.generate(heldout, trainer.args.temperature, batch_size=256)
    feedback = task.critic().critique(completed)
    return [
        {name: metric(example) for name, metric in task.metrics.items()}
        | {"score": critic_score(item) if item.status == "ok" else math.nan, "words": len(example.completion.split())}
        for example, item in zip(completed, feedback, strict=True)
    ]


def curve_point(step: int, rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {"step": step} | {name: fmean(row[name] for row in rows) for name in rows[0]}


def _pad(rows: Sequence[Sequence[int]], value: int) -> torch.Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)
