"""What is wrong with the arguments of a run is said at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from text2grad.config.arguments import KEYS
from text2grad.config.run import RunConfig

# Run in a process of its own: this one has imported the libraries.
PROGRAM = """
import sys
from text2grad.cli.app import app
from text2grad.errors import UserError

try:
    app(sys.argv[1:], standalone_mode=False)
except UserError as error:
    print(error)
print("torch" in sys.modules)
"""


def test_the_keys_are_those_of_the_settings() -> None:
    assert tuple(RunConfig.model_fields) == KEYS


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["run", "nosuch.yaml"], "nosuch.yaml: no such file or preset"),
        (["run", "quickstart", "polcy.max_steps=1"], 'unknown key "polcy"; did you mean "policy"?'),
        (["train", "--config", "quickstart", "fast"], '"fast" is not a setting'),
        (["train", "--feedback", "nosuch.jsonl"], "nosuch.jsonl: no such file"),
    ],
)
def test_no_heavy_library_is_imported_for_a_mistyped_argument(arguments: list[str], error: str) -> None:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert error in done.stdout
    assert done.stdout.splitlines()[-1] == "False"
