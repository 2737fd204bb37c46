"""Corrections of a step's samples: the branches of their completions, and the loss on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.models.batching import Branch, stack_rows
from text2grad.models.special_tokens import encode_texts
from text2grad.rewards.corrections import Completion, find_corrections
from text2grad.schema import Feedback, Range
from text2grad.trainer.batch import Rollout
from text2grad.trainer.config import CorrectionSettings
from text2grad.trainer.losses import contrastive_loss, correction_loss, kl_loss, mean_over_tokens


@dataclass(frozen=True)
class CorrectionBatch:
    """The corrections of all samples of a step; the first dimension of each tensor is the corrections.

    branches: rows of tokens in which corrections are. places: of each correction, its branch and its range in that.
    weights: (corrections,), severity times confidence. mask: (corrections, longest correction), 1 on tokens.
    replaced: (corrections, longest completion), 1 on the sampled tokens in whose place they belong.
    reference_logprobs: as the mask; None where the KL does not count.
    refused: corrections that the tokenizer cannot spell after the sampled tokens, or that do not fit the context.
    """

    branches: list[Branch]
    places: list[tuple[int, Range]]
    weights: Tensor
    mask: Tensor
    replaced: Tensor
    refused: int
    reference_logprobs: Tensor | None = None

    def __len__(self) -> int:
        return len(self.places)

    def inside(self, branches: Sequence[int]) -> list[int]:
        """Return the indices of the corrections in these branches."""
        wanted = set(branches)
        return [k for k, (branch, _) in enumerate(self.places) if branch in wanted]

    def sample(self, index: int) -> int:
        """Return which sample a correction is of."""
        return self.branches[self.places[index][0]].sample

    def tokens(self, index: int, completion: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the ids before a correction of a completion, and its own."""
        number, (first, last) = self.places[index]
        branch = self.branches[number]
        return [*completion[: branch.start], *branch.ids[:first]], list(branch.ids[first:last])

    def replaced_range(self, index: int, completion: Sequence[int]) -> Range:
        """Return the sampled tokens in whose place a correction belongs; none at the end of a truncated completion."""
        replaced = self.replaced[index].nonzero().flatten().tolist()
        return (replaced[0], replaced[-1] + 1) if replaced else (len(completion), len(completion))

    def gather(self, logprobs: Tensor, branches: Sequence[int], indices: Sequence[int]) -> Tensor:
        """Log-probabilities of branches -> those of corrections inside them, 0 where they have no token.

        logprobs: (branches, longest branch). Returns (indices, longest correction).
        """
        lines = {branch: line for line, branch in enumerate(branches)}
        chosen = [self.places[k] for k in indices]
        rows = torch.tensor([lines[branch] for branch, _ in chosen], device=logprobs.device)[:, None]
        columns = torch.tensor([first for _, (first, _) in chosen], device=logprobs.device)[:, None]
        columns = columns + torch.arange(self.mask.shape[1], device=logprobs.device)
        mask = self.mask[list(indices)].to(logprobs.device)
        return logprobs[rows, columns.clamp(max=logprobs.shape[1] - 1)] * mask

    def with_reference(self, logprobs: Mapping[int, Tensor]) -> CorrectionBatch:
        """Return the corrections with the log-probabilities of the reference: (tokens,) of each branch."""
        lines = self.split(logprobs)
        return replace(self, reference_logprobs=stack_rows([lines[k] for k in range(len(self))], self.mask.shape[1]))

    def split(self, logprobs: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Log-probabilities of branches, (tokens,) by index -> those of the corrections inside them, by index."""
        return {
            k: logprobs[branch][slice(*place)] for k, (branch, place) in enumerate(self.places) if branch in logprobs
        }

    def probabilities(self, logprobs: Tensor, indices: Sequence[int]) -> Tensor:
        """Return the mean probability of the tokens of each of these corrections; logprobs: (indices, tokens)."""
        return mean_over_tokens(logprobs.exp(), self.mask[list(indices)].to(logprobs.device))


NO_CORRECTIONS = CorrectionBatch([], [], torch.zeros(0), torch.zeros(0, 0), torch.zeros(0, 0), refused=0)


def rollout_corrections(
    rollout: Rollout,
    feedback: Sequence[Feedback],
    samples: Sequence[int],
    tokenizer: PreTrainedTokenizerBase,
    context: int,
    settings: CorrectionSettings,
    min_confidence: float = 0.0,
) -> CorrectionBatch:
    """Return the corrections of the given samples of a rollout.

    context: tokens that the model can read. min_confidence: spans that are less certain correct nothing.
    """

    def encode(text: str) -> list[int]:
        return encode_texts([text], tokenizer)[0]

    branches: list[Branch] = []
    places: list[tuple[int, Range]] = []
    weights: list[float] = []
    rows: list[Tensor] = []
    width, refused = max(map(len, rollout.completions)), 0
    for i in samples:
        completion = Completion(
            rollout.completions[i], rollout.examples[i].completion, rollout.offsets[i], rollout.ended[i]
        )
        room = context - len(rollout.prompts[i])
        found, impossible = find_corrections(
            feedback[i], completion, tokenizer, encode, settings.continuation, settings.prefix, room, min_confidence
        )
        refused += impossible
        for branch in found:
            branches.append(Branch(i, branch.start, branch.ids))
            for correction in branch.corrections:
                places.append((len(branches) - 1, (correction.first, correction.last)))
                weights.append(correction.weight)
                rows.append(torch.zeros(width))
                rows[-1][correction.start : correction.end] = 1
    lengths = [last - first for _, (first, last) in places]
    return CorrectionBatch(
        branches=branches,
        places=places,
        weights=torch.tensor(weights),
        mask=stack_rows([torch.ones(length) for length in lengths], max(lengths, default=0)),
        replaced=torch.stack(rows) if rows else torch.zeros(0, width),
        refused=refused,
    )


def corrections_loss(
    completion_logprobs: Tensor,
    logprobs: Tensor,
    samples: Sequence[int],
    indices: Sequence[int],
    corrections: CorrectionBatch,
    settings: CorrectionSettings,
) -> Tensor:
    """The loss of some corrections, summed over them: bounded likelihood, contrast with what was written, and KL.

    completion_logprobs: (samples, tokens). logprobs: (indices, longest correction). samples: of the completions.
    indices: of the corrections. Returns a scalar.
    """
    chosen = list(indices)

    def select(tensor: Tensor) -> Tensor:
        return tensor[chosen].to(logprobs.device)

    weights, mask = select(corrections.weights), select(corrections.mask)
    loss = correction_loss(logprobs, mask, weights, settings.target_probability, settings.robustness)
    if settings.contrast:
        lines = [samples.index(corrections.sample(k)) for k in chosen]
        replaced = select(corrections.replaced[:, : completion_logprobs.shape[1]])
        written = mean_over_tokens(completion_logprobs[lines], replaced)
        corrected = mean_over_tokens(logprobs, mask)
        loss = loss + settings.contrast * contrastive_loss(corrected, written, weights * replaced.any(1))
    if settings.kl and corrections.reference_logprobs is not None:
        reference = select(corrections.reference_logprobs)
        loss = loss + settings.kl * kl_loss(logprobs, reference, mask / mask.sum(1, keepdim=True))
    return loss
