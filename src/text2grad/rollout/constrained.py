"""Constrained decoding: masks that keep every completion of a batch within its grammar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property

import numpy as np
import torch
from llguidance import LLExecutor, LLMatcher, LLTokenizer
from llguidance.numpy import fill_next_token_bitmask, fill_next_token_bitmask_par
from torch import Tensor

from text2grad.models.batching import copy_to_device, copy_to_host, pin_memory
from text2grad.rollout.grammar import Masks, compile_grammar, end_token_mask

FREE_TEXT_MARGIN = 64  # characters; free text has no longer token


class FreeTextTracker:
    """Which completions of a batch are in free text with room for FREE_TEXT_MARGIN more characters.

    The same tokens may follow in all of them, so no matcher is needed.
    mask: (words of 32 bits,), those tokens.

    prefix: ASCII text before the free text, which is on the first line; max_length: of the free text, in characters.
    grammar: one that starts with the same prefix and free text of at most FREE_TEXT_MARGIN + 1 characters.
    """

    def __init__(
        self, vocabulary: LLTokenizer, prefix: str, max_length: int, grammar: str, num_completions: int
    ) -> None:
        self._vocabulary = vocabulary
        # In bytes, which are never fewer than characters.
        self._range = range(len(prefix) + 1, len(prefix) + max_length - FREE_TEXT_MARGIN + 1)
        self._num_bytes = [0] * num_completions
        self._is_inside = [False] * num_completions
        matcher = compile_grammar(vocabulary, grammar)
        if not matcher.consume_tokens(vocabulary.tokenize_str(f"{prefix}x")):
            raise RuntimeError(f"the grammar does not start with its free text: {matcher.get_error()}")
        self.mask: Masks = np.zeros_like(end_token_mask(vocabulary))
        fill_next_token_bitmask(matcher, self.mask[None])

    def advance(self, completion: int, token: int) -> None:
        """Append a token to the completion."""
        token_bytes = self._vocabulary.decode_bytes([token])
        self._num_bytes[completion] += self._range.stop if b"\n" in token_bytes else len(token_bytes)
        is_valid_utf8 = token_bytes.decode(errors="ignore").encode() == token_bytes
        self._is_inside[completion] = is_valid_utf8 and self._num_bytes[completion] in self._range

    def __contains__(self, completion: int) -> bool:
        return self._is_inside[completion]


class GrammarGuide:
    """Constrain each completion of a batch to its own grammar.

    Compiling a grammar takes some milliseconds, filling a mask about 0.1 ms. Both run in threads; compilation starts at
    once and is awaited by the first mask.

    grammars: for each completion a function that returns its grammar in Lark's notation; called in a thread.
    next_grammar: given a completion and its text when its grammar is complete, returns the grammar of what follows.
    free_text: returns the tracker of grammars that start with long free text; called in a thread.
    """

    def __init__(
        self,
        vocabulary: LLTokenizer,
        grammars: Sequence[Callable[[], str]],
        next_grammar: Callable[[int, str], str] | None = None,
        free_text: Callable[[], FreeTextTracker | None] = lambda: None,
    ) -> None:
        self._vocabulary = vocabulary
        self._next_grammar = next_grammar
        self._end_mask = end_token_mask(vocabulary)
        self._executor = LLExecutor()
        self._pending: list[list[int]] = [[] for _ in grammars]  # tokens that no matcher has consumed yet
        self._texts: dict[int, list[int]] = {i: [] for i in range(len(grammars))} if next_grammar else {}
        threads = ThreadPoolExecutor()
        # Submitted by a thread: as soon as they run, the threads compete with the submitter for the interpreter.
        self._compilation = threads.submit(
            lambda: list(threads.map(lambda grammar: compile_grammar(vocabulary, grammar()), grammars))
        )
        self._free_text_setup = threads.submit(free_text)

    @cached_property
    def _matchers(self) -> list[LLMatcher]:
        return self._compilation.result()

    @cached_property
    def _free_text(self) -> FreeTextTracker | None:
        return self._free_text_setup.result()

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        """Append one token to each of these completions."""
        for i, token in zip(completions, tokens, strict=True):
            self._pending[i].append(token)
            if self._free_text is not None:
                self._free_text.advance(i, token)
            if self._free_text is None or i not in self._free_text:
                self._consume(i, self._pending[i])
                self._pending[i].clear()

    def fill(self, masks: Masks, rows: Sequence[int], completions: Sequence[int]) -> None:
        """Write the allowed next tokens of each of these completions to its row of `masks`."""
        matching = []
        for row, i in zip(rows, completions, strict=True):
            if self._free_text is not None and i in self._free_text:
                masks[row] = self._free_text.mask
            elif self._matchers[i].is_stopped():
                masks[row] = self._end_mask
            else:
                matching.append((self._matchers[i], row))
        if matching:
            fill_next_token_bitmask_par(self._executor, matching, masks)

    def _consume(self, completion: int, tokens: list[int]) -> None:
        matcher = self._matchers[completion]
        if matcher.is_stopped():
            return  # only the end token can follow
        if not matcher.consume_tokens(tokens):
            raise RuntimeError(f"a sampled token violates the grammar: {matcher.get_error()}")
        if self._next_grammar is not None and completion in self._texts:
            self._texts[completion] += tokens
            if matcher.is_accepting():
                text = self._vocabulary.decode_bytes(self._texts.pop(completion)).decode("utf-8")
                self._matchers[completion] = compile_grammar(self._vocabulary, self._next_grammar(completion, text))


class GuidedBatch:
    """A guide and the state of a batch, kept on the host so that the GPU is not synchronised.

    On a GPU the guide advances while the next step is computed; the end of a completion is then known one step later.
    """

    def __init__(self, guide: GrammarGuide, num_rows: int, end_ids: Sequence[int], device: torch.device) -> None:
        self._guide = guide
        self._end_ids = frozenset(end_ids)
        self._device = device
        self._completions = list(range(num_rows))  # the completion of each row of the batch
        self._active = list(range(num_rows))
        self._transfer: Callable[[], list[int]] | None = None  # of the last sampled tokens to the host
        self._masks = torch.empty(0, dtype=torch.int32)

    def active_rows(self) -> list[int]:
        """Return the rows that have not ended, as far as is known."""
        return self._active

    def constrain(self, logits: Tensor) -> Tensor:
        """Return logits, (rows, vocabulary), with -inf for tokens that may not follow; they may still be computed."""
        self._advance()
        width = logits.shape[1]
        if not self._masks.numel():
            # Each step overwrites the masks of the last, which the GPU has read by then: it sampled with them.
            all_allowed = torch.full((len(logits), -(-width // 32)), -1, dtype=torch.int32)
            self._masks = pin_memory(all_allowed, self._device)
        self._guide.fill(self._masks.numpy(), self._active, [self._completions[row] for row in self._active])
        return logits.masked_fill(unset_bits(copy_to_device(self._masks, self._device), width), float("-inf"))

    def record(self, tokens: Tensor) -> None:
        """Record the sampled tokens, (rows,)."""
        self._transfer = copy_to_host(tokens)
        if not is_asynchronous(self._device):
            self._advance()

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all other rows."""
        self._advance()
        active = set(self._active)
        self._active = [new_row for new_row, row in enumerate(rows) if row in active]
        self._completions = [self._completions[row] for row in rows]
        self._masks = self._masks[:0]

    def _advance(self) -> None:
        """Advance the guide by the recorded tokens."""
        if self._transfer is None:
            return
        tokens = self._transfer()
        self._transfer = None
        self._guide.advance([self._completions[row] for row in self._active], [tokens[row] for row in self._active])
        self._active = [row for row in self._active if tokens[row] not in self._end_ids]


def is_asynchronous(device: torch.device) -> bool:
    """Return whether a step of the model returns before it is computed."""
    return device.type == "cuda"


def unset_bits(bits: Tensor, width: int) -> Tensor:
    """Return booleans (rows, width) from (rows, words of 32 bits): which bits are not set, the lowest first."""
    return ((bits.unsqueeze(-1) & _powers(bits.device)) == 0).flatten(1)[:, :width]


@cache
def _powers(device: torch.device) -> Tensor:
    """(32,), one bit of a word each, the lowest first; the last is the sign."""
    return (1 << torch.arange(32)).to(torch.int32).to(device)
