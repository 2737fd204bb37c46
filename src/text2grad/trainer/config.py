"""Settings of the trainer; TRL's names where TRL has the setting."""

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
    ValidationInfo,
    field_validator,
    model_validator,
)

from text2grad.models.precision import use_bf16
from text2grad.rewards.corrections import Prefix
from text2grad.rewards.credit import Credit
from text2grad.settings import Settings
from text2grad.trainer.advantages import ESTIMATORS, EstimatorName, Normalization
from text2grad.trainer.trackers import Tracker, parse_tracker_names


class CorrectionSettings(Settings):
    """How corrections, the words that should have been written, count beside span credit: docs/corrections.md."""

    weight: NonNegativeFloat = Field(2.0, description="of the correction loss beside the policy loss; 0: none")
    target_probability: float = Field(
        0.99, gt=0, lt=1, description="a token of a correction that is as probable gets no gradient"
    )
    robustness: float = Field(
        0.5,
        ge=0,
        le=1,
        description="how little corrections count that the policy finds improbable: p to this power; 0: all alike",
    )
    contrast: NonNegativeFloat = Field(
        0.0, description="weight of preferring the correction to what was written, each after its own prefix"
    )
    kl: NonNegativeFloat = Field(0.05, description="coefficient of the KL from the reference on corrections")
    continuation: NonNegativeInt = Field(
        0, description="tokens of the way back into the completion that a correction includes; a deletion at least 2"
    )
    prefix: Prefix = Field(
        "corrected", description="what a correction follows: the text with near corrections made, or as it was sampled"
    )


