from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from text2grad.errors import UserError
from text2grad.models import loading


def save_tokenizer(tiny_model: Path, folder: Path, **changes: str | None) -> Path:
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    for name, value in changes.items():
        setattr(tokenizer, name, value)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_missing_pad_token_is_replaced_with_a_message(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = loading.load_tokenizer(save_tokenizer(tiny_model, tmp_path, pad_token=None))
    assert tokenizer.pad_token_id == tokenizer.eos_token_id
    (message,) = capsys.readouterr().err.splitlines()
    assert "no pad token" in message


def test_a_missing_end_token_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no end token; set eos_token"):
        loading.load_tokenizer(save_tokenizer(tiny_model, tmp_path, eos_token=None, pad_token=None))


@pytest.mark.parametrize("load", [loading.load_tokenizer, loading.load_model])
def test_an_unknown_model_is_named_with_the_remedy(tmp_path: Path, load: object) -> None:
    with pytest.raises(UserError, match=r'nothing-here" cannot be loaded: give "smollm2"'):
        load(tmp_path / "nothing-here")  # type: ignore[operator]


def test_pickled_weights_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    for path in tiny_model.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    torch.save(loading.load_model(tiny_model).state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(UserError, match="safetensors"):
        loading.load_model(tmp_path)


@pytest.mark.model
def test_the_default_model_knows_where_answers_end(smollm2: str) -> None:
    tokenizer = loading.load_tokenizer("smollm2")
    assert tokenizer.convert_ids_to_tokens(tokenizer.eos_token_id) == "<|im_end|>"
    assert tokenizer.chat_template is not None
    assert loading.resolve("smollm2") == loading.resolve("HuggingFaceTB/SmolLM2-135M-Instruct") == smollm2


def test_an_empty_variable_does_not_make_the_working_folder_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEXT2GRAD_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert loading.cache_folder() == tmp_path / "text2grad"
    monkeypatch.setenv("TEXT2GRAD_CACHE", str(tmp_path / "mine"))
    assert loading.cache_folder() == tmp_path / "mine"
