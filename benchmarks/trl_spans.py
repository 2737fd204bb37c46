"""Span advantages inside TRL's trainer: SpanGRPOTrainer against GRPOTrainer with the same critic's total as its reward.

On the CPU the task is `copy_fields_task.py`. Both arms start from the same model and see the same prompts; both sample
4 completions of each of 2 prompts per step and make one update, with TRL's defaults and the same learning rate. They
differ in the advantages: one per token, or TRL's one per completion. The result is the mean held-out score of the last
five evaluations; the interval is that of a paired t-test over five seeds.

Two earlier versions could not tell the arms apart, and their seeds are not used again. With batches of 32, both come
close to the best score in 120 steps: +.013 [-.036, +.061]. With batches of 8 at a constant learning rate (of .0005 and
.001, chosen on two other seeds), spans reached 90% of the best sooner on four seeds of five, but ended lower on two:
+.003 [-.103, +.109].

On a GPU (`--device cuda`) both arms train the default model with a LoRA adapter on
XQuAD questions, and are compared on held-out questions.
"""

from __future__ import annotations

import copy
import logging
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import harness
import torch
from copy_fields import make_base_model, steps_to
from copy_fields_task import LONGEST_ANSWER, CopyCritic, make_examples
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl_arms import make_trainer, sample
from trl_questions import compare_on_questions

from text2grad.rewards.credit import Credit
from text2grad.schema import Example

SEEDS = range(20, 25)
COMPLETIONS, GENERATIONS, STEPS, EVERY, RATE = 8, 4, 120, 5, 1e-3
HELDOUT, LAST = 256, 5  # prompts; evaluations that the score at the end is the mean of
STUDENT_T = {2: 12.706, 5: 2.776}  # 97.5th percentile, by the number of seeds

ARMS = {"TRL": False, "TRL with spans": True}  # whether SpanGRPOTrainer takes the place of GRPOTrainer
BARS = {"gain_low": harness.Bar(at_least=1e-9)}


def main() -> None:
    torch.set_num_threads(1)
    logging.getLogger("trl").setLevel(logging.ERROR)
    args = harness.options(__doc__ or "")
    if args.device != "cpu":
        found = compare_on_questions(args.device, args.quick)
        harness.report("trl_spans_gpu", found, {} if args.quick else {"score_low": harness.Bar(at_least=1e-9)}, args)
    seeds, steps = (SEEDS[:2], 10) if args.quick else (SEEDS, STEPS)
    began = time.perf_counter()
    curves = {name: [learn(spans, seed, steps) for seed in seeds] for name, spans in ARMS.items()}
    arms = compare(curves)
    gains = [ours - theirs for theirs, ours in zip(*(arm["last"] for arm in arms.values()), strict=True)]
    low, high = interval(gains)
    show(arms)
    print(f"gain {fmean(gains):+.3f} [{low:+.3f}, {high:+.3f}]")
    results = {"arms": arms, "steps": steps, "gain": fmean(gains), "gain_low": low, "gain_high": high}
    results["minutes"] = (time.perf_counter() - began) / 60
    harness.report("trl_spans", results, {} if args.quick else BARS, args)


def compare(curves: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, Any]:
    """Of every arm, seed by seed, the score at the end and the steps to 90% of the best, and the curve."""
    best = [max(map(max, of_seed)) for of_seed in zip(*curves.values(), strict=True)]
    return {
        name: {
            "last": [at_the_end(curve) for curve in runs],
            "steps": [steps_to(list(curve), 0.9 * top) for curve, top in zip(runs, best, strict=True)],
            "curves": [list(curve) for curve in runs],
        }
        for name, runs in curves.items()
    }


def show(arms: Mapping[str, Any]) -> None:
    rows = [
        [name, f"{fmean(arm['last']):.3f}", " ".join(f"{x:.2f}" for x in arm["last"]), " ".join(map(str, arm["steps"]))]
        for name, arm in arms.items()
    ]
    harness.show("Held-out score", ["", "mean", "by seed", "steps to 90% of the best"], rows)


def at_the_end(curve: Sequence[float]) -> float:
    """The mean of the last evaluations, which is less noisy than the last one."""
    return fmean(curve[-LAST:])


def learn(spans: bool, seed: int, steps: int) -> list[float]:
    """Train once; returns the held-out scores before training and every EVERY steps."""
    base, tokenizer = make_base_model(seed)
    model = copy.deepcopy(base)
    curve = Curve(model, tokenizer, make_examples(HELDOUT, 1000 + seed))
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {
            "output_dir": folder,
            "seed": seed,
            "max_steps": steps,
            "per_device_train_batch_size": COMPLETIONS,
            "num_generations": GENERATIONS,
            "max_completion_length": LONGEST_ANSWER,
            "learning_rate": RATE,
            "bf16": False,
            "use_cpu": True,
            "gradient_checkpointing": False,
            "logging_strategy": "no",
        }
        examples = make_examples(steps * COMPLETIONS // GENERATIONS, seed)
        make_trainer(spans, model, CopyCritic(), examples, tokenizer, Credit(), settings, callbacks=[curve]).train()
    return curve.scores


class Curve(TrainerCallback):
    """Mean score of sampled completions of held-out prompts, before training and every EVERY steps."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, heldout: Sequence[Example]) -> None:
        self.model, self.tokenizer, self.heldout = model, tokenizer, heldout
        self.scores: list[float] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.scores.append(self.measure())

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step % EVERY == 0:
            self.scores.append(self.measure())

    def measure(self) -> float:
        """Sample once per prompt and ask the critic."""
        prompts = self.tokenizer([e.prompt_text for e in self.heldout])["input_ids"]
        texts = sample(self.model, self.tokenizer, prompts, LONGEST_ANSWER)
        completed = [e.model_copy(update={"completion": t}) for e, t in zip(self.heldout, texts, strict=True)]
        return fmean(feedback.score or 0.0 for feedback in CopyCritic().critique(completed))


def interval(gains: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of the mean of paired differences."""
    half = STUDENT_T[len(gains)] * stdev(gains) / math.sqrt(len(gains))
    return fmean(gains) - half, fmean(gains) + half


if __name__ == "__main__":
    main()
