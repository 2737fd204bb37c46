"""The judge as one script for the sandbox, where this package is not installed: its modules, compiled."""

from __future__ import annotations

import marshal
from functools import cache
from pathlib import Path

_MODULES = (
    "wire",
    "confine",
    "answer",
    "starter",
    "show",
    "probes",
    "watch",
    "remote",
    "session",
    "judge",
)  # imported ones first

_LOADER = """
import marshal, sys
package = type(sys)({package!r})
sys.modules[package.__name__] = package
for name, code in marshal.loads(bytes.fromhex({code!r})):
    module = type(sys)(package.__name__ + "." + name)
    sys.modules[module.__name__] = module
    setattr(package, name, module)
    exec(code, module.__dict__)
sys.modules[package.__name__ + ".judge"].main()
"""


@cache
def judge_script() -> str:
    """Return the script. It runs in the same interpreter as this, so compiled code can be sent."""
    folder = Path(__file__).parent
    modules = [(name, compile((folder / f"{name}.py").read_text("utf-8"), f"{name}.py", "exec")) for name in _MODULES]
    return _LOADER.format(package=__package__, code=marshal.dumps(modules).hex())
