"""A language model as a critic, behind any OpenAI-compatible endpoint.

OpenAI, Azure (its `/openai/v1` address), vLLM, llama.cpp, Ollama and `transformers serve` all speak this protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from text2grad.critics.llm.endpoint import CompletionError, Endpoint
from text2grad.critics.llm.prompt_templates import PromptTemplate
from text2grad.critics.llm.reply import reply_to_feedback
from text2grad.critics.llm.settings import LLMSettings, fingerprint_settings
from text2grad.schema import Example, Feedback

T = TypeVar("T")


class LLMCritic:
    """Prompt a model to reason, then to critique, then to quote what the critique is about.

    A completion that fails or cannot be parsed is a failed Feedback with the raw reply. A UserError (wrong key, unknown
    model, endpoint down, maximum cost reached) concerns every example and aborts the call.

    options: the fields of LLMSettings, as in `LLMCritic(model="qwen3", base_url="http://localhost:8000/v1")`.
    """

    def __init__(self, **options: Any) -> None:
        self.settings = settings = LLMSettings.parse(options, where="critic llm")
        self.name = f"llm:{settings.model}"
        self._template = PromptTemplate.load(settings.task, settings.prompt)
        self._endpoint = Endpoint(settings)
        self.concurrency = settings.concurrency
        self.ledger = self._endpoint.ledger

    def fingerprint(self) -> str:
        """Return a string that changes with every setting that the feedback depends on."""
        relevant = {"model", "base_url", "max_tokens", "temperature", "extra_body", "threshold"}
        return fingerprint_settings("llm", self.settings.model_dump(mode="json", include=relevant), self._template)

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order; also works inside a running event loop, as in a notebook."""
        return run_coroutine(self._critique_and_close(examples))

    async def acritique(self, examples: Sequence[Example]) -> list[Feedback]:
        """As `critique`, in the running event loop, with at most `concurrency` examples in flight.

        Call `aclose` before the loop ends.
        """
        slots = asyncio.Semaphore(self.concurrency)
        tasks = [asyncio.ensure_future(self._critique_one(example, slots)) for example in examples]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _critique_and_close(self, examples: Sequence[Example]) -> list[Feedback]:
        try:
            return await self.acritique(examples)
        finally:
            await self.aclose()

    async def _critique_one(self, example: Example, slots: asyncio.Semaphore) -> Feedback:
        prompt = self._template.render(example, unknown_tokenizer=True)
        try:
            async with slots:
                completion = await self._endpoint.complete(prompt)
        except CompletionError as error:
            return Feedback.failure(self.name, str(error), error.raw)
        feedback = reply_to_feedback(completion.content, example, self.name, self.settings.threshold)
        if feedback.status == "failed" and completion.truncated:
            feedback.error = f"truncated: the reply reached max_tokens ({self.settings.max_tokens}); {feedback.error}"
        return feedback


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also inside a running event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
