"""Train the weights of the stance model: src/text2grad/align/weights/stance.json.

A softmax regression over the features of clauses (`align/stance_features.py`), trained on hand-written clauses with
slots (`stance_data/`), alone and joined to one another, and on public critiques: DeFacto's training split, ILF's and
DebugBench's explanations of bugs, whose rows only suggest a stance. HaluQuestQA and DeFacto's validation split are held
out. Prints cross-validation by skeleton, and the results on `stance_data/dev.txt` and `check.txt`: nothing is trained
on these, but training clauses were added after looking at what they show, so cross-validation is the honest figure.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from harness import ROOT, data_folder, show
from stance_comments import STANCES, Labelled, fill, public_critiques, read_labelled, read_skeletons
from torch.nn.functional import binary_cross_entropy_with_logits

from text2grad.align.clause_split import mask_quotations, split_sentences
from text2grad.align.stance_features import extract_features

OUT = ROOT / "src" / "text2grad" / "align" / "weights" / "stance.json"
FILLS = 3  # clauses per skeleton with slots
JOINED = 800  # pairs of clauses joined by a conjunction
FOLDS = 5
EPOCHS, BATCH, RATE, DECAY = 16, 256, 0.02, 5e-5
MIN_SKELETONS = 2  # that a feature must occur in
SMALLEST = 8  # hundredths; smaller weights are dropped
WORDLESS = 0.5  # weight of a clause without the features of its words, so that roles count for unknown words
WORD_FEATURES = ("w:", "n:", "b:", "i:")
MIN_STANCE = 0.6  # as in align/clauses.py
PUBLIC_WEIGHT = {"defacto": 0.4, "defacto instructions": 0.05, "ilf": 0.4, "debugbench": 0.15}
CERTAINTY = {"defacto": 0.8, "defacto instructions": 0.95, "ilf": 0.85, "debugbench": 0.85}
PRAISE_CERTAINTY = 0.75  # of DeFacto's rows without an error, which often only repeat the source
ONE_OF_MANY = 0.12  # less certain: a sentence of several
MISSING_WEIGHT = 2.5  # of clauses that say that something is missing, which are few
SAYS_MISSING = {"defacto": 0.03}
CONTRASTS = ("but", "although", "however", "though", "while", "yet", "except that", "whereas")


@dataclass(frozen=True)
class Item:
    """Features, the probabilities of the stances and that something is missing, the weight, and what it is made from.

    says_missing is None where that is unknown.
    """

    features: list[str]
    target: tuple[float, ...]
    says_missing: float | None
    weight: float
    skeleton: str
    text: str = ""


def hand_written(rng: random.Random) -> list[Item]:
    """Return the clauses, each skeleton with several fillings of its slots, in upper or lower case, and joined."""
    items: list[Item] = []
    clauses: dict[str, list[Labelled]] = defaultdict(list)
    for skeleton, stance in read_skeletons():
        fills = FILLS if "{" in skeleton else 1
        for _ in range(fills):
            clause = fill(skeleton, stance, rng)
            clauses[stance].append(clause)
            items.append(_item(clause, weight=1.0 / fills))
    for _ in range(JOINED):
        first, second = ("good", "poor") if rng.random() < 0.75 else ("poor", "good")
        word = rng.choice(CONTRASTS)
        left, right = rng.choice(clauses[first]), rng.choice(clauses[second])
        items.append(_item(left, after=word, weight=0.25))
        items.append(_item(right, before=word, weight=0.25))
    for _ in range(JOINED):
        left, right = (rng.choice(clauses[rng.choice(STANCES)]) for _ in range(2))
        items.append(_item(left, after="and", weight=0.1))
        items.append(_item(right, before="and", weight=0.1))
    return items


def _item(clause: Labelled, before: str = "", after: str = "", weight: float = 1.0) -> Item:
    target = tuple(float(stance == clause.stance) for stance in STANCES)
    says_missing = float(clause.missing is not None)
    return Item(_features(clause.text, before, after), target, says_missing, weight, clause.skeleton, clause.text)


def _features(text: str, before: str = "", after: str = "") -> list[str]:
    return extract_features(mask_quotations(text), before, after)


def public() -> list[Item]:
    """Return the sentences of public critiques, each with its row's stance as far as that can be relied on."""
    items = []
    for source, stance, critique in public_critiques(data_folder()):
        masked = mask_quotations(critique)
        sentences = [critique[start:end] for start, end in split_sentences(masked)]
        for sentence in sentences:
            sure = PRAISE_CERTAINTY if stance == "good" else CERTAINTY[source]
            sure -= ONE_OF_MANY * (len(sentences) > 1)
            target = tuple(sure if name == stance else 1 - sure if name == "unsure" else 0.0 for name in STANCES)
            says_missing = SAYS_MISSING.get(source)
            if source == "defacto instructions":
                says_missing = float(sentence.startswith("Add "))
            items.append(Item(_features(sentence), target, says_missing, PUBLIC_WEIGHT[source], sentence))
    return items


