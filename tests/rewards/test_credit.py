import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.rewards.credit import Credit, signed_ranges, token_rewards
from text2grad.schema import Feedback, Omission, Span

# "They met on Friday ." as five tokens and an end token of zero width.
OFFSETS = [(0, 4), (4, 8), (8, 11), (11, 15), (15, 18), (18, 18)]
END = 5


def rewards(feedback: Feedback, mode: str, truncated: bool = False, **credit: float) -> list[float]:
    settings = Credit.model_validate({"mode": mode, **credit})
    values, outcome, valid = token_rewards(feedback, OFFSETS, truncated=truncated, credit=settings)
    assert valid
    assert outcome is None
    return [round(float(v), 6) for v in values]


def poor(start: int, end: int, severity: float = 1.0) -> Span:
    return Span(start=start, end=end, label="poor", severity=severity)


def good(start: int, end: int, severity: float = 1.0) -> Span:
    return Span(start=start, end=end, label="good", severity=severity)


BLAMED = Feedback(critic="c", spans=[poor(11, 18, 0.8)], omissions=[Omission(text="the price", severity=0.5)])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("uniform", [0, 0, 0, -0.8, -0.8, -0.5]),
        ("normalized", [0, 0, 0, -0.4, -0.4, -0.5]),
        ("first", [0, 0, 0, -0.8, 0, -0.5]),
        ("sequence", [0, 0, 0, 0, 0, -1.3]),
    ],
)
def test_credit_modes(mode: str, expected: list[float]) -> None:
    assert rewards(BLAMED, mode) == expected


def test_shuffled_moves_span_rewards_but_not_the_charge_of_the_end_token() -> None:
    dealt = {
        tuple(token_rewards(BLAMED, OFFSETS, credit=Credit(mode="shuffled"), rng=np.random.default_rng(i))[0])
        for i in range(40)
    }
    assert len(dealt) > 5
    for values in dealt:
        assert sorted(values[:END]) == pytest.approx([-0.4, -0.4, 0, 0, 0])
        assert values[END] == pytest.approx(-0.5)


def test_shuffled_needs_a_generator() -> None:
    with pytest.raises(ValueError, match=r"^credit mode shuffled needs rng: pass numpy\.random\.default_rng\(seed\)$"):
        token_rewards(BLAMED, OFFSETS, credit=Credit(mode="shuffled"))


@pytest.mark.parametrize("mode", ["uniform", "normalized", "first"])
def test_other_modes_ignore_the_generator(mode: str) -> None:
    feedback = Feedback(critic="c", scores=[(4 * t, 4 * t + 1, (t + 1) / 8) for t in range(5)])
    for seed in range(5):
        credit, rng = Credit.model_validate({"mode": mode}), np.random.default_rng(seed)
        values = token_rewards(feedback, OFFSETS, credit=credit, rng=rng).rewards
        assert values.tolist() == token_rewards(feedback, OFFSETS, credit=credit).rewards.tolist()


def test_a_completion_without_tokens_is_invalid() -> None:
    values, outcome, valid = token_rewards(BLAMED, [])
    assert (values.shape, outcome, valid) == ((0,), None, False)


def test_a_token_that_overlaps_a_span_by_one_character_is_rewarded() -> None:
    assert rewards(Feedback(critic="c", spans=[poor(7, 9)]), "uniform") == [0, -1, -1, 0, 0, 0]


def test_overlapping_spans_add_up_within_one() -> None:
    feedback = Feedback(critic="c", spans=[poor(0, 8, 0.7), poor(4, 11, 0.6), good(8, 15, 0.6)])
    assert rewards(feedback, "uniform") == [-0.7, -1.0, 0.0, 0.6, 0, 0]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("uniform", [0.5, 1.0, 0.75, 0, 0, 0]),
        ("normalized", [0.25, 0.625, 0.375, 0, 0, 0]),
        ("first", [0.5, 0.75, 0, 0, 0, 0]),
    ],
)
def test_every_mode_adds_up_praise_within_one(mode: str, expected: list[float]) -> None:
    feedback = Feedback(critic="c", spans=[good(0, 8, 0.5), good(4, 11, 0.75)])
    assert rewards(feedback, mode) == expected


