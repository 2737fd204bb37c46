from __future__ import annotations

from pathlib import Path

import torch
from accelerate import Accelerator

from text2grad.distributed.processes import SINGLE_PROCESS
from text2grad.distributed.sharding import FullPolicy, gather_full_tensors, place_policy, shard_like
from text2grad.models.batching import pad_right
from text2grad.models.loading import load_model
from text2grad.models.policy import Policy

CPU = torch.device("cpu")


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=torch.tensor([[5, 6, 7]])).logits
    return found


def test_a_replica_computes_what_the_policy_does_and_is_freed_afterwards(tiny_model: Path) -> None:
    policy = Policy(load_model(tiny_model))
    replica = FullPolicy(policy, sharded=True)
    with torch.no_grad():
        policy.model.lm_head.weight.mul_(2)  # after the replica was made
    with replica.summon(reference=False) as full:
        torch.testing.assert_close(logits(full.model), logits(policy.model), rtol=0, atol=0)
    assert all(p.is_meta for p in full.parameters())


def test_a_replica_of_the_reference_is_the_policy_of_step_0(tiny_model: Path) -> None:
    model = load_model(tiny_model)
    before = logits(model)
    policy = Policy(model)
    replica = FullPolicy(policy, sharded=True)
    with torch.no_grad():
        policy.model.lm_head.weight.mul_(2)
    with replica.summon(reference=True) as full, full.scorer(reference=True) as reference:
        torch.testing.assert_close(logits(reference), before, rtol=0, atol=0)


def test_tied_weights_stay_tied(tiny_model: Path) -> None:
    model = load_model(tiny_model)
    model.lm_head.weight = model.model.embed_tokens.weight
    policy = Policy(model)
    with FullPolicy(policy, sharded=True).summon(reference=False) as full:
        assert full.model.lm_head.weight.data_ptr() == full.model.model.embed_tokens.weight.data_ptr()
        torch.testing.assert_close(logits(full.model), logits(model), rtol=0, atol=0)


def test_without_sharding_the_policy_itself_is_summoned(tiny_model: Path) -> None:
    policy = Policy(load_model(tiny_model))
    full_policy = place_policy(policy, Accelerator(cpu=True), SINGLE_PROCESS)
    with full_policy.summon(reference=True) as found:
        assert found is policy
    assert policy(pad_right([[1]], [[2, 3]], CPU), 1.0).logprobs.shape == (1, 2)


def test_unsharded_tensors_are_returned_unchanged() -> None:
    tensor = torch.arange(3.0)
    assert shard_like(tensor, torch.zeros(3)) is tensor
    assert gather_full_tensors({"a": tensor}, keep=True)["a"].tolist() == [0.0, 1.0, 2.0]
    assert gather_full_tensors({"a": tensor}, keep=False) == {}
