"""Batches the examples of concurrent requests for one critic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Self

from text2grad.critics.base import Critic, validate_batch
from text2grad.schema import Example, Feedback

_log = logging.getLogger(__name__)
Job = tuple[Example, asyncio.Future[Feedback]]


class QueueFullError(Exception):
    """The examples were not queued; the request may be retried later."""


class Batcher:
    """Async context manager that runs the critic in a thread of its own, one batch at a time.

    name: the critic in the feedback of failed examples.
    max_batch_size: examples per call of the critic.
    max_wait: seconds to wait for more examples while the critic is idle and the batch is not full.
    max_queue_size: examples waiting for the critic.
    """

    def __init__(self, critic: Critic, name: str, max_batch_size: int, max_wait: float, max_queue_size: int) -> None:
        self._critic = critic
        self._name = name
        self._max_batch_size = max_batch_size
        self._max_wait = max_wait
        self._max_queue_size = max_queue_size
        self._queue: asyncio.Queue[Job] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="critic")
        self._worker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._worker = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._worker is not None
        self._worker.cancel()
        self._thread.shutdown(wait=False)

    @property
    def queue_size(self) -> int:
        """Number of examples waiting for the critic."""
        return self._queue.qsize()

    async def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order; raises QueueFullError unless all of them fit into the queue.

        An example on which the critic raises gets failed feedback.
        """
        if self.queue_size + len(examples) > self._max_queue_size:
            raise QueueFullError(f"{self.queue_size} examples are already queued")
        loop = asyncio.get_running_loop()
        jobs: list[Job] = [(example, loop.create_future()) for example in examples]
        for job in jobs:
            self._queue.put_nowait(job)
        return await asyncio.gather(*(future for _, future in jobs))

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = await self._next_batch()
            feedback = await loop.run_in_executor(self._thread, self._critique, [example for example, _ in batch])
            for (_, future), one in zip(batch, feedback, strict=True):
                if not future.done():  # cancelled with its request
                    future.set_result(one)

    async def _next_batch(self) -> list[Job]:
        batch = [await self._queue.get()]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._max_wait):
                while len(batch) < self._max_batch_size:
                    batch.append(await self._queue.get())
        return batch

    def _critique(self, examples: list[Example]) -> list[Feedback]:
        """Split a batch on which the critic raises in half, until the example that causes it is alone."""
        try:
            return validate_batch(self._critic.critique(examples), examples, self._critic)
        except Exception as error:
            if len(examples) == 1:
                _log.exception("the critic failed on example %r", examples[0].id)
                message = f"the critic failed with {type(error).__name__}; see the server's log"
                return [Feedback.failure(self._name, message)]
            middle = len(examples) // 2
            return self._critique(examples[:middle]) + self._critique(examples[middle:])
