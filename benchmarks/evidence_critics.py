"""The critic of a task in processes of its own, for runs that share a process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context

import torch
from evidence_tasks import TASKS, Task

from text2grad.critics.base import Critic
from text2grad.schema import Example, Feedback

WORKERS, CHUNK = 3, 16  # processes, and answers per message to one


@contextmanager
def critic_pool(task: Task) -> Iterator[Critic]:
    """Yield the task's critic; code is judged in processes anyway, others are computed in worker processes.

    To be called before the first use of a GPU, since the workers are forked.
    """
    if task.name == "code":
        yield task.critic()
        return
    with ProcessPoolExecutor(WORKERS, get_context("fork"), torch.set_num_threads, (1,)) as pool:
        list(pool.map(_critic_name, [task.name] * WORKERS))  # starts the workers
        yield PooledCritic(task.name, pool)


class PooledCritic:
    """Asks the workers, each about a part of the answers."""

    def __init__(self, task: str, pool: ProcessPoolExecutor) -> None:
        self._task, self._pool = task, pool

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        parts = [examples[start : start + CHUNK] for start in range(0, len(examples), CHUNK)]
        found = self._pool.map(_critique, [self._task] * len(parts), parts)
        return [feedback for part in found for feedback in part]


@cache
def _critic(task: str) -> Critic:
    return TASKS[task].critic()


def _critic_name(task: str) -> str:
    return type(_critic(task)).__name__


def _critique(task: str, examples: Sequence[Example]) -> list[Feedback]:
    return list(_critic(task).critique(examples))
