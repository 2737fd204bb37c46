"""Learn what the free-form aligner ships with: src/text2grad/align/learned/weights/*.json.

Needs lightgbm and scikit-learn (`pip install lightgbm scikit-learn`); the aligner itself does not.

words.json        trees over the letters alone
heads.json        a linear score of the default model's attention heads, and trees over that and the letters
statements.json   trees over the statements of programs

Learned from: DeFacto's training split (people's critiques and edit instructions; every row also with the critique or
the instruction alone and without its source, so that no form of comment is taken for granted; and with the comment on
another summary, so that some comments are about nothing), a third of HaluQuestQA's reasons, and DebugBench's
explanations of bugs. DeFacto's validation split and ILF's code critiques are
kept for `freeform.py` and `code_blame.py`. Everything is chosen by cross-validation in five folds, whole rows,
questions and programs at a time.

`--cache FOLDER` keeps what the model was read for; that takes about a second a comment on one core.
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
from freeform_cases import Case, debugbench_bugs, defacto_variants, halu_cases, unrelated
from harness import ROOT, data_folder, show
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from text2grad.align.learned.attention import AttentionScorer
from text2grad.align.learned.freeform import around, chosen, head_names
from text2grad.align.learned.statement_features import of_statements
from text2grad.align.learned.trees import Trees
from text2grad.align.learned.word_features import lexical
from text2grad.align.program import extract, tree
from text2grad.align.statements import statements
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.text.whitespace import split_words

OUT = ROOT / "src" / "text2grad" / "data" / "freeform"
FOLDS = 5
MAIN = "critique and instruction"
WEIGHTS = {
    MAIN: 1.0,
    "critique": 0.4,
    "instruction": 0.3,
    "critique and instruction, no source": 0.3,
    "critique, no source": 0.2,
}
HALU = "HaluQuestQA"
UNRELATED, UNRELATED_WEIGHT, UNRELATED_STEP_HEADS = "unrelated comment", 0.35, 2
DEBUGBENCH = "DebugBench"
HALU_WEIGHT, HALU_STEP, HALU_STEP_HEADS = 0.3, 3, 12
THRESHOLDS = np.arange(0.2, 0.6, 0.02)
HEADS_STRENGTH = 1e-3  # scikit-learn's C: 1 620 views of the heads want a strong penalty
TREES = {
    "objective": "binary",
    "learning_rate": 0.04,
    "num_leaves": 12,
    "min_child_samples": 25,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "max_bin": 63,
    "num_threads": 1,
    "seed": 0,
    "deterministic": True,
    "verbose": -1,
}
ROUNDS = 400
SMALL_TREES = {"num_leaves": 8, "min_child_samples": 30}
STATEMENT_ROUNDS = 150

Features = NDArray[np.float32]
Labels = NDArray[np.int64]
Figures = tuple[float, float, float]


@dataclass(frozen=True)
class Item:
    """One comment: a row of features and a label for each of its words or statements."""

    source: str
    group: str
    weight: float
    features: Features
    labels: Labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, help="folder that keeps what the model was read for")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    data = data_folder()
    learn_statements(data)
    learn_words(data)
    learn_heads(data, args.cache, args.device)


def learn_words(data: Path) -> None:
    variants = defacto_variants(data, "train")
    cases = [(name, case, weight) for name, weight in WEIGHTS.items() for case in variants[name]]
    cases += [(UNRELATED, case, UNRELATED_WEIGHT) for case in _unrelated(variants)]
    cases += [(HALU, case, HALU_WEIGHT) for case in _halu(data, HALU_STEP)]
    items = [_item(name, case, weight, _lexical(case)) for name, case, weight in cases]
    names = lexical("a", "b", "c")[1]
    threshold = cross_validate("words", items, MAIN, ROUNDS, {})
    _save("words", names, fit(items, ROUNDS, {}), threshold, items)


def learn_heads(data: Path, cache: Path | None, device: str) -> None:
    variants = defacto_variants(data, "train")
    others = [name for name in WEIGHTS if name != MAIN]
    cases = [(MAIN, case, 1.0) for case in variants[MAIN]]
    # reading is slow, so each row comes once more, in one of its other forms
    cases += [(name, variants[name][i], 0.7) for i in range(len(variants[MAIN])) for name in [others[i % len(others)]]]
    cases += [(UNRELATED, case, UNRELATED_WEIGHT) for case in _unrelated(variants)[::UNRELATED_STEP_HEADS]]
    cases += [(HALU, case, HALU_WEIGHT) for case in _halu(data, HALU_STEP_HEADS)]
    attention = _attention([case for _, case, _ in cases], cache, device)
    seen = [_item(name, case, weight, views) for (name, case, weight), views in zip(cases, attention, strict=True)]
    scores: list[Features] = [np.zeros(0, np.float32)] * len(seen)
    for train, test in _folds(seen):
        weights = _linear([seen[i] for i in train])
        for i in test:
            scores[i] = _score(seen[i].features, weights)
    items = [
        replace(item, features=np.hstack([_lexical(case), around(score)]))
        for item, (_, case, _), score in zip(seen, cases, scores, strict=True)
    ]
    names = [*lexical("a", "b", "c")[1], *head_names()]
    threshold = cross_validate("heads", items, MAIN, ROUNDS, {})
    weights = [float(f"{weight:.5g}") for weight in _linear(seen)]
    _save("heads", names, fit(items, ROUNDS, {}), threshold, items, weights=weights)


def learn_statements(data: Path) -> None:
    items, names = [], []
    for number, bug in enumerate(debugbench_bugs(data)):
        answer, module = extract(bug.code), tree(bug.code)
        own = statements(answer) if answer and module else {}
        changed = _changed_lines(bug.code, bug.fixed) & set(own)
        if module and changed and len(own) > 2:
            names, features = of_statements(bug.comment, list(own.values()), module)
            items.append(
                Item(DEBUGBENCH, str(number), 1.0, features, np.array([line in changed for line in own], np.int64))
            )
    threshold = cross_validate("statements", items, DEBUGBENCH, STATEMENT_ROUNDS, SMALL_TREES)
    _save("statements", names, fit(items, STATEMENT_ROUNDS, SMALL_TREES), threshold, items)


def cross_validate(title: str, items: Sequence[Item], main: str, rounds: int, settings: dict[str, Any]) -> float:
    """The threshold with the best F1 on the source `main`; prints figures of every source at that threshold."""
    probabilities: dict[int, NDArray[np.float64]] = {}
    for train, test in _folds(items):
        model = fit([items[i] for i in train], rounds, settings)
        probabilities |= {i: model.predict(items[i].features) for i in test}

    def figures(source: str, threshold: float) -> Figures:
        own = [i for i, item in enumerate(items) if item.source == source]
        return f1([chosen(probabilities[i], threshold) for i in own], [items[i].labels for i in own])

    def marked(source: str, threshold: float) -> float:
        own = [i for i, item in enumerate(items) if item.source == source]
        return float(np.mean([chosen(probabilities[i], threshold).any() for i in own]))

    threshold = max(THRESHOLDS, key=lambda threshold: figures(main, threshold)[2])
    rows = [
        [source, *(f"{figure:.3f}" for figure in (*figures(source, threshold), marked(source, threshold)))]
        for source in dict.fromkeys(item.source for item in items)
    ]
    show(
        f"{title}: cross-validated, threshold {threshold:.2f}",
        ["", "precision", "recall", "F1", "comments placed"],
        rows,
    )
    return round(float(threshold), 2)


def fit(items: Sequence[Item], rounds: int, settings: dict[str, Any]) -> lightgbm.Booster:
    weights = np.concatenate([np.full(len(item.labels), item.weight) for item in items])
    features = np.concatenate([item.features for item in items])
    labels = np.concatenate([item.labels for item in items])
    return lightgbm.train(TREES | settings, lightgbm.Dataset(features, labels, weight=weights), rounds)


def f1(taken: Sequence[NDArray[np.bool_]], gold: Sequence[NDArray[Any]]) -> Figures:
    """Precision, recall and F1 over all words together."""
    said, meant = np.concatenate(taken), np.concatenate(gold).astype(bool)
    right = int((said & meant).sum())
    return right / max(1, said.sum()), right / max(1, meant.sum()), 2 * right / max(1, said.sum() + meant.sum())


def _folds(items: Sequence[Item]) -> Iterator[tuple[list[int], list[int]]]:
    folds = [int(hashlib.sha1(item.group.encode()).hexdigest(), 16) % FOLDS for item in items]
    for fold in range(FOLDS):
        yield [i for i, own in enumerate(folds) if own != fold], [i for i, own in enumerate(folds) if own == fold]


def _halu(data: Path, step: int) -> list[Case]:
    """Every `step`-th mark, one in two without its question."""
    return [case if i % 2 else replace(case, prompt=None) for i, case in enumerate(halu_cases(data)[::step])]


def _unrelated(variants: dict[str, list[Case]]) -> list[Case]:
    """Each answer once, with a foreign comment in one of the variants' forms."""
    forms = [unrelated(cases) for cases in variants.values()]
    return [forms[i % len(forms)][i] for i in range(len(forms[0]))]


