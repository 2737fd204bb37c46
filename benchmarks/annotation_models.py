"""Annotation with the default model as the critic: in process, and behind a server.

local  the default model in this process, decoding constrained, on 50 summaries: the share of ok feedback.
serve  the default model behind `transformers serve`, 50 summaries through HTTP. Nothing constrains its replies there,
       and a model of this size seldom writes JSON: the bar is that no record is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from annotation import not_exactly_once
from harness import Bar, options, report, show

from text2grad.annotate import Summary, annotate
from text2grad.critics.llm.critic import LLMCritic
from text2grad.critics.llm.local import LocalCritic
from text2grad.models.loading import DEFAULT_MODEL, resolve
from text2grad.schema import Example, write_examples


def main() -> None:
    args = options(__doc__ or "")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        metrics = local(folder, 2 if args.quick else 50, args)
        metrics |= serve(folder, 2 if args.quick else 50)
    bars = {"local_ok_share": Bar(at_least=0.95), "serve_records_not_exactly_once": Bar(at_most=0)}
    report("annotation_models", metrics, bars, args)


def local(folder: Path, records: int, args: argparse.Namespace) -> dict[str, Any]:
    source, out = summaries(folder / "local.jsonl", records), folder / "local.out.jsonl"
    short = {"reasoning_length": 120, "critique_length": 120, "max_spans": 2, "max_omissions": 0}
    critic = LocalCritic(model=DEFAULT_MODEL, task="summarise", device=args.device, dtype="bfloat16", **short)
    summary = annotate(source, out, critic)
    show_summary("Default model in process, constrained", summary)
    return {
        "local_records": summary.records,
        "local_ok_share": summary.ok / records,
        "local_spans_per_completion": summary.spans_per_completion,
        "local_unmatched_quotes": summary.unmatched,
        "local_records_per_second": summary.records_per_second,
    }


def serve(folder: Path, records: int) -> dict[str, Any]:
    source, out = summaries(folder / "serve.jsonl", records), folder / "serve.out.jsonl"
    model = resolve(DEFAULT_MODEL)
    with transformers_serve(model, folder) as url:
        critic = LLMCritic(model=model, base_url=url, task="summarise", max_tokens=96)
        summary = annotate(source, out, critic, concurrency=4)
    show_summary("Default model behind transformers serve", summary)
    return {
        "serve_records": summary.records,
        "serve_ok_share": summary.ok / records,
        "serve_records_not_exactly_once": not_exactly_once(out, records),
        "serve_tokens_out": summary.tokens_out,
        "serve_records_per_second": summary.records_per_second,
    }


def show_summary(title: str, summary: Summary) -> None:
    rows = [["ok", str(summary.ok)], *([f"failed: {cause}", str(n)] for cause, n in summary.causes.most_common())]
    rows += [["spans per completion", f"{summary.spans_per_completion:.2f}"], ["coverage", f"{summary.coverage:.1%}"]]
    rows += [["unmatched quotes", str(summary.unmatched)], ["records per second", f"{summary.records_per_second:.2f}"]]
    show(title, ["", "records"], rows)


def summaries(path: Path, records: int) -> Path:
    """Summaries of short news items, from the package's own data."""
    lines = (files("text2grad") / "data" / "quickstart_texts" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    rows = (json.loads(line) for line in islice(lines, records))
    examples = (
        Example(id=row["id"], prompt=f"Summarise in one sentence:\n\n{row['document']}", completion=row["reference"])
        for row in rows
    )
    write_examples(path, examples)
    return path


@contextmanager
def transformers_serve(model: str, folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    command = [
        str(Path(sys.executable).with_name("transformers")),
        "serve",
        model,
        "--port",
        address.rpartition(":")[2],
    ]
    command += ["--host", "127.0.0.1", "--device", "cpu", "--dtype", "bfloat16"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        while not healthy(f"{address}/health"):
            if process.poll() is not None:
                sys.exit(f"transformers serve ended: {(folder / 'serve.log').read_text()}")
            time.sleep(0.2)
        yield f"{address}/v1"
    finally:
        process.kill()
        process.wait()


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


if __name__ == "__main__":
    main()
