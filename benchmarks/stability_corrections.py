"""The configs of summaries and questions with corrections, as `stability.py` trains them without: does it collapse?"""

from __future__ import annotations

import harness
from stability import measure

if __name__ == "__main__":
    measure(
        "stability_corrections",
        harness.options(__doc__ or ""),
        tasks=("qa", "summarise"),
        settings=["policy.corrections.weight=1"],
    )
