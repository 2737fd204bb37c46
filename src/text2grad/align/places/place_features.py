"""Features of the places that a clause may mean, from which the ranker predicts how well each fits.

Shared words, similar words (`text.vectors`), what the other sources propose, where the place stands, what it is, and
what the clause asks for: a part, a number, a behaviour of code, or the whole answer.
"""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from text2grad.align.answer.document import Document
from text2grad.align.answer.program import statement_nodes
from text2grad.align.answer.proposals import Proposal
from text2grad.align.clauses.whole import whole_words
from text2grad.align.learned.roles import Role, parse_mentions
from text2grad.align.learned.statement_features import CONCEPTS, CUES
from text2grad.align.places.place_candidates import Candidate, answer_words
from text2grad.schema import Range
from text2grad.text.lexicon import CALENDAR_WORDS
from text2grad.text.vectors import DIMENSIONS, word_vector
from text2grad.text.whitespace import WhitespaceWord, WordKind, is_function_part, part_key, split_parts, split_words

Matrix = NDArray[np.float32]
Floats = NDArray[np.float32]

LEVELS = (
    "whole", "paragraph", "line", "sentence", "piece", "value", "words", "title", "greeting", "sign_off", "block",
    "statement", "expression", "note", "proposed",
)  # fmt: skip
SOURCES = ("quotation", "part", "kind", "name", "mention", "structure", "behaviour", "chosen")
_DIGITS = 4  # so that equal values are equal, however they were computed
_MIN_SIMILARITY = 0.3
_CUES = {
    "first": r"first|open\w*|begin\w*|start\w*|top|intro\w*|lead",
    "last": r"last|final\w*|end|ends|ending|clos\w+|bottom|conclu\w+|finish\w*|sign\w*",
    "second": r"second|2nd|two",
    "third": r"third|3rd|three",
    "middle": r"middle|halfway|mid",
    "title": r"title|headline|heading|header|subject",
    "greeting": r"greeting|salutation|hello|hi|dear|address\w*",
    "part": r"sentences?|lines?|steps?|paragraphs?|bullets?|items?|points?|parts?|bit|section|remark|note|tip|advice|warning",
    "word": r"words?|phrase\w*|term|wording|expression|typo|spell\w*|adjective\w*|call\w*",
    "value": r"numbers?|figures?|amount\w*|price|cost|dates?|day|year|time|minutes|hours|how (?:many|much|long)|percent\w*|temperature|grams|quantit\w+|dose|digits?",
    "name": r"names?|who|person|city|country|place|where|called",
    "wrong": r"wrong|incorrect\w*|false|not true|mistake\w*|error|mixed up|misread\w*|confus\w+|actually|isn['’]t|wasn['’]t|never|not|n['’]t|instead",
    "tone": r"tone|sounds?|reads?|rude|polite|warm\w*|cold|stiff|formal|friendly|salesy|pompous|preachy|flowery|patroni\w+|fluff\w*|padding|filler|waffle\w*|cliche\w*",
    "whole": r"overall|whole|entire\w*|everything|throughout|all|generally|in general|every|nothing|anything",
    "answer": r"answer|summary|text|response|reply|letter|mail|email|recipe|code|program|function|script|piece|instructions|it|this",
    "length": r"long|short\w*|brief\w*|concise|wordy|length|lengthy|terse|tight|pages?",
    "style": r"clear\w*|readable|easy|plain|structure\w*|order\w*|layout|format\w*|organi\w+|style|language|well[- ]written",
}  # fmt: skip
_PATTERNS = {name: re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE) for name, words in _CUES.items()}
_NODES = (
    ast.FunctionDef, ast.Return, ast.If, ast.For, ast.While, ast.Assign, ast.AugAssign, ast.Expr, ast.Import, ast.Try, ast.With,
    ast.Raise, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript, ast.Constant, ast.ListComp,
    ast.GeneratorExp, ast.arguments, ast.Dict, ast.IfExp, ast.ImportFrom, ast.JoinedStr,
)  # fmt: skip
_PREFIX, _PREFIX_SIMILARITY = 5, 0.8
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|[;:]\s")
_NO_VECTOR = np.zeros(DIMENSIONS, np.float32)


