"""`text2grad run` and `text2grad train`: from prompts or logged feedback to a trained model and its report."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from text2grad.checkpoint.model_card import CARD
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.checkpoint.trained import find_model
from text2grad.config.run import ModelSettings, RunConfig, changed_keys, load_config
from text2grad.critics.registry import make_critic
from text2grad.distributed.environment import is_main_process
from text2grad.errors import UserError
from text2grad.evaluation.comparison import compare
from text2grad.files import replace_text
from text2grad.report import build_report
from text2grad.schema import Example, read_examples
from text2grad.trainer.callbacks import Callback
from text2grad.trainer.offline import OfflineTrainer, UsableFeedback
from text2grad.trainer.trainer import Text2GradTrainer

if TYPE_CHECKING:
    from peft import LoraConfig

log = logging.getLogger(__name__)
LOGGED = "logged"  # the name of the critic of runs on logged feedback
# Settings that may differ when a run is resumed. A lower learning rate is the remedy for failed updates; the batch size
# per device depends on the number of processes, and the trainer checks their product; a run folder may be moved.
RESUMABLE_CHANGES = {
    "output_dir",
    "policy.max_steps",
    "policy.learning_rate",
    "policy.per_device_train_batch_size",
    "policy.gradient_accumulation_steps",
    "policy.vllm_server_base_url",
    "policy.vllm_server_timeout",
    "policy.vllm_weight_transfer",
    "policy.vllm_gpu_memory_utilization",
    "policy.report_to",
    "policy.eval_steps",
    "policy.load_best_model_at_end",
    "policy.early_stopping_patience",
    "evaluate.resamples",
    "report.examples",
}
# Those that have an effect on a finished run: it is evaluated and reported again.
NEEDS_NO_TRAINING = {"output_dir", "evaluate.resamples", "report.examples"}


class Display(Callback, Protocol):
    """A callback with hooks for the phases around training."""

    def on_phase(self, name: str) -> None:
        """Called when a phase starts, for instance "Training"."""
        ...

    def on_progress(self, done: int, total: int) -> None:
        """Called within a phase that is not training, with the numbers of finished and all items."""
        ...

    def on_feedback(self, usable: UsableFeedback) -> None:
        """Called before training on logged feedback, with what of it can be used."""
        ...

    def on_finish(self, evaluation: dict[str, Any] | None, report: Path, num_examples: int) -> None:
        """Called at the end, with the held-out comparison and the path of the report."""
        ...


def run(config: RunConfig, display: Display, resume: bool = False) -> RunFolder:
    """Train, compare held-out completions before and after, and write the report. Returns the folder of the run."""
    if _is_finished(config, resume):
        return RunFolder(config.output_dir)
    critic = make_critic(config.critic.name, config.critic.options)
    heldout, train_dataset = config.data.load_eval(), config.data.load_train()
    options = trainer_options(config, [display])
    display.on_phase("Loading the model")
    trainer = Text2GradTrainer(critic=critic, train_dataset=train_dataset, eval_dataset=heldout, **options)
    with trainer.locked():
        return _train(trainer, config, display, resume)


def train_offline(config: RunConfig, display: Display, resume: bool = False) -> RunFolder:
    """Train on logged completions and their feedback in `config.data.train`, and write the report.

    Where `config.data.eval` is set, its prompts are answered before and after, and `config.critic` judges the answers.
    """
    if _is_finished(config, resume):
        return RunFolder(config.output_dir)
    critic, heldout = None, []
    if config.data.eval is not None:
        if config.critic.name == LOGGED:
            raise UserError("held-out prompts need a critic to judge the answers; name one, as in --critic grounding")
        critic = make_critic(config.critic.name, config.critic.options)
        heldout = config.data.load_eval()
    train_dataset, options = list(read_examples(config.data.train)), trainer_options(config, [display])
    display.on_phase("Loading the model")
    trainer = OfflineTrainer(train_dataset=train_dataset, critic=critic, eval_dataset=heldout, **options)
    display.on_feedback(trainer.usable)
    with trainer.locked():
        return _train(trainer, config, display, resume)


def trainer_options(config: RunConfig, callbacks: Sequence[Callback]) -> dict[str, Any]:
    """Return the arguments of a trainer that come from the settings."""
    return {
        "model": config.model.name,
        "args": config.trainer_args(),
        "peft_config": _new_adapter(config.model),
        "plain_prompts": config.model.plain_prompts,
        "callbacks": callbacks,
    }


def _new_adapter(model: ModelSettings) -> LoraConfig | None:
    """Return the adapter to train; None for all weights, and where the model is a run whose adapter is continued."""
    if find_model(model.name).adapter is None:
        return model.lora.to_peft() if model.lora else None
    if model.lora is None:
        raise UserError(
            f"model.lora is null, which trains all weights, but {model.name} has an adapter; merge it first with "
            f"`text2grad export {model.name} -o FOLDER`, and train that folder"
        )
    return None


def _train(trainer: Text2GradTrainer, config: RunConfig, display: Display, resume: bool) -> RunFolder:
    folder, heldout = trainer.run, trainer.eval_examples
    on_main = trainer.processes.run_on_main
    trainer.start(resume)
    on_main(lambda: replace_text(folder.config, config.to_yaml()))

    before = on_main(lambda: _read_before(folder, heldout)) if heldout and resume else None
    if heldout and before is None:
        before = _complete(trainer, heldout, display, "before training", reference=True)
        lines = "".join(c.model_dump_json(exclude_defaults=True) + "\n" for c in before)
        on_main(lambda: folder.write_before(lines))
    display.on_phase("Training")
    trainer.train()
    trainer.save_model()
    evaluation = None
    if before is not None:
        after = _complete(trainer, heldout, display, "after training")
        evaluation = on_main(lambda: compare(before, after, config.evaluate.resamples, config.seed))
        on_main(lambda: replace_text(folder.evaluation, json.dumps(evaluation, ensure_ascii=False)))
        on_main(lambda: replace_text(folder.final / CARD, trainer.create_model_card(evaluation)))
    display.on_finish(evaluation, on_main(lambda: build_report(folder.root)), config.report.examples)
    trainer.accelerator.end_training()
    return folder


def _complete(
    trainer: Text2GradTrainer, heldout: Sequence[Example], display: Display, when: str, reference: bool = False
) -> list[Example]:
    """Return held-out completions with feedback; raise UserError where every critique failed."""
    display.on_phase(f"Generating held-out completions {when}")
    temperature = trainer.args.generation_temperature
    completions = trainer.generate(heldout, temperature, reference, on_progress=display.on_progress)
    display.on_phase(f"Critiquing held-out completions {when}")
    completions = trainer.add_feedback(completions, on_progress=display.on_progress)
    errors = [c.feedback.error for c in completions if c.feedback is not None and c.feedback.status == "failed"]
    if len(errors) == len(completions):
        raise UserError(
            f"every critique of the held-out completions {when} failed, last: {errors[-1]}; fix the critic and "
            f"continue with --resume"
        )
    return completions


def _read_before(folder: RunFolder, heldout: Sequence[Example]) -> list[Example] | None:
    """Return the completions before training of an interrupted run; None where there are none that can be used."""
    if not folder.before.exists():
        return None
    if not folder.is_before_intact():
        log.warning("%s is damaged or incomplete; its completions are generated again", folder.before)
        return None
    completions = list(read_examples(folder.before))
    if [(c.id, c.prompt) for c in completions] != [(e.id, e.prompt) for e in heldout]:
        log.warning("%s is of other held-out prompts; its completions are generated again", folder.before)
        return None
    return completions


def _is_finished(config: RunConfig, resume: bool) -> bool:
    """Whether other settings are given to a resumed run that has finished, so that nothing is left to do with them.

    Raises UserError for a new run whose folder is in use, and if a resumed one would differ from its start in anything
    but RESUMABLE_CHANGES.
    """
    folder = RunFolder(config.output_dir)
    if not resume:
        if is_main_process():  # the others may be late, and find what this one has written by then
            folder.check_new()
        return False
    before = _read_settings(folder)
    changed = changed_keys(before, config)
    last = max((metrics.get("step", 0) for metrics in folder.steps()), default=0)
    is_over = last >= config.policy.max_steps and folder.final.is_dir() and folder.report.is_file()
    if is_over and set(changed) - NEEDS_NO_TRAINING:
        if is_main_process():
            log.warning(
                "the run in %s had finished at step %d, so nothing was done with other settings (%s): to train on, "
                "raise policy.max_steps, or continue from its model in another output_dir with --model %s",
                folder.root,
                last,
                ", ".join(changed),
                folder.root,
            )
        return True
    if forbidden := [key for key in changed if key not in RESUMABLE_CHANGES]:
        raise UserError(
            f"{folder.root} was started with other settings ({', '.join(forbidden)}); resume it with its own "
            f"{folder.config}, or start a new run in another output_dir, from its model with --model {folder.root}"
        )
    return False


def _read_settings(folder: RunFolder) -> RunConfig:
    """Return the settings that a run was started with; raise UserError where there is none to resume."""
    if not folder.config.is_file() and folder.metrics.exists():
        raise UserError(f"{folder.config} is missing; restore it from a copy to resume the run")
    if not folder.config.is_file():
        raise UserError(
            f"{folder.root}: no run to resume; start it without --resume, or give the folder of a moved run with -o"
        )
    return load_config(folder.config)
