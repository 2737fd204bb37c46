"""Train the weights of the learned aligner: src/text2grad/align/learned/weights/*.json.gz.

Needs lightgbm and scikit-learn (`pip install lightgbm scikit-learn`); the aligner itself does not.

words        trees over spelling features
heads        a linear score of the default model's attention heads, and trees over that and spelling features
statements   trees over the statements of programs

Training data: DeFacto's training split (human critiques and edit instructions; every row also with the critique or
the instruction alone and without its source, so that the aligner depends on no form of comment; with the comment on
another summary, so that some comments are about nothing; and the comments on summaries without an error, which blame
nothing), comments by rule on SciTLDR and on half of QA-Feedback (`synthetic_comments.py`), and DebugBench's
explanations of bugs. DeFacto's validation split, HaluQuestQA and ILF's code critiques are held out for `comments.py`,
`freeform.py` and `code_blame.py`. Thresholds and the calibration of confidence come from folds of whole rows, texts and
programs that were left out, one after the other; the shipped trees are trained on all. `--without-defacto` trains the
words alone, without any row of DeFacto, into `benchmarks/transfer.json.gz`.

`--cache FOLDER` keeps the attention features, which take about one second per comment on one core.

"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import torch
from freeform_cases import Case, debugbench_bugs, defacto_clean_cases, defacto_variants, unrelated
from harness import ROOT, data_folder, save_weights, show
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from synthetic_comments import marked_cases, synthetic_cases

from text2grad.align.answer.program import extract_program, find_statements, parse_python
from text2grad.align.learned.aligner import ATTENTION_COLUMNS, expected_f1_threshold, select_words, stack_neighbours
from text2grad.align.learned.attention_features import AttentionScorer
from text2grad.align.learned.boosted_trees import BoostedTrees
from text2grad.align.learned.statement_features import compute_statement_features
from text2grad.align.learned.word_features import compute_word_features
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.text.whitespace import split_words
from text2grad.text.words import consecutive_runs

OUT = ROOT / "src" / "text2grad" / "align" / "learned" / "weights"
FOLDS = 5  # of whole rows, texts and programs
MAIN = "critique and instruction"
WEIGHTS = {
    MAIN: 1.0,
    "critique": 0.4,
    "instruction": 0.3,
    "critique and instruction, no source": 0.3,
    "critique, no source": 0.2,
}
UNRELATED, UNRELATED_WEIGHT, UNRELATED_STEP_HEADS = "unrelated comment", 0.35, 2
DEBUGBENCH = "DebugBench"
CLEAN, CLEAN_WEIGHT = "summary without error", 0.3
SYNTHETIC, MARKED, SYNTHETIC_WEIGHT, UNRELATED_STEP = "by rule", "by rule on marked errors", 0.3, 3
MAX_UNRELATED_PLACED = 0.12
TRANSFER = ROOT / "benchmarks" / "transfer.json.gz"
CALIBRATION_KNOTS = 12
THRESHOLDS = np.arange(0.2, 0.6, 0.02)
HEADS_STRENGTH = 1e-3  # scikit-learn's C; 1 620 views of the heads need a strong penalty
TREES = {
    "objective": "binary",
    "learning_rate": 0.1,
    "num_leaves": 12,
    "min_child_samples": 25,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "max_bin": 63,
    "num_threads": 2,
    "seed": 0,
    "deterministic": True,
    "verbose": -1,
}
ROUNDS = 150
SMALL_TREES = {"num_leaves": 8, "min_child_samples": 30}
STATEMENT_ROUNDS = 75

Features = NDArray[np.float32]
Labels = NDArray[np.int64]
Scores = tuple[float, float, float]  # precision, recall, F1


@dataclass(frozen=True)
class Item:
    """One comment: a row of features and a label per word or statement of its completion."""

    source: str
    group: str
    weight: float
    features: Features
    labels: Labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, help="folder for the attention features")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", choices=("statements", "words", "heads"), help="train one of them")
    parser.add_argument("--without-defacto", action="store_true", help="train words on the other data alone")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    data = data_folder()
    if args.without_defacto:
        train_words(data, without_defacto=True)
        return
    if args.only in (None, "statements"):
        train_statements(data)
    if args.only in (None, "words"):
        train_words(data)
    if args.only in (None, "heads"):
        train_heads(data, args.cache, args.device)


def train_words(data: Path, without_defacto: bool = False) -> None:
    cases = _rule_cases(data) if without_defacto else [*_defacto_cases(data), *_rule_cases(data)]
    items = [_item(name, case, weight, _spelling(case)) for name, case, weight in cases]
    names = compute_word_features("a", "b", "c")[1]
    model, settings = fit_and_calibrate("words", items, SYNTHETIC if without_defacto else MAIN, ROUNDS, {})
    _save(TRANSFER if without_defacto else OUT / "words.json.gz", names, model, settings, items)


def _defacto_cases(data: Path) -> list[tuple[str, Case, float]]:
    variants = defacto_variants(data, "train")
    cases = [(name, case, weight) for name, weight in WEIGHTS.items() for case in variants[name]]
    cases += [(UNRELATED, case, UNRELATED_WEIGHT) for case in _unrelated(variants)]
    return cases + [(CLEAN, case, CLEAN_WEIGHT) for case in defacto_clean_cases(data, "train")]


def _rule_cases(data: Path) -> list[tuple[str, Case, float]]:
    synthetic, marked = synthetic_cases(data, seed=1), marked_cases(data, seed=2)[::2]
    cases = [(SYNTHETIC, case, SYNTHETIC_WEIGHT) for case in synthetic]
    cases += [(MARKED, case, SYNTHETIC_WEIGHT) for case in marked]
    others = [*unrelated(synthetic)[::UNRELATED_STEP], *unrelated(marked)[::UNRELATED_STEP]]
    return cases + [(f"{UNRELATED} {SYNTHETIC}", case, SYNTHETIC_WEIGHT) for case in others]


def train_heads(data: Path, cache: Path | None, device: str) -> None:
    variants = defacto_variants(data, "train")
    others = [name for name in WEIGHTS if name != MAIN]
    cases = [(MAIN, case, 1.0) for case in variants[MAIN]]
    # attention features are slow, so each row is added only once more, in one of its other forms
    cases += [(name, variants[name][i], 0.7) for i in range(len(variants[MAIN])) for name in [others[i % len(others)]]]
    cases += [(UNRELATED, case, UNRELATED_WEIGHT) for case in _unrelated(variants)[::UNRELATED_STEP_HEADS]]
    attention = _attention([case for _, case, _ in cases], cache, device)
    seen = [_item(name, case, weight, views) for (name, case, weight), views in zip(cases, attention, strict=True)]
    scores: list[Features] = [np.zeros(0, np.float32)] * len(seen)
    for train, test in _folds(seen):
        weights = _fit_linear([seen[i] for i in train])
        for i in test:
            scores[i] = _score(seen[i].features, weights)
    items = [
        replace(item, features=np.hstack([_spelling(case), stack_neighbours(score)]))
        for item, (_, case, _), score in zip(seen, cases, scores, strict=True)
    ]
    names = [*compute_word_features("a", "b", "c")[1], *ATTENTION_COLUMNS]
    model, settings = fit_and_calibrate("heads", items, MAIN, ROUNDS, {})
    weights = [float(f"{weight:.5g}") for weight in _fit_linear(seen)]
    _save(OUT / "heads.json.gz", names, model, settings, items, weights=weights)


def train_statements(data: Path) -> None:
    items, names = [], []
    for number, bug in enumerate(debugbench_bugs(data)):
        program = extract_program(bug.code)
        own = find_statements(program) if program and parse_python(bug.code) else {}
        changed = _changed_lines(bug.code, bug.fixed) & set(own)
        if program and changed and len(own) > 2:
            names, features = compute_statement_features(bug.comment, list(own.values()), program)
            items.append(
                Item(DEBUGBENCH, str(number), 1.0, features, np.array([line in changed for line in own], np.int64))
            )
    model, settings = fit_and_calibrate("statements", items, DEBUGBENCH, STATEMENT_ROUNDS, SMALL_TREES, True)
    _save(OUT / "statements.json.gz", names, model, settings, items)


def fit_and_calibrate(
    title: str,
    items: Sequence[Item],
    main: str,
    rounds: int,
    settings: dict[str, Any],
    fixed_threshold: bool = False,
) -> tuple[lightgbm.Booster, dict[str, Any]]:
    """Choose threshold, gate and calibration on predictions for rows that were left out, and train on all rows.

    The threshold, fixed or by expected F1, has the best F1 on the source `main`; the gate keeps comments of other
    answers from being placed. Prints the scores of the rows that were left out.
    """
    probabilities: dict[int, NDArray[Any]] = {}
    for train, test in _folds(items):
        found = fit([items[i] for i in train], rounds, settings).predict(
            np.concatenate([items[i].features for i in test])
        )
        ends = np.cumsum([len(items[i].labels) for i in test])[:-1]
        probabilities |= dict(zip(test, np.split(found, ends), strict=True))
    test = sorted(probabilities)
    model = fit(items, rounds, settings)

    def own(source: str) -> list[int]:
        return [i for i in test if items[i].source == source]

    def select(i: int, threshold: float | None, gate: float) -> NDArray[np.bool_]:
        chosen = expected_f1_threshold(probabilities[i]) if threshold is None else threshold
        return select_words(probabilities[i], chosen) & (probabilities[i].max(initial=0.0) >= gate)

    def scores(source: str, threshold: float | None, gate: float = 0.0) -> Scores:
        return f1([select(i, threshold, gate) for i in own(source)], [items[i].labels for i in own(source)])

    def share_aligned(source: str, threshold: float | None, gate: float) -> float:
        return float(np.mean([select(i, threshold, gate).any() for i in own(source)]))

    choices = [*THRESHOLDS.tolist(), *([] if fixed_threshold else [None])]
    threshold = max(choices, key=lambda threshold: scores(main, threshold)[2])
    gate = 0.0
    while own(UNRELATED) and share_aligned(UNRELATED, threshold, gate) > MAX_UNRELATED_PLACED:
        gate += 0.01
    rows = [
        [source, *(f"{s:.3f}" for s in (*scores(source, threshold, gate), share_aligned(source, threshold, gate)))]
        for source in dict.fromkeys(items[i].source for i in test)
    ]
    show(
        f"{title}: rows left out, threshold {threshold or 'by expected F1'}, gate {gate:.2f}",
        ["", "precision", "recall", "F1", "comments aligned"],
        rows,
    )
    means, right, weights = [], [], []
    for i in test:
        item = items[i]
        for run in consecutive_runs(np.flatnonzero(select(i, threshold, gate)).tolist()):
            means.append(probabilities[i][run.start : run.stop].mean())
            right.append(item.labels[run.start : run.stop].mean() >= 0.5)
            weights.append(item.weight)
    calibration = calibrate(np.array(means), np.array(right), np.array(weights))
    rounded = None if threshold is None else round(float(threshold), 2)
    chosen = {"threshold": rounded, "gate": round(float(gate), 2), "calibration": calibration}
    return model, chosen


def calibrate(means: NDArray[Any], right: NDArray[Any], weights: NDArray[Any]) -> list[list[float]]:
    """Return the knots of an isotonic regression of the share of right places on their mean probability."""
    fitted = IsotonicRegression(y_min=0.01, y_max=0.98, out_of_bounds="clip").fit(means, right, sample_weight=weights)
    knots = np.unique(np.quantile(means, np.linspace(0, 1, CALIBRATION_KNOTS)).round(3))
    smooth = [fitted.predict([max(0.0, k - 0.03), k, min(1.0, k + 0.03)]).mean() for k in knots]
    return [[float(k) for k in knots], [round(float(v), 3) for v in smooth]]


def fit(items: Sequence[Item], rounds: int, settings: dict[str, Any]) -> lightgbm.Booster:
    weights = np.concatenate([np.full(len(item.labels), item.weight) for item in items])
    features = np.concatenate([item.features for item in items])
    labels = np.concatenate([item.labels for item in items])
    return lightgbm.train(TREES | settings, lightgbm.Dataset(features, labels, weight=weights), rounds)


def f1(selected: Sequence[NDArray[np.bool_]], gold: Sequence[NDArray[Any]]) -> Scores:
    """Precision, recall and F1 over all words together."""
    found, expected = np.concatenate(selected), np.concatenate(gold).astype(bool)
    right = int((found & expected).sum())
    total = found.sum() + expected.sum()
    return right / max(1, found.sum()), right / max(1, expected.sum()), 2 * right / max(1, total)


def _folds(items: Sequence[Item]) -> Iterator[tuple[list[int], list[int]]]:
    folds = [int(hashlib.sha1(item.group.encode()).hexdigest(), 16) % FOLDS for item in items]
    for fold in range(FOLDS):
        yield [i for i, own in enumerate(folds) if own != fold], [i for i, own in enumerate(folds) if own == fold]


def _unrelated(variants: dict[str, list[Case]]) -> list[Case]:
    """Return each answer once, with the comment on another answer, in one of the variants' forms."""
    forms = [unrelated(cases) for cases in variants.values()]
    return [forms[i % len(forms)][i] for i in range(len(forms[0]))]


