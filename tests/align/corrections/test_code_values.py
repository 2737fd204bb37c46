"""Code that a clause gives in the place of a program's."""

from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.corrections.code_values import find_code_value
from text2grad.align.reading import read_comment

RANGE = """def mean_of_range(values, first):
    low, high = 1, len(values)
    total = 0
    while first <= high:
        total += values[first]
        first = first + 2
    share = total / len(values) - 1
    return str(share)
"""
SCORES = """def best(scores):
    top = -1
    for name, points in scores.items():
        if points > top:
            top = points
    return sorted(top)
"""
RECURSIVE = """def best(scores):
    if not scores:
        return 0
    return max(scores[0], best(scores))
"""


def found(comment: str, answer: str) -> tuple[str, str] | None:
    program = Document(answer).program
    assert program is not None
    value = find_code_value(comment, (0, len(comment)), program)
    return (answer[slice(*value.place)], comment[slice(*value.phrase)]) if value else None


@pytest.mark.parametrize(
    ("comment", "answer", "expected"),
    [
        ("high should be len(values) - 1", RANGE, ("len(values)", "len(values) - 1")),
        ("`low` must be `0`.", RANGE, ("1", "0")),
        ("low has to start at 0, otherwise one is lost.", RANGE, ("1", "0")),
        ("Please set low to 0.", RANGE, ("1", "0")),
        ("Start low at 0 and all is well", RANGE, ("1", "0")),
        ("<= should be <", RANGE, ("<=", "<")),
        ("I think first <= high should be first < high", RANGE, ("first <= high", "first < high")),
        ("first + 2 must be first + 1.", RANGE, ("first + 2", "first + 1")),
        ("share = total / len(values)", RANGE, ("total / len(values) - 1", "total / len(values)")),
        ("return share instead of str(share)", RANGE, ("str(share)", "share")),
        ("It should return round(share, 2).", RANGE, ("str(share)", "round(share, 2)")),
        ("str(share) should be share.", RANGE, ("str(share)", "share")),
        ("top should start at float('-inf').", SCORES, ("-1", "float('-inf')")),
        ("top = None would be safer", SCORES, ("-1", "None")),
        ("Return top, not sorted(top).", SCORES, ("sorted(top)", "top")),
        ("best(scores) should be best(scores[1:])", RECURSIVE, ("best(scores)", "best(scores[1:])")),
        ("return 0 should be return 1", RECURSIVE, ("return 0", "return 1")),
    ],
)
def test_code_is_replaced_by_code(comment: str, answer: str, expected: tuple[str, str]) -> None:
    assert found(comment, answer) == expected


@pytest.mark.parametrize(
    ("comment", "answer"),
    [
        ("high should be smaller", RANGE),
        ("high should be a list", RANGE),
        ("low should be 1", RANGE),  # it is
        ("Should high be len(values) - 1?", RANGE),  # asks
        ("Maybe high should be len(values) - 1", RANGE),
        ("high should be len - 1", RANGE),  # no such number
        ("high should be size - 1", RANGE),  # no such variable
        ("high should be len(values) - 1 when it is empty", RANGE),  # a case of its own
        ("total should be sum(values)", RANGE),  # the loop would have to go too
        ("top = 5 crashes.", SCORES),  # a case
        ("It fails for top = 5.", SCORES),
        ("Should return None.", SCORES),  # in which case?
        ("top should be points", SCORES),  # another name
    ],
)
def test_what_is_not_certain_replaces_nothing(comment: str, answer: str) -> None:
    assert found(comment, answer) is None


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("Right idea, but high should be len(values) - 1.", ("len(values)", "len(values) - 1")),
        ("values[first] should be values[first - 1]", ("values[first]", "values[first - 1]")),
        ("return share rather than str(share)", ("str(share)", "share")),
    ],
)
def test_the_code_alone_is_corrected(comment: str, expected: tuple[str, str]) -> None:
    reading = read_comment(comment, RANGE)
    assert [(RANGE[s.start : s.end], s.replacement) for s in reading.spans if s.label == "poor"] == [expected]


def test_a_correction_in_words_does_not_break_a_program() -> None:
    reading = read_comment("Use total( instead of sorted(top.", SCORES)
    assert not any(span.replacement for span in reading.spans)
