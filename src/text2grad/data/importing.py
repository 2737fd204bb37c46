"""Conversion of feedback sets to Examples, row by row; broken rows are named, counted and left out."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from text2grad.data.rows import Row, read_rows_of
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, describe
from text2grad.settings import did_you_mean

Convert = Callable[[Row], Iterable[Example]]

# Each module has `convert(row) -> Iterator[Example]`; `ragtruth` has `make_convert(path)`, which reads a second file.
FEEDBACK_SETS = {
    name: f"text2grad.data.feedback_sets.{name}"
    for name in ("slf5k", "ultrafeedback", "helpsteer3", "ragtruth", "faithbench", "shepherd", "kodcode")
}


@dataclass
class ImportSummary:
    """What was read.

    relocated: spans of a feedback set whose offsets were wrong, but whose words are in the completion exactly once.
    aligned, unaligned: comments without a position whose words were found, and were not. judged: those of the latter
    whose label judges the whole completion instead. unmatched: quotations that are not in the completion.
    with_feedback, usable: examples with feedback, and those whose feedback has not failed. skipped: the position and
    the fault of each row that was left out. unread: that of each comment whose words were not found, and the reason.
    """

    rows: int = 0
    examples: int = 0
    with_feedback: int = 0
    usable: int = 0
    spans: int = 0
    omissions: int = 0
    relocated: int = 0
    aligned: int = 0
    unaligned: int = 0
    judged: int = 0
    unmatched: int = 0
    skipped: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def skip(self, where: str, reason: str) -> None:
        """Note a row that is left out."""
        self.skipped.append(f"{where}: {reason}")

    @property
    def is_worth_writing(self) -> bool:
        """Whether there are prompts, or feedback that can be used."""
        return self.examples > self.with_feedback or self.usable > 0

    def note_alignment(self, where: str, feedback: Feedback, judged_by: str | None = None) -> None:
        """Count a comment without a position; note why its words were not found. judged_by: its own label."""
        if feedback.error is None:
            self.aligned += 1
            return
        self.unaligned += 1
        is_judged = feedback.status == "ok"
        self.judged += is_judged
        instead = f'; its label "{judged_by}" judges the whole answer' if is_judged else ""
        self.unread.append(f"{where}: {feedback.error}{instead}")

    def add(self, example: Example) -> None:
        """Count an example that is written."""
        self.examples += 1
        if example.feedback is not None:
            self.with_feedback += 1
            self.usable += example.feedback.status == "ok"
            self.spans += len(example.feedback.spans)
            self.omissions += len(example.feedback.omissions)
            self.unmatched += len(example.feedback.unmatched)


def import_feedback_set(
    name: str, source: str | Path, summary: ImportSummary, second: Path | None = None
) -> Iterator[Example]:
    """Stream the Examples of a feedback set of `FEEDBACK_SETS`, from any source of `read_rows_of`.

    second: the file that the set's rows refer to, for RAGTruth its sources.
    """
    if name not in FEEDBACK_SETS:
        raise UserError(f'unknown feedback set "{name}"{did_you_mean(name, FEEDBACK_SETS)}')
    module = importlib.import_module(FEEDBACK_SETS[name])
    if hasattr(module, "make_convert"):
        convert: Convert = module.make_convert(source, second)
    elif second is not None:
        raise UserError(f"{name} is a single file; leave out {second}")
    else:
        convert = module.convert
    return convert_rows(read_rows_of(source), convert, summary)


def convert_rows(rows: Iterable[Row], convert: Convert, summary: ImportSummary) -> Iterator[Example]:
    """Yield the Examples of all rows that can be converted; the others are noted."""
    for row in rows:
        summary.rows += 1
        try:
            if row.error is not None:
                raise UserError(row.error)
            examples = list(convert(row))
        except KeyError as error:
            summary.skip(row.where, f"no field {error.args[0]}; there are {', '.join(map(str, row.fields))}")
        except ValidationError as error:
            summary.skip(row.where, describe(error))
        except (TypeError, AttributeError) as error:
            summary.skip(row.where, f"a field does not have the form that this set has ({error})")
        except (UserError, ValueError, RecursionError) as error:  # the last of JSON in a field, nested too deeply
            summary.skip(row.where, str(error))
        else:
            summary.relocated += sum(span.match == "exact" for e in examples if e.feedback for span in e.feedback.spans)
            yield from examples
