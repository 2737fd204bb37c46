"""Train the reading of clauses: src/text2grad/align/weights/ stance.json.gz, stance_net.safetensors and join.json.gz.

Needs SciPy (`pip install scipy`). A softmax regression over the features of clauses
(`align/stance/stance_features.py`) and a small network over their words (`align/stance/stance_net.py`,
`train_stance_net.py`) are trained on the labelled clauses of `comments_train/` and the parts that the package splits
them into, on hand-written clauses with slots (`stance_data/`), alone and joined to one another, and on public
critiques: DeFacto's training split, ILF's and DebugBench's explanations of bugs, whose rows only suggest a stance.
HaluQuestQA, DeFacto's validation split and `comments_data/` are held out. A logistic regression
(`align/clauses/clause_join.py`) tells which neighbouring parts of a comment belong to one labelled clause; it sees
stances that were predicted without their writer.

Prints the results on `stance_data/dev.txt` and `check.txt`: nothing is trained on these two, but training clauses were
added after looking at what they show. `comments_folds.py` has the results on comments of writers that are left out.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from comment_labels import LabelledComment, Opinion, best_overlap, labelled, load
from harness import ROOT, data_folder, save_weights, show
from safetensors.numpy import save_file
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit, log_softmax
from stance_comments import STANCES, Labelled, fill, public_critiques, read_labelled, read_skeletons
from torch.nn.functional import binary_cross_entropy_with_logits
from train_stance_net import Arrays, train_net

from text2grad.align.answer.document import Document
from text2grad.align.clauses import clause_join, clauses
from text2grad.align.clauses.clause_split import Piece, mask_quotations, split_sentences
from text2grad.align.stance import stance_model, stance_net
from text2grad.align.stance.stance_context import relate_to_answer
from text2grad.align.stance.stance_features import extract_features
from text2grad.schema import Range

OUT = ROOT / "src" / "text2grad" / "align" / "weights"
FILLS = 3  # clauses per skeleton with slots
JOINED = 800  # pairs of clauses joined by a conjunction
ITERATIONS, DECAY = 80, 4e-5
MIN_NET_WEIGHT = 0.03  # of items that the network is trained on
MIN_SKELETONS = 2  # that a feature must occur in
SMALLEST = 10  # hundredths; smaller weights are dropped
WORDLESS = 0.4  # weight of a clause without the features of its words, so that roles count for unknown words
WORD_FEATURES = ("w:", "n:", "b:", "i:")
PUBLIC_WEIGHT = {"defacto": 0.4, "defacto instructions": 0.05, "ilf": 0.4, "debugbench": 0.15}
CERTAINTY = {"defacto": 0.8, "defacto instructions": 0.95, "ilf": 0.85, "debugbench": 0.85}
PRAISE_CERTAINTY = 0.75  # of DeFacto's rows without an error, which often only repeat the source
ONE_OF_MANY = 0.12  # less certain: a sentence of several
MISSING_WEIGHT = 2.5  # of clauses that say that something is missing, which are few
PART_WEIGHT = 0.5  # of a part of a labelled clause
OTHERS_WEIGHT = 2.0  # of everything but labelled comments
JOIN_DECAY, MIN_JOINS, SMALLEST_JOIN = 2e-3, 3, 2
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
    masked: str
    context: list[str] = field(default_factory=list)


def hand_written(rng: random.Random) -> list[Item]:
    """Return the clauses, each skeleton with several fillings of its slots, in upper or lower case, and joined."""
    items: list[Item] = []
    filled: dict[str, list[Labelled]] = defaultdict(list)
    for skeleton, stance in read_skeletons():
        fills = FILLS if "{" in skeleton else 1
        for _ in range(fills):
            clause = fill(skeleton, stance, rng)
            filled[stance].append(clause)
            items.append(_item(clause, weight=1.0 / fills))
    for _ in range(JOINED):
        first, second = ("good", "poor") if rng.random() < 0.75 else ("poor", "good")
        word = rng.choice(CONTRASTS)
        left, right = rng.choice(filled[first]), rng.choice(filled[second])
        items.append(_item(left, after=word, weight=0.25))
        items.append(_item(right, before=word, weight=0.25))
    for _ in range(JOINED):
        left, right = (rng.choice(filled[rng.choice(STANCES)]) for _ in range(2))
        items.append(_item(left, after="and", weight=0.1))
        items.append(_item(right, before="and", weight=0.1))
    return items


def other_items(left_out: Callable[[str], bool] = lambda row: False) -> list[Item]:
    """Return what is trained on besides labelled comments. left_out: see `public`."""
    return [*hand_written(random.Random(0)), *public(left_out)]


def _item(clause: Labelled, before: str = "", after: str = "", weight: float = 1.0) -> Item:
    target = tuple(float(stance == clause.stance) for stance in STANCES)
    says_missing = float(clause.missing is not None)
    return Item(
        _features(clause.text, before, after),
        target,
        says_missing,
        weight,
        clause.skeleton,
        mask_quotations(clause.text),
    )


def _features(text: str, before: str = "", after: str = "") -> list[str]:
    return list(extract_features(mask_quotations(text), before, after))


def public(left_out: Callable[[str], bool] = lambda row: False) -> list[Item]:
    """Return the sentences of public critiques, each with its row's stance as far as that can be relied on.

    left_out: whether a row of DeFacto is not to be trained on.
    """
    items = []
    for source, stance, critique, row in public_critiques(data_folder()):
        if row and left_out(row):
            continue
        masked = mask_quotations(critique)
        sentences = [critique[start:end] for start, end in split_sentences(masked)]
        for sentence in sentences:
            sure = PRAISE_CERTAINTY if stance == "good" else CERTAINTY[source]
            sure -= ONE_OF_MANY * (len(sentences) > 1)
            target = tuple(sure if name == stance else 1 - sure if name == "unsure" else 0.0 for name in STANCES)
            says_missing = SAYS_MISSING.get(source)
            if source == "defacto instructions":
                says_missing = float(sentence.startswith("Add "))
            features, weight = _features(sentence), PUBLIC_WEIGHT[source]
            items.append(Item(features, target, says_missing, weight, sentence, mask_quotations(sentence)))
    return items


@dataclass(frozen=True)
class Comment:
    """A labelled comment. says_missing: of each clause, None where the answer has what it says is missing."""

    labelled: LabelledComment
    masked: str
    document: Document
    opinions: list[Opinion]
    says_missing: list[Range | bool | None]

    @property
    def writer(self) -> str:
        return self.labelled.id.split("-")[0]


def read_comments() -> list[Comment]:
    """Return the comments of all writers."""
    folder = ROOT / "benchmarks" / "comments_train"
    rows = [json.loads(line) for line in (folder / "labels.jsonl").read_text("utf-8").splitlines()]
    labels = {row["id"]: row["clauses"] for row in rows}
    found = []
    for comment in load([folder]):
        opinions = labelled(comment, labels[comment.id])
        missing: list[Range | bool | None] = []
        for opinion, clause in zip(opinions, labels[comment.id], strict=True):
            words = clause["missing"]
            start = comment.comment.find(words, opinion.bounds[0]) if words else -1
            missing.append(None if clause.get("refuse") else (start, start + len(words)) if start >= 0 else False)
        document = Document(comment.completion, comment.prompt or "")
        found.append(Comment(comment, mask_quotations(comment.comment), document, opinions, missing))
    return found


def _clause_item(comment: Comment, number: int, part: Piece | None = None) -> Item:
    """Return a labelled clause as an item, or a part of it, which says that something is missing if it names it."""
    opinion, missing = comment.opinions[number], comment.says_missing[number]
    start, end = (part.start, part.end) if part else opinion.bounds
    masked = comment.masked[start:end]
    says_missing = None if missing is None else float(isinstance(missing, tuple) and start <= missing[0] < end)
    target = tuple(float(stance == opinion.stance) for stance in STANCES)
    features = list(extract_features(masked, part.before if part else "", part.after if part else ""))
    weight = PART_WEIGHT if part else 1.0
    labelled_comment = comment.labelled
    clause, prompt = labelled_comment.comment[start:end], labelled_comment.prompt or ""
    context = relate_to_answer(clause, comment.document, prompt)
    return Item(features, target, says_missing, weight, f"{labelled_comment.id} {number}", masked, context)


def _parts(comment: Comment) -> list[Piece]:
    return [piece for piece, main in clauses.split_parts(comment.masked) if main is None]


def clause_items(comments: Sequence[Comment]) -> list[Item]:
    """Return the labelled clauses, and the parts that the package splits the comments into."""
    items = []
    for comment in comments:
        items += [_clause_item(comment, number) for number in range(len(comment.opinions))]
        whole = {opinion.bounds for opinion in comment.opinions}
        for part in _parts(comment):
            owner = best_overlap((part.start, part.end), comment.opinions)
            if owner is not None and (part.start, part.end) not in whole:
                items.append(_clause_item(comment, owner, part))
    return items


def join_items(comments: Sequence[Comment]) -> list[tuple[list[str], float]]:
    """Return the features of neighbouring parts, and whether they belong to the same labelled clause."""
    items = []
    for comment in comments:
        last: Piece | None = None
        last_owner = None
        for part in _parts(comment):
            owner = best_overlap((part.start, part.end), comment.opinions)
            if last is not None and owner is not None and last_owner is not None:
                first, second = (
                    stance_model.predict_stance(comment.masked[piece.start : piece.end], piece.before, piece.after)
                    for piece in (last, part)
                )
                features = clause_join.extract_join_features(comment.masked, last, part, (first, second))
                items.append((features, float(owner == last_owner)))
            if last is not None and owner == last_owner:
                last = last._replace(end=part.end, after=part.after)
            else:
                last, last_owner = part, owner
    return items


@dataclass(frozen=True)
class Weights:
    """What reads clauses: the linear model of stances, the network, and the joins of parts."""

    stance: dict[str, list[int]]
    join: dict[str, int]
    net: Arrays


def fit(comments: Sequence[Comment], others: Sequence[Item]) -> Weights:
    """Return all weights; joins are learned from stances of writers that were left out."""
    writers = sorted({comment.writer for comment in comments})
    halves = [[c for c in comments if (writers.index(c.writer) < len(writers) / 2) == first] for first in (True, False)]
    pairs = []
    for own, other in (halves, halves[::-1]):
        with using(train(with_wordless(balance(clause_items(own), others)))):
            pairs += join_items(other)
    items = balance(clause_items(comments), others)
    net = train_net([item for item in items if item.weight >= MIN_NET_WEIGHT])
    return Weights(train(with_wordless(items)), train_join(pairs), net)


def train_join(items: Sequence[tuple[list[str], float]]) -> dict[str, int]:
    """Return the weights that two parts say one thing by feature, in hundredths."""
    counts = Counter(feature for features, _ in items for feature in set(features))
    index = {f: i for i, f in enumerate(sorted(f for f, count in counts.items() if count >= MIN_JOINS))}
    bags = [torch.tensor([index[f] for f in features if f in index]) for features, _ in items]
    offsets = torch.tensor([0, *(len(bag) for bag in bags[:-1])]).cumsum(0)
    truth = torch.tensor([is_one for _, is_one in items])
    table = torch.nn.EmbeddingBag(len(index), 1, mode="sum")
    torch.nn.init.zeros_(table.weight)
    bias = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.LBFGS([table.weight, bias], max_iter=60)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        scores = table(torch.cat(bags), offsets)[:, 0] + bias
        value = binary_cross_entropy_with_logits(scores, truth) + JOIN_DECAY / 2 * table.weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    learned = (100 * table.weight.detach()[:, 0]).round().int().tolist()
    kept = {feature: learned[i] for feature, i in index.items() if abs(learned[i]) >= SMALLEST_JOIN}
    return {"bias": round(100 * bias.item()), **kept}


def balance(labelled_items: Sequence[Item], others: Sequence[Item]) -> list[Item]:
    """Return all items, others weighted so that they praise as much as they blame."""
    sums = [sum(item.weight * item.target[i] for item in others) for i in range(2)]
    factors = [OTHERS_WEIGHT * factor for factor in (sum(sums) / 2 / sums[0], sum(sums) / 2 / sums[1], 1.0)]
    balanced = [
        replace(item, weight=item.weight * sum(f * t for f, t in zip(factors, item.target, strict=True)))
        for item in others
    ]
    return [*labelled_items, *balanced]


def with_wordless(items: Sequence[Item]) -> list[Item]:
    """Return the items, and again without the features of their words."""
    wordless = [
        replace(
            item, features=[f for f in item.features if not f.startswith(WORD_FEATURES)], weight=item.weight * WORDLESS
        )
        for item in items
    ]
    return [*items, *wordless]


def train(items: Sequence[Item]) -> dict[str, list[int]]:
    """Return the weights of good, poor, unsure and missing by feature, in hundredths."""
    seen: dict[str, set[str]] = defaultdict(set)
    for item in items:
        for feature in item.features:
            if len(seen[feature]) < MIN_SKELETONS:
                seen[feature].add(item.skeleton)
    index = {f: i for i, f in enumerate(sorted(f for f, found in seen.items() if len(found) >= MIN_SKELETONS))}
    pairs = np.array([(row, index[f]) for row, item in enumerate(items) for f in item.features if f in index])
    table = csr_matrix((np.ones(len(pairs), np.float32), pairs.T), shape=(len(items), len(index)))
    columns = table.T.tocsr()
    targets, weights = (np.array([getattr(item, name) for item in items]) for name in ("target", "weight"))
    missing = np.array([item.says_missing or 0.0 for item in items])
    known = np.array([item.weight * (item.says_missing is not None) for item in items])
    weights, known = weights / weights.sum(), known / known.sum() * (1 + (MISSING_WEIGHT - 1) * missing)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        own, bias = flat[:-4].reshape(-1, 4), flat[-4:]
        scores = table @ own + bias
        stances, omission = log_softmax(scores[:, :3], axis=1), scores[:, 3]
        value = -(weights * (targets * stances).sum(1)).sum() + DECAY * (own**2).sum()
        value += (known * (np.logaddexp(0, omission) - missing * omission)).sum()
        slopes = np.empty_like(scores)
        slopes[:, :3] = weights[:, None] * (np.exp(stances) - targets)
        slopes[:, 3] = known * (expit(omission) - missing)
        return value, np.concatenate([(columns @ slopes + 2 * DECAY * own).ravel(), slopes.sum(0)])

    found = minimize(loss, np.zeros(4 * len(index) + 4), jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    learned = np.round(100 * found.x).astype(int).reshape(-1, 4).tolist()
    kept = {feature: learned[i] for feature, i in index.items() if max(map(abs, learned[i])) >= SMALLEST}
    return {"bias": learned[-1], **kept}


@contextmanager
def using(
    stance: dict[str, list[int]], join: dict[str, int] | None = None, net: Arrays | None = None
) -> Iterator[None]:
    """Read clauses with these weights; the package's own network where none is given."""
    shipped = stance_model._load_weights, clause_join._load_weights, stance_net._load
    loaded = stance_net.parse(net) if net is not None else None
    stance_model._score.cache_clear()
    stance_model._load_weights, clause_join._load_weights = (lambda: stance), (lambda: join or {"bias": 0})  # type: ignore[assignment]
    stance_net._load = (lambda: loaded) if loaded else stance_net._load  # type: ignore[assignment]
    try:
        yield
    finally:
        stance_model._load_weights, clause_join._load_weights, stance_net._load = shipped
        stance_model._score.cache_clear()


