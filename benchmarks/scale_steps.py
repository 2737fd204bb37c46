"""A full training step of a large model, ours and TRL's GRPO; seconds, memory, stages, FLOP utilisation."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, TypeVar
from unittest.mock import patch

import torch
from accelerate.state import AcceleratorState
from peft import LoraConfig
from scale_models import FreeCritic, answer_lengths, forced_lengths, matrix_parameters, prompts, score
from torch import Tensor

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.models.backbone import avoid_cudnn_attention
from text2grad.trainer import trainer as trainer_module
from text2grad.trainer.update import update as plain_update

PEAK_FLOPS = 989e12  # of an H200 and H100 in bfloat16, dense
GENERATIONS, BETA = 8, 0.02
SHORT = 32  # tokens of TRL's answers in the step that is not counted
T = TypeVar("T")
STAGES = ("rollout", "critique_and_score", "update")


def lora() -> LoraConfig:
    return LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")


def ours(
    model: Any,
    lora_adapter: bool,
    answers: int,
    prompt_length: int,
    lengths: Sequence[int],
    steps: int,
    passes: int = 1,
    warm_up: int = 1,
    tokenizer: Any = None,
    profile: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """Run our steps. model: a folder or a model. lengths: of the answers, in each step."""
    AcceleratorState._reset_state(reset_partial_state=True)
    on_gpu = torch.cuda.is_available()
    _reset_peak()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Text2GradTrainer(
            model=model,
            critic=FreeCritic(),
            args=Text2GradConfig(
                output_dir=Path(folder, "run"),
                max_steps=warm_up + steps + 1,
                per_device_train_batch_size=answers,
                num_generations=GENERATIONS,
                num_iterations=passes,
                max_completion_length=max(lengths),
                beta=BETA,
                learning_rate=1e-6,
                estimator="rloo_tokens",
                num_logged_completions=0,
                **({"bf16": on_gpu} | settings),
            ),
            train_dataset=prompts((warm_up + steps + 1) * answers // GENERATIONS, prompt_length),
            processing_class=tokenizer,
            peft_config=lora() if lora_adapter else None,
            plain_prompts=True,
        )
        weights = _peak()
        measured: list[dict[str, Any]] = []
        rollouts: list[Any] = []
        sample = trainer.rollout

        def remember(step: int) -> Any:
            rollouts[:] = [sample(step)]
            return rollouts[0]

        with forced_lengths(lengths), patch.object(trainer, "rollout", remember):
            for step in range(1, warm_up + steps + 1):
                began = time.perf_counter()
                metrics, _ = trainer.step(step)
                synchronize()
                measured.append({**metrics, "seconds": time.perf_counter() - began})
            peak = _peak()
            rollout = rollouts[0]
            kernels = _profile_update(trainer, warm_up + steps + 1) if profile and on_gpu else {}
    kept = measured[warm_up:]
    found = {
        "seconds": median(m["seconds"] for m in kept),
        "gib": peak / 2**30,
        "gib_before": weights / 2**30,
        "parts": {name: median(float(m[f"time/{name}"]) for m in kept) for name in STAGES},
        "all_seconds": [m["seconds"] for m in measured],
        "mean_length": kept[-1]["completions/mean_length"],
        "num_updates": kept[-1]["num_updates"],
        "kernels": kernels,
    }
    return found | utilisation(trainer, rollout, found["parts"]["update"], passes, lora_adapter)


def utilisation(
    trainer: Text2GradTrainer, rollout: Any, seconds: float, passes: int, lora_adapter: bool
) -> dict[str, float]:
    """Model FLOP utilisation of the update, recomputation and attention not counted.

    mfu: of the tokens that the update computes, prompts that are shared counted once, and the output layer for the
    completions only. mfu_of_completions: all parameters, for the tokens of the completions alone.
    """
    samples = range(len(rollout.completions))
    micro = trainer.learner.micro_batches(rollout.prompts, rollout.completions, samples, trainer.args.tokens_per_batch)
    computed = sum(rows.ids.numel() for _, rows in micro)
    completions = sum(map(len, rollout.completions))
    backbone, head = matrix_parameters(trainer.policy.model)
    factor = (4 if lora_adapter else 6) * passes / seconds / PEAK_FLOPS
    return {
        "parameters": backbone + head,
        "tokens_computed": computed,
        "tokens_of_completions": completions,
        "tokens_with_prompts": sum(map(len, rollout.prompts)) + completions,
        "micro_batches": len(micro),
        "mfu": factor * (backbone * computed + head * completions),
        "mfu_of_completions": factor * (backbone + head) * completions,
    }


def _profile_update(trainer: Text2GradTrainer, step: int) -> dict[str, float]:
    """Return the milliseconds of the kernels that take longest in an update, in a step of its own."""
    found: dict[str, float] = {}

    def profiled(*arguments: Any) -> Any:
        result, kernels = kernel_times(lambda: plain_update(*arguments))
        found.update(kernels)
        return result

    with patch.object(trainer_module, "update", profiled):
        trainer.step(step)
    return found


def kernel_times(function: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """Return what a function does, and the milliseconds of the 24 kernels that take longest and of all together."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as profile:
        result = function()
        synchronize()
    events: list[Any] = sorted(profile.key_averages(), key=lambda e: -e.self_device_time_total)
    found = {f"{event.key[:90]} x{event.count}": event.self_device_time_total / 1000 for event in events[:24]}
    return result, found | {"all kernels": sum(event.self_device_time_total for event in events) / 1000}


