"""Constrained decoding: at each step, only the tokens that keep a reply readable can be chosen."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llguidance import LLTokenizer
from llguidance.numpy import fill_next_token_bitmask

from text2grad.critics.llm.grammar import Limits, closing_grammar, opening_grammar
from text2grad.rollout.grammar import Masks, compiled, only_the_end


class ReplyGuide:
    """Keeps each reply of a batch within the grammar of its answer (see lm.guide.Guide)."""

    def __init__(self, vocabulary: LLTokenizer, answers: Sequence[str], limits: Limits) -> None:
        self._over = only_the_end(vocabulary)
        self._replies = [_Reply(vocabulary, answer, limits) for answer in answers]

    def fill(self, masks: Masks, lines: Sequence[int], completions: Sequence[int]) -> None:
        for line, i in zip(lines, completions, strict=True):
            if not self._replies[i].fill(masks, line):
                masks[line] = self._over

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        for i, token in zip(completions, tokens, strict=True):
            self._replies[i].consume(token)


class _Reply:
    """One reply under way: its opening, then, knowing the critique, its closing, then the end token."""

    def __init__(self, vocabulary: LLTokenizer, answer: str, limits: Limits) -> None:
        self._vocabulary = vocabulary
        self._answer = answer
        self._limits = limits
        self._written: list[int] = []
        self._closing = False
        self._matcher = compiled(vocabulary, opening_grammar(limits))

    def consume(self, token: int) -> None:
        if self._matcher.is_stopped():
            return  # it is the end token
        self._written.append(token)
        if not self._matcher.consume_token(token):
            raise RuntimeError(f"the decoder chose token {token} against its grammar: {self._matcher.get_error()}")
        if not self._closing and self._matcher.is_accepting():
            opening = json.loads(self._vocabulary.decode_bytes(self._written).decode("utf-8") + "}")
            closing = closing_grammar(self._answer, opening["critique"], self._limits)
            self._matcher = compiled(self._vocabulary, closing)
            self._closing = True

    def fill(self, bits: Masks, line: int) -> bool:
        """Set what may come next in this line of `bits`; False where the reply is over."""
        if self._matcher.is_stopped():
            return False
        fill_next_token_bitmask(self._matcher, bits, line)
        return True
