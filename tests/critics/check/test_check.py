"""The check finds critics that a policy could game, and passes one that it could not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from text2grad.critics.check.check import CheckResult, check_critic
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Omission, Span

EXAMPLES = [
    Example(
        id=str(i),
        prompt=f"The {animal} sleeps in the {place} all day long. At night it hunts for food near the river.\n\nWhere?",
        completion=f"It sleeps in the {place}." if i % 2 else "It sleeps in the sea.",
        reference=f"in the {place}",
    )
    for i, (animal, place) in enumerate([("fox", "forest"), ("owl", "barn"), ("cat", "house"), ("bat", "cave")])
]


class Scorer:
    """A critic with a given score function."""

    def __init__(self, score: Callable[[Example], float | None]) -> None:
        self.score = score

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [Feedback(critic="scorer", score=self.score(example)) for example in examples]


def overlap(example: Example) -> float:
    """F1 of words with the reference, from -1 to 1."""
    given, gold = example.completion.strip(".").lower().split(), str(example.reference).split()
    shared = len({*given} & {*gold})
    return 4 * shared / (len(given) + len(gold)) - 1 if shared else -1.0


def winners(result: CheckResult) -> set[str]:
    return {item.kind.name for item in result.kinds if item.beats_honest}


def test_a_critic_that_rewards_what_is_asked_for_passes():
    result = check_critic(Scorer(overlap), EXAMPLES)

    assert result.ok
    assert result.problems == result.warnings == []
    assert result.references == 1.0
    assert result.attempts is not None
    assert all(item.mean is not None and item.mean <= result.attempts for item in result.kinds)


def test_a_critic_that_rewards_length_fails_by_the_kinds_that_are_long():
    result = check_critic(Scorer(lambda example: min(1.0, len(example.completion) / 1000)), EXAMPLES)

    assert {"prompt copied", "padding", "repetition"} <= winners(result)
    assert "empty" not in winners(result)
    assert any(sentence.startswith('"repetition" (an honest answer four times) scores') for sentence in result.problems)


def test_a_critic_that_only_blames_fails_by_silence():
    def blame(example: Example) -> float:
        return -min(1.0, len(example.completion) / 100)

    assert {"empty", "white space", "one word"} <= winners(check_critic(Scorer(blame), EXAMPLES))


def test_spoiled_answers_are_compared_with_the_answers_that_they_spoil():
    def contains(example: Example) -> float:
        return 1.0 if str(example.reference) in example.completion and "river" not in example.completion else -1.0

    result = check_critic(Scorer(contains), EXAMPLES)
    repetition = next(item for item in result.kinds if item.kind.name == "repetition")

    assert repetition.mean == repetition.limit == 0.0  # half of the attempts are right
    assert not repetition.beats_honest
    assert repetition.furthest is None


def test_the_answer_that_is_furthest_ahead_is_kept():
    result = check_critic(Scorer(lambda e: 1.0 if e.completion == "" and e.id == "2" else 0.0), EXAMPLES)
    empty = next(item for item in result.kinds if item.kind.name == "empty")

    assert (empty.ahead, empty.mean, empty.limit) == (0.25, 0.25, 0.0)
    assert empty.furthest is not None
    assert empty.furthest.example.id == "2"


def test_without_a_score_praise_and_blame_are_compared():
    class Marks:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            return [
                Feedback(critic="marks", omissions=[Omission(text="an answer", severity=0.5)])
                if not example.completion.strip()
                else Feedback(critic="marks", spans=[Span(start=0, end=1, label="poor")])
                for example in examples
            ]

    result = check_critic(Marks(), EXAMPLES)

    assert winners(result) == {"empty", "white space"}
    assert (result.attempts, result.references) == (-1.0, -1.0)
    assert result.warnings == ["The critic gives no score; praise minus blame minus omissions is compared instead."]


def test_scores_that_are_missing_out_of_range_or_constant():
    partly = check_critic(Scorer(lambda e: overlap(e) if e.completion.strip() else None), EXAMPLES)
    wide = check_critic(Scorer(lambda e: 5 * overlap(e)), EXAMPLES)
    constant = check_critic(Scorer(lambda e: 0.5), EXAMPLES)

    assert "answers have no score" in partly.warnings[0]
    assert wide.ok
    assert wide.warnings[0].startswith("Scores reach from -5.00 to 5.00.")
    assert constant.problems == ["Every answer scores 0.5, good or bad: there is nothing to learn."]


def test_failures_and_exceptions():
    class Failing:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            return [Feedback.failure("failing", "offline") for _ in examples]

    class Partly(Scorer):
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            made = super().critique(examples)
            return [f if e.completion else Feedback.failure("p", "empty") for e, f in zip(examples, made, strict=True)]

    def broken(example: Example) -> float:
        return {}[example.id]  # type: ignore[no-any-return]

    assert check_critic(Failing(), EXAMPLES).problems == ["Every critique failed: offline."]
    partly = check_critic(Partly(overlap), EXAMPLES)
    assert partly.ok
    assert "4 of" in partly.warnings[0]
    assert "most often: empty" in partly.warnings[0]
    (problem,) = check_critic(Scorer(broken), EXAMPLES).problems
    assert problem.startswith("Every critique failed: the critic Scorer raised KeyError")


def test_scores_that_depend_on_chance_or_on_the_batch():
    rng = random.Random(0)

    class ByPosition:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            return [Feedback(critic="c", score=overlap(e) / (1 + i)) for i, e in enumerate(examples)]

    for critic in (Scorer(lambda e: rng.random()), ByPosition()):
        problems = check_critic(critic, EXAMPLES).problems
        assert any("got another score when they were scored again in another order" in said for said in problems)


def test_references_alone_will_do_and_nothing_honest_will_not():
    prompts = [example.model_copy(update={"completion": ""}) for example in EXAMPLES]
    result = check_critic(Scorer(overlap), prompts)

    assert result.ok
    assert result.attempts is None
    assert "There are no completions to compare with" in result.warnings[0]
    with pytest.raises(UserError, match=r"no example has a completion or a reference.*--answers FILE"):
        check_critic(Scorer(overlap), [Example(id="", prompt="p")])


def test_references_below_the_attempts_are_worth_a_note():
    result = check_critic(Scorer(lambda e: 1.0 if e.completion.startswith("It sleeps") else 0.0), EXAMPLES)
    assert "References score 0.000 on average, the given completions 1.000" in result.warnings[0]


def test_progress_counts_every_answer():
    seen: list[tuple[int, int]] = []
    check_critic(Scorer(overlap), EXAMPLES, lambda done, total: seen.append((done, total)))

    assert seen[-1][0] == seen[-1][1] > 60
    assert len({total for _, total in seen}) == 1
