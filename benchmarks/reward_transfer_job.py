"""One training of the transfer benchmark: on all sets but one, with or without corrupted texts, and its evaluation."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from harness import data_folder
from reward_data import OTHERS, baselines, defacto_train, defacto_val, others
from transformers.utils import logging

from text2grad.data import faithful
from text2grad.data.split import Split
from text2grad.models.loading import DEFAULT_MODEL
from text2grad.reward_model.corruptions.corrupt import CorruptionSettings, corrupt
from text2grad.reward_model.evaluate import MIN_IOU, Prediction, intersection_over_union, predict, transfer_metrics
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.train import RewardTrainingSettings, train_reward_model
from text2grad.schema import Example, Span

Sets = dict[str, tuple[list[Example], list[Example]]]  # training and held-out rows by set
LEFT_OUT = ("defacto", "haluquestqa", "fgrlhf")
STEPS, ALL_STEPS = 500, 1100  # on all sets there are more rows
CORRUPTED_SHARE, ALL_CORRUPTED_SHARE = 2.0, 1.0  # corrupted rows per row of the sets
CORRUPTED_TEST = 100  # rows per set of unseen texts
WRITTEN = 150  # DeFacto's rows whose written critiques are parsed
QUICK = 12  # rows per set


def run(left_out: str, corruptions: bool, seed: int, device: str, out: Path, quick: bool, steps: int | None) -> None:
    """Train and evaluate, and write the result to `out`; `left_out` may be "none"."""
    logging.disable_progress_bar()
    part = slice(QUICK) if quick else slice(None)
    sets = {"defacto": (defacto_train(data_folder()), defacto_val(data_folder())), **others(data_folder())}
    train = [example for name, (seen, _) in sets.items() if name != left_out for example in seen[part]]
    test = {name: unseen[part] for name, (_, unseen) in sets.items()}
    num_real, rate = len(train), None
    if corruptions:
        share = ALL_CORRUPTED_SHARE if left_out == "none" else CORRUPTED_SHARE
        texts = training_texts(sets, left_out)
        began = time.process_time()
        train += corrupted(texts, int(share * num_real), seed)
        rate = (len(train) - num_real) / (time.process_time() - began)
    settings = RewardTrainingSettings(
        model=DEFAULT_MODEL,
        max_steps=steps or (ALL_STEPS if left_out == "none" else STEPS),
        heldout_share=0.05,
        save_steps=100_000,
        logging_steps=50,
        seed=seed,
        per_device_train_batch_size=2 if quick else 16,
    )
    folder = out.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was cut off
    began = time.monotonic()
    train_reward_model(train, settings, folder)
    seconds = time.monotonic() - began
    model = SpanRewardModel.from_pretrained(folder, device)
    shutil.rmtree(folder)
    result: dict[str, Any] = {
        "left_out": left_out,
        "corruptions": corruptions,
        "seed": seed,
        "steps": settings.max_steps,
        "real_rows": num_real,
        "corrupted_rows": len(train) - num_real,
        "corrupted_per_second": rate,
        "training_seconds": seconds,
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
        "sets": {name: evaluate(model, examples) for name, examples in test.items()},
    }
    result["distance_auroc"] = auroc(*split_distances(result["sets"], left_out))
    if left_out in OTHERS:
        whole = [example for half in sets[left_out] for example in half[part]]
        result["whole_set"] = evaluate(model, whole) | {"guesses": baselines(whole)}
    if left_out in test:
        result["guesses"] = baselines(test[left_out])
    if left_out == "none" and corruptions:
        result["written"] = written(model, quick, test["defacto"], seed)
    result["seconds"] = time.monotonic() - began
    out.write_text(json.dumps(result), encoding="utf-8")


def training_texts(sets: Sets, left_out: str) -> dict[str, list[Example]]:
    """Return faithful texts by set; none of a set that is left out, or of prompts that are held out."""
    texts = {name: list(read("train")) for name, read in UNLABELLED.items()}
    if left_out != "defacto":
        unseen = {example.prompt_text for example in sets["defacto"][1]}
        read_texts = faithful.from_defacto(data_folder() / "defacto" / "train.jsonl.gz")
        texts["defacto"] = [example for example in read_texts if example.prompt_text not in unseen]
    if left_out != "fgrlhf":
        texts["fgrlhf"] = list(faithful.from_fgrlhf(sets["fgrlhf"][0]))
    return texts


UNLABELLED: dict[str, Callable[[Split], Iterable[Example]]] = {
    "scitldr": faithful.from_scitldr,
    "summaries": faithful.from_summaries,
    "xquad": faithful.from_xquad,
}


def corrupted(texts: dict[str, list[Example]], rows: int, seed: int) -> list[Example]:
    """Return about so many corrupted examples, as many of every set."""
    examples = []
    for name in texts:
        quota = -(-rows // len(texts))
        chosen = Random(seed).sample(texts[name], min(quota, len(texts[name])))
        settings = CorruptionSettings(per_text=-(-quota // len(chosen)), seed=seed)
        examples += list(corrupt(chosen, settings))[:quota]
    return examples


def evaluate(model: SpanRewardModel, examples: list[Example]) -> dict[str, Any]:
    """Return the metrics of the head on poor words, and the distances of the completions."""
    predictions, skipped = predict(model, examples)
    metrics = transfer_metrics(predictions)
    distances = [p.tokens.distance for p in predictions if p.tokens.distance is not None]
    return {
        **{name: metrics["poor"][name] for name in ("frequency", "average_precision", "ece")},
        **{name: metrics[name] for name in ("examples", "trust", "unfamiliar")},
        "skipped": skipped,
        "distances": [round(distance, 3) for distance in distances],
    }


def split_distances(sets: dict[str, dict[str, Any]], left_out: str) -> tuple[list[float], list[float]]:
    """Return the distances of the sets that the model was trained on, and of the one that was left out."""
    familiar = [distance for name, row in sets.items() if name != left_out for distance in row["distances"]]
    return familiar, sets[left_out]["distances"] if left_out in sets else []


def auroc(low: Sequence[float], high: Sequence[float]) -> float | None:
    """Return the probability that a value of `high` is above one of `low`, ties counted half."""
    if not low or not high:
        return None
    ordered = np.sort(np.asarray(low))
    below = np.searchsorted(ordered, high, side="left") + np.searchsorted(ordered, high, side="right")
    return float(below.mean() / 2 / len(ordered))


def written(model: SpanRewardModel, quick: bool, defacto: list[Example], seed: int) -> dict[str, Any]:
    """Return how many written critiques parse, and how many of the corrections in them are right, on unseen texts."""
    rows = 4 if quick else CORRUPTED_TEST
    texts = {name: list(read("heldout")) for name, read in UNLABELLED.items()}
    unseen = corrupted(texts, rows * len(texts), seed=1000 + seed)
    with model.override(method="generative"):
        predictions, skipped = predict(model, unseen)
        others_parsed, others_skipped = predict(model, defacto[: rows if quick else WRITTEN])
    unreadable = skipped.get("unreadable", 0) + others_skipped.get("unreadable", 0)
    total = len(predictions) + len(others_parsed) + unreadable
    return {
        "parse_rate": 1 - unreadable / total,
        "critiques": total,
        **count_replacements(predictions),
        "head": evaluate(model, unseen),
        "examples": [(p.predicted.raw, p.gold.critique) for p in predictions[:20]],
    }


def count_replacements(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Count corrupted spans, those that were found, and those whose replacement is right; by kind."""
    spans, found, right = Counter[str](), Counter[str](), Counter[str]()
    for prediction in predictions:
        completion = prediction.example.completion
        guesses = [span for span in prediction.predicted.spans if span.label == "poor"]
        for gold in prediction.gold.spans:
            kind = gold.critic.partition(":")[2]
            spans[kind] += 1
            overlaps = [(intersection_over_union((s.start, s.end), (gold.start, gold.end)), s) for s in guesses]
            best = max(overlaps, key=lambda pair: pair[0], default=None)
            if best is not None and best[0] >= MIN_IOU:
                found[kind] += 1
                right[kind] += replaced(completion, best[1]) == replaced(completion, gold)
    return {
        "spans": dict(spans),
        "found": dict(found),
        "right": dict(right),
        "recall": found.total() / max(spans.total(), 1),
        "replacements_right": right.total() / max(found.total(), 1),
    }


def replaced(completion: str, span: Span) -> list[str] | None:
    """Return the words of the completion with the span replaced, in lower case; None without a replacement."""
    if span.replacement is None:
        return None
    return re.findall(r"\w+", f"{completion[: span.start]} {span.replacement} {completion[span.end :]}".lower())
