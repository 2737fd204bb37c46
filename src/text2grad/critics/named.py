"""Critics by name: those of the package, or the user's own by dotted path."""

from __future__ import annotations

import importlib
from typing import Any

from text2grad.critics import Critic
from text2grad.critics.grounding import GroundingCritic
from text2grad.errors import UserError
from text2grad.settings import did_you_mean

CRITICS = {"grounding": GroundingCritic}


def make_critic(name: str, options: dict[str, Any]) -> Critic:
    """The critic of that name, or the class at `package.module:Class`, made with the options."""
    kind = _imported(name) if ":" in name else CRITICS.get(name)
    if kind is None:
        raise UserError(
            f'unknown critic "{name}"{did_you_mean(name, CRITICS)}, or give your own as package.module:Class'
        )
    try:
        critic = kind(**options)
    except TypeError as error:
        raise UserError(f'critic "{name}" does not take these options: {error}') from error
    if not callable(getattr(critic, "critique", None)):
        raise UserError(f'critic "{name}" has no method critique(examples) -> list[Feedback]')
    return critic


def _imported(path: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f'critic "{path}" cannot be imported: {error}') from error
