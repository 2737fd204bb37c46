"""Agreement between annotators, word by word: labels, Krippendorff's alpha, and the differences to decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from typing import Literal, NamedTuple

from text2grad.rewards.credit import signed_ranges, span_rewards
from text2grad.schema import Feedback, Range, Strict
from text2grad.text.whitespace import word_ranges

TokenLabel = Literal["good", "poor", "neutral"]


class Judged(NamedTuple):
    """An answer with the feedback of each annotator who has seen it, by name; a model may be one of them."""

    id: str
    completion: str
    feedback: Mapping[str, Feedback]


class Pair(Strict):
    """Two annotators: the share of words with equal labels, alpha, and the words that both have labelled."""

    annotators: tuple[str, str]
    words: int
    equal: float | None
    alpha: float | None


class Difference(Strict):
    """Neighbouring words on which annotators differ: code points of the completion, and the label of each."""

    id: str
    start: int
    end: int
    text: str
    labels: dict[str, TokenLabel]


class Agreement(Strict):
    """Agreement over all answers. alpha: None where it is not defined, for want of overlap or of different labels."""

    annotators: list[str]
    words: int
    alpha: float | None
    pairs: list[Pair]
    differences: list[Difference]


def token_labels(feedback: Feedback, ranges: Sequence[Range]) -> list[TokenLabel]:
    """Return the label of each token: good or poor by the sign of what its spans say together, else neutral.

    ranges: the characters of each token.
    """
    values = span_rewards(signed_ranges(feedback), ranges, "uniform")
    return ["good" if value > 0 else "poor" if value < 0 else "neutral" for value in values]


def krippendorff_alpha(ratings: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Krippendorff's alpha for nominal labels: 1 is perfect agreement, 0 what chance gives.

    ratings: one row per annotator with one label per unit, None where the annotator gave none. With m_u labels of unit
    u, n_uc of them c, n_c = sum of n_uc over the units with m_u > 1, and n = sum_c n_c,

        alpha = 1 - (n - 1) * sum_u sum_c n_uc * (m_u - n_uc) / (m_u - 1)  /  sum_c n_c * (n - n_c)

    None where no unit has two labels, or where all labels are the same.
    """
    patterns = Counter(zip(*ratings, strict=True))  # most units have one of a few
    units = [(Counter(label for label in unit if label is not None), times) for unit, times in patterns.items()]
    pairable = [(unit, times) for unit, times in units if unit.total() > 1]
    totals: Counter[Hashable] = Counter()
    for unit, times in pairable:
        totals.update({label: number * times for label, number in unit.items()})
    count = totals.total()
    expected = sum(number * (count - number) for number in totals.values())
    if expected == 0:
        return None
    observed = sum(
        times * number * (unit.total() - number) / (unit.total() - 1)
        for unit, times in pairable
        for number in unit.values()
    )
    return 1 - (count - 1) * observed / expected


def measure_agreement(answers: Sequence[Judged]) -> Agreement:
    """Return the agreement of all annotators, and of each two of them. Failed feedback counts as none."""
    labelled = [(answer, _labels(answer)) for answer in answers]
    names = list(dict.fromkeys(name for _, labels in labelled for name in labels))
    rows: dict[str, list[TokenLabel | None]] = {name: [] for name in names}
    for answer, labels in labelled:
        nothing: list[TokenLabel | None] = [None] * len(word_ranges(answer.completion))
        for name in names:
            rows[name] += labels.get(name, nothing)
    return Agreement(
        annotators=names,
        words=len(next(iter(rows.values()), [])),
        alpha=krippendorff_alpha(list(rows.values())),
        pairs=[_compare(pair, rows) for pair in combinations(names, 2)],
        differences=[difference for answer, labels in labelled for difference in _differences(answer, labels)],
    )


def _labels(answer: Judged) -> dict[str, list[TokenLabel]]:
    ranges = word_ranges(answer.completion)
    return {name: token_labels(item, ranges) for name, item in answer.feedback.items() if item.status == "ok"}


def _compare(pair: tuple[str, str], rows: Mapping[str, Sequence[TokenLabel | None]]) -> Pair:
    first, second = (rows[name] for name in pair)
    both = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    equal = sum(a == b for a, b in both) / len(both) if both else None
    return Pair(annotators=pair, words=len(both), equal=equal, alpha=krippendorff_alpha([first, second]))


def _differences(answer: Judged, labels: Mapping[str, Sequence[TokenLabel]]) -> Iterator[Difference]:
    """Yield runs of words on which the same annotators differ in the same way."""
    ranges = word_ranges(answer.completion)
    votes = [dict(zip(labels, unit, strict=True)) for unit in zip(*labels.values(), strict=True)]
    for vote, run in groupby(range(len(votes)), key=votes.__getitem__):
        if len(set(vote.values())) > 1:
            words = list(run)
            start, end = ranges[words[0]][0], ranges[words[-1]][1]
            yield Difference(id=answer.id, start=start, end=end, text=answer.completion[start:end], labels=vote)
