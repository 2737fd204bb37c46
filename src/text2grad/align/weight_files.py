"""Trained weights that the package ships: JSON, compressed."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from typing import Any


def load_weights(package: str, name: str) -> Any:
    """Return what the file `weights/NAME.json.gz` of a package holds."""
    return json.loads(gzip.decompress(files(package).joinpath("weights", f"{name}.json.gz").read_bytes()))
