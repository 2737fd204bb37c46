"""Teach language models from written feedback."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from text2grad.policy.config import Text2GradConfig
    from text2grad.policy.trainer import Text2GradTrainer
    from text2grad.reward.model import SpanRewardModel

__all__ = ["SpanRewardModel", "Text2GradConfig", "Text2GradTrainer"]

_HOMES = {
    "SpanRewardModel": "text2grad.reward.model",
    "Text2GradConfig": "text2grad.policy.config",
    "Text2GradTrainer": "text2grad.policy.trainer",
}


def __getattr__(name: str) -> Any:
    """Import the heavy parts when they are asked for, so that `text2grad --help` stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
