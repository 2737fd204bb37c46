"""Samples in a page: an index that is read at once, and compressed chunks that are read when a sample is shown.

A page of 10,000 samples then opens as fast as one of ten: browsers inflate a chunk in a millisecond.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from text2grad.report.columns import shorten
from text2grad.report.read import Sample, Tokens

CHUNK = 32  # samples
DIGITS = 4  # significant ones of a token's numbers
SATURATED = 98  # percentile of magnitudes that has the strongest colour, so that outliers do not set the scale
SHORT_NAMES = {"logprob_before": "before", "logprob_after": "after"}


def sample_index(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return what is known of all samples: columns of step, number, total and failure, and the scales of the colours.

    Sample i is in chunk i // `chunk`.
    """
    return {
        "step": [sample.step for sample in samples],
        "sample": [sample.sample for sample in samples],
        "total": [shorten(sample.total, DIGITS) for sample in samples],
        "failed": [int(sample.feedback is not None and sample.feedback.status == "failed") for sample in samples],
        "chunk": CHUNK,
        "limits": _scale_limits(samples),
    }


def sample_chunks(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield chunks of samples: JSON, deflated, in base64. A prompt is stored once per chunk."""
    for start in range(0, len(samples), CHUNK):
        prompts: dict[str, int] = {}
        records = [_record(sample, prompts) for sample in samples[start : start + CHUNK]]
        chunk = {"prompts": [json.loads(prompt) for prompt in prompts], "samples": records}
        text = json.dumps(chunk, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        deflate = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)  # raw, as DecompressionStream("deflate-raw")
        data = deflate.compress(text.encode("utf-8", errors="replace")) + deflate.flush()
        yield b64encode(data).decode("ascii")


def _record(sample: Sample, prompts: dict[str, int]) -> dict[str, Any]:
    record = sample.model_dump(mode="json", exclude_none=True, exclude={"tokens", "prompt"})
    prompt = json.dumps(sample.model_dump(mode="json", include={"prompt"})["prompt"])
    return record | {
        "prompt": prompts.setdefault(prompt, len(prompts)),
        "tokens": _token_columns(sample.tokens, sample.completion),
    }


def _token_columns(tokens: Tokens, completion: str) -> dict[str, list[Any]]:
    """Return one list per attribute that any token has; `text` is None where it is the completion's own."""
    ranges = zip(tokens.text, tokens.start, tokens.end, strict=True)
    texts = [None if text == completion[start:end] else text for text, start, end in ranges]
    columns = {"text": texts} | {
        name: [shorten(value, DIGITS) for value in getattr(tokens, name)]
        for name in Tokens.model_fields
        if name != "text"
    }
    return {
        SHORT_NAMES.get(name, name): column
        for name, column in columns.items()
        if name in ("start", "end") or any(value is not None for value in column)
    }


def _scale_limits(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the magnitude of the strongest colour for each number that some token has."""
    tokens = [sample.tokens for sample in samples]
    columns = {
        "reward": _known(t.reward for t in tokens),
        "advantage": _known(t.advantage for t in tokens),
        "change": np.concatenate([_numbers(t.logprob_after) - _numbers(t.logprob_before) for t in tokens] or [[]]),
        "kl": _known(t.kl for t in tokens),
        "value": _known(t.value for t in tokens),
        "correction": np.array(
            [c.after - c.before for s in samples for c in s.corrections if c.after is not None and c.before is not None]
        ),
    }
    limits = {}
    for name, column in columns.items():
        known = np.abs(column[~np.isnan(column)])
        if known.size:
            sizes = known[known > 0]
            limits[name] = float(f"{np.percentile(sizes, SATURATED, method='lower'):.4g}") if sizes.size else 1.0
    return limits


def _known(columns: Iterator[list[float | None]]) -> Any:
    return np.concatenate([_numbers(column) for column in columns] or [[]])


def _numbers(column: list[float | None]) -> Any:
    return np.array(column, dtype=np.float64)
