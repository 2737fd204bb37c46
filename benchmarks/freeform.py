"""Accuracy of the learned aligner: does it find the words that a comment without quotes is about?

Data: DeFacto's validation rows with an error and a correction that changes words (333; with the training rows 1 023).
The comment is the annotator's critique and edit instruction. Words are separated by white space; gold are the words of
the summary that the annotator's correction replaced or deleted (difflib, without case), and a word counts as found if a
span overlaps it. Precision, recall and F1 are over all words together; the interval of F1 is a bootstrap over rows.
Nothing was tuned on these rows: `train_freeform.py` uses the training split only.

Compared: all content words that the comment mentions; all words that the article does not contain; the aligner with
spelling features alone ("letters"); the aligner with the default model's attention. Ablations: critique or instruction
alone, no article. Other data, spelling features alone: HaluQuestQA's reasons on questions that were not trained on, and
comments on another summary, which should match nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from freeform_cases import Case, defacto_cases, defacto_variants, halu_cases, unrelated
from harness import Bar, data_folder, options, report, show
from numpy.typing import NDArray

from text2grad.align.learned.aligner import locate
from text2grad.align.learned.attention_features import AttentionScorer, Scorer
from text2grad.align.learned.word_features import compute_word_features
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.text.whitespace import split_words

RESAMPLES, SEED = 10_000, 0
HALU_TRAINED_STEP = 3
GOAL = 0.65

Marks = NDArray[np.bool_]
Method = Callable[[Case], Marks]


def main() -> None:
    args = options(__doc__ or "")
    data = data_folder()
    part = slice(40) if args.quick else slice(None)
    rows = defacto_cases(data, "val")[part]
    model = load_model(DEFAULT_MODEL, dtype=torch.bfloat16).to(args.device).eval()
    scorer = AttentionScorer(model, load_tokenizer(DEFAULT_MODEL))
    methods: dict[str, Method] = {
        "mentioned words": lambda case: _column(case, "mentioned"),
        "novel words": lambda case: _column(case, "novel"),
        "letters": lambda case: _align(case, None),
        "attention": lambda case: _align(case, scorer),
    }
    figures: dict[str, float] = {
        "rows": len(rows),
        "rows_train_and_val": len(defacto_cases(data, "train")) + len(defacto_cases(data, "val")),
    }
    table = []
    for name, method in methods.items():
        figures |= _measure(name, rows, method, table)
    for name, cases in list(defacto_variants(data, "val").items())[1:]:
        figures |= _measure(f"{name}: letters", cases[part], methods["letters"], table)
    critique = defacto_variants(data, "val")["critique"][part]
    figures |= _measure("critique: attention", critique, methods["attention"], table)
    marks = halu_cases(data)
    trained = {case.group for case in marks[::HALU_TRAINED_STEP]}
    untrained = [case for case in marks if case.group not in trained]
    figures["rows_halu"] = len(untrained[part])
    figures |= _measure("HaluQuestQA: mentioned words", untrained[part], methods["mentioned words"], table)
    figures |= _measure("HaluQuestQA: letters", untrained[part], methods["letters"], table)
    show(f"{len(rows)} rows", ["", "precision", "recall", "F1", "95% interval", "ms per comment"], table)
    figures |= _false_alarms(rows, methods)
    bars = {"letters_f1": Bar(at_least=GOAL), "attention_f1": Bar(at_least=GOAL)}
    report("freeform", figures, bars, args)


def _align(case: Case, scorer: Scorer | None) -> Marks:
    places = [place for place, _ in locate(case.comment, case.completion, case.prompt, scorer=scorer)]
    words = split_words(case.completion)
    return np.array([any(s < word.end and word.start < e for s, e in places) for word in words], dtype=np.bool_)


def _column(case: Case, name: str) -> Marks:
    _, names, matrix = compute_word_features(case.comment, case.completion, case.prompt)
    return matrix[:, names.index(name)] > 0


def _measure(name: str, cases: Sequence[Case], method: Method, table: list[list[str]]) -> dict[str, float]:
    start = time.perf_counter()
    marks = [method(case) for case in cases]
    milliseconds = (time.perf_counter() - start) * 1000 / len(cases)
    gold = [np.array(case.gold) for case in cases]
    counts = np.array([[(m & g).sum(), m.sum(), g.sum()] for m, g in zip(marks, gold, strict=True)])
    right, found, expected = counts.sum(0)
    picks = np.random.default_rng(SEED).integers(len(cases), size=(RESAMPLES, len(cases)))
    resampled = counts[picks].sum(1)
    low, high = np.percentile(2 * resampled[:, 0] / (resampled[:, 1] + resampled[:, 2]), [2.5, 97.5])
    values = {
        "precision": right / max(1, found),
        "recall": right / expected,
        "f1": 2 * right / (found + expected),
        "f1_low": low,
        "f1_high": high,
        "ms": milliseconds,
    }
    cells = [f"{values[figure]:.3f}" for figure in ("precision", "recall", "f1")]
    table.append([name, *cells, f"[{low:.3f}, {high:.3f}]", f"{milliseconds:.0f}"])
    key = name.replace(":", "").replace(",", "").replace(" ", "_")
    return {f"{key}_{figure}": float(value) for figure, value in values.items()}


def _false_alarms(rows: Sequence[Case], methods: dict[str, Method]) -> dict[str, float]:
    """Return how often a comment on another summary matches something, and how often the summary's own comment does."""
    found = {
        f"{kind}_placed_{name}": float(np.mean([methods[name](case).any() for case in cases]))
        for kind, cases in (("unrelated", unrelated(rows)), ("own", rows))
        for name in ("letters",)
    }
    show("Comments that match something", ["", "share"], [[name, f"{share:.3f}"] for name, share in found.items()])
    return found


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    main()
