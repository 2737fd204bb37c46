"""The model card: metadata that the hub can read, and the settings in words."""

from __future__ import annotations

import yaml

from text2grad.reward_model.head import Calibration
from text2grad.reward_model.model import Saved
from text2grad.reward_model.model_card import model_card
from text2grad.reward_model.settings import Layout, Rewards


def test_the_card_says_what_the_model_is() -> None:
    saved = Saved(
        base="org/base",
        layout=Layout(reading="around", order="spans_first", max_length=512),
        rewards=Rewards(path="generative", rewards="spans"),
        calibration=Calibration(),
    )
    _, front, text = model_card(saved).split("---\n", 2)
    assert yaml.safe_load(front) == {
        "base_model": "org/base",
        "library_name": "text2grad",
        "pipeline_tag": "text-classification",
        "tags": ["reward-model", "span-rewards", "text2grad"],
    }
    for words in ("read: around", "written: spans first", "At most 512 tokens", "generative path, as spans rewards"):
        assert words in text
