"""What every benchmark shares: its options, its data, and how it reports and keeps its figures."""

from __future__ import annotations

import argparse
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


@dataclass(frozen=True)
class Bar:
    """What a figure has to reach."""

    at_least: float | None = None
    at_most: float | None = None

    def reached(self, figure: float) -> bool:
        """Not by NaN: a comparison with it is false."""
        return (self.at_least is None or figure >= self.at_least) and (self.at_most is None or figure <= self.at_most)

    def limits(self) -> dict[str, float]:
        return {name: limit for name, limit in vars(self).items() if limit is not None}


def options(description: str) -> argparse.Namespace:
    """`--device` and `--quick`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="where models run: cpu, cuda, cuda:1 (default: cpu)")
    parser.add_argument("--quick", action="store_true", help="a small part of the data, to try it out; keeps no result")
    return parser.parse_args()


def data_folder() -> Path:
    """The folder of the real data sets: the variable TEXT2GRAD_DATA, else ../shared/data beside the repository."""
    folder = Path(os.environ.get("TEXT2GRAD_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(f"{folder}: no such folder; set TEXT2GRAD_DATA to the folder of the data sets")
    return folder


def report(name: str, figures: Mapping[str, Any], bars: Mapping[str, Bar], args: argparse.Namespace) -> NoReturn:
    """Print the figures against their bars and the JSON line, keep the result, exit 1 if a bar is missed.

    Every bar is named after the figure that it is for. A run with `--quick` leaves the kept result alone.
    """
    missed = [figure for figure, bar in bars.items() if not bar.reached(figures[figure])]
    _print_bars(figures, bars, missed)
    result = {
        "benchmark": name,
        "figures": dict(figures),
        "bars": {figure: bar.limits() for figure, bar in bars.items()},
        "ok": not missed,
        "commit": commit(),
        "machine": machine(args.device),
    }
    if not args.quick:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result), flush=True)
    sys.exit(1 if missed else 0)


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """A table for people; the first column is text, the others are numbers."""
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _print_bars(figures: Mapping[str, Any], bars: Mapping[str, Bar], missed: list[str]) -> None:
    rows = []
    for figure, bar in bars.items():
        wanted = ", ".join(f"{limit.replace('_', ' ')} {value:g}" for limit, value in bar.limits().items())
        rows.append([figure, f"{figures[figure]:.4g}", wanted, "missed" if figure in missed else "ok"])
    show("Bars", ["figure", "measured", "wanted", ""], rows)


def commit() -> str:
    """The commit that was measured, marked where what could have changed a figure differs from it."""
    head = _git("rev-parse", "HEAD") or os.environ.get("TEXT2GRAD_COMMIT", "")  # a copy of the tree has no history
    changed = _git("status", "--porcelain", "--", "src", "benchmarks", "constraints.txt", "pyproject.toml")
    return f"{head}-dirty" if head and changed else head or "none"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def machine(device: str) -> dict[str, Any]:
    """What the figures depend on; nothing that names the host or its folders."""
    described = {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    return described | ({"gpu": torch.cuda.get_device_name(device)} if device.startswith("cuda") else {})


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
