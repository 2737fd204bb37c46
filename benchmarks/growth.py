"""Time and memory of a step as a function of completion length, batch size and vocabulary size.

A small random model on the CPU (its completions hardly ever end early), the default model on a GPU. One variable is
changed at a time, each point in its own process; seconds are the median of the steps after the first. Memory is the
peak minus the memory before training (the weights). The plot is docs/growth.svg.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import torch
from harness import ROOT, options, report, show
from small_model import small_model

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.files import read_json_lines
from text2grad.models.loading import DEFAULT_MODEL, resolve
from text2grad.schema import Example, Feedback

STEPS = 3
DEFAULTS = {"length": 64, "batch": 16, "vocabulary": 49_152}
SWEEPS = {
    "length": [32, 64, 128, 256, 512, 1024],
    "batch": [8, 16, 32, 64, 128],
    "vocabulary": [49_152, 65_536, 98_304, 131_072],
}
TITLES = {"length": "tokens per completion", "batch": "completions per step", "vocabulary": "rows of the output layer"}


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        print(json.dumps(measure(json.loads(sys.argv[2]))))
        return
    args = options(__doc__ or "")
    results: dict[str, Any] = {}
    for name, values in SWEEPS.items():
        points = []
        for value in values[:2] if args.quick else values:
            command = [sys.executable, __file__, "--one", json.dumps(DEFAULTS | {name: value, "device": args.device})]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            points.append({"value": value, **json.loads(done.stdout.strip().splitlines()[-1])})
        results[name] = points
        parts = [part for part in points[0] if part not in ("value", "seconds", "gib")]
        show(
            f"Growth with the {TITLES[name]}",
            [name, "seconds", *parts, "GiB"],
            [[f"{p['value']:,}", *(f"{p[k]:.2f}" for k in ("seconds", *parts, "gib"))] for p in points],
        )
    if not args.quick:
        (ROOT / "docs" / "growth.svg").write_text(plot(results), encoding="utf-8")
    report("growth", results, {}, args)


def measure(point: dict[str, Any]) -> dict[str, float]:
    on_gpu = point["device"].startswith("cuda")
    with tempfile.TemporaryDirectory() as scratch:
        model = resolve(DEFAULT_MODEL) if on_gpu else small_model(Path(scratch, "model"), point["vocabulary"])
        trainer = Text2GradTrainer(
            model=model,
            critic=ConstantCritic(),
            args=Text2GradConfig(
                output_dir=Path(scratch, "run"),
                max_steps=STEPS,
                per_device_train_batch_size=point["batch"],
                max_completion_length=point["length"],
                bf16=on_gpu,
                num_logged_completions=0,
                save_steps=1_000,
            ),
            train_dataset=[
                Example(id=str(i), prompt=f"Write number {i} and go on.") for i in range(STEPS * point["batch"])
            ],
        )
        trainer.start()
        before = _memory(on_gpu)
        trainer.train()
        steps = [metrics for _, metrics in read_json_lines(trainer.run.metrics)][1:]
    stages = {"seconds": "step", **{name: name for name in ("rollout", "critique_and_score", "update")}}
    seconds = {key: median(float(step[f"time/{name}"]) for step in steps) for key, name in stages.items()}
    return {**seconds, "gib": (_peak(on_gpu) - before) / 2**30}


class ConstantCritic:
    """A critic that costs nothing."""

    def critique(self, examples: list[Example]) -> list[Feedback]:
        return [Feedback(critic="none", scores=[(0, len(e.completion), 0.5)] if e.completion else []) for e in examples]


def _memory(on_gpu: bool) -> int:
    if on_gpu:
        return torch.cuda.memory_allocated()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _peak(on_gpu: bool) -> int:
    return torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def plot(results: dict[str, Any]) -> str:
    """One panel per sweep: seconds (solid) and GiB (dashed) on axes from zero, each relative to its largest."""
    panels = []
    for number, (name, points) in enumerate(results.items()):
        left, most = 40 + 260 * number, max(p["value"] for p in points)
        lines = []
        for key, dash in (("seconds", ""), ("gib", ' stroke-dasharray="5 4"')):
            top = max(p[key] for p in points)
            path = " ".join(f"{left + 200 * p['value'] / most:.0f},{170 - 130 * p[key] / top:.0f}" for p in points)
            lines.append(f'<polyline points="{path}" fill="none" stroke="#2563a8" stroke-width="2"{dash}/>')
        largest = f"{max(p['seconds'] for p in points):.1f} s, {max(p['gib'] for p in points):.2f} GiB"
        panels.append(
            f'<path d="M{left} 30V170H{left + 210}" fill="none" stroke="#888"/>{"".join(lines)}'
            f'<text x="{left}" y="20">{largest}</text><text x="{left}" y="190">{TITLES[name]}, 0 to {most:,}</text>'
        )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 220" font-family="sans-serif" font-size="12" '
        f'fill="#444">{"".join(panels)}<text x="40" y="212">solid: seconds per step; dashed: memory above the weights; '
        "each relative to its largest value, shown above the panel</text></svg>\n"
    )


if __name__ == "__main__":
    main()