def evaluate(items: Sequence[Item], errors: bool = False) -> dict[str, float]:
    """Return accuracies, the rate of wrong directions and the calibration error of the stances that are taken."""
    right: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    wrong, confidence = 0, []
    omissions: Counter[tuple[bool, bool]] = Counter()
    for item in items:
        (probabilities,) = stance_model.predict_stances_of_answer([(item.masked, "", "")], [item.context])
        truth, (found, probability) = STANCES[int(np.argmax(item.target))], clauses.decide(probabilities)
        if errors and truth != found:
            print(f"{truth:>7} read as {found:<7} {np.round(probabilities, 2)} {item.masked}")
        totals[truth] += 1
        right[truth] += truth == found
        wrong += {truth, found} == {"good", "poor"}
        if item.says_missing is not None:
            omissions[bool(item.says_missing), probabilities.missing >= clauses.MIN_MISSING] += 1
        if found != "unsure":
            confidence.append((probability, truth == found))
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
    args = parser.parse_args()
    comments, others = read_comments(), other_items()
    print(f"{len(comments)} labelled comments, {len(others)} hand-written clauses and sentences of public critiques")
    weights = fit(comments, others)
    rows = []
    with using(weights.stance, weights.join, weights.net):
        for name in ("dev.txt", "check.txt"):
            result = evaluate([_item(clause) for clause in read_labelled(name)], args.errors)
            rows.append([name, *_cells(result)])
    show("stance", ["clauses", *result], rows)
    write_weights(weights)


def write_weights(weights: Weights) -> None:
    for name, values in (("stance", weights.stance), ("join", weights.join)):
        save_weights(values, OUT / f"{name}.json.gz")
    save_file(weights.net, OUT / "stance_net.safetensors")
    print(f"network: {(OUT / 'stance_net.safetensors').stat().st_size} bytes")


def _cells(result: dict[str, float]) -> list[str]:
    return [f"{value:.3f}" for value in result.values()]


if __name__ == "__main__":
    main()
