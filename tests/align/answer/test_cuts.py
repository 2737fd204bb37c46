"""What is left of a text without some of its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.align.answer.cuts import agreeing_article, count_marks, cut, still_reads
from text2grad.text.whitespace import split_words


def words_of(text: str, part: str) -> tuple[int, int]:
    start = text.index(part)
    inside = [i for i, word in enumerate(split_words(text)) if start <= word.start < start + len(part)]
    return inside[0], inside[-1] + 1


def without(text: str, part: str) -> str:
    start, end, replacement = cut(text, split_words(text), *words_of(text, part))
    return text[:start] + replacement + text[end:]


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("A big red dog barked.", "red", "A big dog barked."),
        ("The UN agency, Unicef, says so.", "Unicef,", "The UN agency says so."),
        ("It rained in Rome, Italy.", "Italy.", "It rained in Rome."),
        ("It rained in Rome on Friday.", "on Friday.", "It rained in Rome."),
        ("It rained in Rome, and it snowed.", "in Rome,", "It rained, and it snowed."),
        ("A £20m arts centre opened.", "£20m", "An arts centre opened."),
        ("He ate an old apple.", "old", "He ate an apple."),
        ("He ate an old pear.", "old", "He ate a pear."),
        ("On Friday it rained.", "On Friday", "It rained."),
        ("Singer Laura Mvula sang.", "Singer", "Laura Mvula sang."),
        ("It rained. On Friday it snowed.", "On Friday", "It rained. It snowed."),
        ("It rained. Singer Laura sang.", "Singer", "It rained. Laura sang."),
        ("It rained. It snowed. It froze.", "It snowed.", "It rained. It froze."),
        ("It rained.", "It rained.", ""),
    ],
)
def test_spaces_commas_capitals_and_articles_are_right(text: str, part: str, expected: str) -> None:
    assert without(text, part) == expected


@pytest.mark.parametrize(
    ("text", "part", "reads"),
    [
        ("They host the Games in Shropshire.", "Shropshire.", False),
        ("They host the Games in Shropshire.", "in Shropshire.", True),
        ("The dog barked.", "dog", False),
        ("They have met her.", "met", False),
        ('He said "no" to her.', '"no"', True),
        ('He said "no way" to her.', '"no', False),
        ("The dog was fed.", "dog", False),
        ("He met a friend of Anna.", "Anna.", False),
        ("He met a friend of Anna.", "a friend of", False),
        ("He met a tall friend.", "tall", True),
        ("The man in the car left.", "man", False),
        ("Monday's attack failed.", "Monday's", False),
        ("He saw Monday's attack.", "Monday's", False),
        ("He saw Monday's attacks.", "Monday's", True),
        ("On Friday it rained.", "On Friday", True),
        ("Anna who sang left.", "Anna", False),
    ],
)
def test_whether_the_rest_reads(text: str, part: str, reads: bool) -> None:
    assert still_reads(split_words(text), *words_of(text, part)) is reads


@pytest.mark.parametrize(
    ("article", "following", "expected"),
    [
        ("a", "apple", "an"),
        ("An", "pear", "A"),
        ("a", "union", "a"),
        ("a", "hour", "an"),
        ("an", "18-year-old", "an"),
        ("the", "apple", "the"),
    ],
)
def test_articles_agree(article: str, following: str, expected: str) -> None:
    assert agreeing_article(article, following) == expected


@given(
    st.lists(
        st.sampled_from(["a", "an", "the", "Dog,", "ran.", "In", "apple", "“it”", "…", ";"]), min_size=1, max_size=9
    ),
    st.data(),
)
def test_only_the_words_go(parts: list[str], data: st.DataObject) -> None:
    text = " ".join(parts)
    words = split_words(text)
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first + 1, len(words)))
    start, end, replacement = cut(text, words, first, last)
    assert 0 <= start <= end <= len(text)
    left = (text[:start] + replacement + text[end:]).lower().split()
    kept = [word.text.lower().strip(",;:") for word in [*words[:first], *words[last:]]]
    articles = {"a", "an"}
    assert [w for w in (x.strip(",;:.") for x in left) if w and w not in articles] == [
        w for w in (x.strip(",;:.") for x in kept) if w and w not in articles
    ]


def test_marks_may_be_counted_once_for_many_runs() -> None:
    words = split_words('He (who left) said "no" twice.')
    runs = [(first, last) for first in range(len(words)) for last in range(first + 1, len(words) + 1)]
    marks = count_marks(words)
    assert [still_reads(words, *run, marks) for run in runs] == [still_reads(words, *run) for run in runs]
    assert not still_reads(words, 1, 2, marks)