def trl(
    model: str,
    lora_adapter: bool,
    answers: int,
    prompt_length: int,
    lengths: Sequence[int],
    steps: int,
    passes: int,
    micro_batch: int,
    gradient_checkpointing: bool,
    warm_up: int = 1,
) -> dict[str, Any]:
    """Run TRL's steps with the same answers, lengths, passes, precision and adapter.

    Its warm-up has short answers, which spares minutes. Attention leaves cuDNN out, as ours does: its plans, which are
    made once for each length of the cache, would be made in the step that counts.
    """
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            synchronize()
            self.ends.append(time.perf_counter())

    def reward(completions: list[str], **_: Any) -> list[float]:
        return [score(text) for text in completions]

    on_gpu, clock = torch.cuda.is_available(), Clock()
    avoid_cudnn_attention()
    _reset_peak()
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=reward,
            args=GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=micro_batch,
                gradient_accumulation_steps=answers // micro_batch,
                num_generations=GENERATIONS,
                num_iterations=passes,
                max_completion_length=max(lengths),
                beta=BETA,
                learning_rate=1e-6,
                bf16=on_gpu,
                use_cpu=not on_gpu,
                gradient_checkpointing=gradient_checkpointing,
                max_steps=passes * (warm_up + steps),
                model_init_kwargs={"dtype": "bfloat16" if lora_adapter and on_gpu else "float32"},
                logging_steps=1_000,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_list(
                [{"prompt": e.prompt_text} for e in prompts((warm_up + steps) * answers // GENERATIONS, prompt_length)]
            ),
            peft_config=lora() if lora_adapter else None,
            callbacks=[clock],
        )
        generation: list[float] = []
        generated: list[float] = []
        causal: Any = trainer.model
        per_call = [[min(n, SHORT) for n in lengths]] * warm_up + [list(lengths)] * steps
        causal.generate = _ending(causal.generate, per_call, causal.config.eos_token_id, generation, generated)
        began = time.perf_counter()
        trainer.train()
    cycles = [began, *clock.ends[passes - 1 :: passes]]
    seconds = [after - before for before, after in pairwise(cycles)]
    return {
        "seconds": median(seconds[warm_up:]),
        "gib": _peak() / 2**30,
        "parts": {"rollout": median(generation[warm_up:])},
        "all_seconds": seconds,
        "mean_length": generated[-1],
    }


def _ending(
    generate: Callable[..., Tensor],
    per_call: Sequence[Sequence[int]],
    end: int,
    seconds: list[float],
    means: list[float],
) -> Callable[..., Tensor]:
    """Wrap `generate` such that row i of call k ends after per_call[k][i] tokens; notes seconds and mean length."""
    from transformers import LogitsProcessor, LogitsProcessorList

    class Ending(LogitsProcessor):  # type: ignore[no-untyped-call]
        def __init__(self, lengths: Sequence[int], width: int, device: torch.device) -> None:
            ends = {n: [i for i, m in enumerate(lengths) if m == n] for n in set(lengths)}
            self.width = width
            self.rows = {n: torch.tensor(rows, device=device) for n, rows in ends.items()}

        def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
            rows = self.rows.get(input_ids.shape[1] - self.width + 1)
            if rows is not None:
                scores[rows] = float("-inf")
                scores[rows, end] = 0.0
            return scores

    def wrapped(input_ids: Tensor, **options: Any) -> Tensor:
        synchronize()
        began = time.perf_counter()
        processors = LogitsProcessorList([Ending(per_call[len(seconds)], input_ids.shape[1], input_ids.device)])
        result = generate(input_ids=input_ids, logits_processor=processors, **options)
        synchronize()
        seconds.append(time.perf_counter() - began)
        sampled = result[:, input_ids.shape[1] :]
        ended = (sampled == end).int().cumsum(1).clamp(max=1).sum(1)  # the end token and the padding after it
        means.append(float((sampled.shape[1] - ended + (ended > 0)).float().mean()))
        return result

    return wrapped


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _reset_peak() -> None:
    gc.collect()  # an earlier trainer, whose parts refer to each other
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _peak() -> int:
    import resource

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def step_lengths(answers: int, longest: int, full: bool = False) -> list[int]:
    """Return the lengths of a step's answers: a distribution, or with `full` all the longest."""
    return [longest] * answers if full else answer_lengths(answers, longest)
