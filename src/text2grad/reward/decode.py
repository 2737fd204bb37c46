"""Constrained decoding of judgements: what a grammar costs is paid while the GPU computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import torch
from llguidance import LLExecutor, LLMatcher, LLTokenizer
from llguidance.numpy import allocate_token_bitmask, consume_token_par, fill_next_token_bitmask_par
from numpy.typing import NDArray
from torch import Tensor

from text2grad.reward.grammar import grammar
from text2grad.reward.settings import Layout


class GrammarQueue:
    """Compiles the grammars of many answers, in order.

    Compiling holds the interpreter, some milliseconds for an answer, so threads would not help. But while a GPU
    computes the next tokens of a batch the interpreter has nothing to do: that is when `work_ahead` is called.
    """

    def __init__(self, vocabulary: LLTokenizer, answers: Iterable[str], layout: Layout) -> None:
        self.vocabulary = vocabulary
        self._layout = layout
        self._waiting = deque(answers)
        self._ready: deque[LLMatcher] = deque()

    def take(self, count: int) -> list[LLMatcher]:
        """The next matchers."""
        while len(self._ready) < count:
            self._compile()
        return [self._ready.popleft() for _ in range(count)]

    def work_ahead(self, most: int) -> None:
        """Compile one more, if any is left and fewer than `most` are ready."""
        if self._waiting and len(self._ready) < most:
            self._compile()

    def _compile(self) -> None:
        matcher = LLMatcher(
            self.vocabulary, LLMatcher.grammar_from_lark(grammar(self._waiting.popleft(), self._layout))
        )
        if matcher.is_error():
            raise RuntimeError(f"the grammar of the judgement is broken: {matcher.get_error()}")
        self._ready.append(matcher)


class GrammarGuide:
    """Keeps the next `count` judgements of a queue within their grammars (see policy.rollout.Guide)."""

    def __init__(self, queue: GrammarQueue, count: int) -> None:
        self._queue = queue
        self._count = count
        self._executor = LLExecutor()

    def allowed(self, completions: Sequence[int], width: int, device: torch.device) -> Tensor:
        """(completions, width) booleans."""
        matchers = [self._matchers[i] for i in completions]
        bits = allocate_token_bitmask(len(matchers), width)
        going = [(matcher, i) for i, matcher in enumerate(matchers) if not matcher.is_stopped()]
        if going:
            fill_next_token_bitmask_par(self._executor, going, bits)
        over = [i for i, matcher in enumerate(matchers) if matcher.is_stopped()]
        bits[over] = self._only_the_end(bits.shape[1])
        self._queue.work_ahead(self._count)
        return unpacked(torch.from_numpy(bits).to(device), width)

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        matchers = self._matchers
        going = [
            (matchers[i], token) for i, token in zip(completions, tokens, strict=True) if not matchers[i].is_stopped()
        ]
        if going and not all(consume_token_par(self._executor, going)):
            broken = next(matcher for matcher, _ in going if matcher.is_error())
            raise RuntimeError(f"a token was drawn against the grammar: {broken.get_error()}")

    @cached_property
    def _matchers(self) -> list[LLMatcher]:
        """Asked for first when the questions are being read, so that a GPU is busy while they are compiled."""
        return self._queue.take(self._count)

    def _only_the_end(self, words: int) -> NDArray[np.int32]:
        end = int(self._queue.vocabulary.eos_token)
        bits = np.zeros(words, dtype=np.uint32)
        bits[end // 32] = 1 << end % 32
        return bits.view(np.int32)


def unpacked(bits: Tensor, width: int) -> Tensor:
    """(rows, words of 32 bits) -> (rows, width) booleans, the lowest bit first."""
    places = torch.arange(32, device=bits.device, dtype=torch.int32)
    return ((bits.unsqueeze(-1) >> places) & 1).flatten(1)[:, :width].bool()
