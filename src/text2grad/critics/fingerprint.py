"""A digest of a critic and its settings: it changes whenever the same example could get other feedback."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from text2grad.critics.base import Critic, critic_traits

DIGEST_BYTES = 16


def critic_digest(critic: Critic) -> str:
    """Return 32 hex digits that change with the critic's settings.

    They are a hash of the critic's `fingerprint()`; without one, of its class name, the source of its module and its
    plain attributes (values, settings, paths).
    """
    fingerprint = critic_traits(critic).fingerprint
    description = fingerprint() if fingerprint is not None else _describe(critic)
    return hashlib.blake2b(description.encode(), digest_size=DIGEST_BYTES).hexdigest()


def _describe(critic: Critic) -> str:
    kind = type(critic)
    try:
        source = inspect.getsource(inspect.getmodule(kind) or kind)
    except (OSError, TypeError):
        source = ""  # defined in an interactive session
    attributes = {}
    for name, value in vars(critic).items():
        with suppress(TypeError):
            attributes[name] = _to_json(value)
    return json.dumps([kind.__module__, kind.__qualname__, source, attributes], sort_keys=True)


def _to_json(value: Any) -> Any:
    """Convert plain values, settings and paths; raise TypeError for anything else."""
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    is_dataclass = dataclasses.is_dataclass(value) and not isinstance(value, type)
    if value is None or is_dataclass or isinstance(value, str | int | float | bool | Path):
        return repr(value)
    raise TypeError(type(value).__name__)
