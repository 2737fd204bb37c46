import torch

from text2grad.rollout.constrained import missing


def test_bits_are_read_lowest_first() -> None:
    bits = torch.tensor([[0b101, -1]], dtype=torch.int32)
    assert missing(bits, 36).int().tolist() == [[0, 1, 0] + [1] * 29 + [0] * 4]
