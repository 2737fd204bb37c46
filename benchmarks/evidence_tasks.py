"""The tasks of `evidence.py`: prompts, critics, and a metric that the critic does not compute.

Held-out prompts are two halves: settings are chosen on `select`, results come from `report`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import evidence_code
import records_task

from text2grad.critics.base import Critic
from text2grad.critics.registry import make_critic
from text2grad.data import scitldr, xquad
from text2grad.evaluation.metrics import exact_match, rouge_l, sentence_bleu, token_f1
from text2grad.schema import Example, Span

NUM_RECORDS = 2_000
HELDOUT_RECORDS, HELDOUT_SEED = 240, 3
Metric = Callable[[Sequence[Example]], list[float]]


@dataclass(frozen=True)
class Task:
    """A task and how its answers are measured.

    metrics: of answers, by name; the first decides. settings: of the trainer. kind: of a fault, to count them.
    wanted_words: length of a right answer.
    warm_up: prompts with answers from which the starting model learns before any arm starts, in `warm_up_steps`.
    steps: of every arm. evaluated: those after which held-out answers are measured, beside the last one.
    """

    name: str
    train: Callable[[], list[Example]]
    heldout: Callable[[], list[Example]]
    critic: Callable[[], Critic]
    metrics: dict[str, Metric]
    settings: dict[str, Any]
    half_of: Callable[[Example], str] = lambda example: example.id
    kind: Callable[[Span], str] = lambda span: span.reason or "blamed"
    wanted_words: Callable[[Example], float] = lambda example: _reference_words(example)
    warm_up: Callable[[], list[Example]] | None = None
    warm_up_steps: int = 120
    steps: int = 40
    evaluated: tuple[int, ...] = (5, 10, 20, 30)

    def half(self, name: str) -> list[Example]:
        """Return the held-out prompts of one half, `select` or `report`; neighbours by `half_of` stay together."""
        return [e for e in self.heldout() if _is_first_half(self.half_of(e)) == (name == "select")]


def _is_first_half(key: str) -> bool:
    return hashlib.blake2b(key.encode(), digest_size=1).digest()[0] < 128


def _reference_words(example: Example) -> float:
    references = [example.reference] if isinstance(example.reference, str) else example.reference or []
    return fmean(len(reference.split()) for reference in references)


def _each(metric: Callable[[Example], float]) -> Metric:
    return lambda examples: [metric(example) for example in examples]


def _reference(metric: Callable[[str, Any], float]) -> Metric:
    return _each(lambda example: metric(example.completion, example.reference))


def _common(**changes: Any) -> dict[str, Any]:
    return {
        "per_device_train_batch_size": 32,
        "num_generations": 4,
        "temperature": 0.7,
        "beta": 0.02,
        "advantage_normalization": "whiten",
        "gradient_checkpointing": True,
        "max_tokens_per_batch": 8192,
        **changes,
    }


def _records(fields: int) -> Task:
    return Task(
        name=f"records{fields}",
        train=lambda: records_task.make_examples(NUM_RECORDS, fields, seed=0),
        heldout=lambda: records_task.make_examples(HELDOUT_RECORDS, fields, HELDOUT_SEED),
        critic=records_task.RecordCritic,
        metrics={"slots": _each(records_task.slots_right)},
        settings=_common(max_completion_length=24 + 12 * fields, per_device_train_batch_size=8),
        kind=records_task.kind_of,
        wanted_words=lambda example: len(records_task.tell(example.meta["record"]).split()),
        warm_up=lambda: records_task.faulty_paragraphs(NUM_RECORDS, fields, seed=2),
        steps=15,  # after 40, scalar and span credit both tell nearly every field rightly
        evaluated=(3, 6, 10),
    )


TASKS = {
    task.name: task
    for task in (
        Task(
            "summaries",
            lambda: list(scitldr.load("train")),
            lambda: list(scitldr.load("heldout")),
            lambda: make_critic("grounding", {}),
            {"rouge_l": _reference(rouge_l), "bleu": _reference(sentence_bleu)},
            _common(max_completion_length=64),
        ),
        Task(
            "questions",
            lambda: list(xquad.load("train")),
            lambda: list(xquad.load("heldout")),
            lambda: make_critic("qa", {}),
            {"f1": _reference(token_f1), "exact": _reference(exact_match)},
            _common(max_completion_length=48),
            half_of=lambda example: str(example.meta["title"]),
        ),
        Task(
            "code",
            evidence_code.train,
            evidence_code.heldout,
            evidence_code.critic,
            {"passed": evidence_code.held_back_passed},
            _common(max_completion_length=160, per_device_train_batch_size=16),
            kind=lambda span: "blamed statement",
            warm_up=evidence_code.warm_up,
            warm_up_steps=40,
            evaluated=(20,),  # every answer is two programs to run
        ),
        _records(4),
        _records(8),
        _records(16),
    )
}
