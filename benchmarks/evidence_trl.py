"""TRL's own trainers as arms of `evidence.py`: GRPO on the critic's total, and SDPO with the critique as its context.

TRL trains the adapter of our trainer's policy in place, so that all arms are evaluated by the same code. TRL 1.16 has
SDPO among its experimental trainers. It takes the context from the data set; here it is the critique of the sampled
answer, known only after sampling, so a subclass of what builds the teacher's prompts hands it over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evidence_reflection import list_faults
from transformers import TrainerCallback
from trl_arms import COLUMNS, make_trainer, total_reward
from trl_questions import in_chat_format

from text2grad import Text2GradTrainer
from text2grad.critics.base import Critic
from text2grad.schema import Example, Feedback, to_dataset

AfterStep = Callable[[int, dict[str, Any]], None]


def learn_with_grpo(trainer: Text2GradTrainer, steps: int, after_step: AfterStep) -> None:
    """Train with TRL's GRPOTrainer, whose reward is the critic's total."""
    cast_adapter_inputs(trainer)
    make_trainer(
        spans=False,
        model=trainer.policy.model,
        critic=trainer.critic,
        examples=[in_chat_format(example) for example in trainer.examples],
        tokenizer=trainer.tokenizer,
        credit=trainer.args.credit,
        settings=trl_settings(trainer, steps) | {"beta": trainer.args.beta},
        callbacks=[AfterEveryStep(trainer, after_step)],
    ).train()


def learn_with_sdpo(trainer: Text2GradTrainer, steps: int, after_step: AfterStep) -> None:
    """Train with TRL's SDPOTrainer: the policy that has read the critique of an answer teaches the one that has not."""
    from trl.experimental.sdpo import SDPOConfig, SDPOTrainer
    from trl.experimental.sdpo.sdpo_trainer import SuccessfulRolloutTeacherContextBuilder

    class CritiqueContextBuilder(SuccessfulRolloutTeacherContextBuilder):  # type: ignore[misc,unused-ignore]
        def build(self, *arguments: Any, feedbacks: Any) -> Any:
            return super().build(*arguments, feedbacks=critic.last_lines())

    cast_adapter_inputs(trainer)
    critic = RememberingCritic(trainer.critic)
    rows = to_dataset([in_chat_format(example) for example in trainer.examples]).remove_columns(COLUMNS)
    args = SDPOConfig(
        **trl_settings(trainer, steps),
        lr_scheduler_type="constant",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        max_prompt_length=None,
        include_environment_feedback=True,
        teacher_model_kind="live",
    )
    sdpo = SDPOTrainer(
        trainer.policy.model,
        total_reward(critic, trainer.tokenizer, trainer.args.credit),
        args,
        rows,
        processing_class=trainer.tokenizer,
        callbacks=[AfterEveryStep(trainer, after_step)],
    )
    sdpo.teacher_context_builder = CritiqueContextBuilder(sdpo)
    sdpo.train()


def cast_adapter_inputs(trainer: Text2GradTrainer) -> None:
    """Let adapters cast their inputs again, as PEFT does: TRL samples without autocast, where our models need it."""
    for layer in trainer.policy.model.modules():
        if hasattr(layer, "cast_input_dtype_enabled"):
            layer.cast_input_dtype_enabled = True


def trl_settings(trainer: Text2GradTrainer, steps: int) -> dict[str, Any]:
    """Return our trainer's settings under TRL's names."""
    args = trainer.args
    return {
        "output_dir": str(args.output_dir / "trl"),
        "seed": args.seed,
        "max_steps": steps,
        "per_device_train_batch_size": args.per_device_train_batch_size,
        "num_generations": args.num_generations,
        "max_completion_length": args.max_completion_length,
        "learning_rate": args.learning_rate,
        "temperature": args.temperature,
        "bf16": args.bf16,
        "use_cpu": trainer.accelerator.device.type == "cpu",
        "gradient_checkpointing": False,
        "logging_strategy": "no",
    }


class AfterEveryStep(TrainerCallback):  # type: ignore[misc]
    """Calls `after_step` with each finished step, in evaluation mode."""

    def __init__(self, trainer: Text2GradTrainer, after_step: AfterStep) -> None:
        self.trainer, self.after_step = trainer, after_step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.after_step(state.global_step, {})
        self.trainer.policy.model.train()


class RememberingCritic:
    """Keeps what it said last, as lines of text."""

    def __init__(self, critic: Critic) -> None:
        self.critic = critic
        self.last: list[tuple[Feedback, str]] = []

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        feedback = list(self.critic.critique(examples))
        self.last = [(item, example.completion) for item, example in zip(feedback, examples, strict=True)]
        return feedback

    def last_lines(self) -> list[str]:
        return ["\n".join(list_faults(feedback, completion)) for feedback, completion in self.last]
