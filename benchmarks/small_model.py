"""Small random Llamas for benchmarks in which the model does not matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from text2grad.models.loading import DEFAULT_MODEL, load_tokenizer, resolve


def small_llama(tokenizer: PreTrainedTokenizerBase, width: int, seed: int, **changes: Any) -> LlamaForCausalLM:
    """Two layers with four heads, for the tokenizer's vocabulary. changes: other settings of the configuration."""
    torch.manual_seed(seed)
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
    }
    return LlamaForCausalLM(LlamaConfig(**(settings | changes)))


def small_model(folder: Path, vocabulary: int | None = None) -> str:
    """Two layers of width 64 with the default model's tokenizer; returns its folder.

    vocabulary: rows of the output layer, at least the tokenizer's.
    """
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
