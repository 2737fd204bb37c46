"""Prompts to token ids, through the model's own chat template. A prompt is never cut, and never speaks as another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.models.special_tokens import encode_chats, encode_texts
from text2grad.schema import Example


def encode_prompt(example: Example, tokenizer: PreTrainedTokenizerBase, plain: bool = False) -> list[int]:
    """Return the token ids of a prompt. A string is one user message.

    plain: encode the text without a chat template, for base models.
    """
    return _encode([example], tokenizer, plain)[0]


def _encode(examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, plain: bool) -> list[list[int]]:
    if plain:
        return encode_texts([example.prompt_text for example in examples], tokenizer, add_special_tokens=True)
    if tokenizer.chat_template is None:
        raise UserError(
            f'model "{tokenizer.name_or_path}" has no chat template; set model.plain_prompts to true to use prompts as '
            f"plain text, or put a chat_template.jinja beside its tokenizer"
        )
    return encode_chats([_messages(example) for example in examples], tokenizer)


def _messages(example: Example) -> list[dict[str, Any]]:
    if isinstance(example.prompt, str):
        return [{"role": "user", "content": example.prompt}]
    return [message.model_dump() for message in example.prompt]


def encode_prompts(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    plain: bool,
    context: int,
    max_completion_length: int,
    max_prompt_length: int | None = None,
) -> list[list[int]]:
    """Return the ids of every prompt; one that is empty or too long is rejected by its id.

    The limit is the context minus the longest completion, or max_prompt_length if that is lower.
    """
    if not examples:
        raise UserError("the data set is empty; give at least one example with a prompt")
    limit = min(context - max_completion_length, max_prompt_length or context)
    encoded = _encode(examples, tokenizer, plain)
    for example, ids in zip(examples, encoded, strict=True):
        if not ids or not example.prompt_text.strip():
            raise UserError(f'the prompt of example "{example.id}" is empty')
        if len(ids) > limit:
            raise UserError(
                f'the prompt of example "{example.id}" has {len(ids)} tokens, but at most {limit} fit (context '
                f"{context}, max_completion_length {max_completion_length}, max_prompt_length {max_prompt_length}); "
                f"shorten it, or choose a model with a longer context"
            )
    return encoded
