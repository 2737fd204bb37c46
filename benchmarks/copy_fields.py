"""Sample efficiency on a task with known ground truth: span credit against one reward per sequence.

The task is in `copy_fields_task.py`. Every arm starts from the same model, sees the same prompts with the same random
numbers, and gets feedback from the same critic; they differ in credit assignment. `sequence` puts the total of a
completion's token rewards on its last token. The result is the number of steps until the held-out score first reaches
90% of the best that any arm of that seed and batch size reaches. A second part tests stopping: a critic that always
finds an omission rewards local credit for never ending, and one that blames words at random rewards all credit for
empty completions. The runs are distributed over the cores.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from typing import Any

import harness
import torch
from copy_fields_task import (
    LONGEST_ANSWER,
    CopyCritic,
    NeverSatisfiedCritic,
    RandomCritic,
    make_examples,
    make_model,
    make_tokenizer,
    pretrain,
)
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.rewards.credit import Credit
from text2grad.schema import Example

SEEDS, BATCHES, STEPS, EVERY = range(5), (8, 32), 120, 5
HELDOUT, TEMPERATURE, BETA = 128, 1.0, 0.01
SHARE_OF_BEST = 0.9
STOPPING_SEEDS, STOPPING_BATCH, STOPPING_STEPS = range(3), 32, 60
SILENCE_STEPS, SILENCE_RATE = 80, 3e-4  # slowly: random blame teaches nothing but its average
# Chosen in short trials among .0005 to .003 for each kind of credit; span credit tolerates a higher rate.
RATES = {("sequence", 8): 5e-4, ("sequence", 32): 1e-3, ("span", 8): 1e-3, ("span", 32): 2e-3}
# For every arm with a value head. With .001 those with `gae` end lower in batches of 8 and `span, paper` higher in 32.
VALUE_RATE = 1e-2
SEQUENCE = {"credit": Credit(mode="sequence", total="spans"), "advantage_normalization": "whiten"}
PAPER = {"credit": Credit(mode="uniform", total="spans"), "advantage_normalization": "whiten"}
SPAN = {"credit": Credit(total="spans")}
OURS, WORD_BY_WORD = "span, local", "span, gamma 0"
ARMS: dict[str, dict[str, Any]] = {
    "sequence, lambda .95": SEQUENCE | {"gamma": 1.0, "lam": 0.95},
    "sequence, lambda 1": SEQUENCE | {"gamma": 1.0, "lam": 1.0},
    "span, paper": PAPER | {"gamma": 1.0, "lam": 0.95},
    WORD_BY_WORD: SPAN | {"estimator": "reinforce", "gamma": 0.0, "advantage_normalization": "whiten"},
    "span, reinforce": SPAN | {"estimator": "reinforce", "gamma": 0.5, "lam": 1.0, "advantage_normalization": "whiten"},
    "span, group of 4": SPAN | {"estimator": "rloo_tokens", "gamma": 0.5, "lam": 1.0, "num_generations": 4},
    OURS: SPAN | {"estimator": "local", "gamma": 0.7, "lam": 0.3},
}
BARS = {
    "ours_last_8": harness.Bar(at_least=0.85),
    "ours_last_32": harness.Bar(at_least=0.93),
    "gain_last_8": harness.Bar(at_least=0.1),
    "gain_last_32": harness.Bar(at_least=0.05),
    "speedup_8": harness.Bar(at_least=2.0),
    "speedup_32": harness.Bar(at_least=2.0),
    "ours_never_stops": harness.Bar(at_most=0.1),
    "ours_falls_silent": harness.Bar(at_least=0.8),
}

Curve = list[float]  # held-out score before training, then every EVERY steps


def main() -> None:
    args = harness.options(__doc__ or "")
    seeds, batches, steps = (range(1), (8,), 20) if args.quick else (SEEDS, BATCHES, STEPS)
    results: dict[str, Any] = {"arms": {}}
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        for batch in batches:
            runs = {arm: [pool.submit(learn, arm, seed, batch, steps) for seed in seeds] for arm in ARMS}
            curves = {arm: [run.result() for run in of_arm] for arm, of_arm in runs.items()}
            results["arms"][str(batch)] = arms = compare(curves)
            show(batch, arms)
            results |= summary(arms, batch, steps)
        for trap in (never_stops, falls_silent):
            shares = {
                arm: list(pool.map(trap, [arm] * len(STOPPING_SEEDS), STOPPING_SEEDS, [args.quick] * 3))
                for arm in ("span, paper", WORD_BY_WORD, "span, reinforce", OURS)
            }
            results[trap.__name__] = shares
            rows = [[arm, " ".join(f"{share:.2f}" for share in of_arm)] for arm, of_arm in shares.items()]
            harness.show(str(trap.__doc__), ["credit", "by seed"], rows)
    results["ours_never_stops"] = max(results["never_stops"][OURS])
    results["ours_falls_silent"] = min(results["falls_silent"][OURS])
    harness.report("copy_fields", results, {} if args.quick else BARS, args)


def learn(arm: str, seed: int, batch: int, steps: int) -> Curve:
    return train(make_trainer(*make_base_model(seed), arm, seed, batch, steps))


@lru_cache
def make_base_model(seed: int) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """The model that every arm of a seed starts from."""
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, seed)
    pretrain(model, tokenizer, seed)
    return model, tokenizer


def make_trainer(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    arm: str,
    seed: int,
    batch: int,
    steps: int,
    rate: float | None = None,
) -> Text2GradTrainer:
    """A trainer for a copy of the model, with a new prompt for every completion. rate: None for the arm's."""
    common: dict[str, Any] = {
        "max_steps": steps,
        "per_device_train_batch_size": batch,
        "max_completion_length": LONGEST_ANSWER,
        "learning_rate": rate or RATES[arm.partition(",")[0], batch],
        "beta": BETA,
        "temperature": TEMPERATURE,
        "bf16": False,
        "num_logged_completions": 0,
        "value_learning_rate": VALUE_RATE,
        "estimator": "gae",
        "advantage_normalization": "scale",
    }
    return Text2GradTrainer(
        copy.deepcopy(model),
        CopyCritic(),
        Text2GradConfig(output_dir=Path("never written"), seed=seed, **(common | ARMS[arm])),
        make_examples(batch * steps, seed),
        processing_class=tokenizer,
        plain_prompts=True,
    )


