"""A critic that runs the answer's code against its tests, in the sandbox, and writes what a good reviewer would."""

from text2grad.critics.code.critic import CodeCritic

__all__ = ["CodeCritic"]
