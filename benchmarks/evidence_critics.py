"""The critic and the metrics of a task in processes of their own, for runs that share a process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from typing import Protocol

import torch
from evidence_tasks import TASKS, Task

from text2grad.schema import Example, Feedback

WORKERS, CHUNK = 3, 16  # processes, and answers per message to one


class Judge(Protocol):
    """The critic of a task that names every fault, and the metrics that it does not compute."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]: ...

    def metrics(self, examples: Sequence[Example]) -> dict[str, list[float]]: ...


class TaskJudge:
    """Judges in this process."""

    def __init__(self, task: Task) -> None:
        self._task, self._critic = task, task.critic()

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return list(self._critic.critique(examples))

    def metrics(self, examples: Sequence[Example]) -> dict[str, list[float]]:
        return {name: metric(examples) for name, metric in self._task.metrics.items()}


class PooledJudge:
    """Asks worker processes, each about a part of the answers."""

    def __init__(self, task: str, pool: ProcessPoolExecutor) -> None:
        self._task, self._pool = task, pool

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        parts = self._pool.map(_critique, *self._divide(examples))
        return [feedback for part in parts for feedback in part]

    def metrics(self, examples: Sequence[Example]) -> dict[str, list[float]]:
        parts = list(self._pool.map(_metrics, *self._divide(examples)))
        return {name: [value for part in parts for value in part[name]] for name in TASKS[self._task].metrics}

    def _divide(self, examples: Sequence[Example]) -> tuple[list[str], list[Sequence[Example]]]:
        parts = [examples[start : start + CHUNK] for start in range(0, len(examples), CHUNK)]
        return [self._task] * len(parts), parts


@contextmanager
def judge_pool(task: Task) -> Iterator[Judge]:
    """Yield a judge of the task in worker processes. To be called before the first use of a GPU: they are forked."""
    with ProcessPoolExecutor(WORKERS, get_context("fork"), _start_worker) as pool:
        list(pool.map(_judge_name, [task.name] * WORKERS))  # starts the workers
        yield PooledJudge(task.name, pool)


def _start_worker() -> None:
    """Leave the processor to the threads that keep the GPU busy."""
    torch.set_num_threads(1)
    os.nice(5)


@cache
def _judge(task: str) -> TaskJudge:
    return TaskJudge(TASKS[task])


def _judge_name(task: str) -> str:
    return type(_judge(task)).__name__


def _critique(task: str, examples: Sequence[Example]) -> list[Feedback]:
    return _judge(task).critique(examples)


def _metrics(task: str, examples: Sequence[Example]) -> dict[str, list[float]]:
    return _judge(task).metrics(examples)
