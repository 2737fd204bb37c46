"""Shepherd: answers to questions with a person's critique (facebookresearch/Shepherd, Wang et al., 2023).

The file is human_data_for_model.jsonl. Tested on files of that shape, not on the set itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from text2grad.data.feedback_sets.fields import text_field
from text2grad.data.rows import Row
from text2grad.schema import Example, Feedback


def convert(row: Row) -> Iterator[Example]:
    """Yield the answer with its critique, which often quotes the sentence that it is about."""
    fields = row.fields
    if "latestLabel" in fields:
        raise ValueError("this is human_data_raw.jsonl; give human_data_for_model.jsonl")
    yield Example(
        id=f"shepherd-{fields['id']}",
        prompt=text_field(fields, "question"),
        completion=text_field(fields, "answer"),
        feedback=Feedback(critique=text_field(fields, "feedback").strip(), critic="human"),
        meta=dict(fields.get("meta") or {}),
    )
