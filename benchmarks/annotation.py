"""Annotation: no record lost, throughput of the server, constant memory.

trouble     1 000 records against a server that misbehaves on purpose (429 with Retry-After, 500s, hangs, cut
            connections, garbage, truncated JSON, quotes of another text: 40% of its responses); the run is killed
            with SIGKILL at three random moments and resumed. Every record must be there exactly once, ok or failed.
throughput  a server that responds after 500 ms, at several concurrencies; efficiency is rate * latency / concurrency.
memory      peak memory of a run over 1 000, 10 000 and 100 000 records, with a critic without latency whose replies
            are parsed and aligned; each in its own process, then once more when all is done.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import ROOT, Bar, options, report, show

from text2grad.annotate import annotate
from text2grad.critics.llm.critic import LLMCritic
from text2grad.schema import Example, write_examples

SEED = 0
LATENCY = 0.5

ANNOTATE_OVER_HTTP = """
import sys
from pathlib import Path
from text2grad.annotate import annotate
from text2grad.critics.llm.critic import LLMCritic
source, out, url = sys.argv[1:]
critic = LLMCritic(model="m", base_url=url, timeout=1, max_retries=5)
annotate(Path(source), Path(out), critic, concurrency=32)
"""

ANNOTATE_WITHOUT_LATENCY = """
import json, sys
from pathlib import Path
from text2grad.annotate import annotate
from text2grad.critics.llm.reply import reply_to_feedback

class NoLatency:
    async def acritique(self, examples):
        return [reply_to_feedback(self.reply(example), example, "no latency") for example in examples]

    def reply(self, example):
        span = {"quote": example.completion[:20], "phrase": "opening", "label": "poor", "severity": "major"}
        return json.dumps({"reasoning": "r", "critique": "The opening is weak.", "spans": [span], "omissions": []})

summary = annotate(Path(sys.argv[1]), Path(sys.argv[2]), NoLatency(), concurrency=64, batch_size=64)
assert summary.ok == int(sys.argv[3]), summary
peak = next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"peak": peak, "seconds": summary.seconds, "added": summary.added}))
"""


def main() -> None:
    args = options(__doc__ or "")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        metrics = trouble(folder, 100 if args.quick else 1000)
        metrics |= throughput(folder, [64] if args.quick else [16, 32, 64])
        metrics |= memory(folder, [1000, 2000] if args.quick else [1000, 10_000, 100_000])
    bars = {
        "trouble_records_not_exactly_once": Bar(at_most=0),
        "trouble_kills": Bar(at_least=3),
        "throughput_efficiency_at_64": Bar(at_least=0.9),
        "memory_growth_megabytes": Bar(at_most=20),
    }
    report("annotation", metrics, bars, args)


def trouble(folder: Path, records: int) -> dict[str, Any]:
    source, out = write_source(folder / "trouble.jsonl", records), folder / "trouble.out.jsonl"
    draw = random.Random(SEED)
    goals = sorted(draw.sample(range(records // 20, records - records // 20), 3))
    kills = 0
    with misbehaving_server(trouble=0.4, latency=0.02) as url:
        command = [sys.executable, "-c", ANNOTATE_OVER_HTTP, str(source), str(out), url]
        for goal in goals:
            running = subprocess.Popen(command)
            while count_lines(out) < goal and running.poll() is None:
                time.sleep(0.01)
            time.sleep(draw.random() * 0.3)  # not always just after a write
            running.send_signal(signal.SIGKILL)
            kills += running.wait() == -signal.SIGKILL
        subprocess.run(command, check=True)
        with urllib.request.urlopen(url, timeout=5) as counts:
            requests = json.load(counts)
    outcomes = Counter(record["feedback"].get("status", "ok") for record in read(out))
    causes = Counter(
        record["feedback"]["error"].partition(":")[0] for record in read(out) if "error" in record["feedback"]
    )
    rows = [[kind, str(count)] for kind, count in sorted(requests.items())]
    show(f"Responses of the misbehaving server, {kills} kills", ["kind", "requests"], rows)
    show("Outcomes of the records", ["", "records"], [[name, str(n)] for name, n in (outcomes + causes).items()])
    return {
        "trouble_records": records,
        "trouble_kills": kills,
        "trouble_ok": outcomes["ok"],
        "trouble_failed": outcomes["failed"],
        "trouble_records_not_exactly_once": not_exactly_once(out, records),
    }


def throughput(folder: Path, concurrencies: list[int]) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    rows = []
    with misbehaving_server(trouble=0, latency=LATENCY) as url:
        for concurrency in concurrencies:
            records = 40 * concurrency  # twenty seconds
            source = write_source(folder / f"speed{concurrency}.jsonl", records)
            critic = LLMCritic(model="m", base_url=url)
            summary = annotate(source, folder / f"speed{concurrency}.out.jsonl", critic, concurrency=concurrency)
            assert summary.ok == records
            ideal = concurrency / LATENCY
            metrics[f"throughput_efficiency_at_{concurrency}"] = summary.records_per_second / ideal
            rows.append(
                [
                    str(concurrency),
                    f"{ideal:.0f}",
                    f"{summary.records_per_second:.1f}",
                    f"{summary.records_per_second / ideal:.1%}",
                ]
            )
    show(f"Records per second, server latency {LATENCY} s", ["concurrency", "ideal", "measured", "efficiency"], rows)
    return metrics


def memory(folder: Path, sizes: list[int]) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    rows = []
    for records in sizes:
        source, out = write_source(folder / "memory.jsonl", records), folder / f"memory{records}.out.jsonl"
        command = [sys.executable, "-c", ANNOTATE_WITHOUT_LATENCY, str(source), str(out), str(records)]
        first, second = (json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(2))
        assert (first["added"], second["added"]) == (records, 0)
        rate = records / first["seconds"]
        metrics |= {f"memory_megabytes_at_{records}": first["peak"], f"records_per_second_at_{records}": rate}
        rows.append([str(records), f"{first['peak']:.1f}", f"{second['peak']:.1f}", f"{rate:.0f}"])
        out.unlink()
    show("Peak memory, MB", ["records", "run", "resumed when done", "records per second"], rows)
    metrics["memory_growth_megabytes"] = (
        metrics[f"memory_megabytes_at_{sizes[-1]}"] - metrics[f"memory_megabytes_at_{sizes[0]}"]
    )
    return metrics


def write_source(path: Path, records: int) -> Path:
    """Records of about 300 characters."""
    examples = (
        Example(id=str(i), prompt=f"What happened on day {i}? " * 5, completion=f"On day {i} the ferry was late. " * 5)
        for i in range(records)
    )
    write_examples(path, examples)
    return path


def read(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def not_exactly_once(out: Path, records: int) -> int:
    """Records that are missing, plus those that are there more than once."""
    seen = Counter(record["id"] for record in read(out))
    return records - len(seen) + sum(count > 1 for count in seen.values())


@contextmanager
def misbehaving_server(trouble: float, latency: float) -> Iterator[str]:
    script = str(ROOT / "benchmarks" / "misbehaving_server.py")
    command = [sys.executable, script, "--trouble", str(trouble), "--latency", str(latency), "--seed", str(SEED)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


if __name__ == "__main__":
    main()
