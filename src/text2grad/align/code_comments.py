"""Spans for a comment on code that names its place: "line 3", "the loop", "the `count` variable", a traceback."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from text2grad.align.code_references import FindReferences, find_identifiers, find_structures
from text2grad.align.program import Program, Statement, extract_program, find_statements, node_extent
from text2grad.align.quotations import find_quotations
from text2grad.align.stance import detect_stances, sentence_around
from text2grad.schema import Label, Range, Span

_FRAME = re.compile(
    r'File "[^"\n]*", line (?P<line>\d{1,7})(?!\d)(?:, in (?P<function>\S+))?(?:\n\s+(?P<text>\S[^\n]*))?'
)
_LINES = re.compile(
    r"\b(?:lines?|ln\.?|L)\s*(?P<first>\d{1,7})(?!\d)(?:\s*(?P<join>-|–|to|through|until|and|,|&)\s*(?P<last>\d{1,7})(?!\d))?",
    re.IGNORECASE,
)
_MAX_OCCURRENCES = 3


class _Match(NamedTuple):
    phrase: Range  # characters of the comment
    place: Range  # characters of the completion
    confidence: float


def align_code_comment(
    comment: str, code: str, *, prompt: str = "", label: Label | None = None, critic: str = ""
) -> list[Span]:
    """Return spans on the parts of `code` that `comment` names; none if it names nothing that the code has.

    code: a completion, its program fenced or not; prompt: the start of the program, if the completion continues it.
    Spans are in characters of `code`, each with the phrase of the comment that it comes from. Tried in this order until
    one finds something: a traceback (its innermost frame), line numbers (counted from the program's first line), quoted
    code, identifiers, and names of structures such as "the loop". `label` overrides the comment's own stance.
    """
    program = extract_program(code, prompt)
    if program is None:
        return []
    by_name, by_kind = (partial(_match_references, find) for find in (find_identifiers, find_structures))
    for search in (_match_traceback, _match_line_numbers, _match_quotations, by_name, by_kind):
        spans = _to_spans(comment, list(search(comment, program)), label, critic)
        if spans:
            return spans
    return []


def _to_spans(comment: str, matches: list[_Match], label: Label | None, critic: str) -> list[Span]:
    phrases = list(dict.fromkeys(match.phrase for match in matches))
    stances = dict(zip(phrases, detect_stances(comment, phrases, occurs=lambda i: True), strict=True))
    spans: dict[Range, Span] = {}
    for phrase, place, confidence in matches:
        stance = label or stances[phrase]
        if stance == "wanted" or place in spans:
            continue
        start, end = sentence_around(comment, phrase, phrases)
        spans[place] = Span(
            start=place[0],
            end=place[1],
            label=stance,
            phrase=phrase,
            reason=comment[start:end].strip(),
            critic=critic,
            match="code",
            confidence=confidence,
        )
    return list(spans.values())


def _match_traceback(comment: str, program: Program) -> Iterator[_Match]:
    """Match the innermost frame whose line number, and source line where it is shown, fit the program."""
    for frame in reversed(list(_FRAME.finditer(comment))):
        line = int(frame["line"]) + program.first_line - 1
        place = program.line_span(line)
        text = program.source.splitlines()[line - 1].strip() if place else ""
        if place and (frame["text"] is None or frame["text"].strip() == text):
            yield _Match(frame.span(), place, 1.0)
            return


def _match_line_numbers(comment: str, program: Program) -> Iterator[_Match]:
    statements = find_statements(program)
    max_line = len(program.source) + 1  # bounds the range of absurd line numbers
    for match in _LINES.finditer(comment):
        first, last = (min(int(number), max_line) for number in (match["first"], match["last"] or match["first"]))
        numbers = [first, last] if match["join"] in ("and", ",", "&") else range(first, last + 1)
        for number in numbers:
            line = number + program.first_line - 1
            place = program.span(*statements[line].extent()) if line in statements else program.line_span(line)
            if place and number >= 1:
                yield _Match(match.span(), place, 1.0)


def _match_quotations(comment: str, program: Program) -> Iterator[_Match]:
    """Match quotations that the code contains verbatim; single identifiers are left to `find_identifiers`."""
    for start, end in find_quotations(comment):
        quote = comment[start:end].strip()
        if quote.isidentifier() or len(quote) < 2:
            continue
        starts = [program.start + match.start() for match in re.finditer(re.escape(quote), program.code)]
        if len(starts) <= _MAX_OCCURRENCES:
            for place in starts:
                yield _Match((start, end), (place, place + len(quote)), 1.0 / len(starts))


def _match_references(find_references: FindReferences, comment: str, program: Program) -> Iterator[_Match]:
    nodes = [node for node in program.own_nodes() if isinstance(node, ast.stmt | ast.expr)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    for phrase, referents, confidence in find_references(comment, nodes):
        for node in referents:
            place = program.span(*(Statement(node).extent() if isinstance(node, ast.stmt) else node_extent(node)))
            if place is not None:
                yield _Match(phrase, place, confidence)
