"""Span advantages inside TRL's trainer: SpanGRPOTrainer against GRPOTrainer with the same critic's total as its reward.

On the CPU the task is `copy_fields_task.py`. Both arms start from the same model and see the same prompts; both sample
4 completions of each of 8 prompts per step and make one update, with the same learning-rate schedule and no KL penalty.
They differ in the advantages: one per token, or TRL's one per completion. Learning rate and kind of total were chosen
for each arm from the same grid, on other seeds than those reported: `trl_spans.py --select`. The result is the held-out
score after the last step; the interval is that of a paired t-test over the seeds.

On a GPU (`--device cuda`) both arms train the default model, or the folder $TEXT2GRAD_MODEL, with a LoRA adapter on
XQuAD questions, and are compared on held-out questions.
"""

from __future__ import annotations

import copy
import logging
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, stdev
from typing import Any, Literal

import harness
import torch
from copy_fields import HELDOUT, make_base_model, steps_to
from copy_fields_task import LONGEST_ANSWER, CopyCritic, make_examples
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl_arms import make_trainer, sample
from trl_questions import compare_on_questions

from text2grad.rewards.credit import Credit
from text2grad.schema import Example

SEEDS, SELECT_SEEDS = range(5), (100, 101)
STEPS, EVERY, GENERATIONS, COMPLETIONS = 120, 5, 4, 32
STUDENT_T = {2: 12.706, 5: 2.776}  # 97.5th percentile, by the number of seeds
Total = Literal["score", "spans"]


@dataclass(frozen=True)
class Arm:
    """spans: SpanGRPOTrainer instead of GRPOTrainer. total: what the rewards of a completion sum to."""

    spans: bool
    rate: float
    total: Total


GRID: tuple[tuple[float, Total], ...] = tuple(product((5e-4, 1e-3, 2e-3, 4e-3), ("score", "spans")))
ARMS = {"TRL": Arm(False, 1e-3, "score"), "TRL with spans": Arm(True, 1e-3, "score")}
BARS = {"gain_low": harness.Bar(at_least=1e-9)}


def main() -> None:
    torch.set_num_threads(1)
    logging.getLogger("trl").setLevel(logging.ERROR)
    if sys.argv[1:] == ["--select"]:
        select()
        return
    args = harness.options(__doc__ or "")
    if args.device != "cpu":
        results = compare_on_questions(args.device, args.quick)
        harness.report("trl_spans_gpu", results, {} if args.quick else {"score_low": harness.Bar(at_least=1e-9)}, args)
    seeds, steps = (range(2), 10) if args.quick else (SEEDS, STEPS)
    began = time.perf_counter()
    curves = {name: [learn(arm, seed, steps) for seed in seeds] for name, arm in ARMS.items()}
    last = {name: [curve[-1] for curve in runs] for name, runs in curves.items()}
    gains = [ours - theirs for ours, theirs in zip(last["TRL with spans"], last["TRL"], strict=True)]
    low, high = interval(gains)
    best = [max(map(max, of_seed)) for of_seed in zip(*curves.values(), strict=True)]
    results = {
        "arms": {
            name: {
                "settings": vars(ARMS[name]),
                "last": last[name],
                "steps": [steps_to(curve, 0.9 * top) for curve, top in zip(runs, best, strict=True)],
                "curve": [fmean(scores) for scores in zip(*runs, strict=True)],
            }
            for name, runs in curves.items()
        },
        "steps": steps,
        "before": fmean(curve[0] for curve in curves["TRL"]),
        "gain": fmean(gains),
        "gain_low": low,
        "gain_high": high,
        "minutes": (time.perf_counter() - began) / 60,
    }
    rows = [
        [name, f"{fmean(arm['last']):.3f}", " ".join(f"{x:.2f}" for x in arm["last"]), " ".join(map(str, arm["steps"]))]
        for name, arm in results["arms"].items()
    ]
    harness.show("Held-out score", ["", "mean", "by seed", "steps to 90% of the best"], rows)
    print(f"gain {results['gain']:+.3f} [{low:+.3f}, {high:+.3f}]")
    harness.report("trl_spans", results, {} if args.quick else BARS, args)


def select() -> None:
    """Print the held-out score of every setting of both arms, on seeds that are not reported."""
    rows = []
    for spans, (rate, total) in product((False, True), GRID):
        scores = [learn(Arm(spans, rate, total), seed, STEPS)[-1] for seed in SELECT_SEEDS]
        rows.append([f"{'spans' if spans else 'TRL'}, {total}, {rate:g}", f"{fmean(scores):.3f}", str(scores)])
        print(rows[-1], flush=True)
    harness.show("Selection", ["setting", "mean", "by seed"], rows)


def learn(arm: Arm, seed: int, steps: int) -> list[float]:
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
            "learning_rate": arm.rate,
            "bf16": False,
            "use_cpu": True,
            "gradient_checkpointing": False,
            "logging_strategy": "no",
        }
        examples = make_examples(steps * COMPLETIONS // GENERATIONS, seed)
        credit = Credit(total=arm.total)
        make_trainer(arm.spans, model, CopyCritic(), examples, tokenizer, credit, settings, callbacks=[curve]).train()
    return curve.scores


class Curve(TrainerCallback):  # type: ignore[misc]
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
