"""The grammars of a batch of judgements, and how far each judgement has come."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from llguidance import LLExecutor, LLMatcher, LLTokenizer
from llguidance.numpy import fill_next_token_bitmask_par

from text2grad.reward_model.critique_format import CritiqueFormat
from text2grad.reward_model.grammar import grammar
from text2grad.reward_model.prose import OpenProse
from text2grad.rollout.grammar import Masks, compiled, only_the_end


class Matchers:
    """Keeps each judgement of a batch within the grammar of its answer (see lm.guide.Guide).

    Compiling a grammar takes some milliseconds, filling a mask about a tenth of one. Both happen in threads; compiling
    begins at once, and is waited for where the first mask is. Judgements in open prose are not matched until they leave
    it.
    """

    def __init__(self, vocabulary: LLTokenizer, answers: Sequence[str], layout: CritiqueFormat) -> None:
        self._over = only_the_end(vocabulary)
        self._executor = LLExecutor()
        self._unmatched: list[list[int]] = [[] for _ in answers]
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
            self._unmatched[row].append(token)
            if row not in self._prose:
                self._match(self._matchers[row], self._unmatched[row])
                self._unmatched[row].clear()

    def fill(self, masks: Masks, lines: Sequence[int], rows: Sequence[int]) -> None:
        going = []
        for line, row in zip(lines, rows, strict=True):
            if row in self._prose:
                masks[line] = self._prose.mask
            elif self._matchers[row].is_stopped():
                masks[line] = self._over
            else:
                going.append((self._matchers[row], line))
        if going:
            fill_next_token_bitmask_par(self._executor, going, masks)

    @staticmethod
    def _match(matcher: LLMatcher, tokens: list[int]) -> None:
        if not matcher.is_stopped() and not matcher.consume_tokens(tokens):  # after the last line comes the end token
            raise RuntimeError(f"a token was drawn against the grammar: {matcher.get_error()}")
