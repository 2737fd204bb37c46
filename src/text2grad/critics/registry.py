"""Critics by name: those of the package, or the user's own by dotted path."""

from __future__ import annotations

import importlib
from typing import Any

from text2grad.critics.base import Critic
from text2grad.errors import UserError
from text2grad.settings import did_you_mean

# Paths, not classes: a critic's libraries are imported when it is asked for.
CRITICS = {
    "grounding": "text2grad.critics.rules.grounding:GroundingCritic",
    "code": "text2grad.critics.code:CodeCritic",
    "qa": "text2grad.critics.rules.qa:QACritic",
    "lint": "text2grad.critics.rules.lint:LintCritic",
    "human": "text2grad.critics.human.critic:HumanCritic",
    "combined": "text2grad.critics.combined:CombinedCritic",
    "llm": "text2grad.critics.llm.critic:LLMCritic",
    "local": "text2grad.critics.llm.local:LocalCritic",
}


REWARD_MODEL = "reward:"


def make_critic(name: str, options: dict[str, Any]) -> Critic:
    """The critic of that name, `reward:` and the folder of a reward model, or the class at `package.module:Class`."""
    if name.startswith(REWARD_MODEL):
        return _reward_model(name.removeprefix(REWARD_MODEL), options)
    if ":" not in name and name not in CRITICS:
        known = did_you_mean(name, [*CRITICS, f"{REWARD_MODEL}FOLDER"])
        raise UserError(f'unknown critic "{name}"{known}; your own is package.module:Class')
    kind = _imported(CRITICS.get(name, name))
    try:
        critic: Critic = kind(**options)
    except TypeError as error:
        raise UserError(f'critic "{name}" does not take these options: {error}') from error
    if not callable(getattr(critic, "critique", None)):
        raise UserError(f'critic "{name}" has no method critique(examples) -> list[Feedback]')
    return critic


def _reward_model(path: str, options: dict[str, Any]) -> Critic:
    from text2grad.reward_model.model import SpanRewardModel

    return SpanRewardModel.from_pretrained(path, **options)


def _imported(path: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f'critic "{path}" cannot be imported: {error}') from error
