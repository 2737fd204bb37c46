"""Reading replies as models write them, without making anything up."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.critics.llm.reply import Missing, Quoted, Reply, UnreadableError, read_reply

PLAIN = {
    "reasoning": "It says May.",
    "critique": 'The month isn\'t right, and "fox" is.',
    "spans": [
        {"quote": "in May", "phrase": "The month", "label": "poor", "severity": "major"},
        {"quote": "fox", "phrase": '"fox" is', "label": "good", "severity": "minor"},
    ],
    "omissions": [{"text": "the cat", "phrase": "month", "severity": "moderate"}],
}
READ = Reply(
    critique=PLAIN["critique"],
    reasoning="It says May.",
    spans=[Quoted("in May", "The month", "poor", 1.0), Quoted("fox", '"fox" is', "good", 0.3)],
    omissions=[Missing("the cat", "month", 0.6)],
)
JSON = json.dumps(PLAIN)


@pytest.mark.parametrize(
    "raw",
    [
        JSON,
        f"```json\n{JSON}\n```",
        f"Here is my review:\n\n{JSON}\n\nI hope that helps {{you}}!",
        f"<think>Perhaps {{'critique': 'draft'}}?</think>{JSON}",
        f"Perhaps {{'critique': 'draft', 'spans': []}}? No.</think>{JSON}",
        f"The set {{1, 2}} first. {JSON}",
        json.dumps(PLAIN, indent=2),
        repr(PLAIN),
        JSON.replace('"}]}', '",},],}'),
        JSON.replace('\\"fox\\"', '"fox"'),
        JSON.replace('"', "'").replace("\\'fox\\'", '"fox"'),
    ],
    ids=[
        "plain",
        "fence",
        "prose",
        "thoughts",
        "end of thoughts",
        "braces",
        "indented",
        "python",
        "commas",
        "unescaped",
        "single quotes",
    ],
)
def test_wrappings_do_not_matter(raw):
    assert read_reply(raw) == READ


def test_unescaped_quotation_marks_before_a_comma():
    assert read_reply('{"critique": "He said "no", then left", "spans": []}').critique == 'He said "no", then left'


def test_line_breaks_inside_strings_are_kept():
    assert read_reply('{"critique": "One.\nTwo."}').critique == "One.\nTwo."


@pytest.mark.parametrize("length", range(len(JSON)))
def test_a_cut_reply_yields_only_what_was_finished(length):
    """Every prefix: either unreadable, or the whole critique and the first finished spans and omissions."""
    try:
        read = read_reply(JSON[:length])
    except UnreadableError:
        assert length < JSON.index(', "spans"')
        return
    assert (read.critique, read.reasoning) == (READ.critique, READ.reasoning)
    for got, whole in ((read.spans, READ.spans), (read.omissions, READ.omissions)):
        for part, full in zip(got, whole, strict=False):
            assert part.severity in (full.severity, 1.0)
            assert part.phrase in (full.phrase, None)
        assert len(got) <= len(whole)
    assert [span.quote for span in read.spans] == [span.quote for span in READ.spans][: len(read.spans)]
    assert [span.label for span in read.spans] == [span.label for span in READ.spans][: len(read.spans)]
    assert read.unread in ([], ["in May"], ["fox"])


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("", "there is no JSON object"),
        ("Great answer!", "there is no JSON object"),
        ("{not json at all}", "is not JSON"),
        ('{"reasoning": "I think"}', "no finished critique"),
        ('{"critique": "It is wro', "no finished critique"),
        ('{"critique": "..."}', "no finished critique"),
        ('{"critique": 7}', "no finished critique"),
        ('{"critique": "He said "no", "never" and left", "spans": []}', "is not JSON"),
        ("{" * 5000, "is not JSON"),
        ('{"a":' * 5000, "is not JSON"),
    ],
)
def test_what_cannot_be_read_is_an_error(raw, why):
    with pytest.raises(UnreadableError, match=why):
        read_reply(raw)


@pytest.mark.parametrize(
    ("span", "spans", "unread"),
    [
        ({"quote": "fox", "label": "Negative "}, [Quoted("fox", None, "poor")], []),
        ({"quote": "fox", "label": "praise", "severity": 0.25}, [Quoted("fox", None, "good", 0.25)], []),
        ({"quote": "fox", "label": "poor", "severity": 7}, [Quoted("fox", None, "poor", 1.0)], []),
        ({"quote": "fox", "label": "poor", "severity": True}, [Quoted("fox", None, "poor", 1.0)], []),
        ({"quote": "==", "label": "poor"}, [Quoted("==", None, "poor")], []),
        ({"quote": "fox", "label": "so-so"}, [], ["fox"]),
        ({"quote": "fox"}, [], ["fox"]),
        ("fox", [], ["fox"]),
        ({"label": "poor"}, [], []),
        ({"quote": " ", "label": "poor"}, [], []),
        (None, [], []),
    ],
)
def test_a_span_without_a_readable_label_is_not_given_one(span, spans, unread):
    reply = read_reply(json.dumps({"critique": "c", "spans": [span]}))
    assert (reply.spans, reply.unread) == (spans, unread)


@pytest.mark.parametrize("value", [None, "none", 3, {}])
def test_spans_that_are_no_list_are_none(value):
    assert read_reply(json.dumps({"critique": "c", "spans": value, "omissions": value})) == Reply("c")


def test_omissions_may_be_plain_strings():
    assert read_reply('{"critique": "c", "omissions": ["the cat"]}').omissions == [Missing("the cat")]


@given(st.text(max_size=200))
def test_no_text_crashes_the_reader(text):
    for raw in (text, "{" + text, '{"critique": "' + text, "{'critique': '" + text + "'}"):
        with contextlib.suppress(UnreadableError):
            assert isinstance(read_reply(raw), Reply)


@given(st.text(max_size=60), st.text(max_size=60))
def test_valid_json_is_read_as_it_is(critique, quote):
    raw = json.dumps({"critique": f"c{critique}", "spans": [{"quote": f"q{quote}", "label": "good"}]})
    reply = read_reply(raw)
    assert reply.critique == f"c{critique}".strip()
    assert reply.spans == [Quoted(f"q{quote}".strip(), None, "good")]


def test_a_reply_may_speak_of_thoughts_and_one_that_never_ends_thinking_says_nothing():
    said = {"critique": "The <think> block should go", "spans": [{"quote": "</think>", "label": "poor"}]}
    assert [span.quote for span in read_reply(json.dumps(said)).spans] == ["</think>"]
    with pytest.raises(UnreadableError):
        read_reply(f"<think>Perhaps {JSON}")
