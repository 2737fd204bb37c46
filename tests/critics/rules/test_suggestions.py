"""The source's own number or name in the place of an unsupported one, where it has exactly one of the kind."""

from __future__ import annotations

import pytest

from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.critics.rules.source import Source
from text2grad.critics.rules.suggestions import suggest
from text2grad.schema import Example
from text2grad.text.words import parse_text

SOURCE = (
    "On Monday President Inês Falcato opened the bridge in Porto. It cost £12m, 38% more than planned, and 250 people "
    "came. The work had begun in 2014. Rui Costa, a 31-year-old mason, was the first to cross it."
)


@pytest.mark.parametrize(
    ("text", "wrong", "expected"),
    [
        ("The bridge cost £15m.", "£15m", "£12m"),
        ("It cost 40% more.", "40%", "38%"),
        ("Then 300 people came.", "300", "250"),
        ("The work began in 2011.", "2011", "2014"),
        ("It opened on Friday.", "Friday", "Monday"),
        ("A 35-year-old mason crossed it.", "35", "31"),
        ("President Anna Falcato opened it.", "Anna", "Inês"),
        ("It was opened by President Soares.", "Soares", "Inês Falcato"),
        ("Then 300 dogs came.", "300", None),  # the source counts no dogs
        ("It stands in Lisbon.", "Lisbon", None),  # which name of the source?
        ("It cost £12m, not £15m.", "£15m", None),  # the text has the candidate already
        ("The bridge cost £12m.", "£12m", None),  # nothing is wrong
    ],
)
def test_one_candidate_of_the_kind(text: str, wrong: str, expected: str | None) -> None:
    parsed, start = parse_text(text), text.index(wrong)
    words = [i for i, word in enumerate(parsed.words) if start <= word.start < start + len(wrong)]
    found = suggest(parsed, range(words[0], words[-1] + 1), Source(parse_text(SOURCE)))
    assert found == expected


def test_two_candidates_are_none() -> None:
    source = Source(parse_text("It opened in 2014 and closed in 2016."))
    text = parse_text("It opened in 2011.")
    assert suggest(text, range(3, 4), source) is None


def test_the_other_words_of_a_run_stay() -> None:
    text = parse_text("Then 300 people came.")
    assert suggest(text, range(3), Source(parse_text(SOURCE))) == "Then 250 people"


def test_the_critic_gives_the_replacement() -> None:
    answer = "President Anna Falcato opened the bridge in Porto, which cost £15m."
    example = Example(id="1", prompt="Summarise.", completion=answer, meta={"document": SOURCE})
    (feedback,) = GroundingCritic().critique([example])
    found = {answer[span.start : span.end]: span.replacement for span in feedback.spans if span.replacement is not None}
    assert found == {"Anna": "Inês", "£15m": "£12m"}
