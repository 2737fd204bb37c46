"""Settings of the policy optimiser; TRL's names where TRL has one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from text2grad.rewards.mapping import Credit
from text2grad.settings import Settings
from text2grad.trainer.advantage import Normalization
from text2grad.trainer.estimators import USE_VALUES, Estimator
from text2grad.trainer.trackers import Tracker, tracker_names


class PolicySettings(Settings):
    """One step samples `per_device_train_batch_size * gradient_accumulation_steps` answers on each process and makes
    `num_iterations` optimiser steps on them; how many go through the model at once is for `max_tokens_per_batch`."""

    max_steps: PositiveInt = Field(100, description="sampling steps")
    per_device_train_batch_size: PositiveInt = Field(
        8, description="answers a step, times the next setting, times the processes"
    )
    gradient_accumulation_steps: PositiveInt = 1
    num_generations: PositiveInt = Field(1, description="answers to each prompt")
    num_iterations: PositiveInt = Field(1, description="passes over each batch of answers (PPO epochs)")
    max_completion_length: PositiveInt = Field(64, description="tokens; a longer answer is cut and pays for it")
    max_prompt_length: PositiveInt | None = Field(None, description="tokens; a longer prompt is refused, never cut")
    temperature: PositiveFloat = Field(1.0, description="of sampling, and of every log-probability")
    rollouts: Literal["transformers", "vllm_server", "vllm_colocated"] = Field(
        "transformers", description="who samples: the policy itself, or vLLM (docs/rollouts.md)"
    )
    vllm_server_base_url: str = Field("http://localhost:8000", description="of the server of `vllm_server`")
    vllm_gpu_memory_utilization: float = Field(
        0.3, gt=0, lt=1, description="share of the GPU's memory for `vllm_colocated`"
    )

    learning_rate: PositiveFloat = 1e-4
    value_learning_rate: PositiveFloat = 1e-3
    lr_scheduler_type: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: NonNegativeInt = 0
    max_grad_norm: PositiveFloat = 1.0
    weight_decay: NonNegativeFloat = 0.0

    epsilon: PositiveFloat = Field(0.2, description="PPO's clip of the probability ratio")
    epsilon_value: PositiveFloat = Field(0.2, description="PPO's clip of the value's change")
    vf_coef: NonNegativeFloat = 0.1
    estimator: Estimator = Field("local", description="how token rewards become advantages: docs/estimators.md")
    gamma: float = Field(0.7, ge=0, le=1, description="discount of later rewards; the paper has 1 with `gae`")
    lam: float = Field(0.3, ge=0, le=1, description="with gamma, how far credit reaches back; the paper has .95")
    advantage_normalization: Normalization = "scale"
    reward_clip: PositiveFloat = Field(10.0, description="most that a token earns or pays, in deviations of the totals")
    entropy_coef: NonNegativeFloat = Field(0.0, description="weight of the entropy bonus")
    importance_sampling_clip_max: float | None = Field(
        2.0, ge=1, description="most that a token counts for being rarer to the sampler; null corrects nothing"
    )
    mask_truncated_completions: bool = Field(False, description="do not learn from answers cut at the length limit")
    beta: NonNegativeFloat = Field(0.05, description="weight of the KL penalty; where control is adaptive, its start")
    kl_placement: Literal["reward", "loss"] = Field(
        "reward", description="charge each token's KL, or add it to the loss"
    )
    kl_control: Literal["fixed", "adaptive"] = "fixed"
    kl_controller_target: PositiveFloat = Field(6.0, description="KL of an answer that adaptive control steers to")
    kl_horizon: PositiveFloat = 10_000
    early_stop_kl: PositiveFloat | None = Field(None, description="nats a token at which an update's passes end early")
    rollback_kl: PositiveFloat | None = Field(None, description="nats a token at which a step's update is undone")
    stop_on_hacking: bool = Field(False, description="end the run when its reward seems to be gamed, not only warn")

    max_tokens_per_batch: PositiveInt | None = Field(
        None, description="tokens in one forward and backward pass; null: 4096, or 32768 with gradient checkpointing"
    )
    share_prompts: bool = Field(
        True, description="compute a prompt once for all its answers, where the model allows it"
    )
    fast_decoding: bool = Field(
        True, description="sample with faster kernels, on a GPU with CUDA graphs, where supported"
    )
    bf16: bool = Field(True, description="compute in bfloat16; what is trained stays float32")
    gradient_checkpointing: bool | None = Field(
        None,
        description="keep few activations and compute the rest again; null: on a GPU, where it is faster to pass"
        " more tokens at once",
    )
    torch_compile: bool = Field(False, description="compile scoring and update; slow first steps, needs a C++ compiler")
    logging_steps: PositiveInt = Field(1, description="steps between samples kept for the report")
    logged_samples: NonNegativeInt = Field(4, description="samples kept at each of these steps")
    save_steps: PositiveInt = Field(1, description="steps between checkpoints; a killed run loses at most this many")
    report_to: Annotated[tuple[Tracker, ...], BeforeValidator(tracker_names)] = Field(
        (), description="none, tensorboard, wandb, trackio, or a list of them"
    )

    eval_steps: PositiveInt | None = Field(None, description="steps between evaluations on held-out prompts")
    eval_examples: PositiveInt | None = Field(None, description="at most this many of them, always the same; null: all")
    load_best_at_end: bool = Field(False, description="end with the weights of the best held-out score")
    early_stopping_patience: PositiveInt | None = Field(
        None, description="evaluations without a better held-out score after which the run ends"
    )

    def on(self, device: str) -> Self:
        """With all settled that depends on the kind of device, as `cpu` or `cuda`."""
        checkpointing = device != "cpu" if self.gradient_checkpointing is None else self.gradient_checkpointing
        return self.model_copy(update={"gradient_checkpointing": checkpointing})

    @property
    def samples_per_step(self) -> int:
        """Answers that one process samples in one step."""
        return self.per_device_train_batch_size * self.gradient_accumulation_steps

    @property
    def tokens_per_batch(self) -> int:
        """Tokens in one forward and backward pass. With and without checkpointing about the same memory is needed."""
        return self.max_tokens_per_batch or (32_768 if self.gradient_checkpointing else 4096)

    @property
    def value_weight(self) -> float:
        """Weight of the value loss; 0 for estimators that need no value head."""
        return self.vf_coef if self.estimator in USE_VALUES else 0.0

    @model_validator(mode="after")
    def _whole_groups(self) -> PolicySettings:
        if self.samples_per_step % self.num_generations:
            raise ValueError(
                f"num_generations is {self.num_generations} but a step samples {self.samples_per_step} answers "
                f"(per_device_train_batch_size * gradient_accumulation_steps): make it a divisor"
            )
        return self

    @model_validator(mode="after")
    def _group_has_siblings(self) -> PolicySettings:
        if self.estimator == "group" and self.num_generations < 2:
            raise ValueError(
                "estimator is group but num_generations is 1: an answer is compared with its siblings, so set "
                "num_generations to 2 or more"
            )
        return self

    @model_validator(mode="after")
    def _local_credit_ends(self) -> PolicySettings:
        if self.estimator == "local" and self.gamma * self.lam >= 1:
            raise ValueError("estimator is local but gamma * lam is 1: credit would reach back for ever, so lower lam")
        return self

    @model_validator(mode="after")
    def _selection_needs_evaluations(self) -> PolicySettings:
        if self.eval_steps is None:
            for name in ("load_best_at_end", "early_stopping_patience"):
                if getattr(self, name):
                    raise ValueError(f"{name} goes by the held-out score, but eval_steps is null: set it too")
        return self


class Text2GradConfig(PolicySettings):
    """Everything `Text2GradTrainer` needs beside the model, the critic and the prompts."""

    output_dir: Path
    seed: NonNegativeInt = 0
    credit: Credit = Credit()
    eval_temperature: NonNegativeFloat | None = Field(None, description="of held-out answers; null: temperature")

    @property
    def answer_temperature(self) -> float:
        """The temperature of held-out answers."""
        return self.temperature if self.eval_temperature is None else self.eval_temperature
