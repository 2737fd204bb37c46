"""Data of the reward model's benchmarks: training sets, held-out sets, and trivial baselines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from text2grad.data import debugbench, defacto, fgrlhf, haluquestqa
from text2grad.data.split import split_by_prompt
from text2grad.reward_model.calibration_metrics import average_precision
from text2grad.schema import Example
from text2grad.text.whitespace import word_ranges

OTHERS: dict[str, Callable[[Path], Iterator[Example]]] = {
    "haluquestqa": lambda data: haluquestqa.read(data / "haluquestqa" / "HaluQuestQA.csv.gz"),
    "fgrlhf": lambda data: fgrlhf.read(data / "fgrlhf_qa_feedback" / "dev_feedback.json.gz"),
    "debugbench": lambda data: debugbench.read(data / "debugbench_python" / "debugbench_python.jsonl.gz"),
}
HELD_OUT = 0.2


def defacto_val(data: Path) -> list[Example]:
    """Return all 486 rows, including those without errors."""
    return list(defacto.read(data / "defacto" / "val.jsonl.gz"))


def defacto_train(data: Path, rows: int | None = None) -> list[Example]:
    """Return the first training rows and their corrected summaries, without articles that are in val."""
    path = data / "defacto" / "train.jsonl.gz"
    seen = {example.prompt_text for example in defacto_val(data)}
    candidates = [example for example in defacto.read(path) if example.prompt_text not in seen][:rows]
    prompts = {example.prompt_text for example in candidates}
    return [*candidates, *(e for e in defacto.read_corrected(path) if e.prompt_text in prompts)]


def others(data: Path) -> dict[str, tuple[list[Example], list[Example]]]:
    """Return (training, held-out fifth) of the other sets, split by prompt."""
    return {name: split_by_prompt(read(data), HELD_OUT, salt="benchmark") for name, read in OTHERS.items()}


def gold_words(examples: list[Example]) -> NDArray[np.bool_]:
    """Return whether each word of each completion is poor; (words,)."""
    blamed = []
    for example in examples:
        spans = [(s.start, s.end) for s in example.feedback.spans if s.label == "poor"] if example.feedback else []
        blamed += [any(a < end and b > start for a, b in spans) for start, end in word_ranges(example.completion)]
    return np.array(blamed)


def baselines(examples: list[Example]) -> dict[str, float]:
    """Return the average precision of poor words for baselines that need no model."""
    novel = [_novel(example) for example in examples]
    guesses = {
        "base rate": [np.zeros(len(row)) for row in novel],
        "late words": [np.arange(len(row)) / max(len(row), 1) for row in novel],
        "early words": [-np.arange(len(row)) / max(len(row), 1) for row in novel],
        "novel words": novel,
        "novel words and neighbours": [_with_neighbours(row) for row in novel],
    }
    gold = gold_words(examples)
    return {name: average_precision(np.concatenate(rows).astype(float), gold) for name, rows in guesses.items()}


def _novel(example: Example) -> NDArray[np.float64]:
    """Return 1 for words that are not in the prompt, ignoring case and punctuation."""
    source = set(re.findall(r"\w+", example.prompt_text.lower()))
    words = [re.findall(r"\w+", example.completion[a:b].lower()) for a, b in word_ranges(example.completion)]
    return np.array([float(any(part not in source for part in parts)) for parts in words])


def _with_neighbours(novel: NDArray[np.float64]) -> NDArray[np.float64]:
    padded = np.pad(novel, 1)
    return novel + 0.5 * (padded[:-2] + padded[2:])
