import torch

from text2grad.lm.guide import unpacked


def test_bits_are_unpacked_lowest_first() -> None:
    bits = torch.tensor([[0b101, -1]], dtype=torch.int32)
    assert unpacked(bits, 36).int().tolist() == [[1, 0, 1] + [0] * 29 + [1] * 4]
