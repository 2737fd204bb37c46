"""`text2grad reward serve` under load: every client gets the offline predictions, also while others attack the server.

A random two-layer model is served by a separate process. 200 clients send requests with one to four completions of
different lengths, each as soon as it has the response to its last one, for a minute; then for another minute while
attackers send malformed JSON, invalid UTF-8, wrong types, NaN, a megabyte of errors, bodies of 50 MB with and without
Content-Length, and slow bodies. All feedback is compared with what `critique` returns without a server: the same spans,
severities within 1e-4.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import Bar, options, report, show
from small_model import small_llama

from text2grad.models.loading import DEFAULT_MODEL, load_tokenizer, resolve
from text2grad.reward_model.feedback import FeedbackSettings
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.network import SpanRewardNetwork
from text2grad.reward_model.settings import RewardModelSettings
from text2grad.schema import Example, Feedback

SEED = 0
POOL = 200  # distinct examples
MAX_EXAMPLES = 4  # per request
TOLERANCE = 1e-4
WARM_UP = 2.0
GIANT = 50_000_000
PIECE = b"x" * (1 << 18)
PAUSE = 0.5  # of an attacker, before it attacks again
BODY_TIMEOUT = 3  # seconds after which the server rejects a slow body

Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[tuple[int, bytes]]]

SERVE = f"""
import sys
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.serving.app import ServeSettings, serve
critic = SpanRewardModel.from_pretrained(sys.argv[1], device=sys.argv[2])
serve(critic, ServeSettings(port=0, body_timeout={BODY_TIMEOUT}))
"""


@dataclass
class Load:
    """Measurements of the clients in one phase."""

    seconds: float
    latencies: list[float] = field(default_factory=list)
    examples: int = 0
    spans: int = 0
    mismatches: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def milliseconds(self, percentile: float) -> float:
        return float(np.percentile(self.latencies, percentile)) * 1000


def main() -> None:
    args = options(__doc__ or "")
    clients, seconds = (20, 5.0) if args.quick else (200, 60.0)
    pool = examples(POOL)
    with tempfile.TemporaryDirectory() as folder:
        offline = random_reward_model(Path(folder)).critique(pool)
        with run_server(folder, args.device) as port, ProcessPoolExecutor(1, get_context("spawn")) as elsewhere:
            elsewhere.submit(os.getpid).result()  # so that starting it does not slow the clients down
            asyncio.run(load(port, pool, offline, clients, WARM_UP))
            quiet = asyncio.run(load(port, pool, offline, clients, seconds))
            attack = elsewhere.submit(run_attacks, port, seconds)
            stormy = asyncio.run(load(port, pool, offline, clients, seconds))
            attacks = attack.result()
    show_phases({"quiet": quiet, "attacked": stormy})
    show("Attacks", ["kind: answer", "count"], [[name, str(count)] for name, count in sorted(attacks.items())])
    report("reward_serve", figures(clients, quiet, stormy, attacks), bars(), args)


def figures(clients: int, quiet: Load, stormy: Load, attacks: Counter[str]) -> dict[str, Any]:
    refused = sum(count for name, count in attacks.items() if ": 4" in name)
    measured: dict[str, Any] = {"clients": clients, "seconds": quiet.seconds}
    for name, phase in (("quiet", quiet), ("attacked", stormy)):
        measured |= {
            f"{name}_requests": len(phase.latencies),
            f"{name}_requests_a_second": len(phase.latencies) / phase.seconds,
            f"{name}_answers_a_second": phase.examples / phase.seconds,
        }
        measured |= {f"{name}_p{p}_ms": phase.milliseconds(p) for p in (50, 95, 99)}
    return measured | {
        "spans_compared": quiet.spans + stormy.spans,
        "errors": (quiet.errors + stormy.errors).total(),
        "mismatches": quiet.mismatches + stormy.mismatches,
        "attacks": attacks.total(),
        "attacks_refused_share": refused / attacks.total(),
        "p95_attacked_over_quiet": stormy.milliseconds(95) / quiet.milliseconds(95),
    }


def bars() -> dict[str, Bar]:
    return {
        "errors": Bar(at_most=0),
        "mismatches": Bar(at_most=0),
        "spans_compared": Bar(at_least=1000),
        "attacks_refused_share": Bar(at_least=1),
        "p95_attacked_over_quiet": Bar(at_most=1.5),
    }


def show_phases(phases: dict[str, Load]) -> None:
    rows = [
        [
            name,
            str(len(phase.latencies)),
            f"{len(phase.latencies) / phase.seconds:.1f}",
            *(f"{phase.milliseconds(percentile):.0f}" for percentile in (50, 95, 99)),
            str(phase.errors.total()),
            str(phase.mismatches),
        ]
        for name, phase in phases.items()
    ]
    show("Clients", ["", "requests", "a second", "p50 ms", "p95 ms", "p99 ms", "errors", "mismatches"], rows)
    for name, phase in phases.items():
        for what, count in phase.errors.most_common(5):
            print(f"{name}: {count} x {what}")


def examples(count: int) -> list[Example]:
    """Return prompts and completions of up to 200 and 150 consecutive words of news items."""
    lines = (files("text2grad") / "data" / "quickstart_texts" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    words = " ".join(json.loads(line)["document"] for line in lines[:100]).split()
    draw = random.Random(SEED)

    def excerpt(max_words: int) -> str:
        length = draw.randint(1, max_words)
        start = draw.randrange(len(words) - length)
        return " ".join(words[start : start + length])

    return [Example(id=str(i), prompt=excerpt(200), completion=excerpt(150)) for i in range(count)]


def random_reward_model(folder: Path) -> SpanRewardModel:
    """Return a random model with the default tokenizer; its head has large weights, to predict spans of both labels."""
    tokenizer = load_tokenizer(resolve(DEFAULT_MODEL))
    trunk = small_llama(tokenizer, width=32, seed=SEED, num_key_value_heads=2, max_position_embeddings=1024)
    network = SpanRewardNetwork(trunk).eval()
    torch.nn.init.normal_(network.head.weight, std=0.5)
    model = SpanRewardModel(
        network, tokenizer, RewardModelSettings(base="random", feedback=FeedbackSettings(rewards="spans"))
    )
    model.save_pretrained(folder)
    return model


@contextmanager
def run_server(folder: str, device: str) -> Iterator[int]:
    """Start a server in a separate process and yield its port. One thread: the model is tiny."""
    command = [sys.executable, "-c", SERVE, folder, device]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline()  # "Serving reward at http://127.0.0.1:PORT/v1/score; ..."
        if not address:
            sys.exit("the server did not start")
        try:
            yield int(address.split("/v1/")[0].rpartition(":")[2])
        finally:
            process.terminate()


async def load(port: int, pool: list[Example], offline: list[Feedback], clients: int, seconds: float) -> Load:
    """Run the clients for this long; requests in flight at the end are finished and counted."""
    phase = Load(seconds)
    bodies = [example.model_dump_json(include={"id", "prompt", "completion"}) for example in pool]
    deadline = time.perf_counter() + seconds
    await asyncio.gather(*(client(port, bodies, offline, deadline, random.Random(i), phase) for i in range(clients)))
    return phase


async def client(
    port: int, bodies: list[str], offline: list[Feedback], deadline: float, draw: random.Random, phase: Load
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < deadline:
        chosen = draw.sample(range(len(bodies)), draw.randint(1, MAX_EXAMPLES))
        body = f'{{"examples": [{", ".join(bodies[i] for i in chosen)}]}}'.encode()
        began = time.perf_counter()
        try:
            status, answer = await exchange(reader, writer, post(body))
        except (OSError, asyncio.IncompleteReadError) as error:
            phase.errors[type(error).__name__] += 1
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            continue
        phase.latencies.append(time.perf_counter() - began)
        if status != 200:
            phase.errors[f"{status} {answer.decode()[:100]}"] += 1
            continue
        phase.examples += len(chosen)
        for i, said in zip(chosen, json.loads(answer)["feedback"], strict=True):
            phase.spans += len(said["spans"])
            phase.mismatches += not same(said, offline[i])
    writer.close()


def same(served: dict[str, Any], offline: Feedback) -> bool:
    wanted = [(span.start, span.end, span.label) for span in offline.spans]
    return (
        served["status"] == offline.status
        and served["critique"] == offline.critique
        and [(span["start"], span["end"], span["label"]) for span in served["spans"]] == wanted
        and all(
            abs(span["severity"] - expected.severity) <= TOLERANCE
            for span, expected in zip(served["spans"], offline.spans, strict=True)
        )
    )


def post(body: bytes, length: int | None = None) -> bytes:
    head = "POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    return f"{head}{len(body) if length is None else length}\r\n\r\n".encode() + body


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, bytes]:
    writer.write(request)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


def run_attacks(port: int, seconds: float) -> Counter[str]:
    """Attack in this process, and count by kind and status of the response."""
    return asyncio.run(attack_all(port, time.perf_counter() + seconds))


async def attack_all(port: int, deadline: float) -> Counter[str]:
    answers: Counter[str] = Counter()
    bad_bodies = {
        "malformed JSON": b'{"examples": [{"prompt": "p", ',
        "broken UTF-8": b'{"examples": [{"prompt": "p", "completion": "\xff\xfe"}]}',
        "wrong type": b'{"examples": [{"prompt": 7, "completion": {}}]}',
        "NaN": b'{"examples": [{"prompt": "p", "completion": NaN}]}',
        "many mistakes": b'{"examples": [' + b"{}," * 300_000 + b"{}]}",
    }
    attacks: dict[str, Attack] = {name: partial(exchange, request=post(body)) for name, body in bad_bodies.items()}
    attacks |= {"50 MB": giant, "50 MB in chunks": giant_in_chunks, "dripping": dripping}

    async def attacker(name: str) -> None:
        while time.perf_counter() < deadline:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                status, _ = await attacks[name](reader, writer)
                answers[f"{name}: {status}"] += 1
            except (OSError, asyncio.IncompleteReadError) as error:
                answers[f"{name}: {type(error).__name__}"] += 1
            writer.close()
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*(attacker(name) for name in attacks))
    return answers


async def giant(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[int, bytes]:
    """Send all of it before reading the response, as a simple client does."""
    writer.write(post(b"", length=GIANT))
    for start in range(0, GIANT, len(PIECE)):
        writer.write(PIECE[: GIANT - start])
        await writer.drain()
    return await exchange(reader, writer, b"")


async def giant_in_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[int, bytes]:
    writer.write(b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(0, GIANT, len(PIECE)):
        writer.write(b"%x\r\n%b\r\n" % (len(PIECE), PIECE))
        await writer.drain()
    return await exchange(reader, writer, b"0\r\n\r\n")


async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[int, bytes]:
    """Send a byte every tenth of a second, until the server responds."""
    writer.write(post(b"{", length=1000))
    answer = asyncio.create_task(exchange(reader, writer, b""))
    while not answer.done():
        writer.write(b" ")
        await asyncio.sleep(0.1)
    return answer.result()


if __name__ == "__main__":
    main()
