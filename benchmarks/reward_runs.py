"""One training run of the reward model's benchmark, in a separate process: `python reward_runs.py NAME FOLDER`."""

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
from transformers import TrainerCallback
from transformers.utils import logging

from text2grad.models.loading import DEFAULT_MODEL, load_tokenizer
from text2grad.reward_model.calibration_metrics import average_precision
from text2grad.reward_model.evaluate import compute_metrics, predict, word_table
from text2grad.reward_model.head import POOR
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.settings import RewardModelSettings
from text2grad.reward_model.train import RewardTrainingSettings, train_reward_model
from text2grad.schema import Example

MIX = {f"mix-{seed}": {"seed": seed, "mix": True} for seed in (0, 1, 2)}
VARIANTS: dict[str, dict[str, Any]] = {
    "twice, critique first": {},
    "twice, spans only": {"critique_format": {"order": "spans_only"}},
    "once, critique first": {"inputs": {"reading": "once"}},
    "once, spans only": {"inputs": {"reading": "once"}, "critique_format": {"order": "spans_only"}},
    "around, critique first": {"inputs": {"reading": "around"}},
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
    options = dict(RUNS[name])
    data = data_folder()
    part = slice(24) if quick else slice(None)
    heldout = {"defacto": defacto_val(data)[part]}
    train = defacto_train(data, options.pop("rows", None))[part]
    mix = options.pop("mix", False)
    if mix:
        for set_name, (seen, unseen) in others(data).items():
            train += seen[part]
            heldout[set_name] = unseen[part]
    settings = RewardTrainingSettings(
        model=base_model(), heldout_share=0.05, save_steps=100_000, logging_steps=20, **options
    )
    if quick:
        settings = settings.model_copy(update={"max_steps": 4, "bf16": False, "per_device_train_batch_size": 2})
    curve = Curve(settings, heldout["defacto"], folder / f"{KEPT}-half" if name == KEPT else None)
    shutil.rmtree(folder / name, ignore_errors=True)  # of an earlier run
    began = time.monotonic()
    train_reward_model(train, settings, folder / name, callbacks=[curve])
    seconds = time.monotonic() - began
    model = SpanRewardModel.from_pretrained(folder / name)
    result: dict[str, Any] = {
        "train_examples": len(train),
        "seconds": seconds,
        "training": json.loads((folder / name / "training.json").read_text(encoding="utf-8")),
        "curve": curve.points,
        "head": {set_name: _metrics(model, examples) for set_name, examples in heldout.items()},
    }
    if settings.lm_weight:
        with model.override(method="generative"):
            result["generative"] = _metrics(model, heldout["defacto"])
    shutil.rmtree(folder / name / "checkpoints", ignore_errors=True)
    if name != KEPT:
        shutil.rmtree(folder / name)
    return result


def base_model() -> str:
    """Return the base model of the reward models; TEXT2GRAD_BASE replaces it for trials."""
    return os.environ.get("TEXT2GRAD_BASE", DEFAULT_MODEL)


def _metrics(model: SpanRewardModel, examples: list[Example]) -> dict[str, Any]:
    predictions, skipped = predict(model, examples)
    return compute_metrics(predictions) | {"skipped": skipped}


class Curve(TrainerCallback):
    """Records the average precision of poor words during training, and saves the half-trained model if asked to."""

    def __init__(self, settings: RewardTrainingSettings, examples: list[Example], half: Path | None) -> None:
        self.points: list[tuple[int, float]] = []
        self._settings = RewardModelSettings(
            base=settings.model, inputs=settings.inputs, critique_format=settings.critique_format
        )
        self._tokenizer = load_tokenizer(settings.model)
        self._examples = examples
        self._half = half

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        step, total = state.global_step, state.max_steps
        reward_model = SpanRewardModel(model, self._tokenizer, self._settings)
        if self._half and step >= total // 2:
            reward_model.save_pretrained(self._half)
            self._half = None
        if step % max(total // CURVE_POINTS, 1) == 0 or step == total:
            with torch.autocast(model.model.device.type, torch.bfloat16):
                predictions, _skipped = predict(reward_model, self._examples)
            gold = gold_words([prediction.example for prediction in predictions])
            self.points.append((step, average_precision(word_table(predictions)[1][:, POOR], gold)))


if __name__ == "__main__":
    main()
