"""The settings of a reward model, saved beside its weights."""

from __future__ import annotations

from text2grad.reward_model.critique_format import CritiqueFormat
from text2grad.reward_model.feedback import FeedbackSettings
from text2grad.reward_model.head import Calibration
from text2grad.reward_model.inputs import InputSettings
from text2grad.settings import Settings


class RewardModelSettings(Settings):
    """What predictions depend on besides the weights; `base` is the model that training started from."""

    base: str
    inputs: InputSettings = InputSettings()
    critique_format: CritiqueFormat = CritiqueFormat()
    feedback: FeedbackSettings = FeedbackSettings()
    calibration: Calibration = Calibration()
