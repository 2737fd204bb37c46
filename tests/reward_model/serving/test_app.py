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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch
from fastapi.testclient import TestClient
from pydantic import ValidationError
from support import restore_sigint

from text2grad.errors import UserError
from text2grad.models.loading import load_model, load_tokenizer
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.scorer import SpanScorer
from text2grad.reward_model.serving.app import ServeSettings, create_app, create_server, listen, serve
from text2grad.reward_model.settings import Layout, Rewards
from text2grad.schema import Example, Feedback, Span

ONE = {"prompt": "What is it?", "completion": "It is a fox."}
WORDS = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog;", "naïve", "🦊", "foxes,", "too."]


class FirstWord:
    """Blames the first character of every answer and repeats the prompt; waits for `go`."""

    def __init__(self) -> None:
        self.seen: list[Example] = []
        self.go = threading.Event()
        self.go.set()

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        self.seen += examples
        assert self.go.wait(30)
        span = Span(start=0, end=1, label="poor", severity=0.25)
        return [Feedback(critic="first", critique=example.prompt_text, spans=[span]) for example in examples]


@pytest.fixture
def critic() -> FirstWord:
    return FirstWord()


@pytest.fixture
def client(critic: FirstWord) -> Iterator[TestClient]:
    settings = ServeSettings(name="fox", max_examples=3, max_waiting=4, max_answer_chars=100, max_body_bytes=2000)
    with TestClient(create_app(critic, settings)) as client:
        yield client


def score(client: TestClient, *examples: Any) -> Any:
    return client.post("/v1/score", json={"examples": examples})


def test_one_feedback_an_example_in_order(client, critic):
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


def test_health_names_the_model_and_who_waits(client, critic):
    assert client.get("/health").json() == {"model": "fox", "ready": True, "waiting": 0}


def test_the_documentation_holds_the_types(client):
    page = client.get("/openapi.json").json()
    assert {"ScoreRequest", "Submission", "Turn", "ScoreResponse", "Feedback", "Span"} <= set(
        page["components"]["schemas"]
    )
    assert set(page["paths"]["/v1/score"]["post"]["responses"]) == {"200", "400", "408", "413", "415", "422", "503"}


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b"", 400, "the body is empty: send"),
        (b'{"examples": [', 400, "the body is not JSON: EOF while parsing"),
        (b'{"examples": "\xff\xfe"}', 400, "the body is not JSON: invalid unicode code point"),
        (b'{"examples": "\\ud800"}', 400, "the body is not JSON: "),
        (b'{"examples": NaN}', 400, "without NaN"),
        (b"[" * 1900, 400, "recursion limit"),
        (b"\x00", 400, "the body is not JSON"),
        (b"null", 422, "the body is not an object"),
        (b"[]", 422, "the body is not an object"),
        (b"{}", 422, "examples is missing"),
        (b'{"exampels": []}', 422, 'the body: unknown field "exampels"; did you mean "examples"?'),
        (b'{"examples": {}}', 422, "examples is not a list"),
        (b'{"examples": []}', 422, "examples is empty"),
        (b'{"examples": [7]}', 422, "examples[0] is not an object"),
        (b'{"examples": [{"prompt": "p"}]}', 422, "examples[0].completion is missing"),
        (b'{"examples": [{"prompt": "p", "completion": 1e999}]}', 422, "examples[0].completion is not a string"),
        (b'{"examples": [{"prompt": 7, "completion": "c"}]}', 422, "examples[0].prompt: give a string or a list of"),
        (b'{"examples": [{"prompt": [], "completion": "c"}]}', 422, "examples[0].prompt is empty"),
        (b'{"examples": [{"prompt": ["p"], "completion": "c"}]}', 422, "examples[0].prompt[0] is not an object"),
        (
            b'{"examples": [{"prompt": [{"role": "boss", "content": "p"}], "completion": "c"}]}',
            422,
            "examples[0].prompt[0].role: Input should be 'system', 'user', 'assistant' or 'tool'",
        ),
        (
            b'{"examples": [{"prompt": [{"role": "user", "text": "p"}], "completion": "c"}]}',
            422,
            'examples[0].prompt[0]: unknown field "text"; known: role, content',
        ),
    ],
)
def test_a_bad_body_is_explained_in_a_sentence(client, critic, body, status, detail):
    response = client.post("/v1/score", content=body, headers={"Content-Type": "application/json"})

    assert response.status_code == status
    assert detail in response.json()["detail"]
    assert critic.seen == []
    assert score(client, ONE).status_code == 200


