"""Train the ranker of places: src/text2grad/align/weights/places.json.

Needs lightgbm and scikit-learn (`pip install lightgbm scikit-learn`); the ranker itself does not.

Training data: `comments_train`, each labelled clause with its stance; and the same clauses on another answer of the
same kind, of which they are about nothing. Figures, gate and calibration come from predictions for writers who were
left out; the shipped trees are trained on all. `comments_folds.py` measures the package on writers that are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import train_freeform
from comment_labels import LabelledComment, Opinion, labelled, load
from harness import ROOT, save_weights, show
from numpy.typing import NDArray
from train_freeform import arrays, calibrate

from text2grad.align.answer.document import Document
from text2grad.align.comments import cited_quotations
from text2grad.align.places.place_features import masks
from text2grad.align.places.places import gather

FOLDER = ROOT / "benchmarks" / "comments_train"
OUT = ROOT / "src" / "text2grad" / "align" / "weights" / "places.json.gz"
TREES = train_freeform.TREES | {
    "objective": "cross_entropy",
    "learning_rate": 0.06,
    "num_leaves": 24,
    "min_child_samples": 40,
}
ROUNDS = 250
POWER = 1.5  # of F1: a close fit counts for more than several rough ones
FOLDS = 3  # of writers
MIN_FIT, MIN_CONFIDENCE = 0.1, 0.15  # of places that are calibrated; of those that are not refused
OTHER_WEIGHT, OTHER_STEP = 0.5, 3
RELATED, REFUSED, OTHER = "related", "refused", "other answer"


@dataclass(frozen=True)
class Item:
    """One clause: a row of features per candidate, the F1 of its words, and whether it is right at least by half."""

    kind: str
    writer: int
    names: list[str]
    features: NDArray[np.float32]
    f1: NDArray[np.float32]
    right: NDArray[np.bool_]
    is_whole: NDArray[np.bool_]

    @property
    def goal(self) -> NDArray[np.float32]:
        """What the trees predict: the whole answer is right only where it is meant."""
        exact = np.where(self.is_whole, self.f1 > 0.999, self.f1)
        return (exact**POWER).astype(np.float32)


def main() -> None:
    save_weights(fit_model(load_items()), OUT)


def fit_model(items: Sequence[Item]) -> dict[str, Any]:
    """Return the model as `places.parse_model` takes it; gate and calibration come from writers that were left out."""
    fits: list[NDArray[np.float64]] = [np.zeros(0)] * len(items)
    writers = sorted({item.writer for item in items})
    for fold in range(FOLDS):
        held = set(writers[fold::FOLDS])
        model = fit([item for item in items if item.writer not in held])
        own = [i for i, item in enumerate(items) if item.writer in held]
        found = model.predict(np.concatenate([items[i].features for i in own]))
        for i, values in zip(own, np.split(found, np.cumsum([len(items[i].f1) for i in own])[:-1]), strict=True):
            fits[i] = values
    gate, calibration = settle(items, fits)
    return {"gate": gate, "calibration": calibration, "trees": arrays(items[0].names, fit(items))}


def load_items() -> list[Item]:
    """Return the labelled clauses that do not say that something is missing, and some of them on other answers."""
    comments = load([FOLDER])
    rows = [json.loads(line) for line in (FOLDER / "labels.jsonl").read_text("utf-8").splitlines()]
    labels = {row["id"]: row["clauses"] for row in rows}
    kinds = {
        row["id"]: row["kind"] for row in map(json.loads, (FOLDER / "answers.jsonl").read_text("utf-8").splitlines())
    }
    found = []
    by_kind: dict[tuple[str, str], list[LabelledComment]] = {}
    for comment in comments:
        by_kind.setdefault((comment.id.partition("-")[0], kinds[comment.id.rpartition("-")[0]]), []).append(comment)
    for comment in comments:
        opinions = [o for o in labelled(comment, labels[comment.id]) if o.words or not o.is_omission]
        found += [_item(comment, o, RELATED if o.has_target else REFUSED) for o in opinions]
    for own in by_kind.values():
        for comment, other in zip(own[::OTHER_STEP], [*own[7::OTHER_STEP], *own[:7:OTHER_STEP]], strict=False):
            if other.completion == comment.completion:
                continue
            moved = LabelledComment(comment.id, comment.comment, other.completion, other.prompt)
            for opinion in labelled(comment, labels[comment.id]):
                if opinion.words and not opinion.is_whole:
                    nothing = Opinion(opinion.bounds, opinion.stance, frozenset(), False, False, None)
                    found.append(_item(moved, nothing, OTHER))
    return found


def _item(comment: LabelledComment, opinion: Opinion, kind: str) -> Item:
    prompt = comment.prompt or ""
    document, cited = Document(comment.completion, prompt), cited_quotations(comment.comment, comment.completion)
    found = gather(comment.comment, opinion.bounds, opinion.stance, document, prompt, cited)
    inside = masks(comment.completion, prompt, [candidate.places for candidate in found.candidates])
    gold = np.zeros(inside.shape[1], np.float32)
    gold[list(opinion.words)] = 1
    shared, size = inside @ gold, inside.sum(1)
    is_whole = np.array([candidate.level == "whole" for candidate in found.candidates])
    f1 = (2 * shared / np.maximum(1, size + gold.sum())).astype(np.float32)
    right = (shared >= size / 2) & (shared > 0)
    return Item(kind, int(comment.id[1:].partition("-")[0]), found.names, found.features, f1, right, is_whole)


def fit(items: Sequence[Item]) -> lightgbm.Booster:
    features = np.concatenate([item.features for item in items])
    goals = np.concatenate([item.goal for item in items])
    weights = np.concatenate([np.full(len(item.f1), OTHER_WEIGHT if item.kind == OTHER else 1.0) for item in items])
    return lightgbm.train(TREES, lightgbm.Dataset(features, goals, weight=weights), ROUNDS)


def settle(items: Sequence[Item], fits: Sequence[NDArray[np.float64]]) -> tuple[float, list[list[float]]]:
    """Return the gate and the calibration, and print the figures of writers who were left out."""

    def own(kind: str, writer: int | None = None) -> Iterator[tuple[Item, NDArray[np.float64]]]:
        return ((i, fit) for i, fit in zip(items, fits, strict=True) if i.kind == kind and writer in (None, i.writer))

    kept = [(item, fit) for kind in (RELATED, REFUSED) for item, fit in own(kind) if fit.max() >= MIN_FIT]
    best = np.array([fit.max() for _, fit in kept])
    right = np.array([item.right[fit.argmax()] for item, fit in kept])
    calibration = calibrate(best, right, np.ones(len(best)))
    gate = round(float(np.interp(MIN_CONFIDENCE, calibration[1], calibration[0])), 3)

    def scores(writer: int | None) -> list[str]:
        f1 = [item.f1[fit.argmax()] * (fit.max() >= gate) for item, fit in own(RELATED, writer)]
        placed = [[fit.max() >= gate for _, fit in own(kind, writer)] for kind in (RELATED, REFUSED, OTHER)]
        return [f"{np.mean(f1):.3f}", *(f"{np.mean(kind):.3f}" for kind in placed)]

    writers = sorted({item.writer for item in items})
    rows = [[f"writer {w}" if w else "all", *scores(w)] for w in (*writers, None)]
    show(f"writers left out, gate {gate}", ["", "F1", "placed", "placed, to refuse", "placed, other answer"], rows)
    return gate, calibration


if __name__ == "__main__":
    main()
