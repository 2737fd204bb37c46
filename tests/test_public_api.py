"""The names that `text2grad` exports."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest
import torch

import text2grad


@pytest.mark.parametrize("name", [name for name in text2grad.__all__ if name != "__version__"])
def test_every_public_name_has_a_docstring_of_its_own(name: str) -> None:
    exported = getattr(text2grad, name)
    assert exported.__doc__
    assert exported.__doc__.strip()
    if inspect.isclass(exported):
        assert "__doc__" in vars(exported), "an inherited docstring describes another class"
        for member, value in vars(exported).items():
            if inspect.isfunction(value) and not member.startswith("_"):
                assert value.__doc__, f"{name}.{member}"
    assert name in dir(text2grad)


def test_the_version_is_that_of_the_package() -> None:
    assert text2grad.__version__ == version("text2grad")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Trainer'"):
        _ = text2grad.Trainer


def test_importing_the_package_imports_no_heavy_library() -> None:
    code = "import sys, text2grad; print({'torch', 'transformers', 'pydantic'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_from_feedback_to_advantages_without_a_trainer() -> None:
    """A blamed word is pushed down, and nothing else is."""
    feedback = text2grad.Feedback(critic="me", spans=[text2grad.Span(start=5, end=11, label="poor")])
    rewards, _, valid = text2grad.token_rewards(feedback, [(0, 4), (4, 11), (11, 12), (12, 12)])
    assert valid
    assert rewards.tolist() == [0, -1, 0, 0]
    mask = torch.ones(1, 4)
    advantages, _ = text2grad.span_advantages(torch.from_numpy(rewards)[None], mask, "reinforce", gamma=0.0)
    assert advantages.tolist() == [[0, -1, 0, 0]]
