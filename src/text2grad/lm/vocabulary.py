"""A tokenizer's vocabulary as llguidance sees it. Free of torch, so that a process that only matches starts quickly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

Masks = NDArray[np.int32]  # (rows, words of 32 bits), one bit a token, the lowest first

# Characters that all free text of our grammars admits. The mask of tokens made of them is computed once, in advance,
# and not at every step by a walk through the whole vocabulary; the shorter slice still fits near the end of a text.
_FREE = r'[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029]'
_SLICES = [_FREE + "{1,10}", _FREE + "{1,30}"]


@dataclass(frozen=True)
class Vocabulary:
    """tokenizer: JSON, as the tokenizers library writes it. rows: logits of the model. end: the end token."""

    tokenizer: str
    rows: int
    end: int

    def to_match(self) -> LLTokenizer:
        """Takes about a second."""
        return LLTokenizer(self.tokenizer, n_vocab=self.rows, eos_token=self.end, slices=_SLICES)


def only_the_end(vocabulary: LLTokenizer) -> Masks:
    """The mask, (words of 32 bits,), of a text that is over."""
    end = int(vocabulary.eos_token)
    bits = np.zeros((int(vocabulary.vocab_size) + 31) // 32, dtype=np.uint32)
    bits[end // 32] = 1 << end % 32
    return bits.view(np.int32)


def compiled(vocabulary: LLTokenizer, grammar: str) -> LLMatcher:
    """A matcher at the beginning of a text. grammar: in Lark's notation."""
    matcher = LLMatcher(vocabulary, LLMatcher.grammar_from_lark(grammar))
    if matcher.is_error():
        raise RuntimeError(f"a grammar is broken: {matcher.get_error()}")
    return matcher
