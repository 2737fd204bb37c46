from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch
from fastapi.testclient import TestClient
from pydantic import ValidationError
from serving_support import FirstWord, running
from support import restore_sigint

from text2grad.errors import UserError
from text2grad.models.loading import load_model, load_tokenizer
from text2grad.reward_model.feedback import FeedbackSettings
from text2grad.reward_model.inputs import InputSettings
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.network import SpanRewardNetwork
from text2grad.reward_model.serving.app import ServeSettings, create_app, serve
from text2grad.reward_model.settings import RewardModelSettings
from text2grad.schema import Example, Feedback, Span

ONE = {"prompt": "What is it?", "completion": "It is a fox."}
WORDS = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog;", "naïve", "🦊", "foxes,", "too."]


@pytest.fixture
def critic() -> FirstWord:
    return FirstWord()


@pytest.fixture
def client(critic: FirstWord) -> Iterator[TestClient]:
    settings = ServeSettings(
        name="fox", max_examples=3, max_queue_size=4, max_completion_chars=100, max_body_bytes=2000
    )
    with TestClient(create_app(critic, settings), base_url="http://localhost") as client:
        yield client


def score(client: TestClient, *examples: Any) -> Any:
    return client.post("/v1/score", json={"examples": examples})


def test_one_feedback_per_example_in_order(client, critic):
    conversation = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What?"}]

    response = score(client, {**ONE, "id": "mine"}, {"prompt": conversation, "completion": "A \U0001f98a."})

    assert response.status_code == 200
    feedback = [Feedback.model_validate(said) for said in response.json()["feedback"]]
    assert [said.critique for said in feedback] == ["What is it?", "Be brief.\n\nWhat?"]
    assert feedback[0].spans == [Span(start=0, end=1, label="poor", severity=0.25, critic="first")]
    assert [(example.id, example.completion) for example in critic.seen] == [
        ("mine", "It is a fox."),
        ("1", "A \U0001f98a."),
    ]


def test_health_names_the_model_and_the_queue_size(client):
    assert client.get("/health").json() == {"model": "fox", "queue_size": 0}


def test_the_documentation_holds_the_types(client):
    page = client.get("/openapi.json").json()
    assert {"ScoreRequest", "ScoreExample", "Message", "ScoreResponse", "Feedback", "Span"} <= set(
        page["components"]["schemas"]
    )
    assert set(page["paths"]["/v1/score"]["post"]["responses"]) == {
        *("200", "400", "403", "408", "413", "421", "422", "431", "503")
    }


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b"", 422, "body: Field required"),
        (b'{"examples": [', 422, "body[14]: JSON decode error"),
        (b'{"examples": "\xff\xfe"}', 400, "There was an error parsing the body"),
        (b'{"examples": "\\ud800"}', 422, "examples: Input should be a valid list"),
        (
            b'{"examples": [{"prompt": "p", "completion": "c", "\\ud800": 1}]}',
            422,
            "examples[0]: Input should be a valid",
        ),
        (b'{"examples": NaN}', 422, "examples: Input should be a valid list"),
        (b"[" * 1900, 400, "There was an error parsing the body"),
        (b"null", 422, "body: Input should be a valid dictionary"),
        (b"[]", 422, "body: Input should be a valid dictionary"),
        (b"{}", 422, "examples: Field required"),
        (b'{"exampels": []}', 422, "examples: Field required"),
        (b'{"examples": []}', 422, "examples: List should have at least 1 item"),
        (b'{"examples": [7]}', 422, "examples[0]: Input should be a valid dictionary"),
        (b'{"examples": [{"prompt": "p"}]}', 422, "examples[0].completion: Field required"),
        (b'{"examples": [{"prompt": "p", "completion": "c", "x": 1}]}', 422, "examples[0].x: Extra inputs"),
        (b'{"examples": [{"prompt": "p", "completion": 1e999}]}', 422, "examples[0].completion: Input should be a"),
        (
            b'{"examples": [{"prompt": 7, "completion": "c"}]}',
            422,
            "examples[0].prompt: Input should be a valid string",
        ),
        (
            b'{"examples": [{"prompt": ["p"], "completion": "c"}]}',
            422,
            "examples[0].prompt[0]: Input should be a valid",
        ),
        (
            b'{"examples": [{"prompt": [{"role": "boss", "content": "p"}], "completion": "c"}]}',
            422,
            "examples[0].prompt[0].role: Input should be 'system', 'user', 'assistant' or 'tool'",
        ),
    ],
)
def test_an_invalid_body_is_explained_in_a_sentence(client, critic, body, status, detail):
    response = client.post("/v1/score", content=body, headers={"Content-Type": "application/json"})

    assert response.status_code == status
    assert detail in response.json()["detail"]
    assert critic.seen == []
    assert score(client, ONE).status_code == 200


