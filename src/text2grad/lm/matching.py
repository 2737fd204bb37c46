"""From a model's tokenizer to the matcher of grammars and back."""

from __future__ import annotations

from copy import copy
from typing import Any

from llguidance import LLTokenizer
from transformers import PreTrainedTokenizerFast

from text2grad.errors import UserError
from text2grad.lm.vocabulary import Vocabulary


def vocabulary_of(tokenizer: Any, rows: int) -> Vocabulary:
    """The vocabulary of a Hugging Face tokenizer; `rows` is the width of the model's logits."""
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise UserError(f'model "{tokenizer.name_or_path}" has no fast tokenizer; constrained decoding needs one')
    backend = copy(tokenizer.backend_tokenizer)
    backend.no_padding()
    backend.no_truncation()
    return Vocabulary(backend.to_str(), rows, int(tokenizer.eos_token_id))


def tokens_to_match(tokenizer: Any, rows: int) -> LLTokenizer:
    """The same as the matcher sees it."""
    return vocabulary_of(tokenizer, rows).to_match()


def reply_of(ids: list[int], vocabulary: LLTokenizer) -> str:
    """The text of a reply up to its end token; a character that was cut in half is left out."""
    end = ids.index(vocabulary.eos_token) if vocabulary.eos_token in ids else len(ids)
    written: bytes = vocabulary.decode_bytes(ids[:end])
    return written.decode("utf-8", errors="ignore")
