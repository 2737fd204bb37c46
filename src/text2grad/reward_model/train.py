"""Training of a span reward model: the token head and the generated critique, jointly, on transformers' Trainer."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import torch
from peft import get_peft_model
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from transformers import PreTrainedTokenizerBase, PrinterCallback, ProgressCallback, TrainerCallback, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from text2grad.data.split import split_by_prompt
from text2grad.distributed.environment import is_main_process
from text2grad.errors import UserError
from text2grad.files import replace_text
from text2grad.models.backbone import check_projection
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.models.lora import LoraSettings
from text2grad.models.precision import use_bf16
from text2grad.reward_model.critique_format import CritiqueFormat
from text2grad.reward_model.dataset import RewardDataset, build_dataset, collate
from text2grad.reward_model.evaluate import predict, transfer_metrics
from text2grad.reward_model.familiarity import MAX_REFERENCES, Familiarity
from text2grad.reward_model.feedback import FeedbackSettings
from text2grad.reward_model.head import CLASSES, GOOD, POOR, Calibration, calibrate, class_weights
from text2grad.reward_model.inputs import InputSettings
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.network import SpanRewardNetwork
from text2grad.reward_model.settings import RewardModelSettings
from text2grad.reward_model.trainer import SpanRewardTrainer, StopOnSignal
from text2grad.schema import Example
from text2grad.settings import Settings, flatten

log = logging.getLogger(__name__)
FEW_HELDOUT = 20  # completions to calibrate on, with fewer of which there is a warning
CHECKPOINTS, RUN_FILE, SUMMARY_FILE = "checkpoints", "run.json", "training.json"


class RewardTrainingSettings(Settings):
    """How a reward model is trained; transformers' names where it has one.

    model: the model to start from: `smollm2`, a Hugging Face name, or a folder.
    num_train_epochs: passes over the feedback.
    per_device_train_batch_size: examples in one pass on each process.
    gradient_accumulation_steps: passes per optimiser step.
    learning_rate, lr_scheduler_type, warmup_ratio, weight_decay, max_grad_norm: of AdamW, as in transformers.
    gradient_checkpointing: recompute activations in the backward pass: less memory, more time.
    bf16: compute in bfloat16; null: on GPUs, and on CPUs with units for it.
    logging_steps: optimiser steps between logged metrics.
    save_steps: optimiser steps between checkpoints.
    report_to: trackers, as in transformers.
    seed: of the head, the held-out prompts and the order.
    """

    model: str = DEFAULT_MODEL
    lora: LoraSettings | None = Field(None, description="null trains all weights")
    inputs: InputSettings = InputSettings()
    critique_format: CritiqueFormat = CritiqueFormat()
    feedback: FeedbackSettings = FeedbackSettings()
    num_train_epochs: PositiveFloat = 3.0
    max_steps: Literal[-1] | PositiveInt = Field(-1, description="optimizer steps; -1 uses num_train_epochs")
    per_device_train_batch_size: PositiveInt = 16
    gradient_accumulation_steps: PositiveInt = 1
    learning_rate: PositiveFloat = 1e-4
    lr_scheduler_type: str = "cosine"
    warmup_ratio: float = Field(0.1, ge=0, lt=1)
    weight_decay: NonNegativeFloat = 0.01
    max_grad_norm: PositiveFloat = 1.0
    lm_weight: NonNegativeFloat = Field(0.3, description="weight of the critique's loss; 0 trains the head only")
    class_balance: float = Field(0.5, ge=0, le=1, description="0 weights all tokens equally, 1 all classes")
    heldout_share: float = Field(0.1, ge=0, lt=1, description="share of the prompts held out for calibration")
    gradient_checkpointing: bool = False
    bf16: bool | None = None
    logging_steps: PositiveInt = 10
    save_steps: PositiveInt = 200
    report_to: str | list[str] = "none"
    seed: NonNegativeInt = 0


def train_reward_model(
    examples: Sequence[Example],
    settings: RewardTrainingSettings,
    output_dir: str | Path,
    resume: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
    left_out: Mapping[str, Sequence[Example]] = MappingProxyType({}),
) -> SpanRewardModel:
    """Train, calibrate on the held-out prompts, save into `output_dir`, and return the model.

    callbacks: of the Trainer; they replace its own progress output.
    left_out: examples by set that the model is not trained on but evaluated with, to see whether it transfers.

    `output_dir/training.json` holds the settings, the statistics of the data and the log; `output_dir/checkpoints`
    holds the Trainer's checkpoints. Ctrl-C saves a checkpoint after the current step, then raises KeyboardInterrupt.
    """
    output_dir = Path(output_dir)
    run = _describe_run(settings, examples)
    checkpoint = _find_checkpoint(output_dir, resume, run)
    tokenizer = load_tokenizer(settings.model)
    train, heldout = (
        build_dataset(part, tokenizer, settings.inputs, settings.critique_format)
        for part in split_by_prompt(examples, settings.heldout_share)
    )
    _check_trainable(train)
    _warn_of_few(heldout, settings)
    model = _initialize_model(settings, tokenizer)
    model.network.class_weights = class_weights(train.class_counts(), settings.class_balance)
    trainer = _make_trainer(model, train, settings, output_dir / CHECKPOINTS, callbacks)
    if trainer.is_world_process_zero():
        output_dir.mkdir(parents=True, exist_ok=True)
        replace_text(output_dir / RUN_FILE, json.dumps(run, indent=2))
    with StopOnSignal(enabled=trainer.args.world_size == 1) as stop:
        trainer.add_callback(stop)
        trainer.train(resume_from_checkpoint=checkpoint)
    if stop.requested:
        raise KeyboardInterrupt
    _fit_heldout(model, train, heldout)
    if trainer.is_world_process_zero():
        model.save_pretrained(output_dir)
        summary = {
            "settings": settings.model_dump(mode="json"),
            "train": _statistics(train),
            "heldout": _statistics(heldout),
            "left_out": {name: transfer_metrics(predict(model, part)[0]) for name, part in left_out.items()},
            "log": trainer.state.log_history,
        }
        replace_text(output_dir / SUMMARY_FILE, json.dumps(summary, indent=2))
    return model


def training_arguments(settings: RewardTrainingSettings, folder: Path) -> TrainingArguments:
    """Return the Trainer's arguments: our settings of the same names, and what follows from the machine."""
    shared = set(RewardTrainingSettings.model_fields) & set(TrainingArguments.__dataclass_fields__) - {"warmup_ratio"}
    return TrainingArguments(
        output_dir=str(folder),
        warmup_steps=settings.warmup_ratio,  # a value below 1 is a ratio
        remove_unused_columns=False,
        use_cpu=not torch.cuda.is_available(),
        dataloader_pin_memory=torch.cuda.is_available(),
        save_total_limit=2,
        disable_tqdm=True,
        bf16=use_bf16(settings.bf16, "cuda" if torch.cuda.is_available() else "cpu"),
        **settings.model_dump(include=shared - {"bf16"}),
    )


