"""The grammars of a batch of judgements, and how far each judgement has come. Free of torch, like its processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llguidance import LLExecutor, LLTokenizer
from llguidance.numpy import consume_token_par, fill_next_token_bitmask_par

from text2grad.lm.vocabulary import Masks, compiled, only_the_end
from text2grad.reward.grammar import grammar
from text2grad.reward.settings import Layout


class OwnMatchers:
    """Keeps each judgement of a batch within the grammar of its answer (see lm.guide.Guide).

    Compiling a grammar takes some milliseconds and holds the interpreter.

    threads: that fill masks; most of the cores where None.
    """

    def __init__(
        self, vocabulary: LLTokenizer, answers: Sequence[str], layout: Layout, threads: int | None = None
    ) -> None:
        self._over = only_the_end(vocabulary)
        self._executor = LLExecutor(threads)
        self._matchers = [compiled(vocabulary, grammar(answer, layout)) for answer in answers]

    def advance(self, rows: Sequence[int], tokens: Sequence[int]) -> None:
        chosen = zip((self._matchers[row] for row in rows), tokens, strict=True)
        going = [(matcher, token) for matcher, token in chosen if not matcher.is_stopped()]
        if going and not all(consume_token_par(self._executor, going)):
            broken = next(matcher for matcher, _ in going if matcher.is_error())
            raise RuntimeError(f"a token was drawn against the grammar: {broken.get_error()}")

    def masks(self, rows: Sequence[int]) -> Masks:
        bits = np.zeros((len(rows), len(self._over)), dtype=np.int32)
        self.fill(rows, bits, range(len(rows)))
        return bits

    def fill(self, rows: Sequence[int], bits: Masks, lines: Sequence[int]) -> None:
        """As `masks`, into these lines of `bits`."""
        places = [(self._matchers[row], line) for row, line in zip(rows, lines, strict=True)]
        going = [(matcher, line) for matcher, line in places if not matcher.is_stopped()]
        if going:
            fill_next_token_bitmask_par(self._executor, going, bits)
        over = [line for matcher, line in places if matcher.is_stopped()]
        if over:
            bits[over] = self._over
