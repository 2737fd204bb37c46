"""Learning from comments on earlier answers: nothing is sampled, and no critic is asked.

The answers may be anybody's, so each token's update is bounded: its probability is compared with that under the model
as it was at the start, and beyond `epsilon` from there it is pushed no further; all tokens are held near that model by
`beta` times the divergence from it, in the loss. So a handful of comments can be learned without harm to the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peft import LoraConfig, PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.align.tokens import decode, offsets
from text2grad.errors import UserError
from text2grad.models.policy import Scores
from text2grad.rollout.samplers import Sampler
from text2grad.schema import Example, Feedback
from text2grad.trainer.batch import Rollout
from text2grad.trainer.callbacks import Callback
from text2grad.trainer.config import Text2GradConfig
from text2grad.trainer.trainer import Text2GradTrainer

IDS = "completion_ids"  # the entry of an example's meta that holds the ids that were sampled, where they are known
# Credit stays on the words that are commented on, and no value head has to be learned first.
DEFAULTS: dict[str, Any] = {
    "estimator": "local",
    "gamma": 0.7,
    "lam": 0.3,
    "vf_coef": 0.0,
    "advantage_normalization": "scale",
    "epsilon": 0.5,
    "beta": 0.1,
    "kl_placement": "loss",
}


class OfflineTrainer(Text2GradTrainer):
    """As Text2GradTrainer, with (prompt, completion, feedback) triples instead of a critic."""

    def __init__(
        self,
        model: str | Path | PreTrainedModel | PeftModel,
        args: Text2GradConfig,
        train_dataset: Sequence[Example],
        processing_class: PreTrainedTokenizerBase | None = None,
        peft_config: LoraConfig | None = None,
        plain_prompts: bool = False,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        if args.eval_steps is not None:
            raise UserError(
                "eval_steps is set, but new answers to held-out prompts need a critic and logged feedback has none: "
                "set it to null"
            )
        usable = [e for e in train_dataset if e.feedback is not None and e.feedback.status == "ok" and e.completion]
        if not usable:
            raise UserError(
                f"nothing to learn from: of {len(train_dataset)} examples none has a completion and feedback that did "
                f"not fail; `text2grad annotate` or `text2grad align` gives it"
            )
        if args.num_generations != 1:
            raise UserError("num_generations must be 1: logged answers have no siblings")
        if args.beta and args.kl_placement == "reward":
            raise UserError("kl_placement must be loss here: logged answers are as near to the reference as can be")
        super().__init__(
            model, Remembered(), args, usable, processing_class, peft_config, plain_prompts, callbacks=callbacks
        )
        self.completions = [completion_ids(example, self.tokenizer) for example in usable]
        self.offsets = [offsets(ids, self.tokenizer) for ids in self.completions]
        for example, prompt, ids in zip(usable, self.prompts, self.completions, strict=True):
            if len(prompt) + len(ids) > self.context:
                raise UserError(
                    f'example "{example.id}" has {len(prompt) + len(ids)} tokens with its completion, but the model\'s '
                    f"context is {self.context}; leave it out, or choose a model with a longer context"
                )

    def rollout(self, step: int) -> Rollout:
        """The step's answers, as they were given."""
        chosen = self._prompts_of(step)
        return Rollout(
            prompts=[self.prompts[i] for i in chosen],
            completions=[self.completions[i] for i in chosen],
            ended=[self.completions[i][-1] in self.end_ids for i in chosen],
            offsets=[self.offsets[i] for i in chosen],
            examples=[self.examples[i] for i in chosen],
        )

    def _sampler(self) -> Sampler:
        """None is started: nothing is sampled."""
        return self.hf_sampler

    def behaviour(self, now: Scores, reference: Scores) -> Scores:
        """The reference stands for whoever gave the answers: the ratio then bounds how far all steps together go."""
        return Scores(reference.logprobs, now.entropy, now.values)

    def step(self, step: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """As the trainer's; tokens a second are those learned from, since none is sampled."""
        metrics, samples = super().step(step)
        metrics["tokens_per_second"] = metrics["length"] * metrics["samples"] / metrics["seconds"]
        return metrics, samples


class Remembered:
    """Repeats the feedback that the examples came with."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [e.feedback or Feedback.failure("logged", "no feedback was logged") for e in examples]


def completion_ids(example: Example, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The sampled ids where they were logged; else the tokenizer's own encoding and the end token.

    Either must spell the completion exactly: spans are places in it.
    """
    logged = example.meta.get(IDS)
    if logged is None:
        encoded: Any = tokenizer(example.completion, add_special_tokens=False, split_special_tokens=True)
        ids = [*encoded["input_ids"], int(tokenizer.eos_token_id)]
    else:
        ids = [int(token) for token in logged]
    if not ids or decode(ids, tokenizer) != example.completion:
        raise UserError(
            f'example "{example.id}": the model\'s tokenizer does not spell its completion exactly; leave it out, or '
            f"log the sampled ids as meta.{IDS}"
        )
    return ids


def steps_for(examples: int, samples_per_step: int, epochs: float) -> int:
    """Steps in which every example is met `epochs` times."""
    return max(math.ceil(epochs * examples / samples_per_step), 1)
