"""Features of the runs of words that a request to remove something may mean: `removals` weighs them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from text2grad.align.learned.phrase_kinds import phrase_kinds
from text2grad.align.learned.removal_requests import Request, kind_keys, parse_request
from text2grad.text.lexicon import ARTICLES, word_set
from text2grad.text.whitespace import WhitespaceWord, WordKind, is_capitalized, key_pairs, key_set

T = TypeVar("T", bound=Hashable)
Features = dict[str, float]
Column = NDArray[np.float64]  # a value per candidate


class Choice(NamedTuple):
    """Groups of names whose value is 1, and which of the groups each candidate has, (candidates,)."""

    groups: Sequence[tuple[str, ...]]
    chosen: NDArray[np.int64]


class Described(NamedTuple):
    """The features of candidates: columns of values, and names whose value is 1, as choices."""

    columns: dict[str, Column]
    choices: list[Choice]


def compute_features(
    request: str, words: Sequence[WhitespaceWord], candidates: Sequence[tuple[int, int]], source: str | None
) -> list[Features]:
    """Return the features of each candidate by name; those of the source are missing where there is none."""
    if not candidates:
        return []
    described = describe_candidates(request, words, candidates, source)
    columns = {name: column.tolist() for name, column in described.columns.items()}
    own = zip(*([groups[i] for i in chosen.tolist()] for groups, chosen in described.choices), strict=True)
    return [
        {name: column[i] for name, column in columns.items()}
        | dict.fromkeys((n for group in found for n in group), 1.0)
        for i, found in enumerate(own)
    ]


def describe_candidates(
    request: str, words: Sequence[WhitespaceWord], candidates: Sequence[tuple[int, int]], source: str | None
) -> Described:
    """Return the features of all candidates; there is at least one."""
    asked = parse_request(request)
    known = _parse_source(source) if source else None
    runs = _Runs(asked, words, candidates, known)
    columns = {"bias": np.ones(len(candidates)), **_overlap_columns(asked, runs)}
    kinds = phrase_kinds(words, candidates)
    if "first name" in asked.kinds:
        starts = np.array(["start of a name" in own for own in kinds])
        somewhere = bool(asked.anchor & runs.answer_keys)
        columns["first name before its surname"] = starts * columns["anchor after"]
        columns["first name, anchor elsewhere"] = starts * (somewhere * (1 - columns["anchor after"]))
        late = np.array(["start of a name after a name" in own for own in kinds])
        columns["first name, but no start of a name"] = 1.0 - (starts | late)
    if "age" in asked.kinds:
        columns["age, but no age"] = np.array([float("age" not in own) for own in kinds])
    if not runs.head and not asked.kinds:
        columns["nothing known"] = np.ones(len(candidates))
    if known:
        columns |= _source_columns(asked, runs, known)
    choices = _boundary_choices(words, runs, columns["head all covered"] > 0)
    choices += _kind_choices(asked, kinds, columns["head all covered"] > 0)
    return Described(columns, choices)


class _Source(NamedTuple):
    keys: frozenset[str]
    pairs: frozenset[tuple[str, str]]


@lru_cache(maxsize=8)
def _parse_source(source: str) -> _Source:
    return _Source(key_set(source), key_pairs(source))


class _Runs:
    """Counts over the words of each candidate."""

    def __init__(
        self,
        asked: Request,
        words: Sequence[WhitespaceWord],
        candidates: Sequence[tuple[int, int]],
        known: _Source | None,
    ) -> None:
        self.words = words
        self.first, self.last = np.array(candidates).T
        self.answer_keys = frozenset(key for word in words for key in word.keys)
        self.head = asked.head & self.answer_keys
        self.anchor = (asked.anchor - asked.head) & self.answer_keys
        is_content = [word.is_content for word in words]
        present = [
            {key for key in word.keys if key in asked.head or key in asked.anchor} if own else set()
            for word, own in zip(words, is_content, strict=True)
        ]
        unsupported = [
            known is not None and own and not known.keys.issuperset(word.keys)
            for word, own in zip(words, is_content, strict=True)
        ]
        self.is_content = np.array(is_content)
        self.is_asked = np.array([not own.isdisjoint(asked.head) for own in present])
        self.is_anchor = np.array([not own.isdisjoint(self.anchor) for own in present])
        self.is_present = np.array([bool(own) for own in present])
        self.unsupported = np.array(unsupported)
        self.content = self.count(self.is_content)
        self.matched = self.count(self.is_asked)
        self.head_inside, self.anchor_inside = (self._count_keys(keys, present) for keys in (self.head, self.anchor))

    def count(self, flags: NDArray[np.bool_]) -> Column:
        """Return how many of a candidate's words have a flag, (..., candidates). flags: (..., words)."""
        sums = np.zeros((*flags.shape[:-1], flags.shape[-1] + 1))
        np.cumsum(flags, axis=-1, out=sums[..., 1:])
        found: Column = sums.take(self.last, axis=-1) - sums.take(self.first, axis=-1)
        return found

    def _count_keys(self, keys: frozenset[str], present: Sequence[set[str]]) -> Column:
        """Return how many of the keys a candidate has. present: those of each word."""
        if not keys:
            return np.zeros(len(self.first))
        flags = np.array([[key in own for own in present] for key in keys])
        found: Column = (self.count(flags) > 0).sum(axis=0).astype(float)
        return found

    def after(self, flags: NDArray[np.bool_]) -> Column:
        """Return whether the word after a candidate has a flag."""
        found: Column = np.append(flags, False)[self.last].astype(float)
        return found

    def before(self, flags: NDArray[np.bool_]) -> Column:
        """Return whether the word before a candidate has a flag."""
        found: Column = np.append(False, flags)[self.first].astype(float)
        return found


