"""`text2grad bench`: a few steps of a run, where their time goes, and which setting to change. Nothing is saved."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch

from text2grad.config.run import RunConfig
from text2grad.critics.base import Critic, critic_traits
from text2grad.critics.registry import make_critic
from text2grad.critics.workers import critique_on_all_cores
from text2grad.pipeline import trainer_options
from text2grad.schema import Example, Feedback
from text2grad.trainer.callbacks import Metrics
from text2grad.trainer.trainer import Text2GradTrainer

WARM_UP = 1  # steps that are not counted: kernels are compiled and memory is allocated
MAX_ADVICE = 3
NEAR_LIMIT = 0.85  # share of the memory from which the next longer batch may not fit
LARGE_CHECKPOINT = 2**30
GIB = 2**30


@dataclass(frozen=True)
class StepCost:
    """What a step costs: medians of the measured steps.

    seconds: of the whole step. stages: seconds by stage; they add up to it. The critic of a run on a GPU works during
    the scoring, whose seconds are then those beyond the critic's.
    sampled, trained: tokens of the completions, and those with their prompts that a pass of the update computes.
    clipped_ratio, failed: shares of completions that were cut at the limit, and of critiques that failed.
    peak_memory, memory: bytes that were used at most, and that there are. checkpoint: bytes that saving one writes.
    """

    device: str
    completions: int
    seconds: float
    stages: dict[str, float]
    sampled: float
    trained: float
    clipped_ratio: float
    failed: float
    error: str | None
    peak_memory: int
    memory: int
    checkpoint: int

    def share(self, stage: str) -> float:
        """Return the share of the step that a stage takes."""
        return self.stages[stage] / self.seconds


class TimedCritic:
    """A critic with a clock. What else the critic can, it can too."""

    independent = False  # the clock stays here; `critique` divides the work

    def __init__(self, critic: Critic) -> None:
        self._critic = critic
        self._critique = critique_on_all_cores if critic_traits(critic).independent else type(critic).critique
        self.seconds = 0.0

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """As the critic's own."""
        start = time.perf_counter()
        try:
            return self._critique(self._critic, examples)
        finally:
            self.seconds += time.perf_counter() - start

    def __getattr__(self, name: str) -> Any:
        return getattr(self._critic, name)


def measure(
    config: RunConfig, steps: int, on_step: Callable[[int, int], object] = lambda done, total: None
) -> StepCost:
    """Run WARM_UP and then `steps` training steps with the model, data and critic of a run, and discard the result.

    on_step: called after each with the numbers of finished and all steps.
    """
    critic = TimedCritic(make_critic(config.critic.name, config.critic.options))
    total = WARM_UP + steps
    with tempfile.TemporaryDirectory() as scratch:
        trainer = Text2GradTrainer(
            critic=critic,
            train_dataset=config.data.load_train(),
            **trainer_options(_unsaved(config, Path(scratch), total), callbacks=()),
        )
        measured: list[tuple[Metrics, float]] = []
        for step in range(1, total + 1):
            before = critic.seconds
            metrics, _ = trainer.step(step)
            measured.append((metrics, critic.seconds - before))
            on_step(step, total)
    return _summarise(trainer, measured[WARM_UP:])


def _unsaved(config: RunConfig, scratch: Path, steps: int) -> RunConfig:
    """Return the settings without evaluation and trackers, in a folder that is removed afterwards."""
    changes: dict[str, Any] = dict.fromkeys(("eval_steps", "early_stopping_patience"))
    changes |= {"report_to": (), "load_best_model_at_end": False}
    changes["max_steps"] = max(config.policy.max_steps, steps)  # for the schedule of the learning rate
    policy = config.policy.model_copy(update=changes)
    return config.model_copy(update={"policy": policy, "output_dir": scratch / "run"})


def _summarise(trainer: Text2GradTrainer, measured: Sequence[tuple[Metrics, float]]) -> StepCost:
    last = measured[-1][0]
    stages: dict[str, list[float]] = {name: [] for name in ("rollout", "critic", "scoring", "update", "other")}
    for metrics, critic in measured:
        between = metrics["time/critique_and_score"]
        rollout, update = metrics["time/rollout"], metrics["time/update"]
        for name, seconds in {
            "rollout": rollout,
            "critic": critic,
            "scoring": between - critic,
            "update": update,
            "other": metrics["time/step"] - rollout - between - update,
        }.items():
            stages[name].append(seconds)
    per_stage = {name: median(seconds) for name, seconds in stages.items()}
    sampled = fmean(m["completions/mean_length"] * m["samples"] for m, _ in measured)
    prompt = fmean(map(len, trainer.prompts))
    peak, memory = _memory(trainer.accelerator.device)
    return StepCost(
        device=trainer.accelerator.device.type,
        completions=last["samples"],
        seconds=sum(per_stage.values()),
        stages=per_stage,
        sampled=sampled,
        trained=sampled + prompt * last["samples"],
        clipped_ratio=fmean(m["completions/clipped_ratio"] for m, _ in measured),
        failed=fmean(m["critic/failed"] / m["samples"] for m, _ in measured),
        error=last["critic/error"],
        peak_memory=peak,
        memory=memory,
        # Weights in float32, and two moments.
        checkpoint=3 * sum(4 * parameter.numel() for parameter in trainer.policy.trainable().values()),
    )


