"""Which words of an answer a request to remove something means: "remove Koeman's first name".

People describe what should go more often than they quote it. Every run of words of the answer is a candidate, if the
rest still reads without it (`cuts.still_reads`). A log-linear model chooses among the candidates and "none of them":
features say how the run's words compare with the request's, whether the source has them, which kind of phrase the
request speaks of (a name, an age, a place, ...) and which kind the run is, and how the run begins and ends. The weights
were trained on the requests and corrections of people (`benchmarks/train_removals.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from text2grad.align.cuts import may_end_cut, still_reads
from text2grad.align.weight_files import load_weights
from text2grad.text.lexicon import ARTICLES, CALENDAR_WORDS, FUNCTION_WORDS, PREPOSITIONS, word_set
from text2grad.text.whitespace import (
    WhitespaceWord,
    WordKind,
    is_capitalized,
    key_pairs,
    key_set,
    part_key,
    split_parts,
    split_words,
)

Features = dict[str, float]
Column = NDArray[np.float64]  # a value per candidate

_MAX_WORDS = 16
_MAX_ANSWER = 120  # words; of a longer answer, only sentences that have a word of the request
_KINDS = {  # what a request speaks of
    "first name": r"\b(?:first|given|christian|fore)[ -]?names?\b|\bfull names?\b|\bmiddle names?\b",
    "name": r"\bnames?\b|\bnamed\b|\bcalled\b",
    "age": r"\bage[sd]?\b|\bhow old\b",
    "position": r"\b(?:position|job|role|title|occupation|profession|post|rank|status|career|work)s?\b"
    r"|\b(?:manag|play)er",
    "nationality": r"\bnationalit|\bcountry\b|\bethnic|\borigin",
    "place": r"\b(?:location|place|city|county|country|town|venue|area|region|street|state)s?\b|\bwhere\b|\blocated\b",
    "time": r"\b(?:date|day|year|month|week|time|season|period|timeframe)s?\b|\bwhen\b",
    "duration": r"\blength\b|\bhow long\b|\bduration\b|\bcontract\b|\bsentence\b|\bdeal\b",
    "number": r"\b(?:number|amount|percent\w*|cost|price|fee|value|sum|figure|size|quantity|total|distance)s?\b"
    r"|\bhow (?:many|much)\b",
    "score": r"\bscores?\b|\bresults?\b",
    "organisation": r"\b(?:team|club|party|company|organi[sz]ation|council|group|league|tournament|competition"
    r"|side)s?\b",
    "speaker": r"\bwho\b|\bsa(?:ys|id|ying)\b|\bsource\b",
    "description": r"\b(?:being|type|kind|adjective|descri\w+)\b",
}
_KIND_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _KINDS.items()}
_KIND_WORDS = word_set("""
    first given full middle name names named age ages aged position job role title occupation profession nationality
    country location place city county town venue date day year month time length duration number amount score result
    team club party being fact information type kind part person man woman player player's
    """)
_AGE = re.compile(
    r"\b\d+[- ]years?[- ]old\b|\b\w+-year-old\b|\baged \d+\b|\bin (?:his|her|their) \w+s\b", re.IGNORECASE
)
_SCORE = re.compile(r"\b\d+[-–]\d+\b")
_TIME = re.compile(
    rf"\b(?:{'|'.join(sorted(CALENDAR_WORDS - {'may', 'march'}))}|(?:1[5-9]|20)\d\d|today|yesterday|tomorrow|tonight"
    r"|(?:last|next|this|past|previous|following) (?:\w+ )?"
    r"(?:year|month|week|season|summer|winter|spring|autumn|night|weekend)\w*)\b"
    r"|\b(?:May|March)\b",
)
_DURATION = re.compile(r"\b[\w.]+[- ](?:year|month|week|day|hour|minute|season|game|match)s?\b", re.IGNORECASE)
_MEASURES = {"age": _AGE, "score": _SCORE, "time": _TIME, "duration": _DURATION}
_MEASURE_WORD = re.compile(
    r"\d|year|aged|\b(?:his|her|their|today|yesterday|tomorrow|tonight|May|March)\b|season|month|week|day|hour|minute|game"
    rf"|match|night|summer|winter|spring|autumn|{'|'.join(sorted(CALENDAR_WORDS - {'may', 'march'}))}"
)  # one of these is in every measure
_NATIONALITY = re.compile(
    r"[A-Z]\w+(?:ish|ian|ean|ese|can|lsh)|French|German|Dutch|Scot\w*|Greek|Swiss|Thai|Iraqi|Israeli|Pakistani|Czech|Spaniard"
)
_PLACE_PREPOSITIONS = word_set("in at near of on from outside across to around off")
_BEING = re.compile(r"\b(?:being|is|was|are|were|as|having)\b", re.IGNORECASE)
_OF = re.compile(r"\b(?:of|for|about)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"(?:['’]s|s['’])\s", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“”‘’]")


class Removal(NamedTuple):
    """The words [first, last) of the answer, and the probability that the request means exactly them."""

    first: int
    last: int
    probability: float


class Request(NamedTuple):
    """The words of a request, by what they tell.

    head: keys of what should go; anchor: keys of what it is said of ("Koeman" in "Koeman's first name"); kinds: what it
    speaks of. Function words are left out.
    """

    head: frozenset[str]
    anchor: frozenset[str]
    exact: tuple[str, ...]
    kinds: frozenset[str]
    is_quoted: bool


def find_removals(request: str, answer: str, source: str | None = None) -> list[Removal]:
    """Return the candidates, best first; their probabilities and that of "none" add up to 1."""
    words = split_words(answer)
    candidates = list_candidates(request, words)
    if not candidates:
        return []
    scores = score(describe_candidates(request, words, candidates, source))
    shares = np.exp(scores - max(0.0, scores.max()))
    shares /= math.exp(-max(0.0, scores.max())) + shares.sum()
    found = [Removal(*run, share) for run, share in zip(candidates, shares.tolist(), strict=True)]
    return sorted(found, key=lambda removal: -removal.probability)


def list_candidates(request: str, words: Sequence[WhitespaceWord]) -> list[tuple[int, int]]:
    """Return the runs of words that the request may mean and without which the answer still reads.

    There are none if no word of the request is known. What is asked for as a first name or an age has to be one.
    """
    asked = parse_request(request)
    named = (asked.head - _kind_keys()) & {key for word in words if word.is_content for key in word.keys}
    if not named and not asked.kinds:
        return []
    if len(words) > _MAX_ANSWER and not named:
        return []
    near = {word.sentence for word in words if not named or named.intersection(word.keys)}
    needed = {kind for kind in ("first name", "age") if kind in asked.kinds} if not named else set()
    is_long = len(words) > _MAX_ANSWER
    may_end = [True, *(may_end_cut(words, last) for last in range(1, len(words) + 1))]
    found = []
    for first, word in enumerate(words):
        if is_long and word.sentence not in near:
            continue
        for last in range(first + 1, min(len(words), first + _MAX_WORDS) + 1):
            if words[last - 1].sentence != word.sentence:
                break
            if may_end[last] and still_reads(words, first, last):
                found.append((first, last))
    if needed:
        kinds = _phrase_kinds(words, found)
        return [run for run, own in zip(found, kinds, strict=True) if needed & own]
    return found


def score(described: Described) -> Column:
    """Return the log-odds of each candidate against "none", up to a constant."""
    weights, known = _weights(), _sum_weights
    total = np.array([sum([known(names) for names in own]) for own in described.names])
    for name, column in described.columns.items():
        if name in weights:
            total += weights[name] * column
    return total


@lru_cache(maxsize=1 << 14)
def _sum_weights(names: tuple[str, ...]) -> float:
    weights = _weights()
    return sum(weights.get(name, 0.0) for name in names)


@lru_cache(maxsize=1)
def _weights() -> dict[str, float]:
    weights: dict[str, float] = load_weights("text2grad.align.learned", "removals")
    return weights


def parse_request(request: str) -> Request:
    """Split a request into what should go and what it is said of."""
    head, anchor = request, ""
    if match := _BEING.search(request):
        anchor, head = request[: match.start()], request[match.end() :]
    elif match := _POSSESSIVE.search(request):
        anchor, head = request[: match.end()], request[match.end() :]
    elif (match := _OF.search(request)) and any(p.search(request[: match.start()]) for p in _KIND_PATTERNS.values()):
        head, anchor = request[: match.start()], request[match.end() :]
    kinds = frozenset(name for name, pattern in _KIND_PATTERNS.items() if pattern.search(request))
    exact = tuple(map(part_key, split_parts(request)))
    return Request(_keys(head), _keys(anchor), exact, kinds, bool(_QUOTED.search(request)))


def _keys(text: str) -> frozenset[str]:
    return frozenset(part_key(part) for part in split_parts(text) if part not in FUNCTION_WORDS)


class _Source(NamedTuple):
    keys: frozenset[str]
    pairs: frozenset[tuple[str, str]]


@lru_cache(maxsize=8)
def _parse_source(source: str) -> _Source:
    return _Source(key_set(source), key_pairs(source))


class Described(NamedTuple):
    """The features of candidates: columns of values, and of each candidate groups of names whose value is 1."""

    columns: dict[str, Column]
    names: list[list[tuple[str, ...]]]


def compute_features(
    request: str, words: Sequence[WhitespaceWord], candidates: Sequence[tuple[int, int]], source: str | None
) -> list[Features]:
    """Return the features of each candidate by name; those of the source are missing where there is none."""
    if not candidates:
        return []
    described = describe_candidates(request, words, candidates, source)
    columns = {name: column.tolist() for name, column in described.columns.items()}
    return [
        {name: column[i] for name, column in columns.items()} | dict.fromkeys((n for group in own for n in group), 1.0)
        for i, own in enumerate(described.names)
    ]


def describe_candidates(
    request: str, words: Sequence[WhitespaceWord], candidates: Sequence[tuple[int, int]], source: str | None
) -> Described:
    """Return the features of all candidates; there is at least one."""
    asked = parse_request(request)
    known = _parse_source(source) if source else None
    runs = _Runs(asked, words, candidates, known)
    columns = {"bias": np.ones(len(candidates)), **_overlap_columns(asked, runs)}
    kinds = _phrase_kinds(words, candidates)
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
    covered = columns["head all covered"].tolist()
    names = []
    for boundary, own, is_covered in zip(_boundaries(words, candidates), kinds, covered, strict=True):
        groups = [_boundary_names(*boundary), _kind_names(asked.kinds, own)]
        if is_covered:
            groups += [_covered_names(groups[0]), tuple([f"covered {kind}" for kind in sorted(own)])]
        names.append(groups)
    return Described(columns, names)


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
        self.head_inside, self.anchor_inside = np.zeros((2, len(candidates)))
        for keys, inside in ((self.head, self.head_inside), (self.anchor, self.anchor_inside)):
            for key in keys:
                inside += self.count(np.array([key in own for own in present])) > 0

    def count(self, flags: NDArray[np.bool_]) -> Column:
        """Return how many of a candidate's words have a flag."""
        sums = np.concatenate([[0], np.cumsum(flags)])
        found: Column = (sums[self.last] - sums[self.first]).astype(float)
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
    unknown = len(asked.head - runs.answer_keys - _kind_keys()) / max(1, len(asked.head))
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


