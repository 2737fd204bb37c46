"""Training on logged completions with feedback: nothing is sampled, and a critic is needed for evaluation only.

The completions may come from any policy, so each token's update is bounded: the clipped ratio is taken against the
initial model, which limits its change over the whole run to `epsilon`, and `beta` times the KL divergence from that
model is added to the loss. A handful of comments can be learned without harm to the rest.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peft import LoraConfig, PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.align.comment_aligner import is_alignable
from text2grad.align.tokens import decode, offsets
from text2grad.critics.base import Critic
from text2grad.errors import UserError
from text2grad.models.prompts import encode_prompts
from text2grad.models.special_tokens import encode_texts
from text2grad.rewards.credit import DEFAULT_CREDIT, certain_omissions, signed_ranges
from text2grad.schema import Example
from text2grad.trainer.batch import Rollout
from text2grad.trainer.callbacks import Callback
from text2grad.trainer.config import Text2GradConfig
from text2grad.trainer.scoring import LoggedFeedback
from text2grad.trainer.trainer import Text2GradTrainer

IDS = "completion_ids"  # key of the sampled ids in an example's meta, where they were logged
# Credit stays on the commented words, and no value head has to be trained first. A logged correction is learned even if
# the policy finds it improbable: it was written down, and there are no other samples that could make it less so.
DEFAULTS: dict[str, Any] = {
    "estimator": "local",
    "vf_coef": 0.0,
    "advantage_normalization": "scale",
    "epsilon": 0.5,
    "beta": 0.1,
    "kl_placement": "loss",
    "corrections": {"weight": 0.5, "robustness": 0.0},
}


@dataclass(frozen=True)
class UsableFeedback:
    """The examples to train on. neutral: how many of them neither praise nor blame with enough confidence to count.

    unusable: reasons with counts. min_confidence: what counts as enough.
    """

    examples: list[Example]
    neutral: int
    unusable: Mapping[str, int]
    min_confidence: float = DEFAULT_CREDIT.min_confidence

    @property
    def total(self) -> int:
        """All examples, the unusable ones included."""
        return len(self.examples) + sum(self.unusable.values())

    def without(self, dropped: Sequence[tuple[Example, str]]) -> UsableFeedback:
        """Return these without some, for the reasons that are given."""
        identities = {id(example) for example, _ in dropped}
        kept = [example for example in self.examples if id(example) not in identities]
        reasons = Counter(self.unusable) + Counter(reason for _, reason in dropped)
        neutral = sum(_is_neutral(example, self.min_confidence) for example in kept)
        return UsableFeedback(kept, neutral, dict(reasons.most_common()), self.min_confidence)

    def check(self, source: str | Path | None = None) -> None:
        """Raise UserError where there is nothing to train on. source: the file of the examples."""
        where = "" if source is None else f"{source}: "
        if not self.total:
            raise UserError(
                f"{where}no training data: there are no examples; `text2grad import` and `annotate` add them"
            )
        if not self.examples:
            reasons = ", ".join(f"{reason} ({count})" for reason, count in self.unusable.items())
            raise UserError(
                f"{where}no training data: none of {self.total} examples has a completion and valid feedback: "
                f"{reasons}; `text2grad import`, `annotate` and `align` add feedback"
            )
        if self.neutral == len(self.examples):
            raise UserError(f"{where}no training data: {self._describe_neutral(source)}")

    def _describe_neutral(self, source: str | Path | None) -> str:
        """Return why nothing is learned from examples that are all neutral, and the remedy."""
        feedback = [example.feedback for example in self.examples if example.feedback is not None]
        if any(is_alignable(one) and not one.omissions for one in feedback):
            return (
                f"none of {len(feedback)} critiques has spans, which tell the words that it praises or blames; find "
                f"them with `text2grad align {source or 'FILE'} -o aligned.jsonl`"
            )
        return (
            f"none of {len(feedback)} examples praises or blames anything with a confidence of at least "
            f"{self.min_confidence:g}; add spans, omissions or a score, or lower credit.min_confidence"
        )


def usable_feedback(
    examples: Sequence[Example], min_confidence: float = DEFAULT_CREDIT.min_confidence
) -> UsableFeedback:
    """Select the examples with a prompt, a completion and valid feedback."""
    reasons = [(example, _why_unusable(example)) for example in examples]
    everything = UsableFeedback(list(examples), 0, {}, min_confidence)
    return everything.without([(example, reason) for example, reason in reasons if reason is not None])


def _why_unusable(example: Example) -> str | None:
    if not example.prompt_text.strip():
        return "no prompt"
    if not example.completion:
        return "no completion"
    if example.feedback is None:
        return "no feedback"
    if example.feedback.status == "failed":
        return f"failed: {str(example.feedback.error).partition(':')[0]}"
    return None


def _is_neutral(example: Example, min_confidence: float) -> bool:
    feedback = example.feedback
    assert feedback is not None
    counts = signed_ranges(feedback, min_confidence) or certain_omissions(feedback, min_confidence)
    return not counts and feedback.score is None


class OfflineTrainer(Text2GradTrainer):
    """Text2GradTrainer on (prompt, completion, feedback) triples instead of a critic.

    critic: comments on completions of `eval_dataset`; not needed without one. `usable` says which examples of
    train_dataset are trained on, and why others are not.
    """

    def __init__(
        self,
        model: str | Path | PreTrainedModel | PeftModel,
        args: Text2GradConfig,
        train_dataset: Sequence[Example],
        processing_class: PreTrainedTokenizerBase | None = None,
        peft_config: LoraConfig | None = None,
        plain_prompts: bool = False,
        critic: Critic | None = None,
        eval_dataset: Sequence[Example] = (),
        callbacks: Sequence[Callback] = (),
    ) -> None:
        if (args.eval_steps is not None or eval_dataset) and critic is None:
            raise UserError(
                "completions of held-out prompts need a critic, and logged feedback has none: name one (--critic), or "
                "set policy.eval_steps and data.eval to null"
            )
        self.usable = usable_feedback(train_dataset, args.credit.min_confidence)
        self.usable.check()
        if args.num_generations != 1:
            raise UserError("num_generations must be 1: logged completions have no siblings")
        if args.beta and args.kl_placement == "reward":
            raise UserError("kl_placement must be loss for logged completions: their KL in the reward is always 0")
        if args.kl_controller == "adaptive":
            raise UserError("kl_controller must be fixed: logged completions do not show the KL of the policy")
        super().__init__(
            model,
            critic or LoggedFeedback(),
            args.model_copy(update={"rollouts": "transformers"}),  # nothing is sampled: no vLLM engine is started
            self.usable.examples,
            processing_class,
            peft_config,
            plain_prompts,
            eval_dataset,
            callbacks,
        )
        self._keep_what_fits()
        self.card_names = {"critic": "logged feedback"}
        if critic is not None:
            self.card_names["evaluated by"] = str(getattr(critic, "name", type(critic).__name__))

    def _keep_what_fits(self) -> None:
        """Drop completions that the tokenizer cannot write, and those that are too long for the model."""
        kept: list[tuple[Example, list[int], list[int]]] = []
        dropped: list[tuple[Example, str]] = []
        for example, prompt in zip(self.examples, self.prompts, strict=True):
            ids = completion_ids(example, self.tokenizer)
            if ids is None:
                dropped.append((example, f"the tokenizer cannot write the completion, and meta.{IDS} does not"))
            elif len(prompt) + len(ids) > self.context:
                dropped.append((example, f"longer than the model's context of {self.context} tokens"))
            else:
                kept.append((example, prompt, ids))
        self.usable = self.usable.without(dropped)
        self.usable.check()
        self.examples = [example for example, _, _ in kept]
        self.prompts = [prompt for _, prompt, _ in kept]
        self.completions = [ids for _, _, ids in kept]
        self.offsets = [offsets(ids, self.tokenizer) for ids in self.completions]

    def encode_prompts(self, examples: Sequence[Example]) -> list[list[int]]:
        """Return prompt ids. Prompts to train on have no limit of their own: their completions are known."""
        if examples is not self.examples:
            return super().encode_prompts(examples)
        return encode_prompts(examples, self.tokenizer, self.plain_prompts, sys.maxsize, max_completion_length=0)

    def rollout(self, step: int) -> Rollout:
        """Return the logged completions of this step."""
        chosen = self._prompt_indices(step)
        return Rollout(
            prompts=[self.prompts[i] for i in chosen],
            completions=[self.completions[i] for i in chosen],
            ended=[self.completions[i][-1] in self.end_ids for i in chosen],
            offsets=[self.offsets[i] for i in chosen],
            examples=[self.examples[i] for i in chosen],
            logged=True,
        )


def completion_ids(example: Example, tokenizer: PreTrainedTokenizerBase) -> list[int] | None:
    """Return the logged ids of a completion, or else its encoding with the end token.

    None where these do not decode to the completion exactly: spans are character offsets in it. Nor are logged ones
    taken that are no ids of the tokenizer: those beyond its vocabulary decode to nothing.
    """
    logged = example.meta.get(IDS)
    if logged is None:
        ids = [*encode_texts([example.completion], tokenizer)[0], int(tokenizer.eos_token_id)]
    else:
        try:
            ids = [int(token) for token in logged]
        except (TypeError, ValueError):
            return None
        if not all(0 <= token < len(tokenizer) for token in ids):
            return None
    return ids if ids and decode(ids, tokenizer) == example.completion else None


def steps_for(examples: int, samples_per_step: int, epochs: float) -> int:
    """Return the number of steps for `epochs` passes over the examples."""
    return max(math.ceil(epochs * examples / samples_per_step), 1)
