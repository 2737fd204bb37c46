"""FaithBench: summaries whose unfaithful words people marked, with notes (vectara/FaithBench, Bao et al., 2024).

The files are batch_N.json. Tested on files of that shape, not on the set itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from text2grad.data.feedback_sets.fields import checked_span, text_field
from text2grad.data.rows import Row
from text2grad.schema import Example, Feedback, Span

PROMPT = "{document}\n\nSummarise the text above."
SEVERITIES = {"Unwanted": 1.0, "Questionable": 0.5}  # `Benign` words are not in the source, but no fault


def convert(row: Row) -> Iterator[Example]:
    """Yield the summary with one blamed span per annotation; words that two people mark alike are one span.

    Severity: 1 for `Unwanted`, 0.5 for `Questionable`. `Benign` annotations are checked too, but only kept in `meta`.
    """
    fields = row.fields
    source, summary = text_field(fields, "source"), text_field(fields, "summary")
    benign: list[str] = []
    blamed: dict[tuple[int, int], Span] = {}
    for annotation in fields["annotations"]:
        severity = _severity(annotation["label"])
        span = checked_span(
            summary,
            annotation["summary_start"],
            annotation["summary_end"],
            annotation["summary_span"],
            severity=severity or 1.0,
            reason=_reason(annotation),
            critic=f"human:{annotation.get('annotator_id', annotation.get('annotator', ''))}".rstrip(":"),
        )
        bounds = span.start, span.end
        if severity is None:
            benign.append(annotation["summary_span"])
        elif bounds not in blamed or severity > blamed[bounds].severity:
            blamed[bounds] = span
    spans = list(blamed.values())
    yield Example(
        id=f"faithbench-{row.name}",
        prompt=PROMPT.format(document=source),
        completion=summary,
        feedback=Feedback(
            critique="\n".join(dict.fromkeys(str(span.reason) for span in spans)), spans=spans, critic="human"
        ),
        meta={"document": source, "benign": benign, **_metadata(fields)},
    )


def _severity(labels: Sequence[str]) -> float | None:
    """Return the severity of the first label, as `Unwanted` of `Unwanted.Intrinsic`; None for `Benign`."""
    kinds = {label.partition(".")[0] for label in labels}
    found = [severity for kind, severity in SEVERITIES.items() if kind in kinds]
    if not found and kinds != {"Benign"}:
        raise ValueError(
            f"an annotation has the labels {', '.join(labels) or 'none'}; Unwanted, Questionable or Benign was expected"
        )
    return found[0] if found else None


def _reason(annotation: Mapping[str, Any]) -> str:
    note = " ".join(str(annotation.get("note") or "").split())
    return note or str(annotation["label"][-1])


def _metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    metadata = fields.get("metadata") or {}
    return {"model": metadata.get("summarizer", fields.get("meta_model"))}
