"""The model input: the prompt, the completion, and the completion a second time.

A causal model reads a token before it has seen the rest of the completion; the repetition is read after it.
The scored completion is never truncated. An input that is too long loses the middle of its prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, PositiveInt
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from text2grad.errors import UserError
from text2grad.models.special_tokens import encode_texts, encode_with_offsets
from text2grad.schema import Example, Range
from text2grad.settings import Settings

Reading = Literal["once", "twice", "around"]

PROMPT, COMPLETION = "\ue000source\ue001", "\ue000answer\ue001"  # placeholders while the chat template is rendered
TEMPLATES: dict[Reading, str] = {
    "once": f"{PROMPT}\n\nAnswer: {COMPLETION}\n\nWhat is right and what is wrong with this answer?",
    "twice": f"{PROMPT}\n\nAnswer: {COMPLETION}\n\nWhat is right and what is wrong with this answer?",
    "around": f"Answer: {COMPLETION}\n\n{PROMPT}\n\nWhat is right and what is wrong with the answer?",
}
ELLIPSIS = "\n[...]\n"  # replaces the middle of a prompt that is too long


class InputSettings(Settings):
    """How prompt and completion become the model input.

    reading: `once` is prompt, completion, and the head reads the completion there. `twice` repeats the completion, and
        the head reads the repetition. `around` is completion, prompt, completion, so that the prompt is read in the
        light of the completion.
    """

    reading: Reading = "twice"
    max_length: PositiveInt = Field(1024, description="tokens; a longer input loses the middle of its prompt")


class InputError(ValueError):
    """The completion is empty, or too long even without its prompt; the message says which."""


@dataclass(frozen=True)
class ModelInput:
    """Token ids up to where generation of the critique starts.

    completion_range: half-open range in `ids` of the completion tokens that the head reads.
    offsets: the characters of the completion that each of these tokens covers.
    num_prompt_tokens_cut: tokens removed from the middle of the prompt.
    """

    ids: list[int]
    completion_range: Range
    offsets: list[Range]
    num_prompt_tokens_cut: int


class InputBuilder:
    """Builds model inputs with the tokenizer and the chat template of the base model."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, settings: InputSettings) -> None:
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise UserError(f'model "{tokenizer.name_or_path}" has no fast tokenizer; a reward model needs one')
        if tokenizer.chat_template is None:
            raise UserError(
                f'model "{tokenizer.name_or_path}" has no chat template; put a chat_template.jinja beside its tokenizer'
            )
        self._tokenizer = tokenizer
        self._max_length = settings.max_length
        self._segments = _template_segments(tokenizer, settings.reading)
        (self._ellipsis,) = encode_texts([ELLIPSIS], tokenizer)
        self._num_copies = self._segments.count(COMPLETION)
        self._num_template_tokens = sum(len(segment) for segment in self._segments if isinstance(segment, list))

    def build_batch(self, examples: Sequence[Example]) -> list[ModelInput | InputError]:
        """Return the input, or the error, of each example; all texts are tokenized in one call."""
        if not examples:
            return []
        completions = encode_with_offsets([example.completion for example in examples], self._tokenizer)
        prompts = encode_texts([example.prompt_text for example in examples], self._tokenizer)
        return [
            self._assemble(prompt, ids, offsets) for prompt, (ids, offsets) in zip(prompts, completions, strict=True)
        ]

    def _assemble(self, prompt: list[int], completion: list[int], offsets: list[Range]) -> ModelInput | InputError:
        if not completion:
            return InputError("empty: there is no completion to score")
        max_prompt = self._max_length - self._num_template_tokens - self._num_copies * len(completion)
        if max_prompt < min(len(prompt), len(self._ellipsis)):
            return InputError(
                f"too long: the completion has {len(completion)} tokens and is read {self._num_copies} times; only "
                f"{self._max_length} fit (max_length)"
            )
        kept = truncate_middle(prompt, max_prompt, self._ellipsis)
        ids: list[int] = []
        completion_range = (0, 0)
        for segment in self._segments:
            if segment == COMPLETION:
                completion_range = (len(ids), len(ids) + len(completion))
            ids += {PROMPT: kept, COMPLETION: completion}[segment] if isinstance(segment, str) else segment
        num_cut = len(prompt) - len(kept) + len(self._ellipsis) if kept is not prompt else 0
        return ModelInput(ids, completion_range, offsets, num_cut)


def truncate_middle(ids: list[int], max_length: int, ellipsis: list[int]) -> list[int]:
    """Return the beginning and the end with the ellipsis between them; the same list if all of it fits."""
    if len(ids) <= max_length:
        return ids
    kept = max_length - len(ellipsis)
    head = (kept + 1) // 2
    return [*ids[:head], *ellipsis, *ids[len(ids) - (kept - head) :]]


def _template_segments(tokenizer: PreTrainedTokenizerBase, reading: Reading) -> list[list[int] | str]:
    """Return the rendered template as ids, with PROMPT and COMPLETION in their places; the head reads the last one."""
    messages = [{"role": "user", "content": TEMPLATES[reading]}]
    rendered: Any = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    if reading != "once":
        rendered += f"Answer: {COMPLETION}\n"
    parts = [part for part in re.split(f"({PROMPT}|{COMPLETION})", rendered) if part]
    return [
        part if part in (PROMPT, COMPLETION) else list(tokenizer(part, add_special_tokens=False)["input_ids"])
        for part in parts
    ]
