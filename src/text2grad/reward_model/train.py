"""Training a span reward model: the token head and the written judgement, jointly, on transformers' Trainer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from peft import LoraConfig, get_peft_model
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from transformers import (
    PreTrainedTokenizerBase,
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from text2grad.config.run import LoraSettings
from text2grad.data.split import split_by_prompt
from text2grad.errors import UserError
from text2grad.files import replace_text
from text2grad.models.backbone import check_projection
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.reward_model.features import Prepared, collate, prepare
from text2grad.reward_model.head import GOOD, POOR, calibrate, class_weights
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.scorer import SpanScorer
from text2grad.reward_model.settings import Layout, Rewards
from text2grad.reward_model.stopping import StopWithCheckpoint
from text2grad.reward_model.trainer import SpanRewardTrainer
from text2grad.schema import Example
from text2grad.settings import Settings, flat

CHECKPOINTS, BEGINNING, SUMMARY = "checkpoints", "beginning.json", "training.json"
Watch = Callable[[SpanRewardModel, int, int], None]  # the model so far, the step, the last step


class RewardTraining(Settings):
    """How a reward model is trained; transformers' names where it has one."""

    model: str = DEFAULT_MODEL
    lora: LoraSettings | None = Field(None, description="null trains all weights")
    layout: Layout = Layout()
    rewards: Rewards = Rewards()
    num_train_epochs: PositiveFloat = 3.0
    max_steps: Literal[-1] | PositiveInt = Field(-1, description="optimiser steps; -1 leaves it to num_train_epochs")
    per_device_train_batch_size: PositiveInt = 16
    gradient_accumulation_steps: PositiveInt = 1
    learning_rate: PositiveFloat = 1e-4
    lr_scheduler_type: str = "cosine"
    warmup_ratio: float = Field(0.1, ge=0, lt=1)
    weight_decay: NonNegativeFloat = 0.01
    max_grad_norm: PositiveFloat = 1.0
    lm_weight: NonNegativeFloat = Field(
        0.3, description="weight of the written judgement's loss; 0 trains the head only"
    )
    class_balance: float = Field(0.5, ge=0, le=1, description="0: all tokens count alike; 1: all classes do")
    heldout_share: float = Field(0.1, ge=0, lt=1, description="of the prompts, kept to calibrate the probabilities")
    gradient_checkpointing: bool = False
    bf16: bool = True
    logging_steps: PositiveInt = 10
    save_steps: PositiveInt = 200
    report_to: str | list[str] = "none"
    seed: NonNegativeInt = 0


def train_reward_model(
    examples: Sequence[Example],
    settings: RewardTraining,
    output_dir: str | Path,
    resume: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
    watch: Watch | None = None,
) -> SpanRewardModel:
    """Train, calibrate on the held-out prompts, save into `output_dir`, and return the model.

    callbacks: of the trainer; they replace its own printing. watch: called after every optimiser step.

    `output_dir/training.json` says what was used, what was left out and why; `output_dir/checkpoints` is the trainer's.
    Ctrl-C finishes and saves the step under way before it is raised.
    """
    output_dir = Path(output_dir)
    began = _beginning(settings, examples)
    checkpoint = _starting_point(output_dir, resume, began)
    tokenizer = load_tokenizer(settings.model)
    seen, unseen = split_by_prompt(examples, settings.heldout_share)
    train, heldout = (prepare(part, tokenizer, settings.layout) for part in (seen, unseen))
    if not train.rows:
        raise UserError(
            f"nothing to train on: of {len(seen)} examples none can be used ({_counts(train)}); each needs a prompt, a "
            f"completion and feedback that did not fail"
        )
    if not any(train.class_counts()[label] for label in (GOOD, POOR)):
        raise UserError(
            f"no word of the {len(train.rows)} answers is praised or blamed, so the head has nothing to learn; "
            f"`text2grad align` finds the words that comments are about"
        )
    model = _untrained(settings, tokenizer)
    model.scorer.class_weights = class_weights(train.class_counts(), settings.class_balance)
    try:
        trainer = SpanRewardTrainer(
            model=model.scorer,
            args=training_arguments(settings, output_dir / CHECKPOINTS),
            train_dataset=train.rows,
            data_collator=partial(collate, pad_id=int(tokenizer.pad_token_id)),
            callbacks=[*callbacks, *([_Watching(model, watch)] if watch else [])],
        )
    except ValueError as error:  # the trainer's own settings are its own to check
        raise UserError(f"reward train: {error}") from error
    if callbacks:
        trainer.remove_callback(PrinterCallback)
        trainer.remove_callback(ProgressCallback)
    if trainer.is_world_process_zero():
        output_dir.mkdir(parents=True, exist_ok=True)
        replace_text(output_dir / BEGINNING, json.dumps(began, indent=2))
    with StopWithCheckpoint(alone=trainer.args.world_size == 1) as stop:
        trainer.add_callback(stop)
        trainer.train(resume_from_checkpoint=checkpoint)
    if stop.asked:
        raise KeyboardInterrupt
    if heldout.rows:
        logits, labels = model.head_logits(heldout)
        model.calibration = calibrate(logits, labels)
    model.calibration = model.calibration.model_copy(update={"prior": _shares(train.class_counts())})
    if trainer.is_world_process_zero():
        model.save_pretrained(output_dir)
        replace_text(output_dir / SUMMARY, json.dumps(_summary(settings, train, heldout, trainer), indent=2))
    return model


