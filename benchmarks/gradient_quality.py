"""How good is each estimator's gradient? Bias, variance and direction against the gradient from 50,000 samples.

Records of 2, 4, 8 and 16 fields told by a model of two layers (`tiny_records.py`), the last field dependent on the
first. All estimators get the same samples and the same critique, of which the total is the objective: share of right
words, as a score. The reference is the leave-one-out gradient of that total, which is unbiased, from 50,000 samples.

bias: 1 less the cosine between the mean gradient and the reference (the length of a gradient is a learning rate).
variance: mean squared distance of a batch's gradient from the mean, over the mean's squared length.
cosine: between one batch's gradient and the reference, mean over batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, stdev
from typing import Any, NamedTuple

import harness
import torch
from tiny_records import NUM_VALUES, Task, pretrain
from torch import Tensor
from transformers import LlamaForCausalLM

from text2grad.trainer.advantages import gae, leave_one_out_baseline, return_to_go, rloo, rloo_tokens, span_advantages

FIELDS, BATCHES, GROUP = (2, 4, 8, 16), (8, 32, 128), 4
NUM_SAMPLES, NUM_REFERENCE, VALUE_SAMPLES = 6_400, 50_000, 4_000
PRETRAINING = 300
ROLLOUTS_PER_STATE = 8  # of the Monte-Carlo values
MIN_BATCHES = 25


class Samples(NamedTuple):
    """prompts, answers: ids. rewards: of tokens, their sums less 1 being the score. wanted: ids of
    the right words."""

    prompts: Tensor
    answers: Tensor
    rewards: Tensor
    wanted: Tensor


def main() -> None:
    args = harness.options(__doc__ or "")
    results: dict[str, Any] = {}
    for fields in FIELDS[:1] if args.quick else FIELDS:
        task = Task(fields, dependent=True)
        results[str(fields)] = measure(task, quick=args.quick)
        show(fields, results[str(fields)])
    harness.report("gradient_quality", {"fields": results}, {}, args)


def measure(task: Task, quick: bool) -> dict[str, Any]:
    """Return for every batch size and estimator its bias, variance and cosine."""
    tokenizer = task.tokenizer()
    model = pretrain(task, tokenizer, seed=0, steps=20 if quick else PRETRAINING)
    scale = 50 if quick else 1
    reference = torch.zeros(num_parameters(model))
    drawn = 0
    while drawn < NUM_REFERENCE // scale:
        samples = sample(task, model, tokenizer, 512, seed=1_000 + drawn)
        mask = torch.ones_like(samples.rewards)
        reference += gradients(model, samples, {"": rloo(samples.rewards, mask, GROUP)})[""]
        drawn += 512
    values = fit_values(task, model, sample(task, model, tokenizer, VALUE_SAMPLES // scale, seed=1))
    found: dict[str, Any] = {"explained_variance": values.explained, "batches": {}}
    for batch in BATCHES[:1] if quick else BATCHES:
        found_here: dict[str, Quality] = {}
        for i in range(max(NUM_SAMPLES // scale // batch, MIN_BATCHES // scale + 2)):
            samples = sample(task, model, tokenizer, batch, seed=100_000 + i)
            weights = advantages(task, model, samples, values, with_vine=i < MIN_BATCHES // scale + 2)
            for name, gradient in gradients(model, samples, weights).items():
                found_here.setdefault(name, Quality(reference)).add(gradient)
        found["batches"][str(batch)] = {name: quality.summary() for name, quality in found_here.items()}
    return found


def advantages(
    task: Task, model: LlamaForCausalLM, samples: Samples, values: Values, with_vine: bool
) -> dict[str, Tensor]:
    """Return the advantages of every candidate, each (samples, tokens)."""
    rewards = samples.rewards
    mask = torch.ones_like(rewards)
    outcomes = torch.ones(len(rewards))
    estimated = values.predict(model, samples)
    segment = (torch.arange(rewards.shape[1]) // (task.filler + 1)).expand_as(rewards)
    own = within_segments(rewards, segment)
    scalar = rloo(rewards, mask, GROUP)
    found = {
        "scalar": scalar,
        "scalar, batch baseline": rloo(rewards, mask, len(rewards)),
        "return to go": rloo_tokens(rewards, mask, GROUP, 1.0),
        "return to go, batch baseline": rloo_tokens(rewards, mask, len(rewards), 1.0),
        "gae .95": gae(rewards, estimated, mask, 1.0, 0.95).advantages,
        "gae, lambda per span": span_gae(rewards, estimated, segment, 0.95),
        "redistributed": gae(rewards, estimated, mask, 1.0, 0.0).advantages,
        "own span": own - leave_one_out_baseline(own, mask, GROUP),
        "own span, batch baseline": own - leave_one_out_baseline(own, mask, len(rewards)),
        "own token": rewards - leave_one_out_baseline(rewards, mask, GROUP),
        "scalar + own span": scalar / task.fields + own - leave_one_out_baseline(own, mask, GROUP),
        "local": span_advantages(rewards, mask, "local", group_size=GROUP).advantages,
        "local + outcome": span_advantages(rewards, mask, "local", group_size=GROUP, outcomes=outcomes).advantages,
        "local, first wrong token": span_advantages(
            on_first_wrong_token(rewards, segment), mask, "local", group_size=GROUP
        ).advantages,
        "rloo_tokens + outcome": span_advantages(
            rewards, mask, "rloo_tokens", group_size=GROUP, outcomes=outcomes
        ).advantages,
    }
    if with_vine:
        found["Monte-Carlo values"] = return_to_go(rewards, mask, 1.0) - vine_values(task, model, samples, segment)
    return found


def within_segments(rewards: Tensor, segment: Tensor) -> Tensor:
    """Sum of the rewards from a token to the end of its segment. rewards, segment, result: (samples, tokens)."""
    later = torch.ones(rewards.shape[1], rewards.shape[1]).triu()
    same = segment[0].unsqueeze(0) == segment[0].unsqueeze(1)
    return rewards @ (later * same).T


def on_first_wrong_token(rewards: Tensor, segment: Tensor) -> Tensor:
    """Move the rewards of each segment to the first token in it that has one. All: (samples, tokens)."""
    wrong = (rewards != 0).float()
    earlier = torch.ones(rewards.shape[1], rewards.shape[1]).triu(1)
    same = (segment[0].unsqueeze(0) == segment[0].unsqueeze(1)).float()
    is_first = wrong * (wrong @ (earlier * same) == 0)
    return is_first * (rewards @ same)


def span_gae(rewards: Tensor, values: Tensor, segment: Tensor, lam: float) -> Tensor:
    """GAE whose trace decays by lam where a new segment begins instead of at every token."""
    result, carried = torch.zeros_like(rewards), torch.zeros(len(rewards))
    last = rewards.shape[1] - 1
    for t in reversed(range(rewards.shape[1])):
        following = values[:, t + 1] if t < last else torch.zeros(len(rewards))
        decay = lam if t < last and segment[0, t + 1] != segment[0, t] else 1.0
        carried = rewards[:, t] + following - values[:, t] + decay * carried
        result[:, t] = carried
    return result


class Values(NamedTuple):
    """A linear value head on the state before each token, with one bias per index."""

    weights: Tensor
    biases: Tensor
    explained: float

    def predict(self, model: LlamaForCausalLM, samples: Samples) -> Tensor:
        return hidden_states(model, samples) @ self.weights + self.biases


def fit_values(task: Task, model: LlamaForCausalLM, samples: Samples) -> Values:
    """Ridge regression of the return to go; the explained variance is that of the second half, fitted on the first."""
    states, returns = (
        hidden_states(model, samples),
        return_to_go(samples.rewards, torch.ones_like(samples.rewards), 1.0),
    )
    half = len(states) // 2

    def solve(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        mean_x, mean_y = x.mean(0), y.mean(0)
        flat_x, flat_y = (x - mean_x).flatten(0, 1).double(), (y - mean_y).flatten().double()
        gram = flat_x.T @ flat_x + 1e-3 * len(flat_x) * torch.eye(flat_x.shape[1], dtype=torch.double)
        weights = torch.linalg.solve(gram, flat_x.T @ flat_y).float()
        return weights, mean_y - mean_x @ weights

    weights, biases = solve(states[:half], returns[:half])
    rest = returns[half:] - (states[half:] @ weights + biases)
    explained = 1 - float(rest.var() / (returns[half:] - returns[:half].mean(0)).var())
    return Values(*solve(states, returns), explained)


def vine_values(task: Task, model: LlamaForCausalLM, samples: Samples, segment: Tensor) -> Tensor:
    """Mean return of new continuations from the start of every segment, constant within it."""
    rewards, starts = (
        samples.rewards,
        [t for t in range(segment.shape[1]) if not t or segment[0, t] != segment[0, t - 1]],
    )
    values = torch.zeros_like(rewards)
    for start in starts:
        prompts = samples.prompts.repeat_interleave(ROLLOUTS_PER_STATE, 0)
        prefixes = samples.answers[:, :start].repeat_interleave(ROLLOUTS_PER_STATE, 0)
        generator = torch.Generator().manual_seed(start)
        answers = continue_answers(model, prompts, prefixes, rewards.shape[1], generator)
        earned = score_answers(task, prompts, answers)[0][:, start:].sum(1)
        mean = earned.view(-1, ROLLOUTS_PER_STATE).mean(1, keepdim=True)
        values = torch.where(segment == segment[0, start], mean, values)
    return values


def sample(task: Task, model: LlamaForCausalLM, tokenizer: Any, count: int, seed: int) -> Samples:
    """Draw answers, GROUP neighbours per prompt, and mark their wrong words."""
    examples = task.examples(count // GROUP, seed)
    prompts = torch.tensor([tokenizer(example.prompt_text)["input_ids"] for example in examples])
    prompts = prompts.repeat_interleave(GROUP, 0)
    answers = continue_answers(
        model, prompts, prompts[:, :0], task.answer_length - 1, torch.Generator().manual_seed(seed)
    )
    rewards, wanted = score_answers(task, prompts, answers)
    return Samples(prompts, answers, rewards, wanted)


@torch.no_grad()
def continue_answers(
    model: LlamaForCausalLM, prompts: Tensor, prefixes: Tensor, length: int, generator: torch.Generator
) -> Tensor:
    """Sample each answer to `length` tokens after its prefix; answers have that many words without an end token."""
    ids = torch.cat([prompts, prefixes], 1)
    cache, new = None, ids
    while ids.shape[1] < prompts.shape[1] + length:
        output = model(input_ids=new, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        new = torch.multinomial(output.logits[:, -1].softmax(-1), 1, generator=generator)
        ids = torch.cat([ids, new], 1)
    return ids[:, prompts.shape[1] :]


def score_answers(task: Task, prompts: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Return the token rewards, -2 / fields for every wrong word, and the ids of the right words.

    prompts: (samples, 2 * fields + 1), answers, both results: (samples, tokens). Ids are those of the task's tokenizer.
    """
    width = 1 + task.filler + NUM_VALUES
    values = (prompts[:, 1:-1:2] - 2) % width - 1 - task.filler  # (samples, fields), numbers of the values
    if task.dependent:
        said = answers[:, task.filler] - 3 - task.filler
        told = (said >= 0) & (said < NUM_VALUES)
        values[:, -1] = (torch.where(told, said, values[:, 0]) + 1) % NUM_VALUES
    starts = 2 + width * torch.arange(task.fields)
    fillers = (starts.unsqueeze(1) + 1 + torch.arange(task.filler)).expand(len(prompts), -1, -1)
    right = torch.cat([fillers, (starts + 1 + task.filler + values).unsqueeze(2)], 2).flatten(1)
    return (answers != right).float() * (-2 / task.fields), right