@pytest.mark.parametrize(
    ("examples", "detail"),
    [
        ([ONE] * 4, "examples: 4 entries are more than 3; split the request"),
        (
            [ONE, {**ONE, "completion": "x" * 101}],
            "examples[1].completion: 101 characters are more than 100; shorten it",
        ),
    ],
)
def test_requests_over_a_limit_are_rejected_by_name(client, examples, detail):
    response = score(client, *examples)
    assert response.status_code == 422
    assert detail in response.json()["detail"]


def test_a_large_body_is_refused(client):
    response = score(client, {**ONE, "prompt": "x" * 2000})
    assert response.status_code == 413
    assert "larger than 2000 bytes" in response.json()["detail"]


def test_only_json_is_read(client):
    response = client.post("/v1/score", content=b"{}", headers={"Content-Type": "text/plain"})
    assert response.status_code == 422
    assert "body: Input should be a valid dictionary" in response.json()["detail"]


@pytest.mark.parametrize(
    "hostile",
    [
        b'{"examples": [' + b"{}," * 300_000 + b"{}]}",
        b'{"examples": [{' + b",".join(b'"%d":0' % i for i in range(80_000)) + b"}]}",
        b'{"examples": [{"' + b"x" * 1_000_000 + b'": 0}]}',
        b'{"examples": [{"prompt": [' + b"{}," * 300_000 + b"{}]}]}",
    ],
    ids=["examples", "fields", "one field", "messages"],
)
def test_a_body_full_of_mistakes_is_refused_at_the_first(critic, hostile):
    with TestClient(create_app(critic, ServeSettings()), base_url="http://localhost") as client:
        began = time.process_time()
        response = client.post("/v1/score", content=hostile, headers={"Content-Type": "application/json"})
        assert time.process_time() - began < 1
    assert response.status_code == 422
    assert len(response.content) < 300


def test_a_full_queue_gets_503_with_retry_after(client, critic):
    critic.go.clear()
    answers = []
    first = threading.Thread(target=lambda: answers.append(score(client, ONE)))
    first.start()
    _until(lambda: len(critic.seen) == 1)
    waiting = [threading.Thread(target=lambda: answers.append(score(client, ONE, ONE))) for _ in range(2)]
    for thread in waiting:
        thread.start()
    _until(lambda: client.get("/health").json()["queue_size"] == 4)

    refused = score(client, ONE)

    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) >= 1
    assert refused.json()["detail"] == "4 examples are already queued: retry later"
    critic.go.set()
    for thread in (first, *waiting):
        thread.join()
    assert [answer.status_code for answer in answers] == [200] * 3


def test_a_queue_smaller_than_a_request_is_rejected():
    with pytest.raises(ValidationError, match="max_queue_size is 10 but a request may have 64 examples"):
        ServeSettings(max_queue_size=10)


def test_a_port_in_use_is_an_error_that_one_can_fix(critic):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{port}: .*; choose another --host or --port"):
            serve(critic, ServeSettings(port=port))


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid", "a..b"])
def test_a_host_that_is_not_ours_is_an_error_that_one_can_fix(critic, host):
    with pytest.raises(UserError, match=f"cannot listen on {re.escape(host)}:0: .+; choose another --host or --port"):
        serve(critic, ServeSettings(host=host, port=0))


def test_small_answers_are_sent_at_once(critic):
    with running(critic, ServeSettings()) as url, httpx2.Client(base_url=url) as http:
        http.get("/health")
        began = time.monotonic()
        for _ in range(50):
            http.get("/health")
        assert time.monotonic() - began < 50 * 0.04  # what a delayed acknowledgement costs


@pytest.fixture(scope="module")
def reward_model(tiny_model: Path) -> SpanRewardModel:
    """Two random layers under a random head, so that there are spans of both kinds."""
    network = SpanRewardNetwork(load_model(tiny_model, torch.float32)).eval()
    settings = RewardModelSettings(
        base="tiny", inputs=InputSettings(max_length=512), feedback=FeedbackSettings(rewards="spans")
    )
    torch.manual_seed(1)
    torch.nn.init.normal_(network.head.weight, std=0.5)
    return SpanRewardModel(network, load_tokenizer(tiny_model), settings)


def drawn_examples(count: int) -> list[Example]:
    draw = random.Random(0)
    return [
        Example(
            id=str(i),
            prompt=" ".join(draw.choices(WORDS, k=draw.randrange(1, 30))),
            completion=" ".join(draw.choices(WORDS, k=draw.randrange(1, 25))),
        )
        for i in range(count)
    ]


def as_request(examples: Sequence[Example]) -> dict[str, Any]:
    return {"examples": [example.model_dump(include={"id", "prompt", "completion"}) for example in examples]}