def _untrained(settings: RewardTraining, tokenizer: PreTrainedTokenizerBase) -> SpanRewardModel:
    torch.manual_seed(settings.seed)
    base: Any = load_model(settings.model)
    if settings.lm_weight:
        check_projection(base)
    lora = settings.lora
    if lora is not None:
        base = get_peft_model(
            base, LoraConfig(r=lora.r, lora_alpha=lora.alpha, target_modules=lora.target_modules, task_type="CAUSAL_LM")
        )
    model = SpanRewardModel(SpanScorer(base), tokenizer, settings.layout, settings.rewards, base=settings.model)
    model.scorer.lm_weight = settings.lm_weight
    return model


class _Watching(TrainerCallback):
    def __init__(self, model: SpanRewardModel, watch: Watch) -> None:
        self._model = model
        self._watch = watch

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._watch(self._model, state.global_step, state.max_steps)


def _beginning(settings: RewardTraining, examples: Sequence[Example]) -> dict[str, Any]:
    """What a training that is resumed must have in common with its first part."""
    digest = hashlib.blake2b(digest_size=16)
    for example in examples:
        digest.update(example.model_dump_json().encode())
    return {"settings": settings.model_dump(mode="json"), "examples": digest.hexdigest()}


def _starting_point(output_dir: Path, resume: bool, began: dict[str, Any]) -> str | None:
    """The last checkpoint that is whole, to resume from. A new run wants a folder without any."""
    # The trainer writes its state last; a folder without it is what a kill left.
    whole = [state.parent for state in (output_dir / CHECKPOINTS).glob(f"{PREFIX_CHECKPOINT_DIR}-*/trainer_state.json")]
    if resume and not whole:
        raise UserError(f"{output_dir}: no checkpoint to resume from; start the training without --resume")
    if whole and not resume:
        # Their steps would be mistaken for this run's own when it is resumed.
        raise UserError(
            f"{output_dir} already holds a training run; continue it with --resume, or choose another folder"
        )
    if resume:
        _check_same(output_dir, began)
    last = max(whole, key=lambda folder: int(folder.name.removeprefix(f"{PREFIX_CHECKPOINT_DIR}-")), default=None)
    return str(last) if last else None


def _check_same(output_dir: Path, began: dict[str, Any]) -> None:
    if (output_dir / SUMMARY).is_file():  # written last
        raise UserError(f"{output_dir}: this training is finished; choose another folder to train anew")
    before = json.loads((output_dir / BEGINNING).read_text(encoding="utf-8"))
    old, new = (flat(given["settings"]) for given in (before, began))
    changed = [f"{name} was {old.get(name)} and is {new.get(name)}" for name in new if old.get(name) != new[name]]
    if before["examples"] != began["examples"]:
        changed.append("the examples are others")
    if changed:
        raise UserError(f"{output_dir}: --resume continues the same training, but {'; '.join(changed)}")


def training_arguments(settings: RewardTraining, folder: Path) -> TrainingArguments:
    """The trainer's own settings."""
    same: dict[str, Any] = settings.model_dump(
        include={
            "num_train_epochs",
            "max_steps",
            "per_device_train_batch_size",
            "gradient_accumulation_steps",
            "learning_rate",
            "lr_scheduler_type",
            "weight_decay",
            "max_grad_norm",
            "gradient_checkpointing",
            "bf16",
            "logging_steps",
            "save_steps",
            "report_to",
            "seed",
        }
    )
    return TrainingArguments(
        output_dir=str(folder),
        warmup_steps=settings.warmup_ratio,  # below 1 it is a share of all steps
        remove_unused_columns=False,
        use_cpu=not torch.cuda.is_available(),
        dataloader_pin_memory=torch.cuda.is_available(),
        save_total_limit=2,
        disable_tqdm=True,
        **same,
    )


def _shares(counts: Sequence[int]) -> tuple[float, float, float]:
    good, neutral, poor = (count / sum(counts) for count in counts)
    return good, neutral, poor


def _counts(prepared: Prepared) -> str:
    return ", ".join(f"{count} {why}" for why, count in prepared.left_out.items()) or "no examples"


def _summary(settings: RewardTraining, train: Prepared, heldout: Prepared, trainer: Trainer) -> dict[str, Any]:
    return {
        "settings": settings.model_dump(mode="json"),
        "train": _part(train),
        "heldout": _part(heldout),
        "log": trainer.state.log_history,
    }


def _part(prepared: Prepared) -> dict[str, Any]:
    return {
        "examples": len(prepared.rows),
        "with_critique": prepared.written,
        "left_out": dict(prepared.left_out),
        "cut_sources": prepared.cut_sources,
        "tokens": dict(zip(("good", "neutral", "poor"), prepared.class_counts(), strict=True)),
    }
