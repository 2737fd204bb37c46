"""Teach language models from written feedback."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from text2grad.reward_model.model import SpanRewardModel
    from text2grad.trainer.config import Text2GradConfig
    from text2grad.trainer.trainer import Text2GradTrainer

__all__ = ["SpanRewardModel", "Text2GradConfig", "Text2GradTrainer"]

_HOMES = {
    "SpanRewardModel": "text2grad.reward_model.model",
    "Text2GradConfig": "text2grad.trainer.config",
    "Text2GradTrainer": "text2grad.trainer.trainer",
}


def __getattr__(name: str) -> Any:
    """Import the heavy parts when they are asked for, so that `text2grad --help` stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
