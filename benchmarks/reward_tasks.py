"""The tasks on which rewards are measured: real prompts with references, and attempts of the untrained model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import data_folder
from untrained_answers import untrained_answers

from text2grad.critics.base import Critic
from text2grad.critics.registry import make_critic
from text2grad.data import defacto, ilf_code, mbpp, scitldr, summaries, xquad
from text2grad.data.reading import read_rows
from text2grad.data.split import split_by_prompt
from text2grad.schema import Example

NUM_ATTEMPTS = 2  # per prompt
MAX_DOCUMENT = 6_000  # characters; longer ones do not fit the model's context


@dataclass(frozen=True)
class Task:
    """A set of prompts and the critic of its answers. max_tokens: of an answer, as in the preset of the task."""

    name: str
    critic: str
    max_tokens: int
    read: Callable[[Path], Iterator[Example]]

    def make_critic(self) -> Critic:
        return make_critic(self.critic, {})

    def examples(self, limit: int, device: str) -> list[Example]:
        """Return NUM_ATTEMPTS neighbours per prompt, each with an attempt of the untrained model as its completion."""
        found = [e for e in self.read(data_folder()) if len(e.prompt_text) <= MAX_DOCUMENT]
        chosen = [found[i * len(found) // limit] for i in range(min(limit, len(found)))]
        return untrained_answers(chosen, self.max_tokens, NUM_ATTEMPTS, device)


def _defacto(folder: Path) -> Iterator[Example]:
    """The reference is a person's correction, else the summary in which people found no error: XSum's own are not
    supported by the article."""
    for example in defacto.read(folder / "defacto" / "val.jsonl.gz"):
        article = example.prompt_text
        yield Example(
            id=example.id,
            prompt=scitldr.PROMPT.format(document=article),
            reference=example.meta["corrected"] or example.completion,
            meta={"document": article},
        )


def _humaneval(folder: Path) -> Iterator[Example]:
    for row in read_rows(folder / "humaneval" / "HumanEval.jsonl.gz", "HumanEval.jsonl.gz"):
        yield _humaneval_example(row)


def _humaneval_example(row: dict[str, Any]) -> Example:
    return Example(
        id=row["task_id"],
        prompt=row["prompt"],
        reference=row["canonical_solution"],
        tests=f"{row['test']}\ncheck({row['entry_point']})",
        meta={"entry_point": row["entry_point"]},
    )


def _ilf(folder: Path) -> Iterator[Example]:
    """The fixes that pass their tests are the references."""
    for example in ilf_code.read(folder / "ilf_code" / "surge_annotations.jsonl.gz"):
        yield example.model_copy(update={"completion": "", "feedback": None})


def _xquad(folder: Path) -> Iterator[Example]:
    """The held-out paragraphs."""
    examples = xquad.read(folder / "xquad_en" / "xquad.en.json.gz")
    _, heldout = split_by_prompt(examples, share=0.2, key=lambda example: str(example.meta["document"]))
    return iter(heldout)


TASKS = (
    Task("mbpp", "code", 192, lambda folder: mbpp.read(folder / "mbpp" / "mbpp.jsonl.gz", "test")),
    Task("humaneval", "code", 192, _humaneval),
    Task("ilf", "code", 192, _ilf),
    Task("scitldr", "grounding", 64, lambda folder: scitldr.read(folder / "scitldr_a" / "dev.jsonl.gz")),
    Task("defacto", "grounding", 64, _defacto),
    Task("quickstart", "grounding", 56, lambda folder: summaries.load("heldout")),
    Task("xquad", "qa", 48, _xquad),
)