@pytest.mark.parametrize(
    ("examples", "detail"),
    [
        ([ONE] * 4, "examples has 4 entries; at most 3 are taken: send several requests"),
        ([ONE, {**ONE, "completion": "x" * 101}], "examples[1].completion has 101 characters; at most 100 are judged"),
    ],
)
def test_more_than_is_taken_is_refused_by_name(client, examples, detail):
    response = score(client, *examples)
    assert response.status_code == 422
    assert detail in response.json()["detail"]


def test_a_large_body_is_refused(client):
    response = score(client, {**ONE, "prompt": "x" * 2000})
    assert response.status_code == 413
    assert "larger than 2000 bytes" in response.json()["detail"]


def test_only_json_is_read(client):
    response = client.post("/v1/score", content=b"{}", headers={"Content-Type": "text/plain"})
    assert response.status_code == 415
    assert response.json()["detail"] == 'Content-Type is "text/plain": send the body as application/json'


def test_unknown_routes_and_methods_are_pointed_to_the_documentation(client):
    unknown, wrong = client.post("/v1/scores", json={}), client.get("/v1/score")
    assert (unknown.status_code, wrong.status_code) == (404, 405)
    assert unknown.json()["detail"] == "there is no /v1/scores; /docs lists what there is"
    assert wrong.json()["detail"] == "/v1/score does not take GET; /docs lists what it takes"
    assert wrong.headers["Allow"] == "POST"


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
    with TestClient(create_app(critic, ServeSettings())) as client:
        began = time.process_time()
        response = client.post("/v1/score", content=hostile, headers={"Content-Type": "application/json"})
        assert time.process_time() - began < 1
    assert response.status_code == 422
    assert len(response.content) < 300


def test_a_full_line_answers_503_and_when_to_come_back(client, critic):
    critic.go.clear()
    answers = []
    first = threading.Thread(target=lambda: answers.append(score(client, ONE)))
    first.start()
    _until(lambda: len(critic.seen) == 1)
    waiting = [threading.Thread(target=lambda: answers.append(score(client, ONE, ONE))) for _ in range(2)]
    for thread in waiting:
        thread.start()
    _until(lambda: client.get("/health").json()["waiting"] == 4)

    refused = score(client, ONE)

    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) >= 1
    assert "4 examples are waiting already: try again in" in refused.json()["detail"]
    critic.go.set()
    for thread in (first, *waiting):
        thread.join()
    assert [answer.status_code for answer in answers] == [200] * 3


def test_settings_that_could_never_work_are_refused():
    with pytest.raises(ValidationError, match="max_waiting is 10 but a request may have 64 examples"):
        ServeSettings(max_waiting=10)


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
    scorer = SpanScorer(load_model(tiny_model, torch.float32)).eval()
    torch.manual_seed(1)
    torch.nn.init.normal_(scorer.head.weight, std=0.5)
    return SpanRewardModel(scorer, load_tokenizer(tiny_model), Layout(max_length=512), Rewards(rewards="spans"), "tiny")


@contextmanager
def running(critic: Any, settings: ServeSettings) -> Iterator[str]:
    server = create_server(critic, settings)
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


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

    assert sorted(statuses) == [400, 400, 413, 413]


