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
from itertools import pairwise
from typing import NamedTuple

from text2grad.align.cuts import still_reads
from text2grad.align.weight_files import load_weights
from text2grad.text.lexicon import ARTICLES, CALENDAR_WORDS, FUNCTION_WORDS, PREPOSITIONS, word_set
from text2grad.text.whitespace import WhitespaceWord, WordKind, is_capitalized, part_key, split_parts, split_words

Features = dict[str, float]
NONE = "none"

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
    scores = [score(each) for each in compute_features(request, words, candidates, source)]
    top = max([0.0, *scores])
    total = math.exp(-top) + sum(math.exp(value - top) for value in scores)
    found = [
        Removal(first, last, math.exp(value - top) / total)
        for (first, last), value in zip(candidates, scores, strict=True)
    ]
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
    return [
        (first, last)
        for first in range(len(words))
        for last in range(first + 1, min(len(words), first + _MAX_WORDS) + 1)
        if words[first].sentence == words[last - 1].sentence
        and (len(words) <= _MAX_ANSWER or words[first].sentence in near)
        and still_reads(words, first, last)
        and (not needed or needed & _phrase_kinds(words, first, last))
    ]


def score(features: Features) -> float:
    """Return the log-odds of a candidate against "none", up to a constant."""
    weights = _weights()
    return sum(weights.get(name, 0.0) * value for name, value in features.items())


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
    keys = [part_key(part) for part in split_parts(source)]
    return _Source(frozenset(keys), frozenset(pairwise(keys)))


def compute_features(
    request: str, words: Sequence[WhitespaceWord], candidates: Sequence[tuple[int, int]], source: str | None
) -> list[Features]:
    """Return the features of each candidate; those of the source are missing where there is none."""
    asked = parse_request(request)
    known = _parse_source(source) if source else None
    answer_keys = frozenset(key for word in words for key in word.keys)
    present = [
        {key for key in word.keys if key in asked.head or key in asked.anchor} if word.is_content else set()
        for word in words
    ]
    unsupported = [known is not None and word.is_content and not known.keys.issuperset(word.keys) for word in words]
    return [
        _candidate_features(asked, answer_keys, words, first, last, present, unsupported, known)
        for first, last in candidates
    ]


def _candidate_features(
    asked: Request,
    answer_keys: frozenset[str],
    words: Sequence[WhitespaceWord],
    first: int,
    last: int,
    present: Sequence[set[str]],
    unsupported: Sequence[bool],
    known: _Source | None,
) -> Features:
    features: Features = {"bias": 1.0}
    features |= _overlap_features(asked, answer_keys, words, first, last, present)
    features |= _boundary_features(words, first, last)
    kinds = _phrase_kinds(words, first, last)
    features |= {f"kind {asked_kind}/{kind}": 1.0 for asked_kind in asked.kinds or {"-"} for kind in kinds or {"-"}}
    if "first name" in asked.kinds and "start of a name" in kinds:
        features["first name before its surname"] = features["anchor after"]
        features["first name, anchor elsewhere"] = float(
            bool(asked.anchor & answer_keys) and not features["anchor after"]
        )
    if "first name" in asked.kinds and not kinds & {"start of a name", "start of a name after a name"}:
        features["first name, but no start of a name"] = 1.0
    if "age" in asked.kinds and "age" not in kinds:
        features["age, but no age"] = 1.0
    if features["head nowhere"] and not asked.kinds:
        features["nothing known"] = 1.0
    if features["head all covered"]:
        features |= {f"covered {name}": 1.0 for name in features if name.startswith(("left ", "right ", "edges "))}
        features |= {f"covered {kind}": 1.0 for kind in kinds}
    if known:
        features |= _source_features(words, first, last, unsupported, known, asked, present)
    return features


def _overlap_features(
    asked: Request,
    answer_keys: frozenset[str],
    words: Sequence[WhitespaceWord],
    first: int,
    last: int,
    present: Sequence[set[str]],
) -> Features:
    inside = set().union(*present[first:last])
    head, anchor = asked.head & answer_keys, (asked.anchor - asked.head) & answer_keys
    content = [i for i in range(first, last) if words[i].is_content]
    matched = sum(bool(present[i] & asked.head) for i in content)
    features = {
        "head covered": len(inside & head) / len(head) if head else 0.0,
        "head all covered": float(bool(head) and head <= inside),
        "head nothing covered": float(bool(head) and not inside & head),
        "head nowhere": float(not head),
        "head words unknown": len(asked.head - answer_keys - _kind_keys()) / max(1, len(asked.head)),
        "content asked for": matched / len(content) if content else 0.0,
        "content all asked for": float(bool(content) and matched == len(content)),
        "content not asked for": min(6, len(content) - matched) / 6,
        "anchor covered": len(inside & anchor) / len(anchor) if anchor else 0.0,
        "anchor after": float(last < len(words) and bool(present[last] & anchor)),
        "anchor before": float(first > 0 and bool(present[first - 1] & anchor)),
        "quoted and all covered": float(asked.is_quoted and bool(head) and head <= inside),
        "whole request": float(tuple(k for w in words[first:last] for k in w.keys) == asked.exact),
        "no content": float(not content),
        "length": min(10, last - first) / 10,
    }
    if head and head <= inside and content:
        features["all covered, extra words"] = min(4, len(content) - matched) / 4
    if not head and anchor:
        features["anchor only, next to it"] = max(features["anchor after"], features["anchor before"])
    return features


