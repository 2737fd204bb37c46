"""HelpSteer3: two responses per conversation with the feedback of up to three people each (nvidia/HelpSteer3).

Both configurations are read: `feedback` (`feedback1`, `feedback2`: lists of texts) and `preference`
(`individual_preference`: scores with a reasoning and, where the annotator wrote it, feedback on each response).
Tested on files of that shape, not on the set itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from text2grad.data.feedback_sets.fields import rescale, text_field
from text2grad.data.messages import parse_messages
from text2grad.data.rows import Row
from text2grad.schema import Example, Feedback

HELPFUL = re.compile(r"\bresponse(?:\s+[12])?\s+is\s+(not|slightly|partially|mostly|perfectly)\s+helpful", re.I)
HELPFULNESS = {"not": -1.0, "slightly": -0.5, "partially": 0.0, "mostly": 0.5, "perfectly": 1.0}


def convert(row: Row) -> Iterator[Example]:
    """Yield both responses. The prompt is the conversation; the critique has one line per annotator.

    The score is the mean of what annotators open with, "The response is mostly helpful" (-1 not, 1 perfectly), in the
    configuration `preference` the overall preference, divided by 3. Reasonings compare both responses: they are kept in
    `meta`.
    """
    fields = row.fields
    prompt = parse_messages(fields["context"])
    preferences = fields.get("individual_preference")
    for number, sign in ((1, -1), (2, 1)):
        if preferences is None:
            texts = _texts(fields[f"feedback{number}"])
            score = helpfulness(texts)
            meta: dict[str, Any] = {}
        else:
            texts = _texts([preference.get(f"feedback{number}") for preference in preferences])
            overall = fields["overall_preference"]
            score = None if overall is None else sign * rescale(overall, -3, 3)
            meta = {"preference_reasonings": _texts([preference.get("reasoning") for preference in preferences])}
        if not texts and score is None:
            raise ValueError(f"feedback{number} is empty")
        yield Example(
            id=f"{row.name}-{number}",
            prompt=prompt,
            completion=text_field(fields, f"response{number}"),
            feedback=Feedback(critique="\n".join(texts), score=score, critic="human"),
            meta=_meta(fields) | meta,
        )


def helpfulness(texts: Sequence[str]) -> float | None:
    """Return the mean of the verdicts that the texts open with, None where none does."""
    found = [match for match in map(HELPFUL.search, texts) if match]
    return fmean(HELPFULNESS[match[1].lower()] for match in found) if found else None


def _texts(values: Sequence[Any] | str | None) -> list[str]:
    """Return the texts that annotators wrote, each on one line."""
    values = [values] if isinstance(values, str) else values or []
    return [" ".join(value.split()) for value in values if isinstance(value, str) and value.strip()]


def _meta(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in ("domain", "language", "overall_preference") if fields.get(name) is not None}
