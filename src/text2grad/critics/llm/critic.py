"""A language model as a critic, behind any OpenAI-compatible endpoint.

OpenAI, Azure (its `/openai/v1` address), vLLM, llama.cpp, Ollama and `transformers serve` all speak this protocol.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from text2grad.critics.llm.cost import Ledger
from text2grad.critics.llm.endpoint import Endpoint
from text2grad.critics.llm.prompts import Prompt
from text2grad.critics.llm.response import UnansweredError
from text2grad.critics.llm.settings import LLMSettings
from text2grad.critics.llm.verdict import verdict
from text2grad.schema import Example, Feedback

T = TypeVar("T")


class LLMCritic:
    """Asks a model to reason, then to critique, then to quote what the critique is about.

    An answer that cannot be had or read is a failed Feedback with the raw reply. A UserError (wrong key, unknown
    model, endpoint down, maximum cost reached) concerns every example and ends the call.

    options: the fields of LLMSettings, as in `LLMCritic(model="qwen3", base_url="http://localhost:8000/v1")`.
    """

    def __init__(self, **options: Any) -> None:
        settings = LLMSettings.parse(options, where="critic llm")
        self.settings = settings
        self.name = f"llm:{settings.model}"
        self._prompt = Prompt.of(settings.task, settings.prompt)
        self._endpoint = Endpoint(settings)

    @property
    def concurrency(self) -> int:
        """How many examples may usefully be under way at once."""
        return self.settings.concurrency

    @property
    def ledger(self) -> Ledger:
        """Tokens and costs so far."""
        return self._endpoint.ledger

    def fingerprint(self) -> str:
        """Changes whenever the same question could get another answer because of the settings."""
        counts = self.settings.what_counts() | {"base_url": self._endpoint.url, "prompt": self._prompt.digest}
        return "llm:" + hashlib.blake2b(json.dumps(counts, sort_keys=True).encode(), digest_size=16).hexdigest()

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """One Feedback an example, in order; also works where an event loop is running, as in a notebook."""
        return _run(self._critique_and_close(examples))

    async def acritique(self, examples: Sequence[Example]) -> list[Feedback]:
        """As `critique`, in the running event loop, at most `concurrency` examples at a time.

        Call `aclose` before the loop ends.
        """
        slots = asyncio.Semaphore(self.settings.concurrency)
        tasks = [asyncio.ensure_future(self._one(example, slots)) for example in examples]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def _critique_and_close(self, examples: Sequence[Example]) -> list[Feedback]:
        try:
            return await self.acritique(examples)
        finally:
            await self.aclose()

    async def _one(self, example: Example, slots: asyncio.Semaphore) -> Feedback:
        try:
            async with slots:
                answer = await self._endpoint.ask(self._prompt.render(example))
        except UnansweredError as error:
            return Feedback.failure(self.name, str(error), error.raw)
        feedback = verdict(answer.content, example, self.name, self.settings.threshold)
        if feedback.status == "failed" and answer.cut:
            feedback.error = f"cut: the reply reached max_tokens ({self.settings.max_tokens}); {feedback.error}"
        return feedback


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, work).result()