def prepare(items: Sequence[Item]) -> list[Item]:
    """Return the items with the same weight for praise and blame, and again without the features of their words."""
    sums = [sum(item.weight * item.target[i] for item in items) for i in range(2)]
    factors = (sum(sums) / 2 / sums[0], sum(sums) / 2 / sums[1], 1.0)
    balanced = [
        replace(item, weight=item.weight * sum(f * t for f, t in zip(factors, item.target, strict=True)))
        for item in items
    ]
    wordless = [
        replace(
            item, features=[f for f in item.features if not f.startswith(WORD_FEATURES)], weight=item.weight * WORDLESS
        )
        for item in balanced
    ]
    return balanced + wordless


def train(items: Sequence[Item], seed: int = 0) -> dict[str, list[int]]:
    """Return the weights of good, poor and unsure by feature, in hundredths."""
    torch.manual_seed(seed)
    seen: dict[str, set[str]] = defaultdict(set)
    for item in items:
        for feature in item.features:
            if len(seen[feature]) < MIN_SKELETONS:
                seen[feature].add(item.skeleton)
    index = {feature: i for i, (feature, found) in enumerate(sorted(seen.items())) if len(found) >= MIN_SKELETONS}
    index = {feature: i for i, feature in enumerate(index)}
    bags = [torch.tensor([index[f] for f in item.features if f in index], dtype=torch.long) for item in items]
    targets, weights = torch.tensor([item.target for item in items]), torch.tensor([item.weight for item in items])
    missing = torch.tensor([item.says_missing or 0.0 for item in items])
    known = torch.tensor([item.weight * (item.says_missing is not None) for item in items])
    table = torch.nn.EmbeddingBag(len(index), 4, mode="sum")
    torch.nn.init.zeros_(table.weight)
    bias = torch.nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.Adam([table.weight, bias], lr=RATE)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(items)).split(BATCH):
            chosen = [bags[i] for i in batch.tolist()]
            offsets = torch.tensor([0, *(len(bag) for bag in chosen[:-1])]).cumsum(0)
            scores = table(torch.cat(chosen), offsets) + bias
            stances, omission = scores[:, :3].log_softmax(-1), scores[:, 3]
            loss = -(weights[batch] * (targets[batch] * stances).sum(-1)).sum() / weights[batch].sum()
            errors = binary_cross_entropy_with_logits(
                omission, missing[batch], reduction="none", pos_weight=torch.tensor(MISSING_WEIGHT)
            )
            loss += (known[batch] * errors).sum() / known[batch].sum()
            optimizer.zero_grad()
            (loss + DECAY * table.weight.square().sum()).backward()
            optimizer.step()
        scheduler.step()
    learned = (100 * table.weight.detach()).round().int().tolist()
    kept = {feature: learned[i] for feature, i in index.items() if max(map(abs, learned[i])) >= SMALLEST}
    return {"bias": (100 * bias.detach()).round().int().tolist(), **kept}


def predict(weights: dict[str, list[int]], features: list[str]) -> np.ndarray:
    """Return the probabilities of good, poor and unsure, and that something is missing."""
    scores = np.array(weights["bias"], dtype=float)
    for feature in features:
        if feature in weights:
            scores += weights[feature]
    odds = np.exp((scores[:3] - scores[:3].max()) / 100)
    return np.append(odds / odds.sum(), 1 / (1 + np.exp(-scores[3] / 100)))