def _item(source: str, case: Case, weight: float, features: Features) -> Item:
    return Item(source, case.group, weight, features, np.array(case.gold, np.int64))


def _spelling(case: Case) -> Features:
    return compute_word_features(case.comment, case.completion, case.prompt)[2]


def _attention(cases: Sequence[Case], cache: Path | None, device: str) -> list[Features]:
    model = load_model(DEFAULT_MODEL, dtype=torch.bfloat16).to(device).eval()
    scorer = AttentionScorer(model, load_tokenizer(DEFAULT_MODEL))
    if cache:
        cache.mkdir(parents=True, exist_ok=True)
    return [_cached(case, cache, lambda case: _compute_attention(scorer, case)) for case in cases]


def _compute_attention(scorer: AttentionScorer, case: Case) -> Features:
    views = scorer.score_words(case.comment, case.completion, case.prompt, split_words(case.completion))
    assert views is not None, "no case is too long for the model"
    return views


def _cached(case: Case, cache: Path | None, compute: Callable[[Case], Features]) -> Features:
    if cache is None:
        return compute(case)
    path = cache / f"{cache_key(case)}.npy"
    if not path.exists():
        np.save(path, compute(case).astype(np.float16))
    return np.load(path).astype(np.float32)


def cache_key(case: Case) -> str:
    return hashlib.sha1(json.dumps([case.comment, case.completion, case.prompt]).encode()).hexdigest()


