"""Several critics, one Feedback: nothing is lost, nothing is counted twice, and every source is still known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from text2grad.critics.combined import CombinedCritic, merge_critics, merge_feedback
from text2grad.critics.fingerprint import critic_digest
from text2grad.critics.rules.lint import LintCritic
from text2grad.errors import UserError
from text2grad.rewards.credit import Credit, token_rewards
from text2grad.schema import Example, Feedback, Omission, Span


def feedback_of(critic: str, critique: str, *spans: tuple[int, int, str, float], **fields: Any) -> Feedback:
    """Feedback whose spans all point at the first three letters of the critique."""
    marks = [Span(start=s, end=e, label=label, severity=v, phrase=(0, 3)) for s, e, label, v in spans]  # type: ignore[arg-type]
    return Feedback(critic=critic, critique=critique, spans=marks, **fields)


class FixedCritic:
    """A critic that returns the same feedback for every example."""

    def __init__(self, feedback: Feedback) -> None:
        self.feedback = feedback

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [self.feedback.model_copy(deep=True) for _ in examples]


def test_critiques_are_joined_and_phrases_shifted():
    merged = merge_feedback(
        [feedback_of("a", "One is bad.", (0, 4, "poor", 1.0)), feedback_of("b", "Two is good.", (5, 9, "good", 0.5))]
    )

    assert merged.critique == "One is bad.\nTwo is good."
    assert [merged.critique[slice(*span.phrase)] for span in merged.spans if span.phrase] == ["One", "Two"]
    assert [(span.start, span.end, span.label, span.critic) for span in merged.spans] == [
        (0, 4, "poor", "a"),
        (5, 9, "good", "b"),
    ]
    assert merged.critic == "a+b"


def test_an_empty_critique_leaves_no_empty_line():
    merged = merge_feedback([Feedback(critic="a"), feedback_of("b", "Two.", (0, 1, "poor", 1.0)), Feedback(critic="c")])

    assert merged.critique == "Two."
    assert merged.spans[0].phrase == (0, 3)


def test_the_same_blame_twice_counts_once_at_its_most_severe():
    merged = merge_feedback(
        [feedback_of("a", "Bad.", (0, 4, "poor", 0.3)), feedback_of("b", "Awful.", (0, 4, "poor", 0.8))]
    )

    (span,) = merged.spans
    assert (span.severity, span.critic) == (0.8, "a+b")
    assert span.phrase is not None
    assert merged.critique[slice(*span.phrase)] == "Awf"


def test_praise_and_blame_of_the_same_words_cancel_in_the_rewards():
    merged = merge_feedback(
        [feedback_of("a", "Bad.", (0, 4, "poor", 0.75)), feedback_of("b", "Good.", (0, 4, "good", 0.5))]
    )

    rewards, _, valid = token_rewards(merged, [(0, 4), (4, 8)], credit=Credit(mode="uniform", total="spans"))

    assert valid
    assert rewards.tolist() == [-0.25, 0.0]


def test_omissions_merge_by_their_text():
    one = feedback_of("a", "The date and the place.", omissions=[Omission(text="date", severity=0.3, phrase=(4, 8))])
    two = feedback_of(
        "b",
        "No date, no name.",
        omissions=[Omission(text="date", severity=0.6, phrase=(3, 7)), Omission(text="name")],
    )

    merged = merge_feedback([one, two])

    assert [(omission.text, omission.severity) for omission in merged.omissions] == [("date", 0.6), ("name", 1.0)]
    assert merged.omissions[0].phrase is not None
    assert merged.critique[slice(*merged.omissions[0].phrase)] == "date"


def test_graded_scores_and_spans_are_added_up():
    graded = Feedback(critic="model", scores=[(0, 4, -0.5), (4, 8, 0.25)])
    merged = merge_feedback(
        [graded, feedback_of("a", "Bad.", (0, 4, "poor", 0.25)), feedback_of("b", "Worse.", (0, 4, "poor", 0.5))]
    )

    assert merged.scores == [(0, 4, -0.5), (4, 8, 0.25), (0, 4, -0.5)]
    assert len(merged.spans) == 1


def test_beside_graded_scores_a_span_weighs_as_much_as_it_is_certain():
    graded = Feedback(critic="model", scores=[(0, 4, -0.5)])
    spans = [
        Span(start=4, end=8, label="poor", severity=0.5, confidence=0.5),
        Span(start=8, end=9, label="good", confidence=0.0),
    ]
    merged = merge_feedback([graded, Feedback(critic="a", critique="Bad.", spans=spans)])

    assert merged.scores == [(0, 4, -0.5), (4, 8, -0.25)]
    offsets = [(0, 4), (4, 8), (8, 9), (9, 9)]
    assert token_rewards(merged, offsets, credit=Credit(total="spans")).rewards.tolist() == [-0.5, -0.25, 0.0, 0.0]


def test_the_score_is_the_mean_of_those_that_are_there():
    feedbacks = [Feedback(critic="a", score=1.0), Feedback(critic="b", score=-0.5), Feedback(critic="c")]

    assert merge_feedback(feedbacks).score == 0.25
    assert merge_feedback([Feedback(critic="a"), Feedback(critic="b")]).score is None


def test_one_success_is_enough_and_the_errors_are_kept():
    merged = merge_feedback(
        [Feedback.failure("a", "no code"), feedback_of("b", "Fine.", (0, 1, "good", 1.0)), Feedback.failure("c", "x")]
    )

    assert (merged.status, merged.error, len(merged.spans)) == ("ok", "a: no code; c: x", 1)


def test_a_score_that_is_missing_is_not_left_out_of_the_mean():
    feedbacks = [Feedback(critic="lenient", score=0.9), Feedback.failure("strict", "timeout")]
    merged = merge_critics(feedbacks)

    assert (merged.status, merged.error, merged.score) == ("failed", "strict: timeout", None)
    assert merge_feedback(feedbacks).score == 0.9, "people do not all comment on everything"


def test_all_failed_is_failed():
    merged = merge_feedback([Feedback.failure("a", "no code", raw="{"), Feedback.failure("b", "no tests")])

    assert (merged.status, merged.error, merged.critic) == ("failed", "a: no code; b: no tests", "a+b")
    assert merged.raw == '[["a", "{"]]'


def test_everything_else_is_kept():
    one = Feedback(critic="a", reasoning="Because.", unmatched=["x", "y"], raw="A")
    two = Feedback(critic="b", reasoning="And.", unmatched=["y", "z"], raw="B")

    merged = merge_feedback([one, two])

    assert merged.reasoning == "Because.\nAnd."
    assert merged.unmatched == ["x", "y", "z"]
    assert json.loads(str(merged.raw)) == [["a", "A"], ["b", "B"]]


def test_merging_leaves_its_parts_alone_and_one_is_itself():
    one, two = feedback_of("a", "Bad.", (0, 4, "poor", 0.3)), feedback_of("b", "Awful.", (0, 4, "poor", 0.8))
    before = two.model_copy(deep=True)

    merge_feedback([one, two])

    assert two == before
    assert merge_feedback([one]) is one
    with pytest.raises(ValueError, match="no feedback"):
        merge_feedback([])


def test_every_critic_runs_on_every_example():
    answers = ["import os\n", "x = 1\n", "no code"]
    critic = CombinedCritic([LintCritic(), FixedCritic(feedback_of("b", "Short.", (0, 1, "poor", 0.5)))])

    merged = critic.critique([Example(id=str(i), prompt="", completion=answer) for i, answer in enumerate(answers)])

    assert [[span.critic for span in one.spans] for one in merged] == [["lint", "b"], ["b"], ["b"]]
    assert merged[2].error == "lint: the answer has no Python code in it"


def test_invalid_feedback_of_one_critic_leaves_the_other():
    critic = CombinedCritic(
        [
            FixedCritic(feedback_of("a", "Bad.", (0, 99, "poor", 1.0))),
            FixedCritic(feedback_of("b", "Bad.", (0, 1, "poor", 1.0))),
        ]
    )

    (merged,) = critic.critique([Example(id="", prompt="", completion="short")])

    assert (merged.status, [span.critic for span in merged.spans]) == ("ok", ["b"])
    assert str(merged.error).startswith("a: ")


def test_critics_by_name_as_in_a_configuration_file():
    critic = CombinedCritic(["grounding", {"name": "grounding", "options": {"max_words": 5}}])

    assert [vars(one) for one in critic.critics] == [{"max_words": None}, {"max_words": 5}]
    with pytest.raises(UserError, match='unknown critic "grunding"'):
        CombinedCritic(["grunding"])
    with pytest.raises(UserError, match="give name and"):
        CombinedCritic([{"nam": "grounding"}])
    with pytest.raises(UserError, match="at least one critic"):
        CombinedCritic([])


def test_the_digest_changes_with_the_settings_of_a_part():
    digests = {critic_digest(CombinedCritic([LintCritic(select=[rules])])) for rules in ("E", "F", "F")}

    assert len(digests) == 2


def test_a_replacement_is_kept_by_the_merged_span() -> None:
    def blame(critic: str, severity: float, replacement: str | None) -> Feedback:
        span = Span(start=0, end=2, label="poor", severity=severity, replacement=replacement)
        return Feedback(critic=critic, spans=[span])

    given = [blame("a", 0.3, "We"), blame("b", 0.9, None), blame("c", 0.5, "")]
    (span,) = merge_feedback(given).spans
    assert (span.severity, span.replacement, span.critic) == (0.9, "", "a+b+c")


def test_the_place_of_an_omission_is_kept() -> None:
    placed = Omission(text="date", severity=0.3, insert_at=2, insertion=" today")
    merged = merge_feedback(
        [feedback_of("a", "", omissions=[placed]), feedback_of("b", "", omissions=[Omission(text="date")])]
    )
    assert merged.omissions == [placed.model_copy(update={"severity": 1.0})]
