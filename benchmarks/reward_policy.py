"""Does a policy learn from the reward model? The whole pipeline, with the trained reward model as its only critic.

On the quickstart's texts and on DeFacto's articles, three seeds each: held-out answers before and after, by the reward
model's own score (the sum over words of P(good) - P(poor)) and by ROUGE-L against references that it never sees. The
reward model is the one that reward_model.py trained; on a GPU all runs share the device at the same time.
"""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from harness import Bar, data_folder, options, report, show
from reward_model import folder
from reward_runs import KEPT, base_model
from rich.console import Console

from text2grad.cli.display import TerminalDisplay
from text2grad.config.run import load_config
from text2grad.data import defacto
from text2grad.pipeline import run
from text2grad.schema import Example, write_examples

PROMPT = "{article}\n\nSummarise the text above in one sentence."
STEPS, BATCH = 30, 32
SEEDS = (0, 1, 2)


def main() -> None:
    args = options(__doc__ or "")
    tasks = {"quickstart": ("summaries", "summaries"), "defacto": defacto_prompts(args.quick)}
    seeds = SEEDS[: 1 if args.quick else None]
    with ProcessPoolExecutor(len(tasks) * len(seeds) if torch.cuda.is_available() else 1, get_context("spawn")) as pool:
        running = {
            (name, seed): pool.submit(train_policy, name, *files, seed, args.quick)
            for name, files in tasks.items()
            for seed in seeds
        }
    figures: dict[str, Any] = {name: {} for name in tasks}
    rows = []
    for (name, seed), done in running.items():
        figures[name][str(seed)] = done.result()
        for measure, values in done.result()["figures"].items():
            change = f"[{values['low']:+.3f}, {values['high']:+.3f}]"
            rows.append([name, str(seed), measure, f"{values['before']:.3f}", f"{values['after']:.3f}", change])
    show("Held-out answers", ["task", "seed", "figure", "before", "after", "95% interval"], rows)
    found = [run["figures"] for runs in figures.values() for run in runs.values()]
    figures["worst_score_low"] = min(run["score"]["low"] for run in found)
    figures["worst_rouge_l_high"] = min(run["rouge_l"]["high"] for run in found)
    bars = {"worst_score_low": Bar(at_least=0.0), "worst_rouge_l_high": Bar(at_least=0.0)}
    report("reward_policy", figures, bars, args)


def train_policy(name: str, train: str, heldout: str, seed: int, quick: bool) -> dict[str, Any]:
    place = folder() / f"policy-{name}-{seed}"
    shutil.rmtree(place, ignore_errors=True)
    settings = {
        "model.name": base_model(),
        "critic.name": f"reward:{folder() / KEPT}",
        "data.train": train,
        "data.eval": heldout,
        "policy.max_steps": 2 if quick else STEPS,
        "policy.per_device_train_batch_size": 2 if quick else BATCH,
        "policy.max_tokens_per_batch": 32_768 if torch.cuda.is_available() else 2048,
        "seed": seed,
        "output_dir": place,
        "report.examples": 0,
    }
    overrides = [
        f"{key}={value if isinstance(value, int) else json.dumps(str(value))}" for key, value in settings.items()
    ]
    with TerminalDisplay(Console()) as display:
        done = run(load_config(Path("quickstart"), overrides), display)
    evaluation = json.loads(done.evaluation.read_text(encoding="utf-8"))
    return {"n": evaluation["n"], "figures": evaluation["metrics"]}


def defacto_prompts(quick: bool) -> tuple[str, str]:
    """Files of prompts: articles of the training rows, and of validation rows with their reference summaries."""
    files = []
    for split, rows in (("train", 400), ("val", 96)):
        path = folder() / f"defacto-{split}.jsonl"
        read = defacto.read(data_folder() / "defacto" / f"{split}.jsonl.gz")
        short = (example for example in read if len(example.prompt_text.split()) < 450)
        write_examples(path, islice(map(_prompt, short), 4 if quick else rows))
        files.append(str(path))
    return files[0], files[1]


def _prompt(example: Example) -> Example:
    text = PROMPT.format(article=example.prompt_text)
    return Example(id=example.id, prompt=text, reference=example.reference)


if __name__ == "__main__":
    main()
