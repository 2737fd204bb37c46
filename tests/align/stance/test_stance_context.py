"""Tests of how the words of a clause relate to the answer."""

from __future__ import annotations

from text2grad.align.answer.document import Document
from text2grad.align.stance.stance_context import relate_to_answer

ANSWER = Document("The meeting is on Tuesday at 9. Bring the blue folder.")
PROMPT = "Write that the meeting is on Thursday at 10."


def test_a_number_is_the_answers_the_prompts_or_new() -> None:
    assert "number a" in relate_to_answer("At 9, fine.", ANSWER, PROMPT)
    assert "number s" in relate_to_answer("It is at 10.", ANSWER, PROMPT)
    assert "number n" in relate_to_answer("It is at 11.", ANSWER, PROMPT)


def test_words_are_counted_by_where_they_are() -> None:
    features = relate_to_answer("The meeting on Thursday with Maria", ANSWER, PROMPT)
    assert {"a1", "s1", "n1", "name ns"} <= set(features)


def test_questions_and_kinds_are_told() -> None:
    assert any(feature.startswith("asks") for feature in relate_to_answer("A blue folder?", ANSWER, PROMPT))
    assert "kind prose" in relate_to_answer("x", ANSWER, PROMPT)
    assert "kind program" in relate_to_answer("x", Document("def f():\n    return 1\n"), "")
    assert "kind letter" in relate_to_answer("x", Document("Dear Ann,\n\nSee you.\n\nBest regards,\nBob"), "")