@lru_cache(maxsize=1)
def _kind_keys() -> frozenset[str]:
    return frozenset(map(part_key, _KIND_WORDS))


def _boundaries(
    words: Sequence[WhitespaceWord], candidates: Sequence[tuple[int, int]]
) -> list[tuple[str, str, str, str, bool, bool, bool]]:
    """Return the classes of the words before, first, last and after, the commas, and whether the sentence ends."""
    classes = [_classify(word.text, word.kind) for word in words]
    commas = [word.text.endswith(",") for word in words]
    opens = [True, *(left.sentence != right.sentence for left, right in pairwise(words)), True]
    left = ["START" if first else word for first, word in zip(opens, ["", *classes], strict=True)]
    right = ["END" if first else word for first, word in zip(opens, [*classes, ""], strict=True)]
    return [
        (
            left[first],
            classes[first],
            classes[last - 1],
            right[last],
            not opens[first] and commas[first - 1],
            commas[last - 1],
            opens[last],
        )
        for first, last in candidates
    ]


@lru_cache(maxsize=1 << 14)
def _boundary_names(
    before: str, begin: str, end: str, after: str, comma_before: bool, comma_after: bool, closes: bool
) -> tuple[str, ...]:
    return (
        f"before {before}",
        f"begin {begin}",
        f"end {end}",
        f"after {after}",
        f"seam {before} {after}",
        f"left {before} {begin}",
        f"right {end} {after}",
        f"commas {comma_before} {comma_after} {'END' if closes else ''}",
        f"edges {begin} {after}",
    )


