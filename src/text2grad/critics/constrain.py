"""Constrained decoding: at each step, only the tokens that keep a reply readable can be chosen."""

from __future__ import annotations

import json
from copy import copy
from typing import Any

import torch
from llguidance import LLMatcher, LLTokenizer
from torch import Tensor
from transformers import LogitsProcessor, PreTrainedTokenizerFast

from text2grad.critics.grammar import Limits, closing_grammar, opening_grammar
from text2grad.critics.vocabulary import Vocabulary
from text2grad.errors import UserError


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


class Constraint(LogitsProcessor):
    """Keeps each row of a batch within the grammar of its reply; `prompt_width` columns come before the replies."""

    def __init__(self, vocabulary: LLTokenizer, answers: list[str], prompt_width: int, limits: Limits) -> None:
        self._rows = [_Row(vocabulary, answer, limits) for answer in answers]
        self._seen = prompt_width

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """input_ids: (batch, tokens so far); scores: (batch, vocabulary), returned with -inf where not allowed."""
        for row, ids in zip(self._rows, input_ids[:, self._seen :].tolist(), strict=True):
            for token in ids:
                row.consume(token)
        self._seen = input_ids.shape[1]
        allowed = torch.stack([row.allowed(scores.shape[1]) for row in self._rows]).to(scores.device)
        return scores.masked_fill(~allowed, float("-inf"))


class _Row:
    """One reply under way: its opening, then, knowing the critique, its closing, then the end token."""

    def __init__(self, vocabulary: LLTokenizer, answer: str, limits: Limits) -> None:
        self._vocabulary = vocabulary
        self._answer = answer
        self._limits = limits
        self._written: list[int] = []
        self._closing = False
        self._matcher = self._match(opening_grammar(limits))

    def consume(self, token: int) -> None:
        if self._matcher.is_stopped():
            return  # the end token, and the padding after it
        self._written.append(token)
        if not self._matcher.consume_token(token):
            raise RuntimeError(f"the decoder chose token {token} against its grammar: {self._matcher.get_error()}")
        if not self._closing and self._matcher.is_accepting():
            opening = json.loads(self._vocabulary.decode_bytes(self._written).decode("utf-8") + "}")
            self._matcher = self._match(closing_grammar(self._answer, opening["critique"], self._limits))
            self._closing = True

    def allowed(self, width: int) -> Tensor:
        """(width,) booleans."""
        if self._matcher.is_stopped():
            allowed = torch.zeros(width, dtype=torch.bool)
            allowed[self._vocabulary.eos_token] = True
            return allowed
        mask = bytearray(self._matcher.compute_bitmask())
        bits = torch.frombuffer(mask, dtype=torch.uint8).unsqueeze(1) >> torch.arange(8, dtype=torch.uint8) & 1
        return bits.flatten()[:width].bool()

    def _match(self, grammar: str) -> LLMatcher:
        matcher = LLMatcher(self._vocabulary, LLMatcher.grammar_from_lark(grammar))
        if matcher.is_error():
            raise RuntimeError(f"the grammar of the reply is broken: {matcher.get_error()}")
        return matcher
