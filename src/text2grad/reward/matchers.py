"""The grammars of a batch of judgements, and how far each judgement has come."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
from llguidance import LLExecutor, LLMatcher, LLTokenizer
from llguidance.numpy import consume_token_par, fill_next_token_bitmask_par

from text2grad.lm.matching import Masks, compiled, only_the_end
from text2grad.reward.grammar import grammar
from text2grad.reward.prose import OpenProse
from text2grad.reward.settings import Layout


class Matchers:
    """Keeps each judgement of a batch within the grammar of its answer (see lm.guide.Guide).

    Compiling a grammar takes some milliseconds, filling a mask some dozen microseconds. Both happen in threads that
    leave the interpreter to others; compiling begins at once, and is waited for where the first mask is.
    """

    def __init__(self, vocabulary: LLTokenizer, answers: Sequence[str], layout: Layout) -> None:
        self._over = only_the_end(vocabulary)
        self._executor = LLExecutor(num_threads=os.cpu_count())  # whoever waits for masks has nothing else to do
        threads = ThreadPoolExecutor()

        def matcher(answer: str) -> LLMatcher:
            return compiled(vocabulary, grammar(answer, layout))

        # One of the threads hands the work out: as soon as they have some, they compete with it for the interpreter.
        self._compiling = threads.submit(lambda: list(threads.map(matcher, answers)))
        self._describing = threads.submit(OpenProse, vocabulary, layout, len(answers))

    @cached_property
    def _matchers(self) -> list[LLMatcher]:
        return self._compiling.result()

    @cached_property
    def _prose(self) -> OpenProse:
        return self._describing.result()

    def advance(self, rows: Sequence[int], tokens: Sequence[int]) -> None:
        for row, token in zip(rows, tokens, strict=True):
            self._prose.advance(row, token)
        chosen = zip((self._matchers[row] for row in rows), tokens, strict=True)
        going = [(matcher, token) for matcher, token in chosen if not matcher.is_stopped()]
        if going and not all(consume_token_par(self._executor, going)):
            broken = next(matcher for matcher, _ in going if matcher.is_error())
            raise RuntimeError(f"a token was drawn against the grammar: {broken.get_error()}")

    def masks(self, rows: Sequence[int]) -> Masks:
        bits = np.empty((len(rows), len(self._over)), dtype=np.int32)
        going = []
        for line, row in enumerate(rows):
            matcher = self._matchers[row]
            if matcher.is_stopped():
                bits[line] = self._over
            elif row in self._prose:
                bits[line] = self._prose.mask
            else:
                going.append((matcher, line))
        if going:
            fill_next_token_bitmask_par(self._executor, going, bits)
        return bits
