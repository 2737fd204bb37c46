"""Corrections of a step's samples: the branches of their completions, and the loss on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.models.batching import Branch, stack_rows
from text2grad.models.special_tokens import encode_texts
from text2grad.rewards.corrections import Completion, find_corrections
from text2grad.schema import Feedback
from text2grad.trainer.batch import Rollout
from text2grad.trainer.config import CorrectionSettings
from text2grad.trainer.losses import contrastive_loss, correction_loss, kl_loss, mean_over_tokens


@dataclass(frozen=True)
class CorrectionBatch:
    """The corrections of all samples of a step; the first dimension of each tensor is the corrections.

    branches: the tokens that should have been sampled. weights: (corrections,), severity times confidence.
    mask: (corrections, longest branch), 1 on tokens.
    replaced: (corrections, longest completion), 1 on the sampled tokens in whose place they belong.
    reference_logprobs: as the mask; None where the KL does not count.
    refused: corrections that the tokenizer cannot spell after the sampled tokens, or that do not fit the context.
    """

    branches: list[Branch]
    weights: Tensor
    mask: Tensor
    replaced: Tensor
    refused: int
    reference_logprobs: Tensor | None = None

    def __len__(self) -> int:
        return len(self.branches)

    def with_reference(self, logprobs: Sequence[Tensor]) -> CorrectionBatch:
        """Return the corrections with the log-probabilities of the reference: (tokens,) of each."""
        return replace(self, reference_logprobs=stack_rows(logprobs, self.mask.shape[1]))

    def probabilities(self, logprobs: Tensor, indices: Sequence[int]) -> Tensor:
        """Return the mean probability of the tokens of each of these corrections; logprobs: (indices, tokens)."""
        mask = self.mask[list(indices), : logprobs.shape[1]].to(logprobs.device)
        return mean_over_tokens(logprobs.exp(), mask)


NO_CORRECTIONS = CorrectionBatch([], torch.zeros(0), torch.zeros(0, 0), torch.zeros(0, 0), refused=0)


def rollout_corrections(
    rollout: Rollout,
    feedback: Sequence[Feedback],
    samples: Sequence[int],
    tokenizer: PreTrainedTokenizerBase,
    context: int,
    continuation: int,
) -> CorrectionBatch:
    """Return the corrections of the given samples of a rollout.

    context: tokens that the model can read. continuation: as in `find_corrections`.
    """

    def encode(text: str) -> list[int]:
        return encode_texts([text], tokenizer)[0]

    branches: list[Branch] = []
    weights: list[float] = []
    replaced = torch.zeros(0, max(map(len, rollout.completions)))
    refused = 0
    rows = []
    for i in samples:
        completion = Completion(
            rollout.completions[i], rollout.examples[i].completion, rollout.offsets[i], rollout.ended[i]
        )
        found, impossible = find_corrections(feedback[i], completion, tokenizer, encode, continuation)
        fitting = [c for c in found if len(rollout.prompts[i]) + c.start + len(c.ids) <= context]
        refused += impossible + len(found) - len(fitting)
        for correction in fitting:
            branches.append(Branch(i, correction.start, correction.ids))
            weights.append(correction.weight)
            row = torch.zeros(replaced.shape[1])
            row[correction.start : correction.end] = 1
            rows.append(row)
    return CorrectionBatch(
        branches=branches,
        weights=torch.tensor(weights),
        mask=stack_rows([torch.ones(len(b.ids)) for b in branches], max((len(b.ids) for b in branches), default=0)),
        replaced=torch.stack(rows) if rows else replaced,
        refused=refused,
    )


def corrections_loss(
    completion_logprobs: Tensor,
    branch_logprobs: Tensor,
    samples: Sequence[int],
    indices: Sequence[int],
    corrections: CorrectionBatch,
    settings: CorrectionSettings,
) -> Tensor:
    """The loss of some corrections, summed over them: bounded likelihood, contrast with what was written, and KL.

    completion_logprobs: (samples, tokens). branch_logprobs: (indices, longest branch). samples: of the completions.
    indices: of the corrections. Returns a scalar.
    """
    chosen, width = list(indices), branch_logprobs.shape[1]

    def select(tensor: Tensor) -> Tensor:
        return tensor[chosen].to(branch_logprobs.device)

    weights, mask = select(corrections.weights), select(corrections.mask[:, :width])
    loss = correction_loss(branch_logprobs, mask, weights, settings.target_probability)
    if settings.contrast:
        lines = [samples.index(corrections.branches[k].sample) for k in chosen]
        replaced = select(corrections.replaced[:, : completion_logprobs.shape[1]])
        written = mean_over_tokens(completion_logprobs[lines], replaced)
        corrected = mean_over_tokens(branch_logprobs, mask)
        loss = loss + settings.contrast * contrastive_loss(corrected, written, weights * replaced.any(1))
    if settings.kl and corrections.reference_logprobs is not None:
        reference = select(corrections.reference_logprobs[:, :width])
        loss = loss + settings.kl * kl_loss(branch_logprobs, reference, mask / mask.sum(1, keepdim=True))
    return loss