def decide(probabilities: np.ndarray) -> str:
    """Return the stance as `read_clauses` does."""
    best = int(probabilities[:2].argmax())
    return STANCES[best] if probabilities[best] >= MIN_STANCE else "unsure"


def evaluate(weights: dict[str, list[int]], items: Sequence[Item]) -> dict[str, float]:
    """Return accuracies, the rate of wrong directions and the calibration error of the stances that are taken."""
    right: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    wrong, confidence = 0, []
    omissions: Counter[tuple[bool, bool]] = Counter()
    for item in items:
        probabilities = predict(weights, item.features)
        truth, found = STANCES[int(np.argmax(item.target))], decide(probabilities)
        totals[truth] += 1
        right[truth] += truth == found
        wrong += {truth, found} == {"good", "poor"}
        omissions[bool(item.says_missing), bool(probabilities[3] >= 0.5)] += 1
        if found != "unsure":
            confidence.append((probabilities[:3].max(), truth == found))
    result = {stance: right[stance] / max(1, totals[stance]) for stance in STANCES}
    result["accuracy"] = sum(right.values()) / sum(totals.values())
    result["wrong direction"] = wrong / sum(totals.values())
    result["omission recall"] = omissions[True, True] / max(1, omissions[True, True] + omissions[True, False])
    result["omission precision"] = omissions[True, True] / max(1, omissions[True, True] + omissions[False, True])
    result["calibration error"] = _calibration_error(confidence)
    return result


def _calibration_error(pairs: Sequence[tuple[float, bool]]) -> float:
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for probability, is_right in pairs:
        bins[min(9, int(probability * 10))].append((probability, is_right))
    gaps = [abs(sum(p for p, _ in found) - sum(r for _, r in found)) for found in bins.values()]
    return sum(gaps) / max(1, len(pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--errors", action="store_true", help="show the clauses that are misread")
    parser.add_argument("--no-folds", action="store_true", help="skip cross-validation")
    args = parser.parse_args()
    rng = random.Random(0)
    own, others = hand_written(rng), public()
    print(f"{len(own)} hand-written clauses, {len(others)} sentences of public critiques")
    rows = []
    if not args.no_folds:
        rows.append(["cross-validation", *cross_validate(own, others, args.errors)])
    weights = train(prepare([*own, *others]))
    for name in ("dev.txt", "check.txt"):
        items = [_item(clause) for clause in read_labelled(name)]
        result = evaluate(weights, items)
        rows.append([name, *_cells(result)])
        if args.errors:
            show_errors(weights, items)
    show("stance", ["clauses", *result], rows)
    OUT.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}" for key, value in weights.items()]
    OUT.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
    print(f"{len(weights)} weights, {OUT.stat().st_size} bytes")


def cross_validate(own: Sequence[Item], others: Sequence[Item], errors: bool) -> list[str]:
    """Return the mean results on held-out skeletons."""
    skeletons = sorted({item.skeleton for item in own})
    random.Random(1).shuffle(skeletons)
    fold_of = {skeleton: i % FOLDS for i, skeleton in enumerate(skeletons)}
    results = []
    for fold in range(FOLDS):
        weights = train(prepare([*(item for item in own if fold_of[item.skeleton] != fold), *others]))
        held = [item for item in own if fold_of[item.skeleton] == fold and item.weight > 0.2]
        held = list({item.skeleton: item for item in held if "before:" in item.features}.values())
        results.append(evaluate(weights, held))
        if errors:
            show_errors(weights, held)
    return _cells({name: float(np.mean([result[name] for result in results])) for name in results[0]})


def show_errors(weights: dict[str, list[int]], items: Sequence[Item]) -> None:
    for item in items:
        probabilities = predict(weights, item.features)
        truth, found = STANCES[int(np.argmax(item.target))], decide(probabilities)
        if truth != found:
            print(f"{truth:>7} read as {found:<7} {np.round(probabilities, 2)} {item.text}")


def _cells(result: dict[str, float]) -> list[str]:
    return [f"{value:.3f}" for value in result.values()]


if __name__ == "__main__":
    main()
