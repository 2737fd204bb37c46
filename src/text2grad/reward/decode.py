"""Constrained decoding of judgements: grammars compiled beside the first pass, masks computed by all cores."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from llguidance import LLExecutor, LLMatcher, LLTokenizer
from llguidance.numpy import allocate_token_bitmask, consume_token_par, fill_next_token_bitmask_par
from numpy.typing import NDArray
from torch import Tensor

from text2grad.reward.grammar import grammar
from text2grad.reward.settings import Layout


class GrammarGuide:
    """Keeps each judgement of a batch within the grammar of its answer (see policy.rollout.Guide)."""

    def __init__(self, vocabulary: LLTokenizer, answers: Sequence[str], layout: Layout) -> None:
        self._vocabulary = vocabulary
        self._executor = LLExecutor()
        pool = ThreadPoolExecutor()
        self._compiling: list[Future[LLMatcher]] = [pool.submit(self._compiled, a, layout) for a in answers]
        pool.shutdown(wait=False)  # the first pass over the questions runs meanwhile
        self._matchers: list[LLMatcher] | None = None

    def allowed(self, completions: Sequence[int], width: int, device: torch.device) -> Tensor:
        """(completions, width) booleans."""
        matchers = [self._ready()[i] for i in completions]
        bits = allocate_token_bitmask(len(matchers), width)
        going = [(matcher, i) for i, matcher in enumerate(matchers) if not matcher.is_stopped()]
        if going:
            fill_next_token_bitmask_par(self._executor, going, bits)
        over = [i for i, matcher in enumerate(matchers) if matcher.is_stopped()]
        bits[over] = self._only_the_end(bits.shape[1])
        return unpacked(torch.from_numpy(bits).to(device), width)

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        matchers = self._ready()
        going = [
            (matchers[i], token) for i, token in zip(completions, tokens, strict=True) if not matchers[i].is_stopped()
        ]
        if going and not all(consume_token_par(self._executor, going)):
            broken = next(matcher for matcher, _ in going if matcher.is_error())
            raise RuntimeError(f"a token was drawn against the grammar: {broken.get_error()}")

    def _only_the_end(self, words: int) -> NDArray[np.int32]:
        bits = np.zeros(words, dtype=np.uint32)
        bits[self._vocabulary.eos_token // 32] = 1 << self._vocabulary.eos_token % 32
        return bits.view(np.int32)

    def _ready(self) -> list[LLMatcher]:
        if self._matchers is None:
            self._matchers = [future.result() for future in self._compiling]
        return self._matchers

    def _compiled(self, answer: str, layout: Layout) -> LLMatcher:
        matcher = LLMatcher(self._vocabulary, LLMatcher.grammar_from_lark(grammar(answer, layout)))
        if matcher.is_error():
            raise RuntimeError(f"the grammar of the judgement is broken: {matcher.get_error()}")
        return matcher


def unpacked(bits: Tensor, width: int) -> Tensor:
    """(rows, words of 32 bits) -> (rows, width) booleans, the lowest bit first."""
    places = torch.arange(32, device=bits.device, dtype=torch.int32)
    return ((bits.unsqueeze(-1) >> places) & 1).flatten(1)[:, :width].bool()
