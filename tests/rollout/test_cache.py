from pathlib import Path

import torch

from text2grad.models.loading import load_model
from text2grad.rollout.cache import BLOCK, PreallocatedLayer, append, preallocated_cache


def test_appending_equals_concatenation_through_selection_and_repetition() -> None:
    torch.manual_seed(0)
    kept = stored = torch.randn(4, 2, 5, 3)
    for step in range(2 * BLOCK):
        new = torch.randn(kept.shape[0], 2, 1, 3)
        kept, stored = torch.cat([kept, new], dim=-2), append(stored, new)
        if step == 10:
            kept, stored = kept[[0, 2]], stored[[0, 2]]
        if step == 20:
            kept, stored = kept.repeat_interleave(2, dim=0), stored.repeat_interleave(2, dim=0)
        assert torch.equal(kept, stored)


def test_a_block_is_filled_without_copying() -> None:
    stored = append(torch.tensor([]), torch.randn(2, 2, 7, 3))
    place = stored.data_ptr()
    for _ in range(BLOCK):
        stored = append(stored, torch.randn(2, 2, 1, 3))
        assert stored.data_ptr() == place
    assert append(stored, torch.randn(2, 2, 1, 3)).data_ptr() != place


def test_every_full_attention_layer_has_room(tiny_model: Path) -> None:
    cache = preallocated_cache(load_model(tiny_model).config)
    assert [type(layer) for layer in cache.layers] == [PreallocatedLayer, PreallocatedLayer]
