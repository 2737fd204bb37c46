"""Features of a completion's words, from which the learned aligner predicts which ones a comment is about.

All of them come from spelling: which words the comment mentions and in which role, which words the source does not
contain, the kind of a word, its neighbours. Columns about the source are NaN where there is none.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from text2grad.align.learned.roles import Mention, Role, content_keys, parse_mentions
from text2grad.text.lexicon import CALENDAR_WORDS
from text2grad.text.whitespace import PUNCTUATION, WhitespaceWord, WordKind, split_keys, split_words

Matrix = NDArray[np.float32]
Column = list[float]
Columns = dict[str, Column]

_REWRITE = re.compile(r"\b(?:rewrite|rephrase|entire(?:ly)?|whole|completely|everything|all of|none of)\b", re.I)
_TOPICS = {
    "age": r"age[ds]?|old",
    "time": r"dates?|days?|when|times?|months?|years?|weeks?|period|hours?|season|duration|long|timing|timeframe",
    "place": r"locat\w+|where|places?|city|town|country|county|state|region|area|venue|home|street|village|districts?",
    "name": r"names?|named|who|identity|person|surname",
    "number": r"numbers?|amount|many|much|figures?|cost|price|score|percent\w*|total|quantity|value|size|count",
    "role": r"role|title|position|job|occupation|profession|status|rank|career|nationality|gender|relationship",
}
_TOPIC_PATTERNS = {topic: re.compile(words, re.IGNORECASE) for topic, words in _TOPICS.items()}
_WORD = re.compile(r"\w+")
_TIME = re.compile(
    r"days?|weeks?|months?|years?|hours?|minutes?|today|yesterday|tomorrow|tonight|morning|evening|afternoon|night|weekend"
    r"|season|century|decade|last|next|ago|since|earlier|later|recently|annual|first|time|early|late|"
    + "|".join(sorted(CALENDAR_WORDS))
)
_PLACE_PREPOSITIONS = frozenset(("in", "at", "near", "from", "of", "across", "around", "on", "to"))
_PERSON = re.compile(r"(?:er|or|ist|ian|man|woman|ant)s?$")
_ENDINGS = ("ly", "ed", "ing", "s")
_CHUNK_STARTS = frozenset({WordKind.PREPOSITION, WordKind.CONJUNCTION, WordKind.AUXILIARY, WordKind.SUBJECT})
_NEIGHBOUR_REACH = {"evidence": 3, "kind": 2, "novel": 2, "run_blamed": 2, "run": 2, "closes": 1, "source_run": 2}
_MENTION_NAMES = (
    "mentioned", "blamed", "wanted", "quoted", "similar", "mentions", "sentences_mentioning", "last_mention",
)  # fmt: skip
_MAX_DISTANCE = 20.0
_OUTSIDE = -1.0  # the value of a neighbour beyond the ends of the completion
_NOT_MENTIONED = (*[0.0] * 7, _OUTSIDE)  # in the order of `_MENTION_NAMES`


def compute_word_features(
    comment: str, completion: str, prompt: str | None
) -> tuple[list[WhitespaceWord], list[str], Matrix]:
    """Return the words of the completion, the names of the columns, and the features (words, columns) in float32."""
    words, mentions = split_words(completion), parse_mentions(comment)
    columns = _mention_columns(words, mentions)
    columns |= _source_columns(words, prompt)
    columns |= _spelling_columns(words)
    columns |= _topic_columns(words, comment, mentions)
    columns |= _comment_columns(words, comment, mentions, columns)
    columns |= _evidence_columns(words, columns)
    columns |= _group_columns(words, columns)
    columns |= _neighbour_columns(words, columns)
    return words, list(columns), np.array(list(columns.values()), dtype=np.float32).T


def _mention_columns(words: Sequence[WhitespaceWord], mentions: Sequence[Mention]) -> Columns:
    """Compute how the comment mentions each word."""
    blamed, wanted = (content_keys(mentions, role) for role in (Role.BLAMED, Role.WANTED))
    quoted = {mention.key for mention in mentions if mention.is_quoted}
    counts = Counter(mention.key for mention in mentions if mention.is_content)
    sentences: defaultdict[str, set[int]] = defaultdict(set)
    last: dict[str, float] = {}
    for i, mention in enumerate(mentions):
        sentences[mention.key].add(mention.sentence)
        last[mention.key] = i / len(mentions)
    trigrams = {key: _trigrams(key) for key in counts}

    def shares(key: str) -> tuple[float, ...]:
        return float(key in counts), float(key in blamed), float(key in wanted), float(key in quoted)

    def strengths(key: str) -> tuple[float, ...]:
        similar, count = _similarity(key, trigrams), counts.get(key, 0)
        return similar, float(count), float(len(sentences.get(key, ()))), last.get(key, _OUTSIDE)

    rows = []
    for word in words:
        if not word.is_content:
            rows.append(_NOT_MENTIONED)
        elif len(word.keys) == 1:
            rows.append(shares(word.keys[0]) + strengths(word.keys[0]))
        else:
            means = (sum(column) / len(word.keys) for column in zip(*map(shares, word.keys), strict=True))
            rows.append((*means, *map(max, zip(*map(strengths, word.keys), strict=True))))
    columns = {name: [row[i] for row in rows] for i, name in enumerate(_MENTION_NAMES)}
    places = _places(words, [mention.key for mention in mentions])
    columns["run"] = _longest_runs(words, places)[0]
    for name, role in (("run_blamed", Role.BLAMED), ("run_wanted", Role.WANTED)):
        own = {key: [i for i in positions if mentions[i].role is role] for key, positions in places.items()}
        columns[name] = _longest_runs(words, own)[0] if any(own.values()) else [0.0] * len(words)
    return columns


def _source_columns(words: Sequence[WhitespaceWord], prompt: str | None) -> Columns:
    """Compute how far the source contains each word and its neighbours."""
    if prompt is None:
        return {name: [float("nan")] * len(words) for name in _source_columns(words, "")}
    places = _places(words, split_keys(prompt))
    counts = {key: len(positions) for key, positions in places.items()}
    novel = [_mean([counts[key] == 0 for key in word.keys]) if word.keys else 0.0 for word in words]
    content = [value for word, value in zip(words, novel, strict=True) if word.is_content]
    runs, continues = _longest_runs(words, places)
    # whether the source contains each word right after the one before it
    pairs = [
        float(known) if before.keys and word.keys else _OUTSIDE
        for (before, word), known in zip(pairwise(words), continues[1:], strict=True)
    ]
    return {
        "novel": novel,
        "source_count": [float(min((counts[key] for key in word.keys), default=0)) for word in words],
        "source_before": [_OUTSIDE, *pairs][: len(words)],
        "source_after": [*pairs, _OUTSIDE][: len(words)],
        "source_run": runs,
        "novel_share": [_mean(content) if content else 0.0] * len(words),
    }


def _spelling_columns(words: Sequence[WhitespaceWord]) -> Columns:
    count = len(words)
    spelt = [_spelling(word.text) for word in words]
    return {
        "kind": [float(word.kind) for word in words],
        "capital": [float(word.is_capitalized) for word in words],
        "number": [float(word.kind == WordKind.NUMBER) for word in words],
        "length": [length for length, _, _ in spelt],
        "ending": [ending for _, ending, _ in spelt],
        "closes": [closes for _, _, closes in spelt],
        "position": [i / max(1, count - 1) for i in range(count)],
        "from_start": [float(min(i, 10)) for i in range(count)],
        "from_end": [float(min(count - 1 - i, 10)) for i in range(count)],
        "words": [float(count)] * count,
    }


@lru_cache(maxsize=1 << 15)
def _spelling(word: str) -> tuple[float, float, float]:
    """Return the length of a word without marks, the number of its ending, and how far it closes what is before it."""
    bare = word.strip(PUNCTUATION).lower()
    ending = next((i for i, end in enumerate(_ENDINGS, 1) if bare.endswith(end)), 0)
    return float(len(bare)), float(ending), 1.0 if word[-1] in ".!?" else 0.5 if word[-1] in ",;:" else 0.0


def _topic_columns(words: Sequence[WhitespaceWord], comment: str, mentions: Sequence[Mention]) -> Columns:
    """Compute whether the comment has a topic such as age or place (1, else 0), more if the word fits the topic."""
    topics = {topic for word in set(_WORD.findall(comment)) for topic in _topics_in(word)}
    numbers = {mention.key for mention in mentions if mention.key[0].isdigit()}
    number = [word.kind == WordKind.NUMBER for word in words]
    fits: dict[str, Callable[[], list[int]]] = {
        "age": lambda: [2 * _topics_of(w.text, w.parts)[0] + own for w, own in zip(words, number, strict=True)],
        "time": lambda: [2 * _topics_of(w.text, w.parts)[1] + own for w, own in zip(words, number, strict=True)],
        "place": lambda: _fit_places(words),
        "name": lambda: [2 * word.is_capitalized for word in words],
        "number": lambda: [2 * own for own in number],
        "role": lambda: [2 * _topics_of(w.text, w.parts)[2] for w in words],
    }
    found = {
        f"about_{topic}": [1.0 + fit for fit in fit_words()] if topic in topics else [0.0] * len(words)
        for topic, fit_words in fits.items()
    }
    found["other_number"] = [
        float(own) + float(bool(own and numbers and numbers.isdisjoint(word.keys)))
        for word, own in zip(words, number, strict=True)
    ]
    return found


def _fit_places(words: Sequence[WhitespaceWord]) -> list[int]:
    """Return 1 for each word with a capital, 3 if a preposition of place is one of the three words before it."""
    leads = [not _PLACE_PREPOSITIONS.isdisjoint(word.parts[:1]) for word in words]
    return [word.is_capitalized * (1 + 2 * any(leads[max(0, i - 3) : i])) for i, word in enumerate(words)]


@lru_cache(maxsize=1 << 14)
def _topics_in(word: str) -> tuple[str, ...]:
    """Return the topics that a word of a comment stands for."""
    return tuple(topic for topic, pattern in _TOPIC_PATTERNS.items() if pattern.fullmatch(word))


@lru_cache(maxsize=1 << 14)
def _topics_of(text: str, parts: tuple[str, ...]) -> tuple[bool, bool, bool]:
    """Return whether a word by itself tells an age, a time, or the role of a person."""
    is_time = any(map(_TIME.fullmatch, parts))
    is_role = _PERSON.search(text.strip(PUNCTUATION).lower()) is not None
    return not {"old", "aged"}.isdisjoint(parts), is_time, is_role


def _comment_columns(
    words: Sequence[WhitespaceWord], comment: str, mentions: Sequence[Mention], columns: Columns
) -> Columns:
    """Compute the columns that are the same for all words: properties of the comment, and how much of it matched."""
    keys = content_keys(mentions)
    present = {key for word in words for key in word.keys}
    values = {
        "asks_rewrite": len(_REWRITE.findall(comment)),
        "comment_length": min(len(mentions), 120),
        "comment_sentences": len({mention.sentence for mention in mentions}),
        "blamed_words": len(content_keys(mentions, Role.BLAMED)),
        "wanted_words": len(content_keys(mentions, Role.WANTED)),
        "recognised": len(keys & present) / max(1, len(keys)),
        "total_mentioned": sum(columns["mentioned"]),
        "total_blamed": sum(columns["blamed"]),
        "total_wanted": sum(columns["wanted"]),
    }
    return {name: [float(value)] * len(words) for name, value in values.items()}


def _evidence_columns(words: Sequence[WhitespaceWord], columns: Columns) -> Columns:
    """Compute a weighted sum of the evidence for each word, its share and rank, and the distance to blamed words."""
    names = ("blamed", "wanted", "mentioned", "quoted", "novel")
    blamed, wanted, mentioned, quoted, novel = np.array([columns[name] for name in names])
    novel = np.zeros(len(words)) if np.isnan(novel).any() else novel  # there is no source
    is_content = np.array([word.is_content for word in words], dtype=bool)
    weighted = blamed * np.where(wanted, 0.5, 1.5) + 0.5 * mentioned + 0.3 * quoted + 0.7 * novel * is_content
    evidence: Column = weighted.tolist()
    ranks = np.argsort(np.argsort(-weighted, kind="stable"))
    total = sum(evidence) or 1.0
    before = _distances(columns["blamed"])
    after = _distances(columns["blamed"][::-1])[::-1]
    return {
        "evidence": evidence,
        "evidence_share": [value / total for value in evidence],
        "evidence_rank": [rank / len(words) for rank in ranks.tolist()],
        "blame_before": before,
        "blame_after": after,
        "blame_nearest": list(map(min, before, after)),
    }


def _distances(flags: Column) -> Column:
    """Return how far the last flag is, the word itself included; the greatest distance before the first one."""
    found: Column = []
    distance: float | None = None
    for flag in flags:
        distance = 0.0 if flag else distance if distance is None else distance + 1
        found.append(_MAX_DISTANCE if distance is None else distance)
    return found


def _group_columns(words: Sequence[WhitespaceWord], columns: Columns) -> Columns:
    """Aggregate evidence over the content words of each word's chunk and sentence."""
    chunks = _assign_chunks(words)
    sentences = [word.sentence for word in words]
    found: Columns = {"opens_chunk": [float(i == 0 or chunks[i] != chunks[i - 1]) for i in range(len(words))]}
    members = _content_by_group(words, chunks)
    for name in ("evidence", "blamed", "wanted", "novel", "run_blamed"):
        found[f"chunk_max_{name}"] = _aggregate(members, chunks, columns[name], max)
        found[f"chunk_mean_{name}"] = _aggregate(members, chunks, columns[name], _mean)
    members = _content_by_group(words, sentences)
    for name in ("evidence", "blamed", "mentioned", "run"):
        found[f"sentence_mean_{name}"] = _aggregate(members, sentences, columns[name], _mean)
    means = found["sentence_mean_evidence"]
    best = max(means, default=0.0)
    found["sentence_evidence_of_best"] = [mean / best if best else 0.0 for mean in means]
    found["sentences"] = [float(min(sentences[-1] + 1, 12))] * len(words) if words else []
    found["sentence_position"] = [sentence / max(1, sentences[-1]) for sentence in sentences]
    return found


