"""Selection of the backend: each one has to pass a program that tries to get out of its sandbox."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path

from text2grad.errors import UserError
from text2grad.sandbox.backends import Backend, readable_paths
from text2grad.sandbox.execution import SandboxError, execute
from text2grad.sandbox.result import ResourceLimits, Script

# Prints every protection that does not hold.
_PROBE = """
import os, sys
outside, home, shown = {outside!r}, {home!r}, {shown!r}
if len([name for name in os.listdir("/proc") if name.isdigit()]) > 2 or os.getppid() != 1:
    print("processes")
if [line for line in open("/proc/net/dev").readlines()[2:] if line.split()[0] != "lo:"]:
    print("network")
if home != "/" and os.path.isdir(home) and set(os.listdir(home)) - set(shown):
    print("home")
for folder in ("/", "/usr", "/dev", "/etc", outside):
    if os.path.realpath(folder) == os.getcwd():  # /tmp is the scratch folder inside
        continue
    try:
        open(os.path.join(folder, "text2grad-probe"), "w").close()
        print("files", folder)
    except OSError:
        pass
try:
    os.memfd_create("text2grad-probe")
    print("memory")
except OSError:
    pass
children = 0
try:
    for _ in range(16):
        if os.fork() == 0:
            import time
            time.sleep(5)
            os._exit(0)
        children += 1
except OSError:
    pass
if not 1 <= children < 16:
    print("forks", children)
"""


@cache
def select_backend() -> Backend:
    """Return the first installed backend that isolates programs; determined once per process."""
    reasons = []
    for backend in installed_backends():
        reason = find_leak(backend)
        if reason is None:
            return backend
        reasons.append(f"{backend}: {reason}")
    raise UserError(
        "no sandbox for untrusted code works here "
        f"({'; '.join(reasons) or 'this is not Linux'}); install bubblewrap and allow user namespaces, "
        "or run the code without protection with --unsafe-exec"
    )


def installed_backends() -> list[Backend]:
    """Return the backends to try, in this order."""
    if sys.platform != "linux":
        return []
    return ["bubblewrap", "namespaces"] if shutil.which("bwrap") else ["namespaces"]


def find_leak(backend: Backend) -> str | None:
    """Run the probe program inside `backend` and return what does not work, or None."""
    home = os.path.expanduser("~")
    shown = [Path(path).relative_to(home).parts[0] for path in readable_paths() if Path(path).is_relative_to(home)]
    source = _PROBE.format(outside=os.getcwd(), home=home, shown=shown)
    try:
        result = execute(Script(source), ResourceLimits(wall_seconds=5.0, max_processes=8), backend)
    except (SandboxError, UserError) as error:
        return str(error).splitlines()[-1]
    if not result.ok:
        return f"the probe terminated with {result.termination} {result.code} {result.stderr.strip()[-200:]}"
    return f"no protection of {', '.join(result.stdout.split())}" if result.stdout else None
