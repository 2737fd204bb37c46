"""Comments with known places in the answer: training and test data of the learned aligner."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from text2grad.data import defacto, haluquestqa
from text2grad.schema import Example
from text2grad.text.whitespace import split_words

Gold = list[bool]


@dataclass(frozen=True)
class Case:
    """A comment, the answer that it is about, and per word between white space whether the comment is about it."""

    group: str  # cases of one group are never split between training and test
    comment: str
    completion: str
    prompt: str | None
    gold: Gold


def defacto_cases(folder: Path, split: str) -> list[Case]:
    """Return the rows with an error and a change. Comment: critique and instruction; gold: words that were changed."""
    return [_case(example) for example in _defacto(folder, split) if example.feedback.spans]


def defacto_variants(folder: Path, split: str) -> dict[str, list[Case]]:
    """Return the same rows with parts of the comment or without the source, in the same order."""
    full = defacto_cases(folder, split)
    meta = {example.id: example.meta for example in defacto.read(folder / "defacto" / f"{split}.jsonl.gz")}
    critique = [replace(case, comment=meta[case.group]["explanation"]) for case in full]
    return {
        "critique and instruction": full,
        "critique": critique,
        "instruction": [replace(case, comment=meta[case.group]["instruction"]) for case in full],
        "critique and instruction, no source": without_prompt(full),
        "critique, no source": without_prompt(critique),
    }


def defacto_clean_cases(folder: Path, split: str) -> list[Case]:
    """Return the rows without an error: people say there that nothing is wrong, or what the source says."""
    rows = [example for example in _defacto(folder, split) if example.feedback.critique]
    return [_case(example) for example in rows if not example.meta["has_error"]]


def _defacto(folder: Path, split: str) -> list[Example]:
    return [example for example in defacto.read(folder / "defacto" / f"{split}.jsonl.gz") if example.feedback]


def _case(example: Example) -> Case:
    places = [(span.start, span.end) for span in example.feedback.spans]
    gold = _gold(example.completion, places)
    return Case(example.id, example.feedback.critique, example.completion, example.prompt_text, gold)


def halu_cases(folder: Path) -> list[Case]:
    """Return one case per located mark of HaluQuestQA. Comment: the expert's reason; gold: the marked words."""
    found = []
    for answer in haluquestqa.read_answers(folder / "haluquestqa" / "HaluQuestQA.csv.gz"):
        for mark, match in zip(answer.marks, haluquestqa.locate_marks(answer), strict=True):
            if match and mark.reason:
                gold = _gold(answer.text, [(match.start, match.end)])
                group = answer.id.rpartition("-")[0]
                found.append(Case(group, mark.reason, answer.text, answer.question, gold))
    return [case for case in found if not all(case.gold)]


def unrelated(cases: Sequence[Case]) -> list[Case]:
    """Return each answer with the comment on the next one, which is about none of its words."""
    comments = [case.comment for case in cases]
    return [
        replace(case, comment=comment, gold=[False] * len(case.gold))
        for case, comment in zip(cases, [*comments[1:], *comments[:1]], strict=True)
    ]


def without_prompt(cases: Sequence[Case]) -> list[Case]:
    return [replace(case, prompt=None) for case in cases]


@dataclass(frozen=True)
class Bug:
    """A program with one bug, an explanation of it, and the program without it."""

    comment: str
    code: str
    fixed: str


def debugbench_bugs(folder: Path) -> Iterator[Bug]:
    """Yield DebugBench's single bugs in Python that have an explanation."""
    with gzip.open(folder / "debugbench_python" / "debugbench_python.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row.get("explanations", "").strip():
                yield Bug(row["explanations"].strip(), row["buggy_code"], row["oracle_code"])


def _gold(text: str, ranges: Sequence[tuple[int, int]]) -> Gold:
    return [any(word.start < end and start < word.end for start, end in ranges) for word in split_words(text)]