@pytest.mark.parametrize("mode", ["normalized", "first"])
def test_the_bounds_of_a_token_hold_in_every_mode(mode: str) -> None:
    feedback = Feedback(critic="c", spans=[good(0, 4, 0.7), good(0, 4, 0.7), poor(4, 8), poor(4, 8)])
    assert rewards(feedback, mode) == [1, -1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "feedback",
    [Feedback(critic="c", spans=[poor(0, 4), poor(11, 99)]), Feedback(critic="c", scores=[(18, 19, -1.0)], score=-1.0)],
)
def test_feedback_on_characters_that_the_completion_does_not_have_is_invalid(feedback: Feedback) -> None:
    values, outcome, valid = token_rewards(feedback, OFFSETS)
    assert (values.tolist(), outcome, valid) == ([0.0] * 6, None, False)


def test_a_token_without_width_inside_a_span_earns_nothing() -> None:
    offsets = [(0, 4), (4, 4), (4, 8), (8, 8)]
    values = token_rewards(Feedback(critic="c", spans=[poor(0, 8)]), offsets).rewards
    assert values.tolist() == [-0.5, 0, -0.5, 0]


def test_graded_scores_replace_spans() -> None:
    feedback = Feedback(critic="c", spans=[poor(0, 4)], scores=[(4, 8, 0.25), (8, 11, -0.5)])
    assert rewards(feedback, "uniform") == [0, 0.25, -0.5, 0, 0, 0]


def test_every_omission_is_charged() -> None:
    feedback = Feedback(critic="c", omissions=[Omission(text=str(i), severity=0.9) for i in range(5)])
    assert rewards(feedback, "normalized")[END] == -4.5


def test_an_omission_counts_as_much_as_it_is_certain() -> None:
    omissions = [Omission(text="a", severity=0.5, confidence=0.8), Omission(text="b", confidence=0.2)]
    assert rewards(Feedback(critic="c", omissions=omissions), "normalized")[END] == -0.4


def missing(insert_at: int, insertion: str, severity: float = 0.5) -> Feedback:
    return Feedback(
        critic="c", omissions=[Omission(text="x", severity=severity, insert_at=insert_at, insertion=insertion)]
    )


@pytest.mark.parametrize(
    ("place", "token"), [(0, 0), (4, 1), (6, 1), (18, END)], ids=["start", "before a token", "inside one", "end"]
)
def test_missing_words_are_charged_to_the_token_in_their_place(place: int, token: int) -> None:
    assert rewards(missing(place, " late"), "uniform") == [-0.5 * (i == token) for i in range(6)]


def test_missing_words_that_begin_as_what_came_are_charged_where_they_differ() -> None:
    text = "It is red. It is old."
    offsets = [(0, 2), (2, 5), (5, 9), (9, 10), (10, 13), (13, 16), (16, 20), (20, 21), (21, 21)]
    feedback = missing(10, " It is big.")
    assert token_rewards(feedback, offsets).rewards.tolist() == [0, 0, 0, 0, -0.5, 0, 0, 0, 0]
    assert token_rewards(feedback, offsets, text=text).rewards.tolist() == [0, 0, 0, 0, 0, 0, -0.5, 0, 0]


def test_a_missing_repetition_is_charged_to_the_end() -> None:
    assert token_rewards(missing(2, "na"), [(0, 2), (2, 4), (4, 4)], text="bana").rewards.tolist() == [0, 0, -0.5]


def test_missing_words_in_one_place_cost_at_most_one() -> None:
    omissions = missing(4, " late").omissions * 3
    assert rewards(Feedback(critic="c", omissions=omissions), "uniform") == [0, -1, 0, 0, 0, 0]


def test_missing_words_outside_the_completion_are_invalid() -> None:
    assert not token_rewards(missing(19, " late"), OFFSETS).valid