def _memory(device: torch.device) -> tuple[int, int]:
    """Return the bytes that were used at most, and that there are."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device), torch.cuda.get_device_properties(device).total_memory
    return (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )


def advise(cost: StepCost, config: RunConfig) -> list[str]:
    """Return at most MAX_ADVICE sentences, the most urgent first: what to change, and why."""
    rules = (_failures, _memory_limit, _truncation, _precision, _slow_critic, _checkpoints, _slow_rollout, _slow_update)
    return [sentence for rule in rules if (sentence := rule(cost, config)) is not None][:MAX_ADVICE]


def _failures(cost: StepCost, config: RunConfig) -> str | None:
    if not cost.failed:
        return None
    return f"{cost.failed:.0%} of the critiques fail, and nothing is learned from those. The last error: {cost.error}"


def _memory_limit(cost: StepCost, config: RunConfig) -> str | None:
    if cost.peak_memory < NEAR_LIMIT * cost.memory:
        return None
    policy = config.policy.for_device(cost.device)
    said = f"The step needs {cost.peak_memory / GIB:.1f} of {cost.memory / GIB:.1f} GiB, so a longer batch may not fit"
    if not policy.gradient_checkpointing:
        return f"{said}: set policy.gradient_checkpointing=true."
    adapter = ", or train an adapter (model.lora) instead of all weights" if config.model.lora is None else ""
    return f"{said}: set policy.max_tokens_per_batch={policy.tokens_per_batch // 2}{adapter}."


def _truncation(cost: StepCost, config: RunConfig) -> str | None:
    if cost.clipped_ratio < 0.2:
        return None
    return (
        f"{cost.clipped_ratio:.0%} of the completions are cut at policy.max_completion_length="
        f"{config.policy.max_completion_length}, which is penalised: raise it if good answers need more, or ask for "
        f"shorter answers in the prompts."
    )


def _precision(cost: StepCost, config: RunConfig) -> str | None:
    if cost.device == "cpu" or config.policy.for_device(cost.device).bf16:
        return None
    return "A GPU computes several times faster in bfloat16: remove policy.bf16=false; trained weights stay float32."


def _slow_critic(cost: StepCost, config: RunConfig) -> str | None:
    if cost.stages["critic"] <= cost.stages["rollout"] or cost.share("critic") < 0.2:
        return None
    return (
        f"The critic takes longer than the sampling ({cost.share('critic'):.0%} of the step). It gets all "
        f"{cost.completions} completions at once: let it work on them side by side (`concurrency` of an LLM critic, "
        f"batches or processes in your own), or lower policy.num_generations or policy.per_device_train_batch_size."
    )


def _checkpoints(cost: StepCost, config: RunConfig) -> str | None:
    if cost.checkpoint < LARGE_CHECKPOINT or config.policy.save_steps >= 10:
        return None
    return (
        f"A checkpoint writes {cost.checkpoint / GIB:.0f} GiB, which is not part of the times above: set "
        f"policy.save_steps=50, or train an adapter (model.lora)."
    )


def _slow_rollout(cost: StepCost, config: RunConfig) -> str | None:
    if cost.share("rollout") < 0.5:
        return None
    said = f"Sampling takes {cost.share('rollout'):.0%} of the step"
    if cost.device == "cpu":
        return f"{said}: lower policy.max_completion_length, if answers may be shorter."
    if config.policy.rollouts == "transformers" and cost.completions >= 256:
        return f"{said}: set policy.rollouts=vllm_colocated (docs/rollouts.md)."
    return (
        f"{said}, mostly to read the weights once per token: more completions per step cost it little "
        f"(policy.per_device_train_batch_size={2 * config.policy.per_device_train_batch_size})."
    )


def _slow_update(cost: StepCost, config: RunConfig) -> str | None:
    if cost.share("update") < 0.5:
        return None
    policy = config.policy.for_device(cost.device)
    said = f"The update takes {cost.share('update'):.0%} of the step"
    if policy.num_iterations > 1:
        return f"{said}, for policy.num_iterations={policy.num_iterations} passes: each costs as much as the first."
    if cost.device != "cpu" and cost.peak_memory < 0.4 * cost.memory:
        if policy.gradient_checkpointing:
            changes = f"policy.gradient_checkpointing=false policy.max_tokens_per_batch={policy.tokens_per_batch // 4}"
            return f"{said}, and less than half of the memory is used: try {changes}, which recomputes nothing."
        return f"{said}, and much memory is free: set policy.max_tokens_per_batch={2 * policy.tokens_per_batch}."
    if config.model.lora is None:
        return f"{said}: an adapter (model.lora) spares the gradients of all weights."
    return None
