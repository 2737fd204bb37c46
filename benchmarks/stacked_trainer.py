"""Trainers that share one model: sampling, scoring and backward passes of all of them run as one batch each.

Every trainer is our own, with its prompts, critic, settings, advantages and losses, in a thread of its own; only the
model behind it is shared, with an adapter for each (`lora_stack.py`). A test compares them with trainers of their own.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

import torch
from lockstep import Lockstep
from lora_stack import LoraStack, member_optimizer, pad_lengths
from torch import Tensor

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.critics.base import Critic
from text2grad.models.backbone import get_backbone, get_projection, hidden_size, vocab_size
from text2grad.models.batching import Branch, TokenBatch, TokenIds, round_up_to_8, split_by_token_budget
from text2grad.models.logprobs import chunked_logprobs, logprob_chunk_size
from text2grad.models.packing import (
    MAX_PADDING_RATIO,
    Row,
    branches_by_sample,
    pack_rows,
    row_length,
    sample_lengths,
    shared_rows,
    token_in_pairs,
)
from text2grad.models.policy import Scores, compute_dtype
from text2grad.rollout.decoders import PlainDecoder
from text2grad.rollout.fast.decoders import GraphDecoder
from text2grad.rollout.fast.modules import fusable_norms, rms_norm
from text2grad.rollout.rng import Stream
from text2grad.rollout.samplers import SamplingRequest
from text2grad.rollout.sampling import Sampled, noise, sample
from text2grad.trainer.state import KLController, RunningScale, TrainerState

T = TypeVar("T")
PAD_ID = 0  # of tokens that only make the members' parts of a batch equally long


class MemberBatch(NamedTuple):
    """Rows of one member, before they are laid out with those of the others. width, branches: as in `TokenBatch`."""

    prompts: TokenIds
    completions: TokenIds
    rows: list[Row]
    all_branches: Sequence[Branch]
    width: int
    branches: tuple[int, ...]

    @property
    def samples(self) -> list[int]:
        return [i for row in self.rows for i in row]


class ScoreRequest(NamedTuple):
    batch: MemberBatch
    temperature: float
    reference: bool
    entropy_gradient: bool
    with_gradient: bool


class SampleRequest(NamedTuple):
    prompts: Sequence[Sequence[int]]
    uniforms: Tensor
    temperature: float
    num_generations: int


class TrainerStack:
    """Trainers of one task and model, one per config, which train in lockstep."""

    def __init__(
        self, template: Text2GradTrainer, configs: Sequence[Text2GradConfig], critics: Sequence[Critic]
    ) -> None:
        """template: has the prompts and the model with a LoRA adapter, which becomes a stack of them."""
        self._template, self._model = template, template.policy.model
        self._device = template.accelerator.device
        if template.args.gradient_checkpointing:
            self._model.gradient_checkpointing_enable({"use_reentrant": False})
        for norm in fusable_norms(self._model):  # for good: recomputation in a backward pass needs it too
            norm.forward = partial(rms_norm, norm)
        self._stack = LoraStack(self._model, hidden_size(self._model), [config.seed for config in configs])
        self._lockstep = Lockstep({"backward": self._backward, "score": self._score, "sample": self._sample})
        self._graph: list[int] = []  # members of the pass that awaits its backward
        self.trainers = [self._member(i, *pair) for i, pair in enumerate(zip(configs, critics, strict=True))]

    def run(self, job: Callable[[Text2GradTrainer], T]) -> list[T | None]:
        """Return what a job returns for each trainer; None where it failed."""
        return self._lockstep.run([lambda trainer=trainer: job(trainer) for trainer in self.trainers])  # type: ignore[misc]

    def _member(self, member: int, args: Text2GradConfig, critic: Critic) -> Text2GradTrainer:
        trainer = copy.copy(self._template)
        trainer.args = args = args.for_device(self._device.type)
        trainer.critic = critic
        trainer.state = TrainerState(0, KLController(args.beta, None, args.kl_controller_horizon), RunningScale())
        optimizer = member_optimizer(
            self._stack, member, args.learning_rate, args.value_learning_rate, args.weight_decay
        )
        trainer.base_learning_rates = [group["lr"] for group in optimizer.param_groups]
        policy: Any = MemberPolicy(member, self._model, self._lockstep)
        learner: Any = MemberLearner(
            member, policy, optimizer, self._template.accelerator, self._template.processes, self._stack, self._lockstep
        )
        sampler: Any = MemberSampler(member, self._lockstep)
        trainer.optimizer, trainer.policy, trainer.learner = optimizer, policy, learner
        trainer.sampler = trainer.hf_sampler = sampler
        return trainer

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self._device.type, torch.bfloat16, enabled=bool(self._template.args.bf16))

    def _sample(self, requests: list[tuple[int, SampleRequest]]) -> list[Sampled]:
        found: dict[int, Sampled] = {}
        for group in _groups(
            requests, lambda r: (r.temperature, r.num_generations, r.uniforms.shape[1], len(r.prompts))
        ):
            members, first = [member for member, _ in group], group[0][1]
            self._model.eval()
            with torch.no_grad(), self._autocast(), self._stack.rows_of(members, frozen=True), _all_rows_stay():
                sampled = sample(
                    self._model,
                    [prompt for _, request in group for prompt in request.prompts],
                    torch.cat([request.uniforms for _, request in group]),
                    first.temperature,
                    self._template.end_ids,
                    self._template.tokenizer.pad_token_id,
                    first.num_generations,
                    fast_decoding=self._template.args.fast_decoding,
                    return_logprobs=True,
                )
            size = len(first.uniforms)
            for place, member in enumerate(members):
                own = slice(place * size, (place + 1) * size)
                logprobs = None if sampled.logprobs is None else sampled.logprobs[own]
                found[member] = Sampled(sampled.completions[own], logprobs)
        return [found[member] for member, _ in requests]

    def _score(self, requests: list[tuple[int, ScoreRequest]]) -> list[Scores]:
        found: dict[int, Scores] = {}
        for group in _groups(requests, lambda r: r[1:]):
            members, first = [member for member, _ in group], group[0][1]
            self._model.train(first.with_gradient)
            if first.with_gradient:
                self._graph = members
            with (
                torch.set_grad_enabled(first.with_gradient),
                self._autocast(),
                self._stack.rows_of(None if first.reference else members),
            ):
                scores = self._score_batches(members, [request.batch for _, request in group], first)
            found |= dict(zip(members, scores, strict=True))
        return [found[member] for member, _ in requests]

    def _score_batches(
        self, members: Sequence[int], batches: Sequence[MemberBatch], request: ScoreRequest
    ) -> list[Scores]:
        batch, tokens_per_member, lines = merge(batches, self._device)
        hidden = get_backbone(self._model)(**batch.model_inputs(compute_dtype(self._model)), use_cache=False)[0]
        states = hidden[batch.rows, batch.state_columns]
        logprobs, entropy = chunked_logprobs(
            states,
            get_projection(self._model),
            batch.ids[batch.rows, batch.columns],
            request.temperature,
            logprob_chunk_size(vocab_size(self._model), self._device.type),
            request.entropy_gradient,
            with_entropy=not request.reference,
        )
        with torch.autocast(self._device.type, enabled=False):
            owners = torch.tensor(list(members), device=self._device)[batch.columns // tokens_per_member]
            values = self._stack.values(states, owners)
        scattered = [batch.scatter(found) for found in (logprobs, entropy, values)]
        widths = [member_batch.width for member_batch in batches]
        return [
            Scores(*(values[own, :width] for values in scattered)) for own, width in zip(lines, widths, strict=True)
        ]

    def _backward(self, requests: list[tuple[int, Tensor]]) -> list[None]:
        with self._stack.rows_of(self._graph), warnings.catch_warnings():  # layers are computed again
            warnings.filterwarnings("ignore", "grad and param do not obey")  # they do: both are views of one layout
            torch.stack([loss for _, loss in requests]).sum().backward()
        return [None] * len(requests)


@dataclass(frozen=True)
class MemberPolicy:
    """Scores as `Policy` does."""

    member: int
    model: Any
    lockstep: Lockstep

    def __call__(
        self, batch: MemberBatch, temperature: float, reference: bool = False, entropy_gradient: bool = False
    ) -> Scores:
        request = ScoreRequest(batch, temperature, reference, entropy_gradient, torch.is_grad_enabled())
        scores: Scores = self.lockstep.request(self.member, "score", request)
        return scores

    def train(self) -> None:
        """The stack sets the mode of each pass."""

    def eval(self) -> None:
        """The stack sets the mode of each pass."""


@dataclass(frozen=True)
class MemberLearner:
    """As `Learner`, for one process."""

    member: int
    policy: MemberPolicy
    optimizer: torch.optim.Optimizer
    accelerator: Any
    processes: Any
    stack: LoraStack
    lockstep: Lockstep

    def micro_batches(
        self,
        prompts: TokenIds,
        completions: TokenIds,
        samples: Sequence[int],
        max_tokens: int,
        branches: Sequence[Branch] = (),
    ) -> list[tuple[list[int], MemberBatch]]:
        rows = shared_rows(prompts, completions, samples, max_tokens, branches, token_in_pairs(self.policy.model))
        own_tokens, by_sample = sample_lengths(completions, branches), branches_by_sample(branches)
        lengths = [row_length(prompts, own_tokens, row) for row in rows]
        found = []
        for chosen in split_by_token_budget(lengths, max_tokens, MAX_PADDING_RATIO):
            of_batch = [rows[i] for i in chosen]
            order = [i for row in of_batch for i in row]
            forks = tuple(k for i in order for k in by_sample[i])
            width = max([len(completions[i]) for i in order] + [len(branches[k].ids) for k in forks])
            found.append((order, MemberBatch(prompts, completions, of_batch, branches, width, forks)))
        return found

    def backward(self, loss: Tensor) -> None:
        self.lockstep.request(self.member, "backward", loss)

    def clip_gradients(self, max_norm: float) -> float:
        gradients = [self.stack.gradients[self.member], self.stack.value_gradients[self.member]]
        norm = float(torch.stack([gradient.norm() for gradient in gradients]).norm())
        for gradient in gradients:
            gradient.mul_(min(1.0, max_norm / (norm + 1e-6)))
        return norm

    def reshard(self) -> None:
        """Nothing is sharded."""


@dataclass(frozen=True)
class MemberSampler:
    """As `HFSampler`."""

    member: int
    lockstep: Lockstep

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, request: SamplingRequest) -> Sampled:
        uniforms = noise(Stream.SAMPLING, request.seed, request.step, request.samples, request.max_tokens)
        return self._generate(prompts, uniforms, request.temperature, num_generations)

    @contextmanager
    def session(self, reference: bool = False) -> Iterator[Callable[..., Sampled]]:
        assert not reference
        yield self._generate

    def _generate(
        self, prompts: Sequence[Sequence[int]], uniforms: Tensor, temperature: float, num_generations: int = 1
    ) -> Sampled:
        request = SampleRequest(prompts, uniforms, temperature, num_generations)
        sampled: Sampled = self.lockstep.request(self.member, "sample", request)
        return sampled


class MergedBatch(NamedTuple):
    """Rows of all members as one packed batch.

    tokens_per_member: equally many, one member after the other; rows that nobody reads make them so.
    lines: of each member, which lines of the scores are its completions and then its branches.
    """

    batch: TokenBatch
    tokens_per_member: int
    lines: list[Tensor]


def merge(batches: Sequence[MemberBatch], device: torch.device) -> MergedBatch:
    """Lay out the rows of all members."""
    prompts: list[Sequence[int]] = []
    completions: list[Sequence[int]] = []
    branches: list[Branch] = []
    rows: list[Row] = []
    own_lines: list[range] = []
    lengths = [_row_lengths(batch) for batch in batches]
    longest = max(max(of_member) for of_member in lengths)
    tokens = round_up_to_8(max(map(sum, lengths)) + 2)  # a row has at least two: what is missing is not one
    num_lines = 0
    for batch, of_member in zip(batches, lengths, strict=True):
        first = len(prompts)
        prompts += batch.prompts
        completions += batch.completions
        rows += [[first + i for i in row] for row in batch.rows]
        branches += [branch._replace(sample=first + branch.sample) for branch in batch.all_branches]
        own_lines.append(range(num_lines, num_lines + len(batch.samples)))
        padding = pad_lengths(tokens - sum(of_member), longest)
        for length in padding:
            rows.append([len(prompts)])
            prompts.append([PAD_ID] * (length - 1))
            completions.append([PAD_ID])
        num_lines += len(batch.samples) + len(padding)
    lines = []
    for batch, own in zip(batches, own_lines, strict=True):
        lines.append(torch.tensor([*own, *range(num_lines, num_lines + len(batch.branches))], device=device))
        num_lines += len(batch.branches)
    return MergedBatch(pack_rows(prompts, completions, rows, device, branches), tokens, lines)


def _row_lengths(batch: MemberBatch) -> list[int]:
    own_tokens = sample_lengths(batch.completions, batch.all_branches)
    return [row_length(batch.prompts, own_tokens, row) for row in batch.rows]


def _groups(requests: Sequence[tuple[int, Any]], key: Callable[[Any], Any]) -> list[list[tuple[int, Any]]]:
    """Split requests into those that can be answered together."""
    found: dict[Any, list[tuple[int, Any]]] = defaultdict(list)
    for member, request in requests:
        found[key(request)].append((member, request))
    return list(found.values())


@contextmanager
def _all_rows_stay() -> Iterator[None]:
    """Sample on for rows that have ended: each member has equally many rows."""
    with (
        patch.object(GraphDecoder, "should_compact", lambda *_: False),
        patch.object(PlainDecoder, "should_compact", lambda *_: False),
    ):
        yield
