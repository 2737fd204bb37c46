"""verl's own agent loop, reward loop, advantage code and policy loss with our plug-in, on the CPU."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from text2grad.align.tokens import decode, offsets
from text2grad.integrations.verl.rows import to_row
from text2grad.models.loading import load_tokenizer
from text2grad.rewards.credit import token_rewards
from text2grad.schema import Example, Feedback, Span
from text2grad.trainer.advantages import normalize, span_advantages

pytestmark = pytest.mark.filterwarnings("default")  # verl's own warnings are not ours

LIMIT = 8
EXAMPLES = [Example(id=str(i), prompt=f"Write the word number {i}.") for i in range(2)]


class LetterCritic:
    """Praises every z, blames every vowel, and scores their difference; fails where the answer has a q."""

    def critique(self, examples: list[Example]) -> list[Feedback]:
        return [self._comment(example.completion) for example in examples]

    def _comment(self, text: str) -> Feedback:
        if "q" in text:
            return Feedback.failure("letters", "a q")
        labels = {"z": "good"} | dict.fromkeys("aeiou", "poor")
        found = [(i, labels[c]) for i, c in enumerate(text) if c in labels]
        spans = [Span.model_validate({"start": i, "end": i + 1, "label": label, "severity": 0.3}) for i, label in found]
        score = sum(0.1 if label == "good" else -0.1 for _, label in found)
        return Feedback(critique="Letters.", spans=spans, score=max(-1.0, min(1.0, score)), critic="letters")


@pytest.fixture
def verl(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = pytest.importorskip("verl", reason="needs verl 0.9.1, in an environment of its own: docs/verl.md")
    import importlib

    importlib.import_module("text2grad.integrations.verl.plugin")
    from text2grad.integrations.verl import scoring

    monkeypatch.setattr(scoring, "make_critic", lambda name, options: LetterCritic())
    scoring._critic.cache_clear()
    return module


@pytest.fixture
def config(verl: Any, tiny_model: Path) -> Any:
    """verl's configuration of the trainer, with our plug-in."""
    from hydra import compose, initialize_config_module

    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose(
            "ppo_trainer",
            [
                f"actor_rollout_ref.model.path={tiny_model}",
                "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1",
                "actor_rollout_ref.rollout.name=vllm",
                "actor_rollout_ref.rollout.prompt_length=64",
                f"actor_rollout_ref.rollout.response_length={LIMIT}",
                "actor_rollout_ref.rollout.agent.default_agent_loop=text2grad",
                "reward.reward_manager.name=text2grad",
                "algorithm.adv_estimator=text2grad_local",
                "+algorithm.text2grad.critic.name=letters",
            ],
        )


def sampled(tiny_model: Path) -> list[list[int]]:
    """Two completions of each prompt: ended, truncated inside a span, ended, failed."""
    tokenizer = load_tokenizer(tiny_model)
    texts = ["a zoo", "bcdfgha", "xyz", "q a"]
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"][:LIMIT] for text in texts]
    ended = [[*one, tokenizer.eos_token_id] if i != 1 else (one * LIMIT)[:LIMIT] for i, one in enumerate(ids)]
    return [one[:LIMIT] for one in ended]


def expected(ids: list[int], tiny_model: Path) -> Any:
    tokenizer = load_tokenizer(tiny_model)
    example = EXAMPLES[0].model_copy(update={"completion": decode(ids, tokenizer)})
    (feedback,) = LetterCritic().critique([example])
    truncated = ids[-1] != tokenizer.eos_token_id
    return token_rewards(feedback, offsets(ids, tokenizer), truncated=truncated)


def on_last(rewards: Any) -> torch.Tensor:
    folded = torch.from_numpy(rewards.rewards.copy())
    folded[-1] += rewards.outcome
    return folded


def run_agent_loop(config: Any, tiny_model: Path, example: Example, ids: list[int]) -> Any:
    """verl's agent loop, with an engine that returns these ids."""
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.utils.dataset.rl_dataset import RLHFDataset
    from verl.workers.rollout.replica import TokenOutput

    from text2grad.integrations.verl.agent_loop import SpanAgentLoop

    class Engine:
        async def generate(self, **_: Any) -> Any:
            return TokenOutput(token_ids=ids, log_probs=[-1.0] * len(ids))

    async def run() -> Any:
        loop = SpanAgentLoop(
            trainer_config=DictConfigWrap(config),
            server_manager=Engine(),
            tokenizer=load_tokenizer(tiny_model),
            processor=None,
            dataset_cls=RLHFDataset,
            data_config=DictConfigWrap(config.data),
        )
        row = to_row(example, 0)
        return await loop.run({}, raw_prompt=row["prompt"], extra_info=row["extra_info"], uid="u")

    return asyncio.run(run())


def test_import_verl_registers_the_plug_in(verl: Any, config: Any) -> None:
    from importlib.metadata import entry_points

    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn
    from verl.trainer.ppo.reward import resolve_reward_manager_cls

    assert "text2grad" in [point.name for point in entry_points(group="verl.plugins")]
    assert resolve_reward_manager_cls(config).__name__ == "SpanRewardManager"
    assert _agent_loop_registry["text2grad"]["_target_"].endswith("SpanAgentLoop")
    assert callable(get_adv_estimator_fn(config.algorithm.adv_estimator))


