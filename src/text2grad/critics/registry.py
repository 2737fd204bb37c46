"""The registry of critics: built-in ones and those of installed packages by name, any other by import string."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from text2grad.critics.base import NOT_A_CRITIC, Critic, check_critic
from text2grad.errors import UserError, describe_exception
from text2grad.settings import did_you_mean

# Import strings, not classes: a critic's libraries are imported when it is used, and critics never import the reward
# model. A name that ends in ":" is followed by an argument, as in "reward:FOLDER".
CRITICS = {
    "grounding": "text2grad.critics.rules.grounding:GroundingCritic",
    "code": "text2grad.critics.code:CodeCritic",
    "qa": "text2grad.critics.rules.qa:QACritic",
    "lint": "text2grad.critics.rules.lint:LintCritic",
    "human": "text2grad.critics.human.critic:HumanCritic",
    "combined": "text2grad.critics.combined:CombinedCritic",
    "llm": "text2grad.critics.llm.critic:LLMCritic",
    "local": "text2grad.critics.llm.local:LocalCritic",
    "reward:": "text2grad.reward_model.model:SpanRewardModel.from_pretrained",
}
ENTRY_POINTS = "text2grad.critics"


class UnknownOptionError(UserError):
    """A critic is given an option that it does not have."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message)
        self.option = option


def available_critics() -> dict[str, str]:
    """Import strings by name: `CRITICS` and the entry points of the group `text2grad.critics`."""
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)} | CRITICS


def make_critic(name: str, options: dict[str, Any]) -> Critic:
    """Create a critic from its registered name, `reward:FOLDER`, or an import string `package.module:Class`.

    Classes may also be in a module of the current folder, or beside the configuration, see `look_beside`.
    """
    critics = available_critics()
    head, colon, argument = name.partition(":")
    if not colon and name not in critics:
        known = did_you_mean(name, critics)
        raise UserError(f'unknown critic "{name}"{known} Your own is written package.module:Class')
    takes_argument = bool(colon) and head + colon in critics
    factory = _load_factory(critics[head + colon] if takes_argument else critics.get(name, name), name)
    arguments = (argument,) if takes_argument else ()
    _check_options(factory, arguments, options, name)
    try:
        critic: Critic = factory(*arguments, **options)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f'critic "{name}" cannot be created: {describe_exception(error)}') from error
    check_critic(critic, f'critic "{name}": {type(critic).__name__}')
    return critic


def look_beside(config: Path | None) -> None:
    """Let import strings find modules in the folder of a configuration, before those of the current folder."""
    if config is None or not config.is_file():
        return
    folder = str(config.resolve().parent)
    if folder not in sys.path:
        last = len(sys.path)  # so that no file there hides an installed package
        here = next((i for i, entry in enumerate(sys.path) if entry in ("", os.getcwd())), last)
        sys.path.insert(here, folder)


def _check_options(factory: Any, arguments: tuple[str, ...], options: dict[str, Any], name: str) -> None:
    """Raise UserError where an option is unknown or missing."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # a class that is not written in Python
        return
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)][len(arguments) :]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = [p.name for p in named]
    for option in options if not takes_any else ():
        if option not in known:
            hint = did_you_mean(option, known) if known else "; it has none."
            raise UnknownOptionError(f'critic "{name}" has no option "{option}"{hint}', option)
    for parameter in named:
        if parameter.default is parameter.empty and parameter.name not in options:
            raise UserError(
                f'critic "{name}" needs the option "{parameter.name}": give critic.options.{parameter.name}=..., or '
                f"--option {parameter.name}=... to annotate"
            )


def _load_factory(path: str, name: str) -> Any:
    """Import `package.module:Class` or `package.module:Class.classmethod`; the class must be a critic."""
    module, _, attributes = path.partition(":")
    class_name, _, classmethod_name = attributes.partition(".")
    if path == name and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last, so that no file there hides an installed package
    try:
        critic_class = getattr(importlib.import_module(module), class_name)
    except UserError:
        raise
    except Exception as error:  # any: importing runs the module
        reason = str(error) if isinstance(error, ImportError | AttributeError) else describe_exception(error)
        raise UserError(
            f'critic "{name}" cannot be imported: {reason}; its module must be installed, in {os.getcwd()}, or beside '
            "the configuration of the run"
        ) from error
    # before it is called: "os:system" is callable too
    if not isinstance(critic_class, type) or not callable(getattr(critic_class, "critique", None)):
        raise UserError(f'critic "{name}" {NOT_A_CRITIC}')
    if not classmethod_name:
        return critic_class
    factory = getattr(critic_class, classmethod_name, None)
    if not inspect.ismethod(factory):  # a function of a class is no class method: it would be called without an object
        raise UserError(f'critic "{name}": {class_name} has no class method {classmethod_name}')
    return factory
