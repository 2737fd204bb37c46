"""Both losses against a plain computation with all logits at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import Tensor

from text2grad.models.loading import load_model
from text2grad.reward_model.dataset import Row, collate
from text2grad.reward_model.head import IGNORE
from text2grad.reward_model.network import SpanRewardNetwork

WEIGHTS = torch.tensor([2.0, 0.5, 1.0])
ROWS: list[Row] = [
    {
        "input_ids": [5, 6, 7, 8, 9, 1],
        "head_labels": [IGNORE, 0, 1, 2, IGNORE, IGNORE],
        "lm_labels": [IGNORE, IGNORE, IGNORE, IGNORE, 9, 1],
    },
    {"input_ids": [20, 21, 22, 1], "head_labels": [IGNORE, 2, IGNORE, IGNORE], "lm_labels": [IGNORE, IGNORE, 22, 1]},
]


@pytest.fixture
def network(tiny_model: Path) -> SpanRewardNetwork:
    network = SpanRewardNetwork(load_model(tiny_model))
    torch.manual_seed(1)
    torch.nn.init.normal_(network.head.weight)
    network.class_weights = WEIGHTS
    return network


def plain_losses(network: SpanRewardNetwork, rows: list[Row]) -> tuple[Tensor, Tensor]:
    """Row by row, without padding: all logits, all probabilities, then the mean over what counts."""
    head_losses, lm_losses = [], []
    for row in rows:
        ids = torch.tensor([row["input_ids"]])
        out = network.model(input_ids=ids, output_hidden_states=True)
        head = network.head(out.hidden_states[-1][0]).log_softmax(-1)
        words = out.logits[0].float().log_softmax(-1)
        labelled = [(i, label) for i, label in enumerate(row["head_labels"]) if label != IGNORE]
        if labelled:
            head_losses.append(torch.stack([-WEIGHTS[label] * head[i, label] for i, label in labelled]).mean())
        for i, token in enumerate(row["lm_labels"]):
            if token != IGNORE:
                lm_losses.append(-words[i - 1, token])
    return torch.stack(head_losses).mean(), torch.stack(lm_losses).mean()


def run(network: SpanRewardNetwork, rows: list[Row], **changed: Any) -> dict[str, Tensor]:
    return dict(network(**(collate(rows, pad_id=1) | changed)))


@pytest.mark.parametrize("weight", [1.0, 0.3, 0.0])
def test_the_loss_is_that_of_the_head_and_of_the_critique(network: SpanRewardNetwork, weight: float) -> None:
    network.lm_weight = weight
    losses = run(network, ROWS)
    head, language = plain_losses(network, ROWS)
    torch.testing.assert_close(losses["head_loss"], head.detach())
    torch.testing.assert_close(losses["lm_loss"], language.detach() if weight else torch.tensor(0.0))
    torch.testing.assert_close(losses["loss"], head + weight * language)


def test_logits_that_a_family_scales_are_scaled_in_the_loss(network: SpanRewardNetwork) -> None:
    network.config.logit_scale = 3.0
    network.model.register_forward_hook(lambda *found: setattr(found[-1], "logits", found[-1].logits * 3.0))
    torch.testing.assert_close(run(network, ROWS)["lm_loss"], plain_losses(network, ROWS)[1].detach())


def test_padding_does_not_change_the_losses(network: SpanRewardNetwork) -> None:
    batch = collate(ROWS, pad_id=1)
    wider = {name: F.pad(tensor, (0, 5), value=77 if name == "input_ids" else IGNORE) for name, tensor in batch.items()}
    torch.testing.assert_close(network(**wider), network(**batch))


def test_both_losses_reach_the_trunk(network: SpanRewardNetwork) -> None:
    run(network, ROWS)["loss"].backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_the_head_alone_trains_the_trunk_but_not_the_output_layer(network: SpanRewardNetwork) -> None:
    network.lm_weight = 0.0
    run(network, ROWS)["loss"].backward()
    assert network.model.get_output_embeddings().weight.grad is None
    assert network.model.model.embed_tokens.weight.grad.abs().sum() > 0


def test_rows_without_labels_cost_nothing(network: SpanRewardNetwork) -> None:
    losses = run(network, ROWS, head_labels=torch.full((2, 6), IGNORE), lm_labels=torch.full((2, 6), IGNORE))
    losses["loss"].backward()
    assert losses["loss"].item() == 0


def test_an_adapter_is_part_of_the_trunk(tiny_model: Path) -> None:
    config = LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")
    network = SpanRewardNetwork(get_peft_model(load_model(tiny_model), config))
    torch.nn.init.normal_(network.head.weight)
    before = network.states(torch.tensor([[5, 6, 7]]))
    run(network, ROWS)["loss"].backward()
    trained = {name for name, parameter in network.named_parameters() if parameter.grad is not None}
    assert trained
    assert all("lora_" in name or name.startswith("head.") for name in trained)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "lora_B" in name:
                parameter.add_(0.1)
    after = network.states(torch.tensor([[5, 6, 7]]))
    assert not torch.allclose(before, after)


def test_gradient_checkpointing_changes_no_gradient(network: SpanRewardNetwork) -> None:
    network.train()
    run(network, ROWS)["loss"].backward()
    plain = {
        name: parameter.grad.clone() for name, parameter in network.named_parameters() if parameter.grad is not None
    }
    network.zero_grad()
    network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    run(network, ROWS)["loss"].backward()
    again = {name: parameter.grad for name, parameter in network.named_parameters()}
    torch.testing.assert_close(again, plain)
