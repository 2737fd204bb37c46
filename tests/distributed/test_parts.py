from __future__ import annotations

import pytest
import torch

from text2grad.distributed.parts import Part, part_of
from text2grad.distributed.sharding import gathered, laid_out_like, own_share, put, shape_of, whole

FIVE = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])  # on three processes: two each, and one is left over


@pytest.fixture(params=[0, 1, 2])
def rank(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Be one of three processes, of which the others hold the rest of FIVE."""

    def all_gather(pieces: list[torch.Tensor], held: torch.Tensor) -> None:
        for process, values in enumerate([[1.0, 2.0], [3.0, 4.0], [5.0, 99.0]]):
            pieces[process].copy_(held if process == request.param else torch.tensor(values))

    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: request.param)
    monkeypatch.setattr(torch.distributed, "all_gather", all_gather)
    return int(request.param)


def divided(held: list[float]) -> torch.nn.Parameter:
    """A parameter as DeepSpeed leaves it between two passes."""
    parameter = torch.nn.Parameter(torch.empty(0))
    parameter.ds_tensor = torch.tensor(held)  # type: ignore[attr-defined]
    parameter.ds_shape = torch.Size((5, 1))  # type: ignore[attr-defined]
    return parameter


def test_parts_are_cut_in_order_and_put_together_without_what_fills_them_up(rank: int) -> None:
    part = Part(torch.zeros(2), torch.Size((5, 1))).cut(FIVE)
    assert part.held.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]][rank]
    assert torch.equal(part.whole(), FIVE)


def test_a_divided_parameter_is_written_and_read_in_its_own_memory(rank: int) -> None:
    parameter = divided([0.0, 0.0])
    put(FIVE, parameter)
    assert parameter.ds_tensor.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]][rank]  # type: ignore[attr-defined]
    assert torch.equal(whole(parameter), FIVE)
    assert torch.equal(gathered({"a": parameter}, keep=True)["a"], FIVE)
    own_share(parameter).zero_()
    assert parameter.ds_tensor.tolist() == [0.0, 0.0]  # type: ignore[attr-defined]


def test_what_belongs_to_a_divided_parameter_is_laid_out_like_it(rank: int) -> None:
    parameter = divided([0.0, 0.0])
    assert shape_of(parameter) == (5, 1)
    moment = laid_out_like(FIVE, parameter)
    assert isinstance(moment, Part)
    assert torch.equal(whole(moment), FIVE)
    step = torch.tensor(7.0)
    assert laid_out_like(step, parameter) is step


def test_other_tensors_have_no_parts() -> None:
    assert part_of(FIVE) is None
    assert shape_of(FIVE) == (5, 1)
    assert own_share(FIVE) is FIVE
