"""Prompts to token ids, through the model's own chat template. A prompt is never cut."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.schema import Example


def encode_prompt(example: Example, tokenizer: PreTrainedTokenizerBase, plain: bool = False) -> list[int]:
    """Token ids up to where the answer begins. A prompt that is a string is one user message.

    plain: take the text as it is, for base models without a chat template.
    """
    if plain:
        ids: list[int] = tokenizer(example.prompt_text)["input_ids"]
        return ids
    if tokenizer.chat_template is None:
        raise UserError(
            f'model "{tokenizer.name_or_path}" has no chat template; set model.plain_prompts to true to use prompts as '
            f"plain text, or put a chat_template.jinja beside its tokenizer"
        )
    if isinstance(example.prompt, str):
        messages = [{"role": "user", "content": example.prompt}]
    else:
        messages = [message.model_dump() for message in example.prompt]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
    return ids


def encode_prompts(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    max_prompt_length: int | None,
    max_completion_length: int,
    context: int,
    plain: bool = False,
) -> list[list[int]]:
    """Ids of every prompt; one that leaves no room for its answer is refused by id."""
    if not examples:
        raise UserError("the data set is empty; give at least one example with a prompt")
    room = context - max_completion_length
    if room < 1:
        raise UserError(f"max_completion_length is {max_completion_length} but the model's context is {context} tokens")
    limit = min(room, max_prompt_length or room)
    encoded = [encode_prompt(example, tokenizer, plain) for example in examples]
    for example, ids in zip(examples, encoded, strict=True):
        if len(ids) > limit:
            raise UserError(
                f'the prompt of example "{example.id}" has {len(ids)} tokens, but at most {limit} leave room for an answer '
                f"of {max_completion_length} in the model's context of {context}; shorten it, or lower max_completion_length"
            )
        if not ids:
            raise UserError(f'the prompt of example "{example.id}" is empty')
    return encoded
