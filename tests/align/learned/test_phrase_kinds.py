"""Which kind of phrase a run of words is."""

from __future__ import annotations

import pytest

from text2grad.align.learned.phrase_kinds import phrase_kinds
from text2grad.text.whitespace import split_words

WORDS = split_words("A 46-year-old man met Anna Berg in Leeds last week, after 3-1 wins in May.")
RUNS = [(first, last) for first in range(len(WORDS)) for last in range(first + 1, len(WORDS) + 1)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("46-year-old", "age"),
        ("in Leeds last week,", "time"),
        ("May.", "time"),
        ("3-1 wins", "score"),
        ("Anna Berg", "names"),
        ("in Leeds", "in Name"),
    ],
)
def test_kinds(text: str, kind: str) -> None:
    kinds = zip(RUNS, phrase_kinds(WORDS, RUNS), strict=True)
    assert kind in {" ".join(word.text for word in WORDS[a:b]): own for (a, b), own in kinds}[text]


def test_runs_are_described_by_themselves() -> None:
    assert phrase_kinds(WORDS, RUNS) == [phrase_kinds(WORDS, [run])[0] for run in RUNS]
