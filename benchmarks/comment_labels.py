"""Comments labelled by hand, clause by clause, and the measures of a reading against a labelling.

Format: `answers.jsonl` (id, kind, prompt, completion), `comments.jsonl` (id, answer, comment), `labels_1.jsonl` and
`labels_2.jsonl` (id, clauses). A clause has `text` (words of the comment), `stance`, `spans` (words of the completion),
`whole`, `missing` (words of the comment, or null) and perhaps `refuse`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from text2grad.align.reading import Reading, read_comment
from text2grad.schema import Range

Words = frozenset[int]
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class LabelledComment:
    """A comment on an answer."""

    id: str
    comment: str
    completion: str
    prompt: str | None


@dataclass(frozen=True)
class Opinion:
    """One clause, as somebody labelled it or as it was read: what it says of which words of the answer.

    words: indices of words between white space; all of them if the clause is about the whole answer.
    paid: the label that these words earn, None for nothing.
    """

    bounds: Range
    stance: str
    words: Words
    is_whole: bool
    is_omission: bool
    paid: str | None
    confidences: tuple[tuple[Words, float], ...] = field(default=())  # of the spans, with the words of each

    @property
    def has_target(self) -> bool:
        """Whether the clause is about words or about the whole."""
        return bool(self.words) or self.is_whole


def load(folders: Sequence[Path]) -> list[LabelledComment]:
    """Return the comments of all folders."""
    found = []
    for folder in folders:
        answers = {row["id"]: row for row in _rows(folder / "answers.jsonl")}
        for row in _rows(folder / "comments.jsonl"):
            answer = answers[row["answer"]]
            found.append(LabelledComment(row["id"], row["comment"], answer["completion"], answer.get("prompt")))
    return found


def load_labels(folders: Sequence[Path], number: int, comments: Sequence[LabelledComment]) -> list[list[Opinion]]:
    """Return one labelling: the opinions of each comment, in the order of the comments."""
    labels = {row["id"]: row["clauses"] for folder in folders for row in _rows(folder / f"labels_{number}.jsonl")}
    return [labelled(comment, labels[comment.id]) for comment in comments]


def labelled(comment: LabelledComment, clauses: Sequence[dict]) -> list[Opinion]:
    """Return the opinions of labelled clauses; their words must be in the comment and in the completion."""
    found, at = [], 0
    for clause in clauses:
        start = comment.comment.find(clause["text"], at)
        start = start if start >= 0 else comment.comment.index(clause["text"])
        at = start + len(clause["text"])
        places = [_place(span, comment.completion) for span in clause["spans"]]
        is_whole, stance = bool(clause["whole"]), clause["stance"]
        words = words_in(comment.completion, places, is_whole)
        paid = stance if stance != "unsure" and words else None
        missing = clause.get("missing") is not None
        found.append(Opinion((start, at), stance, words, is_whole, missing, paid))
    return found


def read(comment: LabelledComment) -> list[Opinion]:
    """Return the opinions that the package reads in a comment."""
    return opinions(comment, read_comment(comment.comment, comment.completion, comment.prompt))


def opinions(comment: LabelledComment, reading: Reading) -> list[Opinion]:
    """Return the clauses of a reading as opinions."""
    found = []
    for item in reading.clauses:
        clause = item.clause
        places = [target.place for target in item.targets]
        words = words_in(comment.completion, places, item.is_whole)
        paid = clause.stance if clause.stance != "unsure" and not item.refused and words else None
        confidences = tuple(
            (words_in(comment.completion, [t.place], t.source == "whole"), t.confidence * clause.probability)
            for t in item.targets
            if paid
        )
        bounds = (clause.start, clause.end)
        found.append(Opinion(bounds, clause.stance, words, item.is_whole, item.omission is not None, paid, confidences))
    return found


def measure(gold: Sequence[Sequence[Opinion]], found: Sequence[Sequence[Opinion]]) -> dict[str, float]:
    """Compare readings, or another labelling, with a labelling.

    stance: share of labelled clauses whose best overlapping clause has the same stance. span_f1: mean over the clauses
    that are about words or about the whole of the F1 of words. wrong_direction: share of comments that pay any word the
    opposite of its label. refused: share of the clauses that praise or blame words for which nothing is paid.
    """
    stance, f1s, refused = [], [], []
    omissions_right = omissions_found = omissions_all = wrong = 0
    for labels, clauses in zip(gold, found, strict=True):
        owners = [best_overlap(clause.bounds, labels) for clause in clauses]
        for number, label in enumerate(labels):
            own = [clause for clause, owner in zip(clauses, owners, strict=True) if owner == number]
            best = best_overlap(label.bounds, clauses)
            stance.append(best is not None and clauses[best].stance == label.stance)
            if label.has_target:
                f1s.append(_f1(label.words, frozenset().union(*(clause.words for clause in own))))
                if label.stance != "unsure":
                    refused.append(not any(clause.paid or clause.is_omission for clause in own))
            omissions_all += label.is_omission
            omissions_right += label.is_omission and any(clause.is_omission for clause in own)
        omissions_found += sum(clause.is_omission for clause in clauses)
        wrong += _is_wrong_direction(labels, clauses)
    return {
        "stance": fmean(stance),
        "span_f1": fmean(f1s),
        "omission_precision": omissions_right / max(1, omissions_found),
        "omission_recall": omissions_right / max(1, omissions_all),
        "wrong_direction": wrong / max(1, len(gold)),
        "refused": fmean(refused),
    }


def measure_by(
    keys: Sequence[str], gold: Sequence[Sequence[Opinion]], found: Sequence[Sequence[Opinion]]
) -> dict[str, dict[str, float]]:
    """Return the measures of the comments of each key, such as the kind of the answer."""
    result = {}
    for key in dict.fromkeys(keys):
        own = [i for i, other in enumerate(keys) if other == key]
        result[key] = measure([gold[i] for i in own], [found[i] for i in own])
    return result


def span_outcomes(gold: Sequence[Sequence[Opinion]], found: Sequence[Sequence[Opinion]]) -> list[tuple[float, bool]]:
    """Return (confidence, right) of every span that is paid: right if at least half of its words have that label."""
    outcomes = []
    for labels, clauses in zip(gold, found, strict=True):
        for clause in clauses:
            good = frozenset().union(*(label.words for label in labels if label.paid == clause.paid))
            for words, confidence in clause.confidences:
                outcomes.append((confidence, len(words & good) >= 0.5 * len(words)))
    return outcomes


def calibration(outcomes: Sequence[tuple[float, bool]], bins: int = 10) -> dict[str, float]:
    """Return the expected calibration error, and the share of spans with confidence 0.8 and above that are right."""
    error = 0.0
    for number in range(bins):
        inside = [(c, r) for c, r in outcomes if min(bins - 1, int(c * bins)) == number]
        if inside:
            error += len(inside) * abs(fmean(c for c, _ in inside) - fmean(r for _, r in inside))
    sure = [right for confidence, right in outcomes if confidence >= 0.8]
    return {
        "ece": error / max(1, len(outcomes)),
        "sure_right": fmean(sure) if sure else float("nan"),
        "sure_share": len(sure) / max(1, len(outcomes)),
        "spans": len(outcomes),
    }


def _is_wrong_direction(labels: Sequence[Opinion], clauses: Sequence[Opinion]) -> bool:
    def net(items: Sequence[Opinion], select: Callable[[Opinion], bool]) -> tuple[Words, Words]:
        good, poor = (
            frozenset().union(*(item.words for item in items if item.paid == label and select(item)))
            for label in ("good", "poor")
        )
        return good - poor, poor - good

    (good, poor), (praised, blamed) = (net(items, lambda item: True) for items in (labels, clauses))
    return bool(good & blamed or poor & praised)


def best_overlap(bounds: Range, others: Sequence[Opinion]) -> int | None:
    """Return the index of the clause that overlaps most with `bounds`."""
    shared = [min(bounds[1], other.bounds[1]) - max(bounds[0], other.bounds[0]) for other in others]
    best = max(range(len(others)), key=lambda i: shared[i], default=None)
    return best if best is not None and shared[best] > 0 else None


def _f1(gold: Words, found: Words) -> float:
    return 2 * len(gold & found) / (len(gold) + len(found)) if gold or found else 1.0


def _place(span: str, completion: str) -> Range:
    start = completion.index(span)
    return start, start + len(span)


def words_in(completion: str, places: Sequence[Range], is_whole: bool) -> Words:
    """Return the words between white space that overlap any of the places; all of them if `is_whole`."""
    words = [match.span() for match in _WORD.finditer(completion)]
    if is_whole:
        return frozenset(range(len(words)))
    return frozenset(i for i, (s, e) in enumerate(words) if any(s < end and start < e for start, end in places))


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
