"""Random weights of real architectures, from their configurations alone, and prompts and lengths for them.

The tokenizer is made up: 256 bytes, then made-up words up to the size of the vocabulary, and the end token last. It
encodes text byte by byte, so a prompt of 300 characters has 300 tokens, and decodes any sampled id to a word.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from itertools import islice, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from text2grad.rollout import samplers
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import noise
from text2grad.schema import Example, Feedback

END = "<|end|>"
LLAMA3_ROPE = {
    "rope_type": "llama3", "rope_theta": 500_000.0, "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
LLAMA_1B = {
    "vocab_size": 128_256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "tie_word_embeddings": True,
    "max_position_embeddings": 131_072, "rope_parameters": LLAMA3_ROPE,
}  # fmt: skip
QWEN3_2B = {
    "vocab_size": 151_936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": True,
    "max_position_embeddings": 40_960, "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
}  # fmt: skip
LLAMA_8B = LLAMA_1B | {
    "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32, "head_dim": 128,
    "tie_word_embeddings": False, "rope_parameters": LLAMA3_ROPE | {"factor": 8.0},
}  # fmt: skip
SMOLLM2_135M = {
    "vocab_size": 49_152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64, "tie_word_embeddings": True,
    "max_position_embeddings": 8192, "rope_parameters": {"rope_type": "default", "rope_theta": 100_000.0},
}  # fmt: skip
SMALL = {
    "vocab_size": 1024, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 8192,
}  # fmt: skip
KINDS: dict[str, tuple[type[PreTrainedConfig], dict[str, Any]]] = {
    "llama-1b": (LlamaConfig, LLAMA_1B),
    "qwen3-1.7b": (Qwen3Config, QWEN3_2B),
    "llama-8b": (LlamaConfig, LLAMA_8B),
    "smollm2-135m": (LlamaConfig, SMOLLM2_135M),
}


def config(kind: str, quick: bool, **changes: Any) -> PreTrainedConfig:
    """Return the configuration of a model, or with `quick` of a tiny one of the same family."""
    family, settings = KINDS[kind]
    settings = settings | (SMALL if quick else {}) | changes
    end = settings["vocab_size"] - 1
    return family(**settings, eos_token_id=end, pad_token_id=end, bos_token_id=None)


def random_model(made: PreTrainedConfig, device: str, dtype: torch.dtype) -> PreTrainedModel:
    """Return a model with random weights, made on the device."""
    torch.manual_seed(0)
    with torch.device(device):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(made, dtype=dtype)
    return model


def saved_model(kind: str, quick: bool, folder: Path, device: str) -> str:
    """Return the folder of a model in bfloat16 with its tokenizer; it is written once."""
    path = folder / (f"{kind}-quick" if quick else kind)
    if not (path / "tokenizer_config.json").is_file():  # written last
        made = config(kind, quick)
        random_model(made, device, torch.bfloat16).save_pretrained(path)
        tokenizer(made.vocab_size).save_pretrained(path)
    AutoConfig.from_pretrained(path)
    return str(path)


def tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """Return the made-up tokenizer; its last id is the end."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ("Ġ" + "".join(letter) for size in (2, 3, 4) for letter in product(letters, repeat=size))
    entries = [*alphabet, *islice(words, vocabulary - 1 - len(alphabet)), END]
    made = Tokenizer(models.BPE(vocab={entry: i for i, entry in enumerate(entries)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(END, special=True)])
    template = "{% for m in messages %}{{ m['content'] }}" + END + "{% endfor %}"
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=END, chat_template=template)


def prompts(count: int, length: int) -> list[Example]:
    """Return different prompts of `length` tokens, give or take a sixth."""
    draw = random.Random(0)
    text = " ".join(texts())
    found = []
    for i in range(count):
        size = draw.randint(length - length // 6, length + length // 6)
        start = draw.randrange(len(text) - size)
        found.append(
            Example(id=str(i), prompt=f"{i} {text[start : start + size]}".encode("ascii", "replace").decode()[:size])
        )
    return found


def texts() -> list[str]:
    """Return the news items that come with the package."""
    import json

    lines = (files("text2grad") / "data" / "quickstart_texts" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["document"] for line in lines]


def answer_lengths(count: int, longest: int) -> list[int]:
    """Return the lengths at which completions are made to end: log-normal, the median 45% of the longest."""
    draw = random.Random(1)
    return [max(8, min(longest, round(draw.lognormvariate(math.log(0.45 * longest), 0.6)))) for _ in range(count)]


@contextmanager
def forced_lengths(lengths: Sequence[int]) -> Iterator[None]:
    """Let our sampler end completion i after lengths[i] tokens: at a uniform number of 1 it takes the last id."""

    def forced(purpose: Stream, seed: int, step: int, samples: Sequence[int], length: int) -> Tensor:
        uniforms = noise(purpose, seed, step, samples, length)
        for row, sample in enumerate(samples):
            if lengths[sample] <= length:
                uniforms[row, lengths[sample] - 1] = 1.0
        return uniforms

    with patch.object(samplers, "noise", forced):
        yield


class FreeCritic:
    """A critic that costs nothing: each answer has a score of its own."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [
            Feedback(critic="free", scores=[(0, len(e.completion), score(e.completion))] if e.completion else [])
            for e in examples
        ]


def score(text: str) -> float:
    """The share of vowels."""
    return sum(letter in "aeiou" for letter in text) / max(len(text), 1)


def matrix_parameters(model: Any) -> tuple[int, int]:
    """Return the parameters of the backbone that multiply every token, and those of the output layer."""
    inputs, outputs = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    total = sum(p.numel() for name, p in model.named_parameters() if "lora_" not in name and "value_head" not in name)
    backbone = total - outputs.numel() - (0 if inputs is outputs else inputs.numel())
    return backbone, outputs.numel()
