"""Examples with feedback to what the trainer sees; what cannot be used is counted, never silently dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from llguidance import LLTokenizer
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.reward_model.head import IGNORE, token_labels
from text2grad.reward_model.inputs import Reader, TooLongError
from text2grad.reward_model.judgement import target
from text2grad.reward_model.settings import Layout
from text2grad.rollout.grammar import build_llguidance_tokenizer, encode_exactly
from text2grad.schema import Example, Feedback

Row = dict[str, list[int]]


@dataclass
class Prepared:
    """Rows for the trainer, and what was left out and why."""

    rows: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    cut_sources: int = 0

    @property
    def written(self) -> int:
        """Rows with a judgement to learn to write; the others teach the head alone."""
        return sum(any(label != IGNORE for label in row["lm_labels"]) for row in self.rows)

    def class_counts(self) -> list[int]:
        """Tokens labelled good, neutral and poor."""
        counts = Counter(label for row in self.rows for label in row["head_labels"])
        return [counts[i] for i in range(3)]


def prepare(examples: Iterable[Example], tokenizer: PreTrainedTokenizerBase, layout: Layout) -> Prepared:
    """One row an example: question, judgement and end token, with the labels of the head and of the language model."""
    reader = Reader(tokenizer, layout)
    vocabulary = build_llguidance_tokenizer(tokenizer, len(tokenizer))
    prepared = Prepared()
    for example in examples:
        feedback = example.feedback
        if feedback is None:
            prepared.left_out["no feedback"] += 1
        elif feedback.status == "failed":
            prepared.left_out["failed feedback"] += 1
        else:
            try:
                question = reader.read(example)
            except TooLongError:
                prepared.left_out["answer empty or too long"] += 1
                continue
            judgement = _judgement(example.completion, feedback, tokenizer, vocabulary, layout)
            start, end = question.judged
            head_labels = [IGNORE] * (len(question.ids) + len(judgement))
            head_labels[start:end] = token_labels(feedback, question.offsets)
            prepared.rows.append(
                {
                    "input_ids": question.ids + judgement,
                    "head_labels": head_labels,
                    "lm_labels": [IGNORE] * len(question.ids) + judgement,
                }
            )
            prepared.cut_sources += question.source_cut > 0
    return prepared


def _judgement(
    answer: str, feedback: Feedback, tokenizer: PreTrainedTokenizerBase, vocabulary: LLTokenizer, layout: Layout
) -> list[int]:
    """What should be written, with the end token; nothing where a critique is wanted and nobody wrote one.

    A stand-in for the critique would be what the model learns to say: it is the most frequent one.
    """
    if layout.order != "spans_only" and not feedback.critique.strip():
        return []
    written = target(feedback, answer, layout.order, layout.limits)
    return [*encode_exactly(written, tokenizer, vocabulary), int(vocabulary.eos_token)]


def collate(rows: Sequence[Row], pad_id: int) -> dict[str, Tensor]:
    """Right-padded tensors, (rows, longest row)."""
    width = max(len(row["input_ids"]) for row in rows)
    fills = {"input_ids": pad_id, "head_labels": IGNORE, "lm_labels": IGNORE}
    return {
        name: torch.tensor([row[name] + [fill] * (width - len(row[name])) for row in rows])
        for name, fill in fills.items()
    }
