"""QA-Feedback (Fine-Grained RLHF): long answers from given passages, with error spans marked by people.

`dev_feedback.json` has model answers with feedback; `dev.json` has questions, passages and gold answers only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from text2grad.data.diff import corrected_part
from text2grad.data.reading import open_dataset_file
from text2grad.schema import Example, Feedback, Omission, Range, Span

PROMPT = "{document}\n\nAnswer the question from the passages above.\n\n{question}"
ERRORS = {
    "Irrelevant": "is irrelevant to the question",
    "Redundant": "repeats what was said",
    "Incoherent": "is incoherent",
    "Wrong-Grounding": "is not what the passages say",
    "Unverifiable": "is nowhere in the passages",
}
MAX_REPLACEMENT = 12  # words; more are another sentence, not a correction of this one
# Severity: a missing answer weighs more than missing background.
MISSING = {"Missing-Answer": 1.0, "Missing-Major-Auxiliary": 0.6, "Missing-Minor-Auxiliary": 0.3}


def read(path: str | Path) -> Iterator[Example]:
    """Stream one example per question, from plain or gzipped JSON.

    With feedback, the completion is the annotated answer and the reference the gold answer. A span's critic is "human:"
    and the error type; its replacement is what the corrected answer has there. The critique has one line per error and
    per omission; the annotators gave error types and evidence only, so the sentences are generated here, with missing
    information quoted from the passage. `meta` holds document, question and, with feedback, the corrected answer, all
    four predictions and the preferences.
    """
    with open_dataset_file(path, "dev_feedback.json.gz or dev.json.gz") as file:
        rows = json.load(file)
    for number, row in enumerate(rows):
        yield _annotated_example(number, row) if "feedback" in row else _prompt_example(number, row)


def _annotated_example(number: int, row: dict[str, Any]) -> Example:
    passages: list[list[str]] = row["passages"]
    document = "\n\n".join(" ".join(sentences) for _, *sentences in passages)
    return Example(
        id=f"fgrlhf-{number}",
        prompt=PROMPT.format(document=document, question=row["question"]),
        completion=row["prediction 1"],
        reference=row["gold"],
        feedback=_feedback(row["feedback"], row["prediction 1"], passages),
        meta={
            "document": document,
            "question": row["question"],
            "corrected": row["feedback"]["corrected-prediction"],
            "predictions": [row[f"prediction {i}"] for i in range(1, 5)],
            "preference": row["preference"],
        },
    )


def _prompt_example(number: int, row: dict[str, Any]) -> Example:
    document = "\n\n".join(passage["content"] for passage in row["passages"])
    return Example(
        id=f"fgrlhf-dev-{number}",
        prompt=PROMPT.format(document=document, question=row["question"]),
        reference=row["answer"],
        meta={"document": document, "question": row["question"]},
    )


def _feedback(given: dict[str, Any], answer: str, passages: Sequence[Sequence[str]]) -> Feedback:
    lines: list[str] = []
    spans, omissions = [], []
    for error in sorted(given["errors"], key=lambda error: (error["start"], error["end"])):
        kind, explanation = error["error type"], error["explanation"].strip()
        if kind == "Wrong-Grounding":
            explanation = _evidence(json.loads(explanation), passages)
        reason = f"{ERRORS[kind]}: {explanation}" if explanation else ERRORS[kind]
        start, end = error["start"], error["end"]
        phrase = _append_line(f'"{answer[start:end]}" {reason}', lines)
        spans.append(
            Span(
                start=start,
                end=end,
                label="poor",
                phrase=phrase,
                reason=reason,
                critic=f"human:{kind}",
                replacement=_replacement(answer, given["corrected-prediction"], (start, end)),
            )
        )
    for missing in given["missing-info"]:
        text = _evidence(missing, passages)
        phrase = _append_line(f"It does not say: {text}", lines)
        omissions.append(Omission(text=text, severity=MISSING[missing["error type"]], phrase=phrase))
    return Feedback(critique="\n".join(lines), spans=spans, omissions=omissions, critic="human")


def _replacement(answer: str, corrected: str, bounds: Range) -> str | None:
    """Return what the person who corrected the answer wrote in this place; None where that is not clear, or longer."""
    part = corrected_part(answer, corrected, bounds) if corrected.strip() else None
    return part if part is not None and len(part.split()) <= MAX_REPLACEMENT else None


def _append_line(line: str, lines: list[str]) -> tuple[int, int]:
    """Append a line and return its range in the joined lines."""
    line = " ".join(line.split())
    start = sum(len(earlier) + 1 for earlier in lines)
    lines.append(line)
    return start, start + len(line)


def _evidence(pointer: dict[str, Any], passages: Sequence[Sequence[str]]) -> str:
    """Return the sentences that a pointer names; passages count from 1 and sentence 0 is the title."""
    sentences = passages[pointer["passage_id"] - 1]
    return " ".join(" ".join(sentences[i] for i in pointer["sentence_id"]).split())
