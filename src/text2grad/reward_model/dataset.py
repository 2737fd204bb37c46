"""Training rows from examples with feedback; examples that cannot be used are counted by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from llguidance import LLTokenizer
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.reward_model.critique_format import CritiqueFormat, format_critique
from text2grad.reward_model.head import IGNORE, token_labels
from text2grad.reward_model.inputs import InputBuilder, InputError, InputSettings
from text2grad.rollout.grammar import build_llguidance_tokenizer, encode_exactly
from text2grad.schema import Example, Feedback

Row = dict[str, list[int]]


@dataclass
class RewardDataset:
    """Rows for the trainer, and how many examples were skipped for which reason."""

    rows: list[Row] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    num_truncated_prompts: int = 0

    @property
    def num_with_critique(self) -> int:
        """Rows with a critique to generate; the others train the head alone."""
        return sum(any(label != IGNORE for label in row["lm_labels"]) for row in self.rows)

    def class_counts(self) -> list[int]:
        """Return the number of tokens labelled good, neutral and poor."""
        counts = Counter(label for row in self.rows for label in row["head_labels"])
        return [counts[i] for i in range(3)]


def build_dataset(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    inputs: InputSettings,
    critique_format: CritiqueFormat,
) -> RewardDataset:
    """Build one row per usable example: model input, critique and end token, with labels for the head and the LM."""
    builder = InputBuilder(tokenizer, inputs)
    vocabulary = build_llguidance_tokenizer(tokenizer, len(tokenizer))
    dataset = RewardDataset()
    for example, model_input in zip(examples, builder.build_batch(examples), strict=True):
        feedback = example.feedback
        if feedback is None:
            dataset.skipped["no feedback"] += 1
        elif feedback.status == "failed":
            dataset.skipped["failed feedback"] += 1
        elif isinstance(model_input, InputError):
            dataset.skipped["completion empty or too long"] += 1
        else:
            critique = _critique_ids(example.completion, feedback, tokenizer, vocabulary, critique_format)
            start, end = model_input.completion_range
            head_labels = [IGNORE] * (len(model_input.ids) + len(critique))
            head_labels[start:end] = token_labels(feedback, model_input.offsets)
            dataset.rows.append(
                {
                    "input_ids": model_input.ids + critique,
                    "head_labels": head_labels,
                    "lm_labels": [IGNORE] * len(model_input.ids) + critique,
                }
            )
            dataset.num_truncated_prompts += model_input.num_prompt_tokens_cut > 0
    return dataset


def _critique_ids(
    completion: str,
    feedback: Feedback,
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: LLTokenizer,
    critique_format: CritiqueFormat,
) -> list[int]:
    """Return the target ids with the end token; empty where the format has a critique and the feedback has none.

    A placeholder would become the most frequent critique in the data, and the model would learn to generate it.
    """
    if critique_format.order != "spans_only" and not feedback.critique.strip():
        return []
    text = format_critique(feedback, completion, critique_format)
    return [*encode_exactly(text, tokenizer, vocabulary), int(vocabulary.eos_token)]


def collate(rows: Sequence[Row], pad_id: int) -> dict[str, Tensor]:
    """Return right-padded tensors, each (rows, longest row)."""
    width = max(len(row["input_ids"]) for row in rows)
    fills = {"input_ids": pad_id, "head_labels": IGNORE, "lm_labels": IGNORE}
    return {
        name: torch.tensor([row[name] + [fill] * (width - len(row[name])) for row in rows])
        for name, fill in fills.items()
    }
