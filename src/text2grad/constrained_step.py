"""One step that does what feedback asks of one completion and leaves its other tokens where they are.

A step along the gradient of the rewards alone moves every token that shares weights with the rewarded ones. This one is
a Gauss-Newton step: of all changes of the last weights, the smallest with which every token reaches its target.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from text2grad.errors import UserError
from text2grad.models.backbone import get_backbone, get_projection, vocab_size
from text2grad.models.batching import Branch, TokenBatch
from text2grad.models.logprobs import chunked_logprobs, logprob_chunk_size
from text2grad.models.packing import pad_rows
from text2grad.models.policy import Policy, compute_dtype
from text2grad.rewards.corrections import CorrectedBranch
from text2grad.rollout.fast.modules import patched_forward

SMALLEST_REWARD = 0.01  # less is what is left where praise and blame of the same words nearly cancel out
CORRECTION_SIZE = 20.0  # corrections are pulled further than rewarded words, at most up to the target probability:
TARGET_PROBABILITY = 0.6  # more than all other tokens together, so that greedy decoding writes the correction
MAX_PROBABILITY = 0.99  # of praised words
MAX_WEIGHTS = 4_000_000  # that the step may change: enough to hold every token, few enough to be fast
MAX_DERIVATIVES = 300_000_000  # tokens times weights that are kept at once: 1.2 GB
JACOBIANS, STEPS_PER_JACOBIAN = 4, 4  # at most; derivatives are computed again once the largest changes are made
MAX_CHANGE, TOLERANCE = 2.0, 0.02  # of a log-odds in one of these steps; of the distance to the target
RIDGE = 1e-4  # relative to the mean of the diagonal

Change = tuple[list[float], list[float]]  # log-probabilities of tokens before and after the step


class Targets(NamedTuple):
    """places: (tokens, 2), line and column of every token that has a target. logprobs: (tokens,), the targets.

    Line 0 is the completion, line 1 + i the branch i of the corrections.
    """

    places: Tensor
    logprobs: Tensor


def constrained_step(
    policy: Policy,
    prompt: list[int],
    completion: list[int],
    rewards: Sequence[float],
    step_size: float,
    corrected: Sequence[CorrectedBranch] = (),
) -> list[Change]:
    """Move every token to its target (`find_targets`); return the change of the completion and of each branch.

    Changes weights of the model's last layers in place. Raises UserError where there is nothing to do.
    """
    rewards = [reward if abs(reward) >= SMALLEST_REWARD else 0.0 for reward in rewards]
    if not any(rewards) and not corrected:
        raise UserError("praise and blame of the same words cancel out; write a comment with one opinion per word")
    policy.eval()
    device = next(policy.parameters()).device
    branches = [Branch(0, branch.start, branch.ids) for branch in corrected]
    scorer = _Scorer(policy, pad_rows([prompt], [completion], [[0]], device, branches))
    num_targets = len(completion) + sum(c.last - c.first for branch in corrected for c in branch.corrections)
    weights = last_weights(policy.model, min(MAX_WEIGHTS, MAX_DERIVATIVES // num_targets))
    with _only_trained(policy.model, weights), _remembering(layers_below(policy.model, weights)):
        before = scorer.look()
        targets = find_targets(before.cpu(), completion, rewards, step_size, corrected)
        tokens = scorer.tokens_at(targets.places.to(device))
        _reach(log_odds(targets.logprobs).to(device), scorer, tokens, weights)
        after = scorer.look()
    lengths = [len(completion), *(len(branch.ids) for branch in corrected)]
    return [(before[i, :length].tolist(), after[i, :length].tolist()) for i, length in enumerate(lengths)]


@dataclass(frozen=True)
class _Scorer:
    """The two halves of a policy's log-probabilities: all layers, and the output layer, which is the same for all."""

    policy: Policy
    batch: TokenBatch

    def states(self) -> Tensor:
        """Return the states before the tokens: (tokens, width)."""
        model = self.policy.model
        hidden = get_backbone(model)(**self.batch.model_inputs(compute_dtype(model)), use_cache=False)[0]
        states: Tensor = hidden[self.batch.rows, self.batch.state_columns]
        return states

    def logprobs(self, states: Tensor) -> Tensor:
        """Return the log-probabilities of the tokens: (tokens,)."""
        model, ids = self.policy.model, self.batch.ids[self.batch.rows, self.batch.columns]
        size = logprob_chunk_size(vocab_size(model), states.device.type)
        return chunked_logprobs(states, get_projection(model), ids, 1.0, size, with_entropy=False)[0].float()

    @torch.no_grad()
    def look(self) -> Tensor:
        """Return the log-probabilities by line and column: (1 + branches, columns)."""
        return self.batch.scatter(self.logprobs(self.states()))

    def tokens_at(self, places: Tensor) -> Tensor:
        """Return the indices of tokens by line and column, (places, 2)."""
        numbers = torch.arange(len(self.batch.rows), device=places.device, dtype=torch.float64)
        return self.batch.scatter(numbers)[places.unbind(1)].long()