def assert_same(served: Feedback, offline: Feedback) -> None:
    def outlines(said: Feedback) -> list[tuple[int, int, str]]:
        return [(span.start, span.end, span.label) for span in said.spans]

    assert outlines(served) == outlines(offline)
    assert [span.severity for span in served.spans] == pytest.approx([s.severity for s in offline.spans], abs=1e-4)
    assert (served.critique, served.status, served.critic) == (offline.critique, offline.status, offline.critic)
    assert served.score == pytest.approx(offline.score, abs=1e-3)


def test_clients_that_leave_or_drip_do_not_hold_up_the_others(critic):
    def connect(url: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", httpx2.URL(url).port))

    body = json.dumps({"examples": [{**ONE, "prompt": "leaves"}]}).encode()
    head = (
        f"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    critic.go.clear()
    with running(critic, ServeSettings(max_body_seconds=1)) as url, httpx2.Client(base_url=url, timeout=30) as http:
        with connect(url) as first:
            first.sendall(head.encode() + body)
            _until(lambda: len(critic.seen) == 1)
            with connect(url) as second:
                second.sendall(head.encode() + body)
                _until(lambda: http.get("/health").json()["waiting"] == 1)
            _until(lambda: http.get("/health").json()["waiting"] == 0)  # gone before its turn: nothing is done for it
        with connect(url) as dripping:
            dripping.sendall(head.encode() + body[:5])
            critic.go.set()
            assert http.post("/v1/score", json={"examples": [ONE]}).status_code == 200
            assert dripping.recv(1000).startswith(b"HTTP/1.1 408 ")
    assert [example.prompt for example in critic.seen] == ["leaves", "What is it?"]


SLOW_SERVER = """
import time
from text2grad.reward_model.serving.app import ServeSettings, serve
from text2grad.schema import Feedback

class Slow:
    def critique(self, examples):
        time.sleep(1)
        return [Feedback(critic="slow", critique=example.completion) for example in examples]

serve(Slow(), ServeSettings(name="slow", port=0))
print("stopped")
"""


def program_running(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=restore_sigint,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_stopped_finishes_what_is_under_way(stop):
    with program_running(SLOW_SERVER) as process:
        said = process.stdout.readline()
        assert said.startswith("Serving slow at http://127.0.0.1:")
        answers = []
        url = said.split()[3].rstrip(";")
        asking = threading.Thread(target=lambda: answers.append(httpx2.post(url, json={"examples": [ONE]}, timeout=30)))
        asking.start()
        _until(lambda: httpx2.get(url.replace("v1/score", "health")).status_code == 200)
        time.sleep(0.3)
        process.send_signal(stop)
        asking.join()
        out, err = process.communicate(timeout=30)

    assert answers[0].json()["feedback"][0]["critique"] == "It is a fox."
    assert "Traceback" not in err
    assert (process.returncode, out) == ((0, "stopped\n") if stop == signal.SIGINT else (-signal.SIGTERM, ""))


def test_a_server_that_is_told_twice_stops_at_once():
    with program_running(SLOW_SERVER.replace("time.sleep(1)", "time.sleep(60)")) as process:
        host, port = process.stdout.readline().split("//")[1].split("/")[0].split(":")
        with socket.create_connection((host, int(port))) as client:
            body = json.dumps({"examples": [ONE]})
            client.sendall(
                f"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline().startswith("Stopping when requests are answered, or in 30 s")
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=10) == 128 + signal.SIGINT


def test_who_waits_too_long_for_a_server_that_stops_hears_that_it_does():
    program = SLOW_SERVER.replace("time.sleep(1)", "time.sleep(4)").replace("port=0", "port=0, max_shutdown_seconds=1")
    with program_running(program) as process:
        url = process.stdout.readline().split()[3].rstrip(";")
        answers = []
        asking = threading.Thread(target=lambda: answers.append(httpx2.post(url, json={"examples": [ONE]}, timeout=30)))
        asking.start()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        asking.join()
        _, err = process.communicate(timeout=30)
    assert (answers[0].status_code, answers[0].json()) == (
        503,
        {"detail": "the server is stopping: try again in 60 s"},
    )
    assert "Traceback" not in err


def _until(condition) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("waited for half a minute")
