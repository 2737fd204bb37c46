"""Start-up time of each backend of the sandbox; throughput and memory growth of the default one on short programs.

The start-up time is the median over programs that run one after the other; the rest is measured on 100, 1 000 and 5 000
programs that run side by side.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from pathlib import Path
from statistics import median

from harness import Bar, options, report, show

from text2grad.sandbox import Backend, ExecutionResult, ResourceLimits, Sandbox, Script, probe
from text2grad.sandbox.execution import execute

SIZES = (100, 1_000, 5_000)
QUICK_SIZES = (20, 100)
WARM_UP = 20
NUM_STARTS = 100


def main() -> None:
    args = options(__doc__ or "")
    sizes = QUICK_SIZES if args.quick else SIZES
    sandbox = Sandbox()
    _run(sandbox, WARM_UP)
    figures: dict[str, float | str] = {"backend": sandbox.backend, "workers": sandbox.num_workers}
    figures |= {f"{name}_start_ms": _start_ms(name) for name in probe.installed_backends()}
    before = _leftovers()
    rows, rates, memory = [], [], []
    for size in sizes:
        rates.append(_run(sandbox, size))
        memory.append(_resident_mib())
        figures |= {f"programs_per_second_{size}": rates[-1], f"resident_mib_{size}": memory[-1]}
        rows.append([f"{size}", f"{rates[-1]:.1f}", f"{memory[-1]:.1f}"])
    show(f"{sandbox.backend}, {sandbox.num_workers} workers", ["programs", "per second", "resident MiB"], rows)
    show(
        "Start-up",
        ["backend", "ms"],
        [[name, f"{figures[f'{name}_start_ms']:.1f}"] for name in probe.installed_backends()],
    )
    figures["slowest_programs_per_second"] = min(rates)
    figures["rate_last_over_first"] = rates[-1] / rates[0]
    figures["memory_growth_mib"] = memory[-1] - memory[0]
    figures["left_behind"] = len(_leftovers() - before)
    bars = {
        "slowest_programs_per_second": Bar(at_least=20),
        "rate_last_over_first": Bar(at_least=0.8),
        "memory_growth_mib": Bar(at_most=5),
        "left_behind": Bar(at_most=0),
    }
    report("sandbox", figures, bars, args)


def _start_ms(backend: Backend) -> float:
    seconds = []
    for _ in range(NUM_STARTS):
        start = time.perf_counter()
        assert execute(Script("print(1)"), ResourceLimits(), backend).stdout == "1\n"
        seconds.append(time.perf_counter() - start)
    return 1000 * median(seconds)


def _run(sandbox: Sandbox, size: int) -> float:
    start = time.perf_counter()
    programs = (Script(f"print(sum(range({number})))") for number in range(size))
    for number, result in enumerate(sandbox.run_all(programs)):
        assert isinstance(result, ExecutionResult), result
        assert result.stdout == f"{number * (number - 1) // 2}\n", result
    return size / (time.perf_counter() - start)


def _resident_mib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _leftovers() -> set[str]:
    """Scratch folders, and processes that this one started."""
    folders = {path.name for path in Path(tempfile.gettempdir()).glob("text2grad-*")}
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return folders | {child for path in children for child in path.read_text(encoding="ascii").split()}


if __name__ == "__main__":
    main()
