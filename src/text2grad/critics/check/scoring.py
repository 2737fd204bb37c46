"""Scores of answers, and faults of the scores as such: missing, constant, out of range, not reproducible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from text2grad.critics.base import Critic, collect_feedback, critic_traits
from text2grad.evaluation.metrics import critic_score
from text2grad.schema import Example, Feedback

TOLERANCE = 1e-6  # between two scores of the same answer
NUM_REPEATED = 16  # answers that are scored twice


class ScoredAnswer(NamedTuple):
    """An answer with its feedback."""

    example: Example
    feedback: Feedback

    @property
    def score(self) -> float | None:
        """The critic's score, else praise minus blame minus omissions; None where the critique failed."""
        return critic_score(self.feedback) if self.feedback.status == "ok" else None


def score_answers(
    critic: Critic, examples: Sequence[Example], on_progress: Callable[[int], None] = lambda count: None
) -> list[ScoredAnswer]:
    """Score the completions of the examples, in the critic's batches. on_progress: called with the size of each."""
    size = critic_traits(critic).batch_size
    scored: list[ScoredAnswer] = []
    for start in range(0, len(examples), size):
        batch = examples[start : start + size]
        feedback = collect_feedback(critic, batch)
        scored += map(ScoredAnswer, batch, feedback)
        on_progress(len(batch))
    return scored


def unstable_answers(critic: Critic, answers: Sequence[ScoredAnswer]) -> tuple[int, int]:
    """Score some answers again, in reverse order; return (those with another score or status, those scored again)."""
    chosen = list(answers[:: max(1, len(answers) // NUM_REPEATED)])[:NUM_REPEATED]
    again = score_answers(critic, [answer.example for answer in reversed(chosen)])
    return sum(map(_differ, chosen, reversed(again))), len(chosen)


def _differ(one: ScoredAnswer, other: ScoredAnswer) -> bool:
    if one.score is None or other.score is None:
        return one.score is not other.score
    return abs(one.score - other.score) > TOLERANCE


def score_problems(answers: Sequence[ScoredAnswer]) -> list[str]:
    """Return sentences about scores that no policy could learn from."""
    scores = [answer.score for answer in answers if answer.score is not None]
    if not scores:
        reason, _ = Counter(answer.feedback.error for answer in answers).most_common(1)[0]
        return [f"Every critique failed: {reason}."]
    if max(scores) - min(scores) <= TOLERANCE:
        return [f"Every answer scores {scores[0]:g}, good or bad: there is nothing to learn."]
    return []


def score_warnings(answers: Sequence[ScoredAnswer]) -> list[str]:
    """Return sentences about scores that a policy can learn from, though not as meant."""
    valid = [answer for answer in answers if answer.feedback.status == "ok"]
    without = [answer for answer in valid if answer.feedback.score is None]
    sentences = []
    if without and len(without) == len(valid):
        sentences.append("The critic gives no score; praise minus blame minus omissions is compared instead.")
    elif without:
        sentences.append(
            f"{len(without)} of {len(valid)} answers have no score; their praise minus blame minus omissions is "
            f"compared with the scores of the others. Give all of them a score, or none."
        )
    given = [answer.feedback.score for answer in valid if answer.feedback.score is not None]
    if given and (min(given) < -1 or max(given) > 1):
        sentences.append(
            f"Scores reach from {min(given):.2f} to {max(given):.2f}. Spans add up to 1 at most, so beyond [-1, 1] "
            f"they hardly matter: scale the score to [-1, 1]."
        )
    failed = [answer for answer in answers if answer.feedback.status == "failed"]
    if failed and valid:
        reason, _ = Counter(answer.feedback.error for answer in failed).most_common(1)[0]
        sentences.append(
            f"{len(failed)} of {len(answers)} critiques failed, most often: {reason}. Their answers are masked in "
            f"training, so a policy can hide there; give what is bad a low score instead."
        )
    return sentences
