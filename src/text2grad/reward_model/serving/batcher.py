"""Examples of concurrent requests, given to one critic a batch at a time."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from text2grad.critics.base import Critic
from text2grad.schema import Example, Feedback

_log = logging.getLogger(__name__)
_MEMORY = 0.9  # how much of the measured speed is kept from one batch to the next


class BusyError(Exception):
    """The examples were not taken; the same request may succeed after `retry_after` seconds."""

    def __init__(self, reason: str, retry_after: int) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@dataclass(frozen=True)
class _Waiting:
    example: Example
    since: float


class Batcher:
    """An async context manager; on leaving it, what was taken is finished first.

    The critic runs in one thread of its own: models are not made for two at once, and the event loop has to stay free.
    name: whom a failure is charged to.
    max_batch_size: the most examples of one call of the critic.
    max_wait: seconds that an example may wait for others to share its batch, while the critic is idle.
    max_waiting: the most examples that wait; what comes on top is refused.
    """

    def __init__(self, critic: Critic, name: str, max_batch_size: int, max_wait: float, max_waiting: int) -> None:
        self._critic = critic
        self._name = name
        self._max_batch_size = max_batch_size
        self._max_wait = max_wait
        self._max_waiting = max_waiting
        self._line: OrderedDict[asyncio.Future[Feedback], _Waiting] = OrderedDict()
        self._changed = asyncio.Event()
        self._closing = False
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="critic")
        self._seconds_per_example = 0.0

    async def __aenter__(self) -> Self:
        self._worker = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._worker is not None
        self._closing = True
        self._changed.set()
        await self._worker
        self._thread.shutdown()

    @property
    def ready(self) -> bool:
        return self._worker is not None and not self._closing

    @property
    def waiting(self) -> int:
        """How many examples the critic has yet to take."""
        return len(self._line)

    async def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """One Feedback an example, in order. Raises BusyError where there is no room for all of them.

        An example on which the critic fails gets failed feedback. If the caller is cancelled, its examples leave the
        line.
        """
        if not self.ready:
            raise BusyError("the server is starting or stopping", retry_after=1)
        if self.waiting + len(examples) > self._max_waiting:
            raise BusyError(f"{self.waiting} examples are waiting already", self._retry_after())
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Feedback]] = [loop.create_future() for _ in examples]
        now = loop.time()
        self._line.update((answer, _Waiting(example, now)) for answer, example in zip(answers, examples, strict=True))
        self._changed.set()
        try:
            return await asyncio.gather(*answers)
        finally:
            for answer in answers:
                self._line.pop(answer, None)

    def _retry_after(self) -> int:
        return max(1, math.ceil(self.waiting * self._seconds_per_example))

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while batch := await self._next_batch():
            began = time.perf_counter()
            feedback = await loop.run_in_executor(self._thread, self._judge, [taken.example for _, taken in batch])
            self._note_speed((time.perf_counter() - began) / len(batch))
            for (answer, _), said in zip(batch, feedback, strict=True):
                if not answer.done():  # the client may have gone in the meantime
                    answer.set_result(said)

    async def _next_batch(self) -> list[tuple[asyncio.Future[Feedback], _Waiting]]:
        """Those who wait longest: a full batch, or fewer after `max_wait`. Empty once all is done on closing."""
        while self._line or not self._closing:
            if not self._line:
                await self._change()
                continue
            await self._wait_for_company()
            size = min(self._max_batch_size, len(self._line))
            if size:  # the clients may have gone in the meantime
                return [self._line.popitem(last=False) for _ in range(size)]
        return []

    async def _wait_for_company(self) -> None:
        oldest = next(iter(self._line.values())).since
        with suppress(TimeoutError):
            async with asyncio.timeout_at(oldest + self._max_wait):
                while len(self._line) < self._max_batch_size and not self._closing:
                    await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _note_speed(self, seconds_per_example: float) -> None:
        kept = _MEMORY if self._seconds_per_example else 0.0
        self._seconds_per_example = kept * self._seconds_per_example + (1 - kept) * seconds_per_example

    def _judge(self, examples: list[Example]) -> list[Feedback]:
        """In the thread. A batch that fails is halved, until what is left is the example that it fails on."""
        try:
            feedback = self._critic.critique(examples)
            if len(feedback) != len(examples):
                raise ValueError(f"the critic returned {len(feedback)} comments on {len(examples)} answers")
        except Exception as error:  # whatever a critic raises, the neighbours and the server go on
            if len(examples) == 1:
                _log.exception("the critic failed on example %s", examples[0].id)
                said = f"the critic failed with {type(error).__name__}; the server's log says more"
                return [Feedback.failure(self._name, said)]
            middle = len(examples) // 2
            return self._judge(examples[:middle]) + self._judge(examples[middle:])
        return feedback
