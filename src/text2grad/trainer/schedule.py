"""Learning-rate schedules as a pure function of the step, so that resuming needs no state."""

from __future__ import annotations

import math
from typing import Literal


def learning_rate_factor(step: int, total: int, warmup: int, kind: Literal["constant", "linear", "cosine"]) -> float:
    """Share of the full learning rate at step 1 to total: rises linearly over `warmup`, then holds or falls to 0."""
    if step <= warmup:
        return step / warmup
    progress = (step - warmup - 1) / max(1, total - warmup)
    match kind:
        case "constant":
            return 1.0
        case "linear":
            return 1.0 - progress
        case "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * progress))
