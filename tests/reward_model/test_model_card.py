"""The model card: metadata that the hub can read, and the settings in words."""

from __future__ import annotations

import yaml

from text2grad.reward_model.critique_format import CritiqueFormat
from text2grad.reward_model.feedback import FeedbackSettings
from text2grad.reward_model.head import Calibration
from text2grad.reward_model.inputs import InputSettings
from text2grad.reward_model.model_card import model_card
from text2grad.reward_model.settings import RewardModelSettings


def test_the_card_says_what_the_model_is() -> None:
    saved = RewardModelSettings(
        base="org/base",
        inputs=InputSettings(reading="around", max_length=512),
        critique_format=CritiqueFormat(order="spans_first"),
        feedback=FeedbackSettings(method="generative", rewards="spans"),
        calibration=Calibration(),
    )
    _, front, text = model_card(saved).split("---\n", 2)
    assert yaml.safe_load(front) == {
        "base_model": "org/base",
        "library_name": "text2grad",
        "pipeline_tag": "text-classification",
        "tags": ["reward-model", "span-rewards", "text2grad"],
    }
    for words in ("read around", "format: spans first", "at most 512 tokens", "method generative, spans rewards"):
        assert words in text
