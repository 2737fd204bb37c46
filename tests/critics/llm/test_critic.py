"""LLMCritic against a server that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from text2grad.critics.llm.critic import LLMCritic
from text2grad.errors import UserError
from text2grad.schema import Example

ANSWER = "The fox jumped over the dog in May. The dog slept."
GOOD_REPLY = json.dumps(
    {
        "reasoning": "The task says June.",
        "critique": "The month is wrong. The sleeping dog is right.",
        "spans": [
            {"quote": "in May", "phrase": "The month is wrong", "label": "poor", "severity": "major"},
            {"quote": "The dog slept", "phrase": "sleeping dog", "label": "good", "severity": "minor"},
        ],
        "omissions": [{"text": "the cat", "phrase": "not in the critique at all", "severity": "moderate"}],
    }
)


def example(**fields):
    return Example.model_validate({"id": "1", "prompt": "What did the fox do?", "completion": ANSWER, **fields})


def test_quotes_become_spans_and_phrases_point_into_the_critique(server, critic, completion):
    server.script = [completion(GOOD_REPLY)]
    (feedback,) = critic().critique([example()])

    assert feedback.status == "ok"
    assert [ANSWER[span.start : span.end] for span in feedback.spans] == ["in May", "The dog slept"]
    assert [(span.label, span.severity, span.match) for span in feedback.spans] == [
        ("poor", 1.0, "exact"),
        ("good", 0.3, "exact"),
    ]
    assert [feedback.critique[slice(*span.phrase)] for span in feedback.spans] == ["The month is wrong", "sleeping dog"]
    assert [(omission.text, omission.severity, omission.phrase) for omission in feedback.omissions] == [
        ("the cat", 0.6, None)
    ]
    assert feedback.reasoning == "The task says June."
    assert feedback.raw == GOOD_REPLY
    assert feedback.critic == "llm:m"


def test_the_schema_asks_for_reasons_first(server, critic, completion):
    server.script = [completion(GOOD_REPLY)]
    critic().critique([example()])
    schema = server.requests[0]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["reasoning", "critique", "spans", "omissions"]
    assert list(schema["properties"]["spans"]["items"]["properties"]) == [
        "quote",
        "phrase",
        "label",
        "severity",
        "instead",
    ]


def test_the_same_words_blamed_twice_are_blamed_once(server, critic, completion):
    reply = json.loads(GOOD_REPLY)
    reply["spans"] = [reply["spans"][0]] * 3
    server.script = [completion(json.dumps(reply))]
    (feedback,) = critic().critique([example()])
    assert [ANSWER[span.start : span.end] for span in feedback.spans] == ["in May"]


def test_quotes_that_are_not_in_the_answer_are_listed(server, critic, completion):
    reply = json.loads(GOOD_REPLY)
    reply["spans"][0]["quote"] = "an entirely different sentence about submarines"
    server.script = [completion(json.dumps(reply))]
    (feedback,) = critic().critique([example()])
    assert feedback.status == "ok"
    assert len(feedback.spans) == 1
    assert feedback.unmatched == ["an entirely different sentence about submarines"]


def test_feedback_none_of_whose_quotes_is_in_the_answer_is_failed(server, critic, completion):
    reply = json.loads(GOOD_REPLY)
    reply["spans"] = [{"quote": "submarines sank", "phrase": "x", "label": "poor", "severity": "major"}]
    server.script = [completion(json.dumps(reply))]
    (feedback,) = critic().critique([example()])
    assert feedback.status == "failed"
    assert feedback.error == "unmatched: none of the 1 quotes is in the completion"
    assert feedback.unmatched == ["submarines sank"]
    assert feedback.raw


def test_an_unreadable_reply_is_failed_and_kept(server, critic, completion):
    server.script = [completion("I liked it a lot!")]
    (feedback,) = critic().critique([example()])
    assert (feedback.status, feedback.raw) == ("failed", "I liked it a lot!")
    assert feedback.error == "unreadable: the reply has no JSON object"


def test_a_reply_truncated_at_the_token_limit_says_so(server, critic, completion):
    server.script = [completion('{"reasoning": "It is', finish="length")]
    (feedback,) = critic(max_tokens=7).critique([example()])
    assert (
        feedback.error == "truncated: the reply reached max_tokens (7); unreadable: the reply has no finished critique"
    )


@pytest.mark.parametrize(
    ("status", "headers"),
    [(429, {"Retry-After": "0.2"}), (500, {}), (503, {"Retry-After": "0.2"}), (408, {})],
)
def test_transient_errors_are_retried(server, critic, completion, served, status, headers):
    server.script = [served(status, "busy", headers), completion(GOOD_REPLY)]
    (feedback,) = critic().critique([example()])
    assert feedback.status == "ok"
    waited = server.arrivals[1] - server.arrivals[0]
    assert waited >= 0.2 if headers else waited < 0.2


@pytest.mark.parametrize("trouble", ["cut", "hang", "garbage", "half", "no choices"])
def test_broken_responses_are_retried(server, critic, completion, served, trouble):
    broken = {
        "cut": served(body=completion(GOOD_REPLY).body, cut=True),
        "hang": served(body="{}", delay=0.6),
        "garbage": served(body="<html>a proxy's page</html>"),
        "half": served(body=completion(GOOD_REPLY).body[:40]),
        "no choices": served(body='{"choices": []}'),
    }
    server.script = [broken[trouble], completion(GOOD_REPLY)]
    (feedback,) = critic(timeout=0.3).critique([example()])
    assert feedback.status == "ok"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("always", "cause"),
    [((500, "boom"), "http 500: boom"), ((200, "]["), "garbage: the response is not a chat completion")],
)
def test_persistent_errors_fail_after_the_retries(server, critic, served, always, cause):
    server.always = served(*always)
    (feedback,) = critic(max_retries=2).critique([example()])
    assert (feedback.status, feedback.error) == ("failed", cause)
    assert len(server.requests) == 3
    assert feedback.raw == always[1]


def test_a_failure_does_not_affect_other_examples(server, critic, completion, served):
    server.script = [served(413, "too large"), completion(GOOD_REPLY), completion(GOOD_REPLY)]
    first, second, third = critic(concurrency=1).critique([example(id=str(i)) for i in range(3)])
    assert first.error == "http 413: too large"
    assert second.status == third.status == "ok"


def test_a_refusal_is_failed(server, critic, completion):
    server.script = [completion(None, refusal="I must not.")]
    (feedback,) = critic().critique([example()])
    assert feedback.error == "refused: the model declined to answer"
    assert feedback.raw == "I must not."


def test_a_server_without_schemas_is_detected_once(server, critic, completion, served):
    server.script = [served(422, "Unexpected fields"), completion(GOOD_REPLY), completion(GOOD_REPLY)]
    feedback = critic(concurrency=1).critique([example(id="1"), example(id="2")])
    assert [f.status for f in feedback] == ["ok", "ok"]
    assert ["response_format" in request for request in server.requests] == [True, False, False]


def test_a_bad_request_is_not_attributed_to_a_schema_that_was_accepted(server, critic, completion, served):
    server.script = [completion(GOOD_REPLY), served(400, "too many tokens"), completion(GOOD_REPLY)]
    feedback = critic(concurrency=1).critique([example(id=str(i)) for i in range(3)])
    assert [f.error for f in feedback] == [None, "http 400: too many tokens", None]
    assert all("response_format" in request for request in server.requests)


def test_rejected_parameters_are_renamed_or_dropped(server, critic, completion, served):
    server.script = [
        served(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        served(400, "'temperature' does not support 0"),
        completion(GOOD_REPLY),
        completion(GOOD_REPLY),
    ]
    critic(concurrency=1, max_tokens=99).critique([example(id="1"), example(id="2")])
    for request in server.requests[2:]:
        assert request["max_completion_tokens"] == 99
        assert "temperature" not in request
        assert "max_tokens" not in request
        assert "response_format" in request
    assert len(server.requests) == 4


def test_concurrency_is_bounded_and_used(server, critic, completion, served):
    server.always = served(body=completion(GOOD_REPLY).body, delay=0.1)
    feedback = critic(concurrency=4).critique([example(id=str(i)) for i in range(12)])
    assert all(f.status == "ok" for f in feedback)
    assert server.max_in_flight == 4


def test_it_works_inside_a_running_loop(server, critic, completion):
    server.always = completion(GOOD_REPLY)
    made = critic()

    async def notebook():
        waited = made.critique([example()])
        (awaited,) = await made.acritique([example()])
        await made.aclose()
        return [*waited, awaited]

    assert [f.status for f in asyncio.run(notebook())] == ["ok", "ok"]


def test_an_unreachable_endpoint_aborts_the_run():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    dead = LLMCritic(model="m", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
    with pytest.raises(UserError, match=r"is down: connection: .*check that the server runs"):
        dead.critique([example()])


def test_an_endpoint_that_goes_down_aborts_the_run(server, critic, completion, served):
    server.script = [completion(GOOD_REPLY)]
    server.always = served(502, "no upstream")
    dying = critic(concurrency=1, max_retries=1, breaker_failures=3, breaker_seconds=0)
    with pytest.raises(UserError, match=r"is down: 3 requests in a row failed .* http 502: no upstream"):
        dying.critique([example(id=str(i)) for i in range(20)])
    assert len(server.requests) == 7


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (401, "who?", r"rejects the key \(HTTP 401\); put a valid one into the environment variable OPENAI_API_KEY"),
        (404, "", 'has no model "m"'),
        (429, '{"error": {"code": "insufficient_quota"}}', "has no credit left"),
    ],
)
def test_errors_that_concern_every_record_abort_the_run(server, critic, served, status, body, sentence):
    server.always = served(status, body)
    with pytest.raises(UserError, match=sentence):
        critic(max_retries=0).critique([example(), example(id="2")])


def test_tokens_and_cost_are_counted(server, critic, completion):
    server.always = completion(GOOD_REPLY, tokens=(1000, 500))
    priced = critic(price_in=2.0, price_out=8.0)
    priced.critique([example(id="1"), example(id="2")])
    assert (priced.ledger.tokens_in, priced.ledger.tokens_out) == (2000, 1000)
    assert priced.ledger.cost == pytest.approx(2000 * 2e-6 + 1000 * 8e-6)


def test_the_maximum_cost_is_never_exceeded(server, critic, completion):
    server.always = completion(GOOD_REPLY, tokens=(1000, 500))
    priced = critic(price_in=2.0, price_out=8.0, max_cost=0.05, max_tokens=1000, concurrency=4)
    with pytest.raises(UserError, match=r"may exceed the maximum cost of 0\.05"):
        priced.critique([example(id=str(i)) for i in range(100)])
    assert 0 < priced.ledger.cost <= 0.05


def test_the_maximum_cost_holds_without_token_counts(server, critic, completion):
    server.always = completion(GOOD_REPLY, tokens=None)
    priced = critic(price_in=1.0, price_out=1.0, max_cost=0.01, max_tokens=500, concurrency=1)
    with pytest.raises(UserError, match="maximum cost"):
        priced.critique([example(id=str(i)) for i in range(100)])


def test_wrong_token_counts_do_not_fail_the_example(server, critic, completion, served):
    body = completion(GOOD_REPLY, tokens=(7, 7)).body
    server.script = [
        served(body=body.replace('"completion_tokens": 7', wrong)) for wrong in ('"x": 1', '"completion_tokens": -7')
    ]
    counting = critic(max_retries=0)
    assert [f.status for f in counting.critique([example(id="1"), example(id="2")])] == ["ok", "ok"]
    assert (counting.ledger.tokens_in, counting.ledger.tokens_out) == (0, 0)


def test_a_number_of_thousands_of_digits_does_not_abort(server, critic, completion):
    server.always = completion(GOOD_REPLY.replace('"major"', "1" * 6000))
    (feedback,) = critic(max_retries=0).critique([example()])
    assert feedback.status in ("ok", "failed")


def test_a_trailing_line_break_of_the_key_is_stripped_and_other_control_characters_are_rejected(
    server, critic, completion, monkeypatch
):
    server.always = completion(GOOD_REPLY)
    monkeypatch.setenv("MY_KEY", "sk-secret-0123456789\n")
    critic(api_key_env="MY_KEY").critique([example()])
    assert server.keys[0] == "Bearer sk-secret-0123456789"
    monkeypatch.setenv("MY_KEY", "sk-secret\n0123456789")
    with pytest.raises(UserError, match="MY_KEY is not a key: it has unprintable") as refused:
        critic(api_key_env="MY_KEY")
    assert "secret" not in str(refused.value)


def test_an_address_in_the_environment_must_contain_no_key_either(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:hunter2@host/v1")
    with pytest.raises(UserError, match="the address must contain no key") as refused:
        LLMCritic(model="m")
    assert "hunter2" not in str(refused.value)


def test_the_key_goes_to_the_server_and_nowhere_else(server, critic, completion, served, monkeypatch, caplog, capfd):
    key = "sk-secret-0123456789"
    escaped = key.replace("-", "\\u002d")
    monkeypatch.setenv("MY_KEY", key)
    server.script = [
        completion(f"your key is {key}"),
        served(body=completion("X").body.replace("X", f"your key is {escaped}")),
        served(413, f"{key} sent too much"),
        served(body=f"garbage {key}"),
        served(body=f"garbage {key}"),
    ]
    made = critic(api_key_env="MY_KEY", max_retries=1, concurrency=1)
    with caplog.at_level(logging.DEBUG):
        feedback = made.critique([example(id=str(i)) for i in range(4)])
        server.always = served(401, f"{key} is wrong")
        with pytest.raises(UserError) as refused:
            made.critique([example()])
    assert server.keys[0] == f"Bearer {key}"
    assert feedback[0].raw == feedback[1].raw == "your key is [key]"
    written = [f.model_dump_json() for f in feedback]
    written += [str(refused.value), repr(refused.value.__cause__), caplog.text, *capfd.readouterr()]
    written += [made.fingerprint(), repr(made), repr(made.settings), made.settings.model_dump_json()]
    assert not [text for text in written if key in text]


@pytest.mark.parametrize("surrogate", ["\ud800", "\\ud800"], ids=["in the response", "in the reply"])
def test_a_lone_surrogate_does_not_break_the_record(server, critic, completion, surrogate):
    server.script = [completion(GOOD_REPLY.replace("The month", f"The month {surrogate}"))]
    (feedback,) = critic().critique([example()])
    feedback.model_dump_json().encode()
    assert feedback.critique.startswith("The month \ufffd is wrong")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "critic llm: no model is named; give its name on the server, as `annotate --llm-model qwen3`"),
        ({"model": "m", "timout": 1}, 'critic llm: unknown key "timout"; did you mean "timeout"?'),
        ({"model": "m", "base_url": "localhost:8000"}, "base_url: not an http or https address"),
        ({"model": "m", "base_url": "http://me:sk-1@host/v1"}, "must contain no key"),
        ({"model": "m", "base_url": "http://host/v1?key=sk-1"}, "must contain no key"),
        ({"model": "m", "base_url": "http://host/v1", "max_cost": 1}, "max_cost: it needs price_in and price_out"),
        ({"model": "m"}, "needs a key; put it into the environment variable OPENAI_API_KEY"),
    ],
)
def test_invalid_settings_are_rejected_by_name(monkeypatch, options, sentence):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError) as error:
        LLMCritic(**options)
    assert sentence in str(error.value)
    assert "sk-1" not in str(error.value)


def test_the_fingerprint_covers_what_the_feedback_depends_on(critic, tmp_path: Path):
    own = tmp_path / "own.md"
    own.write_text("Judge {{ completion }}")
    prints = [
        critic().fingerprint(),
        critic(model="other").fingerprint(),
        critic(temperature=1.0).fingerprint(),
        critic(task="code").fingerprint(),
        critic(prompt=own).fingerprint(),
    ]
    own.write_text("Judge well: {{ completion }}")
    prints.append(critic(prompt=own).fingerprint())
    assert len(set(prints)) == len(prints)
    assert critic(concurrency=3, timeout=1, price_in=5, max_retries=0).fingerprint() == prints[0]


def test_without_openai_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(UserError, match=r'the llm critic needs the package openai: pip install "text2grad\[llm\]"'):
        LLMCritic(model="m", base_url="http://localhost:8000/v1")


def test_importing_the_critic_does_not_import_openai():
    code = "import sys, text2grad.critics.llm.critic; print('openai' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
