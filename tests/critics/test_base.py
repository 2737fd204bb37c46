"""The protocol's optional attributes, and what validation turns into failed feedback."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from text2grad.critics.base import (
    CriticTraits,
    acollect_feedback,
    collect_feedback,
    critic_traits,
    validate_feedback,
)
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Omission, Span

EXAMPLES = [Example(id="a", prompt="p", completion="four"), Example(id="b", prompt="p", completion="five!")]


class FixedCritic:
    def __init__(self, feedback: Sequence[Any]) -> None:
        self.feedback = list(feedback)

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return self.feedback


class AsyncCritic(FixedCritic):
    async def acritique(self, examples: Sequence[Example]) -> list[Feedback]:
        return self.feedback


def blame(start: int, end: int) -> Feedback:
    return Feedback(critic="fixed", spans=[Span(start=start, end=end, label="poor")])


def test_a_critic_with_critique_alone_has_the_default_traits() -> None:
    traits = critic_traits(FixedCritic([]))
    assert traits == CriticTraits()
    assert (traits.concurrency, traits.batch_size, traits.reads_feedback) == (16, 32, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acritique", print),
        ("aclose", print),
        ("concurrency", 3),
        ("batch_size", 7),
        ("fingerprint", lambda: "v1"),
        ("ledger", SimpleNamespace(tokens_in=1, tokens_out=2, cost=0.5)),
        ("reads_feedback", True),
        ("independent", True),
    ],
)
def test_each_trait_is_read_from_the_critic(name: str, value: Any) -> None:
    critic = FixedCritic([])
    setattr(critic, name, value)
    assert critic_traits(critic) == CriticTraits()._replace(**{name: value})


def test_every_trait_has_a_test() -> None:
    (parameters,) = [mark.args[1] for mark in test_each_trait_is_read_from_the_critic.pytestmark]  # type: ignore[attr-defined]
    assert [name for name, _ in parameters] == list(CriticTraits._fields)


def test_invalid_feedback_fails_alone() -> None:
    outside, inside = collect_feedback(FixedCritic([blame(0, 5), blame(0, 5)]), EXAMPLES)
    assert outside.status == "failed"
    assert outside.error == "invalid: feedback.spans[0].end is 5 but the completion has 4 characters"
    assert inside == blame(0, 5)


@pytest.mark.parametrize("count", [1, 3])
def test_there_is_one_feedback_per_example(count: int) -> None:
    failed = collect_feedback(FixedCritic([blame(0, 1)] * count), EXAMPLES)
    said = f"the critic FixedCritic returned {count} feedbacks for 2 examples; it must return one each"
    assert [(one.status, one.error) for one in failed] == [("failed", said)] * 2


@pytest.mark.parametrize("value", [None, "ab", b"ab", 3, {"a": 1, "b": 2}, {1, 2}, object(), iter([])])
def test_the_feedback_is_a_list(value: Any) -> None:
    critic = FixedCritic([])
    critic.feedback = value
    said = f"the critic FixedCritic returned a {type(value).__name__} instead of a list of Feedback"
    for failed in (collect_feedback(critic, EXAMPLES), asyncio.run(acollect_feedback(_to_async(critic), EXAMPLES))):
        assert [(one.status, (one.error or "").replace("AsyncCritic", "FixedCritic")) for one in failed] == [
            ("failed", said)
        ] * 2


def _to_async(critic: FixedCritic) -> AsyncCritic:
    result = AsyncCritic([])
    result.feedback = critic.feedback
    return result


class Raising:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        raise self.error

    async def acritique(self, examples: Sequence[Example]) -> list[Feedback]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no\nbudget"), "ValueError: no budget"),
        (KeyError("tests"), "KeyError: 'tests'"),
        (RecursionError(), "RecursionError"),
        (MemoryError("full \ud800"), "MemoryError: full ?"),
    ],
)
def test_a_critic_that_raises_fails_its_batch_with_a_sentence(error: Exception, said: str) -> None:
    critic = Raising(error)
    for failed in (collect_feedback(critic, EXAMPLES), asyncio.run(acollect_feedback(critic, EXAMPLES))):
        assert [one.status for one in failed] == ["failed", "failed"]
        sentence = str(failed[0].error)
        assert sentence.startswith(f"the critic Raising raised {said} (test_base.py, line ")
        assert failed[0].critic == "Raising"


@pytest.mark.parametrize("error", [UserError("no budget left"), KeyboardInterrupt(), SystemExit(3)])
def test_what_is_meant_to_end_a_run_ends_it(error: BaseException) -> None:
    with pytest.raises(type(error)):
        collect_feedback(Raising(error), EXAMPLES)


def test_asynchronous_feedback_is_validated_too() -> None:
    outside, inside = asyncio.run(acollect_feedback(AsyncCritic([blame(0, 5), blame(0, 5)]), EXAMPLES))
    assert (outside.status, inside.status) == ("failed", "ok")
    (failed, _) = asyncio.run(acollect_feedback(AsyncCritic([blame(0, 1)]), EXAMPLES))
    assert "AsyncCritic returned 1 feedbacks for 2 examples" in str(failed.error)


def assigned(**values: Any) -> Feedback:
    """Feedback that was valid when it was constructed."""
    feedback = Feedback(critic="fixed", critique="Bad.")
    for name, value in values.items():
        setattr(feedback, name, value)
    return feedback


@pytest.mark.parametrize(
    ("feedback", "error"),
    [
        (blame(0, 5), "feedback.spans[0].end is 5 but the completion has 4 characters"),
        (Feedback(critic="fixed", scores=[(0, 9, 0.5)]), "feedback.scores[0].end is 9"),
        (assigned(spans=[Span.model_construct(start=2, end=1, label="poor")]), "end is 1 but start is 2"),
        (assigned(spans=[Span.model_construct(start=0, end=1, label="bad")]), "feedback.spans[0].label"),
        (assigned(spans=[Span(start=0, end=1, label="poor", phrase=(0, 9))]), "spans[0].phrase.end is 9"),
        (assigned(omissions=[Omission(text="x", phrase=(3, 9))]), "omissions[0].phrase.end is 9"),
        (assigned(spans=3), "feedback.spans"),
        (assigned(score=math.nan), "feedback.score"),
        (assigned(score=math.inf), "feedback.score"),
        (assigned(score=1e39), "feedback.score"),
        (assigned(scores=[(0, 1, math.nan)]), "feedback.scores[0]"),
        (assigned(status="failed"), "error is empty"),
        (assigned(critique="half a smile \ud83d"), "unpaired surrogate"),
        (assigned(raw="\ud83d", score=math.nan), "feedback.score"),
    ],
)
def test_invalid_feedback_becomes_a_failure_that_names_the_field(feedback: Feedback, error: str) -> None:
    checked = validate_feedback(feedback, EXAMPLES[0])
    assert (checked.status, checked.critic, checked.spans, checked.score) == ("failed", "fixed", [], None)
    assert str(checked.error).startswith("invalid: ")
    assert error in str(checked.error)
    assert checked.model_dump_json()


@pytest.mark.parametrize("value", [{"critic": "fixed", "score": 1.0}, None, "Bad."])
def test_anything_but_feedback_is_a_failure_of_the_critic(value: Any) -> None:
    first, second = collect_feedback(FixedCritic([value, blame(0, 1)]), EXAMPLES)
    assert (first.critic, first.status) == ("FixedCritic", "failed")
    assert first.error == f"invalid: a {type(value).__name__} instead of Feedback"
    assert second.status == "ok"


def test_feedback_without_a_critic_is_reported_under_the_name_of_the_class() -> None:
    (checked,) = collect_feedback(FixedCritic([Feedback.model_construct()]), EXAMPLES[:1])
    assert (checked.critic, checked.status) == ("FixedCritic", "failed")


def test_validation_completes_spans_that_were_never_validated() -> None:
    feedback = Feedback.model_construct(critic="fixed", spans=[{"start": 0, "end": 1, "label": "poor"}])
    assert validate_feedback(feedback, EXAMPLES[0]).spans == [Span(start=0, end=1, label="poor", critic="fixed")]


def test_a_failure_stays_as_it_is_and_so_does_a_completion_with_a_surrogate() -> None:
    example = Example(id="c", prompt="p", completion="\ud83d!")
    failure = Feedback.failure("fixed", "no network", raw="{")
    assert validate_feedback(failure, example) == failure
    assert validate_feedback(blame(1, 2), example) == blame(1, 2)


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@pytest.mark.parametrize(
    "fields",
    [
        {"spans": [Span.model_construct(start=0, end=1, label="bad", severity=1.0)]},
        {"spans": [Span.model_construct(start=0, end=1, label="poor", severity=math.nan)]},
        {"spans": [Span.model_construct(start=math.nan, end=1, label="poor")]},
        {"spans": [None]},
        {"spans": object()},
        {"omissions": [Omission.model_construct(text="x", severity=-3)]},
        {"scores": [(0, 1)]},
        {"scores": {"a": 1}},
        {"score": "high"},
        {"score": object()},
        {"status": "great"},
        {"critique": b"\xff"},
        {"critique": Unprintable()},
        {"critic": None},
        {"critic": Unprintable()},
        {"error": 3, "status": "failed"},
        {"unmatched": [3]},
    ],
    ids=range(17),
)
def test_whatever_is_assigned_afterwards_is_validated(fields: dict[str, Any]) -> None:
    feedback = Feedback(critic="fixed", critique="Bad.")
    vars(feedback).update(fields)
    checked, fine = collect_feedback(FixedCritic([feedback, blame(0, 1)]), EXAMPLES)
    assert (checked.status, fine.status) == ("failed", "ok")
    assert str(checked.error).startswith("invalid: ")
    assert Feedback.model_validate_json(checked.model_dump_json()) == checked


class Unreadable(Feedback):
    def model_dump(self, **options: Any) -> dict[str, Any]:
        raise ValueError("no fields")


def test_feedback_that_cannot_be_read_is_reported_with_the_exception() -> None:
    checked = validate_feedback(Unreadable(critic="fixed", raw="{"), EXAMPLES[0], "class")
    assert (checked.critic, checked.status, checked.raw) == ("class", "failed", None)
    assert str(checked.error).startswith("invalid: ValueError: no fields (test_base.py, line ")


def test_the_name_raw_reply_and_reason_of_invalid_feedback() -> None:
    assert validate_feedback({}, EXAMPLES[0]).critic == "unknown"
    half = "half a smile \ud83d"
    checked = validate_feedback(assigned(critique=half, raw="reply"), EXAMPLES[0])
    assert (checked.error, checked.raw) == ("invalid: text with an unpaired surrogate", "reply")
    replaced = validate_feedback(assigned(critic=half, raw=half, score=math.nan), EXAMPLES[0])
    assert (replaced.critic, replaced.raw) == ("half a smile ?", "half a smile ?")
    for name in ("", 3, None):
        unnamed = validate_feedback(assigned(critic=name, raw=3, score=math.nan), EXAMPLES[0], "class")
        assert (unnamed.critic, unnamed.raw) == ("class", None)


class Echo:
    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [Feedback(critic="echo", critique=example.completion) for example in examples]

    async def acritique(self, examples: Sequence[Example]) -> list[Feedback]:
        return self.critique(examples)


def test_the_critic_sees_the_examples() -> None:
    for said in (collect_feedback(Echo(), EXAMPLES), asyncio.run(acollect_feedback(Echo(), EXAMPLES))):
        assert [one.critique for one in said] == ["four", "five!"]


def test_an_example_that_has_feedback_is_critiqued_anew() -> None:
    example = EXAMPLES[0].model_copy(update={"feedback": Feedback(critic="other", critique="Old.")})
    assert [one.critique for one in collect_feedback(Echo(), [example])] == ["four"]
