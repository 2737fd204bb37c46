"""A small random Llama with the default model's tokenizer, for benchmarks that are about everything but the model."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from text2grad.models import DEFAULT_MODEL, load_tokenizer, resolve


def small_model(folder: Path, vocabulary: int | None = None) -> str:
    """Two layers of width 64. vocabulary: rows of the output layer, at least the tokenizer's. Returns its folder."""
    config = AutoConfig.from_pretrained(resolve(DEFAULT_MODEL))
    config.update({"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128})
    config.update({"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16})
    config.update({"vocab_size": vocabulary or config.vocab_size})
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).float().save_pretrained(folder)
    tokenizer = load_tokenizer(DEFAULT_MODEL)
    tokenizer.add_tokens([f"<{number}>" for number in range(config.vocab_size - len(tokenizer))])
    tokenizer.save_pretrained(folder)
    return str(folder)
