"""HaluQuestQA: long-form answers in which experts marked spans, each with a written reason.

The published file gives spans as text without offsets; this module locates them. It is TAB separated with Python list
literals in its cells: one row per question, with two answers.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from text2grad.align.quotes.quotes import Match, locate_quotes
from text2grad.data.reading import open_dataset_file
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Label, Omission, Span

Aspect = Literal["factuality", "irrelevance", "incomplete_ans", "reference_example"]
ASPECTS: tuple[Aspect, ...] = ("factuality", "irrelevance", "incomplete_ans", "reference_example")
ANSWERS = {"answer1": "ans1", "answer2": "ans2"}

_WHOLE_ANSWER = re.compile(r"ANSWER\d:?")  # replaces the quotation if the whole answer is meant


@dataclass(frozen=True)
class Mark:
    """One expert span: the words as the annotation tool exported them, and the expert's reason."""

    aspect: Aspect
    quote: str
    reason: str
    label: Label

    @property
    def means_whole_answer(self) -> bool:
        """Whether the expert marked the whole answer instead of some words."""
        return _WHOLE_ANSWER.fullmatch(self.quote) is not None


@dataclass(frozen=True)
class Answer:
    """One of a question's two answers, with its marks; within an aspect these are in text order."""

    id: str
    question: str
    text: str
    marks: tuple[Mark, ...]
    meta: dict[str, str | bool]


def read(path: str | Path) -> Iterator[Example]:
    """Stream two examples per question, with the expert's feedback; quotations that are not found are in `unmatched`.

    A span is good if it marks an example or analogy that the expert found helpful, else poor; its critic is "expert:"
    and the aspect. The critique has one reason per line, and each span's phrase is its reason. A whole answer marked
    as incomplete is an omission; marked as irrelevant or wrong, it is a span of the whole answer.
    """
    for answer in read_answers(path):
        yield Example(
            id=answer.id,
            prompt=answer.question,
            completion=answer.text,
            feedback=_feedback(answer),
            meta=dict(answer.meta),
        )


def read_answers(path: str | Path) -> Iterator[Answer]:
    """Stream the answers of the file, two per question, with marks that are not located yet."""
    with open_dataset_file(path, "HaluQuestQA.csv or HaluQuestQA.csv.gz", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines, delimiter="\t")):
            if "ans1_text" not in row:
                raise UserError(f"{path}: no column ans1_text; this is not HaluQuestQA's TAB-separated file")
            for answer, column in ANSWERS.items():
                yield Answer(
                    id=f"haluquestqa-{number}-{answer}",
                    question=row["question_text"],
                    text=row[f"{column}_text"],
                    marks=tuple(_marks(row, answer)),
                    meta={
                        "category": row["category"],
                        "annotator": row["annotator"],
                        "written_by": row[f"{column}_label"].removesuffix("_answer"),
                        "preferred": row["ans_preference"] == f"Answer {answer[-1]}",
                        "preference_reason": row["ans_preference_reason"],
                    },
                )


def locate_marks(answer: Answer) -> list[Match | None]:
    """Locate each mark's words in the answer; None if not found, and for marks of the whole answer.

    Marks of one aspect are in text order, so they are located together.
    """
    matches: dict[int, Match | None] = {}
    for aspect in ASPECTS:
        quoted = [i for i, mark in enumerate(answer.marks) if mark.aspect == aspect and not mark.means_whole_answer]
        quotes = [answer.marks[i].quote for i in quoted]
        reasons = [answer.marks[i].reason for i in quoted]
        matches.update(zip(quoted, locate_quotes(quotes, answer.text, contexts=reasons), strict=True))
    return [matches.get(i) for i in range(len(answer.marks))]


def _marks(row: dict[str, str], answer: str) -> Iterator[Mark]:
    for aspect in ASPECTS:
        columns = (f"{aspect}_{part}" for part in ("span", "reason", "label"))
        quotes, reasons, labels = (_list(row[column]) for column in columns)
        helpful = _list(row["reference_example_helpful"]) if aspect == "reference_example" else [False] * len(quotes)
        for quote, reason, label, good in zip(quotes, reasons, labels, helpful, strict=True):
            if label == answer:
                yield Mark(aspect, str(quote), " ".join(str(reason).split()), "good" if good else "poor")


def _list(cell: str) -> Sequence[object]:
    """Parse a cell's list literal; an empty cell is an empty list."""
    return list(ast.literal_eval(cell)) if cell else []


def _feedback(answer: Answer) -> Feedback:
    spans: list[Span] = []
    omissions: list[Omission] = []
    unmatched: list[str] = []
    critique = ""
    for mark, match in zip(answer.marks, locate_marks(answer), strict=True):
        phrase = (len(critique), len(critique) + len(mark.reason))
        critique += mark.reason + "\n"
        if mark.means_whole_answer and mark.aspect == "incomplete_ans":
            omissions.append(Omission(text=mark.reason, phrase=phrase))
        elif match or mark.means_whole_answer:
            spans.append(
                Span(
                    start=match.start if match else 0,
                    end=match.end if match else len(answer.text),
                    label=mark.label,
                    phrase=phrase,
                    reason=mark.reason,
                    critic=f"expert:{mark.aspect}",
                    match=match.kind if match else "offset",
                    confidence=match.confidence if match else 1.0,
                )
            )
        else:
            unmatched.append(mark.quote)
    return Feedback(
        critique=critique.rstrip("\n"), spans=spans, omissions=omissions, unmatched=unmatched, critic="expert"
    )
