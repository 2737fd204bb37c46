"""How much of a comment should be written where it does not quote it, and requests that are none."""

from __future__ import annotations

import pytest

from text2grad.align.corrections.corrections import find_corrections

BREAD = "Yeast produces oxygen, which makes the bread rise."
SOUP = "Fry the onion in oil, add vegetable stock and basil, and serve with toasted bread."
VOTE = "The council voted unanimously to close the bridge until May."


def found(comment: str, answer: str) -> tuple[str, str] | None:
    corrections = find_corrections(comment, answer)
    assert len(corrections) < 2
    return (answer[corrections[0].start : corrections[0].end], corrections[0].replacement) if corrections else None


@pytest.mark.parametrize(
    ("comment", "answer", "expected"),
    [
        ("oxygen should be carbon dioxide", BREAD, ("oxygen", "carbon dioxide")),
        ("Not oxygen but carbon dioxide.", BREAD, ("oxygen", "carbon dioxide")),
        ("It should say carbon dioxide instead of oxygen.", BREAD, ("oxygen", "carbon dioxide")),
        ("Yeast produces carbon dioxide, not oxygen.", BREAD, ("oxygen", "carbon dioxide")),
        ("Use red wine vinegar, not vegetable stock.", SOUP, ("vegetable stock", "red wine vinegar")),
        ("oil should be butter please", SOUP, ("oil", "butter")),
        ("oil should be butter in the first step", SOUP, ("oil", "butter")),
        ("It should say seven to four instead of unanimously.", VOTE, ("unanimously", "seven to four")),
        ("It should be March, not May.", VOTE, ("May", "March")),
        ("It is made of olive oil, not butter.", "The sauce is made of butter.", ("butter", "olive oil")),
    ],
)
def test_all_new_words_are_written(comment: str, answer: str, expected: tuple[str, str]) -> None:
    assert found(comment, answer) == expected


@pytest.mark.parametrize(
    ("comment", "answer"),
    [
        ("Yeast makes carbon dioxide, not oxygen.", BREAD),  # "makes" may belong to it
        ("The baker added rye flour, not oxygen.", BREAD),
        ("The council opened the bridge rather than voted.", VOTE),  # a clause, not words for "voted"
    ],
)
def test_where_the_first_new_word_is_not_clear_nothing_is_written(comment: str, answer: str) -> None:
    assert found(comment, answer) is None


@pytest.mark.parametrize(
    "comment",
    [
        'It is good that it says "basil" instead of "parsley".',
        "I am glad you wrote basil and not parsley.",
        'No need to replace "basil" with "mint".',
        'Nobody should replace "basil" with "mint" here.',
        'You don\'t need to remove "and basil".',
        'You needn\'t change "basil" to "mint".',
    ],
)
def test_what_is_praised_or_not_needed_changes_nothing(comment: str) -> None:
    assert found(comment, SOUP) is None


@pytest.mark.parametrize(
    "comment",
    [
        "It would be good to say mint instead of basil.",
        "It would be nice to see mint instead of basil.",
        "Not good that you wrote basil instead of mint.",
        'You need to replace "basil" with "mint".',
    ],
)
def test_a_wish_or_a_complaint_is_a_request(comment: str) -> None:
    assert found(comment, SOUP) == ("basil", "mint")
