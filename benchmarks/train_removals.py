"""Train the weights of `align.learned.removals` on the requests to remove something in DeFacto's training split.

A request is a sentence of a person's instruction, a candidate is right if the person's corrected summary agrees with
the removal (`corrections_judge`). Two things clean the labels: a request is not credited with removals that another
sentence of the same instruction asks for, as far as its words tell, and a request whose words the person changed, but
not by a mere removal, is left out. The model is a conditional logistic regression over the candidates and "none",
with an L2 penalty; every request is used with and without the article. Four-fold cross-validation prints what to
expect; the validation split is not read.

python benchmarks/train_removals.py    writes src/text2grad/align/learned/weights/removals.json.gz
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from corrections_judge import agrees, agrees_apart_from_other_changes, align_words, normalized_words
from harness import ROOT, data_folder, options, save_weights, show

from text2grad.align.answer.cuts import cut
from text2grad.align.corrections.change_requests import find_requests
from text2grad.align.corrections.corrections import split_request
from text2grad.align.learned.removal_features import Features, compute_features
from text2grad.align.learned.removal_requests import parse_request
from text2grad.align.learned.removals import list_candidates
from text2grad.data.reading import read_rows
from text2grad.text.whitespace import part_key, split_parts, split_words

WEIGHTS = ROOT / "src" / "text2grad" / "align" / "learned" / "weights" / "removals.json.gz"
PENALTY = 3.0
FOLDS = 4
MIN_COUNT = 20
THRESHOLDS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.3)


@dataclass(frozen=True)
class Group:
    """The candidates of one request: features with and without the article, and which are right by either judge."""

    row: int
    with_source: list[Features]
    without_source: list[Features]
    labels: list[bool]
    strict: list[bool]
    lenient: list[bool]
    is_noise: bool


def main() -> None:
    args = options(__doc__ or "")
    torch.set_num_threads(1)
    rows = list(read_rows(data_folder() / "defacto" / "train.jsonl.gz", "DeFacto"))
    groups = [group for number, row in enumerate(rows[:200] if args.quick else rows) for group in read(number, row)]
    numbers = sorted({group.row for group in groups})
    random.Random(0).shuffle(numbers)
    judged: list[tuple[float, int, bool, bool]] = []
    for fold in range(FOLDS):
        held_out = set(numbers[fold::FOLDS])
        weights = fit([group for group in groups if group.row not in held_out])
        judged += [best(group, weights) for group in groups if group.row in held_out and group.labels]
    table = []
    for threshold in THRESHOLDS:
        taken = [each for each in judged if each[0] >= threshold]
        found = len({row for _, row, _, _ in taken}) / len(numbers)
        shares = [sum(each[i] for each in taken) / max(1, len(taken)) for i in (2, 3)]
        table.append([f"{threshold:g}", f"{found:.3f}", *(f"{share:.3f}" for share in shares)])
    show("Cross-validation", ["probability", "rows", "agree", "agree apart from other changes"], table)
    if not args.quick:
        weights = {name: round(value, 3) for name, value in sorted(fit(groups).items()) if round(value, 3)}
        save_weights(weights, WEIGHTS)


def read(number: int, row: dict[str, Any]) -> Iterable[Group]:
    """Yield the requests of a row to remove something."""
    answer, feedback = row["candidate"], row["feedback"]
    corrected, comment = feedback["summary"], feedback["instruction"]
    if not row["has_error"] or not corrected:
        return
    requests = [
        part
        for request in find_requests(comment)
        if request.kind == "remove" and request.old
        for part in split_request(comment[request.old.start : request.old.end], answer)
    ]
    words = split_words(answer)
    heads = [parse_request(part).head for part in requests]
    kept = align_words(normalized_words(answer), normalized_words(corrected))
    changed = {
        part_key(part) for i, word in enumerate(normalized_words(answer)) if i not in kept for part in split_parts(word)
    }
    present = {key for word in words for key in word.keys}
    for request, head in zip(requests, heads, strict=True):
        candidates = list_candidates(request, words)
        cuts = [cut(answer, words, *candidate) for candidate in candidates]
        strict = [agrees(answer, *each, corrected) for each in cuts]
        lenient = [agrees_apart_from_other_changes(answer, each.start, each.end, corrected) for each in cuts]
        asked = parse_request(request)
        own = head & present
        others = frozenset[str]().union(*(h for h in heads if h is not head)) - head - asked.anchor
        inside = [{key for word in words[a:b] if word.is_content for key in word.keys} for a, b in candidates]
        labels = [
            (is_strict or (is_lenient and not (keys and own and not keys <= head | asked.anchor)))
            and (bool(keys & own) if own else not keys & others)
            for is_strict, is_lenient, keys in zip(strict, lenient, inside, strict=True)
        ]
        both = [label and is_strict for label, is_strict in zip(labels, strict, strict=True)]
        labels = both if any(both) else labels
        yield Group(
            row=number,
            with_source=compute_features(request, words, candidates, row["article"]),
            without_source=compute_features(request, words, candidates, None),
            labels=labels,
            strict=strict,
            lenient=lenient,
            is_noise=not any(labels) and (not own or bool(own & changed)),
        )


def fit(groups: Sequence[Group]) -> dict[str, float]:
    """Return the weights that maximise the probability of the right candidates, or of "none" where none is right."""
    used = [
        (features, group.labels)
        for group in groups
        if group.labels and not group.is_noise
        for features in (group.with_source, group.without_source)
    ]
    counts = Counter(name for features, _ in used for each in features for name in each)
    names = {name: i for i, name in enumerate(sorted(name for name, count in counts.items() if count >= MIN_COUNT))}
    places: list[tuple[int, int]] = []
    values: list[float] = []
    owners: list[int] = []
    right: list[float] = []
    for owner, (features, labels) in enumerate(used):
        for each, label in zip(features, labels, strict=True):
            for name, value in each.items():
                if value and name in names:
                    places.append((len(owners), names[name]))
                    values.append(value)
            owners.append(owner)
            right.append(float(label))
    inputs = torch.sparse_coo_tensor(
        torch.tensor(places).T, torch.tensor(values), (len(owners), len(names)), check_invariants=False
    ).coalesce()
    owner_ids, is_right = torch.tensor(owners), torch.tensor(right)
    sums = torch.zeros(len(used))
    has_right = sums.index_add(0, owner_ids, is_right) > 0
    weights = torch.zeros(len(names), requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        odds = torch.sparse.mm(inputs, weights[:, None])[:, 0].clamp(max=30).exp()
        total = 1 + sums.index_add(0, owner_ids, odds)
        good = torch.where(has_right, sums.index_add(0, owner_ids, odds * is_right), torch.ones(len(used)))
        # every request counts once, though it is used twice
        value = (total.log() - good.log()).sum() / 2 + PENALTY * weights.square().sum() / 2
        value.backward()
        return value

    optimizer.step(loss)
    return dict(zip(names, weights.tolist(), strict=True))


def best(group: Group, weights: dict[str, float]) -> tuple[float, int, bool, bool]:
    """Return the probability of the best candidate, the row, and whether it is right by either judge."""
    scores = [sum(weights.get(name, 0.0) * value for name, value in each.items()) for each in group.with_source]
    probabilities = torch.tensor([*scores, 0.0]).softmax(0)[:-1]
    i = int(probabilities.argmax())
    return float(probabilities[i]), group.row, group.strict[i], group.strict[i] or group.lenient[i]


if __name__ == "__main__":
    main()
