"""One token's attention, group by group, is the attention of the general kernel."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from text2grad.lm.grouped import NAME, attending_in_groups, grouped_attention


@pytest.mark.parametrize(("heads", "groups"), [(6, 2), (4, 4), (4, 1)])
def test_it_is_the_general_kernels_attention(heads: int, groups: int) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, heads, 1, 8), torch.randn(3, groups, 11, 8), torch.randn(3, groups, 11, 8)
    mask = torch.rand(3, 1, 1, 11) < 0.6
    mask[..., 0] = True
    found, _ = grouped_attention(None, query, key, value, mask, scaling=0.3)
    plain = F.scaled_dot_product_attention(query, key, value, mask, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(found, plain.transpose(1, 2), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("before", "meanwhile"), [("sdpa", NAME), ("eager", "eager")])
def test_only_torchs_kernel_is_replaced_and_only_for_a_while(before: str, meanwhile: str) -> None:
    config = SimpleNamespace(_attn_implementation=before)
    with attending_in_groups(config):
        assert config._attn_implementation == meanwhile
    assert config._attn_implementation == before