class _Answer:
    """What depends on the completion and the prompt alone."""

    def __init__(self, text: str, prompt: str, is_program: bool) -> None:
        self.words = answer_words(text)
        count = len(self.words)
        self.starts = np.array([word.start for word in self.words])
        self.ends = np.array([word.end for word in self.words])
        self.content = np.array([word.is_content for word in self.words], bool)
        self.vectors = np.zeros((count, DIMENSIONS), np.float32)
        for i, word in enumerate(self.words):
            if word.is_content:
                found = [v for part in word.parts if (v := word_vector(part)) is not None]
                self.vectors[i] = sum(found, _NO_VECTOR) / max(1, len(found))
        known = {part_key(part) for part in split_parts(prompt)}
        novel = [all(key not in known for key in word.keys) for word in self.words]
        calendar = [any(part in CALENDAR_WORDS for part in word.parts) for word in self.words]
        self.traits = np.array(
            [
                self.content,
                novel & self.content if known else np.zeros(count, bool),
                [word.kind == WordKind.NUMBER for word in self.words],
                [word.kind == WordKind.NAME for word in self.words],
                calendar,
                [word.text.endswith("?") for word in self.words],
                [word.text.endswith("!") for word in self.words],
            ],
            np.float32,
        ).reshape(7, count)
        # the sentence of each word, in a program its line
        units = [text.count("\n", 0, word.start) if is_program else word.sentence for word in self.words]
        self.units = np.unique(units, return_inverse=True)[1]
        self.prefixes = [{key[:_PREFIX] for key in word.keys if len(key) >= _PREFIX} for word in self.words]
        self.source = [_content(piece) for piece in _SENTENCE.split(prompt)]


TRAITS = ("content", "novel", "number", "name", "calendar", "asks", "exclaims")


@lru_cache(maxsize=16)
def _answer(text: str, prompt: str) -> _Answer:
    return _Answer(text, prompt, Document(text, prompt).program is not None)


def masks(text: str, prompt: str, places: Sequence[Sequence[Range]]) -> NDArray[np.bool_]:
    """Return which words each group of places covers, (groups, words)."""
    answer = _answer(text, prompt)
    found = np.zeros((len(places), len(answer.words)), bool)
    for row, ranges in enumerate(places):
        for start, end in ranges:
            found[row, np.searchsorted(answer.ends, start, "right") : np.searchsorted(answer.starts, end)] = True
    return found


