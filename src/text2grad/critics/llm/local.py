"""A Hugging Face model in this process as a critic; constrained decoding makes every reply readable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field

from text2grad.critics.llm.grammar import ReplyLimits, reply_guide
from text2grad.critics.llm.prompt_templates import PromptTemplate, Task
from text2grad.critics.llm.reply import reply_to_feedback
from text2grad.critics.llm.settings import fingerprint_settings
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.models.prompts import encode_prompt
from text2grad.rollout.grammar import build_llguidance_tokenizer, decode_until_end
from text2grad.rollout.sampling import sample
from text2grad.schema import Example, Feedback


class LocalSettings(ReplyLimits):
    """Settings of a local critic; a reply that reaches `max_tokens` is truncated."""

    model: str = DEFAULT_MODEL
    task: Task = "general"
    prompt: Path | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 512
    batch_size: Annotated[int, Field(ge=1)] = 8
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    device: str = "cpu"


class LocalCritic:
    """As LLMCritic, without a server. Decoding is greedy, so the same completion gets the same feedback.

    options: the fields of LocalSettings.
    """

    def __init__(self, **options: Any) -> None:
        self.settings = settings = LocalSettings.parse(options, where="critic local")
        self.name = f"local:{settings.model}"
        self.batch_size = settings.batch_size
        self._template = PromptTemplate.load(settings.task, settings.prompt)
        self._tokenizer = load_tokenizer(settings.model)
        model: Any = load_model(settings.model, getattr(torch, settings.dtype))
        self._model = model.to(settings.device).eval()
        self._vocabulary = build_llguidance_tokenizer(self._tokenizer, self._model.config.vocab_size)

    def fingerprint(self) -> str:
        """Return a string that changes with every setting that the feedback depends on."""
        settings = self.settings.model_dump(mode="json", exclude={"task", "prompt", "batch_size", "device"})
        return fingerprint_settings("local", settings, self._template)

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order; it is failed if the prompt does not fit the model's context."""
        rendered = [Example(id=example.id, prompt=self._template.render(example)) for example in examples]
        prompts = [encode_prompt(example, self._tokenizer) for example in rendered]
        max_length = self._model.config.max_position_embeddings - self.settings.max_tokens
        feedback: dict[int, Feedback] = {
            i: Feedback.failure(
                self.name, f"too long: the prompt has {len(ids)} tokens, and the context has room for {max_length}"
            )
            for i, ids in enumerate(prompts)
            if len(ids) > max_length
        }
        # Neighbours of similar length need little padding.
        fitting = sorted((i for i in range(len(examples)) if i not in feedback), key=lambda i: len(prompts[i]))
        for start in range(0, len(fitting), self.batch_size):
            batch = fitting[start : start + self.batch_size]
            replies = self._generate([prompts[i] for i in batch], [examples[i].completion for i in batch])
            for i, reply in zip(batch, replies, strict=True):
                feedback[i] = reply_to_feedback(reply, examples[i], self.name)
        return [feedback[i] for i in range(len(examples))]

    def _generate(self, prompts: list[list[int]], completions: list[str]) -> list[str]:
        replies = sample(
            self._model,
            prompts,
            torch.zeros(len(prompts), self.settings.max_tokens),
            temperature=0.0,
            end_ids=[self._vocabulary.eos_token],
            pad_id=int(self._tokenizer.pad_token_id),
            guide=reply_guide(self._vocabulary, completions, self.settings),
        )
        return [decode_until_end(ids, self._vocabulary) for ids in replies.completions]
