"""Sampling completions from the model's own distribution, unmodified: what is sampled is what is scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from text2grad.models.batching import copy_to_device, pad_left
from text2grad.rollout.constrained import GrammarGuide, GuidedBatch
from text2grad.rollout.decoders import PlainDecoder, prefill
from text2grad.rollout.fast.decoders import GraphDecoder, fast_decoder
from text2grad.rollout.rng import Stream, stream

CDF_BLOCK = 128  # tokens; divides the usual sizes of vocabularies, so that nothing is padded
CHECK_EVERY = 8  # steps between two checks on a GPU which rows have ended; each check synchronises with the GPU


class Sampled(NamedTuple):
    """Completions, the end token included where one was sampled, and the sampler's log-probability of each token.

    logprobs: float32, of logits / temperature when the token was sampled; None where they were not requested or are
    unknown, and at temperature 0, where nothing is random.
    """

    completions: list[list[int]]
    logprobs: list[list[float]] | None


def noise(purpose: Stream, seed: int, step: int, samples: Sequence[int], length: int) -> Tensor:
    """Return uniform numbers in [0, 1), (samples, length), keyed by (seed, step, sample): the same in any batch."""
    return torch.from_numpy(np.stack([stream(purpose, seed, step, sample).random(length) for sample in samples]))


@torch.no_grad()
def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    uniforms: Tensor,
    temperature: float,
    end_ids: Sequence[int],
    pad_id: int,
    num_generations: int = 1,
    guide: GrammarGuide | None = None,
    fast_decoding: bool = True,
    return_logprobs: bool = False,
) -> Sampled:
    """Sample `num_generations` completions per prompt; those of one prompt are neighbours and share its prefill.

    model: a causal language model; prompts: token ids.
    uniforms: (prompts * num_generations, longest completion), the random number behind each token; see `noise`.
    temperature: logits are divided by it; 0 takes the most probable token.
    guide: constrains the text to a grammar; the policy's own completions are never constrained.
    fast_decoding: use the faster decoder of `rollout.fast` where model and device support it.
    return_logprobs: also return the log-probability of each token, for one more kernel per token.
    """
    device, max_tokens = model.device, uniforms.shape[1]
    check_every = 1 if guide is not None or device.type == "cpu" else CHECK_EVERY
    guided = None if guide is None else GuidedBatch(guide, len(uniforms), end_ids, device)
    ids, mask = pad_left(prompts, pad_id, device)
    cache, logits = prefill(model, ids, mask)
    rows = torch.arange(len(ids), device=device).repeat_interleave(num_generations)
    completions = _Completions(uniforms.to(device), temperature, end_ids, return_logprobs)

    def sample_next(logits: Tensor) -> Tensor:
        return completions.sample_next(logits if guided is None else guided.constrain(logits))

    tokens = sample_next(logits[rows])
    if max_tokens == 1:
        return completions.result(1)
    fast = fast_decoder(model, cache, mask, rows, max_tokens) if fast_decoding else None
    decoder = fast or PlainDecoder(model, cache, mask, rows)
    for position in range(max_tokens - 1):
        if guided is not None:
            guided.record(tokens)
        if position % check_every == check_every - 1:
            # A guide knows the active rows without synchronising with the GPU.
            active = completions.active_rows(position + 1) if guided is None else guided.active_rows()
            if not active:
                return completions.result(position + 1)
            if decoder.should_compact(len(active)):
                if guided is not None:
                    guided.keep(active)
                rows = copy_to_device(torch.tensor(active), device)
                decoder.keep(rows)
                completions.keep(rows)
                tokens = tokens[rows]
        if guided is None and isinstance(decoder, GraphDecoder):
            tokens = decoder.step_and_sample(tokens, completions.sample_next)
        else:
            tokens = sample_next(decoder.step(tokens))
    return completions.result(max_tokens)


class _Completions:
    """The tokens sampled so far; the rows of a batch are the completions that have not been dropped.

    A step only samples, at a position that is counted on the device, so that a captured graph contains all of it.
    Whether completions have ended is checked now and then, and tokens after an end are cut off in the result: a GPU
    that runs a small model is slowed down by every synchronisation.
    """

    def __init__(self, uniforms: Tensor, temperature: float, end_ids: Sequence[int], return_logprobs: bool) -> None:
        device = uniforms.device
        self._uniforms, self._temperature = uniforms, temperature
        self._end_ids = torch.tensor(list(end_ids), device=device)
        self._ids = torch.zeros(uniforms.shape, dtype=torch.long, device=device)
        keeps_probabilities = bool(return_logprobs and temperature)
        self._probabilities = torch.ones(uniforms.shape, device=device) if keeps_probabilities else None
        self._position = torch.zeros(1, dtype=torch.long, device=device)  # of the next token
        self._rows = torch.arange(len(uniforms), device=device)  # the completion of each row
        self._finished = torch.zeros(len(uniforms), dtype=torch.bool, device=device)
        self._num_checked = 0

    def sample_next(self, logits: Tensor) -> Tensor:
        """logits: (rows, vocabulary). Returns the next token of each row, (rows,)."""
        place = self._rows, self._position
        uniforms = self._uniforms[place]
        if self._probabilities is None:
            tokens = sample_tokens(logits, uniforms, self._temperature)
        else:
            probabilities = token_probabilities(logits, self._temperature)
            tokens = inverse_cdf(probabilities, uniforms)
            self._probabilities[place] = probabilities.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        self._ids[place] = tokens
        self._position += 1
        return tokens

    def active_rows(self, num_sampled: int) -> list[int]:
        """Return the rows that have not ended. num_sampled: tokens of each row so far."""
        new = self._ids[self._rows, self._num_checked : num_sampled]
        self._finished |= torch.isin(new, self._end_ids).any(1)
        self._num_checked = num_sampled
        active: list[int] = (~self._finished).nonzero().squeeze(-1).tolist()
        return active

    def keep(self, rows: Tensor) -> None:
        """Drop all other rows."""
        self._rows, self._finished = self._rows[rows], self._finished[rows]

    def result(self, num_sampled: int) -> Sampled:
        """Return all completions. num_sampled: tokens of those that have not ended."""
        end_ids = frozenset(self._end_ids.tolist())
        all_ids: list[list[int]] = self._ids[:, :num_sampled].tolist()
        lengths = [next((i + 1 for i, token in enumerate(ids) if token in end_ids), num_sampled) for ids in all_ids]
        completions = [ids[:length] for ids, length in zip(all_ids, lengths, strict=True)]
        if self._probabilities is None:
            return Sampled(completions, None)
        all_logprobs: list[list[float]] = self._probabilities[:, :num_sampled].log().tolist()
        return Sampled(completions, [row[:length] for row, length in zip(all_logprobs, lengths, strict=True)])


def sample_tokens(logits: Tensor, uniforms: Tensor, temperature: float) -> Tensor:
    """Return one token per row: by inverse transform sampling, or at temperature 0 the most probable one.

    logits: (batch, vocabulary); uniforms: (batch,) in [0, 1). Returns (batch,) ids.
    """
    if temperature == 0:
        return logits.argmax(-1)
    return inverse_cdf(token_probabilities(logits, temperature), uniforms)


def token_probabilities(logits: Tensor, temperature: float) -> Tensor:
    """softmax(logits / temperature) in float32, (batch, vocabulary)."""
    if temperature != 1:
        logits = logits.float() / temperature
    return torch.softmax(logits, dim=-1, dtype=torch.float32)


def inverse_cdf(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return the token at which the cumulative distribution exceeds the uniform number.

    probabilities: (batch, vocabulary); uniforms: (batch,) in [0, 1). Returns (batch,) ids.
    First the block of tokens is searched, then the token within it: cumulative sums of the whole vocabulary, in float64
    since float32 loses its tail, would take a GPU longer than reading the weights of a small model. The sum of one
    block is in float32, since a GPU would copy all probabilities to add them in float64; rounding a sum moves a token's
    probability by less than its own rounding, and what of the block's mass is below the target stays the same share.
    """
    padding = -probabilities.shape[1] % CDF_BLOCK
    padded = F.pad(probabilities, (0, padding)) if padding else probabilities
    blocks = padded.reshape(len(padded), -1, CDF_BLOCK)
    by_block = blocks.sum(-1).double().cumsum(-1)
    target = uniforms.unsqueeze(-1) * by_block[:, -1:]
    block, before = _first_above(by_block, target)
    share = (target - before) / (by_block.gather(1, block) - before)
    within = blocks[torch.arange(len(blocks), device=blocks.device), block.squeeze(-1)].double().cumsum(-1)
    token, _ = _first_above(within, share * within[:, -1:])
    return (block * CDF_BLOCK + token).squeeze(-1)


def _first_above(cumulative: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """cumulative: (batch, entries); target: (batch, 1). Returns the first entry above it, and the sum before that."""
    total = cumulative[:, -1:]
    # Strictly below the total, so that an entry without probability is never the first to exceed it.
    target = torch.minimum(target, torch.nextafter(total, torch.zeros_like(total)))
    entry = torch.searchsorted(cumulative, target, right=True)
    return entry, torch.where(entry > 0, cumulative.gather(1, (entry - 1).clamp(min=0)), 0.0)
