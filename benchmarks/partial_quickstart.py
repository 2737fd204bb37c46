"""Comments on one fault, with the default model: the quickstart, whose critic names one fault of every summary.

Three arms learn from the same comments. `the number`: 0 less the severity of the fault, as a scalar reward. `spans, as
a score`: span credit, with that number as the score of the summary. `spans`: the comment, and no score. Measured are
summaries of other texts after training: the score of the critic that names every fault, and ROUGE-L against references
that no critic sees; differences with a bootstrap over seeds and texts.

Finished runs are kept in runs/partial_quickstart: started again, the others are made.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import harness
from evidence_stats import difference
from one_fault import OneFault, Score
from peft import LoraConfig

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.critics.registry import make_critic
from text2grad.data.registry import load_examples
from text2grad.evaluation.metrics import critic_score, rouge_l
from text2grad.rewards.credit import Credit

SEEDS, STEPS, QUICK_STEPS = range(3), 24, 1
SETTINGS: dict[str, Any] = {  # those of the preset `quickstart`, with groups for the scalar arm
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 56,
    "temperature": 0.7,
    "learning_rate": 3e-4,
    "beta": 0.02,
    "corrections": {"weight": 0.0},
    "max_tokens_per_batch": 1024,
    "num_logged_completions": 0,
}
ARMS: dict[str, tuple[Score | None, dict[str, Any]]] = {
    "the number": ("comment", {"estimator": "rloo", "credit": Credit(mode="sequence")}),
    "spans, as a score": ("comment", {"estimator": "local"}),
    "spans": (None, {"estimator": "local"}),
}
METRICS = ("score", "rouge_l", "words", "faults")
FOLDER = harness.ROOT / "runs" / "partial_quickstart"


def main() -> None:
    args = harness.options(__doc__ or "")
    seeds = SEEDS[:1] if args.quick else SEEDS
    runs: dict[str, dict[int, Any]] = {arm: {} for arm in ARMS}
    for seed, arm in product(seeds, ARMS):
        path = FOLDER / f"{arm.replace(' ', '_').replace(',', '')}-{seed}.json"
        if path.is_file() and not args.quick:
            runs[arm][seed] = json.loads(path.read_text(encoding="utf-8"))
            continue
        runs[arm][seed] = result = run(arm, seed, args.quick)
        print(f"{arm}, seed {seed}: {', '.join(f'{name} {_mean(result, name):.3f}' for name in METRICS)}", flush=True)
        if not args.quick:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result), encoding="utf-8")
    figures: dict[str, Any] = {"seeds": len(seeds), "texts": len(runs["spans"][0]["after"]), "arms": {}}
    for arm, by_seed in runs.items():
        figures["arms"][arm] = {name: fmean(_mean(result, name) for result in by_seed.values()) for name in METRICS}
    for other, metric in product(("the number", "spans, as a score"), ("score", "rouge_l")):
        found = difference(runs[other], runs["spans"], metric)
        figures[f"{metric} against {other}"] = {key: found[key] for key in ("difference", "low", "high", "detectable")}
    show(figures)
    harness.report("partial_quickstart", figures, {}, args)


def run(arm: str, seed: int, quick: bool) -> dict[str, Any]:
    """Train once; return the metrics of every held-out summary."""
    score, settings = ARMS[arm]
    everything = make_critic("grounding", {})
    steps = QUICK_STEPS if quick else STEPS
    trainer = Text2GradTrainer(
        "smollm2",
        OneFault(everything, score),
        Text2GradConfig(output_dir=Path("never written"), seed=seed, max_steps=steps, **SETTINGS, **settings),
        list(load_examples("summaries", "train")),
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    )
    for step in range(1, steps + 1):
        trainer.step(step)
    answers = trainer.generate(list(load_examples("summaries", "heldout"))[: 2 if quick else None], 0.0)
    return {
        "after": [
            {
                "score": critic_score(feedback),
                "rouge_l": rouge_l(answer.completion, answer.reference or ""),
                "words": len(answer.completion.split()),
                "faults": sum(span.label == "poor" for span in feedback.spans) + len(feedback.omissions),
            }
            for answer, feedback in zip(answers, everything.critique(answers), strict=True)
        ]
    }


def _mean(result: dict[str, Any], name: str) -> float:
    return fmean(row[name] for row in result["after"])


def show(figures: dict[str, Any]) -> None:
    rows = [[arm, *(f"{means[name]:.3f}" for name in METRICS)] for arm, means in figures["arms"].items()]
    harness.show(f"{figures['texts']} texts, {figures['seeds']} seeds", ["learned from", *METRICS], rows)


if __name__ == "__main__":
    main()