def test_a_place_of_missing_words_is_part_of_the_score() -> None:
    feedback = missing(4, " late").model_copy(update={"score": -0.2})
    found, outcome, _ = token_rewards(feedback, OFFSETS)
    assert found.tolist() == [0, -0.5, 0, 0, 0, 0]
    assert outcome == pytest.approx(0.3)
    found, outcome, _ = token_rewards(feedback, OFFSETS, credit=Credit(mode="sequence"))
    assert (found.any(), outcome) == (False, pytest.approx(-0.2))


def test_not_stopping_costs_more_than_stopping() -> None:
    feedback = Feedback(critic="c", omissions=[Omission(text="x", severity=0.5)])
    stopped = rewards(feedback, "normalized")
    truncated = rewards(feedback, "normalized", truncated=True, truncation_penalty=1.0)
    assert (stopped[END], truncated[END]) == (-0.5, -1.5)


def test_failed_feedback_is_invalid_and_earns_nothing() -> None:
    values, outcome, valid = token_rewards(Feedback.failure("c", "timeout"), OFFSETS, truncated=True)
    assert (outcome, valid) == (None, False)
    assert (values.shape, values.dtype) == ((6,), np.float32)
    assert not values.any()


def test_praise_without_blame_leaves_the_rest_at_zero() -> None:
    values = token_rewards(Feedback(critic="c", spans=[good(0, 4)]), OFFSETS).rewards
    assert values.tolist() == [1, 0, 0, 0, 0, 0]


spans = st.tuples(
    st.integers(0, 17), st.integers(1, 6), st.sampled_from(["good", "poor"]), st.sampled_from([0.05, 0.1])
)


@given(st.lists(spans, max_size=6), st.sampled_from(["sequence", "shuffled"]), st.integers(0, 99))
def test_controls_have_the_same_total_as_normalized(
    drawn: list[tuple[int, int, str, float]], mode: str, seed: int
) -> None:
    feedback = Feedback.model_validate(
        {
            "critic": "c",
            "spans": [
                {"start": s, "end": min(s + n, 18), "label": label, "severity": w} for s, n, label, w in drawn if s < 18
            ],
            "omissions": [{"text": "x", "severity": 0.5}],
        }
    )
    total = sum(rewards(feedback, "normalized"))
    control = token_rewards(
        feedback, OFFSETS, credit=Credit.model_validate({"mode": mode}), rng=np.random.default_rng(seed)
    ).rewards
    assert float(control.sum()) == pytest.approx(total, abs=1e-5)


SCORED = BLAMED.model_copy(update={"score": -0.3})


@pytest.mark.parametrize(
    ("mode", "expected", "outcome"),
    [
        ("normalized", [0, 0, 0, -0.4, -0.4, 0], 0.5),
        ("uniform", [0, 0, 0, -0.5, -0.5, 0], 0.7),  # scaled down: their magnitudes sum to 1
        ("first", [0, 0, 0, -0.8, 0, 0], 0.5),
        ("sequence", [0, 0, 0, 0, 0, 0], -0.3),
    ],
)
def test_where_there_is_a_score_it_is_the_total(mode: str, expected: list[float], outcome: float) -> None:
    found = token_rewards(SCORED, OFFSETS, credit=Credit.model_validate({"mode": mode}))
    assert found.rewards.tolist() == pytest.approx(expected)
    assert found.outcome == pytest.approx(outcome)
    assert found.valid


def test_truncation_is_a_part_of_the_total() -> None:
    found = token_rewards(SCORED, OFFSETS, truncated=True, credit=Credit(truncation_penalty=0.25))
    assert found.rewards[END] == 0
    assert found.rewards.sum() + found.outcome == pytest.approx(-0.55)


def test_the_default_credit() -> None:
    """The score, less 1 where it is truncated; spans divide their severity among their tokens, at most 1 in all."""
    assert Credit().model_dump() == {
        "mode": "normalized",
        "total": "score",
        "max_span_total": 1.0,
        "truncation_penalty": 1.0,
        "min_confidence": 0.25,
    }
    found = token_rewards(SCORED, OFFSETS, truncated=True)
    assert found.rewards.sum() + found.outcome == pytest.approx(-1.3)


