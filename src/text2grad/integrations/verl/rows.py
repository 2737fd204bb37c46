"""Examples as rows of verl's data sets, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from text2grad.schema import Example, Message

EXAMPLE_FIELD = "text2grad"  # in extra_info: the example as JSON, so that the critic sees all of it


def to_row(example: Example, index: int) -> dict[str, Any]:
    """Return the row of an example for verl's `RLHFDataset`: prompt in chat format, and the example for the critic."""
    messages = [Message(role="user", content=example.prompt)] if isinstance(example.prompt, str) else example.prompt
    prompt_only = example.model_copy(update={"completion": "", "feedback": None})
    return {
        "data_source": "text2grad",
        "prompt": [message.model_dump() for message in messages],
        "reward_model": {"style": "text2grad", "ground_truth": example.reference or ""},
        "extra_info": {"index": index, EXAMPLE_FIELD: prompt_only.model_dump_json()},
    }


def to_example(row: Mapping[str, Any]) -> Example:
    """Return the example of a row as verl hands it to agent loops and reward managers.

    row: non-tensor fields of one sample. Rows that `to_row` did not write have a prompt and a reference only.
    """
    if written := (row.get("extra_info") or {}).get(EXAMPLE_FIELD):
        return Example.model_validate_json(written)
    messages = [Message(role=message["role"], content=message["content"]) for message in row["raw_prompt"]]
    reference = (row.get("reward_model") or {}).get("ground_truth")
    return Example(
        id=str(row.get("uid", "")), prompt=messages, reference=reference if isinstance(reference, str) else None
    )
