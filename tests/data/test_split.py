"""Splits by prompt: no prompt is on both sides, and the split does not depend on the order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.data.split import split_by_prompt
from text2grad.schema import Example, Message


def examples_of(prompts: list[int]) -> list[Example]:
    return [Example(id=str(i), prompt=f"Prompt {n}", completion=str(i)) for i, n in enumerate(prompts)]


@given(st.lists(st.integers(0, 20), max_size=40), st.floats(0, 1), st.randoms())
def test_a_prompt_is_on_one_side_whatever_the_order(prompts: list[int], share: float, shuffle: st.randoms) -> None:
    examples = examples_of(prompts)
    train, heldout = split_by_prompt(examples, share)
    assert not {e.prompt_text for e in train} & {e.prompt_text for e in heldout}
    assert sorted((e.id for e in [*train, *heldout]), key=int) == [e.id for e in examples]
    shuffle.shuffle(examples)
    again, _ = split_by_prompt(examples, share)
    assert {e.id for e in again} == {e.id for e in train}


def test_about_the_share_is_held_out() -> None:
    examples = examples_of(list(range(2000)))
    train, heldout = split_by_prompt(examples, 0.2)
    assert len(heldout) == pytest.approx(400, abs=60)
    assert split_by_prompt(examples, 0.0) == (examples, [])
    assert split_by_prompt(examples, 1.0) == ([], examples)
    _, other = split_by_prompt(examples, 0.2, salt="again")
    assert {e.id for e in other} != {e.id for e in heldout}
    # More held out holds out the same ones, and more.
    _, more = split_by_prompt(examples, 0.4)
    assert {e.id for e in heldout} < {e.id for e in more}
    assert len(train) == 2000 - len(heldout)


def test_a_conversation_is_split_by_its_words() -> None:
    text = Example(id="1", prompt="A\n\nB")
    turns = Example(id="2", prompt=[Message(role="system", content="A"), Message(role="user", content="B")])
    train, heldout = split_by_prompt([text, turns], 0.5)
    assert len(train) in (0, 2)
    assert len(heldout) == 2 - len(train)
