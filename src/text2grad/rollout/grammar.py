"""llguidance: tokenizers, compiled Lark grammars, and the parts that our grammars share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from text2grad.errors import UserError

Masks = NDArray[np.int32]  # (rows, words of 32 bits), one bit per token, the lowest first

# A word; a character of a script without spaces; a long word in pieces, so that each fits into a quote.
QUOTE_CHUNK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]{1,40}|\s|[^\w\s]")

# Characters that all free text of our grammars admits. llguidance computes the mask of tokens made of them once, and
# not at every step by a traversal of the vocabulary; the shorter slice still fits near the end of a text.
_FREE_TEXT = r'[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029]'
_SLICES = [_FREE_TEXT + "{1,10}", _FREE_TEXT + "{1,30}"]


def build_llguidance_tokenizer(tokenizer: Any, vocab_size: int) -> LLTokenizer:
    """Return a Hugging Face tokenizer for llguidance; vocab_size: width of the model's logits. Takes a second."""
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise UserError(f'model "{tokenizer.name_or_path}" has no fast tokenizer; constrained decoding needs one')
    backend = copy(tokenizer.backend_tokenizer)
    backend.no_padding()
    backend.no_truncation()
    return LLTokenizer(backend.to_str(), n_vocab=vocab_size, eos_token=int(tokenizer.eos_token_id), slices=_SLICES)


def compile_grammar(vocabulary: LLTokenizer, grammar: str) -> LLMatcher:
    """Return a matcher of a grammar in Lark's notation, at the start of a text."""
    matcher = LLMatcher(vocabulary, LLMatcher.grammar_from_lark(grammar))
    if matcher.is_error():
        raise RuntimeError(f"invalid grammar: {matcher.get_error()}")
    return matcher


def repeat_rule(item: str, separator: str, max_items: int) -> str:
    """Return the Lark expression of one to `max_items` separated items."""
    return f'{item} ("{separator}" {item}){{0,{max_items - 1}}}' if max_items > 1 else item


def quote_rule(chunks: Sequence[str], first: str, max_length: int) -> str:
    """Return the Lark expression of a quote: neighbouring chunks, starting with the regular expression `first`."""
    return f'%regex {{ "substring_chunks": {json.dumps(chunks)} }} & /{first}(?s:.{{0,{max_length - 1}}})/'


def end_token_mask(vocabulary: LLTokenizer) -> Masks:
    """Return the mask, (words of 32 bits,), that allows the end token only."""
    end = int(vocabulary.eos_token)
    bits = np.zeros((int(vocabulary.vocab_size) + 31) // 32, dtype=np.uint32)
    bits[end // 32] = 1 << end % 32
    return bits.view(np.int32)


def encode_exactly(text: str, tokenizer: Any, vocabulary: LLTokenizer) -> list[int]:
    """Return non-special ids whose bytes are exactly those of the text, as a matcher reads them.

    Some tokenizers insert a space before every text, but not after a line break. Some normalise characters; such text
    is encoded greedily by the longest tokens that fit.
    """
    expected = text.encode()
    for prefix in ("", "\n"):
        encoded: Any = tokenizer(prefix + text, add_special_tokens=False, split_special_tokens=True)
        ids: list[int] = encoded["input_ids"]
        for first in range(3):  # the text may start after a space and a line break
            if vocabulary.decode_bytes(ids[first:]) == expected:
                return ids[first:]
    greedy: list[int] = vocabulary.greedy_tokenize(text)
    return greedy


def decode_until_end(ids: list[int], vocabulary: LLTokenizer) -> str:
    """Return the text before the end token; an incomplete last character is dropped."""
    end = ids.index(vocabulary.eos_token) if vocabulary.eos_token in ids else len(ids)
    text: bytes = vocabulary.decode_bytes(ids[:end])
    return text.decode("utf-8", errors="ignore")