def _item(source: str, case: Case, weight: float, features: Features) -> Item:
    return Item(source, case.group, weight, features, np.array(case.gold, np.int64))


def _lexical(case: Case) -> Features:
    return lexical(case.comment, case.completion, case.prompt)[2]


def _attention(cases: Sequence[Case], cache: Path | None, device: str) -> list[Features]:
    model = load_model(DEFAULT_MODEL, dtype=torch.bfloat16).to(device).eval()
    scorer = AttentionScorer(model, load_tokenizer(DEFAULT_MODEL))
    if cache:
        cache.mkdir(parents=True, exist_ok=True)
    return [_cached(case, cache, lambda case: _read(scorer, case)) for case in cases]


def _read(scorer: AttentionScorer, case: Case) -> Features:
    views = scorer.read(case.comment, case.completion, case.prompt, split_words(case.completion))
    assert views is not None, "no case is too long for the model"
    return views


def _cached(case: Case, cache: Path | None, read: Callable[[Case], Features]) -> Features:
    if cache is None:
        return read(case)
    path = cache / f"{cache_key(case)}.npy"
    if not path.exists():
        np.save(path, read(case).astype(np.float16))
    return np.load(path).astype(np.float32)


def cache_key(case: Case) -> str:
    return hashlib.sha1(json.dumps([case.comment, case.completion, case.prompt]).encode()).hexdigest()


