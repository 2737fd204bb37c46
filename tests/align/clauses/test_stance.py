from __future__ import annotations

import pytest

from text2grad.align.clauses.stance import detect_stances, sentence_around


def stances_on(comment: str, answer: str = "") -> list[str]:
    """Return the stances on the parts in square brackets, for an answer that contains the words of `answer`."""
    ranges: list[tuple[int, int]] = []
    plain = ""
    for i, piece in enumerate(comment.replace("]", "[").split("[")):
        if i % 2:
            ranges.append((len(plain), len(plain) + len(piece)))
        plain += piece
    words = [plain[start:end] for start, end in ranges]
    return list(detect_stances(plain, ranges, occurs=lambda i: words[i] in answer))


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("The meeting was not on [Friday].", ["poor"]),
        ("[Friday] is wrong.", ["poor"]),
        ("[Friday]?", ["poor"]),
        ("Good use of [Berlin].", ["good"]),
        ("I really like [Berlin].", ["good"]),
        ("[Berlin] is not good.", ["poor"]),
        ("[Berlin] isn't quite right.", ["poor"]),
        ("There is nothing wrong with [Berlin].", ["good"]),
        ("[Berlin] is a good guess, but wrong.", ["poor"]),
        ("[Berlin] is not only right but also well put.", ["good"]),
        ("Good use of [Berlin] and [Friday] is wrong.", ["good", "poor"]),
        ("The words [May] and [ten] are wrong, [Berlin] is right.", ["poor", "poor", "good"]),
        ("[Berlin] is right. [Friday] is made up.", ["good", "poor"]),
        ("Good: [Berlin], [May] and [ten].", ["good", "good", "good"]),
        ("[the wrong day] is well put.", ["good"]),
        ("It is wrong to say [Friday].", ["poor"]),
        ("It should not say [Friday].", ["poor"]),
        ("The source never mentions [Berlin].", ["poor"]),
        ("[Berlin] is amazing.", ["good"]),
        ("[Berlin] is flawless.", ["good"]),
        ("[Berlin] is the strongest part.", ["good"]),
        ("No flaws in [Berlin].", ["good"]),
        ("[Berlin] is free of errors.", ["good"]),
        ("[Berlin] is error-free.", ["good"]),
        ("I have no complaints about [Berlin].", ["good"]),
        ("[Berlin] could not be better.", ["good"]),
        ("[Berlin] can't be improved.", ["good"]),
        ("I would not change [Berlin].", ["good"]),
        ("You should keep [Berlin].", ["good"]),
        ("I cannot fault [Berlin].", ["good"]),
        ("[Berlin] is far from correct.", ["poor"]),
        ("[Berlin] is anything but accurate.", ["poor"]),
        ("[Berlin] is less than accurate.", ["poor"]),
        ("[Berlin] is neither accurate nor clear.", ["poor"]),
    ],
)
def test_blame_and_praise(comment: str, expected: list[str]) -> None:
    assert stances_on(comment, answer="Friday May ten Berlin") == expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("[Friday] should be [Monday].", ["poor", "wanted"]),
        ("It must have been [Monday].", ["wanted"]),
        ("It was not [Friday] but [Monday].", ["poor", "wanted"]),
        ("[Friday] -> [Monday]", ["poor", "wanted"]),
        ("Replace [Friday] with [Monday].", ["poor", "wanted"]),
        ("Please change [Friday] to the word [Monday].", ["poor", "wanted"]),
        ("The correct day is [Monday].", ["wanted"]),
        ("It never mentions [Monday].", ["wanted"]),
        ("The article says [Monday].", ["wanted"]),
        ("Use [Monday] rather than [Friday].", ["wanted", "poor"]),
        ("It should say [Monday] instead of [Friday].", ["wanted", "poor"]),
    ],
)
def test_what_should_be_there_is_neither_blamed_nor_praised(comment: str, expected: list[str]) -> None:
    assert stances_on(comment, answer="Friday") == expected


@pytest.mark.parametrize(
    ("comment", "answer", "expected"),
    [
        ("It says [Friday] instead of [Monday].", "Friday", ["poor", "wanted"]),
        ("It was [Monday] instead of [Friday].", "Friday", ["wanted", "poor"]),
        ("It was [Monday], not [Friday].", "Friday", ["wanted", "poor"]),
        ("It says [Friday], not [Monday].", "Friday", ["poor", "wanted"]),
        ("It was [Monday], not [Friday].", "Friday Monday", ["wanted", "poor"]),
        ("It says [Friday] instead of [Monday].", "Friday Monday", ["poor", "wanted"]),
        ("instead of [Friday]", "Friday", ["poor"]),
        ("instead of [Monday]", "Friday", ["wanted"]),
        ("It does not say [Friday].", "Friday", ["poor"]),
    ],
)
def test_the_answer_decides_between_alternatives(comment: str, answer: str, expected: list[str]) -> None:
    assert stances_on(comment, answer) == expected


def test_punctuation_inside_a_quotation_ends_no_sentence() -> None:
    comment = "First. It says Stop. Now! and so on; the end."
    assert comment[slice(*sentence_around(comment, (15, 25), [(15, 25)]))] == "It says Stop. Now! and so on"
