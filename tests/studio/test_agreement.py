from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.schema import Feedback, Span
from text2grad.studio.agreement import Judged, krippendorff_alpha, measure_agreement, token_labels
from text2grad.text.whitespace import word_ranges


def rows(*lines: str) -> list[list[str | None]]:
    return [[None if mark == "." else mark for mark in line] for line in lines]


@pytest.mark.parametrize(
    ("ratings", "alpha"),
    [
        # Krippendorff, Computing Krippendorff's Alpha-Reliability (2011): examples A, B and C, which has missing data.
        (rows("0100000010", "1110010000"), 0.095),
        (rows("aabbdcccedda", "babbbccceddd"), 0.692),
        (rows("123321412...", "1233224125.3", ".3332342251.", "12332441251."), 0.743),
        # The usual example of three coders and fifteen units.
        (rows(".....34121133.3", "1.213343.......", "..21344.21133.4"), 0.691),
    ],
)
def test_alpha_of_published_examples(ratings: list[list[str | None]], alpha: float) -> None:
    assert krippendorff_alpha(ratings) == pytest.approx(alpha, abs=5e-4)


def test_alpha_by_hand() -> None:
    # Three units with two labels each: (a, a), (b, b), (a, b). n = 6, n_a = n_b = 3.
    # Observed: only the third unit disagrees: 1 * 1 / 1 + 1 * 1 / 1 = 2. Expected: 3 * 3 + 3 * 3 = 18.
    assert krippendorff_alpha(rows("aba", "abb")) == pytest.approx(1 - 5 * 2 / 18)


@pytest.mark.parametrize("ratings", [[], rows("ab"), rows("a.", ".b"), rows("aa", "aa")])
def test_alpha_is_not_defined_without_overlap_or_without_different_labels(ratings: list[list[str | None]]) -> None:
    assert krippendorff_alpha(ratings) is None


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=6, max_size=6), min_size=2, max_size=4))
def test_alpha_does_not_depend_on_the_order_of_annotators_and_is_at_most_one(ratings: list[list[str | None]]) -> None:
    alpha, turned = krippendorff_alpha(ratings), krippendorff_alpha(ratings[::-1])
    assert alpha == turned or alpha == pytest.approx(turned)
    assert alpha is None or alpha <= 1 + 1e-9


def feedback(*spans: tuple[int, int, str]) -> Feedback:
    return Feedback.model_validate(
        {"critic": "human", "spans": [{"start": s, "end": e, "label": label} for s, e, label in spans]}
    )


def test_a_word_has_the_label_of_the_spans_that_touch_it() -> None:
    text = "The  fox\tjumps 🦊 high."
    assert [text[s:e] for s, e in word_ranges(text)] == ["The", "fox", "jumps", "🦊", "high."]
    said = feedback((5, 10, "poor"), (15, 16, "good"))
    assert token_labels(said, word_ranges(text)) == ["neutral", "poor", "poor", "good", "neutral"]


def test_praise_and_blame_of_one_word_weigh_up_by_severity() -> None:
    spans = [Span(start=0, end=3, label="good", severity=0.2), Span(start=0, end=3, label="poor", severity=0.5)]
    assert token_labels(Feedback(critic="human", spans=spans), [(0, 3)]) == ["poor"]


def test_agreement_of_two_people_and_a_model() -> None:
    answers = [
        Judged(
            "1",
            "The lazy old fox",
            {
                "ann": feedback((4, 12, "poor")),
                "bob": feedback((4, 8, "poor")),
                "model": feedback((13, 16, "good")),
            },
        ),
        Judged("2", "jumps high", {"ann": feedback(), "model": Feedback.failure("model", "no reply")}),
    ]
    found = measure_agreement(answers)
    assert (found.annotators, found.words) == (["ann", "bob", "model"], 6)
    ann_bob, ann_model, bob_model = found.pairs
    assert (ann_bob.annotators, ann_bob.words, ann_bob.equal) == (("ann", "bob"), 4, 0.75)
    # labels n p p n against n p n n: one of four differs; n_p = 3, n_n = 5: 1 - 7 * 2 / (2 * 3 * 5)
    assert ann_bob.alpha == pytest.approx(1 - 7 * 2 / 30)
    assert (ann_model.words, ann_model.equal) == (4, 0.25)
    assert (bob_model.words, bob_model.equal) == (4, 0.5)
    assert [(d.id, d.text, d.labels) for d in found.differences] == [
        ("1", "lazy", {"ann": "poor", "bob": "poor", "model": "neutral"}),
        ("1", "old", {"ann": "poor", "bob": "neutral", "model": "neutral"}),
        ("1", "fox", {"ann": "neutral", "bob": "neutral", "model": "good"}),
    ]


def test_neighbouring_words_with_the_same_difference_are_one() -> None:
    text = "The lazy old fox"
    found = measure_agreement([Judged("1", text, {"ann": feedback((4, 12, "poor")), "bob": feedback()})])
    (difference,) = found.differences
    assert (difference.start, difference.end, difference.text) == (4, 12, "lazy old")
    assert text[difference.start : difference.end] == difference.text


def test_nothing_judged_is_no_agreement() -> None:
    found = measure_agreement([])
    assert (found.alpha, found.pairs, found.differences) == (None, [], [])
