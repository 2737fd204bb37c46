"""A real server: `transformers serve` with the default model."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from text2grad.annotate import annotate
from text2grad.critics.llm.critic import LLMCritic
from text2grad.schema import Example, read_examples, write_examples


@pytest.fixture
def transformers_serve(smollm2: str, tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = [str(Path(sys.executable).with_name("transformers")), "serve", smollm2, "--port", str(port)]
    log = tmp_path / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*serve, "--host", "127.0.0.1", "--device", "cpu", "--dtype", "bfloat16"],
            stdout=out,
            stderr=out,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        )
    try:
        _wait_until_healthy(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
    pytest.fail(f"no server after a minute: {log.read_text()}")


@pytest.mark.model
def test_eight_answers_through_http_none_lost(transformers_serve, smollm2, tmp_path):
    source, out, prompt = tmp_path / "data.jsonl", tmp_path / "feedback.jsonl", tmp_path / "short.md"
    prompt.write_text('Review the answer "{{ completion }}" as JSON: {"critique": "')
    write_examples(source, (Example(id=str(i), prompt="p", completion=f"{i} and {i} is {2 * i}.") for i in range(8)))
    critic = LLMCritic(model=smollm2, base_url=transformers_serve, prompt=prompt, max_tokens=16)

    summary = annotate(source, out, critic, concurrency=2)

    records = list(read_examples(out))
    assert sorted(record.id for record in records) == [str(i) for i in range(8)]
    assert summary.records == summary.ok + summary.failed == 8
    assert all(record.feedback.raw for record in records)
    assert set(summary.causes) <= {"truncated", "unreadable", "unmatched"}
    assert summary.tokens_out >= 8
