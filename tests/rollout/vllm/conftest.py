"""The helper that starts a real server is shared with the benchmark."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
