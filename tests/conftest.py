"""Shared fixtures: a tiny random model with a real tokenizer, the default model, a trainer factory."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState
from peft import LoraConfig
from support import PROMPTS, MakeTrainer, VowelCritic
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.models.loading import load_tokenizer, resolve
from text2grad.schema import Example
from text2grad.trainer.callbacks import Callback

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORDS = "The quick brown fox jumps over the lazy dog. Write a summary of the text in one sentence: 1234567890."


def pytest_collection_finish() -> None:
    """Spare the collections after each test the objects of all imports."""
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Collect garbage after each test, so that unclosed resources are reported by the test that left them open."""
    yield
    gc.collect()
    gc.freeze()  # objects still in use need not be scanned again


def byte_level_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE with a few merges: any text can be encoded, any ids decode."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([WORDS] * 4, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>", chat_template=CHAT_TEMPLATE
    )


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a two-layer random Llama; loads in milliseconds."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = byte_level_tokenizer()
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def smollm2() -> str:
    """Folder of the default model, fetched on first use."""
    return resolve("smollm2")


@pytest.fixture(scope="session")
def smollm2_tokenizer(smollm2: str) -> PreTrainedTokenizerBase:
    return load_tokenizer(smollm2)


@pytest.fixture(autouse=True)
def _fresh_accelerator() -> None:
    """Reset accelerate's process-wide state: each test may use another mixed precision."""
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture
def make_trainer(tiny_model: Path, tmp_path: Path) -> MakeTrainer:
    def make(
        folder: str = "run",
        critic: Any = None,
        lora: bool = True,
        eval_dataset: Sequence[Example] = (),
        callbacks: Sequence[Callback] = (),
        **settings: Any,
    ) -> Text2GradTrainer:
        defaults: dict[str, Any] = {
            "max_steps": 3,
            "per_device_train_batch_size": 4,
            "max_completion_length": 10,
            "learning_rate": 1e-2,
            "bf16": False,
        }
        return Text2GradTrainer(
            model=tiny_model,
            critic=critic or VowelCritic(),
            args=Text2GradConfig(output_dir=tmp_path / folder, **(defaults | settings)),
            train_dataset=PROMPTS,
            peft_config=LoraConfig(r=4, lora_alpha=8, target_modules="all-linear") if lora else None,
            eval_dataset=eval_dataset,
            callbacks=callbacks,
        )

    return make
