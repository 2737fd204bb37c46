"""Programs that behave, and programs that do their worst."""

from __future__ import annotations

import http.server
import itertools
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from text2grad.errors import UserError
from text2grad.sandbox import (
    MEBIBYTE,
    READ_AHEAD,
    Backend,
    ExecutionResult,
    ResourceLimits,
    Sandbox,
    Script,
    backends,
    probe,
    seccomp,
)
from text2grad.sandbox.backends import PYTHON, readable_paths

SOURCE = Path(__file__).resolve().parents[2] / "src"
SHORT = ResourceLimits(
    wall_seconds=3.0,
    cpu_seconds=2.0,
    max_memory=128 * MEBIBYTE,
    max_processes=8,
    max_file_size=MEBIBYTE,
    max_disk=4 * MEBIBYTE,
)
LEAVE_BEHIND = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep({})"], start_new_session=True)
"""


@pytest.fixture(params=["bubblewrap", "namespaces"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each backend that works on this machine."""
    backend: Backend = request.param
    reason = "not installed" if backend not in probe.installed_backends() else probe.find_leak(backend)
    if reason:
        pytest.skip(f"{backend}: {reason}")
    sandbox = Sandbox(SHORT, unsafe=True)
    sandbox.backend = backend
    return sandbox


def run(sandbox: Sandbox, source: str) -> ExecutionResult:
    return sandbox.run(Script(source))


def alive(marker: str) -> list[str]:
    """Processes whose command line has `marker` in it."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if marker.encode() in line:
                found.append(folder.name)
    return found


def eventually(condition: object, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


def test_input_output_and_exit_code(sandbox: Sandbox) -> None:
    result = sandbox.run(Script("print(input() + 'llo'); exit(3)", stdin="hé"))
    assert (result.termination, result.code, result.stdout) == ("exit", 3, "héllo\n")
    assert not result.ok


def test_an_exception_names_its_line(sandbox: Sandbox) -> None:
    result = run(sandbox, "x = 1\nx / 0\n")
    assert result.code == 1
    assert 'File "main.py", line 2' in result.stderr
    assert "ZeroDivisionError" in result.stderr


def test_installed_packages_can_be_imported(sandbox: Sandbox) -> None:
    assert run(sandbox, "import pluggy").ok


def test_the_usual_devices_are_there(sandbox: Sandbox) -> None:
    source = (
        "import multiprocessing, os, random; print(file=open(os.devnull, 'w')); multiprocessing.Lock(); random.seed()"
    )
    assert run(sandbox, source).ok


def test_each_program_has_an_empty_scratch_folder(sandbox: Sandbox) -> None:
    source = "import os; print(sorted(os.listdir('.'))); open('left', 'w').write('x'); open('/tmp/too', 'w')"
    results = list(sandbox.run_all([Script(source)] * 3))
    assert [isinstance(result, ExecutionResult) and result.stdout for result in results] == ["['main.py']\n"] * 3


def test_fork_bomb(sandbox: Sandbox) -> None:
    source = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    result = sandbox.run(Script(source), ResourceLimits(wall_seconds=1.0, max_processes=8))
    assert result.termination in ("cpu", "time", "memory")
    assert result.wall_seconds < 4


def test_the_number_of_processes_is_limited(sandbox: Sandbox) -> None:
    source = """
import subprocess, sys
while True:
    subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(9)']); print('.', end='', flush=True)
"""
    limits = ResourceLimits(wall_seconds=5.0, max_processes=8, max_memory=1 << 30)  # with room for all of them
    result = sandbox.run(Script(source), limits)
    assert result.code == 1
    assert "BlockingIOError" in result.stderr
    assert 1 <= len(result.stdout) < limits.max_processes


def test_memory_hog_gets_a_memory_error(sandbox: Sandbox) -> None:
    result = run(sandbox, "x = bytearray(200 << 20)")
    assert result.code == 1
    assert "MemoryError" in result.stderr


def test_processes_share_the_memory(sandbox: Sandbox) -> None:
    """Each of four processes grows by one MiB at a time until it may not; a sum above the limit would be a leak."""
    source = """
import mmap, os, time
[os.fork() for _ in range(2)]
held = []
try:
    while True:
        held.append(mmap.mmap(-1, 1 << 20))
        held[-1].write(bytes(1 << 20))
        os.write(1, b"m")
except OSError:
    time.sleep(1)
