"""Sampling answers. Nothing stands between the model's distribution and the draw: what is sampled is what is scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from text2grad.models.batching import pad_left, sent
from text2grad.rollout.constrained import GrammarGuide, GuidedBatch
from text2grad.rollout.decoders import start
from text2grad.rollout.rng import Stream, stream

LOOK_EVERY = 8  # tokens between two looks at a GPU whether answers have ended: to look is to wait for it


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
    guide: GrammarGuide | None = None,
    graphs: bool = True,
    scored: bool = False,
) -> Sampled:
    """Draw `num_generations` completions for each prompt; answers to one prompt are neighbours and share its cache.

    model: a causal language model; prompts: token ids.
    uniforms: (prompts * num_generations, longest completion), the draws that decide each token; see `noise`.
    temperature: logits are divided by it; 0 takes the most probable token.
    guide: for text that must have a form; the policy's own answers are never guided.
    graphs: replay CUDA graphs, where there is a GPU and the model allows it.
    scored: keep the log-probability of each token as it is drawn, at the price of a kernel a token.
    """
    longest = uniforms.shape[1]
    look_every = 1 if guide is not None or model.device.type == "cpu" else LOOK_EVERY
    guided = None if guide is None else GuidedBatch(guide, len(uniforms), end_ids, model.device)
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
            guided.record(chosen)
        if position % look_every == look_every - 1:
            going = watcher.active_rows()
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
    """All answers as far as they are written; the rows of a batch are those that are still under way.

    A step does nothing but draw. Whether answers have ended is asked now and then, and what rows wrote after their end
    is cut off at last: a GPU that computes a small model is kept waiting by every little thing it has to be told.
    """

    def __init__(self, uniforms: Tensor, temperature: float, end_ids: Sequence[int], scored: bool) -> None:
        self._uniforms = uniforms
        self._temperature = temperature
        self._ends = torch.tensor(list(end_ids), device=uniforms.device)
        self._scored = bool(scored and temperature)
        self._rows = torch.arange(len(uniforms), device=uniforms.device)  # which answer each row is
        self._finished = torch.zeros(len(uniforms), dtype=torch.bool, device=uniforms.device)
        self._tokens: list[Tensor] = []  # of each step since rows last left, (rows,)
        self._chances: list[Tensor] = []
        self._looked = 0  # at how many of these steps
        self._completions: list[list[int]] = [[] for _ in uniforms]
        self._probabilities: list[list[float]] = [[] for _ in uniforms]

    def draw(self, logits: Tensor, position: int) -> Tensor:
        """logits: (rows, vocabulary). Returns the next token of each row, (rows,)."""
        uniforms = self._uniforms[:, position]
        if self._scored:
            probabilities = tempered(logits, self._temperature)
            chosen = invert(probabilities, uniforms)
            self._chances.append(probabilities.gather(-1, chosen.unsqueeze(-1)).squeeze(-1))
        else:
            chosen = draw(logits, uniforms, self._temperature)
        self._tokens.append(chosen)
        return chosen

    def active_rows(self) -> list[int]:
        """Rows that have not ended."""
        self._finished |= torch.isin(torch.stack(self._tokens[self._looked :], dim=1), self._ends).any(dim=1)
        self._looked = len(self._tokens)
        going: list[int] = (~self._finished).nonzero().squeeze(-1).tolist()
        return going

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        self._write_down()
        self._rows, self._finished, self._uniforms = self._rows[rows], self._finished[rows], self._uniforms[rows]

    def sampled(self) -> Sampled:
        self._write_down()
        ends = frozenset(self._ends.tolist())
        lengths = [next((i + 1 for i, token in enumerate(ids) if token in ends), len(ids)) for ids in self._completions]
        completions = [ids[:length] for ids, length in zip(self._completions, lengths, strict=True)]
        if not self._scored:
            return Sampled(completions, None)
        chances = [torch.tensor(row[:length]) for row, length in zip(self._probabilities, lengths, strict=True)]
        return Sampled(completions, [row.log().tolist() for row in chances])

    def _write_down(self) -> None:
        """Take what the rows have drawn to the host."""
        rows = self._rows.tolist()
        for drawn, written in ((self._tokens, self._completions), (self._chances, self._probabilities)):
            if drawn:
                for row, new in zip(rows, torch.stack(drawn, dim=1).tolist(), strict=True):
                    written[row] += new
                drawn.clear()
        self._looked = 0


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