def test_many_clients_get_the_offline_answers_while_others_misbehave(reward_model):
    examples = drawn_examples(24)
    offline = reward_model.critique(examples)
    assert {span.label for said in offline for span in said.spans} == {"good", "poor"}
    statuses: list[int] = []

    async def well_behaved(http: httpx2.AsyncClient, seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(3):
            chosen = draw.sample(range(len(examples)), draw.randrange(1, 4))
            response = await http.post("/v1/score", json=as_request([examples[i] for i in chosen]))
            assert response.status_code == 200, response.text
            for i, said in zip(chosen, response.json()["feedback"], strict=True):
                assert_same(Feedback.model_validate(said), offline[i])

    async def misbehaving(http: httpx2.AsyncClient, body: Any) -> None:
        response = await http.post("/v1/score", content=body, headers={"Content-Type": "application/json"})
        assert response.json()["detail"]
        statuses.append(response.status_code)

    async def giant_in_pieces():
        for _ in range(50):
            yield b"x" * (1 << 20)

    async def everybody(url: str) -> None:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
            bad = [
                misbehaving(http, body)
                for body in (b"{", b'{"examples": "\xff"}', b"x" * 50_000_000, giant_in_pieces())
            ]
            await asyncio.gather(*(well_behaved(http, seed) for seed in range(40)), *bad)

    with running(reward_model, ServeSettings(max_batch_size=8)) as url:
        asyncio.run(everybody(url))

    assert sorted(statuses) == [400, 413, 413, 422]


def assert_same(served: Feedback, offline: Feedback) -> None:
    def outlines(said: Feedback) -> list[tuple[int, int, str]]:
        return [(span.start, span.end, span.label) for span in said.spans]

    assert outlines(served) == outlines(offline)
    assert [span.severity for span in served.spans] == pytest.approx([s.severity for s in offline.spans], abs=1e-4)
    assert (served.critique, served.status, served.critic) == (offline.critique, offline.status, offline.critic)
    assert served.score == pytest.approx(offline.score, abs=1e-3)


def test_slow_and_disconnected_clients_do_not_block_others(critic):
    def connect(url: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", httpx2.URL(url).port))

    body = json.dumps({"examples": [ONE]}).encode()
    fields = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    head = f"POST /v1/score HTTP/1.1\r\n{fields}\r\n"
    with running(critic, ServeSettings(body_timeout=1)) as url, httpx2.Client(base_url=url, timeout=30) as http:
        with connect(url) as leaving:
            leaving.sendall(head.encode() + body[:5])
        with connect(url) as slow:
            slow.sendall(head.encode() + body[:5])
            assert http.post("/v1/score", json={"examples": [ONE]}).status_code == 200
            assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")
    assert len(critic.seen) == 1


SLOW_SERVER = """
import time
from text2grad.reward_model.serving.app import ServeSettings, serve
from text2grad.schema import Feedback

class Slow:
    def critique(self, examples):
        print("scoring", flush=True)
        time.sleep({seconds})
        return [Feedback(critic="slow", critique=example.completion) for example in examples]

serve(Slow(), ServeSettings(name="slow", port=0, shutdown_timeout={shutdown_timeout}))
print("stopped")
"""


def stop_while_scoring(number: signal.Signals, **timing: int) -> tuple[httpx2.Response, int, str, str]:
    """Send a request, then the signal while it is scored; return the response, and exit code, stdout and stderr."""
    responses = []
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_SERVER.format(**timing)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=restore_sigint,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as process:
        greeting = process.stdout.readline()
        assert greeting.startswith("Serving slow at http://127.0.0.1:")
        url = greeting.split()[3].rstrip(";")
        client = threading.Thread(
            target=lambda: responses.append(httpx2.post(url, json={"examples": [ONE]}, timeout=60))
        )
        client.start()
        assert process.stdout.readline() == "scoring\n"
        process.send_signal(number)
        client.join()
        out, err = process.communicate(timeout=60)
    return responses[0], process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_shutdown_finishes_running_requests(number):
    response, code, out, err = stop_while_scoring(number, seconds=1, shutdown_timeout=30)
    assert response.json()["feedback"][0]["critique"] == "It is a fox."
    assert "Traceback" not in err
    assert (code, out) == ((0, "stopped\n") if number == signal.SIGINT else (-signal.SIGTERM, ""))


def test_requests_that_outlast_the_shutdown_timeout_get_503():
    response, _, _, err = stop_while_scoring(signal.SIGINT, seconds=4, shutdown_timeout=1)
    assert (response.status_code, response.json()) == (503, {"detail": "the server is shutting down"})
    assert "Traceback" not in err


def _until(condition) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("waited for half a minute")