def test_the_agent_loop_carries_a_reward_for_every_token(verl: Any, config: Any, tiny_model: Path) -> None:
    for ids in sampled(tiny_model):
        fields = run_agent_loop(config, tiny_model, EXAMPLES[0], ids).as_dict()
        assert fields["responses"].tolist() == ids
        assert fields["rm_scores"].dtype == torch.float32
        rewards = expected(ids, tiny_model)
        if rewards.valid:
            assert torch.equal(fields["rm_scores"], on_last(rewards))
            assert fields["response_mask"].all()
        else:
            assert not fields["rm_scores"].any()
            assert not fields["response_mask"].any()  # verl counts it as aborted
        assert set(fields["extra_fields"]["reward_extra_info"]) >= {"critique_failed", "poor_spans"}


def colocated_batch(tiny_model: Path) -> Any:
    """What verl gives its colocated reward loop: padded prompts and responses, and the raw prompts."""
    from tensordict import TensorDict
    from torch.nn.utils.rnn import pad_sequence
    from verl import DataProto

    responses = [torch.tensor(ids) for ids in sampled(tiny_model)]
    prompts = torch.ones(len(responses), 3, dtype=torch.int64)
    masks = [torch.ones(3 + len(ids), dtype=torch.int64) for ids in responses]
    raw_prompts = np.empty(len(responses), dtype=object)
    raw_prompts[:] = [[{"role": "user", "content": EXAMPLES[0].prompt}]] * len(responses)
    return DataProto(
        batch=TensorDict(
            {
                "prompts": prompts,
                "responses": pad_sequence(responses, batch_first=True),
                "attention_mask": pad_sequence(masks, batch_first=True),
            },
            batch_size=len(responses),
        ),
        non_tensor_batch={"raw_prompt": raw_prompts},
    )


def test_verls_reward_loop_assembles_a_reward_for_every_token(verl: Any, config: Any, tiny_model: Path) -> None:
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
    from verl.trainer.ppo.reward import resolve_reward_manager_cls

    data = colocated_batch(tiny_model)

    async def run() -> list[dict[str, Any]]:
        return await RewardLoopWorker(config).compute_score_batch(data)

    outputs = asyncio.run(run())
    assembled = resolve_reward_manager_cls(config).assemble_rm_scores(data, [one["reward_score"] for one in outputs])
    for row, ids in zip(assembled, sampled(tiny_model), strict=True):
        rewards = expected(ids, tiny_model)
        assert not row[len(ids) :].any()
        assert torch.equal(row[: len(ids)], on_last(rewards)) if rewards.valid else row[: len(ids)].isnan().all()


@pytest.mark.parametrize("estimator", ["local", "reinforce", "rloo", "rloo_tokens"])
def test_verls_advantages_are_ours_token_by_token(verl: Any, config: Any, tiny_model: Path, estimator: Any) -> None:
    """From its agent loop to its advantage code."""
    from torch.nn.utils.rnn import pad_sequence
    from verl import DataProto
    from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

    ids = sampled(tiny_model)
    fields = [run_agent_loop(config, tiny_model, EXAMPLES[i // 2], one).as_dict() for i, one in enumerate(ids)]
    padded = {
        name: pad_sequence([field[name] for field in fields], batch_first=True)
        for name in ("rm_scores", "response_mask", "responses")
    }
    data = DataProto.from_dict(
        tensors={**padded, "token_level_rewards": padded["rm_scores"]},
        non_tensors={"uid": np.array(["0", "0", "1", "1"], dtype=object)},
    )
    data = compute_advantage_for_multi_trajectories(
        data,
        batch_keys=["0_0_0", "0_1_0", "1_0_0", "1_1_0"],
        adv_estimator=f"text2grad_{estimator}",
        config=config.algorithm,
    )
    found = [expected(one, tiny_model) for one in ids]
    mask = padded["response_mask"].float()
    rewards = pad_sequence([torch.from_numpy(one.rewards) for one in found], batch_first=True)
    outcomes = torch.tensor([one.outcome if one.valid else torch.nan for one in found])
    truncated = torch.tensor([1]), torch.tensor([len(ids[1]) - 1])  # its last token's span counts for the whole
    outcomes[1] += rewards[truncated].item()
    rewards[truncated] = 0
    estimate = span_advantages(rewards, mask, estimator, group_size=2, outcomes=outcomes.nan_to_num())
    torch.testing.assert_close(
        data.batch["advantages"], normalize(estimate.advantages, mask, "scale"), rtol=1e-6, atol=1e-7
    )


def test_verls_policy_loss_has_the_gradient_of_the_advantages(verl: Any, config: Any, tiny_model: Path) -> None:
    """Its gradient is that of -mean(A log p), on a model of our own."""
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.utils.config import omega_conf_to_dataclass

    from text2grad.models.loading import load_model

    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    model = load_model(tiny_model)
    ids = torch.tensor([sampled(tiny_model)[0]])
    advantages = torch.linspace(-1, 1, ids.shape[1] - 1).unsqueeze(0)
    mask = torch.ones_like(advantages)

    def logprobs() -> torch.Tensor:
        return model(ids).logits[:, :-1].log_softmax(-1).gather(2, ids[:, 1:].unsqueeze(2)).squeeze(2)

    new = logprobs()
    loss, _ = get_policy_loss_fn("vanilla")(
        old_log_prob=new.detach(), log_prob=new, advantages=advantages, response_mask=mask, config=actor
    )
    loss.backward()
    theirs = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    (-(advantages * logprobs()).mean()).backward()
    ours = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    for one, other in zip(theirs, ours, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)