@contextmanager
def _only_trained(model: PreTrainedModel, weights: Sequence[nn.Parameter]) -> Iterator[None]:
    required = {parameter: parameter.requires_grad for parameter in model.parameters()}
    try:
        for parameter in required:
            parameter.requires_grad_(any(parameter is weight for weight in weights))
        yield
    finally:
        for parameter, value in required.items():
            parameter.requires_grad_(value)


def find_targets(
    before: Tensor,
    completion: Sequence[int],
    rewards: Sequence[float],
    step_size: float,
    corrected: Sequence[CorrectedBranch] = (),
) -> Targets:
    """Return which tokens should get which log-probability.

    before: (1 + branches, tokens), log-probabilities of the completion and of each branch.
    Rewarded tokens move by step_size times reward / mean |reward|, praised ones at most to `MAX_PROBABILITY`.
    Corrections rise by `CORRECTION_SIZE` steps, at most to `TARGET_PROBABILITY`, which those in one place share.
    A token in the place of a correction falls by what all others lose to it; blamed ones at least by their own step.
    All other tokens of the completion stay.
    """
    mean = sum(map(abs, rewards)) / max(1, sum(reward != 0 for reward in rewards))
    wanted = [
        _rewarded(float(logprob), reward, step_size * reward / mean if reward else 0.0)
        for logprob, reward in zip(before[0], rewards, strict=False)
    ]
    places = [(0, column) for column in range(len(completion))]
    forks = [_fork(branch, completion) for branch in corrected]
    rivals = Counter(fork[0] for fork in set(forks) if fork)
    taken: dict[tuple[int, int], tuple[float, float]] = {}  # probability of what replaces a token, before and after
    for line, (branch, fork) in enumerate(zip(corrected, forks, strict=True), 1):
        for column in _corrected_columns(branch):
            replaces = fork if column == branch.corrections[0].first else None
            highest = math.log(TARGET_PROBABILITY / (rivals[replaces[0]] if replaces else 1))
            old = float(before[line, column])
            new = max(old, min(highest, old + CORRECTION_SIZE * step_size))
            places.append((line, column))
            wanted.append(new)
            if replaces:
                taken[replaces] = math.exp(old), math.exp(new)
    for column in rivals:
        old, new = (min(0.999, sum(pair[i] for fork, pair in taken.items() if fork[0] == column)) for i in (0, 1))
        wanted[column] = min(wanted[column], float(before[0, column]) + math.log1p(-new) - math.log1p(-old))
    return Targets(torch.tensor(places), torch.tensor(wanted))


def _rewarded(logprob: float, reward: float, change: float) -> float:
    highest = max(logprob, math.log(MAX_PROBABILITY))
    return logprob + change if reward <= 0 else min(logprob + change, highest)


def _corrected_columns(branch: CorrectedBranch) -> Iterator[int]:
    for correction in branch.corrections:
        yield from range(correction.first, correction.last)


def _fork(branch: CorrectedBranch, completion: Sequence[int]) -> tuple[int, int] | None:
    """Return the column of the sampled token that the first correction replaces, and the id that replaces it.

    None where it follows other text than was sampled, or the end of the completion.
    """
    first = branch.corrections[0].first
    column, new = branch.start + first, branch.ids[first]
    if column >= len(completion) or completion[column] == new:
        return None
    return (column, new) if list(completion[branch.start : column]) == branch.ids[:first] else None


