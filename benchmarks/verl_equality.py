"""verl's own code with our plug-in, on the CPU, against ours: token rewards, advantages and the gradient of one step.

Four completions of each prompt (a good summary, a faulty one, one that is cut off, one on which the critic fails) go
through verl's agent-loop worker into its TransferQueue on Ray, through its colocated reward loop, through the advantage
computation of its PPO trainer with each of our estimators, and through its PPO loss on a small random model. Measured
are the largest differences from our own functions on the same ids. What verl runs on GPUs only is replaced: its rollout
engine by the fixed completions, its training engine by a forward pass of transformers.
Run it in an environment with verl 0.9.1 (docs/verl.md).
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # a cluster of this machine, for this run

import ray
import torch
import transfer_queue as tq
from harness import Bar, options, report, show
from hydra import compose, initialize_config_module
from small_model import small_model
from tensordict import TensorDict
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from verl.experimental.reward_loop import RewardLoopManager
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.rollout.replica import TokenOutput
from verl.workers.utils.losses import ppo_loss

from text2grad.align.tokens import decode, offsets
from text2grad.critics.base import collect_feedback
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.data import summaries
from text2grad.integrations.verl.advantages import VERL_NAMES
from text2grad.integrations.verl.rows import to_row
from text2grad.models.loading import load_model, load_tokenizer
from text2grad.rewards.credit import TokenRewards, token_rewards
from text2grad.schema import Example, Feedback, Message
from text2grad.trainer.advantages import normalize, span_advantages

LIMIT, GENERATIONS = 48, 4
UNREADABLE = "(no comment)"


class HalfBlindCritic(GroundingCritic):
    """The grounding critic, which fails on a certain completion."""

    def critique(self, examples: Any) -> list[Feedback]:
        return [
            Feedback.failure("grounding", "planted") if example.completion == UNREADABLE else feedback
            for example, feedback in zip(examples, super().critique(examples), strict=True)
        ]


class Sample(NamedTuple):
    """A completion, and what our own functions say that its tokens earn."""

    example: Example
    ids: list[int]
    earned: TokenRewards


def main() -> None:
    args = options(__doc__ or "")
    with tempfile.TemporaryDirectory() as scratch:
        model = small_model(Path(scratch, "model"))
        config = make_config(model)
        samples = make_samples(2 if args.quick else 8, load_tokenizer(model))
        ray.init(num_cpus=2, include_dashboard=False)
        tq.init(config.transfer_queue)
        try:
            figures = measure(config, model, samples)
        finally:
            tq.close()
            ray.shutdown()
    differences = {name: value for name, value in figures.items() if name.endswith("_difference")}
    show("verl against ours", ["", "largest difference"], [[k, f"{v:.1e}"] for k, v in differences.items()])
    bars = {name: Bar(at_most=1e-6) for name in differences} | {"gradient_difference": Bar(at_most=1e-5)}
    report("verl_equality", figures, bars | {"samples": Bar(at_least=len(samples))}, args)


def make_config(model: str) -> Any:
    """Return the configuration of verl's trainer, with our plug-in."""
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose(
            "ppo_trainer",
            [
                f"actor_rollout_ref.model.path={model}",
                "actor_rollout_ref.rollout.name=vllm",
                f"actor_rollout_ref.rollout.n={GENERATIONS}",
                "actor_rollout_ref.rollout.prompt_length=1024",
                f"actor_rollout_ref.rollout.response_length={LIMIT}",
                "actor_rollout_ref.rollout.agent.default_agent_loop=text2grad",
                "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1",
                "reward.num_workers=1",
                "reward.reward_manager.name=text2grad",
                "+algorithm.text2grad.critic.name=verl_equality:HalfBlindCritic",
                "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
            ],
        )


def make_samples(num_prompts: int, tokenizer: Any) -> list[Sample]:
    """Return completions of several kinds, those of one prompt in neighbouring places."""
    samples = []
    for example in list(summaries.load("train"))[:num_prompts]:
        reference, document = str(example.reference), str(example.meta["document"])
        texts = [reference, f"It cost 97 pounds. {reference}", document, UNREADABLE]
        for text in texts:
            ids = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id][:LIMIT]
            samples.append(Sample(example, ids, earn(example, ids, tokenizer)))
    return samples