def _fit_linear(items: Sequence[Item]) -> NDArray[np.float64]:
    """Logistic regression on standardised features, folded into weights for the raw ones, the bias last."""
    features = np.concatenate([item.features for item in items])
    mean, deviation = features.mean(0), features.std(0) + 1e-4
    weights = np.concatenate([np.full(len(item.labels), item.weight) for item in items])
    labels = np.concatenate([item.labels for item in items])
    model = LogisticRegression(C=HEADS_STRENGTH, max_iter=100)
    model.fit((features - mean) / deviation, labels, sample_weight=weights)
    raw = model.coef_[0] / deviation
    return np.append(raw, model.intercept_[0] - raw @ mean)


def _score(features: Features, weights: NDArray[np.float64]) -> Features:
    return (features @ weights[:-1] + weights[-1]).astype(np.float32)


def _changed_lines(before: str, after: str) -> set[int]:
    """Return the numbers of the lines that were replaced or deleted; white space and comments are ignored."""

    def meaningful(source: str) -> list[tuple[int, str]]:
        lines = [(number, re.sub(r"\s+", "", line)) for number, line in enumerate(source.splitlines(), 1)]
        return [(number, line) for number, line in lines if line and not line.startswith("#")]

    old, new = meaningful(before), meaningful(after)
    matcher = difflib.SequenceMatcher(None, [text for _, text in old], [text for _, text in new], autojunk=False)
    changes = [code for code in matcher.get_opcodes() if code[0] in ("replace", "delete")]
    return {old[i][0] for _, start, end, _, _ in changes for i in range(start, end)}


