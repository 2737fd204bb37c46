"""What the policy's attention heads connect when it reads an answer, a comment on it, and the answer again.

Some heads look from a word of the comment to the words of the answer that it is about, others from the second copy of
a word to what the comment says of it. None was made for this; which of them to believe, and how far, is learned.
Log-probabilities are no use here: a comment that names the wrong words makes them more probable, not less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.align.learned.passages import relevant
from text2grad.text.whitespace import WhitespaceWord

SOURCE_WORDS = 120
LONGEST_TEXT = 2048  # tokens; attention is quadratic
VIEWS = 6
_LEAST = 1e-3  # attention below this counts as none

Matrix = NDArray[np.float32]


class Scorer(Protocol):
    """Anything that says more about words than their letters do."""

    def read(self, comment: str, completion: str, prompt: str | None, words: Sequence[WhitespaceWord]) -> Matrix | None:
        """Features (words, columns), or None if the text is too long to read."""


class _Parts(NamedTuple):
    """Token ranges of the text that is read, and the tokens of each word in the answer's first and second copy."""

    ids: list[int]
    source: slice
    comment: slice
    first: list[list[int]]
    second: list[list[int]]


class AttentionScorer:
    """The attention of a policy's heads. The learned weights fit the default model and what was trained from it."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @torch.inference_mode()
    def read(self, comment: str, completion: str, prompt: str | None, words: Sequence[WhitespaceWord]) -> Matrix | None:
        """Log attention (words, layers * heads * VIEWS); the views are documented in `_views`."""
        text = self._compose(comment, completion, prompt, words)
        if len(text.ids) > min(LONGEST_TEXT, self.model.config.max_position_embeddings):
            return None
        ids = torch.tensor([text.ids], device=self.model.device)
        with _watched(self.model, lambda weights: _views(weights, text)) as seen:
            self.model(input_ids=ids, logits_to_keep=1)
        attention = torch.cat(seen, dim=1).clamp(min=0)  # (words, layers * heads, VIEWS)
        features: Matrix = torch.log(attention + _LEAST).flatten(1).cpu().numpy()
        return features

    def _compose(self, comment: str, completion: str, prompt: str | None, words: Sequence[WhitespaceWord]) -> _Parts:
        ids: list[int] = []

        def add(text: str) -> tuple[slice, list[tuple[int, int]]]:
            encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            begin = len(ids)
            ids.extend(encoded["input_ids"])
            return slice(begin, len(ids)), encoded["offset_mapping"]

        def add_answer() -> list[list[int]]:
            place, offsets = add(f" {completion}")
            # the space before the completion shifts its characters by one
            return [
                [
                    place.start + i
                    for i, (start, end) in enumerate(offsets)
                    if start < word.end + 1 and end > word.start + 1
                ]
                for word in words
            ]

        source = relevant(prompt, f"{completion} {comment}", SOURCE_WORDS) if prompt else ""
        source_place = add(f"Source: {source}\n\n")[0] if source else slice(0, 0)
        add("Answer:")
        first = add_answer()
        add("\n\nComment:")
        comment_place = add(f" {comment}")[0]
        add("\n\nCorrected answer:")
        return _Parts(ids, source_place, comment_place, first, add_answer())


def _views(weights: Tensor, text: _Parts) -> Tensor:
    """Six views of one layer's attention, per word and head.

    weights: (heads, tokens, tokens), rows attend to columns. From the word's second copy: to the comment (mean over
    the word's tokens of the mass; highest single weight), to the source, to its own first copy. From the comment to
    the word's first copy: highest mass of one token, and sum over all.
    Returns (words, heads, VIEWS) in float32.
    """
    from_comment = weights[:, text.comment, :].float()
    rows = []
    for first, second in zip(text.first, text.second, strict=True):
        again = weights[:, second, :].float()
        to_comment = again[:, :, text.comment]
        named = from_comment[:, :, first].sum(-1)  # (heads, comment tokens)
        rows.append(
            torch.stack(
                [
                    to_comment.sum(-1).mean(-1),
                    to_comment.amax((1, 2)),
                    named.amax(-1),
                    named.sum(-1),
                    again[:, :, text.source].sum(-1).mean(-1),
                    again[:, :, first].sum(-1).mean(-1),
                ],
                dim=-1,
            )
        )
    return torch.stack(rows)


@contextmanager
def _watched(model: PreTrainedModel, look: Callable[[Tensor], Tensor]) -> Iterator[list[Tensor]]:
    """Collect look(attention weights of a layer) in a forward pass of one text; one layer's weights live at a time."""
    seen: list[Tensor] = []
    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")  # the fused ones never form the weights
    hooks = [
        module.register_forward_hook(lambda module, inputs, output: seen.append(look(output[1][0])))
        for name, module in model.named_modules()
        if name.endswith("self_attn")
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
        model.set_attn_implementation(usual)
