"""A Hugging Face model in this process as a critic; its decoding is constrained, so that its replies can be read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field

from text2grad.critics.llm.constrain import ReplyGuide
from text2grad.critics.llm.grammar import Limits
from text2grad.critics.llm.prompts import Prompt, Task
from text2grad.critics.llm.verdict import verdict
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.models.prompts import encode_prompt
from text2grad.rollout.grammar import reply_of, tokens_to_match
from text2grad.rollout.sampling import sample
from text2grad.schema import Example, Feedback
from text2grad.settings import Settings

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class LocalSettings(Settings):
    """How a local critic is asked; lengths count characters, and a reply that reaches `max_tokens` is cut off."""

    model: str = DEFAULT_MODEL
    task: Task = "general"
    prompt: Path | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 512
    reasoning_length: Annotated[int, Field(ge=1)] = Limits.reasoning
    critique_length: Annotated[int, Field(ge=1)] = Limits.critique
    quote_length: Annotated[int, Field(ge=40)] = Limits.quote
    max_spans: Annotated[int, Field(ge=1)] = Limits.spans
    max_omissions: Annotated[int, Field(ge=0)] = Limits.omissions
    batch_size: Annotated[int, Field(ge=1)] = 8
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    device: str = "cpu"


class LocalCritic:
    """As LLMCritic, without a server. Greedy, so the same answer gets the same feedback.

    options: the fields of LocalSettings.
    """

    def __init__(self, **options: Any) -> None:
        self.settings = settings = LocalSettings.parse(options, where="critic local")
        self.name = f"local:{settings.model}"
        self._prompt = Prompt.of(settings.task, settings.prompt)
        self._limits = Limits(
            reasoning=settings.reasoning_length,
            critique=settings.critique_length,
            quote=settings.quote_length,
            spans=settings.max_spans,
            omissions=settings.max_omissions,
        )
        self._tokenizer = load_tokenizer(settings.model)
        model: Any = load_model(settings.model, _DTYPES[settings.dtype])
        self._model = model.to(settings.device).eval()
        self._vocabulary = tokens_to_match(self._tokenizer, self._model.config.vocab_size)

    @property
    def batch_size(self) -> int:
        """How many examples may usefully be given at once."""
        return self.settings.batch_size

    def fingerprint(self) -> str:
        """Changes whenever the same question could get another answer because of the settings."""
        counts = self.settings.model_dump(mode="json", exclude={"task", "prompt", "batch_size", "device"})
        counts["prompt"] = self._prompt.digest
        return "local:" + hashlib.blake2b(json.dumps(counts, sort_keys=True).encode(), digest_size=16).hexdigest()

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """One Feedback an example, in order; a question that does not fit into the model's context is failed."""
        questions = [self._question(example) for example in examples]
        room = self._model.config.max_position_embeddings - self.settings.max_tokens
        feedback: dict[int, Feedback] = {
            i: Feedback.failure(
                self.name, f"too long: the question has {len(ids)} tokens, and only {room} leave room for the reply"
            )
            for i, ids in enumerate(questions)
            if len(ids) > room
        }
        # Neighbours of like length waste little padding.
        fitting = sorted((i for i in range(len(examples)) if i not in feedback), key=lambda i: len(questions[i]))
        for start in range(0, len(fitting), self.settings.batch_size):
            batch = fitting[start : start + self.settings.batch_size]
            replies = self._generate([questions[i] for i in batch], [examples[i].completion for i in batch])
            for i, reply in zip(batch, replies, strict=True):
                feedback[i] = verdict(reply, examples[i], self.name)
        return [feedback[i] for i in range(len(examples))]

    def _question(self, example: Example) -> list[int]:
        return encode_prompt(Example(id=example.id, prompt=self._prompt.render(example)), self._tokenizer)

    def _generate(self, questions: list[list[int]], answers: list[str]) -> list[str]:
        written = sample(
            self._model,
            questions,
            torch.zeros(len(questions), self.settings.max_tokens),
            temperature=0.0,
            end_ids=[self._vocabulary.eos_token],
            pad_id=int(self._tokenizer.pad_token_id),
            guide=ReplyGuide(self._vocabulary, answers, self._limits),
        )
        return [reply_of(ids, self._vocabulary) for ids in written.completions]
