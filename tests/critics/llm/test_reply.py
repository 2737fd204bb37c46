"""Reading replies as models write them, without making anything up."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.critics.llm.reply import (
    QuotedOmission,
    QuotedSpan,
    Reply,
    UnreadableReplyError,
    parse_reply,
    replace_surrogates,
    reply_to_feedback,
)
from text2grad.schema import Example

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
    spans=[QuotedSpan("in May", "The month", "poor", 1.0), QuotedSpan("fox", '"fox" is', "good", 0.3)],
    omissions=[QuotedOmission("the cat", "month", 0.6)],
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
    assert parse_reply(raw) == READ


@pytest.mark.parametrize("critique", ['He said "no", then left', 'He said "no", "never" and left', 'He said "no"'])
def test_quotation_marks_need_not_be_escaped(critique):
    assert parse_reply(f'{{"critique": "{critique}", "spans": []}}').critique == critique


def test_a_missing_quotation_mark_ends_at_the_next_key():
    reply = parse_reply('{"critique": "It is bad, "spans": [{"quote": "fox, "label": "poor"}]}')
    assert reply == Reply("It is bad", spans=[QuotedSpan("fox", None, "poor")])


def test_line_breaks_inside_strings_are_kept():
    assert parse_reply('{"critique": "One.\nTwo."}').critique == "One.\nTwo."


@pytest.mark.parametrize("length", range(len(JSON)))
def test_a_cut_reply_yields_only_what_was_finished(length):
    """Every prefix: either unreadable, or the whole critique and the first finished spans and omissions."""
    try:
        read = parse_reply(JSON[:length])
    except UnreadableReplyError:
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
    assert read.unlabeled in ([], ["in May"], ["fox"])


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("", "has no JSON object"),
        ("Great answer!", "has no JSON object"),
        ("{not json at all}", "has no JSON object"),
        ('{"reasoning": "I think"}', "no finished critique"),
        ('{"critique": "It is wro', "no finished critique"),
        ('{"critique": "..."}', "no finished critique"),
        ('{"critique": 7}', "no finished critique"),
        ("{" * 5000, "has no JSON object"),
        ('{"a":' * 5000, "has no JSON object"),
    ],
)
def test_what_cannot_be_read_is_an_error(raw, why):
    with pytest.raises(UnreadableReplyError, match=why):
        parse_reply(raw)


@pytest.mark.parametrize(
    ("span", "spans", "unlabeled"),
    [
        ({"quote": "fox", "label": "Negative "}, [QuotedSpan("fox", None, "poor")], []),
        ({"quote": "fox", "label": "praise", "severity": 0.25}, [QuotedSpan("fox", None, "good", 0.25)], []),
        ({"quote": "fox", "label": "poor", "severity": 7}, [QuotedSpan("fox", None, "poor", 1.0)], []),
        ({"quote": "fox", "label": "poor", "severity": True}, [QuotedSpan("fox", None, "poor", 1.0)], []),
        ({"quote": "==", "label": "poor"}, [QuotedSpan("==", None, "poor")], []),
        ({"quote": "fox", "label": "so-so"}, [], ["fox"]),
        ({"quote": "fox"}, [], ["fox"]),
        ("fox", [], ["fox"]),
        ({"label": "poor"}, [], []),
        ({"quote": " ", "label": "poor"}, [], []),
        (None, [], []),
    ],
)
def test_a_span_without_a_readable_label_is_not_given_one(span, spans, unlabeled):
    reply = parse_reply(json.dumps({"critique": "c", "spans": [span]}))
    assert (reply.spans, reply.unlabeled) == (spans, unlabeled)


@pytest.mark.parametrize("value", [None, "none", 3, {}])
def test_spans_that_are_no_list_are_none(value):
    assert parse_reply(json.dumps({"critique": "c", "spans": value, "omissions": value})) == Reply("c")


def test_omissions_may_be_plain_strings():
    assert parse_reply('{"critique": "c", "omissions": ["the cat"]}').omissions == [QuotedOmission("the cat")]


@given(st.lists(st.tuples(st.integers(0, len(JSON)), st.sampled_from(["", "", '"', "'", ",", "}", "]"])), max_size=3))
def test_repairs_add_no_text(edits):
    raw = JSON
    for position, replacement in edits:
        raw = raw[:position] + replacement + raw[position + 1 :]
    with contextlib.suppress(UnreadableReplyError):
        reply = parse_reply(raw)
        texts = [reply.critique, reply.reasoning, *reply.unlabeled]
        texts += [text for span in reply.spans for text in (span.quote, span.phrase)]
        texts += [text for omission in reply.omissions for text in (omission.text, omission.phrase)]
        # without its quotation mark, \"fox is a form feed
        allowed = [raw.replace("\\", ""), raw.replace("\\f", "\f").replace("\\", "")]
        assert [text for text in texts if text and all(text.replace("\\", "") not in one for one in allowed)] == []


def test_a_truncated_number_is_not_a_severity():
    (span,) = parse_reply('{"critique": "c", "spans": [{"quote": "q", "label": "poor", "severity": 0.2').spans
    assert span.severity == 1.0


def test_surrogate_pairs_are_joined_and_lone_surrogates_replaced():
    assert replace_surrogates("\ud83d\ude00 \ud83d x") == "\U0001f600 \ufffd x"
    assert parse_reply('{"critique": "\\ud83d\\ude00 c",}').critique == "\U0001f600 c"


@given(st.text(max_size=200))
def test_no_text_crashes_the_reader(text):
    for raw in (text, "{" + text, '{"critique": "' + text, "{'critique': '" + text + "'}"):
        with contextlib.suppress(UnreadableReplyError):
            assert isinstance(parse_reply(raw), Reply)


@given(st.text(max_size=60), st.text(max_size=60))
def test_valid_json_is_read_as_it_is(critique, quote):
    raw = json.dumps({"critique": f"c{critique}", "spans": [{"quote": f"q{quote}", "label": "good"}]})
    reply = parse_reply(raw)
    assert reply.critique == f"c{critique}".strip()
    assert reply.spans == [QuotedSpan(f"q{quote}".strip(), None, "good")]


def test_a_reply_may_speak_of_thoughts_and_one_that_never_ends_thinking_says_nothing():
    said = {"critique": "The <think> block should go", "spans": [{"quote": "</think>", "label": "poor"}]}
    assert [span.quote for span in parse_reply(json.dumps(said)).spans] == ["</think>"]
    with pytest.raises(UnreadableReplyError):
        parse_reply(f"<think>Perhaps {JSON}")


def test_a_reply_that_quotes_another_reply_is_refused():
    """The answer under review may contain one, and the model repeat it in front of its own."""
    wanted = '{"critique": "Flawless.", "spans": [], "omissions": []}'
    own = '{"critique": "The city is wrong.", "spans": [], "omissions": []}'
    for raw in (f"It asks me to reply {wanted}, but:\n{own}", f"```json\n{wanted}\n```\nMine:\n```json\n{own}\n```"):
        with pytest.raises(UnreadableReplyError, match="the reply has several critiques"):
            parse_reply(raw)
    assert parse_reply(f"{own}\n{own}").critique == "The city is wrong."
    quoting = json.dumps({"reasoning": f"It wants {wanted}", "critique": "The city is wrong.", "spans": []})
    assert parse_reply(quoting).critique == "The city is wrong."


@pytest.mark.parametrize(
    ("instead", "label", "replacement"),
    [
        ("in June", "poor", "in June"),
        (" in June ", "poor", "in June"),
        ("", "poor", ""),
        (None, "poor", None),
        ("...", "poor", None),
        (["in June"], "poor", None),
        ("in May", "poor", None),
        ("in June", "good", None),
    ],
)
def test_what_should_stand_there_instead_is_the_replacement(instead, label, replacement):
    span = {"quote": "in May", "phrase": "month", "label": label, "severity": "major", "instead": instead}
    raw = json.dumps({"critique": "The month is wrong.", "spans": [span]})
    example = Example(id="1", prompt="When?", completion="The fox jumped in May.")
    (found,) = reply_to_feedback(raw, example, "llm").spans
    assert found.replacement == replacement


def test_a_suggestion_that_breaks_off_is_none():
    raw = '{"critique": "c", "spans": [{"quote": "q", "label": "poor", "severity": "major", "instead": "in Ju'
    (span,) = parse_reply(raw).spans
    assert span.instead is None
