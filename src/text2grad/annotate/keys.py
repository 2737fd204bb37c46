"""Identity of an annotation request: one key per (record, critic)."""

from __future__ import annotations

import hashlib
import json

from text2grad.schema import Example

KEY_BYTES = 16
META = "annotation"  # the entry of an example's meta that holds its key and its critic's digest


def record_key(example: Example, critic: str, reads_feedback: bool = False) -> bytes:
    """16 bytes that change with anything the critic may look at, and with the critic.

    That is the prompt, the completion and what comes with them (id, reference, tests, meta); the feedback that the
    example already has only for a critic that reads it.
    """
    unseen = None if reads_feedback else {"feedback"}
    content = example.model_dump(mode="json", exclude=unseen, exclude_defaults=True)
    content.get("meta", {}).pop(META, None)
    if not content.get("meta"):
        content.pop("meta", None)
    text = json.dumps([critic, content], sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()