def _check_trainable(train: RewardDataset) -> None:
    if not train.rows:
        reasons = ", ".join(f"{count} {reason}" for reason, count in train.skipped.items()) or "no examples"
        raise UserError(
            f"nothing to train on: no example is usable ({reasons}); each needs a prompt, a completion and feedback "
            f"that did not fail"
        )
    if not any(train.class_counts()[label] for label in (GOOD, POOR)):
        raise UserError(
            f"none of the {len(train.rows)} completions has a good or poor word, so the head has nothing to learn; "
            f"`text2grad align` finds the words that comments refer to"
        )


def _warn_of_few(heldout: RewardDataset, settings: RewardTrainingSettings) -> None:
    if settings.heldout_share and len(heldout.rows) < FEW_HELDOUT and is_main_process():
        log.warning(
            "too few completions are held out to calibrate the probabilities well (%d): give more feedback, or raise "
            "heldout_share",
            len(heldout.rows),
        )


def _make_trainer(
    model: SpanRewardModel,
    train: RewardDataset,
    settings: RewardTrainingSettings,
    checkpoints: Path,
    callbacks: Sequence[TrainerCallback],
) -> SpanRewardTrainer:
    """Return the Trainer of the network; its own progress output is only kept where there are no callbacks."""
    try:
        trainer = SpanRewardTrainer(
            model=model.network,
            args=training_arguments(settings, checkpoints),
            train_dataset=train.rows,
            data_collator=partial(collate, pad_id=int(model.tokenizer.pad_token_id)),
            callbacks=list(callbacks),
        )
    except ValueError as error:  # raised by the Trainer for its own arguments
        raise UserError(f"reward train: {error}") from error
    if callbacks:
        trainer.remove_callback(PrinterCallback)
        trainer.remove_callback(ProgressCallback)
    return trainer


