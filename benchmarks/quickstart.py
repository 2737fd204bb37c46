"""The quickstart for three seeds: held-out metrics before and after, time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness

SEEDS = (0, 1, 2)
CONFIG = Path("quickstart")


def main() -> None:
    args = harness.options(__doc__ or "")
    overrides = ["policy.max_steps=2"] if args.quick else []
    runs = {seed: run(seed, overrides) for seed in SEEDS[: 1 if args.quick else None]}
    columns = ["seed", "metric", "before", "after", "difference", "95% interval"]
    rows = [
        [
            str(seed),
            name,
            *(f"{f[k]:.3f}" for k in ("before", "after", "difference")),
            f"{f['low']:+.3f} {f['high']:+.3f}",
        ]
        for seed, result in runs.items()
        for name, f in result["figures"].items()
    ]
    harness.show("Quickstart, held-out completions", columns, rows)
    results: dict[str, Any] = {
        "runs": runs,
        "worst_score_low": min(r["figures"]["score"]["low"] for r in runs.values()),
        "worst_rouge_l_high": min(r["figures"]["rouge_l"]["high"] for r in runs.values()),
        "most_minutes": max(r["minutes"] for r in runs.values()),
        "most_gib": max(r["gib"] for r in runs.values()),
    }
    bars = {
        "worst_score_low": harness.Bar(at_least=0.0),
        "worst_rouge_l_high": harness.Bar(at_least=0.0),
        "most_minutes": harness.Bar(at_most=8.0),
        "most_gib": harness.Bar(at_most=4.0),
    }
    harness.report("quickstart", results, bars, args)


def run(seed: int, overrides: list[str]) -> dict[str, Any]:
    """One `text2grad run` in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        settings = [f"seed={seed}", f"output_dir={folder}/run", "report.examples=0", *overrides]
        program = "from text2grad.cli.app import main; main()"
        began = time.monotonic()
        process = subprocess.Popen([sys.executable, "-c", program, "run", str(CONFIG), *settings])
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"the run with seed {seed} failed")
        evaluation = json.loads(Path(folder, "run", "evaluation.json").read_text(encoding="utf-8"))
        steps = Path(folder, "run", "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        "n": evaluation["n"],
        "steps": len(steps),
        "figures": evaluation["metrics"],
        "minutes": (time.monotonic() - began) / 60,
        "gib": usage.ru_maxrss / 2**20,
    }


if __name__ == "__main__":
    main()
