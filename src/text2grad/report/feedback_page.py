"""The page of a feedback file: what was said about which words, and what has no effect and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from text2grad.errors import UserError
from text2grad.report.html import check_page, embed_json, render_page, write_page
from text2grad.report.subsample import subsample
from text2grad.schema import Example, read_examples

STYLES = ("tooltip.css", "completion.css", "critique.css", "samples.css", "examples.css", "filters.css", "feedback.css")
SCRIPTS = (
    "dom.js",
    "theme.js",
    "tooltip.js",
    "completion.js",
    "critique.js",
    "samples.js",
    "examples.js",
    "feedback.js",
)
MAX_SHOWN = 500
_MAX_CAUSES = 20


@dataclass
class FeedbackCounts:
    """Counts over the examples of a file."""

    completions: int = 0
    ok: int = 0
    neutral: int = 0
    missing: int = 0
    failed: int = 0
    blamed: int = 0
    praised: int = 0
    omissions: int = 0
    unmatched: int = 0
    causes: Counter[str] = field(default_factory=Counter)

    def add(self, example: Example) -> None:
        """Count an example."""
        self.completions += 1
        feedback = example.feedback
        if feedback is None:
            self.missing += 1
            return
        self.unmatched += len(feedback.unmatched)
        if feedback.status == "failed":
            self.failed += 1
            self.causes[str(feedback.error).partition(":")[0]] += 1
            return
        self.ok += 1
        labels = [span.label for span in feedback.spans]
        self.blamed += labels.count("poor")
        self.praised += labels.count("good")
        self.omissions += len(feedback.omissions)
        self.neutral += not labels and not feedback.omissions and not feedback.scores and feedback.score is None

    @property
    def tiles(self) -> dict[str, int]:
        """The numbers of the page's header; optional ones that are 0 are left out."""
        always = {"completions": self.completions, "with feedback": self.ok, "failed": self.failed}
        counts = {
            "without feedback": self.missing,
            "neither praise nor blame": self.neutral,
            "blamed spans": self.blamed,
            "praised spans": self.praised,
            "omissions": self.omissions,
            "quotations not found": self.unmatched,
        }
        return always | {name: count for name, count in counts.items() if count}


def build_feedback_report(source: Path, limit: int = MAX_SHOWN) -> Path:
    """Write the page of a file of examples beside it, as NAME.html, and return its path.

    At most `limit` completions are shown, evenly spaced. Raises UserError where the file has no examples, or where
    another file of that name is there.
    """
    page = source.with_name(f"{source.name.partition('.')[0]}.html")
    check_page(page)
    counts = FeedbackCounts()
    for example in read_examples(source):
        counts.add(example)
    if not counts.completions:
        raise UserError(f"{source}: no examples; give a JSON lines file with one example per line")
    chosen = set(subsample(range(counts.completions), limit))
    shown = [example for number, example in enumerate(read_examples(source)) if number in chosen]
    write_page(page, render_feedback(source.name, counts, shown))
    return page


def render_feedback(name: str, counts: FeedbackCounts, shown: list[Example]) -> str:
    """Render the page; texts of models and people are escaped."""
    return render_page(
        "feedback.html.j2",
        STYLES,
        SCRIPTS,
        name=name,
        tiles=counts.tiles,
        causes=counts.causes.most_common(_MAX_CAUSES),
        total=counts.completions,
        num_shown=len(shown),
        data=embed_json([_record(example) for example in shown]),
    )


def _record(example: Example) -> dict[str, Any]:
    fields = {"id", "prompt", "completion", "reference", "feedback"}
    return example.model_dump(mode="json", exclude_none=True, include=fields)
