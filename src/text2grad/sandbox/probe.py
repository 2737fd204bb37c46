"""Selection of the backend: each one has to pass a program that tries to get out of its sandbox."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache

from text2grad.errors import UserError
from text2grad.sandbox.backends import Backend
from text2grad.sandbox.execution import SandboxError, execute
from text2grad.sandbox.result import ResourceLimits, Script

# Prints every protection that does not hold.
_PROBE = """
import os, socket, sys
outside, home, prefix = {outside!r}, {home!r}, {prefix!r}
if len([name for name in os.listdir("/proc") if name.isdigit()]) > 2 or os.getppid() != 1:
    print("processes")
if [name for _, name in socket.if_nameindex() if name != "lo"]:
    print("network")
if not prefix.startswith(home) and os.path.exists(home):
    print("home")
for folder in ("/", "/usr", "/dev", "/etc", outside):
    if os.path.realpath(folder) == os.getcwd():  # /tmp is the scratch folder inside
        continue
    try:
        open(os.path.join(folder, "text2grad-probe"), "w").close()
        print("files", folder)
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
    source = _PROBE.format(outside=os.getcwd(), home=os.path.expanduser("~"), prefix=sys.base_prefix)
    try:
        result = execute(Script(source), ResourceLimits(wall_seconds=5.0, max_processes=8), backend)
    except SandboxError as error:
        return str(error).splitlines()[-1]
    if not result.ok:
        return f"the probe terminated with {result.termination} {result.code} {result.stderr.strip()[-200:]}"
    return f"no protection of {', '.join(result.stdout.split())}" if result.stdout else None
