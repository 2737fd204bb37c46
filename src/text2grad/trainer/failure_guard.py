"""When a run that gets nowhere gives up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from text2grad.errors import UserError

MAX_FAILED_STEPS = 3  # steps in a row in which every critique failed, or the update broke


@dataclass
class FailureGuard:
    """Counts the steps in a row that taught nothing; too many are an error that names the cause."""

    checkpoint: Path
    silent: int = 0
    broken: int = 0

    def observe(self, metrics: Mapping[str, Any]) -> None:
        """Take in one step."""
        self.silent = self.silent + 1 if metrics["failed"] == metrics["samples"] else 0
        self.broken = self.broken + 1 if metrics["skipped"] else 0
        if self.silent == MAX_FAILED_STEPS:
            raise UserError(
                f"every critique failed in {MAX_FAILED_STEPS} steps in a row, last: {metrics['failure']}; "
                f"mend the critic and continue with --resume"
            )
        if self.broken == MAX_FAILED_STEPS:
            raise UserError(
                f"{metrics['broken']}, and so in {MAX_FAILED_STEPS} steps in a row; the last good checkpoint is kept "
                f"in {self.checkpoint}: lower learning_rate and start again from there"
            )
