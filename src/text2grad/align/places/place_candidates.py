"""The places of a completion that one clause of a comment may mean: its parts, what other sources propose, all of it.

Prose has its sentences, lines, paragraphs and list items, the pieces of a sentence between marks and conjunctions, names,
numbers and dates, and the words that the clause shares with it. A program has its statements with and without what is
nested in them, their expressions and its comments.
"""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from text2grad.align.answer.document import Document
from text2grad.align.answer.kinds import find_values
from text2grad.align.answer.program import Program, Statement, node_extent
from text2grad.align.answer.proposals import Proposal
from text2grad.schema import Range
from text2grad.text.whitespace import PUNCTUATION, WhitespaceWord, split_words
from text2grad.text.words import consecutive_runs

Level = Literal[
    "whole", "paragraph", "line", "sentence", "piece", "value", "words", "title", "greeting", "sign_off", "block",
    "statement", "expression", "note", "proposed",
]  # fmt: skip

_BREAK = re.compile(
    r"[,:](?!\d)|[;()–—]|\s-\s|\b(?:and|but|or|while|which|who|because|so|for|with|by|from|to|in|on|at|as|after|of|until|than)\b",
    re.I,
)
_STRONG_BREAK = re.compile(r"[,:](?!\d)|[;()–—]|\s-\s|\b(?:and|but|while|which|because)\b", re.IGNORECASE)
_NOTE = re.compile(r"#[^\n]*")
_MAX_JOINED = 3  # neighbouring pieces that are one candidate
_MAX_PIECES = 12  # of one sentence
_EXPRESSIONS = (
    ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript, ast.Constant, ast.ListComp, ast.GeneratorExp,
    ast.DictComp, ast.SetComp, ast.IfExp, ast.Dict, ast.List, ast.Lambda, ast.JoinedStr, ast.Name, ast.Tuple,
)  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """Places that are meant together, what they are, and the syntax node where they are code."""

    level: Level
    places: tuple[Range, ...]
    node: ast.AST | None = None


@lru_cache(maxsize=16)
def answer_words(text: str) -> tuple[WhitespaceWord, ...]:
    """Return the words of a completion."""
    return tuple(split_words(text))


@lru_cache(maxsize=16)
def _own_candidates(text: str, prompt: str) -> tuple[Candidate, ...]:
    """Return the candidates that a completion has, whatever the clause says."""
    document = Document(text, prompt)
    if document.program is not None:
        found = [*_code(document.program), *_around(document, document.program)]
    else:
        found = list(_prose(document))
    return (Candidate("whole", (document.whole,)), *found)


def find_candidates(document: Document, prompt: str, clause: str, proposals: Sequence[Proposal]) -> list[Candidate]:
    """Return the candidates for a clause, each place once: what sources propose, shared words, and all parts."""
    found = [Candidate("proposed", proposal.places) for proposal in proposals]
    found += _shared_words(document.text, clause)
    found += _own_candidates(document.text, prompt)
    unique: dict[tuple[Range, ...], Candidate] = {}
    for candidate in found:
        known = unique.get(candidate.places)
        if known is None or known.level in ("proposed", "words"):
            unique[candidate.places] = candidate
    return list(unique.values())


def _prose(document: Document) -> Iterator[Candidate]:
    for level, places in (
        ("title", [*document.title, *document.subject_lines]),
        ("greeting", document.greeting),
        ("sign_off", [*document.sign_off, *document.signature, *document.postscript]),
        ("sentence", document.sentences),
        ("line", [*document.items, *document.lines]),
        ("paragraph", [*document.paragraphs, *document.lists]),
        ("value", find_values(document)),
    ):
        yield from (Candidate(level, (place,)) for place in dict.fromkeys(places))  # type: ignore[arg-type]
    for start, end in document.sentences:
        for place in _pieces(document.text, start, end):
            yield Candidate("piece", (place,))


def _pieces(text: str, start: int, end: int) -> Iterator[Range]:
    """Yield the pieces of a sentence and runs of neighbouring ones."""
    for pattern in (_BREAK, _STRONG_BREAK):
        cuts = [match.start() for match in pattern.finditer(text, start, end)]
        if len(cuts) <= _MAX_PIECES:
            break
    edges = [start, *(cut for cut in cuts if cut > start), end]
    last = len(edges) - 1
    for i in range(last):
        for j in range(i + 1, min(i + _MAX_JOINED, last) + 1):
            if (i, j) != (0, last) and (place := _strip(text, edges[i], edges[j])):
                yield place
    for i in range(_MAX_JOINED + 1, last):
        if place := _strip(text, edges[i - _MAX_JOINED], end):
            yield place


def _strip(text: str, start: int, end: int) -> Range | None:
    marks = PUNCTUATION + "–—- \t\n"
    piece = text[start:end]
    start, end = start + len(piece) - len(piece.lstrip(marks)), end - (len(piece) - len(piece.rstrip(marks)))
    return (start, end) if start < end else None


def _shared_words(text: str, clause: str) -> Iterator[Candidate]:
    """Yield the runs of words whose content words the clause has too."""
    keys = {key for word in split_words(clause) if word.is_content for key in word.keys}
    words = answer_words(text)
    shared = [i for i, word in enumerate(words) if word.is_content and not keys.isdisjoint(word.keys)]
    joined = {j for i, other in itertools.pairwise(shared) if other - i <= 2 for j in range(i, other + 1)}
    for run in consecutive_runs(sorted({*shared, *joined})):
        if place := _strip(text, words[run.start].start, words[run.stop - 1].end):
            yield Candidate("words", (place,))


def _code(program: Program) -> Iterator[Candidate]:
    for node in program.own_nodes():
        if isinstance(node, ast.stmt):
            own = program.span(*Statement(node).extent())
            whole = program.span(*node_extent(node))
            if own:
                yield Candidate("statement", (own,), node)
            if whole and whole != own:
                yield Candidate("block", (whole,), node)
            if isinstance(node, ast.Return) and node.value and (value := program.span(*node_extent(node.value))):
                yield Candidate("expression", (value,), node.value)
        elif isinstance(node, _EXPRESSIONS) and not isinstance(node, ast.Name):
            if place := program.span(*node_extent(node)):
                yield Candidate("expression", (place,), node)
        elif isinstance(node, ast.arguments):
            own_args = [a for a in [*node.posonlyargs, *node.args, *node.kwonlyargs] if a.arg != "self"]
            if own_args and (place := program.span(own_args[0].lineno, own_args[0].col_offset, *_end(own_args[-1]))):
                yield Candidate("expression", (place,), node)
    for match in _NOTE.finditer(program.code):
        yield Candidate("note", ((program.start + match.start(), program.start + match.end()),))


def _end(node: ast.arg) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _around(document: Document, program: Program) -> Iterator[Candidate]:
    """Yield the lines of a program, and the sentences around it."""
    yield from (Candidate("line", (line,)) for line in document.lines)
    stop = program.start + len(program.code)
    for start, end in document.sentences:
        if end <= program.start or start >= stop:
            yield Candidate("sentence", ((start, end),))
