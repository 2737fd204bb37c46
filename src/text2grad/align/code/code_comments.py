"""The places in a program that a comment names: "line 3", "the loop", "the `count` variable", a traceback."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from text2grad.align.answer.program import Extent, Program, Statement, find_statements, node_extent
from text2grad.align.answer.proposals import Proposal
from text2grad.align.code.code_references import FindReferences, find_identifiers, find_structures
from text2grad.align.quotes.quotations import find_quotations
from text2grad.schema import Range

_FRAME = re.compile(
    r'File "[^"\n]*", line (?P<line>\d{1,7})(?!\d)(?:, in (?P<function>\S+))?(?:\n\s+(?P<text>\S[^\n]*))?'
)
_LINES = re.compile(
    r"\b(?:lines?|ln\.?|L)\s*(?P<first>\d{1,7})(?!\d)(?:\s*(?P<join>-|–|to|through|until|and|,|&)\s*(?P<last>\d{1,7})(?!\d))?",
    re.IGNORECASE,
)
_MAX_OCCURRENCES = 3


def find_code_places(comment: str, clause: Range, program: Program) -> list[Proposal]:
    """Return the parts of a program that comment[start:end] names; none if it names nothing that the code has.

    Places are in characters of the completion. Tried in this order until one finds something: a traceback (its
    innermost frame), line numbers (counted from the program's first line), quoted code, structures such as "the loop",
    and identifiers.
    """
    by_name, by_kind = (partial(_match_references, find) for find in (find_identifiers, find_structures))
    for search in (_match_traceback, _match_line_numbers, _match_quotations, by_kind, by_name):
        found = [match for match in search(comment, program) if clause[0] <= match.phrase[0] < clause[1]]
        if found:
            return found
    return []


def _proposal(phrase: Range, place: Range, confidence: float) -> Proposal:
    return Proposal("structure", phrase, (place,), confidence)


def _match_traceback(comment: str, program: Program) -> Iterator[Proposal]:
    """Match the innermost frame whose line number, and source line where it is shown, fit the program."""
    for frame in reversed(list(_FRAME.finditer(comment))):
        line = int(frame["line"]) + program.first_line - 1
        place = program.line_span(line)
        text = program.source.splitlines()[line - 1].strip() if place else ""
        if place and (frame["text"] is None or frame["text"].strip() == text):
            yield _proposal(frame.span(), place, 1.0)
            return


def _match_line_numbers(comment: str, program: Program) -> Iterator[Proposal]:
    statements = find_statements(program)
    max_line = len(program.source) + 1  # bounds the range of absurd line numbers
    for match in _LINES.finditer(comment):
        first, last = (min(int(number), max_line) for number in (match["first"], match["last"] or match["first"]))
        numbers = [first, last] if match["join"] in ("and", ",", "&") else range(first, last + 1)
        for number in numbers:
            line = number + program.first_line - 1
            place = program.span(*statements[line].extent()) if line in statements else program.line_span(line)
            if place and number >= 1:
                yield _proposal(match.span(), place, 1.0)


def _match_quotations(comment: str, program: Program) -> Iterator[Proposal]:
    """Match quotations that the code contains verbatim; single identifiers are left to `find_identifiers`."""
    for start, end in find_quotations(comment):
        quote = comment[start:end].strip()
        if quote.isidentifier() or len(quote) < 2:
            continue
        starts = [program.start + match.start() for match in re.finditer(re.escape(quote), program.code)]
        if len(starts) <= _MAX_OCCURRENCES:
            for place in starts:
                yield _proposal((start, end), (place, place + len(quote)), 1.0 / len(starts))


def _match_references(find_references: FindReferences, comment: str, program: Program) -> Iterator[Proposal]:
    nodes = [node for node in program.own_nodes() if isinstance(node, ast.stmt | ast.expr)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    for phrase, referents, confidence in find_references(comment, nodes):
        for node in referents:
            place = program.span(*_extent(node))
            if place is not None:
                yield _proposal(phrase, place, confidence)


def _extent(node: ast.stmt | ast.expr) -> Extent:
    """Return the extent of what a comment means by a node: a definition is its header, a loop or branch all of it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return Statement(node).extent()
    return node_extent(node)
