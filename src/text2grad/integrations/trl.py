"""TRL's GRPOTrainer with one advantage per token, from the spans of a critic: docs/integrations.md.

Sampling, log-probabilities, loss and everything around them are TRL's. Ours are the token rewards, which are kept where
TRL calculates rewards, and the advantages, (completions, tokens), which replace TRL's one per completion.
"""

from __future__ import annotations

import json
import logging
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor
from torch.nn.functional import pad
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOConfig, GRPOTrainer

from text2grad.critics.base import Critic
from text2grad.distributed.processes import Processes, catch_user_error
from text2grad.errors import UserError
from text2grad.files import replace_text
from text2grad.integrations.critique_rewards import CritiqueRewards, critique_to_rewards
from text2grad.rewards.credit import Credit
from text2grad.schema import describe, from_dataset
from text2grad.trainer.advantages import ESTIMATORS, EstimatorName, Normalization, normalize, span_advantages
from text2grad.trainer.batch import scale_rewards, stack_rewards
from text2grad.trainer.losses import mean_over_tokens
from text2grad.trainer.state import RunningScale

log = logging.getLogger(__name__)
NOTHING = CritiqueRewards([], [], [])
REWARD_SCALE = "reward_scale.json"  # in every checkpoint


@dataclass
class SpanGRPOConfig(GRPOConfig):  # type: ignore[misc]
    """TRL's GRPOConfig, and how feedback becomes advantages: the names and defaults of Text2GradConfig.

    credit: fields of `text2grad.rewards.credit.Credit`, as {"mode": "normalized"}.
    """

    _VALID_DICT_FIELDS = [*GRPOConfig._VALID_DICT_FIELDS, "credit"]  # noqa: RUF012

    credit: dict[str, Any] | str | None = field(
        default=None, metadata={"help": "How feedback becomes token rewards: fields of text2grad's Credit."}
    )
    estimator: str = field(
        default="local", metadata={"help": "Advantages from token rewards: local, reinforce, rloo or rloo_tokens."}
    )
    gamma: float | None = field(default=None, metadata={"help": "Discount; None is the estimator's default."})
    lam: float | None = field(default=None, metadata={"help": "Trace decay; None is the estimator's default."})
    advantage_normalization: str = field(
        default="scale", metadata={"help": "Of the advantages of a generation batch: scale, whiten or none."}
    )
    reward_clip: float = field(
        default=10.0, metadata={"help": "Largest token reward, in standard deviations of the totals."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self)


def check_settings(args: SpanGRPOConfig) -> None:
    """Raise UserError where a setting assumes one advantage or one scalar reward per completion, or has no meaning."""
    kinds: dict[str, Any] = {"estimator": EstimatorName, "advantage_normalization": Normalization, "credit": Credit}
    for name, kind in kinds.items():
        value = getattr(args, name)
        try:
            TypeAdapter(kind).validate_python({} if value is None else value)
        except ValidationError as error:
            raise UserError(f"{name} is {value!r}: {describe(error)}") from error
    estimator = ESTIMATORS[args.estimator]  # type: ignore[index]
    decay = (estimator.gamma if args.gamma is None else args.gamma) * (estimator.lam if args.lam is None else args.lam)
    group_size = min(args.num_generations, args.num_generations_eval or args.num_generations)
    per_sequence = "assumes one advantage per completion"
    scalar = "applies to scalar rewards, of which there are none"
    refused = {  # setting: whether it is refused, why, and what to do
        "importance_sampling_level": (args.importance_sampling_level != "token", per_sequence, 'set it to "token"'),
        "loss_type": (args.loss_type in ("luspo", "vespo"), per_sequence, 'choose another, as "dapo"'),
        "off_policy_mask_threshold": (args.off_policy_mask_threshold is not None, per_sequence, "leave it out"),
        "scale_rewards": (args.scale_rewards != "group", scalar, "set advantage_normalization instead"),
        "reward_weights": (args.reward_weights is not None, scalar, "leave it out"),
        "multi_objective_aggregation": (
            args.multi_objective_aggregation != "sum_then_normalize",
            scalar,
            "leave it out",
        ),
        "estimator": (estimator.values == "required", "needs a value head, which GRPO has not", 'choose "local"'),
        "num_generations_eval": (
            estimator.needs_groups and group_size < 2,
            f"leaves the estimator {args.estimator} nothing to compare a completion with",
            "set it to 2 or more",
        ),
        "lam": (estimator.needs_decay and decay >= 1, "makes gamma * lam 1 or more", "lower it"),
    }
    for name, (is_refused, problem, remedy) in refused.items():
        if is_refused:
            raise UserError(f"{name} is {getattr(args, name)!r}, which {problem}: {remedy}")


class SpanGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer with a critic in the place of reward functions, and an advantage for every token.

    critic: anything with `critique(examples) -> list[Feedback]`. The columns of the data set are the fields of
        `Example`; other columns are in its `meta`.
    args: a SpanGRPOConfig. arguments: the other arguments of GRPOTrainer. Reward functions, tools and environments are
        refused: the critic takes the place of the former, and reads one completion, not a trajectory.

    A completion whose critique failed is masked, and counted in `critic/failed`. Corrections (replacements and
    insertions) are not trained on: TRL's loss has no place for tokens that were not sampled.
    """

    _tag_names = ["trl", "grpo", "text2grad"]  # noqa: RUF012

    def __init__(self, model: Any, critic: Critic, args: SpanGRPOConfig, train_dataset: Any, **arguments: Any) -> None:
        if not isinstance(args, SpanGRPOConfig):
            raise UserError(f"args is a {type(args).__name__}: pass a SpanGRPOConfig, which takes the same arguments")
        for name in ("reward_funcs", "reward_processing_classes", "tools", "environment_factory"):
            if arguments.get(name) is not None:
                raise UserError(
                    f"{name} is given, but a critic reads single completions and rewards them: leave it out"
                )
        super().__init__(model, critic.critique, args, train_dataset, **arguments)
        self.critic, self.credit = critic, Credit.model_validate(args.credit or {})
        self.processes = Processes(self.accelerator.process_index, self.accelerator.num_processes)
        self.reward_scale = RunningScale()
        self._found = NOTHING

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: Any, completions: Any, completion_ids_list: list[list[int]]
    ) -> Tensor:
        """Keep the token rewards of all processes' completions; returns their totals for TRL: (completions, 1)."""
        own = catch_user_error(lambda: self._critique(inputs, completion_ids_list))
        shares = self.processes.gather_or_raise(own)
        self._found = CritiqueRewards(
            [one for share in shares for one in share.tokens],
            [one for share in shares for one in share.feedback],
            [one for share in shares for one in share.truncated],
        )
        totals = [math.nan if one.total is None else one.total for one in self._found.tokens]
        return torch.tensor(totals, device=self.accelerator.device).unsqueeze(1)

    def _critique(self, inputs: list[dict[str, Any]], completion_ids: list[list[int]]) -> CritiqueRewards:
        found = critique_to_rewards(
            self.critic,
            list(from_dataset(inputs)),
            completion_ids,
            self._tokenizer,
            truncated=[ids[-1] not in self.eos_token_ids for ids in completion_ids],
            credit=self.credit,
            rng=np.random.default_rng([self.args.seed, self.state.global_step, self.processes.rank]),
        )
        if self.log_completions:
            self._log_completion_extra("feedback", [f.model_dump_json(exclude_defaults=True) for f in found.feedback])
        return found

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Replace TRL's advantages by ours, (completions, tokens), and mask completions without usable feedback."""
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if "tool_mask" in output:
            raise UserError("rollout_func returned an env_mask, but a critic reads single completions: leave it out")
        advantages, mask = self._span_advantages()
        self._log_spans(advantages, mask)
        self._found, (count, width) = NOTHING, output["completion_ids"].shape
        own = slice(self.processes.rank * count, (self.processes.rank + 1) * count)
        output["advantages"], output["completion_mask"] = (
            pad(part[own], (0, width - part.shape[1])).to(output[name])
            for part, name in ((advantages, "advantages"), (mask, "completion_mask"))
        )
        output["num_items_in_batch"] = mask.sum().to(output["num_items_in_batch"])
        return output

    def _span_advantages(self) -> tuple[Tensor, Tensor]:
        """Return the advantages of all processes' completions, and the mask of the loss: both (completions, tokens)."""
        args, training = self.args, self.model.training
        rewards, mask = stack_rewards(self._found.tokens), self._found.tensors().mask
        if self.mask_truncated_completions:
            mask = mask * ~torch.tensor(self._found.truncated).unsqueeze(1)
        if training:
            self.reward_scale.update(rewards.totals[rewards.valid])
        scaled = scale_rewards(rewards, self.reward_scale, args.reward_clip)
        group_size = self.num_generations if training else self.num_generations_eval
        advantages, _ = span_advantages(
            scaled.tokens, mask, args.estimator, None, group_size, args.gamma, args.lam, scaled.outcomes
        )
        return normalize(advantages, mask, args.advantage_normalization), mask

    def _log_spans(self, advantages: Tensor, mask: Tensor) -> None:
        """Add our metrics to TRL's, and put the mean advantage of each completion into the table of completions."""
        metrics = self._metrics["train" if self.model.training else "eval"]
        for name, value in span_metrics(self._found).items():
            metrics[name].append(value)
        failed = [one.error for one in self._found.feedback if one.status == "failed"]
        if failed and self.processes.is_main:
            log.warning("%d of %d critiques failed; the last: %s", len(failed), len(mask), failed[-1])
        logged = self._logs["advantages"]
        means = mean_over_tokens(advantages, mask).tolist()[-len(logged) :]
        for _ in means:
            logged.pop()
        logged.extend(means)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial=trial), f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}")
            replace_text(folder / REWARD_SCALE, json.dumps(asdict(self.reward_scale)))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        path = Path(checkpoint, REWARD_SCALE)
        if not path.is_file():
            raise UserError(
                f"{checkpoint}: no {REWARD_SCALE}; resume from a checkpoint that SpanGRPOTrainer has written"
            )
        self.reward_scale = RunningScale(**json.loads(path.read_text(encoding="utf-8")))


def span_metrics(found: CritiqueRewards) -> dict[str, float]:
    """Failed critiques, and of the others the spans per completion and the share of tokens that they reward."""
    valid = [(tokens, feedback) for tokens, feedback in zip(found.tokens, found.feedback, strict=True) if tokens.valid]
    labels = [span.label for _, feedback in valid for span in feedback.spans]
    rewarded = [reward != 0 for tokens, _ in valid for reward in tokens.rewards.tolist()]
    count = len(valid) or math.nan
    return {
        "critic/failed": float(len(found.tokens) - len(valid)),
        "critic/poor_spans": labels.count("poor") / count,
        "critic/good_spans": labels.count("good") / count,
        "critic/omissions": sum(len(feedback.omissions) for _, feedback in valid) / count,
        "rewards/coverage": sum(rewarded) / (len(rewarded) or math.nan),
    }
