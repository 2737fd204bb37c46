"""One training run of the reward model's benchmark, in a process of its own: `python reward_runs.py NAME FOLDER`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch
from harness import data_folder
from reward_data import defacto_train, defacto_val, gold_words, others
from transformers.utils import logging

from text2grad.models.loading import DEFAULT_MODEL
from text2grad.reward_model.curves import average_precision
from text2grad.reward_model.evaluate import evaluate, judge, word_table
from text2grad.reward_model.head import POOR
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.train import RewardTraining, train_reward_model
from text2grad.schema import Example

MIX = {f"mix-{seed}": {"seed": seed, "mix": True} for seed in (0, 1, 2)}
VARIANTS: dict[str, dict[str, Any]] = {
    "twice, critique first": {},
    "twice, spans only": {"layout": {"order": "spans_only"}},
    "once, critique first": {"layout": {"reading": "once"}},
    "once, spans only": {"layout": {"reading": "once", "order": "spans_only"}},
    "around, critique first": {"layout": {"reading": "around"}},
    "twice, head alone": {"lm_weight": 0.0},
}
ROWS = {f"{rows} rows": {"rows": rows} for rows in (125, 250, 500)}
RUNS: dict[str, dict[str, Any]] = {**MIX, **VARIANTS, **ROWS}
KEPT = "mix-0"  # its weights stay, finished and half-trained, for the other benchmarks
CURVE_POINTS = 8


def main() -> None:
    name, folder, quick = sys.argv[1], Path(sys.argv[2]), "--quick" in sys.argv
    logging.disable_progress_bar()
    result = run(name, folder, quick)
    (folder / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")


def run(name: str, folder: Path, quick: bool) -> dict[str, Any]:
    wanted = dict(RUNS[name])
    data = data_folder()
    part = slice(24) if quick else slice(None)
    heldout = {"defacto": defacto_val(data)[part]}
    train = defacto_train(data, wanted.pop("rows", None))[part]
    mix = wanted.pop("mix", False)
    if mix:
        for set_name, (seen, unseen) in others(data).items():
            train += seen[part]
            heldout[set_name] = unseen[part]
    settings = RewardTraining(model=base_model(), heldout_share=0.05, save_steps=100_000, logging_steps=20, **wanted)
    if quick:
        settings = settings.model_copy(update={"max_steps": 4, "bf16": False, "per_device_train_batch_size": 2})
    curve = Curve(heldout["defacto"], folder / f"{KEPT}-half" if name == KEPT else None)
    began = time.monotonic()
    train_reward_model(train, settings, folder / name, watch=curve)
    seconds = time.monotonic() - began
    model = SpanRewardModel.from_pretrained(folder / name)
    result: dict[str, Any] = {
        "train_examples": len(train),
        "seconds": seconds,
        "training": json.loads((folder / name / "training.json").read_text(encoding="utf-8")),
        "curve": curve.points,
        "head": {set_name: _figures(model, examples) for set_name, examples in heldout.items()},
    }
    if settings.lm_weight:
        with model.using(path="generative"):
            result["generative"] = _figures(model, heldout["defacto"])
    shutil.rmtree(folder / name / "checkpoints", ignore_errors=True)
    if name != KEPT:
        shutil.rmtree(folder / name)
    return result


def base_model() -> str:
    """What reward models start from; a small one in TEXT2GRAD_BASE tries the scripts out."""
    return os.environ.get("TEXT2GRAD_BASE", DEFAULT_MODEL)


def _figures(model: SpanRewardModel, examples: list[Example]) -> dict[str, Any]:
    judged, left_out = judge(model, examples)
    return evaluate(judged) | {"left_out": left_out}


class Curve:
    """Average precision of blamed words at several moments of training; keeps the model at half time where asked."""

    def __init__(self, examples: list[Example], half: Path | None) -> None:
        self.points: list[tuple[int, float]] = []
        self._examples = examples
        self._half = half

    def __call__(self, model: SpanRewardModel, step: int, total: int) -> None:
        if self._half and step >= total // 2:
            model.save_pretrained(self._half)
            self._half = None
        if step % max(total // CURVE_POINTS, 1) == 0 or step == total:
            with torch.autocast(model.scorer.model.device.type, torch.bfloat16):
                judged, _ = judge(model, self._examples)
            gold = gold_words([j.example for j in judged])
            self.points.append((step, average_precision(word_table(judged)[1][:, POOR], gold)))


if __name__ == "__main__":
    main()
