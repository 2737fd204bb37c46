"""The model card that goes with a reward model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from text2grad.checkpoint.markdown import code, front_matter
from text2grad.models.loading import base_model_name

if TYPE_CHECKING:
    from text2grad.reward_model.model import Saved


def model_card(saved: Saved) -> str:
    """Markdown with the metadata that the Hugging Face hub reads."""
    name, published = base_model_name(saved.base)
    metadata = {
        **({"base_model": name} if published else {}),
        "library_name": "text2grad",
        "pipeline_tag": "text-classification",
        "tags": ["reward-model", "span-rewards", "text2grad"],
    }
    return f"""{front_matter(metadata)}
# A span reward model

Reads a prompt and an answer, and says which words of the answer are good and which are poor: with a token head in one
forward pass, or in writing, with a critique and exact quotations.

```python
from text2grad import SpanRewardModel

critic = SpanRewardModel.from_pretrained("THIS FOLDER OR REPOSITORY")
feedback = critic.critique(examples)
```

- Trained from {code(name)}.
- The answer is read: {saved.layout.reading}; the judgement is written: {saved.layout.order.replace("_", " ")}.
- At most {saved.layout.max_length} tokens are read; a longer source loses its middle, a longer answer is refused.
- Feedback comes by the {saved.rewards.path} path, as {saved.rewards.rewards} rewards.
- `training.json`, where it is there, says what it was trained on and with which settings.
"""