def _linear(items: Sequence[Item]) -> NDArray[np.float64]:
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
    """Numbers of the lines that were replaced or deleted; white space and comments do not count."""

    def meaningful(source: str) -> list[tuple[int, str]]:
        lines = [(number, re.sub(r"\s+", "", line)) for number, line in enumerate(source.splitlines(), 1)]
        return [(number, line) for number, line in lines if line and not line.startswith("#")]

    old, new = meaningful(before), meaningful(after)
    matcher = difflib.SequenceMatcher(None, [text for _, text in old], [text for _, text in new], autojunk=False)
    changes = [code for code in matcher.get_opcodes() if code[0] in ("replace", "delete")]
    return {old[i][0] for _, start, end, _, _ in changes for i in range(start, end)}


def _save(
    name: str, columns: Sequence[str], model: lightgbm.Booster, threshold: float, items: Sequence[Item], **more: Any
) -> None:
    data = {"threshold": threshold, "trees": _arrays(columns, model), **more}
    trees = Trees.from_dict(data["trees"])
    for item in items[:100]:  # what ships must say what was learned
        assert np.allclose(trees.probabilities(columns, item.features), model.predict(item.features), atol=1e-3)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


def _arrays(columns: Sequence[str], model: lightgbm.Booster) -> dict[str, Any]:
    """LightGBM's trees as `text2grad.align.learned.trees.Trees` reads them."""
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
