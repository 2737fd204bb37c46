"""Benchmarks are scripts, not a package: the tests import them from their folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))
