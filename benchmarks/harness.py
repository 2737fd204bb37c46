"""Shared by all benchmarks: command-line options, the data folder, and the reporting of results."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
MEASURED_PATHS = ("src", "benchmarks", "constraints.txt", "pyproject.toml")  # a change in these can change a result


@dataclass(frozen=True)
class Bar:
    """The limits that a measured value has to keep."""

    at_least: float | None = None
    at_most: float | None = None

    def reached(self, value: float) -> bool:
        """Return whether `value` is within the limits; NaN never is."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def limits(self) -> dict[str, float]:
        """Return the limits that are set, by name."""
        return {name: limit for name, limit in vars(self).items() if limit is not None}


def options(description: str) -> argparse.Namespace:
    """Parse the command-line options of a benchmark: `--device` and `--quick`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="device of the models: cpu, cuda, cuda:1 (default: cpu)")
    parser.add_argument("--quick", action="store_true", help="use a small part of the data and save no result")
    return parser.parse_args()


def data_folder() -> Path:
    """Return the folder of the data sets: $TEXT2GRAD_DATA, or ../shared/data next to the repository."""
    folder = Path(os.environ.get("TEXT2GRAD_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(f"{folder}: no such folder; set TEXT2GRAD_DATA to the folder of the data sets")
    return folder


def report(
    name: str, figures: Mapping[str, Any], bars: Mapping[str, Bar], args: argparse.Namespace, **fields: Any
) -> NoReturn:
    """Print the bars and the result as one JSON line, save it unless `--quick`, and exit with 1 if a bar is missed.

    figures: the measured values. bars: limits by the name of the value that they apply to. fields: more of the result,
    or other values of its commit and machine, where the figures are from runs elsewhere.
    """
    missed = [key for key, bar in bars.items() if not bar.reached(figures[key])]
    if bars:
        _print_bars(figures, bars, missed)
    result = {
        "benchmark": name,
        "figures": dict(figures),
        "bars": {key: bar.limits() for key, bar in bars.items()},
        "ok": not missed,
        "commit": commit(),
        "machine": machine(args.device),
        **fields,
    }
    if not args.quick:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result), flush=True)
    sys.exit(1 if missed else 0)


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table whose first column is text and whose other columns are numbers."""
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _print_bars(figures: Mapping[str, Any], bars: Mapping[str, Bar], missed: list[str]) -> None:
    rows = []
    for name, bar in bars.items():
        target = ", ".join(f"{limit.replace('_', ' ')} {value:g}" for limit, value in bar.limits().items())
        rows.append([name, f"{figures[name]:.4g}", target, "missed" if name in missed else "ok"])
    show("Bars", ["metric", "measured", "target", ""], rows)


def commit() -> str:
    """Return the commit that is measured, with the suffix -dirty if the measured files have local changes."""
    if named := os.environ.get("TEXT2GRAD_COMMIT"):  # a copy of the tree on another machine has no history
        return named
    head = git("rev-parse", "HEAD")
    changed = git("status", "--porcelain", "--", *MEASURED_PATHS)
    return f"{head}-dirty" if head and changed else head or "none"


def git(*arguments: str) -> str:
    """Return the output of a git command in the repository; empty if it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def machine(device: str) -> dict[str, Any]:
    """Return the hardware and library versions that results depend on; nothing identifies the host."""
    facts = {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    return facts | ({"gpu": torch.cuda.get_device_name(device)} if device.startswith("cuda") else {})


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def save_weights(data: Any, path: Path) -> None:
    """Write weights as `text2grad.align.weight_files` loads them; the same ones are the same bytes."""
    packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)
    path.write_bytes(packed)
    print(f"{path.name}: {len(packed) / 1000:.0f} kB")
