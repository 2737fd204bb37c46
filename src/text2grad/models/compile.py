"""`torch.compile` for the backbones of a policy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from text2grad.errors import UserError


class BackboneCompiler:
    """Returns a backbone as it is or compiled, at its first use.

    Compiled backbones are cached here instead of being submodules of the policy, where they would put `_orig_mod.` into
    the names of the weights, and a checkpoint would no longer fit a run without compilation.
    """

    def __init__(self, enabled: bool) -> None:
        if enabled and not has_cxx_compiler():
            raise UserError("torch_compile is set but there is no C++ compiler; install g++, or unset torch_compile")
        self._enabled = enabled
        self._compiled: dict[nn.Module, Callable[..., Any]] = {}

    def get(self, backbone: nn.Module) -> Callable[..., Any]:
        """Return a callable with the backbone's signature.

        Shapes are symbolic, so batches of another size need no new graph. There is one graph for scoring, one for the
        reference and one for the update, and the same again for batches of a single row.
        """
        if not self._enabled:
            return backbone
        if backbone not in self._compiled:
            self._compiled[backbone] = torch.compile(backbone, dynamic=True)
        return self._compiled[backbone]


def has_cxx_compiler() -> bool:
    """Return whether a C++ compiler is installed: CXX, or one of the usual names."""
    return any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++"))