def compute_place_features(
    comment: str,
    bounds: Range,
    stance: str,
    document: Document,
    prompt: str,
    candidates: Sequence[Candidate],
    proposals: Sequence[tuple[str, Proposal]],
) -> tuple[list[str], Matrix]:
    """Return the names of the columns and the features (candidates, columns).

    proposals: what other sources propose for the clause comment[start:end], with the name of the source.
    """
    answer, clause = _answer(document.text, prompt), comment[slice(*bounds)]
    inside = masks(document.text, prompt, [candidate.places for candidate in candidates])
    inside_f = inside.astype(np.float32)
    size = inside_f.sum(1)
    total, length = max(1, len(answer.words)), max(1, len(document.text))
    columns: dict[str, Floats] = {
        "size": size,
        "share": size / total,
        "start": np.array([c.places[0][0] / length for c in candidates], np.float32),
        "end": np.array([c.places[-1][1] / length for c in candidates], np.float32),
        "places": np.array([len(c.places) for c in candidates], np.float32),
    }
    for level in LEVELS:
        columns[f"is_{level}"] = np.array([c.level == level for c in candidates], np.float32)
    same = {level: [i for i, c in enumerate(candidates) if c.level == level] for level in ("sentence", "line")}
    order = np.full((2, len(candidates)), -1.0, np.float32)
    for own in same.values():
        for number, i in enumerate(own):
            order[:, i] = min(number, 9), min(len(own) - 1 - number, 9)
    columns["number_from_start"], columns["number_from_end"] = order
    traits = inside_f @ answer.traits.T
    for i, name in enumerate(TRAITS):
        columns[f"{name}_share"] = traits[:, i] / np.maximum(1, size)
    columns |= _words_columns(clause, answer, inside)
    columns |= _unit_columns(clause, answer, inside, columns)
    columns |= _contrast_columns(clause, answer, inside)
    rest = comment[: bounds[0]] + " " + comment[bounds[1] :]
    columns["context"] = _words_columns(rest, answer, inside)["exact"]
    columns |= _source_columns(clause, answer, inside_f)
    columns |= _proposal_columns(document.text, prompt, proposals, inside_f, size)
    columns |= _code_columns(clause, candidates)
    constant: dict[str, float] = {f"says_{name}": float(bool(p.search(clause))) for name, p in _PATTERNS.items()}
    opinion, other = whole_words(clause)
    constant |= {
        "opinion_words": float(opinion),
        "other_words": float(other),
        "good": float(stance == "good"),
        "unsure": float(stance == "unsure"),
        "words": float(min(total, 400)),
        "sentences": float(len(document.sentences)),
        "program": float(document.program is not None),
        "clause_words": float(len(clause.split())),
        "opens": float(bounds[0] == 0),
        "rest_words": float(len(rest.split())),
        "best_exact": float(columns["exact"].max(initial=0)),
        "best_soft": float(columns["soft"].max(initial=0)),
    }
    for name in ("exact", "soft", "cosine", "density"):
        columns[f"{name}_below_best"] = columns[name].max(initial=0) - columns[name]
    columns |= {name: np.full(len(candidates), value, np.float32) for name, value in constant.items()}
    return list(columns), np.stack(list(columns.values()), axis=1).round(_DIGITS).astype(np.float32)


def _words_columns(text: str, answer: _Answer, inside: NDArray[np.bool_]) -> dict[str, Floats]:
    """Compute how far a place has the words of a text, and similar ones; rare words of the answer weigh more."""
    mentions = parse_mentions(text)
    keys = list(dict.fromkeys(m.key for m in mentions if m.is_content))
    spelt = {part_key(part): part for part in split_parts(text) if not is_function_part(part)}
    keys = [key for key in keys if key in spelt]
    count, words = len(keys), len(answer.words)
    if not count or not words:
        zero = np.zeros(len(inside), np.float32)
        return dict.fromkeys(_WORD_COLUMNS, zero)
    exact = np.zeros((words, count), np.float32)
    column = {key: i for i, key in enumerate(keys)}
    for i, word in enumerate(answer.words):
        for key in word.keys:
            if key in column:
                exact[i, column[key]] = 1.0
    starts = [key[:_PREFIX] if len(key) >= _PREFIX else "" for key in keys]
    begins = np.array([[start in own for start in starts] for own in answer.prefixes], np.float32) * _PREFIX_SIMILARITY
    vectors = np.stack([v if (v := word_vector(spelt[key])) is not None else _NO_VECTOR for key in keys])
    similar = np.maximum(np.maximum(exact, begins), answer.vectors @ vectors.T)
    similar = np.where(similar < _MIN_SIMILARITY, 0.0, similar).astype(np.float32)
    weight = 1.0 / (1.0 + similar.sum(0))
    weight_exact = np.where(exact.any(0), 1.0 / np.maximum(1.0, exact.sum(0)), 0.5).astype(np.float32)
    blamed, wanted = (
        np.array([any(m.key == key and m.role is role for m in mentions) for key in keys], np.float32)
        for role in (Role.BLAMED, Role.WANTED)
    )
    has_exact = (inside.astype(np.float32) @ exact > 0).astype(np.float32)  # (places, keys)
    best = np.stack([_max_inside(inside, similar[:, k]) for k in range(count)], axis=1)
    content = np.maximum(1.0, (inside & answer.content).sum(1))
    hits = (inside & (exact.max(1) > 0)).sum(1)
    near = (inside * similar.max(1)).sum(1)
    mean = inside.astype(np.float32) @ answer.vectors
    norm = np.linalg.norm(mean, axis=1)
    said = vectors.sum(0)
    cosine = mean @ said / np.maximum(1e-6, norm * max(1e-6, float(np.linalg.norm(said))))
    ends = _edges(inside)
    at_edges = (exact.max(1)[ends[0]] + exact.max(1)[ends[1]]) / 2
    return {
        "exact": has_exact @ weight_exact / weight_exact.sum(),
        "exact_count": has_exact.sum(1),
        "exact_share": has_exact.mean(1),
        "soft": best @ weight / weight.sum(),
        "soft_max": best.max(1),
        "cosine": cosine,
        "density": hits / content,
        "soft_density": near / content,
        "edges": at_edges,
        "all_hits": hits / max(1.0, float((exact.max(1) > 0).sum())),
        "blamed": has_exact @ blamed,
        "wanted": has_exact @ wanted,
        "recognised": np.full(len(inside), exact.any(0).mean(), np.float32),
        "keys": np.full(len(inside), count, np.float32),
    }


