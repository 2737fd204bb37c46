"""The critic protocol, its optional attributes, and the validation of feedback."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, describe


class Critic(Protocol):
    """Anything that comments on completions: a person, a linter, a test run, a model.

    An example that it cannot evaluate gets `Feedback.failure(...)`: an exception would fail the whole batch.
    `CriticTraits` lists the optional attributes.
    """

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order."""
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
    """The optional attributes of a critic and their defaults.

    acritique: `critique` as a coroutine, for network-bound critics; called with one example at a time.
    aclose: closes connections after the last `acritique`.
    concurrency: maximum number of concurrent `acritique` calls.
    batch_size: examples per call of `critique`.
    fingerprint: returns a string that changes whenever the same example could get other feedback. Default: a hash of
        the class, its source code and its plain attributes.
    ledger: tokens and cost so far, shown by `annotate`.
    reads_feedback: whether the critic uses the feedback that an example already has.
    """

    acritique: Callable[[Sequence[Example]], Awaitable[list[Feedback]]] | None = None
    aclose: Callable[[], Awaitable[None]] | None = None
    concurrency: int = 16
    batch_size: int = 32
    fingerprint: Callable[[], str] | None = None
    ledger: Usage | None = None
    reads_feedback: bool = False


def critic_traits(critic: Critic) -> CriticTraits:
    """Return the optional attributes of this critic."""
    found: dict[str, Any] = {name: getattr(critic, name) for name in CriticTraits._fields if hasattr(critic, name)}
    return CriticTraits(**found)


def collect_feedback(critic: Critic, examples: Sequence[Example]) -> list[Feedback]:
    """Return one validated Feedback per example."""
    return _validate_batch(critic.critique(examples), examples, critic)


async def acollect_feedback(critic: Critic, examples: Sequence[Example]) -> list[Feedback]:
    """As `collect_feedback`, from a critic with `acritique`."""
    acritique = critic_traits(critic).acritique
    assert acritique is not None
    return _validate_batch(await acritique(examples), examples, critic)


def _validate_batch(feedback: Sequence[Feedback], examples: Sequence[Example], critic: Critic) -> list[Feedback]:
    name = type(critic).__name__
    if not isinstance(feedback, Sequence):
        raise UserError(f"{name} returned a {type(feedback).__name__}; it must return a list of Feedback")
    if len(feedback) != len(examples):
        raise UserError(
            f"{name} returned {len(feedback)} feedbacks for {len(examples)} examples; it must return one each"
        )
    return [validate_feedback(one, example, name) for one, example in zip(feedback, examples, strict=True)]


def validate_feedback(feedback: Feedback, example: Example, critic: str = "unknown") -> Feedback:
    """Return the feedback if it fits the example and can be written to a file, else a failed one with the reason.

    Spans and scores must be within the completion, phrases within the critique, numbers finite and in range, whatever
    was assigned after construction; text must be encodable. critic: the name to report where the feedback has none.
    """
    if not isinstance(feedback, Feedback):
        return Feedback.failure(critic, f"invalid: a {type(feedback).__name__} instead of Feedback")
    fields = feedback.model_dump(warnings=False)
    name = _encodable(str(fields.get("critic") or critic))
    try:
        checked = Example.model_validate({**example.model_dump(exclude={"feedback"}), "feedback": fields}).feedback
        assert checked is not None
        checked.model_dump_json()
    except ValidationError as error:
        raw = _encodable(str(fields["raw"])) if fields.get("raw") is not None else None
        return Feedback.failure(name, f"invalid: {describe(error)}", raw)
    except PydanticSerializationError:
        return Feedback.failure(name, "invalid: text with an unpaired surrogate")
    return checked


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()
