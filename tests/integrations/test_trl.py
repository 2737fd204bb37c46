"""SpanGRPOTrainer: TRL's own training loop, with our advantages."""

from __future__ import annotations

import inspect
import json
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from processes_support import launch
from support import VowelCritic
from torch import Tensor

from text2grad.distributed.processes import Processes
from text2grad.errors import UserError
from text2grad.models.loading import load_tokenizer
from text2grad.models.policy import Scores
from text2grad.rewards.credit import Credit
from text2grad.rollout.sampling import Sampled
from text2grad.schema import Example, Feedback
from text2grad.trainer.batch import make_batch, make_rollout, rollout_rewards
from text2grad.trainer.config import PolicySettings, Text2GradConfig
from text2grad.trainer.state import KLController, RunningScale, TrainerState
from text2grad.trainer.trainer import Text2GradTrainer

pytest.importorskip("trl", reason="the extra [trl] is not installed")

if TYPE_CHECKING:
    from text2grad.integrations.trl import SpanGRPOTrainer

ROWS = [{"id": str(i), "prompt": f"Write the word number {i}."} for i in range(8)]
WIDTH = 10
EXAMPLE = Path(__file__).parents[2] / "examples" / "trl_grpo.py"


class ScoringCritic(VowelCritic):
    """Has a score for every other completion, and omissions."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        found = super().critique(examples)
        scores = [None if i % 2 else len(example.completion) / 10 for i, example in enumerate(examples)]
        return [
            one if one.status == "failed" else one.model_copy(update={"score": score})
            for one, score in zip(found, scores, strict=True)
        ]


def make(
    model: Path | str, folder: Path | str, critic: Any = None, rows: Any = None, **settings: Any
) -> SpanGRPOTrainer:
    from text2grad.integrations.trl import SpanGRPOConfig, SpanGRPOTrainer

    arguments = {name: settings.pop(name) for name in ("peft_config", "eval_dataset") if name in settings}
    defaults: dict[str, Any] = {
        "max_steps": 2,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": WIDTH,
        "learning_rate": 1e-2,
        "bf16": False,
        "use_cpu": True,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
    }
    args = SpanGRPOConfig(output_dir=str(folder), **(defaults | settings))
    tokenizer = load_tokenizer(str(model))
    data = Dataset.from_list(rows or ROWS)
    return SpanGRPOTrainer(str(model), critic or VowelCritic(), args, data, processing_class=tokenizer, **arguments)


def generation_batch(trainer: SpanGRPOTrainer, prompts: Sequence[int] = (0, 1)) -> list[dict[str, Any]]:
    return [ROWS[i] for i in prompts for _ in range(trainer.num_generations)]


def end_some(trainer: SpanGRPOTrainer) -> list[list[list[int]]]:
    """Let every other completion end early, at different lengths; returns the list of all sampled ids."""
    sampled: list[list[list[int]]] = []
    generate, end = trainer._generate, trainer.eos_token_ids[0]

    def shorten(prompts: Any) -> Any:
        output = generate(prompts)
        output[1][:] = [ids if i % 2 else [*ids[: i + 2], end] for i, ids in enumerate(output[1])]
        sampled.append(output[1])
        return output

    trainer._generate = shorten
    return sampled


def our_advantages(
    ids: list[list[int]],
    examples: list[Example],
    critic: Any,
    args: PolicySettings,
    credit: Credit,
    state: TrainerState,
    tokenizer: Any,
) -> tuple[Tensor, Tensor]:
    """What Text2GradTrainer.step computes from these samples, with a value head that has learned nothing yet."""
    rollout = make_rollout(examples, [[0]] * len(ids), Sampled(ids, None), [tokenizer.eos_token_id], tokenizer)
    rewards = rollout_rewards(rollout, critic.critique(rollout.examples), credit, seed=0, step=1)
    nothing = Scores(*(torch.zeros_like(rollout.mask) for _ in range(3)))
    batch = make_batch(rollout, rewards, nothing, nothing, args, state)
    return batch.advantages, batch.mask


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"estimator": "rloo_tokens", "gamma": 0.5},
        {"estimator": "rloo", "advantage_normalization": "none"},
        {"estimator": "reinforce", "advantage_normalization": "whiten", "mask_truncated_completions": True},
        {"estimator": "local", "lam": 0.9, "reward_clip": 0.5, "advantage_normalization": "none"},
    ],
    ids=str,
)
@pytest.mark.parametrize("credit", [{}, {"mode": "uniform", "total": "spans"}], ids=str)
def test_advantages_are_those_of_our_trainer(
    settings: dict[str, Any], credit: dict[str, Any], tiny_model: Path, tmp_path: Path
) -> None:
    """Over three batches, since rewards are divided by their deviation so far; one critique in eight fails."""
    critic = ScoringCritic([5])
    trainer = make(tiny_model, tmp_path, critic, credit=credit, temperature=3.0, **settings)
    sampled = end_some(trainer)
    tokenizer = load_tokenizer(str(tiny_model))
    state = TrainerState(0, KLController(0.0), RunningScale())
    args = PolicySettings(kl_placement="loss", num_generations=4, **settings)
    trainer.model.train()
    for prompts in ((0, 1), (2, 3), (4, 5)):
        inputs = generation_batch(trainer, prompts)
        output = trainer._generate_and_score_completions(inputs)
        examples = [Example.model_validate(row) for row in inputs]
        advantages, mask = our_advantages(
            sampled[-1], examples, critic, args, Credit.model_validate(credit), state, tokenizer
        )
        assert output["advantages"].shape == output["completion_ids"].shape
        torch.testing.assert_close(output["advantages"], advantages, atol=1e-6, rtol=1e-6)
        assert torch.equal(output["completion_mask"], mask.long())
        assert output["num_items_in_batch"] == mask.sum()
        assert advantages.abs().sum() > 0
    assert trainer.reward_scale == state.reward_scale


def test_a_run_trains_and_logs_spans(tiny_model: Path, tmp_path: Path) -> None:
    trainer = make(tiny_model, tmp_path, VowelCritic([1]), log_completions=True, num_completions_to_print=0)
    before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    assert any(not torch.equal(before[name], weight) for name, weight in trainer.model.named_parameters())
    step = trainer.state.log_history[0]
    assert step["critic/failed"] == 1
    assert step["critic/poor_spans"] > 0
    assert 0 < step["rewards/coverage"] < 1
    assert step["reward"] == step["rewards/critique/mean"] < 0
    logged = Dataset.from_parquet(str(tmp_path / "completions" / "completions_00002.parquet"))
    assert len(logged) == 8
    feedback = [Feedback.model_validate(json.loads(row)) for row in logged["feedback"]]
    assert [one.status for one in feedback].count("failed") == 1
    (failed,) = (i for i, one in enumerate(feedback) if one.status == "failed")
    assert logged["advantage"][failed] == 0
    assert len(set(logged["advantage"])) > 4  # the mean of each completion, not TRL's advantage


def test_a_failed_critique_teaches_nothing(tiny_model: Path, tmp_path: Path) -> None:
    """Neither the policy gradient nor the KL penalty sees its completion."""
    trainer = make(tiny_model, tmp_path, VowelCritic(range(8)), beta=0.1)
    before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    assert all(torch.equal(before[name], weight) for name, weight in trainer.model.named_parameters())
    assert [step["critic/failed"] for step in trainer.state.log_history[:2]] == [8, 8]
    assert trainer.state.log_history[0]["rewards/coverage"] is None


def test_adapters_micro_batches_and_several_passes(tiny_model: Path, tmp_path: Path) -> None:
    trainer = make(
        tiny_model,
        tmp_path,
        peft_config=LoraConfig(r=4, target_modules=["q_proj", "v_proj"]),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_iterations=2,
        beta=0.05,
        max_steps=4,
        gradient_checkpointing=True,
    )
    trainer.train()
    assert all("lora" in name for name, weight in trainer.model.named_parameters() if weight.requires_grad)
    assert [step["loss"] for step in trainer.state.log_history[:4]] == pytest.approx([0] * 4, abs=2.0)
    assert trainer.state.log_history[1]["kl"] > 0


def test_prompts_in_chat_format_and_columns_for_the_critic(tiny_model: Path, tmp_path: Path) -> None:
    class Curious(VowelCritic):
        def critique(self, examples: Sequence[Example]) -> list[Feedback]:
            asked.extend(examples)
            return super().critique(examples)

    asked: list[Example] = []
    rows = [{"prompt": [{"role": "user", "content": f"Say {i}."}], "document": f"text {i}"} for i in range(4)]
    make(tiny_model, tmp_path, Curious(), rows, max_steps=1).train()
    assert len(asked) == 8
    assert {(e.prompt_text, e.meta["document"]) for e in asked} <= {(f"Say {i}.", f"text {i}") for i in range(4)}
    assert len({e.prompt_text for e in asked}) == 2


def test_evaluation_does_not_move_the_scale_of_rewards(tiny_model: Path, tmp_path: Path) -> None:
    trainer = make(
        tiny_model,
        tmp_path,
        eval_dataset=Dataset.from_list(ROWS[:2]),
        per_device_eval_batch_size=4,
        num_generations_eval=2,
    )
    metrics = trainer.evaluate()
    assert metrics["eval_critic/poor_spans"] > 0
    assert trainer.reward_scale == RunningScale()


def test_a_resumed_run_continues_the_scale_of_rewards(tiny_model: Path, tmp_path: Path) -> None:
    whole = make(tiny_model, tmp_path, save_strategy="steps", save_steps=1)
    whole.train()
    resumed = make(tiny_model, tmp_path)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    assert resumed.reward_scale == whole.reward_scale
    assert resumed.reward_scale.count == 16


def test_a_checkpoint_of_another_trainer_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    make(tiny_model, tmp_path, save_strategy="steps", save_steps=1, max_steps=1).train()
    (tmp_path / "checkpoint-1" / "reward_scale.json").unlink()
    with pytest.raises(UserError, match=r"checkpoint-1: no reward_scale\.json; resume from a checkpoint that"):
        make(tiny_model, tmp_path).train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))


def test_advantages_are_as_wide_as_padded_completions(tiny_model: Path, tmp_path: Path) -> None:
    trainer = make(tiny_model, tmp_path, pad_to_multiple_of=16)
    sampled = end_some(trainer)
    trainer.model.train()
    output = trainer._generate_and_score_completions(generation_batch(trainer))
    assert output["advantages"].shape == output["completion_mask"].shape == output["completion_ids"].shape == (8, 16)
    assert output["completion_mask"].sum(1).tolist() == [len(ids) for ids in sampled[0]]
    assert not output["advantages"][:, WIDTH + 1 :].any()


def test_masks_of_an_environment_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    trainer = make(tiny_model, tmp_path)
    generate = trainer._generate
    trainer._generate = lambda prompts: (
        *(output := generate(prompts))[:2],
        [[1] * len(i) for i in output[1]],
        *output[3:],
    )
    trainer.model.train()
    with pytest.raises(UserError, match="rollout_func returned an env_mask"):
        trainer._generate_and_score_completions(generation_batch(trainer))


REFUSED = [
    ({"importance_sampling_level": "sequence"}, "importance_sampling_level is 'sequence', .* set it to \"token\""),
    ({"loss_type": "luspo"}, "loss_type is 'luspo', .* choose another"),
    ({"loss_type": "vespo"}, "loss_type is 'vespo', .* choose another"),
    ({"off_policy_mask_threshold": 0.5}, "off_policy_mask_threshold is 0.5, .* leave it out"),
    ({"scale_rewards": "batch"}, "scale_rewards is 'batch', .* set advantage_normalization instead"),
    ({"reward_weights": [2.0]}, "reward_weights is .* leave it out"),
    ({"multi_objective_aggregation": "normalize_then_sum"}, "multi_objective_aggregation is .* leave it out"),
    ({"estimator": "gae"}, "estimator is 'gae', which needs a value head.* choose \"local\""),
    ({"estimator": "loca"}, "estimator is 'loca': Input should be 'local'"),
    ({"advantage_normalization": "std"}, "advantage_normalization is 'std': Input should be"),
    ({"credit": {"mod": "first"}}, "credit is .*mod"),
    ({"estimator": "rloo", "num_generations_eval": 1}, "num_generations_eval is 1, .* set it to 2 or more"),
    ({"gamma": 1.0, "lam": 1.0}, "lam is 1.0, which makes gamma . lam 1 or more: lower it"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_settings_for_one_advantage_per_completion_are_refused(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    from text2grad.integrations.trl import SpanGRPOConfig

    with pytest.raises(UserError, match=message):
        SpanGRPOConfig(output_dir=str(tmp_path), bf16=False, use_cpu=True, **settings)


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo"])
def test_the_other_losses_take_advantages_per_token(loss_type: str, tiny_model: Path, tmp_path: Path) -> None:
    """The gradient of the log-probability of each token is its own advantage, up to the scale of the loss."""
    trainer = make(tiny_model, tmp_path, loss_type=loss_type, epsilon_high=5.0)
    end_some(trainer)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    inputs = trainer._generate_and_score_completions(generation_batch(trainer))
    logprobs = torch.zeros_like(inputs["advantages"], requires_grad=True)
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (logprobs, torch.zeros_like(logprobs), None)
    trainer.compute_loss(trainer.model, inputs).backward()
    assert logprobs.grad is not None
    advantages = inputs["advantages"]
    lengths = inputs["completion_mask"].sum(1, keepdim=True)
    per_token = {"grpo": 8 * lengths, "sapo": 8 * lengths, "dr_grpo": torch.tensor(8 * WIDTH)}
    expected = -advantages / per_token.get(loss_type, inputs["completion_mask"].sum())
    torch.testing.assert_close(logprobs.grad, expected)
    assert advantages.std(dim=1).min() > 0


def test_other_arguments_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    from trl import GRPOConfig

    from text2grad.integrations.trl import SpanGRPOTrainer

    plain = GRPOConfig(output_dir=str(tmp_path), bf16=False, use_cpu=True)
    with pytest.raises(UserError, match="args is a GRPOConfig: pass a SpanGRPOConfig"):
        SpanGRPOTrainer(str(tiny_model), VowelCritic(), plain, Dataset.from_list(ROWS))
    trainer = make(tiny_model, tmp_path)
    for name in ("reward_funcs", "tools", "environment_factory"):
        with pytest.raises(UserError, match=f"{name} is given"):
            SpanGRPOTrainer(str(tiny_model), VowelCritic(), trainer.args, Dataset.from_list(ROWS), **{name: [len]})


def test_a_process_gets_its_share_of_a_group(tiny_model: Path, tmp_path: Path) -> None:
    """Two completions of a prompt are another process's; they are longer than its own."""

    class Second(Processes):
        def gather(self, items: Sequence[Any]) -> list[Any]:
            return [first, *items]

    trainer = make(tiny_model, tmp_path)
    sampled = end_some(trainer)
    other = [[*range(40, 60)], [*range(60, 75)]]
    first = trainer._critique([ROWS[0]] * 2, other)
    trainer.processes = Second(rank=1, world_size=2)
    trainer.model.train()
    output = trainer._generate_and_score_completions([ROWS[0]] * 2)
    ids, examples = [*other, *sampled[0]], [Example.model_validate(ROWS[0])] * 4
    state = TrainerState(0, KLController(0.0), RunningScale())
    args = PolicySettings(kl_placement="loss", num_generations=4)
    tokenizer = load_tokenizer(str(tiny_model))
    advantages, mask = our_advantages(ids, examples, VowelCritic(), args, Credit(), state, tokenizer)
    torch.testing.assert_close(output["advantages"], advantages[2:, :WIDTH], atol=1e-6, rtol=1e-6)
    assert torch.equal(output["completion_mask"], mask[2:, :WIDTH].long())
    assert output["num_items_in_batch"] == mask.sum()
    assert advantages[2:].any()


