"""Modules compute otherwise for a while, and never longer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from text2grad.rollout.fast.patching import patched_forward


def test_a_module_computes_by_its_stand_in_for_a_while() -> None:
    doubling, plain = nn.Identity(), nn.Identity()
    one = torch.ones(1)
    with patched_forward([(doubling, lambda x: 2 * x)]):
        assert (float(doubling(one)), float(plain(one))) == (2.0, 1.0)
    assert float(doubling(one)) == 1.0


def test_modules_are_themselves_again_after_an_error() -> None:
    module = nn.Identity()
    with pytest.raises(RuntimeError, match="lost"), patched_forward([(module, lambda x: 2 * x)]):
        raise RuntimeError("lost")
    assert "forward" not in vars(module)
