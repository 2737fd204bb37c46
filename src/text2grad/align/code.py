"""A comment on code to the code that it means: "line 3", "the loop", "the `count` variable", a traceback."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from text2grad.align.comments import quoted
from text2grad.align.program import Answer, extract, tree
from text2grad.align.referents import Referent, identifiers, structural
from text2grad.align.stance import sentence_around, stances
from text2grad.align.statements import Statement, statements
from text2grad.schema import Label, Range, Span

_FRAME = re.compile(
    r'File "[^"\n]*", line (?P<line>\d{1,7})(?!\d)(?:, in (?P<function>\S+))?(?:\n\s+(?P<text>\S[^\n]*))?'
)
_LINES = re.compile(
    r"\b(?:lines?|ln\.?|L)\s*(?P<first>\d{1,7})(?!\d)(?:\s*(?P<join>-|–|to|through|until|and|,|&)\s*(?P<last>\d{1,7})(?!\d))?",
    re.IGNORECASE,
)
_MOST_OCCURRENCES = 3


_Search = Callable[[str, list[ast.AST]], Iterator[Referent]]


class _Found(NamedTuple):
    phrase: Range
    place: Range
    confidence: float


def locate(comment: str, code: str, *, prompt: str = "", label: Label | None = None, critic: str = "") -> list[Span]:
    """The parts of `code` that `comment` is about; none if it names nothing that the code has.

    code: a completion, its program fenced or not; prompt: where the program begins, if the completion continues it.
    Spans are in characters of `code`, each with the phrase of the comment that led there. In this order, each only if
    the ones before found nothing: a traceback (its innermost frame), line numbers (as the program's reader counts
    them), quoted code, names, and what the parts of a program are called. `label` overrides the comment's own stance.
    """
    answer = extract(code, prompt)
    if answer is None:
        return []
    for search in (_traceback, _numbered, _quoted, _named, _structural):
        found = _labelled(comment, list(search(comment, answer)), label, critic)
        if found:
            return found
    return []


def _labelled(comment: str, found: list[_Found], label: Label | None, critic: str) -> list[Span]:
    phrases = list(dict.fromkeys(item.phrase for item in found))
    views = dict(zip(phrases, stances(comment, phrases, occurs=lambda i: True), strict=True))
    spans: dict[Range, Span] = {}
    for phrase, place, confidence in found:
        view = label or views[phrase]
        if view == "wanted" or place in spans:
            continue
        start, end = sentence_around(comment, phrase, phrases)
        spans[place] = Span(
            start=place[0],
            end=place[1],
            label=view,
            phrase=phrase,
            reason=comment[start:end].strip(),
            critic=critic,
            match="code",
            confidence=confidence,
        )
    return list(spans.values())


def _traceback(comment: str, answer: Answer) -> Iterator[_Found]:
    """The innermost frame whose line, and text where the traceback shows it, is the answer's."""
    for match in reversed(list(_FRAME.finditer(comment))):
        line = int(match["line"]) + answer.first_line - 1
        shown = answer.line_span(line)
        text = answer.source.splitlines()[line - 1].strip() if shown else ""
        if shown and (match["text"] is None or match["text"].strip() == text):
            yield _Found(match.span(), shown, 1.0)
            return


def _numbered(comment: str, answer: Answer) -> Iterator[_Found]:
    own = statements(answer)
    most = len(answer.source) + 1  # there are no more lines than that
    for match in _LINES.finditer(comment):
        first, last = (min(int(number), most) for number in (match["first"], match["last"] or match["first"]))
        numbers = [first, last] if match["join"] in ("and", ",", "&") else range(first, last + 1)
        for number in numbers:
            line = number + answer.first_line - 1
            place = _statement_span(answer, own[line]) if line in own else answer.line_span(line)
            if place and number >= 1:
                yield _Found(match.span(), place, 1.0)


def _quoted(comment: str, answer: Answer) -> Iterator[_Found]:
    """Quotations that the code has word for word, names alone left aside: for those, what they name is found."""
    for start, end in quoted(comment):
        quote = comment[start:end].strip()
        if quote.isidentifier() or len(quote) < 2:
            continue
        places = [match.start() for match in re.finditer(re.escape(quote), answer.code)]
        if len(places) <= _MOST_OCCURRENCES:
            for place in places:
                bounds = (answer.start + place, answer.start + place + len(quote))
                yield _Found((start, end), bounds, 1.0 / len(places))


def _named(comment: str, answer: Answer) -> Iterator[_Found]:
    yield from _referents(comment, answer, identifiers)


def _structural(comment: str, answer: Answer) -> Iterator[_Found]:
    yield from _referents(comment, answer, structural)


def _referents(comment: str, answer: Answer, find: _Search) -> Iterator[_Found]:
    for referent in find(comment, _nodes(answer)):
        for node in referent.nodes:
            place = _node_span(answer, node)
            if place is not None:
                yield _Found((referent.start, referent.end), place, referent.confidence)


def _nodes(answer: Answer) -> list[ast.AST]:
    """The nodes that the answer itself wrote, in the order of its text."""
    module = tree(answer.source)
    found = [node for node in (ast.walk(module) if module else []) if getattr(node, "lineno", 0) >= answer.first_line]
    return sorted(found, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))


def _node_span(answer: Answer, node: ast.AST) -> Range | None:
    if isinstance(node, ast.stmt):
        return _statement_span(answer, Statement(node, 0))
    if isinstance(node, ast.expr | ast.arg):
        return answer.span(node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
    return None


def _statement_span(answer: Answer, statement: Statement) -> Range | None:
    return answer.span(*statement.place())
