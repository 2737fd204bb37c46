from __future__ import annotations

import pytest

from text2grad.align.answer.document import Document
from text2grad.align.clauses.clauses import Clause
from text2grad.align.clauses.whole import is_general, read_marks, speaks_of_whole


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("Great answer!", True),
        ("Too long.", True),
        ("Polite and to the point.", True),
        ("Off topic.", True),
        ("Great pool.", False),
        ("The council is wrong.", False),
        ("It never apologises.", False),
    ],
)
def test_whether_the_whole_answer_is_meant(comment: str, expected: bool) -> None:
    clause = Clause(0, len(comment), "poor", 0.9, None)
    assert speaks_of_whole(comment, clause, Document("The council closed the pool.")) is expected


def test_a_clause_that_names_a_variable_is_about_it() -> None:
    comment = "right is wrong"
    document = Document("left, right = 0, 1\nprint(left, right)\n")
    assert not speaks_of_whole(comment, Clause(0, len(comment), "poor", 0.9, None), document)


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("👍", "good"), ("👍🏽!", "good"), (" ✔️ ✅", "good"), ("+1", "good"), ("LGTM.", "good"),
        ("👎👎", "poor"), ("❌", "poor"), ("-1", "poor"),
        ("👍👎", None), ("👍 but slow", None), ("", None), ("!", None), ("\ufe0f", None), ("+10", None),
    ],
)  # fmt: skip
def test_verdicts_without_words(comment: str, expected: str | None) -> None:
    assert read_marks(comment) == expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("Sloppy.", True),
        ("Dull from start to finish.", True),
        ("A bit less gloomy, please.", True),
        ("More cake, please.", False),  # the answer has it
        ("Monday.", False),
        ("Sloppy?", False),
    ],
)
def test_what_fits_no_part_may_be_about_all(comment: str, expected: bool) -> None:
    assert is_general(comment, Document("We meet on Friday. Bring a cake.")) is expected
