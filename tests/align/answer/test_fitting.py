"""New words in the place of old ones."""

from __future__ import annotations

import pytest

from text2grad.align.answer.fitting import fit_replacement, lower_start

SOURCE = "It happened at Spa Promenade, and the AFS was told. Staff of the AFS came to Spa Promenade."


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("He saw a dog.", "dog", "ape", "He saw an ape."),
        ("He saw an ape.", "ape", "dog", "He saw a dog."),
        ("The dog ran.", "The dog", "an ape", "An ape ran."),
        ("He ran. The dog ran.", "The dog", "an ape", "He ran. An ape ran."),
        ("He saw the dog.", "dog", "The ape", "He saw the ape."),
        ("He saw the dog.", "the dog", "A cat", "He saw a cat."),
        ("It was in Rome.", "Rome", "in Paris", "It was in Paris."),
        ("It was in Rome.", "in Rome", "near Paris", "It was near Paris."),
        ("It was in Rome.", "Rome.", "Paris.", "It was in Paris."),
        ("It was Anna's dog.", "Anna's", "Eva", "It was Eva's dog."),
        ("It starts next year.", "next year", "2017", "It starts in 2017."),
        ("It starts in 2016.", "2016", "2017", "It starts in 2017."),
        ("It starts next week.", "next week", "9 April", "It starts on 9 April."),
        ("It began a year ago.", "a year ago", "May 2015", "It began in May 2015."),
    ],
)
def test_the_place_decides_the_spelling(text: str, old: str, new: str, expected: str) -> None:
    at = text.index(old)
    start, end, replacement = fit_replacement(at, at + len(old), new, text)
    assert text[:start] + replacement + text[end:] == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("Plans in Yorkshire failed.", "Yorkshire", "Spa Promenade", "Plans at Spa Promenade failed."),
        ("It was said by a charity.", "charity", "AFS", "It was said by the AFS."),
        ("It stayed in the Republic.", "Republic", "Dundalk", "It stayed in Dundalk."),
        ("It was a Glasgow cemetery.", "Glasgow", "Dundalk", "It was a Dundalk cemetery."),
    ],
)
def test_the_source_tells_what_goes_with_a_name(text: str, old: str, new: str, expected: str) -> None:
    at = text.index(old)
    start, end, replacement = fit_replacement(at, at + len(old), new, text, SOURCE)
    assert text[:start] + replacement + text[end:] == expected


def test_a_determiner_that_was_meant_too_goes() -> None:
    text = "They face a fourth day of strikes."
    at = text.index("fourth")
    start, end, replacement = fit_replacement(at, len(text) - 1, "delays", text, has_determiner=True)
    assert text[:start] + replacement + text[end:] == "They face delays."


@pytest.mark.parametrize(
    ("new", "old", "known", "expected"),
    [
        ("Seven", "six", "", "seven"),
        ("Crowns", "pounds", "It cost 4 crowns.", "crowns"),
        ("Falling", "rising", "", "falling"),
        ("Tuesday", "today", "It was on Tuesday.", "Tuesday"),
        ("Mira", "she", "", "Mira"),
        ("Oslo", "town", "In Oslo.", "Oslo"),
        ("BBC", "station", "the bbc", "BBC"),
        ("Seven", "Six", "", "Seven"),
    ],
)
def test_the_first_word_of_a_comment_gets_the_case_of_its_place(new: str, old: str, known: str, expected: str) -> None:
    assert lower_start(new, old, known) == expected
