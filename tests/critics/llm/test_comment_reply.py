"""What a language model says that a comment means, and where that is in the answer."""

from __future__ import annotations

import json

import pytest

from text2grad.critics.llm.comment_reply import Part, locate_parts, parse_parts
from text2grad.critics.llm.reply import UnreadableReplyError

ANSWER = "We meet on Friday at noon. Bring the slides. See you there!"
COMMENT = "Nice ending, but it was Monday, not Friday. And where is the address?"


def test_parts_are_read_as_models_write_them() -> None:
    entry = {"phrase": "Nice ending", "opinion": "Good", "quotes": "See you there!", "whole": False, "missing": None}
    reply = f"<think>{{}}</think>Sure:\n```json\n{json.dumps({'reasoning': 'r', 'parts': [entry]})}\n```"
    assert parse_parts(reply) == [Part("Nice ending", "good", ("See you there!",))]
    assert parse_parts('{"parts": [{"phrase": "a", "opinion": "poor", "quotes": ["b"], "instead": ""}, {"phr')[0] == (
        Part("a", "poor", ("b",), instead="")
    )
    assert parse_parts('{"parts": [{"phrase": "a", "opinion": "so so"}, "b"]}') == []


@pytest.mark.parametrize("reply", ["I cannot say.", '{"parts": "none"}', "[]", '{"parts": [1}, "parts": [2}'])
def test_a_reply_without_one_list_of_parts_is_unreadable(reply: str) -> None:
    with pytest.raises(UnreadableReplyError):
        parse_parts(reply)


def test_quotes_are_located_and_phrases_point_into_the_comment() -> None:
    parts = [
        Part("Nice ending", "good", ("See you there!",)),
        Part("it was Monday, not Friday", "poor", ("Friday",), instead="Monday"),
        Part("where is the address?", "poor", missing="the address"),
    ]
    found = locate_parts(parts, COMMENT, ANSWER, "mia", threshold=0.75)
    assert [(ANSWER[s.start : s.end], s.label, s.replacement, s.critic) for s in found.spans] == [
        ("Friday", "poor", "Monday", "mia"),
        ("See you there!", "good", None, "mia"),
    ]
    assert [COMMENT[slice(*s.phrase)] for s in found.spans if s.phrase] == ["it was Monday, not Friday", "Nice ending"]
    assert [(o.text, o.phrase and COMMENT[slice(*o.phrase)]) for o in found.omissions] == [
        ("the address", "where is the address?")
    ]
    assert found.unmatched == found.refused == []


def test_what_has_no_effect_is_refused_with_its_reason() -> None:
    parts = [
        Part("is Friday right?", "unsure", ("Friday",)),
        Part("no slides", "poor", missing="the slides"),
        Part("the umbrella is wrong", "poor", ("the umbrella",)),
        Part(None, "poor"),
    ]
    found = locate_parts(parts, COMMENT, ANSWER, "mia", threshold=0.75)
    assert found.spans == found.omissions == []
    assert found.unmatched == ["the umbrella"]
    assert found.refused == [
        ("is Friday right?", "it neither praises nor blames"),
        ("no slides", "the answer does contain what it says is missing"),
        ("the umbrella is wrong", "it fits no part of the answer"),
        (COMMENT, "it fits no part of the answer"),
    ]


def test_the_whole_answer_is_one_span_and_words_blamed_twice_are_blamed_once() -> None:
    parts = [
        Part("Nice", "good", is_whole=True),
        Part("Nice again", "good", is_whole=True),
        Part("dates", "poor", ("Friday", "noon"), instead="Monday"),  # of which of the two?
    ]
    found = locate_parts(parts, COMMENT, ANSWER, "mia", threshold=0.75)
    assert [(s.start, s.end, s.match, s.replacement) for s in found.spans] == [
        (0, len(ANSWER), "whole", None),
        (11, 17, "exact", None),
        (21, 25, "exact", None),
    ]


def test_praise_and_what_is_there_already_replace_nothing() -> None:
    parts = [Part("a", "good", ("Friday",), instead="Monday"), Part("b", "poor", ("noon",), instead="noon")]
    assert [s.replacement for s in locate_parts(parts, COMMENT, ANSWER, "mia", 0.75).spans] == [None, None]
