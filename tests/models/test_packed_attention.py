"""Padding and unpadding packed rows by hand; other uses of the model are unchanged."""

from __future__ import annotations

from pathlib import Path

import torch

from text2grad.models.loading import load_model
from text2grad.models.packed_attention import NAME, PackedRows, use_packed_attention

INDICES = torch.tensor([0, 1, 3])  # two rows of three columns: tokens 0 and 1 in the first, token 2 in the second


def test_tokens_are_padded_to_their_rows_and_unpadded_again() -> None:
    packed_rows = PackedRows(INDICES, rows=2, width=3)
    packed = torch.tensor([[[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]]])  # (1, two heads, three tokens, size 1)
    (rows,) = packed_rows.pad(packed)
    assert rows.shape == (2, 2, 3, 1)
    assert rows[0, :, :, 0].tolist() == [[1, 2, 0], [4, 5, 0]]
    assert rows[1, :, :, 0].tolist() == [[3, 0, 0], [6, 0, 0]]
    assert torch.equal(packed_rows.unpad([rows.transpose(1, 2)]), packed.transpose(1, 2))


def test_a_token_in_several_rows_is_copied_and_gets_the_sum_of_the_gradients() -> None:
    """A prompt of one token and two completions of one, in two rows of two columns."""
    copies = ((torch.tensor([0]), torch.tensor([[0, 2]])),)
    sources = torch.tensor([0, 1, 0, 2])
    packed_rows = PackedRows(torch.tensor([0, 1, 3]), rows=2, width=2, sources=sources, copies=copies)
    packed = torch.tensor([[[[1.0], [2.0], [3.0]]]], requires_grad=True)
    (rows,) = packed_rows.pad(packed)
    assert rows.flatten().tolist() == [1, 2, 1, 3]
    assert packed_rows.unpad([rows.transpose(1, 2)]).flatten().tolist() == [1, 2, 3]
    (rows * torch.tensor([1.0, 2.0, 10.0, 3.0]).view(2, 1, 2, 1)).sum().backward()
    assert packed.grad is not None
    assert packed.grad.flatten().tolist() == [11, 2, 3]


def test_the_gradient_of_an_output_is_that_of_its_place() -> None:
    packed_rows = PackedRows(INDICES, rows=2, width=3)
    padded = torch.ones(2, 3, 1, 1, requires_grad=True)
    (packed_rows.unpad([padded]) * torch.tensor([2.0, 3.0, 4.0]).view(1, 3, 1, 1)).sum().backward()
    assert padded.grad is not None
    assert padded.grad.flatten().tolist() == [2, 3, 0, 4, 0, 0]


def test_rows_of_different_widths_are_in_blocks_of_their_own() -> None:
    """A prompt of one token, a completion of one and one of two, in blocks of one row each."""
    blocks = ((1, 2), (1, 3))
    sources = torch.tensor([0, 1, 0, 2, 3])
    packed_rows = PackedRows(torch.tensor([2, 1, 3, 4]), rows=2, width=3, sources=sources, blocks=blocks)
    packed = torch.tensor([[[[1.0], [2.0], [3.0], [4.0]]]])
    padded = packed_rows.pad(packed)
    assert [block.shape for block in padded] == [(1, 1, 2, 1), (1, 1, 3, 1)]
    assert [block.flatten().tolist() for block in padded] == [[1, 2], [1, 3, 4]]
    assert torch.equal(packed_rows.unpad([block.transpose(1, 2) for block in padded]), packed.transpose(1, 2))


def test_gradients_of_padding_go_nowhere() -> None:
    packed_rows = PackedRows(INDICES, rows=2, width=3)
    packed = torch.zeros(1, 1, 3, 1, requires_grad=True)
    (rows,) = packed_rows.pad(packed)
    (rows * torch.tensor([[1.0, 2.0, 40.0], [3.0, 40.0, 40.0]]).view(2, 1, 3, 1)).sum().backward()
    assert packed.grad is not None
    assert packed.grad.flatten().tolist() == [1, 2, 3]


def test_everything_else_is_as_before(tiny_model: Path, tmp_path: Path) -> None:
    plain, packed = load_model(tiny_model), load_model(tiny_model)
    use_packed_attention(packed)
    assert packed.config._attn_implementation == NAME
    ids, mask = torch.tensor([[0, 5, 6], [7, 8, 9]]), torch.tensor([[0, 1, 1], [1, 1, 1]])
    ours, theirs = (model(input_ids=ids, attention_mask=mask).logits for model in (packed, plain))
    assert torch.equal(ours, theirs)
    written = [m.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=5) for m in (packed, plain)]
    assert torch.equal(*written)
    packed.save_pretrained(tmp_path)
    assert NAME not in (tmp_path / "config.json").read_text(encoding="utf-8")
    assert load_model(tmp_path).config._attn_implementation == plain.config._attn_implementation