"""
    result = run(sandbox, source)
    assert 40 < len(result.stdout) <= SHORT.max_memory // MEBIBYTE
    assert 40 * MEBIBYTE < result.peak_memory <= SHORT.max_memory


def test_memory_of_ended_processes_comes_back(sandbox: Sandbox) -> None:
    source = """
import os, time
for _ in range(20):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
time.sleep(0.5)
print(len(bytearray(90 << 20)))
"""
    assert run(sandbox, source).stdout == f"{90 << 20}\n"


def test_too_many_files(sandbox: Sandbox) -> None:
    source = "import os\nfor i in range(100000): open(str(i), 'w').close(); os.write(1, b'.')"
    result = sandbox.run(Script(source), replace(SHORT, max_files=50))
    assert "No space left" in result.stderr
    assert 40 <= len(result.stdout) < 50


def test_event_loops_and_pools_work(sandbox: Sandbox) -> None:
    source = """
import asyncio, multiprocessing, threading
async def two(): return 2
for _ in range(20):
    asyncio.run(two())
thread = threading.Thread(target=print, args=("thread",))
thread.start()
thread.join()
with multiprocessing.Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
"""
    result = sandbox.run(Script(source), ResourceLimits())
    assert result.stdout == "thread\n[1, 2]\n", result


def test_output_flood(sandbox: Sandbox) -> None:
    limits = ResourceLimits(wall_seconds=5, max_output=1000)
    result = sandbox.run(Script("while True: print('x' * 99)"), limits)
    assert result.termination == "output"
    assert len(result.stdout) == 1000


def test_time_is_up(sandbox: Sandbox) -> None:
    result = sandbox.run(
        Script("import time; print('begun', flush=True); time.sleep(60)"), ResourceLimits(wall_seconds=0.5)
    )
    assert (result.termination, result.code, result.stdout) == ("time", None, "begun\n")
    assert 0.5 <= result.wall_seconds < 3


def test_cpu_time_of_children_counts(sandbox: Sandbox) -> None:
    result = sandbox.run(
        Script("import os\nos.fork()\nwhile True: pass"), ResourceLimits(wall_seconds=9, cpu_seconds=0.5)
    )
    assert result.termination == "cpu"
    assert result.wall_seconds < 5


def test_home_folder_cannot_be_read(sandbox: Sandbox) -> None:
    secret = Path.home() / ".text2grad-test-secret"
    secret.write_text("secret")
    try:
        result = run(sandbox, f"print(open({str(secret)!r}).read())")
    finally:
        secret.unlink()
    assert "FileNotFoundError" in result.stderr
    assert "secret\n" not in result.stdout


def test_a_home_folder_that_is_the_interpreters_stays_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("bin", "lib/python3", ".ssh"):
        (tmp_path / folder).mkdir(parents=True)
    python = tmp_path / "bin" / "python3"
    python.touch()
    monkeypatch.setattr(backends, "PYTHON", str(python))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    inside = {path for path in readable_paths.__wrapped__() if Path(path).is_relative_to(tmp_path)}
    assert inside == {str(python), str(tmp_path / "lib")}
    assert str(tmp_path) not in readable_paths.__wrapped__()


def test_other_files_and_processes_cannot_be_seen(sandbox: Sandbox) -> None:
    source = """
import os
print(sorted(name for name in os.listdir("/proc") if name.isdigit())[0:1], len(os.environ))
for path in ("/etc/passwd", "/var", "/proc/1/environ", "/proc/1/fd/3", "/proc/1/mem"):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read()
        print("read", path)
    except OSError:
        pass
"""
    assert run(sandbox, source).stdout.startswith("['1']")
    assert "read" not in run(sandbox, source).stdout


def test_loopback_cannot_be_reached(sandbox: Sandbox) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        source = f"import socket; socket.create_connection(('127.0.0.1', {server.server_port}), 2); print('in')"
        result = run(sandbox, source)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert result.code == 1
    assert result.stdout == ""


def test_nothing_outside_can_be_written(sandbox: Sandbox, tmp_path: Path) -> None:
    targets = ["/", "/usr", "/dev", "/proc", "/home", str(tmp_path), str(Path.home()), readable_paths()[-1]]
    source = f"""
import os
for folder in {targets!r}:
    try:
        open(os.path.join(folder, "written-by-a-test"), "w").close()
        print("wrote", folder)
    except OSError:
        pass