def _neighbour_columns(words: Sequence[WhitespaceWord], columns: Columns) -> Columns:
    """Copy some columns from the neighbouring words and from the nearest content words."""
    content = [i for i, word in enumerate(words) if word.is_content]
    previous = [content[k - 1] if (k := bisect_left(content, i)) else -1 for i in range(len(words))]
    following = [content[k] if (k := bisect_right(content, i)) < len(content) else -1 for i in range(len(words))]
    found: Columns = {}
    for name in ("evidence", "blamed", "wanted", "novel", "capital", "run_blamed", "mentioned"):
        values = [*columns[name], _OUTSIDE]  # the last one for index -1
        found[f"{name}_previous_content"] = [values[j] for j in previous]
        found[f"{name}_next_content"] = [values[j] for j in following]
    for name, reach in _NEIGHBOUR_REACH.items():
        padded = [_OUTSIDE] * reach + columns[name] + [_OUTSIDE] * reach
        for step in (*range(-reach, 0), *range(1, reach + 1)):
            found[f"{name}[{step:+d}]"] = padded[reach + step :][: len(words)]
    return found


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _assign_chunks(words: Sequence[WhitespaceWord]) -> list[int]:
    """Number the chunks: one starts at a preposition, conjunction, auxiliary or subject, and after punctuation."""
    starts = [
        before.text[-1] in ",;:.!?" or (word.kind in _CHUNK_STARTS and before.kind != WordKind.AUXILIARY)
        for before, word in pairwise(words)
    ]
    return list(accumulate(starts, initial=0))[: len(words)]


