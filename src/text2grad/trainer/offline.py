"""Training on logged completions with feedback: no sampling and no critic.

The completions may come from any policy, so each token's update is bounded: the clipped ratio is taken against the
initial model, which limits its change over the whole run to `epsilon`, and `beta` times the KL divergence from that
model is added to the loss. A handful of comments can be learned without harm to the rest.
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
from text2grad.models.special_tokens import encode_texts
from text2grad.rollout.samplers import Sampler
from text2grad.schema import Example, Feedback
from text2grad.trainer.batch import Rollout
from text2grad.trainer.callbacks import Callback
from text2grad.trainer.config import Text2GradConfig
from text2grad.trainer.trainer import Text2GradTrainer

IDS = "completion_ids"  # key of the sampled ids in an example's meta, where they were logged
# Credit stays on the commented words, and no value head has to be trained first.
DEFAULTS: dict[str, Any] = {
    "estimator": "local",
    "vf_coef": 0.0,
    "advantage_normalization": "scale",
    "epsilon": 0.5,
    "beta": 0.1,
    "kl_placement": "loss",
}


class OfflineTrainer(Text2GradTrainer):
    """Text2GradTrainer on (prompt, completion, feedback) triples instead of a critic."""

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
                "eval_steps is set, but completions of held-out prompts need a critic and logged feedback has none: "
                "set it to null"
            )
        valid = [e for e in train_dataset if e.feedback is not None and e.feedback.status == "ok" and e.completion]
        if not valid:
            raise UserError(
                f"no training data: none of {len(train_dataset)} examples has a completion and valid feedback; "
                f"`text2grad annotate` or `text2grad align` adds it"
            )
        if args.num_generations != 1:
            raise UserError("num_generations must be 1: logged completions have no siblings")
        if args.beta and args.kl_placement == "reward":
            raise UserError("kl_placement must be loss for logged completions: their KL in the reward is always 0")
        super().__init__(
            model, LoggedFeedback(), args, valid, processing_class, peft_config, plain_prompts, callbacks=callbacks
        )
        self.completions = [completion_ids(example, self.tokenizer) for example in valid]
        self.offsets = [offsets(ids, self.tokenizer) for ids in self.completions]
        for example, prompt, ids in zip(valid, self.prompts, self.completions, strict=True):
            if len(prompt) + len(ids) > self.context:
                raise UserError(
                    f'example "{example.id}" has {len(prompt) + len(ids)} tokens with its completion, but the model\'s '
                    f"context is {self.context}; remove it, or choose a model with a longer context"
                )

    def rollout(self, step: int) -> Rollout:
        """Return the logged completions of this step."""
        chosen = self._prompt_indices(step)
        return Rollout(
            prompts=[self.prompts[i] for i in chosen],
            completions=[self.completions[i] for i in chosen],
            ended=[self.completions[i][-1] in self.end_ids for i in chosen],
            offsets=[self.offsets[i] for i in chosen],
            examples=[self.examples[i] for i in chosen],
        )

    def _make_sampler(self) -> Sampler:
        """No vLLM engine is started: nothing is sampled."""
        return self.hf_sampler

    def behaviour_scores(self, current: Scores, reference: Scores) -> Scores:
        """The reference stands for the unknown behaviour policy: the ratio then bounds all steps together."""
        return Scores(reference.logprobs, current.entropy, current.values)

    def step(self, step: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """As the base class; `tokens_per_second` counts the tokens trained on, since none is sampled."""
        metrics, samples = super().step(step)
        trained_tokens = metrics["completions/mean_length"] * metrics["samples"]
        metrics["tokens_per_second"] = trained_tokens / metrics["time/step"]
        return metrics, samples


class LoggedFeedback:
    """A critic that returns the feedback of the examples themselves."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return the logged feedback of each example."""
        return [e.feedback or Feedback.failure("logged", "no feedback was logged") for e in examples]


def completion_ids(example: Example, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the logged ids of a completion, or else its encoding with the end token.

    Either must decode to the completion exactly, since spans are character offsets in it.
    """
    logged = example.meta.get(IDS)
    if logged is None:
        ids = [*encode_texts([example.completion], tokenizer)[0], int(tokenizer.eos_token_id)]
    else:
        ids = [int(token) for token in logged]
    if not ids or decode(ids, tokenizer) != example.completion:
        raise UserError(
            f'example "{example.id}": its completion does not survive encoding and decoding by the model\'s tokenizer; '
            f"remove it, or log the sampled ids as meta.{IDS}"
        )
    return ids


def steps_for(examples: int, samples_per_step: int, epochs: float) -> int:
    """Return the number of steps for `epochs` passes over the examples."""
    return max(math.ceil(epochs * examples / samples_per_step), 1)