@pytest.mark.slow
def test_groups_may_span_processes(tiny_model: Path, tmp_path: Path) -> None:
    """Two processes with two completions each of a prompt compute what one computes of all four."""
    launch(_gather_advantages, tiny_model, tmp_path)
    shares = [torch.load(tmp_path / f"rank{rank}.pt") for rank in (0, 1)]
    ids = [ids for share in shares for ids in share["ids"]]
    examples = [Example.model_validate(ROWS[0])] * 4
    state = TrainerState(0, KLController(0.0), RunningScale())
    args = PolicySettings(kl_placement="loss", num_generations=4)
    tokenizer = load_tokenizer(str(tiny_model))
    expected, mask = our_advantages(ids, examples, VowelCritic(), args, Credit(), state, tokenizer)
    width = max(share["advantages"].shape[1] for share in shares)
    found = [torch.nn.functional.pad(s["advantages"], (0, width - s["advantages"].shape[1])) for s in shares]
    torch.testing.assert_close(torch.cat(found), expected, atol=1e-6, rtol=1e-6)
    assert [share["num_items"] for share in shares] == [mask.sum()] * 2


def _gather_advantages(model: Path, folder: Path) -> None:
    trainer = make(model, folder, per_device_train_batch_size=2, num_generations=4)
    trainer.model.train()
    kept = end_some(trainer)
    output = trainer._generate_and_score_completions([ROWS[0]] * 2)
    values = {"ids": kept[0], "advantages": output["advantages"], "num_items": output["num_items_in_batch"]}
    torch.save(values, folder / f"rank{trainer.processes.rank}.pt")