def _content_by_group(words: Sequence[WhitespaceWord], groups: Sequence[int]) -> list[list[int]]:
    """Return the indices of the content words of each group. groups: their numbers, ascending from 0 without gaps."""
    members: list[list[int]] = [[] for _ in range(groups[-1] + 1 if groups else 0)]
    for i, (word, group) in enumerate(zip(words, groups, strict=True)):
        if word.is_content:
            members[group].append(i)
    return members


def _aggregate(
    members: Sequence[Sequence[int]], groups: Sequence[int], column: Column, reduce: Callable[[list[float]], float]
) -> Column:
    """Return for each word what a column is for the members of its group, together; 0 for a group without members."""
    reduced = [reduce([column[i] for i in own]) if own else 0.0 for own in members]
    return [reduced[group] for group in groups]


def _places(words: Sequence[WhitespaceWord], text: Sequence[str]) -> dict[str, list[int]]:
    """Return for each key of the words where it occurs in `text`, a sequence of keys."""
    places: dict[str, list[int]] = {key: [] for word in words for key in word.keys}
    for position, key in enumerate(text):
        if key in places:
            places[key].append(position)
    return places


def _longest_runs(words: Sequence[WhitespaceWord], places: Mapping[str, list[int]]) -> tuple[Column, list[bool]]:
    """Return, per word, the length in parts of the longest run of keys around it that a text has too.

    places: where in that text each key occurs. The second list: whether the text has the word's first key after the key
    before it.
    """
    column, continues = [0.0] * len(words), [False] * len(words)
    owners: list[int] = []  # the word of each key so far
    ending: dict[int, int] = {}  # lengths of the runs that end with the last key, by where they end in the text
    for i, word in enumerate(words):
        for number, key in enumerate(word.keys):
            owners.append(i)
            ending = {position: ending.get(position - 1, 0) + 1 for position in places[key]}
            if not ending:
                continue
            length = max(ending.values())
            if number == 0:
                continues[i] = length > 1
            for owner in owners[-length:]:
                column[owner] = max(column[owner], float(length))
    return column, continues


@lru_cache(maxsize=1 << 14)
def _trigrams(text: str) -> frozenset[str]:
    padded = f"^{text}$"
    return frozenset(padded[i : i + 3] for i in range(len(padded) - 2))


def _similarity(text: str, others: Mapping[str, frozenset[str]]) -> float:
    """Jaccard similarity to the most similar of the others, by key."""
    if text in others:
        return 1.0
    own, best = _trigrams(text), 0.0
    for other in others.values():
        if not own.isdisjoint(other):
            shared = len(own & other)
            best = max(best, shared / (len(own) + len(other) - shared))
    return best