def hidden_states(model: LlamaForCausalLM, samples: Samples) -> Tensor:
    """(samples, tokens, width): the last states before each token of the answers."""
    with torch.no_grad():
        ids = torch.cat([samples.prompts, samples.answers], 1)
        return model.model(input_ids=ids).last_hidden_state[:, samples.prompts.shape[1] - 1 : -1]


def gradients(model: LlamaForCausalLM, samples: Samples, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the policy gradient under each set of advantages, and that of the corrections where any are asked for."""
    ids = torch.cat([samples.prompts, samples.answers], 1)
    logits = model(input_ids=ids).logits[:, samples.prompts.shape[1] - 1 : -1].log_softmax(-1)
    logprobs = logits.gather(2, samples.answers.unsqueeze(2)).squeeze(2)
    objectives = {name: (advantage * logprobs).sum() / len(ids) for name, advantage in weights.items()}
    if len(weights) > 1:
        wanted = logits.gather(2, samples.wanted.unsqueeze(2)).squeeze(2)
        objectives["corrections"] = (wanted * (samples.rewards < 0)).sum() / len(ids)
    parameters = list(model.parameters())
    found = {}
    for name, objective in objectives.items():
        parts = torch.autograd.grad(objective, parameters, retain_graph=True)
        found[name] = torch.cat([part.flatten() for part in parts])
    return found


class Quality:
    """Running moments of the gradients of batches, against a reference of shape (parameters,)."""

    def __init__(self, reference: Tensor) -> None:
        self.reference = reference
        self.total = torch.zeros_like(reference, dtype=torch.double)
        self.squares = 0.0
        self.cosines: list[float] = []

    def add(self, gradient: Tensor) -> None:
        self.total += gradient
        self.squares += float(gradient.double().square().sum())
        self.cosines.append(float(torch.cosine_similarity(gradient, self.reference, dim=0)))

    def summary(self) -> dict[str, float]:
        count = len(self.cosines)
        mean = self.total / count
        spread = (self.squares / count - float(mean.square().sum())) * count / (count - 1)
        squared = max(float(mean.square().sum()) - spread / count, 1e-12)  # without the noise of the mean
        direction = float(mean @ self.reference.double()) / (squared**0.5 * float(self.reference.norm()))
        return {
            "bias": 1 - direction,
            "variance": spread / squared,
            "cosine": fmean(self.cosines),
            "cosine_error": stdev(self.cosines) / count**0.5,
            "batches": count,
        }


def num_parameters(model: LlamaForCausalLM) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def show(fields: int, found: Mapping[str, Any]) -> None:
    for batch, rows in found["batches"].items():
        harness.show(
            f"{fields} fields, batches of {batch}; value head explains {found['explained_variance']:.2f}",
            ["estimator", "bias", "variance", "cosine"],
            [[name, f"{q['bias']:.3f}", f"{q['variance']:.1f}", f"{q['cosine']:.3f}"] for name, q in rows.items()],
        )


if __name__ == "__main__":
    main()
