"""From sampled ids to token rewards: hand-computed values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from conftest import byte_level_tokenizer
from support import Broken
from transformers import PreTrainedTokenizerFast

from text2grad import critique_to_rewards, span_advantages
from text2grad.errors import UserError
from text2grad.integrations.critique_rewards import CritiqueRewards
from text2grad.rewards.credit import Credit
from text2grad.schema import Example, Feedback, Omission, Span

NAMES = ("a", "b", "c")


class Scripted:
    """Answers by the id of the prompt, and keeps what it was asked."""

    def __init__(self, **answers: Feedback) -> None:
        self.answers = answers
        self.asked: list[Example] = []

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        self.asked = list(examples)
        return [self.answers[example.id] for example in examples]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return byte_level_tokenizer()


def bytes_of(text: str, tokenizer: PreTrainedTokenizerFast, ended: bool = True) -> list[int]:
    """One token per letter, which the tokenizer itself would have merged."""
    ids = [int(tokenizer.convert_tokens_to_ids(letter)) for letter in text]
    return [*ids, tokenizer.eos_token_id] if ended else ids


def ask(
    critic: object, completions: Sequence[list[int]], tokenizer: PreTrainedTokenizerFast, **more: object
) -> CritiqueRewards:
    examples = [Example(id=name, prompt="p") for name in NAMES[: len(completions)]]
    return critique_to_rewards(critic, examples, completions, tokenizer, **more)  # type: ignore[arg-type]


def test_rewards_lie_on_the_sampled_tokens(tokenizer: PreTrainedTokenizerFast) -> None:
    critic = Scripted(
        a=Feedback(critic="c", spans=[Span(start=1, end=3, label="poor", severity=0.5)]),
        b=Feedback(critic="c", spans=[Span(start=0, end=1, label="good")], score=0.25),
        c=Feedback.failure("c", "no answer"),
    )
    completions = [
        bytes_of("fox.", tokenizer),
        bytes_of("the", tokenizer, ended=False),
        bytes_of("dog", tokenizer),
    ]
    found = ask(critic, completions, tokenizer)
    assert [example.completion for example in critic.asked] == ["fox.", "the", "dog"]
    assert found.truncated == [False, True, False]
    assert [one.rewards.tolist() for one in found.tokens] == [[0, -0.25, -0.25, 0, 0], [1, 0, 0], [0, 0, 0, 0]]
    assert [one.outcome for one in found.tokens] == [None, -1.75, None]  # a score of 0.25 less 1 for the cut, less 1
    assert [one.total for one in found.tokens] == [-0.5, -0.75, None]
    assert [one.status for one in found.feedback] == ["ok", "ok", "failed"]
    rewards, mask, outcomes = found.tensors()
    assert rewards.tolist() == [[0, -0.25, -0.25, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]]
    assert [math.isnan(x) for x in outcomes.tolist()] == [True, False, True]


def test_the_tensors_are_those_of_the_estimators(tokenizer: PreTrainedTokenizerFast) -> None:
    critic = Scripted(
        a=Feedback(critic="c", spans=[Span(start=1, end=2, label="poor")]), b=Feedback.failure("c", "no answer")
    )
    rewards, mask, outcomes = ask(critic, [bytes_of(text, tokenizer) for text in ("ox", "fox")], tokenizer).tensors()
    advantages, _ = span_advantages(rewards, mask, "reinforce", gamma=0.5, outcomes=outcomes)
    assert advantages.tolist() == [[-0.5, -1, 0, 0], [0, 0, 0, 0]]


def test_who_is_truncated_can_be_said(tokenizer: PreTrainedTokenizerFast) -> None:
    critic = Scripted(a=Feedback(critic="c", omissions=[Omission(text="more", severity=0.5)]))
    stopped = bytes_of("ox", tokenizer, ended=False)  # an engine that leaves the end token out
    assert ask(critic, [stopped], tokenizer).tokens[0].rewards.tolist() == [0, -1.5]
    assert ask(critic, [stopped], tokenizer, truncated=[False]).tokens[0].rewards.tolist() == [0, -0.5]


def test_credit_and_random_numbers_are_passed_on(tokenizer: PreTrainedTokenizerFast) -> None:
    critic = Scripted(a=Feedback(critic="c", spans=[Span(start=0, end=2, label="poor")]))
    completions = [bytes_of("fox", tokenizer)]
    uniform = ask(critic, completions, tokenizer, credit=Credit(mode="uniform"))
    assert uniform.tokens[0].rewards.tolist() == [-1, -1, 0, 0]
    shuffled = ask(critic, completions, tokenizer, credit=Credit(mode="shuffled"), rng=np.random.default_rng(0))
    assert sorted(shuffled.tokens[0].rewards.tolist()) == [-0.5, -0.5, 0, 0]


def test_an_empty_completion_is_masked(tokenizer: PreTrainedTokenizerFast) -> None:
    critic = Scripted(a=Feedback(critic="c"), b=Feedback(critic="c"))
    found = ask(critic, [[], bytes_of("o", tokenizer)], tokenizer)
    assert found.truncated == [True, False]
    assert found.tensors().mask.tolist() == [[0, 0], [1, 1]]


def test_feedback_is_validated(tokenizer: PreTrainedTokenizerFast) -> None:
    outside = Scripted(a=Feedback(critic="c", spans=[Span(start=0, end=9, label="poor")]))
    found = ask(outside, [bytes_of("ox", tokenizer)], tokenizer)
    assert "feedback.spans[0].end is 9 but the completion has 2 characters" in str(found.feedback[0].error)
    assert found.tensors().mask.tolist() == [[0, 0, 0]]
    (failed,) = ask(Broken(), [bytes_of("ox", tokenizer)], tokenizer).feedback
    assert str(failed.error).startswith("the critic Broken raised LookupError: no such style")


def test_a_sentence_for_the_user_is_passed_on(tokenizer: PreTrainedTokenizerFast) -> None:
    class NoKey:
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            raise UserError("set OPENAI_API_KEY")

    with pytest.raises(UserError, match="set OPENAI_API_KEY"):
        ask(NoKey(), [bytes_of("ox", tokenizer)], tokenizer)


def test_every_completion_needs_its_prompt(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(ValueError, match="zip"):
        critique_to_rewards(Scripted(), [], [bytes_of("ox", tokenizer)], tokenizer)