"""
    result = run(sandbox, source)
    assert result.ok
    assert result.stdout == ""
    assert not list(tmp_path.iterdir())


def test_files_and_the_scratch_folder_have_a_size(sandbox: Sandbox) -> None:
    one = run(sandbox, "open('big', 'wb').write(bytes(2 << 20))")
    many = run(sandbox, "for i in range(9): open(str(i), 'wb').write(bytes(1 << 20)); print(i, flush=True)")
    assert "File too large" in one.stderr
    assert "No space left" in many.stderr
    assert many.stdout.split()[-1] < "5"


def test_a_kill_of_all_processes_stays_inside(sandbox: Sandbox) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        result = run(sandbox, "import os, signal; os.kill(-1, signal.SIGKILL); print('still here')")
        assert result.termination in ("exit", "signal")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_sigterm_can_be_ignored_but_not_the_end(sandbox: Sandbox) -> None:
    source = """
import signal, time
for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True:
    time.sleep(1)
"""
    result = sandbox.run(Script(source), ResourceLimits(wall_seconds=0.7))
    assert result.termination == "time"


def test_a_stopped_program_is_ended(sandbox: Sandbox) -> None:
    source = "import os, signal\nos.kill(1, signal.SIGSTOP) if os.fork() else 0\nos.kill(os.getpid(), signal.SIGSTOP)"
    result = sandbox.run(Script(source), ResourceLimits(wall_seconds=0.7))
    assert result.wall_seconds < 6


def test_no_process_is_left_behind(sandbox: Sandbox) -> None:
    source = LEAVE_BEHIND.format("54321.25") + "print('bye')"
    assert run(sandbox, source).stdout == "bye\n"
    assert eventually(lambda: not alive("54321.25"))


def test_programs_end_with_their_parent(sandbox: Sandbox) -> None:
    source = f"""
import sys
from text2grad.sandbox import ResourceLimits, Script, Sandbox
sandbox = Sandbox(ResourceLimits(wall_seconds=60), unsafe=True)
sandbox.backend = {sandbox.backend!r}
sandbox.run(Script({LEAVE_BEHIND.format("65432.25") + "time.sleep(60)"!r}))
"""
    parent = subprocess.Popen([sys.executable, "-c", source], env={**os.environ, "PYTHONPATH": str(SOURCE)})
    try:
        assert eventually(lambda: alive("65432.25"), 20)
    finally:
        parent.kill()
        parent.wait()
    assert eventually(lambda: not alive("65432.25"))


def test_many_side_by_side_come_back_in_order(sandbox: Sandbox) -> None:
    sandbox.num_workers = 4
    programs = (Script(f"print({number})") for number in range(12))
    assert [result.stdout for result in sandbox.run_all(programs)] == [f"{number}\n" for number in range(12)]


def test_a_slow_program_does_not_hold_up_those_behind_it(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.num_workers, others = 2, 40
    finished = threading.Semaphore(0)

    def run(program: Script, limits: ResourceLimits | None = None) -> str:
        if program.source == "slow":
            assert all(finished.acquire(timeout=20) for _ in range(others))
        finished.release()
        return program.source

    monkeypatch.setattr(sandbox, "run", run)
    programs = [Script("slow"), *[Script("fast")] * others]
    assert list(sandbox.run_all(programs)) == [program.source for program in programs]


def test_the_programs_that_are_read_ahead_are_limited(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "run", lambda program, limits: program.source)
    sandbox.num_workers, numbers = 2, itertools.count()
    results = sandbox.run_all(Script(str(number)) for number in numbers)
    assert next(results) == "0"
    results.close()  # type: ignore[attr-defined]
    assert next(numbers) <= READ_AHEAD * sandbox.num_workers + 1


def test_the_command_line_of_the_supervisor_tells_nothing_of_the_host(sandbox: Sandbox) -> None:
    shown = sandbox.run(Script("print(open('/proc/1/cmdline').read())")).stdout
    assert "marshal" in shown
    assert str(SOURCE) not in shown
    assert str(sandbox.limits.max_disk) not in shown


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_an_ordinary_user_is_protected_too() -> None:
    nobody = 65534
    source = """
import os
from text2grad.sandbox import ResourceLimits, Script, Sandbox, probe
assert os.getuid() == 65534
for backend in probe.installed_backends():
    assert probe.find_leak(backend) is None, probe.find_leak(backend)