def test_the_example_runs(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model", str(tiny_model), "--output_dir", str(tmp_path), "--max_steps", "2"]
    monkeypatch.setattr(sys, "argv", ["trl_grpo.py", *arguments, "--max_completion_length", "8"])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "step 2: reward " in capsys.readouterr().out
    assert (tmp_path / "adapter_model.safetensors").is_file()


def test_the_critic_of_the_example_blames_what_shouts() -> None:
    calm = runpy.run_path(str(EXAMPLE))["Calm"]()
    text = "The best kettle, really!!"
    feedback = calm.comment(text)
    assert [text[span.start : span.end] for span in feedback.spans] == ["best", "really", "!!"]
    assert feedback.score == -0.5
    assert calm.comment("A kettle.").score == 1
    assert calm.comment("").score == -1


def test_the_table_for_users_of_trl_names_what_there_is() -> None:
    from trl import GRPOConfig, GRPOTrainer

    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", page.partition("## Coming from TRL")[2], re.MULTILINE)
    theirs = GRPOConfig.__dataclass_fields__.keys() | inspect.signature(GRPOTrainer).parameters.keys()
    ours = Text2GradConfig.model_fields.keys() | inspect.signature(Text2GradTrainer).parameters.keys()
    assert len(rows) > 15
    for left, right in rows:
        assert set(names := re.findall(r"`(\w+)`", left)) <= theirs
        if right.startswith("none"):
            assert not set(names) & ours
        elif named := re.match(r"`(\w+)`", right):
            assert named[1] in ours