@lru_cache(maxsize=1)
def _kind_keys() -> frozenset[str]:
    return frozenset(map(part_key, _KIND_WORDS))


def _boundary_features(words: Sequence[WhitespaceWord], first: int, last: int) -> Features:
    opens = first == 0 or words[first - 1].sentence != words[first].sentence
    closes = last == len(words) or words[last].sentence != words[last - 1].sentence
    before = "START" if opens else _word_class(words[first - 1])
    after = "END" if closes else _word_class(words[last])
    begin, end = _word_class(words[first]), _word_class(words[last - 1])
    comma_before = not opens and words[first - 1].text.endswith(",")
    comma_after = words[last - 1].text.endswith(",")
    names = (
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
    return dict.fromkeys(names, 1.0)


_CLASS_WORDS = ARTICLES | word_set("""
    of in at to for from by on with after as and or but who which that is are was were has have had be been will his her
    their its
    """)


def _word_class(word: WhitespaceWord) -> str:
    return _classify(word.text, word.kind)


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


def _phrase_kinds(words: Sequence[WhitespaceWord], first: int, last: int) -> set[str]:
    """Return which kinds of phrase a run of words is, by its spelling and its neighbours."""
    run = words[first:last]
    after = words[last] if last < len(words) else None
    capitalized = [word.is_capitalized for word in run]
    kinds = set()
    follows_name = after is not None and after.is_capitalized and not run[-1].text.endswith(",")
    before_capital = first > 0 and words[first - 1].is_capitalized and not words[first - 1].text.endswith(",")
    if all(capitalized):
        kinds.add("names" if len(run) > 1 else "one name")
        if follows_name and not run[-1].text.endswith(("'s", "’s")):
            kinds |= {"first name", "start of a name after a name" if before_capital else "start of a name"}
        if before_capital:
            kinds.add("end of a name")
    lower = [word for word in run if word.is_content and not word.is_capitalized]
    if lower and len(lower) == len(run) and follows_name:
        kinds.add("words before a name")
    if lower and follows_name and any(capitalized):
        kinds.add("title before a name")
    bare = run[0].text.lower()
    if bare in _PLACE_PREPOSITIONS and any(capitalized[1:]):
        kinds.add(f"{bare} Name")
    elif bare in PREPOSITIONS:
        kinds.add("prepositional phrase")
    if any(_may_measure(word.text) for word in run):
        text = " ".join(word.text for word in run)
        kinds |= {kind for kind, pattern in _MEASURES.items() if pattern.search(text)}
    if len(run) == 1 and _NATIONALITY.match(run[0].text):
        kinds.add("nationality")
    if len(run) == 1 and run[0].text.endswith(("'s", "’s")):
        kinds.add("possessive")
    if any(word.kind is WordKind.NUMBER for word in run):
        kinds.add("number" if len(run) <= 2 else "with a number")
    return kinds


def _source_features(
    words: Sequence[WhitespaceWord],
    first: int,
    last: int,
    unsupported: Sequence[bool],
    known: _Source,
    asked: Request,
    present: Sequence[set[str]],
) -> Features:
    inside = [i for i in range(first, last) if words[i].is_content]
    wrong = sum(unsupported[i] for i in inside)
    features = {
        "source": 1.0,
        "unsupported share": wrong / len(inside) if inside else 0.0,
        "unsupported all": float(bool(inside) and wrong == len(inside)),
        "unsupported none": float(bool(inside) and not wrong),
        "unsupported before": float(first > 0 and unsupported[first - 1]),
        "unsupported after": float(last < len(words) and unsupported[last]),
        "unsupported elsewhere": min(6, sum(unsupported) - wrong) / 6,
        "supported inside": min(5, len(inside) - wrong) / 5,
        "asked and unsupported": sum(bool(present[i]) and unsupported[i] for i in inside) / max(1, len(inside)),
        "asked but supported": sum(bool(present[i]) and not unsupported[i] for i in inside) / max(1, len(inside)),
    }
    if asked.kinds & {"first name"}:
        features["first name unsupported"] = features["unsupported all"]
    if first > 0 and last < len(words) and words[first - 1].keys and words[last].keys:
        features["seam in source"] = float((words[first - 1].keys[-1], words[last].keys[0]) in known.pairs)
        broken = words[last - 1].keys and (words[last - 1].keys[-1], words[last].keys[0]) in known.pairs
        features["breaks a pair of the source"] = float(bool(broken))
    return features
