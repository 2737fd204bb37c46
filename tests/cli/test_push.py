"""`text2grad push` to a hub that is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from click.testing import Result
from huggingface_hub.errors import HfHubHTTPError
from support import MakeTrainer
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.errors import UserError

TOKEN = "hf_abcdefghijklmnop"


class Hub:
    """Keeps what is uploaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.created: list[tuple[str, bool]] = []
        self.files: dict[str, bytes] = {}
        self.refuses = False

    def create_repo(self, name: str, private: bool, exist_ok: bool) -> None:
        if self.refuses:
            response: Any = type("Response", (), {"status_code": 403, "headers": {}, "request": None})()
            raise HfHubHTTPError(f"403 for {TOKEN}", response=response)
        assert exist_ok
        self.created.append((name, private))

    def upload_folder(self, repo_id: str, folder_path: Path, commit_message: str) -> str:
        self.files = {str(p.relative_to(folder_path)): p.read_bytes() for p in folder_path.rglob("*") if p.is_file()}
        return f"https://hub/{repo_id}/commit/1"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub(tmp_path)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: hub)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return hub


@pytest.fixture
def run(make_trainer: MakeTrainer) -> Path:
    trainer = make_trainer(max_steps=1)
    trainer.train()
    trainer.save_model()
    return trainer.run.root


def push(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["push", *map(str, arguments)], catch_exceptions=False)


def test_the_merged_model_is_uploaded_with_its_card(run: Path, hub: Hub, tmp_path: Path) -> None:
    done = push(run, "me/model", "--merged", "--private")
    assert done.exit_code == 0
    assert "https://hub/me/model/commit/1" in done.output.replace("\n", "")
    assert TOKEN not in done.output
    assert hub.created == [("me/model", True)]
    assert {"model.safetensors", "config.json", "tokenizer.json", "README.md"} <= set(hub.files)
    assert "text2grad_files.json" not in hub.files
    assert 'from_pretrained("me/model")' in hub.files["README.md"].decode()
    for name, content in hub.files.items():
        (tmp_path / "uploaded").mkdir(exist_ok=True)
        (tmp_path / "uploaded" / name).write_bytes(content)
    AutoModelForCausalLM.from_pretrained(tmp_path / "uploaded")


def test_an_adapter_names_its_base_as_others_find_it(
    run: Path, hub: Hub, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="folder of this machine that others do not have; push the merged model"):
        push(run, "me/model")
    (run / "config.yaml").write_text("model: {name: smollm2}\n")
    push(run, "me/model")
    assert hub.created == [("me/model", False)]
    adapter = json.loads(hub.files["adapter_config.json"])
    assert adapter["base_model_name_or_path"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert not any(str(tiny_model).encode() in content for content in hub.files.values())
    assert "trainer_state.json" not in hub.files


def test_a_dry_run_lists_the_files_and_uploads_nothing(run: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    done = push(run, "me/model", "--merged", "--dry-run")
    assert "model.safetensors" in done.output
    assert "Nothing was uploaded to me/model" in done.output
    assert hub.created == []


def test_what_cannot_be_pushed_is_reported(
    run: Path, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="empty: not a run"):
        push(tmp_path / "empty", "me/model")
    (tmp_path / "empty" / "metrics.jsonl").touch()
    with pytest.raises(UserError, match="empty: no trained model"):
        push(tmp_path / "empty", "me/model")
    with pytest.raises(UserError, match='"model" is no name of a repository'):
        push(run, "model")
    hub.refuses = True
    with pytest.raises(UserError, match=r"the hub refuses to take me/model \(HTTP 403\)") as refused:
        push(run, "me/model", "--merged")
    assert TOKEN not in str(refused.value)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(UserError, match="the hub needs a token"):
        push(run, "me/model", "--merged")
    (run / "checkpoints" / "final" / "README.md").unlink()
    with pytest.raises(UserError, match="no model card"):
        push(run, "me/model", "--merged")
