"""Corrections that comments ask for, in the ways in which people write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from text2grad.align.corrections.corrections import find_corrections

MEETING = "We meet on Friday at noon in the red barn."
REPORT = "The film won three prizes in Cannes. It was shot by Anna Keller in 2016, near Lake Como."


def corrected(comment: str, completion: str, prompt: str | None = None) -> str:
    """The completion with all corrections made; as it is if there are none."""
    for correction in reversed(find_corrections(comment, completion, prompt)):
        completion = correction.apply(completion)
    return completion


@pytest.mark.parametrize(
    "comment",
    [
        "The meeting was on Monday, not Friday.",
        "It's Monday, not Friday",
        "It is Monday and not Friday.",
        "Not Friday but Monday.",
        "It was not Friday, but Monday.",
        '"Friday" should be "Monday".',
        "Friday should be Monday.",
        "'Friday' should have been 'Monday'",
        "“Friday” must be “Monday”!",
        'The word "Friday" should read "Monday".',
        "Friday should be Monday because the notice says so.",
        "The day should be Monday.",
        "it should be Monday",
        "It was Monday rather than Friday.",
        "It says Friday instead of Monday.",
        "Write Monday instead of Friday.",
        "Use Monday in place of Friday.",
        "Instead of Friday, it should say Monday.",
        'Instead of "Friday", write "Monday".',
        "Replace Friday with Monday.",
        "Please replace 'Friday' by 'Monday'.",
        "Change Friday to Monday.",
        "change the word `Friday` to `Monday`",
        "Modify the information about the day from Friday to Monday in the summary.",
        "Replace the information about Friday with the information about Monday.",
        "Substitute Monday for Friday.",
        "Swap Friday for Monday",
        "Correct Friday to Monday please",
        '"Friday" -> "Monday"',
        "Friday → Monday",
        "Friday => Monday",
        "The time is fine. The day is wrong: it was Monday, not Friday.",
    ],
)
def test_one_word_for_another(comment: str) -> None:
    assert corrected(comment, MEETING) == "We meet on Monday at noon in the red barn."


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("It won four prizes, not three.", REPORT.replace("three", "four")),
        ("2017, not 2016", REPORT.replace("2016", "2017")),
        ("The year should be 2017.", REPORT.replace("2016", "2017")),
        ("It was near Lake Garda, not Lake Como.", REPORT.replace("Como", "Garda")),
        ("It was shot by Eva Braun-Keller, not Anna Keller.", REPORT.replace("Anna Keller", "Eva Braun-Keller")),
        ("Replace in Cannes with at Venice.", REPORT.replace("in Cannes", "at Venice")),
        ("Change Cannes to in Venice.", REPORT.replace("Cannes", "Venice")),  # "in" is not written twice
        ("Replace three prizes with an award.", REPORT.replace("three prizes", "an award")),
        ("Replace the film with a play.", REPORT.replace("The film", "A play")),  # the sentence keeps its capital
        ("Replace 2016 with May 2017.", REPORT.replace("2016", "May 2017")),
        ('The name is spelled "Kellar".', REPORT.replace("Keller", "Kellar")),
        ("Her name is spelt Ana Keller.", REPORT.replace("Anna", "Ana")),
        ('Add "Golden" before "prizes"?', REPORT.replace("prizes", "Golden prizes")),
        ('missing: "first" after "The"', REPORT.replace("The film", "The first film")),
        ('"two" is missing before "prizes"', REPORT.replace("prizes", "two prizes")),
        ("Add in spring after 2016.", REPORT.replace("2016", "2016 in spring")),
        (
            'Change Cannes to Venice and replace "three" with "two".',
            REPORT.replace("Cannes", "Venice").replace("three", "two"),
        ),
    ],
)
def test_the_new_words_fit_their_place(comment: str, expected: str) -> None:
    assert corrected(comment, REPORT) == expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ('Remove "red".', "We meet on Friday at noon in the barn."),
        ('Delete "at noon" please.', "We meet on Friday in the red barn."),
        ('"in the red barn" should be left out.', "We meet on Friday at noon."),
        ('"red" should be deleted because nobody said so.', "We meet on Friday at noon in the barn."),
        ("'at noon' should go", "We meet on Friday in the red barn."),
        ('Take out "on Friday".', "We meet at noon in the red barn."),
        ('Get rid of the word "red".', "We meet on Friday at noon in the barn."),
        ("remove at noon", "We meet on Friday in the red barn."),
        ('"red" is not mentioned in the source.', "We meet on Friday at noon in the barn."),
        ("The word 'red' was never mentioned", "We meet on Friday at noon in the barn."),
    ],
)
def test_what_should_go_goes_with_its_space(comment: str, expected: str) -> None:
    assert corrected(comment, MEETING) == expected


def test_a_description_of_what_should_go_is_understood() -> None:
    article = (
        "Mr Keller, who has run the museum since it moved to the harbour, said that a record number of people had come "
        "to see the ship. The museum expects even more of them in the summer, when the second hall opens and guided "
        "tours start on every day of the week. Tickets will cost the same as before, a spokeswoman added on the phone."
    )
    answer = "Museum director Thomas Keller said that a record number of people had come to see the ship."
    expected = "Museum director Keller said that a record number of people had come to see the ship."
    assert corrected("Remove the information about Keller's first name from the summary.", answer, article) == expected
    assert corrected("Remove Thomas from the summary.", answer, article) == expected


@pytest.mark.parametrize(
    ("comment", "completion"),
    [
        ('Remove "Shropshire".', "The town will host the Games in Shropshire."),
        ('Delete "the".', "We saw the dog."),
        ('Remove "dog".', "The dog barked."),
        ('Remove "met".', "They have met her."),
        ('Remove "saw and".', "We saw and heard them."),
    ],
)
def test_nothing_goes_without_which_the_sentence_does_not_read(comment: str, completion: str) -> None:
    for correction in find_corrections(comment, completion):
        assert completion[correction.start : correction.end].strip() not in (
            "Shropshire",
            "the",
            "dog",
            "met",
            "saw and",
        )


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "Good answer.",
        "Nice, not bad at all.",
        "This is wrong.",
        "Friday is wrong.",
        "The day is not right.",
        "It should be clearer.",
        "It should be more precise, not less.",
        "Not only is this wrong, but it is rude.",
        "It should not be so long.",
        "It should mention the place.",
        "Add the information about the price to the summary.",
        "Rewrite the summary by using info from the source.",
        "Replace the information about the day with the information about the actual day.",
        "Replace Friday with the right day.",
        "Change Friday to what the article says.",
        "Modify the information about the day in the summary.",
        "Do not change Friday to Monday.",
        "Don't remove the red barn.",
        "I would change nothing.",
        "Replace Tuesday with Monday.",  # the answer has no Tuesday
        "Remove Tuesday.",
        "It says Monday instead of Tuesday.",
        "We meet on Friday, not at noon.",  # the answer says both
        "Remove everything.",
        'It never mentions "lunch".',
        '"lunch" is not mentioned.',
        "Friday is not mentioned in the source.",
        '"Friday" is not mentioned in the source.',  # "We meet on at noon"
        '"red" is not mentioned but may be inferred.',
        'The article says "Monday".',
    ],
)
def test_what_is_not_certain_is_no_correction(comment: str) -> None:
    assert find_corrections(comment, MEETING) == []


def test_a_correction_has_its_sentence_and_its_certainty() -> None:
    comment = 'Fine otherwise. "Friday" should be "Monday". Thanks.'
    (sure,) = find_corrections(comment, MEETING)
    assert comment[slice(*sure.phrase)] == '"Friday" should be "Monday".'
    (named,) = find_corrections("It was Monday, not Friday.", MEETING)
    assert 0 < named.confidence < sure.confidence <= 1


def test_several_corrections_are_in_the_order_of_the_answer() -> None:
    comment = 'Replace "barn" with "house". Change Friday to Monday. Remove "red".'
    assert corrected(comment, MEETING) == "We meet on Monday at noon in the house."
    starts = [correction.start for correction in find_corrections(comment, MEETING)]
    assert starts == sorted(starts)


def test_a_source_tells_the_preposition() -> None:
    source = " ".join(["The council met at Spa Promenade, where it has met for years."] * 8)
    answer = "Plans for a station in East Yorkshire were submitted."
    comment = "Replace East Yorkshire with Spa Promenade."
    assert corrected(comment, answer, source) == "Plans for a station at Spa Promenade were submitted."
    assert corrected(comment, answer) == "Plans for a station in Spa Promenade were submitted."


def test_words_that_the_source_does_not_have_are_no_replacement() -> None:
    source = " ".join(["The council met at Spa Promenade, where it has met for years."] * 8)
    assert (
        find_corrections("Replace East Yorkshire with Mars Base.", "A station in East Yorkshire opened.", source) == []
    )


PARTS = "Friday Monday not should be replace with remove the a , . ; -> rather than instead of add after"
WORDS = st.sampled_from([*PARTS.split(), " ", "\n", '"', "'", "12", "x’s", "😀", "é"])
comments = st.lists(WORDS, max_size=14).map(" ".join) | st.text(max_size=60)


@settings(max_examples=150, deadline=None)
@given(comments, comments, st.none() | st.text(max_size=40))
def test_corrections_are_ranges_of_the_completion(comment: str, completion: str, prompt: str | None) -> None:
    found = find_corrections(comment, completion, prompt)
    done = 0
    for correction in found:
        assert done <= correction.start <= correction.end <= len(completion)
        done = correction.end
        assert 0 < correction.confidence <= 1
        assert 0 <= correction.phrase[0] < correction.phrase[1] <= len(comment)
        made = correction.apply(completion)
        assert made == completion[: correction.start] + correction.replacement + completion[correction.end :]
        assert made != completion


PROGRAM = "def mean(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total / len(xs)"


@pytest.mark.parametrize(
    "comment",
    ["Rename xs to values.", "Change xs to values.", "Replace `xs` with `values`.", 'Rename "xs" to "values".'],
)
def test_a_new_name_replaces_every_use_of_the_old_one(comment: str) -> None:
    found = find_corrections(comment, PROGRAM)
    assert [(PROGRAM[each.start : each.end], each.replacement) for each in found] == [("xs", "values")] * 3
    program = PROGRAM
    for correction in reversed(found):
        program = correction.apply(program)
    assert program == PROGRAM.replace("xs", "values")


@pytest.mark.parametrize(
    "comment", ["Rename x to total.", "Rename xs to something better.", "Do not rename xs to values."]
)
def test_names_that_are_taken_or_not_given_replace_nothing(comment: str) -> None:
    assert find_corrections(comment, PROGRAM) == []


@pytest.mark.parametrize(
    ("comment", "completion", "expected"),
    [
        ("The kettle should be a teapot.", "Fill your old kettle.", "Fill your old teapot."),
        ("Crowns, not pounds.", "It cost 4 pounds, once 5 crowns.", "It cost 4 crowns, once 5 crowns."),
        ("Sinking, not floating.", "The ship is floating.", "The ship is sinking."),
    ],
)
def test_a_word_gets_the_form_of_its_place(comment: str, completion: str, expected: str) -> None:
    assert corrected(comment, completion) == expected


def test_what_breaks_a_program_is_no_correction() -> None:
    assert not find_corrections("Write total( instead of len(xs).", PROGRAM)


def test_words_of_prose_are_no_names() -> None:
    assert len(find_corrections("Change Tom to Tim.", "Tom met Ann. Ann met Tom.")) <= 1


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ('Replace "london" with "London".', "Our shop in London sells iPads. Come to the WEST gate."),
        ("london -> London", "Our shop in London sells iPads. Come to the WEST gate."),
        ('"WEST" should be "west".', "Our shop in london sells iPads. Come to the west gate."),
        ('It should be "IPads", not "iPads".', "Our shop in london sells IPads. Come to the WEST gate."),
    ],
)
def test_capitals_are_corrected_where_both_words_are_quoted(comment: str, expected: str) -> None:
    answer = "Our shop in london sells iPads. Come to the WEST gate."
    assert corrected(comment, answer) == expected


@pytest.mark.parametrize("comment", ['Replace "gate" with "gate".', "The shop should be the Shop."])
def test_the_same_words_are_no_correction(comment: str) -> None:
    answer = "Our shop in london sells iPads. Come to the WEST gate."
    assert corrected(comment, answer) == answer


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        (
            'Cut "each week".',
            "Trains leave at 8 p.m. each week but Easter. A seat costs 9 pounds.",
        ),  # no reading without
        ('Delete "Easter".', "Trains leave at 8 p.m. each week. A seat costs 9 pounds."),
    ],
)
def test_a_removal_takes_hardly_more_than_the_quoted_words(comment: str, expected: str) -> None:
    answer = "Trains leave at 8 p.m. each week but Easter. A seat costs 9 pounds."
    assert corrected(comment, answer) in (expected, answer)