def _initialize_model(settings: RewardTrainingSettings, tokenizer: PreTrainedTokenizerBase) -> SpanRewardModel:
    torch.manual_seed(settings.seed)
    base: Any = load_model(settings.model)
    if settings.lm_weight:
        check_projection(base)
    if settings.lora is not None:
        base = get_peft_model(base, settings.lora.to_peft(task_type="CAUSAL_LM"))
    network = SpanRewardNetwork(base)
    network.lm_weight = settings.lm_weight
    model_settings = RewardModelSettings(
        base=settings.model,
        inputs=settings.inputs,
        critique_format=settings.critique_format,
        feedback=settings.feedback,
    )
    return SpanRewardModel(network, tokenizer, model_settings)


def _fit_heldout(model: SpanRewardModel, train: RewardDataset, heldout: RewardDataset) -> None:
    """Fit the calibration and the familiarity on the held-out rows; without any, both stay as they are."""
    calibration = Calibration()
    if heldout.rows:
        logits, labels, features = model.read_rows(heldout)
        calibration = calibrate(logits, labels)
        step = -(-len(train.rows) // MAX_REFERENCES)
        references = model.read_rows(RewardDataset(train.rows[::step]))[2]
        model.familiarity = Familiarity.fit(references, features)
    counts = train.class_counts()
    prior = tuple(count / sum(counts) for count in counts)
    calibration = calibration.model_copy(update={"prior": prior})
    model.settings = model.settings.model_copy(update={"calibration": calibration})


def _describe_run(settings: RewardTrainingSettings, examples: Sequence[Example]) -> dict[str, Any]:
    """Return what a resumed run must have in common with the interrupted one."""
    digest = hashlib.blake2b(digest_size=16)
    for example in examples:
        digest.update(example.model_dump_json().encode())
    return {"settings": settings.model_dump(mode="json"), "examples": digest.hexdigest()}


def _find_checkpoint(output_dir: Path, resume: bool, run: dict[str, Any]) -> str | None:
    """Return the last complete checkpoint if `resume`; otherwise require a folder without checkpoints and model."""
    # The Trainer writes its state last; a checkpoint without it is incomplete.
    states = (output_dir / CHECKPOINTS).glob(f"{PREFIX_CHECKPOINT_DIR}-*/trainer_state.json")
    complete = sorted((state.parent for state in states), key=lambda folder: int(folder.name.rpartition("-")[2]))
    if not resume:
        if (output_dir / SUMMARY_FILE).is_file():  # written last; the checkpoints may have been removed since
            raise UserError(f"{output_dir} already holds a trained reward model; choose another folder")
        if complete:
            raise UserError(
                f"{output_dir} already holds a training run; continue it with --resume, or choose another folder"
            )
        if output_dir.is_dir() and any(output_dir.iterdir()) and not (output_dir / RUN_FILE).is_file():
            raise UserError(f"{output_dir} exists and is not a reward model of text2grad; choose an empty folder")
        return None
    if not complete:
        raise UserError(f"{output_dir}: no checkpoint to resume from; start the training without --resume")
    _check_same_run(output_dir, run)
    return str(complete[-1])


def _check_same_run(output_dir: Path, run: dict[str, Any]) -> None:
    if (output_dir / SUMMARY_FILE).is_file():  # written last
        raise UserError(f"{output_dir}: this training is finished; choose another folder to train again")
    if not (output_dir / RUN_FILE).is_file():
        raise UserError(f"{output_dir / RUN_FILE} is missing; restore it from a copy, or train in another folder")
    before = json.loads((output_dir / RUN_FILE).read_text(encoding="utf-8"))
    old, new = (flatten(one["settings"]) for one in (before, run))
    changed = [f"{name} was {old.get(name)} and is {new.get(name)}" for name in new if old.get(name) != new[name]]
    if before["examples"] != run["examples"]:
        changed.append("the examples differ")
    if changed:
        raise UserError(f"{output_dir}: --resume continues the same training, but {'; '.join(changed)}")


def _statistics(dataset: RewardDataset) -> dict[str, Any]:
    return {
        "examples": len(dataset.rows),
        "with_critique": dataset.num_with_critique,
        "skipped": dict(dataset.skipped),
        "truncated_prompts": dataset.num_truncated_prompts,
        "tokens": dict(zip(CLASSES, dataset.class_counts(), strict=True)),
    }
