"""What makes two questions to a critic the same question."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from text2grad.critics import Critic
from text2grad.schema import Example

KEY_BYTES = 16
META = "annotation"  # the entry of an example's meta that holds its key and its critic's digest


def critic_digest(critic: Critic) -> str:
    """32 hex digits that change with the critic's settings.

    A critic with a method `fingerprint() -> str` says itself what counts. For others it is the name and the source of
    the class's module, and those of the object's attributes that are plain values, settings or paths.
    """
    fingerprint = getattr(critic, "fingerprint", None)
    described = fingerprint() if callable(fingerprint) else _described(critic)
    return hashlib.blake2b(described.encode(), digest_size=KEY_BYTES).hexdigest()


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


def _described(critic: Critic) -> str:
    kind = type(critic)
    try:
        source = inspect.getsource(inspect.getmodule(kind) or kind)
    except (OSError, TypeError):
        source = ""  # made in an interactive session: the name and the attributes have to do
    attributes = {name: _plain(value) for name, value in vars(critic).items() if _is_plain(value)}
    return json.dumps([kind.__module__, kind.__qualname__, source, attributes], sort_keys=True)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    is_settings = isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type))
    return value is None or is_settings or isinstance(value, str | int | float | bool | Path)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    return repr(value)
