"""Samples in a page: the index, and the chunks."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest

from text2grad.report.columns import shorten
from text2grad.report.read import Sample
from text2grad.report.samples import CHUNK, sample_chunks, sample_index


def token(start: int, end: int, **numbers: float | None) -> dict[str, Any]:
    return {"text": "ab"[start:end], "start": start, "end": end, **numbers}


def sample(step: int, number: int = 0, **fields: Any) -> Sample:
    return Sample.model_validate({"step": step, "sample": number, "prompt": "why?", "completion": "ab"} | fields)


def inflate(chunk: str) -> dict[str, Any]:
    return dict(json.loads(zlib.decompress(base64.b64decode(chunk), -15)))


def test_every_sample_is_in_the_chunk_of_its_position() -> None:
    samples = [sample(step, number) for step in range(30) for number in range(3)]
    index, chunks = sample_index(samples), [inflate(chunk) for chunk in sample_chunks(samples)]
    assert len(chunks) == -(-90 // CHUNK)
    for i, (step, number) in enumerate(zip(index["step"], index["sample"], strict=True)):
        record = chunks[i // index["chunk"]]["samples"][i % index["chunk"]]
        assert (record["step"], record["sample"]) == (step, number)


def test_a_prompt_is_stored_once_per_chunk() -> None:
    conversation = [{"role": "user", "content": "é </script>"}]
    samples = [sample(1), sample(2, prompt=conversation), sample(3), sample(4, prompt=conversation)]
    (chunk,) = map(inflate, sample_chunks(samples))
    assert chunk["prompts"] == ["why?", conversation]
    assert [record["prompt"] for record in chunk["samples"]] == [0, 1, 0, 1]


def test_numbers_that_no_token_has_are_left_out() -> None:
    tokens = [token(0, 1, reward=0.123456, kl=None), token(1, 2, reward=None, kl=-0.5)]
    (chunk,) = map(inflate, sample_chunks([sample(1, tokens=tokens)]))
    assert chunk["samples"][0]["tokens"] == {
        "start": [0, 1],
        "end": [1, 2],
        "reward": [0.1235, None],
        "kl": [None, -0.5],
    }


def test_scales_ignore_zeros_and_outliers_and_name_what_can_be_coloured() -> None:
    tokens = [token(0, 1, reward=value, logprob_before=-1.0, logprob_after=-1.5) for value in [0.0, *[0.2] * 99, 50.0]]
    corrections = [{"start": 0, "end": 1, "text": "x", "before": 0.1, "after": 0.4}]
    limits = sample_index([sample(1, tokens=tokens, corrections=corrections)])["limits"]
    assert limits == {"reward": 0.2, "change": 0.5, "correction": pytest.approx(0.3)}


def test_an_empty_run_has_an_empty_index() -> None:
    index = sample_index([])
    assert (index["step"], index["limits"], list(sample_chunks([]))) == ([], {}, [])


def test_failed_samples_are_in_the_index() -> None:
    failed = {"critic": "c", "status": "failed", "error": "late"}
    index = sample_index([sample(1, total=0.5), sample(2, feedback=failed)])
    assert (index["total"], index["failed"]) == ([0.5, None], [0, 1])


def test_rounding_keeps_integers() -> None:
    assert (shorten(1234567), shorten(0.1234567), shorten(None)) == (1234567, 0.123457, None)
