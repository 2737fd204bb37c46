"""Groups of honest and degenerate answers, and what an update does to them."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from mixed_groups import GROUP_SIZE, Group, RememberingCritic, Step, compare, make_groups, update_once
from rewards import spearman

from text2grad.critics.rules.qa import QACritic
from text2grad.schema import Example

EXAMPLES = [
    Example(
        id=str(number),
        prompt=f"The {thing} is {colour}. It was made in 1871.\n\nOf what colour is it?",
        completion=attempt,
        reference=colour,
        meta={"document": f"The {thing} is {colour}. It was made in 1871.", "question": "Of what colour is it?"},
    )
    for number, (thing, colour) in enumerate([("boat", "red"), ("door", "green")])
    for attempt in (f"It is {colour}.", "It is blue.")
]


def test_a_group_has_honest_answers_first_and_kinds_take_turns():
    groups = make_groups(EXAMPLES, num_attempts=2)

    assert [len(group.answers) for group in groups] == [GROUP_SIZE] * 2
    assert [answer.completion for answer in groups[1].answers[:3]] == ["green", "It is green.", "It is blue."]
    assert groups[0].kinds[:4] == ["", "", "", "empty"]
    assert not {*groups[0].kinds[3:]} & {*groups[1].kinds[3:]}


def test_only_answers_of_the_same_group_that_earned_more_are_compared():
    group = Group(EXAMPLES[:3], ["", "", "empty"])
    other = Group(EXAMPLES[3:], ["pass"])
    totals = torch.tensor([1.0, -1.0, -0.5, -1.0])
    changes = torch.tensor([0.4, 0.9, 0.1, 0.0])
    step = Step(totals, totals, totals > 2, changes, changes)

    ordered, leads = compare([group, other], step, changes)

    assert ordered == [True]
    assert math.isclose(leads[0], 0.3, abs_tol=1e-6)


def test_one_update_raises_what_earned_more(tiny_model: Path, tmp_path: Path) -> None:
    groups = make_groups(EXAMPLES, num_attempts=2)

    step = update_once(tiny_model, RememberingCritic(QACritic()), groups, "rloo", 64, tmp_path / "run")

    assert step.per_token.shape == (2 * GROUP_SIZE,)
    assert spearman(step.totals[~step.truncated], step.scores[~step.truncated]) == 1.0
    _, leads = compare(groups, step, step.per_token)
    assert sum(leads) > 0


def test_rank_correlation_with_ties():
    assert spearman(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 20.0, 20.5])) == 1.0
    assert math.isclose(spearman(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([3.0, 2.0, 1.0])), -1.0)
    assert spearman(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 2.0])) == 1.0
