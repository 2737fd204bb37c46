"""Sampling answers. Nothing stands between the model's distribution and the draw: what is sampled is what is scored."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from text2grad.lm.batching import pad_left, sent
from text2grad.lm.decoders import start
from text2grad.lm.guide import Guide, Guided
from text2grad.lm.streams import Stream, stream

LOOK_EVERY = 8  # tokens between two looks at a GPU whether answers have ended: to look is to wait for it
UNWRITTEN = -1


class Sampled(NamedTuple):
    """Completions, the end token included where one was sampled, and how probable each token was to the sampler.

    logprobs: float32, of logits / temperature at the moment of the draw; None where nobody asked for them or knows
    them, and at temperature 0, where a token is not drawn but decided.
    """

    completions: list[list[int]]
    logprobs: list[list[float]] | None


def noise(purpose: Stream, seed: int, step: int, samples: Sequence[int], length: int) -> Tensor:
    """Uniform draws in [0, 1), (samples, length), keyed by (seed, step, sample): the same in any batch."""
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
    guide: Guide | None = None,
    graphs: bool = True,
    scored: bool = False,
) -> Sampled:
    """Draw `num_generations` completions for each prompt; answers to one prompt are neighbours and share its cache.

    model: a causal language model; prompts: token ids.
    uniforms: (prompts * num_generations, longest completion), the draws that decide each token; see `noise`.
    temperature: logits are divided by it; 0 takes the most probable token.
    guide: for text that must have a form; the policy's own answers are never guided.
    graphs: replay CUDA graphs, where there is a GPU and the model allows it.
    scored: keep the log-probability of each token as it is drawn, at the price of two kernels a token.
    """
    longest = uniforms.shape[1]
    look_every = 1 if guide is not None or model.device.type == "cpu" else LOOK_EVERY
    with ThreadPoolExecutor(1) as thread:
        guided = None if guide is None else Guided(guide, len(uniforms), end_ids, model.device, thread)
        decoder, logits = start(model, *pad_left(prompts, pad_id, model.device), num_generations, longest, graphs)
        answers = _Answers(uniforms.to(model.device), temperature, end_ids, scored)
        watcher = guided or answers  # who says which rows have ended: a guide need not ask the GPU
        for position in range(longest):
            if guided is not None:
                logits = guided.constrain(logits)
            chosen = answers.draw(logits, position)
            if position + 1 == longest:
                break
            if guided is not None:
                guided.note(chosen)
            if position % look_every == look_every - 1:
                going = watcher.rows_going()
                if not going:
                    break
                if decoder.pays_to_keep(len(going)):
                    if guided is not None:
                        guided.keep(going)
                    rows = sent(torch.tensor(going), model.device)
                    decoder.keep(rows)
                    answers.keep(rows)
                    chosen = chosen[rows]
            logits = decoder.step(chosen)
    return answers.sampled()


class _Answers:
    """All answers as far as they are written; the rows of a batch are those that are still under way."""

    def __init__(self, uniforms: Tensor, temperature: float, end_ids: Sequence[int], scored: bool) -> None:
        device = uniforms.device
        self._uniforms = uniforms
        self._temperature = temperature
        self._ends = torch.tensor(list(end_ids), device=device)
        self._written = torch.full(uniforms.shape, UNWRITTEN, device=device)
        self._chances = torch.ones(uniforms.shape, device=device) if scored and temperature else None
        self._alive = torch.arange(len(uniforms), device=device)  # which answer each row is
        self._finished = torch.zeros(len(uniforms), dtype=torch.bool, device=device)

    def draw(self, logits: Tensor, position: int) -> Tensor:
        """logits: (rows, vocabulary). Returns the next token of each row, (rows,)."""
        uniforms = self._uniforms[self._alive, position]
        if self._chances is None:
            chosen = draw(logits, uniforms, self._temperature)
        else:
            probabilities = tempered(logits, self._temperature)
            chosen = invert(probabilities, uniforms)
            # Rows that have ended write too: nobody reads it, and to leave them out would be one more kernel.
            self._chances[self._alive, position] = probabilities.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
        self._written[self._alive, position] = torch.where(self._finished, UNWRITTEN, chosen)
        self._finished |= torch.isin(chosen, self._ends)
        return chosen

    def rows_going(self) -> list[int]:
        """Rows that have not ended."""
        going: list[int] = (~self._finished).nonzero().squeeze(-1).tolist()
        return going

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        self._alive, self._finished = self._alive[rows], self._finished[rows]

    def sampled(self) -> Sampled:
        completions = [[token for token in row if token != UNWRITTEN] for row in self._written.tolist()]
        if self._chances is None:
            return Sampled(completions, None)
        rows = self._chances.log().tolist()
        return Sampled(completions, [row[: len(ids)] for row, ids in zip(rows, completions, strict=True)])


def draw(logits: Tensor, uniforms: Tensor, temperature: float) -> Tensor:
    """The token that a uniform draw decides, or at temperature 0 the most probable one.

    logits: (batch, vocabulary); uniforms: (batch,) in [0, 1). Returns (batch,) ids.
    """
    return logits.argmax(-1) if temperature == 0 else invert(tempered(logits, temperature), uniforms)


def tempered(logits: Tensor, temperature: float) -> Tensor:
    """softmax(logits / temperature) in float32, (batch, vocabulary)."""
    return torch.softmax(logits.float() / temperature, dim=-1)


def invert(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """The token at which the cumulative distribution passes the uniform draw.

    probabilities: (batch, vocabulary); uniforms: (batch,) in [0, 1). Returns (batch,) ids.
    """
    cumulative = probabilities.double().cumsum(-1)  # float32 loses the tail of a large vocabulary
    total = cumulative[:, -1:]
    # Strictly below the total, so that a token without probability is never the first to pass it.
    target = torch.minimum(uniforms.unsqueeze(-1) * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, target, right=True).squeeze(-1)
