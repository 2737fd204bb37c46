"""Corrections by trial: a change of one token with which a program passes all of its tests.

Tried are comparisons, whole numbers and truth values on the lines that failing tests ran. A change is a correction only
if none on another line makes the tests pass too: they do not tell which of several programs is meant.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Collection, Iterator
from itertools import accumulate
from typing import NamedTuple

from text2grad.align.answer.program import Program
from text2grad.schema import Feedback, Range, Span

_COMPARISONS = {
    "<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",),
}  # fmt: skip
_TRUTH = {"True": "False", "False": "True"}
_CONFIDENCE = 0.9  # tests are not the whole specification


class Mutant(NamedTuple):
    """A program with one token changed: its source, the token's place in the completion, and what it becomes."""

    source: str
    place: Range
    replacement: str
    line: int


def list_mutants(program: Program, lines: Collection[int]) -> Iterator[Mutant]:
    """Yield the programs with one other token on these lines of the source, in the order of `lines`."""
    source, own = program.source, len(program.prefix)
    starts = [0, *accumulate(len(line) for line in io.StringIO(source, newline=""))]
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source, newline="").readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for line in lines:
        for token in tokens:
            start = starts[token.start[0] - 1] + token.start[1]
            if token.start[0] != line or start < own:
                continue
            for replacement in _alternatives(token):
                changed = source[:start] + replacement + source[start + len(token.string) :]
                place = start - own + program.start
                yield Mutant(changed, (place, place + len(token.string)), replacement, line)


def _alternatives(token: tokenize.TokenInfo) -> list[str]:
    if token.type == tokenize.OP:
        return list(_COMPARISONS.get(token.string, ()))
    if token.type == tokenize.NUMBER and token.string.isdecimal():
        value = int(token.string)
        return [str(value + 1), *([str(value - 1)] if value else [])]
    return [_TRUTH[token.string]] if token.type == tokenize.NAME and token.string in _TRUTH else []


def add_correction(feedback: Feedback, mutant: Mutant, program: Program) -> Feedback:
    """Return the feedback with the token as the blamed part, and with what it should be.

    The blame of the severest span around the token, or else of the severest one, goes to the token.
    """
    start, end = mutant.place
    old = program.code[start - program.start : end - program.start]
    sentence = f"With `{mutant.replacement}` for `{old}` in line {program.line_number(mutant.line)}, all tests pass."
    critique = f"{feedback.critique} {sentence}".strip()
    phrase = (len(critique) - len(sentence), len(critique))
    blamed = [span for span in feedback.spans if span.label == "poor"]
    around = [span for span in blamed if span.start <= start and end <= span.end] or blamed
    heaviest = max(around, key=lambda span: span.severity, default=None)
    correction = Span(
        start=start,
        end=end,
        label="poor",
        severity=heaviest.severity if heaviest else 1.0,
        phrase=phrase,
        reason=sentence,
        critic=feedback.critic,
        match="code",
        confidence=_CONFIDENCE,
        replacement=mutant.replacement,
    )
    spans = [*(span for span in feedback.spans if span is not heaviest), correction]
    return feedback.model_copy(update={"critique": critique, "spans": spans})