@lru_cache(maxsize=1 << 14)
def _covered_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"covered {name}" for name in names if name.startswith(("left ", "right ", "edges ")))


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


@lru_cache(maxsize=1 << 14)
def _may_measure(word: str) -> bool:
    return _MEASURE_WORD.search(word) is not None or _MEASURE_WORD.search(word.lower()) is not None


def _phrase_kinds(words: Sequence[WhitespaceWord], candidates: Sequence[tuple[int, int]]) -> list[frozenset[str]]:
    """Return which kinds of phrase each run of words is, by its spelling and its neighbours."""
    texts = [word.text for word in words]
    capital = [word.is_capitalized for word in words]
    joins = [is_capital and not text.endswith(",") for is_capital, text in zip(capital, texts, strict=True)]
    capitals, lower, measures, numbers = (
        list(accumulate(flags, initial=0))
        for flags in (
            capital,
            [word.is_content and not is_capital for word, is_capital in zip(words, capital, strict=True)],
            map(_may_measure, texts),
            [word.kind is WordKind.NUMBER for word in words],
        )
    )
    found = []
    start, known = -1, frozenset[str]()
    for first, last in candidates:
        length, final = last - first, texts[last - 1]
        kinds = set()
        follows_name = last < len(words) and capital[last] and not final.endswith(",")
        before_capital = first > 0 and joins[first - 1]
        has_capitals = capitals[last] - capitals[first]
        if has_capitals == length:
            kinds.add("names" if length > 1 else "one name")
            if follows_name and not final.endswith(("'s", "’s")):
                kinds |= {"first name", "start of a name after a name" if before_capital else "start of a name"}
            if before_capital:
                kinds.add("end of a name")
        elif follows_name and lower[last] > lower[first]:
            if lower[last] - lower[first] == length:
                kinds.add("words before a name")
            if has_capitals:
                kinds.add("title before a name")
        bare = texts[first].lower()
        if bare in _PLACE_PREPOSITIONS and capitals[last] > capitals[first + 1]:
            kinds.add(f"{bare} Name")
        elif bare in PREPOSITIONS:
            kinds.add("prepositional phrase")
        if measures[last] > measures[first]:  # a longer run has what a shorter one has
            measured = _measures(" ".join(texts[first:last]), known if start == first else frozenset())
            start, known = first, measured
            kinds |= measured
        if length == 1 and _NATIONALITY.match(final):
            kinds.add("nationality")
        if length == 1 and final.endswith(("'s", "’s")):
            kinds.add("possessive")
        if numbers[last] > numbers[first]:
            kinds.add("number" if length <= 2 else "with a number")
        found.append(frozenset(kinds))
    return found


def _measures(text: str, known: frozenset[str]) -> frozenset[str]:
    return frozenset([kind for kind, pattern in _MEASURES.items() if kind in known or pattern.search(text)])


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
