"""The GPU part of `trl_spans.py`: questions about paragraphs (XQuAD), the `qa` critic, the default model with LoRA."""

from __future__ import annotations

import tempfile
import time
from statistics import fmean
from typing import Any

import harness
import torch
from peft import LoraConfig
from trl_arms import make_trainer, sample

from text2grad.critics.base import collect_feedback
from text2grad.critics.registry import make_critic
from text2grad.data import xquad
from text2grad.evaluation.metrics import critic_score, token_f1
from text2grad.evaluation.significance import paired_bootstrap
from text2grad.models.loading import DEFAULT_MODEL, load_tokenizer, resolve
from text2grad.models.prompts import encode_prompts
from text2grad.rewards.credit import Credit
from text2grad.schema import Example, Message

STEPS, COMPLETIONS, GENERATIONS, HELDOUT, LONGEST = 24, 64, 4, 192, 48
RATE, TEMPERATURE, RESAMPLES = 1e-4, 0.7, 2_000
ARMS = {"TRL": False, "TRL with spans": True}
Row = dict[str, float]


def compare_on_questions(device: str, quick: bool) -> dict[str, Any]:
    """Train both arms from the same weights on the same questions; returns held-out metrics and seconds per step."""
    steps, completions, heldout = (2, 8, 8) if quick else (STEPS, COMPLETIONS, HELDOUT)
    results: dict[str, Any] = {"steps": steps, "completions": completions, "heldout": heldout}
    after: dict[str, list[Row]] = {}
    for name, spans in ARMS.items():
        before, after[name], seconds = learn(spans, device, steps, completions, heldout)
        results[name] = {
            "seconds_per_step": seconds / steps,
            **{key: change([row[key] for row in before], [row[key] for row in after[name]]) for key in before[0]},
        }
    pairs = {key: [[row[key] for row in after[name]] for name in ARMS] for key in after["TRL"][0]}
    results["spans_over_total"] = {key: change(*rows) for key, rows in pairs.items()}
    results["score_low"] = results["TRL with spans"]["score"]["low"]
    show(results)
    return results


def learn(spans: bool, device: str, steps: int, completions: int, heldout: int) -> tuple[list[Row], list[Row], float]:
    """Train one arm; returns the metrics of held-out answers before and after, and the seconds of training."""
    name = DEFAULT_MODEL
    tokenizer, critic = load_tokenizer(name), make_critic("qa", {})
    questions = [in_chat_format(e) for e in list(xquad.load("heldout"))[:heldout]]
    prompts = encode_prompts(questions, tokenizer, False, 4096, LONGEST)
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(
            spans,
            resolve(name),
            critic,
            [in_chat_format(e) for e in xquad.load("train")],
            tokenizer,
            Credit(),
            {
                "output_dir": folder,
                "seed": 0,
                "max_steps": steps,
                "per_device_train_batch_size": completions,
                "num_generations": GENERATIONS,
                "max_completion_length": LONGEST,
                "learning_rate": RATE,
                "temperature": TEMPERATURE,
                "bf16": device != "cpu",
                "use_cpu": device == "cpu",
                "gradient_checkpointing": False,
                "logging_steps": 4,
            },
            peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
        )

        def evaluate() -> list[Row]:
            texts = sample(trainer.model, tokenizer, prompts, LONGEST, TEMPERATURE)
            completed = [e.model_copy(update={"completion": t}) for e, t in zip(questions, texts, strict=True)]
            feedback = collect_feedback(critic, completed)
            return [
                {"score": critic_score(item), "f1": token_f1(e.completion, e.reference or "")}
                for e, item in zip(completed, feedback, strict=True)
            ]

        before = evaluate()
        began = time.perf_counter()
        trainer.train()
        if device != "cpu":
            torch.cuda.synchronize()
        return before, evaluate(), time.perf_counter() - began


def in_chat_format(example: Example) -> Example:
    """TRL applies the chat template to messages only."""
    return example.model_copy(update={"prompt": [Message(role="user", content=example.prompt_text)]})


def change(before: list[float], after: list[float]) -> dict[str, float]:
    """Means, and the 95% interval of a paired bootstrap over the held-out questions."""
    found = paired_bootstrap(before, after, RESAMPLES, seed=0)
    return {"before": fmean(before), "after": fmean(after), **found._asdict()}


def show(results: dict[str, Any]) -> None:
    rows = [
        [name, key, *(f"{value[column]:+.3f}" for column in ("before", "after", "difference", "low", "high"))]
        for name in (*ARMS, "spans_over_total")
        for key, value in results[name].items()
        if isinstance(value, dict)
    ]
    harness.show("Held-out questions", ["", "metric", "before", "after", "difference", "low", "high"], rows)
