"""Free text at the beginning of a judgement: far from its limit the same may always follow, and no matcher is asked."""

from __future__ import annotations

import numpy as np
from llguidance import LLTokenizer
from llguidance.numpy import fill_next_token_bitmask

from text2grad.reward_model.critique_format import CritiqueFormat
from text2grad.reward_model.grammar import grammar
from text2grad.rollout.grammar import Masks, compiled, only_the_end

FAR = 64  # characters for which there must be room; a longer token cannot be had in free text


class OpenProse:
    """Which judgements of a batch are in free text that is their first line, with room for FAR characters more.

    mask: (words of 32 bits,), what may follow in every one of them.
    """

    def __init__(self, vocabulary: LLTokenizer, layout: CritiqueFormat, judgements: int) -> None:
        self._vocabulary = vocabulary
        name = "reasoning" if layout.limits.reasoning else "critique"
        label = f"{name.capitalize()}: "
        limit = getattr(layout.limits, name) if layout.order == "critique_first" else 0
        self._room = range(len(label) + 1, len(label) + limit - FAR + 1)  # in bytes: never fewer than characters
        self._written = [0] * judgements
        self._is_open = [False] * judgements
        self.mask = _after(f"{label}x", vocabulary, layout, {name: FAR + 1})

    def advance(self, judgement: int, token: int) -> None:
        """The judgement got this token."""
        piece = self._vocabulary.decode_bytes([token])
        self._written[judgement] += self._room.stop if b"\n" in piece else len(piece)
        is_whole = piece.decode(errors="ignore").encode() == piece  # no character is cut in half
        self._is_open[judgement] = is_whole and self._written[judgement] in self._room

    def __contains__(self, judgement: int) -> bool:
        return self._is_open[judgement]


def _after(text: str, vocabulary: LLTokenizer, layout: CritiqueFormat, limits: dict[str, int]) -> Masks:
    """What may follow this beginning of a judgement, whatever its answer."""
    limited = {"limits": layout.limits.model_copy(update=limits), "order": "critique_first"}
    matcher = compiled(vocabulary, grammar("", layout.model_copy(update=limited)))
    if not matcher.consume_tokens(vocabulary.tokenize_str(text)):
        raise RuntimeError(f"a grammar is broken: {matcher.get_error()}")
    mask: Masks = np.zeros_like(only_the_end(vocabulary))
    fill_next_token_bitmask(matcher, mask[None])
    return mask
