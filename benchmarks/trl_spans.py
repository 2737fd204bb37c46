"""Span advantages inside TRL's trainer: SpanGRPOTrainer against GRPOTrainer with the same critic's total as its reward.

On the CPU the task is records of eight fields told by a model of two layers (`tiny_records.py`), with a critic that
names every fault, and with one that names one fault per answer. Both arms start from the same model, see the same
prompts, sample 4 completions of each of 8 prompts per step and make one update, with TRL's defaults; each takes the
better of two learning rates, chosen with another seed than those that count. They differ in the advantages: one per
token, or TRL's one per completion. The result is the share of fields told rightly on unseen records, as the mean over
the course of training, and at its end; intervals are those of paired t-tests over five seeds.

On `copy_fields_task.py`, where answers are short, earlier versions of this benchmark could not tell the arms apart:
+.031 [-.020, +.082] with batches of 8 in 120 steps, +.013 [-.036, +.061] with batches of 32.

On a GPU (`--device cuda`) both arms train the default model with a LoRA adapter on
XQuAD questions, and are compared on held-out questions.
"""

from __future__ import annotations

import logging
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import harness
import torch
from tiny_records import RecordCritic, Task, pretrain, share_right
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl_arms import make_trainer, sample
from trl_questions import compare_on_questions

from text2grad.rewards.credit import Credit
from text2grad.schema import Example

TASK = Task(fields=8)
SEEDS, TUNING_SEED, RATES = range(5), 100, (3e-4, 1e-3)
COMPLETIONS, GENERATIONS, STEPS, EVERY, PRETRAINING = 32, 4, 60, 15, 300
HELDOUT = 128  # prompts
STUDENT_T = {2: 12.706, 5: 2.776}  # 97.5th percentile, by the number of seeds

MENTIONED = {"every fault": 1.0, "one fault": 0.0}  # what the critic names: the share that it names; 0 is one fault
ARMS = {"TRL": False, "TRL with spans": True}  # whether SpanGRPOTrainer takes the place of GRPOTrainer
BARS = {"every fault gain_low": harness.Bar(at_least=1e-9), "one fault gain_low": harness.Bar(at_least=1e-9)}


def main() -> None:
    torch.set_num_threads(1)
    logging.getLogger("trl").setLevel(logging.ERROR)
    args = harness.options(__doc__ or "")
    if args.device != "cpu":
        found = compare_on_questions(args.device, args.quick)
        harness.report("trl_spans_gpu", found, {} if args.quick else {"score_low": harness.Bar(at_least=1e-9)}, args)
    began = time.perf_counter()
    results: dict[str, Any] = {"steps": STEPS, "seeds": len(SEEDS)}
    for named, mentioned in MENTIONED.items():
        arms = {arm: measure(spans, mentioned, args.quick) for arm, spans in ARMS.items()}
        results |= {f"{named} {key}": value for key, value in compare(arms).items()}
        show(named, arms, results)
    results["minutes"] = (time.perf_counter() - began) / 60
    harness.report("trl_spans", results, {} if args.quick else BARS, args)


def measure(spans: bool, mentioned: float, quick: bool) -> dict[str, Any]:
    """Return the learning rate that is better with the tuning seed, and with it the curves of all other seeds."""
    steps, seeds = (EVERY, SEEDS[:2]) if quick else (STEPS, SEEDS)
    tuning = {rate: over_training(learn(spans, mentioned, TUNING_SEED, rate, steps)) for rate in RATES}
    rate = max(tuning, key=lambda rate: tuning[rate])
    return {"rate": rate, "curves": [learn(spans, mentioned, seed, rate, steps) for seed in seeds]}


def compare(arms: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arms, and the gain of spans over the course of training and at its end, with intervals."""
    found: dict[str, Any] = {"arms": arms}
    theirs, ours = (arm["curves"] for arm in arms.values())
    for name, value in {"gain": over_training, "end_gain": at_the_end}.items():
        gains = [value(one) - value(other) for one, other in zip(ours, theirs, strict=True)]
        low, high = interval(gains)
        found |= {name: fmean(gains), f"{name}_low": low, f"{name}_high": high}
    return found


def over_training(curve: Sequence[float]) -> float:
    return fmean(curve[1:])


def at_the_end(curve: Sequence[float]) -> float:
    return curve[-1]


def show(named: str, arms: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    rows = [
        [
            name,
            f"{arm['rate']:g}",
            f"{fmean(map(over_training, arm['curves'])):.3f}",
            f"{fmean(map(at_the_end, arm['curves'])):.3f}",
            " ".join(f"{over_training(curve):.2f}" for curve in arm["curves"]),
        ]
        for name, arm in arms.items()
    ]
    title = f"Share of fields told rightly, {named} named"
    harness.show(title, ["", "learning rate", "over training", "at the end", "over training, by seed"], rows)
    for name in ("gain", "end_gain"):
        low, high = results[f"{named} {name}_low"], results[f"{named} {name}_high"]
        print(
            f"{name.replace('end_gain', 'gain at the end')} {results[f'{named} {name}']:+.3f} [{low:+.3f}, {high:+.3f}]"
        )


def learn(spans: bool, mentioned: float, seed: int, rate: float, steps: int) -> list[float]:
    """Train once; returns the share of fields told rightly before training and every EVERY steps."""
    tokenizer = TASK.tokenizer()
    model = pretrain(TASK, tokenizer, seed, PRETRAINING)
    curve = Curve(model, tokenizer, TASK.examples(HELDOUT, 1000 + seed))
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {
            "output_dir": folder,
            "seed": seed,
            "max_steps": steps,
            "per_device_train_batch_size": COMPLETIONS,
            "num_generations": GENERATIONS,
            "max_completion_length": TASK.answer_length + 2,
            "learning_rate": rate,
            "lr_scheduler_type": "constant",
            "bf16": False,
            "use_cpu": True,
            "gradient_checkpointing": False,
            "logging_strategy": "no",
        }
        examples = TASK.examples(steps * COMPLETIONS // GENERATIONS, seed)
        critic = RecordCritic(TASK, mentioned)
        make_trainer(spans, model, critic, examples, tokenizer, Credit(), settings, callbacks=[curve]).train()
    return curve.shares


class Curve(TrainerCallback):
    """Share of fields told rightly in sampled answers to unseen records, before training and every EVERY steps."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, heldout: Sequence[Example]) -> None:
        self.model, self.tokenizer, self.heldout = model, tokenizer, heldout
        self.shares: list[float] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.shares.append(self.measure())

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step % EVERY == 0:
            self.shares.append(self.measure())

    def measure(self) -> float:
        """Sample one answer per record."""
        prompts = self.tokenizer([e.prompt_text for e in self.heldout])["input_ids"]
        texts = sample(self.model, self.tokenizer, prompts, TASK.answer_length + 2)
        pairs = zip(self.heldout, texts, strict=True)
        return fmean(share_right(TASK, e.model_copy(update={"completion": text})) for e, text in pairs)


def interval(gains: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of the mean of paired differences."""
    half = STUDENT_T[len(gains)] * stdev(gains) / math.sqrt(len(gains))
    return fmean(gains) - half, fmean(gains) + half


if __name__ == "__main__":
    main()
