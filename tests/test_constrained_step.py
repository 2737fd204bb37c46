import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from text2grad.constrained_step import (
    MAX_PROBABILITY,
    TARGET_PROBABILITY,
    constrained_step,
    find_targets,
    last_weights,
    layers_below,
    log_odds,
)
from text2grad.errors import UserError
from text2grad.models.loading import load_model
from text2grad.models.policy import Policy
from text2grad.rewards.corrections import CorrectedBranch, Correction


def branch(start: int, ids: list[int], first: int = 0) -> CorrectedBranch:
    return CorrectedBranch(start, ids, [Correction(start=start, end=start + 1, first=first, last=len(ids), weight=1.0)])


def make_policy(folder: Path) -> Policy:
    """A tiny random model whose logits are as large as those of a trained one: its last layers can move a token far."""
    model = load_model(folder)
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(10)
    return Policy(model, keep_reference=False)


def targets(
    before: list[list[float]], rewards: Sequence[float], corrected: Sequence[CorrectedBranch] = (), step: float = 0.5
) -> dict[tuple[int, ...], float]:
    """Probabilities by (line, column); before: probabilities as well. Token i of the completion has the id i."""
    found = find_targets(torch.tensor(before).log(), range(len(rewards)), rewards, step, corrected)
    return {tuple(place): math.exp(p) for place, p in zip(found.places.tolist(), found.logprobs.tolist(), strict=True)}


def test_rewarded_tokens_move_by_their_share_and_the_rest_stays() -> None:
    found = targets([[0.2, 0.3, 0.4]], [-0.5, 0.0, 1.5], step=0.1)  # mean |reward| 1
    assert found == pytest.approx({(0, 0): 0.2 * math.exp(-0.05), (0, 1): 0.3, (0, 2): 0.4 * math.exp(0.15)})


def test_praise_of_what_is_nearly_certain_asks_for_nothing_impossible() -> None:
    found = targets([[0.9, 0.995]], [1.0, 1.0])
    assert found == pytest.approx({(0, 0): MAX_PROBABILITY, (0, 1): 0.995})


def test_a_correction_rises_and_what_it_replaces_falls_by_what_all_others_lose() -> None:
    found = targets([[0.5, 0.8], [0.1, 0.7]], [0.0, 0.0], [branch(0, [9, 8])])
    assert found[1, 0] == pytest.approx(TARGET_PROBABILITY)
    assert found[1, 1] == pytest.approx(0.7), "it is more probable than that already"
    assert found[0, 0] == pytest.approx(0.5 * (1 - TARGET_PROBABILITY) / (1 - 0.1))
    assert found[0, 1] == pytest.approx(0.8)


def test_a_blamed_token_falls_at_least_by_its_own_step() -> None:
    found = targets([[0.5], [0.59]], [-1.0], [branch(0, [9])])
    assert found[0, 0] == pytest.approx(0.5 * math.exp(-0.5)), "the correction takes hardly anything from it"


def test_corrections_in_one_place_share_its_probability() -> None:
    found = targets([[0.5], [0.1], [0.2]], [0.0], [branch(0, [9]), branch(0, [8])])
    assert found[1, 0] == found[2, 0] == pytest.approx(TARGET_PROBABILITY / 2)
    assert found[0, 0] == pytest.approx(0.5 * (1 - TARGET_PROBABILITY) / (1 - 0.3))
    assert sum(found.values()) <= 1


def test_a_correction_after_other_text_replaces_no_token() -> None:
    found = targets([[0.5, 0.6], [0.3, 0.1]], [0.0, 0.0], [branch(0, [7, 9], first=1)])
    assert found == pytest.approx({(0, 0): 0.5, (0, 1): 0.6, (1, 1): TARGET_PROBABILITY}), "the 7 is read, not learned"
    assert targets([[0.5], [0.1]], [0.0], [branch(1, [9])])[0, 0] == pytest.approx(0.5), "an insertion at the end"


def test_log_odds_by_hand() -> None:
    found = log_odds(torch.tensor([0.5, 0.75, 1.0]).log())
    assert found.tolist() == pytest.approx([0.0, math.log(3), math.log(1000)])


