"""Settings of a span reward model that its weights depend on; they are saved beside them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from text2grad.settings import Settings

Reading = Literal["once", "twice", "around"]
Order = Literal["critique_first", "spans_first", "spans_only"]


class Limits(Settings):
    """The most that each part of a written judgement may hold; lengths count characters.

    They are part of the grammar, so that a judgement always closes, and targets are made to fit them.
    """

    reasoning: NonNegativeInt = Field(0, description="of the reasoning before the critique; 0 leaves it out")
    critique: PositiveInt = 300
    quote: Annotated[int, Field(ge=40)] = Field(200, description="of one quotation, as JSON escapes it")
    spans: PositiveInt = Field(4, description="quotations of each polarity")
    omissions: NonNegativeInt = 2
    omission: PositiveInt = 120


class Layout(Settings):
    """What the model reads, and in which order it writes.

    A causal model has not seen the rest of the answer when it reads one of its words. reading: `once` accepts that:
    source, answer; the head reads there. `twice` repeats the answer, and the head reads the repetition. `around` puts
    the answer before the source as well: answer, source, answer, so that the source is read with the answer in mind.
    """

    reading: Reading = "twice"
    order: Order = "critique_first"
    limits: Limits = Limits()
    max_length: PositiveInt = Field(1024, description="tokens read; what is too long loses the middle of the source")


class Rewards(Settings):
    """How probabilities become feedback.

    path: `head` takes one pass and no words; `generative` writes the critique and quotes.
    rewards: `graded` gives every word that stands out its expectation P(good) - P(poor); `spans` gives only the words
        for which good or poor is the most probable class, neighbours joined, with that probability as severity.
    centered: graded rewards are differences to a token of which nothing is known, so that an average word is worth 0.
        Where people blame more than they praise every word costs something otherwise, and the best answer is silence.
    floor: a reward nearer to 0 than this is 0: neutral is zero.
    """

    path: Literal["head", "generative"] = "head"
    rewards: Literal["graded", "spans"] = "graded"
    centered: bool = True
    floor: Annotated[float, Field(ge=0, le=1)] = 0.1
