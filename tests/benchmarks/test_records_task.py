"""Records to paragraphs: the critic blames nothing in the paragraphs that the starting model learns from but faults."""

import pytest
import records_task
from records_task import VOCABULARY, RecordCritic, find_faults, find_values, kind_of, make_examples, slots_right, tell

from text2grad.schema import Example, Omission, Span


def told(record: dict[str, str], completion: str) -> Example:
    return Example(id="1", prompt="Tell.", completion=completion, meta={"record": record})


@pytest.mark.parametrize("field", VOCABULARY)
def test_every_value_in_its_sentence_is_told(field: str) -> None:
    for value in VOCABULARY[field]:
        example = told({field: value}, tell({field: value}))
        assert find_faults(example) == []
        assert slots_right(example) == 1


def test_a_right_paragraph_has_the_best_score() -> None:
    examples = [
        example.model_copy(update={"completion": tell(example.meta["record"])}) for example in make_examples(20, 16, 3)
    ]
    assert [feedback.score for feedback in RecordCritic().critique(examples)] == [1.0] * 20


def test_faults_are_named_with_their_corrections() -> None:
    record = {"Town": "Ghent", "Day": "Monday"}
    wrong, missing = find_faults(told(record, "It takes place in Lund."))
    assert isinstance(wrong, Span)
    assert isinstance(missing, Omission)
    assert (wrong.start, wrong.end, wrong.replacement, kind_of(wrong)) == (18, 22, "Ghent", "wrong value")
    assert missing.insertion == " It is held on a Monday."


def test_missing_sentences_are_inserted_where_they_belong() -> None:
    record = {"Name": "the Salt Fair", "Town": "Ghent", "Venue": "the old mill", "Day": "Monday"}
    for completion in (
        "It is held on a Monday.",
        "It takes place in Ghent.",
        "This is the Salt Fair",
        "",
        tell(record),
    ):
        corrected, shift = completion, 0
        for fault in find_faults(told(record, completion)):
            assert isinstance(fault, Omission)
            assert fault.insert_at is not None
            assert fault.insertion is not None
            place = fault.insert_at + shift
            corrected = corrected[:place] + fault.insertion + corrected[place:]
            shift += len(fault.insertion)
        assert slots_right(told(record, corrected)) == 1
        if completion.endswith("."):
            assert corrected == tell(record)


def test_a_listed_field_is_blamed_with_its_label() -> None:
    (fault,) = find_faults(told({"Rule": "no dogs"}, "Rule: no dogs"))
    assert isinstance(fault, Span)
    assert (fault.start, fault.end, kind_of(fault)) == (0, 13, "listed")
    assert slots_right(told({"Rule": "no dogs"}, "Rule: no dogs")) == 0


def test_the_starting_model_learns_habits_that_are_no_noise() -> None:
    field = next(iter(records_task.HABITS))
    values = VOCABULARY[field]
    said: list[tuple[str, str]] = [
        (example.meta["record"][field], item.value)
        for example in records_task.faulty_paragraphs(300, 16, 5)
        for item in find_values(example.completion)
        if item.field == field
    ]
    habit = sum(values.index(b) == (values.index(a) + 1) % len(values) for a, b in said) / len(said)
    assert habit == pytest.approx(records_task.HABIT_SHARE, abs=0.1)
