"""Which way to shut programs in works here: each is tried on a program that tests its own walls."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache

from text2grad.errors import UserError
from text2grad.sandbox.backends import Backend
from text2grad.sandbox.execution import SandboxError, execute
from text2grad.sandbox.outcome import Limits, Program

# It prints the walls that it got through. The first line is told what the outside looks like.
_WALLS = """
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
def backend() -> Backend:
    """The first of bubblewrap and plain namespaces that holds; found once for the life of the process."""
    reasons = []
    for candidate in installed():
        reason = leak(candidate)
        if reason is None:
            return candidate
        reasons.append(f"{candidate}: {reason}")
    raise UserError(
        "no sandbox for untrusted code works here "
        f"({'; '.join(reasons) or 'this is not Linux'}); install bubblewrap and allow user namespaces, "
        "or run the code without protection with --unsafe-exec"
    )


def installed() -> list[Backend]:
    if sys.platform != "linux":
        return []
    return ["bubblewrap", "namespaces"] if shutil.which("bwrap") else ["namespaces"]


def leak(candidate: Backend) -> str | None:
    """What is wrong with a way to shut programs in; None if nothing is."""
    source = _WALLS.format(outside=os.getcwd(), home=os.path.expanduser("~"), prefix=sys.base_prefix)
    try:
        outcome = execute(Program(source), Limits(wall=5.0, processes=8), candidate)
    except SandboxError as failure:
        return str(failure).splitlines()[-1]
    if not outcome.ok:
        return f"the trial program ended with {outcome.ending} {outcome.code} {outcome.stderr.strip()[-200:]}"
    return f"no wall around {', '.join(outcome.stdout.split())}" if outcome.stdout else None