def test_the_total_of_spans_ignores_the_score() -> None:
    assert rewards(SCORED, "normalized", total="spans") == rewards(BLAMED, "normalized")


@pytest.mark.parametrize("severity", [0.3, 1.0])  # below and above the largest sum
@pytest.mark.parametrize("mode", ["uniform", "normalized", "first", "sequence"])
def test_rewards_are_single_precision_and_sum_to_the_score_in_double(mode: str, severity: float) -> None:
    feedback = Feedback(critic="c", spans=[good(0, 4, severity), poor(4, 18, severity / 3)], score=0.1)
    found = token_rewards(feedback, OFFSETS, credit=Credit.model_validate({"mode": mode}))
    assert found.rewards.dtype == np.float32
    assert found.rewards.sum(dtype=np.float64) + found.outcome == pytest.approx(0.1, abs=1e-15)


def test_spans_are_bounded_together_and_keep_their_proportions() -> None:
    feedback = Feedback(critic="c", spans=[good(0, 4, 0.6), good(4, 8, 0.6), poor(8, 11, 0.8)], score=1.0)
    found = token_rewards(feedback, OFFSETS, credit=Credit(max_span_total=0.5))
    assert found.rewards.tolist() == pytest.approx([0.15, 0.15, -0.2, 0, 0, 0])
    assert found.outcome == pytest.approx(0.9)


@given(
    st.lists(spans, max_size=9),
    st.floats(-1, 1),
    st.sampled_from(["uniform", "normalized", "first", "sequence", "shuffled"]),
    st.booleans(),
)
def test_rewards_and_outcome_sum_to_the_score(
    drawn: list[tuple[int, int, str, float]], score: float, mode: str, truncated: bool
) -> None:
    placed = [
        {"start": s, "end": min(s + n, 18), "label": label, "severity": w * 10} for s, n, label, w in drawn if s < 18
    ]
    feedback = Feedback.model_validate({"critic": "c", "spans": placed, "score": score})
    credit = Credit.model_validate({"mode": mode, "truncation_penalty": 0.5})
    found = token_rewards(feedback, OFFSETS, truncated=truncated, credit=credit, rng=np.random.default_rng(0))
    assert found.rewards.sum() + found.outcome == pytest.approx(score - 0.5 * truncated, abs=1e-5)
    assert np.abs(found.rewards).sum() <= 1 + 1e-5


def test_a_span_counts_as_much_as_it_is_certain() -> None:
    certain = poor(11, 18, 0.8).model_copy(update={"confidence": 0.5})
    assert rewards(Feedback(critic="c", spans=[certain]), "uniform") == [0, 0, 0, -0.4, -0.4, 0]


def test_below_the_floor_nothing_is_paid() -> None:
    spans = [good(0, 4).model_copy(update={"confidence": 0.24}), poor(4, 8).model_copy(update={"confidence": 0.25})]
    assert rewards(Feedback(critic="c", spans=spans), "uniform") == [0, -0.25, 0, 0, 0, 0]
    assert rewards(Feedback(critic="c", spans=spans), "uniform", min_confidence=0.0) == [0.24, -0.25, 0, 0, 0, 0]
    assert rewards(Feedback(critic="c", spans=spans), "uniform", min_confidence=0.3) == [0] * 6


def test_a_span_without_any_confidence_is_never_paid() -> None:
    feedback = Feedback(critic="c", spans=[poor(4, 8).model_copy(update={"confidence": 0.0})])
    assert signed_ranges(feedback) == []


def test_the_total_is_the_sum_of_rewards_and_outcome() -> None:
    blamed = token_rewards(BLAMED, OFFSETS)
    assert blamed.total == pytest.approx(-1.3)
    scored = token_rewards(BLAMED.model_copy(update={"score": 0.25}), OFFSETS, truncated=True)
    assert scored.outcome == pytest.approx(0.05)
    assert scored.total == pytest.approx(-0.75)
    assert token_rewards(Feedback.failure("c", "no answer"), OFFSETS).total is None