def train(trainer: Text2GradTrainer) -> Curve:
    """Run all steps; returns the held-out scores before and during training."""
    heldout = make_examples(HELDOUT, 1000 + trainer.args.seed)
    curve = [score(trainer, heldout)]
    for step in range(1, trainer.args.max_steps + 1):
        trainer.step(step)
        if step % EVERY == 0:
            curve.append(score(trainer, heldout))
    return curve


def never_stops(arm: str, seed: int, quick: bool) -> float:
    """Share of truncated completions in the last ten steps, with a critic that always finds an omission."""
    steps = 10 if quick else STOPPING_STEPS
    trainer = make_trainer(*make_base_model(seed), arm, seed, STOPPING_BATCH, steps)
    trainer.critic = NeverSatisfiedCritic()
    return fmean([trainer.step(step)[0]["completions/clipped_ratio"] for step in range(1, steps + 1)][-10:])


def falls_silent(arm: str, seed: int, quick: bool) -> float:
    """Length of completions in the last five steps over that in the first, with a critic that blames at random."""
    steps = 10 if quick else SILENCE_STEPS
    trainer = make_trainer(*make_base_model(seed), arm, seed, STOPPING_BATCH, steps, SILENCE_RATE)
    trainer.critic = RandomCritic()
    lengths = [trainer.step(step)[0]["completions/mean_length"] for step in range(1, steps + 1)]
    return fmean(lengths[-5:]) / fmean(lengths[:5])


def score(trainer: Text2GradTrainer, examples: Sequence[Example]) -> float:
    """Mean score of sampled completions."""
    completed = trainer.generate(examples, TEMPERATURE, batch_size=len(examples))
    return fmean(feedback.score or 0.0 for feedback in CopyCritic().critique(completed))


def compare(curves: Mapping[str, Sequence[Curve]]) -> dict[str, Any]:
    """Of every arm, seed by seed, the steps to 90% of the best and the last score; and its mean curve."""
    best = [max(max(curve) for curve in of_seed) for of_seed in zip(*curves.values(), strict=True)]
    return {
        arm: {
            "steps": [steps_to(curve, SHARE_OF_BEST * top) for curve, top in zip(runs, best, strict=True)],
            "last": [curve[-1] for curve in runs],
            "curve": [fmean(scores) for scores in zip(*runs, strict=True)],
        }
        for arm, runs in curves.items()
    }


def steps_to(curve: Curve, wanted: float) -> int | None:
    """The first measured step at which the score is reached; None where it never is."""
    return next((i * EVERY for i, reached in enumerate(curve) if reached >= wanted), None)


def median_steps(arm: Mapping[str, Any]) -> float:
    """Median over the seeds; a seed that never reaches the score counts as infinite."""
    return median(math.inf if steps is None else steps for steps in arm["steps"])


def summary(arms: Mapping[str, Any], batch: int, steps: int) -> dict[str, float]:
    """Ours against the better of the sequence arms: scores at equal steps, and steps to the same score.

    Where `sequence` never reaches it, the length of the run is used, which favours `sequence`.
    """
    scalar = max((arm for name, arm in arms.items() if name.startswith("sequence")), key=lambda a: fmean(a["last"]))
    ours = arms[OURS]
    return {
        f"ours_last_{batch}": fmean(ours["last"]),
        f"gain_last_{batch}": fmean(ours["last"]) - fmean(scalar["last"]),
        f"speedup_{batch}": min(median_steps(scalar), steps) / median_steps(ours),
    }


def show(batch: int, arms: Mapping[str, Any]) -> None:
    rows = [
        [
            name,
            f"{median_steps(arm):g}",
            " ".join("-" if steps is None else str(steps) for steps in arm["steps"]),
            f"{fmean(arm['last']):.3f}",
            f"{min(arm['last']):.2f}-{max(arm['last']):.2f}",
        ]
        for name, arm in arms.items()
    ]
    columns = ["credit", "median steps to 90%", "by seed", "last score", "range"]
    harness.show(f"Batches of {batch}", columns, rows)


if __name__ == "__main__":
    main()
