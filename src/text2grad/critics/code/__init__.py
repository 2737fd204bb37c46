"""A critic that runs code against its tests in the sandbox."""

from text2grad.critics.code.critic import CodeCritic

__all__ = ["CodeCritic"]
