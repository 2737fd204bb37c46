"""The check of a critic: the scores of degenerate answers against those of honest ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from text2grad.critics.base import Critic
from text2grad.critics.check.catalogue import CATALOGUE, DegenerateAnswer, degenerate_answers
from text2grad.critics.check.kinds import Kind
from text2grad.critics.check.scoring import (
    TOLERANCE,
    ScoredAnswer,
    score_answers,
    score_problems,
    score_warnings,
    unstable_answers,
)
from text2grad.errors import UserError
from text2grad.schema import Example

Progress = Callable[[int, int], None]  # answers scored so far, answers in all


@dataclass(frozen=True)
class KindResult:
    """The scores of one kind of degenerate answers; critiques that failed do not count.

    mean: over all answers of the kind; None where every critique failed. limit: the mean score of honest answers to the
    same examples, which it must not exceed. ahead: the share of the answers that score above the honest one to the same
    example. furthest: the answer that is furthest ahead, None where none is.
    """

    kind: Kind
    answers: int
    mean: float | None
    limit: float
    ahead: float
    furthest: ScoredAnswer | None

    @property
    def beats_honest(self) -> bool:
        """Whether a policy would gain by giving this kind of answer."""
        return self.mean is not None and self.mean > self.limit + TOLERANCE


@dataclass(frozen=True)
class CheckResult:
    """What the check of a critic found.

    attempts, references: mean score of the given completions and of the references; None where there are none.
    problems: reasons not to train with this critic. warnings: what is worth knowing.
    """

    examples: int
    attempts: float | None
    references: float | None
    kinds: list[KindResult]
    problems: list[str]
    warnings: list[str]

    @property
    def ok(self) -> bool:
        """Whether honest answers win and the scores can be learned from."""
        return not self.problems


class _Honest(NamedTuple):
    """The honest answers to one example: the given completion and the first reference, where there are any."""

    attempt: ScoredAnswer | None
    reference: ScoredAnswer | None

    @property
    def score(self) -> float | None:
        """The score of the attempt, else of the reference."""
        own = self.attempt or self.reference
        return own.score if own else None


def check_critic(
    critic: Critic, examples: Sequence[Example], on_progress: Progress = lambda done, total: None
) -> CheckResult:
    """Score the completions and references of the examples, and degenerate answers to the same prompts.

    Completions are honest attempts, as an untrained model makes them; examples of one prompt may have several. A kind
    of degenerate answers is a problem if its mean score is above that of the attempts or that of the references to the
    same examples. Kinds that spoil an honest attempt (padding, repetition) are compared with that attempt alone.
    """
    attempts = {i: e.completion for i, e in enumerate(examples) if e.completion.strip()}
    references = {i: reference for i, e in enumerate(examples) if (reference := first_reference(e)) is not None}
    if not attempts and not references:
        raise UserError(
            "no example has a completion or a reference, so there is no honest answer to compare with; add a "
            "`reference` to the prompts, or give completions of the untrained model with --answers FILE, as "
            "`text2grad generate` writes them"
        )
    degenerate = [
        (i, answer)
        for i, example in enumerate(examples)
        for answer in degenerate_answers(example, attempts.get(i, references.get(i)))
    ]
    answers = [
        *(_answered(examples[i], text) for i, text in attempts.items()),
        *(_answered(examples[i], text) for i, text in references.items()),
        *(answer.example for _, answer in degenerate),
    ]
    scored = _score(critic, answers, on_progress)
    of_attempts = dict(zip(attempts, scored, strict=False))
    of_references = dict(zip(references, scored[len(attempts) :], strict=False))
    honest = [_Honest(of_attempts.get(i), of_references.get(i)) for i in range(len(examples))]
    kinds = _kind_results(degenerate, scored[len(attempts) + len(references) :], honest)
    means = _mean(of_attempts.values()), _mean(of_references.values())
    problems = [
        *(score_problems(scored) or _no_honest_score(means)),
        *_stability_problems(critic, list((of_attempts or of_references).values())),
        *(_describe_winner(result) for result in kinds if result.beats_honest),
    ]
    return CheckResult(
        len(examples), *means, kinds, problems, [*score_warnings(scored), *_honest_warnings(bool(attempts), *means)]
    )


def first_reference(example: Example) -> str | None:
    """Return the reference, the first one of several."""
    reference = example.reference
    return reference if isinstance(reference, str) else next(iter(reference or []), None)


def _answered(example: Example, text: str) -> Example:
    return example.model_copy(update={"completion": text, "feedback": None})


def _score(critic: Critic, answers: Sequence[Example], on_progress: Progress) -> list[ScoredAnswer]:
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        on_progress(done, len(answers))

    return score_answers(critic, answers, advance)


def _kind_results(
    degenerate: Sequence[tuple[int, DegenerateAnswer]], scored: Sequence[ScoredAnswer], honest: Sequence[_Honest]
) -> list[KindResult]:
    results = []
    for kind in CATALOGUE:
        pairs = [(s, honest[i]) for (i, answer), s in zip(degenerate, scored, strict=True) if answer.kind is kind]
        limits = [_mean(own.attempt for _, own in pairs), _mean(own.reference for _, own in pairs)]
        if kind.spoils_honest:
            limits = limits[:1] if limits[0] is not None else limits
        known = [limit for limit in limits if limit is not None]
        if pairs and known:
            results.append(_kind_result(kind, pairs, min(known)))
    return results


def _kind_result(kind: Kind, pairs: Sequence[tuple[ScoredAnswer, _Honest]], limit: float) -> KindResult:
    leads = [
        (answer.score - own.score, answer)
        for answer, own in pairs
        if answer.score is not None and own.score is not None
    ]
    lead, furthest = max(leads, key=lambda pair: pair[0], default=(0.0, None))
    return KindResult(
        kind=kind,
        answers=len(pairs),
        mean=_mean(answer for answer, _ in pairs),
        limit=limit,
        ahead=fmean(lead > TOLERANCE for lead, _ in leads) if leads else 0.0,
        furthest=furthest if lead > TOLERANCE else None,
    )


def _mean(answers: Iterable[ScoredAnswer | None]) -> float | None:
    scores = [answer.score for answer in answers if answer is not None and answer.score is not None]
    return fmean(scores) if scores else None


def _describe_winner(result: KindResult) -> str:
    against = "the honest answers that it spoils" if result.kind.spoils_honest else "honest answers"
    return (
        f'"{result.kind.name}" ({result.kind.description}) scores {result.mean:.3f} on average, {against} '
        f"{result.limit:.3f}: a policy would learn it."
    )


def _stability_problems(critic: Critic, honest: Sequence[ScoredAnswer]) -> list[str]:
    changed, repeated = unstable_answers(critic, honest)
    if not changed:
        return []
    return [
        f"{changed} of {repeated} answers got another score when they were scored again in another order: rewards "
        f"would depend on the batch or on chance."
    ]


def _no_honest_score(means: Sequence[float | None]) -> list[str]:
    if all(mean is None for mean in means):
        return ["Every critique of an honest answer failed: there is nothing to compare with."]
    return []


def _honest_warnings(has_attempts: bool, attempts: float | None, references: float | None) -> list[str]:
    if not has_attempts:
        return [
            "There are no completions to compare with, only references; completions of the untrained model make a "
            "stricter check."
        ]
    if attempts is not None and references is not None and references < attempts - TOLERANCE:
        return [
            f"References score {references:.3f} on average, the given completions {attempts:.3f}: the critic disagrees "
            f"with whoever wrote the references."
        ]
    return []
