"""What an annotated file holds, counted one record at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_MOST_CAUSES = 50
_LONGEST_CAUSE = 60


@dataclass
class Summary:
    """Counts over the records of the output that this critic made, those of earlier runs included.

    Tokens, cost, seconds and `added` are those of this run.
    """

    records: int = 0
    failed: int = 0
    spans: int = 0
    omissions: int = 0
    unmatched: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    added: int = 0
    set_aside: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    _covered: float = 0.0

    @property
    def ok(self) -> int:
        return self.records - self.failed

    @property
    def spans_per_answer(self) -> float:
        """Spans, and words with a score of their own: the mean over the answers with ok feedback."""
        return self.spans / self.ok if self.ok else 0.0

    @property
    def coverage(self) -> float:
        """Share of an answer's characters that some span is on: the mean over the answers with ok feedback."""
        return self._covered / self.ok if self.ok else 0.0

    @property
    def rate(self) -> float:
        """Records a second in this run."""
        return self.added / self.seconds if self.seconds else 0.0

    def add(self, record: dict[str, Any]) -> None:
        """Count one record as it stands in the file."""
        feedback = record["feedback"]
        self.records += 1
        self.unmatched += len(feedback.get("unmatched", ()))
        if feedback.get("status") == "failed":
            self.failed += 1
            self._count_cause(feedback["error"])
            return
        spans = [(span["start"], span["end"]) for span in feedback.get("spans", ())]
        spans += [(start, end) for start, end, _ in feedback.get("scores", ())]
        self.spans += len(spans)
        self.omissions += len(feedback.get("omissions", ()))
        self._covered += covered(spans) / max(1, len(record.get("completion", "")))

    def _count_cause(self, error: str) -> None:
        """By what stands before the first colon; many different ones are lumped together, so memory stays bounded."""
        cause = error.partition(":")[0][:_LONGEST_CAUSE]
        self.causes[cause if cause in self.causes or len(self.causes) < _MOST_CAUSES else "other"] += 1


def covered(ranges: Iterable[tuple[int, int]]) -> int:
    """How many positions lie in at least one range."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
