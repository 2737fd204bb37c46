"""Edits are applied at their places, and say where their words are."""

from __future__ import annotations

from text2grad.reward_model.corruptions.edits import Edit, apply_edits, insertion


def test_edits_are_applied_in_order() -> None:
    text = "We meet on Friday at noon, as ever."
    edits = [Edit(11, 17, "Monday", "date"), insertion(25, " in Paris", "added phrase"), Edit(25, 34, "", "omission")]
    new, ranges = apply_edits(text, edits)
    assert new == "We meet on Monday at noon in Paris."
    assert [new[start:end] for start, end in ranges] == ["Monday", "in Paris", ""]
    assert ranges[2] == (34, 34)


def test_without_edits_the_text_stays() -> None:
    assert apply_edits("As it is.", []) == ("As it is.", [])


def test_edits_that_touch_overlap() -> None:
    assert Edit(0, 5, "x", "name").overlaps(Edit(5, 8, "y", "name"))
    assert Edit(0, 5, "x", "name").overlaps(insertion(6, "y", "added phrase"))
    assert not Edit(0, 5, "x", "name").overlaps(Edit(8, 9, "y", "name"))
