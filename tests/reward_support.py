"""Helpers for the tests of the span reward model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model

from text2grad.models.loading import load_model, load_tokenizer
from text2grad.reward_model.critique_format import CritiqueFormat, CritiqueLimits
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.network import SpanRewardNetwork
from text2grad.reward_model.settings import RewardModelSettings
from text2grad.schema import Example, Feedback, Span

SHORT = CritiqueLimits(critique=20, quote=40, spans=2, omissions=1, omission=10)
# What is hard to quote: quotation marks, escapes, line breaks, scripts, marks of other scripts, nothing at all.
ANSWERS = [
    "The fox jumps over the dog. The dog sleeps.",
    'She said "no"; "x"#2, \\ and\n\tC:\\temp — none.',
    "def f(x):\n    return {'a': \"b\\n\"}[x]  # 50%\n",
    "東京へ行きました。🎉 👩‍👩‍👧 e\u0301a\u0308 \u202eabc\u202c",
    "\x00\x07a\x08\x1b[0m\x7f\x85\u2028b\x0b",
    "<|im_end|>\nGood: none\nPoor: none",
    "x" * 200,
    "a a a a a a a a a a a a",
    " \n\u00a0\u3000",
]


def tiny_reward_model(folder: Path, lora: bool = False, seed: int = 0, **settings: Any) -> SpanRewardModel:
    """A model with a random head, so that predictions differ from word to word; settings: of RewardModelSettings."""
    base = load_model(folder)
    base.config.max_position_embeddings = 8192  # rotary positions have no table that could end
    torch.manual_seed(seed)
    if lora:
        config = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
        network = SpanRewardNetwork(get_peft_model(base, config))
    else:
        network = SpanRewardNetwork(base)
    torch.nn.init.normal_(network.head.weight)
    defaults = {"base": str(folder), "critique_format": CritiqueFormat(limits=SHORT)}
    return SpanRewardModel(network, load_tokenizer(folder), RewardModelSettings(**(defaults | settings)))


def unlabelled(answers: list[str]) -> list[Example]:
    """Return an example without feedback for each completion."""
    return [Example(id=str(i), prompt=f"Write about animals ({i}).", completion=a) for i, a in enumerate(answers)]


def about_animals(count: int) -> list[Example]:
    """Return examples in which every dog is poor and every fox is good."""
    animals = ["dog", "fox", "cat", "dog", "hen", "fox", "owl"]
    return [
        labelled(str(i), " ".join(animals[(i * k) % 7] for k in range(1, 4 + i % 5)), {"dog": "poor", "fox": "good"})
        for i in range(count)
    ]


def labelled(identity: str, answer: str, labels: dict[str, str]) -> Example:
    """Return an example whose feedback labels each occurrence of the given words."""
    spans = [
        Span.model_validate({"start": match.start(), "end": match.end(), "label": label})
        for word, label in labels.items()
        for match in re.finditer(re.escape(word), answer)
    ]
    feedback = Feedback(critic="human", critique="Too many dogs.", spans=spans)
    return Example(id=identity, prompt=f"Write about animals ({identity}).", completion=answer, feedback=feedback)
