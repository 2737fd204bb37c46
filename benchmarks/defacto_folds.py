"""How well are DeFacto's training rows read that were left out of training? The yardstick for people's comments.

For each half of DeFacto's training split, the models of clauses (`train_stance.py`), of words (`train_freeform.py`) and
of removals (`train_removals.py`) are trained without it, and its rows are read with them: the figures of `comments.py`.
`--cache FOLDER` keeps the trained models; `--again NAME` trains those of this name again.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import comments
import numpy as np
import torch
import train_freeform
import train_removals
import train_stance
from comment_labels import calibration
from freeform_cases import Case, defacto_cases, defacto_clean_cases, unrelated
from harness import data_folder, show

from text2grad.align.learned import aligner, removals
from text2grad.align.learned.word_features import compute_word_features
from text2grad.data.reading import read_rows
from text2grad.schema import Span

HALVES = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps the trained models")
    parser.add_argument("--again", nargs="*", default=[], choices=("clauses", "words", "removals"))
    parser.add_argument("--show", action="store_true", help="show the error-free summaries that are blamed")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    data = data_folder()
    rows, clean = defacto_cases(data, "train"), defacto_clean_cases(data, "train")
    results: list[dict[str, Any]] = []
    for half in range(HALVES):
        own, error_free = ([case for case in cases if _half(case.group) == half] for cases in (rows, clean))
        with ExitStack() as stack:
            for name, train in (("clauses", _clauses), ("words", _words), ("removals", _removals)):
                path = args.cache / f"{name}{half}.pickle"
                if not path.exists() or name in args.again:
                    path.write_bytes(pickle.dumps(train(data, half)))
                stack.enter_context(_USING[name](pickle.loads(path.read_bytes())))
            results.append(read(own, error_free, args.show))
    print_figures(results)


def read(rows: list[Case], clean: list[Case], show_blamed: bool) -> dict[str, Any]:
    """Return what `comments.py` measures, of rows and error-free summaries that were not trained on."""
    spans = [comments._align_spans(case) for case in rows]
    clean_spans = [comments._align_spans(case) for case in clean]
    if show_blamed:
        for case, found in zip(clean, clean_spans, strict=True):
            if any(span.label == "poor" for span in found):
                blamed = [case.completion[span.start : span.end] for span in found if span.label == "poor"]
                print(f"- {case.comment}\n  answer: {case.completion}\n  blamed: {blamed}")
    pairs = [*zip(rows, spans, strict=True), *zip(clean, clean_spans, strict=True)]
    return {
        "aligned": [(_marks(case, found), case.gold) for case, found in zip(rows, spans, strict=True)],
        "located": [(comments._locate(case), case.gold) for case in rows],
        "blamed": [any(span.label == "poor" for span in found) for found in clean_spans],
        "praised": [any(span.label == "good" for span in found) for found in clean_spans],
        "others placed": [bool(comments._align(case).any()) for case in unrelated(rows)],
        "outcomes": [outcome for case, found in pairs for outcome in comments._outcomes(case, found)],
    }


def print_figures(results: list[dict[str, Any]]) -> None:
    def gather(name: str) -> list[Any]:
        return [each for result in results for each in result[name]]

    table = []
    for name in ("aligned", "located"):
        marks, gold = zip(*gather(name), strict=True)
        figures = train_freeform.f1(marks, [np.array(each) for each in gold])
        table.append([f"{name}: precision, recall, F1", *(f"{value:.3f}" for value in figures)])
    for name in ("blamed", "praised", "others placed"):
        table.append([name, f"{sum(gather(name)) / len(gather(name)):.3f}", f"of {len(gather(name))}", ""])
    certain = calibration(gather("outcomes"))
    table.append(["ece, sure right, sure share", *(f"{certain[n]:.3f}" for n in ("ece", "sure_right", "sure_share"))])
    show("DeFacto, rows left out", ["", "", "", ""], table)


def _marks(case: Case, spans: list[Span]) -> comments.Marks:
    return comments._marks(case.completion, [(span.start, span.end) for span in spans if span.label == "poor"])


def _half(row: str) -> int:
    return int(hashlib.sha1(row.removeprefix("defacto-").encode()).hexdigest(), 16) // 7 % HALVES


def _clauses(data: Path, half: int) -> train_stance.Weights:
    others = train_stance.other_items(lambda row: _half(row) == half)
    return train_stance.fit(train_stance.read_comments(), others)


def _words(data: Path, half: int) -> dict[str, Any]:
    cases = [*train_freeform._defacto_cases(data), *train_freeform._rule_cases(data)]
    kept = [case for case in cases if not (case[1].group.startswith("defacto-") and _half(case[1].group) == half)]
    items = [train_freeform._item(name, case, weight, train_freeform._spelling(case)) for name, case, weight in kept]
    model, settings = train_freeform.fit_and_calibrate("words", items, train_freeform.MAIN, train_freeform.ROUNDS, {})
    return {**settings, "trees": train_freeform.arrays(compute_word_features("a", "b", "c")[1], model)}


def _removals(data: Path, half: int) -> dict[str, float]:
    rows = enumerate(read_rows(data / "defacto" / "train.jsonl.gz", "DeFacto"))
    kept = [(number, row) for number, row in rows if _half(str(row["doc_id"])) != half]
    return train_removals.fit([group for number, row in kept for group in train_removals.read(number, row)])


@contextmanager
def _using_removals(weights: dict[str, float]) -> Iterator[None]:
    shipped = removals._weights
    removals._weights = lambda: weights  # type: ignore[assignment]
    removals._sum_weights.cache_clear()
    try:
        yield
    finally:
        removals._weights = shipped
        removals._sum_weights.cache_clear()


_USING: dict[str, Callable[[Any], Any]] = {
    "clauses": lambda weights: train_stance.using(weights.stance, weights.join, weights.net),
    "words": lambda data: comments.words_model(aligner.parse_model(data)),
    "removals": _using_removals,
}


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
