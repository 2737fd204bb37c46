"""The critic protocol, its optional attributes, and the validation of feedback."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from text2grad.critics.workers import critique_on_all_cores
from text2grad.errors import UserError, describe_exception
from text2grad.schema import Example, Feedback, describe


class Critic(Protocol):
    """Anything that comments on completions: a person, a linter, a test run, a model.

    An example that it cannot evaluate gets `Feedback.failure(...)`: an exception fails the whole batch, and a
    UserError, which is a sentence for the user, ends the run. `CriticTraits` lists the optional attributes.
    """

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order."""
        ...


NOT_A_CRITIC = "is not a class with a method critique(examples) -> list[Feedback]"


def check_critic(critic: object, name: str) -> None:
    """Raise UserError unless `critic` can be asked. name: what to call it in the message."""
    if isinstance(critic, type):
        raise UserError(f"{name} is a class; pass an instance of it: {critic.__name__}(...)")
    if not callable(getattr(critic, "critique", None)):
        raise UserError(f"{name} {NOT_A_CRITIC}")


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
    independent: whether feedback on an example depends on that example alone, and the critic can be pickled: large
        batches are then divided among the cores.
    """

    acritique: Callable[[Sequence[Example]], Awaitable[list[Feedback]]] | None = None
    aclose: Callable[[], Awaitable[None]] | None = None
    concurrency: int = 16
    batch_size: int = 32
    fingerprint: Callable[[], str] | None = None
    ledger: Usage | None = None
    reads_feedback: bool = False
    independent: bool = False


def critic_traits(critic: Critic) -> CriticTraits:
    """Return the optional attributes of this critic."""
    found: dict[str, Any] = {name: getattr(critic, name) for name in CriticTraits._fields if hasattr(critic, name)}
    return CriticTraits(**found)


def collect_feedback(critic: Critic, examples: Sequence[Example]) -> list[Feedback]:
    """Return one validated Feedback per example; all fail where the critic raises or returns something else."""
    try:
        independent = critic_traits(critic).independent
        feedback: Any = critique_on_all_cores(critic, examples) if independent else critic.critique(examples)
    except UserError:
        raise
    except Exception as error:
        return _fail_batch(f"raised {describe_exception(error)}", examples, critic)
    return validate_batch(feedback, examples, critic)


def collect_in_batches(
    critic: Critic, examples: Sequence[Example], on_progress: Callable[[int, int], object] = lambda done, total: None
) -> list[Feedback]:
    """As `collect_feedback`, in batches of the critic's size. on_progress: called with finished and all examples."""
    traits = critic_traits(critic)
    size = max(traits.batch_size, 4 * traits.concurrency)
    feedback: list[Feedback] = []
    while len(feedback) < len(examples):
        feedback += collect_feedback(critic, examples[len(feedback) :][:size])
        on_progress(len(feedback), len(examples))
    return feedback


async def acollect_feedback(critic: Critic, examples: Sequence[Example]) -> list[Feedback]:
    """As `collect_feedback`, from a critic with `acritique`."""
    acritique = critic_traits(critic).acritique
    assert acritique is not None
    try:
        feedback: Any = await acritique(examples)
    except UserError:
        raise
    except Exception as error:
        return _fail_batch(f"raised {describe_exception(error)}", examples, critic)
    return validate_batch(feedback, examples, critic)


def validate_batch(feedback: Any, examples: Sequence[Example], critic: Critic) -> list[Feedback]:
    """Validate what `critique` returned: one Feedback per example; all fail where it is something else."""
    if not isinstance(feedback, Sequence) or isinstance(feedback, str | bytes):
        return _fail_batch(f"returned a {type(feedback).__name__} instead of a list of Feedback", examples, critic)
    if len(feedback) != len(examples):
        problem = f"returned {len(feedback)} feedbacks for {len(examples)} examples; it must return one each"
        return _fail_batch(problem, examples, critic)
    name = type(critic).__name__
    return [validate_feedback(one, example, name) for one, example in zip(feedback, examples, strict=True)]


def _fail_batch(problem: str, examples: Sequence[Example], critic: Critic) -> list[Feedback]:
    name = type(critic).__name__
    return [Feedback.failure(name, _encodable(f"the critic {name} {problem}")) for _ in examples]


def validate_feedback(feedback: Any, example: Example, critic: str = "unknown") -> Feedback:
    """Return the feedback if it fits the example and can be written to a file, else a failed one with the reason.

    Spans and scores must be within the completion, phrases within the critique, numbers finite and in range, whatever
    was assigned after construction; text must be encodable. critic: the name to report where the feedback has none.
    """
    if not isinstance(feedback, Feedback):
        return Feedback.failure(critic, f"invalid: a {type(feedback).__name__} instead of Feedback")
    fields: dict[str, Any] = {}
    try:
        fields = feedback.model_dump(warnings=False)
        checked = Example.model_validate({**example.model_dump(exclude={"feedback"}), "feedback": fields}).feedback
        assert checked is not None
        checked.model_dump_json()
    except Exception as error:  # any: the fields may hold any object
        name, raw = (fields.get(key) for key in ("critic", "raw"))
        return Feedback.failure(
            _encodable(name) if isinstance(name, str) and name else critic,
            f"invalid: {_describe_invalid(error)}",
            _encodable(raw) if isinstance(raw, str) else None,
        )
    return checked


def _describe_invalid(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return _encodable(describe(error))
    if isinstance(error, PydanticSerializationError):
        return "text with an unpaired surrogate"
    return _encodable(describe_exception(error))


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()
