"""Train the weights of the grounding critic: src/text2grad/critics/rules/weights/*.json.

support.json      Two logistic regressions on DeFacto's training split, where people corrected summaries: which words of
                  a summary they changed, and whether they found an error in it. The corrected summaries are examples
                  of words without errors. The intercept of the second is for as many summaries with as without errors.
word_order.json   Which classes of words follow each other in the documents of DeFacto's, SciTLDR's and the quickstart's
                  training splits.

Prints what cross-validation in five folds of whole articles gives, and what each feature adds. Deterministic.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import ROOT, data_folder, show
from numpy.typing import NDArray

from text2grad.critics.rules import word_order
from text2grad.critics.rules.source import Source
from text2grad.critics.rules.support import FEATURES, combined_risk, support_features
from text2grad.data import defacto, scitldr, summaries
from text2grad.schema import Example
from text2grad.text.words import parse_text

OUT = ROOT / "src" / "text2grad" / "critics" / "rules" / "weights"
FOLDS, SEED = 5, 0
RIDGE = 1.0
CORRECTED_WEIGHT = 0.5
THRESHOLDS = tuple(round(0.15 + 0.01 * step, 2) for step in range(16))
MIN_CLASS_COUNT, MIN_SENTENCE = 1000, 4
MAX_INFORMATION = 3.0

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A summary: features and labels of its words, whether people found an error, the same for its correction.

    labels is None where an error is known and not where.
    """

    features: Array
    labels: Array | None
    has_error: bool
    corrected: Array | None


