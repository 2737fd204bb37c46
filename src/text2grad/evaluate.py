"""Answers of a model or run to prompts, and their feedback and test results: `text2grad evaluate` and `generate`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from text2grad.align.tokens import decode
from text2grad.checkpoint.trained import find_model, load_merged
from text2grad.critics.base import Critic, collect_in_batches
from text2grad.critics.code import CodeCritic
from text2grad.errors import UserError
from text2grad.evaluation.answers import PASSED, SAMPLE
from text2grad.files import replace_text
from text2grad.models.loading import load_tokenizer
from text2grad.models.prompts import encode_prompts
from text2grad.rollout.completing import OnProgress, complete_prompts, ignore_progress, plain_session
from text2grad.schema import Example

ANSWERS, SUMMARY = "answers.jsonl", "summary.json"  # the files of an evaluation
_TESTED_AT_ONCE = 64


class Answerer:
    """A model that answers prompts: of a name, a folder or a run; the adapter of a run is merged."""

    def __init__(self, name: str, device: str | None = None, plain_prompts: bool = False) -> None:
        source = find_model(name)
        self.tokenizer: PreTrainedTokenizerBase = load_tokenizer(source.tokenizer)
        self.plain_prompts = plain_prompts
        target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        model: Any = load_merged(source)
        self.context = int(getattr(model.config, "max_position_embeddings", 1 << 30))
        self.model = model.to(target, torch.bfloat16 if target.type == "cuda" else torch.float32)

    def answer(
        self,
        examples: Sequence[Example],
        max_tokens: int,
        temperature: float = 0.0,
        samples: int = 1,
        seed: int = 0,
        on_progress: OnProgress = ignore_progress,
    ) -> list[Example]:
        """Return `samples` answers per prompt, those of one prompt as neighbours. temperature: 0 is greedy.

        Of several, each has its number in `meta["sample"]`. Feedback on earlier completions is dropped.
        """
        prompts = encode_prompts(examples, self.tokenizer, self.plain_prompts, self.context, max_tokens)
        completions = complete_prompts(
            plain_session(self.model, self.tokenizer),
            prompts,
            temperature,
            max_tokens,
            seed,
            samples,
            on_progress=on_progress,
        )
        answers = []
        for position, ids in enumerate(completions):
            example, number = examples[position // samples], position % samples
            meta = {name: value for name, value in example.meta.items() if name not in (PASSED, SAMPLE)}
            update = {
                "completion": decode(ids, self.tokenizer),
                "feedback": None,
                "meta": meta | ({SAMPLE: number} if samples > 1 else {}),
            }
            answers.append(example.model_copy(update=update))
        return answers


def add_feedback(
    critic: Critic, answers: Sequence[Example], on_progress: OnProgress = ignore_progress
) -> list[Example]:
    """Return the answers with the critic's feedback; UserError where every critique failed."""
    critiqued = collect_in_batches(critic, answers, on_progress)
    if all(feedback.status == "failed" for feedback in critiqued):
        raise UserError(f"every critique failed, last: {critiqued[-1].error}; fix the critic or the data")
    return [
        answer.model_copy(update={"feedback": feedback}) for answer, feedback in zip(answers, critiqued, strict=True)
    ]


def add_test_results(
    critic: CodeCritic, answers: Sequence[Example], on_progress: OnProgress = ignore_progress
) -> list[Example]:
    """Return the answers with whether their program passes the tests in `meta["passed"]`; None: they cannot be run."""
    passed: list[bool | None] = []
    while len(passed) < len(answers):
        passed += critic.passes_tests(answers[len(passed) : len(passed) + _TESTED_AT_ONCE])
        on_progress(len(passed), len(answers))
    return [
        answer.model_copy(update={"meta": {**answer.meta, PASSED: found}})
        for answer, found in zip(answers, passed, strict=True)
    ]


def write_evaluation(folder: Path, answers: Sequence[Example], summary: dict[str, Any]) -> None:
    """Write the answers and the summary of an evaluation."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(answer.model_dump_json(exclude_defaults=True) + "\n" for answer in answers)
    replace_text(folder / ANSWERS, lines)
    replace_text(folder / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