sandbox = Sandbox(ResourceLimits(wall_seconds=2, max_processes=8))
bomb = sandbox.run(Script("import os\\nwhile True:\\n    try: os.fork()\\n    except OSError: pass"))
print(sandbox.backend, bomb.termination, sandbox.run(Script("print(open('/proc/1/environ').read())")).ok)
capabilities = "print([line for line in open('/proc/1/status') if line[:6] in ('CapPrm', 'CapEff')])"
sandbox.backend = "namespaces"
assert sandbox.run(Script(capabilities)).stdout.count("0000000000000000") == 2, "the supervisor needs none"
"""
    python = next((path for path in (PYTHON, "/usr/bin/python3") if _runs_as(path, nobody)), None)
    if python is None:
        pytest.skip("no Python interpreter of version 3.11 or newer that an ordinary user can start")
    env = {"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [python, "-c", source],
        user=nobody,
        group=nobody,
        extra_groups=[],
        env=env,
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] in (["time", "False"], ["cpu", "False"])


def _runs_as(python: str, user: int) -> bool:
    check = "import sys, text2grad.sandbox; sys.exit(sys.version_info < (3, 11))"
    try:
        done = subprocess.run(
            [python, "-c", check], user=user, env={"PYTHONPATH": str(SOURCE)}, capture_output=True, cwd="/"
        )
    except OSError:
        return False
    return done.returncode == 0


def test_refuses_to_run_without_protection(monkeypatch: pytest.MonkeyPatch) -> None:
    probe.select_backend.cache_clear()
    monkeypatch.setattr(probe, "find_leak", lambda backend: "no protection of home")
    with pytest.raises(UserError, match=r"no protection of home.*--unsafe-exec"):
        Sandbox()
    assert Sandbox(unsafe=True).backend == "unsafe"
    probe.select_backend.cache_clear()


SPARSE = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for slot in range(1, {pages}):
    address = slot << 30  # a page table and a directory of its own
    if libc.mmap(address, 4096, 3, 0x100022, -1, 0) == address:
        ctypes.memset(address, 1, 1)
time.sleep(0.5)
"""


def test_page_tables_have_a_limit_of_their_own(sandbox: Sandbox) -> None:
    assert run(sandbox, SPARSE.format(pages=500)).ok
    limit = sandbox.limits.max_memory
    result = run(sandbox, SPARSE.format(pages=limit // 16 // 8192 + 500))
    assert result.termination == "memory"
    assert result.peak_memory < limit / 2  # long before the memory itself


def test_a_sandbox_that_does_not_start_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("text2grad.sandbox.backends._bubblewrap", lambda limits: ["false"])
    assert "could not run" in (probe.find_leak("bubblewrap") or "")


@pytest.mark.skipif("bubblewrap" not in probe.installed_backends(), reason="bubblewrap is not installed")
def test_a_machine_whose_calls_cannot_be_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    for built in (seccomp.asking_filter, seccomp.denying_filter, seccomp.asked_calls):
        monkeypatch.setattr(f"text2grad.sandbox.execution.{built.__name__}", built.__wrapped__)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="riscv64"))
    assert probe.find_leak("bubblewrap") == (
        "the sandbox can filter the system calls of x86_64 and aarch64, but not of riscv64"
    )


def test_the_scratch_folder_is_in_memory() -> None:
    with pytest.raises(UserError, match="max_disk is 300 but max_memory is 400"):
        ResourceLimits(max_disk=300, max_memory=400)


def test_unsafe_still_limits_and_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sandbox = Sandbox(ResourceLimits(wall_seconds=1.0, max_output=100), unsafe=True)
    source = LEAVE_BEHIND.format("76543.25")
    assert run(sandbox, source + "open('left', 'w'); print(1)").stdout == "1\n"
    assert run(sandbox, source + "time.sleep(50)").termination == "time"
    assert run(sandbox, source + "while True: print('x' * 50)").termination == "output"
    assert eventually(lambda: not alive("76543.25"))
    assert not list(tmp_path.iterdir())


def test_the_probe_passes_when_started_from_tmp(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    assert probe.find_leak(sandbox.backend) is None


def test_packages_may_be_installed_below_tmp(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual environment may live in /tmp, which then cannot be a link to the scratch folder."""
    if not tmp_path.is_relative_to("/tmp"):
        pytest.skip("this machine's temporary folder is not below /tmp")
    shown = [*readable_paths(), str(tmp_path)]
    monkeypatch.setattr(backends, "readable_paths", lambda: shown)
    (tmp_path / "package.txt").write_text("here")
    tmp_path.chmod(0o755)
    for folder in (tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    result = run(
        sandbox, f"import tempfile; print(open({str(tmp_path / 'package.txt')!r}).read(), tempfile.gettempdir())"
    )
    assert result.stdout.split() == ["here", "/scratch"], result
