"""Reading of what `text2grad compare` compares: runs, evaluations, and files of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from text2grad.errors import UserError
from text2grad.evaluation.pairwise import AnswerSet
from text2grad.files import parse_json
from text2grad.report.read import read_evaluation, read_metrics
from text2grad.schema import Example, read_examples


def read_answer_sets(sources: list[Path]) -> list[AnswerSet]:
    """Read several sources; where two folders have the same name, their paths are their names."""
    short = [source.resolve().name for source in sources]
    names = short if len(set(short)) == len(short) else list(map(str, sources))
    return [_read(source, name) for source, name in zip(sources, names, strict=True)]


def _read(source: Path, name: str) -> AnswerSet:
    if source.is_file():
        return AnswerSet.of(name, list(read_examples(source)))
    answers, metrics = source / "answers.jsonl", source / "metrics.jsonl"
    if answers.is_file():
        return AnswerSet.of(name, list(read_examples(answers)), _steps_of_model(source / "summary.json"))
    if metrics.is_file():
        return AnswerSet.of(name, _answers_after(source / "evaluation.json"), read_metrics(metrics))
    raise UserError(f"{source}: neither a run, nor an evaluation; `text2grad evaluate MODEL DATA -o FOLDER` writes one")


def _answers_after(path: Path) -> list[Example]:
    """Return the held-out completions after training; none where the run was not evaluated."""
    evaluation = read_evaluation(path)
    return [
        Example(
            id=pair.id,
            prompt=pair.prompt,
            reference=pair.reference,
            completion=pair.after.completion,
            feedback=pair.after.feedback,
        )
        for pair in (evaluation.examples if evaluation else [])
    ]


def _steps_of_model(summary: Path) -> list[dict[str, Any]]:
    """Return the metrics of the run that an evaluation is of; none where its model is no run, or is not here."""
    if not summary.is_file():
        return []
    try:
        model = parse_json(summary.read_bytes())["model"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{summary} is damaged: it has no model; evaluate it again") from error
    metrics = Path(str(model)) / "metrics.jsonl"
    return read_metrics(metrics) if metrics.is_file() else []