def earn(example: Example, ids: list[int], tokenizer: Any) -> TokenRewards:
    """Return the token rewards by our own functions."""
    completed = example.model_copy(update={"completion": decode(ids, tokenizer)})
    (feedback,) = collect_feedback(HalfBlindCritic(), [completed])
    return token_rewards(feedback, offsets(ids, tokenizer), truncated=ids[-1] != tokenizer.eos_token_id)


def measure(config: Any, model: str, samples: list[Sample]) -> dict[str, Any]:
    """Return the largest differences, and how many samples and tokens they are of."""
    keys = run_agent_loops(config, samples)
    batch = tq.KVBatchMeta(partition_id="train", keys=keys, tags=[{} for _ in keys])
    stored = tq.kv_batch_get(keys=keys, partition_id="train", select_fields=["rm_scores", "response_mask"])
    rewards, outcomes, mask = expected_rewards(samples)
    figures: dict[str, Any] = {
        "samples": len(samples),
        "tokens": sum(len(sample.ids) for sample in samples),
        "truncated": sum(len(sample.ids) == LIMIT for sample in samples),
        "failed_critiques": sum(not sample.earned.valid for sample in samples),
        "rewarded_tokens": int((rewards != 0).sum()),
        "agent_loop_rewards_difference": float(
            (padded(stored["rm_scores"]) - fold(rewards, outcomes, mask)).abs().max()
        ),
        "agent_loop_mask_difference": difference(padded(stored["response_mask"]), mask),
        "colocated_rewards_difference": colocated_difference(config, model, batch, samples),
    }
    old = forward_logprobs(model, samples)
    put(batch, "old_log_probs", [one.detach() for one in old])
    for verl_name, estimator in VERL_NAMES.items():
        config.algorithm.adv_estimator = verl_name
        PPOTrainer._compute_advantage(SimpleNamespace(config=config), batch, {})
        found = padded(tq.kv_batch_get(keys=keys, partition_id="train", select_fields=["advantages"])["advantages"])
        estimate = span_advantages(rewards, mask, estimator, group_size=GENERATIONS, outcomes=outcomes)
        ours = normalize(estimate.advantages, mask, "scale")
        figures[f"{estimator}_advantages_difference"] = difference(found, ours)
        figures[f"{estimator}_tokens_with_advantage"] = int((found != 0).sum())
    return figures | {"gradient_difference": gradient_difference(config, model, batch, samples, ours, mask)}


def run_agent_loops(config: Any, samples: list[Sample]) -> list[str]:
    """Run verl's agent-loop worker on all prompts; return the keys of the completions in its TransferQueue."""
    left = {sample.example.id: [] for sample in samples}
    for sample in samples:
        left[sample.example.id].append(sample.ids)
    waiting = list(left.values())

    class FixedEngine:
        async def generate(self, **_: Any) -> TokenOutput:
            ids = waiting[0].pop(0)
            return TokenOutput(token_ids=ids, log_probs=[-1.0] * len(ids))

    worker = AgentLoopWorkerTQ.__ray_metadata__.modified_class(config, FixedEngine(), None, None)
    examples = list({sample.example.id: sample.example for sample in samples}.values())

    async def run() -> None:
        for index, example in enumerate(examples):
            row = to_row(example, index)
            prompt = {
                "raw_prompt": row["prompt"],
                "extra_info": row["extra_info"],
                "uid": f"prompt{index}",
                "index": index,
                "global_steps": 0,
                "agent_name": "text2grad",
            }
            trajectory = {"step": 0, "sample_index": index, "rollout_n": 0, "validate": False}
            await worker._run_prompt(prompt, {}, trajectory)
            waiting.pop(0)

    asyncio.run(run())
    keys = [f"prompt{index}_{session}_0" for index in range(len(examples)) for session in range(GENERATIONS)]
    stored = tq.kv_batch_get(keys=keys, partition_id="train", select_fields=["responses"])["responses"].unbind()
    # Sessions of a prompt run at the same time: which of them got which completion is not known before.
    key_of = {(key.split("_")[0], tuple(ids.tolist())): key for key, ids in zip(keys, stored, strict=True)}
    return [key_of[f"prompt{i // GENERATIONS}", tuple(sample.ids)] for i, sample in enumerate(samples)]


