"""Trunks as `torch.compile` makes them, beside the modules that they were made from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from text2grad.errors import UserError


class Trunks:
    """What to call in place of a trunk: the trunk itself, or its compiled form, made at the first call.

    The compiled form is kept here and not as a module of the policy: as such it would put `_orig_mod.` into the names
    of the weights, and a checkpoint would no longer fit a run without compilation.
    """

    def __init__(self, compiled: bool) -> None:
        if compiled and not has_compiler():
            raise UserError(
                "torch_compile is set but there is no C++ compiler; install g++, or leave torch_compile out"
            )
        self._wanted = compiled
        self._compiled: dict[nn.Module, Callable[..., Any]] = {}

    def of(self, trunk: nn.Module) -> Callable[..., Any]:
        """Takes and gives what the trunk does.

        Shapes are symbols, so batches of another size need no new graph. There is one for scoring, one for the
        reference and one for the update, and the same again for batches of a single row.
        """
        if not self._wanted:
            return trunk
        if trunk not in self._compiled:
            self._compiled[trunk] = torch.compile(trunk, dynamic=True)
        return self._compiled[trunk]


def has_compiler() -> bool:
    """Whether a C++ compiler is installed: CXX, or one of the usual names."""
    return any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++"))
