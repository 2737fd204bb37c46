import torch

from text2grad.trainer.snapshot import Snapshot


def step(optimizer: torch.optim.Optimizer, weight: torch.nn.Parameter) -> None:
    optimizer.zero_grad()
    (weight**2).sum().backward()
    optimizer.step()


def test_an_undone_step_leaves_no_trace_in_weights_or_momentum() -> None:
    ends = []
    for detour in (False, True):
        weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        optimizer = torch.optim.AdamW([weight], lr=0.1)
        step(optimizer, weight)
        if detour:
            snapshot = Snapshot.take(optimizer)
            for _ in range(2):  # a snapshot can be used twice
                step(optimizer, weight)
                snapshot.restore(optimizer)
        step(optimizer, weight)
        ends.append(weight.detach().clone())
    assert torch.equal(ends[0], ends[1])


def test_the_state_before_the_first_step_is_restored_too() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = torch.optim.AdamW([weight], lr=0.1)
    snapshot = Snapshot.take(optimizer)
    step(optimizer, weight)
    snapshot.restore(optimizer)
    assert weight.item() == 1.0
    assert not optimizer.state_dict()["state"]
