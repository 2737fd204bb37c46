"""Statistics of an annotated file, updated one record at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_MAX_CAUSES = 50
_MAX_CAUSE_LENGTH = 60


@dataclass
class Summary:
    """Counts over the records of the output by this critic, those of earlier runs included.

    Tokens, cost, seconds, `added`, `repeated` and `stale` are those of this run. Means are over records with ok
    feedback.
    """

    records: int = 0
    failed: int = 0
    spans: int = 0
    omissions: int = 0
    unmatched: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    error: str | None = None  # the last one
    repeated: int = 0
    added: int = 0
    stale: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    _sum_coverage: float = 0.0
    _sum_confidence: float = 0.0
    _num_certain: int = 0

    @property
    def ok(self) -> int:
        """Records whose feedback did not fail."""
        return self.records - self.failed

    @property
    def spans_per_completion(self) -> float:
        """Mean number of spans and scored words."""
        return self.spans / self.ok if self.ok else 0.0

    @property
    def coverage(self) -> float:
        """Mean share of a completion's characters that are in a span."""
        return self._sum_coverage / self.ok if self.ok else 0.0

    @property
    def confidence(self) -> float | None:
        """Mean confidence of the spans, 1 where critics compute them exactly; None without any."""
        return self._sum_confidence / self._num_certain if self._num_certain else None

    @property
    def records_per_second(self) -> float:
        """Records annotated per second in this run."""
        return self.added / self.seconds if self.seconds else 0.0

    def add(self, record: dict[str, Any]) -> None:
        """Count one annotated record."""
        feedback = record["feedback"]
        self.records += 1
        self.unmatched += len(feedback.get("unmatched", ()))
        if feedback.get("status") == "failed":
            self.failed += 1
            # The cause comes before the first colon; a bounded number of them is counted, so memory is bounded too.
            self.error = feedback["error"]
            cause = feedback["error"].partition(":")[0][:_MAX_CAUSE_LENGTH]
            self.causes[cause if cause in self.causes or len(self.causes) < _MAX_CAUSES else "other"] += 1
            return
        spans = [(span["start"], span["end"]) for span in feedback.get("spans", ())]
        self._num_certain += len(spans)
        self._sum_confidence += sum(span.get("confidence", 1.0) for span in feedback.get("spans", ()))
        spans += [(start, end) for start, end, _ in feedback.get("scores", ())]
        self.spans += len(spans)
        self.omissions += len(feedback.get("omissions", ()))
        self._sum_coverage += covered_length(spans) / max(1, len(record.get("completion", "")))


def covered_length(ranges: Iterable[tuple[int, int]]) -> int:
    """Return the number of positions in at least one range."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
