"""What goes to vLLM and what comes back: sampling parameters, completions, and the policy they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from accelerate import Accelerator
from transformers import PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.rollout.rng import Stream, stream
from text2grad.rollout.samplers import SamplingRequest
from text2grad.rollout.sampling import Sampled

FINISHED = ("stop", "length")  # finish reasons of complete samples


class TrainedPolicy(NamedTuple):
    """The language model that an engine samples from, its tokenizer and its limits.

    max_length: tokens of the longest prompt with its completion. folder: where weights may be written for a server.
    """

    model: Any
    accelerator: Accelerator
    tokenizer: PreTrainedTokenizerBase
    end_ids: Sequence[int]
    max_length: int
    folder: Path


class Completion(NamedTuple):
    """Sampled ids, the log-probability of each, and why the engine stopped."""

    ids: list[int]
    logprobs: list[float]
    finish_reason: str

    @property
    def is_complete(self) -> bool:
        """Whether the engine finished it by itself."""
        return self.finish_reason in FINISHED and bool(self.ids) and len(self.ids) == len(self.logprobs)


class AbortedError(UserError):
    """A completion was aborted: another client uses the engine, or it is shutting down."""


def sampling_params(request: SamplingRequest, end_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return the sampling parameters of each completion, under vLLM's names, without any truncation or penalty.

    All are explicit, since the model's generation config would fill in missing ones. The seed is keyed by (seed, step,
    sample), so a completion does not depend on its batch.
    """
    return [
        {
            "temperature": request.temperature,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "max_tokens": request.max_tokens,
            "stop_token_ids": list(end_ids),
            "logprobs": 0,  # of the sampled token only
            "seed": int(stream(Stream.SAMPLING, request.seed, request.step, sample).integers(2**63)),
        }
        for sample in request.samples
    ]


def to_sampled(completions: list[Completion], end_ids: Sequence[int], engine: str) -> Sampled:
    """Return the samples; one that was aborted, or stopped without an end token, is an error."""
    for completion in completions:
        if not completion.is_complete:
            raise AbortedError(
                f"{engine} aborted a completion ({completion.finish_reason}); let no other client pause or use it"
            )
        if completion.finish_reason == "stop" and completion.ids[-1] not in end_ids:
            raise UserError(f"{engine} ended a completion without an end token; start it without stop settings")
    return Sampled([c.ids for c in completions], [c.logprobs for c in completions])