def last_weights(model: PreTrainedModel, budget: int) -> list[nn.Parameter]:
    """Return parameters of the last layers that have together between half of `budget` and all of it, where they can.

    Without embeddings and output layer: they would change what a word is, wherever it stands.
    """
    layers: list[Any] = [model.get_input_embeddings(), model.get_output_embeddings()]  # type: ignore[no-untyped-call]
    outer = [parameter for layer in layers for parameter in layer.parameters()]
    inner = [parameter for parameter in model.parameters() if not any(parameter is other for other in outer)]
    chosen: list[nn.Parameter] = []
    left = budget
    for parameter in reversed(inner):
        if parameter.numel() <= left:
            chosen.append(parameter)
            left -= parameter.numel()
        if 2 * left <= budget:
            break
    return chosen or [min(inner, key=lambda parameter: parameter.numel())]


def layers_below(model: PreTrainedModel, weights: Sequence[nn.Parameter]) -> list[nn.Module]:
    """Return the layers before the first that has one of the weights; none in a model without a list of layers."""
    lists = [list(module) for module in get_backbone(model).modules() if isinstance(module, nn.ModuleList)]
    layers = max(lists, key=lambda each: sum(p.numel() for layer in each for p in layer.parameters()), default=[])
    changed = [any(p is weight for p in layer.parameters() for weight in weights) for layer in layers]
    return layers[: changed.index(True)] if any(changed) else []


def _remembering(layers: Sequence[nn.Module]) -> AbstractContextManager[None]:
    """Let layers return again what they returned at first: neither their input nor their weights change."""
    found: dict[nn.Module, Any] = {}

    def forward_of(layer: nn.Module) -> Callable[..., Any]:
        compute = layer.forward

        def forward(*arguments: Any, **named: Any) -> Any:
            if layer not in found:
                with torch.no_grad():
                    found[layer] = compute(*arguments, **named)
            return found[layer]

        return forward

    return patched_forward([(layer, forward_of(layer)) for layer in layers])


def log_odds(logprobs: Tensor) -> Tensor:
    """Return log p - log(1 - p), elementwise: unlike log p, nearly linear in the weights. 1 - p is at least .001."""
    return logprobs - torch.log((-torch.expm1(logprobs)).clamp(min=1e-3))


def _reach(wanted: Tensor, scorer: _Scorer, tokens: Tensor, weights: list[nn.Parameter]) -> None:
    """Change the weights by Gauss-Newton steps until the log-odds of the tokens are those wanted.

    Each step is J' (J J')^-1 (wanted - log-odds), with the derivatives J: (tokens, weights). They are large and change
    slowly, so several steps use the same. A step that leads away from what is wanted is undone, and halved.
    """
    longest = MAX_CHANGE
    for _ in range(JACOBIANS):
        jacobian, odds = _derivatives(scorer, tokens, weights)
        missing = wanted - odds
        gram = jacobian @ jacobian.T
        gram += RIDGE * gram.diagonal().mean() * torch.eye(len(gram), device=gram.device)
        for _ in range(STEPS_PER_JACOBIAN):
            if missing.abs().max() < TOLERANCE:
                return
            step = jacobian.T @ torch.linalg.solve(gram, missing.clamp(-longest, longest))
            _add(step, weights, 1.0)
            with torch.no_grad():
                left = wanted - log_odds(scorer.logprobs(scorer.states()))[tokens]
            if left.norm() > missing.norm():
                _add(step, weights, -1.0)
                longest /= 2
            else:
                missing = left


def _derivatives(scorer: _Scorer, tokens: Tensor, weights: list[nn.Parameter]) -> tuple[Tensor, Tensor]:
    """Return the derivatives of the tokens' log-odds, (tokens, weights), and the log-odds themselves, (tokens,).

    A token's log-odds depend on its own state alone: one backward pass through the output layer serves all of them, and
    only that through the last layers is made for each token.
    """
    states = scorer.states()
    last = states.detach().requires_grad_()
    odds = log_odds(scorer.logprobs(last))
    (by_state,) = torch.autograd.grad(odds.sum(), last)
    rows = []
    for token in tokens.tolist():
        direction = torch.zeros_like(states)
        direction[token] = by_state[token]
        found = torch.autograd.grad(states, weights, direction, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([gradient.flatten() for gradient in found]))
    return torch.stack(rows), odds.detach()[tokens]


@torch.no_grad()
def _add(step: Tensor, weights: list[nn.Parameter], sign: float) -> None:
    for weight, part in zip(weights, torch.split(step, [weight.numel() for weight in weights]), strict=True):
        weight.add_(part.view_as(weight), alpha=sign)