def _overlap_columns(asked: Request, runs: _Runs) -> dict[str, Column]:
    ones, zero = np.ones(len(runs.first)), np.zeros(len(runs.first))
    content, matched, words = runs.content, runs.matched, runs.words
    has_content = content > 0
    all_covered: NDArray[np.bool_] = np.equal(runs.head_inside, len(runs.head)) & bool(runs.head)
    unknown = len(asked.head - runs.answer_keys - kind_keys()) / max(1, len(asked.head))
    exact = len(asked.exact)
    lengths = np.append(0, np.cumsum([len(word.keys) for word in words]))
    same_length = lengths[runs.last] - lengths[runs.first] == exact
    whole = zero.copy()
    for i in np.flatnonzero(same_length).tolist():
        run = words[runs.first[i] : runs.last[i]]
        whole[i] = float(tuple(key for word in run for key in word.keys) == asked.exact)
    columns = {
        "head covered": runs.head_inside / max(1, len(runs.head)),
        "head all covered": all_covered.astype(float),
        "head nothing covered": (runs.head_inside == 0) * float(bool(runs.head)),
        "head nowhere": ones * (not runs.head),
        "head words unknown": ones * unknown,
        "content asked for": matched / np.maximum(1, content),
        "content all asked for": (has_content & (matched == content)).astype(float),
        "content not asked for": np.minimum(6, content - matched) / 6,
        "anchor covered": runs.anchor_inside / max(1, len(runs.anchor)),
        "anchor after": runs.after(runs.is_anchor),
        "anchor before": runs.before(runs.is_anchor),
        "quoted and all covered": all_covered * float(asked.is_quoted),
        "whole request": whole,
        "no content": (~has_content).astype(float),
        "length": np.minimum(10, runs.last - runs.first) / 10,
    }
    columns["all covered, extra words"] = (all_covered & has_content) * np.minimum(4, content - matched) / 4
    if not runs.head and runs.anchor:
        columns["anchor only, next to it"] = np.maximum(columns["anchor after"], columns["anchor before"])
    return columns


def _boundary_choices(words: Sequence[WhitespaceWord], runs: _Runs, is_covered: NDArray[np.bool_]) -> list[Choice]:
    """Return the classes of the words before, first, last and after, the commas, and whether the sentence ends."""
    classes = [_classify(word.text, word.kind) for word in words]
    commas = np.array([word.text.endswith(",") for word in words])
    opens = [True, *(left.sentence != right.sentence for left, right in pairwise(words)), True]
    before = ["START" if first else word for first, word in zip(opens, ["", *classes], strict=True)]
    after = ["END" if first else word for first, word in zip(opens, [*classes, ""], strict=True)]
    closes = np.array(opens)
    starts = [_start_names(*pair) for pair in zip(before[:-1], classes, strict=True)]
    ends = [_end_names(*pair) for pair in zip(classes, after[1:], strict=True)]
    bounds = zip(runs.first.tolist(), runs.last.tolist(), strict=True)
    seams, seam = _choose([(before[first], classes[first], after[last]) for first, last in bounds])
    comma_before = np.append(False, commas)[runs.first] & ~closes[runs.first]
    marks = 4 * comma_before + 2 * commas[runs.last - 1] + closes[runs.last]
    choices = [
        Choice(starts, runs.first),
        Choice(ends, runs.last - 1),
        Choice([_seam_names(*classes_around) for classes_around in seams], seam),
        Choice(_COMMAS, marks),
    ]
    return choices + [_only_if(is_covered, choice, _covered_names) for choice in choices[:3] if is_covered.any()]


