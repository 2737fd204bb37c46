"""Train language models from written feedback: critiques become spans, token rewards and policy updates.

The public API, imported on first use so that `import text2grad` stays fast:

- `Example`, `Feedback`, `Span`, `Omission`: the data model. `Critic`: the protocol of a critic. `Credit`: how feedback
  becomes rewards. `UserError`: raised for what the caller can fix.
- `critique_to_rewards(critic, examples, completion_ids, tokenizer)`, `token_rewards(feedback, offsets)` and
  `span_advantages(rewards, mask)`: the method without the trainer.
- `Text2GradTrainer` with `Text2GradConfig`: the trainer, with TRL's argument names.
- `SpanRewardModel`: the trained critic.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from text2grad.critics.base import Critic
    from text2grad.errors import UserError
    from text2grad.integrations.critique_rewards import critique_to_rewards
    from text2grad.reward_model.model import SpanRewardModel
    from text2grad.rewards.credit import Credit, token_rewards
    from text2grad.schema import Example, Feedback, Omission, Span
    from text2grad.trainer.advantages import span_advantages
    from text2grad.trainer.config import Text2GradConfig
    from text2grad.trainer.trainer import Text2GradTrainer

    __version__: str

__all__ = [
    "Credit",
    "Critic",
    "Example",
    "Feedback",
    "Omission",
    "Span",
    "SpanRewardModel",
    "Text2GradConfig",
    "Text2GradTrainer",
    "UserError",
    "__version__",
    "critique_to_rewards",
    "span_advantages",
    "token_rewards",
]

_MODULES = {
    "Credit": "text2grad.rewards.credit",
    "Critic": "text2grad.critics.base",
    "Example": "text2grad.schema",
    "Feedback": "text2grad.schema",
    "Omission": "text2grad.schema",
    "Span": "text2grad.schema",
    "SpanRewardModel": "text2grad.reward_model.model",
    "Text2GradConfig": "text2grad.trainer.config",
    "Text2GradTrainer": "text2grad.trainer.trainer",
    "UserError": "text2grad.errors",
    "critique_to_rewards": "text2grad.integrations.critique_rewards",
    "span_advantages": "text2grad.trainer.advantages",
    "token_rewards": "text2grad.rewards.credit",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("text2grad")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
