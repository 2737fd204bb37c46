"""Attention features: how the policy's heads connect a comment with the words of a completion.

The model reads the completion, the comment, and the completion again. Some heads attend from a word of the comment to
the words that it is about, others from the second copy of a word to the comment. Which heads are informative is
learned. Log-probabilities were tried and do not help: a comment that names the wrong words makes them more probable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.align.learned.word_features import Matrix
from text2grad.text.whitespace import WhitespaceWord

MAX_SOURCE_WORDS = 120
MAX_TOKENS = 2048  # attention is quadratic
NUM_VIEWS = 6
_EPSILON = 1e-3  # added before the logarithm
_SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"\w+")
_PREFIX = 5  # words with the same first letters count as one


class Scorer(Protocol):
    """A source of word features beyond spelling."""

    def score_words(
        self, comment: str, completion: str, prompt: str | None, words: Sequence[WhitespaceWord]
    ) -> Matrix | None:
        """Return features (words, columns), or None if the text is too long."""


class _Layout(NamedTuple):
    """The input ids, its token ranges, and the tokens of each word in the completion's first and second copy."""

    ids: list[int]
    source: slice
    comment: slice
    first: list[list[int]]
    second: list[list[int]]


class AttentionScorer:
    """Features from a policy's attention; the trained weights fit the default model and models trained from it."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @torch.inference_mode()
    def score_words(
        self, comment: str, completion: str, prompt: str | None, words: Sequence[WhitespaceWord]
    ) -> Matrix | None:
        """Return log attention (words, layers * heads * NUM_VIEWS); `_attention_views` documents the views."""
        layout = self._compose(comment, completion, prompt, words)
        if len(layout.ids) > min(MAX_TOKENS, self.model.config.max_position_embeddings):
            return None
        ids = torch.tensor([layout.ids], device=self.model.device)
        with _record_attention(self.model, lambda weights: _attention_views(weights, layout)) as views:
            self.model(input_ids=ids, logits_to_keep=1)
        attention = torch.cat(views, dim=1).clamp(min=0)  # (words, layers * heads, NUM_VIEWS)
        features: Matrix = torch.log(attention + _EPSILON).flatten(1).cpu().numpy()
        return features

    def _compose(self, comment: str, completion: str, prompt: str | None, words: Sequence[WhitespaceWord]) -> _Layout:
        source = select_relevant_sentences(prompt, f"{completion} {comment}", MAX_SOURCE_WORDS) if prompt else ""
        answer = f" {completion}"
        context = f"Source: {source}\n\n" if source else ""
        pieces = [context, "Answer:", answer, "\n\nComment:", f" {comment}", "\n\nCorrected answer:", answer]
        options = {"add_special_tokens": False, "split_special_tokens": True, "return_offsets_mapping": True}
        encoded = [self.tokenizer(piece, **options) for piece in pieces]
        ids = [token_id for piece in encoded for token_id in piece["input_ids"]]
        places = pairwise(accumulate((len(piece["input_ids"]) for piece in encoded), initial=0))
        source_place, _, first, _, comment_place, _, second = (slice(*place) for place in places)
        offsets = [(start - 1, end - 1) for start, end in encoded[2]["offset_mapping"]]  # without the space in front
        tokens = [
            [i for i, (start, end) in enumerate(offsets) if start < word.end and end > word.start] for word in words
        ]
        copies = ([[place.start + i for i in each] for each in tokens] for place in (first, second))
        return _Layout(ids, source_place, comment_place, *copies)


def select_relevant_sentences(source: str, query: str, max_words: int) -> str:
    """Return the sentences of `source` that share most words with `query`, in order, about `max_words` words in all.

    A shared word is weighted by the inverse of the number of sentences that have it; long sentences are penalised.
    """
    sentences = [sentence for sentence in _SENTENCE_BREAK.split(source) if sentence.strip()]
    words = [_WORD.findall(sentence.lower()) for sentence in sentences]
    prefixes = [{word[:_PREFIX] for word in each} for each in words]
    num_sentences = Counter(prefix for each in prefixes for prefix in each)
    query_prefixes = {word[:_PREFIX] for word in _WORD.findall(query.lower()) if len(word) > 3}
    scores = [
        sum(1 / num_sentences[prefix] for prefix in sorted(own & query_prefixes)) / (len(each) + 5) ** 0.5
        for own, each in zip(prefixes, words, strict=True)
    ]
    selected: list[int] = []
    words_left = max_words
    for i in sorted(range(len(sentences)), key=lambda i: -scores[i]):
        if not selected or len(words[i]) <= words_left:
            selected.append(i)
            words_left -= len(words[i])
    return " ".join(sentences[i] for i in sorted(selected))


def _attention_views(weights: Tensor, layout: _Layout) -> Tensor:
    """Summarise one layer's attention in six views per word and head.

    weights: (heads, tokens, tokens), rows attend to columns. From the word's second copy: to the comment (mean over
    the word's tokens of the mass; highest single weight), to the source, to its own first copy. From the comment to
    the word's first copy: highest mass of one token, and sum over all.
    Returns (words, heads, NUM_VIEWS) in float32.
    """
    from_comment = weights[:, layout.comment, :].float()
    rows = []
    for first, second in zip(layout.first, layout.second, strict=True):
        from_second = weights[:, second, :].float()
        to_comment = from_second[:, :, layout.comment]
        to_first = from_comment[:, :, first].sum(-1)  # (heads, comment tokens)
        views = [
            to_comment.sum(-1).mean(-1),
            to_comment.amax((1, 2)),
            to_first.amax(-1),
            to_first.sum(-1),
            from_second[:, :, layout.source].sum(-1).mean(-1),
            from_second[:, :, first].sum(-1).mean(-1),
        ]
        rows.append(torch.stack(views, dim=-1))
    return torch.stack(rows)


@contextmanager
def _record_attention(model: PreTrainedModel, summarise: Callable[[Tensor], Tensor]) -> Iterator[list[Tensor]]:
    """Collect summarise(attention weights) of every layer; only one layer's weights are in memory at a time."""
    summaries: list[Tensor] = []
    implementation = model.config._attn_implementation
    model.set_attn_implementation("eager")  # fused kernels do not return the weights
    hooks = [
        module.register_forward_hook(lambda module, inputs, output: summaries.append(summarise(output[1][0])))
        for name, module in model.named_modules()
        if name.endswith("self_attn")
    ]
    try:
        yield summaries
    finally:
        for hook in hooks:
            hook.remove()
        model.set_attn_implementation(implementation)