@dataclass(frozen=True)
class Model:
    intercept: float
    weights: Array
    sentence_intercept: float = 0.0
    sentence_slope: float = 1.0

    def risks(self, features: Array) -> Array:
        return sigmoid(self.intercept + features @ self.weights)

    def logit(self, features: Array) -> float:
        return logit(combined_risk(self.risks(features).tolist()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ablate", action="store_true", help="also measure the support model without each feature")
    args = parser.parse_args()
    folder = data_folder()
    cases = [make_case(example) for example in defacto.read(folder / "defacto" / "train.jsonl.gz")]
    cases = [case for case in cases if len(case.features)]
    print_cross_validation(cases, args.ablate)
    model, threshold = train_support(cases)
    write("support", support_record(model, threshold))
    documents = [
        *(example.prompt_text for example in defacto.read(folder / "defacto" / "train.jsonl.gz")),
        *(example.meta["document"] for example in scitldr.read(folder / "scitldr_a" / "train.jsonl.gz")),
        *(example.meta["document"] for example in summaries.load("train")),
    ]
    write("word_order", count_word_order(documents))


def make_case(example: Example) -> Case:
    assert example.feedback is not None
    source, summary = Source(parse_text(example.prompt_text)), parse_text(example.completion)
    corrected = example.meta["corrected"]
    labels = None
    if not example.meta["has_error"] or corrected:
        spans = example.feedback.spans
        labels = np.array([any(w.start < s.end and w.end > s.start for s in spans) for w in summary.words], float)
    return Case(
        features=stack(support_features(summary, source)),
        labels=labels,
        has_error=example.meta["has_error"],
        corrected=stack(support_features(parse_text(corrected), source)) if corrected else None,
    )


def stack(sentences: Sequence[Sequence[Sequence[float]]]) -> Array:
    return np.array([row for rows in sentences for row in rows], float).reshape(-1, len(FEATURES))


def train_support(cases: Sequence[Case]) -> tuple[Model, float]:
    """Fit both regressions; the second and the threshold on predictions of models that have not seen the summary."""
    held_out = predict_held_out(cases)
    logits = np.array([logit(combined_risk(risks.tolist())) for risks in held_out])
    errors = np.array([case.has_error for case in cases], float)
    balanced = np.where(errors == 1, 1 / errors.sum(), 1 / (len(errors) - errors.sum())) * len(errors) / 2
    slope = fit_logistic(logits[:, None], errors, balanced, ridge=0.0)
    model = fit_words(cases)
    labelled = [i for i, case in enumerate(cases) if case.labels is not None]
    predicted = np.concatenate([held_out[i] for i in labelled])
    labels = np.concatenate([labels for i in labelled if (labels := cases[i].labels) is not None])
    threshold = max(THRESHOLDS, key=lambda value: f1(predicted > value, labels))
    return Model(model.intercept, model.weights, float(slope[0]), float(slope[1])), threshold


def fit_words(cases: Sequence[Case], columns: Sequence[int] | None = None) -> Model:
    rows, labels, weights = [], [], []
    for case in cases:
        if case.labels is not None:
            rows.append(case.features)
            labels.append(case.labels)
            weights.append(np.ones(len(case.labels)))
        if case.corrected is not None:
            rows.append(case.corrected)
            labels.append(np.zeros(len(case.corrected)))
            weights.append(np.full(len(case.corrected), CORRECTED_WEIGHT))
    features = np.concatenate(rows)
    used = list(range(len(FEATURES))) if columns is None else list(columns)
    fitted = fit_logistic(features[:, used], np.concatenate(labels), np.concatenate(weights), RIDGE)
    all_weights = np.zeros(len(FEATURES))
    all_weights[used] = fitted[1:]
    return Model(float(fitted[0]), all_weights)


def predict_held_out(cases: Sequence[Case], columns: Sequence[int] | None = None, seed: int = SEED) -> list[Array]:
    """Return the risks of each summary's words from a model that was fitted to the other folds."""
    fold_of = np.random.default_rng(seed).permutation(len(cases)) % FOLDS
    models = [
        fit_words([c for c, fold in zip(cases, fold_of, strict=True) if fold != k], columns) for k in range(FOLDS)
    ]
    return [models[fold].risks(case.features) for case, fold in zip(cases, fold_of, strict=True)]


def fit_logistic(features: Array, labels: Array, weights: Array, ridge: float) -> Array:
    """Return intercept and weights by Newton's method; ridge penalises the weights of standardised features."""
    mean, scale = features.mean(0), features.std(0) + 1e-9
    design = np.hstack([np.ones((len(features), 1)), (features - mean) / scale])
    penalty = np.diag([0.0, *[ridge] * features.shape[1]])
    beta = np.zeros(design.shape[1])
    for _ in range(30):
        probability = sigmoid(design @ beta)
        gradient = design.T @ (weights * (labels - probability)) - penalty @ beta
        curvature = (design.T * (weights * probability * (1 - probability))) @ design + penalty
        step = np.linalg.solve(curvature, gradient)
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    unscaled = beta[1:] / scale
    return np.concatenate([[beta[0] - unscaled @ mean], unscaled])


def print_cross_validation(cases: Sequence[Case], ablate: bool) -> None:
    rows = [["all features", *cross_validate(cases, None)]]
    for i, name in enumerate(FEATURES if ablate else ()):
        rows.append([f"without {name}", *cross_validate(cases, [j for j in range(len(FEATURES)) if j != i])])
    show("Cross-validation on DeFacto train", ["features", "AUC of risk", "AUC of words", "word F1"], rows)


def cross_validate(cases: Sequence[Case], columns: Sequence[int] | None) -> list[str]:
    figures = []
    for seed in range(3):
        held_out = predict_held_out(cases, columns, seed)
        labelled = [
            (risks, case.labels) for risks, case in zip(held_out, cases, strict=True) if case.labels is not None
        ]
        predicted = np.concatenate([risks for risks, _ in labelled])
        labels = np.concatenate([label for _, label in labelled])
        combined = np.array([combined_risk(risks.tolist()) for risks in held_out])
        figures.append(
            (
                auc(combined, np.array([case.has_error for case in cases], float)),
                auc(predicted, labels),
                max(f1(predicted > value, labels) for value in THRESHOLDS),
            )
        )
    return [f"{value:.4f}" for value in np.mean(figures, axis=0)]


def support_record(model: Model, threshold: float) -> dict[str, Any]:
    return {
        "intercept": round(model.intercept, 4),
        "weights": {name: round(float(weight), 4) for name, weight in zip(FEATURES, model.weights, strict=True)},
        "sentence_intercept": round(model.sentence_intercept, 4),
        "sentence_slope": round(model.sentence_slope, 4),
        "threshold": threshold,
    }


def count_word_order(documents: Iterable[str]) -> dict[str, Any]:
    """Return the classes of words and the mutual information of each pair, in tenths of nats."""
    pairs: Counter[tuple[str, str]] = Counter()
    for document in documents:
        text = parse_text(document)
        for sentence in text.sentences:
            if len(sentence) >= MIN_SENTENCE:
                pairs.update((t.first, t.second) for t in word_order.transitions(text, sentence))
    counts: Counter[str] = Counter()
    for (first, second), count in pairs.items():
        counts[first] += count
        if second == word_order.END:
            counts[second] += count
    frequent = sorted(name for name, count in counts.items() if count >= MIN_CLASS_COUNT)
    classes = [*frequent, word_order.RARE]
    index = {name: i for i, name in enumerate(classes)}
    table = np.zeros((len(classes), len(classes)))
    for (first, second), count in pairs.items():
        table[index.get(first, len(frequent)), index.get(second, len(frequent))] += count
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    information = np.clip(np.log((table + 0.5) / (expected + 0.5)), -MAX_INFORMATION, MAX_INFORMATION)
    return {"classes": classes, "information": np.rint(information * word_order.SCALE).astype(int).tolist()}


def write(name: str, record: dict[str, Any]) -> None:
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps(record, separators=(",", ":")).replace("],[", "],\n[") + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


def auc(values: Array, labels: Array) -> float:
    """Return the probability that a positive has a higher value than a negative; ties count half."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positive = labels == 1
    n, m = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


def f1(predicted: NDArray[np.bool_], labels: Array) -> float:
    return float(2 * (predicted * labels).sum() / (predicted.sum() + labels.sum()))


def sigmoid(values: Array) -> Array:
    return 1 / (1 + np.exp(-values))


def logit(probability: float) -> float:
    return math.log(probability / (1 - probability))


if __name__ == "__main__":
    main()
