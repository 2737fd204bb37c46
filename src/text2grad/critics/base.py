"""What a critic is, everything optional that a critic may have, and the one place where its feedback is validated."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError

from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, describe


class Critic(Protocol):
    """Anything that comments on completions: a person, a linter, a test run, a model.

    It returns one Feedback per example, in order. What it cannot judge it returns as `Feedback.failure(...)`, never as
    an exception, which would fail the whole batch. `CriticTraits` lists the optional attributes.
    """

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """One Feedback per example, in the order of the examples."""
        ...


class Usage(Protocol):
    """Tokens and cost of a critic so far."""

    tokens_in: int
    tokens_out: int

    @property
    def cost(self) -> float:
        """In the user's currency."""
        ...


class CriticTraits(NamedTuple):
    """The optional attributes of a critic, with the value that stands for a missing one.

    acritique: as `critique`, for critics that wait on a network; called with one example at a time.
    aclose: closes connections after the last `acritique`.
    concurrency: how many `acritique` calls are worth having in flight.
    batch_size: examples per call of `critique`.
    fingerprint: a string that changes whenever the same example could get other feedback. Without it the class, its
        source code and its plain attributes are hashed.
    ledger: tokens and cost so far, shown by `annotate`.
    reads_feedback: whether the critic looks at the feedback that an example already has.
    """

    acritique: Callable[[Sequence[Example]], Awaitable[list[Feedback]]] | None = None
    aclose: Callable[[], Awaitable[None]] | None = None
    concurrency: int = 16
    batch_size: int = 32
    fingerprint: Callable[[], str] | None = None
    ledger: Usage | None = None
    reads_feedback: bool = False


def critic_traits(critic: Critic) -> CriticTraits:
    """The optional attributes of this critic."""
    found: dict[str, Any] = {name: getattr(critic, name) for name in CriticTraits._fields if hasattr(critic, name)}
    return CriticTraits(**found)


def collect_feedback(critic: Critic, examples: Sequence[Example]) -> list[Feedback]:
    """One validated Feedback per example."""
    return validate_batch(critic.critique(examples), examples, critic)


async def acollect_feedback(critic: Critic, examples: Sequence[Example]) -> list[Feedback]:
    """As `collect_feedback`, from a critic with `acritique`."""
    acritique = critic_traits(critic).acritique
    assert acritique is not None
    return validate_batch(await acritique(examples), examples, critic)


def validate_batch(feedback: Sequence[Feedback], examples: Sequence[Example], critic: Critic) -> list[Feedback]:
    """Validated feedback; raises UserError where there is not one per example."""
    if len(feedback) != len(examples):
        name = type(critic).__name__
        raise UserError(
            f"{name} returned {len(feedback)} feedbacks for {len(examples)} examples; it must return one each"
        )
    return [validate_feedback(one, example) for one, example in zip(feedback, examples, strict=True)]


def validate_feedback(feedback: Feedback, example: Example) -> Feedback:
    """The feedback if it fits the example and can be written to a file, else a failed one that says why.

    Spans must lie within the completion, phrases within the critique, and no text may hold half a surrogate pair.
    """
    try:
        checked = Example.model_validate(
            {**example.model_dump(exclude={"feedback"}), "feedback": feedback.model_dump()}
        )
        json.dumps(checked.model_dump(mode="json")["feedback"], ensure_ascii=False).encode()
    except ValidationError as error:
        return Feedback.failure(feedback.critic, f"invalid: {describe(error)}", raw=_encodable(feedback.raw))
    except UnicodeEncodeError:
        return Feedback.failure(feedback.critic, "invalid: half a character")
    return feedback


def _encodable(text: str | None) -> str | None:
    return text.encode(errors="replace").decode() if text is not None else None
