"""Which of several processes this is, from what `accelerate launch` and `torchrun` tell each of them."""

from __future__ import annotations

import os


def process_count() -> int:
    """How many processes were launched together; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Whether this is the one that writes files and talks to the terminal."""
    return os.environ.get("RANK", "0") == "0"


def is_first_on_machine() -> bool:
    """Whether this is the one of its machine that says what is wrong there."""
    return os.environ.get("LOCAL_RANK", "0") == "0"