def test_every_token_reaches_its_target(tiny_model: Path) -> None:
    policy = make_policy(tiny_model)
    completion, rewards = [7, 8, 9, 10], [0.0, -1.0, 0.0, 1.0]
    changes = constrained_step(policy, [5, 6], completion, rewards, 0.1, [branch(1, [12, 13])])
    (_, blamed, _, praised), right = ([b - a for a, b in zip(*change, strict=True)] for change in changes)
    held = [changes[0][1][i] - changes[0][0][i] for i in (0, 2)]
    assert blamed <= -0.08
    assert praised == pytest.approx(0.1, abs=0.03)
    assert max(map(abs, held)) < 0.03
    assert right == pytest.approx([2.0, 2.0], abs=0.05), "twenty times the step"


def test_weights_require_gradients_as_before(tiny_model: Path) -> None:
    policy = make_policy(tiny_model)
    frozen = policy.model.get_input_embeddings().weight.requires_grad_(False)
    required = [parameter.requires_grad for parameter in policy.model.parameters()]
    constrained_step(policy, [5, 6], [7, 8], [-1.0, 0.0], 0.5)
    assert [parameter.requires_grad for parameter in policy.model.parameters()] == required
    assert not frozen.requires_grad


def test_the_last_parameters_within_the_budget_are_changed(tiny_model: Path) -> None:
    model = load_model(tiny_model)
    embeddings = [model.get_input_embeddings().weight, model.get_output_embeddings().weight]
    inner = [parameter for parameter in model.parameters() if not any(parameter is other for other in embeddings)]
    sizes = [parameter.numel() for parameter in inner]
    assert [p.numel() for p in last_weights(model, 0)] == [min(sizes)], "at least one"
    assert all(a is b for a, b in zip(last_weights(model, 10**9), inner[::-1], strict=True))
    assert all(a is b for a, b in zip(last_weights(model, sizes[-1] + 1), inner[:-2:-1], strict=True)), "half is used"


def test_layers_without_changed_weights_are_computed_once(tiny_model: Path) -> None:
    model = load_model(tiny_model)
    layers = list(model.model.layers)
    assert layers_below(model, list(layers[-1].parameters())[-1:]) == layers[:-1]
    assert layers_below(model, list(layers[0].parameters())) == []
    assert layers_below(model, [model.model.norm.weight]) == [], "it is beside the layers"
    forwards = [layer.forward for layer in layers]
    constrained_step(Policy(model, keep_reference=False), [5, 6], [7, 8], [-1.0, 0.0], 0.5)
    assert [layer.forward for layer in layers] == forwards


def test_a_correction_alone_can_be_explained(tiny_model: Path) -> None:
    policy = make_policy(tiny_model)
    branch = CorrectedBranch(1, [9, 10], [Correction(start=1, end=2, first=0, last=2, weight=1.0)])
    completion, corrected = constrained_step(policy, [5, 6], [7, 8], [0.0, 0.0], 0.1, [branch])
    assert [len(part) for part in completion] == [2, 2]
    moved = [after - before for before, after in zip(*corrected, strict=True)]
    assert sum(moved) / 2 == pytest.approx(2.0, abs=0.05), "twenty times the step"


def test_tokens_without_a_reward_are_held(tiny_model: Path) -> None:
    policy = make_policy(tiny_model)
    ((before, after),) = constrained_step(policy, [5, 6], [7, 8, 9, 10], [0.0, -1.0, 0.0, 0.0], step_size=0.5)
    moved = [b - a for a, b in zip(before, after, strict=True)]
    assert moved[1] == pytest.approx(-0.5, abs=0.05)
    assert max(abs(moved[i]) for i in (0, 2, 3)) < 0.1


def test_praise_and_blame_that_cancel_out_are_an_error(tiny_model: Path) -> None:
    policy = make_policy(tiny_model)
    with pytest.raises(UserError, match="cancel out"):
        constrained_step(policy, [5, 6], [7, 8], rewards=[0.0, 0.0], step_size=0.5)
    with pytest.raises(UserError, match="cancel out"):  # what is left would be scaled up to a whole step
        constrained_step(policy, [5, 6], [7, 8], rewards=[-0.004, 0.003], step_size=0.5)
