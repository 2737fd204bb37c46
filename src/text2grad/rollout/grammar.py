"""From a model's tokenizer to llguidance's matcher of grammars and back."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from text2grad.errors import UserError

Masks = NDArray[np.int32]  # (rows, words of 32 bits), one bit a token, the lowest first

# Characters that all free text of our grammars admits. The mask of tokens made of them is computed once, in advance,
# and not at every step by a walk through the whole vocabulary; the shorter slice still fits near the end of a text.
_FREE = r'[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029]'
_SLICES = [_FREE + "{1,10}", _FREE + "{1,30}"]


def tokens_to_match(tokenizer: Any, rows: int) -> LLTokenizer:
    """A Hugging Face tokenizer as the matcher sees it; `rows` is the width of the model's logits. Takes a second."""
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise UserError(f'model "{tokenizer.name_or_path}" has no fast tokenizer; constrained decoding needs one')
    backend = copy(tokenizer.backend_tokenizer)
    backend.no_padding()
    backend.no_truncation()
    return LLTokenizer(backend.to_str(), n_vocab=rows, eos_token=int(tokenizer.eos_token_id), slices=_SLICES)


def compiled(vocabulary: LLTokenizer, grammar: str) -> LLMatcher:
    """A matcher at the beginning of a text. grammar: in Lark's notation."""
    matcher = LLMatcher(vocabulary, LLMatcher.grammar_from_lark(grammar))
    if matcher.is_error():
        raise RuntimeError(f"a grammar is broken: {matcher.get_error()}")
    return matcher


def only_the_end(vocabulary: LLTokenizer) -> Masks:
    """The mask, (words of 32 bits,), of a text that is over."""
    end = int(vocabulary.eos_token)
    bits = np.zeros((int(vocabulary.vocab_size) + 31) // 32, dtype=np.uint32)
    bits[end // 32] = 1 << end % 32
    return bits.view(np.int32)


def spelled(text: str, tokenizer: Any, vocabulary: LLTokenizer) -> list[int]:
    """Ids that spell the text byte by byte, as a matcher hears it; none of them is special.

    Some tokenizers put a space before every text; behind a line break they do not. Some compose characters; what they
    change is spelled by the longest tokens that fit.
    """
    wanted = text.encode()
    for before in ("", "\n"):
        encoded: Any = tokenizer(before + text, add_special_tokens=False, split_special_tokens=True)
        ids: list[int] = encoded["input_ids"]
        for first in range(3):  # where the text begins behind a space and a line break
            if vocabulary.decode_bytes(ids[first:]) == wanted:
                return ids[first:]
    spelt: list[int] = vocabulary.greedy_tokenize(text)
    return spelt


def reply_of(ids: list[int], vocabulary: LLTokenizer) -> str:
    """The text of a reply up to its end token; a character that was cut in half is left out."""
    end = ids.index(vocabulary.eos_token) if vocabulary.eos_token in ids else len(ids)
    written: bytes = vocabulary.decode_bytes(ids[:end])
    return written.decode("utf-8", errors="ignore")
