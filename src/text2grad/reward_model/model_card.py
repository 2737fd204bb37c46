"""The model card of a reward model."""

from __future__ import annotations

from text2grad.checkpoint.markdown import code, front_matter
from text2grad.models.loading import base_model_name
from text2grad.reward_model.settings import RewardModelSettings


def model_card(settings: RewardModelSettings) -> str:
    """Return Markdown with the metadata that the Hugging Face hub reads."""
    name, published = base_model_name(settings.base)
    metadata = {
        **({"base_model": name} if published else {}),
        "library_name": "text2grad",
        "pipeline_tag": "text-classification",
        "tags": ["reward-model", "span-rewards", "text2grad"],
    }
    return f"""{front_matter(metadata)}
# A span reward model

Predicts which words of a completion are good and which are poor: with a token head in one forward pass, or as a
generated critique with exact quotations.

```python
from text2grad import SpanRewardModel

critic = SpanRewardModel.from_pretrained("THIS FOLDER OR REPOSITORY")
feedback = critic.critique(examples)
```

- Trained from {code(name)}.
- Input: at most {settings.inputs.max_length} tokens, the completion read {settings.inputs.reading}; a longer prompt is
  truncated in the middle, a longer completion is rejected.
- Critique format: {settings.critique_format.order.replace("_", " ")}.
- Default feedback: method {settings.feedback.method}, {settings.feedback.rewards} rewards.
- `training.json`, if present, holds the training settings and statistics of the training data.
"""