def _save(
    path: Path,
    columns: Sequence[str],
    model: lightgbm.Booster,
    settings: dict[str, Any],
    items: Sequence[Item],
    **more: Any,
) -> None:
    data = {**settings, "trees": arrays(columns, model), **more}
    trees = BoostedTrees.from_dict(data["trees"])
    for item in items[:100]:  # NumPy inference must agree with LightGBM
        assert np.allclose(trees.predict_proba(columns, item.features), model.predict(item.features), atol=1e-3)
    save_weights(data, path)


def arrays(columns: Sequence[str], model: lightgbm.Booster) -> dict[str, Any]:
    """Convert LightGBM's trees to the format of `text2grad.align.learned.boosted_trees.BoostedTrees`."""
    nodes: dict[str, list[Any]] = {
        key: [] for key in ("feature", "threshold", "missing_left", "left", "right", "value")
    }
    depths: list[int] = []

    def add(node: dict[str, Any], depth: int) -> int:
        index = len(nodes["feature"])
        leaf = "leaf_value" in node
        depths.append(depth)
        nodes["feature"].append(0 if leaf else node["split_feature"])
        nodes["threshold"].append(0.0 if leaf else float(f"{node['threshold']:.7g}"))
        nodes["missing_left"].append(0 if leaf else int(node["default_left"]))
        nodes["value"].append(float(f"{node['leaf_value']:.5g}") if leaf else 0.0)
        nodes["left"].append(index)
        nodes["right"].append(index)
        if not leaf:
            nodes["left"][index] = add(node["left_child"], depth + 1)
            nodes["right"][index] = add(node["right_child"], depth + 1)
        return index

    roots = [add(each["tree_structure"], 0) for each in model.dump_model()["tree_info"]]
    return {"columns": list(columns), "roots": roots, **nodes, "depth": max(depths)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