def _kind_choices(asked: Request, kinds: Sequence[frozenset[str]], is_covered: NDArray[np.bool_]) -> list[Choice]:
    """Return the kinds of phrase that the candidates are, beside what the request asks for."""
    own, chosen = _choose(kinds)
    choices = [Choice([_kind_names(asked.kinds, names) for names in own], chosen)]
    if is_covered.any():
        plain = Choice([tuple(sorted(names)) for names in own], chosen)
        choices.append(_only_if(is_covered, plain, lambda names: tuple([f"covered {name}" for name in names])))
    return choices


def _choose(values: Sequence[T]) -> tuple[list[T], NDArray[np.int64]]:
    """Return the different values, and the number of each candidate's."""
    numbers: dict[T, int] = {}
    chosen = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), np.array(chosen)


def _only_if(holds: NDArray[np.bool_], choice: Choice, rename: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Choice:
    """Return the choice under other names, for the candidates of which something holds."""
    used = set(choice.chosen[holds].tolist())
    groups = [rename(names) if i in used else () for i, names in enumerate(choice.groups)]
    return Choice([*groups, ()], np.where(holds, choice.chosen, len(groups)))


@lru_cache(maxsize=1 << 14)
def _start_names(before: str, begin: str) -> tuple[str, ...]:
    return f"before {before}", f"begin {begin}", f"left {before} {begin}"


@lru_cache(maxsize=1 << 14)
def _end_names(end: str, after: str) -> tuple[str, ...]:
    return f"end {end}", f"after {after}", f"right {end} {after}"


@lru_cache(maxsize=1 << 14)
def _seam_names(before: str, begin: str, after: str) -> tuple[str, ...]:
    return f"seam {before} {after}", f"edges {begin} {after}"


_COMMAS = [  # in the order of the numbers that these three make in binary
    (f"commas {before} {after} {'END' if closes else ''}",)
    for before, after, closes in product((False, True), repeat=3)
]


@lru_cache(maxsize=1 << 14)
def _covered_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([f"covered {name}" for name in names if name.startswith(("left ", "right ", "edges "))])


@lru_cache(maxsize=1 << 12)
def _kind_names(asked: frozenset[str], kinds: frozenset[str]) -> tuple[str, ...]:
    return tuple(f"kind {asked_kind}/{kind}" for asked_kind in sorted(asked) or "-" for kind in sorted(kinds) or "-")


_CLASS_WORDS = ARTICLES | word_set("""
    of in at to for from by on with after as and or but who which that is are was were has have had be been will his her
    their its
    """)


@lru_cache(maxsize=1 << 14)
def _classify(text: str, kind: WordKind) -> str:
    bare = text.strip(".,;:!?\"'`()[]“”‘’").lower()
    if bare in _CLASS_WORDS:
        return bare
    if kind is WordKind.OTHER:
        if is_capitalized(text):
            return "Capital"
        for suffix in ("ing", "ed", "ly", "s"):
            if bare.endswith(suffix):
                return f"-{suffix}"
    if kind is WordKind.NAME and text.rstrip(".,").endswith(("'s", "’s")):
        return "NAME's"
    return kind.name


def _source_columns(asked: Request, runs: _Runs, known: _Source) -> dict[str, Column]:
    content, wrong, words = runs.content, runs.count(runs.unsupported), runs.words
    has_content, at_least_one = content > 0, np.maximum(1, content)
    columns = {
        "source": np.ones(len(content)),
        "unsupported share": wrong / at_least_one,
        "unsupported all": (has_content & (wrong == content)).astype(float),
        "unsupported none": (has_content & (wrong == 0)).astype(float),
        "unsupported before": runs.before(runs.unsupported),
        "unsupported after": runs.after(runs.unsupported),
        "unsupported elsewhere": np.minimum(6, runs.unsupported.sum() - wrong) / 6,
        "supported inside": np.minimum(5, content - wrong) / 5,
        "asked and unsupported": runs.count(runs.is_present & runs.unsupported) / at_least_one,
        "asked but supported": runs.count(runs.is_present & ~runs.unsupported) / at_least_one,
    }
    if "first name" in asked.kinds:
        columns["first name unsupported"] = columns["unsupported all"]
    seam, broken = np.zeros(len(content)), np.zeros(len(content))
    for i, (first, last) in enumerate(zip(runs.first.tolist(), runs.last.tolist(), strict=True)):
        if first > 0 and last < len(words) and words[first - 1].keys and words[last].keys:
            seam[i] = (words[first - 1].keys[-1], words[last].keys[0]) in known.pairs
            broken[i] = bool(words[last - 1].keys) and (words[last - 1].keys[-1], words[last].keys[0]) in known.pairs
    return columns | {"seam in source": seam, "breaks a pair of the source": broken}
