"""The arms of `evidence.py`: same prompts, critiques, samples and steps; only what becomes of the critique differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from text2grad.rewards.credit import Credit

NO_CORRECTIONS = {"corrections": {"weight": 0.0}}


@dataclass(frozen=True)
class Arm:
    """settings: changes of the trainer's. holistic: the number is the full critic's, where it names one fault only."""

    settings: dict[str, Any] = field(default_factory=dict)
    holistic: bool = False


SEQUENCE = {"credit": Credit(mode="sequence"), **NO_CORRECTIONS}
ARMS = {
    "scalar rloo": Arm({"estimator": "rloo", **SEQUENCE}),
    "scalar rloo, holistic": Arm({"estimator": "rloo", **SEQUENCE}, holistic=True),
    "scalar ppo": Arm({"estimator": "gae", **SEQUENCE}),
    "paper": Arm({"estimator": "gae", "credit": Credit(mode="uniform", total="spans"), **NO_CORRECTIONS}),
    "spans local": Arm({"estimator": "local", **NO_CORRECTIONS}),
    "spans gae": Arm({"estimator": "gae", **NO_CORRECTIONS}),
    "spans rloo_tokens": Arm({"estimator": "rloo_tokens", **NO_CORRECTIONS}),
    "spans moved": Arm({"estimator": "rloo_tokens", "credit": Credit(mode="shuffled"), **NO_CORRECTIONS}),
    "corrections local": Arm({"estimator": "local"}),
    "corrections rloo_tokens": Arm({"estimator": "rloo_tokens"}),
}