def colocated_difference(config: Any, model: str, batch: Any, samples: list[Sample]) -> float:
    """Return the largest difference of the rewards of verl's colocated reward loop, whose critic sees prompts only."""
    trainer = SimpleNamespace(
        config=config,
        tokenizer=load_tokenizer(model),
        reward_loop_manager=RewardLoopManager(config),
        _lengths_to_mask=PPOTrainer._lengths_to_mask,
    )
    before = tq.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=["rm_scores"])
    PPOTrainer._compute_reward_colocate(trainer, batch)
    stored = tq.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=["rm_scores"])["rm_scores"]
    tq.kv_batch_put(keys=batch.keys, partition_id="train", fields=before)  # those of the agent loop again
    worst = 0.0
    for sample, found in zip(samples, stored.unbind(), strict=True):
        prompt = [Message(role="user", content=sample.example.prompt_text)]
        earned = earn(Example(id="", prompt=prompt), sample.ids, trainer.tokenizer)
        if not earned.valid:
            worst = worst if found.isnan().all() else float("inf")
            continue
        wanted = torch.from_numpy(earned.rewards.copy())
        wanted[-1] += earned.outcome
        worst = max(worst, float((found - wanted).abs().max()))
    return worst


def expected_rewards(samples: list[Sample]) -> tuple[Tensor, Tensor, Tensor]:
    """Return our rewards (samples, tokens), outcomes (samples,) and mask.

    A span on the last token of a truncated completion counts for the whole one, as docs/verl.md says.
    """
    rewards = pad_sequence([torch.from_numpy(sample.earned.rewards.copy()) for sample in samples], batch_first=True)
    mask = pad_sequence([torch.ones(len(s.ids)) * s.earned.valid for s in samples], batch_first=True)
    outcomes = torch.tensor([sample.earned.outcome or 0.0 for sample in samples])
    for row, sample in enumerate(samples):
        outcomes[row] += rewards[row, len(sample.ids) - 1]
        rewards[row, len(sample.ids) - 1] = 0.0
    return rewards, outcomes, mask


def fold(rewards: Tensor, outcomes: Tensor, mask: Tensor) -> Tensor:
    """Return the rewards with the outcomes on the last valid tokens."""
    folded, valid = rewards.clone(), mask.any(1)
    folded[torch.arange(len(folded))[valid], mask.sum(1).long()[valid] - 1] += outcomes[valid]
    return folded


def forward_logprobs(model: str, samples: list[Sample], loaded: Any = None) -> list[Tensor]:
    """Return the log-probability of every response token, as the training engine would."""
    network, tokenizer = loaded or load_model(model), load_tokenizer(model)
    results = []
    for sample in samples:
        prompt = tokenizer.apply_chat_template(to_row(sample.example, 0)["prompt"], add_generation_prompt=True)
        prompt = prompt["input_ids"] if not isinstance(prompt, list) else prompt
        ids = torch.tensor([[*prompt, *sample.ids]])
        logits = network(ids).logits[0, len(prompt) - 1 : -1].float()
        results.append(logits.log_softmax(-1).gather(1, torch.tensor(sample.ids).unsqueeze(1)).squeeze(1))
    return results


def gradient_difference(
    config: Any, model: str, batch: Any, samples: list[Sample], advantages: Tensor, mask: Tensor
) -> float:
    """Return the relative difference of the gradient of verl's PPO loss from that of -mean(A log p) over all tokens."""
    network = load_model(model)
    fields = ["prompts", "responses", "response_mask", "old_log_probs", "advantages"]
    data = tq.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=fields)
    tu.assign_non_tensor(data, dp_size=1, batch_num_tokens=None, global_batch_size=None)
    logprobs = forward_logprobs(model, samples, network)
    lengths = data["prompts"].offsets().diff().tolist()
    # values[t] is the log-probability of token t + 1, over prompt and response
    flat = [torch.cat([torch.zeros(n - 1), one, torch.zeros(1)]) for n, one in zip(lengths, logprobs, strict=True)]
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    loss, _ = ppo_loss(actor, {"log_probs": torch.cat(flat)}, data)
    theirs = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(network.parameters()), retain_graph=True)])
    own_loss = -(advantages * pad_sequence(logprobs, batch_first=True) * mask).sum() / mask.sum()
    ours = torch.cat([g.flatten() for g in torch.autograd.grad(own_loss, list(network.parameters()))])
    return float((theirs - ours).norm() / ours.norm())


def difference(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


def put(batch: Any, name: str, rows: list[Tensor]) -> None:
    nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    fields = TensorDict({name: nested}, batch_size=len(rows))
    tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)


def padded(nested: Tensor) -> Tensor:
    return nested.to_padded_tensor(0).float()


if __name__ == "__main__":
    main()
