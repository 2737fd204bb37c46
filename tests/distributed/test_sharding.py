from __future__ import annotations

from pathlib import Path

import torch
from accelerate import Accelerator

from text2grad.distributed.processes import SINGLE_PROCESS
from text2grad.distributed.sharding import InPlace, Replica, gathered, laid_out_like, place
from text2grad.models.batching import pad_right
from text2grad.models.loading import load_model
from text2grad.models.policy import Policy

CPU = torch.device("cpu")


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=torch.tensor([[5, 6, 7]])).logits
    return found


def test_a_replica_says_what_the_policy_says_and_holds_nothing_afterwards(tiny_model: Path) -> None:
    policy = Policy(load_model(tiny_model))
    replica = Replica(policy)
    with torch.no_grad():
        policy.model.lm_head.weight.mul_(2)  # after the replica was made
    with replica.filled(policy, reference=False) as filled:
        torch.testing.assert_close(logits(filled.model), logits(policy.model), rtol=0, atol=0)
    assert all(p.is_meta for p in filled.parameters())


def test_a_replica_of_the_reference_is_the_policy_of_step_0(tiny_model: Path) -> None:
    model = load_model(tiny_model)
    before = logits(model)
    policy = Policy(model)
    replica = Replica(policy)
    with torch.no_grad():
        policy.model.lm_head.weight.mul_(2)
    with replica.filled(policy, reference=True) as filled, filled.scorer(reference=True) as reference:
        torch.testing.assert_close(logits(reference), before, rtol=0, atol=0)


def test_tied_weights_are_filled_in_both_places(tiny_model: Path) -> None:
    model = load_model(tiny_model)
    model.lm_head.weight = model.model.embed_tokens.weight
    policy = Policy(model)
    with Replica(policy).filled(policy, reference=False) as filled:
        assert filled.model.lm_head.weight.data_ptr() == filled.model.model.embed_tokens.weight.data_ptr()
        torch.testing.assert_close(logits(filled.model), logits(model), rtol=0, atol=0)


def test_alone_the_policy_samples_as_it_is(tiny_model: Path) -> None:
    policy = Policy(load_model(tiny_model))
    sampler = place(policy, Accelerator(cpu=True), SINGLE_PROCESS)
    assert isinstance(sampler, InPlace)
    with sampler.filled(policy, reference=True) as found:
        assert found is policy
    assert policy(pad_right([[1]], [[2, 3]], CPU), 1.0).logprobs.shape == (1, 2)


def test_whole_tensors_stay_as_they_are() -> None:
    tensor = torch.arange(3.0)
    assert laid_out_like(tensor, torch.zeros(3)) is tensor
    assert gathered({"a": tensor}, keep=True)["a"].tolist() == [0.0, 1.0, 2.0]
    assert gathered({"a": tensor}, keep=False) == {}
