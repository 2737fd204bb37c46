"""Corrections as replacements of spans and insertions of omissions."""

from __future__ import annotations

import pytest

from text2grad.align.corrections.corrected_spans import add_corrections
from text2grad.align.corrections.corrections import find_corrections
from text2grad.align.reading import read_comment
from text2grad.schema import Example, Feedback, Omission, Span

ANSWER = "We meet on Friday at noon in the red barn."
FRIDAY = (11, 17)


def add(comment: str, spans: list[Span], omissions: list[Omission] | None = None) -> tuple[list[Span], list[Omission]]:
    found = add_corrections(spans, omissions or [], find_corrections(comment, ANSWER), comment, critic="human")
    feedback = Feedback(critique=comment, spans=found[0], omissions=found[1], critic="human")
    Example(id="1", prompt="When?", completion=ANSWER, feedback=feedback)  # checks all ranges
    return found


def test_blame_gets_its_replacement_and_keeps_the_rest() -> None:
    comment = "It was Monday, not Friday."
    blame = Span(start=11, end=17, label="poor", severity=0.5, phrase=(19, 25), reason="why", critic="c")
    ([span], _) = add(comment, [blame])
    assert (span.start, span.end, span.replacement) == (*FRIDAY, "Monday")
    assert (span.severity, span.phrase, span.reason, span.critic) == (0.5, (19, 25), "why", "c")


def test_wide_blame_is_narrowed_to_what_is_replaced() -> None:
    ([span], _) = add("It was Monday, not Friday.", [Span(start=0, end=len(ANSWER), label="poor")])
    assert (span.start, span.end) == FRIDAY


def test_what_another_sentence_names_stays_blamed_around_a_correction() -> None:
    comment = "It was Monday, not Friday. The meeting is no news."
    named = Span(start=3, end=25, label="poor", phrase=(31, 38), match="exact")
    before, correction, after = add(comment, [named])[0]
    assert [(span.start, span.end) for span in (before, correction, after)] == [(3, 11), FRIDAY, (17, 25)]
    assert (before.replacement, correction.replacement, after.replacement) == (None, "Monday", None)
    (narrowed,) = add(comment, [named.model_copy(update={"match": "part"})])[0]
    assert (narrowed.start, narrowed.end) == FRIDAY, "a sentence is wrong where the comment corrects it"


def test_without_blame_a_correction_blames_by_itself() -> None:
    comment = "Fine. It was Monday, not Friday."
    ([span], _) = add(comment, [])
    assert (span.label, span.critic, span.replacement) == ("poor", "human", "Monday")
    assert span.reason == "It was Monday, not Friday."


def test_other_spans_stay_and_praise_of_the_replaced_words_goes() -> None:
    red = Span(start=33, end=36, label="good")
    praise = Span(start=8, end=17, label="good")
    spans, _ = add("It was Monday, not Friday.", [praise, red])
    assert [(span.label, span.replacement) for span in spans] == [("poor", "Monday"), ("good", None)]


def test_what_is_inserted_is_an_omission_with_its_place() -> None:
    comment = 'Add "big" before "red".'
    spans, (omission,) = add(
        comment,
        [],
        [
            Omission(text="big", phrase=(5, 8)),
        ],
    )
    assert spans == []
    assert omission.insert_at is not None
    assert omission.insertion is not None
    made = ANSWER[: omission.insert_at] + omission.insertion + ANSWER[omission.insert_at :]
    assert made == "We meet on Friday at noon in the big red barn."


def test_a_removal_has_an_empty_replacement() -> None:
    ([span], _) = add('Remove "red".', [])
    assert ANSWER[span.start : span.end].strip() == "red"
    assert span.replacement == ""


def test_of_a_comment_that_says_more_the_rest_of_the_blame_stays() -> None:
    blame = Span(start=8, end=25, label="poor", match="freeform")
    comment = "It was Monday, not Friday."
    spans, _ = add_corrections([blame], [], find_corrections(comment, ANSWER), comment, keep_rest=True)
    assert [ANSWER[span.start : span.end] for span in spans] == ["on ", "Friday", " at noon"]
    assert [span.replacement for span in spans] == [None, "Monday", None]


@pytest.mark.parametrize(
    "comment", ['Add "about" before "40 dollars".', 'Insert "full" after "The".', 'Put "only" before "40".']
)
def test_where_something_is_inserted_nothing_is_blamed(comment: str) -> None:
    answer = "The tour starts at 10. It costs 40 dollars. Bring a coat."
    reading = read_comment(comment, answer)
    assert reading.spans == []
    assert [omission.insert_at is not None for omission in reading.omissions] == [True]


def test_what_another_sentence_blames_beside_an_insertion_stays_blamed() -> None:
    answer = "The tour starts at 10. It costs 40 dollars. Bring a coat."
    reading = read_comment('"40 dollars" is wrong. Add "usually" before "starts".', answer)
    assert [(answer[span.start : span.end], span.label) for span in reading.spans] == [("40 dollars", "poor")]
