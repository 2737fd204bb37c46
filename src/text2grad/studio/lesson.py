"""What a lesson did: token probabilities, answers, and prompts that should not change, before and after it."""

from __future__ import annotations

from text2grad.schema import Strict


class TokenRow(Strict):
    """A token: its text, its reward, and its probability before and after the lesson."""

    text: str
    reward: float
    before: float
    after: float


class CorrectionRow(Strict):
    """Words that should have been written. token: index of the token of the answer in whose place they start."""

    token: int
    tokens: list[TokenRow]


class TaughtAnswer(Strict):
    """An answer that was commented on, token by token, and the model's own greedy answer before and after."""

    id: str
    prompt: str
    completion: str
    tokens: list[TokenRow]
    corrections: list[CorrectionRow]
    answer_before: str
    answer_after: str


class Control(Strict):
    """A prompt that should not change: its greedy answer before and after.

    nats_per_token: KL divergence of the model after the lesson from the model before it, mean over the tokens of
    `answer_before`.
    """

    prompt: str
    answer_before: str
    answer_after: str
    nats_per_token: float


class Lesson(Strict):
    """The effect of some feedback on the model. refused_corrections: how many the tokenizer cannot spell."""

    id: str
    seconds: float
    answers: list[TaughtAnswer]
    refused_corrections: int
    controls: list[Control]