class PolicySettings(Settings):
    """Settings of policy optimisation.

    One step samples `per_device_train_batch_size * gradient_accumulation_steps` completions on each process and makes
    `num_iterations` optimiser steps on them; `max_tokens_per_batch` sets the size of a micro-batch.
    """

    max_steps: PositiveInt = Field(100, description="sampling steps")
    per_device_train_batch_size: PositiveInt = Field(
        8, description="completions per step; multiplied by gradient_accumulation_steps and processes"
    )
    gradient_accumulation_steps: PositiveInt = Field(1, description="multiplies the completions per step")
    num_generations: PositiveInt = Field(1, description="completions per prompt")
    num_iterations: PositiveInt = Field(1, description="passes over each batch of completions (PPO epochs)")
    max_completion_length: PositiveInt = Field(64, description="tokens; a longer completion is truncated and penalised")
    max_prompt_length: PositiveInt | None = Field(
        None, description="tokens; a longer prompt is rejected, never truncated"
    )
    temperature: PositiveFloat = Field(1.0, description="of sampling, and of all log-probabilities")
    rollouts: Literal["transformers", "vllm_server", "vllm_colocated"] = Field(
        "transformers", description="what samples: the policy itself, or vLLM (docs/rollouts.md)"
    )
    vllm_server_base_url: str = Field("http://localhost:8000", description="address of the server, for `vllm_server`")
    vllm_server_timeout: NonNegativeFloat = Field(
        240.0, description="seconds to wait for a server that does not answer, at the start and at any rollout"
    )
    vllm_weight_transfer: Literal["nccl", "adapter", "disk"] = Field(
        "nccl", description="how a server gets the weights: GPU to GPU, a LoRA adapter, or a folder (docs/rollouts.md)"
    )
    vllm_gpu_memory_utilization: float = Field(
        0.3, gt=0, lt=1, description="share of the GPU's memory for `vllm_colocated`"
    )

    learning_rate: PositiveFloat = Field(1e-4, description="of the policy")
    value_learning_rate: PositiveFloat = Field(1e-3, description="of the value head")
    lr_scheduler_type: Literal["constant", "linear", "cosine"] = Field(
        "constant", description="how the learning rates change after the warm-up"
    )
    warmup_steps: NonNegativeInt = Field(0, description="steps in which the learning rates rise from 0")
    max_grad_norm: PositiveFloat = Field(1.0, description="a longer gradient is scaled down to this norm")
    weight_decay: NonNegativeFloat = Field(0.0, description="of AdamW")

    epsilon: PositiveFloat = Field(0.2, description="PPO's clip of the probability ratio")
    epsilon_value: PositiveFloat = Field(0.2, description="PPO's clip of the value's change")
    vf_coef: NonNegativeFloat = Field(0.1, description="weight of the value loss")
    estimator: EstimatorName = Field("local", description="advantages from token rewards: docs/estimators.md")
    gamma: float | None = Field(None, ge=0, le=1, description="discount; null: the estimator's default")
    lam: float | None = Field(None, ge=0, le=1, description="trace decay (lambda); null: the estimator's default")
    outcome_weight: PositiveFloat = Field(
        1.0, description="of a completion's score beside its spans, in the advantages; smaller: spans decide more"
    )
    advantage_normalization: Normalization = Field(
        "scale", description="`scale` divides by the standard deviation, `whiten` subtracts the mean as well"
    )
    reward_clip: PositiveFloat = Field(10.0, description="largest token reward, in standard deviations of the totals")
    entropy_coef: NonNegativeFloat = Field(0.0, description="weight of the entropy bonus")
    importance_sampling_clip_max: float | None = Field(
        2.0, ge=1, description="cap of the importance weights of trainer over sampler; null: no correction"
    )
    mask_truncated_completions: bool = Field(False, description="do not train on completions cut at the length limit")
    beta: NonNegativeFloat = Field(
        0.05, description="coefficient of the KL penalty; with adaptive control, its initial value"
    )
    kl_placement: Literal["reward", "loss"] = Field(
        "reward", description="subtract the KL from token rewards, or add it to the loss"
    )
    kl_controller: Literal["fixed", "adaptive"] = Field("fixed", description="whether `beta` follows the measured KL")
    kl_controller_target: PositiveFloat = Field(6.0, description="KL per completion that adaptive control aims at")
    kl_controller_horizon: PositiveFloat = Field(
        10_000, description="completions over which adaptive control changes `beta`"
    )
    corrections: CorrectionSettings = CorrectionSettings()
    early_stop_kl: PositiveFloat | None = Field(
        None, description="nats per token above which no further update is made"
    )
    rollback_kl: PositiveFloat | None = Field(None, description="nats per token above which the step is rolled back")
    stop_on_hacking: bool = Field(False, description="end the run at signs of reward hacking, instead of only warning")

    max_tokens_per_batch: PositiveInt | None = Field(
        None, description="tokens in one forward and backward pass; null: 4096, or 32768 with gradient checkpointing"
    )
    share_prompts: bool = Field(
        True, description="compute a prompt once for all its completions, where the model allows it"
    )
    fast_decoding: bool = Field(
        True, description="sample with faster kernels, on a GPU with CUDA graphs, where supported"
    )
    bf16: bool | None = Field(
        None,
        description="compute in bfloat16, weights stay float32; default: on GPUs, and on CPUs with units for it",
    )
    gradient_checkpointing: bool | None = Field(
        None,
        description="recompute activations in the backward pass; null: on a GPU, where larger micro-batches are faster",
    )
    torch_compile: bool = Field(False, description="compile scoring and update; slow first steps, needs a C++ compiler")
    logging_steps: PositiveInt = Field(
        1,
        description="steps between metrics in the trackers, in the terminal of a command, and in `on_log` of callbacks",
    )
    log_completions_steps: PositiveInt = Field(1, description="steps between completions saved for the report")
    num_logged_completions: NonNegativeInt = Field(4, description="completions saved at each of these steps")
    save_steps: PositiveInt = Field(1, description="steps between checkpoints; a killed run loses at most this many")
    report_to: Annotated[tuple[Tracker, ...], BeforeValidator(parse_tracker_names)] = Field(
        (), description="none, tensorboard, wandb, trackio, or a list of them"
    )

    eval_steps: PositiveInt | None = Field(None, description="steps between evaluations on held-out prompts")
    max_eval_samples: PositiveInt | None = Field(None, description="held-out prompts per evaluation; null: all")
    load_best_model_at_end: bool = Field(False, description="end with the weights of the best held-out score")
    early_stopping_patience: PositiveInt | None = Field(
        None, description="evaluations without a better held-out score after which the run ends"
    )

    def for_device(self, device: str) -> Self:
        """Return the settings with the defaults that depend on the device type, as `cpu` or `cuda`, resolved."""
        checkpointing = device != "cpu" if self.gradient_checkpointing is None else self.gradient_checkpointing
        return self.model_copy(update={"gradient_checkpointing": checkpointing, "bf16": use_bf16(self.bf16, device)})

    @property
    def samples_per_step(self) -> int:
        """Completions that one process samples per step."""
        return self.per_device_train_batch_size * self.gradient_accumulation_steps

    @property
    def tokens_per_batch(self) -> int:
        """Tokens in one micro-batch; the defaults need about the same memory with and without checkpointing."""
        return self.max_tokens_per_batch or (32_768 if self.gradient_checkpointing else 4096)

    @property
    def value_weight(self) -> float:
        """Coefficient of the value loss; 0 for estimators without a value head."""
        return 0.0 if ESTIMATORS[self.estimator].values == "unused" else self.vf_coef

    @field_validator("gamma", "lam")
    @classmethod
    def _resolve_estimator_default(cls, value: float | None, info: ValidationInfo) -> float | None:
        """Resolve null, so that a saved config shows the values that were used."""
        if value is not None or "estimator" not in info.data:  # an invalid estimator is reported by itself
            return value
        estimator = ESTIMATORS[info.data["estimator"]]
        return estimator.gamma if info.field_name == "gamma" else estimator.lam

    @model_validator(mode="after")
    def _check_combinations(self) -> PolicySettings:
        if self.samples_per_step % self.num_generations:
            raise ValueError(
                f"num_generations is {self.num_generations} but a step samples {self.samples_per_step} completions "
                f"(per_device_train_batch_size * gradient_accumulation_steps): make it a divisor"
            )
        if ESTIMATORS[self.estimator].needs_groups and self.num_generations < 2:
            raise ValueError(
                f"estimator is {self.estimator} but num_generations is 1: a completion is compared with its siblings, "
                f"so set num_generations to 2 or more"
            )
        assert self.gamma is not None
        assert self.lam is not None
        if ESTIMATORS[self.estimator].needs_decay and self.gamma * self.lam >= 1:
            raise ValueError(f"estimator is {self.estimator} but gamma * lam is 1: lower lam")
        if self.eval_steps is None:
            for name in ("load_best_model_at_end", "early_stopping_patience"):
                if getattr(self, name):
                    raise ValueError(f"{name} needs the held-out score, but eval_steps is null: set it too")
        return self


class Text2GradConfig(PolicySettings):
    """Settings of `Text2GradTrainer`: `PolicySettings` with the output folder, the seed and the credit mode."""

    output_dir: Path
    seed: NonNegativeInt = 0
    credit: Credit = Credit()
    eval_temperature: NonNegativeFloat | None = Field(None, description="of held-out completions; null: temperature")

    @property
    def generation_temperature(self) -> float:
        """Sampling temperature of held-out completions."""
        return self.temperature if self.eval_temperature is None else self.eval_temperature
