"""Held-out prompts, answered and judged while the policy learns.

The answers are drawn from a random stream of their own, the same at every evaluation: training does not notice, and two
evaluations differ by what was learned, not by luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from text2grad.critics.base import collect_feedback
from text2grad.errors import UserError
from text2grad.evaluation.metrics import critic_score, rouge_l
from text2grad.schema import Example
from text2grad.trainer.callbacks import Metrics
from text2grad.trainer.monitor import HELDOUT

if TYPE_CHECKING:
    from text2grad.trainer.config import PolicySettings
    from text2grad.trainer.trainer import Text2GradTrainer


def require_heldout(eval_steps: int | None, prompts: int) -> None:
    """Refuse evaluations that would have nothing to answer."""
    if eval_steps is not None and not prompts:
        raise UserError(
            "eval_steps is set but there are no held-out prompts: name some as data.heldout, or give the trainer an "
            "eval_dataset"
        )


def evaluation_due(step: int, args: PolicySettings) -> bool:
    """Every `eval_steps` steps and after the last one, since the last one may be the best."""
    return args.eval_steps is not None and (step % args.eval_steps == 0 or step == args.max_steps)


def fixed_subset(examples: Sequence[Example], limit: int | None) -> list[Example]:
    """At most `limit` of the examples at even distances, so that data in some order are all met."""
    count = len(examples) if limit is None else min(limit, len(examples))
    return [examples[i * len(examples) // count] for i in range(count)]


def judged(trainer: Text2GradTrainer, examples: Sequence[Example], reference: bool = False) -> list[Example]:
    """Answers at the evaluation temperature with the critic's feedback. reference: answer as the untrained model."""
    answered = trainer.answer(examples, trainer.args.answer_temperature, reference)
    feedback = trainer.processes.map(lambda part: collect_feedback(trainer.critic, part), answered)
    return [example.model_copy(update={"feedback": said}) for example, said in zip(answered, feedback, strict=True)]


def heldout_figures(answers: Sequence[Example]) -> Metrics:
    """Means over the answers whose critique did not fail, NaN where there is none; failures are counted.

    ROUGE-L is over those of them that have a reference, and left out where none has.
    """
    usable = [(a, a.feedback) for a in answers if a.feedback is not None and a.feedback.status == "ok"]
    overlaps = [rouge_l(answer.completion, answer.reference) for answer, _ in usable if answer.reference is not None]
    return {
        HELDOUT: _mean([critic_score(feedback) for _, feedback in usable]),
        **({"heldout_rouge_l": fmean(overlaps)} if overlaps else {}),
        "heldout_words": _mean([len(answer.completion.split()) for answer, _ in usable]),
        "heldout_samples": len(answers),
        "heldout_failed": len(answers) - len(usable),
    }


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan
