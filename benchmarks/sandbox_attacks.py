"""Attacks on the sandbox: how many get through, on each backend that works here, and how much memory they ever have.

An attack is through if it says so itself (it has read a file of the host, opened a socket, ...), if the host finds a
trace of it (a changed file, a connection, a dead bystander, a process that survives), if it takes longer or prints more
than it may, if it forges the report on it, or if it holds more than 1.1 times its limit of memory: by its own count of
the MiB that it has written and keeps, or by what a thread outside counts in its processes and its scratch folder.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack_catalogue import ATTACKS, PRELUDE, Attack
from harness import Bar, options, report, show

from text2grad.sandbox import MEBIBYTE, Backend, ExecutionResult, ResourceLimits, Script, backends, probe, syscalls
from text2grad.sandbox.execution import SandboxError, execute
from text2grad.sandbox.seccomp import number_of

LIMITS = ResourceLimits(
    wall_seconds=4.0,
    cpu_seconds=3.0,
    max_memory=128 * MEBIBYTE,
    max_processes=16,
    max_file_size=8 * MEBIBYTE,
    max_disk=16 * MEBIBYTE,
    max_files=500,
)
GRACE_SECONDS = 3.0
MAX_MEMORY_RATIO = 1.1
QUICK_EVERY = 4


@dataclass(frozen=True)
class AttackResult:
    """What an attack reached, an empty string if nothing, and its peak memory over its limit."""

    attack: Attack
    through: str
    memory_ratio: float
    wall_seconds: float


def main() -> None:
    args = options(__doc__ or "")
    report("sandbox_attacks", *measure(args.quick), args)


def measure(quick: bool) -> tuple[dict[str, Any], dict[str, Bar]]:
    """Attack every backend that is installed; return the figures and their bars."""
    attacks = ATTACKS[::QUICK_EVERY] if quick else ATTACKS
    figures: dict[str, Any] = {}
    bars: dict[str, Bar] = {}
    for backend in probe.installed_backends():
        if reason := probe.find_leak(backend):
            sys.exit(f"{backend} does not work here: {reason}")
        results = run_attacks(backend, attacks)
        _show(backend, results)
        figures |= {
            f"{backend}_attacks": len(results),
            f"{backend}_through": sum(bool(result.through) for result in results),
            f"{backend}_peak_memory_over_limit": max(result.memory_ratio for result in results),
            f"{backend}_seconds": sum(result.wall_seconds for result in results),
        }
        bars |= {
            f"{backend}_attacks": Bar(at_least=0 if quick else 50),
            f"{backend}_through": Bar(at_most=0),
            f"{backend}_peak_memory_over_limit": Bar(at_most=MAX_MEMORY_RATIO),
        }
    return figures, bars


def run_attacks(backend: Backend, attacks: Sequence[Attack] = ATTACKS) -> list[AttackResult]:
    """Run each attack by itself in a new sandbox of `backend`."""
    with _host() as host:
        return [host.judge(attack, backend) for attack in attacks]


def _show(backend: Backend, results: list[AttackResult]) -> None:
    rows = []
    for kind in dict.fromkeys(result.attack.kind for result in results):
        chosen = [result for result in results if result.attack.kind == kind]
        through = sum(bool(result.through) for result in chosen)
        rows.append([kind, f"{len(chosen)}", f"{through}", f"{max(result.memory_ratio for result in chosen):.2f}"])
    show(backend, ["goes for", "attacks", "through", "peak memory / limit"], rows)
    for result in results:
        if result.through:
            print(f"{result.attack.kind}: {result.attack.name}: {result.through}")


class _Host:
    """What the attacks try to reach, and the traces that they leave."""

    def __init__(self, folder: Path, home_file: Path, bystander: subprocess.Popen[bytes], stack: ExitStack) -> None:
        self.secret = secrets.token_hex(8)
        self.marker = f"attack-{secrets.token_hex(8)}"
        self.canary = folder / "canary"
        self.canary.write_text("untouched", encoding="ascii")
        self.bystander = bystander
        for path in (folder / "secret", home_file):
            path.write_text(self.secret, encoding="ascii")
        for path in (folder, folder / "secret", self.canary):
            path.chmod(0o777)
        os.environ["TEXT2GRAD_ATTACK_SECRET"] = self.secret
        stack.callback(os.environ.pop, "TEXT2GRAD_ATTACK_SECRET")
        inherited = os.open(folder / "secret", os.O_RDWR)
        os.set_inheritable(inherited, True)
        stack.callback(os.close, inherited)
        self.sockets = [stack.enter_context(listening) for listening in _sockets(folder, self.marker)]
        tcp, udp = (listening.getsockname()[1] for listening in self.sockets[:2])
        self.facts = {
            "secret": self.secret,
            "secret_file": str(folder / "secret"),
            "folder": str(folder),
            "canary": str(self.canary),
            "home": str(Path.home()),
            "home_file": str(home_file),
            "shown_in_home": _shown_in(Path.home()),
            "tcp": tcp,
            "udp": udp,
            "unix": str(folder / "socket"),
            "abstract": self.marker,
            "bystander": bystander.pid,
            "parent": os.getpid(),
            "marker": self.marker,
            "disks": _disks(),
            "max_processes": LIMITS.max_processes,
            "max_file_size": LIMITS.max_file_size,
            "max_files": LIMITS.max_files + LIMITS.max_processes,  # one per process may be on its way
        }

    def judge(self, attack: Attack, backend: Backend) -> AttackResult:
        """Run an attack and return what it reached."""
        if attack.first:
            execute(Script(attack.first), LIMITS, backend)
        source = f"HOST = {self.facts!r}\nNUMBER = {_numbers()!r}\n{PRELUDE}\n{attack.source}"
        try:
            with _peak_memory() as peak:
                result = execute(Script(source), LIMITS, backend)
        except SandboxError as error:
            return AttackResult(attack, f"the sandbox failed: {error}"[-300:], 0.0, 0.0)
        lines = result.stdout.splitlines()
        held = (
            sum(line.count("m") for line in lines if not line.startswith("THROUGH")) if attack.kind == "memory" else 0
        )
        ratio = max(held * MEBIBYTE, peak[0]) / LIMITS.max_memory
        claims = [line.removeprefix("THROUGH ") for line in lines if "THROUGH " in line]
        traces = [*claims, *self._traces(), *_excesses(result)]
        if ratio > MAX_MEMORY_RATIO:
            traces.append(f"{ratio:.2f} times the memory")
        return AttackResult(attack, "; ".join(traces)[:300], ratio, result.wall_seconds)

    def _traces(self) -> Iterator[str]:
        if self.canary.read_text(encoding="ascii") != "untouched":
            yield "a changed file"
        if self.bystander.poll() is not None:
            yield "a killed process"
        if socket.gethostname() == "attacked":
            yield "the host's name"
        if Path("core").exists():
            yield "a core dump"
        for listening in self.sockets:
            with suppress(BlockingIOError):
                listening.recv(1) if listening.type == socket.SOCK_DGRAM else listening.accept()
                yield "a connection"
        end = time.monotonic() + 1
        while _running(self.marker):
            if time.monotonic() > end:
                yield "a process that survives"
                return
            time.sleep(0.05)


@contextmanager
def _host() -> Iterator[_Host]:
    home_file = Path.home() / f".text2grad-attack-{os.getpid()}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attacked-", dir="/var/tmp")))
        stack.callback(home_file.unlink, missing_ok=True)
        bystander = stack.enter_context(subprocess.Popen(["sleep", "3600"]))
        stack.callback(bystander.kill)
        yield _Host(folder, home_file, bystander, stack)


def _sockets(folder: Path, name: str) -> list[socket.socket]:
    """A TCP server, a UDP one, and servers on a Unix socket with a path and one with an abstract name."""
    tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    for listening, address in ((tcp, ("127.0.0.1", 0)), (udp, ("127.0.0.1", 0)), (unix, str(folder / "socket"))):
        listening.bind(address)
    abstract.bind(f"\0{name}")
    (folder / "socket").chmod(0o777)
    for listening in (tcp, unix, abstract):
        listening.listen()
    for listening in (tcp, udp, unix, abstract):
        listening.setblocking(False)
    return [tcp, udp, unix, abstract]


def _shown_in(home: Path) -> list[str]:
    inside = [Path(path) for path in backends.readable_paths() if Path(path).is_relative_to(home)]
    return [path.relative_to(home).parts[0] for path in inside]


def _disks() -> list[tuple[int, int]]:
    numbers = {path: path.read_text(encoding="ascii") for path in Path("/sys/block").glob("*/dev")}
    return [(int(major), int(minor)) for major, _, minor in (text.strip().partition(":") for text in numbers.values())]


def _numbers() -> dict[str, int]:
    names = syscalls.DENIED | syscalls.ABSENT | {"clone": syscalls.CLONE}
    found = {name: number for name, numbers in names.items() if (number := number_of(numbers)) is not None}
    return found | {"memfd_create_x32": 0x40000000 | found["memfd_create"]}


def _excesses(result: ExecutionResult) -> Iterator[str]:
    if result.wall_seconds > LIMITS.wall_seconds + GRACE_SECONDS:
        yield f"{result.wall_seconds:.1f} seconds"
    if max(len(result.stdout), len(result.stderr)) > LIMITS.max_output:
        yield "too much output"
    if result.code == 77 or result.cpu_seconds < 0:
        yield "a forged report"


def _running(marker: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if marker.encode() in path.read_bytes():
                return True
    return False


@contextmanager
def _peak_memory() -> Iterator[list[int]]:
    """Sample the memory of the processes below the supervisor and its scratch folder; yield the peak, in a list."""
    peak, stop = [0], threading.Event()
    others = set(_children([os.getpid()]))

    def sample() -> None:
        while not stop.wait(0.01):
            started = [pid for pid in _children([os.getpid()]) if pid not in others]
            programs = _children(_children(started))
            family = list(programs)
            while programs := _children(programs):
                family += programs
            peak[0] = max(peak[0], sum(map(_resident, family)) + max(map(_scratch, family), default=0))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def _children(parents: list[int]) -> list[int]:
    found = []
    for parent in parents:
        with suppress(OSError):
            for path in Path(f"/proc/{parent}/task").glob("*/children"):
                found += [int(child) for child in path.read_text(encoding="ascii").split()]
    return found


def _resident(pid: int) -> int:
    """Memory of a process without that of files; pages that it shares with n - 1 others count by 1/n."""
    total = 0
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                total += int(line.split()[1]) * 1024
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("VmPTE:"):
                total += int(line.split()[1]) * 1024
    return total


def _scratch(pid: int) -> int:
    with suppress(OSError):
        usage = os.statvfs(f"/proc/{pid}/root{backends.SCRATCH}")
        return (usage.f_blocks - usage.f_bfree) * usage.f_frsize
    return 0


if __name__ == "__main__":
    main()
