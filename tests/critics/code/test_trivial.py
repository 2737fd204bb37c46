"""Programs that give an argument back need no insight."""

from __future__ import annotations

import pytest

from text2grad.critics.code.trivial import returns_argument

NAMES = frozenset({"f"})


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x",
        "def f(*args):\n    return args[0]",
        'def f(x):\n    """Returns it."""\n    return x',
        "def f(x):\n    if 1 == 2:\n        y = 3\n    return x",
    ],
)
def test_an_argument_given_back(source: str) -> None:
    assert returns_argument(source, NAMES)


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x + 1",
        "def f(x):\n    x.sort()\n    return x",
        "def f(x):\n    if x:\n        x = 1\n    return x",
        "def f(x):\n    return x[g(x)]",
        "def g(x):\n    return x",
        "def f(x):\n    pass",
        "def f(:",
    ],
)
def test_work_is_done(source: str) -> None:
    assert not returns_argument(source, NAMES)
