"""Benchmarks are scripts, not a package: their folder is put on the path for the tests of this one."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))
