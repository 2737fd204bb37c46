"""A language model as a critic, behind any OpenAI-compatible endpoint.

OpenAI, Azure (its `/openai/v1` address), vLLM, llama.cpp, Ollama and `transformers serve` all speak this protocol.
"""

from __future__ import annotations

from typing import Any

from text2grad.critics.llm.endpoint import CompletionError
from text2grad.critics.llm.endpoint_critic import EndpointCritic
from text2grad.critics.llm.prompt_templates import PromptTemplate
from text2grad.critics.llm.reply import SCHEMA, reply_to_feedback
from text2grad.critics.llm.settings import LLMSettings, fingerprint_settings
from text2grad.schema import Example, Feedback


class LLMCritic(EndpointCritic):
    """Prompt a model to reason, then to critique, then to quote what the critique is about.

    A completion that fails or cannot be parsed is a failed Feedback with the raw reply.

    options: the fields of LLMSettings, as in `LLMCritic(model="qwen3", base_url="http://localhost:8000/v1")`.
    """

    def __init__(self, **options: Any) -> None:
        settings = LLMSettings.parse(options, where="critic llm")
        self._template = PromptTemplate.load(settings.task, settings.prompt)
        super().__init__(settings, SCHEMA)

    def fingerprint(self) -> str:
        """Return a string that changes with every setting that the feedback depends on."""
        relevant = {"model", "base_url", "max_tokens", "temperature", "extra_body", "threshold"}
        return fingerprint_settings("llm", self.settings.model_dump(mode="json", include=relevant), self._template)

    async def critique_one(self, example: Example) -> Feedback:
        """Return the feedback on an example."""
        prompt = self._template.render(example, unknown_tokenizer=True)
        try:
            completion = await self.endpoint.complete(prompt)
        except CompletionError as error:
            return Feedback.failure(self.name, str(error), error.raw)
        feedback = reply_to_feedback(completion.content, example, self.name, self.settings.threshold)
        if feedback.status == "failed" and completion.truncated:
            feedback.error = f"truncated: the reply reached max_tokens ({self.settings.max_tokens}); {feedback.error}"
        return feedback