def _unit_columns(
    clause: str, answer: _Answer, inside: NDArray[np.bool_], columns: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Compute how well the sentence, or line of code, around a place fits, and how much of that the place has."""
    if not answer.words:
        zero = np.zeros(len(inside), np.float32)
        return dict.fromkeys(_UNIT_COLUMNS, zero)
    units = answer.units[None, :] == np.arange(answer.units[-1] + 1)[:, None]
    fits = _words_columns(clause, answer, units)
    own = answer.units[_edges(inside)[0]]
    size = units.sum(1)[own]
    found = {f"unit_{name}": fits[name][own] for name in ("exact", "soft", "cosine", "soft_max")}
    found |= {f"unit_{name}_below_best": fits[name].max() - fits[name][own] for name in ("exact", "soft", "cosine")}
    found["unit_share"] = (inside.sum(1) / np.maximum(1, size)).astype(np.float32)
    found |= {f"unit_{name}_elsewhere": fits[name][own] - columns[name] for name in ("exact", "soft")}
    return found


_UNIT_COLUMNS = (
    "unit_exact", "unit_soft", "unit_cosine", "unit_soft_max", "unit_exact_below_best", "unit_soft_below_best",
    "unit_cosine_below_best", "unit_share", "unit_exact_elsewhere", "unit_soft_elsewhere",
)  # fmt: skip


def _contrast_columns(clause: str, answer: _Answer, inside: NDArray[np.bool_]) -> dict[str, Floats]:
    """Compute how far a place has what the clause puts something else for: "It was Thursday" and a Tuesday."""
    said = [word for word in split_words(clause) if word.is_content]
    known = {key for word in answer.words for key in word.keys}
    keys = {key for word in said for key in word.keys}
    new = [word for word in said if known.isdisjoint(word.keys)]
    other = np.array([word.is_content and keys.isdisjoint(word.keys) for word in answer.words], bool)
    size = np.maximum(1, inside.sum(1))
    found: dict[str, Floats] = {"new_words": np.full(len(inside), len(new), np.float32)}
    vectors = [v for word in new for part in word.parts if (v := word_vector(part)) is not None]
    similar = np.zeros(len(answer.words), np.float32)
    if vectors and len(answer.words):
        similar = np.where(other, (answer.vectors @ np.stack(vectors).T).max(1), 0.0).astype(np.float32)
    best = _max_inside(inside, similar) if len(answer.words) else np.zeros(len(inside), np.float32)
    found["contrast"] = best
    found["contrast_below_best"] = best.max(initial=0) - best
    found["contrast_density"] = (inside * np.where(similar > _MIN_SIMILARITY, similar, 0)).sum(1) / size
    for row, name in ((2, "number"), (3, "name"), (4, "calendar")):
        has = _has_trait(new, name)
        inside_other = (inside & other & (answer.traits[row] > 0)).sum(1) if has else np.zeros(len(inside))
        found[f"contrast_{name}"] = np.minimum(inside_other, 3).astype(np.float32)
        found[f"contrast_{name}_share"] = (inside_other / size).astype(np.float32)
        found[f"new_{name}"] = np.full(len(inside), float(has), np.float32)
    return found


def _has_trait(words: Sequence[WhitespaceWord], name: str) -> bool:
    if name == "calendar":
        return any(part in CALENDAR_WORDS for word in words for part in word.parts)
    return any(word.kind == (WordKind.NUMBER if name == "number" else WordKind.NAME) for word in words)


_WORD_COLUMNS = (
    "exact", "exact_count", "exact_share", "soft", "soft_max", "cosine", "density", "soft_density", "edges", "all_hits",
    "blamed", "wanted", "recognised", "keys",
)  # fmt: skip


def _content(text: str) -> set[str]:
    return {part_key(part) for part in split_parts(text) if not is_function_part(part)}


def _max_inside(inside: NDArray[np.bool_], values: Floats) -> Floats:
    found: Floats = (inside * values).max(1)
    return found


def _edges(inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return inside.argmax(1), inside.shape[1] - 1 - inside[:, ::-1].argmax(1)


def _source_columns(clause: str, answer: _Answer, inside: Floats) -> dict[str, Floats]:
    """Compute how far a place has the words of the source's sentence that the clause speaks of."""
    keys = _content(clause)
    scores = [len(keys & own) / (3 + len(own)) ** 0.5 for own in answer.source]
    best = max(range(len(scores)), key=scores.__getitem__, default=0)
    zero = np.zeros(len(inside), np.float32)
    if not scores or not scores[best]:
        return {"source_said": zero, "source_share": zero, "source_match": zero}
    own = answer.source[best]
    hits = np.array([bool(own.intersection(word.keys)) for word in answer.words], np.float32)
    count = inside @ hits
    return {
        "source_said": count / max(1.0, float(hits.sum())),
        "source_share": count / np.maximum(1, inside.sum(1)),
        "source_match": np.full(len(inside), scores[best], np.float32),
    }


def _proposal_columns(
    text: str, prompt: str, proposals: Sequence[tuple[str, Proposal]], inside: Floats, size: Floats
) -> dict[str, Floats]:
    """Compute how far each source proposes a place: its confidence times the F1 of the words, and the share inside."""
    columns: dict[str, Floats] = {}
    for source in SOURCES:
        own = [proposal for name, proposal in proposals if name == source]
        fits, covered, agreed = (np.zeros(len(inside), np.float32) for _ in range(3))
        if own:
            proposed = masks(text, prompt, [proposal.places for proposal in own]).astype(np.float32)
            shared = inside @ proposed.T
            f1 = 2 * shared / np.maximum(1, size[:, None] + proposed.sum(1)[None])
            confidence = np.array([proposal.confidence for proposal in own], np.float32)
            fits = (f1 * confidence).max(1)
            agreed = f1.max(1)
            covered = (shared / np.maximum(1, size[:, None])).max(1)
        columns |= {f"{source}_fits": fits, f"{source}_f1": agreed, f"{source}_covers": covered}
        columns[f"{source}_count"] = np.full(len(inside), float(len(own)), np.float32)
    return columns


def _code_columns(clause: str, candidates: Sequence[Candidate]) -> dict[str, Floats]:
    """Compute the kind of the syntax node, and whether the clause speaks of what the node has."""
    kinds = np.full(len(candidates), -1.0, np.float32)
    names = [f"concept_{name}" for name in CONCEPTS]
    agreeing = np.zeros((len(candidates), len(names) + 1), np.float32)
    cues = [bool(CUES[name].search(clause)) for name in CONCEPTS]
    for i, candidate in enumerate(candidates):
        if candidate.node is None:
            continue
        kinds[i] = next((k for k, kind in enumerate(_NODES) if isinstance(candidate.node, kind)), len(_NODES))
        nodes = _nodes_of(candidate)
        agreeing[i, :-1] = [cue and bool(find(nodes)) for cue, (_, find) in zip(cues, CONCEPTS.values(), strict=True)]
        agreeing[i, -1] = agreeing[i, :-1].sum()
    return {"node": kinds, **{name: agreeing[:, k] for k, name in enumerate([*names, "agreeing"])}}


def _nodes_of(candidate: Candidate) -> list[ast.AST]:
    assert candidate.node is not None
    if candidate.level == "statement":
        return list(statement_nodes(candidate.node))
    return list(ast.walk(candidate.node))
