"""What critics behind an OpenAI-compatible endpoint have in common: one request per example, many at a time."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from text2grad.critics.llm.endpoint import Endpoint
from text2grad.critics.llm.settings import LLMSettings
from text2grad.schema import Example, Feedback

T = TypeVar("T")


class EndpointCritic(ABC):
    """A critic that asks a language model about one example at a time.

    A UserError (wrong key, unknown model, endpoint down, maximum cost reached) concerns every example and aborts the
    call.
    """

    def __init__(self, settings: LLMSettings, schema: dict[str, Any]) -> None:
        self.settings = settings
        self.name = f"llm:{settings.model}"
        self.endpoint = Endpoint(settings, schema)
        self.concurrency = settings.concurrency
        self.ledger = self.endpoint.ledger

    @abstractmethod
    async def critique_one(self, example: Example) -> Feedback:
        """Return the feedback on an example; it is failed where there is no usable reply."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order; also works inside a running event loop, as in a notebook."""
        return run_coroutine(self._critique_and_close(examples))

    async def acritique(self, examples: Sequence[Example]) -> list[Feedback]:
        """As `critique`, in the running event loop, with at most `concurrency` examples in flight.

        Call `aclose` before the loop ends.
        """
        slots = asyncio.Semaphore(self.concurrency)
        return await gather_or_cancel([self._critique_in_turn(example, slots) for example in examples])

    async def aclose(self) -> None:
        """Close the connections."""
        await self.endpoint.aclose()

    async def _critique_and_close(self, examples: Sequence[Example]) -> list[Feedback]:
        try:
            return await self.acritique(examples)
        finally:
            await self.aclose()

    async def _critique_in_turn(self, example: Example, slots: asyncio.Semaphore) -> Feedback:
        async with slots:
            return await self.critique_one(example)


async def gather_or_cancel(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines at the same time and return their results in order; none goes on after one has raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also inside a running event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
