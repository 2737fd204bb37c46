"""The tasks of corrections_learning.py: copy_fields with a tiny model, and XQuAD's questions with the default model."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from copy_fields import ARMS as COPY_ARMS
from copy_fields import OURS, make_base_model
from copy_fields_task import LONGEST_ANSWER, CopyCritic, CorrectingCritic, make_examples
from one_fault import OneFault
from peft import LoraConfig

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.critics.base import Critic
from text2grad.critics.rules.qa import QACritic
from text2grad.data.registry import load_examples
from text2grad.models.loading import DEFAULT_MODEL
from text2grad.models.special_tokens import encode_texts
from text2grad.rollout.sampling import Sampled
from text2grad.schema import Example
from text2grad.trainer.batch import make_rollout

# Without rewards, and so without a policy loss: what is left is the correction loss.
NO_SPANS = {"reward_clip": 1e-9, "advantage_normalization": "none", "beta": 0.0}
OTHER_TASK, OTHER_PROMPTS = "scitldr", 64  # where drift is measured


class Task(NamedTuple):
    """steps, every: of training, and between evaluations. rates: learning rates to choose from, on tuning_seeds."""

    steps: int
    tuning_steps: int
    every: int
    rates: tuple[float, ...]
    tuning_seeds: tuple[int, ...]
    arms: tuple[str, ...]
    drifts: bool = False


ARMS = ("spans", "spans, corrections", "whole answers", "replacements")
TASKS = {
    "copy_fields": Task(120, 60, 5, (5e-4, 1e-3, 2e-3), (100, 101), (*ARMS, "corrections")),
    "xquad": Task(40, 20, 4, (1e-4, 3e-4, 1e-3), (100,), ARMS, drifts=True),
}


def make_trainer(setup: Any) -> tuple[Text2GradTrainer, list[Example], Critic]:
    """Return the trainer of a run, the held-out prompts, and the critic that judges them."""
    return make_copy_trainer(setup) if setup.task == "copy_fields" else make_xquad_trainer(setup)


def arm_settings(arm: str) -> dict[str, Any]:
    """Return the settings in which an arm differs; the supervised ones use only the sampling of the trainer."""
    if arm == "corrections":
        return NO_SPANS
    return {"corrections": {"weight": 0.0}} if arm == "spans" else {}


def make_copy_trainer(setup: Any) -> tuple[Text2GradTrainer, list[Example], Critic]:
    model, tokenizer = make_base_model(setup.seed)
    settings: dict[str, Any] = {
        "max_steps": setup.steps,
        "per_device_train_batch_size": setup.batch,
        "max_completion_length": LONGEST_ANSWER,
        "learning_rate": setup.rate,
        "beta": 0.01,
        "temperature": 1.0,
        "bf16": False,
        "num_logged_completions": 0,
        "value_learning_rate": 1e-2,
    }
    trainer = Text2GradTrainer(
        copy.deepcopy(model),
        CorrectingCritic(one_fault=setup.faults == "one"),
        Text2GradConfig(
            output_dir=Path("never written"),
            seed=setup.seed,
            **(settings | COPY_ARMS[OURS] | arm_settings(setup.arm)),
        ),
        make_examples(setup.batch * setup.steps, setup.seed),
        processing_class=tokenizer,
        plain_prompts=True,
    )
    return trainer, make_examples(128, 1000 + setup.seed), CopyCritic()


def make_xquad_trainer(setup: Any) -> tuple[Text2GradTrainer, list[Example], Critic]:
    settings: dict[str, Any] = {
        "max_steps": setup.steps,
        "per_device_train_batch_size": setup.batch,
        "max_completion_length": 48,
        "learning_rate": setup.rate,
        "beta": 0.02,
        "temperature": 0.7,
        "bf16": setup.device.startswith("cuda"),
        "num_logged_completions": 0,
    }
    trainer = Text2GradTrainer(
        DEFAULT_MODEL,
        OneFault(QACritic()) if setup.faults == "one" else QACritic(),
        Text2GradConfig(output_dir=Path("never written"), seed=setup.seed, **(settings | arm_settings(setup.arm))),
        list(load_examples("xquad", "train")),
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    )
    return trainer, list(load_examples("xquad", "heldout")), QACritic()


def measure_drift(trainer: Text2GradTrainer, task: Task) -> dict[str, float]:
    """How far the model has moved on prompts of another task; nothing for a model that knows no other.

    kl: KL(reference || policy) in nats per token of the reference's own answers. perplexity: of people's summaries,
    as a multiple of what it was before.
    """
    if not task.drifts:
        return {}
    examples = list(islice(load_examples(OTHER_TASK, "heldout"), OTHER_PROMPTS))
    sampled = trainer.generate(examples, 1.0, reference=True)
    human = [str((example.reference or [""])[0]) for example in examples]  # SciTLDR has lists
    kl = _log_ratio(trainer, examples, [example.completion for example in sampled])
    return {"kl": kl, "perplexity": math.exp(_log_ratio(trainer, examples, human))}


def _log_ratio(trainer: Text2GradTrainer, examples: Sequence[Example], texts: Sequence[str]) -> float:
    """Return the mean of log pi_ref - log pi over the tokens of given answers."""
    limit = trainer.args.max_completion_length
    ids = [encoded[:limit] for encoded in encode_texts(list(texts), trainer.tokenizer)]
    kept = [i for i, encoded in enumerate(ids) if encoded]
    chosen = [examples[i] for i in kept]
    prompts = trainer.encode_prompts(chosen)
    rollout = make_rollout(chosen, prompts, Sampled([ids[i] for i in kept], None), trainer.end_ids, trainer.tokenizer)
    difference = trainer.score(rollout, reference=True).logprobs - trainer.score(rollout).logprobs
    return float((difference * rollout.mask).sum() / rollout.mask.sum())
